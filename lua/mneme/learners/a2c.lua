-- a2c.lua -- advantage actor-critic with lambda-returns, as in the released agents.
-- Rollouts of num_steps from every environment, then one update through the whole rollout from the stored state.
-- The rollout is a list of plans run row by row.  Their activations stay, so the update starts at the backward pass: with
-- the same parameters and states it equals running the sequence again; a test compares both.  Where a step of acting sees less than
-- its row of the sequence (gtrxl, rmt), the update does run it again: losses and returns are then of its logits and values.
local rollout_batch = require "mneme.learn.rollout_batch"
local define = require("mneme.learn.learners").define

---@class A2C: OnPolicy
---@field losses table<string, number> of the last update
---@field returns Tensor? [T,B] likewise
local A2C = {
  doc = "advantage actor-critic with lambda-returns", source = "Mnih et al. 2016; TD(lambda) returns as in the released agents",
  objective = [[
Each update takes one step of Adam on the mean over T steps of B environments

$$L = \frac{1}{T B} \sum_{t, b} \left[ -\log \pi(a_t | s_t) (G_t - \bar{V}_t) + c_v (G_t - V_t)^2 - c_e H(\pi(\cdot | s_t)) \right]$$

with lambda returns, which end where an episode does, and no gradient through G and the barred V:

$$G_t = r_t + \gamma \left( (1 - \lambda) V_{t+1} + \lambda G_{t+1} \right)$$

Here $c_v$ is value_coef, $c_e$ entropy_coef, H the entropy; gradients are clipped to the norm max_norm.]],
  -- T-Maze's published values (spec of the released configuration) unless said otherwise.
  config = { num_steps = 256, entropy_coef = 0.001, lr = 1e-4, adam_eps = 1e-8 },
}

---The loss of the whole rollout: in one op where the policy has that (engine/ops/a2c_loss.c), else by its log-probabilities and entropies.
---@param batch Batch
---@return Tensor loss
---@return table<string, Tensor> logged
function A2C:loss(batch)
  local logits, values = self:sequence "logits", self:sequence "values"            -- T + 1 rows: the last one has no gradient
  local whole = self.agent:distribution(logits)
  self.returns = batch.returns
  if whole.fused and not batch.live then
    local loss, policy, value, entropy = whole.fused.a2c { logits = logits, values = values, returns = batch.returns, actions = batch.actions,
      entropy_coef = self.entropy_coef, value_coef = self.value_coef }
    return loss, { policy_loss = policy, value_loss = value, entropy = entropy }
  end
  local left = batch.returns:detach() - values:slice(0, 0, batch.returns:shape()[1])
  local mean = rollout_batch.mean_over(batch.live)
  local policy, value, entropy = -mean(batch.policy:log_prob(batch.actions) * left:detach()), mean(left:square()), mean(batch.policy:entropy())
  return policy - entropy * self.entropy_coef + value * self.value_coef, { policy_loss = policy, value_loss = value, entropy = entropy }
end

return define(A2C)
