-- trainer.lua -- the loop around a learner: run folder, log, checkpoints, resume, progress, Ctrl-C, live view.
-- A learner has rollout(), update(), reset(), tensors(), metrics(), find_nan(), and task, agent, cfg.
local ffi = require "ffi"
local engine = require "mneme.engine"
local errors = require "mneme.errors"
local progress = require "mneme.progress"
local run_folder = require "mneme.run"
local tensor = require "mneme.tensor"
local C = engine.C

local trainer = {}
local WINDOW = 100                 -- episodes behind the running score
local LOG_STEPS = 10000            -- environment steps between two lines of the log

-- ---- finished episodes ----

---@class Episodes
local Episodes = {}
Episodes.__index = Episodes

---Outcomes of finished episodes: those since the last log line, and the last hundred.
function trainer.episodes()
  return setmetatable({ total = 0, scores = ffi.new("float[?]", WINDOW), returns = ffi.new("float[?]", WINDOW),
    count = 0, sum_score = 0, sum_return = 0, sum_length = 0 }, Episodes)
end

---Copy b of the task has just finished an episode.
function Episodes:add(task, b)
  local ended = task.ended
  local at = self.total % WINDOW
  self.scores[at], self.returns[at] = ended.score[b], ended.ret[b]
  self.total, self.count = self.total + 1, self.count + 1
  self.sum_score, self.sum_return = self.sum_score + ended.score[b], self.sum_return + ended.ret[b]
  self.sum_length = self.sum_length + ended.length[b]
end

local function mean(values, n)
  local sum = 0
  for i = 0, n - 1 do sum = sum + values[i] end
  return n > 0 and sum / n or 0 / 0
end

---Mean score over the last hundred episodes; NaN before the first.
function Episodes:score() return mean(self.scores, math.min(self.total, WINDOW)) end
function Episodes:mean_return() return mean(self.returns, math.min(self.total, WINDOW)) end

---Means since the last call, as logged.
function Episodes:metrics(m)
  if self.count > 0 then
    m["charts/episodic_return"] = self.sum_return / self.count
    m["charts/episodic_length"] = self.sum_length / self.count
    m["charts/score"] = self.sum_score / self.count
  end
  m["charts/episodes"] = self.total
  self.count, self.sum_score, self.sum_return, self.sum_length = 0, 0, 0, 0
  return m
end

local function list_of(values, n)
  local list = {}
  for i = 0, n - 1 do list[i + 1] = values[i] end
  return list
end

function Episodes:counters()
  local n = math.min(self.total, WINDOW)
  return { total = self.total, count = self.count, sum_score = self.sum_score, sum_return = self.sum_return,
    sum_length = self.sum_length, scores = list_of(self.scores, n), returns = list_of(self.returns, n) }
end

function Episodes:restore(c)
  for i, v in ipairs(c.scores) do self.scores[i - 1], self.returns[i - 1] = v, c.returns[i] end
  for _, key in ipairs { "total", "count", "sum_score", "sum_return", "sum_length" } do self[key] = c[key] end
end

-- ---- checkpoints ----

