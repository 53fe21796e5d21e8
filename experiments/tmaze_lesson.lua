-- T-Maze after a lesson: a corridor that chance does not walk through.   mneme run experiments/tmaze_lesson.lua corridor=1000
-- Two things are given to the agent, and said: its policy begins by walking (walk=5 is added to the head's bias of "right"), and it first
-- learns in a shorter corridor, until it has solved that.  Corridors beyond 256 cells look alike: the junction has the same number in each.
local mn = require "mneme"

local cfg = mn.config({
  corridor = 1000, lesson = 260, walk = 5, core = { "agalite", n_layers = 1, d_model = 32, d_head = 16, n_heads = 2, d_ffn = 32, remember = "chrono:1000" },
  learner = "a2c", credit = "exact", steps = 2e6, num_envs = 8, num_steps = 32, hidden = 64, lr = 1e-3, entropy_coef = 0, gamma = 0.99, lambda = 0.95,
  bootstrap_truncated = 0, stop_score = 0.97, quick = { corridor = 300, steps = 1e6 },
}, {
  corridor = { "cells from the cue to the junction", range = { 257, 2048 } },
  lesson = { "cells of the corridor in which it learns first, for at most `steps`, too; 0: none", range = { 0, 2048 } },
  walk = { "added to the bias of \"right\" in the policy head of a new agent: log-odds", range = { 0, 20 } },
})

local function maze(corridor) return mn.env("tmaze", { corridor = corridor, num_envs = cfg.num_envs, seed = cfg.seed }) end

local env = maze(cfg.corridor)
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
agent.module:state_dict()["actor.1.bias"]:data()[3] = cfg.walk
local resumed = cfg.resume ~= nil and cfg.resume ~= ""
if cfg.lesson > 0 and not resumed then
  local lesson = mn.learner(cfg, maze(cfg.lesson), agent)
  lesson:begin()
  repeat lesson:advance() until lesson:over() or lesson.step >= cfg.steps
  local score = lesson:shown().score
  print(("lesson: corridor %d, %d steps, score %s"):format(cfg.lesson, lesson.step, score and ("%.2f"):format(score) or "unknown"))
end
return mn.learner(cfg, env, agent):train()
