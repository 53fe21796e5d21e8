-- svg_writer.lua -- writes SVG elements, with coordinates to a tenth of a pixel.
local text = require "mneme.insight.figures.text"
local figure_style = require "mneme.insight.figures.figure_style"

---@class Paper a drawing in SVG
---@field width number
---@field height number
---@field id string
---@field out string[] the elements so far
local Paper = {}
Paper.__index = Paper

local function tenth(v)
  local s = ("%.1f"):format(v):gsub("%.0$", "")
  return s == "-0" and "0" or s
end

---A drawing to add shapes to.
---@param width number of the page; its height is what is drawn
---@param id string that no other drawing of a page has
---@return Paper
local function new(width, id) return setmetatable({ width = width, height = 0, id = id, out = {} }, Paper) end

---Add an element.
---@param s string a format, if more follows
---@param ... any
function Paper:add(s, ...)
  self.out[#self.out + 1] = select("#", ...) > 0 and s:format(...) or s
end

---A text.
---@param s string
---@param x number
---@param y number of the baseline
---@param o table? { size, anchor = "start" | "middle" | "end", class, fill = a colour, weight }
function Paper:text(s, x, y, o)
  o = o or {}
  self:add('<text x="%s" y="%s" font-size="%d"%s%s%s%s>%s</text>', tenth(x), tenth(y), o.size or figure_style.PLAIN,
    o.anchor and o.anchor ~= "start" and (' text-anchor="%s"'):format(o.anchor) or "", o.class and (' class="%s"'):format(o.class) or "",
    o.fill and (' style="fill:%s"'):format(o.fill) or "", o.weight and (' font-weight="%s"'):format(o.weight) or "", text.escape(s))
end

---Lines of text, one below the other.
---@param list string[]
---@param x number
---@param y number of the first baseline
---@param high number from one to the next
---@param o table? as of text
---@return number y of the baseline that would follow
function Paper:lines(list, x, y, high, o)
  for i, line in ipairs(list) do self:text(line, x, y + (i - 1) * high, o) end
  return y + #list * high
end

---A straight line.
---@param x0 number
---@param y0 number
---@param x1 number
---@param y1 number
---@param class string of the style
function Paper:line(x0, y0, x1, y1, class)
  self:add('<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>', tenth(x0), tenth(y0), tenth(x1), tenth(y1), class)
end

---A rectangle.
---@param x number left
---@param y number top
---@param w number
---@param h number
---@param class string?
---@param o table? { fill = a colour, title = shown where the mouse rests }
function Paper:rect(x, y, w, h, class, o)
  o = o or {}
  self:add('<rect x="%s" y="%s" width="%s" height="%s"%s%s%s', tenth(x), tenth(y), tenth(math.max(0, w)), tenth(math.max(0, h)),
    class and (' class="%s"'):format(class) or "", o.fill and (' fill="%s"'):format(o.fill) or "",
    o.title and ("><title>%s</title></rect>"):format(text.escape(o.title)) or "/>")
end

-- Points as the d of a path, each relative to the one before; what lies on the way between its neighbours is left out.
local function trace(points)
  local parts, n = {}, #points
  local last_x, last_y                               -- what has been written, in tenths, so that errors do not add up
  for i = 1, n do
    local x, y = math.floor(points[i][1] * 10 + 0.5), math.floor(points[i][2] * 10 + 0.5)
    local skipped = false
    if last_x and i < n then
      local nx, ny = math.floor(points[i + 1][1] * 10 + 0.5), math.floor(points[i + 1][2] * 10 + 0.5)
      local ax, ay, bx, by = x - last_x, y - last_y, nx - last_x, ny - last_y
      skipped = math.abs(ax * by - ay * bx) <= 2 * math.sqrt(bx * bx + by * by) and ax * bx + ay * by >= 0
        and ax * ax + ay * ay <= bx * bx + by * by
    end
    if not last_x then parts[1] = ("M%s %s"):format(tenth(x / 10), tenth(y / 10))
    elseif not skipped then parts[#parts + 1] = ("l%s %s"):format(tenth((x - last_x) / 10), tenth((y - last_y) / 10)) end
    if not skipped then last_x, last_y = x, y end
  end
  return table.concat(parts)
end

---A line through points.
---@param points { [1]: number, [2]: number }[]
---@param class string
---@param dash string? lengths of strokes and gaps
---@param closed boolean? back to the first point
function Paper:path(points, class, dash, closed)
  self:add('<path d="%s%s" class="%s"%s/>', trace(points), closed and "z" or "", class,
    dash and (' stroke-dasharray="%s"'):format(dash) or "")
end

local shapes = {
  disc = "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", square = "m-3 -3h6v6h-6z", triangle = "m0 -4l3.8 6.6h-7.6z",
  diamond = "m0 -4l4 4l-4 4l-4 -4z", cross = "m-3.5 -1h2.5v-2.5h2v2.5h2.5v2h-2.5v2.5h-2v-2.5h-2.5z",
}

---A mark at a point.
---@param shape "disc"|"square"|"triangle"|"diamond"|"cross"
---@param x number
---@param y number
---@param class string
function Paper:mark(shape, x, y, class) self:add('<path d="M%s %s%s" class="%s"/>', tenth(x), tenth(y), shapes[shape], class) end

---What is added until close stays within a rectangle.
---@param x number
---@param y number
---@param w number
---@param h number
function Paper:clip(x, y, w, h)
  self:add('<clipPath id="%s-clip"><rect x="%s" y="%s" width="%s" height="%s"/></clipPath><g clip-path="url(#%s-clip)">', self.id, tenth(x),
    tenth(y), tenth(w), tenth(h), self.id)
end

---What is added until close belongs together, under a name that is shown where the mouse rests.
---@param title string
---@param class string? a page's style knows it by
function Paper:group(title, class)
  self:add("<g%s><title>%s</title>", class and (' class="%s"'):format(class) or "", text.escape(title))
end

---End what clip or group began.
function Paper:close() self:add "</g>" end

return { new = new }
