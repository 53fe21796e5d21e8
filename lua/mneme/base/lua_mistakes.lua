-- lua_mistakes.lua -- what was probably meant, where code fails: a `.` for a `:`, a misspelt name.  Only errors ask: a line that works costs nothing.
local errors                 -- errors.lua, which hands itself over
local tables = require "mneme.base.tables"

local traps = {}

-- ---- looking at the code that failed ----

-- A line of a chunk, or nil.
local function line_of(source, n) return tables.found(errors.text_of(source) .. "\n", "(.-)\n")[n] end

-- The level, seen from the caller, of the nearest frame of the user's code.
local function user_level()
  for level = 3, 200 do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if not errors.ours(info) and info.currentline > 0 then return level - 1, info end
  end
end

-- What a name means in a frame, and all names that it has there.
local function variables(level)
  local found, names = {}, {}
  local function add(name, value)
    if name and name:find "^[%a_]" then
      if found[name] == nil then names[#names + 1] = name end
      found[name] = value
    end
  end
  local f = debug.getinfo(level + 1, "f").func
  for _, of in ipairs { _G, getfenv(f) } do for name, value in pairs(of) do if type(name) == "string" then add(name, value) end end end
  for i = 1, 255 do add(debug.getupvalue(f, i)) end          -- a closure has fewer: the others have no name
  for i = 1, 255 do add(debug.getlocal(level + 1, i)) end
  return found, names
end

local function field(value, key)
  local ok, inner = pcall(function() return value[key] end)
  return ok and inner or nil
end

-- "a.b.c" among variables.
local function resolve(path, found)
  local value
  for key in path:gmatch "[%w_]+" do
    if value == nil then value = found[key] else value = field(value, key) end
    if value == nil then return nil end
  end
  return value
end

-- The names by which a value may be indexed.
local function keys_of(value)
  local keys = {}
  for _ = 1, 10 do
    for key in pairs(type(value) == "table" and value or {}) do if type(key) == "string" and not key:find "^__" then keys[key] = true end end
    value = type(value) == "table" and (getmetatable(value) or {}).__index
  end
  return tables.keys(keys)
end

-- ---- a dot for a colon ----

-- The name of a method as its class defines it: `function Env:step(actions)`.
local function defined_name(info)
  return (line_of(info.source, info.linedefined) or ""):match "^function [%w_]+:([%w_]+)%("
end

-- A function that is found through the class of a value, not in the value itself.
local function is_method(value, name)
  if type(value) == "table" and (value == package.loaded.mneme or rawget(value, name) ~= nil) then return false end
  return (type(value) == "table" or type(value) == "cdata") and type(field(value, name)) == "function"
end

-- What stands before `.name(`, or another mark, in a line: f(value, text of the first argument) says which of several it is.
local function receiver(line, mark, name, found, f)
  for path, argument in line:gmatch("([%a_][%w_.]*)" .. mark .. name .. "%s*[({\"']%s*([%w_.]*)") do
    if f(resolve(path, found), argument ~= "" and argument == path) then return path end
  end
end

-- What the line says decides, not the values of arguments: those that compiled code does not need any more are lost.
local function called_wrongly()
  local level, user = user_level()
  local info = level and level > 2 and debug.getinfo(level - 1, "nSf")
  if not info or info.what == "C" or info.namewhat == "metamethod" then return nil end
  local parameter, first = debug.getlocal(level - 1, 1)
  local line, found, name = line_of(user.source, user.currentline) or "", variables(level), info.name
  if parameter == "self" and not (name and line:find("[.:]" .. name .. "%f[^%w_]")) then name = defined_name(info) end    -- return x.f() leaves no name
  if not name or not parameter or not name:find "^[%a_]" then return nil end
  if info.namewhat == "method" then
    local mn = package.loaded.mneme
    local function is_module(x) return type(x) == "table" and (x == mn or rawget(x, name) == info.func) end
    local path = parameter ~= "self" and (receiver(line, ":", name, found, is_module) or first == mn and "mn")
    return path and ("%s:%s(...) passes %s itself as the first argument: write %s.%s(...), with a dot"):format(path, name, path, path, name) or nil, true
  end
  local path = receiver(line, "%.", name, found, function(x, passed) return not passed and not rawequal(x, first) and is_method(x, name) end)
  if not path and line:find("[%)%]]%." .. name .. "%s*[({\"']") and not line:find "require" then                -- f(x).name(...)
    path = (first == nil or parameter == "self" and field(first, name) ~= info.func) and "object" or nil
  end
  if not path then return nil end
  return ("%s.%s(...) leaves out what it is called on: write %s:%s(...), with a colon"):format(path, name, path, name),
    parameter == "self" or type(first) ~= "cdata"
end

local looking = false                              -- looking at values may raise errors, which look no further

---Why a function of the library failed, where it was called with a dot instead of a colon, or the other way round.
---@return string? message
---@return boolean? sure nothing else can be the reason
function traps.call()
  if looking then return nil end
  looking = true
  local ok, message, sure = pcall(called_wrongly)
  looking = false
  if ok then return message, sure end
end

---How a function of the library is called, in which an error of Lua came up, at most two calls deep: an argument is missing, or of another type.
---@return string? hint
function traps.signature()
  local level = user_level()
  local info = level and level > 2 and debug.getinfo(level - 1, "nfSu")
  local name, names = info and info.name or info and defined_name(info), {}
  if not name or level > 7 or info.what == "C" or not errors.ours(info) then return nil end
  for i = 1, info.nparams do names[i] = debug.getlocal(info.func, i) end
  if names[1] == "self" then table.remove(names, 1) end
  return names[1] and ("expected %s(%s)"):format(name, table.concat(names, ", ")) or nil
end

-- ---- other errors of running code ----

---What a global name that is not there probably means.
---@param level integer of the frame that reads it, seen from the caller
---@return string? hint
function traps.global(name, level)
  local _, names = variables(level + 1)
  for local_names in errors.text_of(debug.getinfo(level + 1, "S").source):gmatch "%f[%w]local%s+([%w_,%s]*)" do
    for word in local_names:gmatch "[%a_][%w_]*" do names[#names + 1] = word end
  end
  local near = errors.nearest(name, names)
  if near == name then return "a local is there after its statement, to its block's end; local x = f() (x) calls what f() gave: write ; before (" end
  return near and "did you mean '" .. near .. "'?"
end

-- Of `x.name` or `x:name(...)` where there is no name: the nearest that x has.
local function missing_field(line, name, found)
  for path in line:gmatch("([%a_][%w_.]*)[.:]" .. name .. "%f[^%w_]") do
    local value = resolve(path, found)
    local near = value ~= nil and field(value, name) == nil and errors.nearest(name, keys_of(value))
    if near then return ("did you mean '%s'?"):format(near) end
  end
end

---What the user's line reads that is nil, such as a misspelt self.bnus: for "mul: b is missing".
---@return string? hint
function traps.nil_field()
  local level, info = user_level()
  if not level then return nil end
  local line, found = (line_of(info.source, info.currentline) or ""):gsub("%-%-.*", ""):gsub('"[^"]*"', '""'), variables(level)
  for path, name in line:gmatch "%f[%w_]([%a_][%w_.]*)%.([%a_][%w_]*)%f[^%w_]" do
    local value = resolve(path, found)
    if type(value) == "table" and field(value, name) == nil and rawget(value, name) ~= false then
      local near = errors.nearest(name, keys_of(value))
      return ("%s.%s is nil"):format(path, name) .. (near and ("; did you mean '%s'?"):format(near) or "")
    end
  end
end

---A hint for an error of Lua itself in the user's code; call it where the error was raised, as a handler of xpcall does.
---@param message string "script.lua:3: attempt to index field 'x' (a nil value)"
---@return string?
function traps.running(message)
  local level, info = user_level()
  local n = tonumber(message:match "^[^\n]-:(%d+): ")
  local kind, name = message:match "(%l+) '([%a_][%w_]*)' %(a nil value%)$"
  if not level or not kind or info.currentline ~= n then return nil end
  if kind == "global" then return traps.global(name, level) end
  return kind ~= "local" and missing_field(line_of(info.source, n) or "", name, (variables(level))) or nil
end

return function(of) errors = of return traps end
