-- test_rooms_c.lua -- the rooms of engine/: which may use which, by includes and by symbols, without circles.
local lfs = require "lfs"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local root = require("mneme.base.registry").root

-- What each room may use besides itself and the four headers at the door.
local order = {
  base = {}, numerics = { "base" }, graph = { "base", "numerics" }, io = { "base" }, worlds = { "numerics" },
  recurrent = { "base", "numerics" }, attention = { "base", "numerics" }, sim = { "base", "numerics", "graph" },
  ops = { "base", "numerics", "recurrent", "attention" }, envs = { "numerics", "worlds" },
}
local door = { "canvas.h", "env.h", "mneme.h", "op.h" }
local registries = { ops = true, envs = true }
local ROOM_FILES = 30
-- Circles of files that stay: recording, replaying and reading a tensor need one another.
local allowed_circle = { ["graph/tape"] = true, ["graph/plan"] = true, ["graph/tensor"] = true }

local function none(list, what) t.ok(#list == 0, what .. ":\n  " .. table.concat(list, "\n  ")) end

local function allows(room, other)
  if room == other then return true end
  for _, name in ipairs(order[room]) do if name == other then return true end end
  return false
end

-- Every source file: { path, room, name }.
local sources = {}
for _, room in ipairs(files.list(root .. "engine")) do
  if order[room] then
    local function add(name)
      local path = root .. "engine/" .. room .. "/" .. name
      if lfs.attributes(path, "mode") == "file" then sources[#sources + 1] = { path = path, room = room, name = name }
      else for _, part in ipairs(files.list(path)) do add(name .. "/" .. part) end end          -- an environment of many files
    end
    for _, name in ipairs(files.list(root .. "engine/" .. room)) do add(name) end
  end
end

t.test("engine/ holds its four contracts and its rooms", function()
  local expected, found = {}, files.list(root .. "engine")
  for _, name in ipairs(door) do expected[name] = true end
  for room in pairs(order) do expected[room] = true end
  local wrong = {}
  for _, name in ipairs(found) do
    if not expected[name] and name ~= "README.md" then wrong[#wrong + 1] = "engine/" .. name end
    expected[name] = nil
  end
  for name in pairs(expected) do wrong[#wrong + 1] = "engine/" .. name .. " is missing" end
  none(wrong, "at the door of engine/")
end)

-- MN_<FILE>_H, or MN_<FOLDER>_<FILE>_H where two folders have files of one name.
t.test("every header has an include guard of its own, made of its file's name", function()
  local wrong, taken = {}, {}
  local function check(path, folder, name)
    local guard = files.read(path):match "\n#ifndef ([%w_]+)\n#define %1\n"
    local file, short = name:match("([%w_]+)%.h$"):upper(), (guard or ""):match "^MN_(.*)_H$"
    if short ~= file and short ~= folder:upper() .. "_" .. file then wrong[#wrong + 1] = ("%s: %s"):format(path:sub(#root + 1), guard or "none")
    elseif taken[guard] then wrong[#wrong + 1] = ("%s and %s: %s"):format(path:sub(#root + 1), taken[guard], guard) end
    taken[guard or ""] = path:sub(#root + 1)
  end
  for _, name in ipairs(door) do check(root .. "engine/" .. name, "engine", name) end
  for _, s in ipairs(sources) do
    if s.name:find "%.h$" then check(s.path, s.path:match "([%w_]+)/[^/]*$", s.name) end
  end
  for _, name in ipairs(files.list(root .. "scenes/view")) do
    if name:find "%.h$" then check(root .. "scenes/view/" .. name, "view", name) end
  end
  none(wrong, "guards")
end)

t.test(("at most %d files a room, registries excepted"):format(ROOM_FILES), function()
  local count, wrong = {}, {}
  for _, s in ipairs(sources) do
    count[s.room] = (count[s.room] or 0) + 1
  end
  for room, n in pairs(count) do
    if n > ROOM_FILES and not registries[room] then wrong[#wrong + 1] = ("%s: %d files"):format(room, n) end
  end
  none(wrong, "too large")
end)

t.test("includes follow the order of rooms", function()
  local wrong, crossing = {}, 0
  for _, s in ipairs(sources) do
    for name in files.read(s.path):gmatch '#%s*include%s+"([^"]+)"' do
      local room = name:match "^(%w+)/"
      if room then
        crossing = crossing + 1
        if not order[room] or not allows(s.room, room) then wrong[#wrong + 1] = ("%s/%s includes %s"):format(s.room, s.name, name) end
      end
      if name:find "internal%.h$" and s.room ~= "graph" and not (s.room == "sim" and s.name == "vec.h") then
        wrong[#wrong + 1] = ("%s/%s includes %s: only graph/ and sim/vec.h may"):format(s.room, s.name, name)
      end
    end
  end
  none(wrong, "includes against the order")
  t.ok(crossing > 100, crossing .. " includes between rooms were found")
end)

-- ---- symbols ----

-- symbol = object that defines it; object = the set of symbols that it uses.  Objects are named room/file.  By one nm for all of them.
local defined, used
local function read_objects()
  if defined then return defined, used end
  defined, used = {}, {}
  local paths, name_of = {}, {}
  for _, s in ipairs(sources) do
    local stem = s.name:match "^(.*)%.c$"
    local object = stem and ("%s/engine/%s/%s.o"):format(engine.build, s.room, stem)
    if object and lfs.attributes(object) then
      name_of[object], paths[#paths + 1] = s.room .. "/" .. stem, "'" .. object .. "'"
      used[name_of[object]] = {}
    end
  end
  local pipe = io.popen("nm -A " .. table.concat(paths, " ") .. " 2>/dev/null < /dev/null")
  for line in pipe:lines() do
    local object, kind, symbol = line:match "^(.*):%s*%x*%s+(%a) (mn_[%w_]+)$"
    local name = object and name_of[object]
    if kind == "U" then used[name][symbol] = true
    elseif kind and kind:find "[TDBRVW]" then defined[symbol] = name end
  end
  pipe:close()
  return defined, used
end

-- What the four contracts declare is there for everyone.
local function declared_at_the_door()
  local set = {}
  for _, name in ipairs(door) do
    for symbol in files.read(root .. "engine/" .. name):gmatch "(mn_[%w_]+)%s*%(" do set[symbol] = true end
  end
  return set
end

-- The registry of ops, and of environments, names every file of its folder.
local function registers(symbol) return symbol:find "^mn_op_" or symbol:find "^mn_env_" end

t.test("symbols follow the order of rooms", function()
  read_objects()
  if next(used) == nil then t.skip "the build has no object files" end
  local public, wrong = declared_at_the_door(), {}
  for name, symbols in pairs(used) do
    for symbol in pairs(symbols) do
      local home = defined[symbol]
      if home and not public[symbol] and not registers(symbol) and not allows(name:match "^%w+", home:match "^%w+") then
        wrong[#wrong + 1] = ("%s uses %s of %s"):format(name, symbol, home)
      end
    end
  end
  none(wrong, "symbols against the order")
end)

-- Strongly connected components of graph[name] = { other = true } with more than one member (Tarjan 1972).
local function circles(graph)
  local index, low, stack, on, found, n = {}, {}, {}, {}, {}, 0
  local function visit(v)
    n = n + 1
    index[v], low[v], on[v] = n, n, true
    stack[#stack + 1] = v
    for w in pairs(graph[v] or {}) do
      if not index[w] then
        visit(w)
        low[v] = math.min(low[v], low[w])
      elseif on[w] then low[v] = math.min(low[v], index[w]) end
    end
    if low[v] < index[v] then return end
    local circle, w = {}
    repeat
      w = table.remove(stack)
      on[w] = nil
      circle[#circle + 1] = w
    until w == v
    if #circle > 1 then table.sort(circle) found[#found + 1] = circle end
  end
  for v in pairs(graph) do if not index[v] then visit(v) end end
  return found
end

t.test("a circle is found where there is one", function()
  local found = circles { a = { b = true }, b = { c = true }, c = { b = true }, d = {} }
  t.eq(#found, 1)
  t.eq(table.concat(found[1], " "), "b c")
end)

t.test("no circle of files but tape, plan and tensor", function()
  read_objects()
  if next(used) == nil then t.skip "the build has no object files" end
  local public, graph = declared_at_the_door(), {}
  for name, symbols in pairs(used) do
    graph[name] = {}
    for symbol in pairs(symbols) do
      local home = defined[symbol]
      local crosses = home and home:match "^%w+" ~= name:match "^%w+"
      if home and home ~= name and not (crosses and (public[symbol] or registers(symbol))) then graph[name][home] = true end
    end
  end
  local wrong = {}
  for _, circle in ipairs(circles(graph)) do
    local known = true
    for _, name in ipairs(circle) do known = known and allowed_circle[name] end
    if not known then wrong[#wrong + 1] = table.concat(circle, " ") end
  end
  none(wrong, "circles")
end)
