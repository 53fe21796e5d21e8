-- mystery_path_grid.lua -- the Mystery Path of cells and quarter turns, looked at as the one of small steps.
local scene = require "mneme.view.scene"

return scene.new {
  doc = "the Mystery Path of cells and quarter turns, looked at in the same way",
  task = { "mystery_path_grid", level = "easy" },
  core = { "agalite" },
  draw = scene.load("mystery_path").draw,
}
