-- improvement.lua -- where to measure next: expected improvement for noisy observations (Letham et al. 2019, "Constrained Bayesian
-- optimization with noisy experiments").  What the function may be at the measured points is drawn from the process; each draw has its own best,
-- and the improvement over it has a closed form.  Points that are still being measured are drawn as well, so that none is proposed twice.
-- Draws are made by Matheron's rule: a draw of the prior, corrected by what was observed.
local ffi = require "ffi"
local cholesky = require "mneme.stats.cholesky"
local engine = require "mneme.base.engine"
local sobol = require "mneme.lab.search.sobol"
local special = require "mneme.stats.special"

local C = engine.C
local improvement = {}
local DRAWS = 32
local SPREAD, AROUND, NEAR = 512, 5, 24          -- candidates all over the cube; best settings, and candidates near each
local ROUNDS, RADIUS = 4, 0.1                    -- of the search near the best candidate, at half the radius each

-- A stream of uniform numbers between 0 and 1, the same for equal seeds and streams on every machine.
local function random(seed, stream)
  local block, at, n = ffi.new "float[256]", 256, 0
  return function()
    if at == 256 then
      C.mn_random_uniform(seed, n, stream, block, 256)
      at, n = 0, n + 1
    end
    at = at + 1
    return math.min(math.max(tonumber(block[at - 1]), 1e-7), 1 - 1e-7)
  end
end
improvement.random = random

---Expected improvement as a function of the point.
---@param process GaussianProcess
---@param pending number[][] encoded points that are being measured
---@param uniform fun(): number
---@return fun(x: number[]): number
function improvement.of(process, pending, uniform)
  local points, n = {}, process.n
  for i = 1, n do points[i] = process.x[i] end
  for i, x in ipairs(pending) do points[n + i] = x end
  local m = #points
  local L, alpha, best = process:factor(points), {}, {}
  for j = 1, DRAWS do
    local z, f, w = ffi.new("double[?]", m), ffi.new("double[?]", m), ffi.new("double[?]", n)
    for i = 0, m - 1 do z[i] = special.normal_quantile(uniform()) end
    for i = 0, m - 1 do
      local sum = 0
      for k = 0, i do sum = sum + L[i * m + k] * z[k] end
      f[i] = sum
    end
    for i = 0, n - 1 do
      w[i] = process.y[i + 1] - process.mean - f[i] - math.sqrt(process.noise[i + 1]) * special.normal_quantile(uniform())
    end
    cholesky.forward(process.L, n, w)
    cholesky.backward(process.L, n, w)
    local top = -math.huge
    for i = 1, m do
      local value = process.mean + f[i - 1]
      for k = 1, n do value = value + process:kernel(points[i], points[k]) * w[k - 1] end
      top = math.max(top, value)
    end
    cholesky.backward(L, m, z)                         -- so that kernel(x, points) . alpha is the draw at x, less the mean
    for i = 0, n - 1 do z[i] = z[i] + w[i] end
    alpha[j], best[j] = z, top
  end
  local k = ffi.new("double[?]", m)
  local v = ffi.new("double[?]", m)
  return function(x)
    for i = 0, m - 1 do
      k[i] = process:kernel(x, points[i + 1])
      v[i] = k[i]
    end
    cholesky.forward(L, m, v)
    local variance = process.variance
    for i = 0, m - 1 do variance = variance - v[i] * v[i] end
    local s, sum = math.sqrt(math.max(variance, 1e-12)), 0
    for j = 1, DRAWS do
      local d, a = process.mean - best[j], alpha[j]
      for i = 0, m - 1 do d = d + k[i] * a[i] end
      local t = d / s
      sum = sum + d * special.normal_cdf(t) + s * math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
    end
    return sum / DRAWS
  end
end

-- A point near another; a category is drawn again now and then.
local function step(space, point, radius, uniform)
  local other = {}
  for i, dim in ipairs(space.dims) do
    if dim.categories then other[i] = uniform() < 0.2 and uniform() or point[i]
    else other[i] = math.max(0, math.min(1, point[i] + radius * special.normal_quantile(uniform()))) end
  end
  return other
end

---The setting that promises most.
---@param space SearchSpace
---@param process GaussianProcess of what is known, in the space's coordinates
---@param pending table<string, string>[] settings that are being measured
---@param o table { seed, stream; cost = nil | fun(x): number: improvement counts per unit of it }
---@return table<string, string> setting
function improvement.propose(space, process, pending, o)
  local uniform, waiting = random(o.seed, o.stream), {}
  for i, setting in ipairs(pending) do waiting[i] = space:encode(setting) end
  local gain = improvement.of(process, waiting, uniform)
  local best, most, best_setting = nil, -math.huge, nil
  local function try(point)
    local setting = space:setting(point)
    local x = space:encode(setting)
    local value = gain(x) / (o.cost and o.cost(x) or 1)
    if value > most then best, most, best_setting = point, value, setting end
  end
  local shift, means = {}, {}
  for i = 1, #space.dims do shift[i] = uniform() end
  local spread = sobol.new(#space.dims, shift)
  for _ = 1, SPREAD do try(spread()) end
  for i, setting in ipairs(o.settings) do means[i] = { (process:predict(space:encode(setting))), i, setting } end
  table.sort(means, function(a, b) return a[1] > b[1] or a[1] == b[1] and a[2] < b[2] end)
  for i = 1, math.min(AROUND, #means) do
    local point = space:point(means[i][3])
    for k = 1, NEAR do try(step(space, point, RADIUS * 0.5 ^ (k % 4), uniform)) end
  end
  for round = 1, ROUNDS do
    local from = best
    for _ = 1, NEAR do try(step(space, from, RADIUS * 0.5 ^ round, uniform)) end
  end
  return best_setting
end

return improvement
