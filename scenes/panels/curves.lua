-- curves.lua -- a learning curve of the run, during training or after: one logged metric against environment steps.  Many
-- points are drawn pale, with a smoothed line on top; or small, on a line of the bar, with its last value.
local mn = require "mneme"

local MOST, FEW = 400, 120                       -- points drawn, of a small curve
local MANY = 80

local function small(view, box, name, s, least, most)
  local u, word = view.unit, name:match "[^/]+$" .. " " .. mn.ui.canvas.number(s.y[s.n])
  local wide, x0, y0 = box.w - view:text_width(word, 11.5) - 10 * u, nil, nil
  for i = 1, s.n, math.max(1, s.n / FEW) do
    local x1 = box.x + s.x[math.floor(i)] / math.max(1, s.x[s.n]) * wide
    local y1 = box.y + 4 * u + (box.h - 8 * u) * (1 - (s.y[math.floor(i)] - least) / math.max(1e-90, most - least))
    if x0 then view:line(x0, y0, x1, y1, view.theme.accent, 1.5 * u) end
    x0, y0 = x1, y1
  end
  view:text(word, box.x + box.w, box.y + box.h / 2 + 4 * u, 11.5, view.theme.text, "right")
  view:tip(box, ("%s of the training so far, %d lines"):format(name, s.n))
end

---options.of: names of metrics, of which the first that the run has is drawn; title; small
return function(view, box, now, options)
  local theme, u = view.theme, view.unit
  local series, name = now.run and mn.run.metrics(now.run) or {}, nil
  for _, wanted in ipairs(options.of) do name = name or series[wanted] and wanted end
  local s = series[name]
  local least, most = math.huge, -math.huge
  for i = 1, s and s.n or 0 do least, most = math.min(least, s.y[i]), math.max(most, s.y[i]) end
  if options.small then
    if s then return small(view, box, name, s, least, most) end
    return view:text("no score is logged yet", box.x, box.y + box.h / 2 + 4 * u, 11.5, theme.dim, "left", box.w)
  end
  local note = s and "last " .. mn.ui.canvas.number(s.y[s.n])
  local inner = view:card(box, options.title, note)
  if not s then return view:say(inner, now.run and "not logged yet" or "no run to show") end
  local margin = mn.ui.canvas.margin(least, most)
  local unit, word = mn.run.step_unit(s.x[s.n])
  local place = view:axes(inner, 0, math.max(s.x[s.n] / unit, 1e-3), least - margin, most + margin, word, options.title or mn.ui.words(name))
  local stride, many, mean, x0, y0, mx, my = math.max(1, s.n / MOST), s.n > MANY, nil, nil, nil, nil, nil
  local window = math.min(s.n, MOST) / 30
  for at = 1, s.n, stride do
    local i = math.floor(at)
    local ahead = math.floor(at / stride)
    mean = mean and mean + (s.y[i] - mean) / math.min(ahead, window) or s.y[i]
    local x1, y1 = place(s.x[i] / unit, s.y[i])
    local nx, ny = place(s.x[i] / unit, mean)
    if x0 then
      view:line(x0, y0, x1, y1, many and theme.line or theme.accent, (many and 1.5 or 2) * u)
      if many then view:line(mx, my, nx, ny, theme.accent, 2 * u) end
    end
    x0, y0, mx, my = x1, y1, nx, ny
  end
  if many then view:disc(mx, my, 4 * u, theme.text) else view:disc(x0, y0, 4 * u, theme.text) end
end
