-- craftax.lua -- Craftax: what the agent sees, the map of its floor, what it owns, the achievements as a wall that lights up, policy,
-- value, memory and gates.    mneme view craftax
local mn = require "mneme"

return mn.scene {
  env = { "craftax" },
  layout = function(now, _, view)
    local earned = now.truth.achieved
    local world = { title = "world", note = earned and ("floor %d, %d of 67 achievements"):format(now.truth.floor, earned) }
    local small = view.edge < 12                                       -- names of actions
    return { "columns", { small and "5*" or "21*", "world", world },
      { small and "3*" or "10*", "rows", { "7*", "policy" }, { "2*", "value" }, { "2*", "memory" } } }
  end,
}
