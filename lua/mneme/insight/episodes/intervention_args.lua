-- intervention_args.lua -- reads interventions from the command line: erase=layers.0,tick force=layers.0.beta:0.5 flip=1.
local errors = require "mneme.base.errors"
local interventions = require "mneme.insight.episodes.interventions"

local intervention_args = {}

local function number_in(command, spec, word, text)
  local x = tonumber(text)
  if not x then
    errors.usage(("%s: %s=%s: expected a number after a colon, as in %s=%s:1"):format(command, spec.kind, word, spec.kind, spec.what))
  end
  return x
end

local readers = {
  force = function(command, spec, word, value) spec.to = number_in(command, spec, word, value) end,
  shift = function(command, spec, word, value) spec.by = number_in(command, spec, word, value) end,
  set = function(command, spec, word, value)
    if not value then errors.usage(("%s: set=%s: no value, expected one as in set=%s:1"):format(command, word, spec.what)) end
    spec.to = tonumber(value) or value
  end,
}

---Reads "layers.0.beta:0.5,layers.1.beta:0" of a kind.
---@param list table[] the interventions are appended to it, without at and steps
---@param command string name of the command, for errors
function intervention_args.read(list, kind, text, command)
  for word in text:gmatch "[^,]+" do
    local what, value = word:match "^(.-)[:=](.*)$"                        -- set=cue:up, and set=cue=up
    local spec = { kind = kind, what = what or word }
    if readers[kind] then readers[kind](command, spec, word, value)
    elseif value then errors.usage(("%s: %s=%s: takes no value after a colon"):format(command, kind, word)) end
    if kind == "flip" and word == "1" then spec.what = nil end
    list[#list + 1] = spec
  end
end

---Sets the step of all interventions of a list.
---@param steps integer? duration of those that last
function intervention_args.time(list, at, steps, command)
  local lasting = false
  for _, spec in ipairs(list) do
    spec.at = at
    if interventions.kinds[spec.kind].steps then spec.steps, lasting = steps, true end
  end
  if steps and not lasting then
    errors.usage(("%s: for=%d goes with force, freeze and hold, not with %s"):format(command, steps, list[1] and list[1].kind or "nothing"))
  end
end

return intervention_args
