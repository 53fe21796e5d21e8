-- norms.lua -- the norm of each layer's state over time: shows growth, saturation and resets.
local mn = require "mneme"
local selection = mn.ui.selection
local panels = mn.scene.panels

return function(view, box, now)
  local layers, lines, norms = {}, {}, now.history[#now.history].norms or {}
  for layer = 0, 63 do
    if not norms[layer] then break end
    layers[layer + 1] = { layer = layer }
  end
  local _, chosen = selection.rows(now, layers)
  for i, row in ipairs(layers) do
    local layer = row.layer
    lines[i] = { name = (layer == 0 and "layer " or "") .. layer, row = row, thick = chosen and (chosen == layer and 3 or 1) or 2,
      of = function(entry) return entry.norms and entry.norms[layer] end }
  end
  panels.signals(view, box, now, { title = "state norm", y_name = "L2 norm", lines = lines, least = 0,
    empty = "this core has no state" })
end
