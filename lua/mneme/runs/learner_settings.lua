-- learner_settings.lua -- the settings of learners: one vocabulary for A2C, PPO and supervised training, to which own learners
-- add; each key with its meaning and the values that it takes.  Every script takes them on its command line (config.lua), whether it
-- declares them or not; the learner lists those that it reads, with their published values.  docs/learners.md and docs/datasets.md
-- explain them.
local errors = require "mneme.base.errors"
local setting_types = require "mneme.base.setting_types"
local tables = require "mneme.base.tables"

-- ---- schedules of the learning rate ----

-- Settings lr, lr_schedule, warmup.
-- Decay depends on the fraction of the training that is done, so a longer run decays more slowly; warm-up and the inverse
-- root count updates of the optimiser, as published.  A resume with other steps continues from the rate of the last update.
local schedule = {}

-- What is left of lr: done = share of the training so far (0..1), n = number of this update, from 1, warmup in updates.
local left = {
  constant = function() return 1 end,
  linear = function(done) return 1 - done end,
  cosine = function(done) return 0.5 * (1 + math.cos(math.pi * done)) end,
  inverse_root = function(_, n, warmup) return math.sqrt(math.max(warmup, 1) / math.max(n, warmup)) end,
}

schedule.names = tables.keys(left)

---Does a schedule depend on the steps of the whole training?
function schedule.decays(name) return name == "linear" or name == "cosine" end

---What share of a training is done at a step.  Where a resume changed its steps, the share grows evenly from what it was at the update before
---to 1 at the new end: a schedule continues from the rate that it had.
---@param step number made before an update
---@param steps number? of the whole training
---@param starts { from_step: number, steps: number? }[]? where resumes changed the steps: all starts, ascending; without steps: as the next one
---@param each number? steps of an update
---@return number? share 0..1; nil: a training without an end
function schedule.share(step, steps, starts, each)
  if not steps or not starts then return steps and math.min(1, step / steps) end
  local from, begun, ends = 0, 0, steps          -- the stretch that the step is in: where it begins, the share there, where it ends
  for i = #starts, 1, -1 do ends = starts[i].steps or ends end
  local function at(s) return s <= from and begun or math.min(1, begun + (1 - begun) * (s - from) / (ends - from)) end
  for _, start in ipairs(starts) do
    if start.steps and start.steps ~= ends and start.from_step <= step then
      begun = at(start.from_step - each)
      from, ends = start.from_step, start.steps
    end
  end
  return at(step)
end

