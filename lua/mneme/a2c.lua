-- a2c.lua -- advantage actor-critic with lambda-returns over recurrent rollouts, as in the released agents:
-- rollouts of num_steps from every copy, then one update through the whole rollout from the stored state.
-- The rollout is a plan run row by row; its activations stay, so the update starts at the backward pass
-- (same parameters, same states: the same numbers as running the sequence again; a test compares both).
local ffi = require "ffi"
local engine = require "mneme.engine"
local errors = require "mneme.errors"
local optim = require "mneme.optim"
local plan = require "mneme.plan"
local tensor = require "mneme.tensor"
local trainer = require "mneme.trainer"
local C, ops = engine.C, tensor.ops

---@class A2C
local A2C = {}
A2C.__index = A2C

---Published values of the learner; T-Maze's (spec of the released configuration) unless said otherwise.
local defaults = {
  num_steps = 256, gamma = 0.99, lambda = 0.95, entropy_coef = 0.001, value_coef = 0.5,
  lr = 1e-4, beta1 = 0.9, beta2 = 0.999, adam_eps = 1e-8, max_norm = 0.5, bootstrap_truncated = 1,
}

-- Pointers to every row of a [T,B,...] buffer: made once, so that stepping makes no garbage.
local function rows(pointer, count, stride)
  local list = {}
  for i = 0, count - 1 do list[i] = pointer + i * stride end
  return list
end

---@param cfg table learner keys (lr gamma lambda entropy_coef value_coef max_norm num_steps ...) and the run's
---@param task table an environment (mn.env)
---@param agent Agent
---@return A2C
local function new(cfg, task, agent)
  local self = setmetatable({ task = task, agent = agent, cfg = cfg }, A2C)
  for key, value in pairs(defaults) do
    local given = cfg[key]
    self[key] = given == nil and value or given
  end
  local T, B, n = self.num_steps, task.num_envs, 1
  for _, size in ipairs(task.observation_space.shape) do n = n * size end
  if task.observation_space.dtype ~= "f32" then errors.raise "a2c: observations must be float32" end
  self.T, self.B = T, B
  self.x = tensor.new { shape = { T + 1, B, n }, time = true }
  self.done = tensor.new { shape = { T + 1, B }, dtype = "u8", time = true }
  self.rewards, self.played = tensor.new { shape = { T, B } }, tensor.new { shape = { T, B }, dtype = "i32" }
  self.clock = tensor.new { shape = { 3 }, dtype = "i32" }
  self.clock_data = self.clock:data()
  self.state = agent.core:initial(B)          -- where the rollout begins
  self.next = agent.core:initial(B)           -- where the next one will
  self.optimiser = optim.adam(agent:parameters(), {
    lr = self.lr, beta1 = self.beta1, beta2 = self.beta2, eps = self.adam_eps, max_norm = self.max_norm })
  self.terminated, self.truncated = ffi.new("uint8_t[?]", B), ffi.new("uint8_t[?]", B)
  self.row = { x = rows(self.x:data(), T + 1, B * n), done = rows(self.done:data(), T + 1, B),
               reward = rows(self.rewards:data(), T, B), played = rows(self.played:data(), T, B) }
  self.clock_data[0] = (cfg.seed or 1) % 2 ^ 31
  self.probes = {}                            -- gates, keys, retrievals ... of the act plan, by name
  self.finished = trainer.episodes()
  self.act = plan(function(x, done, state)
    local logits, values, after = agent(x, done, state, function(name, t) self.probes[name] = t return t end)
    return logits, values, after, ops.softmax_sample { logits = logits, clock = self.clock }
  end)
  self.learn = plan(function() return self:loss_and_step() end)
  self.logits, self.values, self.after, self.actions = self.act(self.x, self.done, self.state)
  self.row.action = rows(self.actions:data(), T + 1, B)
  self.row.value = rows(self.values:data(), T + 1, B)
  return self
end

-- What the update plan records.
function A2C:loss_and_step()
  self.optimiser:zero_grad()
  local returns = ops.lambda_returns { rewards = self.rewards, values = self.values, done = self.done,
    gamma = self.gamma, lambda = self.lambda }
  local loss, actor, value, entropy = ops.a2c_loss { logits = self.logits, values = self.values, returns = returns,
    actions = self.played, entropy_coef = self.entropy_coef, value_coef = self.value_coef }
  loss:backward()
  self.optimiser:apply()
  self.losses = { loss = loss:data(), policy_loss = actor:data(), value_loss = value:data(), entropy = entropy:data() }
  return loss
end

---Begin: reset every copy and the memory.
function A2C:reset()
  self.task:reset_raw(self.row.x[self.T], self.cfg.seed or 1)
  ffi.fill(self.row.done[self.T], self.B, 1)
  tensor.keep(self.agent.core:initial(self.B), self.next)
