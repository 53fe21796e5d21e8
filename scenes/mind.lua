-- mind.lua -- how a memory works, in any environment: what each part of it contributes to what the agent does, before each step, what is read of each past
-- step, state norms and gates.  Click a head or a step to see it alone.  A page lower than 340 design pixels has no room for the observation and norms.
--   mneme view runs/NAME scene=mind
local mn = require "mneme"

return mn.scene {
  env = { "tmaze", corridor = 20 },
  story = true,
  layout = function(_, body, view)
    local left = body.h < 340 * view.unit and { "2*", "rows", { "1*", "world" }, { 0 }, { "1*", "policies" } }
      or { "2*", "rows", { "4*", "world" }, { "2*", "observation" }, { "3*", "policies" }, { "4*", "norms" } }
    return { "columns", left, { "5*", "rows", { "4*", "contribution" }, { "3*", "attention" }, { "3*", "gates" } } }
  end,
}
