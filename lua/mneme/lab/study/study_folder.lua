-- study_folder.lua -- a study on disk: study.json, and under runs/ a folder for each run with its
-- result.json.  All state is in these files: nothing else has to survive a crash.
--   result.json   { status = "done"|"failed", run = { axis = label }, seed, words, metrics, series, resources,
--                   attempts, exit, error, kept }
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local grid = require "mneme.lab.study.grid"
local metrics_reader = require "mneme.runs.metrics_reader"
local run_folder = require "mneme.runs.run_folder"
local setting_types = require "mneme.base.setting_types"

local study_folder = { used = {} }          -- used: what every run records (runs/resources.lua), as metrics are declared
for key, about in pairs { wall_s = { "wall-clock time", "s" }, cpu_s = { "processor time", "s" }, peak_mib = { "peak memory", "MiB" },
  energy_j = { "energy", "J" } } do study_folder.used[key] = { about[1], unit = about[2], range = { 0, math.huge } } end

local function read(path, hint)
  local value, problem = json.decode((files.read(path)), path)
  if problem then errors.fail(problem, hint) end
  if type(value) ~= "table" then errors.fail(path .. ": damaged: it holds no object", hint) end
  return value
end

-- What the files hold, as run_folder.fault takes it; other members may be anything.
local RESULT = { status = "string", metrics = {}, series = { ["*"] = { x = "table", y = "table" } }, resources = {}, estimate = {}, kept = {},
  error = "string", exit = "number" }
local INFO = { script = "string", settings = "string", claims = { "table" },
  runs = { { name = "string", labels = { ["*"] = "string" }, seed = "number", words = { "string" } } } }

-- What is wrong with a result; nil: nothing.
local function fault_of(result)
  if result.status ~= "done" and result.status ~= "failed" then return "it has no status" end
  local fault = run_folder.fault(result, RESULT, "")
  for _, numbers in ipairs(fault and {} or { result.metrics or {}, result.resources or {} }) do
    for name, x in pairs(numbers) do fault = fault or type(x) ~= "number" and name .. " is not a number" end
  end
  for _, s in pairs(not fault and result.series or {}) do fault = fault or not (s.x and s.y) and "a series has no x and y" end
  return fault
end

-- Is this what write_info wrote?
local function is_info(info)
  if run_folder.fault(info, INFO, "") or not (info.runs and info.script and info.settings) then return false end
  for _, c in ipairs(info.runs) do if not (c.name and c.labels and type(c.seed) == "number") then return false end end
  return true
end

---The folder of a run.
function study_folder.run_path(path, name) return path .. "/runs/" .. name end

---What a run has come to; nil: it is not finished.
function study_folder.result(path)
  local file = path .. "/result.json"
  if not files.is_file(file) then return nil end
  local hint = "without this file the run is open: mneme sweep goes on with it"
  local result = read(file, hint)
  local fault = fault_of(result)
  if fault then errors.fail(("%s: damaged: %s"):format(file, fault), hint) end
  return result
end

function study_folder.write_result(path, result)
  files.write(path .. "/result.json", { json.sealed.encode(result) })
end

---The contents of study.json; nil if there is none.
function study_folder.info(path)
  local file = path .. "/study.json"
  if not files.is_file(file) then return nil end
  local hint = "without this file mneme sweep writes it again; finished runs stay"
  local info = read(file, hint)
  json.sealed.need(file, info.format)
  if not is_info(info) then errors.fail(file .. ": damaged: it describes no sweep", hint) end
  return info
end

function study_folder.write_info(path, info)
  info.format = json.sealed.FORMAT
  files.write(path .. "/study.json", { json.sealed.encode(info) })
end

