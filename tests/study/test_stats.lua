-- test_stats.lua -- statistics of seeds against scipy, statsmodels and rliable (tests/reference/stats.py), and what no
-- library tells: how often the intervals hold what they are to hold, and that nothing is said of a single seed.
local ffi = require "ffi"
local t = require "tests.harness"
local C = require("mneme.base.engine").C
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local json = require "mneme.base.json"
local mn = require "mneme"
local stats = mn.stats

local path = registry.root .. "tests/fixtures/stats.json"
local want = json.decode(files.read(path), path)

-- Equal in parts of the larger one.
local function same(got, expected, tolerance, name)
  t.near(got, expected, tolerance * math.max(math.abs(expected), 1e-300), name)
end

-- ---- functions ----

t.test("quantiles of Student's t and of the normal distribution are scipy's within 1e-10", function()
  for _, c in ipairs(want.student_quantile) do
    same(stats.student_quantile(c[1], c[2]), c[3], 1e-10, ("p=%g df=%g"):format(c[1], c[2]))
  end
  for _, c in ipairs(want.normal_quantile) do same(stats.normal_quantile(c[1]), c[2], 1e-12, "p=" .. c[1]) end
  same(stats.student_quantile(0.975, math.huge), stats.normal_quantile(0.975), 1e-15)
  same(stats.student_quantile(0.75, 1), 1, 1e-14, "Cauchy's quartile")
  same(stats.student_quantile(1e-60, 1), -1e60 / math.pi, 1e-10, "far out")
end)

t.test("the shares below are scipy's within 1e-10", function()
  for _, c in ipairs(want.student_cdf) do same(stats.student_cdf(c[1], c[2]), c[3], 1e-10, ("t=%g df=%g"):format(c[1], c[2])) end
  for _, c in ipairs(want.normal_cdf) do same(stats.normal_cdf(c[1]), c[2], 1e-12, "z=" .. c[1]) end
  t.eq(stats.student_cdf(math.huge, 3), 1)
  t.eq(stats.student_cdf(-math.huge, 3), 0)
end)

-- ---- one number for many ----

t.test("mean, median, interquartile mean are rliable's; spread numpy's", function()
  for name, of in pairs(want.aggregates) do
    for set, value in pairs(of) do t.near(stats[name](want[set]), value, 1e-12, name .. " of " .. set) end
  end
  local one = want.one_task
  for n, value in ipairs(one.iqm) do
    local list = {}
    for i = 1, n do list[i] = want.y[1][i] end
    t.near(stats.iqm(list), value, 1e-12, n .. " seeds")
  end
  t.near(stats.sd(want.y[1]), one.sd, 1e-12)
  t.eq(stats.median { 3, 1, 2 }, 2)
  t.eq(stats.sd { 3 }, nil)
end)

-- ---- intervals with a formula ----

t.test("Wilson's interval; Student's, paired and Welch's: scipy's", function()
  for _, c in ipairs(want.wilson) do
    local share, low, high = stats.wilson(c[1], c[2], c[3])
    t.near(share, c[4], 1e-15)
    t.near(low, c[5], 1e-12)
    t.near(high, c[6], 1e-12)
  end
  local function held(name, f)
    for _, c in ipairs(want[name]) do
      local value, low, high, p = f(c[2], c[1])
      t.near(low, c[3], 1e-11, name)
      t.near(high, c[4], 1e-11, name)
      same(p, c[5], 1e-9, name)
      t.near(value, (low + high) / 2, 1e-12)
    end
  end
  held("t", function(task, level) return stats.t_interval(want.x[task], level) end)
  held("welch", function(task, level) return stats.welch_interval(want.x[task], want.y[task], level) end)
  held("paired_t", function(task, level) return stats.paired_t_interval(want.x[task], want.z[task], level) end)
end)

