-- memory.lua -- the core's memory large, whatever the core and the task: the world is only a
-- corner of the page.    mneme view memory, or mneme view runs/NAME scene=memory
local scene = require "mneme.view.scene"
local panel = scene.panels

local function draw(view, now)
  local page = view:inset(view.box, 16)
  local header, body = view:split(page, "rows", { 44, "1*" })
  panel.header(view, header, now)

  local left, right = view:split(body, "columns", { "2*", "5*" })
  local world, seen, policy, value = view:split(left, "rows", { "4*", "2*", "3*", "4*" })
  panel.world(view, world, now)
  panel.observation(view, seen, now)
  panel.policy(view, policy, now)
  panel.value(view, value, now)

  if #now.gates == 0 then return panel.memory(view, right, now) end
  local state, gates = view:split(right, "rows", { "5*", "2*" })
  panel.memory(view, state, now)
  panel.gates(view, gates, now)
end

return scene.new {
  doc = "any core on any task: its memory and gates, what it sees and does",
  task = { "tmaze", corridor = 20 },
  core = { "agalite" },
  draw = draw,
}
