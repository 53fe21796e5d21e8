-- craftax_classic.lua -- Craftax Classic: what the agent sees, the map, what it owns, the achievements as a wall that lights up, policy,
-- value, memory and gates.    mneme view craftax_classic
local mn = require "mneme"

return mn.scene {
  env = { "craftax_classic" },
  layout = function(now)
    return { "columns", { "5*", "world", { title = "world", note = now.truth.achieved and ("%d of 22 achievements"):format(now.truth.achieved) } },
      { "3*", "rows", { "3*", "policy" }, { "2*", "value" }, { "2*", "memory" } } }
  end,
}
