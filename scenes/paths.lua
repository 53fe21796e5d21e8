-- paths.lua -- two episodes next to each other, and by which parts of the memory what was seen in one would decide the other: path patching.
--   mneme view runs/NAME scene=paths, then b
local mn = require "mneme"

return mn.scene {
  env = { "tmaze", corridor = 20 },
  layout = { "rows", { "1*", "columns", { "1*", "world" }, { "1*", "policies" } }, { "2*", "patching" } },
}
