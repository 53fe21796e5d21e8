-- cells.lua -- an observation that is a grid of codes, drawn as cells.
local mn = require "mneme"
local canvas = mn.ui.canvas

---options: view = cells per side; palette = function(code): colour?, sign?; agent = { column, row } of its cell; turned = true where
---up is the heading; frame = colour of the border; note
return function(view, box, now, options)
  local theme, u, seen = view.theme, view.unit, now.observation
  local inner = view:card(box, "observation", options.note)
  local n = options.view
  if not (seen and n) then return view:say(inner, "the observation is not a grid of cells") end
  local side = math.min(inner.w, inner.h) / n
  local left, top = inner.x + (inner.w - side * n) / 2, inner.y + (inner.h - side * n) / 2
  view:rect(left, top, side * n, side * n, options.frame or theme.ground)
  local edge = options.frame and math.max(2 * u, side * 0.1) or 0
  side = side - 2 * edge / n
  left, top = left + edge, top + edge
  view:rect(left, top, side * n, side * n, 0x0B0E13FF)
  for k = 0, n * n - 1 do
    local x, y = left + k % n * side, top + math.floor(k / n) * side
    local colour, sign = options.palette(seen.values[k])
    if colour then view:rect(x, y, side - 1, side - 1, colour) end
    if sign then view:text(sign, x + side / 2, y + side * 0.68, side * 0.5 / u, canvas.ink(colour), "center") end
  end
  local x, y = left + options.agent[1] * side, top + options.agent[2] * side
  view:disc(x + side / 2, y + side / 2, side * 0.34, 0x0F131AFF)
  if not options.turned then return view:disc(x + side / 2, y + side / 2, side * 0.27, 0xF5F7FAFF) end
  view:triangle(x + side * 0.28, y + side * 0.3, side * 0.44, side * 0.4, -math.pi / 2, 0xF5F7FAFF)
end
