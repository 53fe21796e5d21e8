-- intervention_args.lua -- reads interventions from the command line: erase=layers.0,tick force=layers.0.beta:0.5 flip=1.
local errors = require "mneme.base.errors"
local interventions = require "mneme.insight.episodes.interventions"

local intervention_args = {}

-- What stands after a colon, by kind: its key, and what it may be; a fact may have words for its values.
local values = { force = { "to", "a number" }, shift = { "by", "a number" }, set = { "to", "a value" } }

---Reads "layers.0.beta:0.5,layers.1.beta:0" of a kind.
---@param list table[] the interventions are appended to it, without at and steps
---@param command string name of the command, for errors
function intervention_args.read(list, kind, text, command)
  for word in text:gmatch "[^,]+" do
    local what, value = word:match "^(.-)[:=](.*)$"                        -- set=cue:up, and set=cue=up
    local spec = { kind = kind, what = what or word }
    local takes = values[kind]
    if not takes and value then errors.usage(("%s: %s=%s: takes no value after a colon"):format(command, kind, word)) end
    if takes then
      spec[takes[1]] = tonumber(value) or kind == "set" and value or nil
      if spec[takes[1]] == nil then
        errors.usage(("%s: %s=%s: expected %s after a colon, as in %s=%s:1"):format(command, kind, word, takes[2], kind, spec.what))
      end
    end
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
