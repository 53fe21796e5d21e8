-- ridge.lua -- ridge regression in its dual form: predictions that leave the sample out, and probabilities of classes from such predictions.
local ffi = require "ffi"

local ridge = {}

---The diagonal of the inverse of L L^T: of each sample, how much its own answer counts in its prediction.
---@param l ffi.cdata* of cholesky.factor
---@param n integer
---@return ffi.cdata* double[n]
function ridge.inverse_diagonal(l, n)
  local diagonal, column = ffi.new("double[?]", n), ffi.new("double[?]", n)
  for j = 0, n - 1 do                              -- column j of the inverse of L
    column[j] = 1 / l[j * n + j]
    for i = j + 1, n - 1 do
      local sum = 0
      for k = j, i - 1 do sum = sum - l[i * n + k] * column[k] end
      column[i] = sum / l[i * n + i]
    end
    for i = j, n - 1 do diagonal[j] = diagonal[j] + column[i] * column[i] end
  end
  return diagonal
end

---Probabilities of classes from their scores, with a given sharpness.
---@param scores number[] one for each class
---@param sharpness number
---@return number[] sums to 1
function ridge.probabilities(scores, sharpness)
  local top, sum, p = -math.huge, 0, {}
  for _, s in ipairs(scores) do top = math.max(top, s) end
  for k, s in ipairs(scores) do p[k] = math.exp(sharpness * (s - top)) sum = sum + p[k] end
  for k in ipairs(p) do p[k] = p[k] / sum end
  return p
end

---The sharpness with which probabilities from scores are the likeliest.
---@param scores number[][] of each sample, one for each class; of predictions that did not see the sample's answer
---@param answers integer[] the right class of each, from 1
---@return number
---@return number likelihood the mean logarithm of the probabilities of the right classes with it
function ridge.sharpness(scores, answers)
  local function cost(log)
    local sharpness, sum = math.exp(log), 0
    for i, s in ipairs(scores) do
      local top, all = -math.huge, 0
      for k = 1, #s do top = math.max(top, s[k]) end
      for k = 1, #s do all = all + math.exp(sharpness * (s[k] - top)) end
      sum = sum + math.log(all) - sharpness * (s[answers[i]] - top)
    end
    return sum
  end
  local lo, hi, golden = -6, 5, (math.sqrt(5) - 1) / 2
  local a, b = hi - golden * (hi - lo), lo + golden * (hi - lo)
  local fa, fb = cost(a), cost(b)
  for _ = 1, 24 do
    if fa < fb then
      hi, b, fb = b, a, fa
      a = hi - golden * (hi - lo)
      fa = cost(a)
    else
      lo, a, fa = a, b, fb
      b = lo + golden * (hi - lo)
      fb = cost(b)
    end
  end
  return math.exp((lo + hi) / 2), -math.min(fa, fb) / #scores
end

return ridge
