-- norms.lua -- the length of each layer's state over time: what fills, what saturates, what was cleared.
local panels = require("mneme.scene").panels

return function(view, box, now)
  local lines, norms = {}, now.history[#now.history].norms or {}
  for layer = 0, 63 do
    if not norms[layer] then break end
    lines[layer + 1] = { name = (layer == 0 and "layer " or "") .. layer, of = function(entry) return entry.norms and entry.norms[layer] end }
  end
  panels.signals(view, box, now, { title = "state norm", y_name = "length of the state", lines = lines, least = 0,
    empty = "this core has no state" })
end
