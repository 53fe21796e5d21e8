-- What does a memory know, when, and in which head?   mneme sweep experiments/probe.lua quick=1   ... from=runs/MINE
-- An agent is trained, or taken from a run; linear probes ask its memory for the cue, its place, the targets, step by
-- step and head by head, on episodes that they did not learn from, beside a control of shuffled answers.
local mn = require "mneme"
local player = require "mneme.player"
local probing = require "mneme.probing"

local facts = { tmaze = { cue = "class", position = "number" },
  memory_maze = { heading = "class", x = "number", y = "number", target_vectors = "number" } }

return mn.study {
  title = "Linear probes of memories",
  question = "Can the cue, the pose and the targets be read from what a memory holds, and from which head?",
  axes = {
    core = { "agalite", "galite", "gru",
      quick = { { "agalite", n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32, label = "agalite" }, { "gru", d_model = 64, label = "gru" } } },
    task = { { label = "tmaze", set = { env = "tmaze" } }, quick = { { label = "tmaze", set = { env = "tmaze" } } },
      { label = "memory_maze", set = { env = "memory_maze", learner = "ppo", num_envs = 64, lr = 1e-3 } } },
  },
  settings = { core = { "agalite" }, env = "tmaze", learner = "a2c", corridor = 20, from = "", steps = 5e6, num_envs = 8, num_steps = 128, hidden = 64,
    lr = 3e-4, entropy_coef = 0.01, episodes = 512, last = 40, quick = { steps = 8e5, hidden = 32, lr = 1e-3, episodes = 128, last = 16 } },
  about = { from = "a run whose agent is probed; none: it is trained", learner = { choices = { "a2c", "ppo" } },
    last = { "step of an episode up to which is asked", range = { 1, 1e5 }, whole = true }, corridor = "of T-Maze" },
  seeds = { 3 }, references = { { "guessing", y = 0.5, of = "cue", source = "two cues" } },
  run = function(cfg)
    local result, p, steps = {}, nil, {}
    for i = 0, 8 do steps[i + 1] = math.floor(i * cfg.last / 8 + 0.5) end
    local function ask() return probing.agent(p, { episodes = cfg.episodes, steps = steps, facts = facts[cfg.env], seed = cfg.seed }) end
    mn.manual_seed(cfg.seed)
    if cfg.from ~= "" then p = player.from_run(cfg.from, { num_envs = 32, seed = cfg.seed + 1000 }) else
      local about = { corridor = cfg.env == "tmaze" and cfg.corridor or nil, num_envs = cfg.num_envs, seed = cfg.seed }
      local here = mn.env(cfg.env, about)
      local agent = mn.agent { task = here, core = cfg.core, hidden = cfg.hidden }
      local function fresh() return player.new(mn.env(cfg.env, about), agent, { seed = cfg.seed + 1000 }) end       -- other episodes
      p = fresh()
      local before = ask()
      result = mn[cfg.learner](cfg, here, agent):train()
      for name in pairs(facts[cfg.env]) do result[name .. "_untrained"] = before[name] end
      p = fresh()
    end
    for name, value in pairs(ask()) do result[name] = value end
    result.cue_gain = result.cue_untrained and result.cue - result.cue_untrained
    return result
  end,
  metrics = {
    cue = { "share of cues read", range = { 0, 1 }, goal = 1 }, cue_selectivity = { "share of cues read, beyond the control's", range = { -1, 1 } },
    cue_untrained = { "share of cues read before training", range = { 0, 1 } }, cue_gain = { "more of them than before training", range = { -1, 1 } },
    position = { "share of variance told", range = { 0, 1 }, goal = 1 }, score = { "success, last 100 episodes", range = { 0, 1 } },
  },
  figures = { { "bars", y = "cue", by = "core", where = { task = "tmaze" } }, { "bars", y = "cue_untrained", by = "core", where = { task = "tmaze" } },
    { "heat", y = "cue_selectivity", x = "step", by = "head", where = { task = "tmaze", core = "agalite" } },
    { "heat", y = "position", x = "step", by = "head", where = { task = "tmaze", core = "agalite" } } },
  claims = {
    { id = "cue", text = "The cue can be read from AGaLiTe's memory, 0.3 better than with shuffled answers.", source = "ours",
      test = { "at_least", metric = "cue_selectivity", a = { core = "agalite" }, where = { task = "tmaze" }, value = 0.3 } },
    { id = "learned", text = "Training is what makes the cue legible.", source = "ours: a memory with random weights may do as well",
      test = { "at_least", metric = "cue_gain", a = { core = "agalite" }, where = { task = "tmaze" }, value = 0.1 } },
  },
}
