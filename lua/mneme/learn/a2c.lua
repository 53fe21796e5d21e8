-- a2c.lua -- advantage actor-critic with lambda-returns over recurrent rollouts, as in the released agents:
-- rollouts of num_steps from every environment, then one update through the whole rollout from the stored state.
-- The rollout is a list of plans run row by row.  Their activations stay, so the update starts at the backward pass: with
-- the same parameters and states it equals running the sequence again; a test compares both.  Where a step of acting sees less than
-- its row of the sequence (gtrxl, rmt), the update does run the sequence again, from the state in which the rollout began, as the
-- released code does: losses and returns are then of its logits and values.
local on_policy = require "mneme.learn.on_policy"
local plan = require "mneme.tensor.plan"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

---@class A2C: OnPolicy
---@field losses table<string, number> of the last update
---@field returns Tensor [T,B] likewise
---Published values: T-Maze's (spec of the released configuration) unless said otherwise.
local A2C = on_policy.class { num_steps = 256, entropy_coef = 0.001, lr = 1e-4, adam_eps = 1e-8 }

---Acting keeps what a backward pass needs, unless the update runs the sequence again.
function A2C:forward(...)
  if self.agent:acts_apart() then return tensor.off_tape(self.agent.act, self.agent, ...) end
  return self.agent:act(...)
end

-- Logits and values of the rollout on the tape: of acting, or of the sequence run again.
local function sequence(self)
  if not self.agent:acts_apart() then return self:joined "logits", self:joined "values" end
  local again = {}
  for i, piece in ipairs(self.pieces) do
    local logits, values = self:again(piece)
    again[i] = { logits = logits, values = values }
  end
  return self:joined("logits", again), self:joined("values", again)
end

---What the update plan records.
function A2C:loss_and_step()
  self.optimiser:zero_grad()
  local logits, values = sequence(self)
  local returns = ops.lambda_returns { rewards = self.rewards, values = values, done = self.done,
    gamma = self.gamma, lambda = self.lambda }
  local loss, policy, value, entropy = ops.a2c_loss { logits = logits, values = values, returns = returns,
    actions = self.played, entropy_coef = self.entropy_coef, value_coef = self.value_coef }
  self.returns = returns
  loss:backward()
  self.optimiser:apply()
  self.read = { loss = loss:data(), policy_loss = policy:data(), value_loss = value:data(), entropy = entropy:data() }
end

---One update from the rollout that was just made; false if the loss or the gradient is not finite.
A2C.update = on_policy.optimiser_step

---A learner by advantage actor-critic with lambda-returns (Mnih et al. 2016; TD(lambda) returns as in the released agents).
---@param cfg table learner keys (lr gamma lambda entropy_coef value_coef max_norm num_steps ...) and the run's
---@param env table an environment (mn.env)
---@param agent Agent
---@return A2C
local function new(cfg, env, agent)
  local self = on_policy.new(A2C, "a2c", cfg, env, agent)
  self.losses = {}
  self.learn = plan(function() self:loss_and_step() end)
  return self
end

return { new = new, defaults = A2C.defaults }
