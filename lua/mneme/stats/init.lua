-- init.lua -- statistics of runs: mn.stats.  A figure that somebody believes tells what would come of other seeds, so
-- the numbers here are one per seed, not one per episode: a list of them, or scores[environment][seed].  Every function with
-- an interval gives the estimate, then its low and its high end; from one seed there is no interval, and these are nil.
local stats = {}

for _, part in ipairs { "special", "describe", "intervals", "bootstrap", "comparisons", "curve" } do
  for name, f in pairs(require("mneme.stats." .. part)) do stats[name] = f end
end

return stats
