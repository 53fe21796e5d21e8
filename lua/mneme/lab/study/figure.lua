-- figure.lua -- makes the figures of a study as data (insight/figures/figure_format.lua): which runs, against which x, one line per value of
-- which axis.  Statistics are over seeds, and the note states how many, which interval, and what is missing.
--   { "curves", y = "charts/score", by = "core", where = { corridor = "200" } }    learning curves, from metrics.jsonl
--   { "bars", y = "success", x = "corridor", by = "core" }        a metric of each run; x: groups
--   { "lines", y = "success", x = "corridor", by = "core" }       against an axis of numbers; or y = a series' name
--   { "lines", y = "success", x = "rank", by = "core", numbered = true }   values of `by` such as "cos 8": the line cos at 8
--   { "heat", y = "accuracy", x = "corridor", by = "core" }       or y = a series' name: its x across
--   { "ranks", y = "normalised", x = "task", by = "core" }        mean ranks over tasks
--   { "solved", y = "success", by = "core" }                      the share of seeds that have solved it, against steps
-- Series named NAME/ROW are the rows or lines of y = "NAME" if `by` is not an axis.
-- All: title; statistic = "mean" | "iqm", of lines "geometric"; where = { axis = value or list of values }; lines: log = "x" | "y" | "xy".
local declaration = require "mneme.lab.study.declaration"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local figure_rows = require "mneme.lab.study.figure_rows"
local figure_references = require "mneme.lab.study.figure_references"
local aggregate = require "mneme.lab.study.aggregate"
local figure_runs = require "mneme.lab.study.figure_runs"
local solved_curves = require "mneme.lab.study.solved_curves"
local figure_style = require "mneme.insight.figures.figure_style"
local text = require "mneme.insight.figures.text"

local figure = {}
local TICKS = 8                -- places that an axis may name all of
local FEW_SEEDS = figure_style.FEW
local FEW_ROWS = 6             -- up to as many need no mark to be found

local makers = {}

-- ---- what is measured ----

-- What the study says of a metric: "charts/score" is the score.
local function about(spec, name)
  local metrics = spec.metrics or {}
  return metrics[name] or metrics[name:match "[^/]*$"] or study_folder.used[name] or {}
end

local function axis_of(spec, name)
  local m = about(spec, name)
  local unit = m.unit ~= "" and m.unit or nil
  local label = m[1] or text.words(name)
  if unit and unit ~= "s" and unit ~= "%" then label = ("%s (%s)"):format(label, unit) end
  return { label = label, unit = (unit == "s" or unit == "%") and unit or nil, range = aggregate.two_ends(m.range) and m.range or nil }
end

-- A curve of charts/ is what was logged, not the mean of the last hundred episodes that its metric is.
local function curve_axis(spec, name)
  local axis = axis_of(spec, name)
  if name:find "^charts/" then axis.label = ("%s, mean of the episodes since the last log line"):format(axis.label:match "^[^,]*") end
  return axis
end

local function number_of(name) return function(c) return study_folder.number(c, name) end end

-- Refuse a name that no run which is done has.
local function need(f, runs, has, names_of, what)
  local all, any = {}, false
  for _, c in ipairs(runs) do
    if c.status == "done" then
      any = true
      if has(c) then return end
      for name in pairs(names_of(c)) do all[name] = true end
    end
  end
  if any then errors.unknown(what .. " for y =", f.y, tables.keys(all)) end
end

-- ---- the kinds ----

