-- test_lua_traps.lua -- mistakes of those who come from Python or C get an error that says what Lua writes: a dot for a colon over all
-- public classes, ops and functions, undefined names.
local t = require "tests.harness"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local mn = require "mneme"
local public_objects = require "tests.support.public_objects"
local shell = require "tests.support.shell"
local tables = require "mneme.base.tables"
local registry = require "mneme.base.registry"

local dir = shell.folder()
local function none(list, what) t.ok(#list == 0, what .. ":\n  " .. table.concat(list, "\n  ")) end

-- Lines of Lua as a file of the user's, run as `mneme run` does: the text of its error, or nil.
local function saved(lines)
  local path = dir .. "/script.lua"
  files.write(path, { table.concat(lines, "\n"), "\n" })
  return path
end
local function failure(f, ...)
  local ok, e = xpcall(f, errors.handler, ...)
  mn.clear_tape()
  return not ok and tostring(e) or nil
end
local function said(...)
  local path = saved { ... }
  return failure(function() registry.load(path)() end)
end

-- ---- a dot for a colon, a colon for a dot ----

-- f(line, error) for a call of every name, each on a line of its own: calls are formats that take the name.
local function each_call(names, calls, value, f)
  local lines = { "return {" }
  for _, name in ipairs(names) do
    for _, call in ipairs(calls) do lines[#lines + 1] = ("function(object) %s end,"):format((call:gsub("NAME", name))) end
  end
  lines[#lines + 1] = "}"
  local list, n = registry.load(saved(lines))(), 0
  for _, name in ipairs(names) do
    for _ = 1, #calls do
      n = n + 1
      f(name, failure(list[n], value))
    end
  end
end

t.test("every method of every class: a dot in place of the colon", function()
  local wrong, raised, objects, err = {}, 0, public_objects(), io.stderr
  io.stderr = { write = function() end }
  for _, class in ipairs(tables.keys(objects)) do
    local methods = require("tests.support.methods")(objects[class])
    local function look(name, e)
      if e then raised = raised + 1 end
      if e and not e:find(("script%%.lua:%%d+: object%%.%s%%(%%.%%.%%.%%) leaves out what it is called on: write object:%s%%("):format(name, name)) then
        wrong[#wrong + 1] = class .. "." .. name .. ": " .. e
      end
    end
    each_call(tables.keys(methods), { "object.NAME()", "object.NAME(1)", "object.NAME({ 1 })", "local y = object.NAME() return y" }, objects[class], look)
  end
  io.stderr = err
  none(wrong, "other errors")
  t.ok(raised > 900, raised .. " errors")
end)

t.test("an error of Lua within a drawing method names the method's arguments: every one of the canvas", function()
  local wrong, raised, canvas = {}, 0, public_objects().Canvas
  each_call(tables.keys(require("tests.support.methods")(canvas)), { "object:NAME()", "object:NAME(1)", "object:NAME(1, {}, 'a')" }, canvas, function(name, e)
    if not e or not e:find("lua/mneme/", 1, true) then return end
    raised = raised + 1
    if not e:find(("(expected %s("):format(name), 1, true) then wrong[#wrong + 1] = name .. ": " .. e end
  end)
  none(wrong, "without arguments")
  t.ok(raised > 20, raised .. " errors")
end)

t.test("functions of mn: a colon in place of the dot", function()
  local wrong, raised, names = {}, 0, {}
  for _, name in ipairs(mn.names()) do if type(mn[name]) == "function" then names[#names + 1] = name end end
  local out = io.stdout
  io.stdout = { write = function() end }
  each_call(names, { "object:NAME()", "object:NAME(1)", "object:NAME({ 1 })" }, mn, function(name, e)
    if e then raised = raised + 1 end
    if e and not e:find(("object:%s%%(%%.%%.%%.%%) passes object itself as the first argument: write object%%.%s%%("):format(name, name)) then
      wrong[#wrong + 1] = name .. ": " .. e
    end
  end)
  io.stdout = out
  none(wrong, "other errors")
  t.ok(raised > 40, raised .. " errors")
end)

t.test("what is right stays as it is: another mistake keeps its own words", function()
  local x = "local mn = require 'mneme'\nlocal x = mn.tensor { 1, 2 }\nlocal env = mn.env('tmaze', { num_envs = 2 })\n"
  for code, words in pairs {
    ["mn.sum(1)"] = "sum: x is 1, expected a tensor", ["x:reshape(3)"] = "reshape: ", ["mn.Tensor.item(x)"] = "item: the tensor has 2 elements",
    ["local step = env.step env:reset() step(env, { 0 })"] = "actions are a list of 1", ["env:step({ 0, 0, 0 })"] = "actions are a list of 3",
    ["x.matmul(x, mn.tensor { 1, 2, 3 })"] = "matmul: ", ["mn.nn.linear(0, 1)"] = "d_in is 0",
  } do
    local e = t.ok(said(x, code), code)
    t.ok(e:find("script.lua:5: ", 1, true) and e:find(words, 1, true) and not e:find "leaves out" and not e:find "passes", code .. ": " .. e)
  end
end)

-- ---- other errors of running code ----

t.test("errors of running code say what was probably meant", function()
  for _, case in ipairs {
    { "local cfg = { corridor = 3 } print(cfg.coridor + 1)", "field 'coridor' %(a nil value%) %(did you mean 'corridor'%?%)" },
    { "local cfg = { a = { d_model = 3 } } print(cfg.a.dmodel.x)", "did you mean 'd_model'" },
    { "local mn = require 'mneme' mn.nn.linear(2, 2).forward(3)", "attempt to call field 'forward'" },
    { "local x = require 'mneme'.tensor { 1 } print(x < 2)", "x:lt%(y%) compares element by element" },
    { "local mn = require 'mneme' local x, env = mn.tensor { 1 }, mn.env 'tmaze' print(false and x.step(2) or env.step(3))", "write env:step%(" },
    { "error 'mine'", "^[^(]*script.lua:1: mine$" }, { "local x print(x.y)", "^[^(]*attempt to index local 'x' %(a nil value%)$" },
  } do
    local e = t.ok(said(case[1]), case[1])
    t.ok(e:find(case[2]) and e:find "script.lua:1: ", case[1] .. ": " .. e)
  end
end)

t.test("a global variable that is not there is an error where a script reads it, and nowhere else", function()
  for _, case in ipairs {
    { "print(None)", "there is no variable 'None'" }, { "print(tostrin(3))", "did you mean 'tostring'" },
    { "local agent = 3 local function f() return agnet end f()", "there is no variable 'agnet' %(did you mean 'agent'%?%)" },
    { "local w = tostring(3) (w):lower()", "'w' %(a local is there after" }, { "do local way = 3 end print(way + 1)", "'way' %(a local is there after" },
  } do
    local e = t.ok(said(case[1]), case[1])
    t.ok(e:find(case[2]) and e:find "script.lua:1: ", case[1] .. ": " .. e)
  end
  t.eq(said("mine = 3", "assert(mine == 3 and rawget(_G, 'nothing') == nil and not arg or arg)", "local f = _ENV"), nil)
  t.eq(loadstring "return not_there_at_all"(), nil, "of a library's chunk")
  rawset(_G, "mine", nil)
end)


t.test("the command line prints the same", function()
  saved { "local mn = require 'mneme'", "local env = mn.env('tmaze', { num_envs = 2 })", "env.step { 0, 0 }" }
  local text, status = shell.mneme(dir, "run script.lua")
  t.eq(text, "script.lua:3: env.step(...) leaves out what it is called on: write env:step(...), with a colon\n")
  t.eq(status, 1)
end)

os.execute("rm -r '" .. dir .. "'")

t.test("a module that is not found says where it was looked for, and that it lies beside the script", function()
  files.make_folder(dir .. "/sub")
  files.write(dir .. "/sub/asks.lua", { "require", ' "my.helper"' })
  local text, status = shell.mneme(dir, "run sub/asks.lua")
  t.ok(status == 1 and text:find "^sub/asks.lua:1: module 'my.helper' is not found: there is no my/helper.lua in the current directory\n", text)
  files.make_folder(dir .. "/sub/my")
  files.write(dir .. "/sub/my/helper.lua", { "return 1" })
  text = shell.mneme(dir, "run sub/asks.lua")
  t.ok(text:find "current directory; sub/my/helper.lua is beside the script: cd sub first", text)
  t.eq(select(2, shell.mneme(dir .. "/sub", "run asks.lua")), 0)
end)
