-- Which memory carries the cue?   mneme run experiments/tmaze.lua core=gru corridor=20
local mn = require "mneme"

local cfg = mn.config({
  corridor = 160, core = { "agalite", eta = 4, r = 2 }, learner = "a2c",
  steps = 5e6, num_envs = 8, num_steps = 256, hidden = 128,
  lr = 1e-4, entropy_coef = 0.001, gamma = 0.99, lambda = 0.95, value_coef = 0.5, max_norm = 0.5,
  bootstrap_truncated = 0,                 -- the released code counts a time limit as an end
  quick = { corridor = 10, steps = 5e5, hidden = 64, lr = 1e-3, entropy_coef = 0.01,
    core = { "agalite", n_layers = 1, d_model = 64, d_head = 32, d_ffn = 64 } },
}, {
  corridor = { "cells from the cue to the junction", range = { 2, 2048 } },
  published = {                            -- learner settings of the released configuration
    agalite = { lr = 1e-4, entropy_coef = 0.001 },
    galite = { lr = 1e-4, entropy_coef = 0.001 },
    galite_released = { core = { "galite_released", eta = 2 }, lr = 1e-4, entropy_coef = 0.001 },
    gru = { lr = 5e-4, entropy_coef = 0.01 },
    gtrxl = { lr = 5e-4, entropy_coef = 0.01 }, ["gtrxl memory=256"] = { lr = 5e-4, entropy_coef = 0.001 },
    lstm = { lr = 1e-4, entropy_coef = 0.001 },
  },
})

local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
return mn.learner(cfg, env, agent):train()
