-- manifest.lua -- RUN/manifest.json lists the run's files with their checksums; `mneme check`, a resume, reports and comparisons find by it what
-- was altered, removed or added.  It is written when a start ends, and before each checkpoint: then without what training goes on changing, but
-- with the first bytes of the files that grow, as each checkpoint counts them.  JSON files carry their own checksums (base/json.lua), and say whose they are.
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local lfs = require "lfs"
local run_folder = require "mneme.runs.folder"
local errors = require "mneme.base.errors"
local metrics_log = require "mneme.runs.metrics_log"
local run_sources = require "mneme.runs.run_sources"
local safetensors = require "mneme.tensor.safetensors"
local sealed = require("mneme.base.json").sealed
local terminal = require "mneme.base.terminal"

local manifest = {
  GONE = "is not there, and was when manifest.json was written",
  ADDED = "was not there when manifest.json was written",
  ALTERED = "was altered after it was written",
  OTHER = "is of another run",
}
local SHAPE = { of = "string", at_work = "boolean", starts = "number",
  files = { { name = "string", checksum = "string", bytes = "number", grows = "boolean" } } }
local SEALED = { "config.json", "outcome.json", "resources.json", "result.json" }
local AGAIN = { ["resources.json"] = true, ["result.json"] = true }          -- they are written once more after the manifest
local sums = {}                    -- path of a file that does not change any more -> its entry, and the size and time that it had; of a checkpoint `grown`

-- Is a file what a later start neither changes nor removes?
local function lasting(name) return name:find "^earlier%-log" or name:find "^source" end
local function is_checkpoint(name) return name:find "^checkpoints/step%-%d+%.safetensors$" ~= nil end

