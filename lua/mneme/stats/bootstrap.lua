-- bootstrap.lua -- bootstrap intervals: draws seeds with replacement within each task, and computes the
-- statistic of each draw (Efron 1979; stratified as in Agarwal et al. 2021, "Deep reinforcement learning at
-- the edge of the statistical precipice").  Draw r is a function of the option `seed` and of r only, by the engine's
-- counter-based random numbers, so equal seeds give equal intervals everywhere.
local resampling = require "mneme.stats.resampling"
local sample = require "mneme.stats.sample"
local errors = require "mneme.base.errors"

local bootstrap = {}

-- One number and its interval: the statistic of the sets, and of their draws.
local function one(what, sets, enough, together, options, statistic)
  local o = resampling.options(what, options)
  local value = statistic(unpack(sets))
  if type(value) ~= "number" then errors.raise(("%s: the statistic gives %s, expected a number"):format(what, tostring(value))) end
  sample.number(value, what .. ": what the statistic gives")
  if not enough then return value end
  local low, high = resampling.bands(what, sets, together, 1, o, function(out, x, y) out[1] = statistic(x, y) end)
  return value, low[1], high[1]
end

local function need_function(statistic, what)
  if type(statistic) ~= "function" then
    errors.raise(("%s: the statistic is %s, expected a function of scores, such as mn.stats.iqm"):format(what, tostring(statistic)))
  end
end

---A statistic with its interval by the stratified percentile bootstrap.
---@param scores number[]|number[][] one number per seed, or scores[task][seed]
---@param statistic fun(scores: number[][]): number such as stats.iqm
---@param options table? { reps = 10000, level = 0.95, seed = 1 }
---@return number value
---@return number? low nil of one seed
---@return number? high
function bootstrap.interval(scores, statistic, options)
  need_function(statistic, "stats.interval")
  local rows, seeds = sample.rows(scores, "stats.interval")
  return one("stats.interval", { rows }, seeds > 1, false, options, statistic)
end

---By how much a statistic of x is above that of y, where seed i of both is equal: they are drawn together, so that what the seed alone decides falls out.
---@param x number[]|number[][]
---@param y number[]|number[][] the same tasks and seeds
---@param statistic fun(scores: number[][]): number
---@param options table? { reps = 10000, level = 0.95, seed = 1 }
---@return number difference
---@return number? low nil of one seed
---@return number? high
function bootstrap.paired_difference(x, y, statistic, options)
  need_function(statistic, "stats.paired_difference")
  local a, b, n, m = sample.two_rows(x, y, "stats.paired_difference")
  if n ~= m then errors.raise(("stats.paired_difference: %d and %d seeds, expected equal seeds in both"):format(n, m)) end
  return one("stats.paired_difference", { a, b }, n > 1, true, options, function(s, u) return statistic(s) - statistic(u) end)
end

-- How often a run of x is better than one of y, by Mann and Whitney's count of pairs, averaged over tasks.
local function improvement(x, y)
  local sum = 0
  for i = 1, #x do
    local a, b, wins = x[i], y[i], 0
    for j = 1, #a do
      local v = a[j]
      for k = 1, #b do
        local above = sample.difference(v, b[k])
        if above > 0 then wins = wins + 1 elseif above == 0 then wins = wins + 0.5 end
      end
    end
    sum = sum + wins / (#a * #b)
  end
  return sum / #x
end

---The probability of improvement (Agarwal et al. 2021): that a run of x is better than one of y on a task, averaged over
---tasks; equal ones count as half.  Both are drawn again by themselves.
---@param x number[]|number[][]
---@param y number[]|number[][] the same tasks; as many seeds or not
---@param options table? { reps = 10000, level = 0.95, seed = 1 }
---@return number probability
---@return number? low nil where there is one seed
---@return number? high
function bootstrap.probability_of_improvement(x, y, options)
  local a, b, n, m = sample.two_rows(x, y, "stats.probability_of_improvement")
  return one("stats.probability_of_improvement", { a, b }, n > 1 and m > 1, false, options, improvement)
end

return bootstrap
