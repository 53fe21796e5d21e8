-- resampling.lua -- the loop of the bootstrap: draws seeds again and again, and takes percentiles of the results.  A
-- sample may be a number or a whole learning curve.
local ffi = require "ffi"
local sample = require "mneme.stats.sample"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local C = require("mneme.base.engine").C

local resampling = {}
local MOST = 1e6               -- draws: ends of intervals are then known to a thousandth of their distance

---The options of everything that draws.
---@param others table? options of its own with their defaults
function resampling.options(what, options, others)
  local o = sample.options(options, tables.merged({ reps = 10000, level = 0.95, seed = 1 }, others), what)
  if sample.whole(o.reps, 100, what .. ": reps") > MOST then
    errors.raise(("%s: reps is %.0f, expected no more than %.0f"):format(what, o.reps, MOST))
  end
  sample.whole(o.seed, 0, what .. ": seed")
  sample.level(o.level, what)
  return o
end

-- The seeds of every task drawn again, by numbers u in [0, 1).
local function redraw(into, from, u)
  local at = 0
  for i = 1, #from do
    local row, to = from[i], into[i]
    local n = #row
    for k = 1, n do
      to[k], at = row[math.floor(u[at] * n) + 1], at + 1
    end
  end
end

---Percentile intervals of `width` numbers that are worked out of one set or two.
---@param sets any[][][] each set[task][seed]
---@param together boolean the same seeds of both sets, which have one shape; false: each by itself
---@param o table { reps, level, seed }
---@param work fun(out: number[], x: any[][], y: any[][]?) fills out[1 .. width]
---@return number[] low
---@return number[] high
function resampling.bands(what, sets, together, width, o, work)
  local reps, drawn, most = o.reps, {}, 0
  for s, set in ipairs(sets) do
    local all = 0
    drawn[s] = {}
    for i, row in ipairs(set) do drawn[s][i], all = {}, all + #row end
    most = math.max(most, all)
  end
  local u, out, values = ffi.new("float[?]", most), {}, ffi.new("double[?]", width * reps)
  local x, y = drawn[1], drawn[2]
  for r = 0, reps - 1 do
    for s = 1, #sets do
      if s == 1 or not together then C.mn_random_uniform(o.seed, r, s, u, most) end
      redraw(drawn[s], sets[s], u)
    end
    work(out, x, y)
    for k = 1, width do
      local v = out[k]
      if type(v) ~= "number" or v - v ~= 0 then
        errors.raise(("%s: the statistic of a draw is %s, expected a finite number"):format(what, tostring(v)))
      end
      values[(k - 1) * reps + r] = v
    end
  end
  return resampling.ends(values, width, o)
end

---The ends of the percentile intervals of `width` numbers, of which draw r is in values[(k - 1) * reps + r].
---@return number[] low
---@return number[] high
function resampling.ends(values, width, o)
  local low, high = {}, {}
  for k = 1, width do
    local from = (k - 1) * o.reps
    sample.sort(values, from, o.reps)
    low[k], high[k] = sample.quantile(values, from, o.reps, 0.5 - o.level / 2), sample.quantile(values, from, o.reps, 0.5 + o.level / 2)
  end
  return low, high
end

return resampling
