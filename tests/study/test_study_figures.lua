-- test_study_figures.lua -- from a study on disk to its figures: numbers are those of mn.stats over seeds, and notes say
-- how many there were, which interval was taken, and what is missing.
local t = require "tests.harness"
local figure = require "mneme.lab.study.figure"
local figure_rows = require "mneme.lab.study.figure_rows"
local figures = require "mneme.insight.figures"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"
local stats = require "mneme.stats"

local here = shell.folder()

local function score(core, corridor, seed) return (core == "gru" and 0.5 or 0.8) - corridor / 1000 + seed * seed % 7 / 50 end

-- A study of two cores, three corridors and some seeds, as a sweep leaves it: gru's seed 2 at 40 has failed, and the last
-- seed of galite at 20 is open.
local function write_study(name, seeds, whole)
  local path, runs = here .. "/" .. name, {}
  for seed = 1, seeds do
    for _, core in ipairs { "gru", "galite" } do
      for _, corridor in ipairs { 20, 40, 60 } do
        local c = { name = ("core=%s,corridor=%d,seed=%d"):format(core, corridor, seed), labels = { core = core, corridor = tostring(corridor) },
          seed = seed, words = {} }
        runs[#runs + 1] = c
        local at = study_folder.run_path(path, c.name)
        files.make_folder(at)
        local result = { status = "done", point = c.labels, seed = seed, metrics = { score = score(core, corridor, seed), steps = 1000 },
          resources = { wall_s = 10 * seed, cpu_s = 9, peak_mib = 30 },
          series = { latency = { x = { 128, 256, 512 }, y = { 1e-4 * seed, 2e-4, 4e-4 * corridor } },
            ["probe/head 10"] = { x = { 1, 2 }, y = { 0.1, 0.2 } }, ["probe/head 9"] = { x = { 1, 2 }, y = { 0.3, seed / 10 } } } }
        if not whole and core == "gru" and corridor == 40 and seed == 2 then
          result = { status = "failed", point = c.labels, seed = seed, error = "out of memory" }
        end
        if whole or not (core == "galite" and corridor == 20 and seed == seeds) then study_folder.write_result(at, result) end
        local lines = {}
        for i = 1, 10 do
          lines[i] = json.encode { step = 100 * i, ["charts/score"] = score(core, corridor, seed) * i / 10, ["charts/SPS"] = 50 * seed } .. "\n"
        end
        files.write(at .. "/metrics.jsonl", lines)
        files.write(at .. "/config.json", { json.encode { config = {}, core = { name = core == "gru" and "gru" or "galite", config = { d_model = 16 } } } })
      end
    end
  end
  study_folder.write_info(path, { script = "none.lua", settings = "", runs = runs })
  return study_folder.load(path)
end

local spec = { metrics = { score = { "success", range = { 0, 1 } } }, references = { { "guessing", y = 0.25, of = "score" } } }
local three, whole, twelve = write_study("three", 3), write_study("whole", 3, true), write_study("twelve", 12, true)

local function values(core, corridor, seeds)
  local list = {}
  for i, seed in ipairs(seeds) do list[i] = score(core, corridor, seed) end
  return list
end

-- Mean, low and high by Student's t, within 0..1.
local function t_of(list)
  local mean, low, high = stats.bounded_interval(list, 0, 1)
  return { mean, low, high }
end

local function near_all(got, want)
  t.eq(#got, #want)
  for i = 1, #want do t.near(got[i], want[i], 1e-12, "number " .. i) end
end

t.test("bars: means with Student's interval of the seeds that are there; the others are named", function()
  local fig = figure.new(three, spec, { "bars", y = "score", x = "corridor", by = "core" })
  t.eq(fig.kind, "dots") t.eq(fig.y.label, "success") t.eq(fig.references[1].name, "guessing")
  local seen = {}
  for _, bar in ipairs(fig.bars) do seen[bar.name .. bar.group] = bar end
  near_all({ seen.gru20.y, seen.gru20.low, seen.gru20.high }, t_of(values("gru", 20, { 1, 2, 3 })))
  near_all(seen.gru40.seeds, values("gru", 40, { 1, 3 }))
  t.eq(seen.gru40.y, (stats.t_interval(values("gru", 40, { 1, 3 }))))
  near_all(seen.galite20.seeds, values("galite", 20, { 1, 2 }))
  for _, what in ipairs { "Mean of 2 to 3 seeds, 95 %% interval by Student's t, within the range%.", "failed: core=gru,corridor=40,seed=2%.",
                          "not finished: core=galite,corridor=20,seed=3%." } do t.ok(fig.note:find(what), fig.note) end
  figures.svg(fig)
end)

t.test("rows: the best first, in the same order in each column, unless an axis has an order; what claims are about is marked", function()
  local function names(y, by, x)
    local list = {}
    for i, bar in ipairs(figure.new(whole, spec, { "bars", y = y, by = by, x = x }).bars) do list[i] = bar.name end
    return table.concat(list, " ")
  end
  t.eq(names("score", "core", "corridor"), "galite gru galite gru galite gru")
  t.eq(names("score", "corridor", "core"), "20 40 60 20 40 60")
  local many = write_study("many", 1, true)
  for i, c in ipairs(many.runs) do
    c.labels, c.name = { core = "core " .. ("abcdef"):sub(i, i) }, ("core %d,seed=1"):format(i)
    c.metrics.bytes = 10 ^ i
  end
  table.insert(many.runs, setmetatable({ name = "core z,seed=1", labels = { core = "core z" }, seed = 1, status = "done", metrics = { bytes = 1 } },
    getmetatable(many.runs[1])))
  local fig = figure.new(many, { claims = { { text = "c", test = { "better", metric = "bytes", a = { core = "core b" }, b = { core = "core a" } } } } },
    { "bars", y = "bytes", by = "core" })
  t.eq(fig.kind, "dots") t.eq(fig.y.log, true) t.eq(fig.bars[1].name, "core f")
  for _, bar in ipairs(fig.bars) do t.eq(bar.marked, bar.name == "core b" or nil) end
  figures.svg(fig)
end)

t.test("rows most of which would be stubs next to the longest are dots on a logarithmic axis; few rows, and even ones, are bars", function()
  local function kind(heights)
    local fig = { kind = "bars", y = {}, bars = {} }
    for i, y in ipairs(heights) do fig.bars[i] = { name = "row " .. i, y = y } end
    figure_rows.set_kind(fig, {})
    return fig.kind .. (fig.y.log and " log" or "")
  end
  t.eq(kind { 20, 12, 2, 2, 2, 1, 1, 1 }, "dots log")
  t.eq(kind { 20, 12, 11, 10, 9, 2, 1, 1 }, "bars")
  t.eq(kind { 20, 2, 1 }, "bars")
  t.eq(kind { 60, 30, 1 }, "dots log")
  t.eq(kind { 20, 2, 2, 2, 1, 1, 1, -1 }, "dots")
end)

t.test("numbered: values of an axis with a number at their end are a line against it, others a reference", function()
  local ranks = write_study("ranks", 2, true)
  for _, c in ipairs(ranks.runs) do
    c.labels = { core = c.labels.core == "gru" and (c.labels.corridor == "20" and "exact" or "cos " .. c.labels.corridor) or "sin " .. c.labels.corridor }
    c.metrics.score = (tonumber(c.labels.core:match "%d+") or 100) / 100
  end
  local fig = figure.new(ranks, { metrics = spec.metrics }, { "lines", y = "score", x = "rank", by = "core", numbered = true, log = "x" })
  t.eq(#fig.lines, 2) t.eq(fig.lines[1].name, "cos") near_all(fig.lines[1].x, { 40, 60 }) near_all(fig.lines[2].y, { 0.2, 0.4, 0.6 })
  t.eq(#fig.references, 1) t.eq(fig.references[1].name, "exact") t.eq(fig.references[1].y, 1)
end)

t.test("a curve of others is a line as far as ours go, at its place alone; no level of other figures", function()
  local theirs = { "others", of = "score", where = { corridor = "40" }, curve = { { 100, 0.1 }, { 600, 0.3 }, { 2600, 0.7 } } }
  local with = { metrics = spec.metrics, references = { theirs } }
  local function curves(where) return figure.new(whole, with, { "curves", y = "charts/score", by = "core", where = where }) end
  local fig = curves { corridor = "40" }
  t.eq(#fig.lines, 3) t.eq(fig.lines[3].name, "others") t.eq(fig.references, nil) t.eq(fig.lines[3].low, nil)
  near_all(fig.lines[3].x, { 100, 600, 1000 }) near_all(fig.lines[3].y, { 0.1, 0.3, 0.38 })
  t.ok(figures.svg(fig):find("others", 1, true))
  t.eq(#curves { corridor = "20" }.lines, 2) t.eq(#curves().lines, 2)
  t.eq(figure.new(whole, with, { "bars", y = "score", by = "core" }).references, nil)
  theirs.curve = { { 5000, 1 } }
  t.eq(#curves { corridor = "40" }.lines, 2)
end)

t.test("a figure without information has one value, and says how often", function()
  local same = write_study("same", 2, true)
  for _, c in ipairs(same.runs) do c.metrics.score = 1 end
  local value, n = figure.only_value(figure.new(same, spec, { "bars", y = "score", x = "corridor", by = "core" }))
  t.eq(value, 1) t.eq(n, 6)
  t.eq(figure.only_value(figure.new(whole, spec, { "bars", y = "score", x = "corridor", by = "core" })), nil)
  t.eq((figure.only_value(figure.new(same, spec, { "heat", y = "score", x = "corridor", by = "core" }))), 1)
end)

t.test("ten seeds and more: the bootstrap; the interquartile mean where asked for", function()
  local fig = figure.new(twelve, spec, { "bars", y = "score", x = "corridor", by = "core" })
  local list = {}
  for seed = 1, 12 do list[seed] = score("gru", 20, seed) end
  local function gru() return fig.bars[2] end                       -- galite, the better one, stands first
  near_all({ gru().y, gru().low, gru().high }, { stats.interval(list, stats.mean) })
  t.ok(fig.note:find "Mean of 12 seeds, 95 %% bootstrap interval", fig.note)
  fig = figure.new(twelve, spec, { "bars", y = "score", x = "corridor", by = "core", statistic = "iqm" })
  near_all({ gru().y, gru().low, gru().high }, { stats.interval(list, stats.iqm) })
  t.ok(fig.note:find "Interquartile mean of 12 seeds", fig.note)
end)

t.test("an axis that is not told apart: each seed's mean, and only of seeds that have all of it", function()
  local fig = figure.new(three, spec, { "bars", y = "score", by = "core" })
  local means = {}
  for i, seed in ipairs { 1, 3 } do means[i] = stats.mean { score("gru", 20, seed), score("gru", 40, seed), score("gru", 60, seed) } end
  near_all(fig.bars[2].seeds, means)
  t.ok(fig.note:find "Each seed's number is its mean over corridor 20, 40, 60%.", fig.note)
  fig = figure.new(whole, spec, { "bars", y = "wall_s", by = "core", where = { corridor = 40 } })
  near_all(fig.bars[2].seeds, { 10, 20, 30 })
  t.eq(fig.y.unit, "s") t.eq(fig.y.range, nil) t.ok(fig.note:find "Mean of 3 seeds, 95 %% interval by Student's t, within the range%.", fig.note)
end)

t.test("a seed of which some runs were never swept is left out by name, as one of which a run failed", function()
  local more = write_study("more", 3, true)
  for i = #more.runs, 1, -1 do                     -- seed 3 has corridor 20 alone
    if more.runs[i].seed == 3 and more.runs[i].labels.corridor ~= "20" then table.remove(more.runs, i) end
  end
  local fig = figure.new(more, spec, { "bars", y = "score", by = "core" })
  for _, bar in ipairs(fig.bars) do t.eq(#bar.seeds, 2) near_all(bar.of, { 1, 2 }) end
  t.ok(fig.note:find("Left out, not swept: core=galite,corridor=40,seed=3; core=galite,corridor=60,seed=3; core=gru,corridor=40,seed=3; ", 1, true),
    fig.note)
  near_all(figure.new(more, spec, { "bars", y = "score", x = "corridor", by = "core" }).bars[1].of, { 1, 2, 3 })
end)

t.test("who has solved it, and when: a staircase of Kaplan and Meier; what cannot be drawn is an error", function()
  local path, runs = here .. "/solved", {}
  for seed, result in ipairs { { 300, 0.98 }, { 100, 0.97 }, { 500, 0.5 }, { 200, 0.1 } } do      -- the last ended early, without
    runs[seed] = { name = "core=gru,seed=" .. seed, labels = { core = "gru" }, seed = seed, words = {} }
    local at = study_folder.run_path(path, runs[seed].name)
    files.make_folder(at)
    study_folder.write_result(at, { status = "done", point = runs[seed].labels, seed = seed, metrics = { score = result[2], steps = result[1] } })
  end
  study_folder.write_info(path, { script = "none.lua", settings = "", runs = runs })
  local metrics = { score = { "success", range = { 0, 1 }, solved = 0.97 }, steps = { "steps" } }
  local fig = figure.new(study_folder.load(path), { metrics = metrics }, { "solved", y = "score", by = "core" })
  near_all(fig.lines[1].x, { 0, 100, 100, 300, 300, 500 })
  near_all(fig.lines[1].y, { 0, 0, 1 / 4, 1 / 4, 5 / 8, 5 / 8 })      -- at 300 one of the two that are left
  t.eq(fig.y.label, "share of seeds that have reached 0.97")
  t.ok(fig.note:find "Kaplan and Meier's estimate from 4 seeds", fig.note)
  t.ok(figures.svg(fig):find "<path", "it can be drawn")
  t.raises(figure.new, "metric score has no solved = number", three, spec, { "solved", y = "score", by = "core", where = { corridor = 40 } })
  local more = { metrics = { score = metrics.score, steps = metrics.steps } }
  t.raises(figure.new, "seed 1 of gru has 3 runs, expected one: narrow with where", three, more, { "solved", y = "score", by = "core" })
end)

t.test("the CSV of a figure has the seeds' own numbers", function()
  for _, kind in ipairs { "bars", "curves" } do
    local y = kind == "bars" and "score" or "charts/score"
    local csv, seen = figures.csv(figure.new(three, spec, { kind, y = y, by = "core", where = { corridor = 40 } })), {}
    for line in csv:gmatch "[^\n]+" do
      local field = line:match(kind == "bars" and "^[^,]*,[^,]*,gru,(%d+)," or "^gru,(%d+),")
      if field then seen[field] = true end
    end
    t.ok(seen["1"] and seen["3"] and not seen["2"], csv)           -- gru's seed 2 at 40 has failed
  end
end)

t.test("no interval leaves the range of what is measured; where numbers do, it is Student's", function()
  local near_one = write_study("near-one", 3, true)
  for _, c in ipairs(near_one.runs) do c.metrics.score = c.seed == 1 and 0.7 or 1 end
  for _, f in ipairs { { "bars", y = "score", by = "core" }, { "lines", y = "score", x = "corridor", by = "core" } } do
    local fig = figure.new(near_one, spec, f)
    local bar = fig.bars and fig.bars[1] or { y = fig.lines[1].y[1], low = fig.lines[1].low[1], high = fig.lines[1].high[1] }
    near_all({ bar.y, bar.low, bar.high }, t_of { 0.7, 1, 1 })
    t.ok(bar.high <= 1 and bar.low < 0.7)
  end
  for _, c in ipairs(near_one.runs) do c.metrics.score = c.metrics.score + 0.1 end
  local bar = figure.new(near_one, spec, { "bars", y = "score", by = "core" }).bars[1]
  t.near(bar.high, (select(3, stats.t_interval { 0.8, 1.1, 1.1 })), 1e-12)
end)

t.test("a geometric mean: Student's interval of logarithms; without it where a number is 0; no band with holes", function()
  local some = write_study("some", 3, true)
  for _, c in ipairs(some.runs) do c.metrics.score = 10 ^ (c.seed + (c.labels.corridor == "40" and 1 or 0)) end
  local f = { "lines", y = "score", x = "corridor", by = "core", log = "y", statistic = "geometric" }
  local fig = figure.new(some, {}, f)
  local _, low, high = stats.t_interval { math.log(10), math.log(100), math.log(1000) }
  near_all({ fig.lines[1].y[1], fig.lines[1].low[1], fig.lines[1].high[1] }, { 100, math.exp(low), math.exp(high) })
  t.near(fig.lines[1].y[2], 1000, 1e-9)
  t.ok(fig.note:find "Geometric mean of 3 seeds, 95 %% interval by Student's t of the logarithms%.", fig.note)
  for _, c in ipairs(some.runs) do if c.seed == 2 and c.labels.corridor == "40" then c.metrics.score = 0 end end
  fig = figure.new(some, {}, f)
  t.eq(fig.lines[1].low, nil) t.near(fig.lines[1].y[2], 10100 / 3, 1e-9)
  for _, c in ipairs(some.runs) do if c.seed > 1 and c.labels.corridor == "20" then c.status = "failed" end end
  fig = figure.new(some, {}, { "lines", y = "score", x = "corridor", by = "core" })
  t.eq(fig.lines[1].low, nil) t.eq(#fig.lines[1].y, 3)
  t.fails(function() figure.new(some, {}, { "bars", y = "score", by = "core", statistic = "geometric" }) end)
end)

t.test("curves: the mean of seeds at each step", function()
  local fig = figure.new(whole, spec, { "curves", y = "charts/score", by = "core", where = { corridor = "40" }, title = "corridor 40" })
  t.eq(fig.y.label, "success, mean of the episodes since the last log line")
  t.eq(#fig.lines, 2) t.eq(#fig.lines[1].seeds, 3)
  for i = 1, 10 do
    local column = {}
    for seed = 1, 3 do column[seed] = score("gru", 40, seed) * i / 10 end
    local mean, low, high = stats.bounded_interval(column, 0, 1)
    local line = fig.lines[1]
    t.eq(line.x[i], 100 * i)
    near_all({ line.y[i], line.low[i], line.high[i] }, { mean, low, high })
  end
  fig = figure.new(twelve, spec, { "curves", y = "charts/score", by = "core", where = { corridor = "40" } })
  local curves = {}
  for seed = 1, 12 do
    curves[seed] = { x = fig.lines[1].x, y = {} }
    for i = 1, 10 do curves[seed].y[i] = score("gru", 40, seed) * i / 10 end
  end
  local c = stats.curve(curves, stats.mean, { grid = fig.lines[1].x })
  near_all(fig.lines[1].y, c.value) near_all(fig.lines[1].low, c.low)
end)

t.test("curves: a run that stopped when it had solved its task keeps its last value, one that just ended early does not; the note says so", function()
  local path, runs = here .. "/stops", {}
  -- seed 1 stops after 4 of 10 log lines, at 0.9; the other seeds rise by 0.05 a line
  for seed = 1, 3 do
    local last = seed == 1 and 4 or 10
    local c = { name = "core=gru,seed=" .. seed, labels = { core = "gru" }, seed = seed, words = {} }
    runs[seed] = c
    local at, lines = study_folder.run_path(path, c.name), {}
    files.make_folder(at)
    study_folder.write_result(at, { status = "done", point = c.labels, seed = seed, metrics = { score = 0.9, steps = 100 * last } })
    for i = 1, last do lines[i] = json.encode { step = 100 * i, ["charts/score"] = seed == 1 and 0.225 * i or 0.05 * i } .. "\n" end
    files.write(at .. "/metrics.jsonl", lines)
  end
  study_folder.write_info(path, { script = "none.lua", settings = "", runs = runs })
  local function drawn(config)
    for _, c in ipairs(runs) do files.write(study_folder.run_path(path, c.name) .. "/config.json", { json.encode { config = config } }) end
    return figure.new(study_folder.load(path), spec, { "curves", y = "charts/score", by = "core" })
  end
  local fig = drawn { steps = 1000, stop_score = 0.9 }
  local line = fig.lines[1]
  t.eq(line.x[#line.x], 1000)
  t.near(line.y[#line.y], (0.9 + 0.5 + 0.5) / 3, 1e-12)
  t.near(line.seeds[1].y[#line.x], 0.9, 1e-12)
  t.ok(fig.note:find("stopped because it had solved its task keeps its last value", 1, true), fig.note)
  for _, config in ipairs { { steps = 1000 }, { steps = 400, stop_score = 0.9 } } do
    fig = drawn(config)
    t.eq(fig.lines[1].x[#fig.lines[1].x], 400, "nothing is known of what it would have done")
    t.ok(not fig.note:find("keeps its last value", 1, true), fig.note)
  end
end)

t.test("a value that this study does not have: its last one, in title and note", function()
  local fig = figure.new(whole, spec, { "curves", y = "charts/score", by = "core", where = { corridor = "200" }, title = "success, corridor 200" })
  t.eq(fig.title, "success, corridor 60")
  t.ok(fig.note:find "corridor 60 in place of 200", fig.note)
  near_all({ fig.lines[1].seeds[2].y[10] }, { score("gru", 60, 2) })
  local sizes = write_study("sizes", 2, true)
  for _, c in ipairs(sizes.runs) do c.labels.steps = c.labels.corridor == "20" and "1e6" or "5e6" end
  fig = figure.new(sizes, spec, { "bars", y = "score", by = "core", where = { steps = 1e6 }, title = "at 1e6" })
  t.eq(fig.title, "at 1e6") near_all(fig.bars[2].seeds, values("gru", 20, { 1, 2 }))
end)

t.test("lines against an axis, and of series", function()
  local fig = figure.new(whole, spec, { "lines", y = "score", x = "corridor", by = "core", log = "x" })
  near_all(fig.lines[2].x, { 20, 40, 60 })
  t.eq(fig.x.log, true) near_all(fig.x.ticks, { 20, 40, 60 })
  near_all({ fig.lines[2].y[3], fig.lines[2].low[3], fig.lines[2].high[3] }, t_of(values("galite", 60, { 1, 2, 3 })))
  fig = figure.new(whole, spec, { "lines", y = "latency", by = "core", where = { corridor = "20" }, log = "xy" })
  near_all(fig.lines[1].x, { 128, 256, 512 })
  near_all(fig.lines[1].y, { 2e-4, 2e-4, 8e-3 })
  t.ok(fig.y.log)
  figures.svg(fig)
end)

t.test("what is 0 has no place on a logarithmic axis, and the note says so", function()
  local zero = write_study("zero", 2, true)
  for _, c in ipairs(zero.runs) do
    if c.labels.core == "gru" then c.metrics.score = 0 elseif c.labels.corridor == "20" then c.metrics.score = c.seed - 1 end
  end
  local fig = figure.new(zero, spec, { "lines", y = "score", x = "corridor", by = "core", log = "y" })
  t.eq(#fig.lines, 1) near_all(fig.lines[1].x, { 20, 40, 60 })
  t.ok(fig.note:find "no place on a logarithmic axis: gru%.", fig.note)
  figures.svg(fig)
  fig = figure.new(zero, spec, { "lines", y = "latency", by = "core", log = "xy" })
  t.eq(#fig.lines, 2)
end)

t.test("series of seeds that were asked at other places: those that all have, not a grid between them", function()
  local aggregate, of = require "mneme.lab.study.aggregate", { { x = { 0, 2, 4, 6 }, y = { 1, 2, 3, 4 } }, { x = { 0, 4, 5 }, y = { 3, 5, 9 } } }
  local runs = { { name = "seed=1", seed = 1, status = "done" }, { name = "seed=2", seed = 2, status = "done" } }
  local line, n = aggregate.line("a", runs, function(c) return of[c.seed] end, { statistic = "mean", rule = "linear" }, {})
  near_all(line.x, { 0, 4 }) near_all(line.y, { 2, 4 }) t.eq(n, 2)
  of[2] = { x = { 1, 3, 5 }, y = { 3, 5, 9 } }                                   -- none: as curves
  line = aggregate.line("a", runs, function(c) return of[c.seed] end, { statistic = "mean", rule = "linear" }, {})
  t.ok(#line.x > 2 and line.x[1] == 1 and line.x[#line.x] == 5)
end)

t.test("heat maps of axes and of series, whose rows are numbered as people count", function()
  local fig = figure.new(three, spec, { "heat", y = "score", x = "corridor", by = "core" })
  t.eq(table.concat(fig.x.categories, " "), "20 40 60") t.eq(table.concat(fig.y.categories, " "), "gru galite")
  t.near(fig.cells[1][2], stats.mean(values("gru", 40, { 1, 3 })), 1e-12)
  local _, low, high = require("mneme.lab.study.aggregate").interval(values("gru", 40, { 1, 3 }), "mean", spec.metrics.score.range)
  t.near(fig.low[1][2], low, 1e-12) t.near(fig.high[1][2], high, 1e-12)
  t.ok(fig.note:find("95 % interval", 1, true), fig.note)
  t.ok(require("mneme.insight.figures.figure_csv").csv(fig):find("^[^\n]*,low,high\n"), "as CSV")
  fig = figure.new(whole, spec, { "heat", y = "probe", x = "step", by = "head", where = { corridor = "20", core = "gru" } })
  t.eq(table.concat(fig.y.categories, " "), "head 9 head 10") t.eq(table.concat(fig.x.categories, " "), "1 2")
  near_all(fig.cells[1], { 0.3, 0.2 })
end)

t.test("ranks: of those that have runs, over the tasks that all of them have", function()
  local fig = figure.new(whole, spec, { "ranks", y = "score", x = "corridor", by = "core" })
  local scores = { {}, {} }
  for m, core in ipairs { "gru", "galite" } do
    for i, corridor in ipairs { 20, 40, 60 } do scores[m][i] = values(core, corridor, { 1, 2, 3 }) end
  end
  local want = stats.ranks(scores)
  t.eq(#fig.bars, 2)
  for _, bar in ipairs(fig.bars) do
    local rank = want[bar.name == "gru" and 1 or 2]
    t.near(bar.y, rank.value, 1e-12) t.near(bar.low, rank.low, 1e-12) t.near(bar.high, rank.high, 1e-12)
  end
  t.ok(fig.bars[1].y <= fig.bars[2].y, "the best first")
  t.ok(fig.note:find(("%.2f apart"):format(stats.critical_difference(2, 3)), 1, true), fig.note)
  t.raises(function() figure.new(whole, spec, { "ranks", y = "score", by = "core" }) end, "ranks need")
  local one = { path = whole.path, info = {}, runs = {} }
  for _, c in ipairs(whole.runs) do if c.seed == 1 then one.runs[#one.runs + 1] = c end end
  fig = figure.new(one, spec, { "ranks", y = "score", x = "corridor", by = "core" })
  t.eq(fig.bars[1].low, nil) t.ok(not fig.note:find("bootstrap", 1, true), fig.note)
end)

t.test("nothing finished yet: empty figures that say so", function()
  local open = { path = here, info = {}, runs = {} }
  for i, c in ipairs(whole.runs) do
    open.runs[i] = setmetatable({ name = c.name, path = here .. "/none", status = "open", labels = c.labels, seed = c.seed, metrics = {} }, getmetatable(c))
  end
  for _, kind in ipairs { "curves", "bars", "lines", "heat", "ranks" } do
    local fig = figure.new(open, spec, { kind, y = "score", x = "corridor", by = "core" })
    t.ok(fig.note:find "No run is finished" and fig.note:find "not finished: %d+ of %d+ runs", fig.note)
    figures.section(fig, "a")
  end
  for _, f in ipairs { { "heat", y = "probe", x = "step", by = "head" }, { "lines", y = "latency", x = "steps back", by = "core" } } do
    t.ok(figure.new(open, spec, f).note:find "No run is finished", f.y)
  end
end)

t.test("mistakes in a study's figures are told", function()
  local function refused(what, f) t.raises(function() figure.new(whole, spec, f) end, what) end
  refused("did you mean 'curves'", { "curve", y = "charts/score" })
  refused("did you mean 'charts/score'", { "curves", y = "charts/scores", by = "core" })
  refused("did you mean 'score'", { "bars", y = "scores", by = "core" })
  refused("did you mean 'corridor'", { "bars", y = "score", by = "corridr" })
  refused("did you mean 'core'", { "bars", y = "score", by = "core", where = { coer = 1 } })
  refused("expected x = an axis", { "lines", y = "score", by = "core" })
  refused("no number", { "lines", y = "score", x = "core" })
  refused("no y", { "bars" })
  refused("unknown statistic", { "bars", y = "score", statistic = "max" })
  refused("which is for lines", { "bars", y = "score", log = "y" })
  refused("where is a number, expected a table", { "bars", y = "score", where = 3 })
  refused("unknown log", { "bars", y = "score", log = "z" })
  refused("did you mean 'where'", { "bars", y = "score", were = {} })
end)

t.test("all figures of a study, the same bytes each time", function()
  local all = { metrics = spec.metrics, figures = { { "bars", y = "score", by = "core" }, { "curves", y = "charts/score", by = "core" } } }
  local function bytes()
    local parts = {}
    for i, f in ipairs(all.figures) do parts[i] = figures.section(figure.new(twelve, all, f), "f" .. i) end
    return table.concat(parts)
  end
  t.eq(bytes(), bytes())
end)

os.execute("rm -r '" .. here .. "'")
