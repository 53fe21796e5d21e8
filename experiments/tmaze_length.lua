-- How long a corridor does each memory bridge?   mneme sweep experiments/tmaze_length.lua quick=1
-- Published sizes and learner settings of each core; the released configurations have 120 to 200 cells and 5 million steps.  quick=1: one layer
-- and one learner setting for all; with the published learning rate so small a model has learned nothing by then.
local mn = require "mneme"

local tiny = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
local function small(name, options)
  local core = { name, label = name }
  for key, value in pairs(options or tiny) do core[key] = value end
  return core
end

return mn.study {
  title = "T-Maze: success against the corridor's length",
  question = "How long a corridor does each memory bridge?",
  of = "tmaze",
  axes = {
    core = { "agalite", "galite_released", "gtrxl", "gru", "lstm", "feedforward",
      quick = { small "agalite", small "galite_released", small("gtrxl", { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32, memory = 64 }),
        small("gru", { d_model = 64 }), small("lstm", { d_model = 64 }), small("feedforward", { n_layers = 1, d_model = 32, d_ffn = 32 }) } },
    corridor = { 120, 160, 200, quick = { 10, 40 } },
  },
  settings = { size = "published", steps = 5e6, threads = 1, quick = { steps = 8e5, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  seeds = 5,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } },
    learned = { "success, mean over all of training", mean_of = "charts/score", range = { 0, 1 } } },
  figures = {
    { "lines", y = "score", x = "corridor", by = "core", title = "success against the corridor's length" },
    { "curves", y = "charts/score", by = "core", title = "success while learning, all corridors" },
  },
  references = { { "guessing", y = 0.5, of = "score", where = { core = "feedforward" }, source = "two cues, even odds" },
    { "who knows the cue", y = 1, of = "score", source = "the environment's rules" } },
  claims = {
    { id = "agalite-gtrxl", text = "AGaLiTe succeeds more often than GTrXL.", source = "paper, figure 1",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "gtrxl" } } },
    { id = "memory", text = "AGaLiTe succeeds more often than a network without memory.", source = "the environment's rules",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "feedforward" } } },
    { id = "guess", text = "A network without memory arrives and guesses: it succeeds at least 4 times in 10.", source = "the environment's rules",
      test = { "at_least", metric = "score", a = { core = "feedforward" }, value = 0.4 } },
    { id = "agalite-gru", text = "AGaLiTe succeeds more often than a GRU.", source = "paper's comparison",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "gru" } } },
  },
}
