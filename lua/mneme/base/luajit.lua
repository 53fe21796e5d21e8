-- luajit.lua -- what Mneme does about LuaJIT: bytecode in place of text, which it reads in a tenth of the time, and a pairs() for Mneme's own files and
-- for those of users (base/trusted_code.lua), for two reasons; that of the process stays.
-- Order: LuaJIT walks names in an order that differs from process to process (Debian's seeds its hash at start-up).  While a function of
-- a user's environment runs, pairs() takes keys in a fixed order, so that the same seed gives the same bits: see `ordered`.
-- A fault: LuaJIT has an instruction for loops over `next`; where it stops compiling such a loop half-way, the loop ends early, or never
-- (LuaJIT's issues 744, 827 and 1510).  2.1.0-beta3, which Debian 12 has, does both: of 100,000 rounds of a loop within a loop some 60,000
-- miss keys (tests/project/test_luajit_pairs.lua).  The rolling release 2.1.1774896198 misses none.  `mneme doctor` reports it.
local next, native, io = next, pairs, io            -- not a script's own
local library = debug.getinfo(1, "S").source:match "^@(.*)mneme/base/luajit%.lua$" or "./lua/"

local luajit = {}
local in_order = false                 -- true while a function that `ordered` calls runs

---Does this LuaJIT have the fault?  All versions before the rolling releases (2.1.0 and its betas) count as faulty.
function luajit.faulty() return jit.version_num < 20199 end

-- The instruction does not take this function.  Nor is it compiled: what next() compiles to swaps the halves of two pointers where registers
-- are short, and the process dies (a cmp of what rdx points to, after `xchg eax, edx`, at the end of a loop over keys that are then sorted).
local function following(t, key) return next(t, key) end
if luajit.faulty() then jit.off(following) end

local function complete_pairs(t)
  if type(t) ~= "table" then error(("bad argument #1 to 'pairs' (table expected, got %s)"):format(type(t)), 2) end
  return following, t, nil
end

local plain = luajit.faulty() and complete_pairs or native

-- The keys: numbers ascending, then texts, then false and true, then what is left; and how many are left.
local function keys_in_order(t)
  local numbers, texts, rest = {}, {}, {}
  for key in following, t do
    local kind = type(key)
    local list = kind == "number" and numbers or kind == "string" and texts or rest
    if kind ~= "boolean" then list[#list + 1] = key end
  end
  table.sort(numbers)
  table.sort(texts)
  local keys, n = numbers, #numbers
  for i = 1, #texts do keys[n + i] = texts[i] end
  for i = 0, 1 do
    if rawget(t, i == 1) ~= nil then keys[#keys + 1] = i == 1 end
  end
  for i = 1, #rest do keys[#keys + 1] = rest[i] end
  return keys, #rest
end

local function walk(t, keys)
  local i = 0
  return function()
    local key, value
    repeat
      i = i + 1
      key = keys[i]
      if key == nil then return nil end
      value = rawget(t, key)
    until value ~= nil                 -- the loop may take keys away
    return key, value
  end, t, nil
end

---pairs() of users' files.
function luajit.pairs(t)
  if not in_order or type(t) ~= "table" then return plain(t) end
  local keys, odd = keys_in_order(t)
  local errors = require "mneme.base.errors"
  if odd > 1 and errors.asked_by_user() then                -- one has its place; nothing says which of several is first
    errors.raise(("pairs: %d keys are neither numbers nor texts, but a %s ..., and have no order"):format(odd, type(keys[#keys])),
      { hint = "pairs has a fixed order in an environment, so that equal seeds give equal runs; ipairs of a list has one" })
  end
  return walk(t, keys)
end

-- An error gets its place and traceback where it happens; an object of the user's own stays what it is.
local function handler(e) return type(e) == "table" and getmetatable(e) and e or require("mneme.base.errors").handler(e) end

local function ended(before, ok, ...)
  in_order = before
  if not ok then error((...), 0) end
  return ...
end

---Call f(...); until it returns or fails, pairs() takes numbers ascending, then texts sorted, then false and true.  `next` keeps its own order.
---@param f function of a user's environment
---@return any ... what f gives
function luajit.ordered(f, ...)
  local before = in_order
  in_order = true
  return ended(before, xpcall(f, handler, ...))
end

luajit.next = luajit.faulty() and following or next

-- ---- bytecode: `make` keeps the text and the bytecode of all files in one.  Bytecode counts only where the text is still that of the file, and LuaJIT
-- compiles as the one did that made it. ----

-- What tells LuaJIT from others: beside its name, which distributions leave as it is, what it makes of a function.
local function header() return ("%s %s\n%s\n"):format(jit.version, jit.arch, string.dump(luajit.compile, true)) end

local kept, entries                    -- path of that file; path below lua/ -> { at, text, code }: where it begins there, bytes of both

local function read_index()
  entries = {}
  local build, expected = os.getenv "MNEME_BUILD", header()
  for _, folder in ipairs { library .. "mneme", build } do
    local f = io.open(folder .. "/bytecode", "rb")
    if f and f:read(#expected) == expected then
      local list = f:read(tonumber(f:read "*l") or 0) or ""
      local at = f:seek()
      for name, text, code in list:gmatch "(%S+) (%d+) (%d+)\n" do
        entries[name] = { at = at, text = tonumber(text), code = tonumber(code) }
        at = at + text + code
      end
      kept = folder .. "/bytecode"
    end
    if f then f:close() end
    if kept then return end
  end
end

-- The bytecode of a text; nil: there is none of just this text.
local function of(path, text)
  if not entries then read_index() end
  local entry = entries[path]
  local f = entry and entry.text == #text and io.open(kept, "rb")
  if not f then return nil end
  local code = f:seek("set", entry.at) and f:read(entry.text) == text and f:read(entry.code)
  f:close()
  return code
end

-- Bytecode begins with ESC L J, a version, flags, the length of its name and the name; it is kept with the name "=", of one byte.
local UNNAMED, FLAGS = "=", 5
local function named(code, name)
  local length, digits = #name, ""
  repeat
    digits, length = digits .. string.char(length % 128 + (length < 128 and 0 or 128)), math.floor(length / 128)
  until length == 0
  return code:sub(1, FLAGS) .. digits .. name .. code:sub(FLAGS + 3)
end

-- The function that a file of Mneme is, by its path below lua/; nil: there is no such file.  A mistake in its text is an error.
local function load(path)
  local f = io.open(library .. path, "rb")
  if not f then return nil end
  local text, name = f:read "*a", "@" .. library .. path
  f:close()
  local code = of(path, text)
  return code and loadstring(named(code, name), name) or assert(loadstring(text, name))
end

---Compile files, for `make`.
---@param to string path of what is written
---@param paths string below lua/, with blanks between
function luajit.compile(to, paths)
  local index, bodies = {}, {}
  for path in paths:gmatch "%S+" do
    local f = assert(io.open(library .. path, "rb"))
    local text = f:read "*a"
    f:close()
    local code = string.dump(assert(loadstring(text, UNNAMED)))
    index[#index + 1], bodies[#bodies + 1] = ("%s %d %d\n"):format(path, #text, #code), text .. code
  end
  local list, f = table.concat(index), assert(io.open(to, "wb"))
  assert(f:write(header(), #list, "\n", list, table.concat(bodies)))
  assert(f:close())
end

-- Where pairs() is faulty, Mneme's files, which are loaded from here on, get the other one: an environment of globals, of which only what is replaced
-- or often read is kept; any else is the process's.
local globals
if luajit.faulty() then
  globals = setmetatable({}, { __index = _G, __newindex = _G })
  for name, value in next, _G do if name ~= "print" and type(value) == "function" then rawset(globals, name, value) end end
  for name, value in next, package.loaded do if type(name) == "string" and _G[name] == value then rawset(globals, name, value) end end
  rawset(globals, "pairs", complete_pairs)
  rawset(globals, "next", following)
end
table.insert(package.loaders, 2, function(name)
  local stem = name:find "^mneme%." and name:gsub("%.", "/")
  local chunk = stem and (load(stem .. ".lua") or load(stem .. "/init.lua"))
  return chunk and globals and setfenv(chunk, globals) or chunk
end)
require("mneme.base.errors").calls(luajit.ordered)

return luajit