end

-- V(final_obs) where an episode was cut off, from the state before the reset, is added to the last reward.
function A2C:bootstrap(t)
  local B, any = self.B, false
  for b = 0, B - 1 do any = any or (self.truncated[b] ~= 0 and self.terminated[b] == 0) end
  if not any then return end
  if not self.peek then
    self.peek_x = tensor.new { shape = { 1, B, self.x:shape()[3] } }
    self.peek_at, self.peek_bytes = self.peek_x:data(), self.peek_x:size() * 4
    self.peek_state = self.agent.core:initial(B)
    self.peek = plan(function(x, state)
      C.mn_no_grad(engine.ctx, true)
      local ok, logits, values = pcall(self.agent, x, nil, state)
      C.mn_no_grad(engine.ctx, false)
      if not ok then error(logits, 0) end
      return values
    end)
  end
  ffi.copy(self.peek_at, self.task.ended.final_obs, self.peek_bytes)
  tensor.keep(self.after, self.peek_state)
  if self.peek.recorded then self.peek:run()
  else self.peek_values = self.peek(self.peek_x, self.peek_state):data() end
  local values = self.peek_values
  for b = 0, B - 1 do
    if self.truncated[b] ~= 0 and self.terminated[b] == 0 then
      self.row.reward[t][b] = self.row.reward[t][b] + self.gamma * values[b]
    end
  end
end

---Act for num_steps in every copy; fills x, done, rewards, actions and the activations of the act plan.
function A2C:rollout()
  local T, B, row, act, task, step_bytes = self.T, self.B, self.row, self.act, self.task, 4 * self.B
  local terminated, truncated = self.terminated, self.truncated
  ffi.copy(row.x[0], row.x[T], self.x:size() / (T + 1) * 4)
  ffi.copy(row.done[0], row.done[T], B)
  tensor.keep(self.next, self.state)
  for t = 0, T - 1 do
    act:rows(t, t + 1)
    if self.watch then self.watch(t) end
    ffi.copy(row.played[t], row.action[t], step_bytes)
    task:step_raw(row.action[t], row.x[t + 1], row.reward[t], terminated, truncated)
    local done = row.done[t + 1]
    for b = 0, B - 1 do
      local ended = terminated[b] ~= 0 or truncated[b] ~= 0
      done[b] = ended and 1 or 0
      if ended then self.finished:add(task, b) end
    end
    if self.bootstrap_truncated ~= 0 then self:bootstrap(t) end
  end
  tensor.keep(self.after, self.next)
  act:rows(T, T + 1)                          -- the value that the returns start from
  local low = self.clock_data[1] + T
  self.clock_data[1] = low % 2 ^ 31
  if low >= 2 ^ 31 then self.clock_data[2] = self.clock_data[2] + 1 end
end

---One update from the rollout that was just made; false if the loss or the gradient is not finite.
function A2C:update(lr)
  self.optimiser:tick(lr)
  if self.learn.recorded then self.learn:run() else self.learn() end
  local loss, norm = self.losses.loss[0], self.optimiser:grad_norm()
  return loss - loss == 0 and norm - norm == 0
end

---What went wrong, for the error message of a run that diverged.
function A2C:find_nan() return self.act:find_nan() or self.learn:find_nan() or "the loss is not finite" end

---Numbers to log.
function A2C:metrics(m)
  for name, p in pairs(self.losses) do m["losses/" .. name] = p[0] end
  m["grad/norm"] = self.optimiser:grad_norm()
  m["charts/learning_rate"] = self.optimiser.hyper_data[0]
  return m
end

---What a checkpoint holds besides the parameters, { name, tensor } each, and where training goes on from.
function A2C:tensors()
  local list = {}
  for i in ipairs(self.optimiser.parameters) do
    local name = ("%03d"):format(i - 1)
    list[#list + 1], list[#list + 2] = { "adam.m." .. name, self.optimiser.m[i] }, { "adam.v." .. name, self.optimiser.v[i] }
  end
  list[#list + 1] = { "adam.hyper", self.optimiser.hyper }
  for _, name in ipairs(self.agent.core:state_names()) do list[#list + 1] = { "state." .. name, self.next[name] } end
  local B, n = self.B, self.x:shape()[3]
  list[#list + 1] = { "observation", tensor.view(self.x, self.T * B * n, { B, n }) }
  list[#list + 1] = { "done", tensor.view(self.done, self.T * B, { B }) }
  list[#list + 1] = { "clock", self.clock }
  return list
end

---Train to cfg.steps: run folder, log, checkpoints, progress, Ctrl-C.
function A2C:train() return trainer.train(self) end

return { new = new, defaults = defaults }
