-- canvas.lua -- the canvas that scenes draw on: shapes in pixels of the page, fitted text, boxes that divide the page, and
-- spots, the clickable parts.  scenes/view paints a canvas into pixels; this file does not depend on a window.
local ffi = require "ffi"
local bit = require "bit"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local canvas_labels = require "mneme.base.canvas_labels"
local format = require "mneme.base.format"
local themes = require "mneme.base.themes"
local C, SEQUENTIAL, DIVERGING = engine.C, 0, 1
local RECT, FRAME, DISC, LINE, TRIANGLE, TEXT, HEAT = 0, 1, 2, 3, 4, 5, 6      -- engine/canvas.h

local theme = themes.dark
local canvas = { theme = theme, themes = themes, RECT = RECT, TRIANGLE = TRIANGLE, TEXT = TEXT, HEAT = HEAT, SEQUENTIAL = SEQUENTIAL,
  DIVERGING = DIVERGING, margin = canvas_labels.margin }

---@class Canvas what a scene draws on, as `view`
---@field box table { x, y, w, h } of the page, or of the part of it that is drawn
---@field unit number pixels of the page for one of the 1280x800 design
---@field edge number design pixels of a card's margin: 12, on a page smaller than 640x400 6
---@field theme table colours by name: page, card, line, grid, text, dim, accent, warm, good, bad, violet
local methods = {}
canvas.metatable = { __index = methods }

---A page to draw on.
---@param raster table what measures and paints text: see insight/view/scene.lua
---@param width integer in pixels
---@param height integer in pixels
---@param look table? { theme = "dark"|"light", scale = pixels of the screen for one of the design, 1 }
function canvas.new(raster, width, height, look)
  local view = setmetatable({ raster = raster, scale = look and look.scale or 1,
    theme = themes[look and look.theme or "dark"], spots = {}, tips = {} }, canvas.metatable)
  view.shapes = ffi.gc(engine.check(C.mn_canvas_new(engine.ctx)), C.mn_canvas_free)
  view:clear(width, height)
  return view
end

-- How large a pixel of the 1280x800 design is on a page of this size, and design pixels of the margin of its cards.
local function unit_of(self, width, height)
  local share = math.min(width / self.scale / 1280, height / self.scale / 800)
  return self.scale * math.max(self.scale > 1 and 0.65 or 0.8, math.min(share, 2)), share < 0.5 and 6 or 12
end

-- What has none would end the process.
local function shapes_of(self) return self.shapes or errors.raise "canvas: this is no canvas" end

---Clear the page, maybe with a new size.  A panel with much to compute stops at `deadline` (of engine.C.mn_clock(false), where set), sets `unfinished` (to
---the job, where it has a progress()), and continues when the page is drawn again.
---@param width integer in pixels
---@param height integer in pixels
function methods:clear(width, height)
  C.mn_canvas_clear(shapes_of(self))
  self.n_spots, self.n_tips, self.unfinished, self.about = 0, 0, false, nil
  self.panels, self.noting, self.full = {}, false, nil
  self.width, self.height = width, height
  canvas_labels.clear(self)
  self.unit, self.edge = unit_of(self, width, height)
  self.box = { x = 0, y = 0, w = width, h = height }
end

---Draw into a part of the page: `box`, `unit` and `edge` are those of the part meanwhile.
---@param box table { x, y, w, h }
---@param draw fun(view: Canvas)
function methods:within(box, draw)
  local outer, unit, edge = self.box, self.unit, self.edge
  self.box, self.unit, self.edge = box, unit_of(self, box.w, box.h)
  draw(self)
  self.box, self.unit, self.edge = outer, unit, edge
end

-- What the engine reads in C's memory; an array says how many bytes it has, a pointer does not.
local function need(what, value, bytes)
  if type(value) == "cdata" and value ~= nil and (ffi.sizeof(value) >= bytes or tostring(ffi.typeof(value)):find "%*") then return end
  errors.raise(("scene: %s is %s, expected memory of C of %s bytes or more"):format(what, tostring(value), tostring(bytes)))
