-- starts.lua -- settings that a resume may change: `history` of config.json has their values for each start, and here is what they were from
-- which step on.  A start without a value is of an earlier version of Mneme: its value is not known, and nothing is said of it.
local numbers = require "mneme.base.format"
local values = require "mneme.base.setting_types"

local starts = {
  keys = { "debug", "device", "emulate", "precision", "profile", "steps", "threads" },
  numeric = { "device", "emulate", "precision", "steps" },          -- those on which numbers depend
}

---The starts that made what the run is now: of two that begin at one step the later, and none whose steps were lost.
---@param info table config.json
---@return table[] entries of history, ascending by from_step
function starts.of(info)
  local list = {}
  for _, start in ipairs(type(info.history) == "table" and info.history or {}) do
    local from = type(start) == "table" and tonumber(start.from_step)
    if from then
      while list[1] and list[#list].from_step >= from do list[#list] = nil end
      list[#list + 1] = start
    end
  end
  return list
end

---What a setting was, where a resume changed it: "10240, 20480 from step 5120".
---@param info table config.json
---@param key string of starts.keys
---@return string? nil: one value, or not known
function starts.text(info, key)
  local parts, before
  for _, start in ipairs(starts.of(info)) do
    local value = start[key] == nil and before or values.show(start[key])
    if not parts then parts = value and { value }
    elseif value ~= before then parts[#parts + 1] = ("%s from step %.0f"):format(value, start.from_step) end
    before = value
  end
  return parts and parts[2] and table.concat(parts, ", ") or nil
end

---What resumes changed of a run that its numbers depend on, as a sentence.
---@param info table config.json
---@return string? nil: nothing that is known
function starts.changes(info)
  local parts = {}
  for _, key in ipairs(starts.numeric) do
    local text = starts.text(info, key)
    if text then parts[#parts + 1] = ("%s=%s"):format(key, text) end
  end
  return parts[1] and "a resume changed " .. table.concat(parts, "; ")
end

---What resumes noted of the files that they found.
---@param info table config.json
---@return string[] altered sentences: what use=altered allowed
---@return string[] gaps sentences: steps that the log lacks, because a crash kept their lines from the disk: log_gap = { after, upto }
---@return number last step of a gap; -1: there is none
function starts.found(info)
  local altered, gaps, last = {}, {}, -1
  for _, start in ipairs(type(info.history) == "table" and info.history or {}) do
    start = type(start) == "table" and start or {}
    for _, what in ipairs(type(start.altered) == "table" and start.altered or {}) do
      altered[#altered + 1] = ("before it was resumed at step %.0f: %s"):format(tonumber(start.from_step) or 0, values.show(what))
    end
    if type(start.log_gap) == "table" then
      local first, upto = (tonumber(start.log_gap.after) or 0) + 1, tonumber(start.log_gap.upto) or 0
      gaps[#gaps + 1] = ("steps %s to %s are not in the log: a crash lost them"):format(numbers.grouped(first), numbers.grouped(upto))
      last = math.max(last, upto)
    end
  end
  return altered, gaps, last
end

return starts
