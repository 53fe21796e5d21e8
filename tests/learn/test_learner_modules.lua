-- test_learner_modules.lua -- what a learner trains besides the agent: declared, saved, resumed; and what belongs to nothing is refused.
local ffi = require "ffi"
local t = require "tests.harness"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local learner_rig = require "tests.support.learner_rig"
local mn = require "mneme"
local run_folder = require "mneme.runs.run_folder"
local shell = require "tests.support.shell"
local stepper = require "mneme.insight.episodes.stepper"
local trusted_code = require "mneme.base.trusted_code"

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

-- An agent one part of which is a function over a module or leaf that it closes over: `owner` is what belongs to no agent.
local PARTS = [[
local mn = require "mneme"
return function(part, n, width)
  local owner = part == "distribution" and mn.tensor { data = { 0.5 }, grad = true }
    or part == "torso" and mn.nn.linear(width, 6) or part == "value" and mn.nn.linear(4, 1) or mn.nn.linear(4, n)
  local given = { [part] = function(x) return owner(x) end }
  if part == "decay" then
    owner = mn.tensor { data = { 0.5 }, grad = true }
    given = { core = { "galite", n_layers = 1, d_model = 4, n_heads = 1, d_head = 4, d_ffn = 4, decay = "mine" } }
    mn.decays.mine = { doc = "x", keep = function(b, g) return 1 - b * owner:sigmoid(), 1 - g end }
  elseif part == "distribution" then
    given[part] = { size = function() return n end, of = function(logits)
      local pi = mn.categorical(logits * owner)
      return { mode = function() return pi:mode() end, log_prob = function(_, a) return pi:log_prob(a) end, entropy = function() return pi:entropy() end,
        sample = function(_, draw) return select(2, (logits * owner - (-draw:uniform(logits):log()):log()):detach():max(-1)) end }
    end }
  end
  return given, owner
end
]]
local KINDS = { "policy", "value", "torso", "decay", "distribution" }
local dir = shell.folder()
files.write(dir .. "/own.lua", { "local mn = require 'mneme'\nlocal make = (function() " .. PARTS .. [[
end)()
local cfg = mn.config { own = "policy", steps = 256, num_envs = 2, num_steps = 16, lr = 0.01, hidden = 4, learner = "a2c" }
local env = mn.env("tmaze", { corridor = 3, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(1)
local given, owner = make(cfg.own, 4, 16)
given.env, given.core, given.hidden = env, given.core or { "gru", d_model = 4 }, 4
return mn.learner(cfg, env, mn.agent(given), { modules = { owner = owner } }):train()
]] })

for _, part in ipairs(KINDS) do
  t.test(part .. ": what the agent's functions close over is the checkpoint's wherever the run is shown, and init= takes it", function()
    local said = shell.fine(dir, ("run own.lua own=%s run=%s"):format(part, part))
    said = said .. shell.fine(dir, ("run own.lua own=%s lr=0 init=%s run=%s-on"):format(part, part, part))
    t.ok(not said:find "; new:" and not said:find "left out", said)
    trusted_code.trusted = true
    local stored, n = run_folder.load(dir .. "/" .. part):latest().tensors, 0
    for _, folder in ipairs { part, part .. "-on" } do
      for name, x in pairs(stepper.from_run(dir .. "/" .. folder).agent.beside:state_dict()) do
        local other = stored["extra." .. name]
        t.ok(ffi.string(x:data(), 4 * x:size()) == ffi.string(other:data(), 4 * x:size()), folder .. ": " .. name)
        n = n + 1
      end
    end
    trusted_code.trusted = false
    t.ok(n >= 2)
  end)

  t.test(part .. ": what it closes over and no module owns is named before the first update, by every learner", function()
    for name, class in pairs(learner_rig.learners()) do
      local cfg = config { minibatches = class.defaults.minibatches and 1 or nil, norm_obs = false, lr = name:find "stream" and 1 or 0.01 }
      local env = mn.env("tmaze", { corridor = 3, num_envs = 2, seed = 1 })
      local given = loadstring(PARTS, "@parts.lua")()(part, env.action_space.n, 16)
      local learner, q = nil, class.acts == "values" and (part == "value" or part == "distribution")
      given.env, given.core, given.hidden = env, given.core or { "gru", d_model = 4 }, 4
      local ok, problem = pcall(function()
        learner = class(cfg, env, mn.agent(given))
        learner:begin()
        for _ = 1, 2 do learner:advance() end
      end)
      t.ok(not ok and errors.is(problem), ("%s: %s"):format(name, tostring(problem)))
      t.ok(problem.message:find(q and "expected none" or "belongs to no module", 1, true), ("%s: %s"):format(name, tostring(problem)))
      t.ok(not (problem.where or ""):find "mneme/learn", name .. ": " .. tostring(problem.where))
    end
  end)
end

t.test("a leaf of a core's file that is not in its module is named with the core's line, by every learner; so are two of one name", function()
  files.make_folder(dir .. "/cores")
  files.write(dir .. "/cores/owned.lua", { [[
local mn = require "mneme"
local mine = mn.tensor { data = { 2 }, grad = true }
return { config = { d_in = 4, d_model = 4, reset = true }, build = function(cfg)
  local gate = mn.nn.linear(cfg.d_in, cfg.d_model, { act = "sigmoid" })
  return { module = mn.nn.container { { "gate", gate } }, d_out = cfg.d_model, states = { h = "[B,D]" }, sizes = { D = cfg.d_model },
    forward = function(x, done, state)
      local z = gate(x)
      local y, h = mn.ops.gated_scan { x = z, a = 1 - z, done = cfg.reset and done or nil, h = state.h }
      return y * mine, { h = h }
    end }
end }
]] })
  for name in pairs(learner_rig.learners()) do
    local said, status = shell.mneme(dir, "run train env=tmaze core=owned core.d_model=4 hidden=4 num_envs=4 num_steps=16 steps=1000 learner=" .. name)
    t.ok(status == 1 and said:find "cores/owned.lua:%d+: [%w_]+: mine %[1%] .*belongs to no module", name .. ": " .. said)
  end
  local text = files.read(dir .. "/cores/owned.lua"):gsub('{ "gate", gate } }', '{ "gate", gate }, { "gate", mn.nn.linear(2, 2) } }'):gsub("y %* mine", "y")
  files.write(dir .. "/cores/twice.lua", { text })
  local said, status = shell.mneme(dir, "run train env=tmaze core=twice core.d_model=4 hidden=4 steps=100 run=twice")
  t.ok(status == 1 and said:find "cores/twice.lua:%d+: two tensors are called core.gate.weight" and not files.is_folder(dir .. "/twice"), said)
end)

t.test("modules of a learner that are none, and an optimiser that leaves out what the loss reaches, are named with the learner's line", function()
  for _, name in ipairs { "none", unpack(mn.names "learners") } do
    local base = name ~= "none" and mn.learners[name] or nil
    local function loss(_, batch) return batch.values:square():mean() + batch.logits:square():mean() end
    for _, gives in ipairs { 3, { 3 }, { a = 3 }, { mn.nn.linear(1, 1) }, { a = mn.tensor { 1 } } } do
      local function modules() return gives end
      local cfg = config { num_envs = name:find "^stream" and 1 or 4 }
      local ok, why = pcall(train, mn.on_policy { base = base, modules = modules, loss = loss }, cfg)
      t.ok(not ok and why.where == errors.position_of(modules), name .. ": " .. tostring(why))
    end
  end
  local function loss(_, batch) return batch.values:square():mean() + batch.logits:square():mean() end
  local function setup(self) self.optimiser = mn.sgd({ self.agent:parameters()[1] }, { lr = 0.01 }) end
  local learner = train(mn.on_policy { loss = loss, setup = setup }, config())
  learner:begin()
  local ok, why = pcall(learner.advance, learner)
  t.ok(not ok and why.message:find "self.optimiser, which setup made, does not move it" and why.where == errors.position_of(loss), tostring(why))
end)

t.test("whatever a loss gives wrongly, the error names its line", function()
  local function mean(batch) return batch.values:square():mean() end
  for _, wrong in ipairs { function() end, function() return 3 end, function(batch) return batch.values end, function(batch) return batch.returns:mean() end,
    function(batch) return mean(batch), 3 end, function(batch) return mean(batch), { 3 } end, function(batch) return mean(batch), { x = "y" } end } do
    local loss = function(_, batch) return wrong(batch) end
    local learner = train(mn.on_policy { loss = loss }, config())
    learner:begin()
    local ok, why = pcall(learner.advance, learner)
    t.ok(not ok and why.where == errors.position_of(loss), tostring(why))
  end
end)

t.test("stream's variants: a loss that is not two numbers is named", function()
  for _, loss in ipairs { function(_, step) return step.values:sum() end, function() end } do
    local learner = train(mn.on_policy { base = mn.learners.stream, loss = loss }, config { lr = 1, norm_obs = false })
    learner:begin()
    local ok, problem = pcall(learner.advance, learner)
    if not ok then t.ok(errors.is(problem) and problem.where:find "test_learner_modules", tostring(problem)) end
  end
end)

os.execute("rm -r '" .. dir .. "'")
