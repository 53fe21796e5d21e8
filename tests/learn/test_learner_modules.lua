-- test_learner_modules.lua -- what a learner trains besides the agent: declared, saved, resumed; and what belongs to nothing is refused.
local t = require "tests.harness"
local mn = require "mneme"

local function config(more)
  local cfg = { steps = 256, num_envs = 2, num_steps = 16, lr = 0.01, corridor = 3, hidden = 4, threads = 1 }
  for key, value in pairs(more or {}) do cfg[key] = value end
  return cfg
end

local function train(class, cfg, extra)
  local env = mn.env("tmaze", { corridor = 3, num_envs = cfg.num_envs, seed = 1 })
  mn.manual_seed(1)
  local learner = class(cfg, env, mn.agent { env = env, core = { "gru", d_model = 4 }, hidden = 4 }, extra)
  return learner
end

local function owning(base)
  return mn.on_policy { doc = "x", base = base, config = { num_steps = 16 },
    modules = function(self) return { temperature = mn.tensor { data = { 3 + 0 * self.gamma }, grad = true }, scale = mn.nn.linear(1, 1) } end,
    loss = function(self, batch)
      local m = self.modules
      return m.temperature:square():sum() + m.scale(mn.ones(1, 1)):square():sum() + batch.values:square():mean()
    end }
end

t.test("a leaf that no module owns is named before the first update", function()
  local temperature = mn.tensor { data = { 3 }, grad = true }
  local class = mn.on_policy { doc = "x", config = { num_steps = 16 },
    loss = function(_, batch) return temperature:square():sum() + batch.values:square():mean() end }
  local learner = train(class, config())
  learner:begin()
  t.fails(function() learner:advance() end)
  t.eq(temperature:item(), 3)
  local given = train(class, config(), { modules = { temperature = temperature } })
  given:begin()
  t.ok(select(2, given:advance()))
  t.ok(temperature:item() < 3)
end)

t.test("modules of a learner are trained, and are in its checkpoint; variants add theirs", function()
  for _, base in ipairs { false, mn.learners.ppo } do
    local learner = train(owning(base or nil), config(base and { minibatches = 1 } or nil))
    learner:begin()
    t.ok(select(2, learner:advance()))
    t.ok(learner.modules.temperature:item() < 3)
    local names = {}
    for _, item in ipairs(learner:contents()) do names[item[1]] = true end
    t.ok(names["extra.temperature"] and names["extra.scale.weight"], "not in the checkpoint")
  end
  local more = mn.on_policy { base = owning(), modules = function() return { other = mn.tensor { data = { 1 }, grad = true } } end }
  local learner = train(more, config())
  t.ok(learner.modules.temperature and learner.modules.other, "the base's are gone")
  t.fails(function() train(mn.on_policy { base = owning(), modules = function() return { x = mn.ones(1) } end }, config()) end)
end)

t.test("setup of a variant comes after its base's, once, also if it calls it", function()
  local order = {}
  local class = mn.on_policy { base = mn.learners.ppo, setup = function(self)
    order[#order + 1] = self.minibatch and "after" or "before"
    mn.learners.ppo.setup(self)
  end }
  local learner = train(class, config { minibatches = 1 })
  t.eq(table.concat(order, " "), "after")
  learner:begin()
  t.ok(select(2, learner:advance()))
end)
