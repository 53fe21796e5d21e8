-- provenance.lua -- is the folder of a run or study as it was written (runs/manifest.lua), each run the one that its study names; what are its code,
-- data and program now; and were several runs made by one code?  `mneme check` prints all of it; reports and comparisons, whose numbers depend on
-- it, say what is wrong.
local checkpoint_files = require "mneme.runs.checkpoint_files"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local lazy = require "mneme.base.lazy"
local manifest = lazy "mneme.runs.manifest"
local run_folder = require "mneme.runs.run_folder"
local run_sources = require "mneme.runs.run_sources"
local starts = run_folder.starts
local tables = require "mneme.base.tables"

local MOST_OF_A_RUN, MOST_RUNS, NAMED = 3, 8, 3         -- sentences of a run, runs in a report, runs that are named
local provenance = {}

-- Some texts of a list, and how many there are more.
local function first(list, most, between, more)
  return table.concat(list, between, 1, math.min(most, #list)) .. (#list > most and more:format(#list - most) or "")
end

-- Adds which code, data and program are others now, and what resumes changed.
local function note_code(path, info, found)
  local notes, history, versions = found.notes, type(info.history) == "table" and info.history or {}, run_sources.versions(info)
  for _, change in ipairs(run_sources.changes(path, info)) do notes[#notes + 1] = change.text end
  notes[#notes + 1] = starts.changes(info)
  for i = 2, #versions do notes[#notes + 1] = ("from step %.0f on it ran other code or data: %s"):format(versions[i].from_step, versions[i].folder) end
  local last = history[#history]
  if type(last) == "table" and last.program_checksum ~= run_sources.program() then
    notes[#notes + 1] = "it was made by another build of Mneme" .. (last.program and (" (%s)"):format(tostring(last.program)) or "")
  end
end

---Checks a run's folder, and that it is the run that its study names.
---@param of table? the run of a study, of lab/study/study_folder.lua
---@param light boolean? what is wrong alone, without reading checkpoints that no manifest lists
---@return Findings found see runs/manifest.lua
---@return string summary what was there
function provenance.run(path, of, light)
  local info, imported = run_folder.read_info(path), of ~= nil and of.kept ~= nil
  local found = { bad = {}, notes = {}, imported = imported }
  manifest.check(path, info, found)
  if of and not imported and info.folder and (info.folder ~= of.name or info.seed ~= of.seed) then
    found.bad[#found.bad + 1] = ("config.json: is of the run %s, seed %s"):format(tostring(info.folder), tostring(info.seed))
  end
  if light then return found, "" end
  if imported then found.notes[#found.notes + 1] = ("its settings and results were imported from %s"):format(tostring(of.kept.file))
  else note_code(path, info, found) end
  local list = checkpoint_files.list(path)
  for _, at in ipairs(found.ended and {} or list) do
    local checkpoint, problem = checkpoint_files.read_unless_damaged(at.path)
    if not checkpoint and files.is_file(at.path) then found.bad[#found.bad + 1] = problem.message end          -- else it was replaced meanwhile
  end
  return found, ("%d checkpoints, %d source files, %d starts"):format(#list, #run_sources.latest(info).source, #(info.history or {}))
end

---Checks study.json, and that the runs that were done have their results.
function provenance.study(path, study)
  local found, done = { bad = {}, notes = {} }, 0
  manifest.seals(path, { "study.json", "declaration.json" }, found)
  for i, r in ipairs(study.runs) do
    if r.status == "done" then done = done + 1
    elseif study.info.runs[i].done then found.bad[#found.bad + 1] = ("runs/%s: was done, and has no result now"):format(r.name) end
  end
  return found, ("a study of %d runs, %d done"):format(#study.runs, done)
end

---What is wrong with the finished runs that a report or comparison is about, and with their study's folder.
---@param study table? of lab/study/study_folder.lua, whose runs these are
---@return string[] sentences none: nothing is
function provenance.sentences(runs, study)
  local list = {}
  local function add(name, ...)
    local ok, found = xpcall(..., errors.handler, select(2, ...))
    local bad = ok and found.bad or { found.message }
    list[#list + 1] = bad[1] and ("%s: %s"):format(name, first(bad, MOST_OF_A_RUN, "; ", "; %d more"))
  end
  if study then add("the study", provenance.study, study.path, study) end
  for _, r in ipairs(runs) do
    local there = r.status ~= "open" and files.is_file(r.path .. "/config.json")
    if there then add(study and r.name or r.path, provenance.run, r.path, study and r or nil, true) end
  end
  if list[MOST_RUNS + 1] then list[MOST_RUNS + 1] = ("%d more runs are damaged"):format(#list - MOST_RUNS) end
  return { unpack(list, 1, math.min(#list, MOST_RUNS + 1)) }
end

-- ---- several runs: { run = { name }, info = config.json }[] ----

---The files that several runs were made by, in all their starts.
---@return table[] rows { name, kind = "code" or "data", versions = { checksum, runs = names }[], the most frequent first }, by kind and name
function provenance.files(runs)
  local rows = {}
  for _, kind in ipairs { "source", "data" } do
    local seen = {}                -- name of a file -> checksum -> its version
    for _, r in ipairs(runs) do
      for _, version in ipairs(run_sources.versions(r.info)) do
        for _, of_name in ipairs(tables.groups(version[kind], function(file) return file.path:match "[^/]*$" end)) do
          local name, checksum = of_name.name, table.concat(tables.map(of_name.items, function(file) return file.checksum end), "+")
          seen[name] = seen[name] or {}
          local of = seen[name][checksum] or { checksum = checksum, runs = {} }
          seen[name][checksum] = of
          if of.runs[#of.runs] ~= r.run.name then of.runs[#of.runs + 1] = r.run.name end
        end
      end
    end
    for _, name in ipairs(tables.keys(seen)) do
      local versions = tables.map(tables.keys(seen[name]), function(checksum) return seen[name][checksum] end)
      table.sort(versions, function(x, y) return #x.runs > #y.runs end)
      rows[#rows + 1] = { name = name, kind = kind == "source" and "code" or "data", versions = versions }
    end
  end
  return rows
end

---In what the codes of several runs differ, and what resumes changed of each.
---@return string[] codes none: they were made by one code, as far as they kept it
---@return string[] resumed
function provenance.differences(runs)
  local builds = {}
  local codes = tables.map(provenance.files(runs), function(file)
    local parts = tables.map(file.versions, function(of) return ("%s (%s)"):format(of.checksum, first(of.runs, NAMED, ", ", " and %d more")) end)
    local name = (file.kind == "data" and "the data file " or "") .. file.name
    return parts[2] and ("%s has %d versions: %s"):format(name, #parts, table.concat(parts, ", ")) or nil
  end)
  local resumed = tables.map(runs, function(r)
    for _, start in ipairs(starts.of(r.info)) do if start.program_checksum then builds[start.program_checksum] = true end end
    local changes = starts.changes(r.info)
    return changes and r.run.name .. ": " .. changes
  end)
  local n = #tables.keys(builds)
  if n > 1 then codes[#codes + 1] = ("%d builds of Mneme made them"):format(n) end
  return codes, resumed
end

return provenance
