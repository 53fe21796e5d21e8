-- test_misuse.lua -- whatever a script hands over, it gets an error that names what was given and expected: no fault in
-- our own code, no crash, no number that is none.  Every argument below is given every odd value.
local t = require "tests.harness"
local mn = require "mneme"
local errors = require "mneme.base.errors"

local circle = {}
circle[1], circle.name = circle, circle
local odd = { "text", "", 0 / 0, 1 / 0, -1, 0, 1.5, 1e300, true, {}, { 1, 2 }, { "x" }, circle, function() end, n = 15 }

-- f with every odd value: it may work, or refuse in words.
local function sweep(what, f)
  for i = 1, odd.n do
    local value = odd[i]
    local ok, e = xpcall(f, function(e) return errors.is(e) and e or tostring(e) end, value)
    t.ok(ok or errors.is(e), ("%s = %s: %s"):format(what, tostring(value), tostring(e)))
    mn.clear_tape()
  end
end

local env = mn.env("tmaze", { corridor = 5, num_envs = 2 })
local agent = mn.agent { env = env, core = { "gru", d_model = 8 } }
local sequences = mn.dataset("mqar", { length = 16, pairs = 2, vocab = 16, batch = 2 })
local core = mn.core("gru", { d_in = 8, d_model = 8 })
local model = mn.sequence_model { dataset = sequences, core = core }

-- A table of settings with one of them changed.
local function with(settings, key, value)
  local changed = {}
  for k, v in pairs(settings) do changed[k] = v end
  changed[key] = value
  return changed
end

t.test("agents and torsos refuse odd parts in words", function()
  sweep("agent", mn.agent)
  local parts = { env = env, core = { "gru", d_model = 8 } }
  for _, key in ipairs { "env", "core", "hidden", "torso", "previous", "policy", "value" } do
    sweep("agent." .. key, function(v) mn.agent(with(parts, key, v)) end)
  end
  sweep("agent core { v }", function(v) mn.agent { env = env, core = { v } } end)
  sweep("torso", function(v) mn.torso(v, { space = env.observation_space }) end)
  local spaces = { flat = { shape = { 3 }, dtype = "f32" }, codes = { shape = { 3 }, dtype = "u8", codes = 4 },
    conv = { shape = { 36, 36, 1 }, dtype = "u8" }, impala = { shape = { 8, 8, 1 }, dtype = "u8" } }
  for name, space in pairs(spaces) do
    sweep("torso options", function(v) mn.torso(name, v) end)
    for _, key in ipairs { "shape", "dtype", "codes" } do
      sweep(name .. "." .. key, function(v) mn.torso(name, { space = with(space, key, v) }) end)
    end
    sweep(name .. " axis", function(v) mn.torso(name, { space = with(space, "shape", { 8, v, 1 }) }) end)
    sweep(name .. " hidden", function(v) mn.torso(name, { space = space, hidden = v }) end)
  end
  t.raises(function() mn.agent { env = 3, core = "gru" } end, "agent: env is a number, expected mn%.env")
  t.raises(function() mn.agent(nil) end, "agent: what it is made of is missing")
end)

t.test("definitions of learners, and what chooses one, refuse odd parts in words", function()
  local loss = function(_, batch) return batch.values:mean() end
  sweep("on_policy", mn.on_policy)
  for _, key in ipairs { "name", "doc", "source", "base", "config", "about", "loss", "setup", "update", "forward", "batch", "new", "odd" } do
    sweep("on_policy." .. key, function(v) mn.on_policy(with({ loss = loss }, key, v)) end)
  end
  sweep("on_policy.config.lr", function(v) mn.on_policy { loss = loss, config = { lr = v } } end)
  sweep("on_policy.config.mine", function(v) mn.on_policy { loss = loss, config = { mine = v }, about = { mine = "mine" } } end)
  sweep("on_policy.about.mine", function(v) mn.on_policy { loss = loss, config = { mine = 1 }, about = { mine = v } } end)
  for _, field in ipairs { "range", "choices", "whole" } do
    sweep("on_policy.about.mine." .. field, function(v) mn.on_policy { loss = loss, config = { mine = 1 }, about = { mine = { "m", [field] = v } } } end)
    sweep("on_policy.about.word." .. field, function(v) mn.on_policy { loss = loss, config = { word = "a" }, about = { word = { "m", [field] = v } } } end)
  end
  sweep("learner settings", function(v) mn.learner(v, env, agent) end)
  sweep("learner name", function(v) mn.learner({ learner = v, num_steps = 4 }, env, agent) end)
  sweep("mn.learners", function(v)
    mn.learners.mine = v
    mn.learner({ learner = "mine", num_steps = 4 }, env, agent)
  end)
  mn.learners.mine = nil
  sweep("a learner's loss", function(v)
    local l = mn.on_policy({ loss = function() return v end })({ num_steps = 4 }, env, agent)
    l:begin()
    l:rollout()
    l:update()
  end)
  sweep("extra", function(v) mn.a2c({ num_steps = 4 }, env, agent, v) end)
  for _, key in ipairs { "aux", "modules" } do
    sweep("extra." .. key, function(v) mn.a2c({ num_steps = 4 }, env, agent, { [key] = v }) end)
    sweep("extra." .. key .. ".one", function(v) mn.a2c({ num_steps = 4 }, env, agent, { [key] = { one = v } }) end)
  end
end)

