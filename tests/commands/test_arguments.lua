-- test_arguments.lua -- one reader of the command line: every way to write a setting means the same for every command.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local arguments = require "mneme.commands.arguments"
local commands = require "mneme.commands.command_table"

local dir = shell.folder()
local small = "core=gru core.d_model=8 hidden=8 steps=512 num_envs=4 num_steps=32 threads=1 record_every=0"
local said, status = shell.mneme(dir, "run demo " .. small .. " run=runs/demo")
t.eq(status, 0, said)
t.eq(select(2, shell.mneme(dir, "run demo " .. small .. " run=runs/core=gru,seed=1")), 0)

local function read(command, ...) return table.concat(arguments.read(command, { ... }), " ") end

t.test("every way to write a setting is key=value, for every command", function()
  for _, c in ipairs(commands) do
    local bare = { name = c.name, switches = c.switches, scripts = c.scripts }
    for _, words in ipairs { { "--core", "gru" }, { "--core=gru" }, { "core=gru" }, { "core", "=", "gru" }, { "core", "=gru" }, { "-core=gru" },
      { "core==gru" } } do
      t.eq(read(bare, "x", unpack(words)), "x core=gru", c.name)
    end
    t.eq(read(bare, "x", "--some-key", "-3"), "x some_key=-3")
    t.eq(read(bare, "x", "--flag", "--other=2"), "x flag=1 other=2")
    t.eq(read(bare, "x", "--flag"), "x flag=1")
    t.eq(read(bare, "x", "-h"), "x --help")
    t.eq(read(bare, "a/core=gru,seed=1"), "a/core=gru,seed=1", "a path")
    for key in pairs(c.switches or {}) do
      t.eq(read(bare, "--" .. key, "runs/x"), key .. "=1 runs/x")
      t.eq(read(bare, "--no-" .. key, "runs/x"), key .. "=0 runs/x")
      t.eq(read(bare, "runs/x", key), "runs/x " .. key .. "=1")
    end
  end
end)

t.test("a name that is printed is taken by every command about runs", function()
  for _, line in ipairs { "eval demo episodes=4", "eval core=gru,seed=1 episodes=4", "where demo episodes=4", "compare demo core=gru,seed=1", "diff demo demo",
    "export demo to=x.safetensors", "report demo episode=0", "check demo", "view demo out=x.png wait=1", "credit demo episodes=1",
    "play --against demo keys=right", "intervene demo erase=all at=1 episodes=4", "run resume=demo steps=513" } do
    local text, rc = shell.mneme(dir, line)
    t.eq(rc, 0, line .. ": " .. text)
  end
  for _, c in ipairs(commands) do
    if c.places and c.name ~= "check" then
      local text, rc = shell.mneme(dir, c.name .. " dmeo")
      t.ok(rc == 2 and text:find "did you mean runs/demo%?", c.name .. ": " .. text)
    end
  end
end)

t.test("what is wrong in the arguments is said before what the machine lacks, and before an agent is built", function()
  files.make_folder(dir .. "/runs/study")
  files.write(dir .. "/runs/study/study.json", { "{}" })
  for line, pattern in pairs { ["view nothere"] = "there is no such run", ["view runs/study"] = "is a study", ["run tmaze gamma=1.5"] = "^mneme: gamma=1.5",
    ["run tmaze run=runs/demo"] = "^mneme: runs/demo already holds a run", ["run by_hand run=x"] = "opened no run", ["run by_hand core=lstm"] =
      "mneme run train core=lstm", ["run train corridor=20"] = "env.corridor=20" } do
    local text, rc = shell.run(dir, ("env -u DISPLAY -u WAYLAND_DISPLAY -u SDL_VIDEODRIVER '%s' %s"):format(shell.program, line))
    t.ok(rc == 2 and text:find(pattern), line .. ": " .. text)
  end
  t.ok(shell.mneme(dir, "run train --help env=tmaze"):find "env.corridor +160")
end)

