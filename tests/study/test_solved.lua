-- test_solved.lua -- seeds that solve their task or do not: statistics against scipy, and verdicts from them.
local t = require "tests.harness"
local files = require "mneme.base.files"
local aggregate = require "mneme.lab.study.aggregate"
local claims = require "mneme.lab.study.claims"
local study_folder = require "mneme.lab.study.study_folder"
local power = require "mneme.lab.study.power"
local solved_curves = require "mneme.lab.study.solved_curves"
local stats = require("mneme").stats

t.test("Fisher's and Boschloo's tests: scipy 1.x's values", function()
  for _, case in ipairs {
    { 6, 6, 0, 6, 0.0021645022, 0.00048828 }, { 30, 38, 6, 18, 0.0021570863, 0.00114596 }, { 3, 3, 0, 3, 0.1, 0.03125 },
    { 9, 10, 4, 10, 0.0572755418, 0.02277998 }, { 7, 9, 5, 9, 0.6199095023, 0.39375381 }, { 2, 5, 3, 7, 1, 1 }, { 0, 4, 0, 4, 1, 1 },
  } do
    local k, n, j, m, fisher, boschloo = unpack(case)
    t.near(stats.fisher(k, n, j, m), fisher, 1e-9)
    t.near(stats.boschloo(k, n, j, m), boschloo, 2e-6)
    t.near(stats.boschloo(j, m, k, n), boschloo, 2e-6, "the sides may be swapped")
    local d, low, high = stats.share_difference(k, n, j, m)
    t.near(d, k / n - j / m, 1e-12)
    t.ok(low <= d and d <= high and low >= -1 and high <= 1)
  end
  for _, bad in ipairs { { 1.5, 2, 1, 2 }, { 3, 2, 1, 2 }, { -1, 2, 1, 2 }, { 1, 0, 1, 2 }, { 1, 2, 1 } } do
    t.fails(function() stats.boschloo(unpack(bad)) end)
    t.fails(function() stats.fisher(unpack(bad)) end)
  end
end)

t.test("Boschloo's test errs in no more than 5 % of studies without a difference, whatever the share", function()
  for _, n in ipairs { 5, 8 } do
    for share = 0.1, 0.9, 0.2 do
      local wrong = 0
      for k = 0, n do
        for j = 0, n do
          if stats.boschloo(k, n, j, n) < 0.05 then
            wrong = wrong + math.exp(stats.log_choose(n, k) + stats.log_choose(n, j)) * share ^ (k + j) * (1 - share) ^ (2 * n - k - j)
          end
        end
      end
      t.ok(wrong <= 0.05, ("%d seeds, share %g: %g"):format(n, share, wrong))
    end
  end
end)

local first, first_solved = { 1.5, 2, 2.5, 3, 5, 5 }, { true, true, true, true, false, true }
local second, second_solved = { 3, 4, 4.5, 5, 5, 5 }, { true, true, false, false, false, false }