for _, name in ipairs { "a2c", "ppo" } do
  t.test(name .. " refuses odd settings in words", function()
    local settings = { num_steps = 4, minibatches = 1, epochs = 1, steps = 8 }
    sweep("settings", function(v) mn[name](v, env, agent) end)
    sweep("env", function(v) mn[name](settings, v, agent) end)
    sweep("agent", function(v) mn[name](settings, env, v) end)
    local keys = with(mn.learners[name].defaults, "seed", 1)
    for _, key in ipairs { "steps", "stop_score" } do keys[key] = 1 end
    for key in pairs(keys) do
      sweep(key, function(v)
        if key ~= "num_steps" or v ~= 1 / 0 then mn[name](with(settings, key, v), env, agent) end
      end)
    end
    t.raises(function() mn[name](settings, env, agent):train() end, "a plain table, expected those of mn%.config")
  end)
end

t.test("environments, sequence models and supervised learning refuse odd settings in words", function()
  sweep("env", mn.dataset)
  for _, name in ipairs(mn.names "datasets") do
    sweep(name, function(v) mn.dataset(name, v) end)
    for key in pairs(require("mneme.envs.dataset").definition(name).config) do
      sweep(name .. "." .. key, function(v) mn.dataset(name, { [key] = v, batch = 1 }) end)
    end
  end
  sweep("fill into", function(v) sequences:fill(v, "train", 0) end)
  sweep("fill split", function(v) sequences:fill(sequences:buffers(), v, 0) end)
  sweep("fill n", function(v) sequences:fill(sequences:buffers(), "train", v) end)
  sweep("example", function(v) sequences:example("train", v) end)
  sweep("batches", function(v) sequences:batches(v) end)
  sweep("sequence_model", mn.sequence_model)
  for _, key in ipairs { "env", "core" } do
    sweep("sequence_model." .. key, function(v) mn.sequence_model(with({ dataset = sequences, core = core }, key, v)) end)
  end
  sweep("supervised", function(v) mn.supervised(v, sequences, model) end)
  sweep("supervised environment", function(v) mn.supervised({ steps = 64 }, v, model) end)
  sweep("supervised model", function(v) mn.supervised({ steps = 64 }, sequences, v) end)
  for key in pairs(with(require("mneme.learn.supervised").defaults, "steps", 1)) do
    sweep("supervised." .. key, function(v) mn.supervised(with({ steps = 64 }, key, v), sequences, model) end)
  end
  sweep("sized core", function(v) mn.sized(v, 1000, function() return model end) end)
  sweep("sized parameters", function(v) mn.sized({ "gru", d_in = 8 }, v, function() return model end) end)
  sweep("sized build", function(v) mn.sized({ "gru", d_in = 8 }, 1000, v) end)
end)

