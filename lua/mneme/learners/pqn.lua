-- pqn.lua -- Q-learning in parallel environments with lambda returns, without replay and without a target network, as in the released recurrent
-- PQN (Gallici et al. 2025, purejaxql).  Rollouts of num_steps by the largest Q but for a share of random actions; then `epochs` passes over whole
-- sequences of some environments, in `minibatches`.  The last `window` steps of the rollout before stand in front of each, from the state that
-- was there then.  Targets are of the same network as the Q that they teach:
--   fresh    computed with every minibatch from its own Q; the last step bootstraps alone, and is taught as part of the next window
--   rollout  computed once, from the Q of acting, up to the value of the observation after the rollout; the window is run and not taught
local rollout_batch = require "mneme.learn.rollout_batch"
local define = require("mneme.learn.learners").define
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local minibatches = require "mneme.learn.minibatches"
local on_policy = require "mneme.learn.on_policy"
local plan = require "mneme.tensor.plan"
local tensor = require "mneme.tensor.tensor"
local window, ops = rollout_batch.window, tensor.ops

---@class PQN: OnPolicy
---@field front table? what stands in front of the next rollout: { inputs, resets, done, played, rewards [W,B,...] ..., state, filled,
---  rows = { name, kept, where in the rollout }[] }
local PQN = {
  doc = "Q-learning in parallel environments, lambda returns, no replay and no target network",
  source = "Gallici et al. 2025 (PQN), recurrent as released; lambda: Daley and Amato 2019",
  acts = "values", forward = on_policy.forward_again, optimiser = "radam", without = { "entropy_coef", "value_coef", "horizon" },
  objective = [[
Each step of RAdam minimises, over a minibatch of whole sequences,

$$L = \frac{1}{2 N} \sum_t \left( Q(s_t, a_t) - G_t \right)^2$$

with lambda returns that end where an episode does, and no gradient through G:

$$G_t = r_t + \gamma \left( (1 - \lambda) \max_a Q(s_{t+1}, a) + \lambda G_{t+1} \right)$$

G is computed from the same Q in each minibatch (targets=fresh), or once from the Q that acted (targets=rollout).  Actions are the largest Q, and with
probability epsilon any.]],
  -- MemoryChain's published values, but for minibatches (16 of 32 environments).
  config = {
    num_steps = 128, epochs = 4, minibatches = 4, window = 4, targets = "fresh", lr = 1e-3, max_norm = 10, epsilon_start = 1, epsilon_end = 0.01,
    epsilon_decay = 0.1, layer_norm = true,
  },
}

---The last piece is the next window, whose state it keeps.
function PQN:piece_length(first)
  local W = self.window
  if W > self.T then errors.usage(("%s: window=%d is of the rollout before, which has num_steps=%d"):format(self.what, W, self.T), "window=" .. self.T) end
  return first == 0 and W > 0 and W < self.T and self.T - W or self.T
end

---Act, with the epsilon of this share of the training.
function PQN:rollout()
  self:explore(self.step)
  on_policy.rollout(self)
end

