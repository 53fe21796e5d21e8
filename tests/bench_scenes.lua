-- bench_scenes.lua -- frames per second of every scene at 1280x800 without a window, on one core: drawing
-- (Lua: shapes), painting (C: pixels), both; and what a live file costs the trainer.
--   luajit tests/bench_scenes.lua [seconds for each figure, default 0.5]
local here = arg[0]:match "^(.*)tests/bench_scenes%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local ffi = require "ffi"
local engine = require "mneme.engine"
local fake = require "tests.fake_player"
local heads = require "mneme.heads"
local live = require "mneme.live"
local recorder = require "mneme.recorder"
local scene = require "mneme.scene"

local C, seconds = engine.C, tonumber(arg[1]) or 0.5

-- Calls of f per second.
local function rate(f)
  for _ = 1, 3 do f() end
  local n, begun = 0, C.mn_clock(false)
  repeat
    f()
    n = n + 1
  until C.mn_clock(false) - begun > seconds
  return n / (C.mn_clock(false) - begun)
end

print("scene     core       frames/s      draw ms   paint ms   (1280x800)")
local painter = scene.painter()
local lib, view = painter.lib, painter.view
for _, name in ipairs(scene.list()) do
  local what = scene.load(name)
  for _, core in ipairs { "agalite", "galite", "gru" } do
    local player, film, frame = fake.new { core = core, corridor = 60 }, recorder.new(), nil
    for _ = 1, 50 do frame = film:add(player:next()) end
    local all = rate(function() painter:paint(what, frame, 1280, 800) end)
    local draw = rate(function()
      view:clear(1280, 800)
      what.draw(view, frame)
    end)
    local paint = rate(function()
      lib.mn_raster_paint(painter.raster, view.shapes, view.theme.page, 1280, 800)
    end)
    print(("%-9s %-9s %9.0f %12.2f %10.2f"):format(name, core, all, 1e3 / draw, 1e3 / paint))
  end
end

local path = os.tmpname()
print("\nlive file  snapshot kB   write us   note us")
for _, core in ipairs { "agalite", "galite", "gru" } do
  local player = fake.new { core = core, corridor = 60 }
  local now = player:next()
  local writer = live.writer(path, { title = core, task = player.task, memory = now.memory, probes = now.probes })
  local bytes, snapshot = 0, { memory = {}, probes = {}, copy = 0, action = 3, reward = 0, value = 0, step = 1,
    episode = 0, ret = 0, total = 0, observation = now.observation.values,
    policy = ffi.new("float[4]", now.policy) }
  for _, group in ipairs { "memory", "probes" } do
    for key, array in pairs(now[group]) do
      snapshot[group][key] = array.values
      bytes = bytes + 4 * heads.size(array.shape)
    end
  end
  local write = rate(function() writer:write(snapshot) end)
  local note = rate(function() writer:note(snapshot) end)
  print(("%-9s %12.0f %10.1f %9.2f"):format(core, bytes / 1e3, 1e6 / write, 1e6 / note))
  writer:close()
end
os.remove(path)
