-- on_policy.lua -- what learners that act share, A2C, PPO and those made by mn.on_policy: an agent in num_envs environments, rollouts of num_steps,
-- V of the last observation where a time limit cut an episode off, the log and the checkpoint.
-- A rollout is cut into pieces of `horizon` steps (0: one piece).  Each has its own plan, run row by row, from a
-- state that is a leaf: values continue from piece to piece, gradients do not.
--   carry          is the state carried from one rollout to the next?
--   reset_on_done  is it reset where an episode begins?
--   context        it is reset after that many observations (0: never)
--   horizon        gradients flow back at most that many steps (0: through the whole rollout)
--   credit         exact: they go on beyond the rollout, to where the episode began (learn/exact_credit.lua)
local ffi = require "ffi"
local rollout_batch = require "mneme.learn.rollout_batch"
local engine = require "mneme.base.engine"
local episode_stats = require "mneme.learn.episode_stats"
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local format = lazy "mneme.base.format"
local extra_losses = require "mneme.learn.extra_losses"
local learner_settings = require "mneme.runs.learner_settings"
local initial_parameters = lazy "mneme.learn.initial_parameters"
local normaliser = lazy "mneme.learn.normaliser"
local optim = require "mneme.tensor.optim"
local plan = require "mneme.tensor.plan"
local progress = require "mneme.base.progress"
local ranks = require "mneme.tensor.ranks"
local exact_credit = lazy "mneme.learn.exact_credit"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local terminal = require "mneme.base.terminal"
local trainer = require "mneme.learn.trainer"
local gate_start = require "mneme.models.gate_start"
local C, ops, schedule = engine.C, tensor.ops, learner_settings.schedule
local HEAVY = 2 ^ 30           -- bytes of state that are worth a word before they are filled
local MOST_PIECES = 64             -- as many plans as one plan can depend on

---@class OnPolicy
---@field cfg table
---@field env Env
---@field agent Agent
---@field step integer environment steps so far, summed over all environments
---@field T integer steps of a rollout
---@field B integer environments of this process: first .. first + B - 1 of the run's num_envs
---@field x Tensor [T+1,B,...] observations in the environment's own type
---@field inputs Tensor [T+1,B,...] the same as the agent reads them: x itself, or normalised with norm_obs
---@field done Tensor [T+1,B] u8: the observation begins an episode
---@field resets Tensor [T+1,B] u8: the memory is cleared before the observation
---@field previous table? { action = [T+1,B], reward = [T+1,B] }: the previous action and reward, inputs of the agent
---@field rewards Tensor [T,B]; the last one of a truncated episode holds gamma V of what would have followed, too
---@field epsilon Tensor? [1], of a learner that acts by Q values: the share of random actions
---@field played Tensor [T,B] actions, of several numbers [T,B,size]
---@field past table? with credit=exact: exact_credit.lua
---@field pieces table[] { first, rows, to = one past its last row of x, act, state, logits, values, after, actions, probes }
---@field next table<string, Tensor> where the next rollout begins
local OnPolicy = {}
OnPolicy.__index = OnPolicy

---The settings that all of them have.
OnPolicy.defaults = {
  num_steps = 128, lr = 1e-3, adam_eps = 1e-8, entropy_coef = 0.01,
  gamma = 0.99, lambda = 0.95, value_coef = 0.5, bootstrap_truncated = true, lr_schedule = "constant", warmup = 0,
  beta1 = 0.9, beta2 = 0.999, weight_decay = 0, max_norm = 0.5,
  carry = true, reset_on_done = true, horizon = 0, context = 0, credit = "window", stop_score = -1,
  norm_obs = false, clip_obs = 10, norm_reward = false, clip_reward = 0, aux_coef = 1,
}

-- ---- making one ----

-- Windows on what the agent is given in rows first .. to-1: observations, resets, the previous action and reward.
local function inputs(self, first, to, timed)
  local function rows(t) return rollout_batch.window(t, first, to, timed) end
  return rows(self.inputs), rows(self.resets), rollout_batch.told(self.previous, rows)
