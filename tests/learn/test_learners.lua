-- test_learners.lua -- what learners that act share, each that is registered and has the setting: terminated apart from truncated in returns and
-- advantages; carry, reset_on_done, context and horizon, each alone; the previous action and reward; observations of every type;
-- learning rates; a stepper's memory is cleared as the learner's was.
local ffi = require "ffi"
local t = require "tests.harness"
local learner_rig = require "tests.support.learner_rig"
local mn = require "mneme"
local on_policy = require "mneme.learn.on_policy"
local stepper = require "mneme.insight.episodes.stepper"
local schedule = require("mneme.runs.learner_settings").schedule

-- Of every learner with these settings.
local function every(settings, what, f)
  for name, make in pairs(learner_rig.learners(unpack(settings))) do
    t.test(name .. ": " .. what, function()
      f(function(case, cfg, sizes)
        local all = { minibatches = 1, epochs = 1, window = 0, targets = "rollout", steps = 1e4, norm_obs = false, norm_reward = false }
        for key, value in pairs(cfg or {}) do all[key] = value end
        return learner_rig.learner(make, case, all, sizes)
      end, name)
      mn.clear_tape()
    end)
  end
end

-- ---- returns by hand ----

-- Rewards 1, 2, 3, ...; odd episodes end (terminated) with their third step, even ones meet the time limit of 4.
local function paydays()
  local episode = 0
  return mn.env { observation = { 1 }, actions = 2, num_envs = 1, time_limit = 4,
    reset = function(self)
      episode = episode + 1
      self.odd, self.step = episode % 2 == 1, 0
      return { 1 }
    end,
    step = function(self)
      self.step = self.step + 1
      return { 1 }, self.step, self.odd and self.step == 3, 0
    end }
end

-- gamma = lambda = 0.5 and V = 10 everywhere: G = r + 0.5 (0.5 V' + 0.5 G').
local by_hand = {
  [1] = { 4.8125, 5.25, 3, 5.109375, 6.4375, 7.75, 4 + 0.5 * 10, 6 },   -- the cut episode is worth V of what followed
  [0] = { 4.8125, 5.25, 3, 5.03125, 6.125, 6.5, 4, 6 },                 -- a cut counts as an end
}

for _, bootstrap in ipairs { 1, 0 } do
  every({}, ("bootstrap_truncated=%d: returns and advantages as worked out by hand"):format(bootstrap), function(learner)
    local l = learner("feedforward", { env = paydays(), num_steps = 8, gamma = 0.5, lambda = 0.5, lr = 0, bootstrap_truncated = bootstrap })
    local head = l.agent.kind.values and "actor" or "critic"               -- of Q the value is the largest
    l.agent:state_dict()[head .. ".1.weight"]:fill(0)
    l.agent:state_dict()[head .. ".1.bias"]:fill(10)
    l:rollout()
    t.ok(l:update())
    local done = { 1, 0, 0, 1, 0, 0, 0, 1, 0 }
    for i, d in ipairs(done) do t.eq(l.done:data()[i - 1], d, "done " .. i - 1) end
    if not l.returns then                      -- it has errors of one step: |r + 5 - 10|, at an end |r - 10|
      t.near(l.losses.td_error, (4 + 3 + 7 + 4 + 3 + 2 + (bootstrap == 1 and 1 or 6) + 4) / 8, 1e-5)
      return
    end
    local sum = 0
    for i, g in ipairs(by_hand[bootstrap]) do
      t.near(l.returns:data()[i - 1], g, 1e-5, "return " .. i - 1)
      sum = sum + (g - 10) ^ 2 / 8
      if l.advantages then t.near(l.advantages:data()[i - 1], g - 10, 1e-5, "advantage " .. i - 1) end
    end
    local loss = l.losses.value_loss or l.losses.td_loss
    t.near(loss, (l.advantages or l.losses.td_loss) and sum / 2 or sum, 1e-4)
  end)
end

-- ---- when the memory is cleared ----

