-- craftax_classic.lua -- Craftax Classic: what the agent sees, the map, what it owns, the achievements as a wall that lights up, policy,
-- value, memory and gates.    mneme view craftax_classic
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now)
  local world, mind = view:split(body, "columns", { "5*", "3*" })
  panels.world(view, world, now, { title = "world", note = now.truth.achieved and ("%d of 22 achievements"):format(now.truth.achieved) })
  local policy, value, memory = view:split(mind, "rows", { "3*", "2*", "2*" })
  panels.policy(view, policy, now)
  panels.value(view, value, now)
  panels.memory(view, memory, now)
end

return mn.scene {
  env = { "craftax_classic" },
  draw = draw,
}
