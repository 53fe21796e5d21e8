-- log_gaps.lua -- steps that a run's log lacks: after a crash the log may have fewer lines than the checkpoint that is resumed counts, because
-- they never reached the disk.  The resume notes it in `history`, as log_gap = { after, upto }.
local numbers = require "mneme.base.format"

local log_gaps = {}

---A gap as a sentence.
---@param gap { after: number, upto: number }
---@return string
function log_gaps.text(gap)
  local first, last = (tonumber(gap.after) or 0) + 1, tonumber(gap.upto) or 0
  return ("steps %s to %s are not in the log: a crash lost them"):format(numbers.grouped(first), numbers.grouped(last))
end

---The gaps of a run.
---@param info table its config.json
---@return string[] sentences
function log_gaps.of(info)
  local list = {}
  for _, start in ipairs(type(info.history) == "table" and info.history or {}) do
    local gap = type(start) == "table" and start.log_gap
    if type(gap) == "table" then list[#list + 1] = log_gaps.text(gap) end
  end
  return list
end

---The step up to which a log has gaps; -1: it has none.
---@param info table its config.json
---@return number
function log_gaps.last(info)
  local last = -1
  for _, start in ipairs(type(info.history) == "table" and info.history or {}) do
    local gap = type(start) == "table" and start.log_gap
    if type(gap) == "table" then last = math.max(last, tonumber(gap.upto) or -1) end
  end
  return last
end

return log_gaps
