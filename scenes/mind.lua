-- mind.lua -- how a memory works, whatever the task: what it reads of each past step, what is left of one, how fast
-- each head forgets, how its state grows, and what its gates let through.  Click a head or a step to see it alone.
--   mneme view runs/NAME scene=mind
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local page = view:inset(view.box, 16)
  local header, body = view:split(page, "rows", { 44, "1*" })
  panels.header(view, header, now)
  local left, right = view:split(body, "columns", { "2*", "5*" })
  local world, seen, policy, norms = view:split(left, "rows", { "4*", "2*", "3*", "4*" })
  panels.world(view, world, now)
  panels.observation(view, seen, now)
  panels.policies(view, policy, now)
  panels.norms(view, norms, now)

  local attention, forgot, below = view:split(right, "rows", { "4*", "3*", "3*" })
  panels.attention(view, attention, now)
  panels.forgot(view, forgot, now)
  local horizon, gates = view:split(below, "columns", { "1*", "1*" })
  panels.horizon(view, horizon, now)
  panels.gates(view, gates, now)
end

return mn.scene {
  doc = "how a memory works: what it reads of each past step, what is left of one, how fast each head forgets, gates",
  env = { "tmaze", corridor = 20 },
  core = { "agalite" },
  draw = draw,
}
