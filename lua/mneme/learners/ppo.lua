-- ppo.lua -- proximal policy optimisation in minibatches of whole sequences, in CleanRL's details.
-- (Schulman et al. 2017.)  Rollouts of num_steps from every environment, GAE, then `epochs` passes over the rollout in
-- `minibatches`.  A minibatch has whole sequences of some environments (with `horizon`: pieces of them), run again from their
-- initial states; advantages are normalised within each minibatch.  Before the first optimiser step the new policy equals the old
-- one: the ratio of their probabilities is 1 up to rounding, and a test checks it for every core.
local ffi = require "ffi"
local rollout_batch = require "mneme.learn.rollout_batch"
local define = require("mneme.learn.learners").define
local errors = require "mneme.base.errors"
local format = require("mneme.base.lazy") "mneme.base.format"
local plan = require "mneme.tensor.plan"
local ranks = require "mneme.tensor.ranks"
local minibatches = require "mneme.learn.minibatches"
local on_policy = require "mneme.learn.on_policy"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

---@class PPO: OnPolicy
---@field losses table<string, number> of the last update, as CleanRL logs them
local PPO = {
  forward = on_policy.forward_again,
  doc = "proximal policy optimisation in minibatches of whole sequences", source = "Schulman et al. 2017; details of CleanRL",
  objective = [[
Each step of Adam minimises, over a minibatch of whole sequences,

$$L = \frac{1}{N} \sum_t \left[ -\min \left( \rho_t A_t, \mathrm{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon) A_t \right)
+ c_v \frac{1}{2} (V_t - G_t)^2 - c_e H(\pi(\cdot | s_t)) \right]$$

with the ratio and the advantages of generalised advantage estimation

$$\rho_t = \frac{\pi(a_t | s_t)}{\pi_{\mathrm{old}}(a_t | s_t)}, \quad A_t = \delta_t + \gamma \lambda A_{t+1}, \quad
\delta_t = r_t + \gamma V_{t+1} - V_t, \quad G_t = A_t + V_t$$

Here $\epsilon$ is clip, $c_v$ value_coef, $c_e$ entropy_coef; advantages are normalised in each minibatch, and values clipped as the policy's
ratio is, unless the settings say otherwise.]],
  config = {
    num_steps = 128, epochs = 4, minibatches = 4, lr = 2.5e-4, adam_eps = 1e-5, entropy_coef = 0.01,
    clip = 0.2, clip_values = true, normalise_advantages = true, target_kl = 0,
  },
}

-- What the rollout says of its own actions, [T,B] each.
local function look(self)
  local T = self.T
  local logits, values = self:joined "logits", self:joined "values"
  local returns, advantages = ops.lambda_returns { rewards = self.rewards, values = values, done = self.done,
    gamma = self.gamma, lambda = self.lambda }
  local log_probs = self.agent:distribution(ops.slice(logits, { to = T })):log_prob(self.played)
  return log_probs, ops.slice(values, { to = T }), advantages, returns
end

-- The leaves of a minibatch.  PPO's own loss reads a part of them; other losses may read all.
local function make_minibatch(self)
  local n = self.sequences.count / self.minibatches
  local function leaf(buffer) return self.sequences:leaf_of(buffer, n) end
  local m = { x = leaf(self.inputs), resets = leaf(self.resets), actions = leaf(self.played), log_probs = leaf(self.log_probs),
    values = leaf(self.values), advantages = leaf(self.advantages), returns = leaf(self.returns),
    state = self.sequences:state_leaves(n), sensitivities = self.past and self.sequences:sensitivity_leaves(n), n = n }
  m.previous = rollout_batch.told(self.previous, leaf)
  m.live = self.live and leaf(self.live)
  if self.extra.terms[1] or self.loss ~= PPO.loss then m.done, m.rewards = leaf(self.done), leaf(self.rewards) end
  return m
end

---The minibatch that was taken, with what the agent computes of it now.
---@return Batch
function PPO:batch()
  local m = self.minibatch
  local state = self.past and self.past:with_past(m.state, m.sensitivities) or m.state
  local logits, values, _, core_output, features = self.agent(m.x, m.resets, state, nil, m.previous)
  m.logits = logits
  return rollout_batch.of({ observations = m.x, done = m.done, previous = m.previous, actions = m.actions, rewards = m.rewards, features = features,
    core_output = core_output, logits = logits, policy = self.agent:distribution(logits), values = values, returns = m.returns, advantages = m.advantages,
    old_log_probs = m.log_probs, old_values = m.values }, self, m.live)
end

-- Advantages with mean 0 and (population) deviation 1, unless all are equal.
local function normalised(advantages, mean)
  local off = advantages - mean(advantages)
  local deviation = mean(off:square()):sqrt()
  return ops.where(deviation:eq(0), advantages, off / (deviation + 1e-8))
end

