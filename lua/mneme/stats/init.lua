-- init.lua -- statistics of runs: mn.stats.  A result should predict other seeds, so
-- samples here are seeds, not episodes: a list, or scores[task][seed].  A function with
-- an interval returns the estimate, the lower and the upper end; for one seed the ends are nil.
local stats = {}

for _, part in ipairs { "special", "describe", "intervals", "bootstrap", "comparisons", "sign_flips", "curve", "survival", "mean_ranks" } do
  for name, f in pairs(require("mneme.stats." .. part)) do stats[name] = f end
end

return stats