-- Lines of all groups, the seeds that they have, and whether a run kept its last value; nil where a group that has runs gives no line.
local function lines_of(groups, curve_of, o, missing)
  local lines, counts, any = {}, {}, false
  for _, group in ipairs(groups) do
    local line, n, carried = aggregate.line(group.name, group.runs, function(c) return curve_of(c, group) end, o, missing)
    if line then line.style = o.styles[group.name] end
    lines[#lines + 1] = line
    if n > 0 then counts[#counts + 1] = n end
    any = any or carried
  end
  return lines, counts, any
end

-- The points of a line that logarithmic axes can show; nil: all of them.
local function positive_part(line, fig)
  local kept, all = {}, true
  for i = 1, #line.x do
    local shown = not (fig.x.log and line.x[i] <= 0)
    for _, of in ipairs { line, unpack(line.seeds or {}) } do shown = shown and not (fig.y.log and of.y[i] <= 0) end
    if shown then kept[#kept + 1] = i else all = false end
  end
  if all then return nil end
  local function part(list) return list and tables.map(kept, function(i) return list[i] end) end
  return { name = line.name, style = line.style, x = part(line.x), y = part(line.y), low = part(line.low), high = part(line.high),
    seeds = tables.map(line.seeds or {}, function(seed) return { x = part(seed.x), y = part(seed.y), seed = seed.seed } end) }
end

-- Make axes logarithmic that are to be; what is 0 or less has no place there, and the note says where that was.
local function set_logs(fig, f)
  if not f.log then return end
  for _, which in ipairs { "x", "y" } do
    if f.log:find(which, 1, true) then
      fig[which].log = true
      if fig[which].range and fig[which].range[1] <= 0 then fig[which].range = nil end
    end
  end
  local less = {}
  fig.lines = tables.map(fig.lines, function(line)
    local part = positive_part(line, fig)
    if part then less[#less + 1] = line.name end
    return #(part or line).x > 0 and (part or line) or nil
  end)
  if #less > 0 then fig.note = fig.note .. (" Without what is 0 or less and has no place on a logarithmic axis: %s."):format(table.concat(less, ", ")) end
  fig.references = tables.map(fig.references or {}, function(r) return (not fig.y.log or r.y > 0) and r or nil end)
end

-- The places of all lines, ascending.
local function places_of(lines)
  local seen, list = {}, {}
  for _, line in ipairs(lines) do
    for _, x in ipairs(line.x) do if not seen[x] then seen[x], list[#list + 1] = true, x end end
  end
  table.sort(list)
  return list
end

function makers.curves(pick, spec, f, o)
  need(f, pick.runs, function(c) return c:curves()[f.y] end, function(c) return c:curves() end, "curve")
  local function steps(c)
    local curve = c:curves()[f.y]
    return curve and curve.n > 0 and { x = curve.x, y = curve.y, stopped = aggregate.stopped(c) } or nil
  end
  local fig = { kind = "curves", x = { label = "steps" }, y = curve_axis(spec, f.y), references = figure_references.levels(spec, f.y) }
  o.rule = "last"
  local counts, carried
  fig.lines, counts, carried = lines_of(pick.groups, steps, o, pick.missing)
  if carried then fig.note = " A run that stopped because it had solved its task keeps its last value." end
  local last = 0
  for _, line in ipairs(fig.lines) do last = math.max(last, line.x[#line.x]) end
  local theirs = figure_references.curves(spec, f.y, pick.runs, last)
  local free, taken = 1, {}
  for _, style in pairs(o.styles) do taken[style] = true end
  for _, line in ipairs(theirs) do
    while taken[free] do free = free + 1 end
    line.style, free = free, free + 1
    table.insert(fig.lines, line)
  end
  return fig, counts
end

function makers.bars(pick, spec, f, o)
  need(f, pick.runs, number_of(f.y), function(c) return c.metrics end, "metric")
  local fig, counts = { kind = "bars", x = { label = f.x }, y = axis_of(spec, f.y), bars = {}, references = figure_references.levels(spec, f.y) }, {}
  for _, column in ipairs(f.x and figure_runs.groups(pick.runs, f.x) or { { runs = pick.runs } }) do
    for _, group in ipairs(f.by and figure_runs.groups(column.runs, f.by) or { { name = fig.y.label, runs = column.runs } }) do
      local list, of = aggregate.numbers(group.runs, number_of(f.y), pick.missing)
      local bar = { name = group.name, group = column.name, seeds = list, of = of, style = (f.x or f.by == "core") and o.styles[group.name] or nil }
      if #list > 0 then
        counts[#counts + 1] = #list
        bar.y, bar.low, bar.high = aggregate.interval(list, o.statistic, o.range)
        if bar.low == bar.high then bar.low, bar.high = nil, nil end       -- all the same: their spread is not known
      end
      fig.bars[#fig.bars + 1] = bar
    end
  end
  figure_rows.drop_unknown(fig)
  if f.by and not f.x and #fig.bars > FEW_ROWS then
    local studied = figure_rows.studied(spec, f.by)
    for _, bar in ipairs(fig.bars) do bar.marked = studied[bar.name] end
  end
  if f.by and not figure_rows.ordered(figure_runs.groups(pick.runs, f.by)) then figure_rows.sort(fig) end
  figure_rows.set_kind(fig)
  return fig, counts
end

-- The runs of each line by their place, in order: { name, columns = { { x, runs } } }.
local function by_axis(pick, f)
  return tables.map(pick.groups, function(group)
    return { name = group.name, columns = tables.map(figure_runs.groups(group.runs, f.x), function(column)
      return { x = figure_runs.number(column.name, f.x), runs = column.runs }
    end) }
  end)
end

-- The same where the values of an axis have a number at their end; those without one become references.
local function by_number(pick, f, o, fig)
  local columns = tables.map(pick.groups, function(group)
    local name, x = group.name:match "^(.-)%s+(%d+%.?%d*)$"
    if name then return { line = name, x = tonumber(x), runs = group.runs } end
    local numbers = aggregate.numbers(group.runs, number_of(f.y), pick.missing)
    fig.references = fig.references or {}
    if #numbers > 0 then table.insert(fig.references, { name = group.name, y = (aggregate.interval(numbers, o.statistic, o.range)) }) end
  end)
  if #columns == 0 then errors.raise(("study: figure of lines, numbered = true: no value of %s has a number at its end"):format(f.by)) end
  return tables.groups(columns, function(column) return column.line end, "columns")
end

-- Lines of a metric against numbers.
local function against_numbers(groups, pick, f, o)
  local lines, counts = {}, {}
  for _, group in ipairs(groups) do
    local line, of_seed = { name = group.name, style = o.styles[group.name], x = {}, y = {}, low = {}, high = {}, seeds = {} }, {}
    local columns, whole = group.columns, true
    table.sort(columns, function(a, b) return a.x < b.x end)
    for _, column in ipairs(columns) do
      local list, of = aggregate.numbers(column.runs, number_of(f.y), pick.missing)
      if #list > 0 then
        local i = #line.x + 1
        for s, seed in ipairs(of) do
          if not of_seed[seed] then
            of_seed[seed] = { x = {}, y = {}, seed = seed }
            line.seeds[#line.seeds + 1] = of_seed[seed]
          end
          table.insert(of_seed[seed].x, column.x)
          table.insert(of_seed[seed].y, list[s])
        end
        line.x[i], counts[#counts + 1] = column.x, #list
        line.y[i], line.low[i], line.high[i] = aggregate.interval(list, o.statistic, o.range)
        whole = whole and line.low[i] ~= nil
      end
    end
    if not whole then line.low, line.high = nil, nil end       -- of one seed there is no interval, and no band with holes
    for s = #line.seeds, 1, -1 do                              -- a seed is drawn where it has all points, and the axis a place for them
      local seed = line.seeds[s]
      local fits = #seed.x == #line.x
      for _, y in ipairs(seed.y) do fits = fits and not (y <= 0 and f.log and f.log:find "y") end
      if not fits then table.remove(line.seeds, s) end
    end
    if #line.seeds < 2 then line.seeds = nil end
    if #line.x > 0 then lines[#lines + 1] = line end
  end
  return lines, counts
end

function makers.lines(pick, spec, f, o)
  local fig = { kind = "lines", x = { label = text.words(f.x) }, y = axis_of(spec, f.y), references = figure_references.levels(spec, f.y) }
  local counts
  if pick.series then
    o.rule = "linear"
    fig.lines, counts = lines_of(pick.groups, function(c, group) return c.series and c.series[group.series] end, o, pick.missing)
  else
    if not f.x then errors.raise(("study: figure of lines, y = %s: expected x = an axis of numbers"):format(f.y)) end
    need(f, pick.runs, number_of(f.y), function(c) return c.metrics end, "metric or series")
    fig.lines, counts = against_numbers(f.numbered and by_number(pick, f, o, fig) or by_axis(pick, f), pick, f, o)
  end
  local places = places_of(fig.lines)
  if #places > 0 and #places <= TICKS then fig.x.ticks = places end
  return fig, counts
end

-- Rows of series: the mean over seeds at each place.
local function heat_of_series(pick, o)
  local lines, counts = lines_of(pick.groups, function(c, group) return c.series and c.series[group.series] end, o, pick.missing)
  local places = places_of(lines)
  local cells = tables.map(lines, function(line)
    local at = {}
    for i, x in ipairs(line.x) do at[x] = line.y[i] end
    return tables.map(places, function(x) return at[x] or false end)
  end)
  return tables.map(lines, function(line) return line.name end), tables.map(places, function(x) return ("%.10g"):format(x) end), cells, counts
end

function makers.heat(pick, spec, f, o)
  local rows, columns, cells, counts
  local low, high, any = {}, {}, false
  if pick.series then
    o.rule = "linear"
    rows, columns, cells, counts = heat_of_series(pick, o)
  else
    rows, columns, cells, counts = {}, {}, {}, {}
    if not f.x then errors.raise(("study: heat map of %s: expected x = an axis"):format(f.y)) end
    need(f, pick.runs, number_of(f.y), function(c) return c.metrics end, "metric or series")
    for c, column in ipairs(figure_runs.groups(pick.runs, f.x)) do columns[c] = column.name end
    for r, group in ipairs(pick.groups) do
      rows[r], cells[r], low[r], high[r] = group.name, {}, {}, {}
      local by_name = {}
      for _, column in ipairs(figure_runs.groups(group.runs, f.x)) do by_name[column.name] = column.runs end
      for c, name in ipairs(columns) do
        local list = aggregate.numbers(by_name[name] or {}, number_of(f.y), pick.missing)
        cells[r][c] = false
        if #list > 0 then
          cells[r][c], low[r][c], high[r][c] = aggregate.interval(list, o.statistic, o.range)
          counts[#counts + 1], any = #list, any or low[r][c] ~= nil
        end
      end
    end
  end
  if #columns == 0 or #rows == 0 then rows, columns, cells = { f.by or "" }, { f.x or "" }, { { false } } end
  o.bare = not any
  return { kind = "heat", low = any and low or nil, high = any and high or nil, note = any and " ±: half of its width." or nil,
    x = { label = text.words(f.x), categories = columns }, y = { label = text.words(f.by), categories = rows }, cells = cells,
    value = axis_of(spec, f.y) }, counts
end

function makers.ranks(pick, _, f, o) return figure_rows.ranks(pick, f, o) end

function makers.solved(pick, spec, f, o) return solved_curves(pick, about(spec, f.y), f, o) end

-- ---- notes ----

local function count_note(counts, o)
  if #counts == 0 then return "No run is finished." end
  local least, most = tables.span(counts)
  local n = aggregate.count(least, most)
  if o.how then return o.how:format(n) end
  if o.bare then return ("%s of %s."):format(o.statistic == "iqm" and "Interquartile mean" or "Mean", n) end
  return aggregate.how(o.statistic, least, most, o.range ~= nil)
end

-- Where the drawing shows seeds in place of intervals, the note says so.
local function few_note(fig)
  for _, list in ipairs { fig.lines or {}, fig.bars or {} } do
    for _, item in ipairs(list) do
      if item.low and #(item.seeds or {}) > 1 and #item.seeds < FEW_SEEDS then
        return " With fewer than five seeds each is drawn; the table has the intervals."
      end
    end
  end
  return ""
end

---The one value that a figure shows everywhere, if there are several places and no difference: a sentence says as much.
---@return number? value
---@return integer? n how often
function figure.only_value(fig)
  local least, most, n = math.huge, -math.huge, 0
  local function see(v) if v then least, most, n = math.min(least, v), math.max(most, v), n + 1 end end
  for _, bar in ipairs(fig.bars or {}) do
    see(bar.y)
    for _, y in ipairs(bar.seeds or {}) do least, most = math.min(least, y), math.max(most, y) end
  end
  for _, row in ipairs(fig.cells or {}) do for c = 1, #fig.x.categories do see(row[c] or nil) end end
  for _, line in ipairs(fig.lines or {}) do for _, y in ipairs(line.y) do see(y) end end
  if n > 1 and most - least <= 1e-9 * math.max(math.abs(most), math.abs(least)) then return most, n end
end

---A figure of a study.
---@return table fig as insight/figures/figure_format.lua has it
function figure.new(study, spec, f)
  declaration.figure(f, "a figure")
  local make, o = makers[f[1]], { statistic = f.statistic or "mean", range = about(spec, f.y).range }
  if o.statistic == "geometric" and f[1] ~= "lines" then errors.raise(("study: a figure of %s: the geometric mean is for lines"):format(f[1])) end
  if f.log and f[1] ~= "lines" then errors.raise(("study: a figure of %s has log = %s, which is for lines"):format(f[1], f.log)) end
  local pick = figure_runs.pick(study, f.numbered and { f[1], y = f.y, by = f.by, where = f.where } or f)
  o.styles = figure_style.styles(tables.map(pick.groups, function(group) return group.name end), f.by == "core")
  local fig, counts = make(pick, spec, f, o)
  local title = f.title or ("%s by %s"):format(about(spec, f.y)[1] or text.words(f.y), text.words(f.by or f.x or "seed"))
  fig.title = figure_runs.title(title, pick)
  fig.note = count_note(counts, o) .. few_note(fig) .. figure_runs.note(pick) .. (fig.note or "")
  if f[1] == "lines" then set_logs(fig, f) end
  return fig
end

return figure
