-- test_editors.lua -- what editors read (`mneme help annotations`) and what is there are the same: functions, values, methods, fields,
-- operators, ops; and the Lua that users are shown fits it, by a check of our own and by lua-language-server.
local t = require "tests.harness"
local annotations = require "mneme.commands.annotations"
local api = require "mneme.commands.api"
local files = require "mneme.base.files"
local lua_samples = require "tests.support.lua_samples"
local methods = require "tests.support.methods"
local mn = require "mneme"
local public_objects = require "tests.support.public_objects"
local shell = require "tests.support.shell"
local tables = require "mneme.base.tables"

local text = annotations.text()
local stubs = t.ok(loadstring(text))()
local function none(list, what) t.ok(#list == 0, what .. ":\n  " .. table.concat(list, "\n  ")) end

-- The classes of the annotations, read from their text: name -> { parent, methods = set, fields = name -> type, operators = set, call }.
local classes = {}
do
  local class
  for line in text:gmatch "[^\n]+" do
    local name, parent = line:match "^%-%-%-@class ([%w_.]+):? ?([%w_.]*)"
    if name then
      class = { parent = parent ~= "" and parent or nil, methods = {}, fields = {}, operators = {} }
      classes[name] = class
    end
    local field, kind = line:match "^%-%-%-@field (%S+) (.*)"
    if field then class.fields[field] = annotations.type_of(kind) end
    local operator = line:match "^%-%-%-@operator (%l+)"
    if operator then class.operators[operator] = true end
    if line:find "^%-%-%-@overload" and class then class.call = true end
    local of, method = line:match "^function ([%w_]+):([%w_]+)%("
    if of then classes[of].methods[method] = true end
  end
end

-- A method or field of a class or its parents.
local function of_class(name, kind, key)
  while name do
    if classes[name][kind][key] then return classes[name][kind][key] end
    name = classes[name].parent
  end
end

-- ---- annotations and what is there ----

t.test("annotations: every function and value of mn, and no other", function()
  local wrong, seen = {}, 0
  local function look(name, value, stub)
    seen = seen + 1
    local meta = type(value) == "table" and getmetatable(value)
    if type(value) == "function" then
      if type(stub) ~= "function" then wrong[#wrong + 1] = name .. " has no annotation" end
    elseif type(value) == "table" and type(stub) == "table" and (not meta or meta.called or meta.group or meta.guarded) then
      for _, key in ipairs(tables.keys(value)) do
        if value[key] ~= nil then look(name .. "." .. key, value[key], stub[key]) end            -- a list has none
      end
      for key in pairs(stub) do if rawget(value, key) == nil then wrong[#wrong + 1] = name .. "." .. key .. " is not there" end end
    elseif type(stub) == "function" then wrong[#wrong + 1] = name .. " is no function"
    elseif stub == nil and not text:find("\n" .. name .. " = nil\n", 1, true) and not name:find "^mn%.[%w.]+%.[%w_]+%.[%w_]+" then
      wrong[#wrong + 1] = name .. " has no annotation"
    end
  end
  for _, name in ipairs(mn.names()) do
    if name ~= "Tensor" then look("mn." .. name, mn[name], stubs[name]) end
  end
  for key in pairs(stubs) do if mn[key] == nil then wrong[#wrong + 1] = "mn." .. key .. " is not there" end end
  for name in pairs(mn.ops) do
    if type(stubs.ops[name]) ~= "function" then wrong[#wrong + 1] = "the op " .. name .. " has no annotation" end
  end
  for name in pairs(stubs.ops) do if not rawget(mn.ops, name) then wrong[#wrong + 1] = "there is no op " .. name end end
  none(wrong, "annotations and mn differ")
  t.ok(seen > 150, seen .. " names")
end)

local objects = public_objects()
local of_no_object = { Single = "Replay", OnPolicy = "A2C", Frame = false, Entry = false, SceneSpec = false,
  Draw = false, Policy = false, EnvSpec = false, Config = false }

t.test("annotations: every method and field of every class, and no other", function()
  local wrong = {}
  for _, class in ipairs(api.classes()) do
    local name = class.name
    local object = objects[name] or objects[of_no_object[name]]
    if not object and of_no_object[name] == nil then wrong[#wrong + 1] = "tests/support/public_objects.lua makes no " .. name end
    if object then
      local real = methods(object)
      for method in pairs(objects[name] and real or {}) do
        if not of_class(name, "methods", method) then wrong[#wrong + 1] = ("%s:%s has no annotation"):format(name, method) end
      end
      for method in pairs(classes[name].methods) do
        if not real[method] then wrong[#wrong + 1] = ("%s:%s is not there"):format(name, method) end
      end
      for field, kind in pairs(classes[name].fields) do
        local optional = kind:find "%?$" or kind:find "|nil$"
        if not optional and object[field] == nil then wrong[#wrong + 1] = ("%s.%s is not there"):format(name, field) end
      end
      local meta = not mn.is_tensor(object) and getmetatable(object) or {}
      if objects[name] and (meta.__call ~= nil) ~= (classes[name].call or false) then wrong[#wrong + 1] = name .. ": called or not" end
    end
  end
  none(wrong, "annotations and objects differ")
end)

t.test("annotations: the operators that tensors have", function()
  local a, b = mn.tensor { 1, 2 }, mn.tensor { 3, 4 }
  local try = { add = function() return a + b end, sub = function() return a - b end, mul = function() return a * b end,
    div = function() return a / b end, unm = function() return -a end, mod = function() return a % b end, pow = function() return a ^ b end,
    concat = function() return a .. b end, len = function() return #a end }
  for name, f in pairs(try) do t.eq(classes.Tensor.operators[name] or false, (pcall(f)), name) end
  for name in pairs(classes.Tensor.operators) do t.ok(try[name], name) end
end)

-- Does a function return a value?  Its bytecode says so.
local function returns(f)
  local vmdef, util = require "jit.vmdef", require "jit.util"
  for pc = 1, util.funcinfo(f).bytecodes - 1 do
    local op = require("bit").band(util.funcbc(f, pc), 255) * 6
    local name = vmdef.bcnames:sub(op + 1, op + 6)
    if name:find "^RET1 " or name:find "^RETM?  " or name:find "^CALLM?T" then return true end
  end
  return false
end

t.test("annotations: what returns something says so, and nothing else does", function()
  if not pcall(require, "jit.vmdef") then t.skip "this LuaJIT comes without jit.vmdef" end
  local wrong, seen = {}, 0
  local function look(name, f, comment)
    seen = seen + 1
    local said = false
    for _, line in ipairs(comment) do said = said or line:find "^@return" ~= nil end
    if said ~= returns(f) then wrong[#wrong + 1] = name .. (said and " returns nothing" or ": no @return") end
  end
  for _, f in ipairs(api.functions()) do
    local value = mn
    for key in f.name:gmatch "[%w_]+" do if key ~= "mn" then value = value[key] end end
    look(f.name, f.called and getmetatable(value).called or value, f.comment)
  end
  for _, class in ipairs(api.classes()) do
    local object = objects[class.name] or objects[of_no_object[class.name]]
    local real = object and methods(object) or {}
    for _, m in ipairs(class.methods) do if real[m.name] then look(class.name .. ":" .. m.name, real[m.name], m.comment) end end
    if class.call and object then look(class.name .. "()", getmetatable(object).__call, class.call.comment) end
  end
  none(wrong, "comments and functions differ")
  t.ok(seen > 300, seen .. " functions")
end)

t.test("annotations: every type that they name is there", function()
  local plain, wrong, seen = {}, {}, 0
  for name in ("nil any boolean string number integer table function fun true false Tensor ffi.cdata T self"):gmatch "%S+" do plain[name] = true end
  for line in text:gmatch "[^\n]+" do
    local tag, rest = line:match "^%-%-%-@(%l+) (.*)"
    if tag == "param" or tag == "field" then rest = rest:match "^%S+ (.*)" end
    if tag == "param" or tag == "field" or tag == "return" or tag == "type" or tag == "overload" then
      local kind = annotations.type_of(rest):gsub('"[^"]*"', ""):gsub("[%w_]+%??:", "")           -- words, names of arguments
      for name in kind:gmatch "%a[%w_.]*%w" do
        seen = seen + 1
        if not plain[name] and not classes[name] and not kind:find("fun%([^)]*" .. name) then wrong[#wrong + 1] = line end
      end
    end
  end
  none(wrong, "unknown types")
  t.ok(seen > 1000, seen .. " types")
end)

t.test("annotations: the keys of tables that are checked are those that are known", function()
  local function known(class, f)
    local ok, e = pcall(f, { qqqqqqqqqqqqqqqq = 1 })
    local wrong, n = {}, 0
    for key in tostring(not ok and e):match "known: ([^)]*)":gmatch "%S+" do
      n = n + 1
      if not classes[class].fields[key .. "?"] and not classes[class].fields[key] then wrong[#wrong + 1] = class .. "." .. key end
    end
    none(wrong, "no annotation")
    t.ok(n > 3, n .. " keys of " .. class)
  end
  known("EnvSpec", mn.env)
  known("SceneSpec", mn.scene)
  for _, standard in ipairs(require("mneme.runs.config").standard) do t.ok(classes.Config.fields[standard[1]], "Config." .. standard[1]) end
end)

t.test("help annotations to=FOLDER: the file, and a .luarc.json where there is none", function()
  local dir = shell.folder()
  local said, status = shell.mneme(dir, "help annotations to=library")
  t.eq(status, 0, said)
  t.eq(files.read(dir .. "/library/mneme.lua"), shell.mneme(dir, "help annotations"))
  local settings = t.ok(require("mneme.base.json").decode(files.read(dir .. "/.luarc.json")))
  t.eq(settings["workspace.library"][1], "library")
  files.write(dir .. "/.luarc.json", { "{}" })
  t.ok(shell.mneme(dir, "help annotations to=other"):find('"workspace.library": ["other"]', 1, true), "what to add is printed")
  t.eq(files.read(dir .. "/.luarc.json"), "{}", "a file of the user stays")
  t.eq(select(2, shell.mneme(dir, "help annotations of=other")), 2)
  os.execute("rm -r '" .. dir .. "'")
  t.eq(require("mneme.base.json").decode(files.read(shell.root .. ".luarc.json"))["workspace.library"][1], "build/library")
  t.ok(files.read(shell.root .. "bindings/package.mk"):find("help annotations > $(B)/library/mneme.lua", 1, true), "make docs makes it")
end)

-- ---- the Lua that users are shown ----

local list, written = lua_samples.list()

-- What annotations know, for lua_samples.unknown.
local there = {}
function there.kind(path)
  local value = stubs
  for key in path:gmatch "[%w_]+" do if key ~= "mn" then value = type(value) == "table" and value[key] or nil end end
  if type(value) == "table" and next(value) then return "table" end
  local op = path:match "^mn%.ops%.([%w_]+)$" or path:match "^mn%.([%w_]+)$"
  return (value ~= nil or text:find("\n" .. path .. " = nil\n", 1, true) or stubs.ops[op] or written[op]) and "value" or nil
end
function there.class_of(path)
  local pattern = path:gsub("%p", "%%%0")
  local name = text:match("\n%-%-%-@return ([%w_]+)[^\n]*\nfunction " .. pattern .. "%(")
    or text:match("\n%-%-%-@class " .. pattern .. "\n%-%-%-@overload [^\n]*: ([%w_]+)\n")
  return classes[name] and name
end
function there.has(class, method)
  if class then return of_class(class, "methods", method) end
  for _, c in pairs(classes) do if c.methods[method] then return true end end
  return string[method] or io.stdout[method]
end

t.test("experiments, scenes and documents use only names that are there", function()
  local wrong = {}
  for _, sample in ipairs(list) do
    for _, name in ipairs(lua_samples.unknown(sample.text, there)) do wrong[#wrong + 1] = sample.name .. ": " .. name end
  end
  none(wrong, "names that are not there")
  t.ok(#list > 60, #list .. " pieces of Lua")
  for code, name in pairs {
    ["mn.linaer(x)"] = "mn.linaer", ["local nn = mn.nn\nnn.linaer(3, 2)"] = "mn.nn.linaer", ["local env = mn.env(3)\nenv:stpe {}"] = "Env:stpe",
    ["local f = require(\"mneme\").figures\nf.svgg(x)"] = "mn.figures.svgg", ["x:smu()"] = "x:smu", ["local x = mn.core(3)\nx:backward()"] = "Core:backward",
  } do t.eq(lua_samples.unknown(code, there)[1], name, code) end
  t.eq(#lua_samples.unknown("-- mn.nothing\nlocal s = 'mn.nothing' print(s:upper(), [[x:y()]])", there), 0, "comments and strings")
end)

t.test("lua-language-server reports no warning on experiments, scenes and documents", function()
  if not shell.has "lua-language-server" then t.skip "lua-language-server is not installed (Debian has no package; github.com/LuaLS)" end
  local dir = shell.folder()
  shell.mneme(dir, "help annotations to=library")
  local more = { text }
  for op in pairs(written) do more[#more + 1] = ("---@return Tensor\n---@return Tensor\nfunction ops.%s(...) end\n"):format(op) end
  files.write(dir .. "/library/mneme.lua", { (table.concat(more, "\n"):gsub("\nreturn mn\n", "\n")), "\nreturn mn\n" })
  local function save(name, code) files.write(("%s/%s.lua"):format(dir, (name:gsub("%W", "_"))), { code, "\n" }) end
  for _, sample in ipairs(list) do
    save(sample.name, (sample.fragment and "---@diagnostic disable: undefined-global\nlocal mn = require \"mneme\"\n" or "") .. sample.text)
  end
  local function check()
    shell.run(dir, ("lua-language-server --check=. --configpath='%s/.luarc.json' --checklevel=Warning --logpath=log --check_format=json "
      .. "--check_out_path=found.json"):format(dir))
    return files.read(dir .. "/found.json"):gsub("\\/", "/")
  end
  local found = check()
  t.ok(#found < 5, found)
  save("wrong", 'local mn = require "mneme"\nlocal x = mn.tensor { 1 }\nprint(x:smu(), mn.linaer(x), mn.nn.linear(3, 2)(x):sum(0), mn.env("tmaze"):stpe {})')
  found = check()
  for _, name in ipairs { "smu", "linaer", "stpe" } do t.ok(found:find("Undefined field `" .. name, 1, true), name .. " is not in " .. found) end
  os.execute("rm -r '" .. dir .. "'")
end)
