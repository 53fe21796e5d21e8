-- survival.lua -- statistics of runs that solve their task or do not, and of when they do: exact tests of two shares, Kaplan-Meier
-- curves, and the log-rank test with runs that had not solved it at their end (censored).
local errors = require "mneme.base.errors"
local sample = require "mneme.stats.sample"
local special = require "mneme.stats.special"
local tables = require "mneme.base.tables"

local survival = {}
local ALIKE = 1e-7                 -- p-values and sums this near, as a share, are ties
local MOST = 2e5                   -- arrangements of two groups that are enumerated
local GRID = 512                   -- values of the unknown share in Boschloo's test

local function check_counts(what, k, n, ...)
  if type(k) ~= "number" or type(n) ~= "number" or not (n >= 1 and n <= 1000 and n % 1 == 0 and k >= 0 and k <= n and k % 1 == 0) then
    errors.raise(("%s: %s of %s, expected whole numbers, 0 <= k <= n, 1 <= n <= 1000"):format(what, tostring(k), tostring(n)))
  end
  if select("#", ...) > 0 then check_counts(what, ...) end
end

-- Logarithms of factorials.
local log_factorial = { [0] = 0 }
local function log_choose(n, k)
  for i = #log_factorial + 1, n do log_factorial[i] = log_factorial[i - 1] + math.log(i) end
  return log_factorial[n] - log_factorial[k] - log_factorial[n - k]
end

---The natural logarithm of the number of ways to choose k of n; a fault if not 0 <= k <= n <= 1000.
---@param n integer
---@param k integer
---@return number
function survival.log_choose(n, k)
  check_counts("stats.log_choose", k, n)
  return log_choose(n, k)
end

-- One-sided p-values of Fisher's test for k successes of n and j of m: of at least k, and of at most k.
local function tails(k, n, j, m)
  local total, all, above, below = k + j, log_choose(n + m, k + j), 0, 0
  for i = math.max(0, total - m), math.min(n, total) do
    local p = math.exp(log_choose(n, i) + log_choose(m, total - i) - all)
    if i >= k then above = above + p end
    if i <= k then below = below + p end
  end
  return math.min(1, above), math.min(1, below)
end

---Fisher's exact test of two shares, k of n and j of m (Fisher 1935): two-sided, the sum of all tables that are no more probable.
---@param k integer
---@param n integer
---@param j integer
---@param m integer
---@return number p
function survival.fisher(k, n, j, m)
  check_counts("stats.fisher", k, n, j, m)
  local total, all, p = k + j, log_choose(n + m, k + j), 0
  local seen = math.exp(log_choose(n, k) + log_choose(m, j) - all)
  for i = math.max(0, total - m), math.min(n, total) do
    local q = math.exp(log_choose(n, i) + log_choose(m, total - i) - all)
    if q <= seen * (1 + ALIKE) then p = p + q end
  end
  return math.min(1, p)
end

