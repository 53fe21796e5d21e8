-- Does the released code learn what ours learns, from the same starts of its gates?   mneme sweep official_start
-- This trains ours; tests/reference/official_agalite.py trains the released JAX code with the same settings, full=1: at the published size.
local mn = require "mneme"

local small = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
local biases = { beta_bias = -4, gamma_bias = -2, p_gamma_bias = -2 }
local function cores(size)
  local published, closed = { "agalite", label = "published" }, { "agalite", label = "nearly closed" }
  for key, value in pairs(size) do published[key], closed[key] = value, value end
  for key, value in pairs(biases) do closed[key] = value end
  return { published, closed }
end

local core = cores(small)
core.full = cores {}

return mn.study {
  title = "T-Maze: the released code beside ours",
  question = "With gates that begin as published and nearly closed, which seeds learn to carry a cue through 60 steps, in either code?",
  of = "tmaze",
  axes = { core = core },
  settings = { size = "published", corridor = 60, steps = 2e6, threads = 1, stop_score = 0.97, hidden = 32, lr = 1e-3, entropy_coef = 0.01,
    full = { hidden = 128, lr = 1e-4, entropy_coef = 0.001 } },
  seeds = 10,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } }, steps = { "steps of the run, which stops when solved" } },
  figures = { { "curves", y = "charts/score", by = "core", title = "success while learning, ours" } },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" },
    { "released code, nearly closed: 5 seeds", y = 831488, of = "steps", where = { core = "nearly closed" }, source = "docs/results/official_agalite.csv" },
    { "released code, published: 5 seeds", y = 1188659, of = "steps", where = { core = "published" }, source = "docs/results/official_agalite.csv" } },
  claims = { { id = "closed", text = "With gates that begin nearly closed more seeds solve a corridor of 60.", source = "ours",
    test = { "solves", metric = "score", above = 0.97, fresh = 0.9, a = { core = "nearly closed" }, b = { core = "published" } } } },
}
