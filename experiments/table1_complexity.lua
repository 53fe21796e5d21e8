-- What does each memory cost, a token and a sequence?   mneme sweep experiments/table1_complexity.lua
-- Counted by each core's own declaration (core:describe); `mneme list cores` has the formulas.
local mn = require "mneme"
local timing = mn.measure.timing

return mn.study {
  title = "Complexity of memories (table 1)",
  question = "How do multiply-adds and numbers kept grow with the context N?",
  axes = {
    core = mn.names "cores", context = { 256, 1024, 4096, 16384, quick = { 256, 4096 } },
  },
  settings = { size = "published", core = { "agalite" }, context = 256 },
  about = { context = { "steps seen before a step, and of a sequence", range = { 1, 2 ^ 24 }, whole = true } },
  seeds = { 1 },
  run = function(cfg)
    local name = cfg.core[1]
    cfg.core[1] = nil
    local c = mn.nn.dry(mn.core, name, (timing.looking_back(name, cfg.core, cfg.context)))
    local about = c:describe(cfg.context)
    return { parameters = about.parameters, state = about.state_floats, weights = about.weights, remember = about.step.macs,
      token = about.weights + about.step.macs, sequence = cfg.context * about.weights + about.sequence.macs }
  end,
  metrics = {
    parameters = { "parameters" }, state = { "values in the state of one environment", goal = 0 },
    weights = { "multiply-adds with parameters, a token" }, remember = { "multiply-adds of remembering, a token", goal = 0 },
    token = { "multiply-adds, a token", goal = 0 }, sequence = { "multiply-adds, a sequence", goal = 0 },
  },
  figures = {
    { "lines", y = "remember", x = "context", by = "core", log = "xy", title = "remembering, a token" },
    { "lines", y = "sequence", x = "context", by = "core", log = "xy", title = "all of it, a sequence" },
    { "lines", y = "state", x = "context", by = "core", log = "xy", title = "what is kept" },
    { "bars", y = "token", by = "core", where = { context = "4096" }, title = "all of it, a token, N = 4096" },
  },
  claims = {
    { id = "constant", text = "A token costs AGaLiTe the same at N = 4096 as at N = 256.", source = "paper, table 1: O(d² + r η d)",
      test = { "equal", metric = "token", a = { core = "agalite", context = "256" }, b = { core = "agalite", context = "4096" },
        within = 0, exact = true } },
    { id = "linear", text = "Remembering costs GTrXL with a window of N at least 15 times as much at N = 4096 as at 256.",
      source = "paper, table 1: O(d² + N d) with kept keys and values",
      test = { "ratio", metric = "remember", a = { core = "gtrxl", context = "4096" }, b = { core = "gtrxl", context = "256" },
        at_least = 15, exact = true } },
    { id = "matrix", text = "AGaLiTe remembers for at least ten times fewer multiply-adds than GaLiTe.", source = "paper, table 1: r η d against η d²",
      test = { "ratio", metric = "remember", a = { core = "galite" }, b = { core = "agalite" }, at_least = 10, exact = true } },
  },
}
