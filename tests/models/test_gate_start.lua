-- test_gate_start.lua -- core.remember: the half-life that a new core begins with is the one that was asked for, measured on its state.
local t = require "tests.harness"
local mn = require "mneme"
local gate_start = require "mneme.models.gate_start"
local shell = require "tests.support.shell"
local tensor = require "mneme.tensor.tensor"

local function small(name, more)
  local given = { d_in = 8 }
  local defaults = require("mneme.models.cores").definition(name).config
  for key, value in pairs { d_model = 16, n_layers = 2, n_heads = 2, d_head = 8, d_ffn = 16 } do
    if defaults[key] then given[key] = value end
  end
  for key, value in pairs(more or {}) do given[key] = value end
  return mn.core(name, given)
end

-- What is left of the first layer's state of ones after a step with a zero input, in which it writes nothing: the product of the
-- parts whose factors multiply, and of the scale e^m that they are held at (mlstm); nil: the gates also depend on the state (gru), or
-- its scale is free (rwkv4).
local function left_after_a_step(core)
  local state, product = core:initial(1), nil
  for name in pairs(core.states) do
    local kind = name:match "[^.]+$"
    if kind == "C" or kind == "S" or kind == "c" or kind == "v" or kind == "k" then state[name]:fill(1) end
    if kind == "m" then state[name]:fill(0) end
  end
  local _, after = core(tensor.new { shape = { 1, 1, core.config.d_in } }, nil, state)
  for name in pairs(core.states) do
    local kind = name:match "^layers%.0%.(%w+)$"
    if kind == "C" or kind == "S" or kind == "c" or kind == "v" or kind == "k" then product = (product or 1) * after[name]:data()[0] end
    if kind == "m" then product = (product or 1) * math.exp(after[name]:data()[0]) end
  end
  return product
end

