-- scale.lua -- maps values to positions on linear and logarithmic axes, and chooses round ticks.
local format = require "mneme.base.format"
local tables = require "mneme.base.tables"

local scale = {}

-- 1, 2 or 5 times a power of ten, not below `least`.
local function round_step(least)
  local power = 10 ^ math.floor(math.log10(least) + 1e-9)
  for _, digit in ipairs { 1, 2, 5 } do
    if digit * power >= least * (1 - 1e-9) then return digit * power end
  end
  return 10 * power
end

-- The step of a linear axis with about `wanted` ticks: hours and minutes in their own units.
local function step_of(low, high, wanted, unit)
  local factor = unit == "s" and format.prefix(math.max(math.abs(low), math.abs(high)), unit) or 1
  return factor * round_step((high - low) / factor / math.max(1, wanted))
end

local function linear_ticks(low, high, step)
  local list = {}
  local first = math.ceil(low / step - 1e-9)
  for i = first, math.floor(high / step + 1e-9) do list[#list + 1] = i * step end
  return list
end

local function log_ticks(low, high, wanted)
  local first, last = math.floor(math.log10(low) - 1e-9), math.ceil(math.log10(high) + 1e-9)
  local function among(digits, every)
    local list = {}
    for power = first, last do
      for _, digit in ipairs(digits) do
        local v = digit * 10 ^ power
        if power % every == 0 and v >= low * (1 - 1e-9) and v <= high * (1 + 1e-9) then list[#list + 1] = v end
      end
    end
    return list
  end
  for _, digits in ipairs { { 1, 2, 5 }, { 1, 3 }, { 1 } } do
    local list = among(digits, 1)
    if #list <= wanted and (#list >= 2 or #digits == 1) then
      return #list >= 2 and list or linear_ticks(low, high, step_of(low, high, wanted))
    end
  end
  return among({ 1 }, math.ceil((last - first) / math.max(1, wanted)))
end

-- The tick labels of log axes, and of linear ones.
local function labels_of(axis, ticks)
  if axis.log or #ticks < 2 or axis.ticks then return tables.map(ticks, function(v) return format.short(v, axis.unit) end) end
  return format.row(ticks, ticks[2] - ticks[1], axis.unit)
end

---A scale.
---@param axis table { log, unit, ticks = wanted ones }
---@param low number least and largest value that is to be seen; low > 0 on a log axis
---@param from number where `low` lies, and `to`, where `high` does
---@param o table { wanted = ticks, nice = ends are ticks, fits = function(ticks, labels, place) -> boolean }
---@return table { low, high, at = function(v) -> place, ticks, labels }
function scale.new(axis, low, high, from, to, o)
  if not (high - low > 1e-9 * math.max(math.abs(low), math.abs(high))) then           -- one value, or as good as one
    local room = axis.log and 0 or math.max(math.abs(low) * 0.1, 1e-12)
    low, high = axis.log and low / 2 or low == 0 and -1 or low - room, axis.log and high * 2 or high == 0 and 1 or high + room
  end
  local log, wanted = axis.log, o.wanted
  if o.nice and not log then
    local step = step_of(low, high, wanted, axis.unit)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
  end
  local function at(v)
    if log then return from + math.log(v / low) / math.log(high / low) * (to - from) end
    return from + (v - low) / (high - low) * (to - from)
  end
  while not log and not axis.ticks and wanted < 8 and #linear_ticks(low, high, step_of(low, high, wanted, axis.unit)) < 2 do wanted = wanted + 1 end
  local self = { low = low, high = high, at = at, log = log }
  repeat
    self.ticks = log and log_ticks(low, high, wanted) or linear_ticks(low, high, step_of(low, high, wanted, axis.unit))
    if axis.ticks and wanted >= o.wanted then self.ticks = axis.ticks end
    self.labels = labels_of(axis, self.ticks)
    wanted = wanted - 1
  until wanted < 1 or not o.fits or o.fits(self.ticks, self.labels, at)
  if o.fits and not o.fits(self.ticks, self.labels, at) then self.ticks, self.labels = { self.ticks[1] }, { self.labels[1] } end
  return self
end

return scale
