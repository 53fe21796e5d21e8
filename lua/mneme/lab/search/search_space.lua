-- search_space.lua -- the settings that a tuning searches, as a cube: a range along each axis, or categories.
--   lr=1e-5..1e-2:log     between the ends, even in the logarithm        num_steps=32..256:int:log    whole numbers
--   lr_schedule=constant,linear                                          one of these
local errors = require "mneme.base.errors"
local sobol = require "mneme.lab.search.sobol"
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"

local search_space = {}
local NEAR = 1 / 6           -- of a range: a pick so near to an end says that the range may be too narrow
local HINT = "such as lr=1e-5..1e-2:log, num_steps=32..256:int or lr_schedule=constant,linear"

---@class SearchSpace
---@field dims table[] { name, categories = texts } or { name, low, high, log, int }
local Space = {}
Space.__index = Space

---Is a text a range: "1e-5..1e-2:log"?
function search_space.is_range(text) return text:find "^[^,]*[%d.]%.%.[%d.+-]" ~= nil and not text:find "/" end

-- A range, or the refusal of one that cannot be meant.
local function range(name, text)
  local function refuse(why) errors.usage(("tune: %s=%s: %s"):format(name, text, why), HINT) end
  local low, rest = text:match "^(.-)%.%.(.*)$"
  local high, modes = rest:match "^([^:]*)(.*)$"
  local dim = { name = name, log = false, int = false }
  for key, text_of in pairs { low = low, high = high } do
    local n, beyond = setting_types.number(text_of)
    if not n or beyond then refuse(beyond and text_of .. " is too " .. beyond or "expected two numbers, LOW..HIGH") end
    dim[key] = n
  end
  for mode in modes:gmatch ":([^:]*)" do
    if mode ~= "log" and mode ~= "int" then errors.unknown(("tune: %s=%s: word after the range:"):format(name, text), mode, { "int", "log" }) end
    dim[mode] = true
  end
  if not (dim.low < dim.high) or dim.high - dim.low == math.huge then refuse "expected the lower end first" end
  if dim.log and dim.low <= 0 then refuse "a logarithm has no 0 or less" end
  if dim.int and (dim.low % 1 ~= 0 or dim.high % 1 ~= 0) then refuse "the ends of :int are not whole" end
  return dim
end

---The space of some settings.
---@param settings table<string, string|any[]> name -> a range as text, or a list of categories
function search_space.new(settings)
  local self = setmetatable({ dims = {} }, Space)
  for _, name in ipairs(tables.keys(settings)) do
    local what, dim = settings[name], nil
    if type(what) == "string" and search_space.is_range(what) then dim = range(name, what)
    elseif type(what) == "table" and #what > 1 then
      dim = { name = name, categories = {} }
      for i, v in ipairs(what) do
        dim.categories[i] = setting_types.show(v)
        for k = 1, i - 1 do
          if setting_types.same(v, what[k]) then errors.usage(("tune: %s has %s twice"):format(name, setting_types.show(v)), "write it once") end
        end
      end
    else errors.usage(("tune: %s=%s: expected a range or several values"):format(name, setting_types.show(what)), HINT) end
    self.dims[#self.dims + 1] = dim
  end
  if #self.dims == 0 then errors.usage("tune: which settings?", HINT) end
  if #self.dims > sobol.MOST then errors.usage(("tune: %d settings, expected at most %d"):format(#self.dims, sobol.MOST)) end
  return self
end

---Ranges and lists as one text.
---@param settings table<string, string|any[]> as for search_space.new
function search_space.text(settings)
  return table.concat(tables.map(tables.keys(settings), function(name) return name .. "=" .. setting_types.show(settings[name]) end), " ")
end

-- The ends of a range as a stretch: each whole number has as much of it.
local function ends_of(dim)
  local half = dim.int and 0.5 or 0
  return dim.low - half, dim.high + half
end

-- The text of a dimension at a place from 0 to 1.
local function text_at(dim, u)
  if dim.categories then return dim.categories[math.min(#dim.categories, math.floor(u * #dim.categories) + 1)] end
  local low, high = ends_of(dim)
  local v
  if dim.log then v = math.exp(math.log(low) + u * (math.log(high) - math.log(low)))
  else v = low + u * (high - low) end
  if dim.int then return ("%.0f"):format(math.max(dim.low, math.min(dim.high, math.floor(v + 0.5)))) end
  return ("%.4g"):format(v):gsub("e([+-])0*", "e%1"):gsub("e%+", "e")
end

---The setting at a point of the cube: texts by name.  Four digits, so that what is written is what is run.
---@param point number[] a number in [0, 1] for each dimension
function Space:setting(point)
  local setting = {}
  for i, dim in ipairs(self.dims) do setting[dim.name] = text_at(dim, point[i]) end
  return setting
end

---Where a setting is in the cube; nil: outside.
---@param setting table<string, any> texts or values by name
function Space:point(setting)
  local point = {}
  for i, dim in ipairs(self.dims) do
    local text = setting[dim.name]
    if text == nil then return nil end
    if dim.categories then
      for k, category in ipairs(dim.categories) do if setting_types.same(category, text) then point[i] = (k - 0.5) / #dim.categories end end
      if not point[i] then return nil end
    else
      local v = setting_types.number(setting_types.show(text))
      local near = 1e-3 * (dim.log and math.abs(v or 0) or dim.high - dim.low)      -- the texts' four digits
      if not v or v < dim.low - near or v > dim.high + near then return nil end
      local low, high = ends_of(dim)
      local at = dim.log and math.log(v / low) / math.log(high / low) or (v - low) / (high - low)
      point[i] = math.max(0, math.min(1, at))
    end
  end
  return point
end

---What crowds at an end of its range, for which a wider one may be better: lines "lr: 3 of 4 picks lie near the upper end of 1e-5..1e-2:log".
---@param ranges string as search_space.text has them
---@param picks table[] settings, texts by name
function search_space.crowded(ranges, picks)
  local lines = {}
  for word in ranges:gmatch "%S+" do
    local name, span = setting_types.pair(word)
    local counts = { lower = 0, upper = 0 }
    if search_space.is_range(span) then
      local one = search_space.new { [name] = span }
      for _, values in ipairs(picks) do
        local at = one:point(values)
        local where = at and (at[1] <= NEAR and "lower" or at[1] >= 1 - NEAR and "upper")
        if where then counts[where] = counts[where] + 1 end
      end
    end
    for _, where in ipairs { "lower", "upper" } do
      if counts[where] > 0 then
        lines[#lines + 1] = ("%s: %d of %d pick%s near the %s end of %s"):format(name, counts[where], #picks, #picks == 1 and " lies" or "s lie", where, span)
      end
    end
  end
  return lines
end

---A setting as command-line arguments, and as a key: equal settings have equal ones.
function Space:words(setting)
  local words = tables.map(self.dims, function(dim) return dim.name .. "=" .. setting[dim.name] end)
  return words, table.concat(words, " ")
end

return search_space
