-- value.lua -- the value estimate (expected discounted return from here on) at each step.
local mn = require "mneme"
local panels = mn.scene.panels

return function(view, box, now)
  panels.signals(view, box, now, { title = "value", note = now.value and (("now %+.2f"):format(now.value):gsub("-", "−")) or nil,
    y_name = "expected return", span = 0.2, empty = "no value estimate",
    lines = { { name = "value", of = function(entry) return entry.value end } } })
end