t.test("the interval of a mean within a range: statsmodels', of as many trials as would spread so much", function()
  for i, c in ipairs(want.bounded) do
    local of = "case " .. i
    local mean, low, high, p = stats.bounded_interval(c.list, c.range[1], c.range[2], c.level, c.mean)
    local span = c.range[2] - c.range[1]
    t.near(mean, stats.mean(c.list), 0, of)
    t.near(low, c.low, 1e-11 * span, of)
    t.near(high, c.high, 1e-11 * span, of)
    same(p, c.p, 1e-8, of)
    t.ok(low >= c.range[1] and high <= c.range[2], of)
    t.eq(low <= c.mean and c.mean <= high, p >= 1 - c.level, of .. ": p and the interval agree")
  end
  local _, low, high = stats.bounded_interval({ 0.4999, 0.5, 0.5003 }, 0, 1)         -- far from the ends: Student's
  local _, t_low, t_high = stats.t_interval { 0.4999, 0.5, 0.5003 }
  t.near(low, t_low, 1e-6)
  t.near(high, t_high, 1e-6)
  local mean, same_low, same_high, p = stats.bounded_interval({ 1, 1, 1 }, 0, 1, 0.95, 0.5)
  t.ok(mean == 1 and same_low == 1 and same_high == 1 and p == 0)
  t.fails(function() stats.bounded_interval({ 0.5, 1.2 }, 0, 1) end)
  t.fails(function() stats.bounded_interval({ 0.5, 0.7 }, 1, 0) end)
  t.fails(function() stats.bounded_interval({ 0.5, 0.7 }, nil, 0) end)
  t.fails(function() stats.paired_shares(1, nil, 2, 3) end)
  local many = {}
  for i = 1, 1e4 do many[i] = i % 2 end
  t.near(stats.bounded_interval(many, 0, 1), 0.5, 1e-12, "more seeds than unpack takes")
  t.raises(function() stats.bounded_interval({ 0.5, 0.7 }, 0, 1, 0.95, 2) end, "value is 2")
end)

t.test("paired shares: Newcombe's published example, and what must hold", function()
  local d, low, high = stats.paired_shares(36, 12, 2, 0)             -- 0.0569 to 0.3404 by method 10
  t.near(d, 0.2, 1e-12)
  t.near(low, 0.0569, 1e-4)
  t.near(high, 0.3404, 1e-4)
  local e, low_e, high_e = stats.paired_shares(36, 2, 12, 0)         -- the other way round
  t.near(e, -d, 1e-12)
  t.near(low_e, -high, 1e-12)
  t.near(high_e, -low, 1e-12)
  d, low, high = stats.paired_shares(10, 0, 0, 0)
  t.ok(d == 0 and low < 0 and high > 0)
end)

-- ---- the bootstrap ----

-- Estimates are equal; the ends of intervals, over several seeds, are on average where rliable's are, and spread as much.
local SEEDS = 10
local function as_rliable(name, of, width, f)
  local ends = { {}, {} }
  for seed = 1, SEEDS do
    local value, low, high = f { reps = want.reps, seed = seed }
    for k = 1, width do
      t.near(value[k], of.value[k], 1e-12, name)
      ends[1][k], ends[2][k] = ends[1][k] or {}, ends[2][k] or {}
      ends[1][k][seed], ends[2][k][seed] = low[k], high[k]
    end
  end
  for e = 1, 2 do
    for k = 1, width do
      local mean, sd = of.mean[e][k], of.sd[e][k]
      local label = ("%s, end %d of number %d"):format(name, e, k)
      t.near(stats.mean(ends[e][k]), mean, 4.5 * sd * math.sqrt(1 / SEEDS + 1 / want.repeats) + 1e-9, label)
      t.ok(stats.sd(ends[e][k]) < 2.5 * sd + 1e-9, label .. ": spread")
    end
  end
end

local function single(f)
  return function(o)
    local value, low, high = f(o)
    return { value }, { low }, { high }
  end
end

t.test("bootstrap intervals are rliable's within what draws make of them", function()
  for name, of in pairs(want.intervals) do
    as_rliable(name, of, 1, single(function(o) return stats.interval(want.x, stats[name], o) end))
  end
  as_rliable("probability of improvement", want.improvement, 1, single(function(o)
    return stats.probability_of_improvement(want.x, want.y, o)
  end))
  as_rliable("paired difference", want.paired_difference, 1, single(function(o)
    return stats.paired_difference(want.x, want.z, stats.iqm, o)
  end))
end)

