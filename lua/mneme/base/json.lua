-- json.lua -- converts JSON to and from Lua values.  jansson reads it: its numbers are exact and its errors have a
-- line and a column.  Writing is done in Lua: keys are sorted, so that equal values give equal bytes, and
-- each number gets the fewest digits that read back as the same number.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"

ffi.cdef [[
typedef struct json_t { int type; volatile size_t refcount; } json_t;
typedef struct json_error_t { int line, column, position; char source[80]; char text[160]; } json_error_t;
json_t     *json_loadb(const char *buffer, size_t bytes, size_t flags, json_error_t *error);
void        json_delete(json_t *json);
const char *json_string_value(const json_t *string);
size_t      json_string_length(const json_t *string);
long long   json_integer_value(const json_t *integer);
double      json_real_value(const json_t *real);
size_t      json_array_size(const json_t *array);
json_t     *json_array_get(const json_t *array, size_t index);
void       *json_object_iter(json_t *object);
void       *json_object_iter_next(json_t *object, void *iter);
const char *json_object_iter_key(void *iter);
json_t     *json_object_iter_value(void *iter);
json_t     *json_stringn(const char *value, size_t bytes);
void        json_set_alloc_funcs(void *(*get)(size_t), void (*release)(void *));
]]
local REJECT_DUPLICATES, DECODE_ANY = 0x1, 0x4
local OBJECT, ARRAY, STRING, INTEGER, REAL, TRUE, FALSE = 0, 1, 2, 3, 4, 5, 6

-- Machines that only run Mneme have the library's real name, those that build it also the short one.
local found, C = pcall(ffi.load, "libjansson.so.4")
if not found then C = ffi.load "jansson" end

-- Where an allocation fails, jansson may leave a byte out and go on, or call the text wrong.  So its memory is the
-- engine's, which remembers; free() takes what was there before.
C.json_set_alloc_funcs(engine.C.mn_memory_new, engine.C.mn_memory_free)
local starved = engine.C.mn_memory_starved

local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }
local Array = {}

---Mark a table as an array, so that an empty one is written as [].
---@param t table
---@return table t
function json.array(t)
  errors.need("json: what is to be an array", t, nil, "a list")
  return setmetatable(t, Array)
end

