-- bench_figure.lua -- curves of a step's time against what was seen, both axes logarithmic, as a PNG: drawn on the
-- canvas that scenes are drawn on.
local engine = require "mneme.engine"
local errors = require "mneme.errors"
local scene = require "mneme.scene"

local figure = {}

-- Colours and, from the seventh curve on, dashes tell curves apart; each is named where it ends.
local colors = { 0x56B4E9FF, 0xF0A63AFF, 0x2CC295FF, 0xF07A4BFF, 0xD78FBAFF, 0xE8D24AFF }

local function log(x) return math.log(x) / math.log(10) end

-- 0.0002 as "0.2 ms".
local function milliseconds(seconds) return ("%g ms"):format(1e3 * seconds) end

-- Heights of labels, spread so that none covers another.
local function spread(list, room, top, bottom)
  table.sort(list, function(a, b) return a.y < b.y end)
  for i, label in ipairs(list) do label.at = math.max(label.y, i > 1 and list[i - 1].at + room or top) end
  for i = #list, 1, -1 do
    list[i].at = math.min(list[i].at, i < #list and list[i + 1].at - room or bottom)
  end
end

local function line(view, x0, y0, x1, y1, color, dashed)
  if not dashed then return view:line(x0, y0, x1, y1, color, 2 * view.unit) end
  local parts = math.max(1, math.floor(math.sqrt((x1 - x0) ^ 2 + (y1 - y0) ^ 2) / (5 * view.unit)))
  for i = 0, parts - 1, 2 do
    local a, b = i / parts, math.min(1, (i + 1) / parts)
    view:line(x0 + a * (x1 - x0), y0 + a * (y1 - y0), x0 + b * (x1 - x0), y0 + b * (y1 - y0), color, 2 * view.unit)
  end
end

---Draw curves on a page.
---@param view table a canvas
---@param curves table[] { name, contexts = numbers, seconds = numbers }
function figure.draw(view, curves)
  local theme, u = view.theme, view.unit
  local box = view:card(view:inset(view.box, 16), "One step of one copy against what it has seen", "published sizes, one thread, from Lua")
  local low, high, first, last = math.huge, 0, math.huge, 0
  for _, curve in ipairs(curves) do
    for i, s in ipairs(curve.seconds) do
      low, high = math.min(low, s), math.max(high, s)
      first, last = math.min(first, curve.contexts[i]), math.max(last, curve.contexts[i])
    end
  end
  low, high = log(low) - 0.1, log(high) + 0.1
  local left, right, top, bottom = box.x + 62 * u, box.x + box.w - 190 * u, box.y + 14 * u, box.y + box.h - 26 * u
  local function place(n, s)
    return left + log(n / first) / log(last / first) * (right - left), bottom - (log(s) - low) / (high - low) * (bottom - top)
  end
  for power = math.floor(low), math.ceil(high) do
    for _, digit in ipairs { 1, 2, 5 } do
      local s = digit * 10 ^ power
      if log(s) >= low and log(s) <= high then
        local _, y = place(first, s)
        view:line(left, y, right, y, digit == 1 and theme.line or theme.grid)
        view:text(milliseconds(s), left - 8 * u, y + 4 * u, 12, theme.dim, "right")
      end
    end
  end
  for _, n in ipairs(curves[1].contexts) do
    local x = place(n, 1)
    view:line(x, top, x, bottom, theme.grid)
    view:text(("%d"):format(n), x, bottom + 18 * u, 12, theme.dim, "center")
  end
  view:text("steps seen", right + 20 * u, bottom + 18 * u, 12, theme.dim)
  local labels = {}
  for k, curve in ipairs(curves) do
    local color, dashed, x, y = colors[(k - 1) % #colors + 1], k > #colors and math.floor((k - 1) / #colors) % 2 == 1, nil, nil
    for i, s in ipairs(curve.seconds) do
      local to_x, to_y = place(curve.contexts[i], s)
      if x then line(view, x, y, to_x, to_y, color, dashed) end
      view:disc(to_x, to_y, 2.5 * u, color)
      x, y = to_x, to_y
    end
    labels[#labels + 1] = { x = x, y = y, name = ("%s  %.2f ms"):format(curve.name, 1e3 * curve.seconds[#curve.seconds]), color = color }
  end
  spread(labels, 15 * u, top, bottom)
  for _, label in ipairs(labels) do
    view:line(label.x + 4 * u, label.y, right + 16 * u, label.at, label.color)
    view:text(label.name, right + 20 * u, label.at + 4 * u, 12, theme.text, "left", 165 * u)
  end
end

---Write the figure.
---@param path string ends in .png
---@param curves table[]
function figure.write(path, curves)
  if not path:lower():find "%.png$" then
    errors.usage("figure=" .. path .. ": expected a name ending in .png")
  end
  local painter, width, height = scene.painter(), 1280, 800
  local pixels = painter:paint({ draw = function(view) figure.draw(view, curves) end }, {}, width, height)
  engine.check(engine.C.mn_image_write(engine.ctx, path, pixels, width, height))
end

return figure
