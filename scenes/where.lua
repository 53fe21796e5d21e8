-- where.lua -- where an agent remembers, in any environment: the loss when each part of its memory is erased at each step, measured while
-- the window is idle.  A click on a cell opens the episode with that part erased.
--   mneme view runs/NAME scene=where
local mn = require "mneme"

local function draw(view, now)
  local body = mn.scene.body(view, now, { story = true })
  -- Of two episodes of one agent the window draws the map once, below both.
  mn.scene.lay(view, body, now, now.map_apart and { "rows", { "1*", "world" }, { "1*", "policies" } }
    or { "rows", { "2*", "columns", { "1*", "world" }, { "1*", "policies" } }, { "3*", "causes" } })
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  shared = "causes",
  draw = draw,
}