end

---What acting computes, recorded as a plan: each row is what a call of one step gives.  With a tape, unless the class says otherwise or the
---update runs the sequence again.
---@param x Tensor [T,B,...] observations
---@param resets Tensor [T,B]
---@param state table<string, Tensor>
---@param probe function? asked for inner values: probe(name, tensor)
---@param previous table<string, Tensor>? the previous action and reward, inputs of the agent
---@return Tensor logits
---@return Tensor values
---@return table<string, Tensor> state
---@return Tensor core_output
function OnPolicy:forward(x, resets, state, probe, previous)
  if self.agent:acts_apart() then return self:forward_again(x, resets, state, probe, previous) end
  return self.agent:act(x, resets, state, probe, previous)
end

-- Steps first .. first + rows - 1; the last piece also takes the row in whose value the returns end.
local function piece_of(self, first, rows)
  local piece = { first = first, rows = rows, to = first + rows + (first + rows == self.T and 1 or 0),
    state = self.agent.core:initial(self.B), probes = {} }
  local x, resets, previous = inputs(self, first, piece.to, true)
  local function probe(name, t) piece.probes[name] = t return t end
  local forward = self.past and function(...) return self.past:heard(self.forward, ...) end or self.forward
  piece.act = plan(function(seen, cleared, state, told)
    local logits, values, after
    if self.past then state = self.past:with_past(state) end
    logits, values, after, piece.core_output = forward(self, seen, cleared, state, probe, told)
    return logits, values, after, self.agent:choose(logits, self.clock, self)
  end)
  piece.act.by_rows = true
  piece.logits, piece.values, piece.after, piece.actions = piece.act(x, resets, piece.state, previous)
  rollout_batch.rows_of(piece.actions, self.row.action, first)
  rollout_batch.rows_of(piece.values, self.row.value, first)
  return piece
end

-- A piece as a sequence, from the state that it began in: what the agent makes of it in an update.
local function again(self, piece)
  local x, resets, previous = inputs(self, piece.first, piece.to, false)
  local logits, values, _, core_output = self.agent(x, resets, piece.state, nil, previous)
  return { logits = logits, values = values, core_output = core_output }
end

-- What credit=exact needs: sensitivities of every environment, and the rollout as the core reads it.
local function reach_back(self, what)
  if self.horizon > 0 or not self.carry then
    errors.usage(("%s: credit=exact connects rollouts, which %s cuts"):format(what, self.carry and "horizon" or "carry=0"))
  end
  self.past, self.rolled = exact_credit(self.agent.core, self.B, function(...) return self.agent:features(...) end), { inputs(self, 0, self.T, false) }
end

-- This rank's share of the environments.
local function share(self, what, env)
  self.num_envs, self.divides_batch = env.num_envs, true
  self.B = self.num_envs / ranks.size
  if self.B % 1 ~= 0 then
    errors.usage(("%s: num_envs=%d cannot be shared out evenly among %d ranks"):format(what, self.num_envs, ranks.size),
      ("%d or %d environments, or %s ranks"):format(math.floor(self.B) * ranks.size, math.ceil(self.B) * ranks.size, format.divisors(self.num_envs)))
  end
  self.first = ranks.rank * self.B
  if ranks.size > 1 then env:keep(self.first, self.B) end
  self.finished = episode_stats(self.num_envs, ranks.size > 1 and self.T * self.B or nil)
end