t.test("layers, calls of a core and what reads states refuse odd parts in words", function()
  local nn, x = mn.nn, mn.tensor { shape = { 2, 1, 8 } }
  local layers = { linear = { 3, 2, {} }, conv2d = { 1, 2, 3, {} }, layer_norm = { 3 }, embedding = { 3, 2 }, gru_gate = { 3 }, heads = { 3, 2, 2 } }
  for name, arguments in pairs(layers) do
    for i = 1, #arguments do
      sweep(("nn.%s %d"):format(name, i), function(v)
        local given = { unpack(arguments) }
        given[i] = v
        nn[name](unpack(given, 1, #arguments))
      end)
    end
  end
  sweep("nn.linear init", function(v) nn.linear(3, 2, { init = type(v) ~= "function" and v or nil }) end)
  sweep("nn.embedding init", function(v) nn.embedding(3, 2, type(v) ~= "function" and v or nil) end)
  sweep("nn.sequential", nn.sequential)
  sweep("nn.module", function(v) nn.module(v, function() end) end)
  sweep("manual_seed", function(v) mn.manual_seed(v) end)
  sweep("load_state_dict", function(v) core:load_state_dict(v) end)
  sweep("load_state_dict one", function(v) core:load_state_dict(with(core:state_dict(), "layers.0.hn.bias", v)) end)
  sweep("x", function(v) core(v) end)
  sweep("done", function(v) core(x, v) end)
  sweep("state", function(v) core(x, nil, v) end)
  sweep("state h", function(v) core(x, nil, { ["layers.0.h"] = v }) end)
  sweep("sequence", mn.sequence)
  sweep("encoder", mn.encoder)
  sweep("encoder attention", function(v) mn.encoder { attention = v } end)
  t.raises(function() core(x, nil, nil, 3) end, "the probe is a number, expected a function")
  t.raises(function() core(x, mn.tensor { shape = { 2, 1 }, dtype = "i32" }) end, "done is int32, expected uint8")
  t.raises(function() nn.linear(3, 2, { akt = "relu" }) end, "unknown key of nn.linear: 'akt'; did you mean 'act'")
  t.raises(function() mn.no_grad(3) end, "no_grad: 3, expected a function")
  t.eq(mn.no_grad(core, x):shape()[3], 8, "what can be called may be")
  mn.manual_seed(1)
end)

t.test("figures refuse odd parts in words", function()
  local figures = mn.figures
  local parts = {
    lines = { kind = "lines", x = {}, y = {}, lines = { { name = "a", x = { 1 }, y = { 2 } } } },
    bars = { kind = "bars", x = {}, y = {}, bars = { { name = "a", y = 2 } } },
    heat = { kind = "heat", x = { categories = { "a" } }, y = { categories = { "b" } }, cells = { { 1 } }, value = {} },
  }
  local more = { "references", "title", "note" }
  for name, fig in pairs(parts) do
    local keys = { unpack(more) }
    for key in pairs(fig) do keys[#keys + 1] = key end
    for _, key in ipairs(keys) do
      sweep(("%s.%s"):format(name, key), function(v) figures.svg(with(fig, key, v)) end)
      sweep(("%s.%s, a section"):format(name, key), function(v) figures.section(with(fig, key, v), "a") end)
    end
  end
  for _, key in ipairs { "name", "x", "y", "low", "seeds", "style" } do
    sweep("line." .. key, function(v) figures.svg(with(parts.lines, "lines", { with(parts.lines.lines[1], key, v) })) end)
  end
  for _, key in ipairs { "name", "group", "y", "low", "seeds" } do
    sweep("bar." .. key, function(v) figures.svg(with(parts.bars, "bars", { with(parts.bars.bars[1], key, v) })) end)
  end
  sweep("a row of cells", function(v) figures.svg(with(parts.heat, "cells", { v })) end)
  sweep("categories", function(v) figures.svg(with(parts.heat, "x", { categories = { v } })) end)
  sweep("options", function(v) figures.svg(parts.lines, v) end)
end)

t.test("steps refuse what is no pointer", function()
  local world = mn.env("tmaze", { corridor = 5, num_envs = 1 })
  local lua = mn.env { observation = { 2 }, actions = 2, num_envs = 1, reset = function() return { 0, 0 } end,
    step = function() return { 0, 0 }, 0 end }
  local obs = world:reset(1)
  odd[odd.n + 1], odd[odd.n + 2], odd.n = nil, obs, odd.n + 2
  for _, some in ipairs { world, lua } do
    some:reset(1)
    sweep("reset_raw", function(v) some:reset_raw(v, 1) end)
    sweep("step_raw", function(v) some:step_raw(v, v, v, v, v) end)
    sweep("restore", function(v) some:restore(0, some:save(0), v) end)
  end
  t.raises(function() world:reset_raw(obs, 1) end, "reset_raw: obs is a tensor, expected a pointer")
  odd.n = odd.n - 2
end)

t.test("a number that is none is no option of an op, nor of an optimiser", function()
  local w = mn.tensor { 1, 2, grad = true }
  t.raises(function() mn.relu(w):layer_norm { weight = w, bias = w, eps = 0 / 0 } end, "layer_norm: eps = nan")
  t.raises(function() w:clamp(0 / 0, 1) end, "clamp: lo = nan")
  for _, case in ipairs { { "lr", 0 / 0 }, { "lr", -1 }, { "eps", 1 / 0 }, { "beta2", 1 }, { "max_norm", "1" } } do
    t.raises(function() mn.adam({ w }, { [case[1]] = case[2] }) end, "adam: " .. case[1] .. " = ")
  end
  t.raises(function() mn.adam({ w }):tick(0 / 0) end, "lr of a step")
end)
