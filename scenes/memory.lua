-- memory.lua -- the recurrent state and the gates, large, for any core and any environment.
--   mneme view memory, or mneme view runs/NAME scene=memory
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now, { story = true })

  local left, right = view:split(body, "columns", { "2*", "5*" })
  local world, seen, policy, value = view:split(left, "rows", { "4*", "2*", "3*", "4*" })
  panels.world(view, world, now)
  panels.observation(view, seen, now)
  panels.policy(view, policy, now)
  panels.value(view, value, now)

  if #now.gates == 0 then return panels.memory(view, right, now) end
  local state, gates = view:split(right, "rows", { "5*", "2*" })
  panels.memory(view, state, now)
  panels.gates(view, gates, now)
end

return mn.scene {
  doc = "any core in any environment: state and gates, observation, policy and value",
  env = { "tmaze", corridor = 20 },
  core = { "agalite" },
  draw = draw,
}