---Make a learner of a class.
---@param instances table the metatable of its learners; __index is the class: see learners.define
---@param what string its name, for errors
---@param cfg table learner keys and the run's (see docs/learners.md)
---@param env Env
---@param agent Agent
---@param extra table? terms of the loss besides the class's, and their modules: see extra_losses.lua
function OnPolicy.new(instances, what, cfg, env, agent, extra)
  errors.need(what .. ": env", env, "observation_space", "mn.env(...)")
  errors.need(what .. ": agent", agent, "core", "mn.agent { env = env, ... }")
  if tostring(agent.action_space) ~= tostring(env.action_space) then
    errors.raise(("%s: the agent acts in %s, its environment takes %s"):format(what, agent.action_space, env.action_space))
  end
  local self = setmetatable({ env = env, agent = agent, cfg = cfg, what = what, step = 0, progress = {}, losses = {} }, instances)
  if self.acts == "values" then
    agent:act_by_values(what, cfg.layer_norm ~= false and cfg.layer_norm ~= 0)
  elseif agent.kind.values then errors.usage(what .. ": this agent acts by the largest Q, which has no gradient", "learner=pqn") end
  agent.beside = extra_losses.read(what, extra).module          -- the agent's functions may close over them
  if trainer.instead then          -- a tool wants environment and agent of a stored run: what follows concerns learning alone
    trainer.instead(self)
    return self
  end
  for key, value in pairs(learner_settings.read(what, cfg, self.defaults)) do self[key] = value end
  self.horizon = self.horizon or 0               -- of a class that goes without
  self.extra, self.modules = extra_losses.read(what, extra, self:modules())
  if (cfg.init or "") .. (cfg.init_map or "") .. (cfg.freeze or "") ~= "" then initial_parameters.settle(self) end
  if env.skips and self:every_step() then
    errors.usage(what .. ": env.vector=1 has steps that only begin an episode, which this learner would learn from", "learner=a2c or ppo, or no env.vector")
  end
  if cfg.aux_coef ~= nil and not self.extra.terms[1] then errors.usage(what .. ": aux_coef: there is no aux, the terms that it weighs") end
  local core = agent.core
  if core.config.reset == false and (self.context > 0 or not self.carry) then
    errors.usage(("%s: context and carry=0 clear the memory, but core %s has reset=false"):format(what, core.name))
  end
  self.T = self.num_steps
  share(self, what, env)
  self.clock, self.epsilon = tensor.new { shape = { 3 }, dtype = "i32" }, self.acts == "values" and tensor.new { 1 } or nil
  self.clock_data = self.clock:data()
  self.clock_data[0] = (cfg.seed or 1) % 2 ^ 31
  self.memory_resets = rollout_batch.resets(self.B, self.reset_on_done, self.context)
  self.normaliser = (self.norm_obs or self.norm_reward or self.clip_reward > 0 or agent.statistics) and normaliser.of_learner(what, self) or nil
  agent.normaliser = self.normaliser         -- a stepper of this agent uses it, too
  local bytes = 4 * core:state_floats() * self.B
  if bytes > HEAVY then
    terminal.note(("mneme: warning: core %s: the state of %d environments takes %.1f GiB, and each rollout works through it"):format(core.name, self.B,
      bytes / 2 ^ 30))
  end
  self.next = core:initial(self.B)
  rollout_batch.make(self)
  self:prepare()
  self:setup()
  return self
end

