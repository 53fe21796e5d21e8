-- one_run.lua -- runs one run of a study in this process, from its arguments to its result.json; resumes a run that was
-- interrupted.
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local resources = require "mneme.runs.resources"
local outcome = require("mneme.runs.run_folder").outcome
local run = require "mneme.runs.run"
local script = require "mneme.runs.script"
local terminal = require "mneme.base.terminal"

local one_run = {
  patience = 60,                 -- seconds for which a run is waited for that another process has
  TAKEN = 75,                    -- status of a process that waited in vain
}

-- Numbers of a result, and lists of them: { x = {...}, y = {...} }.
local function divide(result)
  local metrics, series = {}, nil
  for name, value in pairs(type(result) == "table" and result or {}) do
    if type(name) == "string" and type(value) == "number" then
      if value - value == 0 then metrics[name] = value end         -- no episode has ended: there is no score
    elseif type(value) == "table" and type(value.x) == "table" and type(value.y) == "table" then
      series = series or {}
      series[name] = value
    end
  end
  return metrics, series
end

---The arguments that start or resume a run.
function one_run.words(path, words)
  if files.is_file(path .. "/config.json") then return { "resume=" .. path } end
  local all = { unpack(words) }
  all[#all + 1] = "run=" .. path
  return all
end

-- Have the run for this process.  One of a sweep that was killed may still be saving what it has; after a while it is
-- another sweep's, or another machine's.
local function take(path)
  files.make_folder(path)
  local until_then = C.mn_clock(false) + one_run.patience
  while true do
    local ok, problem = pcall(files.lock, path .. "/lock")
    if ok then return end
    local said = tostring(problem)
    if not said:find "is at work here" and not said:find "temporarily unavailable" then error(problem, 0) end
    if C.mn_clock(false) > until_then then errors.raise(problem.message, { status = one_run.TAKEN, where = false }) end
    C.mn_sleep(0.1)
  end
end

---Run one run of a study.  Errors of the run are passed on; a run that a signal stops stays unfinished.
---@param c table { labels, seed, words }
function one_run.run(path, script_path, c)
  take(path)
  if (study_folder.result(path) or {}).status == "done" then return end
  run.finished_goes_on = true            -- killed between its last checkpoint and its result
  local result = script.run(script_path, one_run.words(path, c.words))
  local metrics, series = divide(result)
  for name, value in pairs(outcome.metrics(path)) do metrics[name] = metrics[name] or value end          -- whatever the script returned of it
  study_folder.write_result(path, { status = "done", point = c.labels, seed = c.seed, words = c.words, metrics = metrics, series = series,
    resources = resources.read(path), estimate = c.estimate })
end

---Say of a run that it failed; its run stays as it is.
---@param why table { exit, error }
function one_run.failed(path, c, why)
  local before = study_folder.result(path) or {}
  files.make_folder(path)
  study_folder.write_result(path, { status = "failed", point = c.labels, seed = c.seed, words = c.words, exit = why.exit, error = why.error,
    attempts = (before.attempts or 0) + 1, resources = resources.read(path) })
end

---How the process of a run ended, noted where it failed.
---@param about table of process_pool.run
---@param why string? what a run that failed said last; nil: where that stands
---@return string "done", "stopped", "taken" or "failed"
---@return string? why
function one_run.ended(path, c, about, why)
  local result = about.status == 0 and study_folder.result(path)
  if result and result.status == "done" then return "done" end
  if about.stopped then return "stopped" elseif about.status == one_run.TAKEN then return "taken" end
  why = about.signal ~= 0 and ("killed by signal %d"):format(about.signal) or why or path .. "/log.txt"
  one_run.failed(path, c, { exit = about.status, error = why })
  return "failed", why
end

---The body of a process that runs one run; returns its exit status.
function one_run.process(path, script_path, c)
  local ok, problem = xpcall(one_run.run, errors.handler, path, script_path, c)
  if ok then return 0 end
  io.stdout:flush()                             -- so that what failed is the last thing said
  if not problem.silent then terminal.note("mneme: " .. (tostring(problem):gsub("%s*\n%s*", " "))) end
  return problem.status
end

return one_run
