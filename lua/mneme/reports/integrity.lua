-- integrity.lua -- is the folder of a run or study as it was written: no file altered or missing, steps in order, log and checkpoints of one run,
-- each run the one that its study names, episodes replay, code and data as they were.  `mneme check` asks for all of it; reports and
-- comparisons, whose numbers depend on it, for what costs little: neither checkpoints nor episodes are read there, only their checksums.
local bit = require "bit"
local ffi = require "ffi"
local checkpoints = require "mneme.runs.checkpoints"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local lazy = require "mneme.base.lazy"
local manifest = lazy "mneme.runs.manifest"
local metrics_reader = require "mneme.runs.metrics_reader"
local run_folder = require "mneme.runs.folder"
local run_sources = require "mneme.runs.run_sources"
local settings = require "mneme.study.settings_diff"
local run_starts = require("mneme.runs.folder").starts
local study_folder = require "mneme.study.folder"
local trajectory = lazy "mneme.episodes.trajectory"
local trajectory_replay = lazy "mneme.episodes.trajectory_replay"
local values = require "mneme.base.setting_types"

local C = engine.C
local MOST_OF_A_RUN, MOST_RUNS = 3, 8               -- sentences of a report
local integrity = {}
local AT_ONCE = 2 ^ 20             -- bytes of a log

---@class Findings what was found in one run: `bad`, what is wrong; `notes`, what has changed since, or cannot be checked
---@field bad string[]
---@field notes string[]
---@field log_is_whole boolean? its log is as it was when the run ended, by its checksum
---@field imported boolean? its results are from a file
---@field done boolean? it is a study's, and has its result

