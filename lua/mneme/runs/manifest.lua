-- manifest.lua -- RUN/manifest.json lists the run's files with their checksums; `mneme check`, a resume, reports and comparisons find by it what
-- was altered, removed or added since.  It is written when a start ends and, with `at_work`, before each checkpoint: then without what training
-- goes on changing, but with the bytes of the log that each checkpoint counts.  JSON files carry their own checksums (base/json.lua),
-- and say whose they are.
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local checkpoints = require "mneme.runs.checkpoints"
local json = require "mneme.base.json"
local lfs = require "lfs"
local run_folder = require "mneme.runs.folder"
local run_sources = require "mneme.runs.run_sources"
local safetensors = require "mneme.tensor.safetensors"
local sealed = require("mneme.base.json").sealed
local terminal = require "mneme.base.terminal"

local ALTERED = ": was altered after it was written"
local JSON_FILES = { "config.json", "outcome.json", "resources.json", "result.json" }
local manifest = {}
local sums = {}                    -- path of a file that does not change any more -> its entry, and the size and time that it had

-- Is a file what a later start neither changes nor removes?
local function lasting(name) return name:find "^episodes/" or name:find "^earlier%-log" or name:find "^source" end
local function is_checkpoint(name) return name:find "^checkpoints/" ~= nil end

