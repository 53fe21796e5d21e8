-- sweep.lua -- `mneme bench sweep`.
local lazy = require "mneme.base.lazy"
local arguments = require "mneme.commands.arguments"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local folder = lazy "mneme.lab.study.folder"
local process_pool = lazy "mneme.lab.study.process_pool"
local script = lazy "mneme.runs.script"
local sweep = lazy "mneme.commands.sweep"
local trainer = lazy "mneme.learn.trainer"

local bench = { name = "bench sweep", doc = "the overhead of a sweep over the work of its runs", about = [[
Empty runs measure the overhead of one, in CPU time and wall time.  Runs that only count measure the speed-up of several jobs and how busy the
sweep keeps them: the time that runs worked, by their own clocks, divided by the sweep's time.  Other programs slow both alike, so that this share
holds on a busy machine too.  A small training measures the share of its statistics: means of episodes, lines of the log, resources.]],
  options = {
    { "runs", "empty runs", type = "whole", range = { 1 }, default = 1000 },
    { "jobs", "runs at a time: 1, 2, 4 or 8", type = "whole", range = { 1, 8 }, default = 2 },
    { "seconds", "that a run counts", type = "number", range = { 0.001 }, default = 1 },
  } }
local AIM = { ms = 20, share = 0.9, told = 0.01 }
local WORKERS = 8                        -- runs that count
local ROUNDS = 3

local SCRIPT = [[
return require("mneme").study { settings = { steps = 1, work = 0 }, run = function(cfg)
  require("mneme.commands.bench.sweep").work(cfg.work)
  return { seed = cfg.seed }
end }
]]

---The work of a run: this many steps of a little arithmetic.
function bench.work(n)
  local x = 1
  for _ = 1, n do x = (x * 69069 + 1) % 4294967296 end
  return x
end

-- Sweep this many runs, in a separate process: seconds of wall time, of CPU time, and those that runs worked by their own clocks.
local function spent(here, runs, jobs, work)
  local study, begun, wall, cpu = here .. "/study", false, 0, 0
  files.remove_folder(study)
  process_pool.run {
    jobs = 1, log = function() return here .. "/log" end, tick = function() end,
    next = function()
      if begun then return nil end
      begun = true
      return here
    end,
    none_left = function() return begun end,
    run = function()
      return arguments.run(sweep, { here .. "/script.lua", "seeds=" .. runs, "jobs=" .. jobs, "work=" .. work, "estimate=0", "run=" .. study })
    end,
    ended = function(_, about)
      if about.status ~= 0 then errors.fail("bench sweep: a sweep failed: " .. files.read(here .. "/log")) end
      wall, cpu = about.wall, about.cpu
    end,
  }
  local worked = 0
  for _, c in ipairs(folder.load(study).runs) do worked = worked + c.resources.wall_s end
  return wall, cpu, worked
end

-- Steps of work that take this long.
local function steps_for(seconds)
  local n, took = 1e6, 0
  while took < 0.1 do
    n = n * 2
    local began = os.clock()
    bench.work(n)
    took = os.clock() - began
  end
  return math.ceil(n * seconds / took)
end

local function verdict(good) return good and "met" or "missed" end

local function trivial(here, o)
  local wall, cpu = spent(here, o.runs, o.jobs, 0)
  local ms = 1e3 * cpu / o.runs
  print(("%d empty runs, %d jobs: %.1f ms of CPU time each (target %d: %s), %.1f ms of wall time"):format(o.runs, o.jobs, ms, AIM.ms,
    verdict(ms < AIM.ms), 1e3 * wall / o.runs))
end

local function parallel(here, o)
  local n = steps_for(o.seconds)
  local one, many, share = math.huge, math.huge, 0
  for _ = 1, ROUNDS do
    one = math.min(one, (spent(here, WORKERS, 1, n)))
    local wall, _, worked = spent(here, WORKERS, o.jobs, n)
    many, share = math.min(many, wall), math.max(share, worked / (wall * o.jobs))
  end
  local ideal = one / many / o.jobs
  print(("%d runs of %.2g s: 1 job %.2f s, %d jobs %.2f s = %.2f times as fast, %.1f %% of ideal (target %.0f: %s); jobs at work %.1f %% of the time")
    :format(WORKERS, o.seconds, one, o.jobs, many, one / many, 100 * ideal, 100 * AIM.share, verdict(ideal >= AIM.share), 100 * share))
end

-- A training as small as quick=1: its updates are the shortest, so its statistics take the largest share.
local function statistics(here, runs)
  local say = print
  trainer.timed, print = true, function() end                     -- luacheck: ignore
  local result = script.run(script.locate "tmaze", { "core=agalite", "core.n_layers=1", "core.d_model=32", "core.d_head=16", "core.d_ffn=32",
    "hidden=32", "corridor=20", "steps=" .. math.max(400 * runs, 40000), "threads=1", "run=" .. here .. "/small" })
  trainer.timed, print = nil, say                                 -- luacheck: ignore
  local share = result.seconds_told / result.seconds_trained
  print(("a small training: its statistics take %.2f %% of its time (target 1: %s)"):format(100 * share, verdict(share <= AIM.told)))
end

---@return integer status
function bench.run(o)
  if WORKERS % o.jobs ~= 0 then errors.usage(("bench sweep: jobs=%d, expected 1, 2, 4 or 8"):format(o.jobs)) end
  engine.open("cpu", 1)                  -- only a process without other threads can fork
  local here = os.tmpname()
  files.remove(here)
  files.make_folder(here)
  files.write(here .. "/script.lua", { SCRIPT })
  local ok, problem = pcall(function()
    trivial(here, o)
    parallel(here, o)
    statistics(here, o.runs)
  end)
  files.remove_folder(here)
  if not ok then error(problem, 0) end
  return 0
end

return bench
