-- tuning.lua -- tunes settings for each point of a grid with the same budget.  The folder STUDY/tune is the journal: what was proposed, and a
-- run folder for each trial.  Several processes, on several machines, may work on one: each reads what is there, proposes what comes
-- next, and takes trials that no other has.
--   STUDY/tune/study.json              what is tuned, and all trials: a study's folder, for report and compare
--   STUDY/tune/runs/TRIAL/             a trial: a run's folder
--   STUDY/tune/tuned.json              once all is measured: the best settings of each point
local check_declaration = require "mneme.lab.study.check_declaration"
local declaration_file = require "mneme.lab.study.declaration_file"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local estimate = require "mneme.lab.study.estimate"
local files = require "mneme.base.files"
local folder = require "mneme.lab.study.folder"
local grid = require "mneme.lab.study.grid"
local tuning_journal = require "mneme.lab.study.tuning_journal"
local json = require "mneme.base.json"
local one_run = require "mneme.lab.study.one_run"
local process_pool = require "mneme.lab.study.process_pool"
local progress = require "mneme.base.progress"
local schedule = require "mneme.lab.search.schedule"
local script = require "mneme.runs.script"
local space = require "mneme.lab.search.space"
local progress_table = require "mneme.lab.study.progress_table"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"

local C = engine.C
local tuning = {
  FIRST_SEED = 1001,               -- of trials; those of a study begin at 1, so that they are fresh
  defaults = { seeds = 1, top = 3, by = "score" },
}
local LATER = 15                   -- seconds until a trial that another process has is tried again
local PATIENCE = 0.5               -- seconds that a trial's lock is waited for
local HOPELESS = 8                 -- trials of a point of which none could be measured

-- ---- what is tuned ----

---A budget: "200x5e5" is 200 trials of 500,000 steps for each point; "200": trials of the script's own steps.
---@return integer trials
---@return integer? steps
function tuning.budget(text)
  local trials, steps = tostring(text):match "^([^x]+)x?(.*)$"
  local n, s = setting_types.number(trials or ""), setting_types.number(steps or "")
  if not n or n < 2 or n % 1 ~= 0 or n > 1e4 or steps ~= "" and not (s and s >= 1 and s % 1 == 0) then
    errors.usage(("tune: budget=%s, expected TRIALS or TRIALSxSTEPS"):format(text), "budget=200x5e5: for each memory 200 trials of 500000 steps")
  end
  return n, s
end

local words_of_study = { budget = true, seeds = true, by = "string", top = "number", minimise = "boolean" }

---What a study says of tuning: ranges and lists by setting, besides the keys budget, seeds, by, top, minimise, quick and full.
---@param spec table tune = { lr = "1e-5..1e-2:log", budget = "40x1e5", quick = { budget = "8x4096" } }
---@return table options { budget, seeds, by ... }
---@return table ranges
function tuning.declared(spec, size)
  local options, ranges = {}, {}
  local function add(t)
    for key, value in pairs(t) do
      local kind = words_of_study[key]
      if kind then
        if kind ~= true and type(value) ~= kind then errors.raise(("study: tune: %s is a %s, expected a %s"):format(key, type(value), kind)) end
        options[key] = value
      elseif key ~= "quick" and key ~= "full" then ranges[key] = value end
    end
  end
  add(spec)
  if size and spec[size] then add(spec[size]) end
  if not options.budget then errors.raise 'study: tune has no budget = "TRIALSxSTEPS"' end
  return options, ranges
end

---Refuse a study's tune that cannot be meant.
function tuning.check(spec)
  for _, size in ipairs { "", "quick", "full" } do
    local options, ranges = tuning.declared(spec, size ~= "" and size or nil)
    tuning.budget(options.budget)
    space.new(ranges)
  end
end

-- The script's own setting at a point, if it is in the space.
local function own_setting(o, words)
  local cfg, setting = script.survey(o.script, words, true).cfg, {}
  for _, dim in ipairs(o.space.dims) do
    local value = cfg
    for part in dim.name:gmatch "[^.]+" do value = type(value) == "table" and value[part] or nil end
    if value == nil then return nil end
    setting[dim.name] = value
  end
  local at = o.space:point(setting)
  return at and o.space:setting(at)
end

---The name of the point to which a run of a plan belongs: its name without the seed.
function tuning.point_name(c) return c.name:find "^seed=" and "" or grid.kind(c) end

