-- trainer.lua -- the loop around any learner: run folder, log, checkpoints, resume, progress, Ctrl-C, live view.
-- A learner, with an environment or without, has
--   cfg                   the settings of the run (mn.config)
--   begin()               starts from the beginning; called first, also before a checkpoint is restored
--   advance()             one update; returns its steps (tokens), and false if a value is no longer finite
--   over()                true if training may end before cfg.steps
--   describe()            a table for config.json, besides the settings
--   headline()            a text: what is being trained;  warning()  optional: a text for stderr before training starts, or nil
--   contents()            the tensors of a checkpoint, a list of { name, tensor }; with own = true in an item, the tensor is
--                         made for the checkpoint and `restored` reads it back, else the trainer does; optional: earlier versions had none; batch_axis = n if
--                         its axis n (from 1) is divided among ranks: see tensor/ranks.lua
--   counters()            the rest of a checkpoint, for JSON;  restored(checkpoint): checkpoint.tensors,
--                         .counters and .step have been read back
--   metrics(m)            puts values to log into m
--   shown()               the table for the progress bar: score, return, loss ...
--   best()                a number, higher is better, that selects the best checkpoint; nil or NaN: none yet
--   plans()               a list of { name, plan } for profile=1
--   find_nan()            a text: where a value was not finite
--   summary()             a text, and a table of the same results
--   env                   if it acts: an environment of a script or in C is rehearsed first (envs/check_resumable.lua)
--   agent, or model       its core, torso and heads are rehearsed, where they are the user's (models/check_own_parts.lua)
--   agent, env, watch     if it can be watched (view=1): see insight/episodes/live_publisher.lua
--   divides_batch         true if it can train as one of several ranks
--   starts                set here where a resume changed the training's steps: see schedule.share of learner_settings.lua
local checkpoint_files = require "mneme.runs.checkpoint_files"
local config = require "mneme.runs.config"
local lazy = require "mneme.base.lazy"
local check_own_parts = lazy "mneme.models.check_own_parts"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local gate_start = require "mneme.models.gate_start"
local default_core_size = require "mneme.models.default_core_size"
local run_folder = require "mneme.runs.run_folder"
local format = lazy "mneme.base.format"
local progress = require "mneme.base.progress"
local random = require "mneme.tensor.random"
local ranks = require "mneme.tensor.ranks"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"
local reference_scores = lazy "mneme.envs.reference_scores"
local registry = require "mneme.base.registry"
local check_resumable = lazy "mneme.envs.check_resumable"
local resources = require "mneme.runs.resources"
local runs = require "mneme.runs.run"
local schedule = require("mneme.runs.learner_settings").schedule
local C, outcome, starts = engine.C, run_folder.outcome, run_folder.starts

---@class Observer what watches a training; each method may be missing
---@field before? fun(self, step: number, counters: fun(): table) before an update; counters: what a checkpoint would hold of it
---@field after? fun(self, step: number, logged: boolean) after an update; logged: it had a line in the log
---@field diverged? fun(self): string? a value was NaN or infinite: what was done about it, for the error
---@field close? fun(self, step: number, ok: boolean) training has ended; ok: not by an error

local FRESH = 500                  -- episodes of a training that stops at its stop_score
local trainer = {
  observers = {},                  -- fun(learner, run, steps: fun(): number): Observer?, one for each kind: the door (init.lua) fills this
  fresh = nil,                     -- fun(learner, episodes, step): table? plays fresh episodes (insight/episodes/fresh_episodes.lua); from the door, too
  map = nil,                       -- fun(run, seconds: number?) stores the map of its memory (insight/episodes/causal_map_file.lua); from the door, too
  budget = nil,                    -- seconds after which training ends: to see how long a step takes
  instead = nil,                   -- fun(learner, trains: boolean?) called when one is made, and with trains = true in place of training it: script_agent.lua
  timed = nil,                     -- true: the result has the time that statistics took, seconds_told of seconds_trained
}
local LOG_STEPS = 10000            -- steps between two lines of the log
local SHORT = 15                  -- seconds of each map of a memory that a training measures at its end
local DUE = 1                      -- an event besides signals, which have larger numbers: it is time for a checkpoint

