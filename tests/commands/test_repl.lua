-- test_repl.lua -- a line at a time: what is shown, what goes wrong, and completion.
local t = require "tests.harness"
local files = require "mneme.base.files"
local mn = require "mneme"
local repl = require "mneme.commands.repl"
local shell = require "tests.support.shell"
local show = require "mneme.tensor.show"

local dir = shell.folder()

-- What the program prints for these lines, and its status.
local function session(...)
  files.write(dir .. "/lines", { table.concat({ ... }, "\n"), "\n" })
  return shell.run(dir, ("'%s' repl < lines"):format(shell.program))
end

t.test("repl: values are shown, statements run, _ is the last value", function()
  local said, status = session("x = mn.tensor { 1, 2, 3 }", "x:square():sum():item()", "_ + 1", "nil", "local y = 3", "{ 1, b = 'two' }", "'text'", "=1 + 1")
  t.eq(said, "14\n15\nnil\n{ 1, b = \"two\" }\ntext\n2\n")
  t.eq(status, 0)
end)

t.test("repl: a piece of Lua may take several lines", function()
  t.eq((session("for i = 1, 2 do", "  print(i)", "end", "1 +", "2")), "1\n2\n3\n")
  local said, status = session("for i = 1, 2 do")
  t.ok(said:find "ends inside of" and status == 1, said)
end)

t.test("repl: a mistake is one line, the session goes on, and the status tells of it", function()
  local said, status = session("x = = 2", "mn.matmul(1)", "error 'mine'", "mn.tensor({1}):fop()", "2")
  t.ok(said:find "^error: line 1: unexpected symbol" and said:find "error: matmul: a is 1, expected a tensor" and said:find "mine", said)
  t.ok(said:find "unknown method or op 'fop'" and said:find "\n2\n$", said)
  t.eq(status, 1)
  said, status = shell.mneme(dir, "repl now")
  t.ok(said:find "repl: 'now' is not expected" and status == 2, said)
end)

t.test("repl: ? explains functions and ops", function()
  local said = session("?causal_map", "?mn.layer_norm")
  t.ok(said:find("mn.causal_map(", 1, true) and said:find("mn.layer_norm -- ", 1, true), said)
end)

t.test("repl: tensors are shown as print shows them", function()
  local x = mn.tensor { { 1, 2.5 }, { -3, 4 } }
  t.eq(show.text(x), tostring(x))
  local loop = {}
  loop.itself = loop
  t.eq(show.text(loop), "{ itself = (shown above) }")
end)

t.test("repl, scripts and mn.print: tables are printed as tables, tensors in them as shapes", function()
  local lines = { "t = { 1, 2, a = { b = 'x' }, w = mn.tensor { shape = { 3, 2 } } }", "print(t, 'text', nil, 2.5)", "print(mn.tensor({ 1, 2 }):shape())",
    "print(mn.tensor { 1, 2 })", "print(mn.tensor({ { 1, 2 }, { 3, 4 } }):to_table())", "print()" }
  local expected = '{ 1, 2, a = { b = "x" }, w = tensor [3,2] f32 }\ttext\tnil\t2.5\n{ 2 }\ntensor [2] f32 [1, 2]\n{ { 1, 2 }, { 3, 4 } }\n\n'
  t.eq((session(unpack(lines))), expected)
  files.write(dir .. "/prints.lua", { "local mn = require 'mneme'\n", table.concat(lines, "\n") })
  t.eq((shell.mneme(dir, "run prints.lua")), expected)
  files.write(dir .. "/prints.lua", { "local mn, print = require 'mneme', require('mneme').print\n", table.concat(lines, "\n") })
  local lua = ("LUA_PATH='%slua/?.lua;%slua/?/init.lua;;' luajit prints.lua"):format(shell.root, shell.root)
  t.eq((shell.run(dir, lua)), expected)
  local deep, object = { { { { 1 } } } }, setmetatable({}, { __tostring = function() return "mine" end })
  t.eq(show.text(deep), "{ { { { ... } } } }")
  t.eq(show.text { object }, "{ mine }")
end)

t.test("repl: names are completed: globals, mn, modules, methods of a tensor", function()
  local function has(word, offer)
    for _, o in ipairs(repl.offers(word)) do if o == offer then return true end end
  end
  _G.mn, _G.held = mn, mn.tensor { 1 }
  t.ok(has("mn.linear_a", "mn.linear_attention") and has("mn.stats.iq", "mn.stats.iqm") and has("string.fo", "string.format"))
  t.ok(has("held:squ", "held:square") and has("hel", "held") and has("?causal", "?causal_map"))
  t.eq(#repl.offers "nothing.here", 0)
  _G.mn, _G.held = nil, nil
end)

os.execute("rm -rf '" .. dir .. "'")