-- Flags of a [T+1,B] tensor as texts, one a copy.
local function flags(tensor)
  local shape, list = tensor:shape(), {}
  for b = 0, shape[2] - 1 do
    local text = {}
    for row = 0, shape[1] - 1 do text[#text + 1] = tensor:data()[row * shape[2] + b] end
    list[b + 1] = table.concat(text)
  end
  return list
end

-- Logits of the rollout, as one call of the agent from a state computes them.
local function logits_from(l, state, resets)
  local out
  mn.no_grad(function() out = mn.keep((l.agent(learner_rig.rows(l.x, 0, l.T), resets and learner_rig.rows(resets, 0, l.T), state))) end)
  return out
end

-- A corridor that no episode leaves, so that nothing but the settings clears a memory.
local long = { corridor = 100, time_limit = 0, num_steps = 8, lr = 0 }
local function with(more)
  local all = {}
  for _, set in ipairs { long, more } do for key, value in pairs(set) do all[key] = value end end
  return all
end

every({ "carry" }, "carry: does the memory go on between rollouts?", function(learner)
  for _, carry in ipairs { true, false } do
    local l = learner("gru", with { carry = carry })
    t.eq(flags(l.resets)[1], "000000001")
    l:rollout()
    t.eq(flags(l.resets)[2], "100000000")
    local state = mn.keep(l.next)
    t.ok(l:update())
    local logits = learner_rig.acted(l)
    t.eq(flags(l.resets)[2], carry and "000000000" or "100000000")
    t.near(learner_rig.apart(logits, logits_from(l, carry and state or nil)), 0, 1e-5)
    t.ok(learner_rig.apart(logits, logits_from(l, not carry and state or nil)) > 1e-3, "carry does nothing")
    t.eq(l:describe().memory.carry, carry)
  end
end)

every({}, "reset_on_done: is the memory cleared where an episode begins?", function(learner)
  for _, reset in ipairs { true, false } do
    local l = learner("gru", { reset_on_done = reset, lr = 0, num_steps = 30 })
    l:rollout()
    local state, begun = mn.keep(l.next), 0
    t.ok(l:update())
    local logits = learner_rig.acted(l)
    for i = 0, l.done:size() - 1 do
      begun = begun + l.done:data()[i]
      t.eq(l.resets:data()[i], reset and l.done:data()[i] or 0)
    end
    t.ok(begun > 3, "episodes must end for this test")
    t.near(learner_rig.apart(logits, logits_from(l, state, reset and l.done or nil)), 0, 1e-5)
    t.ok(learner_rig.apart(logits, logits_from(l, state, not reset and l.done or nil)) > 1e-3, "reset_on_done does nothing")
    t.eq(l:describe().memory.reset_on_done, reset)
  end
end)

every({}, "context=N clears the memory after N observations", function(learner)
  local l = learner("gru", with { context = 3, num_steps = 7 })
  l:rollout()
  t.eq(flags(l.resets)[1], "10010010")
  t.ok(l:update())
  l:rollout()
  t.eq(flags(l.resets)[1], "00100100")
  t.eq(flags(l.done)[1], "00000000")
  t.eq(l:describe().memory.context, 3)
  l = learner("gru", { context = 6, num_steps = 40, num_envs = 2, time_limit = 9 })      -- ends begin the count again
  l:rollout()
  for b = 0, 1 do
    local count = 0
    for row = 0, 40 do
      local done = l.done:data()[row * 2 + b] == 1
      local want = done or count == 6
      count = want and 1 or count + 1
      t.eq(l.resets:data()[row * 2 + b], want and 1 or 0, "row " .. row)
    end
  end
end)

every({ "context", "carry" }, "context: the count begins again where a rollout does, with carry=0", function(learner)
  local l = learner("gru", with { context = 3, carry = false, num_steps = 7 })
  l:rollout()
  l:rollout()
  t.eq(flags(l.resets)[1], "10010010")
end)

-- V of what follows a time limit, where the memory would have been cleared just then: that of a fresh one.
every({}, "context: a time limit where the memory is full", function(learner)
  local l = learner("gru", { corridor = 100, time_limit = 4, context = 4, num_steps = 4, gamma = 0.5, lr = 0 })
  local final, roll = nil, l.env.roll
  l.env.roll = function(env, r, k, action)
    local cut = roll(env, r, k, action)
    final = final or (env.ended.length[0] == 4 and ffi.string(env.ended.final_obs, l.row_bytes)) or nil
    l.paid = l.paid or final and r.reward[k * l.B]
    return cut
  end
  l:rollout()
  local x = mn.tensor { shape = { 1, l.B, 16 } }
  ffi.copy(x:data(), final, #final)
  local value
  mn.no_grad(function() local _, v = l.agent(x) value = v:data()[0] end)
  t.near(l.rewards:data()[3 * l.B] + (l.followed and 0.5 * l.followed[0] or 0), l.paid + 0.5 * value, 1e-5)
end)

-- Gradients of the whole rollout on the tape, cut every `length` steps.
local function cut_gradients(l, length)
  for _, p in ipairs(l.agent:parameters()) do p:zero_grad() end
  local state, logits, values = mn.keep(l.pieces[1].state), nil, nil
  for first = 0, l.T - 1, length do
    local to = math.min(first + length, l.T)
    to = to == l.T and to + 1 or to
    local x, resets = learner_rig.rows(l.x, first, to), learner_rig.rows(l.resets, first, to)
    local a, v = l.agent(x, resets, state)
    local after = select(3, l.agent:act(x, resets, state))
    logits, values = logits and mn.concat(logits, a, { axis = 0 }) or a, values and mn.concat(values, v, { axis = 0 }) or v
    state = mn.keep(after)
  end
  local returns = mn.lambda_returns { rewards = mn.keep(l.rewards), values = values, done = mn.keep(l.done), gamma = l.gamma, lambda = l.lambda }
  mn.a2c_loss { logits = logits, values = values, returns = returns, actions = mn.keep(l.played), entropy_coef = l.entropy_coef,
    value_coef = l.value_coef }:backward()
  local list = learner_rig.gradients(l)
  mn.clear_tape()
  return list
end

-- PPO's likewise: tests/learn/test_ppo.lua.
for _, name in ipairs { "gru", "galite", "gtrxl", "rmt" } do
  t.test(name .. ": horizon: A2C's gradients flow back so far and no further, what is remembered is all of it", function()
    for _, horizon in ipairs { 5, 1 } do
      local cfg = { corridor = 100, time_limit = 0, horizon = horizon, max_norm = 0, lr = 1e-3 }
      local l = learner_rig.learner(mn.a2c, name, cfg, { segment = 1 })
      t.eq(#l.pieces, math.ceil(16 / horizon))
      t.eq(l:describe().memory.horizon, horizon)
      for _ = 1, 2 do
        l:rollout()
        local before = learner_rig.parameters(l)
        t.ok(l:update())
        local after, got = learner_rig.parameters(l), learner_rig.gradients(l)
        learner_rig.put(l, before)
        local cut, whole = cut_gradients(l, horizon), cut_gradients(l, 16)
        learner_rig.put(l, after)
        t.ok(learner_rig.gradients_apart(got, cut) < 1e-4, "horizon " .. horizon .. ": " .. learner_rig.gradients_apart(got, cut))
        t.ok(learner_rig.gradients_apart(got, whole) > 1e-3, "the horizon cuts nothing")
      end
    end
  end)
end

t.test("a horizon of the whole rollout is none, and too many pieces are refused", function()
  t.eq(#learner_rig.learner(mn.a2c, "gru", { horizon = 16 }).pieces, 1)
  t.eq(#learner_rig.learner(mn.a2c, "gru", { horizon = 0 }).pieces, 1)
  t.fails(function() learner_rig.learner(mn.a2c, "feedforward", { num_steps = 200, horizon = 2 }) end)
end)

t.test("a memory that ignores resets cannot be cleared on purpose", function()
  for _, cfg in ipairs { { context = 5 }, { carry = false } } do
    t.fails(function() learner_rig.learner(mn.a2c, "delta_released", cfg) end)
  end
end)

-- ---- what was done and paid before ----

every({}, "previous=action,reward: the step before is an input, nothing where an episode begins", function(learner)
  local l = learner("gru", { previous = "action,reward", num_steps = 30, lr = 0 })
  l:rollout()
  t.ok(l:update())
  local state, logits = mn.keep(l.next), learner_rig.acted(l)
  t.ok(l:update())
  local told, begun, paid = l.previous, 0, 0
  for row = 1, 29 do
    for b = 0, 2 do
      local at = row * 3 + b
      if l.done:data()[at] == 1 then
        begun = begun + 1
        t.eq(told.action:data()[at], -1)
        t.eq(told.reward:data()[at], 0)
      else
        t.eq(told.action:data()[at], l.played:data()[at - 3])
        t.eq(told.reward:data()[at], l.rewards:data()[at - 3])
        paid = paid + math.abs(told.reward:data()[at])
      end
    end
  end
  t.ok(begun > 3 and paid > 0, "episodes and rewards are needed for this test")
  local x = mn.concat(mn.concat(l.x, mn.one_hot { index = told.action, classes = 4 }), mn.reshape(told.reward, { d0 = 31, d1 = 3, d2 = 1 }))
  local y
  mn.no_grad(function() y = mn.keep((l.agent.heads((l.agent.core(x, mn.keep(l.resets), state))))) end)
  t.near(learner_rig.apart(logits, learner_rig.rows(y, 0, l.T)), 0, 1e-5)
  mn.clear_tape()
end)

t.test("previous: one of both, neither, and words that it does not know", function()
  local env = mn.env("tmaze", { num_envs = 2 })
  local function d_in(previous) return mn.agent { env = env, core = "gru", previous = previous }.core.config.d_in end
  t.eq(d_in(nil), 16)
  t.eq(d_in "", 16)
  t.eq(d_in "action", 20)
  t.eq(d_in "reward", 17)
  t.eq(d_in "reward,action", 21)
  t.fails(function() d_in "actions" end)
  t.fails(function() d_in(true) end)
end)

-- ---- observations of every type ----

-- The same world twice: cells as codes 0..4, and as one-hots.
local function cells(coded)
  return mn.env { observation = coded and { 2 } or { 2, 5 }, dtype = coded and "u8" or "f32", codes = coded and 5 or nil, actions = 3,
    num_envs = 4, seed = 3, time_limit = 6,
    reset = function(self, random)
      self.a, self.b = random(5) - 1, random(5) - 1
      local seen = {}
      for i = 0, 9 do seen[i + 1] = (i < 5 and i == self.a or i >= 5 and i - 5 == self.b) and 1 or 0 end
      return coded and { self.a, self.b } or seen
    end,
    step = function(self, action, random)
      local reward = action == self.a % 3 and 1 or 0
      self.a = random(5) - 1
      local seen = {}
      for i = 0, 9 do seen[i + 1] = (i < 5 and i == self.a or i >= 5 and i - 5 == self.b) and 1 or 0 end
      return coded and { self.a, self.b } or seen, reward, false, reward
    end }
end

every({}, "codes of uint8 train as their one-hots do, and are kept as bytes", function(learner)
  local function trained(coded)
    local l = learner({ "gru", d_model = 8 }, { env = cells(coded), num_steps = 8, lr = 0.01 })
    t.eq(l.x:dtype(), coded and "u8" or "f32")
    t.eq(table.concat(l.x:shape(), ","), coded and "9,4,2" or "9,4,2,5")
    for _ = 1, 5 do
      l:rollout()
      t.ok(l:update())
    end
    return table.concat(learner_rig.parameters(l))
  end
  t.ok(trained(true) == trained(false), "the parameters differ")
end)

every({}, "pictures of uint8 reach the three convolutions in their own shape", function(learner)
  local env = mn.env { observation = { 36, 36, 1 }, dtype = "u8", actions = 2, num_envs = 2, time_limit = 5,
    reset = function(_, random)
      local picture = {}
      for i = 1, 36 * 36 do picture[i] = random(256) - 1 end
      return picture
    end,
    step = function(_, action)
      local picture = {}
      for i = 1, 36 * 36 do picture[i] = action * 200 end
      return picture, action, false, action
    end }
  local l = learner({ "gru", d_model = 8 }, { env = env, num_steps = 6, lr = 0.01 })
  t.eq(table.concat(l.x:shape(), ","), "7,2,36,36,1")
  local before = table.concat(learner_rig.parameters(l))
  for _ = 1, 2 do
    l:rollout()
    t.ok(l:update())
  end
  t.ok(before ~= table.concat(learner_rig.parameters(l)))
  local weights = 0
  for name in pairs(l.agent:state_dict()) do weights = weights + (name:find "^torso%." and 1 or 0) end
  t.ok(weights > 0, "the torso's parameters are the agent's")
end)

-- ---- learning rates ----

t.test("schedules, worked out by hand", function()
  local function rate(name, n, step, warmup) return schedule.rate({ lr = 2, lr_schedule = name, warmup = warmup or 0 }, n, step, 1000) end
  t.near(rate("constant", 5, 700), 2, 1e-12)
  t.near(rate("linear", 5, 0), 2, 1e-12)
  t.near(rate("linear", 5, 250), 1.5, 1e-12)
  t.near(rate("linear", 5, 2000), 0, 1e-12)
  t.near(rate("cosine", 5, 0), 2, 1e-12)
  t.near(rate("cosine", 5, 500), 1, 1e-12)
  t.near(rate("cosine", 5, 250), 1 + math.sqrt(0.5), 1e-12)
  t.near(rate("inverse_root", 25, 0, 100), 0.5, 1e-12)          -- a quarter of the warm-up
  t.near(rate("inverse_root", 100, 0, 100), 2, 1e-12)
  t.near(rate("inverse_root", 400, 0, 100), 1, 1e-12)
  t.near(rate("inverse_root", 16, 0), 0.5, 1e-12)
  t.near(rate("constant", 1, 0, 4), 0.5, 1e-12)
  t.near(rate("linear", 2, 500, 4), 0.5, 1e-12)
  t.fails(function() schedule.rate({ lr = 1, lr_schedule = "cosine", warmup = 0 }, 1, 0, nil) end)
end)

t.test("the share of a training that resumes made longer or shorter, worked out by hand", function()
  local function share(step, ...) return schedule.share(step, 0, { ... }, 10) end
  local first, longer = { from_step = 0, steps = 100 }, { from_step = 100, steps = 200 }
  t.near(share(50, first), 0.5, 1e-12)
  t.near(share(90, first, longer), 0.9, 1e-12)
  t.near(share(100, first, longer), 0.9, 1e-12)                -- as the update before
  t.near(share(150, first, longer), 0.95, 1e-12)
  t.near(share(200, first, longer), 1, 1e-12)
  t.near(share(150, first, longer, { from_step = 150, steps = 200 }), 0.95, 1e-12)            -- stopped, and resumed
  t.near(share(50, first, { from_step = 50, steps = 60 }), 0.4, 1e-12)
  t.near(share(55, first, { from_step = 50, steps = 60 }), 0.7, 1e-12)                         -- shorter
  t.near(share(60, first, { from_step = 50, steps = 100 }), 0.6, 1e-12)
  t.near(share(50, { from_step = 0 }, first), 0.5, 1e-12)                                      -- a start that did not note its steps
  t.eq(schedule.share(50, 100), 0.5)
  t.eq(schedule.share(50, nil), nil)
end)

every({ "lr_schedule" }, "lr_schedule and warmup set the optimiser's rate, which is logged", function(learner, name)
  local l = learner("gru", { lr = 0.1, lr_schedule = "linear", warmup = 2, steps = 4 * 48 })
  local want = { 0.05, 0.1 * 0.75, 0.1 * 0.5, 0.1 * 0.25 }
  for i = 1, 4 do
    l:rollout()
    t.ok(l:update())
    local m = {}
    l:metrics(m)
    t.near(m["charts/learning_rate"], want[i], 1e-7, name .. " update " .. i)
  end
end)

every({ "weight_decay" }, "weight_decay: weights shrink by lr weight_decay besides", function(learner)
  local function after(decay)
    local l = learner("gru", { lr = 0.01, weight_decay = decay })
    local before = learner_rig.parameters(l)
    l:rollout()
    t.ok(l:update())
    return before, learner_rig.parameters(l)
  end
  local before, plain = after(0)
  local _, shrunk = after(0.5)
  local was, a, b = ffi.cast("const float *", before[1]), ffi.cast("const float *", plain[1]), ffi.cast("const float *", shrunk[1])
  for k = 0, #before[1] / 4 - 1 do t.near(b[k], a[k] - 0.01 * 0.5 * was[k], 1e-6) end
end)

-- ---- a stepper ----

t.test("a stepper clears memories as the learner did", function()
  local function resets(memory, steps)
    local env = mn.env("tmaze", { corridor = 100, num_envs = 2, time_limit = 5 })
    local p = stepper.new(env, mn.agent { env = env, core = "gru" }, { memory = memory })
    local text = ""
    for _ = 0, steps do
      text = text .. p.resets:data()[p.row * 2]
      p:forward()
      p:step()
    end
    return text
  end
  t.eq(resets({ carry = true, reset_on_done = true, context = 0, num_steps = 4 }, 12), "1000010000100")
  t.eq(resets({ carry = true, reset_on_done = false, context = 0, num_steps = 4 }, 12), "1000000000000")
  t.eq(resets({ carry = true, reset_on_done = true, context = 3, num_steps = 4 }, 12), "1001010010100")
  t.eq(resets({ carry = false, reset_on_done = false, context = 0, num_steps = 4 }, 12), "1000100010001")
  t.eq(resets(nil, 12), "1000010000100")
end)

t.test("a stepper acts as the learner did", function()
  local l = learner_rig.learner(mn.a2c, "gru", { num_steps = 40, previous = "action,reward", context = 7, seed = 4, lr = 0 })
  l:rollout()
  local env = mn.env("tmaze", { corridor = 4, num_envs = 3, seed = 4, time_limit = 11 })
  local p = stepper.new(env, l.agent, { seed = 4, memory = l:describe().memory })
  for row = 0, 39 do
    p:forward()
    for b = 0, 2 do t.eq(p.actions:data()[p.row * 3 + b], l.played:data()[row * 3 + b], ("row %d, copy %d"):format(row, b)) end
    p:step()
  end
end)

-- A core sees what it saw in training, also where its window or segments lie where a call begins.
for _, core in ipairs { { "gtrxl", memory = 3 }, { "gtrxl", memory = 3, sees = "rollout" }, { "rmt", segment = 48 },
  { "rmt", segment = 48, sees = "rollout" }, { "rmt", sees = "rollout" }, { "gru" } } do
  for name, pieces in pairs { whole = {}, ["in pieces"] = { horizon = 30 } } do
    t.test(("a stepper values what the learner valued, beyond 64 steps, %s: %s%s"):format(name, core[1], core.sees and ", sees=" .. core.sees or ""), function()
      local settings = { num_steps = 80, context = 0, seed = 4, lr = 0, horizon = pieces.horizon }
      local config = { core[1], n_layers = 1, d_model = 8, d_head = 4, n_heads = 2, d_ffn = 8, memory = core.memory, segment = core.segment, sees = core.sees }
      if core[1] == "gru" then config = { "gru", d_model = 8 } end
      local l = learner_rig.learner(mn.a2c, config, settings)
      local env = mn.env("tmaze", { corridor = 4, num_envs = 3, seed = 4, time_limit = 11 })
      local p, worst = stepper.new(env, l.agent, { seed = 4, memory = l:describe().memory }), 0
      for _ = 1, 2 do
        l:rollout()
        for row = 0, 79 do
          p:forward()
          local mine, of_learner = p.values:data() + p.row * 3, l.row.value[row]
          for b = 0, 2 do worst = math.max(worst, math.abs(mine[b] - of_learner[b])) end
          p:step()
        end
      end
      t.ok(worst < 1e-5, ("values differ by up to %g"):format(worst))
    end)
  end
end

t.test("a checkpoint has a score once a hundred episodes vouch for it", function()
  local l = learner_rig.learner(mn.a2c, "gru", {})
  l:rollout()
  t.ok(l.finished.total > 0 and l.finished.total < 100, l.finished.total)
  t.eq(l:best(), nil)
  while l.finished.total < 100 do l:rollout() end
  t.eq(l:best(), l.finished:score())
end)

t.test("the defaults are listed once", function()
  for key in pairs(on_policy.defaults) do
    for _, name in ipairs { "a2c", "ppo" } do
      t.ok(mn.learners[name].defaults[key] ~= nil, name .. " has no " .. key)
    end
  end
end)

t.test("an agent made for other actions is refused", function()
  local function env(name) return mn.env(name, { num_envs = 1, seed = 1 }) end
  local made = { "tmaze", "noisy_cartpole", "pendulum" }
  for _, name in ipairs { "a2c", "ppo", "pqn", "stream" } do
    for i, mine in ipairs(made) do
      local agent, other = mn.agent { env = env(mine), core = "gru" }, env(made[i % #made + 1])
      t.fails(function() mn.learner({ learner = name, seed = 1 }, other, agent) end)
    end
  end
end)
