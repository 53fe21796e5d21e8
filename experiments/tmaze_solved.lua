-- How many seeds of each memory solve a long corridor, with gates as published and gates that begin longer?   mneme sweep tmaze_solved
-- Published sizes and learner settings; a run stops when it has solved its corridor, so seeds are counted and timed.  quick=1: small and short.
local mn = require "mneme"

local tiny = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
local function core(name, label, options, more)
  local spec = { name, label = label }
  for _, from in ipairs { options or {}, more or {} } do
    for key, value in pairs(from) do spec[key] = value end
  end
  return spec
end

local cores = { "agalite", "agalite_long", "galite", "galite_released", "gtrxl", core("gtrxl", "gtrxl 256", { memory = 256 }), "gru",
  core("gru", "gru chrono", { remember = "chrono:200" }), "lstm", core("lstm", "lstm chrono", { remember = "chrono:200" }) }
cores.quick = { core("agalite", "agalite", tiny), core("agalite_long", "agalite_long", tiny), core("galite", "galite", tiny),
  core("galite_released", "galite_released", tiny), core("gtrxl", "gtrxl", tiny, { memory = 32 }), core("gtrxl", "gtrxl 256", tiny, { memory = 64 }),
  core("gru", "gru", { d_model = 64 }), core("gru", "gru chrono", { d_model = 64, remember = "chrono:60" }),
  core("lstm", "lstm", { d_model = 64 }), core("lstm", "lstm chrono", { d_model = 64, remember = "chrono:60" }) }

local function solves(id, text, a, b)
  return { id = id, text = text, source = "paper, figure 1; ours with longer gates", test = { "solves", metric = "score", above = 0.97,
    a = { core = a }, b = { core = b } } }
end

return mn.study {
  title = "T-Maze: which memories solve long corridors",
  question = "How many of ten seeds solve a corridor of 120 to 200 steps, and after how many steps?",
  of = "tmaze",
  axes = { core = cores, corridor = { 120, 160, 200, quick = { 20, 60 } } },
  settings = { size = "published", steps = 5e6, threads = 1, stop_score = 0.97, quick = { steps = 1e6, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  seeds = { 10, quick = 5 },
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } },
    steps = { "steps of the run, which stops when solved", range = { 0, math.huge }, goal = 0 } },
  figures = {
    { "lines", y = "score", x = "corridor", by = "core", title = "success at the end against the corridor's length" },
    { "bars", y = "steps", x = "corridor", by = "core", title = "steps until solved, at most the run's" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" } },
  claims = {
    solves("paper", "AGaLiTe as published solves more often than GTrXL with 128 steps.", "agalite", "gtrxl"),
    solves("long", "AGaLiTe with gates that begin longer solves more often than as published.", "agalite_long", "agalite"),
    solves("long-gtrxl", "AGaLiTe with gates that begin longer solves more often than GTrXL with 128 steps.", "agalite_long", "gtrxl"),
    solves("long-gru", "AGaLiTe with gates that begin longer solves more often than a GRU.", "agalite_long", "gru"),
    solves("lstm", "An LSTM with chrono initialisation solves more often than as published.", "lstm chrono", "lstm"),
    solves("gru", "A GRU with chrono initialisation solves more often than as published.", "gru chrono", "gru"),
  },
}
