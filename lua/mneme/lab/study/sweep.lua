-- sweep.lua -- run every point of a grid with every seed, each in its own process.
local engine = require "mneme.base.engine"
local one_run = require "mneme.lab.study.one_run"
local check_declaration = require "mneme.lab.study.check_declaration"
local declaration_file = require "mneme.lab.study.declaration_file"
local errors = require "mneme.base.errors"
local estimate = require "mneme.lab.study.estimate"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local grid = require "mneme.lab.study.grid"
local model_sizes = require "mneme.lab.study.model_sizes"
local result_archive = require "mneme.lab.study.result_archive"
local power = require "mneme.lab.study.power"
local process_pool = require "mneme.lab.study.process_pool"
local run_folder = require "mneme.runs.run_folder"
local run_sources = require "mneme.runs.run_sources"
local script = require "mneme.runs.script"
local search_space = require "mneme.lab.search.search_space"
local aggregate = require "mneme.lab.study.aggregate"
local parse_seeds = require "mneme.runs.parse_seeds"
local terminal = require "mneme.base.terminal"
local tuning = require "mneme.lab.study.tuning"
local study = require "mneme.lab.study.study"
local sweep_progress = require "mneme.lab.study.sweep_progress"
local setting_types = require "mneme.base.setting_types"

local C = engine.C
local HOPELESS = 8                 -- trials of a tuning that all fail alike
local sweep = {}
-- ---- what there is to do ----

-- Of the arguments of a study of another experiment, the given ones, without axes.
local function given_of(survey)
  local left = tables.set(survey.words)
  return tables.map(survey.given, function(word) return left[word] and word or nil end)
end

