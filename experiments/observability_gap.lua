-- What does not seeing cost, and what does a memory do with what it sees?   mneme sweep experiments/observability_gap.lua quick=1
-- Each environment as it is and as its twin whose observations hold the facts (facts=1), with a memory and without.  The gap is what the facts add to
-- the score; the past is the share of the value's gradient that belongs to earlier observations, which a twin does not need.
local mn = require "mneme"

local function world(name)
  return { label = name, set = { env = name, } }
end
local share = { 0, 1 }

return mn.study {
  title = "The observability gap and the bias of memories",
  question = "How much of a score is lost to what is not observed, how much of it does a memory win back, and does it look back where it need not?",
  axes = {
    core = { { "gru", d_model = 64, label = "gru" }, { "agalite", n_layers = 1, d_model = 64, d_head = 16, d_ffn = 64, remember = 10, label = "agalite" },
      { "feedforward", n_layers = 1, d_model = 64, d_ffn = 64, label = "no memory" } },
    observed = { { label = "part", set = { facts = false } }, { label = "facts", set = { facts = true } } },
    task = { world "repeat_previous", world "noisy_cartpole", world "associative_recall" },
  },
  settings = { core = { "gru" }, env = "repeat_previous", facts = false, learner = "ppo", steps = 3e6, num_envs = 16, num_steps = 128, epochs = 4,
    minibatches = 4, hidden = 64, lr = 1e-3, lr_schedule = "linear", entropy_coef = 0.01, threads = 1, episodes = 8,
    quick = { steps = 3e5 } },
  about = { facts = "observations end with the facts that the environment hides", env = "the environment", episodes = "whose gradients are measured" },
  seeds = { 5 },
  run = function(cfg)
    local function env(num_envs, seed) return mn.env(cfg.env, { facts = cfg.facts, num_envs = num_envs, seed = seed }) end
    mn.manual_seed(cfg.seed)
    local learned = env(cfg.num_envs, cfg.seed)
    local agent = mn.agent { env = learned, core = cfg.core, hidden = cfg.hidden }
    local result = mn.learner(cfg, learned, agent):train()
    local p, sum, n = mn.stepper.new(env(1, cfg.seed + 1000), agent, { seed = cfg.seed }), 0, 0
    for _ = 1, cfg.episodes do
      local episode = mn.measure.credit.play(p, 200)
      local at = episode.T - 1
      local row = mn.measure.credit.map(agent, p.env, episode, { at }).value[1]
      local all = 0
      for s = 0, at do all = all + row[s + 1] end
      if all > 0 then sum, n = sum + 1 - row[at + 1] / all, n + 1 end
    end
    result.past = n > 0 and sum / n or nil
    return result
  end,
  metrics = { score = { "score of the last 100 episodes", range = share, goal = 1 },
    past = { "share of the value's gradient that belongs to earlier observations", range = share } },
  figures = { { "bars", y = "score", x = "task", by = "core", where = { observed = "part" }, title = "score where part is observed" },
    { "bars", y = "score", x = "task", by = "core", where = { observed = "facts" }, title = "score where the facts are observed" },
    { "bars", y = "past", x = "task", by = "core", where = { observed = "part" }, title = "the past's share of the gradient where part is observed" },
    { "bars", y = "past", x = "task", by = "core", where = { observed = "facts" }, title = "the past's share of the gradient where the facts are observed" } },
  claims = {
    { id = "gap", text = "Without a memory the facts add to the score.", source = "the environments' rules",
      test = { "better", metric = "score", a = { core = "no memory", observed = "facts" }, b = { core = "no memory", observed = "part" } } },
    { id = "memory", text = "A GRU scores higher than no memory where part is observed.", source = "POPGym",
      test = { "better", metric = "score", a = { core = "gru" }, b = { core = "no memory" }, where = { observed = "part" } } },
    { id = "bias", text = "A GRU that observes the facts still gives a fifth of its value's gradient to the past.",
      source = "Wang et al. 2025: memory models keep to the past",
      test = { "at_least", metric = "past", a = { core = "gru" }, where = { observed = "facts" }, value = 0.2 } },
  },
}
