-- Does an agent learn the same through the bridge to Gymnasium?   PYTHON=/path/to/python3 mneme sweep bridge_parity      (pip install popgym)
-- Five tasks of POPGym, each as the original package steps it (gym:popgym:ID) and as Mneme's own in C, with equal settings and networks.
local mn = require "mneme"

-- Ours, its ID in popgym, and the codes of its observations (cards); positions are floats.
local tasks = {
  { "repeat_first", "RepeatFirstEasy", codes = 4 }, { "repeat_previous", "RepeatPreviousEasy", codes = 4 },
  { "count_recall", "CountRecallEasy", codes = 2 }, { "concentration", "ConcentrationEasy", codes = 3 },
  { "noisy_cartpole", "NoisyPositionOnlyCartPoleEasy" },
}
local names, claims, original = {}, {}, {}
local function equal(task, metric, within, text)
  claims[#claims + 1] = { id = task .. "-" .. metric, text = task .. ": " .. text, source = "ours; bounds set before the runs",
    test = { "equal", metric = metric, within = within, a = { through = "gym" }, b = { through = "C" }, where = { task = task } } }
end
for i, task in ipairs(tasks) do
  names[i], original[task[1]] = task[1], { id = ("gym:popgym:popgym-%s-v0"):format(task[2]), codes = task.codes }
  equal(task[1], "mean_return", 0.1, "the return at the end is equal within 0.1.")
  equal(task[1], "learning", 0.1, "the return, mean over the whole training, is equal within 0.1.")
end

return mn.study {
  title = "The bridge to Gymnasium: the same learning?",
  question = "Do agents reach the same return, as soon, on POPGym's own tasks through the bridge and on ours in C?",
  axes = { task = names, through = { "C", "gym" } },
  settings = { task = "repeat_first", through = "C", learner = "ppo", steps = 3e5, num_envs = 16, num_steps = 64, hidden = 64, lr = 2e-3,
    entropy_coef = 0.01, threads = 1 },
  about = { task = "one of five of POPGym", through = "C: ours; gym: the package popgym, stepped by Python" },
  seeds = { 10 },
  run = function(cfg)
    local settings, of = { num_envs = cfg.num_envs, seed = cfg.seed }, original[cfg.task]
    if cfg.through == "gym" then settings.codes, settings.workers = of.codes, 1 end
    local env = mn.env(cfg.through == "gym" and of.id or cfg.task, settings)
    mn.manual_seed(cfg.seed)
    local agent = mn.agent { env = env, core = { "gru", d_model = 64 }, hidden = cfg.hidden }
    return mn.learner(cfg, env, agent):train()
  end,
  metrics = { mean_return = { "return, last 100 episodes", range = { -1, 1 } },
    learning = { "return, mean over the training", range = { -1, 1 }, mean_of = "charts/episodic_return" } },
  figures = { { "bars", y = "mean_return", x = "task", by = "through", title = "return at the end" },
    { "bars", y = "learning", x = "task", by = "through", title = "return, mean over the training" } },
  claims = claims,
}