---The points of a sweep's plan: each is tuned by itself.
---@return table[] points { name, labels, words }
function tuning.points(plan)
  local points = {}
  for i, kind in ipairs(grid.groups(plan.runs, tuning.point_name)) do
    local c = kind.runs[1]
    points[i] = { name = kind.name, labels = c.labels, words = setting_types.without(c.words, "seed") }
  end
  return points
end

---The tuning that a study declares.
function tuning.of_study(plan, o)
  local options, ranges = tuning.declared(plan.spec.tune, plan.size)
  for _, word in ipairs(plan.words) do
    local key = setting_types.pair(word)
    if ranges[key] then errors.usage(("%s: the study tunes %s"):format(word, key), "without this word it picks a value") end
  end
  for key, value in pairs(o) do options[key] = value end
  options.script, options.words, options.points, options.ranges = plan.script, plan.words, tuning.points(plan), ranges
  options.schema = plan.survey.schema
  return tuning.open(options)
end

-- ---- the journal ----

local Tuning = {}
Tuning.__index = Tuning

---A tuning, new or as its folder has it.
---@param o table { script, schema = its settings, run = the study's folder, words = the script's, ranges, points, budget, seeds, top, by,
---  minimise, jobs, attempts }
function tuning.open(o)
  local self = setmetatable({}, Tuning)
  for key, value in pairs(tuning.defaults) do self[key] = value end
  for key, value in pairs(o) do self[key] = value end
  self.trials, self.steps = tuning.budget(self.budget)
  if self.seeds > self.trials then errors.usage(("tune: seeds=%d: more than the %d trials of the budget"):format(self.seeds, self.trials)) end
  self.base, self.space = o.run .. "/tune", space.new(self.ranges)
  self.first_seed, self.seed, self.attempts, self.fresh = tuning.FIRST_SEED, 1, o.attempts or 2, {}
  self.about = { ranges = space.text(self.ranges), budget = setting_types.show(self.budget), seeds = self.seeds, top = self.top, by = self.by,
    minimise = self.minimise or false }
  for _, point in ipairs(self.points) do check_declaration.space(self, point.words) end
  self:check_owned()
  for _, point in ipairs(self.points) do point.default = own_setting(self, point.words) end
  return self
end

-- A folder has one tuning: proposals depend on all that study.json says of it, and on results.
function Tuning:check_owned()
  local info = folder.info(self.base)
  local elsewhere = "run=FOLDER puts this one elsewhere"
  if not info then return end
  if info.script ~= self.script then errors.usage(("%s holds a tuning of %s, not of %s"):format(self.run, info.script, self.script), elsewhere) end
  local before, words = type(info.tune) == "table" and info.tune or {}, table.concat(self.words, " ")
  for _, key in ipairs(tables.keys(self.about)) do
    if not tuning_journal.same(key, before[key], self.about[key], self.schema) then
      errors.usage(("%s holds a tuning with %s=%s, not %s"):format(self.run, key, setting_types.show(before[key]), setting_types.show(self.about[key])),
        elsewhere)
    end
    self.about[key] = before[key]
  end
  self.space = space.new(space.of_text(self.about.ranges))                  -- texts are as they were
  if grid.same_text(info.settings, self.schema) ~= grid.same_text(words, self.schema) then
    errors.usage(("%s holds a tuning with other settings: '%s', not '%s'"):format(self.run, info.settings, words), elsewhere)
  end
end

---Refuse seeds that the tuning has used, or may use.
function Tuning:need_fresh(seeds)
  for _, seed in ipairs(seeds) do
    if seed >= self.first_seed and seed < self.first_seed + self.trials then
      errors.usage(("seed %.0f is one of the tuning's, which are %d to %d; expected fresh ones"):format(seed, self.first_seed,
        self.first_seed + self.trials - 1))
    end
  end
end

---Have the best settings run with these seeds, too, next to the script's own: an ordinary study's folder with the axis `pick` = 1, 2, ... and script.
---The order of the picks stays the tuning's.
function Tuning:with_fresh(seeds)
  self:need_fresh(seeds)
  self.fresh = seeds
end

