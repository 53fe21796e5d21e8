-- test_own_heads.lua -- an agent whose torso, policy and value are the script's own acts, learns, saves, is evaluated and shown; parts of
-- wrong sizes are refused when the agent is made.
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local mn = require "mneme"
local learner_rig = require "tests.support.learner_rig"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local nn = mn.nn

local dir = shell.folder()
local env = mn.env("tmaze", { corridor = 4, num_envs = 3, time_limit = 11 })

local function agent(parts)
  local all = { env = env, core = { "gru", d_model = 8 } }
  for key, value in pairs(parts) do all[key] = value end
  return mn.agent(all)
end

-- The usual heads, as modules of a script.
local function usual(d, hidden, actions)
  return nn.sequential { nn.linear(d, hidden, { act = "tanh" }), nn.linear(hidden, actions) },
    nn.sequential { nn.linear(d, hidden, { act = "tanh" }), nn.linear(hidden, 1) }
end

for name, make in pairs { a2c = mn.a2c, ppo = mn.ppo } do
  t.test(name .. ": the usual heads, given as modules, learn as the usual heads, bit for bit", function()
    local function trained(own)
      local settings = { num_steps = 16, num_envs = 3, minibatches = 3, epochs = 2, lr = 1e-2, seed = 1 }
      mn.manual_seed(4)
      local core = mn.core("gru", { d_in = 16, d_model = 8 })
      local stream = own and { usual(8, 16, 4) } or {}
      local a = mn.agent { env = mn.env("tmaze", { corridor = 4, num_envs = 3, time_limit = 11 }), core = core, hidden = 16,
        policy = stream[1], value = stream[2] }
      local l = make(settings, mn.env("tmaze", { corridor = 4, num_envs = 3, time_limit = 11 }), a)
      l:begin()
      return learner_rig.trained(l, 4)
    end
    t.ok(trained(true) == trained(false), "other bits")
  end)
end

t.test("one head of one's own, or a function, stands beside the usual other", function()
  for what, parts in pairs { policy = { policy = nn.linear(8, 4) }, value = { value = nn.linear(8, 1) },
    ["value [T,B]"] = { value = nn.module({}, function(_, y) return y:sum { axis = -1 } end) },
    ["function"] = { value = function(y) return y:mean { axis = -1, keepdims = 1 } end },
    torso = { torso = nn.linear(16, 5, { act = "relu" }) }, ["torso of the script"] = { torso = function(x) return mn.concat(x, x) end } } do
    local a = agent(parts)
    local l = mn.a2c({ num_steps = 8 }, mn.env("tmaze", { corridor = 4, num_envs = 3, time_limit = 11 }), a)
    l:begin()
    learner_rig.trained(l, 2)
    local logits, values = a(mn.tensor { shape = { 4, 3, 16 } })
    t.eq(table.concat(logits:shape(), ","), "4,3,4", what)
    t.eq(table.concat(values:shape(), ","), "4,3", what)
    mn.clear_tape()
  end
  t.eq(agent({ torso = function(x) return mn.concat(x, x) end }).core.config.d_in, 32)
  t.eq(agent({ torso = nn.linear(16, 5), previous = "action,reward" }).core.config.d_in, 10)
end)

t.test("parts of wrong sizes say what they gave and what was expected", function()
  local function raises(parts, what) t.raises(function() agent(parts) end, what) mn.clear_tape() end
  raises({ policy = nn.linear(8, 3) }, "agent: policy gave %[2,3,3%] %(f32%) for %[2,3,8%], expected %[2,3,4%]: a logit for each of 4 actions")
  raises({ policy = nn.linear(7, 4) }, "agent: policy, called with zeros %[2,3,8%]: linear: ")
  raises({ value = nn.linear(8, 2) }, "agent: value gave %[2,3,2%] %(f32%) for %[2,3,8%], expected %[2,3,1%] or %[2,3%]")
  raises({ value = function(y) return y:sum() end }, "agent: value gave %[1%]")
  raises({ value = function() end }, "agent: value gave nothing")
  raises({ policy = 3 }, "agent: policy is a number, expected a module such as mn.nn.linear")
  raises({ policy = {} }, "agent: policy is a list of 0, expected a module")
  raises({ torso = function() return 3 end }, "agent: torso gave a number for %[2,3,16%], expected %[2,3,d%]")
  raises({ torso = function(x) return x:reshape { d0 = 3, d1 = 2, d2 = 16 } end }, "agent: torso gave %[3,2,16%]")
  raises({ actor = nn.linear(8, 4) }, "agent: actor is called policy here")
  raises({ critic = nn.linear(8, 1) }, "agent: critic is called value here")
  -- heads may share a module: it is trained once
  local shared = nn.linear(8, 8)
  local twice = agent { policy = nn.sequential { shared, nn.linear(8, 4) }, value = nn.sequential { shared, nn.linear(8, 1) } }
  local times = 0
  for _, p in ipairs(twice:parameters()) do if p == shared.leaves[1] then times = times + 1 end end
  t.eq(times, 1)
end)

