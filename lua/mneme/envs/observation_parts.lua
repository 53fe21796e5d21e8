-- observation_parts.lua -- observations of several named arrays: floats, codes and pictures side by side.  The engine has them as one row of
-- floats (f32), in which every part has its place; agents read each part by a torso of its own (models/observation_torsos.lua, dict).
local errors = require "mneme.base.errors"
local LARGEST = require("mneme.envs.native").LARGEST
local tables = require "mneme.base.tables"
local observation_parts = {}

---@class ObservationPart: ObservationGroup an array with a name; in a row its values follow one another from `from` on
---@field kind "floats"|"codes"|"picture"|"mask" a mask: 1 for each action that is allowed now, 0 for the others; no torso reads it
---@field shape integer[] its axes; of a picture [Y,X,C]
---@field codes integer? of codes: each value is one of 0 .. codes-1

local MOST_CODES = 2 ^ 20
local LIMITS = "a part is one array of a fixed size: { 3 } floats, { 2, codes = 52 } whole numbers below 52, { 64, 64, 3, dtype = \"u8\" } a picture; "
  .. "no dict in a dict, sequence or graph (docs/write-an-environment.md)"

-- Names of a part's values, made where they are read: a picture has thousands.
local function names_of(part)
  return setmetatable({}, { __index = function(_, k) return part.n > 1 and ("%s %d"):format(part.name, k - 1) or part.name end })
end

---Parts one after another in a row.
---@param list table[] { name, kind, shape, codes }
---@return ObservationPart[] parts and mask = the one that is a mask
---@return integer size of a row
function observation_parts.place(list)
  local at, parts = 0, {}
  for i, about in ipairs(list) do
    local part = { name = about.name, kind = about.kind, shape = about.shape, codes = about.codes, from = at, n = tables.product(about.shape) }
    part.names = names_of(part)
    parts[i], at = part, at + part.n
    if part.kind == "mask" then parts.mask = part end
  end
  return parts, at
end

---Those of a script, in the order of their names: { card = { 2, codes = 52 }, place = { 3 }, eye = { 64, 64, 3, dtype = "u8" } }.
---@param what string the environment
---@param actions integer? there is a mask of that many
---@return ObservationPart[]
---@return integer size of a row
function observation_parts.of_script(what, given, actions)
  local list = {}
  for i, name in ipairs(tables.keys(given)) do
    local about = given[name]
    local said = ("%s: observation.%s"):format(what, tostring(name))
    if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then
      errors.usage(("%s: observation has the key %s, expected names of letters, digits and _"):format(what, tostring(name)), LIMITS)
    end
    if type(about) ~= "table" or #about == 0 then errors.usage(("%s is %s, expected its sizes"):format(said, tables.in_words(about)), LIMITS) end
    for key in pairs(about) do
      if type(key) ~= "number" and key ~= "codes" and key ~= "dtype" then errors.unknown(said .. ": key", key, { "codes", "dtype" }) end
    end
    for k, size in ipairs(about) do errors.whole(said, ("size %d"):format(k), size, 1) end
    if about.dtype ~= nil and about.dtype ~= "f32" and about.dtype ~= "u8" then errors.unknown(said .. ": dtype", about.dtype, { "f32", "u8" }) end
    if about.codes ~= nil and (about.dtype == "f32" or errors.whole(said, "codes", about.codes, 1) > MOST_CODES) then
      errors.usage(("%s: codes=%s, expected 1..%d, without dtype"):format(said, tostring(about.codes), MOST_CODES))
    end
    local kind = about.codes and "codes" or about.dtype == "u8" and "picture" or "floats"
    if kind == "picture" and #about ~= 3 then errors.usage(("%s is a picture with %d sizes, expected { rows, columns, channels }"):format(said, #about)) end
    list[i] = { name = name, kind = kind, shape = { unpack(about) }, codes = about.codes }
  end
  if actions then list[#list + 1] = { name = "action_mask", kind = "mask", shape = { actions } } end
  return observation_parts.place(list)
end

---Write what a script gave as an observation into a row.
---@param given any { card = { 3, 4 }, place = { 0, 0.5, 1 } }; a part of one value may be a number
---@param into number[] receives the row
---@return string? wrong what was given; nil: it fits
---@return string? expected
function observation_parts.flatten(parts, given, into)
  local left, names = {}, {}
  for i, part in ipairs(parts) do names[i] = part.name end
  if type(given) ~= "table" or given[1] ~= nil then
    return tables.in_words(given) .. " as the observation", "a table of " .. table.concat(names, ", ")
  end
  for name in pairs(given) do left[name] = true end
  for _, part in ipairs(parts) do
    local list, n, top = given[part.name], part.n, part.kind == "picture" and 255 or part.kind == "mask" and 1 or part.codes and part.codes - 1
    if n == 1 and type(list) == "number" then list = { list } end
    if type(list) ~= "table" or #list ~= n or list[0] ~= nil then
      return ("%s as %s"):format(tables.in_words(list), part.name), n == 1 and "a number" or ("a list of %d numbers"):format(n)
    end
    for k = 1, n do
      local x = list[k]
      if type(x) ~= "number" or not (math.abs(x) <= LARGEST) or top and (x % 1 ~= 0 or x < 0 or x > top) then
        return ("%s in place %d of %s"):format(type(x) == "number" and tostring(x) or "a " .. type(x), k, part.name),
          top and ("a whole number from 0 to %d"):format(top) or "a finite number"
      end
      into[part.from + k] = x
    end
    left[part.name] = nil
  end
  if next(left) ~= nil then return ("'%s' in the observation"):format(tostring(next(left))), "only " .. table.concat(names, ", ") end
end

---A row as a script has it: lists by name.
---@param row ffi.cdata*
---@return table<string, number[]>
function observation_parts.lists(parts, row)
  local lists = {}
  for _, part in ipairs(parts) do
    lists[part.name] = tables.filled(part.n, function(k) return tonumber(row[part.from + k - 1]) end)
  end
  return lists
end

return observation_parts