-- Adds the files of a folder of the run.  Links are followed to the run's own folders alone.
local function walk(path, inner, names)
  for _, name in ipairs(files.list(path .. "/" .. inner)) do
    local of = inner .. name
    local into = inner == "" and (name == "checkpoints" or name == "episodes" or name:find "^source")
    if into or inner ~= "" and lfs.symlinkattributes(path .. "/" .. of, "mode") == "directory" then walk(path, of .. "/", names)
    elseif (lasting(of) or of:find "^checkpoints/step%-%d+%.safetensors$") and not of:find "%.tmp$" and files.is_file(path .. "/" .. of) then
      names[#names + 1] = of
    end
  end
end

local function entry(path, name)
  local at = path .. "/" .. name
  local held, stamp = sums[at], ("%s %s"):format(lfs.attributes(at, "size"), lfs.attributes(at, "modification"))
  if held and (held.stamp or stamp) == stamp then return held.entry end
  local checksum, bytes = files.sum(at)
  sums[at] = { entry = { name = name, checksum = checksum, bytes = bytes }, stamp = stamp }
  return sums[at].entry
end

---Writes it.
---@param path string of the run
---@param info table its config.json
---@param after string[]? paths that must be on the disk before it
---@param log { bytes: number, checksum: string }? of metrics.jsonl, while the run is trained; nil: a start has ended
---@param at table? the checkpoint that counts it, which is there or will appear: { path, checksum = nil, bytes = nil }
function manifest.write(path, info, after, log, at)
  local held, names = {}, {}
  io.stdout:flush()                                                           -- which may be its log.txt
  if at then
    local name = at.path:sub(#path + 2)
    sums[at.path] = { entry = at.checksum and { name = name, checksum = at.checksum, bytes = at.bytes } or entry(path, name),
      log = { name = "metrics.jsonl", checksum = log.checksum, bytes = log.bytes } }
    if not files.is_file(at.path) then names[1] = name end
  end
  walk(path, "", names)
  for _, name in ipairs(names) do
    held[#held + 1] = entry(path, name)
    held[#held + 1] = log and sums[path .. "/" .. name].log                   -- of each checkpoint: a crash may take lines of the newest
  end
  for _, name in ipairs(log and {} or { "metrics.jsonl", "events.out.tfevents.mneme", "config.json", "outcome.json", "log.txt" }) do
    local checksum, bytes = files.sum(path .. "/" .. name)
    if checksum and (name ~= "log.txt" or files.is_file(path .. "/result.json")) then          -- else a process goes on writing it
      held[#held + 1] = { name = name, checksum = checksum, bytes = bytes }
    end
  end
  for _, name in ipairs(log and {} or { "resources.json", "result.json" }) do          -- they are written again after it
    if files.is_file(path .. "/" .. name) then held[#held + 1] = { name = name } end
  end
  files.write(path .. "/manifest.json", { sealed.encode { id = info.id, at_work = log and true, starts = #(info.history or {}),
    files = json.array(held) } }, after)
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

-- What is wrong with a file of the list; nil: nothing.  Of the log of a run at work its first bytes are compared, as far as they are there.
local function fault(path, file, ended)
  local at = path .. "/" .. file.name
  if not files.is_file(at) then return (ended or lasting(file.name)) and "is not there, and was when the run ended" end
  if not file.checksum then return nil end
  local grows = not ended and file.name == "metrics.jsonl"
  local crc, bytes = files.sum(at, grows and math.min(file.bytes, lfs.attributes(at, "size") or 0) or nil)
  if not crc then return "cannot be read" end
  if bytes ~= file.bytes then return not grows and ("has %.0f bytes, and had %.0f when the run ended"):format(bytes, file.bytes) or nil end
  return crc ~= file.checksum and (grows and "lines that a checkpoint counts were altered" or "was altered after the run ended") or nil
end

-- Whose is a checkpoint that the list does not have, or not so?  nil: the run's own.
local function stranger(path, info, name, last)
  local ok, metadata = pcall(safetensors.metadata, path .. "/" .. name)
  if not ok or not info.id then return nil end
  return metadata.run ~= info.id and "is of another run" or (tonumber(name:match "%d+") or 0) > last and "was not there when the run ended" or nil
end

---Adds what was altered, removed or added since a run's last start ended, or since its last checkpoint.
---@param path string of the run
---@param info table its config.json
---@param found Findings see lab/reports/integrity.lua
function manifest.check(path, info, found)
  local history = type(info.history) == "table" and info.history or {}
  local first = type(history[1]) == "table" and history[1] or {}
  local function bad(name, text) found.bad[#found.bad + 1] = ("%s: %s"):format(terminal.plain(name, true), text) end
  local there, ok, held = files.is_file(path .. "/manifest.json"), true, { starts = -1, files = {} }
  if there then ok, held = xpcall(read, errors.handler, path) end
  if not ok or not held then return bad("manifest.json", "is damaged") end
  if held.id ~= nil and held.id ~= info.id then bad("config.json", "is of another run than manifest.json") end
  if held.starts > #history then bad("config.json", ("has %d starts, manifest.json counts %.0f"):format(#history, held.starts)) end
  local current = held.starts == #history
  local ended = current and not held.at_work
  local listed, last, gone, count = {}, ended and 0 or math.huge, {}, 0
  local done = (files.text(path .. "/result.json") or ""):find '"status":%s*"done"'          -- else a sweep may have begun to write log.txt again
  found.unfinished = not ended
  for _, file in ipairs(held.files) do
    local name, checkpoint = file.name, is_checkpoint(file.name)
    local problem = (current or lasting(name)) and (name ~= "log.txt" or done) and not found.altered[name] and fault(path, file, ended)
    listed[name], count = current, count + (checkpoint and 1 or 0)
    if checkpoint and ended then last = math.max(last, tonumber(name:match "%d+") or 0) end
    if problem and checkpoint then problem = stranger(path, info, name, math.huge) or problem end
    if problem and checkpoint and problem:find "^is not there" then gone[#gone + 1] = name
    elseif problem and name == "log.txt" and (lfs.attributes(path .. "/log.txt", "size") or 0) < file.bytes then
      found.notes[#found.notes + 1] = "log.txt: is shorter than when the run ended: a crash, or its study asked for it again"
    elseif problem then bad(name, problem) end
  end
  if #gone > 0 and #gone == count then found.notes[#found.notes + 1] = "its checkpoints were removed"
  else for _, name in ipairs(gone) do bad(name, "is not there, and was when the run ended") end end
  local names, list = {}, checkpoints.list(path)
  walk(path, "", names)
  for _, name in ipairs(names) do
    local added = ended and name:find "^episodes/" and "was not there when the run ended"
    local problem = not listed[name] and (is_checkpoint(name) and stranger(path, info, name, last) or added)
    if problem then bad(name, problem) end
  end
  if not there and first.source_folder == nil then
    found.unfinished = nil
    found.notes[#found.notes + 1] = "an earlier version of Mneme made it, without a manifest: whether a file is missing or config.json was altered "
      .. "cannot be checked"
  elseif not there and (files.is_file(path .. "/result.json") and found.done or info.id and list[1]) then
    bad("manifest.json", "is not there, and was before the first checkpoint")
  elseif not ended then
    found.notes[#found.notes + 1] = "its last start has not ended: it runs, was killed, or failed; files are checked as its last checkpoint has them"
  end
end

---Adds JSON files of a folder that are not as they were written, or another run's; those of earlier versions carry no checksum.
---@param path string the folder
---@param names string[]
---@param found Findings
---@param must boolean? they have a checksum
---@param whose string? the run: see runs/folder.lua
function manifest.seals(path, names, found, must, whose)
  for _, name in ipairs(names) do
    local text = files.is_file(path .. "/" .. name) and files.read(path .. "/" .. name)
    local whole = not text or sealed.check(text)
    local of = text and whole and whose and (json.decode(text) or {}).of
    if whole == false or whole == nil and (must or name:find "^where/" and (text:find('mneme-where-2', 1, true) or text:find "^{\n")) then
      found.altered[name], found.bad[#found.bad + 1] = true, terminal.plain(name, true) .. ALTERED
    elseif of and of ~= whose then found.bad[#found.bad + 1] = name .. ": is of another run" end
  end
end

---Adds what is wrong with a run's files by their checksums.
---@param path string of the run
---@param info table its config.json
---@param found Findings
function manifest.files(path, info, found)
  found.altered = {}
  manifest.seals(path, JSON_FILES, found, info.folder ~= nil and not found.imported, run_folder.whose(info))
  for _, name in ipairs(files.list(path .. "/where")) do
    if name:find "%.json$" then manifest.seals(path, { "where/" .. name }, found) end
  end
  if not found.imported then manifest.check(path, info, found) end
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