---Did this table come from (or will it become) a JSON array?
---@param t any
---@return boolean
function json.is_array(t) return type(t) == "table" and (getmetatable(t) == Array or #t > 0) end

local function to_lua(j)
  local kind = j.type
  if kind == OBJECT then
    local t, iter = {}, C.json_object_iter(j)
    while iter ~= nil do
      t[ffi.string(C.json_object_iter_key(iter))] = to_lua(C.json_object_iter_value(iter))
      iter = C.json_object_iter_next(j, iter)
    end
    return t
  elseif kind == ARRAY then
    return json.array(tables.filled(tonumber(C.json_array_size(j)), function(i) return to_lua(C.json_array_get(j, i - 1)) end))
  elseif kind == STRING then return ffi.string(C.json_string_value(j), C.json_string_length(j))
  elseif kind == INTEGER then return tonumber(C.json_integer_value(j))
  elseif kind == REAL then return C.json_real_value(j)
  elseif kind == TRUE then return true
  elseif kind == FALSE then return false end
  return json.null
end

---Read JSON text.
---@param text string
---@param name string? what to call it in an error: its path
---@return any? value tables, strings, numbers, booleans, json.null; nil where the text is not JSON
---@return string? message "config.json:3:7: ..."
function json.decode(text, name)
  if type(text) ~= "string" then errors.raise(("json: %s to decode, expected a text"):format(type(text))) end
  local e = ffi.new "json_error_t"
  local j = C.json_loadb(text, #text, REJECT_DUPLICATES + DECODE_ANY, e)
  if starved() then
    C.json_delete(j)
    errors.fail("no memory to read the JSON of " .. (name or "a text"))
  end
  if j == nil then
    return nil, ("%s:%d:%d: not valid JSON: %s"):format(name or "json", e.line, e.column, (ffi.string(e.text):gsub("%c", " ")))
  end
  local value = to_lua(j)
  C.json_delete(j)
  return value
end

local function number(x)
  if x ~= x then return '"NaN"' end
  if x == math.huge then return '"Infinity"' elseif x == -math.huge then return '"-Infinity"' end
  if x == 0 then return 1 / x < 0 and "-0.0" or "0" end
  if x % 1 == 0 and math.abs(x) < 2 ^ 53 then return ("%.0f"):format(x) end
  for digits = 15, 17 do
    local s = ("%." .. digits .. "g"):format(x)
    if tonumber(s) == x then return s end
  end
end

local short = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }

local function text(s)
  local valid = C.json_stringn(s, #s)
  if starved() then errors.fail "no memory to write JSON" end
  if valid == nil then s = s:gsub("[\128-\255]", "?") else C.json_delete(valid) end
  s = s:gsub('[%z\1-\31"\\\127]', function(c) return short[c] or ("\\u%04x"):format(c:byte()) end)
  return '"' .. s .. '"'
end

local function sorted_keys(t)
  for key in pairs(t) do if type(key) ~= "string" then errors.raise(("json: key %s of an object is not a string"):format(tostring(key))) end end
  return tables.keys(t)
end

-- Files nest no deeper than jansson reads; a table that holds itself would have no end.
local MOST_DEEP, deep = 2000, 0

local write
local function write_all(out, open, close, count, item, indent, pad)
  local inner = pad and indent and pad .. indent
  deep = deep + 1
  if deep > MOST_DEEP then errors.raise(("json: tables nest deeper than %d, or one holds itself"):format(MOST_DEEP)) end
  out[#out + 1] = open
  for i = 1, count do
    if i > 1 then out[#out + 1] = indent and "," or ", " end
    if inner then out[#out + 1] = "\n" .. inner end
    item(i, inner)
  end
  deep = deep - 1
  if inner and count > 0 then out[#out + 1] = "\n" .. pad end
  out[#out + 1] = close
end

function write(out, v, indent, pad)
  local kind = type(v)
  if v == json.null then out[#out + 1] = "null"
  elseif kind == "number" then out[#out + 1] = number(v)
  elseif kind == "boolean" then out[#out + 1] = tostring(v)
  elseif kind == "string" then out[#out + 1] = text(v)
  elseif json.is_array(v) then
    write_all(out, "[", "]", #v, function(i, inner) write(out, v[i], indent, inner) end, indent, pad)
  elseif kind == "table" then
    local keys = sorted_keys(v)
    write_all(out, "{", "}", #keys, function(i, inner)
      out[#out + 1] = text(keys[i]) .. ": "
      write(out, v[keys[i]], indent, inner)
    end, indent, pad)
  else
    errors.raise("json: a " .. kind .. " cannot be written",
      { hint = "tables, strings, numbers, booleans, json.null can" })
  end
end

---Write a value as JSON.  A table with numbers 1.. as keys is an array, any other an object with sorted
---keys.  NaN and the infinities, which JSON lacks, become the strings "NaN", "Infinity", "-Infinity".
---@param value any
---@param indent string? what one level is set in by, on lines of their own; nil: all on one line
---@return string
function json.encode(value, indent)
  local out = {}
  deep = 0
  write(out, value, indent, "")
  return table.concat(out)
end

-- JSON objects that carry the checksum of their own text, so that a reader sees whether somebody altered them, and the number of
-- their format, so that a reader refuses what a later version of Mneme wrote.
local sealed = { FORMAT = 1, NEWER = "a later version of Mneme wrote it" }         -- of config.json and study.json; 0, none: earlier versions

---An object as text, with its checksum as the first entry.
---@param object table with at least one key; an old checksum in it is left out
---@param compact boolean? in one line
---@return string
function sealed.encode(object, compact)
  local plain = tables.each(object, function(value, key) if key ~= "checksum" then return value end end)
  local written = (compact and json.encode(plain) or json.encode(plain, "  ")) .. "\n"
  return ('{\n  "checksum": "%s",%s'):format(files.crc(written), written:sub(2))
end

---Is a text what sealed.encode wrote?
---@param whole string
---@return boolean? is_whole nil: it carries no checksum
function sealed.check(whole)
  local said, rest = whole:match '^{\n  "checksum": "(%x+)",(.*)$'
  if said then return files.crc("{" .. rest) == said end
  if whole:find '^%s*{[^{}]-"checksum"%s*:' then return false end
  return nil
end

---Refuses what has a later format than this version reads.
---@param path string
---@param format any the number of its format; nil: an earlier version wrote it, without one
---@param most integer? the last one that is read; default: sealed.FORMAT
function sealed.need(path, format, most)
  most = most or sealed.FORMAT
  if type(format) == "number" and not (format <= most) then
    errors.fail(("%s: %s: format %s, expected %d at most"):format(path, sealed.NEWER, tostring(format), most), "update Mneme")
  end
end

json.sealed = sealed

return json
