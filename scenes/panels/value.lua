-- value.lua -- the value estimate (expected discounted return from here on) at each step.
local mn = require "mneme"
local panels = mn.scene.panels

return function(view, box, now)
  local here = now.value and mn.ui.canvas.number(now.value, 2)
  panels.signals(view, box, now, { title = "value", note = here and { "now " .. here, here } or nil,
    y_name = "expected return", span = 0.2, empty = "no value estimate",
    lines = { { name = "value", of = function(entry) return entry.value end } } })
end
