-- paths.lua -- two episodes next to each other, and by which parts of the memory what was seen in one would decide the other: path patching.
--   mneme view runs/NAME scene=paths, then b
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local above, paths = view:split(mn.scene.body(view, now), "rows", { "1*", "2*" })
  local world, policy = view:split(above, "columns", { "1*", "1*" })
  panels.world(view, world, now)
  panels.policies(view, policy, now)
  panels.patching(view, paths, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
