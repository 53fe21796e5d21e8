-- tune.lua -- find good settings for each memory with the same budget, then run the best with fresh seeds.
-- A range is LOW..HIGH, LOW..HIGH:log, LOW..HIGH:int; a comma-separated list is one of these, except for core= and the axes of a study: their
-- values are compared, and each is tuned with the whole budget.  The same command resumes, and several may work on one folder.
--   budget=NxS   N trials of S steps for each compared value; N: trials of the script's own steps
--   seeds=N      seeds of a setting when it is first measured (default 1); good settings get more
--   fresh=N      seeds of the runs after tuning (default 5), which no trial had; 0: none.  fresh=3..7 or fresh=1,5,9: those
--   top=N        how many of the best settings run with them (default 3); the script's own setting runs, too
--   by=score     the number that is to be high; minimise=1: low
--   compare=A,B  further settings whose lists are compared
--   jobs=N       trials at a time (default: one per processor)
--   ahead=N      how many settings are proposed before the first of them is measured (default 2)
--   cost=seconds prefer what is gained in less time; default steps, with which timing changes no proposal
--   run=F        the folder (default runs/SCRIPT_tune)
--   list=1       only list what was measured so far, and the best
--   estimate=0   start at once, without estimating the time
--   attempts=2   how often a trial that fails is tried; one that fails for good scores as the worst
--   cluster=slurm [workers=8 time=60 mem=2G partition=P submit=1] or cluster=parallel hosts=FILE [submit=1]
--                write a job whose tasks are workers on this folder: docs/clusters.md
--   only=K       this process is worker K of such a job
-- A study with `tune = {...}` says what is tuned; then this command does the tuning alone, and mneme sweep the study.
local check_declaration = require "mneme.study.check_declaration"
local cluster = require "mneme.study.cluster"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local fresh_runs = require "mneme.study.fresh_runs"
local layout = require "mneme.base.layout"
local next_step = require "mneme.base.next_step"
local numbers = require "mneme.base.format"
local run_sources = require "mneme.runs.run_sources"
local script = require "mneme.runs.script"
local seed_list = require "mneme.runs.seed_list"
local aggregate = require "mneme.study.aggregate"
local space = require "mneme.search.space"
local sweep = require "mneme.study.sweep"
local tables = require "mneme.base.tables"
local tuning = require "mneme.study.tuning"
local values = require "mneme.base.setting_types"

local C = engine.C
local tune = {}
local USAGE = "mneme tune SCRIPT core=gru,lstm lr=1e-5..1e-2:log budget=40x1e5"
local own = { budget = true, seeds = true, fresh = true, top = true, by = true, minimise = true, compare = true, jobs = true, ahead = true, cost = true,
  run = true, list = true, estimate = true, attempts = true, cluster = true, only = true }
local of_clusters = { hosts = true, time = true, mem = true, partition = true, submit = true, workers = true }

-- ---- the command line ----

local function whole(key, text, least)
  local n = tonumber(text)
  if not n or n % 1 ~= 0 or n < least then errors.usage(("tune: %s=%s, expected a whole number of at least %d"):format(key, text, least), USAGE) end
  return n
end

