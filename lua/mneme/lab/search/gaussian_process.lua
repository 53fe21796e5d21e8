-- gaussian_process.lua -- a Gaussian process over points of a cube: Matérn's kernel 5/2 with a length for each coordinate, a noise of
-- its own for each point, and a constant mean (Rasmussen and Williams 2006, algorithm 2.1).  For up to some hundreds of points.
local ffi = require "ffi"
local cholesky = require "mneme.stats.cholesky"

local gp = {}
local ROOT5, LOG_2PI = math.sqrt(5), math.log(2 * math.pi)
local JITTER = 1e-8                -- of the variance: what keeps the factor of equal points defined

---@class GaussianProcess
---@field n integer points
---@field x number[][] points
---@field variance number of the function
---@field lengths number[] a length for each coordinate
---@field mean number of the function
---@field log_likelihood number of what was observed
local GP = {}
GP.__index = GP

---The covariance of the function at two points.
function GP:kernel(a, b)
  local lengths, sum = self.lengths, 0
  for d = 1, #a do
    local far = (a[d] - b[d]) / lengths[d]
    sum = sum + far * far
  end
  local r = ROOT5 * math.sqrt(sum)
  return self.variance * (1 + r + r * r / 3) * math.exp(-r)
end

---The factor of the covariance of the function at points, with noise added.
---@param points number[][]
---@param noise number[]? variance of each; nil: none
---@return ffi.cdata* L n x n doubles
function GP:factor(points, noise)
  local n = #points
  local L, jitter = ffi.new("double[?]", n * n), JITTER
  while true do
    for i = 1, n do
      for j = 1, i - 1 do L[(i - 1) * n + j - 1] = self:kernel(points[i], points[j]) end
      L[(i - 1) * n + i - 1] = self.variance * (1 + jitter) + (noise and noise[i] or 0)
    end
    if cholesky.factor(L, n) then return L end
    jitter = jitter * 100
  end
end

---A process that has seen values at points.
---@param x number[][] points
---@param y number[] a value each
---@param noise number[] the variance of each value
---@param o table { variance, lengths, mean = nil: the likeliest }
---@return GaussianProcess
function gp.new(x, y, noise, o)
  local n = #x
  local self = setmetatable({ n = n, x = x, y = y, noise = noise, variance = o.variance, lengths = o.lengths }, GP)
  self.L = self:factor(x, noise)
  local function solved(b)
    cholesky.forward(self.L, n, b)
    cholesky.backward(self.L, n, b)
    return b
  end
  local ones, weights = ffi.new("double[?]", n), ffi.new("double[?]", n)
  for i = 0, n - 1 do ones[i], weights[i] = 1, y[i + 1] end
  solved(weights)
  solved(ones)
  local above, below = 0, 0
  for i = 0, n - 1 do above, below = above + weights[i], below + ones[i] end
  self.mean = o.mean or above / below
  local fit, logs = 0, 0
  for i = 0, n - 1 do
    weights[i] = weights[i] - self.mean * ones[i]
    fit, logs = fit + (y[i + 1] - self.mean) * weights[i], logs + math.log(self.L[i * n + i])
  end
  self.weights = weights                         -- (K + noise)^-1 (y - mean)
  self.log_likelihood = -0.5 * fit - logs - 0.5 * n * LOG_2PI
  return self
end

---What is expected of the function at a point.
---@param point number[]
---@return number mean
---@return number variance of the function, without the noise of observing it
function GP:predict(point)
  local n, k, mean = self.n, ffi.new("double[?]", self.n), self.mean
  for i = 1, n do
    k[i - 1] = self:kernel(point, self.x[i])
    mean = mean + k[i - 1] * self.weights[i - 1]
  end
  cholesky.forward(self.L, n, k)
  local variance = self.variance
  for i = 0, n - 1 do variance = variance - k[i] * k[i] end
  return mean, math.max(variance, 0)
end

-- ---- choosing lengths and variance ----

-- What is expected of them before anything is seen, for values of unit variance: medians and spreads of their logarithms.  A length of 0.5
-- is half the cube; the noise is that of a value.
local PRIOR = { variance = { 0, 1 }, length = { math.log(0.5), 1 }, noise = { math.log(0.1), 1.5 } }
local STEP, LEAST_STEP, MOST_ROUNDS = 1, 0.1, 40

---The process whose lengths and variance are likeliest, given what is expected of them: a search along each, in halving steps.
---@param x number[][]
---@param y number[] of mean 0 and variance 1
---@param noise number[]? the variance of each; nil: that of a single observation is unknown, the same for all, and found too
---@param groups integer[] of each coordinate, which length it has: those of one category share one
---@param counts integer[]? of how many observations each value is the mean, if the noise is unknown; nil: one
---@return GaussianProcess
function gp.fit(x, y, noise, groups, counts)
  local n_groups = 0
  for _, g in ipairs(groups) do n_groups = math.max(n_groups, g) end
  local theta, prior = { PRIOR.variance[1] }, { PRIOR.variance }
  for g = 1, n_groups do theta[g + 1], prior[g + 1] = PRIOR.length[1], PRIOR.length end
  if not noise then theta[n_groups + 2], prior[n_groups + 2] = PRIOR.noise[1], PRIOR.noise end
  local function build()
    local lengths, same = {}, noise
    for d, g in ipairs(groups) do lengths[d] = math.exp(theta[g + 1]) end
    if not noise then
      same = {}
      for i = 1, #x do same[i] = math.exp(theta[n_groups + 2]) / (counts and counts[i] or 1) end
    end
    local process, score = gp.new(x, y, same, { variance = math.exp(theta[1]), lengths = lengths }), 0
    for i, p in ipairs(prior) do score = score - 0.5 * ((theta[i] - p[1]) / p[2]) ^ 2 end
    return process, process.log_likelihood + score
  end
  local best, score = build()
  local step, rounds = STEP, 0
  while step >= LEAST_STEP and rounds < MOST_ROUNDS do
    local better = false
    for i = 1, #theta do
      for _, sign in ipairs { 1, -1 } do
        local before = theta[i]
        theta[i] = before + sign * step
        local process, s = build()
        if s > score + 1e-6 then best, score, better = process, s, true break end
        theta[i] = before
      end
    end
    if not better then step = step / 2 end
    rounds = rounds + 1
  end
  return best
end

return gp
