-- intervals.lua -- intervals by formula: of proportions (Wilson, Newcombe) and of means (Student, Welch).  Each returns the
-- estimate, the lower and the upper end.
local sample = require "mneme.stats.sample"
local describe = require "mneme.stats.describe"
local special = require "mneme.stats.special"
local errors = require "mneme.base.errors"

local intervals = {}

-- Wilson's limits of a share p of n trials, at a quantile z.
local function score_limits(p, n, z)
  local middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
  return math.max(0, (middle - half) / (1 + z * z / n)), math.min(1, (middle + half) / (1 + z * z / n))
end

---A share with its score interval (Wilson 1927, "Probable inference, the law of succession, and statistical inference").
---It is for independent trials: the episodes of one run, or seeds that succeed or fail; episodes of several runs are not.
---@param successes number 0 .. n
---@param n integer trials
---@param level number? default 0.95
---@return number share
---@return number low
---@return number high
function intervals.wilson(successes, n, level)
  sample.whole(n, 1, "stats.wilson: n")
  if type(successes) ~= "number" or not (successes >= 0 and successes <= n) then
    errors.raise(("stats.wilson: successes are %s, expected a number from 0 to n=%d"):format(tostring(successes), n))
  end
  return successes / n, score_limits(successes / n, n, special.normal_quantile(0.5 + sample.level(level, "stats.wilson") / 2))
end

---How many seeds solve a task, with Wilson's interval of their share: a mean of scores that are near 0 or near 1 hides this.
---@param list number[] a score per seed
---@param threshold number a seed solves the task where its score reaches it
---@param level number? default 0.95
---@return integer solved
---@return integer n seeds
---@return number low
---@return number high
function intervals.solved(list, threshold, level)
  local n, solved = sample.numbers(list, "stats.solved"), 0
  sample.number(threshold, "stats.solved: threshold")
  for i = 1, n do if list[i] >= threshold then solved = solved + 1 end end
  local _, low, high = intervals.wilson(solved, n, level)
  return solved, n, low, high
end

---The difference of two shares of the same n cases: Newcombe (1998), "Improved confidence intervals for the difference
---between binomial proportions based on paired data", method 10: of Wilson's limits, corrected for how they hang together.
---@param both integer cases in which both succeed
---@param first integer in which the first alone does
---@param second integer
---@param neither integer
---@param level number? default 0.95
---@return number difference the first's share less the second's
---@return number low
---@return number high
function intervals.paired_shares(both, first, second, neither, level)
  for i, name in ipairs { "both", "first", "second", "neither" } do
    sample.whole(select(i, both, first, second, neither), 0, "stats.paired_shares: " .. name)
  end
  local n = both + first + second + neither
  local p, p_low, p_high = intervals.wilson(both + first, n, level)
  local q, q_low, q_high = intervals.wilson(both + second, n, level)
  local product = (both + first) * (second + neither) * (both + second) * (first + neither)
  local cross = both * neither - first * second
  if cross > 0 then cross = math.max(0, cross - n / 2) end
  local phi = product > 0 and cross / math.sqrt(product) or 0
  local function half(a, b) return math.sqrt(math.max(0, a * a - 2 * phi * a * b + b * b)) end
  return p - q, p - q - half(p - p_low, q_high - q), p - q + half(p_high - p, q - q_low)
end

-- An estimate, its interval and the p-value of 0, from its standard error.
local function student(estimate, error_of, df, level)
  if error_of == 0 then return estimate, estimate, estimate, estimate == 0 and 1 or 0 end
  local half = error_of * special.student_quantile(0.5 + level / 2, df)
  return estimate, estimate - half, estimate + half, 2 * special.student_cdf(-math.abs(estimate) / error_of, df)
end

---The mean with Student's t interval (1908): exact for normal numbers, good for others from some ten on.
---@param list number[] one per seed
---@param level number? default 0.95
---@return number mean
---@return number? low nil of one number
---@return number? high
---@return number? p two-sided, of a mean of 0
function intervals.t_interval(list, level)
  local n = sample.numbers(list, "stats.t_interval")
  level = sample.level(level, "stats.t_interval")
  if n == 1 then return list[1] end
  return student(describe.mean(list), describe.sd(list) / math.sqrt(n), n - 1, level)
