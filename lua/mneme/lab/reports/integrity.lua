-- integrity.lua -- is the folder of a run or study as it was written: no file altered or missing, steps in order, log and checkpoints of one run,
-- each run the one that its study names, episodes replay, code and data as they were.  `mneme check` asks for all of it; reports and
-- comparisons, whose numbers depend on it, for what costs little: neither checkpoints nor episodes are read there, only their checksums.
local checkpoints = require "mneme.runs.checkpoints"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local lazy = require "mneme.base.lazy"
local manifest = lazy "mneme.runs.manifest"
local run_folder = require "mneme.runs.folder"
local run_sources = require "mneme.runs.run_sources"
local run_starts = require("mneme.runs.folder").starts
local study_folder = require "mneme.lab.study.folder"
local trajectory = lazy "mneme.insight.episodes.trajectory"
local trajectory_replay = lazy "mneme.insight.episodes.trajectory_replay"
local values = require "mneme.base.setting_types"

local C = engine.C
local MOST_OF_A_RUN, MOST_RUNS = 3, 8               -- sentences of a report
local integrity = {}
local AT_ONCE = 2 ^ 20             -- bytes of a log

local function say(list, form, ...) list[#list + 1] = form:format(...) end

---@class Findings what was found in one run: `bad`, what is wrong; `notes`, what has changed since, or cannot be checked
---@field bad string[]
---@field notes string[]
---@field altered table<string, boolean>? files whose own checksum says so
---@field imported boolean? its results are from a file
---@field done boolean? it is a study's, and has its result

---Adds what is wrong with the log.
---@return number[] steps of its lines
function integrity.log(path, found)
  local steps, rest = {}, ""
  local function line_of(line)
    local step, before, n = tonumber(line:match '^{.-"step": *([^,}]+).*}$'), steps[#steps], #steps + 1
    if not step then say(found.bad, "metrics.jsonl: line %d is not whole", n)
    elseif before and step <= before then
      say(found.bad, "metrics.jsonl: line %d: step %.0f comes after step %.0f", n, step, before)
    end
    steps[n] = step or before or 0
  end
  for text in files.pieces(path .. "/metrics.jsonl", 0, nil, AT_ONCE) do
    rest = rest .. text
    local upto = 0
    for line, at in rest:gmatch "([^\n]*)\n()" do
      if line ~= "" then line_of(line) end
      upto = at - 1
    end
    rest = rest:sub(upto + 1)
  end
  if rest ~= "" and not found.unfinished then line_of(rest) end
  return steps
end

-- Adds what is wrong with the checkpoints, by themselves and against the log.  Those before a gap of the log count lines that were lost.
local function check_checkpoints(path, steps, found, info)
  local list, lost = checkpoints.list(path), select(3, run_starts.found(info))
  for _, at in ipairs(list) do
    local c, problem = checkpoints.read_unless_damaged(at.path)
    local name = at.path:match "[^/]*$"
    if not c then found.bad[#found.bad + 1] = problem.message
    elseif c.step ~= at.step then say(found.bad, "%s: holds step %.0f", name, c.step)
    elseif c.step > lost and c.lines > #steps then
      local notes = found.unfinished and found.notes or found.bad
      notes[#notes + 1] = ("%s: counts %d lines of the log, which has %d"):format(name, c.lines, #steps)
    elseif c.step > lost and c.lines > 0 and steps[c.lines] > c.step then
      say(found.bad, "%s: line %d of the log is of step %.0f, after it", name, c.lines, steps[c.lines])
    end
  end
  return list
end

-- Adds episodes that do not replay.  One whose environment cannot be made here, or whose code or program is another now, is only noted.
local function check_episodes(path, found, other_code)
  local count, unseen, why = 0, 0, nil
  for _, name in ipairs(files.list(path .. "/episodes")) do
    if name:find "%.mnt$" then
      count = count + 1
      local whole, recorded = xpcall(trajectory.read, errors.handler, path .. "/episodes/" .. name)
      local made, replay = whole, nil
      if whole then made, replay = xpcall(trajectory_replay.new, errors.handler, recorded) end
      local ran, problem = made, nil
      if made then ran, problem = xpcall(replay.verify, errors.handler, replay) end
      if not whole then say(found.bad, "episodes/%s: %s", name, recorded.message)
      elseif not made then
        local hint = replay.hint and (" (%s)"):format(replay.hint) or ""
        unseen, why = unseen + 1, why or replay.message:gsub("^%S*/episodes/%S+: cannot be replayed: ", "") .. hint
      elseif not ran or problem then
        local text = ("episodes/%s: %s"):format(name, ran and problem or problem.message)
        if other_code then found.notes[#found.notes + 1] = text .. "; the code that replays it is not the run's"
        else found.bad[#found.bad + 1] = text end
      end
    end
  end
  if unseen > 0 then say(found.notes, "%d of %d episodes not replayed: %s", unseen, count, why) end
  return count
end

---Adds which code, data and program are others now, and what the run's history says.
---@param light boolean? the program is not looked at
---@return integer files of code that it keeps
---@return integer starts entries of its history
---@return boolean others code, data or program that are not the run's
function integrity.code(path, info, found, light)
  local changes, versions, history = run_sources.changes(path, info), run_sources.versions(info), type(info.history) == "table" and info.history or {}
  local step, count, last = 0, 0, history[#history]
  for _, change in ipairs(changes) do say(found.notes, "%s", run_sources.text(change)) end
  for i, start in ipairs(history) do
    local from = type(start) == "table" and tonumber(start.from_step)
    if not from or from < step then say(found.bad, "config.json: start %d of its history is not whole, or begins before another", i) end
    step = from or step
  end
  local altered, gaps = run_starts.found(info)
  for _, text in ipairs(altered) do say(found.bad, "%s", text) end
  for _, text in ipairs(gaps) do say(found.notes, "%s", text) end
  found.notes[#found.notes + 1] = run_starts.changes(info)
  for i, version in ipairs(versions) do
    count = count + #version.source
    if i > 1 then say(found.notes, "from step %.0f on it ran other code or data: %s", version.from_step, version.folder) end
  end
  local rebuilt = not light and type(last) == "table" and last.program_checksum ~= run_sources.program()
  if rebuilt then say(found.notes, "it was made by another build of Mneme%s", last.program and " (" .. tostring(last.program) .. ")" or "") end
  if #versions == 0 then say(found.notes, "it kept no code: an earlier version of Mneme made it") end
  return count, #history, #changes > 0 or #versions > 1 or rebuilt               -- an episode may be of the version before
end

---Checks a run's folder.
---@param found Findings? with what is known of the run: imported, done
---@param light boolean? neither checkpoints nor events nor episodes are read, but their checksums are
---@return Findings found
---@return string summary what was there
---@return number? step of its newest checkpoint
function integrity.run(path, found, light)
  found = found or { bad = {}, notes = {} }
  local info = run_folder.read_info(path)
  manifest.files(path, info, found)
  local kept, starts, others = integrity.code(path, info, found, light)
  local steps = integrity.log(path, found)
  if light then return found, "" end
  local list = check_checkpoints(path, steps, found, info)
  local episodes = check_episodes(path, found, others)
  if #list == 0 and not info.study and not found.imported then found.notes[#found.notes + 1] = "it has no checkpoint" end
  return found, ("%d lines of log, %d checkpoints, %d episodes, %d source files, %d starts"):format(#steps, #list, episodes, found.imported and 0 or kept,
    starts), list[1] and list[#list].step
end

---Checks a run of a study, its result against it, and its name and seed.
---@param light boolean? as for integrity.run
function integrity.run_of_study(r, light)
  local result, info = study_folder.result(r.path), run_folder.read_info(r.path)
  local found, summary, step = integrity.run(r.path, { bad = {}, notes = {}, imported = r.kept ~= nil, done = r.status == "done" }, light)
  local steps = r.status == "done" and r.metrics.steps
  if info.folder and not found.imported and info.folder ~= r.name then
    found.bad[#found.bad + 1] = "config.json: is of the run " .. info.folder
  end
  for name, seed in pairs { ["config.json"] = info.seed, ["result.json"] = result and result.seed } do
    if seed ~= r.seed then say(found.bad, "%s: has seed %s, study.json %s", name, values.show(seed), values.show(r.seed)) end
  end
  if found.imported then
    say(found.notes, "it was imported from %s: settings and results, without code, checkpoints and episodes", tostring(r.kept.file))
  elseif steps and step and steps ~= step then
    say(found.bad, "result.json: is of step %.0f, the newest checkpoint of step %.0f", steps, step)
  end
  if r.status == "open" then found.notes[#found.notes + 1] = "it has no result yet: mneme sweep goes on with it" end
  return found, summary
end

---Checks study.json, and that the study's folder holds its runs and no others.
function integrity.study(path, study)
  local found, named = { bad = {}, notes = {}, altered = {} }, {}
  manifest.seals(path, { "study.json" }, found, study.info.declared)
  manifest.seals(path, { "declaration.json" }, found, true)
  local done, open = 0, 0
  for i, r in ipairs(study.runs) do
    named[r.name] = true
    local begun, planned = files.is_file(r.path .. "/config.json"), study.info.runs[i]
    if r.status == "done" then done = done + 1 end
    if planned.done and r.status ~= "done" then say(found.bad, "runs/%s: was done, and has no result now", r.name)
    elseif not begun then open = open + 1 end
  end
  local inner = study_folder.run_path(path, "")
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
  local list, more = {}, 0
  local function add(name, ok, found)
    local bad = ok and found.bad or { found.message }
    if #list == MOST_RUNS and bad[1] then more = more + 1
    elseif bad[1] then
      list[#list + 1] = ("%s: %s%s"):format(name, table.concat(bad, "; ", 1, math.min(MOST_OF_A_RUN, #bad)),
        #bad > MOST_OF_A_RUN and ("; %d more"):format(#bad - MOST_OF_A_RUN) or "")
    end
  end
  if study then add("the study", integrity.steady(nil, integrity.study, study.path, study)) end
  for _, r in ipairs(runs) do
    if r.status ~= "open" and files.is_file(r.path .. "/config.json") then
      if study then add(r.name, integrity.steady(r.path, integrity.run_of_study, r, true))
      else add(r.path, integrity.steady(r.path, integrity.run, r.path, nil, true)) end
    end
  end
  if more > 0 then list[#list + 1] = ("%d more runs are damaged"):format(more) end
  return list
end

return integrity
