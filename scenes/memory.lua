-- memory.lua -- the recurrent state and the gates, large, for any core and any environment.
--   mneme view memory, or mneme view runs/NAME scene=memory
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now, { story = true })

  local left, right = view:split(body, "columns", { "1*", "1*" })
  local world, seen = view:split(left, "rows", { "5*", "2*" })
  panels.world(view, world, now)
  panels.observation(view, seen, now)
  local mind, memory = view:split(right, "rows", { "3*", "8*" })
  local policy, value = view:split(mind, "columns", { "1*", "1*" })
  panels.policy(view, policy, now)
  panels.value(view, value, now)

  if #now.gates == 0 then return panels.memory(view, memory, now) end
  local state, gates = view:split(memory, "rows", { "5*", "3*" })
  panels.memory(view, state, now)
  panels.gates(view, gates, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