-- The arguments of tune, the ranges, and the words for the script.
local function parse(words)
  local o, given, clustered = {}, {}, script.setting(words, "cluster")
  for _, word in ipairs(words) do
    local key, text = word:match "^%-*([%a_][%w_.]*)=(.*)$"
    if key and (own[key] or clustered and of_clusters[key]) then o[key] = text
    elseif not word:find "=" and not word:find "^%-" and not o.script then o.script = word
    else given[#given + 1] = { key = key, text = text, word = word } end
  end
  if not o.script then errors.usage("tune: which script?", USAGE) end
  o.script = script.named(o.script)
  if o.cluster then cluster.check(o) end
  if o.cost and o.cost ~= "seconds" and o.cost ~= "steps" then errors.unknown("tune: cost=", o.cost, { "seconds", "steps" }) end
  o.compare = o.compare and values.items(o.compare) or {}
  local spec = script.survey(o.script, {}).spec
  local compared, ranges, rest = { core = true }, {}, {}
  for name in pairs(spec and spec.axes or {}) do compared[name] = true end
  for _, name in ipairs(o.compare) do compared[name] = true end
  for _, g in ipairs(given) do
    if g.key and space.is_range(g.text) then ranges[g.key] = g.text
    elseif g.key and g.text:find(",", 1, true) and not compared[g.key] then ranges[g.key] = values.items(g.text)
    else rest[#rest + 1] = g.word end
  end
  return o, ranges, rest, spec
end

local function tuning_of(o, ranges, rest, spec)
  local name = o.script:match "([^/]*)$":gsub("%.lua$", "")
  local run = o.run or "runs/" .. name .. ((spec and spec.tune) and "" or "_tune")
  local plan, several = sweep.plan({ script = o.script, seeds = "1", run = run }, rest), {}
  check_declaration.axes(plan)
  for _, axis in ipairs(plan.axes) do several[axis.name] = true end
  for _, key in ipairs(o.compare) do
    if not several[key] then errors.unknown("tune: compare: list of values", key, tables.keys(several)) end
  end
  local attempts = o.attempts and whole("attempts", o.attempts, 1) or 2
  local jobs, wanted = o.jobs and whole("jobs", o.jobs, 1) or C.mn_cores(), o.only and "0" or o.estimate
  local options = { seeds = o.seeds and whole("seeds", o.seeds, 1), top = o.top and whole("top", o.top, 1), ahead = o.ahead and whole("ahead", o.ahead, 1),
    by = o.by, minimise = o.minimise and o.minimise ~= "0" or nil, budget = o.budget, cost = o.cost == "seconds" and "seconds" or nil }
  if spec and spec.tune then
    if next(ranges) or next(options) then errors.usage(o.script .. " says itself what is tuned", "its key tune = {...}; mneme tune " .. o.script) end
    return tuning.of_study(plan, { run = run, jobs = jobs, estimate = wanted, attempts = attempts })
  end
  if not options.budget then errors.usage("tune: how much?  budget=TRIALSxSTEPS is missing", "budget=40x1e5: for each memory 40 trials of 100000 steps") end
  options.script, options.words, options.points, options.ranges = o.script, plan.words, tuning.points(plan), ranges
  options.title, options.run, options.schema = (plan.title or name) .. ", tuned", run, plan.survey.schema
  options.attempts, options.jobs, options.estimate = attempts, jobs, wanted
  return tuning.open(options)
end

-- ---- what came out ----

local function words_text(t, setting) return table.concat((t.space:words(setting)), " ") end

local function interval(list)
  local value, low, high = aggregate.interval(list, "mean", aggregate.within(list, { 0, 1 }) and { 0, 1 } or nil)
  local text = numbers.short(value)
  return low and low < high and ("%s (%s to %s)"):format(text, numbers.short(low), numbers.short(high)) or text
end

-- The scores of fresh runs that are done, and how many failed.
local function scores_of(t, runs)
  local list, failed = {}, 0
  for _, run in ipairs(runs) do
    local score = t:score(run)
    if score then list[#list + 1] = t.minimise and -score or score end
    failed = failed + (score == false and 1 or 0)
  end
  return list, failed
end

-- A table for each point: its picks, how they scored in the tuning, and with fresh seeds.
local function show(t, fresh)
  for _, point in ipairs(t.points) do
    local count, rows = t:count(point), { { "pick", "setting", "tuning", "fresh seeds" } }
    for _, row in ipairs(fresh and fresh:rows(point) or {}) do
      local list, failed = scores_of(t, row.runs)
      local pick = row.pick
      local threshold = aggregate.stop_score(row.runs[1].path)
      local fresh_text = #list > 0 and ("%s, %d seed%s"):format(interval(list), #list, #list > 1 and "s" or "") or "–"
      if failed > 0 then fresh_text = ("%s, %d failed"):format(fresh_text, failed) end
      if #list > 0 and threshold and t.by == "score" then
        for _ = 1, failed do list[#list + 1] = threshold - 1 end             -- which have not solved it
        fresh_text = fresh_text .. ", " .. aggregate.solved(list, threshold)
      end
      rows[#rows + 1] = { row.label, words_text(t, row.values), pick and ("%s, %d seed%s"):format(numbers.short(pick.mean), pick.seeds,
        pick.seeds > 1 and "s" or "") or "–", fresh_text }
    end
    for i, pick in ipairs(not fresh and t:picks(point) or {}) do
      rows[#rows + 1] = { tostring(i), words_text(t, pick.values), ("%s, %d seed%s"):format(numbers.short(pick.mean), pick.seeds,
        pick.seeds > 1 and "s" or ""), "–" }
    end
    local steps = t.steps and (" of %s steps"):format(numbers.short(t.steps)) or ""
    io.stdout:write(("\n%s: %d trials%s%s, seeds from %d\n"):format(point.name ~= "" and point.name or t.run, count.measured, steps,
      count.failed > 0 and (", %d failed"):format(count.failed) or "", t.first_seed), layout.table(rows))
  end
end

-- What is in the journal.
local function list_trials(t, words)
  for _, point in ipairs(t.points) do
    t:read(point)
    print(point.name ~= "" and point.name or t.run)
    local rows = {}
    for _, p in ipairs(point.proposals) do
      for _, run in ipairs(p.runs) do
        local score = t:score(run)
        rows[#rows + 1] = { ("%03d"):format(p.setting), p.why, words_text(t, p.values), ("seed %d"):format(run.seed),
          score and numbers.short(t.minimise and -score or score) or score == false and "failed" or "open" }
      end
    end
    io.stdout:write(layout.table(rows))
  end
  next_step.say(next_step.without("list", "tune", words))
  return 0
end

-- Write the job of some workers; submit=1 begins it.
local function hand_over(o, t, words)
  local n = o.workers and whole("workers", o.workers, 1) or math.min(#t.points * t.ahead * t.seeds, t.trials * #t.points)
  local workers, rest = {}, {}
  for k = 1, n do workers[k] = { name = tostring(k), words = { "threads=1" } } end
  for _, word in ipairs(words) do
    local key = word:match "^%-*([%a_]+)="
    if word:find "=" and not (of_clusters[key] or key == "cluster" or key == "run" or key == "jobs" or key == "estimate") then rest[#rest + 1] = word end
  end
  rest[#rest + 1] = "jobs=1"
  local lines, now = cluster.write({ command = "tune", cluster = o.cluster, script = t.script, run = t.run, hosts = o.hosts, time = o.time, mem = o.mem,
    partition = o.partition }, rest, workers), o.submit == "1"
  print(("%s: %d workers; %s"):format(t.run, n, now and "handed over:" or "this begins them:"))
  for _, line in ipairs(lines) do
    print("  " .. line)
    io.stdout:flush()
    if now and os.execute(line) ~= 0 then errors.fail("'" .. line .. "' failed", "what it said stands above") end
  end
  return 0
end

---@param words string[] what follows "tune"
---@return integer status
function tune.main(words)
  local o, ranges, rest, spec = parse(words)
  local t = tuning_of(o, ranges, rest, spec)
  local of_study = spec and spec.tune
  if o.list and o.list ~= "0" then return list_trials(t, words) end
  engine.open("cpu", 1)                          -- processes are forked from one without other threads
  run_sources.program()
  sweep.check_code({ run = t.base }, { runs = t:all_runs() })
  if o.cluster then return hand_over(o, t, words) end
  local fresh = not of_study and o.fresh ~= "0" and fresh_runs.new(t, seed_list("tune", o.fresh or "5")) or nil
  C.mn_watch_signals(true)
  local signal, count = t:work(fresh)
  C.mn_watch_signals(false)
  local function failed(n, what) return n > 0 and (", %d %s%s failed"):format(n, what, n > 1 and "s" or "") or "" end
  print(("%s: %d of %d runs done%s%s%s"):format(t.run, count.done, count.all, failed(count.trials_failed, "trial"), failed(count.fresh_failed, "fresh run"),
    count.done + count.failed < count.all and "; the same command goes on" or ""))
  if signal ~= 0 then return errors.status_of(signal) end
  if o.only then return 0 end
  show(t, fresh)
  next_step.note { of_study and "sweep" or "report", of_study and o.script or t.run }
  return count.fresh_failed > 0 and 1 or 0       -- trials may fail: what diverges is not picked
end

return tune
