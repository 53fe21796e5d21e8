-- test_window.lua -- windows: they show the pixels that were painted, and tell what keyboard, pointer and gamepads
-- do; spots are clicked; and the program in a real window, used as people use it.
local ffi = require "ffi"
local t = require "tests.harness"
local canvas = require "mneme.base.canvas"
local xvfb = require "tests.support.xvfb"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local random_stepper = require "tests.support.random_stepper"
local files = require "mneme.base.files"
local human_play = require "mneme.insight.view.human_play"
local frames = require "mneme.insight.episodes.frames"
local scene_rig = require "tests.support.scene_rig"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local parsed = require "tests.support.parsed"
local view = require "mneme.commands.view"
local window = require "mneme.insight.view.window"
local setenv = require("posix.stdlib").setenv

local C, lib, painter, folder = engine.C, scene.library(), scene.painter(), shell.folder()

-- ---- spots ----

t.test("spots: the last one drawn that holds the point; gone when the page is cleared", function()
  local page = painter.view
  page:clear(400, 300)
  local under, over = {}, {}
  page:spot({ x = 10, y = 10, w = 100, h = 50 }, under)
  page:spot({ x = 50, y = 10, w = 10, h = 10 }, over)
  t.eq(page:spot_at(10, 10), under)
  t.eq(page:spot_at(109.5, 59.5), under)
  t.eq(page:spot_at(55, 15), over)
  t.eq(page:spot_at(55, 25), under)
  for _, at in ipairs { { 9, 10 }, { 110, 10 }, { 20, 60 }, { 300, 200 } } do t.eq(page:spot_at(at[1], at[2]), nil) end
  local _, box = page:spot_at(55, 15)
  t.eq(box.x, 50) t.eq(box.w, 10)
  page:clear(400, 300)
  t.eq(page:spot_at(55, 15), nil)
  t.fails(function() page:spot({ x = 0, y = 0, w = 1, h = 1 }, "key") end)
end)

-- ---- beyond the page ----

-- The pixels of what `draw` draws.
local function painted(draw, w, h) return ffi.string(painter:paint({ draw = draw }, {}, w, h), w * h * 4) end

t.test("what lies far outside of the page is no trouble, and no wrong picture", function()
  local heat = ffi.new "float[1000]"
  for i = 0, 999 do heat[i] = i % 2 end
  local function draw_at(by, dx, dy)
    return function(page)
      page:heat({ x = dx, y = dy, w = 300 * by, h = 200 * by }, 1, 1000, heat, 0, 1)
      page:rect(dx, dy, 300 * by, 100 * by, 0x80808080)
      page:line(dx, dy, 300 * by + dx, 200 * by + dy, 0xFF0000FF, 2 * by)
      page:disc(150 * by + dx, 100 * by + dy, 50 * by, 0x00FF0080)
      page:triangle(100 * by + dx, 50 * by + dy, 100 * by, 100 * by, 1, 0x0000FF80)
      for i = 1, 40 do page:text("outside, inside, outside", i * 7 * by + dx, i * 5 * by + dy, 5) end
    end
  end
  for _, by in ipairs { 1e3, 1e5, 1e6 } do
    t.ok(painted(draw_at(by, -150 * by, -100 * by), 300, 200))
    t.ok(painted(draw_at(by, 1e9, -1e9), 300, 200) == painted(function() end, 300, 200), "all of it is outside")
  end
  -- 1000 cells over 300,000 pixels: at the 150,000th the middle of the row, 300 pixels each, from white to black
  local pixels = painted(function(page) page:heat({ x = -150000, y = 0, w = 300000, h = 10 }, 1, 1000, heat, 0, 1) end, 900, 10)
  for i = 0, 2 do
    local dark, light = { 0x18, 0x1E, 0x28 }, { 0xEA, 0xF6, 0xFF }
    local want = i % 2 == 0 and dark or light
    for _, x in ipairs { 300 * i + 1, 300 * i + 298 } do t.eq(pixels:byte(4 * x + 1), want[1], "pixel " .. x) end
  end
end)

-- ---- a window in this process ----

