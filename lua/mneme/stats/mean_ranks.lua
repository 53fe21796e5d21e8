-- mean_ranks.lua -- which of several methods is best over many tasks: mean ranks, and by how much they must differ (Demsar 2006,
-- "Statistical comparisons of classifiers over multiple data sets").
local describe = require "mneme.stats.describe"
local errors = require "mneme.base.errors"
local intervals = require "mneme.stats.intervals"
local sample = require "mneme.stats.sample"
local special = require "mneme.stats.special"
local tables = require "mneme.base.tables"

local ranks = {}
local REACH, CELLS = 8, 1600          -- of the integral over a normal density: |z| and how many steps
local WIDEST = 100                    -- standardised ranges that are searched

-- The rank of values[m]: 1 is the largest; equal ones share the mean of their ranks.
local function rank_of(m, values)
  local rank = 1
  for k = 1, #values do
    local above = sample.difference(values[k], values[m])
    if above > 0 then rank = rank + 1
    elseif above == 0 and k ~= m then rank = rank + 0.5 end
  end
  return rank
end

---Mean ranks over tasks, by the mean over seeds on each: 1 is the best, the largest.  Intervals are stats.bounded_interval's of the ranks on the
---tasks, between 1 and the number of methods: about other tasks of such a kind with other seeds, since seeds are part of what differs between tasks.
---@param scores number[][][] scores[method][task][seed], the same tasks of each method; of seeds there may be more on some
---@param level number? 0.95
---@return table[] { value, low?, high? } of each method; no interval of one task or one seed
function ranks.ranks(scores, level)
  local what = "stats.ranks"
  if type(scores) ~= "table" or #scores < 2 then errors.raise(what .. ": expected scores[method][task][seed] of at least two methods") end
  local several, on = true, {}
  level = sample.level(level, what)
  for m, rows in ipairs(scores) do
    if type(rows) ~= "table" or type(rows[1]) ~= "table" then errors.raise(("%s: method %d has no list for each task"):format(what, m)) end
    if #rows ~= #scores[1] then errors.raise(("%s: %d and %d tasks, expected the same of each method"):format(what, #scores[1], #rows)) end
    for task, seeds in ipairs(rows) do
      several = sample.numbers(seeds, what, task) > 1 and #rows > 1 and several
      on[task] = on[task] or {}
      on[task][m] = describe.mean(seeds)
    end
  end
  return tables.map(scores, function(_, m)
    local value, low, high = intervals.bounded_interval(tables.map(on, function(values) return rank_of(m, values) end), 1, #scores, level, 1)
    return { value = value, low = several and low or nil, high = several and high or nil }
  end)
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