---Notes runs in a study's study.json, after those that it has.
---@param about table what study.json says besides where there is none yet: script, title, settings ...
---@param alone boolean? no others stay
function study_folder.note(path, about, runs, alone)
  local info, known, more = study_folder.info(path), {}, alone
  if not info then
    local made = require("mneme.runs.run").made_at()
    info = tables.merged({ mneme = require "mneme.base.version", commit = made.commit, host = made.host, runs = {} }, about)
  end
  if alone then info.runs = {} end
  for _, c in ipairs(info.runs) do known[c.name] = true end
  for _, c in ipairs(runs) do
    if not known[c.name] then info.runs[#info.runs + 1], more = { name = c.name, labels = c.labels, seed = c.seed, words = c.words }, true end
  end
  if more then study_folder.write_info(path, info) end
end

---@class StudyRun
---@field name string
---@field path string
---@field status string "done", "failed" or "open"
---@field labels table<string, string> of each axis
---@field seed integer
---@field metrics table<string, number>
---@field series table<string, { x: number[], y: number[] }>? that run gave besides
---@field resources table? { wall_s, cpu_s, peak_mib, energy_j }
---@field estimate table? { wall_s, peak_mib }, from before the sweep
---@field error string? what a run that failed said last
---@field exit integer? its exit status; 3: it met a NaN
---@field kept table? { file, commit, host } of a run that was imported from a file (result_archive.lua)
local StudyRun = {}
StudyRun.__index = StudyRun

---A run of a study from its fields.
function study_folder.run(fields) return setmetatable(fields, StudyRun) end

---What the run's run measured while it went on: name -> { n, x = steps, y }.
function StudyRun:curves() return metrics_reader.read(self.path) end

---A number of a run: one of its metrics, or of what it used; nil where it has none.
function study_folder.number(run, name) return run.metrics[name] or run.resources and tonumber(run.resources[name]) or nil end

---What the run's config.json says; nil: its run never began.
function StudyRun:info()
  return files.is_file(self.path .. "/config.json") and run_folder.read_info(self.path) or nil
end

---Read a study.
---@return table { path, info, runs = StudyRun[] } runs in the order of the grid
function study_folder.load(path)
  path = path:gsub("(.)/+$", "%1")
  local info = study_folder.info(path)
  if not info then errors.usage(path .. ": not a study", "it has no study.json; mneme sweep makes one") end
  return { path = path, info = info, runs = tables.map(info.runs, function(c)
    local at = study_folder.run_path(path, c.name)
    local result = study_folder.result(at) or { status = "open" }
    return study_folder.run { name = c.name, path = at, status = result.status, labels = c.labels, seed = c.seed,
      metrics = result.metrics or {}, series = result.series, resources = result.resources, estimate = result.estimate,
      error = result.error, exit = result.exit, kept = result.kept }
  end) }
end

---Metrics that a study declares as the mean of a curve, { "success while learning", mean_of = "charts/score" }: over all
---steps of each run that is done.  Of runs that were made before the study asked, too.
function study_folder.add_means(study, spec)
  for name, about in pairs((spec or {}).metrics or {}) do
    for _, c in ipairs(about.mean_of and study.runs or {}) do
      local curve = c.status == "done" and c.metrics[name] == nil and c:curves()[about.mean_of]
      local sum, at = 0, 0
      for i = 1, curve and curve.n or 0 do sum, at = sum + curve.y[i] * (curve.x[i] - at), curve.x[i] end
      if at > 0 then c.metrics[name] = sum / at end
    end
  end
end

---Runs that differ by their seed alone.
---@return table[] groups { name = "core=gru, corridor=20", runs }, in the order of the grid
function study_folder.groups(runs)
  return grid.groups(runs, function(c)
    local axes, parts = tables.keys(c.labels), {}
    local function place(axis) return ("," .. c.name):find("," .. axis .. "=", 1, true) or math.huge end
    table.sort(axes, function(a, b) return place(a) < place(b) end)
    for i, axis in ipairs(axes) do parts[i] = axis .. "=" .. setting_types.show(c.labels[axis]) end
    return table.concat(parts, ", ")
  end)
end

return study_folder