t.test("a run with parts of the script's own resumes bit for bit, is evaluated, shown and changed", function()
  files.write(dir .. "/own.lua", { [[
local mn = require "mneme"
local nn = mn.nn
local cfg = mn.config { corridor = 3, core = { "gru", d_model = 16, d_in = 12 }, learner = "a2c", num_envs = 16, num_steps = 16, lr = 1e-2, steps = 4e4,
  entropy_coef = 0.01, own = true }
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local core = mn.core(cfg.core)
local agent = mn.agent { env = env, core = core, torso = nn.linear(16, 12, { act = "relu" }),
  policy = nn.sequential { nn.linear(core.d_out, 32, { act = "relu" }), nn.linear(32, 4) }, value = nn.linear(core.d_out, 1) }
return mn.learner(cfg, env, agent):train()
]] })
  local function fine(words) return shell.fine(dir, words) end
  local score = tonumber(fine("run own.lua run=whole threads=1"):match "score (%S+) over the last")
  t.ok(score > 0.9, score)
  fine "run own.lua run=torn threads=1 steps=20480"
  fine "run own.lua resume=torn steps=40000"
  local function last(run) return safetensors.load(dir .. "/" .. run .. "/checkpoints/step-40192.safetensors").tensors end
  local torn = last "torn"
  for name, tensor in pairs(last "whole") do t.ok(learner_rig.bytes(tensor) == learner_rig.bytes(torn[name]), name) end
  local evaluated = tonumber(fine("eval whole episodes=200"):match "success (%S+)")
  t.ok(math.abs(evaluated - score) < 0.1, ("trained to %g, evaluated at %g"):format(score, evaluated))
  if files.is_file(engine.build .. "/libmneme_view.so") then fine "view whole out=there.png" end          -- engines of other widths have no painter
  fine "intervene whole erase=layers.0 at=2 episodes=20"
  fine "export whole to=whole.safetensors"
  local names = safetensors.load(dir .. "/whole.safetensors").tensors
  for _, name in ipairs { "torso.weight", "actor.0.weight", "actor.2.bias", "critic.weight" } do t.ok(names[name], name) end
end)

os.execute("rm -rf '" .. dir .. "'")

t.test("a module is a module everywhere: layers, classes, sequential, container, and cores", function()
  local function kinds()
    return { layer = nn.linear(8, 8), class = nn.module { a = nn.linear(8, 8), forward = function(self, x) return self.a(x) end },
      list = nn.sequential(nn.linear(8, 8), nn.tanh()),
      container = nn.container({ { "a", nn.linear(8, 8) } }, function(self, x) return self.children[1][2](x) end),
      core = mn.core("mingru", { d_in = 8, d_model = 8 }) }
  end
  for kind, module in pairs(kinds()) do
    local n = #module:parameters()
    t.eq(#nn.container({ { "m", module } }):parameters(), n, kind .. " in a container")
    t.eq(#nn.module({ m = module, forward = function() end }):parameters(), n, kind .. " in a class")
    t.eq(#nn.sequential(module):parameters(), n, kind .. " in a sequential")
    local l = mn.a2c({ num_steps = 4, num_envs = 3 }, mn.env("tmaze", { corridor = 4, num_envs = 3 }), agent {}, { modules = { extra = module } })
    t.ok(l.extra.module:state_dict()[next({ ["extra." .. next(module:state_dict())] = true })], kind .. " as a learner's extra module")
    if kind ~= "core" then
      t.ok(agent { torso = nn.sequential(nn.linear(16, 8), module) }, kind .. " in a torso")
      t.ok(agent { policy = nn.sequential(module, nn.linear(8, 4)), value = nn.sequential(module, nn.linear(8, 1)) }, kind .. " in heads")
    end
  end
  for _, odd in ipairs { 3, "linear", { 1 }, { children = {} } } do
    t.raises(function() nn.sequential(nn.tanh(), odd) end, "item 2 is")
    t.raises(function() nn.container { { "a", odd } } end, "expected a module")
    t.raises(function() agent { policy = odd } end, "expected a module")
    t.raises(function() mn.a2c({ num_steps = 4, num_envs = 3 }, env, agent {}, { modules = { m = odd } }) end, "expected a module")
  end
end)

t.test("an error inside a sequential names the layer", function()
  local net = nn.sequential(nn.linear(8, 16), nn.sequential(nn.tanh(), nn.linear(32, 4)))
  t.fails(function() net(mn.randn(5, 8)) end)
end)