-- The files of a folder that are lasting, or checkpoints.  Links are followed to the run's own folders alone.
local function walk(path, inner, names)
  for _, name in ipairs(files.list(path .. "/" .. inner)) do
    local of = inner .. name
    local into = inner == "" and (name == "checkpoints" or name:find "^source")
    if into or inner ~= "" and lfs.symlinkattributes(path .. "/" .. of, "mode") == "directory" then walk(path, of .. "/", names)
    elseif (lasting(of) or is_checkpoint(of)) and not of:find "%.tmp$" and files.is_file(path .. "/" .. of) then names[#names + 1] = of end
  end
  return names
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
---@param log Log? of a run that this process trains, which reaches the disk before it
---@param at table? of a run at work, the checkpoint that is there or will appear: { path, checksum = nil, bytes = nil }; nil: a start has ended
function manifest.write(path, info, log, at)
  local held, after = {}, log and log:unsynced() or {}
  local names = at and not files.is_file(at.path) and { at.path:sub(#path + 2) } or {}
  if at then
    sums[at.path] = { entry = at.checksum and { name = at.path:sub(#path + 2), checksum = at.checksum, bytes = at.bytes }
      or entry(path, at.path:sub(#path + 2)), grown = log:sums() }
  end
  for _, name in ipairs(walk(path, "", names)) do
    held[#held + 1] = entry(path, name)
    for _, grown in ipairs(at and sums[path .. "/" .. name].grown or {}) do held[#held + 1] = grown end
  end
  for _, name in ipairs(at and {} or { "metrics.jsonl", "events.out.tfevents.mneme", "log.txt", unpack(SEALED) }) do
    local file = path .. "/" .. name
    if name == "log.txt" and files.is_file(file) then
      io.stdout:flush()                                                       -- which it may be
      after[#after + 1] = file
    end
    local checksum, bytes = files.sum(not AGAIN[name] and file or nil)
    if files.is_file(file) and (name ~= "log.txt" or files.is_file(path .. "/result.json")) then          -- else a process goes on writing it
      held[#held + 1] = { name = name, checksum = checksum, bytes = checksum and bytes }
    end
  end
  files.write(path .. "/manifest.json", { sealed.encode { of = run_folder.whose(info), at_work = at and true, starts = #(info.history or {}),
    files = json.array(held) } }, after)
end

-- What a manifest holds; nil: it was altered.  It may be anybody's.
local function read(path)
  local text = files.text(path .. "/manifest.json") or ""
  local held = sealed.check(text) and json.decode(text)
  if not held or run_folder.fault(held, SHAPE, "") or not held.starts or not held.files then return nil end
  for _, file in ipairs(held.files) do
    if not file.name or file.name:find("..", 1, true) or file.name:sub(1, 1) == "/" or file.checksum and not file.bytes then return nil end
  end
  return held
end

-- Adds what was altered, removed or added since a run's last start ended, or since its last checkpoint.
local function compare(path, info, found, bad)
  local history, held, listed, left, gone = type(info.history) == "table" and info.history or {}, read(path), {}, {}, {}
  local names = walk(path, "", {})
  for _, name in ipairs(names) do left[#left + 1] = is_checkpoint(name) and name or nil end
  if not files.is_file(path .. "/manifest.json") then
    if not info.id then found.notes[#found.notes + 1] = "an earlier version of Mneme made it: what is missing or altered cannot be checked"
    elseif left[1] or files.is_file(path .. "/result.json") and found.done then bad("manifest.json", "is not there, and was before the first checkpoint") end
    return
  elseif not held then return bad("manifest.json", manifest.ALTERED) end
  if held.of ~= nil and held.of ~= run_folder.whose(info) then bad("config.json", manifest.OTHER) end
  if held.starts > #history then bad("config.json", "is older than manifest.json") end
  local last, current = 0, held.starts == #history                     -- a start that began since, and has no checkpoint yet, may have changed logs
  local ended = current and not held.at_work
  for _, file in ipairs(held.files) do
    local name, checkpoint = file.name, is_checkpoint(file.name)
    local crc, bytes = files.sum(path .. "/" .. name, file.grows and file.bytes or nil)
    local short = crc and file.bytes and bytes < file.bytes          -- a copy of a run at work has logs of a moment before; a crash, or an older log.txt
      and (file.grows and file.bytes > metrics_log.HEAD or name == "log.txt")
    if short then found.short = name
    elseif not crc and checkpoint then gone[#gone + 1] = ended and name or nil
    elseif (current or checkpoint or lasting(name)) and not found.altered[name] then
      if not crc then bad(name, manifest.GONE)
      elseif file.checksum and (crc ~= file.checksum or bytes ~= file.bytes) then bad(name, manifest.ALTERED) end
    end
    listed[name], last = true, math.max(last, checkpoint and tonumber(name:match "%d+") or 0)
  end
  for _, name in ipairs(left[1] and gone or {}) do bad(name, manifest.GONE) end
  if found.short then found.notes[#found.notes + 1] = found.short .. ": is shorter than when manifest.json was written" end
  if gone[1] and not left[1] then found.notes[#found.notes + 1] = "its checkpoints were removed" end
  for _, name in ipairs(names) do               -- a crash may bring back a checkpoint that was pruned
    local checkpoint = is_checkpoint(name)
    local problem = ended and (not checkpoint or tonumber(name:match "%d+") > last) and manifest.ADDED or nil
    local ok, metadata = pcall(safetensors.metadata, not listed[name] and checkpoint and path .. "/" .. name)
    if ok and metadata.run ~= info.id then problem = manifest.OTHER end                        -- else written since, where the folder was copied meanwhile
    if problem and not listed[name] and checkpoint then bad(name, problem) end
  end
  if not ended then
    found.notes[#found.notes + 1] = "its last start has not ended: it runs, was killed, or failed; files are checked as its last checkpoint has them"
  end
end

---Adds JSON files of a folder that are not as they were written, or another run's; those of earlier versions carry no checksum.
---@param must boolean? they have a checksum
---@param whose string? the run: see runs/folder.lua
function manifest.seals(path, names, found, must, whose)
  for _, name in ipairs(names) do
    local text = files.is_file(path .. "/" .. name) and files.read(path .. "/" .. name)
    local whole = not text or sealed.check(text)
    local of = text and whole and whose and (json.decode(text) or {}).of
    local problem = of and of ~= whose and manifest.OTHER
    if whole == false or whole == nil and (must or name:find "^where/" and (text:find('mneme-where-2', 1, true) or text:find "^{\n")) then
      problem, found.altered[name] = manifest.ALTERED, true
    end
    if problem then found.bad[#found.bad + 1] = ("%s: %s"):format(terminal.plain(name, true), problem) end
  end
end

---@class Findings what was found in one run: `bad`, what is wrong; `notes`, what has changed since, or cannot be checked
---@field bad string[]
---@field notes string[]
---@field altered table<string, boolean>? files whose own checksum says so
---@field short string? a log that ends before its last checkpoint
---@field imported boolean? its results are from a file
---@field done boolean? it is a study's, and has its result

---Adds what is wrong with a run's files by their checksums.
function manifest.check(path, info, found)
  local whose, maps = run_folder.whose(info), {}
  found.altered = {}
  for _, name in ipairs(files.list(path .. "/where")) do maps[#maps + 1] = name:find "%.json$" and "where/" .. name or nil end
  manifest.seals(path, SEALED, found, info.folder ~= nil and not found.imported, whose)
  manifest.seals(path, maps, found, false, whose)
  if found.imported then return end
  local said = {}
  compare(path, info, found, function(name, text)
    found.bad[#found.bad + 1] = not said[name] and ("%s: %s"):format(terminal.plain(name, true), text) or nil
    said[name] = true
  end)
end

---Refuses to resume a run that is not as it was written, unless use=altered says so.
---@param path string of the run, which this process has locked
---@return string[]? altered what `history` keeps of it; nil: nothing
function manifest.before_resume(path, info)
  local found, bad = { bad = {}, notes = {} }, {}
  manifest.check(path, info, found)
  for _, text in ipairs(found.bad) do           -- a result that was removed is asked for again; without its last checkpoints a run goes on from one before
    local again = text:find "^result%.json: is not" or text:find "^log%.txt: " or text:find "^checkpoints/%S+: is not there, "
    bad[#bad + 1] = not again and text or nil
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