-- Boschloo's one-sided p-value from the Fisher tails of all tables: the largest probability, over the unknown common share, of tables
-- whose tail is no larger.
local function unconditional(n, m, tail, seen)
  local inside = {}
  for i = 0, n do
    for h = 0, m do
      if tail[i][h] <= seen * (1 + ALIKE) then inside[#inside + 1] = { i + h, log_choose(n, i) + log_choose(m, h) } end
    end
  end
  local most = 0
  for g = 1, GRID - 1 do
    local share, sum = g / GRID, 0
    local yes, no = math.log(share), math.log(1 - share)
    for _, at in ipairs(inside) do sum = sum + math.exp(at[2] + at[1] * yes + (n + m - at[1]) * no) end
    most = math.max(most, sum)
  end
  return math.min(1, most)
end

local kept = {}                    -- the last sizes, since a study asks for the same ones again and again

-- Fisher's one-sided tails of all tables of n and m seeds: [k][j].
local function tables_of(n, m)
  if kept.n ~= n or kept.m ~= m then
    local above, below = {}, {}
    for i = 0, n do
      above[i], below[i] = {}, {}
      for h = 0, m do above[i][h], below[i][h] = tails(i, n, h, m) end
    end
    kept = { n = n, m = m, above = above, below = below }
  end
  return kept.above, kept.below
end

---Boschloo's exact test of two shares, k of n and j of m (Boschloo 1970, Raised conditional level of significance): uniformly more
---powerful than Fisher's; two-sided, twice the smaller one-sided p-value.
---@param k integer
---@param n integer at most 100, as m
---@param j integer
---@param m integer
---@return number p
function survival.boschloo(k, n, j, m)
  check_counts("stats.boschloo", k, n, j, m)
  if n > 100 or m > 100 then return survival.fisher(k, n, j, m) end
  local above, below = tables_of(n, m)
  return math.min(1, 2 * math.min(unconditional(n, m, above, above[k][j]), unconditional(n, m, below, below[k][j])))
end

---The difference of two independent shares, k/n - j/m, with Newcombe's interval from Wilson's (1998, method 10).
---@param k integer
---@param n integer
---@param j integer
---@param m integer
---@param level number? default 0.95
---@return number estimate
---@return number low
---@return number high
function survival.share_difference(k, n, j, m, level)
  check_counts("stats.share_difference", k, n, j, m)
  local wilson = require("mneme.stats.intervals").wilson
  local p, p_low, p_high = wilson(k, n, level)
  local q, q_low, q_high = wilson(j, m, level)
  return p - q, p - q - math.sqrt((p - p_low) ^ 2 + (q_high - q) ^ 2), p - q + math.sqrt((p_high - p) ^ 2 + (q - q_low) ^ 2)
end

local function check_events(times, solved, what)
  local n = sample.numbers(times, what)
  if type(solved) ~= "table" or #solved ~= n then
    errors.raise(("%s: %d times and %s, expected as many values true or false"):format(what, n,
      type(solved) == "table" and #solved .. " events" or "a " .. type(solved)))
  end
  for i = 1, n do if times[i] < 0 then errors.raise(("%s: time %d is %g, expected 0 or more"):format(what, i, times[i])) end end
  return n
end

-- Times in order: { time, events, at_risk before it }.
local function table_of(times, solved, what)
  local n, order, rows = check_events(times, solved, what), {}, {}
  for i = 1, n do order[i] = i end
  table.sort(order, function(a, b) return times[a] < times[b] end)
  for place, i in ipairs(order) do
    local row = rows[#rows]
    if not row or row.time ~= times[i] then
      row = { time = times[i], events = 0, at_risk = n - place + 1 }
      rows[#rows + 1] = row
    end
    row.events = row.events + (solved[i] and 1 or 0)
  end
  return rows
end

---The share of runs that have solved their task by each time: 1 - Kaplan and Meier's estimate (1958).
---@param times number[] when a run solved it, or ended without
---@param solved boolean[] did it?
---@return table curve { x = times at which the share rises, y = the share from there on }; the first is 0, 0
---@return number? median time by which half have solved it; nil: fewer have
function survival.kaplan_meier(times, solved)
  local left, curve, median = 1, { x = { 0 }, y = { 0 } }, nil
  for _, row in ipairs(table_of(times, solved, "stats.kaplan_meier")) do
    if row.events > 0 then
      left = left * (1 - row.events / row.at_risk)
      curve.x[#curve.x + 1], curve.y[#curve.y + 1] = row.time, 1 - left
      if not median and left <= 0.5 + 1e-12 then median = row.time end
    end
  end
  return curve, median
end

-- Log-rank scores: event less the cumulative hazard (Nelson and Aalen) of all runs together at each run's time.
local function scores_of(times, solved)
  local hazard, at = 0, {}
  for _, row in ipairs(table_of(times, solved, "stats.log_rank")) do
    hazard = hazard + row.events / row.at_risk
    at[row.time] = hazard
  end
  return tables.map(times, function(time, i) return (solved[i] and 1 or 0) - at[time] end)
end

-- Two-sided p of the sum of n of these scores by enumeration; and how many arrangements there are.
local function enumerate(scores, n, seen)
  local extreme, all, limit = 0, 0, math.abs(seen) * (1 - ALIKE) - 1e-12
  local function choose(from, left, sum)
    if left == 0 then
      all = all + 1
      if math.abs(sum) >= limit then extreme = extreme + 1 end
      return
    end
    for i = from, #scores - left + 1 do choose(i + 1, left - 1, sum + scores[i]) end
  end
  choose(1, n, 0)
  return extreme / all
end

---The log-rank test: do two groups of runs solve their task at different times?  A permutation test of log-rank scores, exact up to
---200,000 arrangements, else by its normal approximation (Mantel 1966; Peto and Peto 1972).  Runs that did not solve it count up to their
---end; the groups should have had the same budget.
---@param times number[] of the first group
---@param solved boolean[]
---@param others number[] of the second group
---@param others_solved boolean[]
---@return number p two-sided
---@return number score > 0: the first group is sooner
function survival.log_rank(times, solved, others, others_solved)
  local n, m = check_events(times, solved, "stats.log_rank"), check_events(others, others_solved, "stats.log_rank")
  local all, events = {}, {}
  for i = 1, n do all[i], events[i] = times[i], solved[i] == true end
  for i = 1, m do all[n + i], events[n + i] = others[i], others_solved[i] == true end
  local scores, seen, squares = scores_of(all, events), 0, 0
  for i, s in ipairs(scores) do
    if i <= n then seen = seen + s end
    squares = squares + s * s
  end
  if squares == 0 then return 1, 0 end
  if log_choose(n + m, n) <= math.log(MOST) then return enumerate(scores, n, seen), seen end
  local variance = squares * n * m / ((n + m) * (n + m - 1))
  return 2 * special.normal_cdf(-math.abs(seen) / math.sqrt(variance)), seen
end

return survival
