-- episode_data.lua -- an episode as a page for browsers keeps it: the shapes that its scene draws at each step, every different one once, and
-- how the list changes from step to step; what the pointer is told; and sentences.  lua/mneme/insight/view/painter.js reads it.
local ffi = require "ffi"
local bit = require "bit"
local canvas = require "mneme.base.canvas"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local format = require "mneme.base.format"
local json = require "mneme.base.json"
local scene = require "mneme.insight.view.scene"
local zlib = require "mneme.base.zlib"

ffi.cdef [[
typedef struct mn_heat { int rows, cols, map; float lo, hi; const float *values; } mn_heat;
mn_heat mn_canvas_heat_at(const mn_canvas *c, int text);
]]

local C = engine.C
local episode_data = {}
local MOST_STEPS = 2000
local CELLS, WORDS = 800000, 4096                            -- cells of all heat maps of a page; of a grid whose words are kept
local STILL = 0.75                                           -- of the page's size: the picture for readers without scripts
local LOOK = 400                                             -- places of a list that are searched for where it goes on as before
-- what a shape is: the kinds of engine/canvas.h, and what the pointer meets
local TEXT, HEAT, IMAGE, TIP, GRID, VISIT = 5, 6, 7, 8, 9, 10

local FAR = 2 ^ 30                                           -- hundredths: what is farther away is not seen
local function hundredths(x) return math.max(-FAR, math.min(FAR, math.floor(100 * x + 0.5))) end

-- ---- what is kept once ----

-- Things by a key, each with a number from 0.
local Pool = {}
Pool.__index = Pool
local function pool() return setmetatable({ list = json.array {}, place = {} }, Pool) end

-- The number of a key; a new one's thing is made.
function Pool:number(key, make)
  local at = self.place[key]
  if not at then
    at = #self.list
    self.place[key], self.list[at + 1] = at, make and make() or key
  end
  return at
end

-- Colours of the dark page by their names, so that a reader can have the light one: each is a shade off, so that no world has it, too.
local theme, named = setmetatable({}, { __index = canvas.themes.dark }), {}
for _, key in ipairs { "page", "card", "line", "grid", "ground", "text", "dim", "accent", "warm", "good", "bad", "violet", "shade" } do
  local c = canvas.themes.dark[key]
  theme[key] = c + (key == "ground" and 512 or 256) * (math.floor(c / 256) % 2 == 0 and 1 or -1)
  named[math.floor(theme[key] / 256)] = key ~= "shade" and key or "page"
end

local Film = {}
Film.__index = Film

---Pages as lists of shapes.
---@param painter table of scene.painter: pages are drawn on its view
---@param cells number of the heat maps of a page, at most
local function film(painter, cells)
  return setmetatable({ painter = painter, cells = cells, pages = json.array {},
    shapes = pool(), colours = pool(), strings = pool(), lists = pool(), heats = pool(),
    images = pool(), numbers = pool(), known = 0, bytes = {}, n_bytes = 0, steady = {} }, Film)
end

