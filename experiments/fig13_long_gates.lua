-- Figures 13a to 13d again, where every gate begins with a half-life of 40 steps.   mneme sweep experiments/fig13_long_gates.lua quick=1
-- As published, gates halve what is kept every step or two, and no variant can show what it could hold (gate_start).  A run stops when it has solved
-- its corridor, so seeds are counted and timed.  quick=1: one layer of width 32.
local mn = require "mneme"

local small, REMEMBER = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }, 40
local variants = {
  { "elementwise", "galite" }, { "scalar", "galite", { gate = "scalar" } }, { "no gate", "galite", { gate = "none", remember = "published" } },
  { "elu1", "galite", { feature = "elu1" } }, { "dpfp", "galite", { feature = "dpfp", nu = 2 } }, { "nn", "galite", { feature = "nn" } },
  { "rfa", "galite", { feature = "rfa" } }, { "signed", "galite", { feature = "identity" } },
  { "cos 1", "agalite", { r = 1 } }, { "cos 2", "agalite", { r = 2 } }, { "paper 2", "agalite", { r = 2, form = "paper" } },
  { "cossin 2", "agalite", { r = 2, form = "cossin" } }, { "cossin 8", "agalite", { r = 8, form = "cossin" } },
  { "average", "agalite", { r = 1, form = "paper" } },
  { "galite_released", "galite_released" }, { "gated_linear", "gated_linear" }, { "linear", "linear_transformer", { remember = "published" } },
}

local function cores(size)
  local list = {}
  for i, variant in ipairs(variants) do
    local core = { variant[2], label = variant[1], remember = REMEMBER }
    for _, set in ipairs { size or {}, variant[3] or {} } do for key, value in pairs(set) do core[key] = value end end
    list[i] = core
  end
  return list
end

local function claim(kind, id, text, source, a, b)
  return { id = id, text = text, source = source, test = { kind, metric = "score", above = 0.97, fresh = 0.9, time = kind == "sooner" and "steps" or nil,
    a = { core = a }, b = { core = b } } }
end

return mn.study {
  title = "T-Maze: gates, feature maps and approximations that can remember (figures 13a to 13d)",
  question = "Which gate, feature map and approximation carry a cue when all begin with the same half-life?",
  of = "tmaze",
  axes = { core = { quick = cores(small), unpack(cores()) }, corridor = { 200, quick = { 120 } } },
  settings = { steps = 5e6, size = "published", threads = 1, stop_score = 0.97, quick = { steps = 2e6, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  seeds = { 10 },
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } },
    steps = { "steps of the run, which stops when solved", range = { 0, math.huge }, goal = 0 } },
  figures = { { "bars", y = "score", by = "core", title = "success at the end" },
    { "bars", y = "steps", by = "core", title = "steps until solved, at most the run's" } },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" } },
  claims = {
    claim("solves", "gate", "Elementwise gates let more seeds learn than one gate per head.", "paper, figure 13a", "elementwise", "scalar"),
    claim("solves", "forgetting", "Gates that begin long let more seeds learn than no gate.", "paper, section 3", "elementwise", "no gate"),
    claim("solves", "map", "The outer product lets more seeds learn than elu+1.", "paper, figure 13b", "elementwise", "elu1"),
    claim("sooner", "map-dpfp", "The outer product solves the corridor sooner than dpfp.", "paper, figure 13b", "elementwise", "dpfp"),
    claim("sooner", "map-nn", "The outer product solves the corridor sooner than a learned map of 3.8 times its parameters.", "a reviewer's question",
      "elementwise", "nn"),
    claim("solves", "rank", "Eight channels of the exact series let more seeds learn than two of the released form.", "a reviewer's doubt",
      "cossin 8", "cos 2"),
    claim("solves", "attention", "AGaLiTe lets more seeds learn than a gated sum of values, from which no query selects.", "ours: does T-Maze need attention?",
      "cos 2", "average"),
    claim("solves", "gated-linear", "AGaLiTe lets more seeds learn than the gated linear transformer.", "paper, figure 13d", "cos 2", "gated_linear"),
    claim("solves", "ungated-linear", "AGaLiTe lets more seeds learn than a linear transformer that only adds.", "paper, section 1", "cos 2", "linear"),
  },
}