-- Ranges that the command line names, apart from its other words.
local function ranges_of(words)
  local ranges, rest = {}, {}
  for _, word in ipairs(words) do
    local key, text = setting_types.pair(word)
    if key and search_space.is_range(text) then ranges[key] = text else rest[#rest + 1] = word end
  end
  return ranges, rest
end

-- What is tuned before the runs, by the study or by the command line; nil: nothing.
local function tune_of(o, spec, ranges)
  if not next(ranges) and not o.budget and not o.by then return spec.tune end
  if spec.tune then errors.usage(o.script .. " says itself what is tuned", "its key tune = {...}") end
  if not o.budget then errors.usage("tune: how much?  budget=TRIALSxSTEPS is missing", "budget=40x1e5: for each memory 40 trials of 100000 steps") end
  ranges.budget, ranges.by = o.budget, o.by
  tuning.check(ranges)
  return ranges
end

---The grid that the command line means.
---@param o table script, seeds; budget and by of a tuning
---@return table plan { script, title, axes = { name, values }[], seeds, runs, words = those of every run, spec, cfg, size = "quick", "full" or nil,
---  survey, tune = what is tuned before, or nil }
function sweep.plan(o, words)
  local ranges
  ranges, words = ranges_of(words)
  local survey = script.survey(o.script, words)
  local spec = survey.spec or { axes = {}, seeds = { 1 } }
  local narrowed, cfg = survey.narrowed or {}, survey.cfg
  local size = survey.size or cfg.quick and "quick" or cfg.full and "full" or nil
  local axes, seeds = {}, nil
  for _, name in ipairs(tables.keys(spec.axes)) do
    for _, value in ipairs(narrowed[name] or {}) do
      if value.unknown then
        check_declaration.name(name, spec.axes[name], value.label, grid.labels(name, spec.axes[name]))
        check_declaration.typed(survey, name, value.label)
      end
    end
    axes[#axes + 1] = { name = name, values = narrowed[name] or grid.list(name, spec.axes[name], size) }
  end
  survey.cores = spec.axes.core or tables.has(tables.map(survey.axes, function(axis) return axis.name end), "core")     -- not one for all runs
  if not survey.cores then check_declaration.core(cfg) end
  for _, axis in ipairs(survey.axes) do
    local list = tables.map(axis.texts, function(text) return check_declaration.typed(survey, axis.name, text) end)
    if axis.name == "seed" then seeds = tables.map(axis.texts, setting_types.number)
    else axes[#axes + 1] = { name = axis.name, values = list } end
  end
  local fixed = script.setting(survey.words, "seed")
  if o.seeds and (seeds or fixed) then errors.usage "sweep: seed= and seeds=, expected one of them" end
  if o.seeds then seeds = parse_seeds("sweep", o.seeds) end
  seeds = seeds or fixed and { cfg.seed } or parse_seeds("sweep", tostring(size and spec.seeds[size] or spec.seeds[1] or 1))
  local common = {}                              -- a study of another experiment adds its own settings in each run
  if spec.of and size then common[1] = size .. "=1" end
  for _, word in ipairs(setting_types.without(survey.given and given_of(survey) or survey.words, "seed")) do common[#common + 1] = word end
  local plan = { script = o.script, title = spec.title, axes = axes, seeds = seeds, words = common, spec = spec, cfg = cfg, size = size, survey = survey,
    tune = tune_of(o, spec, ranges) }
  check_declaration.twice(plan)
  local runs, named = grid.runs(axes, seeds), {}
  for _, c in ipairs(runs) do
    if named[c.name] then errors.usage(("sweep: two runs are called %s: an axis has a value twice"):format(c.name)) end
    named[c.name] = true
    for _, word in ipairs(common) do table.insert(c.words, word) end       -- what one says wins over what an axis sets besides
    if not script.setting(c.words, "threads") then table.insert(c.words, "threads=1") end
  end
  plan.runs = runs
  return plan
end

-- Refuses a folder that has another study, or a run.
local function owned(o, plan, words)
  local info = study_folder.info(o.run)
  local elsewhere = "run=FOLDER puts this one elsewhere"
  if info and info.script ~= plan.script then
    errors.usage(("%s holds a sweep of %s, not of %s"):format(o.run, info.script, plan.script), elsewhere)
  elseif info and grid.same_text(info.settings, plan.survey.schema) ~= grid.same_text(words, plan.survey.schema) then
    errors.usage(("%s holds a sweep of %s with other settings: '%s', not '%s'"):format(o.run, info.script, info.settings, words), elsewhere)
  elseif not info and files.is_file(o.run .. "/config.json") then errors.usage(o.run .. " is a run, not a study", elsewhere) end
end

---One study is made by one code: runs that were made by another are not added to.
function sweep.check_code(o, plan)
  local others, first, of, builds = 0, nil, nil, 0
  for _, c in ipairs(plan.runs) do
    local path = study_folder.run_path(o.run, c.name)
    local made_here = files.is_file(path .. "/config.json") and not (study_folder.result(path) or {}).kept         -- of others the report says it
    local info = made_here and run_folder.read_info(path)
    local change, last = info and run_sources.changes(path, info)[1], info and type(info.history) == "table" and info.history[#info.history]
    if type(last) == "table" and last.program_checksum ~= run_sources.program() then builds = builds + 1 end
    if change then others, first, of = others + 1, first or change, of or path end
  end
  if not first and builds > 0 then
    terminal.note(("mneme: warning: %s: %d of its runs were made by another build of Mneme; the report says so"):format(o.run, builds))
  end
  if first then
    errors.usage(("%s: %d of its runs were made by other code: %s: %s"):format(o.run, others, of, first.text),
      "run=ANOTHER begins a study of its own" .. (first.copy and "; what the runs were made by is in " .. first.copy or ""))
  end
end

-- study.json, with the runs of earlier sweeps of the same settings.
local function note(o, plan)
  local words, claims = table.concat(plan.words, " "), declaration_file.claims(plan.spec)
  owned(o, plan, words)
  study_folder.note(o.run, { script = plan.script, title = plan.title, settings = words, declared = true, claims = claims }, plan.runs)
  declaration_file.write_once(o.run, plan.script, plan.runs[1].words)
end

-- ---- running it ----

-- The last thing that a run said.
local function last_line(path)
  local text, last = files.text(path), ""
  for line in (text or ""):gmatch "[^\n]+" do if line:find "%S" then last = line end end
  return text and last or "its log cannot be read"
end

-- What a run of a sweep has come to: "done", "failed" or "open".
local function status_of(o, c) return (study_folder.result(study_folder.run_path(o.run, c.name)) or { status = "open" }).status end

-- The runs that are not done.
local function open_runs(o, plan) return tables.map(plan.runs, function(c) return status_of(o, c) ~= "done" and c or nil end) end

-- A run's error without what differs between runs: its folder and numbers.
local function kind_of_error(text, path) return (text:gsub(path:gsub("%p", "%%%0"), ""):gsub("%d+", "")) end

-- Run the runs of a queue, several at a time; the number that is done, failed, taken by others, and the signal that
-- ended it.  o.done(run): after each that is done.
local function run_queue(o, plan, queue)
  local parameters, warned, next_look = {}, false, 0
  C.mn_watch_signals(true)
  if o.estimate ~= "0" and #queue > 0 and C.mn_interrupted() == 0 then
    local sum = estimate.of(queue, plan.script, o)
    terminal.note(o.run .. ": " .. estimate.text(sum, #queue, o.jobs))
    parameters = sum.parameters
  end
  local tries, alike = {}, { runs = 0 }          -- alike: runs that failed, all with the same error; false: others happened
  local count = { done = #plan.runs - #queue, failed = 0, taken = 0, all = #plan.runs }
  local shown, at = sweep_progress.new(plan, o.jobs, count), 0
  local function look()                          -- once runs have begun, their sizes are known
    if warned or C.mn_clock(false) < next_look then return end
    next_look = C.mn_clock(false) + 1
    model_sizes.read(parameters, plan.runs, function(c) return study_folder.run_path(o.run, c.name) end)
    local said = model_sizes.warning(parameters)
    if said then shown:say("mneme: warning: " .. said) end
    warned = said ~= nil
  end
  look()
  local signal = process_pool.run {
    jobs = o.jobs,
    next = function()
      if count.gave_up then return nil end
      at = at + 1
      local c = queue[at]
      if c then files.make_folder(study_folder.run_path(o.run, c.name)) else at = at - 1 end
      return c
    end,
    none_left = function() return count.gave_up or at >= #queue end,
    log = function(c) return study_folder.run_path(o.run, c.name) .. "/log.txt" end,
    run = function(c) return one_run.process(study_folder.run_path(o.run, c.name), plan.script, c) end,
    tick = function(running)
      shown:update(running, #queue - at)
      look()
    end,
    ended = function(c, about)
      local path = study_folder.run_path(o.run, c.name)
      local what, last = one_run.ended(path, c, about, last_line(path .. "/log.txt"))
      if what == "done" and o.done then o.done(c) end
      if what ~= "failed" then
        count[what] = (count[what] or 0) + 1
        shown:ended(c, about, what == "taken" and "another process runs it" or what)
      else
        tries[c.name] = (tries[c.name] or 0) + 1
        local kind = kind_of_error(last, path)
        alike = alike and (not alike.kind or alike.kind == kind) and { kind = kind, text = last, runs = alike.runs + (tries[c.name] == 1 and 1 or 0) }
        count.gave_up = alike and count.done == 0 and o.give_up > 0 and alike.runs >= o.give_up and at < #queue and last
        local again = tries[c.name] < o.attempts and about.status ~= 2
        if again then queue[#queue + 1] = c else count.failed = count.failed + 1 end
        shown:ended(c, about, again and "failed, tried once more" or "failed", last)
      end
    end,
  }
  C.mn_watch_signals(false)
  C.mn_watch_signals(false)
  next_look = 0
  look()
  shown:close()
  return count, signal
end

-- Marks in study.json the runs that are done: mneme check misses them where they are removed.
local function note_done(o)
  local info, more = study_folder.info(o.run), false
  for _, c in ipairs(info.runs) do if not c.done and status_of(o, c) == "done" then c.done, more = true, true end end
  if more then study_folder.write_info(o.run, info) end
end

local function list_runs(o, plan, words)
  for i, c in ipairs(plan.runs) do print(("%4d  %-6s  %s"):format(i, status_of(o, c), c.name)) end
  terminal.next_step.say { "sweep", unpack(setting_types.without(words, "list")) }
  return 0
end

-- One run of the plan, by its number or its name.
local function choose(o, plan)
  local found = plan.runs[tonumber(o.only)]
  local schema = plan.survey.schema
  local wanted = grid.same_name(o.only, schema)
  for _, c in ipairs(found and {} or plan.runs) do
    if c.name == o.only or not found and grid.same_name(c.name, schema) == wanted then found = c end
  end
  if not found then errors.usage(("sweep: only=%s: there are %d runs, 1 to %d"):format(o.only, #plan.runs, #plan.runs), "list=1 names them") end
  o.jobs, o.estimate = 1, "0"
  return { found }
end

-- What each claim can decide with these runs and seeds.
local function show_power(plan)
  if #(plan.spec.claims or {}) == 0 then print "the study makes no claim" return 0 end
  print(("with %d seed%s, in four of five studies, at 5 %% after Holm's correction:"):format(#plan.seeds, #plan.seeds == 1 and "" or "s"))
  for _, line in ipairs(power.lines(plan.spec.claims, #plan.seeds, plan.runs)) do print(line) end
  return 0
end

-- Runs the trials of a tuning: those that fill the space, then further seeds of the best.  Returns the signal that ended it.
local function run_trials(o, plan, t)
  local jobs = o.jobs or plan.spec.jobs or C.mn_cores()
  for round = 1, 2 do
    if round == 2 then t:go_on() end
    t:note()
    local open = t:open_trials()
    if open[1] and (o.only or o.jobs == 0) then errors.usage(("sweep: %s tunes its settings first"):format(o.script), "without only=, mneme sweep does it") end
    local count, signal = run_queue({ run = t.base, jobs = jobs, attempts = o.attempts, give_up = HOPELESS, estimate = o.estimate,
      done = function(c) t:score(c) end }, { script = plan.script, runs = t:trials(), cfg = { steps = t.steps or plan.cfg.steps } }, open)
    if signal ~= 0 then return signal end
    if count.gave_up then errors.fail(("%s: the first %d trials all failed alike: %s"):format(t.base, HOPELESS, count.gave_up)) end
    if t:open_trials()[1] then errors.fail(t.base .. ": other processes run some of its trials", "once they have ended, the same command goes on") end
  end
  return 0
end

-- Each point's settings are picked first, by trials with seeds of their own; its runs then have them.  Returns the signal that ended it.
local function tune_first(o, plan)
  local t, by_name = tuning.open(plan, o.run, o.attempts), {}
  local points = t:take(o.run, o.import and result_archive.tuned(o.import))
  if t.points[1] then
    local taken = #points
    sweep.check_code({ run = t.base }, { runs = t:trials() })
    files.make_folder(t.base .. "/runs")
    local signal = run_trials(o, plan, t)
    if signal ~= 0 then
      print(o.run .. ": the tuning is not done; the same command goes on")
      return signal
    end
    points = t:pick()
    for i = taken + 1, #points do
      local point, pick = points[i], points[i].picks[1]
      print(("%s: %s, tuned in %d trials (%s %.3g, %d seeds)"):format(point.name ~= "" and point.name or o.run, table.concat(t.space:words(pick.values), " "),
        point.trials, t.by, pick.mean, pick.seeds))
    end
    for _, line in ipairs(search_space.crowded(t.about.ranges, tables.map(points, function(point) return point.picks[1].values end))) do
      print(line .. ": a wider range may have a better one")
    end
  end
  for _, point in ipairs(points) do by_name[point.name] = t.space:words(point.picks[1].values) end
  for _, c in ipairs(plan.runs) do
    for _, word in ipairs(by_name[tuning.point_name(c)]) do table.insert(c.words, word) end
  end
  return 0
end

-- Of runs that solve their task or do not, how many did, as a mean does not say.
local function show_solved(o, plan)
  local swept = study_folder.load(o.run)
  study_folder.add_means(swept, plan.spec)
  for _, group in ipairs(study_folder.groups(swept.runs)) do
    for _, name in ipairs(tables.keys(plan.spec.metrics or { score = true })) do
      local threshold = aggregate.threshold(plan.spec, name, group.runs)
      local list = threshold and aggregate.numbers(group.runs, function(c) return study_folder.number(c, name) end, {}) or {}
      local text = threshold and aggregate.solved_of(list, group.runs, threshold, name)
      local guess = text and aggregate.guess(name, group.runs, list[1] and (aggregate.interval(list, "mean")))
      if guess then text = text .. "; " .. guess end
      if text then print(("  %s%s of at least %s: %s"):format(group.name ~= "" and group.name .. ": " or "", name, setting_types.show(threshold), text)) end
    end
  end
end

---The runs of a file of finished ones that a study has; an error where its settings are others.
---@param seeds string as seeds= has them
---@param run string a new folder for the study
---@return integer n how many
---@return fun(): string? unpack puts them there; returns in words the other code that they were made by
function sweep.kept(file, path, words, seeds, run)
  local o = { script = path, seeds = seeds, import = file, run = run, jobs = 0, estimate = "0", attempts = 1 }
  study.of_sweep = true
  local plan = sweep.plan(o, words)
  if plan.tune then
    files.make_folder(study_folder.run_path(run, ""))
    tune_first(o, plan)
  end
  local wanted = result_archive.wanted(run, file, path, plan.runs)
  for i = 1, #plan.runs do plan.runs[i] = wanted[i] and wanted[i][1] end
  return #wanted, function()
    files.make_folder(study_folder.run_path(run, ""))
    note(o, plan)
    result_archive.take(run, file, wanted)
    return result_archive.other_code(wanted)
  end
end

---@param o table the options of `mneme sweep` (commands/sweep.lua); rest = words for the script
function sweep.main(o)
  local rest = o.rest
  if o.jobs == 0 and not o.import then errors.usage("sweep: jobs=0, expected a whole number of at least 1") end
  o.script = script.named(o.script)
  o.run = o.run or "runs/" .. o.script:match "([^/]*)$":gsub("%.lua$", "")
  study.of_sweep = true
  local plan = sweep.plan(o, rest)
  check_declaration.axes(plan)
  if o.list then return list_runs(o, plan, o.words) end
  if o.power then return show_power(plan) end
  engine.open("cpu", 1)                          -- processes are forked from one without other threads
  run_sources.program()                          -- once for all of them: reading the program takes longer than a small run
  owned(o, plan, table.concat(plan.words, " "))               -- before anything is put there
  sweep.check_code(o, plan)
  files.make_folder(study_folder.run_path(o.run, ""))
  if not o.only then files.lock(o.run .. "/lock") end          -- of one run its own lock does
  if plan.tune then
    local signal = tune_first(o, plan)
    if signal ~= 0 then return errors.status_of(signal) end
  end
  local chosen, wanted, held = o.only and choose(o, plan) or plan.runs, nil, nil
  if o.import then wanted, held = result_archive.wanted(o.run, o.import, plan.script, chosen) end
  note(o, plan)
  plan.runs = chosen
  if o.import then
    local others = result_archive.other_code(wanted)
    if others then terminal.note(("mneme: warning: %s: %s; the report says so"):format(o.import, others)) end
    result_archive.take(o.run, o.import, wanted)
    print(("%s: %d of the %d runs of %s were open here and are taken"):format(o.run, #wanted, held, o.import))
  end
  if o.jobs == 0 then return 0 end               -- import alone
  o.jobs = o.jobs or plan.spec.jobs or C.mn_cores()
  local open_now = open_runs(o, plan)
  local count, signal = run_queue(o, plan, open_now)
  if not o.only then note_done(o) end
  local open = count.all - count.done - count.failed
  print(("%s: %d of %d runs done%s%s%s"):format(o.run, count.done, count.all, count.failed > 0 and (", %d failed"):format(count.failed) or "",
    count.taken > 0 and (", %d run by other processes"):format(count.taken) or "",
    open > count.taken and (", %d open; the same command goes on"):format(open - count.taken) or ""))
  if signal ~= 0 then return errors.status_of(signal) end
  if count.gave_up then
    errors.fail(("%s: all of the first %d runs failed alike: %s"):format(o.run, o.give_up, count.gave_up),
      "once that is repaired the same command goes on; give_up=0 runs the others all the same")
  end
  if not o.only then
    show_solved(o, plan)
    terminal.next_step.note({ "report", o.run }, { "compare", o.run })
  end
  return (count.failed > 0 or open > count.taken) and 1 or count.taken > 0 and one_run.TAKEN or 0
end

return sweep
