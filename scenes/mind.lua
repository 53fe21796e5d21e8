-- mind.lua -- how a memory works, whatever the task: what it reads of each past step, what is left of one, how fast
-- each head forgets, how its state grows, and what its gates let through.  Click a head or a step to see it alone.
--   mneme view runs/NAME scene=mind
local scene = require "mneme.view.scene"
local panel = scene.panels

local function draw(view, now)
  local page = view:inset(view.box, 16)
  local header, body = view:split(page, "rows", { 44, "1*" })
  panel.header(view, header, now)
  local left, right = view:split(body, "columns", { "2*", "5*" })
  local world, seen, policy, norms = view:split(left, "rows", { "4*", "2*", "3*", "4*" })
  panel.world(view, world, now)
  panel.observation(view, seen, now)
  panel.policies(view, policy, now)
  panel.norms(view, norms, now)

  local attention, forgot, below = view:split(right, "rows", { "4*", "3*", "3*" })
  panel.attention(view, attention, now)
  panel.forgot(view, forgot, now)
  local horizon, gates = view:split(below, "columns", { "1*", "1*" })
  panel.horizon(view, horizon, now)
  panel.gates(view, gates, now)
end

return scene.new {
  doc = "how a memory works: what it reads of each past step, what is left of one, how fast each head forgets, gates",
  task = { "tmaze", corridor = 20 },
  core = { "agalite" },
  draw = draw,
}
