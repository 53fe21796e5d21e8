-- ridge.lua -- ridge regression in its dual form, from inner products of the samples: fits, controls with shuffled answers, predictions that
-- leave the sample out, and probabilities of classes from such predictions.
local ffi = require "ffi"

local ridge = {}

-- Cholesky's factor L of A = L L', in the lower half of A, a positive definite matrix of n rows.
local function cholesky(a, n)
  for j = 0, n - 1 do
    local row = j * n
    for i = j, n - 1 do
      local other = i * n
      local s = a[other + j]
      for k = 0, j - 1 do s = s - a[other + k] * a[row + k] end
      if i == j and not (s > 0) then return end
      a[other + j] = i == j and math.sqrt(s) or s / a[row + j]
    end
  end
end

---x with L L' x = b, in place of b.
---@param l ffi.cdata* of ridge.factor
---@param b ffi.cdata* double[n]
function ridge.solve(l, n, b)
  for i = 0, n - 1 do
    local s = b[i]
    for k = 0, i - 1 do s = s - l[i * n + k] * b[k] end
    b[i] = s / l[i * n + i]
  end
  for i = n - 1, 0, -1 do
    local s = b[i]
    for k = i + 1, n - 1 do s = s - l[k * n + i] * b[k] end
    b[i] = s / l[i * n + i]
  end
end

---The factor of the products of the samples to learn from, with the penalty on their diagonal.
---@param products ffi.cdata* double[n][n]: inner products of all samples
---@param list integer[] samples of the question, from 1, those to learn from first
---@param learn integer how many these are
---@param penalty number a share of the mean square of a sample
---@return ffi.cdata* l double[learn][learn]: L, in the lower half, of the products as L L'
function ridge.factor(products, n, list, learn, penalty)
  local square, l = 0, ffi.new("double[?]", learn * learn)
  for i = 1, learn do square = square + products[(list[i] - 1) * (n + 1)] / learn end
  local more = penalty * square + 1e-9
  for a = 0, learn - 1 do
    for b = 0, learn - 1 do l[a * learn + b] = products[(list[a + 1] - 1) * n + list[b + 1] - 1] + (a == b and more or 0) end
  end
  cholesky(l, learn)
  return l
end

---Fit the samples to learn from, and predict the others.
---@param l ffi.cdata* of ridge.factor, of the same products, list and learn
---@param target number[] of the first `learn` of the list
---@return table { mean, a = double[learn]: what each sample adds for its product with another, said = predictions of the others }
function ridge.fit(products, n, list, learn, l, target)
  local mean, a = 0, ffi.new("double[?]", learn)
  for i = 1, learn do mean = mean + target[i] / learn end
  for i = 1, learn do a[i - 1] = target[i] - mean end
  ridge.solve(l, learn, a)
  local said = {}
  for i = learn + 1, #list do
    local sum, row = mean, (list[i] - 1) * n - 1
    for j = 1, learn do sum = sum + products[row + list[j]] * a[j - 1] end
    said[i - learn] = sum
  end
  return { mean = mean, a = a, said = said }
end

---The first `learn` of a list in another order: answers of a control (Hewitt and Liang 2019).
---@param dice table of example_random
---@return any[]
function ridge.shuffled(list, learn, dice)
  local mixed, of = ffi.new("int[?]", learn), {}
  dice:choose(mixed, learn, learn)
  for i = 1, learn do of[i] = list[mixed[i - 1] + 1] end
  return of
end

---The share of the variance of the answers after the first `learn` that predictions explain, 0 if negative; nil: they do not vary.
---@return number?
function ridge.explained(said, y, learn)
  local n, mean, left, all = #y - learn, 0, 0, 0
  for i = 1, n do mean = mean + y[learn + i] / n end
  for i = 1, n do left, all = left + (y[learn + i] - said[i]) ^ 2, all + (y[learn + i] - mean) ^ 2 end
  return all > 1e-12 and math.max(0, 1 - left / all) or nil
end

---The diagonal of the inverse of L L^T: of each sample, how much its own answer counts in its prediction.
---@param l ffi.cdata* of ridge.factor
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
