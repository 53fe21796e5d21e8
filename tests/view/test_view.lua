-- test_view.lua -- mneme view: its command line and keys; the live file between a trainer and a viewer,
-- which carries what was written and refuses what is damaged.  Windows are in test_window.lua.
local ffi = require "ffi"
local files = require "mneme.base.files"
local lfs = require "lfs"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local live_channel = require "mneme.insight.episodes.live_channel"
local mn = require "mneme"
local frames = require "mneme.insight.episodes.frames"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local arguments = require "mneme.commands.arguments"
local parsed = require "tests.support.parsed"
local view = require "mneme.commands.view"

local C = engine.C
local folder = shell.folder()
local function path(name) return folder .. "/" .. name end

local painter, what = scene.painter(), scene.load "tmaze"

-- ---- the command ----

t.test("the command line of mneme view", function()
  local o = view.prepare(parsed(view, { "runs/a", "out=x.GIF", "size=640x480", "--scene=memory" }))
  t.eq(o.things[1], "runs/a") t.eq(o.kind, "gif") t.eq(o.scene, "memory")
  t.eq(o.width, 640) t.eq(o.height, 480)
  for _, bad in ipairs { { "a", "b", "c", "d", "e" }, {}, { "x", "colr=1" } } do
    local ok, e = pcall(function() return view.prepare(parsed(view, bad)) end)
    t.ok(not ok and e.status == 2, "a usage error has status 2")
  end
  t.eq(scene.for_env "tmaze-v0", "tmaze")
  t.eq(scene.for_env "pong-v1", "memory")
  t.eq(scene.for_env "memory_maze-v0", "memory_maze")
  t.eq(scene.for_env "mystery_path_grid-v0", "mystery_path_grid")
  t.eq(scene.for_env "tmaze_bakker-v0", "tmaze")
  o = view.prepare(parsed(view, { "runs/a", "theme=light", "scale=2", "episodes=20" }))
  t.eq(o.theme, "light") t.eq(o.scale, 2) t.eq(o.episodes, 20)
end)

t.test("a step that is not reached: no file, and none that was there is lost", function()
  for _, kind in ipairs { "png", "gif", "html" } do
    local late = { "noisy_cartpole", "out=" .. path "late." .. kind, "at=9999", "size=320x240", "wait=0" }
    t.raises(function() arguments.run(view, late) end, "step 9999 is not reached")
    t.eq(lfs.attributes(path "late." .. kind, "mode"), nil, "no file of it")
    files.write(path("late." .. kind), { "of an earlier time" })
    t.raises(function() arguments.run(view, late) end, "step 9999 is not reached")
    t.eq((files.read(path("late." .. kind))), "of an earlier time", "an error erases nothing")
    t.eq(lfs.attributes(path "late." .. kind .. ".tmp", "mode"), nil, "no draft of it")
  end
end)

-- ---- the live file ----

local function writer(name, env, n)
  local memory = { ["layers.0.h"] = { shape = { n }, dims = "D" } }
  return live_channel.writer(path(name), { title = "a test", env = env, memory = memory })
end

local function snapshot(w, env, value, n, copy)
  local memory = ffi.new("float[?]", n)
  for i = 0, n - 1 do memory[i] = value end
  copy = copy or 0
  w:write { env_index = copy, action = 3, reward = -0.1, value = value, step = value, episode = 0, ret = 0,
    total = 1e6 + value, observation = env.obs + 16 * copy,
    policy = ffi.new("float[4]", { 0.1, 0.2, 0.3, 0.4 }),
    memory = { ["layers.0.h"] = memory }, probes = {} }
end

local function tmaze()
  local env = mn.env("tmaze", { corridor = 9, num_envs = 2, seed = 4 })
  env.obs = env:reset(4):data()
  return env
end

