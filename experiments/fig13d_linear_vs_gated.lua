-- Is a gated memory better than the linear transformer with a gate?   mneme sweep experiments/fig13d_linear_vs_gated.lua quick=1
-- The paper's "Linear Transformer" has one forgetting number a head and a learned feature map; a reviewer found it only
-- marginally behind.  The one that only adds (Katharopoulos et al. 2020) stands beside them.
-- quick=1: one layer of width 32, corridors 20, 40 and 60, as in fig13a_gating.
local mn = require "mneme"

local function small(name) return { name, n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32, label = name } end

return mn.study {
  title = "T-Maze: gated memories against linear transformers (figure 13d)",
  question = "Do AGaLiTe and GaLiTe carry the cue where linear transformers lose it?",
  of = "tmaze",
  axes = {
    core = { "agalite", "galite", "galite_released", "gated_linear", "linear_transformer",
      quick = { small "agalite", small "galite", small "galite_released", small "gated_linear", small "linear_transformer" } },
    corridor = { 120, 160, 200, quick = { 20, 40, 60 }, full = { 200 } },
  },
  settings = { size = "published", steps = 5e6, threads = 1, quick = { steps = 1.2e6, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  seeds = 5,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } },
    learned = { "success, mean over all of training", mean_of = "charts/score", range = { 0, 1 } } },
  figures = {
    { "bars", y = "score", x = "corridor", by = "core", title = "success at the end" },
    { "curves", y = "charts/score", by = "core", title = "success while learning" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" },
    { "who knows the cue", y = 1, of = "score", source = "the environment's rules" } },
  claims = {
    { id = "gated", text = "AGaLiTe succeeds more often than the gated linear transformer.", source = "paper, figure 13d",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "gated_linear" } } },
    { id = "margin", text = "The gated linear transformer is within 0.1 of AGaLiTe.", source = "a reviewer: marginally behind",
      test = { "equal", metric = "score", within = 0.1, a = { core = "gated_linear" }, b = { core = "agalite" } } },
    { id = "ungated", text = "AGaLiTe succeeds more often than a linear transformer that only adds.", source = "paper, section 1",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "linear_transformer" } } },
    { id = "sooner", text = "AGaLiTe learns sooner than the gated linear transformer.", source = "ours",
      test = { "better", metric = "learned", a = { core = "agalite" }, b = { core = "gated_linear" } } },
  },
}
