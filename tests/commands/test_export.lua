-- test_export.lua -- what `mneme export` writes is the agent: it is computed again from the file alone, Mneme reads it back, and every core that
-- is registered has a description and torch's names in both directions.
local export = require "mneme.commands.export"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local layout = require("mneme.tensor.module").torch_layout()
local mn = require "mneme"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local t = require "tests.harness"
local nn = mn.nn

local dir = shell.folder()
local function fine(words) return shell.fine(dir, words) end

-- ---- an agent from its file, in plain Lua ----

local acts = { tanh = math.tanh or function(x) return 1 - 2 / (math.exp(2 * x) + 1) end, relu = function(x) return math.max(0, x) end }
local function sigma(x) return 1 / (1 + math.exp(-x)) end
local function linear(p, name, x)
  local w, b, y = p[name .. ".weight"], p[name .. ".bias"], {}
  local rows, cols = unpack(w:shape())
  t.eq(cols, #x, name)
  for i = 1, rows do
    y[i] = b:data()[i - 1]
    for k = 1, cols do y[i] = y[i] + w:data()[(i - 1) * cols + k - 1] * x[k] end
  end
  return y
end
local function apply(p, name, about, x)
  if about.kind == "sequential" then
    local n = 0
    while about.children[tostring(n)] do x, n = apply(p, name .. "." .. n, about.children[tostring(n)], x), n + 1 end
    return x
  end
  local y = about.kind == "linear" and linear(p, name, x) or {}
  local act = acts[about.activation or about.kind]
  for i, v in ipairs(about.kind == "linear" and y or x) do y[i] = act and act(v) or v end
  return y
end
local function gru(p, x, h)
  local n = #h
  local as = { ["core.i.weight"] = p["core.weight_ih_l0"], ["core.i.bias"] = p["core.bias_ih_l0"], ["core.h.weight"] = p["core.weight_hh_l0"],
    ["core.h.bias"] = p["core.bias_hh_l0"] }
  local i, u, new = linear(as, "core.i", x), linear(as, "core.h", h), {}
  for k = 1, n do
    local r, z = sigma(i[k] + u[k]), sigma(i[n + k] + u[n + k])
    new[k] = (1 - z) * acts.tanh(i[2 * n + k] + r * u[2 * n + k]) + z * h[k]
  end
  return new
end

files.write(dir .. "/own.lua", { [[
local mn = require "mneme"
local nn = mn.nn
local cfg = mn.config { corridor = 4, core = { "gru", d_model = 9 }, learner = "a2c", num_envs = 4, num_steps = 16, lr = 1e-2, steps = 2048,
  previous = "action,reward", own = true, from = "" }
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent
if cfg.own then
  agent = mn.agent { env = env, core = cfg.core, previous = cfg.previous, torso = nn.linear(16, 7, { act = "relu" }),
    policy = nn.sequential(nn.linear(9, 8, { act = "relu" }), nn.linear(8, 8), nn.tanh(), nn.linear(8, 4)), value = nn.linear(9, 1) }
else agent = mn.agent { env = env, core = cfg.core, previous = cfg.previous, hidden = 8, head_act = "relu" } end
if cfg.from ~= "" then agent:load_state_dict(cfg.from:find "safetensors$" and mn.load(cfg.from) or mn.run.state_dict(cfg.from)) end
return mn.learner(cfg, env, agent):train()
]] })

files.write(dir .. "/play.lua", { [[
local mn = require "mneme"
local cfg = mn.config { of = "" }
local s, list = mn.stepper.from_run(cfg.of), {}
local n, actions = s.env.observation_space.shape[1], s.env.action_space.n
for i = 1, 40 do
  local step = { fresh = s.done[0] ~= 0, x = {}, logits = {} }
  for k = 1, n do step.x[k] = s:observations()[k - 1] end
  s:forward()
  for a = 1, actions do step.logits[a] = s.logits:data()[s.row * actions + a - 1] end
  step.value, step.action = s.values:data()[s.row], s.actions:data()[s.row]
  s:step()
  step.reward, list[i] = s.reward[0], step
end
mn.save(cfg.of .. ".steps", list)
]] })

-- Plays the run, and computes each step again from its exported file.
local function compare(run)
  fine("run play.lua of=" .. run)
  local steps = mn.load(dir .. "/" .. run .. ".steps")
  local file = safetensors.load(dir .. "/" .. run .. ".safetensors")
  local p, about = file.tensors, json.decode(file.metadata.agent)
  local n, h, action, reward, worst, moved = about.observation_space.shape[1], nil, nil, 0, 0, 0
  t.eq(#about.action_space.names, about.action_space.n)
  for _, step in ipairs(steps) do
    local fresh, x, raw = step.fresh, {}, step.x
    for i = 1, n do
      x[i] = raw[i]
      if about.normalise and about.normalise.observation then
        local most = about.normalise.clip_observation
        x[i] = (x[i] - p["normalise.observation.mean"]:data()[i - 1]) / math.sqrt(p["normalise.observation.var"]:data()[i - 1] + about.normalise.epsilon)
        if most > 0 then x[i] = math.max(-most, math.min(most, x[i])) end
        moved = math.max(moved, math.abs(x[i] - raw[i]))
      end
    end
    x = about.torso.name == "flat" and x or apply(p, "torso", about.torso, x)
    for _, what in ipairs(about.previous) do
      if what:find "^action" then for a = 0, about.action_space.n - 1 do x[#x + 1] = not fresh and a == action and 1 or 0 end
      else
        local r = reward
        if about.normalise and about.normalise.reward then r = r / math.sqrt(p["normalise.return.var"]:data()[0] + about.normalise.epsilon) end
        local most = about.normalise and about.normalise.clip_reward or 0
        x[#x + 1] = fresh and 0 or most > 0 and math.max(-most, math.min(most, r)) or r
      end
    end
    if fresh or not h then h = {} for k = 1, about.core.config.d_model do h[k] = 0 end end
    h = gru(p, x, h)
    for a, logit in ipairs(apply(p, "actor", about.actor, h)) do worst = math.max(worst, math.abs(logit - step.logits[a])) end
    worst = math.max(worst, math.abs(apply(p, "critic", about.critic, h)[1] - step.value))
    action, reward = step.action, step.reward
  end
  t.ok(worst < 1e-5, run .. ": " .. worst)
  return about, moved
end

t.test("the file alone holds the agent: normalisation, previous action and reward, own torso and heads", function()
  fine "run own.lua run=own norm_obs=1 norm_reward=1 threads=1"
  fine "run own.lua run=usual own=0 norm_obs=1 previous=action threads=1"
  fine "run own.lua run=plain own=0 previous= threads=1"
  for _, run in ipairs { "own", "usual", "plain" } do fine(("export %s to=%s.safetensors"):format(run, run)) end
  local about, moved = compare "own"
  t.ok(moved > 0.1, "the statistics matter here")
  t.eq(#about.previous, 2)
  t.eq(about.actor.children["3"].kind, "tanh")
  compare "usual"
  t.eq(compare("plain").normalise, nil)
end)

t.test("Mneme reads its own export, and the run itself, with the statistics", function()
  fine "run own.lua run=again norm_obs=1 norm_reward=1 from=own.safetensors threads=1 lr=0 steps=64"
  fine "run own.lua run=folder norm_obs=1 norm_reward=1 from=own threads=1 lr=0 steps=64"
  local function last(run) return mn.run.state_dict(dir .. "/" .. run) end
  local own, again, folder = last "own", last "again", last "folder"
  for name, x in pairs(own) do
    local n = name:find "count" and 0 or x:size()
    for k = 0, n - 1 do
      local near = name:find "^normalise" and 0.2 * (1 + math.abs(x:data()[k])) or 0
      t.ok(math.abs(again[name]:data()[k] - x:data()[k]) <= near, name)
      t.ok(again[name]:data()[k] == folder[name]:data()[k], name)
    end
  end
  t.ok(again["normalise.observation.count"]:data()[0] > own["normalise.observation.count"]:data()[0], "they are counted on")
  local said, status = shell.mneme(dir, "run own.lua run=without from=own.safetensors threads=1")
  t.ok(status == 2 and said:find("norm_obs=0", 1, true), said)
end)

t.test("what functions of a script compute is exported with their source", function()
  local text = files.read(dir .. "/own.lua"):gsub("torso = nn.linear%(16, 7, { act = \"relu\" }%)", "torso = function(x) return x * 2 end")
  files.write(dir .. "/code.lua", { text })
  fine "run code.lua run=code threads=1 steps=256"
  fine "export code to=code.safetensors"
  local source = json.decode(safetensors.load(dir .. "/code.safetensors").metadata.source)
  t.ok(source["code.lua"]:find("x * 2", 1, true))
  files.make_folder(dir .. "/cores")
  files.write(dir .. "/cores/mine.lua", { (files.read(shell.root .. "lua/mneme/cores/gru.lua"):gsub("^%-%-.-\n([^-])", "%1")) })
  fine "run train env=tmaze core=mine core.d_model=4 steps=256 num_envs=4 run=mine threads=1"
  fine "export mine to=mine.safetensors"
  t.ok(json.decode(safetensors.load(dir .. "/mine.safetensors").metadata.source)["cores/mine.lua"])
end)

-- ---- names ----

local function bits(x) return require("ffi").string(x:data(), 4 * x:size()) end

t.test("every core: described, named as in torch, and read back from those names", function()
  local env = mn.env("tmaze", { corridor = 4, num_envs = 2 })
  for _, name in ipairs(mn.names "cores") do
    mn.manual_seed(1)
    local a = mn.agent { env = env, core = { name }, hidden = 8 }
    local b = mn.agent { env = env, core = { name }, hidden = 8 }
    local about = export.about_core(a.core)
    t.ok(type(about.equations) == "string" and #about.equations > 40, name .. " has no equations")
    t.ok(#about.source > 5 and json.encode(about), name)
    local theirs = layout.to_torch(a.module, a:state_dict())
    t.ok(theirs["actor.2.weight"] and not theirs["actor.1.weight"], name)
    b:load_state_dict(theirs)
    local mine = b:state_dict()
    for key, x in pairs(a:state_dict()) do t.ok(bits(x) == bits(mine[key]), name .. ": " .. key) end
    b:load_state_dict(a:state_dict())                         -- its own names are read as they are
    for key, x in pairs(a:state_dict()) do t.ok(bits(x) == bits(mine[key]), name .. ": " .. key) end
    mn.clear_tape()
  end
end)

t.test("gru and lstm take torch's names, both biases, all layers; what is not theirs is refused", function()
  for core, gates in pairs { gru = 3, lstm = 4 } do
    local dict = {}
    for n = 0, 1 do
      dict["weight_ih_l" .. n], dict["weight_hh_l" .. n] = mn.randn(gates * 4, n == 0 and 5 or 4), mn.randn(gates * 4, 4)
      dict["bias_ih_l" .. n], dict["bias_hh_l" .. n] = mn.randn(gates * 4), mn.randn(gates * 4)
    end
    local c = mn.core(core, { d_in = 5, d_model = 4, n_layers = 2 })
    c:load_state_dict(dict)
    local x, cell = { 0.5, -1, 2, 0.25, 1 }, {}
    local y = c(mn.tensor { data = x }:reshape(1, 1, 5))
    for n = 0, 1 do
      local h = { 0, 0, 0, 0 }
      local as = { ["i.weight"] = dict["weight_ih_l" .. n], ["i.bias"] = dict["bias_ih_l" .. n], ["h.weight"] = dict["weight_hh_l" .. n],
        ["h.bias"] = dict["bias_hh_l" .. n] }
      local i, u = linear(as, "i", x), linear(as, "h", h)
      for k = 1, 4 do
        if core == "gru" then
          local r, z = sigma(i[k] + u[k]), sigma(i[4 + k] + u[4 + k])
          h[k] = (1 - z) * acts.tanh(i[8 + k] + r * u[8 + k])
        else
          cell[k] = sigma(i[k] + u[k]) * acts.tanh(i[8 + k] + u[8 + k])
          h[k] = sigma(i[12 + k] + u[12 + k]) * acts.tanh(cell[k])
        end
      end
      x = h
    end
    for k = 1, 4 do t.ok(math.abs(y:data()[k - 1] - x[k]) < 1e-5, core) end
    dict.weight_ih_l0_reverse = dict.weight_ih_l0
    t.raises(function() c:load_state_dict(dict) end, "unexpected weight_ih_l0_reverse")
    dict.weight_ih_l0_reverse, dict.bias_hh_l1, dict.bias_ih_l1 = nil, nil, nil
    t.raises(function() c:load_state_dict(dict) end, "missing layers.1")
    mn.clear_tape()
  end
end)

t.test("a sequential takes torch's numbers, which count activations, and its own", function()
  local function net() return nn.sequential(nn.linear(3, 3, { act = "relu" }), nn.linear(3, 3, { act = "tanh" }), nn.linear(3, 3)) end
  local a, b = net(), net()
  local theirs = layout.to_torch(a, a:state_dict())
  local names = {}
  for name in pairs(theirs) do names[#names + 1] = name end
  table.sort(names)
  t.eq(table.concat(names, " "), "0.bias 0.weight 2.bias 2.weight 4.bias 4.weight")
  b:load_state_dict(theirs)
  for key, x in pairs(a:state_dict()) do t.ok(bits(x) == bits(b:state_dict()[key]), key) end
  local unfused = nn.sequential(nn.linear(3, 3), nn.relu(), nn.linear(3, 3), nn.tanh(), nn.linear(3, 3))
  unfused:load_state_dict(theirs)
  local x = mn.randn(2, 2, 3)
  t.ok(bits(unfused(x)) == bits(a(x)))
  mn.clear_tape()
end)

files.remove_folder(dir)
