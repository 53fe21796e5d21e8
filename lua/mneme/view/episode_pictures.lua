-- episode_pictures.lua -- what an episode's page draws as pictures: the environment's shapes, each stored once, and a sheet of observations
-- as one PNG.  Bytes become text in base64.
local ffi = require "ffi"
local bit = require "bit"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local json = require "mneme.base.json"

local C = engine.C
local pictures = {}
local TEXT, HEAT, IMAGE = 5, 6, 7                            -- engine/canvas.h
local SIDE = 4096                                            -- pixels of a sheet at most

-- ---- base64 ----

local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local code = ffi.new("uint8_t[64]", { letters:byte(1, 64) })

---@param data ffi.cdata* uint8_t[n]
---@param n integer
---@return string
function pictures.base64(data, n)
  local out, at = ffi.new("uint8_t[?]", 4 * math.ceil(n / 3) + 1), 0
  for i = 0, n - 1, 3 do
    local b, c = i + 1 < n and data[i + 1] or 0, i + 2 < n and data[i + 2] or 0
    local word = data[i] * 65536 + b * 256 + c
    out[at], out[at + 1] = code[bit.rshift(word, 18)], code[bit.band(bit.rshift(word, 12), 63)]
    out[at + 2] = i + 1 < n and code[bit.band(bit.rshift(word, 6), 63)] or 61          -- 61: =
    out[at + 3] = i + 2 < n and code[bit.band(word, 63)] or 61
    at = at + 4
  end
  return ffi.string(out, at)
end

-- ---- shapes ----

local Shapes = {}
Shapes.__index = Shapes

---A list of the shapes of many drawings, each of them once.
function pictures.shapes()
  return setmetatable({ all = {}, place = {}, x0 = math.huge, y0 = math.huge, x1 = -math.huge, y1 = -math.huge }, Shapes)
end

local box, sides = ffi.new "float[4]", ffi.new "int[2]"
local function short(x) return tonumber(("%.4g"):format(x)) end

-- An image of few colours: "#rrggbb #rrggbb ...", columns, and a letter of base64 for each pixel; nil: it has too many.
local function image_of(canvas, s)
  local rgb, place, palette, colours = C.mn_canvas_pixels(canvas, s.text, sides, sides + 1), {}, {}, 0
  local n = sides[0] * sides[1]
  local out = ffi.new("uint8_t[?]", n)
  for i = 0, n - 1 do
    local colour = rgb[3 * i] * 65536 + rgb[3 * i + 1] * 256 + rgb[3 * i + 2]
    if not place[colour] then
      if colours == 64 then return nil end
      palette[colours + 1], place[colour], colours = ("#%06x"):format(colour), colours, colours + 1
    end
    out[i] = code[place[colour]]
  end
  return table.concat(palette, " "), sides[1], ffi.string(out, n)
end

