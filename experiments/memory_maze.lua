-- Which memory knows where the targets are?   mneme run memory_maze core=gru   mneme sweep experiments/memory_maze.lua quick=1
-- The target is given, each maze is new: what is not remembered is sought again.  mode=continuous observation=pixels is the original.
local mn = require "mneme"

local small, as_published = { n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64 }, { size = "published" }
local function core(name, options, remember)
  local of = { name, label = name .. (remember and " " .. remember .. " steps" or ""), remember = remember }
  for key, value in pairs(options) do of[key] = value end
  return of
end
local function better(id, text, source, a, b)
  return { id = id, text = text, source = source, test = { "better", metric = "mean_return", a = { core = a }, b = { core = b } } }
end

return mn.study {
  title = "Memory Maze: return of each memory",
  question = "Do agents with a memory go back to targets that they saw, and how near to who knows the way?",
  axes = {
    core = { core("agalite", { eta = 4, r = 2 }), core("gtrxl", as_published), core("gru", as_published), core("lstm", as_published),
      core("feedforward", as_published),
      quick = { core("gru", { d_model = 128 }), core("agalite", small), core("agalite", small, 40),
        core("feedforward", { n_layers = 2, d_model = 64, d_ffn = 64 }),
        { "gtrxl", memory = 128, n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64, label = "gtrxl" } } },
    size = { 9, 11, 13, 15, quick = { 9 } },
    cue_frames = { 0, quick = { 0, 5 } },
  },
  settings = {
    mode = "grid", observation = "grid", sight = 7, levels = 0, previous = "action,reward",
    learner = "ppo", steps = 100e6, num_envs = 128, num_steps = 128, minibatches = 8, epochs = 3, hidden = 256,
    lr = 2.5e-4, lr_schedule = "constant", entropy_coef = 3e-4, gamma = 0.99, lambda = 0.95, clip = 0.2, clip_values = false,
    value_coef = 0.5, max_norm = 5,
    quick = { steps = 1e6, num_envs = 64, num_steps = 64, minibatches = 4, hidden = 64, lr = 1e-3, lr_schedule = "linear", entropy_coef = 0.01,
      threads = 1 },
  },
  about = {
    size = { "of the maze, odd; 9, 11, 13, 15 are Memory Maze's own, with 3 to 6 targets", range = { 7, 31 }, whole = true },
    observation = { "grid: codes of the cells in a window; vector: place, free ways and the targets in sight; pixels: 64 x 64 colours" },
    mode = { "grid: cells and quarter turns; continuous: a rolling ball, four steps for each of them, as the original" },
    sight = { "cells a side that the agent sees ahead of it: 3, 5 or 7", range = { 3, 7 }, whole = true },
    cue_frames = { "steps that a new target is shown for; 0: always", range = { 0, 1e6 }, whole = true },
    levels = { "mazes there are; 0: a new one in each episode", range = { 0, 100000 }, whole = true },
    previous = { "inputs besides the observation: the last action, reward, both or, left empty, neither" },
  },
  seeds = 5, run = function(cfg)
    local env = mn.env("memory_maze", { size = cfg.size, mode = cfg.mode, observation = cfg.observation, view = cfg.sight,
      levels = cfg.levels, cue_frames = cfg.cue_frames, num_envs = cfg.num_envs, seed = cfg.seed })
    mn.manual_seed(cfg.seed)
    return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden, previous = cfg.previous }):train()
  end,
  metrics = { score = { "return as a share of the oracle's", range = { 0, 1 }, goal = 1 }, mean_return = { "return", range = { 0, math.huge }, goal = 25 } },
  figures = { { "bars", y = "mean_return", x = "cue_frames", by = "core", where = { size = "9" }, title = "return in 9x9, by steps of the cue" },
    { "bars", y = "score", x = "size", by = "core", title = "share of the oracle's return" }, { "curves", y = "charts/score", by = "core" } },
  references = { { "oracle", y = 23.11, of = "mean_return", source = "400 episodes in labmaze's mazes" }, { "random", y = 0.37, of = "mean_return" } },
  claims = { better("memory", "A GRU collects more than a network without memory.", "Pasukonis et al. 2022", "gru", "feedforward"),
    better("agalite-gtrxl", "AGaLiTe collects more than GTrXL.", "paper's comparison", "agalite", "gtrxl"),
    better("agalite", "AGaLiTe collects more than a GRU.", "ours", "agalite", "gru"),
    better("long", "AGaLiTe with a half-life of 40 steps at the start collects more than as published.", "ours", "agalite 40 steps", "agalite"),
    better("long-gtrxl", "AGaLiTe with a half-life of 40 steps at the start collects more than GTrXL.", "ours", "agalite 40 steps", "gtrxl") },
}
