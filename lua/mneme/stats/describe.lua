-- describe.lua -- summary statistics: mean, median, interquartile mean, optimality gap, spread.  Each takes a list, one
-- number per seed, or scores[task][seed], and can be passed to the bootstrap.
local sample = require "mneme.stats.sample"
local errors = require "mneme.base.errors"

local describe = {}

-- Over all runs of all tasks.
local function pooled_mean(rows, seeds)
  local sum = 0
  for i = 1, #rows do
    local row = rows[i]
    for k = 1, seeds do sum = sum + row[k] end
  end
  return sum / (#rows * seeds)
end

---The mean over all runs of all tasks.
---@param scores number[]|number[][]
---@return number
function describe.mean(scores) return pooled_mean(sample.rows(scores, "stats.mean")) end

---The standard deviation of what the list is a sample of (n - 1 in the denominator); nil of one number.
---@param list number[]
---@return number?
function describe.sd(list)
  local n = sample.numbers(list, "stats.sd")
  if n == 1 then return nil end
  local m, square, equal = pooled_mean({ list }, n), 0, true
  for i = 1, n do square, equal = square + (list[i] - m) ^ 2, equal and list[i] == list[1] end
  return equal and 0 or math.sqrt(square / (n - 1))            -- the mean of equal numbers is rounded
end

---The p-quantile over all runs of all tasks: linear between neighbours (Hyndman and Fan 1996, type 7).
---@param scores number[]|number[][]
---@param p number 0 .. 1
---@return number
function describe.quantile(scores, p)
  if type(p) ~= "number" or not (p >= 0 and p <= 1) then
    errors.raise(("stats.quantile: p is %s, expected a number from 0 to 1"):format(tostring(p)))
  end
  local x, n = sample.sorted((sample.rows(scores, "stats.quantile")))
  return sample.quantile(x, 0, n, p)
end

---The median over all runs of all tasks.
---@param scores number[]|number[][]
---@return number
function describe.median(scores)
  local x, n = sample.sorted((sample.rows(scores, "stats.median")))
  return sample.quantile(x, 0, n, 0.5)
end

---The median over tasks of the mean over seeds: what benchmarks of many tasks used to report; few tasks decide it
---(Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice", section 4).
---@param scores number[][]
---@return number
function describe.task_median(scores)
  local rows, seeds = sample.rows(scores, "stats.task_median")
  local means = {}
  for i = 1, #rows do means[i] = pooled_mean({ rows[i] }, seeds) end
  return describe.median(means)
end

---The interquartile mean (Agarwal et al. 2021): of all runs of all tasks together the lowest and the highest quarter,
---rounded down, are left out, and the mean of the others is taken: scipy.stats.trim_mean(scores, 0.25, axis=None).
---Of fewer than four runs none is left out, and it is the mean.
---@param scores number[]|number[][]
---@return number
function describe.iqm(scores)
  local x, n = sample.sorted((sample.rows(scores, "stats.iqm")))
  local cut, sum = math.floor(n / 4), 0
  for i = cut, n - cut - 1 do sum = sum + x[i] end
  return sum / (n - 2 * cut)
end

---How far runs stay behind a goal, on average; one beyond it counts as one that reaches it (Agarwal et al. 2021).
---@param scores number[]|number[][]
---@param goal number? default 1
---@return number
function describe.optimality_gap(scores, goal)
  goal = sample.number(goal or 1, "stats.optimality_gap: goal")
  local rows, seeds = sample.rows(scores, "stats.optimality_gap")
  local sum = 0
  for i = 1, #rows do
    local row = rows[i]
    for k = 1, seeds do sum = sum + math.min(row[k], goal) end
  end
  return goal - sum / (#rows * seeds)
end

return describe
