-- setting_types.lua -- types of settings: which values a default allows, how text becomes a value, how values merge.
-- A setting has the type of its default: a number, boolean or string; a list; a named thing with options,
-- { "gru", d_in = 16 }, whose first item is the name; or a group, a table of further settings.
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local did_you_mean = lazy "mneme.base.did_you_mean"
local tables = require "mneme.base.tables"
local json = require "mneme.base.json"

local values = {}

---Is it a thing with options: { "gru", d_model = 680 }?
function values.is_named(v) return type(v) == "table" and type(v[1]) == "string" and #v == 1 end

local function is_list(v) return type(v) == "table" and #v > 0 and not values.is_named(v) end

---A deep copy.
function values.copy(v) return type(v) == "table" and tables.each(v, values.copy) or v end

---How a value is shown to people.
function values.show(v)
  if type(v) == "table" then
    local parts, named = tables.map(v, values.show), values.is_named(v)
    if is_list(v) then return table.concat(parts, ",") end
    for _, key in ipairs(tables.keys(v)) do
      if not (named and key == "1") then parts[#parts + 1] = key .. "=" .. values.show(v[key]) end
    end
    return table.concat(parts, " ")
  end
  if type(v) ~= "number" then return (tostring(v):gsub("[\r\n]", { ["\r"] = "\\13", ["\n"] = "\\10" })) end          -- in a line
  local plain, short = ("%.10g"):format(v), ("%g"):format(v):gsub("e%+?0?", "e")
  return #short < #plain and tonumber(short) == v and short or plain      -- 5e6, 160, 0.0001
end

-- Refuse a default that no setting can have; `inside` are the tables around it.
local function check_default(what, key, v, where, inside)
  local kind = inside[v] and "table that holds itself" or type(v)
  if kind == "table" then
    inside[v] = true
    for k, item in pairs(v) do check_default(what, key .. "." .. tostring(k), item, where, inside) end
    inside[v] = nil
  elseif kind ~= "number" and kind ~= "boolean" and kind ~= "string" then
    errors.raise(("%s: %s is a %s, expected a number, boolean, string or table"):format(what, key, kind), { where = where })
  end
end

---What is declared of a setting: its name, its default and what is said about it, a text or { text, range = {lo, hi}, choices = {...}, whole = true }.
---@param what string that declares it: "config"
---@param where string? "file:line" instead of the user's line
---@return table about
function values.declared(what, key, default, about, where)
  local function refuse(...) errors.raise(("%s: "):format(what) .. (...):format(select(2, ...)), { where = where }) end
  if type(key) ~= "string" or not key:find "^[%a_][%w_]*$" then refuse("'%s' cannot be a key, expected letters, digits and _", tostring(key)) end
  check_default(what, key, default, where, {})
  about = type(about) == "string" and { about } or about or {}
  if type(about) ~= "table" or about[1] ~= nil and type(about[1]) ~= "string" then refuse("%s: expected a text or { text, range = {lo, hi} }", key) end
  for field in pairs(about) do
    if field ~= 1 and field ~= "range" and field ~= "choices" and field ~= "whole" then
      errors.unknown("field of " .. key, field, { "range", "choices", "whole" }, nil, where)
    end
  end
  for _, field in ipairs { "range", "choices" } do
    if about[field] ~= nil and type(about[field]) ~= "table" then refuse("%s: %s is a %s, expected a list", key, field, type(about[field])) end
  end
  local lo, hi = unpack(about.range or { 0, 0 })
  if type(lo) ~= "number" or type(hi) ~= "number" then refuse("%s: range is { %s, %s }, expected { lo, hi }", key, tostring(lo), tostring(hi)) end
  return about
end

---What switches are written as.
values.switches = { ["1"] = true, ["true"] = true, yes = true, on = true, ["0"] = false, ["false"] = false, no = false, off = false }

-- What to write for another program's value; else what the setting is.
local function meant(key, text)
  local own = key:match "^core%.(.*)"
  if text:find("..", 1, true) then return "several values, with commas between, and ranges are for mneme sweep" end
  return did_you_mean.hint(key .. " =", text) or did_you_mean.shown(own and "key of core " or "setting", own or key, errors.about):match "^ %((.*)%)$"
end

local function bad(key, text, expected, hint)
  errors.usage(("%s=%s: expected %s"):format(key, text, expected), hint)
end

local with_commas = { run = true, resume = true, previous = true, init = true, init_map = true, freeze = true }    -- texts in which a comma is a comma

---What a word of a command line sets.
---@param word string "core.eta=8"
---@return string? key nil: it is no key=value
---@return string? text
function values.pair(word)
  local key, text = word:match "^%-*([%a_][%w_.%-]*)=(.*)$"
  return key == "init.map" and "init_map" or key, text            -- no key of a table, as the others with a dot are
end

---The words that set none of these.
---@param ... string keys
function values.without(words, ...)
  local left = tables.set { ... }
  return tables.map(words, function(word) return not left[values.pair(word) or ""] and word or nil end)
end

---Does a setting have one value, so that a comma parts several of a sweep?
---@param key string may be dotted
function values.is_one(key, default) return not with_commas[key] and (key:find(".", 1, true) or not is_list(default)) end

local suffix = { k = 1e3, K = 1e3, M = 1e6, G = 1e9 }

---A number as people write it: 5e6, 1_000_000, 300k, 2.5M; nil: it is none.
---@return number? n
---@return string? beyond of a number that no double holds: "large" (n is infinite) or "small" (n is 0)
function values.number(text)
  local digits, letter = text:match "^([%d._]+)([kKMG]?)$"
  local plain = (digits or text):gsub("(%d)_%f[%d]", "%1")
  local n = tonumber(plain)
  if not n then return nil end
  n = n * (suffix[letter] or 1)
  local written = text:find "^%s*[+-]?%.?%d"                     -- inf and nan are words
  return n, written and (math.abs(n) == math.huge and "large" or n == 0 and text:match "^[^eEpP]*":find "[1-9]" and "small") or nil
end

---The names of a list with commas between, without the blanks around them.
function values.items(text) return tables.found(text .. ",", "%s*([^,]-)%s*,") end

---Text as a value of the kind that `like` has.
function values.parse(key, text, like)
  local kind = type(like)
  if kind ~= "boolean" and text:find(",", 1, true) and not with_commas[key] then
    local first, last = text:match "^(%d[%d.]*),.*,?(%f[%d.]%d[%d.]*)$"
    local range = key:find "%.remember$" and first and ("; channels from %s to %s steps: %s=%s..%s"):format(first, last, key, first, last) or ""
    bad(key, text, "one " .. kind, key == "seed" and "seeds=" .. text .. " makes a run of each" or "lists of values are for mneme sweep" .. range)
  elseif kind == "number" then
    local n, beyond = values.number(text)
    if beyond then bad(key, text, beyond == "small" and "0 or a number of at least 5e-324" or "a number of at most 1.8e308") end
    if not n or n ~= n or math.abs(n) == math.huge then bad(key, text, like > 0 and like < 1 and "a number, such as 0.01 or 3e-4"
      or "a number, such as 5e6, 300k or 2M", meant(key, text)) end
    return n
  elseif kind == "boolean" then
    local b = values.switches[text:lower()]
    if b == nil then bad(key, text, "1 or 0 (or true, false, on, off, yes, no)") end
    return b
  end
  return text
end

-- Text of unknown type.
local function guess(key, text)
  local n, beyond = values.number(text)
  if beyond then return values.parse(key, text, 0) end
  if n and math.abs(n) < math.huge then return n end
  if text == "true" or text == "false" then return text == "true" end
  return text
end

local function parse_list(key, text, like) return tables.map(values.items(text), function(item) return values.parse(key, item, like[1]) end) end

local function set_option(thing, key, option, text)
  if option:find(".", 1, true) then errors.usage(("%s.%s: an option has no parts"):format(key, option)) end
  local read = thing[option] == nil and guess or values.parse
  thing[option] = read(key .. "." .. option, text, thing[option])
end

-- Set one part of a group.
local function set_part(group, path, rest, text)
  local key, deeper = rest:match "^([^.]*)%.?(.*)$"
  local old = group[key]
  path = path and path .. "." .. key or key
  if old == nil then errors.unknown("setting", path, tables.keys(group)) end
  if type(old) == "table" and deeper ~= "" then
    if values.is_named(old) then set_option(old, path, deeper, text)
    else set_part(old, path, deeper, text) end
  elseif deeper ~= "" then
    errors.usage(("%s.%s: %s is a %s and has no parts"):format(path, deeper, path, type(old)))
  elseif values.is_named(old) then group[key] = { text }
  elseif is_list(old) then group[key] = parse_list(path, text, old)
  elseif type(old) == "table" then
    errors.usage(("%s=%s: it is a group of settings"):format(path, text),
      "such as " .. path .. "." .. tostring(tables.keys(old)[1]))
  else group[key] = values.parse(path, text, old) end
end

-- ---- equal values ----

---The type of a setting, as a value that has it; nil: it is not declared, and what a text says counts.
---@param schema table key -> { default = }
---@param path string dotted for parts and options
function values.like(schema, path)
  local key, rest = path:match "^([^.]*)%.?(.*)$"
  local v = schema[key] and schema[key].default
  for part in rest:gmatch "[^.]+" do
    if type(v) ~= "table" then return nil end
    v = v[part]
  end
  if path == "size" and v == "script" then return nil end        -- or a number of parameters
  return v
end

---A text that equal values have, in whatever way they are written: 1e-3 and 0.001, 300k and 3e5; of a boolean 1 and true.
---@param v any a value, or a text that gives one
---@param like any a value of its type; nil: a text is a number where it reads as one
function values.key(v, like)
  if type(v) == "string" and is_list(like) then
    return table.concat(tables.map(values.items(v), function(item) return values.key(item, like[1]) end), ",")
  elseif type(v) == "string" and type(like) == "boolean" then
    local b = values.switches[v:lower()]
    if b ~= nil then v = b end
  elseif type(v) == "string" and (like == nil or type(like) == "number") then
    local n, beyond = values.number(v)
    if n and not beyond and n - n == 0 then v = n end
  end
  return type(v) == "number" and ("%.17g"):format(v + 0) or values.show(v)
end

---Is a text of a value, or its label, this value?
---@param value any has the type
function values.same(text, value)
  return values.show(text) == values.show(value) or value ~= nil and values.key(text, value) == values.key(value, value)
end

---The arguments of a run as a text that equal ones have, in whatever order and way they are written.
---@param words string[] key=value; of a key that is there twice the last counts
---@param schema table key -> { default = }
function values.same_words(words, schema)
  local said = {}
  for _, word in ipairs(words) do
    local key, text = values.pair(word)
    local env = key == "env" and require("mneme.base.engine").C.mn_env_find(text) or -1           -- tmaze is tmaze-v0
    if key then said[key] = key .. "=" .. (env >= 0 and env or values.key(text, values.like(schema, key))) else said[word] = word end
  end
  return table.concat(tables.map(tables.keys(said), function(key) return said[key] end), " ")
end

---The keys of a schema: those that the script declares, which errors list, and those that only a learner knows.
---@param schema table key -> { default =, of_learner = }
---@return string[] declared
---@return string[] others
function values.known(schema)
  local declared, others = {}, {}
  for _, key in ipairs(tables.keys(schema)) do table.insert(schema[key].of_learner and others or declared, key) end
  return declared, others
end

---Set `key` (dotted for parts and options) of cfg from text.
---@param schema table key -> { default = }
function values.set(cfg, schema, path, text)
  local key, rest = path:match "^([^.]*)%.?(.*)$"
  local entry = schema[key]
  if not entry then errors.unknown("setting", key, values.known(schema)) end
  if not values.is_named(entry.default) then
    if rest == "" and type(entry.default) ~= "table" then cfg[key] = values.parse(key, text, entry.default)
    elseif rest == "" and is_list(entry.default) then cfg[key] = parse_list(key, text, entry.default)
    else set_part(cfg, nil, path, text) end
  elseif rest ~= "" then set_option(cfg[key], key, rest, text)
  elseif text:find(",", 1, true) then bad(key, text, "one name", "lists of values are for mneme sweep")
  elseif text == "" then bad(key, text, "a name")
  elseif cfg[key][1] ~= text then
    cfg[key] = text == entry.default[1] and values.copy(entry.default) or { text }
  end
end

---Lay `new` over `old`: groups and options part by part, a thing of another name whole.
function values.merge(key, old, new)
  if type(old) == "table" and type(new) == "table" then
    if is_list(old) then return values.copy(new) end
    if values.is_named(old) and values.is_named(new) and old[1] ~= new[1] then return values.copy(new) end
    return tables.merged(values.copy(old), values.copy(new))
  end
  if values.is_named(old) and type(new) == "string" then return old[1] == new and old or { new } end
  if type(old) ~= type(new) then
    errors.usage(("%s = %s, expected a %s"):format(key, values.show(new), type(old)))
  end
  return new
end

---The entry of a thing with options in a table by names: that of "gtrxl memory=256" where it has these options, else that of "gtrxl"; of several
---the one that names most options.
---@param entries table<string, any>
---@param thing table { name, option = value }
function values.entry(entries, thing)
  local best, most = entries[thing[1]], 0
  for _, key in ipairs(tables.keys(entries)) do
    local name, options = key:match "^(%S+) (.+)$"
    local fits, n = name == thing[1], 0
    for option, value in (options or ""):gmatch "(%S+)=(%S+)" do
      fits, n = fits and thing[option] ~= nil and values.show(thing[option]) == value, n + 1
    end
    if fits and n >= most then best, most = entries[key], n end
  end
  return best
end

---A value as command-line arguments: { "core=galite", "core.eta=2" }.
function values.words(key, v)
  local list = {}
  if type(v) == "number" and tonumber(values.show(v)) ~= v then list[1] = ("%s=%.17g"):format(key, v)
  elseif type(v) ~= "table" or is_list(v) then list[1] = key .. "=" .. values.show(v)
  else
    if values.is_named(v) then list[1] = key .. "=" .. v[1] end
    for _, part in ipairs(tables.keys(v)) do
      if part ~= "1" then
        for _, word in ipairs(values.words(key .. "." .. part, v[part])) do list[#list + 1] = word end
      end
    end
  end
  return list
end

---Check a resolved value against what the script says about it: { range =, choices =, whole = }.
function values.check(key, v, about)
  if type(v) == "number" then
    local lo, hi = unpack(about.range or {})
    lo, hi = lo or -math.huge, hi or math.huge
    if not (v >= lo and v <= hi) then bad(key, values.show(v), (hi >= 2 ^ 53 and "at least %s" or "%s..%s"):format(values.show(lo), values.show(hi)))
    elseif about.whole and v % 1 ~= 0 then bad(key, values.show(v), "a whole number") end
  end
  if not about.choices or tables.has(about.choices, v) then return end
  local near = errors.nearest(tostring(v), about.choices)
  bad(key, values.show(v), "one of " .. table.concat(about.choices, ", "), near and "did you mean '" .. near .. "'?" or meant(key, tostring(v)))
end

-- ---- config.json ----

---A value as config.json holds it: a thing with options is { name = "gru", ... }.
function values.to_json(v)
  if type(v) ~= "table" then return v end
  local t = tables.each(v, values.to_json)
  if values.is_named(v) then t[1], t.name = nil, v[1] end
  return is_list(v) and json.array(t) or t
end

---The other direction; `like`, the default, shows which values are named things with options.
function values.from_json(v, like)
  if type(v) ~= "table" then return v end
  local t = tables.each(v, function(item, key) return values.from_json(item, type(like) == "table" and like[key] or nil) end)
  if values.is_named(like) and t.name then t[1], t.name = t.name, nil end
  return t
end

return values
