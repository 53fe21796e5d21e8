-- A maze of your own: what did the sign say?   mneme run gridworld core=gru   mneme help gridworld
local mn = require "mneme"

local map = [[
###########
####...1###
#S?.....###
####...2###
###########]]

local cfg = mn.config({
  core = { "agalite", n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64, eta = 4, r = 2 }, sight = 3,
  learner = "a2c", steps = 1e6, stop_score = 0.98, num_envs = 16, num_steps = 64, hidden = 64, lr = 5e-4, entropy_coef = 0.01, threads = 1,
  quick = { steps = 2e5 },
}, {
  sight = { "cells a side that the agent sees; the sign is out of sight where it must choose", range = { 3, 15 } },
  stop_score = { "training ends where the last hundred episodes score this", range = { 0, 1 } },
})

local env = mn.env("gridworld", { map = map, view = cfg.sight, step_reward = -0.01, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
return mn.learner(cfg, env, agent):train()