---The optimiser and the plans of acting and learning.
function OnPolicy:prepare()
  if self.credit == "trace" then
    if not self.defaults.horizon then errors.usage(self.what .. ": credit=trace: its updates run whole rollouts", "credit=window") end
    self.horizon = 1
  end
  local length = self.horizon > 0 and self.horizon or self.T
  if math.ceil(self.T / length) > MOST_PIECES then
    errors.usage(("%s: %s cuts num_steps=%d into %d pieces, expected at most %d"):format(self.what,
      self.credit == "trace" and "credit=trace" or "horizon=" .. length, self.T, math.ceil(self.T / length), MOST_PIECES))
  end
  if self.credit == "exact" then reach_back(self, self.what) end
  self.optimiser = optim[self.optimiser or "adamw"](self.extra.module:parameters(self.agent:parameters()), { lr = self.lr, beta1 = self.beta1,
    beta2 = self.beta2, eps = self.adam_eps, max_norm = self.max_norm, weight_decay = self.weight_decay })
  self.pieces = {}
  local first = 0
  while first < self.T do
    self.pieces[#self.pieces + 1] = piece_of(self, first, math.min(self:piece_length(first, length), self.T - first))
    first = first + self.pieces[#self.pieces].rows
  end
  self.learn = plan(function() self:loss_and_step() end)
end

---How many steps the piece of a rollout has that begins with step `first`: for classes that cut it elsewhere than every `length` steps.
function OnPolicy.piece_length(_, _, length) return length end

---Called once, when all buffers are there: for those of a class.
function OnPolicy.setup() end

---Called once, when the settings are there: what a class trains besides the agent.
---@return table<string, Module|Tensor>? modules, and leaves with a gradient, by name: then in self.modules
function OnPolicy.modules() end

-- ---- acting ----

---Begin: every environment's world and memory again.
function OnPolicy:begin()
  local T, row = self.T, self.row
  engine.wait()
  self.env:reset_raw(row.x[T], self.cfg.seed or 1)
  ffi.fill(row.done[T], self.B, 1)
  self.memory_resets:all(row.resets[T])
  self.finished:begin()
  if row.previous.action then for b = 0, self.B - 1 do self.env.action_space:clear(row.previous.action[T], b) end end
  if row.previous.reward then ffi.fill(row.previous.reward[T], 4 * self.B) end
  tensor.keep(self.agent.core:initial(self.B, self.first), self.next)
  if self.normaliser then self.normaliser:begin(self) end
end

-- A plan for one more step that counts for nothing: V of observations that no action follows.
local function peek_plan(self)
  return plan(function(x, resets, state, previous)
    local _, values = tensor.off_tape(self.agent.act, self.agent, x, resets, state, nil, previous)
    return values
  end)
end

-- V of what would have followed, where an episode was cut off in step t, from the state before the reset, is added to
-- the last reward.
local function bootstrap(self, t, after)
  local peek = self.peek
  if self.normaliser then self.normaliser:uncut(self, t) end
  if not peek.plan then
    peek.state, peek.plan = tensor.keep(after), peek_plan(self)
    peek.values = peek.plan(peek.x, peek.resets, peek.state, peek.previous):data()
  else
    tensor.keep(after, peek.state)
    peek.plan:run()
  end
  engine.check(C.mn_rollout_uncut(engine.ctx, self.buffers, self.B, t, self.gamma, peek.values))
end

---Steps of every environment were made.
---@param steps integer
function OnPolicy:advance_clock(steps)
  local low = self.clock_data[1] + steps
  self.clock_data[1] = low % 2 ^ 31
  if low >= 2 ^ 31 then self.clock_data[2] = self.clock_data[2] + 1 end
end

---The rollout is whole: its episodes and steps are counted.
function OnPolicy:count_episodes()
  self.env:rolled()
  local B, done, finished, at = self.B, self.row.done, self.finished, self.outcome_at
  local score, ret, length, live = at.score, at.ret, at.length, self.live_at
  for t = 0, self.T - 1 do
    local over = done[t + 1]
    for b = 0, B - 1 do
      local i, none = t * B + b, live and over[b] ~= 0 and length[t * B + b] == 0
      if live then live[i] = none and 0 or 1 end
      if over[b] ~= 0 and not none then finished:add(t, b, score[i], ret[i], length[i]) end
    end
  end
  finished:settle(self.T)
  self.step = self.step + self.T * self.num_envs
end

---Act for num_steps in every environment; fills x, done, resets, previous, rewards, played and what the plans compute.
function OnPolicy:rollout()
  local T, B, row, last = self.T, self.B, self.row, nil
  for i = 1, #self.overwritten do engine.check(C.mn_tensor_changes(engine.ctx, self.overwritten[i], "rollout")) end
  engine.check(C.mn_rollout_begin(engine.ctx, self.buffers, B, T, self.row_bytes))
  if self.normaliser then self.normaliser:before(self) end
  if not self.carry then
    engine.wait()
    self.memory_resets:all(row.resets[0])
  end
  local note = not self.has_acted and ranks.rank == 0 and not trainer.budget and progress.first_round "rollout"
  self.has_acted = true
  for _, piece in ipairs(self.pieces) do
    tensor.keep(last and last.after or self.next, piece.state)
    for t = piece.first, piece.first + piece.rows - 1 do
      piece.act:rows(t - piece.first, t - piece.first + 1)
      if self.watch then
        engine.wait()
        self.watch(t, piece)
      end
      local cut = self.env:roll(self.buffers, t, row.action[t])
      if self.normaliser then self.normaliser:after(self, t) end
      if cut and self.peek then bootstrap(self, t, piece.after) end
      if note then note(t + 1, T) end
    end
    engine.wait()
    self:advance_clock(piece.rows)
    last = piece
  end
  tensor.keep(last.after, self.next)
  last.act:rows(last.rows, last.rows + 1)     -- the value that the returns end in
  self:count_episodes()
  if self.past then self.past:look(self.rolled[1], self.rolled[2], self.pieces[1].state, self.rolled[3]) end
end

-- ---- methods that the trainer calls ----

---What the pieces computed as one sequence of T + 1 rows.
---@param name string "logits", "values" or "core_output"
---@param pieces table[]? of acting, unless others are given
---@return Tensor
function OnPolicy:joined(name, pieces)
  pieces = pieces or self.pieces
  local all = pieces[1][name]
  for i = 2, #pieces do all = ops.concat(all, pieces[i][name], { axis = 0 }) end
  return all
end

---The same on the tape, for a loss.  Where a step of acting sees less than its row of the sequence (gtrxl, rmt), the sequence is run again
---from the state in which the rollout began, as the released code does; else acting's activations serve.
---@param name string "logits", "values" or "core_output"
---@return Tensor
function OnPolicy:sequence(name)
  if not self.agent:acts_apart() then return self:joined(name) end
  if not self.run_again then
    self.run_again = {}
    for i, piece in ipairs(self.pieces) do self.run_again[i] = again(self, piece) end
  end
  return self:joined(name, self.run_again)
end

---One rollout, one update.
---@return integer steps
---@return boolean fine
function OnPolicy:advance()
  self:rollout()
  local fine = self:update()
  if self.past then self.past:move_on() end
  return self.T * self.num_envs, fine
end

---What share of the training was done before this update: for schedules of one's own, which a resume with other steps then continues.
---@param step number? instead
---@return number? share 0..1; nil: a training without an end
function OnPolicy:share_done(step)
  return schedule.share(step or self.step - self.T * self.num_envs, self.cfg.steps, self.starts, self.T * self.num_envs)
end

---The learning rate of the next update of the optimiser.
---@return number
function OnPolicy:rate()
  local each = self.T * self.num_envs          -- steps of an update
  return schedule.rate(self, self.optimiser:updates() + 1, self.step - each, self.cfg.steps, self.starts, each)
end

---Does the mean score of the last 100 episodes reach stop_score?  An error where they have none.
---@return boolean
function OnPolicy:over()
  local finished = self.finished
  if self.stop_score < 0 or finished.total < finished.WINDOW then return false end
  local score = finished:score()
  if not score then self.env:refuse_score(("stop_score=%g"):format(self.stop_score)) end
  return score >= self.stop_score
end

---What config.json says of agent, environment and memory.
---@return table
function OnPolicy:describe()
  local about, env = self.agent:describe(), self.env
  about.env, about.env_of_script = env.id, env.world.vec == nil or nil     -- see script_agent.lua
  about.task = tables.merged(env.settings, { num_envs = self.num_envs })
  about.own_limit, about.reference, about.packages = env.world.own_limit or nil, env.reference, env.world.packages
  about.memory = { carry = self.carry, reset_on_done = self.reset_on_done, context = self.context, horizon = self.horizon,
    num_steps = self.T }
  about.learner = { name = self.what, config = learner_settings.of(self, self.defaults) }
  if not self.extra.terms[1] then about.learner.config.aux_coef = nil end
  about.max_norm, about.normalise = self.max_norm, self.normaliser and self.normaliser:describe()
  return about
end

---One line: which agent, on what.
---@return string
function OnPolicy:headline()
  local past = self.past and self.past:cost(1) or ""
  return ("%s on %s, %d parameters%s"):format(self.agent.core.name, self.env.id, self.agent.module:count(), past)
end

---A warning before training: the agent is not told what the environment needs, or the core forgets far sooner than it asks.
---@return string?
function OnPolicy:warning()
  local needs = self.env.needs
  if needs and not self.agent.previous[needs] then
    return ("an observation of %s is of the previous action, which this agent is not told; with previous=%s it is"):format(self.env.id, needs)
  end
  return gate_start.warning(self.agent.core, self.env)
end

---Numbers to log: those of the episodes, of the optimiser, and self.losses, name -> number.
---@param m table<string, number> to fill
function OnPolicy:metrics(m)
  self.finished:metrics(m, self.env.reference)
  self.env:metrics(m)
  if self.epsilon then m["charts/epsilon"] = self.epsilon:data()[0] end
  for name, value in pairs(self.losses) do m["losses/" .. name] = value end
  self.part_names = self.part_names or self.extra.module:parts(self.agent.module:parts(), "extra")
  self.optimiser:metrics(m, self.part_names)
end

---What the progress bar shows.
---@return table
function OnPolicy:shown()
  self.progress.score, self.progress["return"] = self.finished:score(), self.finished:mean_return()
  return self.progress
end

---By what the best checkpoint is chosen: the largest of it; the return where no score is declared.  Of fewer episodes it says little.
---@return number?
function OnPolicy:best()
  local finished = self.finished
  return finished.total >= finished.WINDOW and (finished:score() or finished:mean_return()) or nil
end

---Its plans, { name, plan }: for profile=1 and the search for a NaN.
---@return table[]
function OnPolicy:plans()
  local list = { { "update", self.learn } }
  for _, piece in ipairs(self.pieces) do list[#list + 1] = { "act", piece.act } end
  for _, name in ipairs(self.past and { "plan", "carry" } or {}) do list[#list + 1] = { "past", self.past[name] } end
  return list
end

---What went wrong, for the error message of a run that diverged.
---@return string
function OnPolicy:find_nan()
  for _, piece in ipairs(self.pieces) do
    local found = piece.act:find_nan()
    if found then return found end
  end
  return self.learn:find_nan() or "the loss is not finite"
end

---How it ended: a line, and the same as a table.
---@return string
---@return table
function OnPolicy:summary() return self.finished:summary(self.env.reference) end

---What the loss reads of the rollout that was just made.
---@return Batch
function OnPolicy:batch() return rollout_batch.of_rollout(self) end

---What the update plan records.
function OnPolicy:loss_and_step()
  self.run_again = nil
  self.optimiser:zero_grad()
  local loss, logged = extra_losses.total(self, self:batch())
  loss:backward()
  extra_losses.check_trained(self)
  self.optimiser:apply()
  self.read = {}
  for name, t in pairs(logged) do self.read[name] = t:data() end
end

---One update from the rollout that was just made; false if the loss or the gradient is not finite.
---@return boolean fine
function OnPolicy:update() return self:optimiser_step() end

---One step of the optimiser by the recorded loss; false if the loss or the gradient is not finite.
---@return boolean fine
function OnPolicy:optimiser_step()
  self.optimiser:tick(self:rate())
  if self.learn.recorded then self.learn:run() else self.learn() end
  ranks.means(self.read, self.losses)
  return trainer.is_finite(self.losses.loss, self.optimiser:grad_norm())
end

for name, f in pairs(rollout_batch.checkpoint) do OnPolicy[name] = f end

---Train to cfg.steps: run folder, log, checkpoints, progress, Ctrl-C.
---@return table { path, steps, score, mean_return, normalised }
function OnPolicy:train() return trainer.train(self) end

return OnPolicy
