-- solve.lua -- `mneme bench solve`.
local lazy = require "mneme.base.lazy"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local process_pool = lazy "mneme.lab.study.process_pool"
local script = lazy "mneme.runs.script"
local trainer = lazy "mneme.learn.trainer"
local stats = lazy "mneme.stats"

local options = require "mneme.commands.options"
local solve = { name = "bench solve", doc = "seconds from the start of a process until its agent solves a task", about = [[
Solved: a score of 0.95 over the last hundred episodes, or of a data set's validation part.  Every seed is a run of its own in a process of its
own.  Seconds of processor time do not depend on other programs as wall time does; both are printed.  A seed that does not solve its task within
the steps allowed is counted, and its time is left out of the mean.]],
  arguments = { { "names", "NAME", "tasks", noun = "task", several = true, optional = true } },
  options = {
    { "seeds", "of each task", type = "whole", range = { 1 }, default = 5 },
    { "precision", "of matrix products", type = "choice", choices = { "fp32", "tf32", "bf16" }, default = "fp32" }, options.bench.threads,
  } }
local SCORE = 0.95

local function maze(corridor, layers, width, remember, lr, steps)
  return ("core=agalite core.remember=%d core.n_layers=%d core.d_model=%d core.d_head=%d core.d_ffn=%d hidden=%d size=published corridor=%d "
    .. "lr=%g entropy_coef=0.01 steps=%g"):format(remember, layers, width, width / 2, width, width, corridor, lr, steps)
end

-- Name, script and settings; what it is; about how many seconds of processor time a seed takes on an EPYC (Zen 5).
local tasks = {
  { "tmaze20", "tmaze", maze(20, 1, 32, 10, 1e-3, 2e6), what = "T-Maze, corridor 20: agalite, one layer of 32", about = 1 },
  { "tmaze40", "tmaze", maze(40, 1, 32, 10, 1e-3, 2e6), what = "T-Maze, corridor 40: agalite, one layer of 32", about = 2 },
  { "tmaze100", "tmaze", maze(100, 1, 32, 40, 1e-3, 4e6), what = "T-Maze, corridor 100: agalite, one layer of 32", about = 5 },
  { "tmaze200", "tmaze", maze(200, 2, 64, 160, 5e-4, 5e6), what = "T-Maze, corridor 200: agalite, two layers of 64", about = 25 },
  { "recall", "recall", "quick=1 core=gated_deltanet pairs=4 steps=2e6", what = "associative recall, 4 pairs: gated_deltanet", about = 8 },
  { "repeat_previous", "train", "env=repeat_previous core=gru core.d_model=64 learner=ppo hidden=64 num_envs=16 num_steps=128 epochs=4 minibatches=4 "
    .. "lr=2e-3 steps=1e6", what = "POPGym's RepeatPrevious: PPO, GRU of 64", about = 1 },
  { "noisy_cartpole", "noisy_cartpole", "quick=1", what = "POPGym's NoisyPositionOnlyCartPole: PPO, GRU of 64", about = 1 },
}

-- In the process of one run: train, and leave what came out.
local function train(words, name, to)
  local say = print
  print = function() end                                          -- luacheck: ignore
  trainer.fresh_episodes = 0                                      -- the time until it is solved is measured
  local result = script.run(script.locate(name), words)
  print = say                                                     -- luacheck: ignore
  files.write(to, { json.encode { score = result.score or result.accuracy or 0, steps = result.steps } })
  return 0
end

-- One seed: seconds of processor and of wall time, score and steps.
local function one(here, task, seed, o)
  local place, about, begun = ("%s/%s-%d"):format(here, task[1], seed), nil, false
  local words = { "seed=" .. seed, "stop_score=" .. SCORE, "threads=" .. o.threads, "precision=" .. o.precision, "run=" .. place }
  for word in task[3]:gmatch "%S+" do words[#words + 1] = word end
  process_pool.run {
    jobs = 1, log = function() return place .. ".log" end, tick = function() end,
    next = function()
      if begun then return nil end
      begun = true
      return place
    end,
    none_left = function() return begun end,
    run = function() return train(words, task[2], place .. ".json") end,
    ended = function(_, told) about = told end,
  }
  if about.status ~= 0 then errors.fail(("bench solve: %s failed: %s"):format(task[1], files.read(place .. ".log"))) end
  local result = json.decode(files.read(place .. ".json"), place)
  return { cpu = about.cpu, wall = about.wall, score = result.score, steps = result.steps }
end

local function column(runs, name)
  local list = {}
  for i, r in ipairs(runs) do list[i] = r[name] end
  return list
end

-- A mean and its 95 % interval; a list for fewer than three.
local function seconds(list)
  if #list == 0 then return "-" end
  if #list < 3 then
    for i, x in ipairs(list) do list[i] = ("%.1f"):format(x) end
    return table.concat(list, ", ")
  end
  local mean, low, high = stats.t_interval(list)
  return ("%.1f (%.1f - %.1f)"):format(mean, math.max(0, low), high)
end

local function line(name, what, runs)
  local solved, failed = {}, {}
  for _, r in ipairs(runs) do table.insert(r.score >= SCORE and solved or failed, r) end
  print(("%-16s %d of %d   %-18s %-18s %-9s %s"):format(name, #solved, #runs, seconds(column(solved, "cpu")), seconds(column(solved, "wall")),
    #solved > 0 and ("%.2gM"):format(stats.mean(column(solved, "steps")) / 1e6) or "-", what))
  if #failed > 0 then
    print(("%-16s unsolved after %.1f s each on average, score %.2f"):format("", stats.mean(column(failed, "cpu")), stats.mean(column(failed, "score"))))
  end
  io.stdout:flush()
end

local function solve_one(here, task, o)
  local runs = {}
  for seed = 1, o.seeds do runs[seed] = one(here, task, seed, o) end
  line(task[1], task.what, runs)
end

function solve.run(o)
  local chosen, names = {}, {}
  for i, task in ipairs(tasks) do names[i], names[task[1]] = task[1], task end
  for i, name in ipairs(o.names) do chosen[i] = names[name] or errors.unknown("task of bench solve", name, names) end
  if not chosen[1] then chosen = tasks end
  local expected = 0
  for _, task in ipairs(chosen) do expected = expected + task.about * o.seeds end
  print(("%d task%s, %d seed%s each, %s, %d thread%s: about %d s of processor time on an EPYC (Zen 5)"):format(#chosen, #chosen == 1 and "" or "s", o.seeds,
    o.seeds == 1 and "" or "s", o.precision, o.threads, o.threads == 1 and "" or "s", expected))
  print(("%-16s %-8s %-18s %-18s %-9s"):format("until 0.95", "solved", "processor, s", "wall, s", "steps"))
  engine.open("cpu", 1)                  -- only a process without other threads can fork
  local here = os.tmpname()
  files.remove(here)
  files.make_folder(here)
  local ok, problem = pcall(function() for _, task in ipairs(chosen) do solve_one(here, task, o) end end)
  files.remove_folder(here)
  if not ok then error(problem, 0) end
  return 0
end

return solve
