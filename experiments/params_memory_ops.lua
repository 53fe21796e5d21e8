-- Do the parameters, memory and operations quoted for AGaLiTe hold?   mneme sweep experiments/params_memory_ops.lua
-- Parameters: sizes of T-Maze, without actor and critic.  Operations: of one layer's attention in one step, by three
-- conventions (mn.measure.costs.attention in lua/mneme/models/costs.lua says which).
local mn = require "mneme"

local function of(label, name, options, quoted)
  options[1] = name
  return { label = label, set = { core = options, quoted = quoted } }
end

local function fewer(id, metric, width)
  return { id = id, text = "AGaLiTe takes 3.13 times fewer operations: " .. metric .. width, source = "paper, section 5; convention not stated",
    test = { "ratio", metric = metric, a = { core = "galite" .. width }, b = { core = "agalite" .. width }, at_least = 3.13, exact = true } }
end

return mn.study {
  title = "Parameters, memory and operations as quoted",
  question = "Which of 1,718,928 and 1,803,072 parameters, 18.57 times less memory and 3.13 times fewer operations hold?",
  axes = { core = { of("gated_linear", "gated_linear", {}, 1718928), of("galite_released", "galite_released", { eta = 4 }, 1803072),
    of("galite", "galite", { eta = 4 }, 1740608), of("agalite", "agalite", { eta = 4, r = 2 }, 1740608),
    of("galite, d=64", "galite", { eta = 4, d_model = 64 }, 0), of("agalite, d=64", "agalite", { eta = 4, r = 2, d_model = 64 }, 0),
    of("gtrxl", "gtrxl", {}, 1584256), of("lstm", "lstm", {}, 1480800), of("gru", "gru", {}, 1422560) } },
  settings = { size = "published", core = { "gated_linear" }, quoted = 1718928 },
  about = { quoted = "parameters that are quoted or that the released code has; 0: none" },
  seeds = { 1 },
  run = function(cfg)
    local c = mn.nn.dry(mn.core, cfg.core)
    local result = c.states["layers.0.s"] and mn.measure.costs.attention(c) or {}
    result.parameters = c.module:count()
    result.as_quoted = cfg.quoted > 0 and (result.parameters == cfg.quoted and 1 or 0) or nil
    return result
  end,
  metrics = {
    parameters = { "parameters" }, as_quoted = { "as many parameters as quoted", range = { 0, 1 }, goal = 1 },
    head = { "numbers that a head keeps", goal = 0 }, remembering = { "multiply-adds of remembering", goal = 0 },
    attention = { "multiply-adds with projections", goal = 0 }, by_step = { "operations of the equations, with projections", goal = 0 },
  },
  figures = { { "bars", y = "parameters", by = "core" }, { "bars", y = "head", by = "core" }, { "bars", y = "by_step", by = "core" } },
  references = { { "quoted: linear transformer", y = 1718928, of = "parameters", where = { core = "gated_linear" }, source = "authors' reply" },
    { "quoted: AReLiT", y = 1803072, of = "parameters", where = { core = "agalite" }, source = "authors' reply" } },
  claims = {
    { id = "linear", text = "The linear transformer has 1,718,928 parameters.", source = "authors' reply",
      test = { "at_least", metric = "as_quoted", a = { core = "gated_linear" }, value = 1, exact = true } },
    { id = "released", text = "GaLiTe's released code at eta = 4 has 1,803,072.", source = "authors' reply, said of AReLiT",
      test = { "at_least", metric = "as_quoted", a = { core = "galite_released" }, value = 1, exact = true } },
    { id = "memory", text = "AGaLiTe keeps at least 18.57 times fewer numbers than GaLiTe.", source = "authors' reply: 18 times",
      test = { "ratio", metric = "head", a = { core = "galite" }, b = { core = "agalite" }, at_least = 18.57, exact = true } },
    fewer("remembering", "remembering", ""), fewer("attention", "attention", ""), fewer("by_step", "by_step", ""),
    fewer("by_step-64", "by_step", ", d=64"),
  },
}
