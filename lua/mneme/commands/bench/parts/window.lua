-- window.lua -- the second part of `mneme bench scenes`: what a window costs the training that it shows, at
-- 20 refreshes per second.  The window is a separate process, as with view=1; one training process alternates between
-- updates with and without snapshots (the window then waits), since the speed of machines drifts.
local published_agents = require "mneme.commands.bench.parts.published_agents"
local engine = require "mneme.base.engine"
local live_channel = require "mneme.insight.episodes.live_channel"
local scene = require "mneme.insight.view.scene"
local stopwatch = require "mneme.insight.measure.stopwatch"
local viewer = require "mneme.insight.view.viewer"
local live_publisher = require "mneme.insight.episodes.live_publisher"
local window = require "mneme.insight.view.window"

local C = engine.C
local cost = {}
local FORM = "%-10s %-9s %10s %10s %9s %11s %12s"

---The window's process: show a live file until the trainer ends, then print the number of pages.
function cost.child(path)
  engine.open("cpu", 1)
  local source, pages = live_channel.reader(path), 0
  local shown = viewer.new { { source = source, scene = scene.load "tmaze" } }
  local tick = shown.tick
  function shown:tick(...)
    tick(self, ...)
    if source:state() == "running" then return end
    print(pages)
    os.exit(0)
  end
  function shown.painted() pages = pages + 1 end
  window.run(shown, { width = scene.default_width, height = scene.default_height })
end

-- Start it: the pipe that it prints to.
local function start(path)
  local driver = (os.getenv "DISPLAY" or os.getenv "WAYLAND_DISPLAY") and "" or "SDL_VIDEODRIVER=dummy "
  return io.popen(("%s'%s' bench window '%s' 2>/dev/null"):format(driver, live_publisher.program(), path))
end

-- Train, alternating: medians of wall and CPU seconds of an update, without the window and with it.
local function by_turns(learner, see, pairs_wanted)
  local times, shown_for = { {}, {}, {}, {} }, 0
  for turn = 1, 2 * pairs_wanted do
    local with = turn % 2 == 0
    learner.watch = with and see or nil
    local cpu, begun = os.clock(), C.mn_clock(false)
    learner:rollout()
    learner:update()
    local wall = C.mn_clock(false) - begun
    table.insert(times[with and 3 or 1], wall)
    table.insert(times[with and 4 or 2], os.clock() - cpu)
    if with then shown_for = shown_for + wall end
  end
  return times, shown_for
end

local function measure(setup, threads, updates)
  engine.open("cpu", threads)
  local learner = published_agents.learner(setup)
  learner:begin()
  local path = os.tmpname()
  local writer = live_publisher.writer(learner, path, setup[1], function() return 0 end)
  for _ = 1, 3 do learner:rollout() learner:update() end
  local pipe, see = start(path), learner.watch
  local _, warm = by_turns(learner, see, 3)        -- until the window is open
  local times, shown_for = by_turns(learner, see, updates)
  writer:close()
  local pages = tonumber(pipe:read "*a":match "%d+")
  pipe:close()
  os.remove(path)
  local ratios, of_processor = {}, {}
  for i = 1, updates do
    ratios[i], of_processor[i] = times[3][i] / times[1][i], times[4][i] / times[2][i]
  end
  local function percent(list) return ("%+.1f %%"):format(100 * (stopwatch.lower_median(list) - 1)) end
  local steps = learner.T * learner.B
  print(FORM:format(setup[1], threads, ("%.0f"):format(steps / stopwatch.lower_median(times[1])),
    ("%.0f"):format(steps / stopwatch.lower_median(times[3])), percent(ratios), percent(of_processor),
    pages and ("%.0f"):format(pages / (warm + shown_for)) or "no window"))
end

---@param updates integer with the window, and as many without it
---@param core string? of a published configuration; nil: agalite and gru
function cost.main(updates, core)
  print "\ntraining, published sizes, without and with a window on it (T-Maze, 1280x800); medians of updates in turn:"
  print(FORM:format("", "threads", "steps/s", "with it", "longer", "processor", "refreshes/s"))
  for _, name in ipairs(core and { core } or { "agalite", "gru" }) do
    for _, setup in ipairs(published_agents.list) do
      if setup[1] == name then
        for threads = 1, 2 do measure(setup, threads, updates) end
      end
    end
  end
  engine.open("cpu", 1)
end

return cost
