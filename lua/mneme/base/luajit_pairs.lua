-- luajit_pairs.lua -- a pairs() for Mneme's own files and for those of users (base/trusted_code.lua), for two reasons; that of the process stays.
-- Order: LuaJIT walks names in an order that differs from process to process (Debian's seeds its hash at start-up).  While a function of
-- a user's environment runs, pairs() takes keys in a fixed order, so that the same seed gives the same bits: see `ordered`.
-- A fault: LuaJIT has an instruction for loops over `next`; where it stops compiling such a loop half-way, the loop ends early, or never
-- (LuaJIT's issues 744, 827 and 1510).  2.1.0-beta3, which Debian 12 has, does both: of 100,000 rounds of a loop within a loop some 60,000
-- miss keys (tests/project/test_luajit_pairs.lua).  The rolling release 2.1.1774896198 misses none.  `mneme doctor` reports it.
local next, native = next, pairs
local library = debug.getinfo(1, "S").source:match "^@(.*)mneme/base/luajit_pairs%.lua$" or "./lua/"

local luajit_pairs = {}
local in_order = false                 -- true while a function that `ordered` calls runs

---Does this LuaJIT have the fault?  All versions before the rolling releases (2.1.0 and its betas) count as faulty.
function luajit_pairs.faulty() return jit.version_num < 20199 end

-- The instruction does not take this function.  Nor is it compiled: what next() compiles to swaps the halves of two pointers where registers
-- are short, and the process dies (a cmp of what rdx points to, after `xchg eax, edx`, at the end of a loop over keys that are then sorted).
local function following(t, key) return next(t, key) end
if luajit_pairs.faulty() then jit.off(following) end

local function complete_pairs(t)
  if type(t) ~= "table" then error(("bad argument #1 to 'pairs' (table expected, got %s)"):format(type(t)), 2) end
  return following, t, nil
end

local plain = luajit_pairs.faulty() and complete_pairs or native

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
function luajit_pairs.pairs(t)
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
function luajit_pairs.ordered(f, ...)
  local before = in_order
  in_order = true
  return ended(before, xpcall(f, handler, ...))
end

luajit_pairs.next = luajit_pairs.faulty() and following or next

-- Where pairs() is faulty, Mneme's files, which are loaded from here on, get the other one: an environment of globals, of which only what is replaced
-- or often read is kept; any else is the process's.
if luajit_pairs.faulty() then
  local globals = setmetatable({}, { __index = _G, __newindex = _G })
  for name, value in next, _G do if name ~= "print" and type(value) == "function" then rawset(globals, name, value) end end
  for name, value in next, package.loaded do if type(name) == "string" and _G[name] == value then rawset(globals, name, value) end end
  rawset(globals, "pairs", complete_pairs)
  rawset(globals, "next", following)
  table.insert(package.loaders, 2, function(name)
    local stem = name:find "^mneme%." and library .. name:gsub("%.", "/")
    for _, ending in ipairs(stem and { ".lua", "/init.lua" } or {}) do
      local f = io.open(stem .. ending, "rb")
      if f then
        f:close()
        return setfenv(assert(loadfile(stem .. ending)), globals)
      end
    end
  end)
end
require("mneme.base.errors").calls(luajit_pairs.ordered)

return luajit_pairs
