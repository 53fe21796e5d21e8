-- test_credit_angle.lua -- credit/cosine and credit/ratio: what an update's gradient leaves out of whole backpropagation is what they say, and training
-- keeps its bits.
local t = require "tests.harness"
local files = require "mneme.base.files"
local mn = require "mneme"
local learners = require "mneme.learn.learners"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"

local function learner(core, settings, corridor)
  mn.manual_seed(3)
  local env = mn.env("tmaze", { corridor = corridor or 30, num_envs = 3, seed = 3 })
  local cfg = { num_steps = 5, seed = 3, steps = 1e4, lr = 1e-7 }
  for key, value in pairs(settings or {}) do cfg[key] = value end
  return mn[cfg.learner or "a2c"](cfg, env, mn.agent { env = env, core = core, hidden = 8, previous = cfg.previous })
end

-- cosine and ratio of every update from the one whose stretch is full
local function angles(l, rollouts, updates)
  local measure, list = mn.measure.credit_angle.watch(l, rollouts), {}
  l:begin()
  for _ = 1, updates do
    l:advance()
    local cosine, ratio = measure()
    if cosine then list[#list + 1] = { cosine = cosine, ratio = ratio } end
  end
  return list
end

-- The first stretch begins where training does, so that nothing lies before it.
local cores = { mingru = { "mingru", d_model = 12, remember = 40 }, rtu = { "rtu", d_model = 12, r_min = 0.9 },
  minlstm = { "minlstm", d_model = 12, remember = 40 } }
for name, core in pairs(cores) do
  t.test(name .. ", one layer on the observations: exact credit is whole backpropagation, a window is not", function()
    local exact, window = angles(learner(core, { credit = "exact" }), 4, 4)[1], angles(learner(core), 4, 4)[1]
    t.near(exact.cosine, 1, 1e-6)
    t.near(exact.ratio, 1, 1e-5)
    t.ok(math.max(1 - window.cosine, math.abs(1 - window.ratio)) > 1e-2, ("the window: cosine %.6f, ratio %.6f"):format(window.cosine, window.ratio))
  end)
end

t.test("two layers: exact credit leaves out what passes through the lower one, a window more", function()
  local two = { "mingru", d_model = 12, n_layers = 2, remember = 40 }
  local exact, window = angles(learner(two, { credit = "exact" }), 4, 4)[1], angles(learner(two), 4, 4)[1]
  t.ok(exact.cosine < 1 - 1e-3 and exact.cosine > window.cosine, ("cosine %.4f, of the window %.4f"):format(exact.cosine, window.cosine))
  t.ok(math.abs(1 - exact.ratio) < math.abs(1 - window.ratio), ("ratio %.4f, of the window %.4f"):format(exact.ratio, window.ratio))
end)

local dir = shell.folder()
files.write(dir .. "/leaky.lua", { [[
local mn = require "mneme"
return { config = { d_in = 6, d_model = 6, reset = true }, build = function(cfg)
  local write = mn.nn.linear(cfg.d_in, cfg.d_model)
  return { module = write, d_out = cfg.d_model, states = { h = "[B,D]" }, sizes = { D = cfg.d_model }, forward = function(x, done, state)
    local function body(now, h) return now + h * 0.9, now + h * 0.9 end
    local y, h = mn.recur(body, { x = write(x), state = state.h, done = cfg.reset and done or nil })
    return y, { h = h }
  end }
end }
]] })
-- An environment, a memory, heads, a torso with dropout and a learner of one's own.
mn.learners.mine = mn.on_policy {
  doc = "a policy gradient", config = { num_steps = 5, lr = 1e-3 },
  loss = function(_, batch) return -(batch.policy:log_prob(batch.actions) * batch.advantages):mean() + (batch.values - batch.returns):square():mean(), {} end,
}
local function own_parts(num_envs, make)
  local nn = mn.nn
  mn.manual_seed(3)
  local env = mn.env({ name = "count", observation = { 3 }, actions = 2, reset = function(self, random) self.k = random(4) return { self.k, 1, 0 } end,
    step = function(self, a)
      self.k = self.k - 1
      return { self.k, 0, a }, a, self.k < 0
    end }, { num_envs = num_envs, seed = 3 })
  local core = mn.core(dir .. "/leaky.lua", { d_in = 6, d_model = 6 })
  local torso = nn.sequential { nn.linear(3, 6), nn.dropout(0.3) }
  local agent = mn.agent { env = env, core = core, torso = torso, policy = nn.linear(6, 2), value = nn.linear(6, 1) }
  return make({ num_steps = 5, seed = 3, steps = 1e4, lr = 1e-3 }, env, agent)
end

-- Its parameters after 6 updates.
local function after(l, watch)
  local seen = watch and angles(l, 3, 6)
  if not watch then
    l:begin()
    for _ = 1, 6 do l:advance() end
  end
  local list = {}
  for _, p in ipairs(l.optimiser.parameters) do for i = 0, p:size() - 1 do list[#list + 1] = p:data()[i] end end
  return list, seen
end
local function same(make)
  local plain = after(make(), false)
  local watched, seen = after(make(), true)
  t.ok(#plain > 50)
  t.eq(#seen, 4)
  for i, x in ipairs(plain) do t.eq(watched[i], x) end
end

t.test("training keeps its bits, with the previous action and reward, too", function()
  same(function() return learner({ "gru", d_model = 12 }, { previous = "action,reward", lr = 1e-3 }, 4) end)
end)

for _, num_envs in ipairs { 1, 2, 6 } do
  t.test(("training keeps its bits with parts of one's own and dropout, %d environments"):format(num_envs), function()
    for _, make in ipairs { mn.a2c, mn.learners.mine } do same(function() return own_parts(num_envs, make) end) end
  end)
end

t.test("learners whose update is not one step on a whole rollout are refused", function()
  for _, name in ipairs(registry.names "learners") do
    local make = learners.find(name)
    if name ~= "a2c" then
      mn.manual_seed(3)
      local env = mn.env("tmaze", { corridor = 4, num_envs = 4, seed = 3 })
      local l = make({ seed = 3, steps = 100 }, env, mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8 })
      t.fails(function() mn.measure.credit_angle.watch(l) end, "does not take one step on a whole rollout")
    end
  end
  t.fails(function() mn.measure.credit_angle.watch(learner { "gru", d_model = 8 }, 1) end, "expected a whole number from 2")
end)

files.remove_folder(dir)
