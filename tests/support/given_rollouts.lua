-- given_rollouts.lua -- a learner whose rollouts and orders of minibatches are a fixture's, so that its updates can be compared with those of an
-- independent program (tests/reference/ppo.py, pqn.py, ppo_box.py).
local t = require "tests.harness"
local mn = require "mneme"

local rig = {}

---An environment that is never asked.
function rig.env(D, actions, B)
  local nothing = {}
  for i = 1, D do nothing[i] = 0 end
  return mn.env { name = "given", observation = { D }, actions = actions, num_envs = B, reset = function() return nothing end,
    step = function() return nothing, 0, false end }
end

---Gives an agent the fixture's parameters, all of them.
function rig.put(agent, params)
  local leaves = agent.module:named_parameters()
  for key, leaf in pairs(leaves) do
    local values = t.ok(params[key], key .. " is not in the fixture")
    t.eq(#values, leaf:size(), key)
    for i, value in ipairs(values) do leaf:data()[i - 1] = value end
  end
  for key in pairs(params) do t.ok(leaves[key], "the agent has no " .. key) end
end

---From now on a learner's rollouts are the fixture's, from row l.from on; its shuffles are l.orders, one after another; and what each step of
---the optimiser came to is a list in l.steps: the losses of these names, then the norm of the gradient.
---@param l OnPolicy
---@param case table x, done, rewards, actions: numbers of all rows
---@param losses string[]
function rig.feed(l, case, losses)
  local env, row, B, K = l.env, l.row, l.B, l.env.action_space.size
  local D = env.observation_space.shape[1]
  l.from, l.steps, l.orders, l.shuffled = 0, {}, {}, 0
  local function begin(at, from)
    for b = 0, B - 1 do
      for k = 0, D - 1 do row.x[at][b * D + k] = case.x[(from * B + b) * D + k + 1] end
      row.done[at][b] = case.done[from * B + b + 1]
      row.resets[at][b] = row.done[at][b]
    end
  end
  function env.reset_raw() begin(l.T, 0) end
  function env.rolled() end
  function env.roll(_, _, step)
    local first = (l.from + step) * B
    for b = 0, B - 1 do row.reward[step][b] = case.rewards[first + b + 1] end
    for k = 0, B * K - 1 do row.played[step][k] = case.actions[first * K + k + 1] end
    begin(step + 1, l.from + step + 1)
  end
  function l.sequences.shuffle(self)
    l.shuffled = l.shuffled + 1
    for i, b in ipairs(l.orders[l.shuffled]) do self.order[i - 1] = b end
  end
  local optimiser_step = l.optimiser_step
  function l.optimiser_step(self)
    local fine, came_to = optimiser_step(self), {}
    for i, name in ipairs(losses) do came_to[i] = self.losses[name] end
    came_to[#came_to + 1] = self.optimiser:grad_norm()
    self.steps[#self.steps + 1] = came_to
    if self.expected_rate then t.near(self:rate(), self.expected_rate, 1e-12) end
    return fine
  end
end

---A rollout and its update.
---@param l OnPolicy
---@param u integer its number, from 1
---@param orders integer[][]
---@param rate number? of learning
function rig.update(l, u, orders, rate)
  l.from, l.steps, l.orders, l.shuffled, l.expected_rate = (u - 1) * l.T, {}, orders, 0, rate
  l:rollout()
  t.ok(l:update())
end

---Numbers of a tensor, as near as a share of the largest.
function rig.near(got, want, share, what)
  local top = 0
  for _, w in ipairs(want) do top = math.max(top, math.abs(w)) end
  t.eq(got:size(), #want, what)
  for i, w in ipairs(want) do t.near(got:data()[i - 1], w, share * math.max(top, 1e-3), what) end
end

---What the steps of the last update came to.
function rig.near_steps(l, want, share)
  for i, step in ipairs(want) do
    for k, value in ipairs(step) do t.near(l.steps[i][k], value, share * math.max(1, math.abs(value)), ("step %d, value %d"):format(i, k)) end
  end
end

---The parameters after it, and how far one has moved at least.
function rig.trained(l, case, share, least)
  local leaves, moved = l.agent.module:named_parameters(), 0
  for key, want in pairs(case.trained) do
    rig.near(leaves[key], want, share, key)
    for i, w in ipairs(want) do moved = math.max(moved, math.abs(w - case.params[key][i])) end
  end
  t.ok(moved > least, ("the optimiser hardly moves: %g"):format(moved))
end

return rig