t.test("commands in messages begin with the program as it was called", function()
  local pipe = io.popen(("cd '%s' && '%s' trian 2>&1; '%s' run tmaze.lua 2>&1"):format(dir, shell.program, shell.program))
  local text = pipe:read "*a"
  pipe:close()
  t.ok(text:find(shell.program .. " run tmaze", 1, true), text)
end)

t.test("no command prints another one without the program's name as it was called", function()
  local words = { "", "help", "list", "help docs", "help gate", "help run", "help core", "run tmaze --help", "run train --help env=tmaze",
    "run gate_start --help",
    "list costs", "list experiments", "where demo episodes=4 every=4", "probe demo facts=cue episodes=16", "compare demo demo", "export demo to=d.safetensors",
    "eval demo episodes=2", "check demo", "view nothere", "run train env=cartpole", "run demo gpu=1", "sweep gate_start quick=1 list=1",
    "eval demo episodes=2 record=kept" }
  local is_command = {}
  for _, command in ipairs(commands) do is_command[command.name], words[#words + 1] = true, command.name .. " --help" end
  for _, line in ipairs(words) do
    local pipe = io.popen(("cd '%s' && '%s' %s 2>&1"):format(dir, shell.program, line))
    local text = pipe:read "*a"
    pipe:close()
    for bare, command in text:gmatch "%f[%w_/.-](mneme%s+(%l+))" do t.ok(not is_command[command], ("mneme %s prints '%s'"):format(line, bare)) end
  end
  -- Nothing writes one past the function that puts the name in: base/terminal.lua.
  for path in io.popen(("find '%slua/mneme' -name '*.lua'"):format(shell.root)):lines() do
    for text in (files.read(path)):gmatch "io%.stderr:write(%b())" do t.ok(not text:find "mneme %l+[ \"]", path .. ": " .. text) end
  end
end)

t.test("set=cue=up is set=cue:up", function()
  local colon, equals = shell.mneme(dir, "intervene demo set=cue:up at=1 episodes=4"), shell.mneme(dir, "intervene demo set=cue=up at=1 episodes=4")
  t.ok(colon:find "set cue to up", colon)
  t.eq(equals, colon)
end)

t.test("whose episodes a seed means is said where one is given, and in the help", function()
  for line, expected in pairs { ["eval demo episodes=2"] = "draw from this seed", ["intervene demo erase=all at=1 episodes=2"] = "begins with this seed %+ k",
      ["where demo episodes=2 every=9"] = "begins with this seed %+ k" } do
    t.ok(not shell.mneme(dir, line):find "note: seed", line)
    t.ok(shell.mneme(dir, line .. " seed=3"):find("note: seed=3: .*" .. expected), line)
    t.ok(shell.mneme(dir, line:match "^%a+" .. " --help"):find "seed %+ k", line)
  end
end)

t.test("list runs sorts and filters", function()
  local text = shell.mneme(dir, "list runs sort=score core=gru script=demo")
  t.ok(text:find "\n  demo " and text:find "\n  core=gru,seed=1 ", text)
  t.ok(shell.mneme(dir, "list runs core=lstm"):find "no such runs")
  t.ok(shell.mneme(dir, "list runs sort=scroe"):find "did you mean 'score'")
  for _, words in ipairs { "env=tmaze", "env=tmaze-v0", "num_steps=32", "num_steps=3.2e1", "core.d_model=8", "num_envs=4 core=gru" } do
    t.ok(shell.mneme(dir, "list runs " .. words):find "\n  demo ", words)
  end
  for _, words in ipairs { "env=craftax", "num_steps=33", "core.d_model=9", "seed=2" } do
    t.ok(shell.mneme(dir, "list runs " .. words):find "no such runs", words)
  end
  t.ok(shell.mneme(dir, "list runs sorted=score"):find "no run here has a setting 'sorted'")
end)
