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

-- Bins of one axis: where the first begins, how wide they are, how many.
local function bins(values, n)
  local lo, hi, whole = range(values, n)
  if whole and hi - lo < 2 * FINE then return lo - 0.5, 1, hi - lo + 1 end
  return lo, math.max((hi - lo) / FINE, 1e-6) * 1.0001, FINE
end

return function(view, box, now)
  local theme, u, p, n = view.theme, view.unit, now.places, now.been
  local episodes = now.ended_before + (now.outcome and 0 or 1)
  local seen = ("%d steps of %d episode%s"):format(n, episodes, episodes == 1 and "" or "s")
  local inner = view:card(box, "visits", n > 0 and { seen .. ", log scale", seen, "log scale" } or nil, canvas.SEQUENTIAL)
  if n == 0 then
    return view:text("this environment reports no positions", inner.x, inner.y + 16 * u, 12, theme.dim, "left", inner.w)
  end
  local x0, dx, cols = bins(p.x, n)
  local y0, dy, rows = bins(p.y, n)
  local counts, most = ffi.new("float[?]", rows * cols), 0
  for i = 0, n - 1 do
    local at = math.floor((p.y[i] - y0) / dy) * cols + math.floor((p.x[i] - x0) / dx)
    counts[at] = counts[at] + 1
    most = math.max(most, counts[at])
  end
  for i = 0, rows * cols - 1 do counts[i] = math.log(1 + counts[i]) end
  local plot = { x = inner.x, y = inner.y, w = inner.w, h = inner.h - 18 * u }
  if rows > 1 and dx == dy then                  -- cells are square
    local side = math.min(plot.w / cols, plot.h / rows)
    plot.x, plot.y = plot.x + (plot.w - side * cols) / 2, plot.y + (plot.h - side * rows) / 2
    plot.w, plot.h = side * cols, side * rows
  end
  view:heat(plot, rows, cols, counts, 0, math.log(1 + most), canvas.SEQUENTIAL)
  local x, y
  for _, line in ipairs { { 0x0F131AFF, 4 }, { 0xFFFFFFFF, 1.5 } } do          -- white, with a dark rim
    x, y = nil, nil
    for _, entry in ipairs(now.history) do
      if entry.x then
        local bx = plot.x + (entry.x - x0) / (dx * cols) * plot.w
        local by = plot.y + ((entry.y or 0) - y0) / (dy * rows) * plot.h
        if x then view:line(x, y, bx, by, line[1], line[2] * u) end
        x, y = bx, by
      end
    end
  end
  if x then view:disc(x, y, 4 * u, 0xFFFFFFFF) end
  local function edge(value) return ("%.4g"):format(value):gsub("-", "−") end
  local half = dx == 1 and 0.5 or 0
  view:text("x " .. edge(x0 + half), inner.x, inner.y + inner.h - 2 * u, 11, theme.dim)
  local ends = ("%s%s"):format(edge(x0 + dx * cols - half), rows > 1
    and (", y %s … %s down"):format(edge(y0 + half), edge(y0 + dy * rows - half)) or "")
  view:text("x " .. ends, inner.x + inner.w, inner.y + inner.h - 2 * u, 11, theme.dim, "right", inner.w * 0.7)
end