-- A run of a setting at a point, as sweeps have them: a trial, or one with a fresh seed; axis: "setting" or "pick", and its label.
local function run_of(self, point, path, axis, label, setting, seed)
  local name = ("%s%s=%s,seed=%.0f"):format(point.name ~= "" and point.name .. "," or "", axis, label, seed)
  local labels, words = { [axis] = label }, { unpack(point.words) }
  for other, of in pairs(point.labels) do labels[other] = of end
  for _, word in ipairs((self.space:words(setting))) do words[#words + 1] = word end
  if self.steps then words[#words + 1] = ("steps=%.0f"):format(self.steps) end
  words[#words + 1] = ("seed=%.0f"):format(seed)
  return { name = name, path = folder.run_path(path, name), labels = labels, seed = seed, words = words }
end

---A run's score; false: it cannot be measured; nil: not yet.
function Tuning:score(run)
  if run.score == nil then
    local result = folder.result(run.path)
    local over = result and result.status == "failed" and ((result.attempts or 1) >= self.attempts or result.exit == 2 or result.exit == 3)
    for _, dim in ipairs(result and result.words and self.space.dims or {}) do
      local was, now = script.setting(result.words, dim.name), script.setting(run.words, dim.name)
      if was ~= now and (tonumber(was) == nil or tonumber(was) ~= tonumber(now)) then
        errors.fail(("%s/result.json: is of %s=%s, not %s"):format(run.path, dim.name, tostring(was), tostring(now)))
      end
    end
    if result and result.status == "done" then
      local metrics = result.metrics or {}
      local v = metrics[self.by]
      -- A short run may have no score, as no episode has ended; a metric that no run has is a slip.
      if not v and not self.found and next(metrics) and (self.by ~= "score" or metrics.mean_return == nil) then
        errors.usage(("tune: by=%s: the trials measure %s"):format(self.by, table.concat(tables.keys(metrics), ", ")))
      end
      run.score, run.without = v and (self.minimise and -v or v) or false, not v or nil
      self.found = self.found or v ~= nil
    elseif over then run.score = false end
  end
  return run.score
end

-- Gives proposals their scores; are all there?
local function scored(self, proposals)
  for _, p in ipairs(proposals) do
    p.scores = p.scores or {}
    for k = #p.scores + 1, #p.runs do
      p.scores[k] = self:score(p.runs[k])
      if p.scores[k] == nil then return false end
    end
  end
  return true
end

---The trials of a point that can be known yet, by proposal.
---@return table[] proposals see schedule.start, each with its runs
---@return boolean over they are all, and all measured
function Tuning:proposals(point)
  local plan = { trials = self.trials, seeds = self.seeds, top = self.top, seed = self.seed, first_seed = self.first_seed, default = point.default }
  local function add_runs()
    for _, p in ipairs(point.proposals) do
      if not p.runs then
        p.runs, self.more = {}, true
        for k, seed in ipairs(p.seeds) do p.runs[k] = run_of(self, point, self.base, "setting", ("%03d"):format(p.setting), p.values, seed) end
      end
    end
  end
  if not point.proposals then
    point.proposals = schedule.start(self.space, plan)
    add_runs()
  end
  if not point.whole and scored(self, point.proposals) then
    schedule.finish(self.space, plan, point.proposals)
    point.whole = true
    add_runs()
  end
  return point.proposals, point.whole and scored(self, point.proposals) or false
end

---The trials of a point, or of all of them.
---@param point table?
---@return table[] runs
function Tuning:all_runs(point)
  local runs = {}
  for _, of in ipairs(point and { point } or self.points) do
    for _, p in ipairs((self:proposals(of))) do for _, run in ipairs(p.runs) do runs[#runs + 1] = run end end
  end
  return runs
end

---The best settings of a point, once all its trials are measured.
---@return table[]? picks { setting, values, mean, seeds }
function Tuning:picks(point)
  local proposals, over = self:proposals(point)
  if over and not point.picks then
    local sign, any = self.minimise and -1 or 1, false
    for _, p in ipairs(proposals) do for _, s in ipairs(p.scores) do any = any or s ~= false end end
    if not any then errors.fail(("tune: %s: no trial has a score; the first one's log is %s/log.txt"):format(self.run, proposals[1].runs[1].path)) end
    point.picks = {}
    for i, entry in ipairs(schedule.best(self, proposals)) do
      point.picks[i] = { setting = entry.id, values = entry.values, mean = sign * entry.mean, seeds = #entry.scores }
    end
  end
  return point.picks
end

---The fresh runs of a point: of its picks, and of the script's own setting if that is none of them.
---@return table[]? rows { label, values, pick, runs }; nil: its picks are not known yet
function Tuning:rows(point)
  local picks, same = not point.rows and self:picks(point), false
  if not picks then return point.rows end
  point.rows = {}
  local function add(label, values, pick)
    local row = { label = label, values = values, pick = pick, runs = {} }
    for k, seed in ipairs(self.fresh) do row.runs[k] = run_of(self, point, self.run, "pick", label, values, seed) end
    table.insert(point.rows, row)
  end
  for i, pick in ipairs(picks) do
    add(tostring(i), pick.values, pick)
    same = same or point.default ~= nil and select(2, self.space:words(pick.values)) == select(2, self.space:words(point.default))
  end
  if point.default and not same then add("script", point.default) end
  if self.fresh[1] then                          -- runs of earlier commands, which had other seeds, stay
    folder.note(self.run, { script = self.script, title = self.title, settings = table.concat(self.words, " ") }, self:fresh_runs())
    declaration_file.write_once(self.run, self.script, self.points[1].words)
  end
  return point.rows
end

---The fresh runs that are known yet, seed by seed; and how many there will be.
---@return table[] runs
---@return integer n
function Tuning:fresh_runs()
  local runs, n = {}, 0
  for k in ipairs(self.fresh) do
    for _, point in ipairs(self.points) do
      for _, row in ipairs(point.rows or {}) do runs[#runs + 1] = row.runs[k] end
      n = n + (point.rows and #point.rows or math.min(self.top, schedule.settings(self)) + (point.default and 1 or 0))
    end
  end
  return runs, n
end

-- study.json of the trials, and tuned.json when all is measured.
function Tuning:write()
  folder.note(self.base, { script = self.script, title = "tuning", settings = table.concat(self.words, " "), tune = self.about }, self:all_runs(), true)
  self.more = false
  local tuned = { tune = self.about, trials = self.trials, steps = self.steps, first_seed = self.first_seed, points = {} }
  for i, point in ipairs(self.points) do
    if not self:picks(point) then return end
    local seeds = 0
    for _, p in ipairs(point.proposals) do seeds = math.max(seeds, p.seeds[#p.seeds] - self.first_seed + 1) end
    tuned.points[i] = { name = point.name, labels = point.labels, picks = point.picks, default = point.default, seeds = seeds,
      trials = self:count(self:all_runs(point)).ended }
  end
  files.write(self.base .. "/tuned.json", { json.encode(tuned, "  ") .. "\n" })
end

---Take what an imported file says that a tuning picked, where none was begun here; nil: there is none.
---@param tuned table? of result_archive.tuned
---@return table? points { name, picks }, of this tuning's ranges and budget
function Tuning:take(tuned)
  local there = tuning_journal.tuned(self.run)
  local from = there and there.kept and there or not folder.info(self.base) and tuned
  if not from then return nil end
  tuning_journal.need_same(from, self.about, self.schema)
  files.make_folder(self.base)
  files.write(self.base .. "/tuned.json", { json.encode(from, "  ") .. "\n" })
  return from.points
end

-- ---- running it ----

---How many of some runs have ended, of these failed, and are done without a score.
---@return { ended: integer, failed: integer, without: integer }
function Tuning:count(runs)
  local count = { ended = 0, failed = 0, without = 0 }
  for _, run in ipairs(runs) do
    local score = self:score(run)
    count.ended = count.ended + (score ~= nil and 1 or 0)
    count.failed = count.failed + (score == false and not run.without and 1 or 0)
    count.without = count.without + (run.without and 1 or 0)
  end
  return count
end

-- An error where nothing comes of a point's trials.
local function need_hope(self, point)
  local runs = self:all_runs(point)
  local count = self:count(runs)
  local vain = count.failed + count.without
  if vain >= HOPELESS and vain == count.ended then
    errors.fail(("tune: %s: the first %d trials all failed, or gave no %s; %s/log.txt says why"):format(self.run, vain,
      self.by, runs[1].path), "where an environment gives no score: by=mean_return")
  end
end

-- The run to begin now: a trial, of the point with the fewest measured and running, else one with a fresh seed; nil: none now.
local function next_run(self)
  local order, begun = { unpack(self.points) }, {}
  local function is_free(run) return not run.running and (run.later or 0) < C.mn_clock(false) and self:score(run) == nil end
  for _, point in ipairs(order) do
    begun[point] = 0
    for _, run in ipairs(self:all_runs(point)) do
      if run.running or self:score(run) ~= nil then begun[point] = begun[point] + 1 end
    end
  end
  table.sort(order, function(a, b) return begun[a] < begun[b] end)
  for _, point in ipairs(order) do
    for _, run in ipairs(self:all_runs(point)) do if is_free(run) then return run end end
  end
  for _, point in ipairs(self.fresh[1] and self.points or {}) do self:rows(point) end
  for _, run in ipairs((self:fresh_runs())) do if is_free(run) then return run end end
end

---Is everything measured?
---@param fresh boolean? the fresh runs, too
function Tuning:is_over(fresh)
  for _, point in ipairs(self.points) do if not self:picks(point) or fresh and not self:rows(point) then return false end end
  local runs, n = self:fresh_runs()
  return not fresh or self:count(runs).ended == n
end

-- Before the first trial: how much there is to do, and about how long what is left of it takes.
local function announce(self, fresh, trials_left, fresh_left)
  local points, cost = #self.points, ""
  local about = ("%d trials%s%s"):format(self.trials, points > 1 and (" for each of %d"):format(points) or "",
    fresh > 0 and (", then %d fresh runs"):format(fresh) or "")
  if self.estimate ~= "0" then
    local runs = {}
    for i, point in ipairs(self.points) do runs[i] = { name = point.name .. ",seed=1", words = self:all_runs(point)[1].words } end
    local sum = estimate.of(runs, self.script, { run = self.base, jobs = 1 })
    local each, jobs = sum.seconds and sum.seconds / points, math.min(self.jobs, trials_left + fresh_left)
    local function time(n) return process_pool.seconds(each * n, n, self.jobs, each) end
    if each then
      cost = (": about %s in %d process%s, up to %.0f MiB each"):format(progress.clock(time(trials_left) + time(fresh_left)), jobs,
        jobs > 1 and "es" or "", sum.peak_mib)
    end
  end
  terminal.note(("%s: %s%s"):format(self.run, about, cost))
end

---Run trials until all is measured, and then what has fresh seeds.
---@return integer signal that ended it; 0: none
---@return table count { done, failed, all; trials, fresh = { ended, failed, without } }
function Tuning:work()
  one_run.patience = PATIENCE
  files.make_folder(self.base .. "/runs")
  local count, trials = { done = 0, failed = 0, all = 0 }, self.trials * #self.points
  local steps = self.steps or script.survey(self.script, self.points[1].words, true).cfg.steps
  local shown = progress_table.new({ runs = {}, cfg = { steps = steps } }, { run = self.base, jobs = self.jobs }, count)
  local function left() return count.all - count.done - count.failed end
  local function recount()
    for _, point in ipairs(self.points) do need_hope(self, point) end
    local fresh, n = self:fresh_runs()
    count.trials, count.fresh = self:count(self:all_runs()), self:count(fresh)
    count.failed = count.trials.failed + count.fresh.failed
    count.done, count.all = count.trials.ended + count.fresh.ended - count.failed, trials + n
  end
  recount()
  if left() > 0 then announce(self, count.all - trials, trials - count.trials.ended, count.all - trials - count.fresh.ended) end
  local signal = process_pool.run {
    jobs = self.jobs,
    next = function()
      local job = next_run(self)
      if self.more then self:write() end
      if not job then return nil end
      job.running = true
      files.make_folder(job.path)
      return job
    end,
    none_left = function() return self:is_over(true) end,
    log = function(job) return job.path .. "/log.txt" end,
    run = function(job) return one_run.process(job.path, self.script, job) end,
    tick = function(running)
      local n = 0
      for _ in pairs(running) do n = n + 1 end
      shown:update(running, math.max(0, left() - n))
    end,
    ended = function(job, about)
      job.running = nil
      local what, why = one_run.ended(job.path, job, about)
      if what == "taken" then job.later, what = C.mn_clock(false) + LATER, nil end
      recount()
      if what then shown:ended(job, about, what, why) end
    end,
  }
  shown:close()
  recount()
  self:write()
  return signal, count
end

return tuning
