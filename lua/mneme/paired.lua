-- paired.lua -- what two treatments of the same cases differ by: intervals for paired shares and means, 95 %.
local held_out = require "mneme.held_out"

local paired = {}
local Z = 1.959963984540054

---The difference of two shares of the same n cases: Newcombe (1998), "Improved confidence intervals for the difference
---between binomial proportions based on paired data", method 10: of Wilson's limits, corrected for how they hang together.
---@param both integer cases in which both succeed
---@param first integer in which the first alone does
---@param second integer
---@param neither integer
---@return number difference the first's share less the second's
---@return number low
---@return number high
function paired.shares(both, first, second, neither)
  local n = both + first + second + neither
  local p, q = (both + first) / n, (both + second) / n
  local p_low, p_high = held_out.wilson(both + first, n)
  local q_low, q_high = held_out.wilson(both + second, n)
  local product = (both + first) * (second + neither) * (both + second) * (first + neither)
  local cross = both * neither - first * second
  if cross > 0 then cross = math.max(0, cross - n / 2) end
  local phi = product > 0 and cross / math.sqrt(product) or 0
  local function half(a, b) return math.sqrt(math.max(0, a * a - 2 * phi * a * b + b * b)) end
  return p - q, p - q - half(p - p_low, q_high - q), p - q + half(p_high - p, q - q_low)
end

---McNemar's exact test: the chance of cases that differ so unevenly, or more, if either way were as likely.
---@param first integer cases in which the first alone succeeds
---@param second integer
---@return number p two-sided
function paired.mcnemar(first, second)
  local n, least, term, sum = first + second, math.min(first, second), -(first + second) * math.log(2), 0
  for k = 0, least do
    sum = sum + math.exp(term)
    term = term + math.log((n - k) / (k + 1))
  end
  return math.min(1, 2 * sum)
end

---A mean and half its interval (by the normal distribution; 0 of one number).
---@param list number[]
---@return number mean
---@return number half
function paired.mean(list)
  local sum, square = 0, 0
  for _, v in ipairs(list) do sum = sum + v end
  local m = sum / #list
  for _, v in ipairs(list) do square = square + (v - m) ^ 2 end
  return m, #list > 1 and Z * math.sqrt(square / (#list - 1) / #list) or 0
end

return paired
