-- policy_losses.lua -- the losses of A2C and PPO, asked of any policy (models/distributions.lua).  A policy that has one of them fused in one op is
-- computed by that; the others by their log-probabilities and entropies, from the same equations (engine/ops/a2c_loss.c, ppo_loss.c).
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops
local losses = {}

local function fused(policy, name, args)
  if not policy.fused then return nil end
  args.logits = policy.parameters
  return policy.fused[name], args
end

-- The first T rows of a sequence that is longer by the row in which the returns end.
local function rows(x, T) return x:shape()[1] > T and ops.slice(x, { to = T }) or x end

---@param policy Policy of T rows; a fused one of T + 1
---@param args table values [T+1,B], returns [T,B], actions, entropy_coef, value_coef
---@return Tensor loss
---@return Tensor policy_loss
---@return Tensor value_loss
---@return Tensor entropy
function losses.a2c(policy, args)
  local f, all = fused(policy, "a2c", args)
  if f then return f(all) end
  local T = args.returns:shape()[1]
  local left = args.returns:detach() - rows(args.values, T)
  local actor, value = -(policy:log_prob(args.actions) * left:detach()):mean(), left:square():mean()
  local entropy = policy:entropy():mean()
  return actor - entropy * args.entropy_coef + value * args.value_coef, actor, value, entropy
end

-- Advantages with mean 0 and (population) deviation 1, unless all are equal.
local function normalised(advantages)
  local off = advantages - advantages:mean()
  local deviation = off:square():mean():sqrt()
  return ops.where(deviation:eq(0), advantages, off / (deviation + 1e-8))
end

---@param policy Policy
---@param args table values, actions, old_log_probs, old_values, advantages, returns, clip, entropy_coef, value_coef, clip_values,
---  normalise_advantages, over_ranks
---@return Tensor loss
---@return Tensor policy_loss
---@return Tensor value_loss
---@return Tensor entropy
---@return Tensor approx_kl
---@return Tensor clip_fraction
function losses.ppo(policy, args)
  local f, all = fused(policy, "ppo", args)
  if f then return f(all) end
  if args.over_ranks and args.normalise_advantages then
    errors.usage(("ppo: normalise_advantages in several processes needs a discrete policy, this one is %s"):format(policy:describe()),
      "normalise_advantages=0")
  end
  local clip, advantages = args.clip, args.normalise_advantages and normalised(args.advantages) or args.advantages
  local log_ratio = policy:log_prob(args.actions) - args.old_log_probs
  local ratio = log_ratio:exp()
  local actor = ops.maximum(-advantages * ratio, -advantages * ratio:clamp { lo = 1 - clip, hi = 1 + clip }):mean()
  local errors_of_value = (args.values - args.returns):square()
  if args.clip_values then
    local near = args.old_values + (args.values - args.old_values):clamp { lo = -clip, hi = clip } - args.returns
    errors_of_value = ops.maximum(errors_of_value, near:square())
  end
  local value = errors_of_value:mean() * 0.5
  local entropy = policy:entropy():mean()
  local kl, outside = (ratio - 1 - log_ratio):detach():mean(), ops.cast((ratio:detach() - 1):abs():gt(clip), { to = "f32" }):mean()
  return actor - entropy * args.entropy_coef + value * args.value_coef, actor, value, entropy, kl, outside
end

return losses
