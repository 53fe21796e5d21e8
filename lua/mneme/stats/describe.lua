-- describe.lua -- summary statistics: mean, median, interquartile mean, spread.  Each takes a list, one
-- number per seed, or scores[task][seed], and can be passed to the bootstrap.
local sample = require "mneme.stats.sample"

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

---The median over all runs of all tasks.
---@param scores number[]|number[][]
---@return number
function describe.median(scores)
  local x, n = sample.sorted((sample.rows(scores, "stats.median")))
  return sample.quantile(x, 0, n, 0.5)
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

return describe