-- What a checkpoint holds: the learner's, and where the generator of dropout is, if anything was drawn.
local function contents(learner)
  local list = learner:contents()
  if random.state() then list[#list + 1] = { "random.generator", random.state() } end
  return list
end

---Puts a checkpoint back: everything that is in `contents`, by name, type and shape.
---@param checkpoint table of checkpoint_files.read
function trainer.restore(learner, checkpoint)
  for _, item in ipairs(learner:contents()) do
    local name, mine = item[1], item[2]
    local stored = checkpoint.tensors[name]
    if not stored and not item.optional then errors.fail(("%s has no %s: it belongs to another experiment"):format(checkpoint.path, name)) end
    if stored and not item.own then
      local a, b = table.concat(ranks.shape(item), ","), table.concat(stored:shape(), ",")
      if a ~= b or mine:dtype() ~= stored:dtype() then
        errors.fail(("%s: %s is [%s], expected [%s]"):format(checkpoint.path, name, b, a))
      end
      ranks.take(item, stored)
    end
  end
  if checkpoint.tensors["random.generator"] then random.set_state(checkpoint.tensors["random.generator"]) end
  learner:restored(checkpoint)
end

local function notify(observers, event, ...)
  for _, o in ipairs(observers) do if o[event] then o[event](o, ...) end end
end

---Whether training may go on after an update; where a value is NaN or infinite the loop stops and says that training diverged.
function trainer.is_finite(loss, norm) return loss - loss == 0 and norm - norm == 0 end

-- `problem`: an op that debug stopped at, or nil.
local function diverged(learner, run, step, observers, problem)
  local kept
  for _, o in ipairs(observers) do kept = kept or o.diverged and o:diverged() end
  local at = kept and "; " .. kept
    or run.last_step > 0 and ("; the last good checkpoint is at step %.0f"):format(run.last_step) or "; there is no checkpoint yet"
  errors.diverged(("training diverged at step %.0f: %s%s"):format(step, problem or learner:find_nan(), at),
    "a smaller lr or max_norm may help")
end

-- Its environments or its data set have failed for good: a checkpoint of the training as it was after its last whole update loses nothing.
local function save_before(run, step, checkpoint, what)
  if step == 0 then return end
  local ok, why = true, nil
  if step > run.last_step then ok, why = pcall(checkpoint) end
  terminal.note(ok and ("saved as it was at step %.0f, before this %s; to go on: mneme run %s resume=%s"):format(step, what, run.script or "SCRIPT", run.path)
    or ("mneme: warning: %s: it cannot be saved as it was at step %.0f: %s"):format(run.path, step, tostring(why)))
end

local function log(learner, run, step, started)
  local m = {}
  learner:metrics(m)
  m["charts/SPS"] = (step - started.step) / math.max(1e-9, C.mn_clock(false) - started.time)
  run:log(step, m)
end

-- Prints what comes with the core that was chosen: its size, how its gates begin, and published settings that replace the script's.
local function tell_choices(learner, about)
  local cfg, core = learner.cfg, (learner.agent or learner.model or {}).core
  local lines = { learner.begins }
  lines[#lines + 1] = default_core_size.text(about) or default_core_size.idle(cfg.core)
  lines[#lines + 1] = config.meta(cfg).published
  local layers = type(core) == "table" and core.half_lives and core:half_lives()
  lines[#lines + 1] = layers and ("%s: initial memory %s (core.remember)"):format(core.name, (gate_start.describe(layers))) or nil
  for _, line in ipairs(lines) do print(terminal.fold(line, terminal.columns(1))) end
end

-- A resume with other steps: the learner's schedule continues from where it was, and a line says so.
local function stretch(learner, cfg, path, step)
  local list, info = {}, config.meta(cfg).resumed
  for i, start in ipairs(starts.of(info)) do list[i] = { from_step = start.from_step, steps = tonumber(start.steps) } end
  while list[1] and list[#list].from_step >= step do list[#list] = nil end
  local before = list[#list]
  if before and not before.steps then before.steps = tonumber(info.config.steps) end          -- of a version that did not note it
  list[#list + 1] = { from_step = step, steps = cfg.steps }
  for i = 2, #list do if list[i].steps ~= list[i - 1].steps then learner.starts = list end end
  if not before or before.steps == cfg.steps then return end
  local text = ("%s: steps=%s; until this resume, at step %.0f, steps=%s"):format(path, setting_types.show(cfg.steps), step, setting_types.show(before.steps))
  if schedule.decays(learner.lr_schedule) then
    text = text .. ("; lr_schedule=%s continues from the rate that it had there, and ends at step %s"):format(learner.lr_schedule,
      setting_types.show(cfg.steps))
  end
  print(terminal.fold(text, terminal.columns(1)))
end

-- What fresh episodes of an agent came to that stopped at its stop_score; nil: it has none, or a signal came.
local function play_fresh(learner, run, step)
  local before = run.before
  if before and before.step == step and before.fresh then return before.fresh end            -- an earlier start played them
  if not (trainer.fresh and learner.agent) then return nil end
  local ok, played = xpcall(trainer.fresh, errors.handler, learner, FRESH, step)
  if not ok then terminal.note(("mneme: warning: %s: no fresh episodes: %s"):format(run.path, played.message)) end
  return ok and played or nil
end

-- "first reached 0.97 at step 8,192; fresh episodes: 0.81 sampled, 0.85 greedy; no memory gives 0.5; normalised 0.620"
local function first_reached(learner, step, played)
  local parts = { ("first reached %g at step %s"):format(learner.stop_score, format.grouped(step)) }
  if played then parts[2] = ("fresh episodes: %.2f %s%s"):format(played.score,
    learner.agent.kind.values and "by argmax of Q" or "sampled", played.greedy and (", %.2f greedy"):format(played.greedy) or "") end
  parts[#parts + 1] = reference_scores.text(learner.env.reference, played and played.score)
  return table.concat(parts, "; ")
end

---Train to cfg.steps, or until the learner says that it is over.
---@param learner table see above
---@return table { path, steps, and the learner's summary }
function trainer.train(learner)
  if trainer.instead then return trainer.instead(learner, true) end          -- script_agent.lua wants the learner alone
  local cfg = learner.cfg
  if not config.meta(cfg) then errors.raise "train: the settings are a plain table, expected those of mn.config { ... }" end
  if cfg.view and not learner.agent then errors.usage "view=1: there is nothing to watch: this learner has no agent in an environment" end
  if ranks.size > 1 and not learner.divides_batch then errors.usage "mpirun: this learner trains in one process" end
  if learner.env then check_resumable.check(learner.env) end
  local about, acts = learner:describe(), learner.agent or learner.model
  local core = acts and acts.core
  local own_core = core and (about.own_words or core.file or not registry.is_ours("cores", core.name))
  if own_core or about.torso or about.policy or about.value then
    check_own_parts.check(acts, about, learner.reset_on_done ~= false or learner.carry == false or (learner.context or 0) > 0, own_core)
  end
  if ranks.size > 1 then ranks.compare("training", runs.alike(cfg, about)) end
  local run, leads = runs.open(cfg, about), ranks.rank == 0
  local step, logged, account = 0, 0, resources.begin()
  learner:begin()
  local from = run.resumed and run:latest()
  if from then
    trainer.restore(learner, from)
    step, logged = from.step, checkpoint_files.whole(from.path, "logged", from.counters.logged, from.step)
    print(terminal.plain(("%s: going on at step %.0f"):format(run.path, step)))
    stretch(learner, cfg, run.path, step)
  else
    print(terminal.fold(("%s: %s"):format(run.path, learner:headline()), terminal.columns(1)))
    tell_choices(learner, about)
    io.stdout:flush()                            -- the first update may take long
    local warning = leads and learner.warning and learner:warning()
    if warning then terminal.note("mneme: warning: " .. warning) end
  end
  if ranks.size > 1 then ranks.agree(learner:contents()) end
  local observers = {}
  for _, open in ipairs(trainer.observers) do observers[#observers + 1] = open(learner, run, function() return step end) end
  local bar = progress.new { steps = cfg.steps, start = step, silent = not leads, at_most = (learner.stop_score or -1) >= 0 }
  local started = { step = step, time = C.mn_clock(false) }
  local function counters()
    local c = learner:counters()
    c.logged = logged
    return c
  end
  local function checkpoint() run:checkpoint(step, ranks.whole(contents(learner)), counters(), learner:best()) end
  local function over()
    local late = trainer.budget and C.mn_clock(false) - started.time > trainer.budget
    return step >= cfg.steps or learner:over() or (late and step > started.step)
  end
  local first, told = true, 0                    -- told: seconds that statistics took
  local function loop()
    while not over() do
      notify(observers, "before", step, counters)
      if learner.remember then learner:remember() end
      local ok, made, fine = xpcall(learner.advance, errors.handler, learner)
      if not ok and made.status == 3 then diverged(learner, run, step, observers, tostring(made)) end
      if not ok then
        local done = ranks.size == 1 and learner.undo and learner:undo()          -- steps
        if done and done > 0 then
          step, logged = step + done, step + done
          log(learner, run, step, started)
        end
        if done then save_before(run, step, checkpoint, learner.agent and "rollout" or done > 0 and "evaluation" or "batch") end
        error(made, 0)
      end
      if type(fine) ~= "boolean" then
        errors.raise(("%s: %s gave no true or false: is a value not finite?"):format(learner.what, made and "update" or "advance"),
          { where = errors.position_of(learner[made and "update" or "advance"]) })
      end
      step = step + made
      if trainer.budget and first then           -- which made its plans
        first, started = false, { step = step, time = C.mn_clock(false) }
      end
      if not fine then diverged(learner, run, step, observers) end
      bar:update(step, learner:shown())
      local logs = step - logged >= LOG_STEPS or over()
      if logs then
        local began = C.mn_clock(false)
        logged = step
        log(learner, run, step, started)
        told = told + C.mn_clock(false) - began
      end
      notify(observers, "after", step, logs)
      local signal = C.mn_interrupted()
      local event = ranks.most(signal ~= 0 and signal or run:due(step) and DUE or 0)
      signal = event > DUE and event or 0
      if event ~= 0 or over() then checkpoint() end
      if signal ~= 0 then return errors.status_of(signal) end
    end
    return 0
  end
  local ok, status = xpcall(loop, errors.handler)
  if ok and leads then account:write(run.path) end
  bar:finish(step, learner:shown())
  notify(observers, "close", step, ok)
  if not ok then
    if leads and status.status == 3 then outcome.write(run.path, "diverged", step, {}) end
    run:close(status.status == 3 and 3 or 1)
    error(status, 0)
  end
  local text, result = learner:summary()
  local reached = status == 0 and learner:over()
  local stopped = reached and (learner.stop_score or -1) >= 0
  local ended = status ~= 0 and "signal" or stopped and "stop_score" or step >= cfg.steps and "steps" or reached and "learner" or "budget"
  if leads then outcome.write(run.path, ended, step, result) end
  if stopped and leads and learner.env and not trainer.budget then
    local played = play_fresh(learner, run, step)
    if played then
      outcome.write(run.path, ended, step, result, played)
      for name, value in pairs(outcome.metrics(run.path)) do result[name] = value end
    end
    status = errors.status_of(C.mn_interrupted())          -- a resume plays what is missing
    text = first_reached(learner, step, played)
  else text = ("%.0f steps, %s%s"):format(step, text, stopped and (": stop_score=%g is reached"):format(learner.stop_score) or "") end
  text = terminal.fold(("%s: %s"):format(run.path, text), terminal.columns(1))
  if stopped and status ~= 0 then print(text) end          -- close ends the program
  run:close(status)
  print(text)
  local wanted = (cfg.where or "0") ~= "0" and status == 0 and leads and learner.env and learner.agent and not trainer.budget and trainer.map
  if wanted and (cfg.where == "1" or not files.is_file(run.path .. "/../../study.json")) then
    io.stdout:flush()
    local mapped, why = xpcall(trainer.map, errors.handler, run.path, cfg.where == "short" and SHORT or nil)
    if not mapped then terminal.note(("mneme: warning: %s: no map of its memory: %s"):format(run.path, why.message)) end
  end
  result.path, result.steps = run.path, step
  if trainer.timed then result.seconds_told, result.seconds_trained = told, C.mn_clock(false) - started.time end
  if trainer.budget then
    local measured = step - started.step        -- 0: its first update was all of it, and is no measure of a step
    result.seconds_measured = measured > 0 and C.mn_clock(false) - started.time or 0
    result.seconds_per_step = measured > 0 and result.seconds_measured / measured or 0
  end
  return result
end

return trainer
