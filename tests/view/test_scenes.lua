-- test_scenes.lua -- every scene found draws whole pictures without a window: nothing cut off,
-- nothing overlapping, the same bytes each time, and the same pixels in a file.
local ffi = require "ffi"
local lfs = require "lfs"
local files = require "mneme.base.files"
local t = require "tests.harness"
local canvas = require "mneme.base.canvas"
local engine = require "mneme.base.engine"
local random_stepper = require "tests.support.random_stepper"
local registry = require "mneme.base.registry"
local mn = require "mneme"
local state_arrays = require "mneme.models.state_arrays"
local frames = require "mneme.insight.episodes.frames"
local scene_rig = require "tests.support.scene_rig"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local parsed = require "tests.support.parsed"
local view = require "mneme.commands.view"
local viewer = require "mneme.insight.view.viewer"

local C = engine.C
local folder = shell.folder()
local function path(name) return folder .. "/" .. name end

local painter = scene.painter()

-- The nth frame of a random agent with a core of this kind.
local function frame_of(core, n, corridor)
  local stepper, film = random_stepper.new { core = core, corridor = corridor }, frames.new()
  for _ = 1, n - 1 do film:add(stepper:next()) end
  return film:add(stepper:next()), film
end

local function paint(what, frame, w, h)
  return ffi.string(painter:paint(what, frame, w, h), w * h * 4)
end

-- ---- scenes ----

local sizes = { { 640, 480 }, { 800, 600 }, { 1280, 800 }, { 1920, 1080 } }
local looks = { painter, scene.painter(nil, { theme = "light" }), scene.painter(nil, { scale = 2 }) }
local big = { { 1600, 1200 }, { 3840, 2160 } }                      -- 800x600 and 1920x1080 of a fine screen

local text_boxes = scene_rig.text_boxes

