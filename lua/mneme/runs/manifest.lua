-- manifest.lua -- RUN/manifest.json lists the run's files with their checksums, as they were when a start had ended.  By it `mneme check`, a resume,
-- reports and comparisons name what was altered or removed since.  Of a start that runs, was killed or failed, only what carries a checksum of its
-- own is compared: JSON (base/json.lua) and checkpoints.
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local lfs = require "lfs"
local errors = require "mneme.base.errors"
local sealed = json.sealed
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local manifest = { ALTERED = "was altered after it was written" }
local SEALED = { "config.json", "outcome.json", "resources.json", "result.json" }          -- the last two are written again after the manifest

-- The files that a run keeps.  Links are followed to the run's own folders alone.
local function walk(path, inner, names)
  for _, name in ipairs(files.list(path .. "/" .. inner)) do
    local of, into = inner .. name, name == "checkpoints" or name:find "^source"
    local link = inner ~= "" and lfs.symlinkattributes(path .. "/" .. of, "mode") ~= "directory"
    if files.is_folder(path .. "/" .. of) then
      if not link and (into or inner ~= "") then walk(path, of .. "/", names) end
    elseif not of:find "%.tmp$" and (inner ~= "" or name:find "^metrics" or name:find "^events" or name:find "^outcome" or name:find "^earlier%-log") then
      names[#names + 1] = of
    end
  end
  return names
end

---Writes it: a start has ended.
---@param log Log? of a run that this process trains, which reaches the disk before it
function manifest.write(path, info, log)
  local held = tables.map(walk(path, "", {}), function(name)
    local checksum, bytes = files.sum(path .. "/" .. name)
    return checksum and { name = name, checksum = checksum, bytes = bytes }
  end)
  files.write(path .. "/manifest.json", { sealed.encode { starts = #(info.history or {}), files = json.array(held) } }, log and log:unsynced())
end

---Adds JSON files of a folder that are not as they were written; those of earlier versions carry no checksum.
function manifest.seals(path, names, found)
  for _, name in ipairs(names) do
    local text = files.is_file(path .. "/" .. name) and files.read(path .. "/" .. name)
    local whole = not text or sealed.check(text)
    if whole == false or whole == nil and name:find "^where/" and (text:find('mneme-where-2', 1, true) or text:find "^{\n") then
      found.bad[#found.bad + 1] = ("%s: %s"):format(terminal.plain(name, true), manifest.ALTERED)
    end
  end
end

---@class Findings what was found in one run: `bad`, what is wrong; `notes`, what has changed since, or cannot be checked
---@field bad string[]
---@field notes string[]
---@field imported boolean? its results are from a file
---@field ended boolean? its last start has ended, and the manifest is of it

-- Adds what was altered or removed since a run's last start ended.
local function compare(path, info, found)
  local text = files.text(path .. "/manifest.json")
  local whole, held = text and sealed.check(text), text and json.decode(text)
  if whole == false or text and (type(held) ~= "table" or type(held.files) ~= "table") then
    found.bad[#found.bad + 1] = "manifest.json: " .. manifest.ALTERED
  elseif not text or held.starts ~= #(type(info.history) == "table" and info.history or {}) then
    found.notes[#found.notes + 1] = "its last start has not ended: it runs, was killed, or failed; checked is what carries a checksum of its own"
  else found.ended = true end
  for _, file in ipairs(found.ended and held.files or {}) do
    local name = type(file) == "table" and file.name
    if type(name) == "string" and file.checksum and name ~= "log.txt" and not name:find("..", 1, true) and name:sub(1, 1) ~= "/" then
      local sum, bytes = files.sum(path .. "/" .. name)
      if sum ~= file.checksum or bytes ~= file.bytes then
        found.bad[#found.bad + 1] = ("%s: %s"):format(terminal.plain(name, true), sum and manifest.ALTERED or "is not there any more")
      end
    end
  end
end

---Adds what is wrong with a run's files by their checksums.
---@param found Findings
function manifest.check(path, info, found)
  manifest.seals(path, SEALED, found)
  manifest.seals(path, tables.map(files.list(path .. "/where"), function(name) return name:find "%.json$" and "where/" .. name or nil end), found)
  if not found.imported then compare(path, info, found) end
end

---Refuses to resume a run that is not as it was written.
---@param path string of the run, which this process has locked
function manifest.before_resume(path, info)
  local found = { bad = {}, notes = {} }
  manifest.check(path, info, found)
  -- A damaged checkpoint is passed over; without its last ones a run goes on from one before.
  local bad = tables.map(found.bad, function(text) return not text:find "checkpoints/" and text or nil end)
  if #bad > 0 then
    errors.raise(("%s is not as it was written: %s"):format(path, table.concat(bad, "; ")),
      { status = 2, where = false, hint = "put it back; without manifest.json and the \"checksum\" in line 2 of JSON files nothing is compared" })
  end
end

return manifest
