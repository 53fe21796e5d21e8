-- Which memory knows where the targets are?   mneme run memory_maze core=gru   ... mode=continuous observation=pixels
-- A window onto the maze, the target asked for, and a new maze each time: what is not remembered is sought again.
local mn = require "mneme"

local cfg = mn.config({
  size = 9, mode = "grid", observation = "grid", sight = 7, levels = 0, cue_frames = 0,
  core = { "agalite", eta = 4, r = 2 }, previous = "action,reward",
  steps = 100e6, num_envs = 128, num_steps = 128, minibatches = 8, epochs = 3, hidden = 256,
  lr = 2.5e-4, lr_schedule = "constant", entropy_coef = 3e-4, gamma = 0.99, lambda = 0.95, clip = 0.2, clip_values = false,
  value_coef = 0.5, max_norm = 5,              -- as published for Mystery Path: those of Memory Maze are not known
  quick = {
    core = { "gru", d_model = 128 }, steps = 5e5, num_envs = 64, num_steps = 64, minibatches = 4, hidden = 64,
    lr = 1e-3, lr_schedule = "linear", entropy_coef = 0.01, threads = 1,
  },
}, {
  size = { "of the maze, odd; 9, 11, 13, 15 are Memory Maze's own, with 3 to 6 targets", range = { 7, 31 }, whole = true },
  observation = { "grid: codes of the cells in a window; vector: place, free ways and the targets in sight; pixels: 64 x 64 colours" },
  mode = { "grid: cells and quarter turns; continuous: a rolling ball, four steps for each of them, as the original" },
  sight = { "cells a side that the agent sees ahead of it: 3, 5 or 7", range = { 3, 7 }, whole = true },
  cue_frames = { "steps that a new target is shown for; 0: always", range = { 0, 1e6 }, whole = true },
  levels = { "mazes there are; 0: a new one in each episode", range = { 0, 100000 }, whole = true },
  previous = { "what of the step before the agent is told" },
})

local task = mn.env("memory_maze", { size = cfg.size, mode = cfg.mode, observation = cfg.observation, view = cfg.sight,
  levels = cfg.levels, cue_frames = cfg.cue_frames, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { task = task, core = cfg.core, hidden = cfg.hidden, previous = cfg.previous }
return mn.ppo(cfg, task, agent):train()
