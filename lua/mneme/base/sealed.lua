-- sealed.lua -- JSON objects that carry the checksum of their own text, so that a reader sees whether somebody altered them.
local engine = require "mneme.base.engine"
local json = require "mneme.base.json"

local sealed = {}

local function checksum(text) return ("%08x"):format(engine.C.mn_crc32c(0, text, #text)) end

---An object as text, with its checksum as the first entry.
---@param object table with at least one key; an old checksum in it is left out
---@return string
function sealed.encode(object)
  local plain = {}
  for key, value in pairs(object) do if key ~= "checksum" then plain[key] = value end end
  local text = json.encode(plain, "  ") .. "\n"
  return ('{\n  "checksum": "%s",%s'):format(checksum(text), text:sub(2))
end

---Is a text what sealed.encode wrote?
---@param text string
---@return boolean? whole nil: it carries no checksum
function sealed.check(text)
  local said, rest = text:match '^{\n  "checksum": "(%x+)",(.*)$'
  if said then return checksum("{" .. rest) == said end
  if text:find '^%s*{[^{}]-"checksum"%s*:' then return false end
  return nil
end

return sealed
