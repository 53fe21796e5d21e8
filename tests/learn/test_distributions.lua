-- test_distributions.lua -- policies as distributions: values, gradients and draws of every kind, and a whole update of PPO with a Gaussian policy as
-- an independent program makes it (tests/reference/ppo_box.py).
local t = require "tests.harness"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local given_rollouts = require "tests.support.given_rollouts"
local json = require "mneme.base.json"
local policies = require "mneme.models.policies"
local mn = require "mneme"

local box = mn.box { low = { -1, -2 }, high = { 1, 3 }, names = { "throttle", "wheel" } }
local several = mn.multi_discrete { 3, 2 }
local cases = { { "normal", box }, { "tanh_normal", box }, { "multi_categorical", several }, { "categorical", mn.env("tmaze", { num_envs = 1 }).action_space } }

local function policy_of(case, T, B, shift)
  local kind = policies.for_space(case[2], case[1])
  local n = kind.size(case[2])
  local x = mn.tensor { shape = { T, B, n }, grad = true }
  for i = 0, T * B * n - 1 do x:data()[i] = 0.3 * math.sin(1.7 * i + shift) - 0.1 end
  return kind.of(x, case[2]), x
end

local function clock(time)
  local c = mn.tensor { shape = { 3 }, dtype = "i32" }
  c:data()[0], c:data()[1], c:data()[2] = 7, time, 0
  return c
end

for _, case in ipairs(cases) do
  local name, space = case[1], case[2]

  t.test(name .. ": losses leave out the steps that are not live, and they get no gradient", function()
    local T, B = 5, 3
    local function loss_of(which, rows, live)
      local policy, leaf = policy_of(case, T, B, 1)
      local kind, x = policies.for_space(space, name), leaf
      local function made(shift)
        local m = mn.tensor { shape = { T, B } }
        for i = 0, T * B - 1 do m:data()[i] = math.sin(2.3 * i + shift) end
        return m
      end
      mn.manual_seed(3)
      local drawn, n = policy:sample(), T * B * space.size
      local actions = mn.tensor { shape = space:shape(rows, B), dtype = space.dtype }
      for i = 0, n * rows / T - 1 do actions:data()[i] = drawn:data()[i] end
      local batch = { values = made(2), returns = made(3), advantages = made(4), old_values = made(5), old_log_probs = made(1) }
      if rows < T then
        for key, v in pairs(batch) do batch[key] = mn.slice(v, { to = rows }) end
        x = mn.slice(x, { to = rows })
      end
      batch.policy, batch.live, batch.actions = kind.of(x, space), live, actions
      batch.policy.fused = false
      local learner = { entropy_coef = name == "tanh_normal" and 0 or 0.01, value_coef = 0.5, clip = 0.2, clip_values = true, normalise_advantages = true,
        agent = { distribution = function() return batch.policy end }, sequence = function(_, of) return of == "values" and batch.values or x end }
      local loss = mn.learners[which].loss(learner, batch)
      loss:backward()
      return loss:item(), leaf:grad()
    end
    local live = mn.tensor { shape = { T, B } }
    for i = 0, T * B - 1 do live:data()[i] = i < (T - 2) * B and 1 or 0 end
    for _, which in ipairs { "a2c", "ppo" } do
      local some, g = loss_of(which, T, live)
      local rest, h = loss_of(which, T - 2)
      t.near(some, rest, 2e-6 * math.max(1, math.abs(rest)), which)
      local moved = 0
      for i = 0, g:size() - 1 do
        t.near(g:data()[i], h:data()[i], 2e-6, which)
        moved = moved + math.abs(g:data()[i])
      end
      t.ok(moved > 1e-3)
      for i = g:size() / T * (T - 2), g:size() - 1 do t.eq(g:data()[i], 0) end
    end
  end)

  t.test(name .. ": log_prob, entropy and kl agree with means over draws", function()
    mn.manual_seed(3)
    local N = 40000
    local one, other = policy_of(case, 1, 1, 0), policy_of(case, 1, 1, 2)
    local kind = policies.for_space(space, name)
    local function many(p) return kind.of(p.parameters:detach():expand(1, N, kind.size(space)) * 1, space) end
    local p, q = many(one), many(other)
    local a = p:sample()
    t.eq(table.concat(a:shape(), ","), table.concat(space:shape(1, N), ","))
    t.eq(a:dtype(), space.dtype)
    local lp, lq = p:log_prob(a), q:log_prob(a)
    t.near(-lp:mean():item(), p:entropy():mean():item(), 0.03, "entropy")
    t.near((lp - lq):mean():item(), p:kl(q):mean():item(), 0.03, "kl")
    t.near(p:kl(p):mean():item(), 0, 1e-5)
    t.ok(p:describe() == name)
    local best = p:log_prob(p:mode())
    if name ~= "tanh_normal" then t.ok(best:mean():item() >= lp:max():item() - 1e-4, "the mode is the likeliest") end
  end)

  t.test(name .. ": a draw of acting depends on the seed, the environment and the time alone", function()
    local p, x = policy_of(case, 6, 5, 1)
    local function draw(first, time, part)
      local policy = part and policies.for_space(space, name).of(part, space) or p
      return policy:sample(policies.draw(clock(time), first))
    end
    local whole, size = draw(0, 10), space.size
    local later = draw(0, 12, mn.slice(x:detach(), { from = 2 }))
    for i = 0, 4 * 5 * size - 1 do t.eq(later:data()[i], whole:data()[2 * 5 * size + i], "a later row") end
    local share = draw(3, 10, mn.slice { x = x:detach(), axis = 1, from = 3, to = 5 })
    for row = 0, 5 do
      for i = 0, 2 * size - 1 do t.eq(share:data()[row * 2 * size + i], whole:data()[(row * 5 + 3) * size + i], "a rank's share") end
    end
    local differs = false
    for i = 1, 6 * 5 * size - 1 do differs = differs or whole:data()[i] ~= draw(0, 11):data()[i] end
    t.ok(differs, "another time draws alike")
  end)
