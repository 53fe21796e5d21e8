-- tuning.lua -- tunes settings for each point of a grid with the same budget, before the study's own runs: settings that fill the space, then
-- further seeds of the best.  Each trial is a run; STUDY/tune is a study's folder of them, which mneme sweep runs like any other.
--   STUDY/tune/study.json              what is tuned, and all trials
--   STUDY/tune/runs/TRIAL/             a trial: a run's folder
--   STUDY/tune/tuned.json              once all is measured: the best settings of each point
local check_declaration = require "mneme.lab.study.check_declaration"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local grid = require "mneme.lab.study.grid"
local tuning_picks = require "mneme.lab.study.tuning_picks"
local json = require "mneme.base.json"
local tuning_schedule = require "mneme.lab.search.tuning_schedule"
local script = require "mneme.runs.script"
local search_space = require "mneme.lab.search.search_space"
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"

local tuning = { FIRST_SEED = 1001 }                -- of trials; those of a study begin at 1, so that they are fresh

-- ---- what is tuned ----

-- A budget: "200x5e5" is 200 trials of 500,000 steps for each point; "200": trials of the script's own steps.
local function budget(text)
  local trials, steps = tostring(text):match "^([^x]+)x?(.*)$"
  local n, s = setting_types.number(trials or ""), setting_types.number(steps or "")
  if not n or n < 2 or n % 1 ~= 0 or n > 1e4 or steps ~= "" and not (s and s >= 1 and s % 1 == 0) then
    errors.usage(("tune: budget=%s, expected TRIALS or TRIALSxSTEPS"):format(text), "budget=200x5e5: for each memory 200 trials of 500000 steps")
  end
  return n, s
end

local words_of_study = { budget = true, seeds = "number", by = "string", top = "number", minimise = "boolean" }

---What a study says of tuning: ranges and lists by setting, besides the keys budget, seeds, by, top, minimise, quick and full.
---@param spec table tune = { lr = "1e-5..1e-2:log", budget = "40x1e5", quick = { budget = "8x4096" } }
---@return table options { budget, seeds, by ... }
---@return table ranges
function tuning.declared(spec, size)
  local options, ranges = { seeds = 1, top = 3, by = "score", minimise = false }, {}
  for _, t in ipairs { spec, size and spec[size] or nil } do
    for key, value in pairs(t) do
      local kind = words_of_study[key]
      if kind and kind ~= true and type(value) ~= kind then errors.raise(("study: tune: %s is a %s, expected a %s"):format(key, type(value), kind)) end
      if kind then options[key] = value elseif key ~= "quick" and key ~= "full" then ranges[key] = value end
    end
  end
  if not options.budget then errors.raise 'study: tune has no budget = "TRIALSxSTEPS"' end
  return options, ranges
end

---Refuse a study's tune that cannot be meant.
function tuning.check(spec)
  for _, size in ipairs { "", "quick", "full" } do
    local options, ranges = tuning.declared(spec, size ~= "" and size or nil)
    budget(options.budget)
    search_space.new(ranges)
  end
end

---The name of the point to which a run of a plan belongs: its name without the seed.
function tuning.point_name(c) return c.name:find "^seed=" and "" or grid.kind(c) end

-- The script's own setting at a point, if it is in the space.
local function own_setting(self, words)
  local survey = script.survey(self.script, words, true)
  local cfg, setting = survey.cfg, {}
  check_declaration.core(cfg)
  for _, dim in ipairs(self.space.dims) do
    local value = cfg
    for part in dim.name:gmatch "[^.]+" do value = type(value) == "table" and value[part] or nil end
    if value == nil then return nil end
    setting[dim.name] = value
  end
  local at = self.space:point(setting)
  return at and self.space:setting(at)
end

-- ---- the trials ----

local Tuning = {}
Tuning.__index = Tuning

