-- test_pqn.lua -- PQN(lambda): whole updates with each form of targets are those of an independent program in float64 (tests/reference/pqn.py); the
-- window is the end of the rollout before; epsilon falls as set; who acts takes the largest Q; a continued run is the same bits; what it refuses.
local t = require "tests.harness"
local files = require "mneme.base.files"
local given_rollouts = require "tests.support.given_rollouts"
local json = require "mneme.base.json"
local learner_rig = require "tests.support.learner_rig"
local policies = require "mneme.models.policies"
local mn = require "mneme"
local shell = require "tests.support.shell"

local fixture = json.decode(files.read "tests/fixtures/pqn_updates.json")
local s, sizes = fixture.settings, fixture.sizes
local T, B, D = s.num_steps, s.num_envs, sizes.observation

local function given(form, case)
  local env = given_rollouts.env(D, sizes.actions, B)
  local agent = mn.agent { env = env, core = { "gru", d_model = sizes.model }, hidden = sizes.hidden }
  local l = mn.pqn({ num_envs = B, num_steps = T, window = s.window, targets = form, epochs = s.epochs, minibatches = s.minibatches, gamma = s.gamma,
    lambda = s.lam, max_norm = s.max_norm, lr = s.lr, lr_schedule = "linear", adam_eps = s.adam_eps, beta1 = s.beta1, beta2 = s.beta2,
    steps = sizes.of * T * B }, env, agent)
  given_rollouts.put(agent, case.params)
  given_rollouts.feed(l, case, { "td_loss", "q_values" })
  return l
end

