-- demo.lua -- an agent that learns a T-Maze in half a minute or so.   mneme run demo core=gru view=1
-- tmaze.lua at a size to play with: `make demo` trains it and shows what it remembers.
local mn = require "mneme"

local cfg = mn.config({
  corridor = 20, core = { "agalite", n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64, eta = 4, r = 2 },
  learner = "a2c", steps = 2e6, stop_score = 1, threads = 1, where = "short", num_envs = 8, num_steps = 256, hidden = 64,
  lr = 3e-4, entropy_coef = 0.01, gamma = 0.99, lambda = 0.95, value_coef = 0.5, max_norm = 0.5,
  quick = { corridor = 8, steps = 3e5 },
}, {
  corridor = { "cells from the cue to the junction", range = { 2, 256 } },
  stop_score = { "training ends where the last hundred episodes score this", range = { 0, 1 } },
  published = {                            -- small ones of the other memories
    galite = { core = { "galite", n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64, eta = 2 } },
    gru = { core = { "gru", d_model = 128 } },
  },
})

local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
return mn.learner(cfg, env, agent):train()
