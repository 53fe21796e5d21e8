-- curve.lua -- aggregates the learning curves of seeds: interpolates them on a common grid of steps, averages, adds bands.
local resampling = require "mneme.stats.resampling"
local sample = require "mneme.stats.sample"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local curve = {}
local POINTS = 100

-- Curves { x = steps, y = values } that can be worked with: the first and the last step that all of them have.
local function common_range(curves, what)
  if type(curves) ~= "table" or #curves == 0 then errors.raise(what .. ": no curves, expected a list of { x = steps, y = values }") end
  local first, last = -math.huge, math.huge
  for i, c in ipairs(curves) do
    local name = ("%s: curve %d"):format(what, i)
    errors.need(name, c, "x", "{ x = steps, y = values }")
    local n = sample.numbers(c.x, name .. ", x")
    if sample.numbers(c.y, name .. ", y") ~= n then
      errors.raise(("%s has %d steps and %d values, expected as many of each"):format(name, n, #c.y))
    end
    for k = 2, n do
      if c.x[k] < c.x[k - 1] then errors.raise(("%s: step %g comes after step %g"):format(name, c.x[k], c.x[k - 1])) end
    end
    first, last = math.max(first, c.x[1]), math.min(last, c.x[n])
  end
  if first > last then
    errors.raise(("%s: no step is in all %d curves: one begins at %g, one ends at %g"):format(what, #curves, first, last))
  end
  return first, last
end

local function steps_of(o, first, last, what)
  if o.grid then
    sample.numbers(o.grid, what .. ": grid")
    for k, x in ipairs(o.grid) do
      if x < first or x > last then
        errors.raise(("%s: grid: step %g is outside of %g .. %g, which all curves have"):format(what, x, first, last))
      end
      if k > 1 and x < o.grid[k - 1] then errors.raise(("%s: grid: step %g comes after step %g"):format(what, x, o.grid[k - 1])) end
    end
    return o.grid
  end
  local n = first == last and 1 or sample.whole(o.points, 2, what .. ": points")
  return tables.filled(n, function(k) return k == n and last or first + (last - first) * (k - 1) / (n - 1) end)
end

-- One curve at the steps of a grid.
local function at_steps(c, grid, linear)
  local out, i = {}, 1
  for k = 1, #grid do
    local x = grid[k]
    while i < #c.x and c.x[i + 1] <= x do i = i + 1 end
    out[k] = c.y[i]
    if linear and x > c.x[i] then
      out[k] = c.y[i] + (c.y[i + 1] - c.y[i]) * (x - c.x[i]) / (c.x[i + 1] - c.x[i])
    end
  end
  return out
end

local function align(curves, o, what)
  if o.rule ~= "last" and o.rule ~= "linear" then errors.unknown(what .. ": rule =", o.rule, { "last", "linear" }) end
  local first, last = common_range(curves, what)
  local grid = steps_of(o, first, last, what)
  return grid, tables.map(curves, function(c) return at_steps(c, grid, o.rule == "linear") end)
end

---Curves at common steps.  rule = "last", the default, gives what had been measured by then: it invents no value and does
---not look ahead of the step.  rule = "linear" goes straight from one measurement to the next: smoother where they are
---far apart, and a little ahead of what was known.  The grid spans the steps that all curves have: a seed that ended
---early ends it, for what it would have done after is not known.
---@param curves table[] one per seed: { x = steps, ascending, y = values }
---@param options table? { points = 100, grid = number[] in place of points, rule = "last" }
---@return number[] steps
---@return number[][] values [seed][point]
function curve.align(curves, options)
  return align(curves, sample.options(options, { points = POINTS, grid = false, rule = "last" }, "stats.align"), "stats.align")
end

---The learning curve of several seeds: a statistic of them at every step, with bands that hold at each step by itself.
---The bootstrap draws whole curves.
---@param curves table[] as for stats.align
---@param statistic fun(list: number[]): number such as stats.iqm
---@param options table? { points, grid, rule } as for stats.align, and { reps = 2000, level = 0.95, seed = 1 }
---@return table { x = steps, value = number[], low = number[]?, high = number[]?, seeds = number[][], n = seeds }; no bands
---  of one seed
function curve.curve(curves, statistic, options)
  local what = "stats.curve"
  local o = resampling.options(what, options, { points = POINTS, grid = false, rule = "last", reps = 2000 })
  if type(statistic) ~= "function" then
    errors.raise(("%s: the statistic is %s, expected a function of a list, such as mn.stats.iqm"):format(what, tostring(statistic)))
  end
  local grid, rows = align(curves, o, what)
  local n, column = #rows, {}
  local function work(out, x)
    local drawn = x[1]
    for k = 1, #grid do
      for i = 1, n do column[i] = drawn[i][k] end
      out[k] = statistic(column)
    end
  end
  local all = { x = grid, value = {}, seeds = rows, n = n }
  work(all.value, { rows })
  for k = 1, #grid do sample.number(all.value[k], what .. ": what the statistic gives") end
  if n > 1 then all.low, all.high = resampling.bands(what, { { rows } }, false, #grid, o, work) end
  return all
end

return curve