-- What is left of every element of the first layer's state of ones after such a step, sorted as half-lives; nil: as above.
local function elements_after_a_step(core)
  local state, H = core:initial(1), core.config.n_heads or 1
  local function of(name, given) local x = (given or state)["layers.0." .. name] return x and x:data(), x and x:size() end
  for _, name in ipairs { "C", "S", "c", "v", "k" } do
    local p, n = of(name)
    for i = 0, n and n - 1 or -1 do p[i] = 1 end
  end
  if of "m" then state["layers.0.m"]:fill(0) end
  local _, after = core(tensor.new { shape = { 1, 1, core.config.d_in } }, nil, state)
  local list = {}
  local function add(keep) list[#list + 1] = math.log(0.5) / math.log(keep) end
  for _, name in ipairs { "C", "S", "c" } do
    local p, n = of(name, after)
    local m, scales = of("m", after)
    for i = 0, n and n - 1 or -1 do add(p[i] * (m and math.exp(m[math.floor(i * scales / n)]) or 1)) end
  end
  local v, k = of("v", after), of("k", after)
  local V, K = v and state["layers.0.v"]:shape()[4], k and state["layers.0.k"]:shape()[4]
  for h = 0, v and H - 1 or -1 do
    for i = 0, V - 1 do for j = 0, K - 1 do add(v[h * V + i] * k[h * K + j]) end end
  end
  table.sort(list)
  return list[1] and list
end

local measured, counted = 0, 0
for _, name in ipairs(mn.names "cores") do
  local layers = small(name):half_lives()
  if layers then
    t.test(name .. ": core.remember=20 is a half-life of 20 steps, in every layer and channel", function()
      local core = small(name, { remember = 20 })
      for _, layer in ipairs(core:half_lives()) do
        t.near(layer.shortest, 20, 0.01)
        t.near(layer.longest, 20, 0.01)
      end
      local left = left_after_a_step(core)
      if left then t.near(left, 0.5 ^ (1 / 20), 1e-5) end
      measured = measured + (left and 1 or 0)
    end)

    t.test(name .. ": 1..50 and chrono:50 spread the channels", function()
      for _, text in ipairs { "1..50", "chrono:50" } do
        local core = small(name, { remember = text })
        for _, layer in ipairs(core:half_lives()) do
          t.ok(layer.shortest < layer.median and layer.median < layer.longest, text)
          t.ok(layer.longest <= 50.01, text .. ": " .. layer.longest)
        end
      end
    end)

    t.test(name .. ": shortest, median and longest are those of all elements of the state", function()
      for _, text in ipairs { "1..200", "chrono:200" } do
        local core = small(name, { remember = text })
        local all, layer = elements_after_a_step(core), core:half_lives()[1]
        if not all then return end
        local n = #all
        local median = (all[math.floor((n + 1) / 2)] + all[math.ceil((n + 1) / 2)]) / 2
        for key, want in pairs { shortest = all[1], median = median, longest = all[n] } do t.near(layer[key], want, 2e-3 * want, text .. " " .. key) end
      end
      counted = counted + 1
    end)

    t.test(name .. ": as published by default, agalite_long by its biases", function()
      mn.manual_seed(3)
      local a = small(name)
      mn.manual_seed(3)
      local b = small(name, { remember = name == "agalite_long" and "biases" or "published" })
      for key, x in pairs(a:state_dict()) do
        local y = b:state_dict()[key]
        for i = 0, x:size() - 1 do if x:data()[i] ~= y:data()[i] then t.ok(false, key) end end
      end
    end)
  else
    t.test(name .. ": core.remember is refused where nothing forgets", function()
      t.raises(function() small(name, { remember = "20" }) end, "remember")
    end)
  end
end

t.test("half-lives were measured on the states of most cores that forget", function()
  t.ok(measured >= 12 and counted >= 12, measured .. ", " .. counted .. " cores")
end)

t.test("half-lives that core:half_lives reports are those of the state, of published gates too", function()
  for _, name in ipairs { "agalite", "galite", "agalite_long", "gated_linear", "lstm" } do
    local core = small(name)
    local half_life = core:half_lives()[1].median
    t.near(math.log(0.5) / math.log(left_after_a_step(core)), half_life, 1e-3 * half_life, name)
  end
end)

t.test("chrono alone goes up to the distance that the environment asks for, and is refused where that is not known", function()
  local spec = { "agalite", remember = "chrono", d_model = 16, n_layers = 1, n_heads = 2, d_head = 8, d_ffn = 16 }
  for env, steps in pairs { tmaze = 160, repeat_first = 51, repeat_previous = 3 } do
    local agent = mn.agent { env = mn.env(env), core = spec, hidden = 8 }
    t.eq(agent.core.config.remember, "chrono:" .. steps, env)
    t.eq(spec.remember, "chrono", "the settings mean another number in another environment")
  end
  t.fails(function() mn.agent { env = mn.env "noisy_cartpole", core = spec } end)
  t.fails(function() small("gru", { remember = "chrono" }) end)
end)

t.test("agalite_long begins with 21 steps, and with published gates where they are asked for", function()
  t.near(small("agalite_long"):half_lives()[1].median, 21.4, 0.05)
  for key, value in pairs { published = small("agalite"):half_lives()[1].median, ["40"] = 40 } do
    t.near(small("agalite_long", { remember = key }):half_lives()[1].median, value, 0.01, key)
  end
  local core = small("agalite_long", { remember = "published" })
  for _, gate in ipairs { "beta", "gamma", "p_gamma" } do t.eq(core.config[gate .. "_bias"], 0, gate) end
  t.near(small("agalite_long", { remember = "published", beta_bias = -4, gamma_bias = -2, p_gamma_bias = -2 }):half_lives()[1].median, 21.4, 0.05,
    "runs of earlier versions name all of it")
end)

t.test("bad values and settings without effect are errors", function()
  for _, text in ipairs { "x", "0", "-3", "5..2", "chrono:1", "1..", "nan", "inf" } do
    t.fails(function() small("agalite", { remember = text }) end)
  end
  t.fails(function() small("linear_transformer", { remember = "3" }) end)
  t.fails(function() small("gated_linear", { gamma_bias = 3 }) end)
  t.fails(function() small("agalite", { beta_bias = -4, remember = "3" }) end)
  t.fails(function() small("galite", { gate = "mega", remember = "3" }) end)
end)

t.test("joint decay and elementwise gates", function()
  for _, more in ipairs { { decay = "joint" }, { gate = "elementwise" }, { gate = "scalar" } } do
    more.remember = "30"
    local core = small("galite", more)
    t.near(left_after_a_step(core), 0.5 ^ (1 / 30), 1e-5)
    for _, layer in ipairs(core:half_lives()) do t.near(layer.median, 30, 0.01) end
  end
end)

t.test("a warning before training where the start cannot reach, and none where it can", function()
  local function warning(name, corridor, more) return gate_start.warning(small(name, more), mn.env("tmaze", { corridor = corridor })) end
  t.ok(warning("agalite", 200):find("every 0.71 steps at the start, and the corridor is 200: 2^-283 of it is left there with a zero input, "
    .. "which is 0 in float32, as is its gradient; core.remember=20, or any half-life up to 200,", 1, true))
  t.ok(warning("agalite", 60):find("2^-85 of it is left there with a zero input, and of its gradient; core.remember=6,", 1, true))
  for _, least in ipairs { 20, 200 } do t.ok(not warning("agalite", 200, { remember = least }), "what is advised is not warned of") end
  t.ok(not warning("agalite", 10) and not warning("agalite", 20) and warning("agalite", 40))
  t.ok(not warning("agalite_long", 200) and not warning("agalite", 200, { remember = 20 }))
  t.ok(not warning("gtrxl", 200) and not gate_start.warning(small "agalite", mn.env "noisy_cartpole"))
  t.ok(warning("gtrxl", 60, { memory = 25, n_layers = 2 }):find("acts on the last 50 steps at most, and the corridor is 60", 1, true))
  t.ok(not warning("gtrxl", 60, { memory = 25, n_layers = 2, sees = "rollout" }) and not warning("gtrxl", 50, { memory = 25, n_layers = 2 }))
  t.ok(not warning("feedforward", 60) and not warning("rmt", 60))
  for env, words in pairs { repeat_first = "51 steps", repeat_previous = "3 steps", autoencode = "104 steps", selective_copy = "20 steps",
    tmaze_passive = "is 100", tmaze_active = "101 steps", memory_chain = "19 steps" } do
    local steps, text = mn.env(env):horizon()
    t.ok(steps and text:find(words, 1, true), env)
  end
end)

t.test("a run prints how its gates begin, keeps chrono as it was asked for, and resumes and is evaluated with the steps that it meant", function()
  local here = shell.folder()
  local function works(words)
    local said = shell.fine(here, words)
    return said
  end
  local said = works "run tmaze corridor=30 core.remember=chrono core.n_layers=1 core.d_model=8 num_envs=2 num_steps=8 hidden=8 steps=64 run=r"
  t.ok(said:find("agalite: initial memory half%-life: [%d.]+ to 20%.[%d]+ steps"), said)
  local info = require("mneme.base.json").decode((require("mneme.base.files").read(here .. "/r/config.json")))
  t.eq(info.config.core.remember, "chrono")
  t.eq(info.core.config.remember, "chrono:30")
  works "run resume=r steps=128"
  works "eval r episodes=2"
  said = works "run tmaze corridor=30 core=gru core.remember=3 core.d_model=8 num_envs=2 num_steps=8 hidden=8 steps=64 run=s"
  t.ok(said:find("gru: initial memory half-life: 3 steps", 1, true), said)
  os.execute("rm -rf '" .. here .. "'")
end)

t.test("layers that declare no gates forget nothing, in every core and in one of your own", function()
  for _, name in ipairs(mn.names "cores") do
    local core = mn.nn.dry(mn.core, name)
    local gates = 0
    for _, layer in ipairs(core.decays or {}) do gates = gates + #layer end
    local layers = core:half_lives()
    t.eq(layers ~= nil, gates > 0, name)
    t.eq(layers and #layers or 0, gates > 0 and #core.decays or 0, name)
    for _, layer in ipairs(layers or {}) do t.ok(0 < layer.shortest and layer.shortest <= layer.median and layer.median <= layer.longest, name) end
  end
  local bias = mn.tensor { shape = { 2 } }
  local function own(...) return { name = "own", decays = { ... } } end
  for _, core in ipairs { own(), own({}, {}), { name = "own" } } do
    t.eq(gate_start.half_lives(core), nil)
    t.raises(function() gate_start.apply(core, "20") end, "no gate that forgets")
  end
  local core = own({}, { gate_start.keeps("f", bias) })
  gate_start.apply(core, "20")
  local layers = gate_start.half_lives(core)
  t.eq(layers[1].shortest, math.huge)
  t.near(layers[2].longest, 20, 1e-3)
  t.eq((gate_start.describe(layers)), "half-life: 20 to inf steps (median 20)")
  t.eq((gate_start.describe { layers[1] }), "half-life: inf steps")
  t.eq(gate_start.half_lives(own({ gate_start.keeps("f", bias) }, { refuses = "unknown" })), nil)
end)

t.test("a gate with a least: chrono begins there, a half-life below it is refused", function()
  t.raises(function() small("ffm", { remember = "0.5" }) end, "a keeps at least 0.505 of each step")
  t.near(small("ffm", { remember = "chrono:50" }):half_lives()[1].shortest, 1.01, 0.01)
end)

t.test("one line for people", function()
  t.eq((gate_start.describe { { shortest = 1, median = 1, longest = 1 } }), "half-life: 1 step")
  t.eq((gate_start.describe { { shortest = 1, median = 4, longest = 9 }, { shortest = 2, median = 5, longest = 8 } }),
    "half-life: 1 to 9 steps (median 4)")
end)

t.test("gradient_reach: steps in which a gradient halves, and none where it grows or stays", function()
  local cores = require "mneme.models.cores"
  local new = cores.new
  local B, d = 2, 4
  -- A core whose every output is the sum of all inputs, those k steps before the last one times keep^k.
  local function reached(keep, back)
    cores.new = function()
      local weights = mn.tensor { shape = { back + 1, 1, 1 } }
      for step = 0, back do weights:data()[step] = keep ^ (back - step) end
      return setmetatable({ config = { d_in = d }, d_out = d, initial = function() return {} end },
        { __call = function(_, x) return mn.ops.cumsum { x = mn.ops.mul(x, weights), axis = 0 } end })
    end
    local ok, result = pcall(mn.measure.gradient_reach.measure, { "stub", d_in = d, remember = 5 }, back, B)
    cores.new = new
    t.ok(ok, result)
    return result
  end
  local falls = reached(0.5 ^ (1 / 10), 60)
  t.near(falls.half_life, 10, 1e-3)
  t.near(falls.longer, 2, 1e-3)
  for _, keep in ipairs { 1.05, 1 } do
    local grows = reached(keep, 60)
    t.eq(grows.half_life, nil, "it does not halve")
    t.eq(grows.longer, nil)
  end
end)
