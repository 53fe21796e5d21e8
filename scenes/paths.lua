-- paths.lua -- two episodes next to each other, and by which parts of the memory what was seen in one would decide the other: path patching.
--   mneme view runs/NAME scene=paths, then b
local mn = require "mneme"

local function draw(view, now)
  mn.scene.lay(view, mn.scene.body(view, now), now, { "rows", { "1*", "columns", { "1*", "world" }, { "1*", "policies" } }, { "2*", "patching" } })
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
