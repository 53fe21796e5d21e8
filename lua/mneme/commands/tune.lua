-- tune.lua -- `mneme tune SCRIPT`: find good settings for each memory with the same budget, then run the best with fresh seeds.
local lazy = require "mneme.base.lazy"
local check_declaration = lazy "mneme.lab.study.check_declaration"
local cluster = lazy "mneme.lab.study.cluster"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local layout = require "mneme.base.layout"
local next_step = require("mneme.base.terminal").next_step
local format = require "mneme.base.format"
local ranks = lazy "mneme.tensor.ranks"
local run_sources = lazy "mneme.runs.run_sources"
local script = lazy "mneme.runs.script"
local aggregate = lazy "mneme.lab.study.aggregate"
local space = lazy "mneme.lab.search.space"
local study_sweep = lazy "mneme.lab.study.sweep"
local sweep = require "mneme.commands.sweep"
local tables = require "mneme.base.tables"
local tuning = lazy "mneme.lab.study.tuning"
local setting_types = require "mneme.base.setting_types"

local C = engine.C
local tune = { name = "tune", doc = "find good settings for each memory with the same budget, then run them with fresh seeds", others = "script",
  loads = true, about = [[
A range is LOW..HIGH, LOW..HIGH:log, LOW..HIGH:int; a comma-separated list is one of these, except for core= and the axes of a study: their
values are compared, and each is tuned with the whole budget.  The same command resumes, and several may work on one folder.
  mneme tune tmaze core=gru,lstm lr=1e-5..1e-2:log budget=40x1e5
A study with `tune = {...}` says what is tuned; then this command does the tuning alone, and mneme sweep the study.]],
  arguments = { { "script", "SCRIPT", "a study, or any script", noun = "script" } }, ask = "mneme tune SCRIPT core=gru,lstm lr=1e-5..1e-2:log budget=40x1e5",
  options = {
    { "budget", "NxS: N trials of S steps for each compared value; N: trials of the script's own steps", type = "text", example = "40x1e5" },
    { "seeds", "seeds of a setting when it is first measured; good settings get more", type = "whole", range = { 1 }, unless = "1", example = "1" },
    { "fresh", "seeds of the runs after tuning, which no trial had: how many, 3..7 or 1,5,9; 0: none", type = "seeds", none = true, unless = "5",
      example = "5" },
    { "top", "how many of the best settings run with them; the script's own setting runs, too", type = "whole", range = { 1 }, unless = "3", example = "3" },
    { "by", "the number that is to be high", type = "text", unless = "score", example = "score" },
    { "minimise", "it is to be low", type = "switch" },
    { "compare", "further settings whose lists are compared", type = "list", example = "gamma,lambda", default = {} },
    { "jobs", "trials at a time", type = "whole", range = { 1 }, unless = "one per processor", example = "2" },
    { "run", "the folder", type = "folder", unless = "runs/SCRIPT_tune" },
    { "list", "only list what was measured so far, and the best", type = "switch" },
    { "estimate", "0: start at once, without estimating the time", type = "text", example = "0", pattern = "^[01]$", expected = "0 or 1" },
    { "attempts", "how often a trial that fails is tried; one that fails for good scores as the worst", type = "whole", range = { 1 }, default = 2 },
    { "only", "this process is worker N of a job for other machines", type = "whole", range = { 1 }, example = "1" },
    { "workers", "workers of that job", type = "whole", range = { 1 }, with = "cluster", default = 8 },
    unpack(sweep.of_clusters),
  } }

-- ---- the command line ----

