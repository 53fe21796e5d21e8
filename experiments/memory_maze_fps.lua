-- How fast does a whole agent learn Memory Maze, and in how much memory?   mneme sweep experiments/memory_maze_fps.lua quick=1
-- Environment, torso, memory, actor and critic, in PPO on pixels; GTrXL and AGaLiTe in the sizes that both papers use.
local mn = require "mneme"
local timing = mn.measure.timing

local positive = { 0, math.huge }

return mn.study {
  title = "Memory Maze: frames a second and memory of the whole agent",
  question = "Is AGaLiTe 40 % cheaper than GTrXL, and does it take half the memory, when everything is counted?",
  jobs = 1,
  axes = { core = { { "gtrxl", memory = 128, size = "published", label = "gtrxl, 128" }, { "gtrxl", memory = 256, size = "published", label = "gtrxl, 256" },
    { "agalite", eta = 4, r = 2, size = "published", label = "agalite" }, { "gru", size = "published", label = "gru" },
    quick = { { "gtrxl", memory = 256, size = "published", label = "gtrxl, 256" }, { "agalite", eta = 4, r = 2, size = "published", label = "agalite" } } } },
  settings = {
    core = { "agalite" }, learner = "ppo", size = 9, num_envs = 16, num_steps = 128, minibatches = 8, epochs = 3, hidden = 256, lr = 2.5e-4, seconds = 60,
    quick = { num_envs = 4, num_steps = 32, minibatches = 2, epochs = 1, seconds = 2 }, full = { num_envs = 128, size = 15, seconds = 300 },
  },
  about = { seconds = { "about how long each is measured", range = { 0.1, 1e5 } }, size = { "of the maze", range = { 7, 31 }, whole = true } },
  seeds = { 5 },
  run = function(cfg)
    local more = timing.memory()
    mn.manual_seed(cfg.seed)
    local env = mn.env("memory_maze", { size = cfg.size, mode = "continuous", observation = "pixels", num_envs = cfg.num_envs, seed = cfg.seed })
    local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden, previous = "action,reward" }
    local learner = mn.learner(cfg, env, agent)
    local r = mn.measure.learning_speed(learner, cfg.seconds)
    return { learning_fps = r.rate, acting_fps = learner.T * learner.B / r.act, memory_mib = more(),
      state_kib = 4 * agent.core:state_floats() / 1024, parameters = agent.module:count() }
  end,
  metrics = {
    learning_fps = { "frames a second, learning", range = positive }, acting_fps = { "frames a second, acting", range = positive },
    memory_mib = { "memory of environment, agent and learner", unit = "MiB", range = positive, goal = 0 },
    state_kib = { "state of one environment", unit = "KiB", goal = 0 }, parameters = { "parameters" },
  },
  figures = {
    { "bars", y = "learning_fps", by = "core" }, { "bars", y = "acting_fps", by = "core" },
    { "bars", y = "memory_mib", by = "core" }, { "bars", y = "state_kib", by = "core" },
  },
  references = { { "GTrXL, paper", y = 373.63, of = "learning_fps", where = { core = "gtrxl, 256" }, source = "recalled, not checked" },
    { "AReLiT, paper", y = 535.63, of = "learning_fps", where = { core = "agalite" }, source = "recalled, not checked" } },
  claims = {
    { id = "cheaper", text = "AGaLiTe acts 1.4 times as fast as GTrXL.", source = "paper, abstract: 40 % cheaper inference; 535.63 against 373.63",
      test = { "ratio", metric = "acting_fps", a = { core = "agalite" }, b = { core = "gtrxl, 256" }, at_least = 1.4 } },
    { id = "learning", text = "AGaLiTe learns 1.4 times as fast as GTrXL.", source = "paper, section 5: frames a second of training",
      test = { "ratio", metric = "learning_fps", a = { core = "agalite" }, b = { core = "gtrxl, 256" }, at_least = 1.4 } },
    { id = "memory", text = "GTrXL takes twice the memory of AGaLiTe.", source = "paper, abstract: more than 50 % less",
      test = { "ratio", metric = "memory_mib", a = { core = "gtrxl, 256" }, b = { core = "agalite" }, at_least = 2 } },
  },
}
