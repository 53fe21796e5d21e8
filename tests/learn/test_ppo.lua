-- test_ppo.lua -- PPO: before its first step the new policy is the old one, for every memory; minibatches are whole
-- sequences with the states that they began in; its gradient is that of the loss over them; bits, garbage, settings.
local ffi = require "ffi"
local t = require "tests.harness"
local learner_rig = require "tests.support.learner_rig"
local engine = require "mneme.base.engine"
local tables = require "mneme.base.tables"
local mn = require "mneme"
local C, ctx = engine.C, engine.ctx

local function learner(case, cfg, sizes) return learner_rig.learner(mn.ppo, case, cfg, sizes) end

-- ---- ratio = 1 ----

-- The largest |pi(a) / pi_old(a) - 1| in the minibatch that the last update took, which must not have moved anything.
local function off_one(l)
  local m, apart = l.minibatch, 0
  mn.no_grad(function()
    local log_probs = mn.pick(mn.log_softmax(mn.keep(m.logits)), m.actions)
    for i = 0, log_probs:size() - 1 do
      apart = t.larger(apart, math.abs(math.exp(log_probs:data()[i] - m.log_probs:data()[i]) - 1))
    end
  end)
  return apart
end

-- A step of the optimiser between rollouts, so that states and weights are those of training.
local function ratios(case, horizon)
  local l = learner(case, { num_envs = 4, minibatches = 2, epochs = 1, horizon = horizon, lr = 1e-2 })
  local begun, inside = 0, 0
  for _ = 1, 2 do
    l.lr = 0
    l:rollout()
    t.ok(l:update())
    local m = l.minibatch
    for i = 0, m.resets:size() - 1 do begun = begun + m.resets:data()[i] end
    for i = m.n, m.resets:size() - 1 do inside = inside + m.resets:data()[i] end
    if l.agent:acts_apart() then t.ok(off_one(l) > 1e-2, "acting sees as much as the update")
    else
      t.near(off_one(l), 0, 1e-5, "ratio")
      t.near(l.losses.approx_kl, 0, 1e-6)
      t.eq(l.losses.clipfrac, 0)
    end
    l.lr = 1e-2
    l:rollout()
    t.ok(l:update())
  end
  t.ok(begun > 0 and inside > 0, "episodes must begin inside of sequences for this test")
  t.ok(l.losses.approx_kl > 1e-6, "the optimiser moves nothing")
end

for _, case in ipairs(learner_rig.cases()) do
  t.test(case.name .. ": before the first step the ratio is 1, unless acting sees less than the update", function()
    ratios(case.settings, 0)
    if #tables.keys(case.settings) == 1 then ratios(case.settings, 4) end    -- corners of axes: whole rollouts are enough
    mn.clear_tape()
  end)
end

-- ---- what an update is ----

-- The loss on the tape, over the whole rollout in the order of its copies; cut into pieces where l.horizon says so.
local function run_again(l)
  for _, p in ipairs(l.agent:parameters()) do p:zero_grad() end
  local returns, advantages, log_probs, values = mn.keep(l.returns), mn.keep(l.advantages), mn.keep(l.log_probs), mn.keep(l.values)
  local length, state = l.horizon > 0 and l.horizon or l.T, mn.keep(l.pieces[1].state)
  local logits, new
  for first = 0, l.T - 1, length do
    local previous = l.previous and { action = learner_rig.rows(l.previous.action, first, first + length),
      reward = learner_rig.rows(l.previous.reward, first, first + length) }
    local x, resets = learner_rig.rows(l.x, first, first + length), learner_rig.rows(l.resets, first, first + length)
    local a, v = l.agent(x, resets, state, nil, previous)
    local after = select(3, l.agent:act(x, resets, state, nil, previous))
    logits, new = logits and mn.concat(logits, a, { axis = 0 }) or a, new and mn.concat(new, v, { axis = 0 }) or v
    state = mn.keep(after)
  end
  local loss, policy, value, entropy = mn.ppo_loss { logits = logits, values = new, actions = mn.keep(l.played),
    old_log_probs = log_probs, old_values = values, advantages = advantages, returns = returns, clip = l.clip,
    entropy_coef = l.entropy_coef, value_coef = l.value_coef, clip_values = l.clip_values,
    normalise_advantages = l.normalise_advantages }
  loss:backward()
  local losses = { loss = loss:item(), policy_loss = policy:item(), value_loss = value:item(), entropy = entropy:item() }
  mn.clear_tape()
  return losses, learner_rig.gradients(l)
