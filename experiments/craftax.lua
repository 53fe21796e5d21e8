-- Which memory for Craftax?   mneme run craftax core=agalite|gtrxl|gru env=craftax|craftax_classic   mneme sweep craftax quick=1
-- PPO as AGaLiTe's released Craftax run has it: 1,024 environments, 128 steps, a billion in all.  quick=1: a million steps, memories of equal size.
local mn = require "mneme"

local function core(name, options)
  local of = { name, label = name }
  for key, value in pairs(options) do of[key] = value end
  return of
end
local small = { n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64, eta = 4, r = 2 }
local function better(id, text, source, a, b)
  return { id = id, text = text, source = source, test = { "better", metric = "mean_return", a = { core = a }, b = { core = b } } }
end

return mn.study {
  title = "Craftax: return of each memory",
  question = "Which memory gathers, crafts and fights its way furthest in Craftax?",
  axes = {
    core = { core("agalite", { eta = 8, r = 2 }), "gtrxl", "gru", "lstm", "agalite_long", "gated_deltanet", "feedforward",
      quick = { core("agalite", small), "gtrxl", "gru", "lstm", "agalite_long", "gated_deltanet", "feedforward" } },
    env = { "craftax", quick = { "craftax" }, full = { "craftax", "craftax_classic" } },
  },
  settings = {
    size = "published", learner = "ppo", steps = 7629 * 1024 * 128, num_envs = 1024, num_steps = 128, epochs = 4, minibatches = 8, hidden = 128,
    lr = 4e-4, lr_schedule = "linear", adam_eps = 1e-5, gamma = 0.99, lambda = 0.8, clip = 0.2, clip_values = true, normalise_advantages = true,
    entropy_coef = 0.01, value_coef = 0.5, max_norm = 1, random = "philox", observation = "dense",
    quick = { size = "script", steps = 1e6, num_envs = 64, num_steps = 64, hidden = 64, lr = 1e-3, threads = 1 },
  },
  about = {
    env = { "craftax: nine floors; craftax_classic: one world, 22 achievements" },
    observation = { "dense: all numbers; codes (craftax only): the same without its zeros, and a first layer that sums rows" },
    random = { "philox: the engine's random numbers; jax: the original's, seed by seed" },
  },
  seeds = { 5 },
  run = function(cfg)
    local coded = cfg.observation ~= "dense" and cfg.observation or nil
    local env = mn.env(cfg.env, { random = cfg.random, observation = coded, num_envs = cfg.num_envs, seed = cfg.seed })
    mn.manual_seed(cfg.seed)
    local torso = coded and { "rows", hidden = cfg.hidden, ones = 8217, numbers = 51 } or { "linear", hidden = cfg.hidden }
    return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden, head_act = "relu", torso = torso }):train()
  end,
  metrics = { mean_return = { "return, last 100 episodes", range = { -1, 227 }, goal = 226 },
    score = { "achievements, share of their points", range = { 0, 1 } } },
  figures = { { "curves", y = "charts/episodic_return", by = "core", where = { env = "craftax" }, title = "return while learning" },
    { "bars", y = "mean_return", x = "env", by = "core" } },
  references = {
    { "public PPO-GTrXL: 5M parameters, 1,024 environments, its first steps of 1e9", of = "mean_return", where = { env = "craftax" },
      source = "github.com/Reytuag/transformerXL_PPO_JAX, results_craftax/base_A100_1e9: mean of 5 seeds, of the episodes that end in one update "
        .. "(131,072 steps); from 1e7 steps on, in twenty",
      curve = { { 131072, 0.18 }, { 262144, 0.97 }, { 524288, 1.49 }, { 1048576, 2.39 }, { 2097152, 3.72 }, { 3.01e6, 4.23 }, { 5.11e6, 4.38 },
        { 1.01e7, 3.98 }, { 2.01e7, 3.46 }, { 3e7, 6.82 }, { 5.01e7, 13.97 }, { 1e8, 17.56 }, { 2e8, 20.74 }, { 3e8, 27.84 }, { 5e8, 35.92 },
        { 7e8, 38.98 }, { 1e9, 41.62 } } },
  },
  claims = { better("memory", "A GRU's return is above that of a network without memory.", "ours", "gru", "feedforward"),
    better("agalite-gtrxl", "AGaLiTe's return is above GTrXL's.", "paper, section on Craftax", "agalite", "gtrxl"),
    better("lstm-gtrxl", "An LSTM's return is above GTrXL's.", "Craftax, pull request 54", "lstm", "gtrxl"),
    better("gates", "AGaLiTe whose gates begin long has a return above AGaLiTe's.", "ours", "agalite_long", "agalite") },
}