-- What stands in front of the next rollout, empty: rows of the rollout's buffers, by name.
local function make_front(self)
  local W, front = self.window, { rows = {}, state = self.agent.core:initial(self.B), filled = tensor.new { shape = { 1 }, dtype = "i32" } }
  local function add(name, buffer)
    local last = window(buffer, self.T - W, self.T)
    front.rows[#front.rows + 1] = { name, tensor.new { shape = last:shape(), dtype = last:dtype() }, last }
    front[name] = front.rows[#front.rows][2]
  end
  for _, name in ipairs { "inputs", "resets", "done", "played", "rewards" } do add(name, self[name]) end
  for _, name in ipairs { "action", "reward" } do
    if self.previous and self.previous[name] then add("previous." .. name, self.previous[name]) end
  end
  return front
end

-- The last steps of this rollout stand in front of the next.
local function keep_window(self)
  local front = self.front
  if not front then return end
  for _, row in ipairs(front.rows) do row[2]:copy(row[3]) end
  tensor.keep(self.pieces[#self.pieces].state, front.state)
  front.filled:fill(1)
end

-- The leaves of a minibatch: rows of the window, then of the rollout.
local function make_minibatch(self)
  local front, n, T = self.front or {}, self.sequences:share(self.minibatches), self.T
  local function leaf(name, buffer) return self.sequences:leaf_of(buffer or self[name], n, front[name], T) end
  local m = { x = leaf "inputs", resets = leaf "resets", done = leaf "done", actions = leaf "played", rewards = leaf "rewards", n = n,
    returns = self.returns and self.sequences:leaf_of(self.returns, n), state = self.sequences:state_leaves(n),
    sensitivities = self.past and self.sequences:sensitivity_leaves(n) }
  m.previous = rollout_batch.told(self.previous, function(t, name) return leaf("previous." .. name, t) end)
  return m
end

---The steps of the minibatch that are taught, with what the agent computes of them now.
---@return Batch
function PQN:batch()
  local m, W, T = self.minibatch, self.window, self.T
  local state = self.past and self.past:with_past(m.state, m.sensitivities) or m.state
  local q, values, _, core_output, features = self.agent(m.x, m.resets, state, nil, m.previous)
  local from, to, returns = W, W + T, m.returns
  if self.targets == "fresh" then
    from, to = 0, W + T - 1
    returns = ops.lambda_returns { rewards = window(m.rewards, 0, to), values = values:detach(), done = m.done, gamma = self.gamma, lambda = self.lambda }
  end
  local function taught(t) return (ops.slice(t, { from = from, to = to })) end
  local previous = rollout_batch.told(m.previous, function(t) return window(t, from, to) end)
  q, values = taught(q), taught(values)
  return rollout_batch.of { observations = window(m.x, from, to), done = window(m.done, from, to), previous = previous, actions = window(m.actions, from, to),
    rewards = window(m.rewards, from, to), features = taught(features), core_output = taught(core_output), logits = q, values = values,
    policy = self.agent:distribution(q), returns = returns, advantages = returns - values:detach() }
end

---Half the mean squared distance of Q from its target.
---@return Tensor loss
---@return table<string, Tensor> logged
function PQN.loss(_, batch)
  local q = ops.pick(batch.logits, batch.actions)
  local loss = (q - batch.returns:detach()):square():mean() * 0.5
  return loss, { td_loss = loss, q_values = q:detach():mean() }
end

---All epochs over the rollout that was just made; false if a loss or a gradient is not finite.  The first rollout of a training with a window
---is the first window, and teaches nothing.
---@return boolean fine
function PQN:update()
  local front = self.front
  if not front or front.filled:data()[0] == 1 then
    if self.look then self.look:run() end
    for _ = 1, self.epochs do
      self.sequences:shuffle(self.cfg.seed or 1, self.optimiser:updates())
      for index = 0, self.minibatches - 1 do
        self.sequences:take(index * self.minibatch.n)
        if not self:optimiser_step() then return false end
      end
    end
  end
  engine.wait()
  keep_window(self)
  return true
end

---Begin: no window yet.
function PQN:begin()
  on_policy.begin(self)
  if self.front then self.front.filled:fill(0) end
end

---The window, the leaves of minibatches, and with targets=rollout the plan that computes them.
function PQN:setup()
  if self.window > 0 and self.past then
    errors.usage(("%s: credit=exact connects rollouts at their first step, and window=%d begins before it"):format(self.what, self.window), "window=0")
  end
  if self.window > 0 then self.front = make_front(self) end
  self.sequences = minibatches(self, { { first = 0, rows = self.T, state = (self.front or self.pieces[1]).state } })
  if self.targets == "rollout" then
    self.look = plan(function()
      return (tensor.off_tape(ops.lambda_returns, { rewards = self.rewards, values = self:joined "values", done = self.done, gamma = self.gamma,
        lambda = self.lambda }))
    end)
    self.returns = self.look()
  end
  self.minibatch = make_minibatch(self)
end

---With the window.
function PQN:contents()
  local list, front, core = on_policy.contents(self), self.front, self.agent.core
  for _, row in ipairs(front and front.rows or {}) do list[#list + 1] = { "window." .. row[1], row[2], batch_axis = 2 } end
  for _, name in ipairs(front and core:state_names() or {}) do
    list[#list + 1] = { "window.state." .. name, front.state[name], batch_axis = core:batch_axis(name) }
  end
  if front then list[#list + 1] = { "window.filled", front.filled } end
  return list
end

return define(PQN)
