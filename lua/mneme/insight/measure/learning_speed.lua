-- learning_speed.lua -- how fast an on-policy learner trains here: times of its rollouts and updates.
local engine = require "mneme.base.engine"
local stopwatch = require "mneme.insight.measure.stopwatch"

local C, median, timed = engine.C, stopwatch.lower_median, stopwatch.timed
local learning_speed = {}

-- Times of rollouts and updates, in seconds.
local function rate_of(l, act, update)
  local both = {}
  for i = 1, #act do both[i] = act[i] + update[i] end
  local r = { act = median(act), update = median(update), updates = #act }
  r.rate, r.least = l.T * l.B / (r.act + r.update), math.min(unpack(both))
  return r
end

-- Consecutive updates with one number of threads.  An idle thread wakes slowly, on a cold core, so the first update does not
-- count: alternating after every update, two threads of agalite took 166 ms instead of 153.
local IN_A_ROW = 6

---Training speed of an on-policy learner: medians over at least five updates, after three that are not counted.
---@param l table an A2C or a PPO
---@param seconds number about how long
---@param counts integer[]? numbers of threads, which alternate: returns a list
---@return table { rate = environment steps a second, act = seconds of a rollout, update = seconds of an update, updates,
--- least = seconds of the fastest of both }
function learning_speed.of(l, seconds, counts)
  l:begin()
  for _ = 1, 3 do l:rollout() l:update() end
  local act, update, started = {}, {}, C.mn_clock(false)
  local turns = counts and #counts or 1
  for k = 1, turns do act[k], update[k] = {}, {} end
  repeat
    for k = 1, turns do
      if counts then
        engine.check(C.mn_set_threads(engine.ctx, counts[k]))
        l:rollout()
        l:update()
      end
      for _ = 1, counts and IN_A_ROW or 1 do
        table.insert(act[k], timed(function() l:rollout() end))
        table.insert(update[k], timed(function() l:update() end))
      end
    end
  until C.mn_clock(false) - started > seconds and #act[1] >= 5
  local list = {}
  for k = 1, turns do list[k] = rate_of(l, act[k], update[k]) end
  return counts and list or list[1]
end

return learning_speed