t.test("Kaplan-Meier and log-rank: scipy's curve, and the permutation test by brute force", function()
  local times, solved = {}, {}
  for i = 1, 6 do times[i], solved[i], times[6 + i], solved[6 + i] = first[i], first_solved[i], second[i], second_solved[i] end
  local curve, median = stats.kaplan_meier(times, solved)
  local x, left = { 0, 1.5, 2, 2.5, 3, 4, 5 }, { 1, 0.91666667, 0.83333333, 0.75, 0.58333333, 0.5, 0.4 }
  t.eq(#curve.x, #x)
  for i = 1, #x do t.near(curve.x[i], x[i], 1e-12) t.near(1 - curve.y[i], left[i], 1e-8) end
  t.eq(median, 4)
  local p, score = stats.log_rank(first, first_solved, second, second_solved)
  t.near(p, 0.07575757575757576, 1e-12)
  t.near(score, 2.2930730735930736, 1e-6)
  local q, other = stats.log_rank(second, second_solved, first, first_solved)
  t.near(q, p, 1e-12) t.near(other, -score, 1e-12)
  t.eq((stats.log_rank({ 5, 5 }, { false, false }, { 5, 5 }, { false, false })), 1)
  t.eq(select(2, stats.kaplan_meier({ 5, 5 }, { false, false })), nil)
  t.fails(function() stats.kaplan_meier({ 1, 2 }, { true }) end)
  t.fails(function() stats.kaplan_meier({ -1 }, { true }) end)
end)

t.test("log-rank: the normal approximation of many runs agrees with the enumeration of fewer", function()
  local a, b, ya, yb = {}, {}, {}, {}
  for i = 1, 9 do a[i], b[i], ya[i], yb[i] = i * 1.1, i * 1.9, true, i < 8 end
  local exact = stats.log_rank(a, ya, b, yb)
  local many_a, many_b, all_a, all_b = {}, {}, {}, {}
  for i = 1, 60 do many_a[i], many_b[i], all_a[i], all_b[i] = i * 1.1, i * 1.1 + 0.5, true, true end
  local p = stats.log_rank(many_a, all_a, many_b, all_b)
  t.ok(exact > 0 and exact < 1 and p > 0.5 and p <= 1, exact .. " " .. p)
end)

-- ---- verdicts ----

local function run(core, seed, score, steps, corridor)
  return { name = core .. seed, seed = seed, labels = { core = core, corridor = corridor or "60" }, status = "done",
    metrics = { score = score, steps = steps } }
end

local function runs_of(a, b)
  local runs = {}
  for seed, score in ipairs(a) do runs[#runs + 1] = run("long", seed, score, score >= 0.97 and 100 * seed or 5000) end
  for seed, score in ipairs(b) do runs[#runs + 1] = run("short", seed, score, score >= 0.97 and 1000 * seed or 5000) end
  return runs
end

local function judge(runs, ...)
  local list = {}
  for i, kind in ipairs { ... } do
    list[i] = { id = kind .. i, text = "a claim", test = { kind, metric = "score", above = 0.97, time = kind == "sooner" and "steps" or nil,
      a = { core = "long" }, b = { core = "short" } } }
  end
  claims.check(list, { core = true, corridor = true })
  return claims.judge({ runs = runs }, list)
end

local yes, no = { 1, 0.98, 0.99, 1, 1, 0.97 }, { 0.5, 0.45, 0.96, 0.5, 0.4, 0.6 }

t.test("solves and sooner: hold, do not hold, and are undecided", function()
  local solves, sooner = unpack(judge(runs_of(yes, no), "solves", "sooner"))
  t.eq(solves.verdict, "holds") t.eq(sooner.verdict, "holds")
  t.eq(table.concat(solves.shares, " "), "6 6 0 6") t.near(solves.p, 0.00048828, 1e-6)
  t.eq(sooner.medians[1], 300) t.eq(sooner.medians[2], false)
  solves, sooner = unpack(judge(runs_of(no, yes), "solves", "sooner"))
  t.eq(solves.verdict, "fails") t.eq(sooner.verdict, "fails")
  solves, sooner = unpack(judge(runs_of(yes, yes), "solves", "sooner"))
  t.eq(solves.why, "no_difference") t.eq(solves.p, 1)
  t.eq(sooner.verdict, "holds", "all solve it, and the first are sooner")
end)

-- ---- first reached, or by fresh episodes ----

local function with_fresh(runs, core, scores)
  for _, r in ipairs(runs) do if r.labels.core == core then r.metrics.fresh_score = scores[r.seed] end end
  return runs
end

t.test("seeds count by fresh episodes where they have them, and as they first reached it where not", function()
  local lucky = with_fresh(runs_of(yes, no), "long", { 0.98, 0.91, 0.89, 0.4, 0.92, 0.99 })
  for _, kind in ipairs { "solves", "sooner" } do
    local v = judge(lucky, kind)[1]
    t.eq(v.shares[1], 2, "as many as the claim's own threshold asks") t.eq(v.counted.fresh, 6) t.eq(v.counted.first, 0)
    local test = { kind, metric = "score", above = 0.97, fresh = 0.9, time = kind == "sooner" and "steps" or nil,
      a = { core = "long" }, b = { core = "short" } }
    claims.check({ { text = "a claim", test = test } }, { core = true })
    v = claims.judge({ runs = lucky }, { { text = "a claim", test = test } })[1]
    t.eq(v.shares[1], 4, "as many as fresh = 0.9 asks")
    v = judge(with_fresh(runs_of(yes, no), "long", { 0.98, [4] = 0.5 }), kind)[1]
    t.eq(v.shares[1], 5) t.eq(v.counted.fresh, 2) t.eq(v.counted.first, 4)
    v = judge(runs_of(yes, no), kind)[1]
    t.eq(v.shares[1], 6) t.eq(v.counted.fresh, 0) t.eq(v.counted.first, 6)
  end
  local function refused(test, said) t.raises(function() claims.check({ { id = "C", text = "", test = test } }, { core = true }) end, said) end
  local a, b = { core = "long" }, { core = "short" }
  refused({ "better", metric = "score", a = a, b = b, fresh = 0.9 }, "better takes no fresh")
  refused({ "solves", metric = "return", a = a, b = b, above = 1, fresh = 0.9 }, "fresh episodes are of metric score, not of return")
end)

t.test("what stopped every run says nothing of how large it is", function()
  local dir, runs = os.tmpname(), {}
  os.remove(dir)
  for i, r in ipairs(runs_of({ 0.97, 0.98, 0.97, 0.99, 0.98, 0.97 }, { 0.97, 0.97, 0.98, 0.97, 0.97, 0.98 })) do
    r.path, r.metrics.steps, runs[i] = dir .. "/" .. i, 300, r
    files.make_folder(r.path)
    files.write(r.path .. "/config.json", { '{"config": {"steps": 5000, "learner": {"name": "a2c", "stop_score": 0.97}}}' })
  end
  for _, case in ipairs { { "equal", within = 0.05 }, { "better" } } do
    case.metric, case.a, case.b = "score", { core = "long" }, { core = "short" }
    local claim = { { text = "a claim", test = case } }
    local v = claims.judge({ runs = runs }, claim)[1]
    t.eq(v.verdict, "undecided", case[1]) t.eq(v.why, "stopping_rule") t.eq(v.p, nil) t.eq(v.holm, 1) t.eq(table.concat(v.stopped, " of "), "12 of 12")
    runs[12].metrics.steps = 5000
    v = claims.judge({ runs = runs }, claim)[1]
    t.ok(v.why ~= "stopping_rule") t.eq(table.concat(v.stopped, " of "), "11 of 12", "some did: it is said")
    runs[12].metrics.steps = 300
    case.metric = "steps"
    t.eq(claims.judge({ runs = runs }, claim)[1].stopped, nil, "another number")
  end
  local claim = { { text = "a claim", test = { "at_least", metric = "score", value = 0.97, a = { core = "long" } } } }
  local function judged() return claims.judge({ runs = runs }, claim)[1] end
  t.eq(judged().why, "stopping_rule", "they stopped no earlier")
  for _, r in ipairs(runs) do r.metrics.fresh_score = 0.9 + 0.01 * r.seed end
  for value, verdict in pairs { [0.9] = "holds", [0.94] = "undecided", [0.97] = "fails" } do
    claim[1].test.value = value
    t.eq(judged().verdict, verdict, "by fresh episodes: at least " .. value) t.near(judged().estimate, 0.935, 1e-9) t.eq(judged().stopped, nil)
  end
  files.remove_folder(dir)
end)

t.test("what a window cannot reach decides nothing, whatever is counted", function()
  local function of(corridor, short)
    local runs = runs_of(yes, no)
    for _, r in ipairs(runs) do
      local core = r.labels.core == "short" and short or { name = "gru", config = { d_in = 16, d_model = 8 } }
      r.metrics.mean_return, r.metrics.cpu_s = r.metrics.score, r.metrics.score
      r.info = function() return { env = "tmaze-v0", task = { corridor = corridor }, core = core } end
    end
    return runs
  end
  local function window(layers, memory) return { name = "gtrxl", config = { d_in = 16, d_model = 8, d_head = 4, n_layers = layers, memory = memory,
    sees = "memory" } } end
  local frames, none = { name = "framestack", config = { d_in = 16, frames = 8 } }, { name = "feedforward", config = { d_in = 16, d_model = 8 } }
  local function verdict(runs, metric, kind)
    return claims.judge({ runs = runs }, { { text = "", test = { kind or "better", metric = metric or "score", within = kind == "equal" and 1 or nil,
      above = kind == "solves" and 0.97 or nil, a = { core = "long" }, b = { core = "short" } } } })[1]
  end
  for _, kind in ipairs { "better", "equal", "solves" } do
    local v = verdict(of(140, window(1, 128)), nil, kind)
    t.eq(v.verdict, "undecided", kind) t.eq(v.why, "window") t.eq(v.p, nil) t.eq(v.holm, 1) t.eq(table.concat(v.window, " "), "b 128 140")
  end
  t.eq(verdict(of(8, frames)).why, "window") t.eq(verdict(of(140, window(1, 128)), "mean_return").why, "window")
  for _, v in ipairs { verdict(of(140, window(2, 128))), verdict(of(128, window(1, 128))), verdict(of(7, frames)), verdict(of(140, none)),
    verdict(of(140, window(1, 128)), "cpu_s"), verdict(of(140, { name = "gone.lua", config = {} })),
    verdict(of(nil, window(1, 128))) } do
    t.eq(v.verdict, "holds") t.eq(v.window, nil)
  end
end)

-- ---- runs that failed ----

-- The runs with seeds from `from` on of a side failed: status 3 diverged, 1 did not.
local function fail(runs, core, from, exit)
  for _, r in ipairs(runs) do
    if r.labels.core == core and r.seed >= from then r.status, r.metrics, r.exit = "failed", {}, exit end
  end
  return runs
end

local ten_yes, ten_no = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 }

t.test("a run that failed counts as not solved: a side gains nothing by failing", function()
  for _, exit in ipairs { 1, 3 } do
    local solves, sooner = unpack(judge(fail(runs_of(ten_yes, ten_no), "long", 6, exit), "solves", "sooner"))
    t.eq(table.concat(solves.shares, " "), "5 10 0 10") t.eq(table.concat(sooner.shares, " "), "5 10 0 10")
    t.near(solves.p, stats.boschloo(5, 10, 0, 10), 1e-12) t.eq(solves.verdict, "holds", "with p of all ten: 5 of 10 against 0 of 10")
    t.eq(solves.n, 10) t.eq(#solves.sides[1], 5) t.eq(#solves.missing, 0) t.eq(table.concat(solves.failed.a, " of "), "5 of 10") t.eq(solves.failed.b, nil)
    local last, all = { 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000 }, { 100, 200, 300, 400, 500, 5000, 5000, 5000, 5000, 5000 }
    local y, none = { true, true, true, true, true, false, false, false, false, false }, {}
    for i = 1, 10 do none[i] = false end
    t.near(sooner.p, (stats.log_rank(all, y, last, none)), 1e-12, "up to the last step of all: one that leaves early would not count")
  end
  for _, kind in ipairs { "solves", "sooner" } do
    local v = judge(fail(runs_of(ten_yes, { 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 }), "long", 5, 3), kind)[1]
    t.ok(v.verdict ~= "holds", kind .. ": four that are left of ten solve it, as do four of the other ten")
  end
end)

t.test("solves and sooner: the other side's failures count against it where it diverged, and decide nothing where it crashed", function()
  for _, kind in ipairs { "solves", "sooner" } do
    local v = judge(fail(runs_of(ten_yes, ten_no), "short", 3, 3), kind)[1]
    t.eq(v.verdict, "holds") t.eq(table.concat(v.shares, " "), "10 10 0 10")
    v = judge(fail(runs_of(ten_yes, ten_no), "short", 3, 1), kind)[1]
    t.eq(v.verdict, "undecided", kind) t.eq(v.why, "failed_runs") t.eq(v.p, nil)
    v = judge(fail(runs_of(ten_yes, ten_no), "short", 10, 137), kind)[1]
    t.eq(v.verdict, "holds", "one crash of ten cannot change it")
    t.ok(v.p > judge(runs_of(ten_yes, ten_no), kind)[1].p, "but p is that of the case in which it would have been solved at once")
    v = judge(fail(runs_of(ten_no, ten_yes), "long", 3, 1), kind)[1]
    t.eq(v.verdict, "undecided") t.eq(v.why, "failed_runs")
    t.eq(judge(fail(runs_of(ten_no, ten_yes), "long", 3, 3), kind)[1].verdict, "fails")
    v = judge(fail(fail(runs_of(ten_yes, ten_no), "long", 1, 1), "short", 1, 1), kind)[1]
    t.eq(v.why, "no_difference", "all have failed")
  end
end)

t.test("every other test has no verdict where a run failed, on either side; open runs are left out as before", function()
  local good, bad = {}, {}
  for i = 1, 10 do good[i], bad[i] = 0.9 + i / 200, 0.1 + i / 300 end
  for _, case in ipairs { { "better" }, { "at_least", value = 0.5 }, { "ratio", at_least = 2 }, { "equal", within = 0.95 }, { "better", exact = true } } do
    local function judged(runs)
      local test = { metric = "score", a = { core = "long" }, b = case[1] ~= "at_least" and { core = "short" } or nil, unpack(case) }
      for key, value in pairs(case) do test[key] = value end
      local other = { text = "another claim", test = { "better", metric = "score", a = { core = "long" }, b = { core = "short" } } }
      return claims.judge({ runs = runs }, { { text = "a claim", test = test }, other })[1]
    end
    t.eq(judged(runs_of(good, bad)).verdict, "holds", case[1])
    for _, side in ipairs(case[1] == "at_least" and { "long" } or { "long", "short" }) do
      local v = judged(fail(runs_of(good, bad), side, 6, 3))
      t.eq(v.verdict, "undecided", case[1]) t.eq(v.why, "failed_runs") t.eq(v.p, nil) t.eq(v.n, 5) t.ok(v.estimate, "of the seeds that are left")
      t.eq(v.holm, not case.exact and 1 or nil, "it stays one of the claims that are corrected for")
      t.eq(table.concat(v.failed[side == "long" and "a" or "b"], " of "), "5 of 10")
      v = judged(fail(runs_of(good, bad), side, 1, 3))
      t.eq(v.why, "failed_runs", "none is left")
    end
    local open = runs_of(good, bad)
    for _, r in ipairs(open) do if r.seed > 6 then r.status, r.metrics = "open", {} end end
    local v = judged(open)
    t.eq(v.verdict, "holds", case[1] .. " of the seeds that are there") t.eq(v.n, 6) t.eq(v.failed, nil) t.ok(#v.missing > 0)
  end
end)

t.test("counts of seeds that solve it, and their curve, take a run that failed as not solved", function()
  local point = {}
  for i, r in ipairs(fail(runs_of(ten_yes, {}), "long", 6, 1)) do
    r.name = ("core=long,seed=%d"):format(r.seed)
    point[i] = study_folder.run(r)
  end
  t.ok(aggregate.solved_of({ 1, 1, 1, 1, 1 }, point, 0.97):find "solved by 5 of 10 seeds")
  t.eq(aggregate.solved_of({}, {}, 0.97), nil)
  local missing = {}
  local groups = { { name = "long", runs = point } }
  local fig, counts = solved_curves({ groups = groups, missing = missing }, { solved = 0.97 }, { y = "score" }, { styles = {} })
  local y = fig.lines[1].y
  t.near(y[#y], 0.5, 1e-12) t.eq(counts[1], 10) t.eq(next(missing), nil, "they are not left out")
end)

t.test("a report says how many runs of which side failed", function()
  local report_claims = require "mneme.lab.reports.report_claims"
  local function told(v)
    local said = {}
    report_claims.section({ heading = function() end, paragraphs = function(_, text) said[#said + 1] = text end }, v, 1, {})
    return table.concat(said, " ")
  end
  local text = told(judge(fail(runs_of(ten_yes, ten_no), "long", 6, 3), "solves")[1])
  t.ok(text:find("5 of 10 against 0 of 10", 1, true)
    and text:find("failed: 5 of 10 runs of core=long; a run that failed counts as one that has not solved it", 1, true), text)
  text = told(judge(with_fresh(runs_of(yes, no), "long", { 0.98 }), "solves")[1])
  t.ok(text:find("which they played after they had stopped (at least 0.97): 1", 1, true) and text:find("first reached 0.97, some by luck: 5", 1, true), text)
  local v = claims.judge({ runs = fail(runs_of(ten_yes, ten_no), "short", 8, 1) }, { { text = "a claim",
    test = { "better", metric = "score", a = { core = "long" }, b = { core = "short" } } } })[1]
  text = told(v)
  t.ok(text:find("Runs failed, and what they would have come to could change the verdict", 1, true)
    and text:find("failed: 3 of 10 runs of core=short", 1, true), text)
end)

t.test("four seeds are too few, and two points are one too many", function()
  t.eq(judge(runs_of({ 1, 1, 1, 1 }, { 0, 0, 0, 0 }), "solves")[1].why, "few_seeds")
  local runs = runs_of(yes, no)
  runs[#runs + 1] = run("long", 1, 1, 3, "200")
  t.eq(judge(runs, "solves")[1].why, "several_points")
  t.eq(judge({}, "solves")[1].verdict, "undecided")
end)

t.test("a verdict names agents that acted with core.sees=rollout, stored ones among them", function()
  local runs = runs_of(yes, no)
  local function acted(long, sees, more)
    for _, r in ipairs(runs) do
      if (r.labels.core == "long") == long then
        r.info = function()
          local info = { env = "tmaze-v0", core = { name = long and "gtrxl" or "gru", config = { sees = sees } } }
          for key, value in pairs(more or {}) do info[key] = value end
          return info
        end
      end
    end
  end
  local function said()
    local list = {}
    for _, kind in ipairs { "solves", "better" } do
      local test = { kind, metric = "score", above = kind == "solves" and 0.97 or nil, a = { core = "long" }, b = { core = "short" } }
      for _, r in ipairs(claims.judge({ runs = runs }, { { text = "a claim", test = test } })[1].rollout) do
        list[#list + 1] = ("%s %d of %d"):format(r.name, r.n, r.of)
      end
    end
    return table.concat(list, ", ")
  end
  t.eq(said(), "")
  acted(true, "memory")
  acted(false)
  t.eq(said(), "")
  acted(true, "rollout")
  t.eq(said(), "long 6 of 6, long 6 of 6")
  acted(true, nil)                       -- of a run that was made before there was the setting
  t.eq(said(), "long 6 of 6, long 6 of 6")
  acted(true, nil, { env = false })      -- which has learned sequences
  t.eq(said(), "")
  acted(true, "memory")
  runs[2].info = function() return { env = "tmaze-v0", core = { name = "gtrxl", config = {} } } end
  t.eq(said(), "long 1 of 6, long 1 of 6")
end)

t.test("Holm's p decides: a claim that holds by itself is undecided among many", function()
  local runs = runs_of({ 1, 1, 1, 1, 0.5, 0.5 }, no)
  t.eq(judge(runs, "solves")[1].verdict, "holds")
  local many = judge(runs, "solves", "solves", "solves", "solves", "solves", "solves", "solves")
  for _, v in ipairs(many) do
    t.eq(v.verdict, "undecided") t.eq(v.why, "corrected") t.ok(v.p < 0.05 and v.holm >= 0.05)
  end
end)

t.test("power: more seeds tell apart more", function()
  local list = { { id = "a", test = { "solves" } }, { id = "b", test = { "sooner" } }, { id = "c", test = { "better" } },
    { id = "d", test = { "equal", exact = true } },
    { id = "e" } }
  local runs = { { labels = {} } }
  local three, ten = power.lines(list, 3, runs), power.lines(list, 10, runs)
  for i = 1, 3 do t.ok(three[i]:find "fewer than five", three[i]) end
  t.ok(three[4]:find "one seed is enough")
  t.ok(ten[1]:find "against 0" and ten[4]:find "one seed is enough" and ten[5]:find "no test")
  local d5, d10 = tonumber(power.lines(list, 5, runs)[3]:match "of ([%d.]+) standard"), tonumber(ten[3]:match "of ([%d.]+) standard")
  t.ok(d10 < d5, "a smaller difference")
  local r10, r40 = tonumber(ten[2]:match "factor of ([%d.]+)"), tonumber(power.lines(list, 40, runs)[2]:match "factor of ([%d.]+)")
  t.ok(r40 < r10)
end)

-- The share of simulated studies whose first claim holds, of n seeds with normal numbers whose deviation is 3.
local function holds_share(n, mean, tests)
  math.randomseed(n)
  local list, held, studies = {}, 0, 2000
  for i, test in ipairs(tests) do
    list[i] = { test = { test[1], metric = "score", a = { core = "a" .. i }, b = test.within and { core = "b" }, within = test.within,
      value = not test.within and 0 or nil } }
  end
  for _ = 1, studies do
    local runs = {}
    for seed = 1, n do
      local normal = math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random())
      runs[seed] = { status = "done", labels = { core = "a1" }, seed = seed, metrics = { score = mean + 3 * normal } }
      runs[n + seed] = { status = "done", labels = { core = "b" }, seed = seed, metrics = { score = 0 } }
      for i = 2, #tests do                                                 -- the others claim nothing that is there
        runs[i * n + seed] = { status = "done", labels = { core = "a" .. i }, seed = seed, metrics = { score = seed % 2 - 0.5 } }
      end
    end
    if claims.judge({ runs = runs }, list)[1].verdict == "holds" then held = held + 1 end
  end
  return held / studies
end

t.test("power: four of five simulated studies find a mean of the size printed, and equality within it", function()
  for _, n in ipairs { 5, 9 } do
    for _, others in ipairs { 0, 3 } do
      local list = { {} }
      for i = 1, others do list[1 + i] = { test = { "at_least" } } end
      local function printed(kind)
        list[1].test = { kind }
        return 3 * tonumber(power.lines(list, n, { { labels = {} } })[1]:match "([%d.]+) standard deviations")
      end
      local tests = {}
      for i, claim in ipairs(list) do tests[i] = claim.test or {} end
      tests[1] = { "equal", within = printed "equal" }
      t.near(holds_share(n, 0, tests), 0.8, 0.06, ("equal, %d seeds, %d other claims"):format(n, others))
      tests[1] = { "at_least" }
      t.near(holds_share(n, printed "at_least", tests), 0.8, 0.06, ("at_least, %d seeds, %d other claims"):format(n, others))
    end
  end
end)
