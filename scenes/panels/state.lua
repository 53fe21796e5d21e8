-- state.lua -- the state of one head, large: each kind as a heat map under a line with its axes, range and norm.
local mn = require "mneme"
local heads, state_arrays = mn.inspect.heads, mn.inspect.state_arrays
local canvas, selection = mn.ui.canvas, mn.ui.selection

local CAPTION = 18                               -- design pixels

local function caption_of(kind, array, n_heads, values, n, rows)
  local least, _, greatest = state_arrays.summary(values, n)
  local squares = 0
  for i = 0, n - 1 do squares = squares + values[i] * values[i] end
  local axes = heads.axes(array, n_heads) .. (rows and (" in %d rows"):format(rows) or "")
  local text = ("%s   %s   %.2g … %.2g   norm %.3g"):format(kind, axes, least, greatest, math.sqrt(squares))
  return (text:gsub("%-(%d)", "−%1"))
end

---options: as for memory; row = { layer, head }
return function(view, box, now, options)
  local theme, u, row = view.theme, view.unit, options.row
  local _, kinds, by_layer = state_arrays.grid(now[options.of or "memory"], options.kinds)
  local map = options.unit and canvas.SEQUENTIAL or canvas.DIVERGING
  local inner = view:card(box, (options.title or "memory") .. " of " .. selection.name(row), options.unit, map)
  local shown, share = {}, heads.shares(kinds, by_layer[row.layer])
  for _, kind in ipairs(kinds) do
    if by_layer[row.layer][kind] then shown[#shown + 1] = kind end
  end
  local y, caption = inner.y, math.min(CAPTION * u, inner.h / #shown / 2)
  for _, kind in ipairs(shown) do
    local array = by_layer[row.layer][kind]
    local rows, cols, values = state_arrays.slice(array, state_arrays.count(array, now.n_heads) > 1 and row.head or 0, now.n_heads)
    local high = (inner.h - #shown * caption) * share[kind]
    local place = { x = inner.x, y = y + caption, w = inner.w, h = high - 2 * u }
    local most = options.unit and 1 or math.max(now.range[kind], 1e-6)
    local lines, long = heads.fold(rows, cols, place.w / place.h)
    local text = caption_of(kind, array, now.n_heads, values, rows * cols, lines ~= rows and lines or nil)
    view:text(text, inner.x, y + 0.7 * caption, 11 * caption / (CAPTION * u), theme.text, "left", inner.w)
    view:heat(place, lines, long, values, options.unit and 0 or -most, most, map, function(r, c)
      return heads.element(row.layer, row.head, kind, rows, cols, r * long + c)
    end)
    view:tip({ x = inner.x, y = y, w = inner.w, h = caption }, heads.kind(kind))
    y = y + caption + high
  end
  selection.spot(view, inner, now, row)
end
