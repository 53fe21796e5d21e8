-- test_loading.lua -- what a command loads: help and completion read declarations, not what the commands need when they run.
local t = require "tests.harness"
local shell = require "tests.support.shell"

local dir = shell.folder()
local small = "core=agalite core.d_model=8 hidden=8 steps=512 num_envs=4 num_steps=32 threads=1"
shell.fine(dir, "run tmaze " .. small .. " run=r")

local COUNT = [[
package.path = %q .. ";" .. package.path
local status = require("mneme.commands.cli").main { %s }
local files, lines = 0, 0
for name in pairs(package.loaded) do
  local path = name:find "^mneme%%f[.%%z]" and package.searchpath(name, package.path)
  if path then
    files = files + 1
    for _ in io.lines(path) do lines = lines + 1 end
  end
end
io.stderr:write("loaded ", files, " files ", lines, " lines rig ", tostring(package.loaded["mneme.models.contract_rig"] ~= nil), " status ", status, "\n")
]]

-- The files of Mneme that a command line loads, and their lines; is the contract's rig among them?
local function loaded(words)
  local list, root = {}, shell.root .. "/"
  for word in words:gmatch "%S+" do list[#list + 1] = ("%q"):format(word) end
  require("mneme.base.files").write(dir .. "/count.lua", { COUNT:format(("%slua/?.lua;%slua/?/init.lua"):format(root, root), table.concat(list, ", ")) })
  local text = shell.run(dir, "env -u LUA_PATH luajit count.lua")
  local files, lines, rig, rc = text:match "loaded (%d+) files (%d+) lines rig (%l+) status (%d+)\n$"
  t.eq(rc, "0", words .. ": " .. text)
  return tonumber(files), tonumber(lines), rig == "true"
end

-- A training loads three files of registries besides, two of its core and one of its learner: 70.
t.test("a command loads what it needs: at most so much", function()
  for words, most in pairs { ["compare r"] = { 70, 12000 }, ["help where"] = { 35, 6000 }, ["help view"] = { 35, 6000 }, ["list runs"] = { 45, 7000 },
    ["complete where r"] = { 40, 7000 }, ["run tmaze " .. small .. " run=again"] = { 67, 15950 } } do
    local files, lines = loaded(words)
    t.ok(files <= most[1] and lines <= most[2], ("mneme %s: %d files, %d lines; at most %d, %d"):format(words, files, lines, most[1], most[2]))
    t.ok(files > 5, words)
  end
end)

t.test("the declarations of all commands and benchmarks are read without a context of the engine, which is on one device", function()
  require("mneme.base.files").write(dir .. "/all.lua", { ("package.path = %q .. package.path\n"):format(("%s/lua/?.lua;%s/lua/?/init.lua;"):format(shell.root,
    shell.root)), [[
    local list = require("mneme.commands.options").commands.all(true)
    print(#list, rawget(require "mneme.base.engine", "ctx"))
  ]] })
  t.ok(shell.run(dir, "env -u LUA_PATH luajit all.lua"):find "^%d%d+%s+nil\n$")
end)

t.test("what plays a stored run does not load the rig of the contract's checks", function()
  for _, words in ipairs { "eval r episodes=4 record=kept", "credit r at=0" } do
    t.eq(select(3, loaded(words)), false, words)
  end
end)

t.test("Mneme's own files load as bytecode where their text is what was compiled, else as text", function()
  local files = require "mneme.base.files"
  local home = shell.folder() .. "/"
  local function version() return (shell.run(dir, ("MNEME_HOME='%s' MNEME_BUILD='%sb' '%s' --version"):format(home, home, shell.program))) end
  local function rewrite(path, from, to)
    local text, n = files.read(path):gsub(from, to)
    t.ok(n > 0, path)
    files.write(path, { text })
  end
  shell.run(home, ("mkdir b lua engine; cp -r '%s'/lua/mneme lua/; cp '%s'/engine/mneme.h engine/; cp '%s'/libmneme.so '%s'/bytecode b/"):format(
    shell.root, shell.root, shell.build, shell.build))
  local was = version()
  local number = was:match "%d+%.%d+%.%d+"
  rewrite(home .. "b/bytecode", "\n" .. number, "\n7.7.7")                          -- a text as LuaJIT keeps one: its length + 5, and the letters
  t.eq(version(), "mneme 7.7.7\n")
  rewrite(home .. "lua/mneme/base/version.lua", number, "8.8.8")
  t.eq(version(), "mneme 8.8.8\n")
  rewrite(home .. "lua/mneme/base/version.lua", "8%.8%.8\"", "8.8.8\" .. nil")
  t.ok(version():find("lua/mneme/base/version.lua:", 1, true), "a mistake says where it is")
  rewrite(home .. "lua/mneme/base/version.lua", "8%.8%.8\" .. nil", number .. "\"")
  shell.run(home, "mkdir -p i/share/mneme i/bin i/lib i/include; cp -r lua i/share/mneme/; cp b/bytecode i/share/mneme/lua/mneme/; cp b/libmneme.so i/lib/; "
    .. "cp '" .. shell.program .. "' i/bin/; cp -r engine i/include/mneme")
  t.eq((shell.run(home, "env -u MNEME_BUILD i/bin/mneme --version")), "mneme 7.7.7\n", "an installation has it beside its files")
  for _, part in ipairs { 0, 20, 2000, 30000, 1e6 } do
    local whole = files.read(shell.build .. "/bytecode")
    files.write(home .. "b/bytecode", { whole:sub(1, part) })
    t.eq(version(), was)
    files.write(home .. "b/bytecode", { whole:sub(1, part), "9", whole:sub(part + 2) })
    t.eq(version(), was)
  end
  os.execute(("rm -rf '%s'"):format(home))
end)

os.execute(("rm -rf '%s'"):format(dir))