for form, case in pairs(fixture.targets) do
  t.test(("targets=%s: updates are those of an independent program"):format(form), function()
    local l = given(form, case)
    l:begin()
    for u, want in ipairs(case.updates) do
      given_rollouts.update(l, u, case.orders[u], want.rate)
      t.eq(#l.steps, u == 1 and 0 or s.epochs * s.minibatches, "steps of update " .. u)
      given_rollouts.near_steps(l, want.steps, 2e-5)
    end
    given_rollouts.trained(l, case, 3e-5, 0.02)
    mn.clear_tape()
  end)
end

local function learner(cfg, case)
  local all = { minibatches = 1, epochs = 1, steps = 480, window = 3 }
  for key, value in pairs(cfg or {}) do all[key] = value end
  return learner_rig.learner(mn.pqn, case or "gru", all)
end

t.test("the window is the end of the rollout before, from the state that was there; the first rollout teaches nothing", function()
  for _, W in ipairs { 3, 16 } do
    local l = learner { window = W, previous = "action,reward" }
    l:rollout()
    local before, bytes = learner_rig.parameters(l), {}
    for _, name in ipairs { "inputs", "resets", "done", "played", "rewards" } do
      local buffer = l[name]
      local each = buffer:size() / buffer:shape()[1]
      bytes[name] = {}
      for i = 0, W * each - 1 do bytes[name][i] = buffer:data()[(16 - W) * each + i] end
    end
    t.ok(l:update())
    t.eq(l.optimiser:updates(), 0)
    for i, p in ipairs(learner_rig.parameters(l)) do t.ok(p == before[i]) end
    for name, kept in pairs(bytes) do
      for i, value in pairs(kept) do t.eq(l.front[name]:data()[i], value, name) end
    end
    local piece = l.pieces[#l.pieces]
    t.eq(piece.first, 16 - W)
    for name, leaf in pairs(piece.state) do t.eq(learner_rig.bytes(l.front.state[name]), learner_rig.bytes(leaf), name) end
    l:rollout()
    t.ok(l:update())
    t.eq(l.optimiser:updates(), 1)
    for i, p in ipairs { l.minibatch.x, l.minibatch.done, l.minibatch.actions, l.minibatch.previous.action, l.minibatch.previous.reward } do
      t.eq(p:shape()[1], W + 16, i)
    end
  end
end)

t.test("every core: the Q of acting is the Q that the update begins with", function()
  for _, case in ipairs { "gru", "lstm", "agalite", "mingru", "lru" } do
    local l = learner({ window = 0, targets = "rollout", lr = 0 }, case)
    l:rollout()
    t.ok(l:update())
    local batch = mn.no_grad(function() return l:batch() end)
    local order = l.sequences.order
    for step = 0, 15 do
      for i = 0, 2 do t.near(batch.values:data()[step * 3 + i], l.row.value[step][order[i]], 1e-5, case) end
    end
    mn.clear_tape()
  end
end)

t.test("epsilon falls over its share of the training, and stays", function()
  local l, seen = learner { steps = 480, epsilon_start = 1, epsilon_end = 0.2, epsilon_decay = 0.5, num_steps = 8, window = 2 }, {}      -- 20 updates
  for i = 1, 14 do
    l:rollout()
    seen[i] = l.epsilon:data()[0]
    t.ok(l:update())
  end
  for i = 0, 13 do t.near(seen[i + 1], math.max(0.2, 1 - 0.08 * i), 1e-6) end
  t.raises(function()
    local endless = learner { window = 0 }
    endless.cfg.steps = nil
    endless:rollout()
  end, "epsilon_decay needs to know how long training is")
end)

t.test("epsilon-greedy: how often each action is drawn; without epsilon the largest Q, always", function()
  local space = mn.env("tmaze", { num_envs = 1 }).action_space
  local kind = policies.for_space(space, "epsilon_greedy")
  local N, n, epsilon = 20000, space.n, mn.tensor { 0.4 }
  local q = mn.tensor { { { 0.1, 0.7, -3, 0.69 } } }:expand(1, N, n) * 1
  local clock = mn.tensor { shape = { 3 }, dtype = "i32" }
  clock:data()[0] = 5
  mn.manual_seed(4)
  for _, draw in ipairs { policies.draw(clock), false } do
    local policy, counts = kind.of(q, space, epsilon), { [0] = 0, 0, 0, 0 }
    local a = policy:sample(draw or nil)
    for i = 0, N - 1 do counts[a:data()[i]] = counts[a:data()[i]] + 1 end
    for k = 0, n - 1 do
      local want = k == 1 and 0.7 or 0.1
      t.near(counts[k] / N, want, 0.015)
      t.near(policy:log_prob(mn.tensor { shape = { 1, N }, dtype = "i32" }:fill(k)):mean():item(), math.log(want), 1e-4)
    end
    t.near(policy:entropy():mean():item(), -0.7 * math.log(0.7) - 0.3 * math.log(0.1), 1e-4)
    local always = kind.of(q, space)
    local b = always:sample(draw or nil)
    for i = 0, N - 1 do if b:data()[i] ~= 1 then t.ok(false, "not the largest") end end
    t.eq(always:entropy():sum():item(), 0)
    t.near(always:kl(always):sum():item(), 0, 1e-6)
    local other = always:kl(kind.of(q * -1, space)):mean():item()
    t.ok(other > 1 and other < math.huge, "the distance of two that differ is finite: " .. other)
  end
end)

t.test("its agent has Q and no critic; the value is the largest Q; an own policy head is kept, an own value is refused", function()
  local env = mn.env("tmaze", { num_envs = 2 })
  local agent = mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8 }
  local l = mn.pqn({ num_envs = 2, steps = 1000, minibatches = 1 }, env, agent)
  for name in pairs(agent:state_dict()) do t.ok(not name:find "critic", name) end
  t.ok(agent:state_dict()["actor.norm.weight"])
  local q, v = agent(mn.tensor { shape = { 3, 2, 16 } }:fill(0.3))
  for row = 0, 5 do
    local top = -math.huge
    for k = 0, 3 do top = math.max(top, q:data()[row * 4 + k]) end
    t.eq(v:data()[row], top)
  end
  t.eq(l:describe().distribution, "epsilon_greedy")
  local function made(more, cfg)
    local all = { env = env, core = { "gru", d_model = 8 }, hidden = 8 }
    for key, value in pairs(more) do all[key] = value end
    local c = { num_envs = 2, steps = 1000, minibatches = 1 }
    for key, value in pairs(cfg or {}) do c[key] = value end
    return mn.pqn(c, env, mn.agent(all))
  end
  local own = mn.nn.linear(8, 4)
  local with_own = made { policy = own }
  t.ok(with_own.agent:state_dict()["actor.weight"], "the own head is not there")
  t.ok(not made({}, { layer_norm = false }).agent:state_dict()["actor.norm.weight"])
  t.raises(function() made { value = mn.nn.linear(8, 1) } end, "the value of an agent that acts by Q is the largest Q")
  t.raises(function() mn.a2c({ num_envs = 2 }, env, mn.agent { env = env, core = { "gru", d_model = 8 }, distribution = "epsilon_greedy" }) end,
    "has no gradient")
end)

t.test("a head without layer norm is the run's: evaluation makes it again", function()
  local dir = shell.folder()
  for layer_norm = 0, 1 do
    local said, status = shell.mneme(dir, ("run train env=tmaze env.corridor=3 learner=pqn layer_norm=%d core.d_model=8 hidden=8 num_envs=4 "
      .. "num_steps=16 steps=128 threads=1 run=r%d"):format(layer_norm, layer_norm))
    t.eq(status, 0, said)
    shell.fine(dir, ("eval r%d episodes=2"):format(layer_norm))
  end
  os.execute("rm -rf '" .. dir .. "'")
end)

t.test("what it refuses says why", function()
  t.raises(function() learner { window = 17 } end, "window=17 is of the rollout before, which has num_steps=16")
  t.raises(function() learner { minibatches = 2 } end, "minibatches=2 does not divide the 3 sequences of a rollout: num_envs=3")
  t.raises(function() learner({ credit = "exact" }, "mingru") end, "credit=exact connects rollouts at their first step, and window=3")
  for _, actions in ipairs { mn.box { low = -1, high = 1 }, mn.multi_discrete { 2, 3 } } do
    local env = mn.env { observation = { 1 }, actions = actions, num_envs = 2, reset = function() return { 1 } end, step = function() return { 1 }, 0 end }
    t.raises(function() mn.pqn({ num_envs = 2 }, env, mn.agent { env = env, core = { "gru", d_model = 8 } }) end, "expected one choice among a few")
  end
  t.eq(mn.learners.pqn.defaults.entropy_coef, nil)
  t.eq(mn.learners.pqn.defaults.horizon, nil)
end)

t.test("credit=exact: without a window, the gradient reaches beyond the rollout", function()
  local function gradient(credit)
    local l = learner({ credit = credit, window = 0, num_steps = 8, lr = 0, epsilon_start = 0.5, epsilon_end = 0.5, time_limit = 40, corridor = 20 }, "mingru")
    for _ = 1, 3 do t.ok(select(2, l:advance())) end
    local sum = 0
    for _, g in ipairs(learner_rig.gradients(l)) do for k = 0, g:size() - 1 do sum = sum + g:data()[k] end end
    mn.clear_tape()
    return sum
  end
  t.ok(gradient "exact" ~= gradient "window")
end)

t.test("own environments of 1, 2 and 6 environments: it learns to press what pays", function()
  for _, n in ipairs { 1, 2, 6 } do
    local env = mn.env { observation = { 2 }, actions = 3, num_envs = n, time_limit = 4, reset = function(self, random)
      self.want = random(2)
      return { self.want == 1 and 1 or 0, 1 }
    end, step = function(self, a) return { 0, 1 }, a == self.want and 1 or 0 end }
    mn.manual_seed(1)
    local agent = mn.agent { env = env, core = { "gru", d_model = 16 }, hidden = 16 }
    local updates = 120
    local l = mn.pqn({ num_envs = n, num_steps = 16, minibatches = 1, window = 4, steps = updates * 16 * n, lr = 5e-3, gamma = 0.5, seed = 1 }, env, agent)
    l:begin()
    for _ = 1, updates do t.ok(select(2, l:advance())) end
    t.ok(l.finished:mean_return() > 3.2, ("%d environments: return %g of 4"):format(n, l.finished:mean_return()))
  end
end)