-- The number of a shape, from 0.
local function index(self, canvas, s)
  local palette, columns, pixels
  if s.kind == IMAGE then palette, columns, pixels = image_of(canvas, s) end
  if s.kind == HEAT or s.kind == IMAGE and not palette then
    self.left_out = true
    return nil
  end
  local shape = { s.kind, ("#%08x"):format(s.color), short(s.x), short(s.y), short(s.w), short(s.h), short(s.data) }
  if palette then shape[2], shape[7], shape[8] = palette, columns, pixels end
  if s.kind == TEXT then shape[8] = ffi.string(C.mn_canvas_string(canvas, s.text)) end
  local key = table.concat(shape, " ")
  if not self.place[key] then
    self.all[#self.all + 1] = json.array(shape)
    self.place[key] = #self.all - 1
  end
  return self.place[key]
end

-- What changed since the drawing before.  0: nothing; { at = { place, shape, place, shape, ... } }, places from 0; { cut = { place, how
-- many shapes go, those that come instead, ... } }; or the whole list: whichever is shortest.
local function change(before, list)
  if not before then return json.array(list) end
  local diff, first, n, m = {}, 1, #before, #list
  for i = 1, n == m and n or 0 do
    if list[i] ~= before[i] then diff[#diff + 1], diff[#diff + 2] = i - 1, list[i] end
  end
  if n == m and #diff == 0 then return 0 end
  while first <= math.min(n, m) and list[first] == before[first] do first = first + 1 end
  while n >= first and m >= first and list[m] == before[n] do n, m = n - 1, m - 1 end
  if #before == #list and #diff <= m - first + 3 then return { at = json.array(diff) } end
  local cut = { first - 1, n - first + 1 }
  for i = first, m do cut[#cut + 1] = list[i] end
  return #cut < #list and { cut = json.array(cut) } or json.array(list)
end

---A function that takes one drawing after the other and returns what it changes.
---@return fun(canvas: ffi.cdata*): table|integer
function Shapes:film()
  local before
  return function(canvas)
    local list, shapes = {}, C.mn_canvas_shapes(canvas)
    for i = 0, C.mn_canvas_count(canvas) - 1 do list[#list + 1] = index(self, canvas, shapes[i]) end
    C.mn_canvas_bounds(canvas, box)
    if box[2] > box[0] and box[3] > box[1] then
      self.x0, self.y0 = math.min(self.x0, box[0]), math.min(self.y0, box[1])
      self.x1, self.y1 = math.max(self.x1, box[2]), math.max(self.y1, box[3])
    end
    local changed = change(before, list)
    before = list
    return changed
  end
end

---@return table shapes { kind, color, x, y, w, h, data, text? } each, as in engine/canvas.h
---@return table bounds { x0, y0, x1, y1 } of all drawings
function Shapes:list()
  local known = self.x1 > self.x0
  return json.array(self.all), json.array(known and { short(self.x0), short(self.y0), short(self.x1), short(self.y1) } or { 0, 0, 1, 1 })
end

-- ---- a sheet ----

local Sheet = {}
Sheet.__index = Sheet

---A sheet of n pictures of rows x cols pixels.
function pictures.sheet(rows, cols, n)
  local wide = math.max(1, math.min(math.ceil(math.sqrt(n)), math.floor(SIDE / cols)))
  local high = math.ceil(n / wide)
  local self = setmetatable({ rows = rows, cols = cols, n = n, wide = wide, width = wide * cols, height = high * rows }, Sheet)
  self.pixels = ffi.new("uint8_t[?]", 4 * self.width * self.height)
  return self
end

---Put picture i, from 0, where it belongs.
---@param seen table { shape, values } of rows x cols x 3, of 0 .. 1 or 0 .. 255
function Sheet:put(i, seen)
  local n, most = self.rows * self.cols * 3, 0
  for k = 0, n - 1 do most = math.max(most, seen.values[k]) end
  local scale = most > 1 and 1 or 255
  local left, top = i % self.wide * self.cols, math.floor(i / self.wide) * self.rows
  for row = 0, self.rows - 1 do
    for col = 0, self.cols - 1 do
      local to, from = 4 * ((top + row) * self.width + left + col), 3 * (row * self.cols + col)
      for c = 0, 2 do self.pixels[to + c] = math.max(0, math.min(255, seen.values[from + c] * scale)) end
      self.pixels[to + 3] = 255
    end
  end
end

-- Half as many pixels in both directions: the mean of four.
local function halve(self)
  local rows, cols = math.max(1, math.floor(self.rows / 2)), math.max(1, math.floor(self.cols / 2))
  local other = setmetatable({ rows = rows, cols = cols, n = self.n, wide = self.wide, width = self.wide * cols,
    height = self.height / self.rows * rows }, Sheet)
  other.pixels = ffi.new("uint8_t[?]", 4 * other.width * other.height)
  for y = 0, other.height - 1 do
    for x = 0, other.width - 1 do
      local top = math.floor(y / rows) * self.rows + y % rows * 2
      local left = math.floor(x / cols) * self.cols + x % cols * 2
      for c = 0, 3 do
        local sum = 0
        for dy = 0, self.rows > 1 and 1 or 0 do
          for dx = 0, self.cols > 1 and 1 or 0 do sum = sum + self.pixels[4 * ((top + dy) * self.width + left + dx) + c] / 4 end
        end
        other.pixels[4 * (y * other.width + x) + c] = sum
      end
    end
  end
  return other
end

---The sheet as a PNG in base64, with fewer pixels where it is larger than `most` bytes.
---@return table { png, rows, cols, wide }
function Sheet:write(most)
  local path = os.tmpname()
  engine.check(C.mn_image_write(engine.ctx, path, self.pixels, self.width, self.height))
  local bytes = files.read(path)
  files.remove(path)
  if #bytes > most and self.rows > 8 and self.cols > 8 then return halve(self):write(most) end
  local data = ffi.new("uint8_t[?]", #bytes)
  ffi.copy(data, bytes, #bytes)
  return { png = pictures.base64(data, #bytes), rows = self.rows, cols = self.cols, wide = self.wide }
end

return pictures
