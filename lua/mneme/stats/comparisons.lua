-- comparisons.lua -- counts in which of equal seeds one of two groups is above the other, the exact test of that, and the correction of several
-- p-values.
local sample = require "mneme.stats.sample"
local errors = require "mneme.base.errors"

local comparisons = {}

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
    local d = sample.difference(x[i], y[i])
    if d > 0 then wins = wins + 1 elseif d < 0 then losses = losses + 1 end
  end
  return wins, losses, n - wins - losses
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
