-- test_tree.lua -- the rules of the tree, read off the files: who may lean on whom, what an op file exports, how
-- files begin and how long they are.
local ffi = require "ffi"
local lfs = require "lfs"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local registry = require "mneme.base.registry"

local root = registry.root == "" and "./" or registry.root
local LUA_LINES, C_LINES, COLUMNS = 500, 700, 160

local function output(line)
  local pipe = io.popen(line)
  local text = pipe:read "*a"
  pipe:close()
  return text
end

local function read(path)
  local f = assert(io.open(root .. path, "rb"))
  local text = f:read "*a"
  f:close()
  return text
end

-- Every file that belongs to the project, by path; an unpacked archive has no git to ask.
local files, odd = {}, {}
do
  local list = output(("cd '%s' && git ls-files -co --exclude-standard 2>/dev/null"):format(root))
  if list == "" then
    list = output(("cd '%s' && find engine lua gpu scenes experiments tests Makefile README.md docs -type f 2>/dev/null"):format(root))
  end
  for path in list:gmatch "[^\n]+" do
    if path:find "[^%w_./-]" then odd[#odd + 1] = path end           -- git quotes such names
    if lfs.attributes(root .. path, "mode") == "file" then files[#files + 1] = path end
  end
  table.sort(files)
end

local function is_c(path) return path:find "%.[ch]$" or path:find "%.cuh?$" or path:find "%.cpp$" end
local function is_lua(path) return path:find "%.lua$" end
local function is_text(path)
  return is_c(path) or is_lua(path) or path:find "^lua/.*_[%l_]+%.txt$" or path:find "%.mk$" or path:find "Makefile$" or path:find "%.md$"
end
local function folder(path) return path:match "^(%w+)/" or "" end

-- Complain about every finding at once.
local function none(list, what) t.ok(#list == 0, what .. ":\n  " .. table.concat(list, "\n  ")) end

t.test("there are files to look at", function()
  local seen = {}
  for _, path in ipairs(files) do seen[path] = true end
  for _, path in ipairs { "engine/mneme.h", "engine/ops/linear.c", "lua/main.c", "scenes/view/window.c", "gpu/ops/agalite.cu" } do
    t.ok(seen[path], path)
  end
end)

-- ---- who depends on whom ----

-- All includes: f(path, name, angled).
local function includes(f)
  for _, path in ipairs(files) do
    if is_c(path) then
      for quote, name in read(path):gmatch '\n%s*#%s*include%s+(["<])([^">]+)' do f(path, name, quote == "<") end
    end
  end
end

-- What a library's headers look like, and the only files that may include them.
local libraries = {
  { "^SDL", "^scenes/view/window%.c$" }, { "^cuda", "^gpu/" }, { "^cublas", "^gpu/" }, { "^nccl", "^gpu/" }, { "^mpi%.h", "^gpu/" },
  { "^lua[lj]?i?[bt]?%.h", "^lua/main%.c$", "^tests/fuzz/fuzz%.c$" }, { "^lua%.h", "^lua/main%.c$", "^tests/fuzz/fuzz%.c$" },
  { "^lauxlib", "^lua/main%.c$", "^tests/fuzz/fuzz%.c$" },
  { "^ft2build", "^scenes/view/font%.c$" }, { "^freetype", "^scenes/view/font%.c$" }, { "^jansson", "^engine/" }, { "^png", "^engine/" },
  { "^gif_lib", "^engine/" }, { "^zlib", "^engine/" },
}

t.test("libraries are included only where they belong", function()
  local wrong, known = {}, 0
  includes(function(path, name, angled)
    for _, rule in ipairs(libraries) do
      if angled and name:find(rule[1]) then
        known = known + 1
        if not path:find(rule[2]) and not (rule[3] and path:find(rule[3])) then wrong[#wrong + 1] = path .. " includes " .. name end
      end
    end
  end)
  none(wrong, "libraries in the wrong place")
  t.ok(known > 5, "the patterns find nothing")
end)

local leans_on = {      -- folders whose headers each folder may include
  engine = { engine = true }, gpu = { gpu = true, engine = true }, lua = { lua = true, engine = true },
  scenes = { scenes = true, engine = true }, tests = { tests = true, engine = true, gpu = true },
}

t.test("nothing leans the other way", function()
  local home, wrong = {}, {}
  for _, path in ipairs(files) do
    if path:find "%.c?u?hp?p?$" or path:find "%.cuh$" then
      local name = path:match "[^/]*$"
      home[name] = home[name] or {}
      home[name][folder(path)] = true
    end
  end
  includes(function(path, name, angled)
    if angled or name == "registry.h" or name == "commit.h" then return end           -- made by make
    local allowed = false
    for place in pairs(home[name:match "[^/]*$"] or {}) do
      allowed = allowed or (leans_on[folder(path)] or {})[place]
    end
    if not allowed and not name:find "%.c$" and not name:find "%.cu$" then wrong[#wrong + 1] = path .. " includes " .. name end
  end)
  none(wrong, "includes that point the wrong way")
end)

local may_require = {   -- besides Lua's own and the system's modules
  lua = "^mneme", scenes = "^mneme", experiments = "^mneme", tests = "^[mt][ne][es][mt][es]",
}
local system = { ffi = true, bit = true, jit = true, lfs = true, posix = true, argparse = true, string = true, table = true }

t.test("Lua modules ask for the library, scenes and experiments for nothing else", function()
  local wrong = {}
  for _, path in ipairs(files) do
    if is_lua(path) then
      for name in read(path):gmatch "%f[%w]require%s*%(?%s*[\"']([%w_.]+)[\"']" do
        if not system[name:match "^%w+"] and not name:find(may_require[folder(path)] or "^mneme") then
          wrong[#wrong + 1] = path .. " requires " .. name
        end
        if folder(path) == "lua" and name:find "^tests" then wrong[#wrong + 1] = path .. " requires " .. name end
      end
    end
  end
  none(wrong, "modules")
end)

-- ---- what is exported ----

-- Symbols that each object file of a folder of the engine defines for others, by one nm for all of them.
local function symbols(place)
  local of = {}
  for path, name in output(("find '%s/engine/%s' -name '*.o' -exec nm -A -g --defined-only {} + 2>/dev/null"):format(engine.build, place))
      :gmatch "(%S[^\n]-):%x+ %a ([%w_]+)\n" do
    of[path] = of[path] or {}
    if not name:find "^__" then table.insert(of[path], name) end
  end
  return of
end

for place, prefix in pairs { ops = "mn_op_", envs = "mn_env_" } do
  t.test("a file in engine/" .. place .. " exports its one symbol, and what mneme.h declares", function()
    local objects, wrong, header, defined = 0, {}, read "engine/mneme.h", symbols(place)
    for _, path in ipairs(files) do
      local file = path:match("^engine/" .. place .. "/([%w_/]+)%.c$")
      local name = file and file:match "[^/]+$"
      local object = file and ("%s/engine/%s/%s.o"):format(engine.build, place, file)
      if object and lfs.attributes(object) then
        objects = objects + 1
        local own = 0
        for _, symbol in ipairs(defined[object] or {}) do
          if symbol == prefix .. name then own = own + 1
          elseif not header:find("%f[%w_]" .. symbol .. "%(") then wrong[#wrong + 1] = path .. " exports " .. symbol end
        end
        if own ~= 1 then wrong[#wrong + 1] = path .. " does not export " .. prefix .. name end
      end
    end
    if objects == 0 then t.skip "the build has no object files" end
    none(wrong, "exports")
  end)
end

t.test("an environment is a file of engine/envs, or a folder with one file of C, named as the folder", function()
  local wrong, folders = {}, {}
  for _, path in ipairs(files) do
    local dir, name = path:match "^engine/envs/([%w_]+)/(.+)$"
    if dir then
      folders[dir] = folders[dir] or name == dir .. ".c"
      if name ~= dir .. ".c" and not name:find "^[%w_]+%.h$" then wrong[#wrong + 1] = path end
    end
  end
  for dir, whole in pairs(folders) do if not whole then wrong[#wrong + 1] = ("engine/envs/%s/%s.c is missing"):format(dir, dir) end end
  none(wrong, "in folders of environments")
  t.ok(next(folders), "no folder was found")
end)

t.test("everything that mneme.h declares is there", function()
  local text, declared = read "engine/mneme.h", 0
  for name in text:match("ffi from here.-\n(.*)"):gmatch "[%s*](mn_[%w_]+)%(" do
    if not name:find "%u" then
      declared = declared + 1
      t.ok(pcall(function() return engine.C[name] end), name .. " is declared and not there")
    end
  end
  t.ok(declared > 80, declared .. " functions were found")
  t.eq(ffi.sizeof "mn_tensor", 8)
end)

-- ---- how files look ----

t.test("files have plain names", function() none(odd, "files that a shell made by mistake?") end)

t.test(("files: at most %d lines of Lua, %d of others; lines: at most %d columns; no tabs, no blanks at ends"):format(LUA_LINES, C_LINES, COLUMNS),
  function()
  local wrong = {}
  for _, path in ipairs(files) do
    if is_text(path) then
      local text, lines = read(path), 0
      local makefile = path:find "Makefile$" or path:find "%.mk$"
      for line in (text:gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do
        lines = lines + 1
        local where = ("%s:%d: "):format(path, lines)
        local columns = select(2, line:gsub("[^\128-\191]", ""))
        if columns > COLUMNS and not path:find "%.md$" then wrong[#wrong + 1] = where .. columns .. " columns" end
        if line:find "%s$" then wrong[#wrong + 1] = where .. "a blank at its end" end
        if line:find "\t" and not makefile then wrong[#wrong + 1] = where .. "a tab" end
      end
      if lines > (is_lua(path) and LUA_LINES or C_LINES) and not path:find "%.md$" then wrong[#wrong + 1] = path .. ": " .. lines .. " lines" end
      if text:sub(-1) ~= "\n" then wrong[#wrong + 1] = path .. ": no newline at its end" end
    end
  end
  none(wrong, "files")
end)

t.test("a file begins with its name and what it is", function()
  local wrong = {}
  for _, path in ipairs(files) do
    local name, first = path:match "[^/]*$", nil
    if is_c(path) then first = "^/%* " .. name:gsub("%p", "%%%0") .. " %-%- %S" end
    if is_lua(path) and name:sub(1, 1) ~= "." then
      first = folder(path) == "experiments" and "^%-%- %S" or "^%-%- " .. name:gsub("%p", "%%%0") .. " %-%- %S"
    end
    if first and not read(path):find(first) then wrong[#wrong + 1] = path end
  end
  none(wrong, "no first line")
end)

-- The last definition of a name would count, silently.  Levels are told by indentation; what stands in long texts is none of the file's.
t.test("no file of Lua defines a function twice", function()
  local wrong = {}
  for _, path in ipairs(files) do
    local seen, n = {}, 0
    local text = path:find "%.lua$" and read(path):gsub("%[(=*)%[.-%]%1%]", function(equals) return "[" .. equals .. "[" end) or ""
    for indent, line in text:gmatch "([ ]*)([^\n]+)" do
      for level in pairs(seen) do if level > #indent then seen[level] = nil end end
      local name = line:match "^function ([%w_.:]+)" or line:match "^local function ([%w_]+)" or line:match "^([%w_]+[.:][%w_.:]+) = function"
      if name then
        name, n = name:gsub(":", "."), n + 1
        seen[#indent] = seen[#indent] or {}
        if seen[#indent][name] then wrong[#wrong + 1] = ("%s: %s"):format(path, name) end
        seen[#indent][name] = true
      end
    end
  end
  none(wrong, "these are defined twice")
end)

t.test("no file knows where it was written", function()
  local here, wrong = output(("cd '%s' && pwd"):format(root)):gsub("\n", ""), {}
  local places = { here, (os.getenv "HOME" or "") .. "/" }
  for _, name in ipairs { "home", "root", "Users" } do places[#places + 1] = "/" .. name .. "/" end
  for _, path in ipairs(files) do
    local text = read(path)
    for _, place in ipairs(places) do
      if #place > 3 and text:find(place, 1, true) and not place:find "^/usr" then wrong[#wrong + 1] = path .. " has " .. place end
    end
  end
  none(wrong, "absolute paths")
end)

t.test("luacheck finds nothing", function()
  if os.execute "command -v luacheck > /dev/null 2>&1" ~= 0 then t.skip "luacheck is not installed" end
  local said = output(("cd '%s' && luacheck --std luajit --no-color -q lua scenes experiments tests 2>&1"):format(root))
  t.ok(said:find "Total: 0 warnings / 0 errors", said)
end)