-- A trial of a setting at a point, as sweeps have runs.
local function trial_of(self, point, p, seed)
  local label = ("%03d"):format(p.setting)
  local name = ("%ssetting=%s,seed=%.0f"):format(point.name ~= "" and point.name .. "," or "", label, seed)
  local labels, words = tables.merged({ setting = label }, point.labels), { unpack(point.words) }
  for _, word in ipairs((self.space:words(p.values))) do words[#words + 1] = word end
  if self.steps then words[#words + 1] = ("steps=%.0f"):format(self.steps) end
  words[#words + 1] = ("seed=%.0f"):format(seed)
  return { name = name, path = study_folder.run_path(self.base, name), labels = labels, seed = seed, words = words }
end

---The tuning of a plan, new or as its folder has it.
---@param plan table of sweep.plan, with `tune` as a study declares it
---@param run string the study's folder
---@param attempts integer after as many a trial that fails is over
function tuning.open(plan, run, attempts)
  local o, ranges = tuning.declared(plan.tune, plan.size)
  local self = setmetatable({ script = plan.script, words = plan.words, base = run .. "/tune", space = search_space.new(ranges), attempts = attempts,
    by = o.by, minimise = o.minimise, points = {} }, Tuning)
  local trials, steps = budget(o.budget)
  if o.seeds > trials then errors.usage(("tune: seeds=%d: more than the %d trials of the budget"):format(o.seeds, trials)) end
  self.steps = steps
  self.plan = { trials = trials, seeds = o.seeds, top = o.top, seed = 1, first_seed = tuning.FIRST_SEED }
  self.about = { ranges = search_space.text(ranges), budget = setting_types.show(o.budget), seeds = o.seeds, top = o.top, by = o.by, minimise = o.minimise }
  for key in pairs(ranges) do
    if grid.no_axis[key] then errors.usage(("tune: %s cannot be tuned: %s"):format(key, grid.no_axis[key])) end
    if key == "steps" and steps then errors.usage(("tune: steps: budget=%s says how many steps"):format(o.budget)) end
    for _, word in ipairs(plan.words) do
      if setting_types.pair(word) == key then errors.usage(("%s: the study tunes %s"):format(word, key), "without this word it picks a value") end
    end
  end
  for _, seed in ipairs(plan.seeds) do
    if seed >= tuning.FIRST_SEED and seed < tuning.FIRST_SEED + trials then
      errors.usage(("seed %.0f is one of the tuning's, which are %d to %d; expected fresh ones"):format(seed, tuning.FIRST_SEED,
        tuning.FIRST_SEED + trials - 1))
    end
  end
  local info = study_folder.info(self.base)
  if info and (info.script ~= self.script or info.settings ~= table.concat(self.words, " ")) then
    errors.usage(("%s holds a tuning of %s with other settings: '%s'"):format(run, info.script, info.settings), "run=FOLDER puts this one elsewhere")
  elseif info then self:need_same(run, info.tune or {}) end
  for i, kind in ipairs(grid.groups(plan.runs, tuning.point_name)) do
    local point = { name = kind.name, labels = kind.runs[1].labels, words = setting_types.without(kind.runs[1].words, "seed") }
    point.default = own_setting(self, point.words)
    point.proposals = tuning_schedule.start(self.space, tables.merged(self.plan, { default = point.default }))
    self.points[i] = point
    script.survey(self.script, trial_of(self, point, point.proposals[#point.proposals], 1).words, true)          -- what its runs would refuse is said now
  end
  return self
end

---An error unless what was tuned elsewhere is what this tuning tunes.
---@param where string for the message
function Tuning:need_same(where, about)
  for _, key in ipairs(tables.keys(self.about)) do
    if setting_types.show(about[key]) ~= setting_types.show(self.about[key]) then
      errors.usage(("%s: it was tuned with %s=%s, not %s"):format(where, key, setting_types.show(about[key]), setting_types.show(self.about[key])),
        "run=FOLDER tunes elsewhere")
    end
  end
end

---All trials that are known yet, the first of each point before the second of any.
---@return table[] runs
function Tuning:trials()
  local runs, rounds = {}, {}                          -- rounds[k]: trial k of each point
  for _, point in ipairs(self.points) do
    local k = 0
    for _, p in ipairs(point.proposals) do
      p.runs = p.runs or tables.map(p.seeds, function(seed) return trial_of(self, point, p, seed) end)
      for _, run in ipairs(p.runs) do
        k = k + 1
        rounds[k] = rounds[k] or {}
        table.insert(rounds[k], run)
      end
    end
  end
  for _, round in ipairs(rounds) do for _, run in ipairs(round) do runs[#runs + 1] = run end end
  return runs
end

---A trial's score; false: it cannot be measured; nil: not yet.
function Tuning:score(run)
  if run.score ~= nil then return run.score end
  local result = study_folder.result(run.path)
  if result and result.status == "done" then
    local metrics = result.metrics or {}
    local v = metrics[self.by]
    -- A short run may have no score, as no episode has ended; a metric that no run has is a slip.
    if not v and not self.found and next(metrics) and (self.by ~= "score" or metrics.mean_return == nil) then
      errors.usage(("tune: by=%s: the trials measure %s"):format(self.by, table.concat(tables.keys(metrics), ", ")))
    end
    run.score = v and (self.minimise and -v or v) or false
    self.found = self.found or v ~= nil
  elseif result and ((result.attempts or 1) >= self.attempts or result.exit == 2 or result.exit == 3) then run.score = false end
  return run.score
end

---Trials that are neither done nor failed for good.
function Tuning:open_trials()
  return tables.map(self:trials(), function(run) return self:score(run) == nil and run or nil end)
end

-- Gives each proposal of a point the scores of its trials.
local function note_scores(self, point)
  for _, p in ipairs(point.proposals) do p.scores = tables.map(p.runs, function(run) return self:score(run) end) end
end

---Adds further seeds of each point's best settings, once all of its first trials are measured.
function Tuning:go_on()
  for _, point in ipairs(self.points) do
    note_scores(self, point)
    tuning_schedule.finish(self.space, self.plan, point.proposals)
  end
end

---Notes the trials in their folder's study.json.
function Tuning:note()
  study_folder.note(self.base, { script = self.script, title = "tuning", settings = table.concat(self.words, " "), tune = self.about }, self:trials(), true)
end

---Writes what was picked once all is measured.
---@return table[] points { name, picks = { setting, values, mean, seeds }[], ... }
function Tuning:pick()
  local taken = self.taken or { points = {} }
  local tuned = { tune = self.about, trials = self.plan.trials, steps = self.steps, first_seed = tuning.FIRST_SEED, kept = taken.kept,
    points = { unpack(taken.points) } }
  for _, point in ipairs(self.points) do
    local seeds, any, n = 0, false, 0
    note_scores(self, point)
    for _, p in ipairs(point.proposals) do
      seeds, n = math.max(seeds, p.seeds[#p.seeds] - tuning.FIRST_SEED + 1), n + #p.runs
      for _, score in ipairs(p.scores) do any = any or score ~= false end
    end
    if not any then
      errors.fail(("tune: %sno trial has a %s; the first one's log is %s/log.txt"):format(point.name:gsub("(.)$", "%1: "), self.by,
        point.proposals[1].runs[1].path), self.by == "score" and "by=mean_return, where an environment declares no score" or nil)
    end
    local picks = tables.map(tuning_schedule.best(self.plan, point.proposals), function(entry)
      return { setting = entry.id, values = entry.values, mean = (self.minimise and -1 or 1) * entry.mean, seeds = #entry.scores }
    end)
    tuned.points[#tuned.points + 1] = { name = point.name, labels = point.labels, picks = picks, default = point.default, seeds = seeds, trials = n }
  end
  files.write(self.base .. "/tuned.json", { json.encode(tuned, "  ") .. "\n" })
  return tuned.points
end

---Take what an imported file says that a tuning picked, where none was begun here: the points that it lacks are left to be tuned.
---@param run string the study's folder
---@param tuned table? of result_archive.tuned
---@return table points { name, picks }, of this tuning's ranges and budget
function Tuning:take(run, tuned)
  local there = tuning_picks.tuned(run)
  local from = there and there.kept and there or not study_folder.info(self.base) and tuned
  if not from then return {} end
  self:need_same(from.kept, from.tune)
  files.make_folder(self.base)
  files.write(self.base .. "/tuned.json", { json.encode(from, "  ") .. "\n" })
  self.taken = from
  local known = tables.set(tables.map(from.points, function(point) return point.name end))
  self.points = tables.map(self.points, function(point) return not known[point.name] and point or nil end)
  return from.points
end

return tuning