---Adds what is wrong with the log.
---@param path string of the run
---@param found Findings
---@return number[] steps of its lines
function integrity.log(path, found)
  local steps, rest, row = {}, "", {}
  local function line_of(line, whole)
    local known = found.log_is_whole and tonumber(line:match '^{"step": (%d+)[,}]')              -- all its bytes were compared
    local plain = not known and whole and metrics_reader.plain(line, row)
    local entry = not known and whole and not plain and json.decode(line)
    local step, before = known or plain and row[2] or type(entry) == "table" and entry.step, steps[#steps]
    local n = #steps + 1
    if type(step) ~= "number" then found.bad[#found.bad + 1] = ("metrics.jsonl: line %d is not whole"):format(n)
    elseif before and step <= before then
      found.bad[#found.bad + 1] = ("metrics.jsonl: line %d: step %.0f comes after step %.0f"):format(n, step, before)
    end
    steps[n] = type(step) == "number" and step or before or 0
  end
  for text in files.pieces(path .. "/metrics.jsonl", 0, nil, AT_ONCE) do
    rest = rest .. text
    local upto = 0
    for line, at in rest:gmatch "([^\n]*)\n()" do
      if line ~= "" then line_of(line, true) end
      upto = at - 1
    end
    rest = rest:sub(upto + 1)
  end
  if rest ~= "" and not found.unfinished then line_of(rest, false) end
  return steps
end

-- TensorFlow's checksum of a record: engine/io/tensorboard.c.
local function masked(data, n)
  local crc = bit.tobit(C.mn_crc32c(0, data, n))
  return bit.tobit(bit.ror(crc, 15) + bit.tobit(0xa282ead8))
end

---Adds what is wrong with TensorBoard's events: a record for each line of the log, after two that begin the file.
---@param path string of the run
---@param lines integer of the log
---@param found Findings
function integrity.events(path, lines, found)
  local name = "events.out.tfevents.mneme"
  if not files.is_file(path .. "/" .. name) then return end
  local data, bytes, owner = files.block(path .. "/" .. name)
  local at, n = 0, 0
  while at < bytes do
    n = n + 1
    local size = bytes - at >= 16 and tonumber(ffi.cast("const uint64_t *", data + at)[0]) or math.huge
    if size > bytes - at - 16 or masked(data + at, 8) ~= ffi.cast("const int32_t *", data + at + 8)[0]
      or masked(data + at + 12, size) ~= ffi.cast("const int32_t *", data + at + 12 + size)[0] then
      local torn = found.unfinished and size > bytes - at - 16
      if not torn then found.bad[#found.bad + 1] = ("%s: record %d is damaged"):format(name, n) end
      break
    end
    at = at + 16 + size
  end
  if owner and at == bytes and n ~= lines + 2 then
    local list = found.unfinished and found.notes or found.bad                  -- a copy of a run that was trained has the one before the other
    list[#list + 1] = ("%s: has %d records after its first two, the log has %d lines"):format(name, n - 2, lines)
  end
end

-- Adds what is wrong with the checkpoints, by themselves and against the log.  Those before a gap of the log count lines that were lost.
local function check_checkpoints(path, steps, found, info)
  local list, lost = checkpoints.list(path), select(3, run_starts.found(info))
  for _, at in ipairs(list) do
    local c, problem = checkpoints.read_unless_damaged(at.path)
    local name = at.path:match "[^/]*$"
    if not c then found.bad[#found.bad + 1] = problem.message
    elseif c.step ~= at.step then found.bad[#found.bad + 1] = ("%s: holds step %.0f"):format(name, c.step)
    elseif c.step > lost and c.lines > #steps then
      local notes = found.unfinished and found.notes or found.bad
      notes[#notes + 1] = ("%s: counts %d lines of the log, which has %d"):format(name, c.lines, #steps)
    elseif c.step > lost and c.lines > 0 and steps[c.lines] > c.step then
      found.bad[#found.bad + 1] = ("%s: line %d of the log is of step %.0f, after it"):format(name, c.lines, steps[c.lines])
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
      if not whole then found.bad[#found.bad + 1] = ("episodes/%s: %s"):format(name, recorded.message)
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
  if unseen > 0 then found.notes[#found.notes + 1] = ("%d of %d episodes not replayed: %s"):format(unseen, count, why) end
  return count
end

---Adds what is wrong with the copies of the code, and which code, data and program are others now.
---@param path string of the run
---@param info table its config.json
---@param found Findings
---@param light boolean? the program is not looked at
---@return integer files of code that it keeps
---@return integer starts entries of its history
---@return boolean others code, data or program that are not the run's
function integrity.code(path, info, found, light)
  local count = 0
  local changes = run_sources.changes(path, info)
  for _, change in ipairs(changes) do found.notes[#found.notes + 1] = run_sources.text(change) end
  local history = type(info.history) == "table" and info.history or {}
  local step, others = 0, #changes > 0
  for i, start in ipairs(history) do
    local from = type(start) == "table" and tonumber(start.from_step)
    if not from or from < step then found.bad[#found.bad + 1] = ("config.json: start %d of its history is not whole, or begins before another"):format(i) end
    step = from or step
  end
  local altered, gaps = run_starts.found(info)
  for _, text in ipairs(altered) do found.bad[#found.bad + 1] = text end
  for _, text in ipairs(gaps) do found.notes[#found.notes + 1] = text end
  found.notes[#found.notes + 1] = run_starts.changes(info)
  local last, versions = history[#history], run_sources.versions(info)
  others = others or #versions > 1                                 -- an episode may be of the one before
  for i = 2, #versions do
    found.notes[#found.notes + 1] = ("from step %.0f on it ran other code: %s"):format(versions[i].from_step, versions[i].folder)
  end
  if not light and type(last) == "table" and last.program_checksum ~= run_sources.program() then
    others = true
    found.notes[#found.notes + 1] = "it was made by another build of Mneme" .. (last.program and " (" .. tostring(last.program) .. ")" or "")
  end
  if #versions == 0 then found.notes[#found.notes + 1] = "it kept no code: an earlier version of Mneme made it" end
  for _, version in ipairs(versions) do count = count + #version.source end
  return count, #history, others
end

---Checks a run's folder.
---@param path string
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
  integrity.events(path, #steps, found)
  local list = check_checkpoints(path, steps, found, info)
  local episodes = check_episodes(path, found, others)
  if #list == 0 and not info.study and not found.imported then found.notes[#found.notes + 1] = "it has no checkpoint" end
  return found, ("%d lines of log, %d checkpoints, %d episodes, %d source files, %d starts"):format(#steps, #list, episodes, found.imported and 0 or kept,
    starts), list[1] and list[#list].step
end

-- Settings that a resume may change, or that hold no value to compare.
local apart = { steps = true, threads = true, device = true, precision = true, emulate = true, debug = true, profile = true, run = true, resume = true,
  size = true, quick = true, full = true }

-- Adds where a run is not the one that study.json describes: its folder's name, its seed, its point, its settings.
local function check_identity(r, planned, info, result, found)
  local function bad(form, ...) found.bad[#found.bad + 1] = form:format(...) end
  if type(info.folder) == "string" and not found.imported and info.folder ~= r.name then bad("config.json: is of the run %s", info.folder) end
  for name, seed in pairs { ["config.json"] = info.seed, ["result.json"] = result and result.seed } do
    if seed ~= r.seed then bad("%s: has seed %s, study.json %s", name, values.show(seed), values.show(r.seed)) end
  end
  local point = result and (result.point or result.cell)
  for axis, label in pairs(type(point) == "table" and r.labels or {}) do
    local here, there = values.show(point[axis]), values.show(label)
    if here ~= there then bad("result.json: %s is %s, in study.json %s", axis, here, there) end
  end
  local said, flat = {}, settings.flat(info.config)
  for _, word in ipairs(planned.words or {}) do
    local key, text = values.pair(word)
    if key then said[key] = text end
  end
  for key, text in pairs(said) do
    local value = flat[key]
    local one = type(value) ~= "string" or not text:find "[,{ ]"
    if value ~= nil and one and not values.same(text, value) and not apart[key] then
      bad("config.json: %s is %s, in study.json %s", key, values.show(value), text)
    end
  end
end

---Checks a run of a study, its result against it, and both against study.json.
---@param r StudyRun
---@param planned table its entry of study.json
---@param light boolean? as for integrity.run
---@return Findings found
---@return string summary
function integrity.run_of_study(r, planned, light)
  local result = study_folder.result(r.path)
  local found, summary, step = integrity.run(r.path, { bad = {}, notes = {}, imported = r.kept ~= nil, done = r.status == "done" }, light)
  local steps = r.status == "done" and r.metrics.steps
  check_identity(r, planned, run_folder.read_info(r.path), result, found)
  if found.imported then
    found.notes[#found.notes + 1] = ("it was imported from %s: settings and results, without code, checkpoints and episodes"):format(tostring(r.kept.file))
  elseif steps and step and steps ~= step then
    found.bad[#found.bad + 1] = ("result.json: is of step %.0f, the newest checkpoint of step %.0f"):format(steps, step)
  end
  if r.status == "open" then found.notes[#found.notes + 1] = "it has no result yet: mneme sweep goes on with it" end
  return found, summary
end

---Checks study.json, and that the study's folder holds its runs and no others.
---@param path string
---@param study table of study/folder.lua
---@return Findings found
---@return string summary
function integrity.study(path, study)
  local found, named = { bad = {}, notes = {} }, {}
  manifest.seals(path, { "study.json" }, found, study.info.declared)
  manifest.seals(path, { "declaration.json" }, found, true)
  local done, open = 0, 0
  for i, r in ipairs(study.runs) do
    named[r.name] = true
    local begun, planned = files.is_file(r.path .. "/config.json"), study.info.runs[i]
    if r.status == "done" then done = done + 1 end
    if planned.done and r.status ~= "done" then found.bad[#found.bad + 1] = ("runs/%s: was done, and has no result now"):format(r.name)
    elseif not begun then open = open + 1 end
  end
  local inner = study_folder.run_path(path, "")
  for _, name in ipairs(files.list(inner)) do
    if not named[name] and (files.is_file(inner .. name .. "/config.json") or files.is_file(inner .. name .. "/result.json")) then
      found.bad[#found.bad + 1] = ("runs/%s: is no run of this study: study.json does not name it"):format(name)
    end
  end
  if open > 0 then found.notes[#found.notes + 1] = ("%d runs have not begun"):format(open) end
  return found, ("a study of %d runs, %d done"):format(#study.runs, done)
end

-- What is wrong, as one sentence.
local function sentence(name, bad)
  return ("%s: %s%s"):format(name, table.concat(bad, "; ", 1, math.min(MOST_OF_A_RUN, #bad)),
    #bad > MOST_OF_A_RUN and ("; %d more"):format(#bad - MOST_OF_A_RUN) or "")
end

---Looks again where something is wrong, and twice more where another process trains the run: what is wrong once, while files are written or
---cannot be opened, is no damage.
---@param path string? of the run
---@param check function of this module, and its arguments
---@return boolean ok
---@return any found or the error
---@return string? summary
function integrity.steady(path, check, ...)
  local ok, found, summary = xpcall(check, errors.handler, ...)
  for _ = 1, path and files.locked(path .. "/lock") and 3 or 1 do
    if ok and #found.bad == 0 then break end
    local before = {}
    for _, text in ipairs(ok and found.bad or {}) do before[text] = true end
    local first = ok
    if path then C.mn_sleep(0.1) end
    ok, found, summary = xpcall(check, errors.handler, ...)
    if ok then
      local both = {}
      for _, text in ipairs(found.bad) do if before[text] or not first then both[#both + 1] = text end end
      found.bad = both
    end
  end
  return ok, found, summary
end

---What is wrong with the finished runs that a report or comparison is about, and with their study's folder, by the light checks.
---@param runs StudyRun[]
---@param study table? of study/folder.lua, whose runs these are
---@return string[] sentences none: nothing is
function integrity.sentences(runs, study)
  local list, more = {}, 0
  local function add(name, ok, found)
    if ok and #found.bad == 0 then return end
    if #list < MOST_RUNS then list[#list + 1] = sentence(name, ok and found.bad or { found.message }) else more = more + 1 end
  end
  if study then add("the study", integrity.steady(nil, integrity.study, study.path, study)) end
  for i, r in ipairs(runs) do
    if r.status ~= "open" and files.is_file(r.path .. "/config.json") then
      if study then add(r.name, integrity.steady(r.path, integrity.run_of_study, r, study.info.runs[i], true))
      else add(r.path, integrity.steady(r.path, integrity.run, r.path, nil, true)) end
    end
  end
  if more > 0 then list[#list + 1] = ("%d more runs are damaged"):format(more) end
  return list
end

return integrity