-- The clipped loss of any policy, from the equations of engine/ops/ppo_loss.c: the loss, of policy and values, entropy, KL, share clipped.
local function loss_of(self, batch)
  local policy, clip, advantages = batch.policy, self.clip, batch.advantages
  if self.normalise_advantages and ranks.size > 1 then
    errors.usage(("ppo: normalise_advantages in several processes needs a discrete policy, this one is %s"):format(policy:describe()),
      "normalise_advantages=0")
  end
  local mean = rollout_batch.mean_over(batch.live)
  if self.normalise_advantages then advantages = normalised(advantages, mean) end
  local log_ratio = policy:log_prob(batch.actions) - batch.old_log_probs
  local ratio = log_ratio:exp()
  local actor = mean(ops.maximum(-advantages * ratio, -advantages * ratio:clamp { lo = 1 - clip, hi = 1 + clip }))
  local errors_of_value = (batch.values - batch.returns):square()
  if self.clip_values then
    local near = batch.old_values + (batch.values - batch.old_values):clamp { lo = -clip, hi = clip } - batch.returns
    errors_of_value = ops.maximum(errors_of_value, near:square())
  end
  local value, entropy = mean(errors_of_value) * 0.5, mean(policy:entropy())
  local kl, outside = mean((ratio - 1 - log_ratio):detach()), mean(ops.cast((ratio:detach() - 1):abs():gt(clip), { to = "f32" }))
  return actor - entropy * self.entropy_coef + value * self.value_coef, actor, value, entropy, kl, outside
end

---The clipped loss, in one op where the policy has that.
---@param batch Batch
---@return Tensor loss
---@return table<string, Tensor> logged
function PPO:loss(batch)
  local function of(...)
    local loss, policy, value, entropy, kl, clipped = ...
    return loss, { policy_loss = policy, value_loss = value, entropy = entropy, approx_kl = kl, clipfrac = clipped }
  end
  local fused = not batch.live and batch.policy.fused
  if not fused then return of(loss_of(self, batch)) end
  return of(fused.ppo { logits = batch.policy.parameters, values = batch.values, actions = batch.actions, old_log_probs = batch.old_log_probs,
    old_values = batch.old_values, advantages = batch.advantages, returns = batch.returns, clip = self.clip, entropy_coef = self.entropy_coef,
    value_coef = self.value_coef, clip_values = self.clip_values, normalise_advantages = self.normalise_advantages, over_ranks = ranks.size > 1 })
end

-- How much of the returns' variance the old values explain; nil where returns do not vary.
local function explained_variance(self)
  local returns, values, n, all, sums = self.returns_at, self.values_at, self.T * self.B, self.T * self.num_envs, self.sums
  local sum, sum_off, squares, squares_off = 0, 0, 0, 0
  for i = 0, n - 1 do sum, sum_off = sum + returns[i], sum_off + returns[i] - values[i] end
  sums[0], sums[1] = sum, sum_off
  ranks.sum(sums, 2)
  sum, sum_off = sums[0], sums[1]
  for i = 0, n - 1 do
    squares = squares + (returns[i] - sum / all) ^ 2
    squares_off = squares_off + (returns[i] - values[i] - sum_off / all) ^ 2
  end
  sums[0], sums[1] = squares, squares_off
  ranks.sum(sums, 2)
  return sums[0] > 0 and 1 - sums[1] / sums[0] or nil
end

-- One step of the optimiser by one minibatch; false if its loss or gradient is not finite.
local function minibatch_step(self, index)
  self.sequences:take(index * self.minibatch.n)
  return self:optimiser_step()
end

---All epochs over the rollout that was just made, or until the policy has moved by more than target_kl; false if a
---loss or a gradient is not finite.  Logged are the last minibatch's losses, and how often ratios were clipped overall.
---@return boolean fine
function PPO:update()
  local clipped, count, losses = 0, 0, self.losses
  self.look:run()
  for _ = 1, self.epochs do
    self.sequences:shuffle(self.cfg.seed or 1, self.optimiser:updates())
    for index = 0, self.minibatches - 1 do
      if not minibatch_step(self, index) then return false end
      clipped, count = clipped + (losses.clipfrac or 0), count + 1
    end
    if self.target_kl > 0 and (losses.approx_kl or errors.raise(self.what .. ": target_kl needs a loss that logs approx_kl")) > self.target_kl then break end
  end
  losses.clipfrac = losses.clipfrac and clipped / count
  losses.explained_variance = explained_variance(self)
  return true
end

---The plan that prepares an update, and the leaves of its minibatches.
function PPO:setup()
  if self.horizon > 0 and self.T % self.horizon ~= 0 then
    errors.usage(("%s: horizon=%d does not divide num_steps=%d"):format(self.what, self.horizon, self.T), "horizon=" .. format.divisors(self.T))
  end
  self.sequences, self.sums = minibatches(self), ffi.new "double[2]"
  self.sequences:share(self.minibatches)
  self.look = plan(function() return tensor.off_tape(look, self) end)
  self.log_probs, self.values, self.advantages, self.returns = self.look()
  self.returns_at, self.values_at = self.returns:data(), self.values:data()
  self.minibatch = make_minibatch(self)
end

return define(PPO)
