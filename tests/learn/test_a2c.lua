-- test_a2c.lua -- the learner: activations kept from acting give the gradients of running the sequence again,
-- states go on across rollouts, time limits, seeds, threads, and that training leaves no garbage.
local ffi = require "ffi"
local t = require "tests.harness"
local learner_rig = require "tests.support.learner_rig"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local cores = require "mneme.models.cores"
local registry = require "mneme.base.registry"
local C, ctx = engine.C, engine.ctx

-- A learner on a short T-Maze, and everything it is made of.
local function learner(name, cfg, sizes) return learner_rig.learner(mn.a2c, name, cfg, sizes) end
local parameters, put, gradients = learner_rig.parameters, learner_rig.put, learner_rig.gradients

-- Every core, and those that act by single steps as they act within a rollout.
local function each(what, f)
  for _, name in ipairs(registry.names "cores") do
    t.test(name .. ": " .. what, function() f(name) mn.clear_tape() end)
    if cores.definition(name).config.sees then
      t.test(name .. " sees=rollout: " .. what, function() f { name, sees = "rollout" } mn.clear_tape() end)
    end
  end
end

-- ---- the same gradients as running the sequence again ----

-- What an update would be without plans: the whole rollout from the stored state, on the tape.
local function run_again(l)
  for _, p in ipairs(l.agent:parameters()) do p:zero_grad() end
  local x, done = mn.keep(l.x), mn.keep(l.done)
  local logits, values = l.agent(x, mn.keep(l.resets), mn.keep(l.pieces[1].state))
  local returns = mn.lambda_returns { rewards = mn.keep(l.rewards), values = values, done = done, gamma = l.gamma,
    lambda = l.lambda }
  local loss, policy, value, entropy = mn.a2c_loss { logits = logits, values = values, returns = returns,
    actions = mn.keep(l.played), entropy_coef = l.entropy_coef, value_coef = l.value_coef }
  loss:backward()
  local losses = { loss = loss:item(), policy_loss = policy:item(), value_loss = value:item(), entropy = entropy:item() }
  mn.clear_tape()
  return losses, gradients(l)
end

each("an update has the gradients of running the sequence again, with kept activations or without", function(name)
  local l = learner(name, { entropy_coef = 0.01, value_coef = 0.7, gamma = 0.9, lambda = 0.8, bootstrap_truncated = 0 })
  for update = 1, 4 do
    l:rollout()
    local before = parameters(l)
    t.ok(l:update())
    local after, got = parameters(l), gradients(l)
    local losses = {}
    for key, loss in pairs(l.losses) do losses[key] = loss end
    put(l, before)
    local want_losses, want = run_again(l)
    put(l, after)
    for key, loss in pairs(want_losses) do t.near(losses[key], loss, 1e-5 * math.max(1, math.abs(loss)), key) end
    local apart, scale = learner_rig.gradients_apart(got, want)
    t.ok(scale > 0.01, "the gradients are small: " .. scale)
    t.ok(apart < 1e-4, ("update %d: gradients are %g apart"):format(update, apart))   -- sums in another order
  end
end)

