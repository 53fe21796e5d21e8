-- What does a memory know, when, and in which head?   mneme sweep experiments/probe.lua quick=1   ... from=runs/MINE
-- An agent is trained, or taken from a run; linear probes ask its memory for the cue, its place, the targets, step by
-- step and head by head, on episodes that they did not learn from, beside a control of shuffled answers.
local mn = require "mneme"

local facts = { tmaze = { cue = "class", position = "number" },
  memory_maze = { heading = "class", x = "number", y = "number", target_vectors = "number" } }
local function share(what) return { "share of " .. what, range = { 0, 1 }, goal = 1 } end
local function beyond(what) return { "share of " .. what .. ", beyond the control's" } end
local tmaze = { label = "tmaze", set = { env = "tmaze" } }
local here, there, of_agalite = { task = "tmaze" }, { task = "memory_maze" }, { task = "tmaze", core = "agalite" }

return mn.study {
  title = "Linear probes of memories",
  question = "Can the cue, the pose and the targets be read from what a memory holds, and from which head?",
  axes = { core = { "agalite", "galite", "gru",
      quick = { { "agalite", n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32, label = "agalite" }, { "gru", d_model = 64, label = "gru" } } },
    task = { tmaze, { label = "memory_maze", set = { env = "memory_maze", learner = "ppo", num_envs = 64, lr = 1e-3 } }, quick = { tmaze,
      { label = "memory_maze", set = { env = "memory_maze", learner = "ppo", num_envs = 64, lr = 1e-3, steps = 3e5, episodes = 1024, last = 400 } } } } },
  settings = { size = "published", core = { "agalite" }, env = "tmaze", learner = "a2c", corridor = 20, from = "", steps = 5e6, num_envs = 8, num_steps = 128,
    hidden = 64, lr = 3e-4, entropy_coef = 0.01, episodes = 512, last = 40, quick = { steps = 8e5, hidden = 32, lr = 1e-3, episodes = 128, last = 16 } },
  about = { from = "a run whose agent is probed; none: it is trained",
    last = { "step of an episode up to which is asked", range = { 1, 1e5 }, whole = true }, corridor = "of T-Maze" },
  seeds = 5,
  references = { { "guessing", y = 0.5, of = "cue", source = "two cues" }, { "guessing", y = 0.25, of = "heading", source = "four" } },
  run = function(cfg)
    mn.manual_seed(cfg.seed)
    local about = { corridor = cfg.env == "tmaze" and cfg.corridor or nil, num_envs = cfg.num_envs, seed = cfg.seed }
    local env = cfg.from == "" and mn.env(cfg.env, about)
    local agent = env and mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
    local function ask()                                                  -- in other episodes than it learns from
      local p = agent and mn.stepper.new(mn.env(cfg.env, about), agent, { seed = cfg.seed + 1000 })
        or mn.stepper.from_run(cfg.from, { num_envs = 32, seed = cfg.seed + 1000 })
      return mn.measure.linear_probes.agent(p, { episodes = cfg.episodes, last = cfg.last, facts = facts[cfg.env], seed = cfg.seed })
    end
    local before = env and ask() or {}
    local result = env and mn.learner(cfg, env, agent):train() or {}
    for name, value in pairs(ask()) do result[name] = value end
    for name in pairs(facts[cfg.env]) do result[name .. "_untrained"] = before[name] end
    result.cue_gain = before.cue and result.cue - before.cue
    return result
  end,
  metrics = { cue = share "cues read", cue_selectivity = beyond "cues read", cue_untrained = share "cues read before training",
    cue_gain = { "more of them than before training", range = { -1, 1 } }, position = share "variance of the position read",
    heading = share "headings read", x = share "variance of the column read", y = share "variance of the row read",
    target_vectors = share "variance of the ways to the targets read", target_vectors_selectivity = beyond "that variance read",
    target_vectors_untrained = share "that variance read before training", score = { "success, or share of the oracle's return", range = { 0, 1 } } },
  figures = { { "bars", y = "cue", by = "core", where = here }, { "bars", y = "cue_untrained", by = "core", where = here },
    { "heat", y = "cue_selectivity", x = "step", by = "head", where = of_agalite }, { "heat", y = "position", x = "step", by = "head", where = of_agalite },
    { "bars", y = "heading", by = "core", where = there }, { "bars", y = "target_vectors", by = "core", where = there },
    { "heat", y = "target_vectors", x = "step", by = "head", where = { task = "memory_maze", core = "gru" } } },
  claims = { { id = "cue", text = "The cue can be read from AGaLiTe's memory, 0.3 better than with shuffled answers.", source = "ours",
      test = { "at_least", metric = "cue_selectivity", a = { core = "agalite" }, where = here, value = 0.3 } },
    { id = "learned", text = "Training is what makes the cue legible.", source = "ours: a memory with random weights may do as well",
      test = { "at_least", metric = "cue_gain", a = { core = "agalite" }, where = here, value = 0.1 } },
    { id = "targets", text = "The ways to the targets can be read from a GRU's memory, 0.05 better than with shuffled answers.", source = "ours",
      test = { "at_least", metric = "target_vectors_selectivity", a = { core = "gru" }, where = there, value = 0.05 } } },
}
