-- sparkline.lua -- one metric of a training as a small curve with its last value.
local mn = require "mneme"

local MOST = 120                                 -- points drawn

---options.of: names of metrics, of which the first that the run has is drawn
return function(view, box, now, options)
  local theme, u = view.theme, view.unit
  local series, name = now.run and mn.run.metrics(now.run) or {}, nil
  for _, wanted in ipairs(options.of) do name = name or series[wanted] and wanted end
  local s = series[name]
  if not s then
    return view:text("no score is logged yet", box.x, box.y + box.h / 2 + 4 * u, 11.5, theme.dim, "left", box.w)
  end
  local word = ("%s %.3g"):format(name:match "[^/]+$", s.y[s.n]):gsub("%-(%d)", "−%1")
  local least, most = math.huge, -math.huge
  for i = 1, s.n do least, most = math.min(least, s.y[i]), math.max(most, s.y[i]) end
  local plot = { x = box.x, y = box.y + 4 * u, w = box.w - view:text_width(word, 11.5) - 10 * u, h = box.h - 8 * u }
  local x0, y0
  for i = 1, s.n, math.max(1, s.n / MOST) do
    local y = s.y[math.floor(i)]
    local x1 = plot.x + s.x[math.floor(i)] / math.max(1, s.x[s.n]) * plot.w
    local y1 = plot.y + plot.h * (1 - (y - least) / math.max(1e-9, most - least))
    if x0 then view:line(x0, y0, x1, y1, theme.accent, 1.5 * u) end
    x0, y0 = x1, y1
  end
  view:text(word, box.x + box.w, box.y + box.h / 2 + 4 * u, 11.5, theme.text, "right")
  view:tip(box, ("%s of the training so far, %d lines"):format(name, s.n))
end
