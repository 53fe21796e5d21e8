-- rebuild_observation.lua -- an extra loss term: the memory must also rebuild the observation.   mneme run rebuild_observation aux_coef=0
-- A decoder reads what the core gives out and is trained on the observation; its gradient reaches the core.  aux_coef=0 is the
-- agent alone.  With observations:slice { from = 1 } it would have to predict, with core_output:slice { from = 4 } to remember.
local mn = require "mneme"

local cfg = mn.config({
  corridor = 20, core = { "gru", d_model = 64 }, learner = "a2c", aux_coef = 0.1,
  steps = 5e5, stop_score = 0.98, num_envs = 16, num_steps = 64, hidden = 64, lr = 1e-3, entropy_coef = 0.01, threads = 1,
  quick = { corridor = 5, steps = 1e5 },
}, { corridor = { "cells from the cue to the junction", range = { 2, 256 } } })

local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
local decoder = mn.nn.sequential { mn.nn.linear(agent.core.d_out, 64, { act = "relu" }), mn.nn.linear(64, env.observation_space.shape[1]) }

return mn.learner(cfg, env, agent, {
  modules = { decoder = decoder },
  aux = { rebuild = function(batch) return (decoder(batch.core_output) - batch.observations):square():mean() end },
}):train()
