-- fresh_episodes.lua -- whole episodes of an agent that learns nothing from them: what `mneme eval` measures, and what a training that stops
-- because it solved its task keeps as its result.  The episodes that stopped it were chosen for their score; these were not.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local right_actions = require "mneme.envs.right_actions"
local errors = require "mneme.base.errors"
local progress = require "mneme.base.progress"
local stats = require "mneme.stats"
local stepper = require "mneme.insight.episodes.stepper"

local fresh = {}
local MOST_ENVS = 64               -- as `mneme eval` has by default
local APART = 1e9                  -- from a training's seed to that of its fresh episodes
local LONG = 10                    -- without a time limit they may take that many times the steps of the training

---Play episodes and collect their outcomes.  Every environment plays the same number of episodes; otherwise short
---episodes would count more often than long ones.
---@param options table? { album = EpisodeAlbum that records them, reached = of Env:keep_outcomes, most = steps of all environments after which
---  it gives up }
---@return table { scored = false where none has a score; next to others that have one a missing score counts as 0; score = list, ret = list,
---  length = list, reached = list of a byte an outcome, outcomes = { score, wrong, drawn, clear } of each where actions are drawn and the right one is
---  known, for memory_story.draw }: fewer episodes after a signal
function fresh.play(p, episodes, options)
  local o, outcomes = options or {}, #p.env.outcomes
  local album, reached, most = o.album, o.reached, o.most or math.huge
  local B, each, played, count, steps = p.num_envs, math.ceil(episodes / p.num_envs), {}, {}, 0          -- played[k * B + b]: environment b's episode k
  local bar, total = progress.new { steps = episodes, unit = "episodes", after = 2 }, 0
  local interrupted, counter = false, p.greedy == 0 and right_actions.counter(p) or nil
  while total < each * B and not interrupted and steps < most do
    p:forward()
    if album then album:before() end
    if counter then counter.note() end
    local ended_now = p:step()
    if album then album:after() end
    if ended_now > 0 then
      local done, ended = p.done, p.env.ended
      for b = 0, B - 1 do
        local decided, k = done[b] ~= 0 and counter and counter.take(b) or nil, count[b] or 0
        if done[b] ~= 0 and k < each then
          played[k * B + b] = { ended.score[b], ended.ret[b], ended.length[b], reached and ffi.string(reached + b * outcomes, outcomes) or nil,
            decided = decided }
          count[b], total = k + 1, total + 1
        end
      end
    end
    steps = steps + B
    bar:update(math.min(total, episodes), {})
    interrupted = C.mn_interrupted() ~= 0
  end
  bar:clear()
  local out = { score = {}, ret = {}, length = {}, reached = {}, scored = false, outcomes = {} }
  local n = 0
  for at = 0, each * B - 1 do
    local e = n < episodes and played[at]                   -- a signal leaves few of many
    if e then
      n, out.scored = n + 1, out.scored or e[1] == e[1]
      out.score[n], out.ret[n], out.length[n], out.reached[n] = e[1], e[2], e[3], e[4]
      if counter then
        e.decided.score = e[1] == e[1] and e[1] or 0
        out.outcomes[n] = e.decided
      end
    end
  end
  for i, s in ipairs(out.scored and out.score or {}) do if s ~= s then out.score[i] = 0 end end
  return out
end

---The mean score of episodes, and its 95 % interval: Wilson's where each succeeded or did not, else of t.
---@return number mean
---@return number? low nil: a single one, by degrees
---@return number? high
---@return boolean by_degrees
function fresh.interval(scores)
  local sum, by_degrees, mean, low, high = 0, false
  for _, s in ipairs(scores) do sum, by_degrees = sum + s, by_degrees or (s ~= 0 and s ~= 1) end
  if by_degrees then mean, low, high = stats.t_interval(scores) else mean, low, high = stats.wilson(sum, #scores) end
  return mean, low, high, by_degrees
end

---Play fresh episodes of an agent whose training has ended: with sampled actions, and with the most probable ones.  `mneme eval` with the same
---seed and num_envs plays the same ones.
---@param learner table with cfg, env, agent and describe(): see learn/trainer.lua; none of its tensors changes
---@param step number the training's steps
---@return table? { score, low, high (of the sampled ones; 95 %), greedy, episodes, num_envs, seed }; nil after a signal, or where they do not end
function fresh.of_learner(learner, episodes, step)
  local seed, memory = ((learner.cfg.seed or 1) + APART) % 2 ^ 53, learner:describe().memory
  local ok, env = xpcall(learner.env.again, errors.handler, learner.env, { num_envs = math.min(episodes, MOST_ENVS), seed = seed })
  if not ok then env = learner.env:again { num_envs = learner.env.num_envs, seed = seed } end          -- there cannot be so many
  local most = env.time_limit == 0 and LONG * math.max(step, episodes) or nil
  local function scores(greedy)
    local out = fresh.play(stepper.new(env, learner.agent, { greedy = greedy, seed = seed, memory = memory }), episodes, { most = most })
    return #out.score == episodes and out.scored and out.score or nil
  end
  local switched = {}
  learner.agent.module:train(false, switched)
  local fine, sampled, greedy = xpcall(function()
    local first = scores(false)
    return first, first and not learner.agent.kind.values and scores(true)
  end, errors.handler)
  for _, module in ipairs(switched) do
    module.training = true
    if module.switched then module.switched(true) end
  end
  env:close()
  if not fine then error(sampled, 0) end
  if not sampled or not greedy and C.mn_interrupted() ~= 0 then return nil end
  local mean, low, high = fresh.interval(sampled)
  return { score = mean, low = low, high = high, greedy = greedy and (fresh.interval(greedy)) or nil, episodes = episodes, num_envs = env.num_envs,
    seed = seed }
end

return fresh
