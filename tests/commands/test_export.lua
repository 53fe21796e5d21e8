-- test_export.lua -- Mneme reads back the parameters that `mneme export` writes, and every core that is registered has torch's names in both
-- directions.
local files = require "mneme.base.files"
local layout = require("mneme.tensor.module").torch_layout()
local mn = require "mneme"
local shell = require "tests.support.shell"
local t = require "tests.harness"
local nn = mn.nn

local dir = shell.folder()
local function fine(words) return shell.fine(dir, words) end

local acts = { tanh = math.tanh or function(x) return 1 - 2 / (math.exp(2 * x) + 1) end }
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

t.test("Mneme reads its own export, and the run itself, with the statistics", function()
  fine "run own.lua run=own norm_obs=1 norm_reward=1 threads=1"
  fine "export own to=own.safetensors"
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

-- ---- names ----

local function bits(x) return require("ffi").string(x:data(), 4 * x:size()) end

t.test("every core: named as in torch, and read back from those names", function()
  local env = mn.env("tmaze", { corridor = 4, num_envs = 2 })
  for _, name in ipairs(mn.names "cores") do
    mn.manual_seed(1)
    local a = mn.agent { env = env, core = { name }, hidden = 8 }
    local b = mn.agent { env = env, core = { name }, hidden = 8 }
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

t.test("of torch's packed tensors one that is not there, or has another shape, is refused, and nothing is taken", function()
  for core, gates in pairs { gru = 3, lstm = 4 } do
    local c, whole = mn.core(core, { d_in = 5, d_model = 4, n_layers = 2 }), {}
    for n = 0, 1 do
      whole["weight_ih_l" .. n], whole["weight_hh_l" .. n] = mn.randn(gates * 4, n == 0 and 5 or 4), mn.randn(gates * 4, 4)
      whole["bias_ih_l" .. n], whole["bias_hh_l" .. n] = mn.randn(gates * 4), mn.randn(gates * 4)
    end
    local before, seen = {}, 0
    for key, x in pairs(c:state_dict()) do before[key] = bits(x) end
    for name in pairs(whole) do
      for _, other in ipairs { false, mn.zeros(gates * 8), mn.zeros(gates * 2), mn.zeros(1), mn.zeros(gates * 4 + 1), mn.zeros(gates * 4, 3), mn.zeros({}) } do
        local dict = {}
        for key, x in pairs(whole) do dict[key] = x end
        dict[name] = other or nil
        t.raises(function() c:load_state_dict(dict) end, "load_state_dict")
        for key, x in pairs(c:state_dict()) do t.ok(bits(x) == before[key], key) end
        seen = seen + 1
        if name:find "^bias" then
          c:load_state_dict(dict, { strict = false })
          local layer = "layers." .. name:match "%d$"
          for key, x in pairs(c:state_dict()) do
            if key:find(layer, 1, true) and key:find "bias$" then t.ok(bits(x) == before[key], key .. " of half a pair") end
          end
          c = mn.core(core, { d_in = 5, d_model = 4, n_layers = 2 })
          for key, x in pairs(c:state_dict()) do before[key] = bits(x) end
        end
      end
    end
    t.eq(seen, 56)
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
