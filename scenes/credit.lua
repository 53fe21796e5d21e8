-- credit.lua -- what a decision depends on, in any environment: the gradient of the value and of the chosen action's logit by every earlier observation
-- and its parts, next to what the memory knows and what erasing it changes.  Click a step to see what became of it.
--   mneme view runs/NAME scene=credit
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now)
  local left, right = view:split(body, "columns", { "2*", "5*" })
  local world, seen, policy = view:split(left, "rows", { "4*", "4*", "3*" })
  panels.world(view, world, now)
  panels.observation(view, seen, now)
  panels.policy(view, policy, now)
  local credit, below = view:split(right, "rows", { "3*", "2*" })
  panels.credit(view, credit, now)
  local value, contribution = view:split(below, "columns", { "2*", "3*" })
  panels.value(view, value, now)
  panels.contribution(view, contribution, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
