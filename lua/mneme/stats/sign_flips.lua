-- sign_flips.lua -- tests many paired differences at once, by random signs of the cases and the largest statistic of all.
local ffi = require "ffi"
local resampling = require "mneme.stats.resampling"
local errors = require "mneme.base.errors"
local sample = require "mneme.stats.sample"
local C = require("mneme.base.engine").C

local sign_flips = {}

-- The differences as one array, case by case, each divided by the root of its column's sum of squares; and those statistics.
local function scaled(differences, cases)
  local m = #differences
  local x, seen = ffi.new("double[?]", m * cases), {}
  for k, list in ipairs(differences) do
    if type(list) ~= "table" then errors.raise(("stats.max_sign_test: differences %d are %s, expected a list"):format(k, tostring(list))) end
    local squares, sum = 0, 0
    for i = 1, cases do
      local d = list[i]
      if d ~= nil then
        sample.number(d, ("stats.max_sign_test: difference %d, case %d"):format(k, i))
        squares, sum = squares + d * d, sum + d
      end
    end
    local root = math.sqrt(squares)
    seen[k] = root > 0 and math.abs(sum) / root or 0
    for i = 1, root > 0 and cases or 0 do x[(i - 1) * m + k - 1] = (list[i] or 0) / root end
  end
  return x, seen
end

---Are the means of several paired differences 0, when all are asked at once?  Under that hypothesis a case's differences may as well
---have the other sign; each draw gives every case one sign, for all its differences, and notes the largest statistic of all
---(Westfall and Young 1993; Nichols and Holmes 2002, "Nonparametric permutation tests for functional neuroimaging").  The statistic is
---|sum d| / sqrt(sum d^2): of successes and failures it is McNemar's.  The chance of any false alarm among all is at most 1 - level.
---@param differences number[][] differences[k][case]; nil where a case has none
---@param cases integer
---@param options table? { reps = 2000, level = 0.95, seed = 1 }
---@return number[] p of each, corrected for the number of differences
---@return number threshold of the statistic
---@return number[] statistic of each
function sign_flips.max_sign_test(differences, cases, options)
  local o = resampling.options("stats.max_sign_test", options, { reps = 2000 })
  sample.whole(cases, 1, "stats.max_sign_test: cases")
  if type(differences) ~= "table" or #differences == 0 then
    errors.raise(("stats.max_sign_test: %s, expected a list of lists of differences"):format(type(differences) == "table" and "an empty list"
      or tostring(differences)))
  end
  local m, x, seen = #differences, scaled(differences, cases)
  local u, sums, top = ffi.new("float[?]", cases), ffi.new("double[?]", m), ffi.new("double[?]", o.reps)
  for r = 0, o.reps - 1 do
    C.mn_random_uniform(o.seed, r, 0, u, cases)
    ffi.fill(sums, 8 * m)
    for i = 0, cases - 1 do
      local sign = u[i] < 0.5 and -1 or 1
      for k = 0, m - 1 do sums[k] = sums[k] + sign * x[i * m + k] end
    end
    for k = 0, m - 1 do top[r] = math.max(top[r], math.abs(sums[k])) end
  end
  sample.sort(top, 0, o.reps)
  local p = {}
  for k = 1, m do
    local low, high = 0, o.reps                     -- how many draws are below: they are sorted
    while low < high do
      local middle = math.floor((low + high) / 2)
      if top[middle] < seen[k] - 1e-9 then low = middle + 1 else high = middle end
    end
    p[k] = (o.reps - low + 1) / (o.reps + 1)
  end
  return p, sample.quantile(top, 0, o.reps, o.level), seen
end

return sign_flips