t.test("a live file carries what the trainer saw", function()
  local env = tmaze()
  local w = writer("live", env, 5)
  local r = live_channel.reader(path "live")
  t.eq(r:next(), nil, "nothing yet")
  t.ok(w:due(), "the first snapshot is due at once")
  for _ = 1, 3 do env:step { 3, 3 } end
  snapshot(w, env, 7, 5, 1)
  local now = r:next()
  t.eq(now.value, 7) t.eq(now.total, 1e6 + 7) t.eq(now.env_index, 1) t.eq(now.action, 3)
  t.eq(now.truth.position, 3) t.eq(now.truth.cue, env:truth(1).cue)
  t.near(now.policy[3], 0.4, 1e-6)
  for i = 0, 15 do t.eq(now.observation.values[i], env.obs[16 + i]) end
  t.eq(now.memory["layers.0.h"].values[4], 7)
  t.ok(C.mn_canvas_count(now.canvas) > 3, "the world is drawn")
  t.eq(r:next(), nil, "nothing new")
  t.ok(painter:paint(what, frames.new():add(now), 800, 600))
  t.ok(not C.mn_live_due(w.file, 1e-6), "once in a million seconds: not again")
  t.eq(w.wanted, 0)
  r:next_env()
  snapshot(w, env, 8, 5, 1)
  t.eq(w.wanted, 1)
  t.eq(r:next().value, 8)
  t.eq(r:state(), "running")
  local again = writer("live", env, 5)
  t.eq(r:state(), "replaced")
  w:close()
  again:close()
  local after = live_channel.reader(path "live")
  t.eq(after:state(), "ended")
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

t.test("a live file carries the steps between two snapshots", function()
  local env = tmaze()
  local probes = { ["layers.0.beta"] = { shape = { 2, 3 } } }
  local w = live_channel.writer(path "noted", { title = "a test", env = env, probes = probes,
    memory = { ["layers.0.s"] = { shape = { 2, 4 }, dims = "HK" } } })
  local beta = ffi.new("float[6]", { 0, 0, 0.3, 0.5, 0.6, 1 })
  local now = { env_index = 0, action = 3, reward = -0.1, ret = 0, episode = 0, total = 0, observation = env.obs,
    policy = ffi.new "float[4]", memory = { ["layers.0.s"] = ffi.new "float[8]" },
    probes = { ["layers.0.beta"] = beta } }
  local function step(n)
    now.step, now.value = n, n / 2
    w:note(now)
  end
  for i = 0, 4 do step(i) end
  for i = 0, 2 do                                  -- a new episode: the old one is forgotten
    step(i)
    env:step { 3, 3 }
  end
  w:write(now)
  local history = frames.new():add(live_channel.reader(path "noted"):next()).history
  t.eq(#history, 3)
  t.eq(history[3].value, 1) t.eq(history[3].x, 2) t.eq(history[3].y, nil)
  t.near(history[2].gates.beta[1], 0.1, 1e-6) t.near(history[2].gates.beta[2], 0.7, 1e-6)
  for i = 3, 3 * live_channel.history do step(i) end       -- a very long episode does not overflow
  w:write(now)
  t.ok(#live_channel.reader(path "noted"):next().history <= live_channel.history)
  w:close()
end)

t.test("a live file that is missing, cut short or garbage is refused", function()
  local env = tmaze()
  local w = writer("whole", env, 50)
  snapshot(w, env, 1, 50)
  local whole = bytes_of(path "whole")
  t.raises(function() live_channel.reader(path "none") end, "view=1")
  t.raises(function() live_channel.reader(folder) end, "cannot be")
  for _, n in ipairs { 0, 1, 20, 79, 80, 200, #whole - 1 } do
    put(path "cut", whole:sub(1, n))
    t.raises(function() live_channel.reader(path "cut") end, "cut short")
  end
  put(path "cut", ("garbage "):rep(1000))
  t.fails(function() live_channel.reader(path "cut") end)
  local seed, survived = 1, 0
  for _ = 1, 300 do                          -- damage to the head and the schema: an error or a snapshot
    seed = (seed * 1103515245 + 12345) % 2 ^ 31
    local at, value = seed % 600 + 1, math.floor(seed / 2 ^ 16) % 256
    put(path "cut", whole:sub(1, at - 1) .. string.char(value) .. whole:sub(at + 1))
    local ok, r = pcall(live_channel.reader, path "cut")
    if ok then ok = pcall(r.next, r) end
    survived = survived + (ok and 1 or 0)
  end
  t.ok(survived > 0 and survived < 300)
  -- cut while it is watched
  put(path "cut", whole)
  local r = live_channel.reader(path "cut")
  put(path "cut", whole:sub(1, 500))
  t.raises(function() r:next() end, "cut short")
  w:close()
end)

t.test("torn snapshots are never shown", function()
  local env, n = tmaze(), 4000
  local w = writer("torn", env, n)
  snapshot(w, env, 1, n)
  local whole = bytes_of(path "torn")
  local counters = whole:find("\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 41, true)
  t.ok(counters, "begun = 1, done = 1")
  local function with(begun, done)
    local function u64(x) return string.char(x, 0, 0, 0, 0, 0, 0, 0) end
    put(path "damaged", whole:sub(1, counters - 1) .. u64(begun) .. u64(done) .. whole:sub(counters + 16))
    local r = live_channel.reader(path "damaged")
    return r:next()
  end
  t.ok(with(1, 1)) t.ok(with(2, 1), "the other slot is being written")
  t.eq(with(3, 1), nil, "its own slot is being overwritten")
  t.raises(function() with(1, 3) end, "damaged")
  w:close()

  -- a trainer in another process that writes as fast as it can, and is then killed
  local posix = t.need("posix.unistd", "lua-posix")
  local child = posix.fork()
  if child == 0 then
    local mine = writer("busy", env, n)
    for i = 1, 1e9 do snapshot(mine, env, i % 1000, n) end
  end
  local deadline = C.mn_clock(false) + 120
  local found, r
  repeat found, r = pcall(live_channel.reader, path "busy") until found or C.mn_clock(false) > deadline
  local read, torn = 0, 0
  while found and read < 100 and C.mn_clock(false) < deadline do
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
  t.eq(torn, 0)
  t.ok(read > 0, "nothing could be read")
  t.eq(r:state(), "gone")
  t.ok(live_channel.reader(path "busy"):next(), "its last snapshot can still be seen")
end)

-- ---- where there is no display ----

local setenv = t.need("posix.stdlib", "lua-posix").setenv

t.test("without a display, the message says what to do", function()
  local kept = { os.getenv "DISPLAY", os.getenv "WAYLAND_DISPLAY" }
  setenv("DISPLAY", nil) setenv("WAYLAND_DISPLAY", nil)
  t.fails(function() arguments.run(view, { "tmaze" }) end)
  setenv("DISPLAY", ":12345")                      -- a display that does not answer
  setenv("XDG_RUNTIME_DIR", folder)
  t.fails(function() arguments.run(view, { "tmaze" }) end)
  setenv("DISPLAY", nil)
  if kept[1] then setenv("DISPLAY", kept[1]) end
  if kept[2] then setenv("WAYLAND_DISPLAY", kept[2]) end
end)

os.execute("rm -r '" .. folder .. "'")