local function check_page(name, by, w, h)
  local boxes = text_boxes(by)
  t.ok(#boxes > 10, name .. ": hardly any text")
  for i, a in ipairs(boxes) do
    t.ok(a.x0 >= 0 and a.x1 <= w and a.y0 >= 0 and a.y1 <= h, ("%s: '%s' is cut off"):format(name, a.text))
    for j = 1, i - 1 do
      local b = boxes[j]
      t.ok(a.x0 >= b.x1 or b.x0 >= a.x1 or a.y0 >= b.y1 or b.y0 >= a.y1,
        ("%s: '%s' overlaps '%s'"):format(name, a.text, b.text))
    end
  end
  local list = C.mn_canvas_shapes(by.view.shapes)
  for i = 0, C.mn_canvas_count(by.view.shapes) - 1 do
    local s = list[i]
    if s.kind == canvas.RECT or s.kind == canvas.HEAT then
      local inside = s.x >= 0 and s.y >= 0 and s.x + s.w <= w + 0.01 and s.y + s.h <= h + 0.01
      t.ok(inside, name .. ": a box leaves the page")
    end
  end
end

for _, name in ipairs(scene.list()) do
  local what = scene.load(name)
  for _, core in ipairs { "agalite", "galite", "gru", "none" } do
    t.test(("scene %s with %s: fits, at every size"):format(name, core), function()
      local frame, film = frame_of(core, 9, 20)
      local ended = film:finish({ score = 1, ret = 2.1, length = 21 }, 4)
      ended.status = { playing = true, speed = "500 steps/s", hint = "h: help", note = "saved x-3-17.png" }
      for _, size in ipairs(sizes) do
        local w, h = size[1], size[2]
        for _, shown in ipairs { frame, ended } do
          painter:draw(what, shown, w, h)                                   -- shapes say where all is; pixels take most of the time
          check_page(("%s %s %dx%d"):format(name, core, w, h), painter, w, h)
          if size == sizes[2] then t.ok(paint(what, shown, w, h) == paint(what, shown, w, h), "painting twice gives the same bytes") end
        end
      end
    end)
  end

  t.test(("scene %s on its own environment: fits, dark and light, on coarse and fine screens"):format(name), function()
    local frame, film = scene_rig.frame(what, 60)
    local ended = film:finish({ score = 0.25, ret = -11.5, length = 1021 }, 1)
    for i, by in ipairs(looks) do
      for _, size in ipairs(by.view.scale == 2 and big or { sizes[2], sizes[4] }) do
        for _, shown in ipairs { frame, ended } do
          by:draw(what, shown, size[1], size[2])
          check_page(("%s, look %d, %dx%d"):format(name, i, size[1], size[2]), by, size[1], size[2])
        end
      end
      by:fill()
    end
  end)

  t.test("scene " .. name .. ": fits with a layer, a head, a step chosen; what is not there is not", function()
    local frame, w, h = scene_rig.frame(what, 60), nil, nil
    local function page(by, size, selection)
      w, h = size[1], size[2]
      by:draw(what, setmetatable({ selection = selection }, { __index = frame }), w, h)
      check_page(("%s with a selection, %dx%d"):format(name, w, h), by, w, h)
      for i = 1, by.view.n_spots do
        local s = by.view.spots[i]
        t.ok(s.x >= 0 and s.y >= 0 and s.x + s.w <= w + 1 and s.y + s.h <= h + 1, "a spot leaves the page")
        t.ok(s.what.select or s.what.steps or s.what.visit or s.what.erase, "a spot means nothing")
      end
    end
    local function pixels(selection)
      page(painter, sizes[2], selection)
      return ffi.string(painter:fill(), w * h * 4)
    end
    for _, selection in ipairs { { layer = 1 }, { head = 1 }, { layer = 1, head = 0, step = 7 }, { layer = 0, head = 1 }, { ago = true } } do
      for _, size in ipairs(sizes) do page(painter, size, selection) end
      page(looks[3], big[1], selection)
    end
    local all = pixels(nil)
    for _, selection in ipairs { {}, { layer = 9 }, { head = 9 }, { layer = 9, head = 9, step = 1e6 } } do
      t.ok(pixels(selection) == all, "what is not there is not chosen")
    end
  end)

  t.test("scene " .. name .. ": shows what changes", function()
    local first, film = frame_of("agalite", 1)
    local stepper = random_stepper.new {}
    stepper:next()
    local second = film:add(stepper:next())
    t.ok(paint(what, first, 800, 600) ~= paint(what, second, 800, 600))
  end)

  t.test("scene " .. name .. ": cannot change what it sees", function()
    local meddling = scene.new { draw = function(_, now) now.step = 0 end }
    t.raises(function() painter:paint(meddling, (frame_of("gru", 1)), 800, 600) end, "read%-only")
  end)
end

t.test("numbers in the header stand clear of each other, however large", function()
  local frame = frame_of("agalite", 30, 20)
  for _, n in ipairs { 0, 8414, -7425339.4, 1.2e9, -3.4e38, 12345678 } do
    local large = setmetatable({ reward = n, ret = -n * 7, value = n / 3, episode = 9876543, step = 1234567,
      status = { playing = true, speed = "500 steps/s", hint = "h: help" } }, { __index = frame })
    for _, name in ipairs { "mind", "tmaze" } do
      for _, size in ipairs { sizes[1], sizes[3] } do
        painter:draw(scene.load(name), large, size[1], size[2])
        check_page(("%s, numbers of %g, %dx%d"):format(name, n, size[1], size[2]), painter, size[1], size[2])
      end
    end
  end
end)

t.test("numbers that are not finite do not stop the picture", function()
  local stepper, film = random_stepper.new {}, frames.new()
  for _, bad in ipairs { 0 / 0, math.huge, -math.huge } do
    local now = stepper:next()
    now.value, now.policy, now.reward = bad, { bad, bad, bad, bad }, bad
    now.observation.values = { bad }
    now.observation.shape = { 1 }
    for _, arrays in ipairs { now.memory, now.probes } do
      for _, array in pairs(arrays) do array.values[0] = bad end
    end
    local frame = film:add(now)
    for _, name in ipairs(scene.list()) do paint(scene.load(name), frame, 800, 600) end
  end
end)

t.test("scenes and panels are small", function()
  for kind, most in pairs { scenes = 60, ["scenes/panels"] = 120 } do
    local names = registry.names(kind)
    t.ok(#names >= 2, kind .. " are found")
    for _, name in ipairs(names) do
      local lines = 0
      for _ in io.lines(registry.file(kind, name, "file")) do lines = lines + 1 end
      t.ok(lines < most, ("%s/%s.lua has %d lines"):format(kind, name, lines))
    end
  end
end)

t.test("a scene that does not exist, or is wrong, says so", function()
  t.raises(function() scene.load "tmaz" end, "tmaz")
  t.fails(function() scene.new { draw = 3 } end)
  t.raises(function() scene.new { draw = print, cor = 1 } end, "unknown")
  t.raises(function() return scene.panels.nothing end, "nothing")
end)

t.test("a layout that cannot be laid says which part, given as a table or by a function", function()
  local frame = frame_of("gru", 2, 4)
  local function laid(layout) return { scene.new { layout = layout }, frame } end
  local self = { "rows" }
  self[2] = { "1*", "rows", self }
  for _, layout in ipairs { 3, "world", {}, { "row", { "1*", "world" } }, { "rows", "world" }, { "rows", { "x*", "world" } }, { "rows", { "0*", "world" } },
    { "rows", { -1, "world" } }, { "rows", { 0 / 0, "world" } }, { "rows", { "1*", print } }, { "rows", { "1*", { "world" } } }, self } do
    for _, given in ipairs { layout, function() return layout end } do
      t.raises(function() local it = laid(given) paint(it[1], it[2], 800, 600) end, "scene: layout: ")
    end
  end
end)

t.test("every panel in a layout draws without options, or the error names the panel and the scene's line", function()
  local frame = frame_of("gru", 2, 4)
  for _, panel in ipairs(require "mneme.base.registry".names "scenes/panels") do
    local it = scene.new { layout = { "rows", { "1*", panel } } }
    local ok, why = pcall(paint, it, frame, 800, 600)
    t.ok(ok or tostring(why):find("test_scenes.lua:%d+: scene: layout: panel " .. panel .. " with no options: "), tostring(why))
  end
end)

t.test("every panel, and what divides a box, names a box or a frame that is none with the scene's line", function()
  local frame = frame_of("gru", 2, 4)
  for _, name in ipairs(registry.names "scenes/panels") do
    t.raises(function() painter:paint({ draw = function(v) scene.panels[name](v, v.box) end }, frame, 640, 480) end, ("panel %s: now is missing"):format(name))
    t.raises(function() painter:paint({ draw = function(v) scene.panels[name](v) end }, frame, 640, 480) end, ("panel %s: now is missing"):format(name))
  end
  for _, wrong in ipairs { function(v) v:split(nil, "rows", { "1*" }) end, function(v) v:split({ 1, 2, 3, 4 }, "rows", { "1*" }) end,
    function(v) v:split(v.box, "diagonal", { 1 }) end, function(v) v:split(v.box, "rows") end, function(v) v:split(v.box, "rows", { "x*" }) end,
    function(v) v:split(v.box, "rows", { true }) end, function(v) v:inset(3, 2) end } do
    local ok, why = pcall(painter.paint, painter, { draw = wrong }, frame, 640, 480)
    t.ok(not ok and tostring(why.where):find "test_scenes.lua", tostring(why))
  end
end)

t.test("a panel of one's own is drawn by the scene that is named, also of a run", function()
  shell.fine(folder, "run train env=tmaze env.corridor=3 core=gru core.d_model=4 hidden=4 num_envs=2 num_steps=16 steps=64 threads=1 run=shown")
  files.make_folder(path "scenes")
  files.make_folder(path "scenes/panels")
  files.write(path "scenes/own.lua", { 'local mn = require "mneme"\n',
    "return mn.scene { draw = function(view, now) mn.scene.panels.own(view, view.box, now) end }" })
  files.write(path "scenes/panels/own.lua", { "return function(view, box, now) view:inset(box, 4) end" })
  shell.stranger(folder, "view shown scene=own out=own.png")
  t.ok(files.is_file(path "own.png"))
end)

t.test("a scene is a name, or the path of a file, whatever it is called; a file that is not there is named", function()
  local dir = shell.folder()
  files.write(dir .. "/ma scène.lua", { (files.read(registry.root .. "scenes/compact.lua")) })
  local said, status = shell.mneme(dir, "view tmaze 'scene=ma scène.lua' out=a.png")
  t.eq(status, 2, "tmaze is a scene itself: " .. said)
  shell.fine(dir, "view 'ma scène.lua' out=a.png")
  t.ok(files.is_file(dir .. "/a.png"))
  shell.fine(dir, "play tmaze 'scene=ma scène.lua' keys=up out=b.png")
  t.ok(files.is_file(dir .. "/b.png"))
  shell.refused(dir, "view nowhere.lua out=a.png", "nowhere.lua: there is no such file")
  os.execute("rm -r '" .. dir .. "'")
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
  inside("rect", rect, 10, 10) inside("rect", rect, 19, 14)
  outside("rect", rect, 20, 14) outside("rect", rect, 10, 15)
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

t.test("axes end where numbers are too close together, or too large, to be told apart", function()
  for _, r in ipairs { { 1e17, 1e17 }, { 1e17, 1e17 + 16 }, { 0, 0 }, { 0, 1e-300 }, { -1 / 0, 1 / 0 }, { 0 / 0, 1 } } do
    paint({ draw = function(v) v:axes(v.box, r[1], r[2], r[1], r[2], "x", "y") end }, {}, 320, 240)
  end
end)

t.test("heat maps: first row on top, ends of the map, means of what is smaller than a pixel", function()
  local values = ffi.new("float[4]", { 0, 1, 1, 0 })
  local function heat(side, n, numbers)
    local box = { x = 0, y = 0, w = side, h = side }
    return paint({ draw = function(v) v:heat(box, n, n, numbers, 0, 1) end }, {}, 40, 40)
  end
  local pixels = heat(40, 2, values)
  t.eq(pixel(pixels, 40, 5, 5), 0x18)
  t.eq(pixel(pixels, 40, 35, 5), 0xEA)
  t.eq(pixel(pixels, 40, 5, 35), 0xEA)
  local many = ffi.new "float[1600]"
  for i = 0, 1599 do many[i] = i % 2 end
  local r, g, b = pixel(heat(20, 40, many), 40, 10, 10)
  local red, green, blue = pixel(heat(20, 1, ffi.new("float[1]", 0.5)), 40, 10, 10)
  t.ok(r == red and g == green and b == blue, "the mean of 0 and 1 has the colour of 0.5")
end)

t.test("pictures: first row on top, means of what is smaller than a pixel, and they travel with their canvas", function()
  local rgb = ffi.new("uint8_t[12]", { 255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30 })
  local function image(side) return function(v) v:image({ x = 0, y = 0, w = side, h = side }, 2, 2, rgb) end end
  local function shows(what, pixels, x, y, r, g, b)
    t.eq(("%d %d %d"):format(pixel(pixels, 40, x, y)), ("%d %d %d"):format(r, g, b), what)
  end
  local pixels = paint({ draw = image(40) }, {}, 40, 40)
  shows("upper left", pixels, 5, 5, 255, 0, 0)
  shows("upper right", pixels, 35, 5, 0, 255, 0)
  shows("lower left", pixels, 5, 35, 0, 0, 255)
  shows("lower right", pixels, 35, 35, 10, 20, 30)
  shows("the mean of all four", paint({ draw = image(1) }, {}, 40, 40), 0, 0, 66, 69, 71)
  local small = ffi.gc(C.mn_canvas_new(engine.ctx), C.mn_canvas_free)
  for _ = 1, 3 do t.eq(C.mn_canvas_image(small, 0, 0, 1, 1, 2, 2, rgb), 0) end
  C.mn_canvas_image(small, 1, 0, 1, 1, 1, 1, rgb + 9)
  local function both(v) v:append(small, { x = 0, y = 0, w = 40, h = 20 }) end
  pixels = paint({ draw = both }, {}, 40, 40)
  shows("of the first, in its half", pixels, 2, 15, 0, 0, 255)
  shows("of the last", pixels, 30, 10, 10, 20, 30)
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

t.test("whatever numbers, bytes and things that are none a scene draws with, the page is painted or the call refused", function()
  local odd = { 0, -1, 0.01, 5, 100, 1e9, -1e9, 3e38, -3e38, 1e300, 0 / 0, 1 / 0, -1 / 0 }
  local texts, calls = { "", "a", "\128\128", "\237\160\128 \255", ("x"):rep(300) }, 0
  local function any(list) return list[math.random(#list)] end
  local function n() return any(odd) end
  local function box() return { x = n(), y = n(), w = n(), h = n() } end
  local draws = { function(v) v:rect(n(), n(), n(), n(), n()) end, function(v) v:disc(n(), n(), n()) end, function(v) v:frame(n(), n(), n(), n(), nil, n()) end,
    function(v) v:line(n(), n(), n(), n(), nil, n()) end, function(v) v:triangle(n(), n(), n(), n(), n()) end, function(v) v:fit(any(texts), n(), n()) end,
    function(v) v:text(any(texts), n(), n(), n(), nil, any { "left", "center", "right" }, n()) end, function(v) v:card(box(), any(texts), any(texts)) end,
    function(v) v:heat(box(), n(), n(), any { false, ffi.new "float[4]", {} }, n(), n()) end, function(v) mn.ui.hatch(v, n(), n(), n(), n()) end,
    function(v) v:image(box(), n(), n(), any { false, "abc", ffi.new "uint8_t[9]" }) end, function(v) v:append(any { false, v.shapes, {} }, box()) end }
  math.randomseed(7)
  for _ = 1, 60 do
    paint({ draw = function(v)
      for _ = 1, 40 do calls = calls + (pcall(any(draws), v) and 1 or 0) end
      v:line(-3e38, 0, 3e38, 0.01) v:triangle(3e38, 9, 3e38, 3e38, 0)
    end }, {}, 64, 48)
  end
  t.ok(calls > 1000, calls .. " calls drew")
end)

t.test("a text that is none is an error of the scene", function()
  for _, bad in ipairs { function(v) v:text(nil, 5, 5, 13) end, function(v) v:text_width(nil, 13) end,
    function(v) v:text(3, 5, 5, 13) end, function(v) v:card(v.box) end } do
    t.fails(function() paint({ draw = bad }, {}, 200, 40) end)
  end
end)

t.test("a canvas refuses numbers that are not finite, and sizes that are not pictures", function()
  local empty = ffi.gc(C.mn_canvas_new(engine.ctx), C.mn_canvas_free)
  t.eq(C.mn_canvas_add(empty, canvas.RECT, 0, 0 / 0, 0, 1, 1), -1)
  t.eq(C.mn_canvas_add(empty, 99, 0, 0, 0, 1, 1), -1)
  t.eq(C.mn_canvas_heat(empty, 0, 0, 1, 1, 0, 5, nil, 0, 1, 0), -1)
  t.eq(C.mn_canvas_image(empty, 0, 0, 1, 1, 5, 0, nil), -1)
  t.eq(C.mn_canvas_image(empty, 0, 0, 0 / 0, 1, 1, 1, ffi.new "uint8_t[3]"), -1)
  t.eq(C.mn_canvas_text(empty, 0, 0, 0, 1, nil), -1)
  t.eq(C.mn_canvas_count(empty), 0)
  t.raises(function() painter:paint({ draw = function() end }, {}, 0, 10) end, "0x10")
end)

t.test("a heat map that a canvas refuses leaves the earlier ones as they were", function()
  local function pixels(spoil)
    local shapes, others = ffi.gc(C.mn_canvas_new(engine.ctx), C.mn_canvas_free), {}
    local ramp = ffi.new "float[60]"
    for i = 0, 59 do ramp[i] = i / 59 end
    t.eq(C.mn_canvas_heat(shapes, 0, 0, 60, 4, 1, 60, ramp, 0, 1, 0), 0)
    if spoil then
      t.eq(C.mn_canvas_heat(shapes, 0 / 0, 0, 1, 1, 100, 100, ffi.new "float[10000]", 0, 1, 0), -1)
      for i = 1, 8 do                                                  -- they take memory that was freed
        others[i] = ffi.gc(C.mn_canvas_new(engine.ctx), C.mn_canvas_free)
        t.eq(C.mn_canvas_heat(others[i], 0, 0, 1, 1, 1, 60, ffi.new("float[60]", 1), 0, 1, 0), 0)
      end
    end
    engine.check(painter.lib.mn_raster_paint(painter.raster, shapes, 0xFF, 60, 4))
    return ffi.string(painter.lib.mn_raster_pixels(painter.raster), 60 * 4 * 4)
  end
  t.ok(pixels(true) == pixels(false), "other pixels")
end)

t.test("heads of a core: shapes and dimensions from its declaration", function()
  local core = mn.core("galite", { n_layers = 1, n_heads = 2, d_head = 3, eta = 1 })
  core.states.mask, core.sizes.M = "[M,B,K]", 2                       -- a state whose copies come second
  local arrays = state_arrays.of_core(core)
  t.eq(arrays["layers.0.C"].dims, "HVK") t.eq(#arrays["layers.0.C"].shape, 3)
  t.eq(arrays.mask.dims, "MK") t.eq(table.concat(arrays.mask.shape, ","), "2,3")
  local mask = mn.tensor { shape = { 2, 4, 3 } }
  for i = 0, 23 do mask:data()[i] = i end
  local of_copy = state_arrays.env_reader(core, "mask", mask)(1)
  t.eq(of_copy[0], 3) t.eq(of_copy[2], 5) t.eq(of_copy[3], 15) t.eq(of_copy[5], 17)
  local array = { shape = { 2, 3, 2 }, dims = "MHV", values = ffi.new "float[12]" }
  for i = 0, 11 do array.values[i] = i end
  local rows, cols, values = state_arrays.slice(array, 1)
  t.eq(rows, 2) t.eq(cols, 2)
  t.eq(values[0], 2) t.eq(values[1], 3) t.eq(values[2], 8) t.eq(values[3], 9)
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
  local at, count = 14, 0
  local function skip() repeat local n = s:byte(at) at = at + 1 + n until n == 0 end
  while s:sub(at, at) ~= ";" do
    local kind = s:sub(at, at)
    if kind == "!" then at = at + 2 skip()
    elseif kind == "," then
      local flags = s:byte(at + 9)
      at = at + 10 + (flags >= 128 and 3 * 2 ^ (flags % 8 + 1) or 0) + 1
      skip()
      count = count + 1
    else return nil end
  end
  return s:sub(1, 6) == "GIF89a" and count
end

local function export(name, more)
  local o = view.prepare(parsed(view, { "x", "out=" .. path(name), "size=480x320" }))
  local shown = viewer.new({ { source = random_stepper.new { corridor = 4 }, scene = more or what } }, { controls = false })
  return view.export(shown, o), path(name)
end

t.test("an episode as a GIF: every frame is in the file", function()
  local count, file = export "episode.gif"
  t.ok(count >= 4 + 15, "an episode and its last frame held")
  t.eq(gif_frames(file), count)
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
  files.make_folder(path "full")
  if os.execute(("mount -t tmpfs -o size=4k tmpfs '%s' 2>/dev/null"):format(path "full")) == 0 then
    local refused, problem = pcall(t.raises, function() export "full/full.png" end, "No space left")
    local left = files.list(path "full")
    os.execute(("umount '%s'"):format(path "full"))
    t.ok(refused, tostring(problem))
    t.eq(#left, 0)
  end
  for _, name in ipairs { "no/a.png", "no/a.gif", "no/a.mp4" } do
    t.fails(function() export(name) end)
  end
  local broken = scene.new { draw = function() error "a mistake in a scene" end }
  for _, name in ipairs { "broken.gif", "broken.mp4" } do
    t.fails(function() export(name, broken) end)
    t.ok(not lfs.attributes(path(name)) and not lfs.attributes(path(name .. ".tmp")), "nothing is left")
  end
end)

os.execute("rm -r '" .. folder .. "'")
