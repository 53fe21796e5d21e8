-- Which memory can change its mind?   mneme run overwrite core=linear_transformer
-- Pairs of a key and a value are shown, then keys are asked for.  There are fewer keys than pairs: they come again with
-- other values, and the last one counts.  A memory that only adds up answers with all of them.
local mn = require "mneme"

local cfg = mn.config({
  pairs = 32, symbols = 16, core = { "delta", n_layers = 2, d_model = 128, n_heads = 4, d_head = 32, d_ffn = 128 },
  learner = "ppo", steps = 1e7, stop_score = 0.99, num_envs = 64, num_steps = 128, epochs = 4, minibatches = 4, hidden = 128,
  lr = 1e-3, lr_schedule = "linear", entropy_coef = 0.01, gamma = 0.5, threads = 1,
  quick = { pairs = 8, symbols = 4, num_steps = 64, hidden = 64, steps = 1e6,
    core = { "delta", n_layers = 1, d_model = 64, n_heads = 4, d_head = 16, d_ffn = 64 } },
}, {
  pairs = { "shown before as many questions", range = { 1, 1024 } },
  symbols = { "different keys, and values; fewer than pairs: keys come again", range = { 2, 62 } },
  gamma = { "low: an answer pays at once" },
  stop_score = { "training ends where the last hundred episodes answer this share rightly", range = { 0, 1 } },
})

local env = mn.env("associative_recall", { pairs = cfg.pairs, symbols = cfg.symbols, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
return mn.learner(cfg, env, agent):train()
