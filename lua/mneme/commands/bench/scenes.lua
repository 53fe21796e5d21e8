-- scenes.lua -- `mneme bench scenes`.
local lazy = require "mneme.base.lazy"
local ffi = require "ffi"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local nn = lazy "mneme.tensor.nn"
local stepper = lazy "mneme.insight.episodes.stepper"
local scene = lazy "mneme.insight.view.scene"
local viewer = lazy "mneme.insight.view.viewer"
local windows = lazy "mneme.insight.view.window"
local progress = require "mneme.base.progress"
local tables = require "mneme.base.tables"

local scenes = { name = "bench scenes", doc = "how long every scene takes to draw a page in a window", about = [[
A page has its bar of controls; on one core, late in an episode, with a new step on every page.  Without a display the window is SDL's offscreen
one.  Times are CPU times, so other programs do not count; 60 pages per second leave 16.7 ms for each.]],
  arguments = { { "names", "SCENE", "scenes", noun = "scene", several = true, optional = true } },
  options = {
    { "core", "the agent's core", type = "text", example = "gru" },
    { "size", "its size", type = "choice", choices = { "published", "small" }, default = "published" },
    { "steps", "steps of the episode", type = "whole", range = { 5 }, default = 1000 },
    { "seconds", "of each scene", type = "number", range = { 0.001 }, default = 0.5 },
  } }
local FPS = 60

ffi.cdef [[
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
]]

-- ---- the agents ----

-- Episodes of an agent joined to one, so that histories are as long as requested.
local function endless(source)
  local step, ret = -1, 0
  return { next = function()
    local now = source:next()
    step, ret = step + 1, ret + now.reward
    now.step, now.episode, now.ret, now.ended = step, 0, ret, nil
    return now
  end }
end

-- A core as published, or a small one of its kind.
local function core_of(spec, size)
  local core = {}
  for _, setup in ipairs(published_agents.list) do
    if setup[1] == spec[1] then spec = setup.core end
  end
  for key, value in pairs(spec) do core[key] = value end
  if size == "small" then core.d_model = 16 end
  return core
end

-- Agents with a core in a scene's environment, one or two side by side.
local function tracks_of(what, core, n)
  local tracks = {}
  for k = 1, n do
    nn.manual_seed(k)
    local source = stepper.fresh { env = what.env, core = core, seed = k }
    tracks[k] = { source = endless(source), scene = what, name = n > 1 and "track " .. k or nil }
  end
  return viewer.new(tracks)
end

-- ---- a window ----

local function open(width, height)
  local lib, dummy = scene.library(), not (os.getenv "DISPLAY" or os.getenv "WAYLAND_DISPLAY" or os.getenv "SDL_VIDEODRIVER")
  if dummy then ffi.C.setenv("SDL_VIDEODRIVER", "dummy", 1) end
  local window = lib.mn_window_new(engine.ctx, "Mneme", width, height)
  if dummy then ffi.C.unsetenv "SDL_VIDEODRIVER" end
  return { lib = lib, painter = scene.painter(), width = width, height = height, shown = ffi.gc(engine.check(window), lib.mn_window_free) }
end

-- Pages for some time, each of the next step: the mean seconds of stepping, drawing, painting and showing.
local function pages(window, shown, seconds)
  local lib, painter, sums, n = window.lib, window.painter, { 0, 0, 0, 0 }, 0
  local till = os.clock() + seconds
  repeat
    local t0 = os.clock()
    shown:forward()
    local t1 = os.clock()
    local what, frame = shown:page()
    painter.view.deadline = engine.C.mn_clock(false) + windows.draw_for
    painter:draw(what, frame, window.width, window.height)
    local t2 = os.clock()
    local pixels = painter:fill()
    local t3 = os.clock()
    engine.check(lib.mn_window_show(window.shown, pixels, window.width, window.height))
    local t4 = os.clock()
    for k, t in ipairs { t1 - t0, t2 - t1, t3 - t2, t4 - t3 } do sums[k] = sums[k] + t end
    n = n + 1
  until n >= 5 and t4 > till
  return sums[1] / n, sums[2] / n, sums[3] / n, sums[4] / n
end

-- ---- the table ----

local FORM = "%-18s %-10s %-18s %9s %9s %9s %9s %10s  %s"

local function line(name, core, page, window, shown, seconds)
  local living, drawing, painting, showing = pages(window, shown, seconds)
  local rate = 1 / (living + drawing + painting + showing)
  local function ms(s) return ("%.2f"):format(1e3 * s) end
  print(FORM:format(name, core, page, ms(living), ms(drawing), ms(painting), ms(showing), ("%.0f"):format(rate),
    ("%s, %.1f x"):format(rate >= FPS and "met" or "missed", rate / FPS)))
end

-- One scene and core: early, late, larger, and side by side with another.
local function measure(name, spec, o, small, large)
  published_agents.progress(("%s, %s"):format(name, spec[1]))
  local what, core = scene.load(name), core_of(spec, o.size)
  local alone, pair = tracks_of(what, core, 1), tracks_of(what, core, 2)
  for _, step in ipairs { math.floor(o.steps / 5), o.steps } do
    alone:go_to(step)
    line(name, spec[1], "step " .. step, small, alone, o.seconds)
  end
  line(name, spec[1], "1920x1080", large, alone, o.seconds)
  pair:go_to(o.steps)
  line(name, spec[1], "two tracks", small, pair, o.seconds)
end

-- The cores that a scene is measured with: its own; on the T-Maze other published ones too.
local function cores_of(what, wanted)
  if wanted then return { { wanted } } end
  local list = { what.core }
  if what.env[1] == "tmaze" then
    for _, name in ipairs { "galite", "gru", "gtrxl" } do list[#list + 1] = { name } end
  end
  return list
end

local function all_pages(o)
  engine.open("cpu", 1)
  local small, large = open(1280, 800), open(1920, 1080)
  print(("scenes, %s cores, one thread, a bar of controls, CPU ms for each page and its new step:"):format(o.size))
  print(FORM:format("", "", "1280x800", "living", "drawing", "painting", "showing", "frames/s", "against " .. FPS))
  local list = {}
  for _, name in ipairs(o.names) do
    for _, spec in ipairs(cores_of(scene.load(name), o.core)) do list[#list + 1] = { name, spec } end
  end
  for _, case in progress.each(list, "scenes and cores") do measure(case[1], case[2], o, small, large) end
end

function scenes.run(o)
  io.stdout:setvbuf "line"                         -- show progress while it runs
  for _, name in ipairs(o.names) do if not tables.has(scene.list(), name) then errors.unknown("scene", name, scene.list()) end end
  if #o.names == 0 then o.names = scene.list() end
  all_pages(o)
  return 0
end

return scenes
