-- test_ppo_updates.lua -- two whole updates of PPO, with the settings of the released Craftax run, are those of an independent program in
-- float64: tests/reference/ppo.py.  Rollouts are the fixture's; acting, returns, minibatches, losses, clipping, Adam and the rate are the learner's.
local t = require "tests.harness"
local files = require "mneme.base.files"
local given_rollouts = require "tests.support.given_rollouts"
local json = require "mneme.base.json"
local mn = require "mneme"

local fixture = json.decode(files.read "tests/fixtures/ppo_updates.json")
local s, sizes = fixture.settings, fixture.sizes
local T, B, D = s.num_steps, s.num_envs, sizes.observation

local function learner(name, case)
  local env = given_rollouts.env(D, sizes.actions, B)
  local function head(n) return mn.nn.sequential { mn.nn.linear(sizes.hidden, sizes.hidden, { act = "relu" }), mn.nn.linear(sizes.hidden, n) } end
  local core = { name }
  for key, value in pairs(case.config) do core[key] = value end
  local agent = mn.agent { env = env, core = core, torso = mn.nn.linear(D, sizes.hidden, { act = "relu" }), policy = head(sizes.actions), value = head(1) }
  given_rollouts.put(agent, case.params)
  local l = mn.ppo({ num_envs = B, num_steps = T, epochs = s.epochs, minibatches = s.minibatches, gamma = s.gamma, lambda = s.lam, clip = s.clip,
    entropy_coef = s.entropy_coef, value_coef = s.value_coef, max_norm = s.max_norm, lr = s.lr, lr_schedule = "linear", adam_eps = s.adam_eps,
    beta1 = s.beta1, beta2 = s.beta2, steps = sizes.of * T * B }, env, agent)
  given_rollouts.feed(l, case, { "loss", "policy_loss", "value_loss", "entropy" })
  return l
end

for name, case in pairs(fixture.cores) do
  t.test(name .. ": two updates with the released settings are those of an independent program", function()
    local l = learner(name, case)
    l:begin()
    for u, want in ipairs(case.updates) do
      given_rollouts.update(l, u, case.orders[u], want.rate)
      given_rollouts.near(l.log_probs, want.log_probs, 2e-5, "log-probabilities")
      given_rollouts.near(l.advantages, want.advantages, 2e-5, "advantages")
      t.eq(#l.steps, s.epochs * s.minibatches)
      given_rollouts.near_steps(l, want.steps, 2e-5)
    end
    given_rollouts.trained(l, case, 2e-5, 64 * s.lr / 2)
  end)
end