end

local function add(self, kind, color, x, y, w, h, data)
  if C.mn_canvas_add(shapes_of(self), kind, color or self.theme.text, x, y, w, h) == 0 and data then C.mn_canvas_data(self.shapes, data) end
end

---A filled rectangle.
---@param x number left, in pixels of the page
---@param y number top
---@param w number
---@param h number
---@param color integer? 0xRRGGBBAA; nil: the theme's text colour
function methods:rect(x, y, w, h, color)
  add(self, RECT, color, x, y, w, h)
  if self.n_labels and w > 40 and h > 14 and (color or 255) % 256 == 255 then canvas_labels.cover(self, x, y, w, h) end
end

---A filled disc.
---@param x number centre
---@param y number centre
---@param radius number
---@param color integer?
function methods:disc(x, y, radius, color) add(self, DISC, color, x, y, radius, radius) end

---The outline of a rectangle.
---@param x number
---@param y number
---@param w number
---@param h number
---@param color integer?
---@param thick number? pixels; nil: view.unit
function methods:frame(x, y, w, h, color, thick) add(self, FRAME, color, x, y, w, h, thick or self.unit) end

---A straight line.
---@param x0 number
---@param y0 number
---@param x1 number
---@param y1 number
---@param color integer?
---@param thick number? pixels; nil: view.unit
function methods:line(x0, y0, x1, y1, color, thick) add(self, LINE, color, x0, y0, x1, y1, thick or self.unit) end

---A filled triangle in a box, pointing right.
---@param x number
---@param y number
---@param w number
---@param h number
---@param turn number radians, clockwise
---@param color integer?
function methods:triangle(x, y, w, h, turn, color) add(self, TRIANGLE, color, x, y, w, h, turn) end

---`color` with another opacity.
---@param color integer 0xRRGGBBAA
---@param opacity number 0..1
---@return integer color
function canvas.fade(color, opacity)
  return bit.bor(bit.band(color, 0xFFFFFF00), math.floor(opacity * 255 + 0.5)) % 2 ^ 32
end

---Dark or white letters, whichever is read better on a colour.
---@param color integer 0xRRGGBBAA
---@return integer color
function canvas.ink(color)
  local function part(shift) return math.floor(color / 2 ^ shift) % 256 end
  return 0.3 * part(24) + 0.59 * part(16) + 0.11 * part(8) > 130 and 0x0F131AFF or 0xFFFFFFFF
end

local function check_text(text)
  if type(text) ~= "string" then errors.raise(("scene: a text is a %s, expected a string"):format(type(text))) end
end

---The width of a text in pixels.
---@param text string
---@param size number of the letters, in design pixels
---@return number
function methods:text_width(text, size)
  check_text(text)
  return self.raster:text_width(text, canvas_labels.height(self, size) or size * self.unit)
end

---Write a text on one line; not where it cannot be read, lies over another one, or leaves its card.
---@param text string
---@param x number
---@param y number of the baseline
---@param size number of the letters, in design pixels
---@param color integer?
---@param align string? "left" (default), "center" or "right" of x
---@param room number? maximal width in pixels: a longer text ends in an ellipsis
function methods:text(text, x, y, size, color, align, room)
  check_text(text)
  local high = size * self.unit
  if self.raster then
    high = canvas_labels.height(self, size)
    if room then text = self:fit(text, size, room) end
    local wide = self:text_width(text, size)
    x = align == "right" and x - wide or align == "center" and x - wide / 2 or x
    if not high or text == "" or not canvas_labels.fits(self, x, y, wide, high) then return end
  end
  C.mn_canvas_text(shapes_of(self), color or self.theme.text, x, y, high, text)
end

