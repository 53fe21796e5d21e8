-- observation.lua -- the observation that the agent receives: one cell per value, or a picture.
local mn = require "mneme"
local heads, state_arrays = mn.inspect.heads, mn.inspect.state_arrays
local canvas = mn.ui.canvas
local ffi = require "ffi"

return function(view, box, now)
  local theme, u, seen = view.theme, view.unit, now.observation
  if not seen then
    local inner = view:card(box, "observation")
    return view:text("no observation", inner.x, inner.y + 16 * u, 12, theme.dim)
  end
  local n, shape = state_arrays.size(seen.shape), seen.shape
  local least, _, most = state_arrays.summary(seen.values, n)
  local note = ("%s value%s, %.3g … %.3g"):format(table.concat(shape, "×"), n == 1 and "" or "s", least, most)
  local inner = view:card(box, "observation", note)
  least, most = math.min(0, least), math.max(1, most)
  if #shape < 2 then
    local rows, cols = heads.fold(1, n, inner.w / inner.h)
    return view:heat(inner, rows, cols, seen.values, least, most, canvas.SEQUENTIAL)
  end
  -- a picture: rows, columns, channels; three channels are colours, of others the mean is drawn; pixels are square
  local rows, cols = shape[1], shape[2]
  local channels, side = n / rows / cols, math.min(inner.w / cols, inner.h / rows)
  local place = { x = inner.x + (inner.w - side * cols) / 2, y = inner.y, w = side * cols, h = side * rows }
  if channels == 3 and #shape == 3 then
    local rgb, scale = ffi.new("uint8_t[?]", n), most > 1 and 1 or 255
    for i = 0, n - 1 do rgb[i] = math.max(0, math.min(255, seen.values[i] * scale)) end
    return view:image(place, rows, cols, rgb)
  end
  local grey = ffi.new("float[?]", rows * cols)
  for i = 0, n - 1 do
    local cell = math.floor(i / channels)
    grey[cell] = grey[cell] + seen.values[i] / channels
  end
  view:heat(place, rows, cols, grey, least, most, canvas.SEQUENTIAL)
end