local function put_bytes(self, bytes)
  self.bytes[#self.bytes + 1], self.n_bytes = bytes, self.n_bytes + #bytes
  return self.n_bytes - #bytes
end

local function colour(self, c)
  return self.colours.place[c] or self.colours:number(c, function()
    return json.array { named[math.floor(c / 256)] or ("#%06x"):format(math.floor(c / 256)), c % 256 }
  end)
end

-- How many rows and columns of a grid are one block, so that there are at most `most` blocks.
local function blocks(rows, cols, most)
  local tall, wide = 1, 1
  while math.ceil(rows / tall) * math.ceil(cols / wide) > most do
    if rows / tall > cols / wide then tall = tall + 1 else wide = wide + 1 end
  end
  return tall, wide
end

-- Values as bytes: 0 is no number, 1 .. 255 the range; of a block the mean, as where cells are smaller than pixels.
local function heat(self, rows, cols, values, lo, hi)
  local tall, wide = blocks(rows, cols, self.most)
  local down, across = math.ceil(rows / tall), math.ceil(cols / wide)
  local out, scale = ffi.new("uint8_t[?]", down * across), hi ~= lo and 254 / (hi - lo) or 0
  for r = 0, down - 1 do
    for c = 0, across - 1 do
      local sum, n = 0, 0
      for y = r * tall, math.min(rows, r * tall + tall) - 1 do
        for x = c * wide, math.min(cols, c * wide + wide) - 1 do sum, n = sum + values[y * cols + x], n + 1 end
      end
      local mean = sum / n
      out[r * across + c] = mean == mean and 1 + math.max(0, math.min(254, math.floor((hi ~= lo and (mean - lo) * scale or 127) + 0.5))) or 0
    end
  end
  local bytes = ffi.string(out, down * across)
  local about = ("%d,%d,%d,%d,%d,%d"):format(rows, cols, tall, wide, self.numbers:number(tonumber(("%.5g"):format(lo))),
    self.numbers:number(tonumber(("%.5g"):format(hi))))
  return self.heats:number(about .. bytes, function()
    local entry = json.array {}
    for x in about:gmatch "[^,]+" do entry[#entry + 1] = tonumber(x) end
    entry[7] = put_bytes(self, bytes)
    return entry
  end)
end

local sides = ffi.new "int[2]"
local function image(self, shapes, s)
  local rgb = ffi.string(C.mn_canvas_pixels(shapes, s.text, sides, sides + 1), 3 * sides[0] * sides[1])
  local rows, cols = sides[0], sides[1]
  return self.images:number(cols .. "," .. rgb, function() return json.array { rows, cols, put_bytes(self, rgb) } end)
end

-- ---- a page ----

local function add(list, self, ...)
  local shape = { ... }
  list[#list + 1] = self.shapes:number(table.concat(shape, ","), function() return shape end)
end

-- Lists of numbers as columns of differences, each from the one above: they compress five times as well.
local function columns(list, n)
  local out = json.array {}
  for c = 1, n do
    out[c] = json.array {}
    local before = 0
    for r, row in ipairs(list) do
      out[c][r], before = (row[c] or 0) - before, row[c] or 0
    end
  end
  return out
end

-- What is drawn, as eight numbers.
local function numbers_of(self, shapes, s)
  local data, more, ink = hundredths(s.data), 0, s.kind == HEAT and 0 or colour(self, s.color)
  if s.kind == TEXT then
    local text = ffi.string(C.mn_canvas_string(shapes, s.text))
    data, more = hundredths(self.painter:text_width(text, s.h)), self.strings:number(text)
  elseif s.kind == HEAT then
    local h = C.mn_canvas_heat_at(shapes, s.text)
    data, more = h.map, heat(self, h.rows, h.cols, h.values, h.lo, h.hi)
  elseif s.kind == IMAGE then data, more = 0, image(self, shapes, s) end
  return s.kind, ink, hundredths(s.x), hundredths(s.y), hundredths(s.w), hundredths(s.h), data, more
end

-- The words of a grid's cells, as a list of strings: { columns, rows and columns of a block, numbers of strings ... }; -1: none.
local function words(self, grid)
  local first = grid.steady and ("%d,%d,%s"):format(grid.rows, grid.cols, grid.words(0, 0) or "")
  if first and self.steady[first] then return self.steady[first] end
  local tall, wide = blocks(grid.rows, grid.cols, WORDS)
  local list = { grid.cols, tall, wide }
  for r = 0, grid.rows - 1, tall do
    for c = 0, grid.cols - 1, wide do
      local text = grid.words(r, c)
      list[#list + 1] = text and self.strings:number((tall * wide > 1 and "near " or "") .. text) or -1
    end
  end
  local at = self.lists:number(table.concat(list, ","), function() return json.array(list) end)
  if first then self.steady[first] = at end
  return at
end

-- What the pointer is told, and which places lead to a step.
local function put_pointer(self, list, view)
  for i = 1, view.n_tips do
    local tip, box = view.tips[i], { hundredths(view.tips[i].x), hundredths(view.tips[i].y), hundredths(view.tips[i].w), hundredths(view.tips[i].h) }
    local grid = tip.text
    if type(grid) == "string" then add(list, self, TIP, 0, box[1], box[2], box[3], box[4], 0, self.strings:number(grid))
    elseif grid.rows > 0 and grid.cols > 0 then
      local of = grid.values and heat(self, grid.rows, grid.used or grid.cols, grid.values, grid.lo, grid.hi) or -1
      add(list, self, GRID, of, box[1], box[2], box[3], box[4], grid.root and 1 or 0, words(self, grid))
    end
  end
  for i = 1, view.n_spots do
    local spot = view.spots[i]
    if spot.what.visit then
      add(list, self, VISIT, 0, hundredths(spot.x), hundredths(spot.y), hundredths(spot.w), hundredths(spot.h), spot.what.cells and 1 or 0,
        math.floor(spot.what.visit))
    end
  end
end

-- What changed since the page before: { places after the change before, how many go, how many come, those, places ... }; a shape is its distance
-- from the first that no page had yet.
local function change(self, before, list)
  local places, out, i, j, n, m, last = {}, {}, 1, 1, #before, #list, 0
  for k = m, 1, -1 do places[list[k]] = { k, places[list[k]] } end         -- where each shape is, the first one first
  while i <= n or j <= m do
    if i <= n and before[i] == list[j] then i, j = i + 1, j + 1
    else
      local go, come = n - i + 1, m - j + 1
      for k = i, math.min(n, i + LOOK) do
        local at = places[before[k]]
        while at and at[1] < j do at = at[2] end
        if at and at[1] - j <= LOOK then
          go, come = k - i, at[1] - j
          break
        end
      end
      out[#out + 1], out[#out + 2], out[#out + 3], last = i - 1 - last, go, come, i - 1
      for k = j, j + come - 1 do
        out[#out + 1], self.known = self.known - list[k], math.max(self.known, list[k] + 1)
      end
      i, j = i + go, j + come
    end
  end
  return json.array(out)
end

-- Finds how many cells of each heat map are kept, so that all have their share.
local function share_cells(self, shapes, all, n)
  if self.most then return end
  local sizes = {}
  for i = 0, n - 1 do
    if all[i].kind == HEAT then
      local h = C.mn_canvas_heat_at(shapes, all[i].text)
      sizes[#sizes + 1] = h.rows * h.cols
    end
  end
  local sum
  self.most = 2 * WORDS
  repeat
    sum, self.most = 0, self.most / 2
    for _, size in ipairs(sizes) do sum = sum + math.min(size, self.most) end
  until sum <= self.cells or self.most <= 16
end

---Keep what the painter's view holds.
---@param pointer boolean? and what the pointer meets
function Film:add(pointer)
  local view, list = self.painter.view, {}
  local all, n = C.mn_canvas_shapes(view.shapes), C.mn_canvas_count(view.shapes)
  share_cells(self, view.shapes, all, n)
  for i = 0, n - 1 do add(list, self, numbers_of(self, view.shapes, all[i])) end
  if pointer then put_pointer(self, list, view) end
  self.pages[#self.pages + 1] = change(self, self.list or {}, list)
  self.list = list
end

-- ---- bytes as text ----

local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local code = ffi.new("uint8_t[64]", { letters:byte(1, 64) })

local function base64(bytes)
  local n, data = #bytes, ffi.cast("const uint8_t *", bytes)
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

-- The page as last drawn, as a picture.
local function picture(painter)
  return base64(files.temporary(function(path)
    files.check(C.mn_image_write(engine.ctx, path, painter:fill(), painter.view.width, painter.view.height))
    return files.read(path)
  end))
end

-- ---- sentences ----

local function said(x) return (format.said("%.2f", x):gsub("-", "−")) end

local function ended(o)
  if type(o) ~= "table" or not o.ret then return "" end
  return ("%sreturn %s, %s"):format(not o.score and "" or o.score >= 1 and "solved, " or "score " .. said(o.score) .. ", ", said(o.ret),
    format.counted(o.length, "step"))
end

-- A step in words.
local function sentence(frame, name)
  local parts, a = {}, frame.action
  if frame.outcome then parts[1] = "end, " .. ended(frame.outcome)
  else
    local p = a and frame.policy[a + 1]
    if frame.did then parts[1] = frame.space:words(frame.did) end
    if a then parts[1] = frame.actions[a + 1] .. (p and (" with %.0f %%"):format(100 * p) or "") end
    if frame.value then parts[#parts + 1] = "value " .. said(frame.value) end
    if frame.ret then parts[#parts + 1] = "return so far " .. said(frame.ret) end
  end
  return (name and name .. ": " or "") .. table.concat(parts, ", ")
end

-- ---- the whole ----

---Colours of both themes, and of heat maps at each eighth: [map][light].
---@return table themes, table ramps
function episode_data.colours()
  local themes, ramps = { dark = {}, light = {} }, json.array {}
  for name, of in pairs(themes) do
    for _, key in pairs(named) do of[key] = ("#%06x"):format(math.floor(canvas.themes[name][key] / 256)) end
  end
  for map = canvas.SEQUENTIAL, canvas.DIVERGING do
    ramps[map + 1] = json.array { json.array {}, json.array {} }
    for light = 0, 1 do
      for i = 0, 8 do ramps[map + 1][light + 1][i + 1] = ("#%06x"):format(math.floor(C.mn_map_color(map, light == 1, i / 8) / 256)) end
    end
  end
  return themes, ramps
end

-- Adds shapes, read(i): the eight numbers of number i, as columns of differences, which compress five times as well; { how many, where they begin }.
local function put_shapes(self, n, read)
  local out, a, b, c, d, e, f, g, h = ffi.new("int32_t[?]", 8 * n + 1), 0, 0, 0, 0, 0, 0, 0, 0
  for i = 0, n - 1 do
    local a1, b1, c1, d1, e1, f1, g1, h1 = read(i)
    out[i], out[n + i], out[2 * n + i], out[3 * n + i] = a1 - a, b1 - b, c1 - c, d1 - d
    out[4 * n + i], out[5 * n + i], out[6 * n + i], out[7 * n + i] = e1 - e, f1 - f, g1 - g, h1 - h
    a, b, c, d, e, f, g, h = a1, b1, c1, d1, e1, f1, g1, h1
  end
  return json.array { n, put_bytes(self, ffi.string(out, 32 * n)) }
end

---All pages as painter.js reads them.
---@param head table what it reads besides
---@param level integer of compression, 1 .. 9
---@param shapes table? of put_shapes; nil: those of its pages
function Film:packed(head, width, height, level, shapes)
  local themes, ramps = episode_data.colours()
  local list = self.shapes.list
  shapes = shapes or put_shapes(self, #list, function(i) return unpack(list[i + 1], 1, 8) end)
  for key, value in pairs { width = width, height = height, themes = themes, ramps = ramps, colours = self.colours.list, strings = self.strings.list,
    lists = self.lists.list, heats = columns(self.heats.list, 7), shapes = shapes, numbers = self.numbers.list,
    images = self.images.list, pages = self.pages } do head[key] = value end
  return zlib.compress(json.encode(head) .. "\0" .. table.concat(self.bytes), level)
end

---What a painter has drawn, as one page that is shown now.
---@param painter table of scene.painter
---@param head table what painter.js reads besides
function episode_data.page(painter, head)
  local pages, view = film(painter, CELLS), painter.view
  local all, n = C.mn_canvas_shapes(view.shapes), C.mn_canvas_count(view.shapes)
  share_cells(pages, view.shapes, all, n)
  local shapes = put_shapes(pages, n, function(i) return numbers_of(pages, view.shapes, all[i]) end)
  head.theme = view.theme.dark and "dark" or "light"
  return pages:packed(head, view.width, view.height, 1, shapes)
end

---The displayed episode as a page keeps it.
---@param shown Viewer without controls
---@param options table? { open = the step to show first, 0; most = steps, of a longer episode the first ones, 2000; seconds = 0: that panels may
---  compute in all; width, height of the page, theme of its picture, on = function(i, n): after each step }
---@return table data { title, source, story, steps = sentences, outcomes, width, height, left_out, most_steps, open, picture, packed = what painter.js reads }
function episode_data.of(shown, options)
  options = options or {}
  local most, deadline = options.most or MOST_STEPS, C.mn_clock(false) + (options.seconds or 0)
  local width, height = options.width or scene.default_width, options.height or scene.default_height
  if shown.at == 0 then shown:forward() end
  while shown:tick_of(1).step < most and not shown:ended() and shown:forward() do end
  local from, to, over = shown:episode()
  local open, painter = options.open or 0, scene.painter()
  local data = { steps = json.array {}, outcomes = {}, width = width, height = height, left_out = not over or nil, most_steps = most }
  local pages, what, now
  local function draw(slot, scale)
    shown:seek(slot)
    for k, track in ipairs(shown.tracks) do track.timeline:frame(shown.slots[slot][k]) end       -- computed again, where it is not kept
    what, now = shown:page()
    painter.view.deadline = deadline
    painter:draw(what, now, (scale or 1) * width, (scale or 1) * height)
  end
  painter.view.theme = theme
  draw(to)                                                    -- the last step: panels compute most of what they show
  if shown:measure(deadline) then draw(to) end
  local told = now.story and now.story() or now.shared_story and now.shared_story()
  if told and #told.sentences > 0 then data.story = ("%d episodes: %s"):format(told.episodes, table.concat(told.sentences, " ")) end
  if to - from >= most then to, data.left_out = from + most - 1, true end
  pages = film(painter, CELLS / (to - from + 1))
  for slot = from, to do
    draw(slot)
    pages:add(true)
    local told_of = {}
    for k, track in ipairs(shown.tracks) do
      local frame = shown:frame(k)
      told_of[k] = sentence(frame, track.name)
      data.outcomes[k] = frame.outcome and (track.name and track.name .. ": " or "") .. ended(frame.outcome) or data.outcomes[k]
    end
    data.steps[#data.steps + 1] = table.concat(told_of, " | ")
    if options.on then options.on(slot - from + 1, to - from + 1) end
  end
  data.open = math.max(0, math.min(open, #data.steps - 1))
  painter.view.theme = canvas.themes[options.theme or "dark"]
  draw(from + data.open, STILL)
  data.title, data.source, data.picture = shown:frame(1).title or "", now.source, picture(painter)
  data.packed = base64(pages:packed({ open = data.open, steps = data.steps }, width, height, 9))
  return data
end

return episode_data
