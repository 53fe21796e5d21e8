-- Can a cue teach that lies a thousand steps before the rollout's end?   mneme sweep experiments/far_cue_1000.lua
-- Rollouts of 32 steps, a corridor of 1,000, through which no agent walks by chance: each begins by walking and has a lesson in a corridor of 260
-- first (experiments/tmaze_lesson.lua), alike with credit=window and credit=exact.
local mn = require "mneme"

local mingru = { "mingru", d_model = 64, remember = "chrono:1000" }
local agalite = { "agalite", n_layers = 1, d_model = 32, d_head = 16, n_heads = 2, d_ffn = 32, remember = "chrono:1000" }

local function solves(core)
  return { id = core, source = "ours", text = ("In a corridor of 1,000, %s with exact credit lets more seeds learn than with the window."):format(core),
    test = { "solves", metric = "score", above = 0.97, fresh = 0.9, a = { memory = core .. ", exact" }, b = { memory = core .. ", window" } } }
end

return mn.study {
  title = "T-Maze: a cue a thousand steps back",
  question = "Can a cue teach that lies a thousand steps back?",
  of = "tmaze_lesson",
  axes = { memory = {
    { label = "mingru, exact", set = { core = mingru, credit = "exact" } }, { label = "mingru, window", set = { core = mingru, credit = "window" } },
    { label = "agalite, exact", set = { core = agalite, credit = "exact" } }, { label = "agalite, window", set = { core = agalite, credit = "window" } },
  } },
  settings = { corridor = 1000, lesson = 260, walk = 5, num_steps = 32, lr = 1e-3, entropy_coef = 0, steps = 3e6, threads = 1, stop_score = 0.97 },
  seeds = 10,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 }, solved = 0.97 },
    steps = { "steps of the run after the lesson, which stops when solved" } },
  figures = {
    { "bars", y = "score", x = "memory", title = "success at the end" },
    { "solved", y = "score", by = "memory", title = "seeds that have solved a corridor of 1,000, against steps after the lesson" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" } },
  claims = { solves "mingru", solves "agalite" },
}