end

for _, name in ipairs { "gru", "galite", "gtrxl", "agalite" } do
  for _, more in ipairs { {}, { horizon = 4 }, { previous = "action,reward", clip_values = 0, normalise_advantages = 0 } } do
    t.test(("%s: one minibatch of one epoch is the loss over the rollout%s%s"):format(name, more.horizon and ", horizon 4" or "",
      more.previous and ", previous action and reward" or ""), function()
      local cfg = { minibatches = 1, epochs = 1, clip = 0.1, entropy_coef = 0.03, value_coef = 0.7, gamma = 0.9, lambda = 0.8, lr = 1e-2 }
      for key, value in pairs(more) do cfg[key] = value end
      local l = learner(name, cfg)
      for _ = 1, 3 do
        l:rollout()
        local before = learner_rig.parameters(l)
        t.ok(l:update())
        local after, got = learner_rig.parameters(l), learner_rig.gradients(l)
        learner_rig.put(l, before)
        local want_losses, want = run_again(l)
        learner_rig.put(l, after)
        for key, loss in pairs(want_losses) do t.near(l.losses[key], loss, 1e-5 * math.max(1, math.abs(loss)), key) end
        local apart, scale = learner_rig.gradients_apart(got, want)
        t.ok(scale > 0.001 and apart < 1e-4, ("gradients up to %g, %g apart"):format(scale, apart))
      end
    end)
  end
end

