-- mystery_path_grid.lua -- the Mystery Path on a grid, with quarter turns; the same page as mystery_path.
local mn = require "mneme"

return mn.scene {
  env = { "mystery_path_grid", level = "easy" },
  draw = mn.scene.load("mystery_path").draw,
}