-- Adam and clipping, in double, written down a second time.
each("an update is Adam with the clipped gradient", function(name)
  local l = learner(name, { lr = 0.01, max_norm = 0.1, beta1 = 0.8, beta2 = 0.9, adam_eps = 1e-4 })
  local m, v = {}, {}
  for step = 1, 3 do
    l:rollout()
    local before = parameters(l)
    t.ok(l:update())
    local g, norm, parts, of_part, logged = gradients(l), 0, l.agent.module:parts(), {}, {}
    t.eq(#parts, #g)
    for i, p in ipairs(g) do
      local squares = 0
      for k = 0, p:size() - 1 do squares = squares + p:data()[k] ^ 2 end
      norm, of_part[parts[i]] = norm + squares, (of_part[parts[i]] or 0) + squares
    end
    norm = math.sqrt(norm)
    t.near(l.optimiser:grad_norm(), norm, 1e-5 * norm)
    l:metrics(logged)
    t.ok(of_part.actor and of_part.critic and (of_part["core.layers.0"] or l.agent.core.name == "rmt"))
    for part, squares in pairs(of_part) do t.near(logged["grad/" .. part], math.sqrt(squares), 1e-5 * norm, part) end
    t.ok(norm > 0.1, "clipping does nothing: the norm is " .. norm)
    for i, p in ipairs(l.agent:parameters()) do
      local was = ffi.cast("const float *", before[i])
      m[i], v[i] = m[i] or {}, v[i] or {}
      for k = 0, p:size() - 1 do
        local gk = g[i]:data()[k] * 0.1 / norm
        m[i][k], v[i][k] = 0.8 * (m[i][k] or 0) + 0.2 * gk, 0.9 * (v[i][k] or 0) + 0.1 * gk * gk
        local want = was[k] - 0.01 * m[i][k] / (1 - 0.8 ^ step) / (math.sqrt(v[i][k] / (1 - 0.9 ^ step)) + 1e-4)
        t.near(p:data()[k], want, 2e-6 + 1e-7 * math.abs(want), "parameter " .. i)      -- two roundings of f32
      end
    end
  end
end)

-- ---- rollouts ----

-- A rollout as calls of the agent: step by step, or where it acts as a sequence that is more than its steps, all of it at once.
local function by_steps(l, state)
  local T, pieces = l.T, {}
  if l.agent.core.claims.steps ~= "exact" and not l.agent:acts_apart() then pieces = { { 0, T + 1 }, { 0, T } }
  else for row = 0, T do pieces[row + 1] = { row, row + 1 } end end
  for _, piece in ipairs(pieces) do
    local t0, t1 = piece[1], piece[2]
    local logits, values, after
    mn.no_grad(function()
      local a, b, c = l.agent(learner_rig.rows(l.x, t0, t1), learner_rig.rows(l.done, t0, t1), state)
      logits, values, after = mn.keep(a), mn.keep(b), mn.keep(c)
    end)
    t.near(learner_rig.apart(learner_rig.rows(l.pieces[1].logits, t0, t1), logits), 0, 1e-5, "logits from row " .. t0)
    t.near(learner_rig.apart(learner_rig.rows(l.pieces[1].values, t0, t1), values), 0, 1e-5, "values from row " .. t0)
    if t1 <= T then state = after end
  end
  return state
end

each("rollouts go on from each other as single steps do", function(name)
  local l = learner(name, { lr = 0, bootstrap_truncated = 0 })
  local ended, state = 0, l.agent.core:initial(3)
  for _ = 1, 3 do
    l:rollout()
    local start = {}
    for key, s in pairs(l.pieces[1].state) do start[key] = learner_rig.bytes(s) end
    for key, s in pairs(state) do t.near(learner_rig.apart(l.pieces[1].state[key], s), 0, 1e-5, key .. " at the start of a rollout") end
    state = by_steps(l, state)
    for i = 0, l.done:size() - 1 do ended = ended + l.done:data()[i] end
    t.ok(l:update())
    for key, s in pairs(l.pieces[1].state) do t.ok(learner_rig.bytes(s) == start[key], "the update changed " .. key) end
  end
  t.ok(ended > 6, "episodes must end for this test")
end)

-- Let the environment write down what each step gave, before the learner adds to the rewards.
local function listen(l)
  local log, roll = {}, l.env.roll
  local B, n = l.B, l.x:shape()[3]
  l.env.roll = function(env, r, k, action)
    local cut = roll(env, r, k, action)
    log[#log + 1] = { reward = ffi.string(r.reward + k * B, 4 * B), terminated = ffi.string(r.terminated, B),
      truncated = ffi.string(r.cut, B), final = ffi.string(env.ended.final_obs, 4 * B * n) }
    return cut
  end
  return log
end

local function floats(bytes) return ffi.cast("const float *", bytes) end

-- V of the last observations, from the state that row t left behind: run again from the rollout's start.
local function last_values(l, row, final)
  local x, out = mn.tensor { shape = { 1, l.B, l.x:shape()[3] } }, {}
  ffi.copy(x:data(), final, #final)
  mn.no_grad(function()
    local _, _, state = l.agent:act(learner_rig.rows(l.x, 0, row + 1), learner_rig.rows(l.done, 0, row + 1), l.pieces[1].state)
    local _, values = l.agent(x, nil, state)
    for b = 0, l.B - 1 do out[b] = values:data()[b] end
  end)
  return out
end

each("bootstrap_truncated=1: a time limit is worth V of the last observation", function(name)
  local l = learner(name, { lr = 0, gamma = 0.9, lambda = 0.7, corridor = 2, time_limit = 5 })
  t.eq(l.bootstrap_truncated, true)
  local log, T, B, cut, ended = listen(l), l.T, l.B, 0, 0
  for _ = 1, 2 do
    for i = #log, 1, -1 do log[i] = nil end
    l:rollout()
    local G, values, done = {}, l.pieces[1].values:data(), l.done:data()
    for b = 0, B - 1 do G[b] = values[T * B + b] end
    local returns
    mn.no_grad(function()
      returns = mn.keep((mn.lambda_returns { rewards = l.rewards, values = l.pieces[1].values, done = l.done, gamma = 0.9, lambda = 0.7 }))
    end)
    for row = T - 1, 0, -1 do
      local step, V = log[row + 1], nil
      for b = 0, B - 1 do
        local truncated, terminated = step.truncated:byte(b + 1) == 1, step.terminated:byte(b + 1) == 1
        local r, next_one = floats(step.reward)[b], (row + 1) * B + b
        t.eq(done[next_one], (truncated or terminated) and 1 or 0)
        if truncated and not terminated then
          V = V or last_values(l, row, step.final)
          t.near(l.rewards:data()[row * B + b], r + 0.9 * V[b], 1e-5, "reward at a time limit")
          G[b], cut = r + 0.9 * V[b], cut + 1
          t.near(returns:data()[row * B + b], G[b], 1e-4, "return at a time limit")
        else
          t.eq(l.rewards:data()[row * B + b], r)
          local on = done[next_one] == 1 and 0 or 0.9
          G[b], ended = r + on * (0.3 * values[next_one] + 0.7 * G[b]), ended + (terminated and 1 or 0)
          t.near(returns:data()[row * B + b], G[b], 1e-4, "return")
        end
      end
    end
  end
  t.ok(cut > 2 and ended > 0, ("%d time limits, %d ends"):format(cut, ended))
end)

t.test("bootstrap_truncated=0: a time limit is an end", function()
  local l = learner("gru", { bootstrap_truncated = 0 })
  local log, cut = listen(l), 0
  l:rollout()
  for row = 0, l.T - 1 do
    t.eq(ffi.string(l.row.reward[row], 4 * l.B), log[row + 1].reward)
    cut = cut + select(2, log[row + 1].truncated:gsub("\1", ""))
  end
  t.ok(cut > 2, "no time limits")
  t.ok(not l.peek)
end)

-- ---- the same bits ----

local function train(name, updates, cfg, sizes) return learner_rig.trained(learner(name, cfg, sizes), updates) end

each("the same seed gives the same bits, another one others", function(name)
  local a = train(name, 4)
  t.ok(a == train(name, 4), "two equal runs differ")
  t.ok(a ~= train(name, 4, { seed = 2 }))
end)

each("one thread and two give the same bits", function(name)
  local threads = C.mn_threads(ctx)
  local sizes = { d_model = 64, d_head = 32, d_ffn = 64, eta = 4 }
  local function with(n)
    engine.check(C.mn_set_threads(ctx, n))
    return train(name, 2, { num_envs = 8, num_steps = 24, hidden = 64 }, sizes)
  end
  local ok, one, two = pcall(function() return with(1), with(2) end)
  C.mn_set_threads(ctx, threads)
  t.ok(ok, one)
  t.ok(one == two, "the bits depend on the number of threads")
end)

-- ---- nothing is left lying about ----

each("100 updates allocate nothing and leave no Lua garbage", function(name)
  local l = learner(name)
  learner_rig.leaves_nothing(l, 100)
  t.ok(l.finished.total > 100, "episodes must end for this test")
end)

-- ---- wrong settings ----

t.test("an environment or an agent that does not fit is refused", function()
  local env = mn.env("tmaze", { corridor = 4, num_envs = 2 })
  t.fails(function() mn.agent { env = env, core = cores.new("gru", { d_in = 9, d_model = 8 }) } end)
  t.raises(function() mn.agent { env = env } end, "expected { env = ")
  t.fails(function() mn.agent { env = env, cores = 3 } end)
end)
