-- visits.lua -- a histogram of positions over all episodes that were shown, and the path of this one.
local mn = require "mneme"
local canvas = mn.ui.canvas
local ffi = require "ffi"

local FINE = 40                                  -- bins a side where places are not few whole numbers

-- Least and greatest of some numbers, whether all are whole; finite ones only.
local function range(values, n)
  local lo, hi, whole = math.huge, -math.huge, true
  for i = 0, n - 1 do
    lo, hi = math.min(lo, values[i]), math.max(hi, values[i])
    whole = whole and values[i] % 1 == 0
  end
  return lo, hi, whole
end

-- Bins of both axes, equally wide: where the first begin, how wide they are, how many of each.
local function bins(p, n)
  local x0, x1, x_whole = range(p.x, n)
  local y0, y1, y_whole = range(p.y, n)
  local most = math.max(x1 - x0, y1 - y0)
  if x_whole and y_whole and most < 2 * FINE then return x0 - 0.5, y0 - 0.5, 1, x1 - x0 + 1, y1 - y0 + 1 end
  local wide = math.max(most / FINE, 1e-6) * 1.0001
  return x0, y0, wide, math.floor((x1 - x0) / wide) + 1, math.floor((y1 - y0) / wide) + 1
end

return function(view, box, now)
  local theme, u, p, n = view.theme, view.unit, now.places, now.been
  local episodes = now.ended_before + (now.outcome and 0 or 1)
  local seen = ("%d steps of %d episode%s"):format(n, episodes, episodes == 1 and "" or "s")
  local inner = view:card(box, "visits", n > 0 and { seen .. ", log scale", seen, "log scale" } or nil, canvas.SEQUENTIAL)
  if n == 0 then return view:say(inner, "this environment reports no positions") end
  local x0, y0, wide, cols, rows = bins(p, n)
  local counts, most = ffi.new("float[?]", rows * cols), 0
  for i = 0, n - 1 do
    local at = math.floor((p.y[i] - y0) / wide) * cols + math.floor((p.x[i] - x0) / wide)
    counts[at] = counts[at] + 1
    most = math.max(most, counts[at])
  end
  local equal = true
  for i = 0, rows * cols - 1 do
    equal = equal and counts[i] == most
    counts[i] = math.log(1 + counts[i])
  end
  local plot = { x = inner.x, y = inner.y, w = inner.w, h = inner.h - 18 * u }
  local side = math.min(plot.w / cols, plot.h / rows)          -- cells are square; of a single row as tall as can be seen
  local high = rows > 1 and side * rows or math.min(plot.h, math.max(side, 24 * u))
  plot.x, plot.y = plot.x + (plot.w - side * cols) / 2, plot.y + (plot.h - high) / 2
  plot.w, plot.h = side * cols, high
  view:heat(plot, rows, cols, counts, 0, math.log(1 + most) * (equal and 2 or 1), canvas.SEQUENTIAL)        -- equal counts are no maximum
  if side > 8 * u then
    for c = 1, cols - 1 do view:line(plot.x + c * side, plot.y, plot.x + c * side, plot.y + high, theme.card, u) end
    for r = 1, rows - 1 do view:line(plot.x, plot.y + r * side, plot.x + plot.w, plot.y + r * side, theme.card, u) end
  end
  local x, y
  for _, line in ipairs { { 0x0F131AFF, 4 }, { 0xFFFFFFFF, 1.5 } } do          -- white, with a dark rim
    x, y = nil, nil
    for _, entry in ipairs(now.history) do
      if entry.x then
        local bx = plot.x + (entry.x - x0) / (wide * cols) * plot.w
        local by = plot.y + ((entry.y or 0) - y0) / (wide * rows) * plot.h
        if x then view:line(x, y, bx, by, line[1], line[2] * u) end
        x, y = bx, by
      end
    end
  end
  if x then view:disc(x, y, 4 * u, 0xFFFFFFFF) end
  local function edge(value) return ("%.4g"):format(value):gsub("-", "−") end
  local half = wide == 1 and 0.5 or 0
  local across = ("x %s … %s"):format(edge(x0 + half), edge(x0 + wide * cols - half))
  local down = rows > 1 and (", y %s … %s down"):format(edge(y0 + half), edge(y0 + wide * rows - half)) or ""
  local whole = view:text_width(across .. down, 11) <= inner.w
  view:text(whole and across .. down or across, inner.x, inner.y + inner.h - 2 * u, 11, theme.dim, "left", inner.w)
end
