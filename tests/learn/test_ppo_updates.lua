-- test_ppo_updates.lua -- two whole updates of PPO, with the settings of the released Craftax run, are those of an independent program in
-- float64: tests/reference/ppo.py.  Rollouts are the fixture's; acting, returns, minibatches, losses, clipping, Adam and the rate are the learner's.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local mn = require "mneme"

local fixture = json.decode(files.read "tests/fixtures/ppo_updates.json")
local s, sizes = fixture.settings, fixture.sizes
local T, B, D = s.num_steps, s.num_envs, sizes.observation

-- A learner whose rollouts are the fixture's, from row `l.from` on.
local function learner(name, case)
  local env = mn.env { name = "given", observation = { D }, actions = sizes.actions, num_envs = B,
    reset = function() return { 0, 0, 0, 0, 0 } end, step = function() return { 0, 0, 0, 0, 0 }, 0, false end }
  local function head(n) return mn.nn.sequential { mn.nn.linear(sizes.hidden, sizes.hidden, { act = "relu" }), mn.nn.linear(sizes.hidden, n) } end
  local core = { name }
  for key, value in pairs(case.config) do core[key] = value end
  local agent = mn.agent { env = env, core = core, torso = mn.nn.linear(D, sizes.hidden, { act = "relu" }), policy = head(sizes.actions), value = head(1) }
  for key, leaf in pairs(agent.module:named_parameters()) do
    local values = t.ok(case.params[key], key .. " is not in the fixture")
    t.eq(#values, leaf:size(), key)
    for i, value in ipairs(values) do leaf:data()[i - 1] = value end
  end
  local l = mn.ppo({ num_envs = B, num_steps = T, epochs = s.epochs, minibatches = s.minibatches, gamma = s.gamma, lambda = s.lam, clip = s.clip,
    entropy_coef = s.entropy_coef, value_coef = s.value_coef, max_norm = s.max_norm, lr = s.lr, lr_schedule = "linear", adam_eps = s.adam_eps,
    beta1 = s.beta1, beta2 = s.beta2, steps = sizes.of * T * B }, env, agent)
  local row = l.row
  local function begin(at, from)
    for b = 0, B - 1 do
      for k = 0, D - 1 do row.x[at][b * D + k] = case.x[(from * B + b) * D + k + 1] end
      row.done[at][b] = case.done[from * B + b + 1]
      row.resets[at][b] = row.done[at][b]
    end
  end
  l.from = 0
  function env.reset_raw() begin(T, 0) end
  function env.rolled() end
  function env.roll(_, _, step)
    for b = 0, B - 1 do
      local i = (l.from + step) * B + b
      row.reward[step][b], row.played[step][b] = case.rewards[i + 1], case.actions[i + 1]
    end
    begin(step + 1, l.from + step + 1)
  end
  return l
end

local function near(got, want, what)
  local top = 0
  for _, w in ipairs(want) do top = math.max(top, math.abs(w)) end
  t.eq(got:size(), #want, what)
  for i, w in ipairs(want) do t.near(got:data()[i - 1], w, 2e-5 * top, what) end
end

for name, case in pairs(fixture.cores) do
  t.test(name .. ": two updates with the released settings are those of an independent program", function()
    local l = learner(name, case)
    local steps, update = {}, 0
    local optimiser_step, order = l.optimiser_step, 0
    function l.optimiser_step(self)
      local fine, losses = optimiser_step(self), self.losses
      steps[#steps + 1] = { losses.loss, losses.policy_loss, losses.value_loss, losses.entropy, self.optimiser:grad_norm() }
      t.near(self:rate(), case.updates[update].rate, 1e-12)
      return fine
    end
    function l.sequences.shuffle(self)
      order = order + 1
      for i, b in ipairs(case.orders[update][order]) do self.order[i - 1] = b end
    end
    l:begin()
    for u, want in ipairs(case.updates) do
      update, order, steps, l.from = u, 0, {}, (u - 1) * T
      l:rollout()
      t.ok(l:update())
      near(l.log_probs, want.log_probs, "log-probabilities")
      near(l.advantages, want.advantages, "advantages")
      t.eq(#steps, s.epochs * s.minibatches)
      for i, step in ipairs(want.steps) do
        for k, value in ipairs(step) do t.near(steps[i][k], value, 2e-5 * math.max(1, math.abs(value)), ("update %d, step %d, value %d"):format(u, i, k)) end
      end
    end
    local trained, moved = l.agent.module:named_parameters(), 0
    for key, want in pairs(case.trained) do
      near(trained[key], want, key)
      for i, w in ipairs(want) do moved = math.max(moved, math.abs(w - case.params[key][i])) end
    end
    t.ok(moved > 64 * s.lr / 2, "the optimiser hardly moves")
  end)
end
