-- mystery_path_grid.lua -- the Mystery Path of cells and quarter turns, looked at as the one of small steps.
local mn = require "mneme"

return mn.scene {
  doc = "the Mystery Path of cells and quarter turns, looked at in the same way",
  env = { "mystery_path_grid", level = "easy" },
  core = { "agalite" },
  draw = mn.scene.load("mystery_path").draw,
}
