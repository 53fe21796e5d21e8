-- test_scenes.lua -- every scene found draws whole pictures without a window: nothing cut off, nothing
-- overlapping, the same bytes each time, in a file and in a window; and the live file between a trainer
-- and a viewer carries what was written, and refuses what is damaged.
local ffi = require "ffi"
local lfs = require "lfs"
local t = require "tests.harness"
local canvas = require "mneme.canvas"
local engine = require "mneme.engine"
local fake = require "tests.fake_player"
local find = require "mneme.find"
local heads = require "mneme.heads"
local live = require "mneme.live"
local mn = require "mneme"
local recorder = require "mneme.recorder"
local scene = require "mneme.scene"
local view = require "mneme.view"

local C = engine.C
local folder = os.tmpname()
os.remove(folder)
assert(lfs.mkdir(folder))
local function path(name) return folder .. "/" .. name end

local painter = scene.painter()

-- The nth frame of a random agent with a core of this kind.
local function frame_of(core, n, corridor)
  local player, film = fake.new { core = core, corridor = corridor }, recorder.new()
  for _ = 1, n - 1 do film:add(player:next()) end
  return film:add(player:next()), film
end

local function paint(what, frame, w, h)
  return ffi.string(painter:paint(what, frame, w, h), w * h * 4)
end

-- ---- scenes ----

local sizes = { { 800, 600 }, { 1280, 800 }, { 1920, 1080 } }

