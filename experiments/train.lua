-- train.lua -- any environment, core and learner, without a script.   mneme run train env=tmaze core=gru learner=ppo
-- Settings of the environment and of the core have its name in front: env.corridor=40 core.d_model=64.  env=FILE.lua takes an environment
-- of your own: the file returns what mn.env takes, or a function(settings) that returns it.  The learner's settings have its
-- published values.
local mn = require "mneme"

local cfg = mn.config({
  env = { "tmaze" }, core = { "gru", d_model = 128 }, learner = "a2c", num_envs = 16, hidden = 128, previous = "", steps = 1e6,
  quick = { env = { "tmaze", corridor = 10 }, core = { "gru", d_model = 64 }, hidden = 64, num_steps = 64, lr = 2e-3, entropy_coef = 0.01, steps = 2e5,
    stop_score = 0.98, threads = 1 },
}, { env = "the environment, and its settings (mneme list envs; mneme help tmaze), or a file of your own" })

local settings = { num_envs = cfg.num_envs, seed = cfg.seed }
for key, value in pairs(cfg.env) do if key ~= 1 then settings[key] = value end end
local env = mn.env(cfg.env[1], settings)

mn.manual_seed(cfg.seed)
local head_act = cfg.learner:find "^stream" and "leaky_relu" or nil          -- heads as its paper has them
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden, previous = cfg.previous, head_act = head_act }
return mn.learner(cfg, env, agent):train()
