-- test_new.lua -- mneme new: what each kind begins with passes its test and its check, trains, and overwrites nothing.
local t = require "tests.harness"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"

local dir = shell.folder()
local made = {
  env = { file = "own.lua", train = "run train env=own.lua steps=2000 num_steps=32 where=0" },
  core = { file = "cores/own.lua", train = "run train core=own steps=2000 num_envs=4 num_steps=32 hidden=16 core.d_model=16 where=0" },
  script = { file = "own.lua", train = "run own.lua quick=1 steps=2000 where=0" },
  study = { file = "own.lua", train = "sweep own.lua quick=1 only=1 steps=2000 estimate=0" },
}

for kind, expected in pairs(made) do
  t.test("new " .. kind .. ": its test and its check hold, it trains, and what comes next can be typed", function()
    local place = dir .. "/" .. kind
    files.make_folder(place)
    local said, status = shell.mneme(place, "new " .. kind .. " own")
    t.eq(status, 0, said)
    t.ok(said:find("wrote " .. expected.file .. "\n", 1, true) and said:find("wrote test_own.lua\n", 1, true), said)
    local list = {}
    for command in (said:match "next: ([^\n]*)" .. "  or  "):gmatch "mneme (.-)  or  " do list[#list + 1] = command end
    t.eq(list[1], "run test_own.lua")
    t.eq(list[2], "check " .. expected.file)
    t.eq(#list, 3)
    for i = 1, 2 do
      said = shell.fine(place, list[i])
      t.ok(said:find(i == 1 and "\nok\n" or "%f[%w]ok%s"), said)
    end
    shell.fine(place, expected.train)
    t.ok(list[3]:sub(1, #"run own.lua") == expected.train:sub(1, #"run own.lua") or kind == "core", list[3])
    local before = files.read(place .. "/" .. expected.file)
    said, status = shell.mneme(place, "new " .. kind .. " own")
    t.eq(status, 2, said)
    t.eq(files.read(place .. "/" .. expected.file), before)
  end)
end

t.test("new: a test fails where the rules, the core, the script or the claims are broken", function()
  for kind, broken in pairs { env = { "action == self.sign and 1", "action == 0 and 1" }, core = { "done = done", "done = nil" },
    script = { "return mn.learner%(cfg, env, agent%):train%(%)", "" }, study = { 'b = { core = "gru" }', 'b = { core = "grus" }' } } do
    local path = dir .. "/" .. kind .. "/" .. made[kind].file
    local text, n = files.read(path):gsub(broken[1], broken[2])
    t.ok(n > 0, kind .. ": the pattern is not there")
    files.write(path, { text })
    local said, status = shell.mneme(dir .. "/" .. kind, "run test_own.lua")
    t.ok(status ~= 0 and not said:find "\nok\n", kind .. ": " .. said)
  end
end)

t.test("new core like=: every core of Mneme can be copied, loads, and states nothing that was checked of another", function()
  local place = dir .. "/like"
  files.make_folder(place)
  for i, name in ipairs(registry.names "cores") do
    local said, status = shell.mneme(place, ("new core c%d like=%s"):format(i, name))
    t.eq(status, 0, name .. ": " .. said)
    local text = files.read(("%s/cores/c%d.lua"):format(place, i))
    t.ok(not text:find "\n%s*checked =" and loadstring(text), name)
  end
  for _, i in ipairs { 1, 10, 20, 30 } do
    local said, status = shell.mneme(place, ("run test_c%d.lua"):format(i))
    t.eq(status, 0, registry.names "cores"[i] .. ": " .. said)
  end
end)

t.test("new: its kinds are completed, and no other words", function()
  t.eq(shell.mneme(dir, "complete new ''"), "core\nenv\nlike=\nscript\nstudy\n")
end)

t.test("new: what is there, is no name, or is of another kind is refused, and nothing is written", function()
  local place = dir .. "/refused"
  files.make_folder(place)
  for _, words in ipairs { "env tmaze", "core gru", "study tmaze_length", "script train", "env a-b", "env ../a", "env own.lua", "env 2nd", "world own",
    "env", "env own like=none", "env own like=none.lua", "core own like=tmaze", "script own like=tmaze_length", "study own like=tmaze", "env own like=tmaze",
    "env own kind=core" } do
    local said, status = shell.mneme(place, "new " .. words)
    t.eq(status, 2, words .. ": " .. said)
    t.eq(select(2, said:gsub("\n", "")), 1, said)
    t.eq(#files.list(place), 0, words)
  end
end)

t.test("new env like=: an environment in C is a copy of a file of the engine, in a source tree", function()
  local tree = dir .. "/tree"
  files.make_folder(tree .. "/engine/envs")
  files.write(tree .. "/Makefile", { "" })
  local copied = 0
  for _, file in ipairs(files.list(registry.root .. "engine/envs")) do
    local name = file:match "^([%w_]+)%.c$"
    if name then
      local text = files.read(registry.root .. "engine/envs/" .. file)
      files.write(tree .. "/engine/envs/" .. file, { text })
      local said, status = shell.mneme(tree, ("new env own_%s like=%s"):format(name, name))
      if status == 0 then
        local own = files.read(("%s/engine/envs/own_%s.c"):format(tree, name))
        t.ok(own:find("%u%(own_" .. name .. ",") and own:gsub("own_" .. name .. "%f[^%w_]", name) == text, name)
        copied = copied + 1
      else t.ok(status == 2 and said:find "struct", said) end
    end
  end
  t.ok(copied > 20, copied .. " were copied")
end)

os.execute("rm -rf '" .. dir .. "'")
