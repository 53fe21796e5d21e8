-- claims.lua -- tests the claims of a study: a verdict for each, with its statistics.  Statistics are
-- over seeds: other axes that vary within a side are averaged first, so that each seed gives one number.
--   { id = "C1", text = "...", source = "...", test = { kind, metric = "success", a = { core = "galite" }, ... } }
--   "better"    { a, b }            a is above b: the interval of their difference, seed by seed, lies above 0
--   "at_least"  { a, value }        so does that of a less the value, or begins there
--   "ratio"     { a, b, at_least }  a is at least that many times b: the same for logarithms of a / b
--   "equal"     { a, b, within }    the interval of the difference lies within -within .. within
--   "solves"    { a, b, above }     more seeds of a than of b reach metric >= above (Boschloo's exact test)
--   "sooner"    { a, b, above, time }  seeds of a reach it sooner than those of b: `time` is the metric that says when a run ended, which
--                                   stops when solved; runs that ended without count up to their end (log-rank test)
-- Runs that stopped at their stop_score reached that score for the first time: of metric "score" these two and "at_least" count the fresh episodes that
-- such a run played afterwards (metric fresh_score), which must give fresh = 0.9, or else `above`, or `value`; runs without them count as they ended.  A
-- "better", "equal" or "at_least" of a number that stopped all runs has no verdict: the rule that stopped them made it.  Nor has a claim about what agents
-- do of which a side cannot know what its task asks for, since it acts on fewer steps (gtrxl's window, a frame stack): that is so by construction.
-- A verdict is that of p after Holm's correction for all claims of the study.
-- A run that failed has no number, and leaving it out would let a method gain by failing: "solves" and "sooner" count it as not solved, the
-- other tests have no verdict.  Runs that are open are left out and named.
-- where = { axis = label } narrows both sides; exact = true: the numbers are not random, and the claim must hold in each seed.
local cores = require("mneme.base.lazy") "mneme.models.cores"             -- late: it opens the context
local errors = require "mneme.base.errors"
local json = require "mneme.base.json"
local native = require("mneme.base.lazy") "mneme.envs.native"
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local grid = require "mneme.lab.study.grid"
local declaration = require "mneme.lab.study.declaration"
local aggregate = require "mneme.lab.study.aggregate"
local stats = require "mneme.stats"

local claims = { FEWEST = 5 }       -- seeds of a side that a verdict takes, but on exact numbers
local LEVEL = 0.05
local AT_BORDER = 1e-12            -- so near is on it: what rounding leaves
local FRESH = { score = "fresh_score" }              -- of a number that stops a training, what fresh episodes gave; only those who act play them
local STOPS = { score = true, accuracy = true }      -- what stop_score is compared with
local KNOWN = { score = true, accuracy = true, normalised = true, fresh_score = true, mean_return = true }       -- what an agent must know for
local DIVERGED = 3                 -- exit status of a run that met a NaN (base/errors.lua)

-- ---- what may be claimed ----

local claim_keys = { id = "string", text = "string", source = "string", test = "table" }
local test_keys = { [1] = "string", metric = "string", a = "table", b = "table", where = "table", exact = "boolean",
  value = "number", at_least = "number", within = "number", above = "number", fresh = "number", time = "string" }
local needs = { better = { "a", "b" }, at_least = { "a", "value" }, ratio = { "a", "b", "at_least" }, equal = { "a", "b", "within" },
  solves = { "a", "b", "above" }, sooner = { "a", "b", "above", "time" } }

local function check_test(test, axes, what)
  declaration(test, test_keys, what)
  local needed = needs[test[1]]
  if not needed then errors.unknown(what .. ": kind of test", tostring(test[1]), tables.keys(needs)) end
  for _, key in ipairs { "metric", unpack(needed) } do
    if test[key] == nil then errors.raise(("%s: the test %s needs %s"):format(what, test[1], key)) end
  end
  for _, key in ipairs { "value", "at_least", "within", "b", "above", "time", "fresh" } do
    local used = tables.has(needed, key) or key == "fresh" and needed[3] == "above"
    if test[key] ~= nil and not used then errors.raise(("%s: the test %s takes no %s"):format(what, test[1], key)) end
  end
  if test.fresh and not FRESH[test.metric] then errors.raise(("%s: fresh episodes are of metric score, not of %s"):format(what, test.metric)) end
  for _, key in ipairs { "value", "at_least", "within", "above", "fresh" } do
    local number = test[key]
    if number and number - number ~= 0 then errors.raise(("%s: %s is %g, expected a finite number"):format(what, key, number)) end
  end
  if test.at_least and test.at_least <= 0 then errors.raise(("%s: at_least is %g, expected a number above 0"):format(what, test.at_least)) end
  if test.within and test.within < 0 then errors.raise(("%s: within is %g, expected 0 or more"):format(what, test.within)) end
  for _, key in ipairs { "a", "b", "where" } do
    for axis, label in pairs(test[key] or {}) do
      if not axes[axis] then errors.unknown(("axis in %s of %s:"):format(key, what), tostring(axis), tables.keys(axes)) end
      if type(label) == "table" then errors.raise(("%s: %s.%s is a list, expected one value of the axis"):format(what, key, axis)) end
    end
  end
  for _, sides in ipairs(test.b and { { "a", "b" }, { "b", "a" } } or {}) do
    for axis in pairs(test[sides[1]]) do
      if test[sides[2]][axis] == nil then
        errors.raise(("%s: %s has %s and %s has not: both sides name the same axes, and where = { %s = ... } narrows both"):format(what,
          sides[1], axis, sides[2], axis))
      end
    end
  end
end

---Refuse claims that cannot be tested.
function claims.check(list, axes)
  local named = {}
  for i, claim in ipairs(list or {}) do
    local what = "claim " .. tostring(type(claim) == "table" and claim.id or i)
    errors.need("study: " .. what, claim, "text", '{ id = "C1", text = "...", test = { "better", ... } }')
    declaration(claim, claim_keys, what)
    if claim.id and named[claim.id] then errors.raise(("study: claims %d and %d have one id, %s"):format(named[claim.id], i, claim.id)) end
    if claim.id then named[claim.id] = i end
    if claim.test then check_test(claim.test, axes, what) end
  end
end

-- ---- one number per seed ----

local matches = require("mneme.lab.study.figure_references").fits

-- What a run is besides what the test names, as a text.
local function rest_of(run, test)
  local parts = {}
  for _, axis in ipairs(tables.keys(run.labels)) do
    if test.a[axis] == nil and (test.b or {})[axis] == nil then parts[#parts + 1] = axis .. "=" .. run.labels[axis] end
  end
  return table.concat(parts, ", ")
end

---The runs of a test's sides.
---@param side string? "a" or "b"; nil: of both
function claims.runs(study, test, side)
  return tables.map(study.runs, function(run)
    local mine = side ~= "b" and matches(run, test.a) or side ~= "a" and test.b ~= nil and matches(run, test.b)
    return mine and matches(run, test.where) and run or nil
  end)
end

---Whether each side of a test has a run among these.
function claims.covered(runs, test)
  local of = { runs = runs }
  return claims.runs(of, test, "a")[1] ~= nil and (test.b == nil or claims.runs(of, test, "b")[1] ~= nil)
end

-- How many runs of each side failed, { a = { n, of }, b = { n, of } } of the sides that have such; nil: none has.
local function failed_of(study, test)
  local found = {}
  for _, side in ipairs { "a", test.b and "b" } do
    local runs = claims.runs(study, test, side)
    local failed = tables.map(runs, function(run) return run.status == "failed" and run or nil end)
    if failed[1] then found[side] = { #failed, #runs } end
  end
  return next(found) and found or nil
end

-- The runs of a side, [rest][seed] = run; and the rests, in the order of the grid.
local function side_of(study, test, labels)
  local side, rests = {}, {}
  for _, run in ipairs(study.runs) do
    if matches(run, labels) and matches(run, test.where) then
      local rest = rest_of(run, test)
      if not side[rest] then side[rest], rests[#rests + 1] = {}, rest end
      side[rest][run.seed] = run
    end
  end
  return side, rests
end

local function describe(labels, rest, seed)
  return ("%s, %sseed=%s"):format(grid.text(labels), rest ~= "" and rest .. ", " or "", seed)
end

local function fresh_of(test, run) return test[1] == "at_least" and run.metrics[FRESH[test.metric] or ""] or nil end         -- of a run that stopped

-- The mean of a side's numbers for a seed; nil where one is missing, which goes into the list of those.
local function mean_of(side, labels, rests, seed, test, missing)
  local sum, whole = 0, true
  for _, rest in ipairs(rests) do
    local run = (side[rest] or {})[seed]
    local number = run and run.status == "done" and (fresh_of(test, run) or study_folder.number(run, test.metric))
    if number then sum = sum + number
    else
      whole = false
      missing[#missing + 1] = { name = describe(labels, rest, seed), status = run and (run.status == "done" and "no number" or run.status) or "not swept" }
    end
  end
  return whole and sum / #rests or nil
end

-- The seeds that runs have, ascending.
local function seeds_of(runs_by_seed)
  local order = {}
  for seed in pairs(runs_by_seed) do order[#order + 1] = seed end
  table.sort(order)
  return order
end

-- Numbers of one side, seed by seed, of one point: { number, time }[] by seed, of a run that failed { failed, diverged }; nil: the side names
-- several points.
local function runs_of(study, test, labels, missing)
  local side, rests = side_of(study, test, labels)
  if #rests > 1 then return nil end
  local list, of_seeds = {}, side[rests[1]] or {}
  for _, seed in ipairs(seeds_of(of_seeds)) do
    local run = of_seeds[seed]
    local number = run.status == "done" and study_folder.number(run, test.metric)
    local time = run.status == "done" and test.time and study_folder.number(run, test.time)
    if number and (time or not test.time) then
      list[#list + 1] = { number = number, time = time, seed = seed, fresh = FRESH[test.metric] and run.metrics[FRESH[test.metric]] }
    elseif run.status == "failed" then list[#list + 1] = { failed = true, diverged = run.exit == DIVERGED, seed = seed }
    else missing[#missing + 1] = { name = describe(labels, rests[1], seed), status = run.status == "done" and "no number" or run.status } end
  end
  return list
end

-- Numbers of both sides, pair by pair from equal seeds: { seeds, a, b, over = what each seed is a mean over, missing }.
local function numbers_of(study, test)
  local a, rests = side_of(study, test, test.a)
  local found, all, b = { seeds = {}, a = {}, b = {}, missing = {} }, {}, nil
  found.empty = #rests == 0
  if test.b then
    local others
    b, others = side_of(study, test, test.b)
    found.empty = found.empty or #others == 0
    for _, rest in ipairs(others) do if not a[rest] then rests[#rests + 1] = rest end end
  end
  if found.empty then return found end
  for _, side in ipairs { a, b } do
    for _, runs in pairs(side) do all = tables.merged(all, runs) end
  end
  for _, seed in ipairs(seeds_of(all)) do
    local x = mean_of(a, test.a, rests, seed, test, found.missing)
    local y = b and mean_of(b, test.b, rests, seed, test, found.missing)
    if x and (y or not b) then
      local i = #found.seeds + 1
      found.seeds[i], found.a[i], found.b[i] = seed, x, y
    end
  end
  found.over = #rests > 1 and rests or nil
  return found
end

-- ---- verdicts ----

-- What the verdict is about, one number per seed: differences, values, logarithms of ratios; and where the border is.
local function quantities(test, found)
  local list, border = {}, test[1] == "at_least" and test.value or test[1] == "ratio" and math.log(test.at_least) or 0
  for i, a in ipairs(found.a) do
    local b = found.b[i]
    if test[1] == "at_least" then list[i] = a
    elseif test[1] ~= "ratio" then list[i] = a - b
    elseif a > 0 and b > 0 then list[i] = math.log(a / b)
    else return nil end
  end
  return list, border
end

-- The p-value of a mean, of which `sign` is the direction, that is not above a border.
local function one_sided(list, sign, border)
  local mean, _, _, p = stats.t_interval(tables.map(list, function(v) return sign * v - border end))
  return mean > 0 and p / 2 or 1 - p / 2
end

-- The verdict that an interval gives.
local function verdict_of(test, border, low, high)
  local kind = test[1]
  if kind == "equal" then
    if low >= -test.within and high <= test.within then return "holds" end
    return (low > test.within or high < -test.within) and "fails" or "undecided"
  end
  if low > border or kind ~= "better" and low == border then return "holds" end
  return (high < border or kind == "better" and high == border and low == high) and "fails" or "undecided"
end

-- p of a mean beyond what counts as equal, on the side where it is.
local function p_apart(test, list) return math.min(1, 2 * math.min(one_sided(list, 1, test.within), one_sided(list, -1, test.within))) end

local function p_of(test, list, border)
  if test[1] == "equal" then return math.max(one_sided(list, 1, -test.within), one_sided(list, -1, -test.within)) end          -- Schuirmann 1987
  return (select(4, stats.t_interval(tables.map(list, function(v) return v - border end))))
end

-- The interval of a mean, and p of its border.  Of numbers within a range the interval stays there, too; no difference of
-- two such numbers is larger than the range.
local function interval_of(test, list, border, range)
  if test[1] == "at_least" and aggregate.within(list, range) and aggregate.two_ends(range) and border >= range[1] and border <= range[2] then
    return stats.bounded_interval(list, range[1], range[2], 1 - LEVEL, border)
  end
  local estimate, low, high = stats.t_interval(list)
  if not low then return estimate end
  if range and (test[1] == "better" or test[1] == "equal") then
    local most = math.max(range[2] - range[1], math.abs(estimate))
    low, high = math.max(low, -most), math.min(high, most)
  end
  return estimate, low, high, p_of(test, list, border)
end

-- Fill in the statistics, the verdict, and the reason if there is none.
local function decide(v, test, found, range)
  v.n, v.seeds, v.over, v.missing, v.verdict = #found.seeds, found.seeds, found.over, found.missing, "undecided"
  v.sides = { found.a, test.b and found.b or nil }
  if v.n == 0 then v.why = found.empty and "no_run" or v.failed and "failed_runs" or "no_seed" return end
  local list, border = quantities(test, found)
  if not list then v.why = "not_positive" return end
  if test[1] == "better" and not test.exact and v.n > 1 then v.improvement = { stats.probability_of_improvement(found.a, found.b) } end
  local back = test[1] == "ratio" and math.exp or function(x) return x end
  local estimate, low, high, p = interval_of(test, list, border, range)
  v.estimate = back(estimate)
  if test.exact then
    low, high = tables.span(list)
    v.verdict = verdict_of(test, border, low, high) == "holds" and "holds" or "fails"
  elseif v.n == 1 then v.why = "one_seed" return
  elseif aggregate.no_spread(list) then                      -- a formula would be certain, from two seeds even: signs are counted instead
    v.p = math.abs(estimate - border) <= AT_BORDER and test[1] ~= "equal" and 1 or stats.sign_test(v.n, 0)
    if v.p < LEVEL then v.verdict = verdict_of(test, border, low, high) else v.why = "no_spread" end
  else
    v.p, v.p_apart = p, test[1] == "equal" and p_apart(test, list) or nil
    v.verdict = verdict_of(test, border, low, high)
    if v.verdict == "undecided" then v.why = test[1] == "equal" and "reaches_out" or "reaches_over" end
  end
  if not test.exact and v.n < claims.FEWEST and v.verdict ~= "undecided" then v.verdict, v.why = "undecided", "few_seeds" end
  v.low, v.high = back(low), back(high)
  if v.failed then v.verdict, v.why, v.p, v.p_apart, v.improvement = "undecided", "failed_runs", nil, nil, nil end
end

-- Did a run solve it: by fresh episodes where it has them.
local function has_solved(test, run) return (run.fresh or run.number) >= (run.fresh and test.fresh or test.above) end

-- Which runs of a list solved it, and when.  One that failed did not, up to the last step of all; with `lucky` one that failed without
-- diverging, of which nobody knows what it would have come to, did so at once.
local function solved_of(test, list, last, lucky)
  local times, solved, count = {}, {}, 0
  for i, run in ipairs(list) do
    if run.failed then solved[i] = (lucky and not run.diverged) or false else solved[i] = has_solved(test, run) end
    times[i] = run.failed and (solved[i] and 0 or last) or run.time or 0
    count = count + (solved[i] and 1 or 0)
  end
  return times, solved, count
end

-- p of a difference between two sides, whether the first is better, and what there is to report: { share or median of a, of b }.
local function compare_solved(test, a, b, last, lucky_a, lucky_b)
  local times, solved, k = solved_of(test, a, last, lucky_a)
  local others, others_solved, j = solved_of(test, b, last, lucky_b)
  local shares = { k, #a, j, #b }
  if test[1] == "solves" then return stats.boschloo(k, #a, j, #b), k / #a > j / #b, shares end
  local _, median = stats.kaplan_meier(times, solved)
  local _, others_median = stats.kaplan_meier(others, others_solved)
  local p, score = stats.log_rank(times, solved, others, others_solved)
  return p, score > 0, shares, { median or false, others_median or false }
end

-- Verdicts on shares and times of seeds that solve their task: seeds of the two sides are independent.
local function decide_solved(v, study, test)
  v.missing, v.verdict = {}, "undecided"
  local a, b = runs_of(study, test, test.a, v.missing), runs_of(study, test, test.b, v.missing)
  v.n = a and b and math.min(#a, #b) or 0
  if not a or not b then v.why = "several_points" return end
  local function none(side) return #select(2, side_of(study, test, side)) == 0 end
  if v.n == 0 then v.why = (none(test.a) or none(test.b)) and "no_run" or "no_seed" return end
  v.sides, v.counted = { {}, {} }, FRESH[test.metric] and { fresh = 0, first = 0 }
  local last = 0
  for side, list in ipairs { a, b } do
    for _, run in ipairs(list) do
      if not run.failed then table.insert(v.sides[side], test[1] == "sooner" and run.time or run.fresh or run.number) end
      local by = v.counted and (run.fresh and "fresh" or not run.failed and has_solved(test, run) and "first")
      if by then v.counted[by] = v.counted[by] + 1 end
      last = math.max(last, run.time or 0)
    end
  end
  local first_better
  v.p, first_better, v.shares, v.medians = compare_solved(test, a, b, last)
  if test[1] == "solves" then v.estimate, v.low, v.high = stats.share_difference(unpack(v.shares)) end
  if v.n < claims.FEWEST then v.why = "few_seeds" return end
  if v.p >= LEVEL then v.why = "no_difference" return end
  v.verdict = first_better and "holds" or "fails"
  if v.failed then                               -- the verdict must stand, too, had the crashed runs of the side it is against solved it at once
    local p, still = compare_solved(test, a, b, last, not first_better, first_better)
    v.p = math.max(v.p, p)
    if still ~= first_better or p >= LEVEL then v.verdict, v.why, v.p = "undecided", "failed_runs", nil end
  end
end

-- Agents of a claim that acted with core.sees=rollout, on more than their memory: { name, n of its runs, of all that are done }[].
local function rollout_seen(study, test, sees)
  local agents = grid.groups(claims.runs(study, test), function(run)
    return run.status == "done" and sees[run] and (run.labels.core or sees[run].name) or nil
  end)
  return tables.map(agents, function(agent)
    local n = 0
    for _, run in ipairs(agent.runs) do n = n + (sees[run].word == "rollout" and 1 or 0) end
    return n > 0 and { name = agent.name, n = n, of = #agent.runs } or nil
  end)
end

-- How the agents of finished runs acted, of those where there is a choice: { name of the core, word }, by run.
local function sees_of(study)
  local sees = {}
  for _, run in ipairs(study.runs) do
    local info = run.status == "done" and run.info and run:info()
    local word = info and info.env and cores.stored_sees(info.core)
    if word then sees[run] = { name = tostring(info.core.name), word = word } end
  end
  return sees
end

-- Of a claim about how large a number is, at which runs stop: { runs that it stopped, of all that are done }; nil: none was stopped.
local function stopped_of(study, test)
  if not STOPS[test.metric] or test[1] ~= "better" and test[1] ~= "equal" and test[1] ~= "at_least" then return nil end
  local n, of = 0, 0
  for _, run in ipairs(claims.runs(study, test)) do
    if run.status == "done" and run.path then n, of = n + (aggregate.stopped(run) and not fresh_of(test, run) and 1 or 0), of + 1 end
  end
  return n > 0 and { n, of } or nil
end

-- Of a claim about what agents do: the side all of whose finished runs act on fewer steps than their task asks back, { side, steps, asked }; nil: neither.
local function window_of(study, test, reaches)
  for _, side in ipairs(KNOWN[test.metric] and (test.b and { "a", "b" } or { "a" }) or {}) do
    local found = nil
    for _, run in ipairs(claims.runs(study, test, side)) do
      local info = run.status == "done" and run.info and run:info()
      if info then
        local known, asked = pcall(native.horizon, tostring(info.env), info.task or {})          -- an older run may lack a setting
        local key = known and asked and json.encode(info.core)
        if key and reaches[key] == nil then reaches[key] = cores.stored_reach(info.core) or false end
        local steps = key and reaches[key]
        if not steps or steps == 0 or steps >= asked then found = nil break end          -- 0: no memory, on purpose
        found = { side, steps, asked }
      end
    end
    if found then return found end
  end
end

-- p of what a verdict says: of "equal" that does not hold, of a difference beyond what counts as equal; 1 of a claim that failed runs, the stopping
-- rule or a window leave without a verdict, which stays one of those that are corrected for.
local function p_of_verdict(v)
  if (v.why == "failed_runs" or v.why == "stopping_rule" or v.why == "window") and not v.claim.test.exact then return 1 end
  return v.verdict == "fails" and v.claim.test[1] == "equal" and v.p_apart or v.p
end

---Judge the claims of a study.
---@return table[] verdicts { claim, verdict = "holds" | "fails" | "undecided", why = nil | "no_run" | "no_seed" | "one_seed" |
---  "no_spread" | "not_positive" | "reaches_over" | "reaches_out" | "no_test" | "few_seeds" | "several_points" | "no_difference" | "failed_runs" |
---  "stopping_rule" (it stopped all runs) | "window" (a side cannot know) |
---  "corrected" (p alone would decide, but not after the correction), n, seeds, estimate, low, high (95 %), p,
---  sides = { numbers of a, numbers of b }, seed by seed, of "sooner" the times at which runs ended,
---  holm = p corrected for all claims of the study, over = texts of what a seed's number is a mean of, missing = { name, status }[],
---  failed = { a = { n, of }, b = { n, of } }: sides of which n of all runs failed,
---  counted = of "solves" and "sooner" { fresh, first }: runs that count by their fresh episodes, and those that count as they first reached it;
---  stopped = { n, of }: of "better", "equal" and "at_least" the runs that stopped at this very number,
---  window = { side, steps it acts on, steps back that are asked for },
---  rollout = { name, n, of }[]: agents of which n runs acted with core.sees=rollout,
---  shares = { solved, of a, solved, of b }, medians = times by which half of a and of b have solved it, or false;
---  improvement = of "better": { probability that a run of a is better than one of b, low, high } }
function claims.judge(study, list, metrics)
  local verdicts, ps, of, reaches, sees = {}, {}, {}, {}, #(list or {}) > 0 and sees_of(study) or {}
  for i, claim in ipairs(list or {}) do
    local v = { claim = claim, rollout = claim.test and rollout_seen(study, claim.test, sees) or {}, failed = claim.test and failed_of(study, claim.test) }
    verdicts[i] = v
    if claim.test and (claim.test[1] == "solves" or claim.test[1] == "sooner") then decide_solved(v, study, claim.test)
    elseif claim.test then decide(v, claim.test, numbers_of(study, claim.test), ((metrics or {})[claim.test.metric] or {}).range)
    else v.verdict, v.why, v.n, v.missing = "undecided", "no_test", 0, {} end
    v.stopped = claim.test and stopped_of(study, claim.test)
    v.window = v.p and window_of(study, claim.test, reaches)
    local why = v.stopped and v.stopped[1] == v.stopped[2] and not v.failed and "stopping_rule" or v.window and "window"
    if why then v.verdict, v.why, v.p, v.p_apart, v.improvement = "undecided", why, nil, nil, nil end
    local p = p_of_verdict(v)
    if p then ps[#ps + 1], of[#of + 1] = p, v end
  end
  if #ps > 0 then for i, p in ipairs(stats.holm(ps)) do of[i].holm = p end end
  for _, v in ipairs(of) do
    if v.verdict ~= "undecided" and v.holm >= LEVEL then v.verdict, v.why = "undecided", "corrected" end
  end
  return verdicts
end

return claims
