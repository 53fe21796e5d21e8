-- saved_tables.lua -- what a Lua environment holds, as text that is no program: numbers, strings, booleans and tables of them.
-- Tables are numbered in the order in which they begin; where one comes again, its number is written.  So tables that are
-- shared, and tables that hold themselves, stay so.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local saved_tables = {}
local MOST_DEEP = 1000                       -- tables in tables

-- "self.things.3"
local function named(path) return table.concat(path, ".") end

-- What the path leads to cannot be saved: an error where the environment sets it.
local function refuse(seen, path, ...)
  errors.raise("save: " .. (...):format(select(2, ...)), { where = seen.place and seen.place(path) or nil })
end

local function encode(x, out, path, seen)
  local kind = type(x)
  if kind == "number" then out[#out + 1] = ("n%.17g;"):format(x)
  elseif kind == "string" then out[#out + 1] = ("s%d:%s"):format(#x, x)
  elseif kind == "boolean" then out[#out + 1] = x and "t" or "f"
  elseif kind ~= "table" then
    refuse(seen, path, "%s is a %s; only numbers, strings, booleans and tables can be saved", named(path), kind)
  elseif seen[x] then out[#out + 1] = ("r%d;"):format(seen[x])
  else
    if getmetatable(x) ~= nil then refuse(seen, path, "%s has a metatable, expected plain tables", named(path)) end
    if #path > MOST_DEEP then refuse(seen, path, "%s... has tables more than %d deep", named(path):sub(1, 40), MOST_DEEP) end
    seen.count = seen.count + 1
    seen[x] = seen.count
    out[#out + 1] = "{"
    local function odd(key) refuse(seen, path, "%s has a %s as a key, expected numbers and strings", named(path), type(key)) end
    for _, key in ipairs(tables.ordered_keys(x, odd)) do
      encode(key, out)
      path[#path + 1] = tostring(key)
      encode(x[key], out, path, seen)
      path[#path] = nil
    end
    out[#out + 1] = "}"
  end
end

---A table as text; an error names the path of what cannot be saved.
---@param place (fun(path: string[]): string)? "file:line" that sets what is at the path, for errors
function saved_tables.encode(t, place)
  local out = {}
  encode(t, out, {}, { count = 0, place = place })
  return table.concat(out)
end

local function damaged(at) error(("damaged at %d"):format(at), 0) end

-- The value at position `at`, and the position after it; `known`: the tables so far.
local function decode(text, at, known, depth)
  local tag = text:sub(at, at)
  if tag == "n" or tag == "r" then
    local digits, stop = text:match("^([^;]*);()", at + 1)
    local number = tonumber(digits)
    if tag == "r" then number = known[number] end
    if number == nil then damaged(at) end
    return number, stop
  elseif tag == "s" then
    local size, start = text:match("^(%d+):()", at + 1)
    if not size or start + size - 1 > #text then damaged(at) end
    return text:sub(start, start + size - 1), start + size
  elseif tag == "{" then
    if depth > MOST_DEEP then damaged(at) end
    local t, key, value = {}
    known[#known + 1] = t
    at = at + 1
    while text:sub(at, at) ~= "}" do
      key, at = decode(text, at, known, depth + 1)
      if type(key) ~= "string" and (type(key) ~= "number" or key ~= key) then damaged(at) end
      value, at = decode(text, at, known, depth + 1)
      t[key] = value
    end
    return t, at + 1
  end
  if tag ~= "t" and tag ~= "f" then damaged(at) end
  return tag == "t", at + 1
end

---The table that `encode` wrote, also by versions that wrote no numbers of tables; an error where the text is damaged.
function saved_tables.decode(text) return (decode(text, 1, {}, 0)) end

return saved_tables
