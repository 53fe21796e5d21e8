-- memory.lua -- the recurrent state and the gates, large, for any core and any environment.
--   mneme view memory, or mneme view runs/NAME scene=memory
local mn = require "mneme"

local function draw(view, now)
  local memory = #now.gates == 0 and { "8*", "memory" } or { "8*", "rows", { "5*", "memory" }, { "3*", "gates" } }
  mn.scene.lay(view, mn.scene.body(view, now, { story = true }), now, { "columns",
    { "1*", "rows", { "5*", "world" }, { "2*", "observation" } },
    { "1*", "rows", { "3*", "columns", { "1*", "policy" }, { "1*", "value" } }, memory } })
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
