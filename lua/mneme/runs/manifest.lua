-- manifest.lua -- RUN/manifest.json: the files that a run had when its last start ended, with checksums.  `mneme check` finds by it what
-- was altered or removed since.  It is written when all that it lists has reached the disk; a start that is killed leaves an older one.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local lfs = require "lfs"
local run_sources = require "mneme.runs.run_sources"
local sealed = require "mneme.base.sealed"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local C = engine.C
local ALTERED = ": was altered after it was written"
local manifest = {}
local seal_themselves = { ["result.json"] = true, ["resources.json"] = true }      -- they are written again after it

local function crc_of(path)
  local crc, bytes = 0, 0
  for text in files.pieces(path, 0, nil, 2 ^ 20) do crc, bytes = C.mn_crc32c(crc, text, #text), bytes + #text end
  return ("%08x"):format(crc), bytes
end

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

---Writes it.
---@param path string of the run
---@param starts integer entries of its history
---@param after string[]? paths that must be on the disk before it
function manifest.write(path, starts, after)
  local list = {}
  io.stdout:flush()                                                           -- which may be its log.txt
  for i, name in ipairs(names_of(path)) do
    list[i] = { name = name }
    if not seal_themselves[name] then list[i].checksum, list[i].bytes = crc_of(path .. "/" .. name) end
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
  local crc, bytes = crc_of(at)
  if bytes ~= file.bytes then return ("has %.0f bytes, and had %.0f when the run ended"):format(bytes, file.bytes) end
  if crc ~= file.checksum then return "was altered after the run ended" end
end

---Adds what was altered or removed since a run's last start ended.
---@param path string of the run
---@param info table its config.json
---@param found Findings see reports/integrity.lua
function manifest.check(path, info, found)
  local history = type(info.history) == "table" and info.history or {}
  local first = type(history[1]) == "table" and history[1] or {}
  local function note(text) found.notes[#found.notes + 1] = text end
  local function bad(text) found.bad[#found.bad + 1] = text end
  if not files.is_file(path .. "/manifest.json") then
    if first.source_folder == nil then
      note "an earlier version of Mneme made it, without a manifest: whether a file is missing or config.json was altered cannot be checked"
    elseif files.is_file(path .. "/result.json") and found.done then bad "manifest.json: is not there, and the run is done"
    else
      found.unfinished = true
      note "no start of it has ended yet: it runs, was killed, or failed; whether a file is missing cannot be checked"
    end
    return
  end
  local ok, held = xpcall(read, errors.handler, path)
  if not ok or not held then return bad "manifest.json: is damaged" end
  if held.starts > #history then bad(("config.json: has %d starts, manifest.json counts %.0f"):format(#history, held.starts)) end
  local result = files.is_file(path .. "/result.json") and files.read(path .. "/result.json") or ""
  local done = result:find '"status":%s*"done"'                               -- else a sweep may have begun to write log.txt again
  local stale, checkpoints, gone = held.starts < #history, 0, {}
  for _, file in ipairs(held.files) do
    local lasting = file.name:find "^episodes/" or file.name:find "^earlier%-log"          -- what a later start neither changes nor removes
    local problem = (not stale or lasting) and (file.name ~= "log.txt" or done)
      and not tables.has(found.bad, file.name .. ALTERED) and fault(path, file)
    local checkpoint = file.name:find "^checkpoints/"
    checkpoints = checkpoints + (checkpoint and 1 or 0)
    if problem and checkpoint and problem:find "^is not there" then gone[#gone + 1] = file.name
    elseif problem and file.name == "log.txt" and (lfs.attributes(path .. "/log.txt", "size") or 0) < file.bytes then
      note "log.txt: is shorter than when the run ended: a crash, or its study asked for it again"
    elseif problem then bad(("%s: %s"):format(file.name, problem)) end
  end
  if #gone > 0 and #gone == checkpoints then note "its checkpoints were removed"
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