-- The boxes of all texts on the page, from the shapes themselves.
local function text_boxes(shapes)
  local list, boxes = C.mn_canvas_shapes(shapes), {}
  for i = 0, C.mn_canvas_count(shapes) - 1 do
    local s = list[i]
    if s.kind == canvas.TEXT then
      local text = ffi.string(C.mn_canvas_string(shapes, s.text))
      local width = painter.lib.mn_raster_text_width(painter.raster, text, s.h)
      boxes[#boxes + 1] = { x0 = s.x, x1 = s.x + width, y0 = s.y - 0.75 * s.h, y1 = s.y + 0.05 * s.h, text = text }
    end
  end
  return boxes
end

local function check_page(name, w, h)
  local boxes = text_boxes(painter.view.shapes)
  t.ok(#boxes > 10, name .. ": hardly any text")
  for i, a in ipairs(boxes) do
    t.ok(a.x0 >= 0 and a.x1 <= w and a.y0 >= 0 and a.y1 <= h, ("%s: '%s' is cut off"):format(name, a.text))
    for j = 1, i - 1 do
      local b = boxes[j]
      t.ok(a.x0 >= b.x1 or b.x0 >= a.x1 or a.y0 >= b.y1 or b.y0 >= a.y1,
        ("%s: '%s' overlaps '%s'"):format(name, a.text, b.text))
    end
  end
  local list = C.mn_canvas_shapes(painter.view.shapes)
  for i = 0, C.mn_canvas_count(painter.view.shapes) - 1 do
    local s = list[i]
    if s.kind == canvas.RECT or s.kind == canvas.HEAT then
      t.ok(s.x >= 0 and s.y >= 0 and s.x + s.w <= w + 0.01 and s.y + s.h <= h + 0.01, name .. ": a box leaves the page")
    end
  end
end

for _, name in ipairs(scene.list()) do
  local what = scene.load(name)
  for _, core in ipairs { "agalite", "galite", "gru", "none" } do
    t.test(("scene %s with %s: fits, at every size"):format(name, core), function()
      local frame, film = frame_of(core, 9, 20)
      local ended = film:finish({ score = 1, ret = 2.1, length = 21 }, 4)
      ended.status = { playing = true, speed = "500 steps/s", hint = "h: help", note = "saved mneme-3-17.png" }
      for _, size in ipairs(sizes) do
        local w, h = size[1], size[2]
        for _, shown in ipairs { frame, ended } do
          local pixels = paint(what, shown, w, h)
          check_page(("%s %s %dx%d"):format(name, core, w, h), w, h)
          t.eq(paint(what, shown, w, h) == pixels, true, "painting twice gives the same bytes")
        end
      end
    end)
  end

  t.test("scene " .. name .. ": shows what changes", function()
    local first, film = frame_of("agalite", 1)
    local player = fake.new {}
    player:next()
    local second = film:add(player:next())
    t.ok(paint(what, first, 800, 600) ~= paint(what, second, 800, 600))
  end)

  t.test("scene " .. name .. ": cannot change what it sees", function()
    local meddling = scene.new { draw = function(_, now) now.step = 0 end }
    t.raises(function() painter:paint(meddling, (frame_of("gru", 1)), 800, 600) end, "read%-only")
  end)
end

t.test("scenes and panels are small", function()
  for kind, most in pairs { scenes = 60, ["scenes/panels"] = 80 } do
    local names = find.names(kind)
    t.ok(#names >= 2, kind .. " are found")
    for _, name in ipairs(names) do
      local lines = 0
      for _ in io.lines(find.file(kind, name, "file")) do lines = lines + 1 end
      t.ok(lines < most, ("%s/%s.lua has %d lines"):format(kind, name, lines))
    end
  end
end)

t.test("a scene that does not exist, or is wrong, says so", function()
  t.raises(function() scene.load "tmaz" end, "tmaz")
  t.raises(function() scene.new { draw = 3 } end, "draw is a number")
  t.raises(function() scene.new { draw = print, cor = 1 } end, "unknown")
  t.raises(function() return scene.panels.nothing end, "nothing")
end)

t.test("a missing font is an error that names the way out", function()
  t.raises(function() scene.painter(path "no.ttf") end, "MNEME_FONT")
end)

-- ---- the canvas and its pixels ----

local function pixel(pixels, w, x, y) return pixels:byte((y * w + x) * 4 + 1, (y * w + x) * 4 + 3) end

t.test("shapes cover the pixels that they should", function()
  local function draw(f, x, y)
    local r, g = pixel(paint({ draw = f }, {}, 40, 40), 40, x, y)
    return r, g
  end
  local white, page = 0xFFFFFFFF, 0x0F
  local function inside(what, f, x, y) t.eq(draw(f, x, y), 255, what .. " inside") end
  local function outside(what, f, x, y) t.eq(draw(f, x, y), page, what .. " outside") end
  local rect = function(v) v:rect(10, 10, 10, 5, white) end
  inside("rect", rect, 10, 10) inside("rect", rect, 19, 14) outside("rect", rect, 20, 14) outside("rect", rect, 10, 15)
  local half = function(v) v:rect(10.5, 10, 10, 5, white) end
  t.near(draw(half, 10, 12), (255 + page) / 2, 1, "half a pixel")
  local frame = function(v) v:frame(10, 10, 10, 10, white, 2) end
  inside("frame", frame, 11, 15) outside("frame", frame, 12, 15)
  local disc = function(v) v:disc(20, 20, 8, white) end
  inside("disc", disc, 20, 13) outside("disc", disc, 13, 13)
  local line = function(v) v:line(5, 5, 35, 35, white, 3) end
  inside("line", line, 20, 20) outside("line", line, 24, 20)
  local right = function(v) v:triangle(10, 10, 20, 20, 0, white) end
  inside("triangle", right, 27, 20) inside("triangle", right, 11, 12) outside("triangle", right, 27, 12)
  local down = function(v) v:triangle(10, 10, 20, 20, math.pi / 2, white) end
  inside("turned", down, 20, 27) outside("turned", down, 27, 27)
end)

t.test("heat maps: first row on top, ends of the map, means of what is smaller than a pixel", function()
  local values = ffi.new("float[4]", { 0, 1, 1, 0 })
  local pixels = paint({ draw = function(v) v:heat({ x = 0, y = 0, w = 40, h = 40 }, 2, 2, values, 0, 1) end }, {}, 40, 40)
  t.eq(pixel(pixels, 40, 5, 5), 0x44)
  t.eq(pixel(pixels, 40, 35, 5), 0xFD)
  t.eq(pixel(pixels, 40, 5, 35), 0xFD)
  local many = ffi.new "float[1600]"
  for i = 0, 1599 do many[i] = i % 2 end
  local mixed = paint({ draw = function(v) v:heat({ x = 0, y = 0, w = 20, h = 20 }, 40, 40, many, 0, 1) end }, {}, 40, 40)
  local r, g, b = pixel(mixed, 40, 10, 10)
  local red, green, blue = pixel(paint({ draw = function(v)
    v:heat({ x = 0, y = 0, w = 20, h = 20 }, 1, 1, ffi.new("float[1]", 0.5), 0, 1)
  end }, {}, 40, 40), 40, 10, 10)
  t.ok(r == red and g == green and b == blue, "the mean of 0 and 1 has the colour of 0.5")
end)

t.test("text: its width, its ellipsis, and bytes that are not UTF-8", function()
  local page = painter.view
  page:clear(1280, 800)
  t.ok(page:text_width("corridor", 13) > page:text_width("corr", 13))
  t.near(page:text_width("mmmm", 26), 2 * page:text_width("mmmm", 13), 0.6, "width grows with size")
  local short = page:fit("a long line of text that cannot fit", 13, 80)
  t.ok(short:find "…$" and page:text_width(short, 13) <= 80, short)
  t.eq(page:fit("x", 13, 1), "")
  paint({ draw = function(v) v:text("\255\192\128 caf\195\169 \226\130", 5, 20, 13) end }, {}, 200, 40)
end)

t.test("a canvas refuses numbers that are not finite, and sizes that are not pictures", function()
  local empty = ffi.gc(C.mn_canvas_new(engine.ctx), C.mn_canvas_free)
  t.eq(C.mn_canvas_add(empty, canvas.RECT, 0, 0 / 0, 0, 1, 1), -1)
  t.eq(C.mn_canvas_add(empty, 99, 0, 0, 0, 1, 1), -1)
  t.eq(C.mn_canvas_heat(empty, 0, 0, 1, 1, 0, 5, nil, 0, 1, 0), -1)
  t.eq(C.mn_canvas_count(empty), 0)
  t.raises(function() painter:paint({ draw = function() end }, {}, 0, 10) end, "0x10")
end)

-- ---- files ----

local what = scene.load "tmaze"

t.test("a PNG file holds the painted pixels", function()
  local pixels = paint(what, (frame_of("agalite", 5)), 800, 600)
  engine.check(C.mn_image_write(engine.ctx, path "a.png", pixels, 800, 600))
  local w, h, back = ffi.new "int[1]", ffi.new "int[1]", ffi.new("uint8_t[?]", 800 * 600 * 4)
  engine.check(C.mn_image_read(engine.ctx, path "a.png", nil, w, h))
  t.eq(w[0], 800) t.eq(h[0], 600)
  engine.check(C.mn_image_read(engine.ctx, path "a.png", back, w, h))
  t.ok(ffi.string(back, 800 * 600 * 4) == pixels)
end)

-- How many frames a GIF file has; nil where its blocks do not end where they should.
local function gif_frames(file)
  local f = assert(io.open(file, "rb"))
  local s = f:read "*a"
  f:close()
  local at, frames = 14, 0
  local function skip() repeat local n = s:byte(at) at = at + 1 + n until n == 0 end
  while s:sub(at, at) ~= ";" do
    local kind = s:sub(at, at)
    if kind == "!" then at = at + 2 skip()
    elseif kind == "," then
      local flags = s:byte(at + 9)
      at = at + 10 + (flags >= 128 and 3 * 2 ^ (flags % 8 + 1) or 0) + 1
      skip()
      frames = frames + 1
    else return nil end
  end
  return s:sub(1, 6) == "GIF89a" and frames
end

local function export(name, more)
  local o = view.parse { "x", "out=" .. path(name), "size=480x320" }
  return view.export(fake.new { corridor = 4 }, more or what, o), path(name)
end

t.test("an episode as a GIF: every frame is in the file", function()
  local frames, file = export "episode.gif"
  t.ok(frames >= 4 + 15, "an episode and its last frame held")
  t.eq(gif_frames(file), frames)
end)

t.test("an episode as an MP4, or an error that names ffmpeg", function()
  if os.execute "command -v ffmpeg >/dev/null 2>&1" ~= 0 then
    t.raises(function() export "episode.mp4" end, "ffmpeg")
    t.ok(not lfs.attributes(path "episode.mp4.tmp"))
    t.skip "ffmpeg is not installed"
  end
  local _, file = export "episode.mp4"
  local f = assert(io.open(file, "rb"))
  t.eq(f:read(8):sub(5, 8), "ftyp")
  f:close()
end)

t.test("a picture of an episode shows how it ended", function()
  local seen
  export("last.png", scene.new { draw = function(page, now)
    page:rect(0, 0, 9, 9)
    seen = now.outcome
  end })
  t.ok(seen and seen.length >= 4 and lfs.attributes(path "last.png"))
end)

t.test("a full disk and a folder that is not there: an error, and no file left", function()
  assert(lfs.link("/dev/full", path "full.png.tmp", true))       -- where the bytes go before they take the name
  t.raises(function() export "full.png" end, "No space left")
  t.ok(not lfs.attributes(path "full.png") and not lfs.symlinkattributes(path "full.png.tmp"))
  for _, name in ipairs { "no/a.png", "no/a.gif", "no/a.mp4" } do
    t.raises(function() export(name) end, "No such file")
  end
  local broken = scene.new { draw = function() error "a mistake in a scene" end }
  for _, name in ipairs { "broken.gif", "broken.mp4" } do
    t.raises(function() export(name, broken) end, "a mistake in a scene")
    t.ok(not lfs.attributes(path(name)) and not lfs.attributes(path(name .. ".tmp")), "nothing is left")
  end
end)

-- ---- the command ----

t.test("the command line of mneme view", function()
  local o = view.parse { "runs/a", "out=x.GIF", "size=640x480", "--scene=memory" }
  t.eq(o.what, "runs/a") t.eq(o.kind, "gif") t.eq(o.width, 640) t.eq(o.height, 480) t.eq(o.scene, "memory")
  for _, bad in ipairs { { "x", "size=9x9" }, { "x", "out=x.bmp" }, { "x", "y" }, {}, { "x", "colour=red" } } do
    local ok, e = pcall(view.parse, bad)
    t.ok(not ok and e.status == 2, "a usage error has status 2")
  end
  t.eq(scene.for_task "tmaze-v0", "tmaze")
  t.eq(scene.for_task "pong-v1", "memory")
end)

t.test("keys: play, step, step back, speed, help, quit", function()
  local p = view.playback(fake.new { corridor = 4 }, what)
  local lib, clock = scene.library(), 0
  local function press(key) return p:key(type(key) == "string" and key:byte() or key, clock) end
  p:tick(clock)
  t.eq(p.at, 1)
  press " "
  clock = 10
  p:tick(clock)
  t.eq(p.at, 1, "paused")
  press(lib.MN_KEY_RIGHT) press(lib.MN_KEY_RIGHT)
  t.eq(p.at, 3)
  local third = p:frame().value
  press(lib.MN_KEY_LEFT)
  t.eq(p.at, 2)
  press(lib.MN_KEY_RIGHT)
  t.eq(p:frame().value, third, "forward again shows what was seen")
  press(lib.MN_KEY_LEFT) press(lib.MN_KEY_LEFT) press(lib.MN_KEY_LEFT)
  t.eq(p.at, 1)
  press " "
  for i = 1, 40 do clock = 10 + i / 10 p:tick(clock) end
  t.ok(p.at > 30, "at 10 frames a second, four seconds show 40")
  local outcomes = 0
  for _, frame in ipairs(p.film.frames) do outcomes = outcomes + (frame.outcome and 1 or 0) end
  t.ok(outcomes >= 2, "episodes end")
  local speed = p:frame().status.speed
  press "+"
  t.ok(p:frame().status.speed ~= speed)
  press "h"
  t.ok(p.help)
  press "n"
  t.eq(p.source.copy, 1)
  t.ok(press "q" and press(27))
end)

t.test("frames kept for stepping back stay within their memory", function()
  local film, player = recorder.new(2e6), fake.new { core = "galite", corridor = 30 }
  for _ = 1, 12 do film:add(player:next()) end
  t.ok(film.bytes <= 2e6 or #film.frames == 2)
  t.eq(film.frames[#film.frames].step, 11)
end)

-- ---- the live file ----

local function writer(name, task, n)
  return live.writer(path(name), { title = "a test", task = task, memory = { ["layers.0.h"] = { shape = { n }, dims = "D" } } })
end

local function snapshot(w, task, value, n, copy)
  local memory = ffi.new("float[?]", n)
  for i = 0, n - 1 do memory[i] = value end
  w:write { copy = copy or 0, action = 3, reward = -0.1, value = value, step = value, episode = 0, ret = 0, total = 1e6 + value,
    observation = task.obs + 16 * (copy or 0), policy = ffi.new("float[4]", { 0.1, 0.2, 0.3, 0.4 }),
    memory = { ["layers.0.h"] = memory }, probes = {} }
end

local function tmaze()
  local task = mn.env("tmaze", { corridor = 9, num_envs = 2, seed = 4 })
  task.obs = task:reset(4):data()
  return task
end

t.test("a live file carries what the trainer saw", function()
  local task = tmaze()
  local w = writer("live", task, 5)
  local r = live.reader(path "live")
  t.eq(r:next(), nil, "nothing yet")
  for _ = 1, 3 do task:step { 3, 3 } end
  snapshot(w, task, 7, 5, 1)
  local now = r:next()
  t.eq(now.value, 7) t.eq(now.total, 1e6 + 7) t.eq(now.copy, 1) t.eq(now.action, 3)
  t.eq(now.truth.position, 3) t.eq(now.truth.cue, task:truth(1).cue)
  t.near(now.policy[3], 0.4, 1e-6)
  for i = 0, 15 do t.eq(now.observation.values[i], task.obs[16 + i]) end
  t.eq(now.memory["layers.0.h"].values[4], 7)
  t.ok(C.mn_canvas_count(now.canvas) > 3, "the world is drawn")
  t.eq(r:next(), nil, "nothing new")
  t.ok(paint(what, recorder.new():add(now), 800, 600))
  t.ok(w:due() == false, "not again within 50 ms")
  r:next_copy()
  t.eq(w:wanted(), 1)
  t.eq(r:state(), "running")
  local again = writer("live", task, 5)
  t.eq(r:state(), "replaced")
  w:close()
  again:close()
  local after = live.reader(path "live")
  t.eq(after:state(), "ended")
end)

t.test("heads of a core: shapes and dimensions from its declaration", function()
  local core = { states = { ["layers.0.C"] = "[B,H,V,K]", tick = "[B]" },
    state_shape = function(_, name, B) return name == "tick" and { B } or { B, 2, 3, 4 } end }
  local arrays = heads.of_core(core)
  t.eq(arrays["layers.0.C"].dims, "HVK") t.eq(#arrays["layers.0.C"].shape, 3) t.eq(#arrays.tick.shape, 0)
  local array = { shape = { 2, 3, 2 }, dims = "MHV", values = ffi.new "float[12]" }
  for i = 0, 11 do array.values[i] = i end
  local rows, cols, values = heads.slice(array, 1)
  t.eq(rows, 2) t.eq(cols, 2)
  t.eq(values[0], 2) t.eq(values[1], 3) t.eq(values[2], 8) t.eq(values[3], 9)
end)

local function bytes_of(file)
  local f = assert(io.open(file, "rb"))
  local s = f:read "*a"
  f:close()
  return s
end
local function put(file, s)
  local f = assert(io.open(file, "wb"))
  f:write(s)
  f:close()
end

t.test("a live file that is missing, cut short or garbage is refused", function()
  local task = tmaze()
  local w = writer("whole", task, 50)
  snapshot(w, task, 1, 50)
  local whole = bytes_of(path "whole")
  t.raises(function() live.reader(path "none") end, "view=1")
  t.raises(function() live.reader(folder) end, "cannot be")
  for _, n in ipairs { 0, 1, 20, 79, 80, 200, #whole - 1 } do
    put(path "cut", whole:sub(1, n))
    t.raises(function() live.reader(path "cut") end, "cut short")
  end
  put(path "cut", ("garbage "):rep(1000))
  t.raises(function() live.reader(path "cut") end, "does not begin")
  local seed, survived = 1, 0
  for _ = 1, 300 do                          -- random damage to the head and the schema: an error or a snapshot
    seed = (seed * 1103515245 + 12345) % 2 ^ 31
    local at, value = seed % 600 + 1, math.floor(seed / 2 ^ 16) % 256
    put(path "cut", whole:sub(1, at - 1) .. string.char(value) .. whole:sub(at + 1))
    local ok, r = pcall(live.reader, path "cut")
    if ok then ok = pcall(r.next, r) end
    survived = survived + (ok and 1 or 0)
  end
  t.ok(survived > 0 and survived < 300)
  -- cut while it is watched
  put(path "cut", whole)
  local r = live.reader(path "cut")
  put(path "cut", whole:sub(1, 500))
  t.raises(function() r:next() end, "cut short")
  w:close()
end)

t.test("torn snapshots are never shown", function()
  local task, n = tmaze(), 4000
  local w = writer("torn", task, n)
  snapshot(w, task, 1, n)
  local whole = bytes_of(path "torn")
  local counters = whole:find("\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 41, true)
  t.ok(counters, "begun = 1, done = 1")
  local function with(begun, done)
    local function u64(x) return string.char(x, 0, 0, 0, 0, 0, 0, 0) end
    put(path "damaged", whole:sub(1, counters - 1) .. u64(begun) .. u64(done) .. whole:sub(counters + 16))
    local r = live.reader(path "damaged")
    return r:next()
  end
  t.ok(with(1, 1)) t.ok(with(2, 1), "the other slot is being written")
  t.eq(with(3, 1), nil, "its own slot is being overwritten")
  t.raises(function() with(1, 3) end, "damaged")
  w:close()

  -- a trainer in another process that writes as fast as it can, and is then killed
  local posix = require "posix.unistd"
  local child = posix.fork()
  if child == 0 then
    local mine = writer("busy", task, n)
    for i = 1, 1e9 do snapshot(mine, task, i % 1000, n) end
  end
  local deadline = C.mn_clock(false) + 5
  local function wait_for(f) repeat local ok, r = pcall(f) if ok and r then return r end until C.mn_clock(false) > deadline end
  local r = wait_for(function() return live.reader(path "busy") end)
  local read, torn = 0, 0
  while r and read < 200 and C.mn_clock(false) < deadline do
    local now = r:next()
    if now then
      read = read + 1
      local h = now.memory["layers.0.h"].values
      for i = 0, n - 1 do if h[i] ~= now.value then torn = torn + 1 break end end
    end
  end
  t.eq(r:state(), "running")
  require("posix.signal").kill(child, 9)
  require("posix.sys.wait").wait(child)
  t.eq(torn, 0) t.eq(read, 200)
  t.eq(r:state(), "gone")
  t.ok(live.reader(path "busy"):next(), "its last snapshot can still be seen")
end)

-- ---- windows ----

local function shown_and_read()
  local lib = scene.library()
  local window = engine.check(lib.mn_window_new(engine.ctx, "test", 800, 600))
  local pixels, back = painter:paint(what, (frame_of("agalite", 3)), 800, 600), ffi.new("uint8_t[?]", 800 * 600 * 4)
  engine.check(lib.mn_window_show(window, pixels, 800, 600))
  engine.check(lib.mn_window_read(window, back, 800, 600))
  local event = ffi.new "mn_event"
  while lib.mn_window_poll(window, event) == 1 do end
  t.eq(lib.mn_window_read(window, back, 10, 10), -1, "another size is refused")
  engine.check(lib.mn_window_read(window, back, 800, 600))
  lib.mn_window_free(window)
  local differ = 0
  for i = 0, 800 * 600 * 4 - 1 do if i % 4 < 3 and pixels[i] ~= back[i] then differ = differ + 1 end end
  t.eq(differ, 0, "bytes of the window that are not the picture's")
end

local setenv = require("posix.stdlib").setenv

t.test("a window shows the same pixels (SDL's dummy driver)", function()
  setenv("SDL_VIDEODRIVER", "dummy")
  shown_and_read()
  setenv("SDL_VIDEODRIVER", nil)
end)

t.test("without a display, the message says what to do", function()
  local kept = { os.getenv "DISPLAY", os.getenv "WAYLAND_DISPLAY" }
  setenv("DISPLAY", nil) setenv("WAYLAND_DISPLAY", nil)
  t.raises(function() view.main { "tmaze" } end, "out=FILE.png")
  if kept[1] then setenv("DISPLAY", kept[1]) end
  if kept[2] then setenv("WAYLAND_DISPLAY", kept[2]) end
end)

t.test("a window shows the same pixels (Xvfb)", function()
  if os.execute "command -v Xvfb >/dev/null 2>&1" ~= 0 then t.skip "Xvfb is not installed" end
  local number = 90 + require("posix.unistd").getpid() % 900
  local server = io.popen(("Xvfb :%d -screen 0 1400x900x24 -nolisten tcp >/dev/null 2>&1 & echo $!"):format(number))
  local pid = tonumber(server:read "*l")
  server:close()
  local deadline = C.mn_clock(false) + 5
  while not lfs.attributes("/tmp/.X11-unix/X" .. number) and C.mn_clock(false) < deadline do os.execute "sleep 0.05" end
  local kept = os.getenv "DISPLAY"
  setenv("DISPLAY", ":" .. number)
  local ok, why = pcall(shown_and_read)
  setenv("DISPLAY", kept)
  require("posix.signal").kill(pid, 15)
  if not ok then error(why, 0) end
end)

os.execute("rm -r '" .. folder .. "'")