end

t.test("normal: log_prob and entropy are those of the density", function()
  local p = policies.for_space(box, "normal").of(mn.tensor { { { 0.5, -1, math.log(2), math.log(0.5) } } }, box)
  local function density(x, mean, std) return -0.5 * ((x - mean) / std) ^ 2 - math.log(std) - 0.5 * math.log(2 * math.pi) end
  t.near(p:log_prob(mn.tensor { { { 2.5, -1.25 } } }):item(), density(2.5, 0.5, 2) + density(-1.25, -1, 0.5), 1e-5)
  t.near(p:entropy():item(), 1 + math.log(2 * math.pi), 1e-5)
end)

t.test("tanh_normal: its density, with the slope of the squashing, adds up to 1 between the bounds", function()
  local N, range = 4000, mn.box { low = -2, high = 3 }
  local at = mn.tensor { shape = { 1, N, 1 } }
  for i = 0, N - 1 do at:data()[i] = -2 + 5 * (i + 0.5) / N end
  local same = mn.tensor { { { 0.4, math.log(0.7) } } }:expand(1, N, 2) * 1
  local p = policies.for_space(range, "tanh_normal").of(same, range)
  t.near(p:log_prob(at):exp():mean():item() * 5, 1, 1e-3)
  local y, z = 1.2, 0.5 * math.log((1 + 0.28) / (1 - 0.28))              -- 1.2 is 0.28 of the way from the middle, 0.5, to a bound
  local want = -0.5 * ((z - 0.4) / 0.7) ^ 2 - math.log(0.7) - 0.5 * math.log(2 * math.pi) - math.log(2.5 * (1 - 0.28 ^ 2))
  t.near(policies.for_space(range, "tanh_normal").of(mn.tensor { { { 0.4, math.log(0.7) } } }, range):log_prob(mn.tensor { { { y } } }):item(), want, 1e-4)
end)

t.test("a squashed policy learns by every learner, towards where it is paid", function()
  for _, learner in ipairs { "a2c", "ppo" } do
    local env = mn.env { observation = { 1 }, actions = mn.box { low = -1, high = 1 }, num_envs = 16, time_limit = 4, reset = function() return { 1 } end,
      step = function(_, a) return { 1 }, -(a[1] - 0.6) ^ 2 end }
    mn.manual_seed(1)
    local agent = mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8, distribution = "tanh_normal" }
    local l = mn[learner]({ num_envs = 16, num_steps = 8, minibatches = 1, steps = 128 * 150, lr = 1e-2, entropy_coef = 0, gamma = 0, seed = 1 }, env, agent)
    l:begin()
    for _ = 1, 150 do
      l:rollout()
      t.ok(l:update())
    end
    local mode = mn.no_grad(function() return agent:distribution((agent(mn.tensor { { { 1 } } }))):mode():item() end)
    t.near(mode, 0.6, 0.15, learner)
  end
end)

t.test("tanh_normal: draws lie within the bounds, and log_prob is finite at them", function()
  local p = policy_of({ "tanh_normal", box }, 3, 200, 0)
  local a = p:sample()
  for i = 0, a:size() / 2 - 1 do
    t.ok(math.abs(a:data()[2 * i]) <= 1 and a:data()[2 * i + 1] >= -2 and a:data()[2 * i + 1] <= 3)
  end
  local edge = p:log_prob(mn.tensor { shape = { 3, 200, 2 } }:fill(1)):mean():item()
  t.ok(edge - edge == 0, "not finite")
end)