local opened = {}
local function open(w, h)
  local shown = engine.check(lib.mn_window_new(engine.ctx, "test", w, h))
  opened[#opened + 1] = shown
  return shown
end
local function close_all()                             -- before their screen goes, else it takes this process along
  while #opened > 0 do lib.mn_window_free(table.remove(opened)) end
end

-- All events, at least n of them, until none has come for a moment.
local function events(shown, n)
  local event, list, begun = ffi.new "mn_event", {}, C.mn_clock(false)
  local quiet = begun + 0.05
  while C.mn_clock(false) < (#list < (n or 0) and begun + 20 or quiet) do
    lib.mn_window_wait(shown, 0.02)
    while lib.mn_window_poll(shown, event) == 1 do
      list[#list + 1] = { kind = event.kind, key = event.key, x = event.x, y = event.y }
      quiet = C.mn_clock(false) + 0.05
    end
  end
  return list
end

-- The keys among them.
local function keys_of(list)
  local keys = {}
  for _, e in ipairs(list) do if e.kind == lib.MN_EVENT_KEY then keys[#keys + 1] = tonumber(e.key) end end
  return keys
end

local function shows_what_was_painted()
  local shown = open(800, 600)
  local pixels = painter:paint(scene.load "tmaze", frames.new():add(random_stepper.new():next()), 800, 600)
  local back = ffi.new("uint8_t[?]", 800 * 600 * 4)
  engine.check(lib.mn_window_show(shown, pixels, 800, 600))
  engine.check(lib.mn_window_read(shown, back, 800, 600))
  events(shown)
  t.eq(lib.mn_window_read(shown, back, 10, 10), -1, "another size is refused")
  engine.check(lib.mn_window_read(shown, back, 800, 600))
  t.eq(lib.mn_window_scale(shown), 1)
  local differ = 0
  for i = 0, 800 * 600 * 4 - 1 do if i % 4 < 3 and pixels[i] ~= back[i] then differ = differ + 1 end end
  t.eq(differ, 0, "bytes of the window that are not the picture's")
end

-- A test without a screen, and one with a screen of its own.
local function without_screen(name, f)
  t.test(name .. " (SDL's dummy driver)", function()
    setenv("SDL_VIDEODRIVER", "dummy")
    local ok, why = pcall(f)
    close_all()
    setenv("SDL_VIDEODRIVER", nil)
    if not ok then error(why, 0) end
  end)
end
local function on_screen(name, f)
  t.test(name .. " (Xvfb)", function()
    local screen, missing = xvfb.start(1400, 900)
    if not screen then t.skip(missing) end
    local ok, why = pcall(f, screen)
    close_all()
    screen:stop()
    if not ok then error(why .. "\nthe program said: " .. (files.is_file(folder .. "/said") and files.read(folder .. "/said") or ""), 0) end
  end)
end

without_screen("a window shows the same pixels", shows_what_was_painted)
on_screen("a window shows the same pixels", shows_what_was_painted)

-- SDL's own message to a window can come when it is gone, and Xlib's answer to what X says then is to end the process.
on_screen("a message to a window that is gone ends nothing", function(screen)
  for _ = 1, 6 do                                  -- quick ones, with a key on its way as they close
    local shown = open(640, 480)
    local at = screen:window "test"
    screen:keys "Escape"
    lib.mn_window_wait(shown, 5)
    close_all()
    screen:close(at)                               -- by this process: X answers it, too, that there is no such window
  end
  t.eq(screen:xdotool "search --name 'test$'", nil)
end)

on_screen("keys come as typed, the pointer in pixels, moves as one", function(screen)
  local shown = open(800, 600)
  events(shown)
  local at = screen:window "test"
  if shell.has "xprop" then
    local icon = shell.run(folder, ("DISPLAY=%s xprop -id %s _NET_WM_ICON"):format(os.getenv "DISPLAY", at.id))
    t.ok(icon:find "64 x 64" or icon:find "= 64, 64", "an icon: " .. icon:sub(1, 200))
  end
  events(shown)
  screen:keys "l shift+l space Return Escape Home End Page_Up Page_Down Left Right Up Down plus equal minus question 7 KP_Add F5"
  local want = { ("l"):byte(), ("L"):byte(), 32, 13, 27, lib.MN_KEY_HOME, lib.MN_KEY_END, lib.MN_KEY_PAGE_UP, lib.MN_KEY_PAGE_DOWN,
    lib.MN_KEY_LEFT, lib.MN_KEY_RIGHT, lib.MN_KEY_UP, lib.MN_KEY_DOWN, 43, 43, 45, 63, 55, 43 }
  t.eq(table.concat(keys_of(events(shown, #want)), " "), table.concat(want, " "))
  screen:click(at, 123, 45)
  screen:click(at, 200, 100, 3)
  screen:click(at, 200, 100, 4)
  screen:click(at, 200, 100, 5)
  local said = {}
  for _, e in ipairs(events(shown, 8)) do said[#said + 1] = ("%d %d %d,%d"):format(e.kind, e.key, e.x, e.y) end
  local function line(kind, key, x, y) return ("%d %d %d,%d"):format(lib["MN_EVENT_" .. kind], key, x, y) end
  t.eq(table.concat(said, "\n"), table.concat({ line("MOVE", 0, 123, 45), line("MOUSE", 1, 123, 45), line("RELEASE", 1, 123, 45),
    line("MOVE", 0, 200, 100), line("MOUSE", 3, 200, 100), line("RELEASE", 3, 200, 100), line("WHEEL", 1, 200, 100),
    line("WHEEL", -1, 200, 100) }, "\n"))
  for _, to in ipairs { { 10, 10 }, { 20, 20 }, { 30, 31 } } do
    screen:xdotool(("mousemove --sync %d %d"):format(at.x + to[1], at.y + to[2]))
  end
  local moves = events(shown, 1)
  t.eq(#moves, 1, "three moves that nobody has looked at are one")
  t.eq(moves[1].kind, lib.MN_EVENT_MOVE) t.eq(moves[1].x, 30) t.eq(moves[1].y, 31)
  screen:xdotool("windowsize --sync " .. at.id .. " 900 700")
  local sizes = events(shown, 1)
  t.eq(sizes[1].kind, lib.MN_EVENT_RESIZE) t.eq(sizes[1].x, 900) t.eq(sizes[1].y, 700)
  local size = ffi.new "int[2]"
  engine.check(lib.mn_window_size(shown, size))
  t.eq(size[0], 900) t.eq(size[1], 700)
  screen:keys "F11"                                    -- the way back is the window manager's, and there is none
  xvfb.wait("F11 to fill the screen", function()
    t.eq(#keys_of(events(shown)), 0, "F11 is the window's own")
    engine.check(lib.mn_window_size(shown, size))
    return size[0] == 1400 and size[1] == 900
  end)
  screen:close(at)
  local list = events(shown, 1)
  t.eq(list[#list].kind, lib.MN_EVENT_QUIT)
end)

on_screen("the title of a window says the same in the locale C", function(screen)
  if not shell.has "xprop" then t.skip "xprop is not installed" end
  local client = { period = 0.01, dirty = true, title = "runs/one", page = function() return { draw = function() end }, {} end, key = function() end }
  function client.tick()
    local name = screen:xdotool "search --onlyvisible --name 'Mneme$' getwindowname %1"
    if name then error("seen " .. name .. shell.run(folder, ("DISPLAY=%s xprop -name '%s' WM_NAME"):format(os.getenv "DISPLAY", name:gsub("\n", ""))), 0) end
  end
  local _, why = pcall(window.run, client, { width = 400, height = 300 })
  t.ok(why:find("runs/one - Mneme\n", 1, true) and why:find('= "runs/one - Mneme"', 1, true), why)
end)

without_screen("a page is as large as asked for by scale=, else as the screen wants it", function()
  for _, scale in ipairs { false, 2 } do
    local client = { period = 0.01, dirty = true, page = function() return { draw = function() end }, {} end, key = function() end }
    function client:tick() if not self.dirty then error("seen", 0) end end
    local ok, why = pcall(window.run, client, { width = 800, height = 600, scale = scale or nil })
    t.ok(not ok and why == "seen", why)
    t.eq(client.canvas.scale, scale or 1)
    t.eq(client.canvas.width, 800) t.near(client.canvas.unit, scale and 0.65 * scale or 0.8, 1e-6)
  end
end)

-- ---- gamepads ----

ffi.cdef [[
int SDL_JoystickAttachVirtual(int type, int axes, int buttons, int hats);
int SDL_JoystickDetachVirtual(int index);
void *SDL_JoystickOpen(int index);
void SDL_JoystickClose(void *joystick);
int SDL_JoystickSetVirtualAxis(void *joystick, int axis, int16_t value);
int SDL_JoystickSetVirtualButton(void *joystick, int button, uint8_t down);
]]
local A, X, START, SHOULDER, DPAD_UP, GAMECONTROLLER = 0, 2, 6, 9, 11, 1        -- SDL_GameControllerButton, SDL_JoystickType

without_screen("a gamepad that is plugged in and out: buttons, d-pad, stick", function()
  local sdl = ffi.load "libSDL2-2.0.so.0"
  setenv("SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS", "1")       -- the dummy driver gives no window the keyboard
  local shown = open(640, 480)
  events(shown)
  local index = sdl.SDL_JoystickAttachVirtual(GAMECONTROLLER, 6, 15, 0)
  if index < 0 then t.skip "this SDL has no virtual gamepads" end
  t.eq(#events(shown), 0)
  local pad = sdl.SDL_JoystickOpen(index)
  local function button(which, down) sdl.SDL_JoystickSetVirtualButton(pad, which, down) end
  -- What a push says, but for its repeats, which come after 0.4 s: on a machine that is busy, at once.
  local held, since = nil, 0
  local function stick(x, y)
    sdl.SDL_JoystickSetVirtualAxis(pad, 0, x)
    sdl.SDL_JoystickSetVirtualAxis(pad, 1, y)
    local said = {}
    for _, key in ipairs(keys_of(events(shown))) do
      if key ~= said[#said] and (key ~= held or C.mn_clock(false) - since < 0.4) then said[#said + 1], held, since = key, key, C.mn_clock(false) end
    end
    if math.max(math.abs(x), math.abs(y)) <= 5000 then held = nil end
    return table.concat(said, " ")
  end
  for which, key in pairs { [A] = lib.MN_PAD_A, [X] = lib.MN_PAD_X, [START] = lib.MN_PAD_START, [SHOULDER] = lib.MN_PAD_L } do
    button(which, 1)
    t.eq(table.concat(keys_of(events(shown, 1))), tostring(tonumber(key)))
    button(which, 0)
    t.eq(#events(shown), 0)
  end
  local LEFT, RIGHT, DOWN = lib.MN_KEY_LEFT, lib.MN_KEY_RIGHT, lib.MN_KEY_DOWN
  t.eq(stick(9000, -9000), "", "where a stick rests it says nothing")
  t.eq(stick(20000, 0), tostring(tonumber(RIGHT)))
  t.eq(stick(12000, 20000), "", "one push is one event, near a diagonal too")
  t.eq(stick(20000, 0), "")
  t.eq(stick(5000, 20000), tostring(tonumber(DOWN)))
  t.eq(stick(0, 0), "")
  t.eq(stick(-32768, 0), tostring(tonumber(LEFT)))
  t.eq(stick(0, 0), "")
  button(DPAD_UP, 1)
  local event, times, first = ffi.new "mn_event", 0, C.mn_clock(false)
  while times < 4 and C.mn_clock(false) < first + 10 do                    -- held, it repeats, though nothing new comes
    lib.mn_window_wait(shown, 5)
    while lib.mn_window_poll(shown, event) == 1 do
      t.eq(event.key, lib.MN_KEY_UP)
      times = times + 1
    end
  end
  t.eq(times, 4)
  t.ok(C.mn_clock(false) - first > 0.6, "slowly")
  sdl.SDL_JoystickClose(pad)
  t.eq(sdl.SDL_JoystickDetachVirtual(index), 0)
  events(shown)
  lib.mn_window_wait(shown, 0.5)
  t.eq(#events(shown), 0, "what is unplugged is not held")
  setenv("SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS", nil)
end)

-- ---- the program, used as people use it ----

-- Start the program in the folder; a function that waits for its end and gives its status and what it said.
local function start(words)
  os.execute(("cd '%s'; rm -f status; { '%s' %s >said 2>&1; echo $? >status; } &"):format(folder, shell.program, words))
  return function()
    local status = xvfb.wait(words .. " to end", function()
      return files.is_file(folder .. "/status") and files.read(folder .. "/status"):match "%d+"
    end)
    return tonumber(status), files.read(folder .. "/said")
  end
end

-- The colour of a window's upper left corner, which is the page's own.
local function corner(screen, at)
  local i = (2 * at.w + 2) * 4
  return ("%02X%02X%02XFF"):format(screen:picture(at):byte(i + 1, i + 3))
end
local function page_is(screen, at, theme)
  local want = bit.tohex(canvas.themes[theme].page):upper()
  xvfb.wait("a page on " .. theme .. " ground", function() return corner(screen, at) == want end)
end

-- How much of two pictures is the same, 0..1: in a box of theirs, or below the header, which tells the time.
local function likeness(a, b, at, box)
  box = box or { x = 0, y = 80, w = at.w, h = at.h - 80 }
  local same, x0, y0, w, h = 0, math.floor(box.x), math.floor(box.y), math.floor(box.w), math.floor(box.h)
  local p, q = ffi.cast("const uint32_t *", a), ffi.cast("const uint32_t *", b)
  for y = y0, y0 + h - 1 do
    for i = y * at.w + x0, y * at.w + x0 + w - 1 do if p[i] == q[i] then same = same + 1 end end
  end
  return same / (w * h)
end

-- Where the mark of a light page's timeline stands, from 0 to 1: the mean of its dark pixels.
local function mark(now, at, box)
  local p, sum, n = ffi.cast("const uint8_t *", now), 0, 0
  for y = math.floor(box.y), math.floor(box.y + box.h) - 1 do
    for x = math.floor(box.x), math.floor(box.x + box.w) - 1 do
      local i = 4 * (y * at.w + x)
      if p[i] + p[i + 1] + p[i + 2] < 180 then sum, n = sum + x - box.x, n + 1 end
    end
  end
  return sum / n / box.w                               -- of none no number, which is neither less nor more
end

local function read_png(path)
  local w, h = ffi.new "int[1]", ffi.new "int[1]"
  engine.check(C.mn_image_read(engine.ctx, path, nil, w, h))
  local pixels = ffi.new("uint8_t[?]", w[0] * h[0] * 4)
  engine.check(C.mn_image_read(engine.ctx, path, pixels, w, h))
  return ffi.string(pixels, w[0] * h[0] * 4), w[0], h[0]
end

on_screen("mneme view RUN: clicks and keys change what is seen, s saves it, the window closes", function(screen)
  local said, status = shell.mneme(folder, "run tmaze corridor=4 core=agalite core.n_layers=1 core.n_heads=2 core.d_head=8 "
    .. "core.d_model=16 core.d_ffn=16 steps=256 num_envs=2 num_steps=64 run=there")
  t.eq(status, 0, said)
  local shown = view.open(view.prepare(parsed(view, { folder .. "/there" })))      -- the same page, drawn here: where its buttons are
  shown:forward()
  local what, frame = shown:page()
  painter:paint(what, frame, 1280, 800)
  local pause, light, scrub = { scene_rig.place_of(painter.view, "pause") }, { scene_rig.place_of(painter.view, "light") }, nil
  for i = 1, painter.view.n_spots do scrub = painter.view.spots[i].what.scrub and painter.view.spots[i] or scrub end
  local wait = start "view there"
  local at = screen:window "Mneme"
  t.eq(at.w, 1280) t.eq(at.h, 800)
  page_is(screen, at, "dark")
  screen:click(at, unpack(light))
  page_is(screen, at, "light")
  screen:click(at, unpack(pause))
  local function looks(name, like)
    xvfb.wait(name, function() return like(screen:picture(at)) end)
    return screen:picture(at)
  end
  screen:keys "Home"
  looks("a page that stands still at its beginning", function(now)
    os.execute "sleep 0.3"
    return mark(now, at, scrub) < 0.03 and now == screen:picture(at)
  end)
  screen:keys "Right Right"
  -- in the timeline alone: readings of the memory may come meanwhile, and they change the rest of the page
  looks("a step", function(now) return mark(now, at, scrub) > 0.05 end)
  screen:click(at, scrub.x + 2, scrub.y + scrub.h / 2)
  looks("the beginning again", function(now) return mark(now, at, scrub) < 0.03 end)
  local function still()
    return looks("a page that stands still", function(now)
      os.execute "sleep 0.3"
      return now == screen:picture(at)
    end)
  end
  xvfb.wait("the help to come and to go", function()          -- once more where readings of the memory came meanwhile, which change the page, too
    local before = still()
    screen:keys "h"
    local help = still()
    screen:keys "h"
    return likeness(before, help, at) < 0.95 and likeness(before, still(), at) > 0.99
  end)
  local before = screen:picture(at)
  screen:keys "s"
  local picture = xvfb.wait("the saved picture", function()
    return shell.run(folder, "ls mneme-*.png 2>/dev/null"):match "[^\n]+%.png"
  end)
  local saved, w, h = read_png(folder .. "/" .. picture)
  t.eq(w, 1280) t.eq(h, 800)
  t.ok(math.max(likeness(saved, before, at), likeness(saved, screen:picture(at), at)) > 0.99, "the file holds what the window showed")
  screen:close(at)
  status, said = wait()
  t.eq(status, 0, said)
end)

on_screen("mneme view SCENE: q closes it, resized it is drawn anew", function(screen)
  local wait = start "view tmaze theme=light"
  local at = screen:window "Mneme"
  page_is(screen, at, "light")
  screen:xdotool("windowsize --sync " .. at.id .. " 900 600")
  at = screen:window "Mneme"
  t.eq(at.w, 900) t.eq(at.h, 600)
  page_is(screen, at, "light")
  screen:keys "q"
  local status, said = wait()
  t.eq(status, 0, said)
end)

on_screen("mneme play: clicks on actions are steps, Esc ends it", function(screen)
  local words = "tmaze corridor=5 seed=3"
  local game = human_play.new(envs.new("tmaze", { corridor = 5, num_envs = 1, seed = 3 }), { scene = scene.load "world" })
  local turn, what, frame = game.env:truth(0).cue == 0 and "up" or "down", game:page()
  painter:paint(what, frame, 1280, 800)
  local place = {}                                 -- where each action is clicked: the same page, drawn here
  for _, name in ipairs(game.env.action_space.names) do place[name] = { scene_rig.place_of(painter.view, name) } end
  local wait = start("play " .. words)
  local at = screen:window "Mneme"
  page_is(screen, at, "dark")
  for _, name in ipairs { "right", "right", "right", "right", turn } do screen:click(at, unpack(place[name])) end
  screen:click(at, 5, 5)                           -- goes on
  screen:click(at, unpack(place.right))
  screen:click(at, unpack(place.right))
  screen:keys "Escape"
  local status, said = wait()
  t.eq(status, 0, said)
  t.ok(said:find "episode 0: score 1.00, return %+[%d.]+, 5 steps", said)
end)

-- Three pieces of wood or more, a table, a wooden pickaxe; four blows more, and time is up.
for _, walk in ipairs {
  { name = "craftax", seed = 117, keys = "Up x Up x Left x t 1", score = "0.01" },
  { name = "craftax_classic", seed = 43, keys = "Up x Up x Up x t 1", score = "0.14" },
} do
  local name = walk.name
  on_screen("mneme play " .. name .. ": its keys gather and make, Tab shows what was achieved, the end is said", function(screen)
    local keys = { Left = lib.MN_KEY_LEFT, Up = lib.MN_KEY_UP, Tab = 9 }
    local game = human_play.new(envs.new(name, { num_envs = 1, seed = walk.seed, time_limit = 12 }), { scene = scene.load "world" })
    local wait = start(("play %s seed=%d time_limit=12"):format(name, walk.seed))
    local at = screen:window "Mneme"
    local function both(words)                     -- what the window shows after these keys: the same page, drawn here
      screen:keys(words)
      for key in words:gmatch "%S+" do game:key(keys[key] or key:byte()) end
      local what, frame = game:page()
      local page = ffi.string(painter:paint(what, frame, 1280, 800), 1280 * 800 * 4)
      xvfb.wait("the page after " .. words, function() return likeness(page, screen:picture(at), at) > 0.999 end)
    end
    both(walk.keys)
    local truth = game.env:truth(0)
    t.eq(truth.achieved, 3, "wood, a table, a wooden pickaxe")
    both "Tab"
    both "Tab x x x x"
    t.ok(game.over and game.card, "the page says how it ended")
    screen:keys "Escape"
    local status, said = wait()
    t.eq(status, 0, said)
    t.ok(said:find("episode 0: score " .. walk.score .. ", return +3.00, 12 steps (with Tab)", 1, true), said)
  end)
end

os.execute("rm -r '" .. folder .. "'")