t.test("mean ranks: ties share, intervals are of tasks and seeds; the critical difference is Demsar's table", function()
  -- Demsar 2006, table 5: q at 0.05 and 0.10 of 2, 3, 5, 10 methods
  for k, q in pairs { [2] = { 1.960, 1.645 }, [3] = { 2.343, 2.052 }, [5] = { 2.728, 2.459 }, [10] = { 3.164, 2.920 } } do
    for i, level in ipairs { 0.95, 0.9 } do t.near(stats.critical_difference(k, 14, level), q[i] * math.sqrt(k * (k + 1) / (6 * 14)), 5e-4) end
  end
  local r = stats.ranks { { { 1, 3 }, { 5 } }, { { 2 }, { 5 } }, { { 0, 1 }, { 9 } } }
  t.near(r[1].value, (1.5 + 2.5) / 2, 1e-12) t.near(r[2].value, (1.5 + 2.5) / 2, 1e-12) t.near(r[3].value, 2, 1e-12)
  t.eq(r[1].low, nil, "of one seed nothing is known")
  local scores, above = { {}, {}, {} }, { 0, 0.05, 5 }
  for m = 1, 3 do
    for task = 1, 8 do scores[m][task] = { above[m] + 0.3 * math.sin(task * m), above[m] + 0.3 * math.cos(task + m), above[m] + 0.1 * m } end
  end
  local first = stats.ranks(scores, { reps = 500 })
  t.eq(first[3].value, 1) t.ok(first[3].low == 1 and first[3].high == 1, "always the best")
  t.ok(first[1].low < first[1].value and first[1].value < first[1].high and first[1].high <= 3)
  t.eq(("%.17g"):format(first[1].low), ("%.17g"):format(stats.ranks(scores, { reps = 500 })[1].low))
  t.ok(stats.critical_difference(3, 8) > stats.critical_difference(3, 80))
  t.raises(function() stats.ranks { { { 1 } } } end, "two methods")
  t.raises(function() stats.ranks { { { 1 } }, { { 1 }, { 2 } } } end, "expected the same of each method")
  t.raises(function() stats.ranks { { { 1 } }, { { 0 / 0 } } } end, "finite")
  t.raises(function() stats.critical_difference(1, 3) end, "at least 2")
end)

t.test("equal seeds give equal intervals, others do not; a list is one task; any function is a statistic", function()
  local function ends(scores, f, o) return ("%.17g %.17g %.17g"):format(stats.interval(scores, f, o)) end
  t.eq(ends(want.x, stats.iqm, { seed = 3 }), ends(want.x, stats.iqm, { seed = 3 }))
  t.ok(ends(want.x, stats.iqm, { seed = 3 }) ~= ends(want.x, stats.iqm, { seed = 4 }))
  t.eq(ends(want.x[1], stats.mean), ends({ want.x[1] }, stats.mean))
  local function largest(scores) return math.max(unpack(scores[1])) end
  local value, low, high = stats.interval({ 1, 5, 3, 4 }, largest)
  t.ok(value == 5 and high == 5 and low >= 1 and low < 5)
  local _, wide_low, wide_high = stats.interval(want.x, stats.mean, { level = 0.99 })
  local _, slim_low, slim_high = stats.interval(want.x, stats.mean, { level = 0.5 })
  t.ok(wide_low < slim_low and slim_high < wide_high)
  -- drawn together, what both share falls out
  local _, same_low, same_high = stats.paired_difference(want.x, want.x, stats.mean)
  t.ok(same_low == 0 and same_high == 0)
end)

-- ---- tests ----

t.test("ties survive rounding", function()
  t.ok(0.3 - 0.1 ~= 0.2 and 0.52 - 0.42 ~= 0.21 - 0.11, "there is something to round")
  local wins, losses, equal = stats.wins({ 0.3 - 0.1, 0.5 }, { 0.2, 0.4 })
  t.ok(wins == 1 and losses == 0 and equal == 1)
end)

