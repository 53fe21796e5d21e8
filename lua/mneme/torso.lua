-- torso.lua -- what stands between a task's observations and a memory: observations [T,B,...] in their own type
-- become features [T,B,d].  A torso is a module (nn.lua) that knows `d_out`, so that the memory can be made to fit.
local errors = require "mneme.errors"
local find = require "mneme.find"
local nn = require "mneme.nn"
local tensor = require "mneme.tensor"
local ops = tensor.ops

local torso = {}

-- What each torso is: the options it takes with their defaults, which observations it reads, and how it is made.
local kinds = {}

local function numbers(space)
  local n = 1
  for _, size in ipairs(space.shape) do n = n * size end
  return n
end

-- The features of a step in a row.
local function flattened(x)
  local shape = x:shape()
  if #shape == 3 then return x end
  return ops.reshape(x, { d0 = shape[1], d1 = shape[2], d2 = -1 })
end

kinds.flat = {
  reads = "numbers (f32)", options = {},
  fits = function(space) return space.dtype ~= "u8" end,
  make = function(space)
    return nn.module({ d_out = numbers(space) }, function(_, x) return flattened(x) end)
  end,
}

kinds.codes = {
  reads = "codes (u8 with codes = n)", options = {},
  fits = function(space) return space.dtype == "u8" and (space.codes or 0) > 0 end,
  make = function(space)
    return nn.module({ d_out = numbers(space) * space.codes }, function(_, x)
      return flattened((ops.one_hot_codes(x, { codes = space.codes })))
    end)
  end,
}

---The space as text: "u8 [84,84,3]", "u8 [11,11] of 7 codes".
local function described(space)
  local codes = (space.codes or 0) > 0 and (" of %d codes"):format(space.codes) or ""
  return ("%s [%s]%s"):format(space.dtype or "f32", table.concat(space.shape, ","), codes)
end

---A torso by name: "flat" (f32, put in a row), "codes" (u8 codes as one-hots, put in a row).
---@param name string
---@param options table { space = task.observation_space, ... the torso's own }
---@return Module m(x) with x [T,B,...] gives [T,B,m.d_out]
function torso.new(name, options)
  local kind = kinds[name]
  if not kind then errors.unknown("torso", name, find.keys(kinds)) end
  local space = type(options) == "table" and options.space
  if type(space) ~= "table" or type(space.shape) ~= "table" then
    errors.raise(("torso %s: expected { space = task.observation_space }"):format(name))
  end
  local chosen = {}
  for key, default in pairs(kind.options) do chosen[key] = default end
  for key, value in pairs(options) do
    if key ~= "space" then
      if chosen[key] == nil then errors.unknown("option of torso " .. name, key, find.keys(kind.options)) end
      chosen[key] = value
    end
  end
  if not kind.fits(space) then
    errors.raise(("torso %s reads %s, but the observations are %s"):format(name, kind.reads, described(space)))
  end
  local m = kind.make(space, chosen)
  m.name = name
  return m
end

---The torso of a task's observations: the one asked for, or else the one that fits.
---@param space table task.observation_space: { shape, dtype = "f32"|"u8", codes }
---@param asked string|table|nil a name, { name, option = value }, or a module of one's own that knows its d_out
---@return Module
function torso.for_space(space, asked)
  if type(asked) == "table" and asked.call then
    if type(asked.d_out) ~= "number" then errors.raise "torso: a module of your own needs d_out, the number of its features" end
    return asked
  end
  local name, options = asked, { space = space }
  if type(asked) == "table" then
    name = asked[1]
    for key, value in pairs(asked) do if key ~= 1 then options[key] = value end end
  end
  name = name or space.dtype ~= "u8" and "flat" or (space.codes or 0) > 0 and "codes" or "conv"
  return torso.new(name, options)
end

return torso
