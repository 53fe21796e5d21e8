-- horizon.lua -- the half-life of each head in steps, if its gates keep their recent averages: of all its channels, and of the
-- slowest ones, which set the colour (bright: long).  For softmax, how many steps back it can attend.
local mn = require "mneme"
local implicit_attention = mn.inspect.implicit_attention
local canvas, selection = mn.ui.canvas, mn.ui.selection
local ffi = require "ffi"

local FAR = math.log(1000)                      -- steps where the colours end

local function number(steps)
  if steps == math.huge then return "∞" end
  return steps < 9.95 and ("%.1f"):format(steps) or steps < 9999.5 and ("%.0f"):format(steps)
    or ("%.0fk"):format(steps / 1000)
end

return function(view, box, now)
  local theme, u = view.theme, view.unit
  local layers, heads = implicit_attention.size(now)
  local known = layers > 0 and implicit_attention.horizon(now, 0, 0)
  local title = "half-life of the memory"
  if not known then
    local inner = view:card(box, title)
    return view:paragraph(implicit_attention.no_horizon(now), inner.x, inner.y + 16 * u, 12, theme.dim, inner.w)
  end
  local inner = view:card(box, title, implicit_attention.reaches(now) and "steps back that can be attended to"
    or { "steps until half is left … in the slowest channel", "steps, all … slowest channel", "steps" })
  local wide = view:text_width("layer 00", 11) + 6 * u
  local top = inner.y + 16 * u
  local w, h = (inner.w - wide) / heads, (inner.y + inner.h - top) / layers
  local colour = ffi.new "float[1]"
  local size = math.max(1, math.min(13, 0.5 * h / u, 0.16 * w / u))
  for layer = 0, layers - 1 do
    local y = top + layer * h
    view:text("layer " .. layer, inner.x, y + h / 2 + 4 * u, math.min(11, 0.8 * h / u), theme.dim)
    selection.spot(view, { x = inner.x, y = y, w = wide, h = h }, now, { layer = layer })
    for head = 0, heads - 1 do
      local x, steps, slowest = inner.x + wide + head * w, implicit_attention.horizon(now, layer, head)
      steps, slowest = steps or 0, slowest or 0
      local text = steps == slowest and number(steps) or number(steps) .. " … " .. number(slowest)
      if layer == 0 then
        view:text("head " .. head, x + w / 2, inner.y + 9 * u, 11, theme.dim, "center", w)
        selection.spot(view, { x = x, y = inner.y, w = w, h = 16 * u }, now, { head = head })
      end
      colour[0] = math.log(math.min(1000, math.max(1, slowest))) / FAR
      local place = { x = x, y = y, w = w - 2 * u, h = h - 2 * u }
      view:heat(place, 1, 1, colour, 0, 1, canvas.SEQUENTIAL)
      local ink = colour[0] > 0.6 and 0x0F131AFF or 0xFFFFFFFF
      view:text(text, x + w / 2 - u, y + h / 2 + 0.36 * size * u - u, size, ink, "center", w - 4 * u)
      selection.spot(view, place, now, { layer = layer, head = head }, true)
    end
  end
end