end

-- The share that a mean is of a range, and as how many independent trials its spread is; nil: they are all equal.
local function as_trials(list, n, from, to)
  local share, error_of = (describe.mean(list) - from) / (to - from), describe.sd(list) / math.sqrt(n) / (to - from)
  if error_of > 0 and share > 0 and share < 1 then return share, share * (1 - share) / error_of ^ 2 end
end

---The mean of numbers that cannot leave a range, with an interval that does not either: Wilson's, of as many trials as
---would spread so much, with Student's t in place of the normal quantile (Korn and Graubard 1998, "Confidence intervals
---for proportions with small expected number of positive counts"; with Wilson's form: Franco et al. 2019).  In the
---middle of the range, of seeds that differ little, it is nearly Student's interval; at the ends, where that one reaches beyond, it holds more often.
---@param list number[] one per seed, from `from` to `to`
---@param from number the least that is possible
---@param to number the most
---@param level number? default 0.95
---@param value number? `from` .. `to`; p is of this mean, default 0
---@return number mean
---@return number? low nil of one number
---@return number? high
---@return number? p two-sided
function intervals.bounded_interval(list, from, to, level, value)
  local what = "stats.bounded_interval"
  local n = sample.numbers(list, what)
  local function inside(v, name)
    if not (v >= from and v <= to) then errors.raise(("%s: %s is %g, expected a number from %g to %g"):format(what, name, v, from, to)) end
  end
  sample.number(from, what .. ": from")
  sample.number(to, what .. ": to")
  if from >= to then errors.raise(("%s: from %g to %g is no range"):format(what, from, to)) end
  level, value = sample.level(level, what), sample.number(value or math.max(from, math.min(to, 0)), what .. ": value")
  inside(value, "value")
  for i, v in ipairs(list) do inside(v, "number " .. i) end
  local mean = describe.mean(list)
  if n == 1 then return mean end
  local p, trials = as_trials(list, n, from, to)
  if not p then return mean, mean, mean, sample.difference(mean, value) == 0 and 1 or 0 end
  local low, high = score_limits(p, trials, special.student_quantile(0.5 + level / 2, n - 1))
  local asked = (value - from) / (to - from)
  local apart = math.abs(p - asked) / math.sqrt(asked * (1 - asked) / trials)
  return mean, from + (to - from) * low, from + (to - from) * high, 2 * special.student_cdf(-apart, n - 1)
end

---The mean of x[i] - y[i] with Student's t interval: number i of both comes from the same seed, so that what the seed
---alone decides falls out.
---@param x number[]
---@param y number[]
---@param level number? default 0.95
---@return number difference
---@return number? low nil of one seed
---@return number? high
---@return number? p two-sided, of no difference
function intervals.paired_t_interval(x, y, level)
  local differences = {}
  for i = 1, sample.pairs(x, y, "stats.paired_t_interval") do differences[i] = sample.difference(x[i], y[i]) end
  return intervals.t_interval(differences, level)
end

---The difference of two means, of seeds that have nothing in common, with Welch's t interval (1947, "The generalization
---of 'Student's' problem when several different population variances are involved").
---@param x number[]
---@param y number[]
---@param level number? default 0.95
---@return number difference
---@return number? low nil where a list has one number
---@return number? high
---@return number? p two-sided, of no difference
function intervals.welch_interval(x, y, level)
  local n, m = sample.numbers(x, "stats.welch_interval"), sample.numbers(y, "stats.welch_interval")
  level = sample.level(level, "stats.welch_interval")
  local difference = sample.difference(describe.mean(x), describe.mean(y))
  if n == 1 or m == 1 then return difference end
  local a, b = describe.sd(x) ^ 2 / n, describe.sd(y) ^ 2 / m
  local share = a + b > 0 and a / (a + b) or 0.5
  local df = 1 / (share ^ 2 / (n - 1) + (1 - share) ^ 2 / (m - 1))
  return student(difference, math.sqrt(a + b), df, level)
end

return intervals