-- All copies of the task as one row of bytes each, zeros after the shorter ones.
local function saved_worlds(task)
  local saved, longest = {}, 1
  for b = 0, task.num_envs - 1 do
    saved[b] = task:save(b)
    longest = math.max(longest, #saved[b])
  end
  local t = tensor.new { shape = { task.num_envs, longest }, dtype = "u8" }
  for b = 0, task.num_envs - 1 do ffi.copy(t:data() + b * longest, saved[b], #saved[b]) end
  return t
end

local function contents(learner)
  local list = learner:tensors()
  learner.agent.module:each(function(name, t) list[#list + 1] = { name, t } end, "agent.")
  list[#list + 1] = { "worlds", saved_worlds(learner.task) }
  return list
end

-- Put a checkpoint back: everything that is in `contents`, by name and shape.
local function restore(learner, checkpoint)
  local task = learner.task
  local worlds = checkpoint.tensors.worlds
  for _, item in ipairs(contents(learner)) do
    local name, mine = item[1], item[2]
    local stored = checkpoint.tensors[name]
    if not stored then errors.fail(("%s has no %s: it belongs to another experiment"):format(checkpoint.path, name)) end
    if name ~= "worlds" then
      local a, b = table.concat(mine:shape(), ","), table.concat(stored:shape(), ",")
      if a ~= b or mine:dtype() ~= stored:dtype() then
        errors.fail(("%s: %s is [%s], expected [%s]"):format(checkpoint.path, name, b, a))
      end
      ffi.copy(mine:data(), stored:data(), mine:size() * (mine:dtype() == "u8" and 1 or 4))
    end
  end
  local bytes, observations = worlds:shape()[2], learner.x:data() + learner.T * learner.B * learner.x:shape()[3]
  local n = learner.x:shape()[3]
  for b = 0, task.num_envs - 1 do
    task:restore(b, ffi.string(worlds:data() + b * bytes, bytes), observations + b * n)
  end
  learner.finished:restore(checkpoint.counters.episodes)
end

-- ---- the loop ----

---What config.json tells of a run besides its settings: enough to build its agent again.
function trainer.describe(learner)
  local task, core = learner.task, learner.agent.core
  local settings = {}
  for key, value in pairs(task.settings) do settings[key] = value end
  return { env = task.id, task = settings, core = { name = core.name, config = core.config },
    hidden = learner.agent.hidden, parameters = learner.agent.module:count() }
end

local function diverged(learner, run, step)
  local at = run.last_step > 0 and ("; the last good checkpoint is at step %.0f"):format(run.last_step) or "; there is no checkpoint yet"
  errors.diverged(("training diverged at step %.0f: %s%s"):format(step, learner:find_nan(), at),
    "a smaller lr or max_norm may help")
end

local function log(learner, run, step, started)
  local m = learner:metrics(learner.finished:metrics {})
  m["charts/SPS"] = (step - started.step) / math.max(1e-9, C.mn_clock(false) - started.time)
  run:log(step, m)
end

---Train to cfg.steps, or until the last hundred episodes score cfg.stop_score, if the script declares that.
---@param learner A2C
---@return table { path, steps, score, mean_return }
function trainer.train(learner)
  local cfg, finished = learner.cfg, learner.finished
  local run = run_folder.open(cfg, trainer.describe(learner))
  local step, logged = 0, 0
  learner:reset()
  local from = run.resumed and run:latest()
  if from then
    restore(learner, from)
    step, logged = from.step, from.counters.logged
    print(("%s: going on at step %.0f"):format(run.path, step))
  else
    print(("%s: %s on %s, %d parameters"):format(run.path, learner.agent.core.name, learner.task.id, learner.agent.module:count()))
  end
  local view = cfg.view and require("mneme.watch").open(learner, run, function() return step end)
  local shown = { score = finished:score(), ["return"] = finished:mean_return() }
  if cfg.profile then learner.act:profile() learner.learn:profile() end
  local bar = progress.new { steps = cfg.steps, start = step }
  local started = { step = step, time = C.mn_clock(false) }
  local each = learner.T * learner.B
  local function checkpoint()
    run:checkpoint(step, contents(learner), { episodes = finished:counters(), logged = logged }, finished:score())
  end
  local function over()
    return step >= cfg.steps or (cfg.stop_score and finished.total >= WINDOW and finished:score() >= cfg.stop_score)
  end
  local function loop()
    while not over() do
      learner:rollout()
      local fine = learner:update()
      step = step + each
      if not fine then diverged(learner, run, step) end
      shown.score, shown["return"] = finished:score(), finished:mean_return()
      bar:update(step, shown)
      if step - logged >= LOG_STEPS or over() then
        logged = step
        log(learner, run, step, started)
      end
      local signal = C.mn_interrupted()
      if signal ~= 0 or over() or run:due(step) then checkpoint() end
      if signal ~= 0 then return signal == 2 and 130 or 143 end
    end
    return 0
  end
  local ok, status = xpcall(loop, errors.handler)
  if view then view:close() end
  bar:finish(step, shown)
  if not ok then
    run:close(1)
    error(status, 0)
  end
  if cfg.profile then trainer.show_profile(learner) end
  run:close(status)
  local went = finished.total == 0 and "no episode has ended" or ("score %.3f over the last %d episodes, return %.2f"):format(
    finished:score(), math.min(finished.total, WINDOW), finished:mean_return())
  print(("%s: %.0f steps, %s"):format(run.path, step, went))
  return { path = run.path, steps = step, score = finished:score(), mean_return = finished:mean_return() }
end

---Print where the time went, by op (profile=1).
function trainer.show_profile(learner)
  local list, total = {}, 0
  for _, plan in ipairs { learner.act, learner.learn } do
    for name, seconds in pairs(plan:profile()) do
      list[#list + 1] = { (plan == learner.act and "act    " or "update ") .. name, seconds }
      total = total + seconds
    end
  end
  table.sort(list, function(a, b) return a[2] > b[2] end)
  for i = 1, math.min(#list, 20) do print(("%5.1f %%  %8.3f s  %s"):format(100 * list[i][2] / total, list[i][2], list[i][1])) end
end

return trainer
