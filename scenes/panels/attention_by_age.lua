-- attention_by_age.lua -- what is read of past steps by how long ago they were, in spans that grow by a fifth: the sums over the steps of each.
local mn = require "mneme"
local canvas = mn.ui.canvas
local ffi = require "ffi"

-- The steps that are as long ago as one of a few spans, which grow: { from, to } steps ago, the longest ago first.
local function spans_of(steps)
  local list, from = {}, 0
  while from < steps do
    local to = math.max(from, math.floor((from + 1) * 2 ^ 0.25) - 1)
    table.insert(list, 1, { from = from, to = math.min(to, steps - 1) })
    from = to + 1
  end
  return list
end

---options: all = shares of each head, by step from 0; scale = a factor for each, or nil; names = of groups of rows; name_of = function(row): string
return function(view, inner, now, options)
  local u, theme, n, wide = view.unit, view.theme, #now.history, 0
  local all, scale, names, name_of = options.all, options.scale, options.names, options.name_of
  local spans, rows, most = spans_of(n), #all, 0.05
  local values = ffi.new("float[?]", rows * #spans)
  for r = 1, rows do
    for c, span in ipairs(spans) do
      local sum = 0
      for back = span.from, span.to do sum = sum + all[r][n - 1 - back] * (scale and scale[r] or 1) end
      values[(r - 1) * #spans + c - 1] = math.sqrt(sum)
      most = math.max(most, sum)
    end
  end
  for _, name in ipairs(names) do wide = math.max(wide, view:text_width(name, 11)) end
  local plot = { x = inner.x + wide + 10 * u, y = inner.y, w = inner.w - wide - 10 * u, h = inner.h - 20 * u }
  view:heat(plot, rows, #spans, values, 0, math.sqrt(most), canvas.SEQUENTIAL, false)
  view:tip(plot, { rows = rows, cols = #spans, values = values, lo = 0, hi = math.sqrt(most), root = true, words = function(r, c)
    local span = spans[c + 1]
    local ago = span.from == span.to and tostring(span.from) or ("%d to %d"):format(span.from, span.to)
    return ("%s, %s steps ago: "):format(name_of(r + 1), ago)
  end })
  for i, name in ipairs(names) do view:text(name, inner.x, plot.y + plot.h * (i - 0.5) / #names + 4 * u, 11, theme.dim, "left", wide + 1) end
  local below, free = plot.y + plot.h + 15 * u, inner.x + view:text_width("steps ago", 11) + 8 * u
  for c, span in ipairs(spans) do
    local x, half = plot.x + (c - 0.5) * plot.w / #spans, view:text_width(tostring(span.from), 11) / 2
    if x - half > free and x < plot.x + plot.w - 40 * u then
      view:text(tostring(span.from), x, below, 11, theme.dim, "center")
      free = x + half + 16 * u
    end
  end
  view:text("now", plot.x + plot.w, below, 11, theme.dim, "right")
  view:text("steps ago", inner.x, below, 11, theme.dim)
end
