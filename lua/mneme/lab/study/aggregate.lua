-- aggregate.lua -- reduces the runs of a study to one number, or one curve, per seed, and these to a statistic with
-- its interval.  If a seed has several runs (another axis is averaged over), its number is their mean.  A seed with
-- a missing run is left out, because its mean would be over other settings.
local grid = require "mneme.lab.study.grid"
local outcome = require("mneme.runs.run_folder").outcome
local reference_scores = require "mneme.envs.reference_scores"
local lazy = require "mneme.base.lazy"
local script = lazy "mneme.runs.script"
local tables = require "mneme.base.tables"
local stats = lazy "mneme.stats"

local FEW = 10                 -- seeds: below, the bootstrap is too narrow (docs/statistics.md), and Student's t is used
local aggregate = { FEW = FEW }
local POINTS = 50              -- of a curve
local NO_SPREAD = 1e-12        -- of the largest number: what rounding leaves

---The runs of a list by seed, in the order of seeds, and those that are missing.
---@param value_of fun(run): any what is wanted of a run that is done; nil: it has none
---@return table[] list { seed, values = one for each kind of run, in the order of kinds }
---@param missing table<StudyRun, boolean> to which the runs are added of which nothing is known, and { name, status = "not swept" }
---  of those that other seeds have
function aggregate.collect(runs, value_of, missing)
  local kinds, seeds = grid.groups(runs, grid.kind), grid.groups(runs, function(c) return c.seed end)
  table.sort(seeds, function(a, b) return a.name < b.name end)
  return tables.map(seeds, function(of_seed)
    local entry, by_kind = { seed = of_seed.name, values = {} }, {}
    for _, c in ipairs(of_seed.runs) do by_kind[grid.kind(c)] = c end
    local whole = true
    for _, kind in ipairs(kinds) do
      local c = by_kind[kind.name] or { name = ("%s,seed=%d"):format(kind.name, entry.seed), status = "not swept" }
      local value = c.status == "done" and value_of(c) or nil
      entry.values[#entry.values + 1] = value
      if value == nil then whole, missing[c] = false, true end
    end
    return whole and entry or nil
  end)
end

---One number for each seed.
---@return integer[] of which seeds
function aggregate.numbers(runs, value_of, missing)
  local list, of = {}, {}
  for i, entry in ipairs(aggregate.collect(runs, value_of, missing)) do list[i], of[i] = stats.mean(entry.values), entry.seed end
  return list, of
end

---Do numbers lie in a range?
function aggregate.within(list, range)
  for _, v in ipairs(range and list or {}) do if v < range[1] or v > range[2] then return false end end
  return range ~= nil
end

---Has a range two ends?  { 0, math.huge } has one.
function aggregate.two_ends(range) return range ~= nil and range[1] > -math.huge and range[2] < math.huge end

---Are numbers all the same?  Their spread is not known then, and a formula would be certain, from two seeds even.
function aggregate.no_spread(list)
  local low, high = tables.span(list)
  return high - low <= NO_SPREAD * math.max(math.abs(low), math.abs(high))
end

-- The mean of logarithms and its interval, taken back; nil where a number is 0 or less.
local function geometric(list)
  local logs = {}
  for i, v in ipairs(list) do
    if v <= 0 then return nil end
    logs[i] = math.log(v)
  end
  local value, low, high = stats.t_interval(logs)
  return math.exp(value), low and math.exp(low), high and math.exp(high)
end

---A statistic of numbers that come from seeds: for the mean of fewer than ten seeds an interval by Student's t, which does
---not leave the range that numbers have, if they have one (of one end: cut off there); else the bootstrap's.  The geometric
---mean has Student's t of logarithms, and where a number is 0 or less the mean without an interval stands in its place.
---@return number value
---@return number? low nil of one seed
---@return number? high
function aggregate.interval(list, statistic, range)
  local value, low, high
  if statistic == "geometric" then
    value, low, high = geometric(list)
    return value or stats.mean(list), low, high
  end
  if statistic ~= "mean" or #list >= FEW then return stats.interval(list, stats[statistic]) end
  local within = aggregate.within(list, range)
  if within and aggregate.two_ends(range) then value, low, high = stats.bounded_interval(list, range[1], range[2])
  else value, low, high = stats.t_interval(list) end
  if within and low then low, high = math.max(low, range[1]), math.min(high, range[2]) end
  return value, low, high
end

---What guessing scores in the environment of runs, and where their mean score stands between no memory and a perfect one, in words; nil: not
---known, or the metric is no score.
function aggregate.guess(name, runs, mean)
  for _, run in ipairs((name == "score" or name == "fresh_score") and runs or {}) do
    local info = run.info and run:info()
    if info then return reference_scores.text(info.reference, mean) end
  end
end

---In words, how many seeds solve a task: "solved by 4 of 5 seeds (0.38 to 0.96)".
---@param first boolean? the score is that at which training stopped, partly by luck: "first reached by ..."
function aggregate.solved(list, threshold, first)
  local solved, n, low, high = stats.solved(list, threshold)
  return ("%s by %d of %d seed%s (%.2f to %.2f)"):format(first and "first reached" or "solved", solved, n, n > 1 and "s" or "", low, high)
end

---The stop_score of a run, from its config.json; nil: it has none.
function aggregate.stop_score(path)
  local config = script.peek(path).config
  local stop = tonumber(type(config.learner) == "table" and config.learner.stop_score or config.stop_score)
  return stop and stop >= 0 and stop or nil
end

---Did a run end because it had reached its stop_score?  One that was imported did if it had steps left.
---@param c StudyRun that is done
function aggregate.stopped(c)
  local ended = outcome.read(c.path)
  if ended then return ended.ended == "stop_score" end
  if not aggregate.stop_score(c.path) then return false end
  local config = script.peek(c.path).config
  local planned = tonumber(type(config.learner) == "table" and config.learner.steps or config.steps)
  return planned ~= nil and c.metrics.steps ~= nil and c.metrics.steps < planned
end

---From which value on a metric counts as solved: what the metric says (solved =), what a claim of the study asks of a seed (above =), or, of the
---score, where its runs stop; nil: nothing says.
function aggregate.threshold(spec, name, runs)
  local metric = (spec and spec.metrics or {})[name]
  if metric and metric.solved then return metric.solved end
  for _, claim in ipairs(spec and spec.claims or {}) do
    local test = claim.test
    if test and test.metric == name and test.above then return test.above end
  end
  return name == "score" and runs[1] and aggregate.stop_score(runs[1].path) or nil
end

---In words, how many seeds these are.
---@param least integer seeds, of the group that has the fewest
function aggregate.count(least, most)
  if most == 1 then return "one seed" end
  return least == most and ("%d seeds"):format(most) or ("%d to %d seeds"):format(least, most)
end

---In words, how the interval of n seeds comes about.
---@param bounded boolean the metric has a range
function aggregate.how(statistic, least, most, bounded)
  if most == 1 then return "One seed, no interval." end
  if statistic == "geometric" then
    return ("Geometric mean of %s, 95 %% interval by Student's t of the logarithms."):format(aggregate.count(least, most))
  end
  local interval = "95 % bootstrap interval"
  if statistic == "mean" and least < FEW then
    interval = bounded and "95 % interval by Student's t, within the range" or "Student's 95 % t interval"
    if most >= FEW then interval = interval .. " (bootstrap from ten seeds on)" end
  end
  return ("%s of %s, %s."):format(statistic == "iqm" and "Interquartile mean" or "Mean", aggregate.count(least, most), interval)
end

local function same(a, b) return table.concat(a, " ") == table.concat(b, " ") end

-- The places that all series have.
local function shared(curves)
  local count, list = {}, {}
  for _, c in ipairs(curves) do for _, x in ipairs(c.x) do count[x] = (count[x] or 0) + 1 end end
  for _, x in ipairs(curves[1].x) do if count[x] == #curves then list[#list + 1] = x end end
  return list
end

-- Curves brought onto common places: { x, rows }.  What was measured at the same places stays as it is; of series those
-- places stay that all have, if any.
local function together(curves, rule)
  local equal = true
  for i = 2, #curves do equal = equal and same(curves[1].x, curves[i].x) end
  if equal and (rule == "linear" or #curves[1].x <= POINTS) then return curves[1].x, tables.map(curves, function(c) return c.y end) end
  local places = rule == "linear" and shared(curves) or {}
  if places[1] then return stats.align(curves, { grid = places, rule = rule }) end
  return stats.align(curves, { points = POINTS, rule = rule })
end

-- The numbers of all rows at one place.
local function column(rows, k) return tables.map(rows, function(row) return row[k] end) end

-- Curves whose runs stopped keep their last value up to the end of the longest; and was there one?  Without this the line would end with the
-- first of them.
local function carried_on(entries)
  local last, any = -math.huge, false
  for _, entry in ipairs(entries) do
    for _, c in ipairs(entry.values) do last = math.max(last, c.x[#c.x]) end
  end
  return tables.map(entries, function(entry)
    return { seed = entry.seed, values = tables.map(entry.values, function(c)
      if not c.stopped or c.x[#c.x] >= last then return { x = c.x, y = c.y } end
      local x, y = tables.merged(c.x), tables.merged(c.y)
      any, x[#c.x + 1], y[#c.y + 1] = true, last, c.y[#c.y]
      return { x = x, y = y }
    end) }
  end), any
end

-- Do curves have a common range at all?
local function overlap(curves)
  local first, last = -math.huge, math.huge
  for _, c in ipairs(curves) do first, last = math.max(first, c.x[1]), math.min(last, c.x[#c.x]) end
  return first <= last
end

---The curves of runs as one line: a statistic of seeds at every place, its interval, and the seeds themselves.
---@param curve_of fun(run): table? { x, y, stopped }; stopped: it keeps its last value as long as others of the line go on
---@param o table { statistic, range = of what is measured or nil, rule = "last" | "linear", see mn.stats.align }
---@return table? line as insight/figures/figure_format.lua has it; nil: nothing is known
---@return integer n seeds
---@return boolean? carried a run kept its last value
function aggregate.line(name, runs, curve_of, o, missing)
  local curves = {}
  local entries, carried = carried_on(aggregate.collect(runs, curve_of, missing))
  for _, entry in ipairs(entries) do
    if overlap(entry.values) then
      local x, rows = together(entry.values, o.rule)
      curves[#curves + 1] = { x = x, y = tables.map(x, function(_, k) return stats.mean(column(rows, k)) end), seed = entry.seed }
    end
  end
  if #curves == 0 or not overlap(curves) then return nil, 0 end
  local x, rows = together(curves, o.rule)
  local line = { name = name, x = x, y = {}, seeds = {} }
  local whole = #rows > 1
  if whole then line.low, line.high = {}, {} end
  if o.statistic ~= "geometric" and (#rows >= FEW or o.statistic ~= "mean") then
    local c = stats.curve(tables.map(rows, function(row) return { x = x, y = row } end), stats[o.statistic], { grid = x, rule = "last" })
    line.y, line.low, line.high = c.value, c.low, c.high
  else
    for k = 1, #x do
      local value, low, high = aggregate.interval(column(rows, k), o.statistic, o.range)
      line.y[k], whole = value, whole and low ~= nil
      if low then line.low[k], line.high[k] = low, high end
    end
    if not whole then line.low, line.high = nil, nil end
  end
  for i, row in ipairs(#rows > 1 and rows or {}) do line.seeds[i] = { x = x, y = row, seed = curves[i].seed } end
  return line, #rows, carried
end

---The same of the runs of a point, of which one that failed has not solved it; nil: none is done or failed.
---@param name string? of the metric: the score of runs that stopped at it was first reached, and no more
function aggregate.solved_of(list, runs, threshold, name)
  local all = { unpack(list) }
  local first = false
  for _, c in ipairs(runs) do
    if c.status == "failed" then all[#all + 1] = threshold - 1 end
    first = first or name == "score" and c.path ~= nil and c.status == "done" and aggregate.stopped(c)
  end
  return all[1] and aggregate.solved(all, threshold, first) or nil
end

return aggregate