-- The ranges, and the words for the script.
local function divide(o)
  o.script = script.named(o.script)
  if o.cluster then cluster.check(o) end
  local spec = script.survey(o.script, {}).spec
  local compared, ranges, rest = { core = true }, {}, {}
  for name in pairs(spec and spec.axes or {}) do compared[name] = true end
  for _, name in ipairs(o.compare) do compared[name] = true end
  for _, item in ipairs(o.items) do
    local key, text = item[1], item[2]
    if key and space.is_range(text) then ranges[key] = text
    elseif key and text:find(",", 1, true) and not compared[key] then ranges[key] = setting_types.items(text)
    else rest[#rest + 1] = item.word end
  end
  return ranges, rest, spec
end

local function tuning_of(o, ranges, rest, spec)
  local name = o.script:match "([^/]*)$":gsub("%.lua$", "")
  local run = o.run or "runs/" .. name .. ((spec and spec.tune) and "" or "_tune")
  local plan, several = study_sweep.plan({ script = o.script, seeds = "1", run = run }, rest), {}
  check_declaration.axes(plan)
  for _, axis in ipairs(plan.axes) do several[axis.name] = true end
  for _, key in ipairs(o.compare) do
    if not several[key] then errors.unknown("tune: compare: list of values", key, tables.keys(several)) end
  end
  local attempts, jobs, wanted = o.attempts, o.jobs or C.mn_cores(), o.only and "0" or o.estimate
  local options = { seeds = o.seeds, top = o.top, by = o.by, minimise = o.minimise or nil, budget = o.budget }
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
  return require("mneme.insight.figures.text").interval(value, low, high, nil, "to")
end

-- The scores of runs that are done.
local function scores_of(t, runs)
  local list = {}
  for _, run in ipairs(runs) do
    local score = t:score(run)
    if score then list[#list + 1] = t.minimise and -score or score end
  end
  return list
end

local function pick_text(pick)
  return pick and ("%s, %d seed%s"):format(format.short(pick.mean), pick.seeds, pick.seeds > 1 and "s" or "") or "–"
end

-- ", 2 failed, 1 without a score"
local function vain(t, count, of)
  local function text(n, what) return n > 0 and (", %d%s %s"):format(n, of and (" %s%s"):format(of, n > 1 and "s" or "") or "", what) or "" end
  return text(count.failed, "failed") .. text(count.without, "without a " .. t.by)
end

-- A table for each point: its picks, how they scored in the tuning, and with fresh seeds.
local function show(t)
  for _, point in ipairs(t.points) do
    local rows = { { "pick", "setting", "tuning", "fresh seeds" } }
    for _, row in ipairs(t.fresh[1] and t:rows(point) or {}) do
      local list, others = scores_of(t, row.runs), t:count(row.runs)
      local threshold = aggregate.stop_score(row.runs[1].path)
      local fresh_text = #list > 0 and ("%s, %d seed%s"):format(interval(list), #list, #list > 1 and "s" or "") or "–"
      fresh_text = fresh_text .. vain(t, others)
      if #list > 0 and threshold and t.by == "score" then
        for _ = 1, others.failed + others.without do list[#list + 1] = threshold - 1 end             -- which have not solved it
        fresh_text = fresh_text .. ", " .. aggregate.solved(list, threshold)
      end
      rows[#rows + 1] = { row.label, words_text(t, row.values), pick_text(row.pick), fresh_text }
    end
    for i, pick in ipairs(not t.fresh[1] and t:picks(point) or {}) do
      rows[#rows + 1] = { tostring(i), words_text(t, pick.values), pick_text(pick), "–" }
    end
    local steps, count = t.steps and (" of %s steps"):format(format.short(t.steps)) or "", t:count(t:all_runs(point))
    io.stdout:write(("\n%s: %d trials%s%s, seeds from %d\n"):format(point.name ~= "" and point.name or t.run, count.ended, steps,
      vain(t, count), t.first_seed), layout.table(rows))
  end
end

-- What is in the journal.
local function list_trials(t, words)
  for _, point in ipairs(t.points) do
    print(point.name ~= "" and point.name or t.run)
    local rows = {}
    for _, p in ipairs((t:proposals(point))) do
      for _, run in ipairs(p.runs) do
        local score, last = t:score(run), nil
        if score then last = format.short(t.minimise and -score or score) elseif score == false then last = run.without and "no " .. t.by or "failed" end
        if not last and files.is_folder(run.path) then last = "open" end
        if last then rows[#rows + 1] = { ("%03d"):format(p.setting), p.why, words_text(t, p.values), ("seed %d"):format(run.seed), last } end
      end
    end
    io.stdout:write(layout.table(rows))
  end
  next_step.say { "tune", unpack(setting_types.without(words, "list")) }
  return 0
end

-- Hands the tuning to some workers.
local function hand_over(o, t)
  local n = math.min(o.workers, t.trials * #t.points)
  local workers, rest, own = {}, {}, {}
  for k = 1, n do workers[k] = { name = tostring(k), words = { "threads=1" } } end
  for _, option in ipairs { { "run" }, { "jobs" }, { "estimate" }, { "workers" }, unpack(sweep.of_clusters) } do own[option[1]] = true end
  for _, item in ipairs(o.all) do if item[1] and not own[item[1]] then rest[#rest + 1] = item.word end end
  rest[#rest + 1] = "jobs=1"
  cluster.hand_over({ command = "tune", script = t.script, run = t.run, time = o.time, mem = o.mem,
    partition = o.partition, submit = o.submit }, rest, workers, ("%d workers"):format(n))
  return 0
end

function tune.run(o)
  if tables.has(o.rest, "--help") then             -- its help, and the settings of the script, which are what can be tuned
    io.stdout:write(require("mneme.commands.options").page(tune), "\n")
    return script.run(script.locate(o.script), { "--help" })
  end
  script.once(o.words)
  ranks.begin()
  if ranks.size > 1 then errors.usage(("tune: mpirun started %d processes, but a tuning starts its own"):format(ranks.size), "mneme tune ... jobs=N") end
  local ranges, rest, spec = divide(o)
  local t = tuning_of(o, ranges, rest, spec)
  local of_study = spec and spec.tune
  if o.list then return list_trials(t, o.words) end
  engine.open("cpu", 1)                          -- processes are forked from one without other threads
  run_sources.program()
  study_sweep.check_code({ run = t.base }, { runs = t:all_runs() })
  if o.cluster then return hand_over(o, t) end
  if not of_study then t:with_fresh(o.fresh or { 1, 2, 3, 4, 5 }) end
  C.mn_watch_signals(true)
  local signal, count = t:work()
  C.mn_watch_signals(false)
  print(("%s: %d of %d runs done%s%s%s"):format(t.run, count.done, count.all, vain(t, count.trials, "trial"), vain(t, count.fresh, "fresh run"),
    count.done + count.failed < count.all and "; the same command goes on" or ""))
  if signal ~= 0 then return errors.status_of(signal) end
  if o.only then return 0 end
  show(t)
  next_step.note { of_study and "sweep" or "report", of_study and o.script or t.run }
  return count.fresh.failed > 0 and 1 or 0       -- trials may fail: what diverges is not picked
end

return tune
