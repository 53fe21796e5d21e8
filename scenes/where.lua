-- where.lua -- where an agent remembers, in any environment: the loss when each part of its memory is erased at each step, measured while
-- the window is idle.  A click on a cell opens the episode with that part erased.
--   mneme view runs/NAME scene=where
local mn = require "mneme"

return mn.scene {
  env = { "tmaze", corridor = 20 },
  shared = "causes",
  story = true,
  layout = function(now)               -- of two episodes of one agent the window draws the map once, below both
    return now.map_apart and { "rows", { "1*", "world" }, { "1*", "policies" } }
      or { "rows", { "2*", "columns", { "1*", "world" }, { "1*", "policies" } }, { "3*", "causes" } }
  end,
}