t.test("solved by k of n seeds, with Wilson's interval", function()
  local k, n, low, high = stats.solved({ 0.95, 0.2, 1, 0.97, 0.949 }, 0.95)
  local _, want_low, want_high = stats.wilson(3, 5)
  t.ok(k == 3 and n == 5 and low == want_low and high == want_high)
  t.raises(stats.solved, "threshold is nil", { 1 })
end)

t.test("the sign test, which is McNemar's, and Holm's correction", function()
  for _, c in ipairs(want.sign_test) do same(stats.sign_test(c[1], c[2]), c[3], 1e-9, c[1] .. " against " .. c[2]) end
  t.eq(stats.sign_test(0, 0), 1)
  t.near(stats.sign_test(0, 200) / (2 * 0.5 ^ 200), 1, 1e-9)
  local wins, losses, ties = stats.wins({ 1, 2, 3, 4 }, { 0, 2, 4, 1 })
  t.ok(wins == 2 and losses == 1 and ties == 1)
  for i, p in ipairs(stats.holm(want.holm.p)) do t.near(p, want.holm.adjusted[i], 1e-12) end
end)

-- ---- curves ----

t.test("curves meet on common steps: the last value, or straight lines, as numpy does", function()
  local c = want.curves
  for _, rule in ipairs { "last", "linear" } do
    local steps, values = stats.align(c.curves, { grid = c.grid, rule = rule })
    t.eq(steps, c.grid)
    for i, row in ipairs(c[rule]) do
      for k, v in ipairs(row) do t.near(values[i][k], v, 1e-12, rule) end
    end
  end
  local uneven = { { x = { 0, 10, 10, 20 }, y = { 1, 2, 3, 4 } }, { x = { 5, 15, 40 }, y = { 7, 8, 9 } } }
  local steps, values = stats.align(uneven, { points = 4 })
  t.eq(table.concat(steps, " "), "5 10 15 20")
  t.eq(table.concat(values[1], " "), "1 3 3 4", "a step that was logged twice: the later")
  t.eq(table.concat(values[2], " "), "7 7 8 8")
  values = select(2, stats.align(uneven, { points = 4, rule = "linear" }))
  t.eq(table.concat(values[1], " "), "1.5 3 3.5 4")
  t.eq(#stats.align { { x = { 3 }, y = { 1 } } }, 1, "one step, one point")
end)

t.test("the curve of seeds: at every step the statistic and its interval", function()
  local all = stats.curve(want.curves.curves, stats.mean, { grid = want.curves.grid, reps = 500 })
  t.ok(all.n == 3 and #all.seeds == 3 and all.x == want.curves.grid)
  for k = 1, #all.x do
    local column = {}
    for i = 1, 3 do column[i] = want.curves.last[i][k] end
    local value, low, high = stats.interval(column, stats.mean, { reps = 500 })
    t.near(all.value[k], value, 1e-12)
    t.near(all.low[k], low, 1e-12)                     -- the same draws, of whole curves
    t.near(all.high[k], high, 1e-12)
  end
end)

-- ---- one seed ----

t.test("equal numbers have no spread, however their mean is rounded", function()
  for _, v in ipairs { 0.1, 0.7, 1 / 3 } do t.eq(stats.sd { v, v, v }, 0) end
  local d, low, high = stats.welch_interval({ 0.1, 0.1, 0.1 }, { 0.7, 0.7, 0.7 })
  t.near(d, -0.6, 1e-12) t.eq(low, d) t.eq(high, d)
end)

t.test("numbers that rounding alone tells apart do not differ, in whatever is asked of them", function()
  local function rep(v, n)
    local list = {}
    for i = 1, n do list[i] = v end
    return list
  end
  for _, v in ipairs { 0.1, 0.7, 0.9, 0.97 } do
    for n = 2, 12 do
      for m = 2, 12 do
        local a, b = rep(v, n), rep(v, m)
        local d, low, high, p = stats.welch_interval(a, b)
        t.eq(("%g %g %g %g"):format(d, low, high, p), "0 0 0 1", ("%d and %d of %g"):format(n, m, v))
        t.eq(stats.ranks({ { a, a }, { b, b } }, { reps = 100 })[2].value, 1.5)
      end
      t.eq(select(4, stats.bounded_interval(rep(v, n), 0, 1, 0.95, v)), 1)
      local a, b = rep(v * 3, n), rep(v + v + v, n)
      t.eq(select(4, stats.paired_t_interval(a, b)), 1)
      t.eq(stats.probability_of_improvement(a, b, { reps = 100 }), 0.5)
    end
  end
end)

t.test("of one seed there is an estimate and no interval", function()
  local one, two = { { 0.5 }, { 0.7 } }, { { 0.5, 0.6 }, { 0.7, 0.9 } }
  local function none(name, value, low, high)
    t.ok(type(value) == "number" and low == nil and high == nil, name)
  end
  none("interval", stats.interval(one, stats.iqm))
  none("paired difference", stats.paired_difference(one, one, stats.mean))
  none("probability of improvement", stats.probability_of_improvement(two, one))
  none("t", stats.t_interval { 3 })
  none("within a range", stats.bounded_interval({ 0.3 }, 0, 1))
  none("paired t", stats.paired_t_interval({ 3 }, { 4 }))
  none("Welch", stats.welch_interval({ 3 }, { 4, 5 }))
  local c = stats.curve({ { x = { 1, 2 }, y = { 3, 4 } } }, stats.iqm)
  t.ok(c.value[1] == 3 and c.low == nil and c.high == nil and c.n == 1)
end)

-- ---- how often intervals hold ----

-- Is a share of `trials` as large as theory says, within four of its deviations and what theory leaves open?
local function covers(name, trials, theory, slack, f)
  local held = 0
  for trial = 1, trials do if f(trial) then held = held + 1 end end
  t.near(held / trials, theory, 4 * math.sqrt(theory * (1 - theory) / trials) + slack, name)
end

local room = ffi.new("float[?]", 64)
-- n normal numbers of a trial.
local function normal(trial, purpose, n, mean, sd)
  C.mn_random_normal(11, trial, purpose, room, n)
  local list = {}
  for i = 1, n do list[i] = mean + sd * room[i - 1] end
  return list
end

local function holds(truth, _, low, high) return low <= truth and truth <= high end

t.test("95 % intervals of normal seeds hold the truth in 95 %: Student's, paired, Welch's", function()
  covers("t, three seeds", 4000, 0.95, 0, function(k) return holds(2, stats.t_interval(normal(k, 1, 3, 2, 0.5))) end)
  covers("t, 90 %", 4000, 0.90, 0, function(k) return holds(2, stats.t_interval(normal(k, 2, 6, 2, 0.5), 0.9)) end)
  covers("Welch", 4000, 0.95, 0.01, function(k)
    return holds(1, stats.welch_interval(normal(k, 3, 5, 1, 1), normal(k, 4, 9, 0, 3)))
  end)
  local paired, apart = 0, 0
  covers("paired t", 2000, 0.95, 0, function(k)
    local shared, a, b = normal(k, 5, 6, 0, 3), normal(k, 6, 6, 1, 0.2), normal(k, 7, 6, 0, 0.2)
    for i = 1, 6 do a[i], b[i] = a[i] + shared[i], b[i] + shared[i] end
    local _, low, high = stats.paired_t_interval(a, b)
    local _, low_apart, high_apart = stats.welch_interval(a, b)
    paired, apart = paired + high - low, apart + high_apart - low_apart
    return low <= 1 and 1 <= high
  end)
  t.ok(paired < apart / 5, "what seeds share falls out")
end)

-- Scores of three seeds, 1 - u^4 with u even in 0..1: most near 1, where Student's interval is lopsided.
t.test("95 % intervals of scores near the end of their range: within it, and they hold more often than Student's", function()
  local function scores(k)
    local list = normal(k, 10, 3, 0, 1)
    for i, z in ipairs(list) do list[i] = 1 - stats.normal_cdf(z) ^ 4 end
    return list
  end
  local student, bounded = 0, 0
  for k = 1, 3000 do
    local list = scores(k)
    if holds(0.8, stats.t_interval(list)) then student = student + 1 end
    local _, low, high = stats.bounded_interval(list, 0, 1)
    t.ok(low >= 0 and high <= 1)
    if low <= 0.8 and 0.8 <= high then bounded = bounded + 1 end
  end
  t.ok(bounded > student + 60, bounded .. " against " .. student)
  t.near(bounded / 3000, 0.88, 0.02)
end)

t.test("Wilson's interval of ten trials holds 95 % on average over all shares, counted exactly", function()
  local n, sum, points = 10, 0, 999
  for i = 1, points do
    local p, chance = i / (points + 1), (1 - i / (points + 1)) ^ n
    for k = 0, n do
      if holds(p, stats.wilson(k, n)) then sum = sum + chance end
      chance = chance * (n - k) / (k + 1) * p / (1 - p)
    end
  end
  t.near(sum / points, 0.953, 0.005)                   -- Agresti and Coull 1998, figure 5: just above 0.95
end)

-- The percentile bootstrap of a mean is about as wide as 1.96 deviations, worked out with n in place of n - 1: how often
-- it holds follows from Student's t.
local function bootstrap_theory(n, df)
  return 1 - 2 * stats.student_cdf(-1.959964 * math.sqrt((n - 1) / n), df)
end

t.test("the percentile bootstrap holds less often with few seeds, by as much as theory says", function()
  covers("three seeds", 1000, 0.75, 0, function(k)     -- from the least to the largest: 1 - 2 / 2^3
    return holds(0, stats.interval(normal(k, 8, 3, 0, 1), stats.mean, { reps = 400, seed = k }))
  end)
  covers("ten seeds", 1200, bootstrap_theory(10, 9), 0.01, function(k)
    return holds(0, stats.interval(normal(k, 9, 10, 0, 1), stats.mean, { reps = 400, seed = k }))
  end)
  covers("ten tasks of five seeds", 800, bootstrap_theory(5, 40), 0.01, function(k)
    local all, scores = normal(k, 10, 50, 0, 1), {}
    for task = 1, 10 do
      scores[task] = {}
      for s = 1, 5 do scores[task][s] = 3 * task + all[5 * task - 5 + s] end
    end
    return holds(16.5, stats.interval(scores, stats.mean, { reps = 400, seed = k }))
  end)
end)

t.test("p-values of seeds that do not differ are below 0.05 in no more than 5 %", function()
  local trials, below = 3000, 0
  for k = 1, trials do
    local _, _, _, p = stats.paired_t_interval(normal(k, 12, 8, 0, 1), normal(k, 13, 8, 0, 1))
    if p < 0.05 then below = below + 1 end
  end
  t.near(below / trials, 0.05, 4 * math.sqrt(0.05 * 0.95 / trials))
end)

-- ---- what is refused ----

t.test("what cannot be counted with is refused by name", function()
  local nan = 0 / 0
  for name, f in pairs { mean = stats.mean, iqm = stats.iqm, median = stats.median, sd = stats.sd, t_interval = stats.t_interval, holm = stats.holm } do
    t.raises(f, "stats%." .. name .. ": value 2 is nan, expected a finite number", { 1, nan })
    t.raises(f, "stats%." .. name .. ": value 1 is inf", { math.huge })
    t.raises(f, "stats%." .. name .. ": the list is empty", {})
    t.raises(f, "stats%." .. name .. ": value 1 is x", { "x" })
    t.raises(f, "stats%." .. name .. ": given nil, expected a list of numbers", nil)
  end
  local x = { { 1, 2 }, { 3, 4 } }
  t.raises(stats.mean, "stats.mean: task 2: given 3, expected a list of numbers", { { 1 }, 3 })
  t.raises(stats.mean, "stats.mean: value 2 is a table, expected a finite number", { 3, { 1 } })
  t.raises(stats.iqm, "task 1 has 2 seeds and task 2 has 1, expected as many of each", { { 1, 2 }, { 3 } })
  t.raises(stats.interval, "stats.interval: task 2, value 1 is nan", { { 1, 2 }, { nan, 3 } }, stats.mean)
  t.raises(stats.interval, "the statistic is iqm, expected a function of scores, such as mn.stats.iqm", x, "iqm")
  t.raises(stats.interval, "the statistic gives nil, expected a number", x, function() end)
  t.raises(stats.interval, "what the statistic gives is nan", x, function() return nan end)
  t.raises(stats.interval, "unknown option of stats.interval: 'rep'; did you mean 'reps'", x, stats.mean, { rep = 500 })
  t.raises(stats.interval, "reps is 5, expected a whole number of at least 100", x, stats.mean, { reps = 5 })
  t.raises(stats.interval, "reps is 1000000000, expected no more than 1000000", x, stats.mean, { reps = 1e9 })
  t.raises(stats.interval, "level is 95, expected a number between 0 and 1, such as 0.95", x, stats.mean, { level = 95 })
  t.raises(stats.paired_difference, "scores of 2 and of 1 tasks, expected the same tasks", x, { 1, 2 }, stats.mean)
  t.raises(stats.paired_difference, "2 and 3 seeds, expected equal seeds", { 1, 2 }, { 1, 2, 3 }, stats.mean)
  t.raises(stats.wilson, "successes are 4, expected a number from 0 to n=3", 4, 3)
  t.raises(stats.wilson, "n is 0, expected a whole number of at least 1", 0, 0)
  t.raises(stats.paired_shares, "both is 0.5, expected a whole number", 0.5, 1, 1, 1)
  t.raises(stats.sign_test, "losses is %-1, expected a whole number", 3, -1)
  t.raises(stats.holm, "value 2 is 1.5, expected a p%-value from 0 to 1", { 0.5, 1.5 })
  for _, name in ipairs { "paired_t_interval", "wins" } do
    t.raises(stats[name], "stats." .. name .. ": lists of 2 and 3 numbers, expected equal seeds in both", { 1, 2 }, { 1, 2, 3 })
  end
  t.raises(stats.student_quantile, "p is 0, expected a probability", 0, 3)
  t.raises(stats.student_quantile, "df is 0.5, expected degrees of freedom of at least 1", 0.5, 0.5)
  t.raises(stats.student_cdf, "t is nan", nan, 3)
  local c = { x = { 1, 2 }, y = { 1, 2 } }
  t.raises(stats.interval, "statistic of a draw is inf", { 0.5, 0.6, 0.9 }, function(rows) return stats.mean(rows) / stats.sd(rows[1]) end)
  local calls = 0
  t.raises(stats.interval, "statistic of a draw is nil", { 0.5, 0.6 }, function()
    calls = calls + 1
    return calls == 1 and 1 or nil
  end)
  t.raises(stats.curve, "no curves", {}, stats.mean)
  t.raises(stats.curve, "stats.curve: what the statistic gives is x", { c }, function() return "x" end)
  t.raises(stats.log_rank, "2 times and a nil, expected as many values true or false", { 1, 2 }, nil, { 1 }, { true })
  t.raises(stats.log_rank, "1 times and 0 events", { 1, 2 }, { true, false }, { 1 }, {})
  t.raises(stats.max_sign_test, "differences 1 are 3, expected a list", { 3 }, 2)
  t.raises(stats.curve, "curve 2 is a table without x", { c, {} }, stats.mean)
  t.raises(stats.curve, "curve 1 has 2 steps and 1 values", { { x = { 1, 2 }, y = { 1 } } }, stats.mean)
  t.raises(stats.align, "curve 1, y: value 2 is nan", { { x = { 1, 2 }, y = { 1, nan } } })
  t.raises(stats.align, "curve 1: step 1 comes after step 2", { { x = { 2, 1 }, y = { 1, 2 } } })
  t.raises(stats.align, "no step is in all 2 curves: one begins at 5, one ends at 2", { c, { x = { 5 }, y = { 1 } } })
  t.raises(stats.align, "grid: step 3 is outside of 1 .. 2", { c }, { grid = { 3 } })
  t.raises(stats.align, "rule =.*'spline'", { c }, { rule = "spline" })
end)
