-- sealed.lua -- JSON objects that carry the checksum of their own text, so that a reader sees whether somebody altered them, and the number of
-- their format, so that a reader refuses what a later version of Mneme wrote.
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"

local sealed = { FORMAT = 1, NEWER = "a later version of Mneme wrote it" }         -- of config.json and study.json; 0, none: earlier versions

---An object as text, with its checksum as the first entry.
---@param object table with at least one key; an old checksum in it is left out
---@param compact boolean? in one line
---@return string
function sealed.encode(object, compact)
  local plain = {}
  for key, value in pairs(object) do if key ~= "checksum" then plain[key] = value end end
  local text = (compact and json.encode(plain) or json.encode(plain, "  ")) .. "\n"
  return ('{\n  "checksum": "%s",%s'):format(files.crc(text), text:sub(2))
end

---Is a text what sealed.encode wrote?
---@param text string
---@return boolean? whole nil: it carries no checksum
function sealed.check(text)
  local said, rest = text:match '^{\n  "checksum": "(%x+)",(.*)$'
  if said then return files.crc("{" .. rest) == said end
  if text:find '^%s*{[^{}]-"checksum"%s*:' then return false end
  return nil
end

---Refuses what has a later format than this version reads.
---@param path string
---@param format any the number of its format; nil: an earlier version wrote it, without one
---@param most integer? the last one that is read; default: sealed.FORMAT
function sealed.need(path, format, most)
  most = most or sealed.FORMAT
  if type(format) == "number" and not (format <= most) then
    errors.fail(("%s: %s: format %s, expected %d at most"):format(path, sealed.NEWER, tostring(format), most), "update Mneme")
  end
end

return sealed
