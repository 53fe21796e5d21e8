-- run.lua -- checks the folders of runs and studies: files whole, steps in order, log and checkpoints of one run, code and data as they were.
local checkpoints = require "mneme.runs.checkpoints"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local progress = require "mneme.base.progress"
local run_folder = require "mneme.runs.folder"
local run_sources = require "mneme.runs.run_sources"
local study_folder = require "mneme.study.folder"
local trajectory = require "mneme.episodes.trajectory"
local trajectory_replay = require "mneme.episodes.trajectory_replay"

local check_run = {}

---@class Findings what was found in one run: `bad`, what is wrong; `notes`, what has changed since
---@field bad string[]
---@field notes string[]

-- Adds what is wrong with the log; its steps, line by line.
local function check_log(path, found)
  local steps, text = {}, files.is_file(path .. "/metrics.jsonl") and files.read(path .. "/metrics.jsonl") or ""
  local n = 0
  for line, stop in text:gmatch "([^\n]*)(\n?)" do
    if line ~= "" then
      n = n + 1
      local entry = stop ~= "" and json.decode(line)
      local step = type(entry) == "table" and entry.step
      if type(step) ~= "number" then found.bad[#found.bad + 1] = ("metrics.jsonl: line %d is not whole"):format(n)
      elseif steps[1] and step <= steps[#steps] then
        found.bad[#found.bad + 1] = ("metrics.jsonl: line %d: step %.0f comes after step %.0f"):format(n, step, steps[#steps])
      end
      steps[#steps + 1] = type(step) == "number" and step or steps[#steps] or 0
    end
  end
  return steps
end

-- Adds what is wrong with the checkpoints, by themselves and against the log.
local function check_checkpoints(path, steps, found)
  local list = checkpoints.list(path)
  for _, at in ipairs(list) do
    local c, problem = checkpoints.read_unless_damaged(at.path)
    local name = at.path:match "[^/]*$"
    if not c then found.bad[#found.bad + 1] = problem.message
    elseif c.step ~= at.step then found.bad[#found.bad + 1] = ("%s: holds step %.0f"):format(name, c.step)
    elseif c.lines > #steps then
      found.bad[#found.bad + 1] = ("%s: counts %d lines of the log, which has %d"):format(name, c.lines, #steps)
    elseif c.lines > 0 and steps[c.lines] > c.step then
      found.bad[#found.bad + 1] = ("%s: line %d of the log is of step %.0f, after it"):format(name, c.lines, steps[c.lines])
    end
  end
  return list
end

-- Adds episodes that do not replay.
local function check_episodes(path, found)
  local count = 0
  for _, name in ipairs(files.list(path .. "/episodes")) do
    if name:find "%.mnt$" then
      count = count + 1
      local ok, problem = xpcall(function() return trajectory_replay.new(trajectory.read(path .. "/episodes/" .. name)):verify() end, errors.handler)
      if not ok or problem then found.bad[#found.bad + 1] = ("episodes/%s: %s"):format(name, ok and problem or problem.message) end
    end
  end
  return count
end

---Checks a run's folder.
---@param path string
---@return Findings found
---@return string summary what was there
function check_run.run(path)
  local found = { bad = {}, notes = {} }
  local info = run_folder.read_info(path)
  for _, problem in ipairs(run_sources.damaged(path, info)) do found.bad[#found.bad + 1] = problem end
  for _, change in ipairs(run_sources.changes(path, info)) do
    found.notes[#found.notes + 1] = ("%s %s since the run began%s"):format(change.path, change.gone and "is gone" or "has changed",
      change.line and (" (line %d)"):format(change.line) or "")
  end
  local history = type(info.history) == "table" and info.history or {}
  local last = history[#history]
  if type(last) == "table" and last.program_checksum ~= run_sources.program() then
    found.notes[#found.notes + 1] = "it was made by another build of Mneme" .. (last.program and " (" .. tostring(last.program) .. ")" or "")
  end
  local steps = check_log(path, found)
  local list = check_checkpoints(path, steps, found)
  local episodes = check_episodes(path, found)
  if #list == 0 then found.notes[#found.notes + 1] = "it has no checkpoint" end
  if type(info.source) ~= "table" then found.notes[#found.notes + 1] = "it kept no code: an earlier version of Mneme made it" end
  return found, ("%d lines of log, %d checkpoints, %d episodes, %d source files, %d starts"):format(#steps, #list, episodes,
    type(info.source) == "table" and #info.source or 0, #history)
end

-- Prints what was found; is it sound?
local function report(path, found, summary)
  print(("%-9s %s  %s"):format(#found.bad == 0 and "ok" or "DAMAGED", path, summary))
  for _, text in ipairs(found.bad) do print("          " .. text) end
  for _, text in ipairs(found.notes) do print("          note: " .. text) end
  return #found.bad == 0
end

---Checks runs and studies, and prints what it found.
---@param path string the folder of a run, or of a study, whose runs are checked one by one
---@return integer status 0, or 1 where something is damaged
function check_run.main(path)
  path = path:gsub("(.)/+$", "%1")
  if not files.is_file(path .. "/study.json") then
    local found, summary = check_run.run(path)
    return report(path, found, summary) and 0 or 1
  end
  local status, open = 0, 0
  for _, r in progress.each(study_folder.load(path).runs, "runs") do
    if not files.is_file(r.path .. "/config.json") then open = open + 1
    else
      local ok, found, summary = xpcall(check_run.run, errors.handler, r.path)
      if not ok then found, summary = { bad = { found.message }, notes = {} }, "" end
      if not report(r.path, found, summary) then status = 1 end
    end
  end
  if open > 0 then print(("%d runs have not begun, or were imported"):format(open)) end
  return status
end

return check_run
