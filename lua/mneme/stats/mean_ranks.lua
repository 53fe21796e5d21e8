-- mean_ranks.lua -- which of several methods is best over many tasks: mean ranks, and by how much they must differ (Demsar 2006,
-- "Statistical comparisons of classifiers over multiple data sets").
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local resampling = require "mneme.stats.resampling"
local sample = require "mneme.stats.sample"
local special = require "mneme.stats.special"
local tables = require "mneme.base.tables"

local ranks = {}
local REACH, CELLS = 8, 1600          -- of the integral over a normal density: |z| and how many steps
local WIDEST = 100                    -- standardised ranges that are searched

-- Adds to sum[m] the rank of values[m]: 1 is the largest; equal ones share the mean of their ranks.
local function add_ranks(sum, values)
  for m = 1, #values do
    local rank = 1
    for k = 1, #values do
      local above = sample.difference(values[k], values[m])
      if above > 0 then rank = rank + 1
      elseif above == 0 and k ~= m then rank = rank + 0.5 end
    end
    sum[m] = sum[m] + rank
  end
end

local function mean_ranks(scores)
  local sum, values, tasks = {}, {}, #scores[1]
  for m = 1, #scores do sum[m] = 0 end
  for task = 1, tasks do
    for m, rows in ipairs(scores) do
      local total = 0
      for _, v in ipairs(rows[task]) do total = total + v end
      values[m] = total / #rows[task]
    end
    add_ranks(sum, values)
  end
  for m = 1, #sum do sum[m] = sum[m] / tasks end
  return sum
end

---Mean ranks over tasks, by the mean over seeds on each: 1 is the best, the largest.  Intervals are percentiles of the bootstrap, which
---draws tasks and, within each, seeds: about other tasks of such a kind, too.  Draws pull ranks to the middle where seeds differ more than methods do, so
---that a rank may lie outside its interval.
---@param scores number[][][] scores[method][task][seed], the same tasks of each method; of seeds there may be more on some
---@param options table? { reps = 10000, level = 0.95, seed = 1 }
---@return table[] { value, low?, high? } of each method; no interval of one task or one seed
function ranks.ranks(scores, options)
  local what = "stats.ranks"
  if type(scores) ~= "table" or #scores < 2 then errors.raise(what .. ": expected scores[method][task][seed] of at least two methods") end
  local o, draws, several = resampling.options(what, options), 0, true
  for m, rows in ipairs(scores) do
    if type(rows) ~= "table" or type(rows[1]) ~= "table" then errors.raise(("%s: method %d has no list for each task"):format(what, m)) end
    if #rows ~= #scores[1] then errors.raise(("%s: %d and %d tasks, expected the same of each method"):format(what, #scores[1], #rows)) end
    for task, seeds in ipairs(rows) do
      local n = sample.numbers(seeds, what, task)
      several, draws = several and n > 1 and #rows > 1, math.max(draws, n)
    end
  end
  local list = tables.map(mean_ranks(scores), function(value) return { value = value } end)
  if not several then return list end
  local tasks, drawn = #scores[1], {}
  local count = tasks * (1 + #scores * draws)
  local u, values = ffi.new("float[?]", count), ffi.new("double[?]", #scores * o.reps)
  for m = 1, #scores do
    drawn[m] = {}
    for task = 1, tasks do drawn[m][task] = {} end
  end
  for r = 0, o.reps - 1 do
    C.mn_random_uniform(o.seed, r, 1, u, count)
    local at = tasks
    for task = 1, tasks do
      local of = math.floor(u[task - 1] * tasks) + 1
      for m, rows in ipairs(scores) do
        local from, to = rows[of], drawn[m][task]
        for k = 1, math.max(#from, #to) do
          to[k] = from[k] and from[math.floor(u[at] * #from) + 1]
          at = from[k] and at + 1 or at
        end
      end
    end
    for m, value in ipairs(mean_ranks(drawn)) do values[(m - 1) * o.reps + r] = value end
  end
  local low, high = resampling.ends(values, #scores, o)
  for m, one in ipairs(list) do one.low, one.high = low[m], high[m] end
  return list
end

-- The share of `n` independent normal numbers whose range is at most q.
local function range_below(q, n)
  local sum, width = 0, 2 * REACH / CELLS
  for i = 0, CELLS do
    local z = -REACH + i * width
    local density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    local inside = special.normal_cdf(z) - special.normal_cdf(z - q)
    sum = sum + (i % 2 == 1 and 4 or (i == 0 or i == CELLS) and 1 or 2) * density * inside ^ (n - 1)
  end
  return n * sum * width / 3
end

---By how much two mean ranks must differ before it is more than chance, with all pairs compared (Nemenyi 1963; Demsar 2006, section 3.2.2):
---q sqrt(methods (methods + 1) / (6 tasks)), q of the studentised range over sqrt 2.
---@param methods integer at least 2
---@param tasks integer
---@param level number? 0.95
---@return number
function ranks.critical_difference(methods, tasks, level)
  local what = "stats.critical_difference"
  sample.whole(methods, 2, what .. ": methods")
  sample.whole(tasks, 1, what .. ": tasks")
  level = sample.level(level, what)
  local low, high = 0, WIDEST
  while high - low > 1e-9 do
    local q = (low + high) / 2
    if range_below(q, methods) < level then low = q else high = q end
  end
  return low / math.sqrt(2) * math.sqrt(methods * (methods + 1) / (6 * tasks))
end

return ranks