---Write a text on several lines, broken between words.
---@param text string
---@param x number
---@param y number? of the first baseline; nil: only count the lines
---@param size number of the letters, in design pixels
---@param color integer?
---@param room number width of a line in pixels
---@param tall number? pixels: lines that do not fit are left out, and the last one says so
---@return integer lines
function methods:paragraph(text, x, y, size, color, room, tall)
  local lines, line, most = {}, "", y and math.floor((tall or math.huge) / (1.4 * size * self.unit)) or 0
  for word in text:gmatch "%S+" do
    local longer = line == "" and word or line .. " " .. word
    if line ~= "" and self:text_width(longer, size) > room then lines[#lines + 1], line = line, word else line = longer end
  end
  lines[#lines + 1] = line
  for n = 1, math.min(#lines, most) do
    self:text(n == most and lines[n + 1] and lines[n] .. " …" or lines[n], x, y + 1.4 * size * self.unit * (n - 1), size, color, "left", room)
  end
  return #lines
end

---The longest beginning of a text that fits, with an ellipsis; "" if not even that fits.
---@param text string
---@param size number of the letters, in design pixels
---@param room number in pixels
---@return string
function methods:fit(text, size, room)
  local most = 4 * math.floor(5 * room / (size * self.unit) + 16)        -- bytes: no letter is narrower than a fifth of its height
  if #text <= most and self:text_width(text, size) <= room then return text end
  text = text:sub(1, math.max(0, most)):gsub("[\192-\255][\128-\191]*$", "")
  while #text > 0 do
    text = text:gsub(".[\128-\191]*$", "")          -- one character, however many bytes; UTF-8 or not
    local short = text:gsub("%s+$", "") .. "…"
    if self:text_width(short, size) <= room then return short end
  end
  return ""
end

---Of several texts the first that fits, or the last one.
---@param texts string|string[]
---@param size number
---@param room number in pixels
---@return string
function methods:first(texts, size, room)
  if type(texts) ~= "table" then return texts end
  for i, text in ipairs(texts) do if i == #texts or self:text_width(text, size) <= room then return text end end
end

---A heat map.  NaN is drawn grey.
---@param box table { x, y, w, h }
---@param rows integer
---@param cols integer
---@param values ffi.cdata* float[rows * cols]
---@param lo number value of the first colour
---@param hi number value of the last colour
---@param map integer? mn.ui.canvas.SEQUENTIAL (default) or DIVERGING
---@param name (fun(row: integer, col: integer): string?)|false|nil the words for a cell, from 0, before its value when the pointer is on it;
---  nil: row and column; false: nothing is shown there
function methods:heat(box, rows, cols, values, lo, hi, map, name)
  if box.w < 1 or box.h < 1 then return end
  need("what a heat map shows", values, 4 * rows * cols)
  if lo - lo ~= 0 or hi - hi ~= 0 then lo, hi = 0, 1 end
  if name ~= false then
    self:tip(box, { rows = rows, cols = cols, values = values, lo = lo, hi = hi, steady = true, words = function(row, col)
      local words = name and name(row, col)
      if name and not words then return nil end
      return (words or rows * cols == 1 and "value" or rows == 1 and "value " .. col or ("row %d, column %d"):format(row, col)) .. ": "
    end })
  end
  engine.check(C.mn_canvas_heat(shapes_of(self), box.x, box.y, box.w, box.h, rows, cols, values, lo, hi,
    map or SEQUENTIAL))
end

---A picture, stretched over a box.
---@param box table { x, y, w, h }
---@param rows integer
---@param cols integer
---@param rgb ffi.cdata* uint8_t[rows * cols * 3]
function methods:image(box, rows, cols, rgb)
  if box.w < 1 or box.h < 1 then return end
  need("a picture", rgb, 3 * rows * cols)
  engine.check(C.mn_canvas_image(shapes_of(self), box.x, box.y, box.w, box.h, rows, cols, rgb))
end

local bounds = ffi.new "float[4]"

---Draw another canvas, fitted into a box.
---@param other ffi.cdata* such as now.canvas
---@param box table { x, y, w, h }
---@return function place (x, y) of it -> x, y on this page, and the scale
function methods:append(other, box)
  need("a drawing", other, 1)
  local from = C.mn_canvas_count(shapes_of(self))
  engine.check(C.mn_canvas_append(shapes_of(self), other, box.x, box.y, box.w, box.h, canvas_labels.least(self)))
  canvas_labels.appended(self, from)
  C.mn_canvas_bounds(other, bounds)
  local x0, y0 = bounds[0], bounds[1]
  local w, h = math.max(bounds[2] - x0, 1e-6), math.max(bounds[3] - y0, 1e-6)
  local scale = math.min(box.w / w, box.h / h)
  local left, top = box.x + (box.w - w * scale) / 2, box.y + (box.h - h * scale) / 2
  return function(x, y) return left + (x - x0) * scale, top + (y - y0) * scale, scale end
end

---The letters of a drawing that was appended at `place`, a function that append returned: see canvas_labels.lua.
---@param other Canvas
---@param place fun(x: number, y: number): number, number, number
---@return table[]
function methods:letters(other, place) return canvas_labels.letters(other, place) end          -- luacheck: no self

-- Adds a box with what it means to n others; those of the page before serve again.  Returns how many there are.
local function put(boxes, n, box, key, value)
  local one = boxes[n + 1] or {}
  one.x, one.y, one.w, one.h, one[key], boxes[n + 1] = box.x, box.y, box.w, box.h, value, one
  return n + 1
end

---Make a box clickable.
---@param box table { x, y, w, h }
---@param what table { key = " " }: as if that key were pressed; others as the viewer knows them
function methods:spot(box, what)
  if type(what) ~= "table" then errors.raise(("scene: a spot means a %s, expected a table"):format(type(what))) end
  self.n_spots = put(self.spots, self.n_spots, box, "what", what)
end

---Draw scenes whose panels can be shown alone: meanwhile panel() notes each.
---@param full integer? the number of the panel to show alone
---@param draw fun()
function methods:with_panels(full, draw)
  self.panels, self.noting, self.full = {}, true, full
  draw()
  self.noting = false
end

---Where a panel is drawn: in its box; nil: another one is shown alone.
---@param box table { x, y, w, h }
---@return table? box
function methods:panel(box)
  if not self.noting then return box end
  self.panels[#self.panels + 1] = box
  if not self.full then return box end
  return #self.panels == self.full and self:inset(self.box, 12) or nil
end

-- The last of n boxes that has a point in it, where f(box) gives something: that, and the box.
local function at_point(boxes, n, x, y, f)
  for i = n, 1, -1 do
    local box = boxes[i]
    local found = x >= box.x and x < box.x + box.w and y >= box.y and y < box.y + box.h and f(box, i)
    if found then return found, box end
  end
end

---The number of the panel at a point, in pixels of the page; nil: none is there.
---@param x number
---@param y number
---@return integer?
function methods:panel_at(x, y) return self.full or (at_point(self.panels, #self.panels, x, y, function(_, n) return n end)) end

---A number as a reader wants it: "−0.413", "1.2M".
---@param x number
---@param places integer? with its sign, and that many digits after the point where they show it: "+3.88"
---@return string
function canvas.number(x, places) return x ~= x and "NaN" or ((places and format.said("%+." .. places .. "f", x) or format.short(x)):gsub("%-", "−")) end

---What is shown where the pointer rests on a box: of several boxes there the one drawn last that has a text.
---@param box table { x, y, w, h }
---@param text string|table or that of each cell of a grid in the box: { rows, cols, words = function(row, col), from 0: its text, nil: none; one that
---  ends with a blank is followed by the cell's value; values = float[rows * used], used = columns that have one, all, lo and hi: ends of their range,
---  root = true: they are roots; steady = true: cells have the same words as long as the first one has }
function methods:tip(box, text)
  self.n_tips = put(self.tips, self.n_tips, box, "text", text)
end

---The text of the tip at a point.
---@param x number
---@param y number
---@return string?
function methods:tip_at(x, y)
  return (at_point(self.tips, self.n_tips, x, y, function(tip)
    local grid = tip.text
    if type(grid) ~= "table" then return grid end
    return canvas_labels.of_cell(grid, math.floor((y - tip.y) / tip.h * grid.rows), math.floor((x - tip.x) / tip.w * grid.cols), canvas.number)
  end))
end

---The spot at a point, of several the last one drawn.
---@param x number
---@param y number
---@return table? what
---@return table? spot its box x, y, w, h, until the page is cleared
function methods:spot_at(x, y) return at_point(self.spots, self.n_spots, x, y, function(spot) return spot.what end) end

local function check_box(what, box)
  for _, key in ipairs { "x", "y", "w", "h" } do errors.need(what .. ": the box", box, key, "{ x = ..., y = ..., w = ..., h = ... }") end
end

---Divide a box.
---@param box table { x, y, w, h }
---@param along string "rows" or "columns"
---@param sizes (number|string)[] design pixels, or "2*": two shares of the remaining space
---@param gap number? design pixels between two; nil: view.edge
---@return table ... one box for each size
function methods:split(box, along, sizes, gap)
  check_box("split", box)
  if along ~= "rows" and along ~= "columns" then errors.raise(("split: '%s', expected rows or columns"):format(tostring(along))) end
  errors.need("split: sizes", sizes, nil, '{ 24, "1*", "2*" }')
  gap = (gap or self.edge) * self.unit
  local total = along == "rows" and box.h or box.w
  local free, shares = total - gap * (#sizes - 1), 0
  for _, size in ipairs(sizes) do
    if type(size) == "number" then free = free - size * self.unit
    else
      local share = tonumber(tostring(size):match "^([%d.]+)%*$")
      shares = shares + (share or errors.raise(("split: a size is %s, expected pixels, or shares such as 2*"):format(tostring(size))))
    end
  end
  local at, boxes = along == "rows" and box.y or box.x, {}
  for i, size in ipairs(sizes) do
    local length = type(size) == "number" and size * self.unit
      or math.max(0, free) * tonumber(size:match "^[%d.]+") / shares
    local from, to = math.floor(at + 0.5), math.floor(at + length + 0.5)
    boxes[i] = along == "rows" and { x = box.x, y = from, w = box.w, h = to - from }
      or { x = from, y = box.y, w = to - from, h = box.h }
    at = at + length + gap
  end
  return unpack(boxes)
end

---A box that is smaller on every side.
---@param box table { x, y, w, h }
---@param margin number design pixels
---@return table box
function methods:inset(box, margin)
  check_box("inset", box)
  local m = math.floor(margin * self.unit + 0.5)
  return { x = box.x + m, y = box.y + m, w = math.max(1, box.w - 2 * m), h = math.max(1, box.h - 2 * m) }
end

local ramp = ffi.new "float[32]"
for i = 0, 31 do ramp[i] = i / 31 end
---The background of a panel with its title and, at the right, a note (a range, a unit).  On the title the pointer shows view.about,
---which is set while a panel of the registry is drawn.
---@param box table { x, y, w, h }
---@param title string|string[]
---@param note (string|string[])? of several titles or notes the first that fits; a note that does not fit is left out
---@param map integer? a colour map to show next to the note, from its low to its high end
---@return table box the space left for the panel
function methods:card(box, title, note, map)
  self:rect(box.x, box.y, box.w, box.h, self.theme.card)
  self.cards[#self.cards + 1] = box
  if self.about then self:tip({ x = box.x, y = box.y, w = box.w, h = 32 * self.unit }, self.about) end
  local inner = self:inset(box, self.edge)
  title = self:first(title, 13, inner.w)
  local base, used = inner.y + 11 * self.unit, self:text_width(title, 13) + 16 * self.unit
  self:text(title, inner.x, base, 13, self.theme.text, "left", inner.w)
  note = self:first(note, 11.5, inner.w - used)
  if note and note ~= "" and self:text_width(note, 11.5) <= inner.w - used then          -- a part of it says nothing
    self:text(note, inner.x + inner.w, base, 11.5, self.theme.dim, "right", inner.w - used)
    local x = inner.x + inner.w - self:text_width(note, 11.5) - 66 * self.unit
    local place = { x = x, y = base - 9 * self.unit, w = 56 * self.unit, h = 10 * self.unit }
    if map and x > inner.x + used then self:heat(place, 1, 32, ramp, 0, 1, map, false) end
  end
  local top = math.floor((12 + self.edge) * self.unit + 0.5)
  return { x = inner.x, y = inner.y + top, w = inner.w, h = math.max(1, inner.h - top) }
end

---A sentence in the place of a panel's contents.
---@param box table of card
---@param text string
function methods:say(box, text) self:paragraph(text, box.x, box.y + 16 * self.unit, 12, self.theme.dim, box.w, box.h) end

---Axes with grid lines and tick labels.
---@param box table { x, y, w, h }
---@param x0 number left end
---@param x1 number right end
---@param y0 number lower end
---@param y1 number upper end
---@param x_name string shown below
---@param y_name string shown at the upper left
---@param down boolean? y grows downwards
---@return function place (x, y) in data -> x, y on the page
function methods:axes(box, x0, x1, y0, y1, x_name, y_name, down)
  local u, size, gutter = self.unit, 11, 0
  x0, x1 = canvas_labels.widened(x0, x1)
  y0, y1 = canvas_labels.widened(y0, y1)
  local y_step = canvas_labels.nice_step(y1 - y0, math.max(1, math.min(6, math.max(2, box.h / u / 32), (box.h / u - 38) / size)))
  if math.floor(y1 / y_step) <= math.ceil(y0 / y_step) and box.h / u > 38 + 2.5 * size then y_step = canvas_labels.nice_step(0.4 * y_step, 1) end
  local x_step = canvas_labels.nice_step(x1 - x0, math.max(2, math.min(8, box.w / u / 70)))
  for value = math.ceil(y0 / y_step) * y_step, y1 + y_step / 1e6, y_step do
    gutter = math.max(gutter, self:text_width(canvas_labels.tick_text(value, y_step, y0, y1), size))
  end
  local left, right = box.x + gutter + 8 * u, box.x + box.w - 8 * u
  local low = box.h < 56 * u                        -- no room for words besides the curve: the title and the note have to do
  local top, bottom = box.y + (low and 2 or 18) * u, box.y + box.h - (low and 2 or 20) * u
  local function place(x, y)
    local part = (y - y0) / (y1 - y0)
    if not down then part = 1 - part end
    return left + (x - x0) / (x1 - x0) * (right - left), top + part * (bottom - top)
  end
  for value = math.ceil(y0 / y_step) * y_step, y1 + y_step / 1e6, y_step do
    local _, y = place(x0, value)
    self:line(left, y, right, y, math.abs(value) < y_step / 1e6 and self.theme.line or self.theme.grid)
    self:text(canvas_labels.tick_text(value, y_step, y0, y1), left - 8 * u, y + 4 * u, size, self.theme.dim, "right")
  end
  local clear = right - self:text_width(x_name, size) - 8 * u      -- the axis' name stands at its end
  for value = math.ceil(x0 / x_step) * x_step, x1 + x_step / 1e6, x_step do
    local x, text = place(value, y0), canvas_labels.tick_text(value, x_step, x0, x1)
    self:line(x, top, x, bottom, self.theme.grid)
    if not low and x + self:text_width(text, size) / 2 < clear then self:text(text, x, bottom + 15 * u, size, self.theme.dim, "center") end
  end
  if low then return place end
  self:text(x_name, right, bottom + 15 * u, size, self.theme.dim, "right")
  self:text(y_name, left, box.y + 9 * u, size, self.theme.dim)
  return place
end

return canvas
