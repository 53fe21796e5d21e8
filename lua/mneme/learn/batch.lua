-- batch.lua -- what a loss reads of a rollout that was acted on tape.  Each field is computed when it is first read, so that a
-- loss pays for nothing else; PPO's minibatches (learners/ppo.lua) have the same fields.
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

---@class Batch T steps of B environments; PPO's T and B are those of a minibatch
---@field observations Tensor [T,B,...] as the agent reads them: in the environment's type, normalised with norm_obs
---@field done Tensor [T,B] u8: 1 where the observation begins an episode
---@field previous table? { action = [T,B] i32, reward = [T,B] }, if the agent reads them
---@field actions Tensor [T,B] i32: what was done
---@field rewards Tensor [T,B] what it paid: normalised with norm_reward; at a time limit, gamma V of what would have followed is in it
---@field features Tensor [T,B,core.d_in] with gradient: what the core reads (the torso's output, and `previous`)
---@field core_output Tensor [T,B,core.d_out] with gradient: what the policy and value heads read
---@field logits Tensor [T,B,actions] with gradient
---@field values Tensor [T,B] with gradient
---@field returns Tensor [T,B] constants: lambda-returns, by gamma and lambda
---@field advantages Tensor [T,B] constants: returns less the values of when they were acted
---@field old_log_probs Tensor? [T,B] constants: log-probabilities of `actions` when they were acted; PPO only
---@field old_values Tensor? [T,B] constants; PPO only
local makers = {}

-- The first T rows of what the pieces computed.
local function joined(name)
  return function(l) return ops.slice(l:sequence(name), { to = l.T }) end
end
for _, name in ipairs { "logits", "values", "core_output" } do makers[name] = joined(name) end

-- The first T rows of a buffer.
local function rows(l, t)
  local shape = t:shape()
  shape[1] = l.T
  return tensor.view(t, 0, shape)
end
function makers.observations(l) return rows(l, l.inputs) end
function makers.done(l) return rows(l, l.done) end
function makers.actions(l) return l.played end
function makers.rewards(l) return l.rewards end
function makers.previous(l)
  local previous
  for name, t in pairs(l.previous or {}) do
    previous = previous or {}
    previous[name] = rows(l, t)
  end
  return previous
end

-- Computed again: pieces of a rollout hand the core windows of their own lengths.
function makers.features(l, batch) return l.agent:features(batch.observations, batch.previous) end

local function compute_returns(batch, l)
  batch.returns, batch.advantages = ops.lambda_returns { rewards = l.rewards, values = l:sequence "values", done = l.done,
    gamma = l.gamma, lambda = l.lambda }
end
function makers.returns(l, batch)
  compute_returns(batch, l)
  return batch.returns
end
function makers.advantages(l, batch)
  compute_returns(batch, l)
  return batch.advantages
end

local known = { "observations", "done", "previous", "actions", "rewards", "features", "core_output", "logits", "values", "returns", "advantages",
  "old_log_probs", "old_values" }
local batches = {}

-- Reading what is not there is an error, but for `previous`, which not every agent has.
local function missing(name)
  if name ~= "previous" then errors.unknown("field of batch:", name, known) end
end

---The rollout that a learner has just made.
---@param learner OnPolicy
---@return Batch
function batches.of_rollout(learner)
  return setmetatable({}, { __index = function(batch, name)
    if not makers[name] then return missing(name) end
    local value = makers[name](learner, batch)
    batch[name] = value
    return value
  end })
end

---A batch whose fields are all there.
---@param fields table
---@return Batch
function batches.of(fields) return setmetatable(fields, { __index = function(_, name) return missing(name) end }) end

return batches
