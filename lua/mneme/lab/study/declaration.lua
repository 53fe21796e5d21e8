-- declaration.lua -- the tables of a study's declaration, and their allowed fields.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local key_lines = require "mneme.base.key_lines"

local figure_keys = { [1] = "string", y = "string", x = "string", by = "string", where = "table", title = "string", log = "string", statistic = "string",
  numbered = "boolean" }
local kinds = { curves = true, lines = true, bars = true, heat = true, ranks = true, solved = true }
local words_of = { log = { x = true, y = true, xy = true }, statistic = { mean = true, iqm = true, geometric = true } }

---Refuse what is no table, a key that such a table does not have, and a value of another type.
---@param keys table<any, string|true> what may be in it, and its type; true: any
local function only(t, keys, what)
  local of = what == "a study" and "study: " or ("study: %s: "):format(what)
  if type(t) ~= "table" then errors.raise(("study: %s is a %s, expected a table"):format(what, type(t))) end
  for key, value in pairs(t) do
    if not keys[key] then
      errors.unknown(("key of %s:"):format(what), tostring(key), tables.keys(keys), nil, key_lines.of_key(errors.position(), tostring(key)))
    end
    local fits = keys[key] == true or type(value) == keys[key]
    if not fits then errors.raise(("%s%s is a %s, expected a %s"):format(of, tostring(key), type(value), keys[key])) end
  end
end

local declaration = setmetatable({}, { __call = function(_, t, keys, what) only(t, keys, what) end })

---Refuse a figure that has other keys than figures have, no metric, or a kind, a scale or a statistic that there is not.
function declaration.figure(f, what)
  only(f, figure_keys, what)
  if not kinds[f[1]] then errors.unknown(what .. ": kind", tostring(f[1]), tables.keys(kinds)) end
  if not f.y then errors.raise(("study: %s has no y = the name of a metric"):format(what)) end
  if f[1] == "ranks" and not (f.x and f.by) then errors.raise(("study: %s: ranks need x = the axis of tasks and by = the axis that is ranked"):format(what)) end
  for key, known in pairs(words_of) do
    if f[key] and not known[f[key]] then errors.unknown(("%s: %s ="):format(what, key), f[key], tables.keys(known)) end
  end
end

return declaration
