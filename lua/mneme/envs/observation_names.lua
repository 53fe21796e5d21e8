-- observation_names.lua -- what the numbers of a flat observation are, from what an environment declares: "cue=down,up place[8] noise[*]".
local errors = require "mneme.base.errors"

local observation_names = {}

---@class ObservationGroup numbers of an observation that belong together
---@field name string "place"
---@field from integer the first, from 0
---@field n integer
---@field names string[] of each: "cue down", "place 3"; of one alone the group's

-- The alternative for a dtype: "u8: a b f32: c"; a text without them holds for all.
local function alternative(text, dtype)
  if not text:find "%f[%w][uf]%d+:" then return text end
  return text:match("%f[%w]" .. dtype .. ":([^:]*)%f[%w][uf]%d+:") or text:match("%f[%w]" .. dtype .. ":([^:]*)$") or ""
end

-- "view*view" with the settings of the environment; "*": what is left, "*-51": but for the last 51.
local function size_of(what, text, settings, left)
  if text == "*" then return left end
  local last = text:match "^%*%-(%d+)$"
  if last then return left - last end
  local n = 1
  for part in text:gmatch "[^*]+" do
    local factor = tonumber(part) or tonumber(settings[part])
    if not factor then errors.usage(("%s: observes has the size %s, expected integers and settings, with * between"):format(what, text)) end
    n = n * factor
  end
  return n
end

---The groups of an observation.
---@param what string the environment, for messages
---@param text string? as declared; nil: nothing is known
---@param space table { shape, dtype }
---@param settings table<string, any>
---@return ObservationGroup[] groups {} where nothing is declared, or the observation is not flat
function observation_names.groups(what, text, space, settings)
  local groups, at, total = {}, 0, space.shape[1]
  if not text or #space.shape ~= 1 then return groups end
  for word in alternative(text, space.dtype):gmatch "%S+" do
    local name, size = word:match "^([%w_]+)%[([%w_*-]+)%]$"
    local list = not name and word:match "^[%w_]+=([%w_,]+)$"
    name = name or word:match "^([%w_]+)"
    if not name or not (size or list or word == name) then
      errors.usage(("%s: observes has '%s', expected name, name[8] or name=one,two"):format(what, word))
    end
    local group = { name = name, from = at, n = 0, names = {} }
    for one in (list or ""):gmatch "[^,]+" do group.names[#group.names + 1] = name .. " " .. one end
    group.n = list and #group.names or size and size_of(what, size, settings, total - at) or 1
    for i = #group.names + 1, group.n do group.names[i] = group.n > 1 and name .. " " .. i - 1 or name end
    if group.n > 0 then groups[#groups + 1] = group end
    at = at + group.n
  end
  if at ~= total and #groups > 0 then
    errors.usage(("%s: observes names %d numbers, but an observation has %d"):format(what, at, total), text)
  end
  return groups
end

return observation_names
