-- declaration.lua -- the tables of a study's declaration, and their allowed fields.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local text_places = require "mneme.base.text_places"

---Refuse what is no table, a key that such a table does not have, and a value of another type.
---@param t any
---@param keys table<any, string|true> what may be in it, and its type; true: any
---@param what string "claim C1"
return function(t, keys, what)
  if type(t) ~= "table" then errors.raise(("study: %s is a %s, expected a table"):format(what, type(t))) end
  for key, value in pairs(t) do
    if not keys[key] then
      errors.unknown(("key of %s:"):format(what), tostring(key), tables.keys(keys), nil, text_places.of_key(errors.position(), tostring(key)))
    end
    if keys[key] ~= true and type(value) ~= keys[key] then
      errors.raise(("study: %s: %s is a %s, expected a %s"):format(what, tostring(key), type(value), keys[key]))
    end
  end
end
