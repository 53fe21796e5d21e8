-- state_dicts.lua -- tensors by name, loaded into others: what modules and optimisers do with torch's state_dict.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"

local state_dicts = {}

local function listed(names) return #names > 0 and table.concat(names, ", ") or "nothing" end

-- What is given must have the shape and the type of what it replaces.
local function check_entry(what, name, mine, from)
  if not tensor.is(from) then errors.raise(("%s: %s is a %s, expected a tensor"):format(what, name, type(from))) end
  local a, b = table.concat(mine:shape(), ","), table.concat(from:shape(), ",")
  if a ~= b then errors.raise(("%s: %s is [%s], expected [%s]"):format(what, name, b, a)) end
  if mine:dtype() ~= from:dtype() then errors.raise(("%s: %s is %s, expected %s"):format(what, name, from:dtype(), mine:dtype())) end
end

---Copy values by name; missing and unexpected names, or other shapes, are errors before anything changes.
---@param what string "load_state_dict"
---@param mine table<string, Tensor> leaves
---@param dict table<string, Tensor>
---@param strict boolean false: load the names that both have
---@return string[] missing, string[] unexpected
function state_dicts.load(what, mine, dict, strict)
  errors.need(what, dict, nil, "tensors by name")
  local missing, unexpected = {}, {}
  for name, t in pairs(mine) do
    if dict[name] == nil then missing[#missing + 1] = name else check_entry(what, name, t, dict[name]) end
  end
  for name in pairs(dict) do if not mine[name] then unexpected[#unexpected + 1] = tostring(name) end end
  table.sort(missing) table.sort(unexpected)
  if strict and #missing + #unexpected > 0 then
    errors.raise(("%s: missing %s; unexpected %s"):format(what, listed(missing), listed(unexpected)))
  end
  for name, t in pairs(mine) do
    if dict[name] then ffi.copy(t:data(), dict[name]:data(), t:size() * (t:dtype() == "u8" and 1 or 4)) end
  end
  return missing, unexpected
end

return state_dicts
