-- comparisons.lua -- tests whether two groups of seeds differ.  They count or rank, so they assume no distribution; for the
-- usual few seeds their p-values are exact, by enumeration, ties included.
local sample = require "mneme.stats.sample"
local special = require "mneme.stats.special"
local errors = require "mneme.base.errors"

local comparisons = {}
local EXACT_PAIRS, EXACT_RUNS = 100, 60        -- up to here all outcomes are counted; beyond, the normal distribution is near

local ROUNDING = 1e-12         -- of what a number was computed from: so much is no difference (0.3 - 0.1 is 0.2)

-- Twice each rank of a list, whole numbers because equal ones share their mean rank; and the sum of t^3 - t over ties.
-- Numbers are equal where rounding explains their difference: error_of[i] is that of number i.
local function double_ranks(list, error_of)
  local order, ranks, ties = {}, {}, 0
  for i = 1, #list do order[i] = i end
  table.sort(order, function(a, b) return list[a] < list[b] end)
  local function equal(a, b) return list[b] - list[a] <= math.max(error_of[a], error_of[b]) end
  local from = 1
  while from <= #order do
    local upto = from
    while upto < #order and equal(order[from], order[upto + 1]) do upto = upto + 1 end
    for i = from, upto do ranks[order[i]] = from + upto end
    ties = ties + (upto - from + 1) ^ 3 - (upto - from + 1)
    from = upto + 1
  end
  return ranks, ties
end

-- Twice the smaller tail of a distribution over whole sums, at the sum that was seen.
local function two_sided(chance, most, seen)
  local below, above = 0, 0
  for s = 0, most do
    if s <= seen then below = below + chance[s] end
    if s >= seen then above = above + chance[s] end
  end
  return math.min(1, 2 * math.min(below, above))
end

---The sign test (Arbuthnot 1710): the chance of wins and losses that differ so unevenly, or more, if either way were as
---likely.  Ties are left out.  Of cases that succeed or fail under two treatments it is McNemar's exact test (1947).
---@param wins integer
---@param losses integer
---@return number p two-sided
function comparisons.sign_test(wins, losses)
  sample.whole(wins, 0, "stats.sign_test: wins")
  sample.whole(losses, 0, "stats.sign_test: losses")
  if wins + losses > 1e7 then                      -- they are walked through one by one
    errors.raise(("stats.sign_test: %.0f wins and losses, expected at most 10 million"):format(wins + losses))
  end
  local n, least, term, sum = wins + losses, math.min(wins, losses), -(wins + losses) * math.log(2), 0
  for k = 0, least do
    sum = sum + math.exp(term)
    term = term + math.log((n - k) / (k + 1))
  end
  return math.min(1, 2 * sum)
end

-- What rounding may have left of a difference of two numbers.
local function rounding(a, b) return ROUNDING * math.max(math.abs(a), math.abs(b)) end

---How often x[i] is above and below y[i], which come from equal seeds: what stats.sign_test is asked.  A difference that
---rounding explains is a tie.
---@param x number[]
---@param y number[]
---@return integer wins
---@return integer losses
---@return integer ties
function comparisons.wins(x, y)
  local n, wins, losses = sample.pairs(x, y, "stats.wins"), 0, 0
  for i = 1, n do
    local d, error_of = x[i] - y[i], rounding(x[i], y[i])
    if d > error_of then wins = wins + 1 elseif d < -error_of then losses = losses + 1 end
  end
  return wins, losses, n - wins - losses
end