t.test("every epoch takes every sequence once, with its own state", function()
  local l = learner("gru", { num_envs = 4, num_steps = 12, horizon = 3, minibatches = 8, epochs = 3, lr = 0, previous = "action,reward" })
  local seen, orders, take = {}, {}, l.sequences.take
  t.eq(l.sequences.count, 16)
  function l.sequences.take(s, first)
    take(s, first)
    if first == 0 then orders[#orders + 1] = {} end
    for i = 0, l.minibatch.n - 1 do
      local q, m = s.order[first + i], l.minibatch
      local b, k = q % 4, math.floor(q / 4)
      table.insert(orders[#orders], q)
      seen[q] = (seen[q] or 0) + 1
      for row = 0, 2 do
        local from, to = (k * 3 + row) * 4 + b, row * m.n + i
        t.eq(m.actions:data()[to], l.played:data()[from])
        t.eq(m.advantages:data()[to], l.advantages:data()[from])
        t.eq(m.resets:data()[to], l.resets:data()[from])
        t.eq(m.previous.action:data()[to], l.previous.action:data()[from])
        t.eq(m.previous.reward:data()[to], l.previous.reward:data()[from])
        for j = 0, 15 do t.eq(m.x:data()[to * 16 + j], l.x:data()[from * 16 + j]) end
      end
      for name, s0 in pairs(l.pieces[k + 1].state) do
        for j = 0, 15 do t.eq(m.state[name]:data()[i * 16 + j], s0:data()[b * 16 + j]) end
      end
    end
  end
  l:rollout()
  t.ok(l:update())
  for q = 0, 15 do t.eq(seen[q], 3) end
  t.eq(#orders, 3)
  t.ok(table.concat(orders[1], " ") ~= table.concat(orders[2], " "), "epochs come in the same order")
end)

t.test("gtrxl: a memory whose copies are not its first axis is gathered whole", function()
  local l = learner("gtrxl", { num_envs = 4, minibatches = 4, epochs = 1, lr = 0 }, { memory = 3 })
  l:rollout()
  l:update()
  l:rollout()
  l:update()
  local b, m = l.sequences.order[3], l.minibatch
  for name, s in pairs(m.state) do
    local shape, axis, inner = l.pieces[1].state[name]:shape(), l.agent.core:batch_axis(name), 1
    for i = axis + 1, #shape do inner = inner * shape[i] end
    for i = 0, s:size() - 1 do
      t.eq(s:data()[i], l.pieces[1].state[name]:data()[math.floor(i / inner) * 4 * inner + b * inner + i % inner], name)
    end
  end
end)

t.test("target_kl ends an update after the epoch that went too far", function()
  local function steps_of(target)
    local l = learner("gru", { num_envs = 4, minibatches = 2, epochs = 5, lr = 0.05, target_kl = target })
    l:rollout()
    t.ok(l:update())
    return l.optimiser:updates(), l.losses.approx_kl
  end
  t.eq(steps_of(0), 10)
  local steps, kl = steps_of(1e-4)
  t.eq(steps, 2)
  t.ok(kl > 1e-4)
  t.eq(steps_of(1e9), 10)
end)

t.test("explained variance is that of the values that acted", function()
  local l = learner("gru", { minibatches = 1 })
  l:rollout()
  t.ok(l:update())
  local n, r, v = l.T * l.B, l.returns:data(), l.values:data()
  local mean, mean_off, var, var_off = 0, 0, 0, 0
  for i = 0, n - 1 do mean, mean_off = mean + r[i] / n, mean_off + (r[i] - v[i]) / n end
  for i = 0, n - 1 do var, var_off = var + (r[i] - mean) ^ 2, var_off + (r[i] - v[i] - mean_off) ^ 2 end
  t.near(l.losses.explained_variance, 1 - var_off / var, 1e-6)
  for _, key in ipairs { "policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac", "explained_variance" } do
    local m = {}
    l:metrics(m)
    t.ok(m["losses/" .. key], key .. " is not logged")
  end
end)

-- ---- the same bits; nothing left lying about ----

local function train(name, updates, cfg, sizes) return learner_rig.trained(learner(name, cfg, sizes), updates) end

for _, name in ipairs { "gru", "agalite", "galite" } do
  t.test(name .. ": the same seed gives the same bits for any number of threads, another one others", function()
    local threads = C.mn_threads(ctx)
    local function with(n, seed)
      engine.check(C.mn_set_threads(ctx, n))
      return train(name, 2, { num_envs = 8, num_steps = 24, hidden = 64, minibatches = 2, horizon = 12, seed = seed },
        { d_model = 64, d_head = 32, d_ffn = 64, eta = 4 })
    end
    local ok, one, two, again, other = pcall(function() return with(1, 1), with(2, 1), with(2, 1), with(1, 2) end)
    C.mn_set_threads(ctx, threads)
    t.ok(ok, one)
    t.ok(one == two, "the bits depend on the number of threads")
    t.ok(two == again, "two equal runs differ")
    t.ok(one ~= other, "the seed does nothing")
  end)

  t.test(name .. ": 50 updates allocate nothing and leave no Lua garbage", function()
    learner_rig.leaves_nothing(learner(name, { num_envs = 4, minibatches = 2, horizon = 8, previous = "action,reward", lr_schedule = "inverse_root",
      warmup = 9 }), 50)
  end)
end

-- ---- copies are who they are ----

-- A memory with random signs, moved to another place in the batch, meets its own signs.
t.test("random_sign: which copy a memory is of is part of its state", function()
  local c = learner_rig.small_core { "agalite", approximation = "random_sign", r = 2 }
  local x, state, moved = learner_rig.normal({ 8, 3, 16 }, 5), c:initial(3), c:initial(1)
  local all = learner_rig.run(c, x, nil, state)
  local one = mn.tensor { shape = { 8, 1, 16 } }
  for row = 0, 7 do ffi.copy(one:data() + row * 16, x:data() + (row * 3 + 2) * 16, 64) end
  moved.copy:fill(2)
  local alone, as_copy_0 = learner_rig.run(c, one, nil, moved), learner_rig.run(c, one, nil, c:initial(1))
  local apart = 0
  for row = 0, 7 do
    for k = 0, 15 do
      t.near(alone:data()[row * 16 + k], all:data()[(row * 3 + 2) * 16 + k], 1e-6)
      apart = t.larger(apart, math.abs(alone:data()[row * 16 + k] - as_copy_0:data()[row * 16 + k]))
    end
  end
  t.ok(apart > 1e-4, "copies share their signs")
end)

-- ---- wrong settings ----

t.test("settings that cannot be are refused", function()
  local function refused(cfg, what) t.raises(function() learner("gru", cfg) end, what) end
  refused({ minibatches = 2 }, "ppo: minibatches=2 does not divide the 3 sequences of a rollout: num_envs=3")
  refused({ horizon = 5 }, "ppo: horizon=5 does not divide num_steps=16")
  refused({ clip = -1 }, "ppo: clip=%-1, expected a number of at least 0")
  refused({ epochs = 1.5 }, "ppo: epochs=1.5, expected a whole number in 1..")
  refused({ gamma = 2 }, "ppo: gamma=2, expected a number in 0..1")
  refused({ lr = 0 / 0 }, "ppo: lr=")
  refused({ lr_schedule = "cosin" }, "did you mean 'cosine'")
  refused({ carry = "yes" }, "ppo: carry='yes', expected true or false")
  refused({ clip_values = 2 }, "ppo: clip_values=2, expected true or false")
end)