t.test("a distribution that does not fit the actions is refused, one's own is used", function()
  local env = mn.env { observation = { 2 }, actions = box, num_envs = 2, reset = function() return { 0, 0 } end,
    step = function(_, a) return { a[1], a[2] }, 1 end }
  t.raises(function() mn.agent { env = env, core = "gru", distribution = "categorical" } end, "expected normal or tanh_normal for Box%(2%)")
  t.raises(function() mn.agent { env = env, core = "gru", distribution = { of = print } } end, "size = function")
  local asked = 0
  local own = { size = function(space) return space.size end, of = function(parameters)
    local p = mn.normal(parameters, 0.3)
    return { parameters = parameters, describe = function() return "steady" end, entropy = function() return p:entropy():sum(-1) end,
      sample = function(_, draw) asked = asked + 1 return (parameters + draw:normal(parameters) * 0.3):detach() end,
      log_prob = function(_, a) return p:log_prob(a):sum(-1) end }
  end }
  local agent = mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8, distribution = own }
  for _, learner in ipairs { "a2c", "ppo" } do
    local l = mn[learner]({ num_envs = 2, num_steps = 8, minibatches = 1, steps = 16 }, env, agent)
    l:begin()
    l:rollout()
    t.ok(l:update())
    t.near(l.losses.entropy, 2 * (math.log(0.3) + 0.5 * math.log(2 * math.pi) + 0.5), 1e-4)
  end
  t.ok(asked >= 2)
  t.eq(agent:describe().distribution, "a module of the script")
end)

t.test("what a distribution of one's own lacks, or gives in another shape or from other random numbers, is named with its line, by every learner", function()
  local env = mn.env("pendulum", { num_envs = 2 })
  local function agent(changed)
    return mn.agent { env = env, core = { "gru", d_model = 4 }, hidden = 4, distribution = { size = function() return 1 end, of = function(p)
      local all = { sample = function(_, draw) return p:detach() + draw:normal(p) end, mode = function() return p:detach() end,
        log_prob = function(_, a) return (a - p):square():sum(-1) end, entropy = function() return p:sum(-1) end }
      for name, f in pairs(changed) do all[name] = f and function(...) return f(p, ...) end or nil end
      return next(all) and all or nil
    end } }
  end
  local function named(f, ...)
    local ok, problem = pcall(f)
    t.ok(not ok and errors.is(problem) and problem.where:find "test_distributions%.lua:%d+", tostring(problem))
    for _, word in ipairs { ... } do t.ok(problem.message:find(word, 1, true), problem.message) end
  end
  for _, name in ipairs { "sample", "mode", "log_prob", "entropy", "kl" } do
    for _, wrong in ipairs { function(p) return p:sum() end, function(p) return p:unsqueeze(-1) end, function() return 3 end, function() end } do
      named(function() agent { [name] = wrong } end, "agent: distribution of its own: " .. name .. " gave ", "expected a tensor [2,3")
    end
  end
  named(function() agent { sample = function(p) return p:detach() + mn.randn(p:shape()) end } end, "sample draws random numbers of its own")
  named(function() agent { sample = false, mode = false, log_prob = false, entropy = false } end, "gave nothing")
  local before = mn.rand(1) and require("mneme.tensor.random").state():data()[2]
  agent { entropy = function(p) return (p * 0 + mn.rand(1)):sum(-1) end }
  t.eq(require("mneme.tensor.random").state():data()[2], before, "an agent's making moves the random numbers")
  for _, name in ipairs { "a2c", "ppo", "stream" } do
    for _, lacked in ipairs { "sample", "log_prob", "entropy" } do
      named(function()
        local l = mn.learners[name]({ num_envs = 2, num_steps = 4, minibatches = name == "ppo" and 1 or nil, steps = 16 }, env, agent { [lacked] = false })
        l:begin()
        l:advance()
      end, "agent: distribution of its own: it has no " .. lacked)
    end
  end
end)

t.test("an update of PPO with a Gaussian policy is that of an independent program", function()
  local case = json.decode(files.read "tests/fixtures/ppo_box.json")
  local s, sizes = case.settings, case.sizes
  local T, B, D, K = s.num_steps, s.num_envs, sizes.observation, sizes.action
  local env = given_rollouts.env(D, mn.box { low = -1, high = 1, shape = { K } }, B)
  local agent = mn.agent { env = env, core = { "gru", d_model = sizes.hidden }, hidden = sizes.hidden, head_act = "relu",
    torso = mn.nn.linear(D, sizes.hidden, { act = "relu" }) }
  local deviation = agent.module:named_parameters()["actor.log_std"]
  for i = 0, deviation:size() - 1 do t.eq(deviation:data()[i], 0, "a log-deviation begins at 0") end
  given_rollouts.put(agent, case.params)
  local l = mn.ppo({ num_envs = B, num_steps = T, epochs = s.epochs, minibatches = s.minibatches, gamma = s.gamma, lambda = s.lam, clip = s.clip,
    entropy_coef = s.entropy_coef, value_coef = s.value_coef, max_norm = s.max_norm, lr = s.lr, adam_eps = s.adam_eps, beta1 = s.beta1, beta2 = s.beta2,
    steps = T * B }, env, agent)
  given_rollouts.feed(l, case, { "loss", "policy_loss", "value_loss", "entropy" })
  l:begin()
  given_rollouts.update(l, 1, case.orders)
  given_rollouts.near(l.log_probs, case.log_probs, 1e-5, "log-probabilities")
  given_rollouts.near(l.advantages, case.advantages, 1e-5, "advantages")
  t.eq(#l.steps, s.epochs * s.minibatches)
  given_rollouts.near_steps(l, case.steps, 1e-5)
  given_rollouts.trained(l, case, 1e-5, 6 * s.lr / 2)
end)
