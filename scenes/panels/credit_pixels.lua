-- credit_pixels.lua -- which pixels of an observation the value of the displayed step depends on: the picture, grey, and warm where a small change
-- of a pixel would change the value most.  The picture is of the selected step, else of the earlier step that counts most.
local mn = require "mneme"
local canvas = mn.ui.canvas
local ffi = require "ffi"

-- The step whose picture is shown.
local function step_of(now, row)
  local wish, best = now.selection and now.selection.step, row.at
  if wish and wish >= row.from and wish <= row.at then return wish end
  for s = row.from, row.at - 1 do
    if best == row.at or row.value[s + 1] > row.value[best + 1] then best = s end
  end
  return best
end

-- The picture of a step with the sizes of its gradient over it.
local function mixed(seen, sizes, n)
  local rgb, most, channels = ffi.new("uint8_t[?]", 3 * n), 0, seen.shape[3]
  local warm = math.floor(canvas.theme.warm / 256)
  for i = 0, n - 1 do most = math.max(most, sizes[i]) end
  for i = 0, n - 1 do
    local grey, a = 0, most > 0 and sizes[i] / most or 0
    for c = 0, channels - 1 do grey = grey + seen.values[i * channels + c] / channels end
    for c = 0, 2 do
      local ink = math.floor(warm / 256 ^ (2 - c)) % 256
      rgb[3 * i + c] = (1 - a) * 0.6 * grey + a * ink
    end
  end
  return rgb, most
end

---options: row, credit of mn.measure.credit_of_frame.row; step; nil: as above
return function(view, box, now, options)
  local theme, u, row = view.theme, view.unit, options.row
  local s = options.step or step_of(now, row)
  local sizes, rows, cols = options.credit:pixels(row, "value", s)
  local frame = s == now.step and now or now.frame_of and now.frame_of(s)
  local seen = frame and frame.observation
  if not sizes or not seen then
    return view:paragraph(sizes and "that step's picture is not kept" or "no pixels: this step is not known yet", box.x, box.y + 14 * u, 11, theme.dim, box.w)
  end
  local room = 16 * u
  local side = math.min(box.w / cols, (box.h - room) / rows)
  local place = { x = box.x + (box.w - side * cols) / 2, y = box.y, w = side * cols, h = side * rows }
  local rgb, most = mixed(seen, sizes, rows * cols)
  view:image(place, rows, cols, rgb)
  view:tip(place, { rows = rows, cols = cols, values = sizes, lo = 0, hi = most, steady = true, words = function(r, c)
    return ("step %d, pixel %d, %d: gradient of the value "):format(s, r, c)
  end })
  local text = ("step %d; warm: a pixel's gradient, 0 … %s"):format(s, canvas.number(most))
  view:text(text, place.x + place.w / 2, place.y + place.h + 13 * u, 11, theme.dim, "center", box.w)
end
