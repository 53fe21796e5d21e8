-- manifest.lua -- RUN/manifest.json: the files that a run had when its last start ended, with checksums.  `mneme check` finds by it what
-- was altered or removed since.  It is written when all that it lists has reached the disk.  While a run is trained, each checkpoint
-- is preceded by one `at_work`, of the checkpoints and of the lines of the log that each of them counts; a start that is killed leaves that.
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local checkpoints = require "mneme.runs.checkpoints"
local json = require "mneme.base.json"
local lfs = require "lfs"
local run_sources = require "mneme.runs.run_sources"
local safetensors = require "mneme.tensor.safetensors"
local sealed = require("mneme.base.json").sealed
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local ALTERED = ": was altered after it was written"
local manifest = {}
local seal_themselves = { ["result.json"] = true, ["resources.json"] = true }      -- they are written again after it

local sums = {}                    -- path, size and time of an episode -> its entry
local function lasting(name) return name:find "^episodes/" or name:find "^earlier%-log" end          -- what a later start neither changes nor removes

-- Files of a run that belong to it whatever reads it later.
local function names_of(path)
  local names = {}
  local function add(name) if files.is_file(path .. "/" .. name) then names[#names + 1] = name end end
  for _, name in ipairs { "config.json", "metrics.jsonl", "events.out.tfevents.mneme", "outcome.json", "resources.json",
    "result.json" } do add(name) end
  if files.is_file(path .. "/result.json") then add "log.txt" end              -- no process goes on writing it
  for _, name in ipairs(files.list(path)) do if name:find "^earlier%-log" then add(name) end end
  for _, inner in ipairs { { "checkpoints", "^step%-%d+%.safetensors$" }, { "episodes", "%.mnt$" } } do
    for _, name in ipairs(files.list(path .. "/" .. inner[1])) do if name:find(inner[2]) then add(inner[1] .. "/" .. name) end end
  end
  return names
end

---Writes it, before a checkpoint appears.
---@param path string of the run
---@param info table its config.json
---@param list table[] its checkpoints; `log` of one: the bytes of metrics.jsonl that it counts, and their checksum
---@param coming table? the one that will appear
---@param after string[]? paths that must be on the disk before it
function manifest.at_work(path, info, list, coming, after)
  local held = {}
  local function add(at)
    if not at.checksum then at.checksum, at.bytes = files.sum(at.path) end
    held[#held + 1] = { name = at.path:match "checkpoints/[^/]*$", checksum = at.checksum, bytes = at.bytes }
    if at.log then held[#held + 1] = { name = "metrics.jsonl", checksum = at.log.checksum, bytes = at.log.bytes } end
  end
  for _, at in ipairs(list) do add(at) end
  if coming then add(coming) end
  for _, name in ipairs(names_of(path)) do
    local at = path .. "/" .. name
    local key = lasting(name) and ("%s %s %s"):format(at, lfs.attributes(at, "size"), lfs.attributes(at, "modification"))
    if key and not sums[key] then
      local checksum, bytes = files.sum(at)
      sums[key] = { name = name, checksum = checksum, bytes = bytes }
    end
    held[#held + 1] = sums[key]
  end
  files.write(path .. "/manifest.json", { sealed.encode { id = info.id, at_work = true, starts = #info.history, files = json.array(held) } }, after)
end

---Writes it, when a start has ended.
---@param path string of the run
---@param starts integer entries of its history
---@param after string[]? paths that must be on the disk before it
function manifest.write(path, starts, after)
  local list = {}
  io.stdout:flush()                                                           -- which may be its log.txt
  for i, name in ipairs(names_of(path)) do
    list[i] = { name = name }
    if not seal_themselves[name] then list[i].checksum, list[i].bytes = files.sum(path .. "/" .. name) end
  end
  files.write(path .. "/manifest.json", { sealed.encode { starts = starts, files = json.array(list) } }, after)
end

local function read(path)
  local text = files.read(path .. "/manifest.json")
  local held = json.decode(text, path .. "/manifest.json")
  if sealed.check(text) ~= true or type(held) ~= "table" or type(held.starts) ~= "number" or type(held.files) ~= "table" then return nil end
  for _, file in ipairs(held.files) do
    if type(file) ~= "table" or type(file.name) ~= "string" or file.name:find("..", 1, true) or file.name:sub(1, 1) == "/" then return nil end
    if file.checksum ~= nil and (type(file.checksum) ~= "string" or type(file.bytes) ~= "number") then return nil end
  end
  return held
end

-- What is wrong with a file of the list; nil: nothing.
local function fault(path, file)
  local at = path .. "/" .. file.name
  if not files.is_file(at) then return "is not there, and was when the run ended" end
  if not file.checksum then return nil end
  local crc, bytes = files.sum(at)
  if not crc then return "cannot be read" end
  if bytes ~= file.bytes then return ("has %.0f bytes, and had %.0f when the run ended"):format(bytes, file.bytes) end
  if crc ~= file.checksum then return "was altered after the run ended" end
end

-- Adds checkpoints that the run did not write.  Of an unlisted one, that a power cut may have brought back, its id decides.
local function strangers(path, info, held, found)
  local listed, last = {}, held and not held.at_work and held.starts == #(info.history or {}) and 0 or math.huge
  for _, file in ipairs(held and held.files or {}) do
    listed[file.name] = file
    if last < math.huge then last = math.max(last, tonumber(file.name:match "^checkpoints/step%-(%d+)") or 0) end
  end
  for _, at in ipairs(checkpoints.list(path)) do
    local name = at.path:sub(#path + 2)
    local file = listed[name] or {}
    if file.checksum ~= nil and file.checksum == files.sum(at.path) then file.same = true
    elseif info.id then
      local ok, metadata = pcall(safetensors.metadata, at.path)
      local problem = ok and (metadata.run ~= info.id and "is of another run" or at.step > last and "was not there when the run ended")
      if problem and files.is_file(at.path) then
        file.same = true                                                       -- it is said here
        found.bad[#found.bad + 1] = name .. ": " .. problem
      end
    end
  end
end

-- Adds what is wrong with the log of a run that is trained or was killed: what the checkpoints count of it is as it was, as far as it is there.
local function check_log(path, held, found)
  local bytes, whole = lfs.attributes(path .. "/metrics.jsonl", "size") or 0, true
  for _, file in ipairs(held.files) do
    if file.name == "metrics.jsonl" and file.bytes > 0 and file.bytes <= bytes then
      whole = whole and files.sum(path .. "/metrics.jsonl", file.bytes) == file.checksum
    end
  end
  if not whole then found.bad[#found.bad + 1] = "metrics.jsonl: lines that a checkpoint counts were altered" end
end

---Adds what was altered or removed since a run's last start ended, or since its last checkpoint.
---@param path string of the run
---@param info table its config.json
---@param found Findings see reports/integrity.lua
function manifest.check(path, info, found)
  local history = type(info.history) == "table" and info.history or {}
  local first = type(history[1]) == "table" and history[1] or {}
  local function note(text) found.notes[#found.notes + 1] = text end
  local function bad(text) found.bad[#found.bad + 1] = text end
  if not files.is_file(path .. "/manifest.json") then
    strangers(path, info, nil, found)
    if first.source_folder == nil then
      note "an earlier version of Mneme made it, without a manifest: whether a file is missing or config.json was altered cannot be checked"
    elseif files.is_file(path .. "/result.json") and found.done or info.id and checkpoints.list(path)[1] then
      found.unfinished = true
      bad "manifest.json: is not there, and was before the first checkpoint"
    else
      found.unfinished = true
      note "it has written no checkpoint yet: it runs, was killed, or failed; whether a file is missing cannot be checked"
    end
    return
  end
  local ok, held = xpcall(read, errors.handler, path)
  if not ok or not held then return bad "manifest.json: is damaged" end
  if held.id ~= nil and held.id ~= info.id then bad "config.json: is of another run than manifest.json" end
  if held.starts > #history then bad(("config.json: has %d starts, manifest.json counts %.0f"):format(#history, held.starts)) end
  strangers(path, info, held, found)
  if held.at_work then
    found.unfinished = true
    note "its last start has not ended: it runs, was killed, or failed; its log is checked as far as a checkpoint counts it"
    local current = held.starts == #history
    if current then check_log(path, held, found) end
    for _, file in ipairs(held.files) do
      local last = lasting(file.name)
      local problem = (last or current and file.name ~= "metrics.jsonl" and not file.same and files.is_file(path .. "/" .. file.name)) and fault(path, file)
      if problem then bad(("%s: %s"):format(file.name, problem)) end
    end
    return
  end
  local result = files.is_file(path .. "/result.json") and files.read(path .. "/result.json") or ""
  local done = result:find '"status":%s*"done"'                               -- else a sweep may have begun to write log.txt again
  local stale, count, gone = held.starts < #history, 0, {}
  for _, file in ipairs(held.files) do
    local problem = (not stale or lasting(file.name)) and (file.name ~= "log.txt" or done)
      and not file.same and not tables.has(found.bad, file.name .. ALTERED) and fault(path, file)
    if file.name == "metrics.jsonl" and not stale and not problem then found.log_is_whole = true end
    local checkpoint = file.name:find "^checkpoints/"
    count = count + (checkpoint and 1 or 0)
    if problem and checkpoint and problem:find "^is not there" then gone[#gone + 1] = file.name
    elseif problem and file.name == "log.txt" and (lfs.attributes(path .. "/log.txt", "size") or 0) < file.bytes then
      note "log.txt: is shorter than when the run ended: a crash, or its study asked for it again"
    elseif problem then bad(("%s: %s"):format(file.name, problem)) end
  end
  if #gone > 0 and #gone == count then note "its checkpoints were removed"
  else for _, name in ipairs(gone) do bad(name .. ": is not there, and was when the run ended") end end
  found.unfinished = stale
  if stale then note "its last start has not ended: it runs, was killed, or failed; what it wrote is checked by itself alone" end
end

---Adds JSON files of a folder that are not as they were written; those of earlier versions carry no checksum.
---@param path string the folder
---@param names string[]
---@param found Findings
---@param must boolean? they have one
function manifest.seals(path, names, found, must)
  for _, name in ipairs(names) do
    local text = files.is_file(path .. "/" .. name) and files.read(path .. "/" .. name)
    local whole = not text or sealed.check(text)
    if whole == false or whole == nil and (must or name:find "^where/" and (text:find('mneme-where-2', 1, true) or text:find "^{\n")) then
      found.bad[#found.bad + 1] = name .. ALTERED
    end
  end
end

---Adds what is wrong with a run's files by their checksums.
---@param path string of the run
---@param info table its config.json
---@param found Findings
function manifest.files(path, info, found)
  local maps = files.list(path .. "/where")
  for i, name in ipairs(maps) do maps[i] = name:find "%.json$" and "where/" .. name or nil end
  manifest.seals(path, { "config.json", "outcome.json", "resources.json", "result.json" }, found, info.folder ~= nil and not found.imported)
  for _, name in pairs(maps) do manifest.seals(path, { name }, found) end
  if found.imported then return end
  manifest.check(path, info, found)
  for _, problem in ipairs(run_sources.damaged(path, info)) do found.bad[#found.bad + 1] = problem end
end

---Refuses to resume a run that is not as it was written, unless use=altered says so.
---@param path string of the run, which this process has locked
---@param info table its config.json
---@return string[]? altered what `history` keeps of it; nil: nothing
function manifest.before_resume(path, info)
  local found = { bad = {}, notes = {} }
  manifest.files(path, info, found)
  local bad = {}            -- a result that was removed is asked for again; without its last checkpoints a run goes on from one before
  for _, text in ipairs(found.bad) do
    bad[#bad + 1] = not (text:find "^result%.json: is not there" or text:find "^checkpoints/%S+: is not there") and text or nil
  end
  if #bad == 0 then return nil end
  local said = ("%s is not as it was written: %s"):format(path, table.concat(bad, "; "))
  if not run_sources.altered then
    errors.raise(said, { status = 2, where = false, hint = "use=altered resumes it all the same, and its history keeps saying so" })
  end
  terminal.note("mneme: warning: " .. said)
  return json.array(bad)
end

return manifest
