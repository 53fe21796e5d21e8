-- When can the cue be read from the memory, and when is it used?   mneme sweep experiments/cue_readable.lua
-- An agent is trained; every `every` steps a linear reading asks its memory for the cue, `corridor` - 2 steps after it was shown.
local mn = require "mneme"

local function cores(size)
  local list = { { "agalite", label = "published" }, { "agalite", label = "40 steps", remember = 40 } }
  for key, value in pairs(size) do list[1][key], list[2][key] = value, value end
  return list
end
local core = cores { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
core.full = cores {}
local long = { core = "40 steps" }

return mn.study {
  title = "When the cue can be read, and when it is used",
  question = "While an agent learns to carry a cue, does its memory hold the cue first, or does the agent use it as soon as it can be read?",
  axes = { core = core },
  settings = { size = "published", core = { "agalite" }, learner = "a2c", corridor = 60, steps = 1.5e6, every = 1e5, episodes = 256, num_envs = 8,
    num_steps = 256, hidden = 32, lr = 1e-3, entropy_coef = 0.01, threads = 1, checkpoint_every = 1e9,
    full = { corridor = 200, steps = 3e6, every = 3e5, hidden = 128, lr = 1e-4, entropy_coef = 0.001 } },
  about = { corridor = "of T-Maze", every = { "steps of training between two readings", range = { 2048, 1e9 }, whole = true },
    episodes = { "episodes of a reading, of which 7 in 10 are learned from", range = { 48, 4096 }, whole = true } },
  seeds = 10,
  run = function(cfg)
    mn.manual_seed(cfg.seed)
    local about = { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed }
    local env = mn.env("tmaze", about)
    local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
    local learner = mn.learner(cfg, env, agent)
    local asks = mn.stepper.new(mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.episodes, seed = cfg.seed + 1000 }), agent, {})
    local read, score, last = { x = {}, y = {} }, { x = {}, y = {} }, cfg.corridor - 2
    local function ask(step)
      local readings = mn.measure.readings.new(asks, { facts = { "cue" }, every = last, last = last })
      readings:work()
      read.x[#read.x + 1], read.y[#read.y + 1] = step, readings.cells.cue[#readings.steps][1].right
      local shown = step > 0 and learner:shown().score
      if shown then score.x[#score.x + 1], score.y[#score.y + 1] = step, shown end
    end
    local advance, step, due = learner.advance, 0, cfg.every
    function learner:advance()
      local steps, finite = advance(self)
      step = step + steps
      if step >= due then due = due + cfg.every; ask(due - cfg.every) end
      return steps, finite
    end
    ask(0)
    local result = learner:train()
    result.before, result.after, result.read, result.scored = read.y[1], read.y[#read.y], read, score
    return result
  end,
  metrics = { before = { "cues read before training", range = { 0, 1 } }, after = { "cues read after training", range = { 0, 1 } },
    score = { "success, mean of the last 100 episodes", range = { 0, 1 } } },
  figures = { { "lines", y = "read", x = "steps", by = "core", title = "cues that can be read at the end of the corridor" },
    { "lines", y = "scored", x = "steps", by = "core", title = "success while learning" } },
  claims = { { id = "before", text = "A memory whose gates begin with a half-life of 40 holds the cue before any training.", source = "ours",
      test = { "at_least", metric = "before", a = long, value = 0.9 } },
    { id = "more", text = "More seeds of it hold the cue before any training than with the published start.", source = "ours",
      test = { "solves", metric = "before", above = 0.9, a = long, b = { core = "published" } } } },
}
