-- How long a corridor does each memory bridge?   mneme sweep experiments/tmaze_length.lua quick=1
-- Published sizes and learner settings of each core; in the paper 120 to 200 cells, 5 million steps.
local mn = require "mneme"

local half = { n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64 }
local function small(name, options)
  local core = { name, label = name }
  for key, value in pairs(options or half) do core[key] = value end
  return core
end

return mn.study {
  title = "T-Maze: success against the corridor's length",
  question = "How long a corridor does each memory bridge?",
  of = "tmaze",
  axes = {
    core = { "agalite", "galite_released", "gtrxl", "gru", "lstm", "feedforward",
      quick = { small "agalite", small "galite_released", small("gtrxl", { n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64, memory = 64 }),
        small("gru", { d_model = 128 }), small("lstm", { d_model = 128 }), small("feedforward", { n_layers = 2, d_model = 64, d_ffn = 64 }) } },
    corridor = { 120, 160, 200, quick = { 10, 20 } },
  },
  settings = { steps = 5e6, threads = 1, quick = { steps = 6e5, hidden = 64 } },
  seeds = { 3, quick = 2 },
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } } },
  figures = {
    { "lines", y = "score", x = "corridor", by = "core", title = "success against the corridor's length" },
    { "curves", y = "charts/score", by = "core", where = { corridor = "200" }, title = "success while learning, corridor 200" },
  },
  references = { { "guessing", y = 0.5, of = "score" } },
  claims = {
    { id = "agalite-gtrxl", text = "AGaLiTe succeeds more often than GTrXL.", source = "paper, figure 1",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "gtrxl" } } },
    { id = "memory", text = "A network without memory guesses.", source = "the task's rules",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "feedforward" } } },
  },
}