---Wilcoxon's signed-rank test (1945) of x[i] against y[i], which come from equal seeds.  Pairs without a difference are
---left out, and differences that are equal but for rounding (0.52 - 0.42 and 0.21 - 0.11) share their rank.  Up to 100 pairs
---p is exact, with ties too; beyond, normal with its correction for ties.
---@param x number[]
---@param y number[]
---@return number p two-sided
---@return number sum of the ranks of pairs in which x is above
---@return integer n pairs that differ
function comparisons.wilcoxon(x, y)
  local sizes, up, errors_of = {}, {}, {}
  for i = 1, sample.pairs(x, y, "stats.wilcoxon") do
    local d, error_of = x[i] - y[i], rounding(x[i], y[i])
    if math.abs(d) > error_of then sizes[#sizes + 1], up[#up + 1], errors_of[#errors_of + 1] = math.abs(d), d > 0, error_of end
  end
  local n = #sizes
  if n == 0 then return 1, 0, 0 end
  local ranks, ties = double_ranks(sizes, errors_of)
  local seen, most = 0, n * (n + 1)
  for i = 1, n do if up[i] then seen = seen + ranks[i] end end
  if n > EXACT_PAIRS then
    local z = (seen / 2 - most / 4) / math.sqrt(n * (n + 1) * (2 * n + 1) / 24 - ties / 48)
    return 2 * special.normal_cdf(-math.abs(z)), seen / 2, n
  end
  local chance = { [0] = 1 }                   -- of each sum of doubled ranks, each rank being up or down alike
  for s = 1, most do chance[s] = 0 end
  for i = 1, n do
    for s = most, 0, -1 do
      chance[s] = 0.5 * (chance[s] + (s >= ranks[i] and chance[s - ranks[i]] or 0))
    end
  end
  return two_sided(chance, most, seen), seen / 2, n
end

---Mann and Whitney's test (1947) of two lists of seeds that have nothing in common.  Up to 60 runs p is exact, with ties
---too; beyond, normal with its corrections for ties and for continuity.
---@param x number[]
---@param y number[]
---@return number p two-sided
---@return number u pairs in which x is above, ties as half
function comparisons.mann_whitney(x, y)
  local n, m = sample.numbers(x, "stats.mann_whitney"), sample.numbers(y, "stats.mann_whitney")
  local all, errors_of = {}, {}
  for i = 1, n do all[i] = x[i] end
  for i = 1, m do all[n + i] = y[i] end
  for i = 1, n + m do errors_of[i] = rounding(all[i], 0) end
  local ranks, ties = double_ranks(all, errors_of)
  local seen, N = 0, n + m
  for i = 1, n do seen = seen + ranks[i] end
  local u = (seen - n * (n + 1)) / 2
  if N > EXACT_RUNS then
    local variance = n * m / 12 * (N + 1 - ties / (N * (N - 1)))
    if variance <= 0 then return 1, u end
    local z = math.max(0, math.abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return 2 * special.normal_cdf(-z), u
  end
  -- chance[k][s]: that of the ranks seen so far k are x's and sum up to s, when x's n ranks may be any
  local most, chance = N * (N + 1), {}
  for k = 0, n do
    chance[k] = {}
    for s = 0, most do chance[k][s] = 0 end
  end
  chance[0][0] = 1
  for i = 1, N do
    for k = math.min(i, n), 0, -1 do
      local here, less = chance[k], chance[k - 1]
      local taken = math.max(0, n - k + 1) / (N - i + 1)                   -- from k - 1, rank i becomes x's
      local left = math.max(0, N - i + 1 - (n - k)) / (N - i + 1)          -- from k, it becomes y's
      for s = most, 0, -1 do
        here[s] = here[s] * left + (less and s >= ranks[i] and less[s - ranks[i]] * taken or 0)
      end
    end
  end
  return two_sided(chance[n], most, seen), u
end

---Holm's correction (1979, "A simple sequentially rejective multiple test procedure"): of several p-values those that,
---each compared with the same threshold, err in one of all with no more than the threshold's probability.
---@param p number[]
---@return number[] adjusted in the same order
function comparisons.holm(p)
  local n, order, adjusted, least = sample.numbers(p, "stats.holm"), {}, {}, 0
  for i = 1, n do
    if p[i] < 0 or p[i] > 1 then errors.raise(("stats.holm: value %d is %s, expected a p-value from 0 to 1"):format(i, tostring(p[i]))) end
    order[i] = i
  end
  table.sort(order, function(a, b) return p[a] < p[b] end)
  for k, i in ipairs(order) do
    least = math.max(least, math.min(1, (n - k + 1) * p[i]))
    adjusted[i] = least
  end
  return adjusted
end

return comparisons
