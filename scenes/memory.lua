-- memory.lua -- the recurrent state and the gates, large, for any core and any environment.
--   mneme view memory, or mneme view runs/NAME scene=memory
local mn = require "mneme"

return mn.scene {
  env = { "tmaze", corridor = 20 },
  story = true,
  layout = function(now)
    local memory = #now.gates == 0 and { "8*", "memory" } or { "8*", "rows", { "5*", "memory" }, { "3*", "gates" } }
    return { "columns", { "1*", "rows", { "5*", "world" }, { "2*", "observation" } },
      { "1*", "rows", { "3*", "columns", { "1*", "policy" }, { "1*", "value" } }, memory } }
  end,
}
