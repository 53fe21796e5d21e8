-- reinforce.lua -- a learner of your own in this file: policy gradients with a baseline.   mneme run reinforce core=lstm
-- mn.on_policy acts, saves, resumes and logs; a learner says which settings it has and what its loss is.
local mn = require "mneme"

mn.learners.reinforce = mn.on_policy {
  doc = "policy gradients with a learned baseline", source = "Williams 1992",
  config = { num_steps = 128, lr = 1e-3, lambda = 1, baseline = true },        -- lambda=1: whole returns
  about = { baseline = "subtract the critic's value from the return" },
  loss = function(self, batch)
    local log_probs = mn.log_softmax(batch.logits)
    local weight = self.baseline and batch.advantages or batch.returns
    local policy = -(mn.pick(log_probs, batch.actions) * weight):mean()
    local value = (batch.values - batch.returns):square():mean()
    local entropy = -(mn.softmax(batch.logits) * log_probs):sum { axis = -1 }:mean()
    return policy + value * self.value_coef - entropy * self.entropy_coef,
      { policy_loss = policy, value_loss = value, entropy = entropy }
  end,
}

local cfg = mn.config({
  corridor = 10, core = { "gru", d_model = 64 }, learner = "reinforce", steps = 4e5, stop_score = 0.98,
  num_envs = 16, hidden = 64, lr = 3e-3, threads = 1, quick = { corridor = 3, steps = 6e4 },
}, { corridor = { "cells from the cue to the junction", range = { 2, 256 } } })

local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
return mn.learner(cfg, env, agent):train()
