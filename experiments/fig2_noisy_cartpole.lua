-- Which memory sees through noise?   mneme sweep experiments/fig2_noisy_cartpole.lua quick=1
-- The paper shows AGaLiTe and GRU on one level of noise; its reviewers asked for more memories.  Each learns with the rate that suits it.
local mn = require "mneme"

local function sized(name, options)
  local core = { name, label = name }
  for key, value in pairs(options) do core[key] = value end
  return core
end
local small = { n_layers = 1, d_model = 64, d_head = 16, d_ffn = 64 }

return mn.study {
  title = "Noisy CartPole: memories against noise (figure 2)",
  question = "Does AGaLiTe balance a pole that it sees badly better than a GRU does?",
  of = "noisy_cartpole",
  axes = {
    core = { sized("gru", { d_model = 64 }), sized("lstm", { d_model = 64 }),
      sized("gtrxl", { n_layers = 1, d_model = 64, d_head = 16, d_ffn = 64, memory = 64 }),
      sized("linear_transformer", small), sized("agalite", small), sized("feedforward", { n_layers = 1, d_model = 64, d_ffn = 64 }) },
    noise = { 0.1, 0.2, 0.3, quick = { 0.2 } },
  },
  settings = { steps = 5e6, threads = 1, hidden = 64, num_envs = 16, num_steps = 128, epochs = 4, minibatches = 4, lr = 2e-3,
    lr_schedule = "linear", lambda = 0.95, value_coef = 0.5, quick = { steps = 3e5 } },
  tune = { lr = "2e-4..1e-2:log", budget = "20x5e6", quick = { budget = "8x3e5" } },
  seeds = { 5, quick = 8 },
  metrics = { score = { "share of 200 steps that the pole stood, last 100 episodes", range = { 0, 1 } } },
  figures = {
    { "bars", y = "score", x = "noise", by = "core", title = "how long the pole stands" },
    { "curves", y = "charts/score", by = "core", where = { noise = "0.2" }, title = "while learning, noise 0.2" },
  },
  references = { { "random actions", y = 0.11, of = "score", source = "4000 episodes of POPGym's" },
    { "GRU, noise 0.2, published", y = 0.642, of = "score", where = { core = "gru", noise = "0.2" },
      source = "POPGym, table 3, as a third party copied it; not checked" } },
  claims = {
    { id = "agalite-gru", text = "AGaLiTe balances longer than a GRU.", source = "paper, figure 2",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "gru" } } },
    { id = "memory", text = "A GRU balances longer than a network without memory.", source = "POPGym",
      test = { "better", metric = "score", a = { core = "gru" }, b = { core = "feedforward" } } },
    { id = "agalite-memory", text = "AGaLiTe balances longer than a network without memory.", source = "ours",
      test = { "better", metric = "score", a = { core = "agalite" }, b = { core = "feedforward" } } },
  },
}