---The learning rate of one update.  During the first `warmup` updates it grows evenly to what the schedule says.
---  constant      lr
---  linear        lr (1 - step/steps)                    (CleanRL's annealing)
---  cosine        lr (1 + cos(pi step/steps)) / 2        (Loshchilov & Hutter 2017, without restarts)
---  inverse_root  lr sqrt(warmup / n) after the warm-up  (Vaswani et al. 2017; lr is the greatest rate)
---@param set table { lr, lr_schedule, warmup }
---@param n integer number of the update, from 1
---@param step number steps made before the update's own
---@param steps number? steps of the whole training; linear and cosine need it
---@param starts table[]? see schedule.share
---@param each number? see schedule.share
function schedule.rate(set, n, step, steps, starts, each)
  local name = set.lr_schedule
  local done = schedule.share(step, steps, starts, each)
  if not steps and schedule.decays(name) then
    errors.raise(("lr_schedule=%s needs to know how long training is: cfg has no steps"):format(name))
  end
  local grown = n < set.warmup and n / set.warmup or 1
  return set.lr * grown * left[name](done, n, set.warmup)
end

-- ---- the settings ----

local learner_settings = {
  find = nil,              -- function(name) -> a learner's class; the door (init.lua) sets these two
  all = nil,               -- function() -> name -> the defaults of every learner
  schedule = schedule,
}

-- Two kinds of values besides ranges: true or false; the number 0 or more.
local switch, at_least_0, share = "switch", { 0, math.huge }, { 0, 1 }
local count = { 1, 2 ^ 24 }

---key -> { meaning, range = {lo, hi} | choices = {...} | switch = true, whole = true }
local keys = {}
learner_settings.keys = keys
local function add(key, meaning, kind, whole)
  keys[key] = { meaning, switch = kind == switch or nil, range = kind ~= switch and type(kind[1]) == "number" and kind or nil,
    choices = type(kind) == "table" and type(kind[1]) == "string" and kind or nil, whole = whole }
end
add("num_steps", "steps of a rollout, in every environment", count, true)
add("gamma", "discount of future rewards", share)
add("lambda", "weight of longer returns: TD(lambda) in A2C, GAE in PPO, Q(lambda) in PQN, traces in stream", share)
add("entropy_coef", "weight of the entropy bonus in the loss", at_least_0)
add("value_coef", "weight of the value loss", at_least_0)
add("bootstrap_truncated", "at a time limit, add the value of the last observation; 0: count it as an end", switch)
add("lr", "learning rate of Adam", at_least_0)
add("lr_schedule", "how the learning rate changes", schedule.names)
add("warmup", "updates during which the learning rate grows from 0", { 0, 2 ^ 31 }, true)
add("beta1", "Adam's decay of the mean gradient", share)
add("beta2", "Adam's decay of the mean squared gradient", share)
add("adam_eps", "Adam's epsilon", at_least_0)
add("weight_decay", "decoupled weight decay, as in AdamW", at_least_0)
add("max_norm", "clip gradients to this global norm; 0: never", at_least_0)
add("carry", "keep the memory from one rollout (or batch) to the next", switch)
add("reset_on_done", "clear the memory where an episode begins", switch)
add("horizon", "steps through which gradients flow back; 0: the whole rollout", { 0, 2 ^ 24 }, true)
add("credit", "how far back gradients reach: exact goes on beyond the rollout, to the episode's first step; trace: one step (pqn has window and exact)",
  { "window", "exact", "trace" })
add("context", "clear the memory after this many observations; 0: never", { 0, 2 ^ 24 }, true)
add("stop_score", "end training once the last 100 episodes, or the validation part, score this; -1: never", { -1, 1 })
add("epochs", "PPO, PQN: passes over a rollout", count, true)
add("minibatches", "PPO, PQN: parts of a pass, each of whole sequences", count, true)
add("clip", "PPO: clip range of the probability ratio", at_least_0)
add("clip_values", "PPO: clip the change of values, too", switch)
add("normalise_advantages", "PPO: to mean 0 and deviation 1 in each minibatch", switch)
add("target_kl", "PPO: end an update after an epoch beyond this KL divergence; 0: never", at_least_0)
add("window", "PQN: steps of the rollout before that stand in front of each sequence", { 0, 2 ^ 24 }, true)
add("targets", "PQN: computed with every minibatch from its own Q, or once from the Q that acted", { "fresh", "rollout" })
add("epsilon_start", "PQN, stream_q: share of random actions at the beginning", share)
add("epsilon_end", "PQN, stream_q: share of random actions once it is reached", share)
add("epsilon_decay", "PQN, stream_q: share of the training over which epsilon falls", share)
add("layer_norm", "PQN: normalise the hidden layer of Q's head", switch)
add("kappa", "stream: a step of the policy (stream_q: of Q) is at most 1/kappa of what would overshoot", at_least_0)
add("kappa_value", "stream: the same of the value", at_least_0)
add("eval_every", "supervised: tokens between two evaluations", { 1, 2 ^ 53 }, true)
add("eval_batches", "supervised: batches of an evaluation", count, true)

add("norm_obs", "normalise observations by their running mean and variance (Gymnasium's NormalizeObservation)", switch)
add("clip_obs", "with norm_obs: clip normalised observations to +- this; 0: never", at_least_0)
add("norm", "statistics of norm_obs and norm_reward: Gymnasium's, or Welford's of a sample, as stream AC has them", { "gymnasium", "welford" })
add("norm_reward", "divide rewards by the running deviation of discounted returns (Gymnasium's NormalizeReward)", switch)
add("clip_reward", "clip rewards, after norm_reward, to +- this; 0: never", at_least_0)
add("aux_coef", "weight of the terms that a script adds to the loss (aux)", at_least_0)

---CleanRL's name of a setting -> the name here: command lines take both.
learner_settings.cleanrl = { learning_rate = "lr", total_timesteps = "steps", gae_lambda = "lambda", update_epochs = "epochs",
  num_minibatches = "minibatches", clip_coef = "clip", clip_vloss = "clip_values", norm_adv = "normalise_advantages", ent_coef = "entropy_coef",
  vf_coef = "value_coef", max_grad_norm = "max_norm",
  start_e = "epsilon_start", end_e = "epsilon_end", exploration_fraction = "epsilon_decay" }
for name, key in pairs(learner_settings.cleanrl) do
  if keys[key] then keys[key][1] = ("%s (CleanRL: %s)"):format(keys[key][1], name) end
end

-- What a learner reads of the run's own settings, where given.
local of_run = { seed = { range = { 0, 2 ^ 53 }, whole = true }, steps = { range = { 1, 2 ^ 53 } } }

-- ---- settings of own learners ----

---A learner's setting with its default: one of the vocabulary, or a new one, of which `about` says what it means.
---@param what string the learner's name, for errors
---@param default number|boolean|string
---@param about string|table|nil "meaning", or { "meaning", range = {lo, hi}, whole = true, choices = {...} }
---@return number|boolean|string default, checked
function learner_settings.declare(what, key, default, about)
  local function refuse(...) errors.raise(("%s: %s: "):format(what, tostring(key)) .. (...):format(select(2, ...))) end
  if about ~= nil then
    about = setting_types.declared(what, key, default, about)
    if keys[key] and not keys[key].own then refuse("every learner's %s means: %s", key, keys[key][1]) end
    if not about[1] then refuse "about is no text and no { text, range = {lo, hi} }" end
    local kind, choices, range = type(default), about.choices, about.range
    if kind == "string" then
      local texts = type(choices) == "table" and choices[1] ~= nil
      for _, word in ipairs(texts and choices or {}) do texts = texts and type(word) == "string" end
      if not texts then refuse "a text needs choices = { TEXT, ... }" end
    end
    keys[key] = { about[1], own = true, switch = kind == "boolean" or nil, choices = kind == "string" and choices or nil,
      range = kind == "number" and (range or { -2 ^ 53, 2 ^ 53 }) or nil, whole = about.whole }
  end
  local rule = keys[key]
  if not rule then refuse "about does not say what it means" end
  local kind = rule.switch and "boolean" or rule.choices and "string" or "number"
  if type(default) ~= kind then refuse("its default is %s, expected a %s", tostring(default), kind) end
  return learner_settings.check(what, key, default, default)
end

---The settings that own learners have declared.
---@return table<string, boolean>
function learner_settings.own() return tables.each(keys, function(rule) return rule.own end) end

-- ---- settings that no script declares ----

---Entries of a config's schema for the learners' keys that a script does not declare.
---@param schema table<string, table> key -> { default, about, of_learner = true }; filled
function learner_settings.extend(schema)
  for key, about in pairs(keys) do
    if not schema[key] then
      local like = about.choices and about.choices[1] or 0
      if about.switch then like = false end
      schema[key] = { default = like, about = about, of_learner = true }
    end
  end
end

---Refuse a setting that the learner does not have.
---@param what string the learner's name
---@param defaults table<string, any> of the learner
function learner_settings.refuse(what, key, defaults)
  local has = {}
  for name, its in pairs(learner_settings.all and learner_settings.all() or {}) do if its[key] ~= nil then has[#has + 1] = name end end
  table.sort(has)
  if not has[1] then errors.unknown("setting of " .. what, key, tables.keys(defaults)) end
  errors.usage(("%s is a setting of %s, and the learner of this run is %s"):format(key, table.concat(has, " and "), what),
    has[1] ~= "supervised" and "learner=" .. has[1] .. ", where the script has learner="
      or "it is for training on data sets; an agent is evaluated with mneme eval RUN")
end

local unread = {}                  -- cfg -> keys of learners that it was given and its script does not declare

---These keys of a config are for a learner: one that reads it must know them.
---@param given table<string, boolean>
function learner_settings.expect(cfg, given) unread[cfg] = next(given) and given or nil end

---Refuse the settings that no learner has read, at the end of a script.
function learner_settings.finish(script)
  for _, given in pairs(unread) do
    local key = tables.keys(given)[1]
    errors.usage(("%s: %s is a learner's setting, and this script made no learner that reads it"):format(script, key))
  end
end

-- ---- reading ----

local function refuse(what, key, value, expected)
  local shown = type(value) == "string" and ("'%s'"):format(value) or tostring(value)
  errors.usage(("%s: %s=%s, expected %s"):format(what, key, shown, expected))
end

---A value of a setting, checked.
---@param default number|boolean|string? whose type it has; nil: a number
function learner_settings.check(what, key, value, default)
  local rule = keys[key] or of_run[key]
  if type(default) == "boolean" then
    if value == 0 or value == 1 then return value == 1 end
    if type(value) ~= "boolean" then refuse(what, key, value, "true or false") end
  elseif type(default) == "string" then
    if not tables.has(rule.choices, value) then errors.unknown(("%s: %s ="):format(what, key), value, rule.choices) end
  else
    local lo, hi = unpack(rule.range)
    if type(value) ~= "number" or not (value >= lo and value <= hi) or value == math.huge or (rule.whole and value % 1 ~= 0) then
      local from_to = hi == math.huge and ("of at least %g"):format(lo) or ("in %g..%g"):format(lo, hi)
      refuse(what, key, value, ("a %snumber %s"):format(rule.whole and "whole " or "", from_to))
    end
  end
  return value
end

---A learner's settings: the given ones over its defaults, each checked.  What else `cfg` holds is the script's own.
---@param what string the learner's name, for errors
---@param cfg table from mn.config, or plain
---@param defaults table<string, number|boolean|string>
---@return table<string, number|boolean|string>
function learner_settings.read(what, cfg, defaults)
  errors.need(what .. ": settings", cfg, nil, "mn.config { ... }, or a table of them")
  for key in pairs(of_run) do
    if cfg[key] ~= nil then learner_settings.check(what, key, cfg[key]) end
  end
  for _, key in ipairs(tables.keys(unread[cfg] or {})) do
    if defaults[key] == nil then learner_settings.refuse(what, key, defaults) end
  end
  unread[cfg] = nil
  for name, key in pairs(learner_settings.cleanrl) do
    if cfg[name] ~= nil and defaults[name] == nil and (defaults[key] ~= nil or of_run[key]) then
      errors.usage(("%s: %s is called %s here"):format(what, name, key))
    end
  end
  local set = {}
  for key, default in pairs(defaults) do
    local given = cfg[key]
    if given == nil then given = default end
    set[key] = learner_settings.check(what, key, given, default)
  end
  return set
end

---The values that a learner has of its settings, for config.json.
---@param learner table with the values
---@param defaults table<string, any> its settings
---@return table<string, number|boolean|string>
function learner_settings.of(learner, defaults)
  return tables.each(defaults, function(default, key) if type(learner[key]) == type(default) then return learner[key] end end)
end

---A learner's settings as rows of a help text: key, default, meaning and the values it takes.
---@param defaults table<string, number|boolean|string>
---@return string[][]
function learner_settings.rows(defaults)
  local rows = {}
  for _, key in ipairs(tables.keys(defaults)) do
    local default, rule, may = defaults[key], keys[key] or of_run[key], "0 1"
    if type(default) == "string" then may = table.concat(rule.choices, " ")
    elseif type(default) == "number" then
      may = rule.range[2] == math.huge and ("at least %g"):format(rule.range[1]) or ("%.15g..%.15g"):format(unpack(rule.range))
    end
    rows[#rows + 1] = { key, type(default) == "boolean" and (default and "1" or "0") or tostring(default),
      (rule[1] or "") .. (" (%s)"):format(may) }
  end
  return rows
end

return learner_settings
