-- integrity.lua -- is the folder of a run or study as it was written: no file altered, removed or added (runs/manifest.lua), each run the one that
-- its study names, code and data as they were.  `mneme check` asks for all of it; reports and comparisons, whose numbers depend on it, for what
-- costs little.
local checkpoints = require "mneme.runs.checkpoints"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local lazy = require "mneme.base.lazy"
local manifest = lazy "mneme.runs.manifest"
local run_folder = require "mneme.runs.folder"
local run_sources = require "mneme.runs.run_sources"
local run_starts = require("mneme.runs.folder").starts
local folder = require "mneme.lab.study.folder"

local C = engine.C
local MOST_OF_A_RUN, MOST_RUNS = 3, 8               -- sentences of a report
local integrity = {}

local function say(list, form, ...) list[#list + 1] = form:format(...) end

-- Adds which code, data and program are others now, and what the run's history says; how many files of code it keeps.
local function check_code(path, info, found, light)
  local changes, versions, history = run_sources.changes(path, info), run_sources.versions(info), type(info.history) == "table" and info.history or {}
  local count, last = 0, history[#history]
  for _, text in ipairs(run_starts.altered(info)) do say(found.bad, "%s", text) end
  for _, change in ipairs(changes) do say(found.notes, "%s", change.text) end
  found.notes[#found.notes + 1] = run_starts.changes(info)
  for i, version in ipairs(versions) do
    count = count + #version.source
    if i > 1 then say(found.notes, "from step %.0f on it ran other code or data: %s", version.from_step, version.folder) end
  end
  if not light and type(last) == "table" and last.program_checksum ~= run_sources.program() then
    say(found.notes, "it was made by another build of Mneme%s", last.program and " (" .. tostring(last.program) .. ")" or "")
  end
  if #versions == 0 then say(found.notes, "it kept no code: an earlier version of Mneme made it") end
  return count
end

---Checks a run's folder.
---@param light boolean? the program is not looked at
---@param found Findings? with what is known of the run: imported, done
---@return Findings found see runs/manifest.lua
---@return string summary what was there
function integrity.run(path, light, found)
  found = found or { bad = {}, notes = {} }
  local info = run_folder.read_info(path)
  manifest.check(path, info, found)
  local kept = check_code(path, info, found, light)
  if light then return found, "" end
  local lines, list = 0, checkpoints.list(path)
  for text in files.pieces(path .. "/metrics.jsonl", 0, nil, 2 ^ 20) do lines = lines + select(2, text:gsub("\n", "")) end
  if #list == 0 and not info.study and not found.imported then found.notes[#found.notes + 1] = "it has no checkpoint" end
  return found, ("%d lines of log, %d checkpoints, %d source files, %d starts"):format(lines, #list, found.imported and 0 or kept, #(info.history or {}))
end

---Checks a run of a study, and that it is the one that the study names.
---@param light boolean? as for integrity.run
function integrity.run_of_study(r, light)
  local info = run_folder.read_info(r.path)
  local found, summary = integrity.run(r.path, light, { bad = {}, notes = {}, imported = r.kept ~= nil, done = r.status == "done" })
  if info.folder and not found.imported and info.folder ~= r.name or info.seed ~= r.seed then
    say(found.bad, "config.json: is of the run %s, seed %s", tostring(info.folder), tostring(info.seed))
  end
  local list = checkpoints.list(r.path)
  if r.status == "done" and list[1] and r.metrics.steps and r.metrics.steps ~= list[#list].step then
    say(found.bad, "result.json: is of step %.0f, the newest checkpoint of step %.0f", r.metrics.steps, list[#list].step)
  end
  if found.imported then
    say(found.notes, "it was imported from %s: settings and results, without code and checkpoints", tostring(r.kept.file))
  end
  if r.status == "open" then found.notes[#found.notes + 1] = "it has no result yet: mneme sweep goes on with it" end
  return found, summary
end

---Checks study.json, and that the study's folder holds its runs and no others.
function integrity.study(path, study)
  local found, named, done, open = { bad = {}, notes = {}, altered = {} }, {}, 0, 0
  manifest.seals(path, { "study.json", "declaration.json" }, found, study.info.declared)
  for i, r in ipairs(study.runs) do
    named[r.name] = true
    if r.status == "done" then done = done + 1
    elseif study.info.runs[i].done then say(found.bad, "runs/%s: was done, and has no result now", r.name)
    elseif not files.is_file(r.path .. "/config.json") then open = open + 1 end
  end
  local inner = folder.run_path(path, "")
  for _, name in ipairs(files.list(inner)) do
    if not named[name] and (files.is_file(inner .. name .. "/config.json") or files.is_file(inner .. name .. "/result.json")) then
      say(found.bad, "runs/%s: is no run of this study: study.json does not name it", name)
    end
  end
  if open > 0 then say(found.notes, "%d runs have not begun", open) end
  return found, ("a study of %d runs, %d done"):format(#study.runs, done)
end

---Looks again where something is wrong, and twice more where another process trains the run: what is wrong once, while files are written or
---cannot be opened, is no damage.
---@param path string? of the run
---@param check function of this module, and its arguments
---@return boolean ok
---@return any found or the error
---@return string? summary
function integrity.steady(path, check, ...)
  local ok, found, summary, before
  for look = 1, path and files.locked(path .. "/lock") and 4 or 2 do
    if look > 1 and path then C.mn_sleep(0.1) end
    ok, found, summary = xpcall(check, errors.handler, ...)
    local both, seen = {}, {}
    for _, text in ipairs(ok and found.bad or {}) do
      if not before or before[text] then both[#both + 1], seen[text] = text, true end
    end
    before = ok and seen or nil
    if ok then found.bad = both end
    if ok and #both == 0 then break end
  end
  return ok, found, summary
end

---What is wrong with the finished runs that a report or comparison is about, and with their study's folder, by the light checks.
---@param study table? of lab/study/folder.lua, whose runs these are
---@return string[] sentences none: nothing is
function integrity.sentences(runs, study)
  local list = {}
  local function add(name, ok, found)
    local bad = ok and found.bad or { found.message }
    local more = #bad > MOST_OF_A_RUN and ("; %d more"):format(#bad - MOST_OF_A_RUN) or ""
    list[#list + 1] = bad[1] and ("%s: %s%s"):format(name, table.concat(bad, "; ", 1, math.min(MOST_OF_A_RUN, #bad)), more)
  end
  if study then add("the study", integrity.steady(nil, integrity.study, study.path, study)) end
  for _, r in ipairs(runs) do
    if r.status ~= "open" and files.is_file(r.path .. "/config.json") then
      add(study and r.name or r.path, integrity.steady(r.path, study and integrity.run_of_study or integrity.run, study and r or r.path, true))
    end
  end
  local more = #list - MOST_RUNS
  if more > 0 then list[MOST_RUNS + 1] = ("%d more runs are damaged"):format(more) end
  for i = MOST_RUNS + 2, #list do list[i] = nil end
  return list
end

return integrity
