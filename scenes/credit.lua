-- credit.lua -- what a decision depends on, in any environment: the gradient of the value and of the chosen action's logit by every earlier observation
-- and its parts, next to what the memory knows and what erasing it changes.  Click a step to see what became of it.
--   mneme view runs/NAME scene=credit
local mn = require "mneme"

local function draw(view, now)
  mn.scene.lay(view, mn.scene.body(view, now), now, { "columns",
    { "2*", "rows", { "4*", "world" }, { "4*", "observation" }, { "3*", "policy" } },
    { "5*", "rows", { "3*", "credit" }, { "2*", "columns", { "2*", "value" }, { "3*", "contribution" } } } })
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
