-- test_arguments.lua -- one reader of the command line: every way to write a setting means the same for every command.
local t = require "tests.harness"
local complete = require "mneme.commands.complete"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local help = require "mneme.commands.help"
local options = require "mneme.commands.options"
local parsed = require "tests.support.parsed"
local run_sources = require "mneme.runs.run_sources"
local shell = require "tests.support.shell"
local trusted_code = require "mneme.base.trusted_code"
local arguments = require "mneme.commands.arguments"
local commands = require("mneme.commands.options").commands

local dir = shell.folder()
local small = "core=gru core.d_model=8 hidden=8 steps=512 num_envs=4 num_steps=32 threads=1 where=0"
shell.fine(dir, "run demo " .. small .. " run=runs/demo")
t.eq(select(2, shell.mneme(dir, "run demo " .. small .. " run=runs/core=gru,seed=1")), 0)

local all = commands.all(true)

-- A command that takes what it takes, and any other words.
local function bare_of(c)
  local list = {}
  for i, option in ipairs(c.options or {}) do list[i] = setmetatable({ required = false }, { __index = option }) end
  return { name = c.name, options = list, loads = c.loads, others = c.others, run = c.run,
    arguments = { { "things", "THING", "", noun = "thing", several = true, optional = true } } }
end

local function words_of(command, ...) return table.concat(arguments.read(command, { ... }).words, " ") end

t.test("every way to write a setting is key=value, for every command", function()
  for _, c in ipairs(all) do
    if not c.raw then
      local command = bare_of(c)
      command.others = c.others == "script" and "script" or "core"
      command.options = { { "greedy", "", type = "switch" } }
      for _, words in ipairs { { "--d_model", "8" }, { "--d_model=8" }, { "d_model=8" }, { "d_model", "=", "8" }, { "d_model", "=8" }, { "-d_model=8" },
        { "d_model==8" } } do
        t.eq(words_of(command, "x", unpack(words)), "x d_model=8", c.name)
      end
      t.eq(words_of(command, "x", "--some-key", "-3"), "x some_key=-3")
      local flag = command.others == "script" and "--flag" or "flag=1"      -- a script says whether a flag needs a value
      t.eq(words_of(command, "x", "--flag", "--other=2"), ("x %s other=2"):format(flag))
      t.eq(words_of(command, "x", "--flag"), "x " .. flag)
      t.eq(arguments.read(command, { "-h" }).help, true)
      t.eq(words_of(command, "a/core=gru,seed=1"), "a/core=gru,seed=1", "a path")
      t.eq(words_of(command, "--greedy", "runs/x"), "greedy=1 runs/x")
      t.eq(words_of(command, "--no-greedy", "runs/x"), "greedy=0 runs/x")
      if c.others ~= "script" then t.eq(words_of(command, "runs/x", "greedy"), "runs/x greedy=1") end
    end
  end
end)

-- Every option of every command: f(command, option).
local function each(f)
  local n = 0
  for _, c in ipairs(all) do
    local command = bare_of(c)
    for _, option in ipairs(options.of(c)) do
      n = n + 1
      f(command, option, c)
    end
  end
  t.ok(n > 150, n .. " options")
end

local function name_of(command, option) return ("mneme %s %s="):format(command.name, option[1]) end

t.test("what a parser takes is in help, in the manual page, in docs/commands.md and in completion, and nothing else is", function()
  local man, page = "\n" .. options.man(options.commands.all(true)), files.read(shell.root .. "/docs/commands.md")
  t.eq(page, options.markdown(commands.all()), "docs/commands.md: mneme help commands")
  local topics = help.topics()
  each(function(command, option)
    local where = name_of(command, option)
    t.ok(type(option[2]) == "string" and #option[2] > 4, where .. " has no meaning")
    local text = help.text(option[1], nil, nil, topics)
    t.ok(text:find("mneme " .. command.name, 1, true) or text:find("%f[%w]" .. command.name .. "%f[%W]"), where .. ": mneme help " .. option[1] .. ": " .. text)
  end)
  for _, c in ipairs(all) do
    local own, shown = {}, options.page(c)
    for _, option in ipairs(options.of(c)) do own[option[1]] = true end
    local offered = {}
    local first, part = c.name:match "^(%l+) ?([%l]*)$"
    local line = first and { first, part ~= "" and part or nil }
    if line then line[#line + 1] = "" end
    for _, offer in ipairs(line and complete.list(line) or {}) do if offer:find "=$" then offered[offer:sub(1, -2)] = true end end
    for key in pairs(own) do
      t.ok(shown:find("\n  " .. key .. "=", 1, true), c.name .. ": help lacks " .. key)
      t.ok(not line or offered[key], c.name .. ": completion lacks " .. key)
      t.ok(man:find("\n.B " .. key .. "=", 1, true), c.name .. ": the manual lacks " .. key)
    end
    for key in pairs(offered) do t.ok(own[key], c.name .. ": completion offers " .. key) end
    for key in (c.more and "" or shown):gmatch "\n  ([%a_]+)=" do t.ok(own[key], c.name .. ": help shows " .. key) end
  end
end)

t.test("every example is read", function()
  each(function(command, option)
    local words = { option[1] .. "=" .. options.example(option) }
    local with = option.with and options.by_name(command)[option.with]
    if option.with then words[2] = option.with .. "=" .. (with and options.example(with) or dir .. "/runs/demo") end
    local o = arguments.read(command, words)
    if not option.set then t.ok(o[option[1]] ~= nil, name_of(command, option)) end
  end)
  for _, c in ipairs(all) do if not c.raw then arguments.read(bare_of(c), {}) end end
  run_sources.choice, trusted_code.trusted = nil, false
end)

-- Texts that no option of a type takes.
local wrong = { whole = { "many", "1.5", "-1", "nan", "inf", "" }, number = { "many", "nan", "inf", "" }, wholes = { "1,x", "", "1.5" },
  switch = { "2", "perhaps", "" }, choice = { "zzz", "" }, file = { "" }, folder = { "", "/", "//." }, text = { "" }, run = { "", "/" }, list = { "", "," },
  size = { "big", "1x1", "640", "9999x9999", "" }, seeds = { "0x", "many", "3,,4", "1,1", "9..3", "" } }

t.test("a value of another type, beyond the range, or of no choice is refused: what was given, what is expected", function()
  each(function(command, option)
    local list = { unpack(wrong[option.type] or { false }) }
    local lo, hi = unpack(option.range or {})
    if lo then list[#list + 1] = ("%.17g"):format(lo - 1) end
    if hi and hi < 2 ^ 53 then list[#list + 1] = ("%.17g"):format(hi + 1) end
    if option.multiple then list[#list + 1] = tostring(option.multiple + 1) end
    if option.endings then list[#list + 1] = "file.zzz" end
    if option.pattern then list[#list + 1] = "?" end
    for _, text in ipairs(list) do
      local where = name_of(command, option) .. tostring(text)
      if not (option.passes and text:find(option.passes)) then
        local ok, e = pcall(options.set, command, {}, option, text)
        t.ok(not ok, where .. " is taken")
        t.ok(errors.is(e) and e.status == 2, where .. ": " .. tostring(e))
        t.eq(e.setting, option[1], where)
        t.eq(e.given, text, where)
        t.ok(type(e.expected) == "string" and #e.expected > 0, where)
        t.ok(e.message:find(option[1] .. "=" .. text, 1, true) and e.message:find(e.expected, 1, true), where .. ": " .. e.message)
      end
    end
  end)
end)

t.test("an option that has to be given is asked for", function()
  each(function(command, option, c)
    if option.required then
      local ok, e = pcall(parsed, c, { "x" })
      t.ok(not ok and e.status == 2 and e.message:find(option[1] .. "=", 1, true), name_of(command, option))
    end
  end)
end)

t.test("an option that there is not, or that is given twice, is refused", function()
  for _, c in ipairs(all) do
    if not c.raw and not c.others then
      local ok, e = pcall(arguments.read, bare_of(c), { "zzzzzz=1" })
      t.ok(not ok and e.status == 2 and e.message:find("zzzzzz", 1, true), c.name)
    end
    for _, option in ipairs(options.of(c)) do
      local word = option[1] .. "=" .. options.example(option)
      if not option.many and not option.with and c.others ~= "script" then
        local ok, e = pcall(arguments.read, bare_of(c), { word, word })
        t.ok(not ok and e.status == 2 and e.message:find "given twice", c.name .. " " .. word)
      end
    end
  end
  run_sources.choice, trusted_code.trusted = nil, false
end)

t.test("a name that is printed is taken by every command about runs", function()
  for _, line in ipairs { "eval demo episodes=4", "eval core=gru,seed=1 episodes=4", "where demo episodes=4", "compare demo core=gru,seed=1", "diff demo demo",
    "export demo to=x.safetensors", "report demo", "check demo", "view demo out=x.png wait=1", "credit demo",
    "intervene demo erase=all at=1 episodes=4", "run resume=demo steps=513" } do
    local text, rc = shell.mneme(dir, line)
    t.eq(rc, 0, line .. ": " .. text)
  end
  for _, c in ipairs(all) do
    if options.takes(c, "RUN") or options.takes(c, "STUDY") then
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
    "list experiments", "where demo episodes=4 every=4", "probe demo facts=cue episodes=16", "compare demo demo", "export demo to=d.safetensors",
    "eval demo episodes=2", "check demo", "view nothere", "run train env=cartpole", "run demo gpu=1", "sweep gate_start quick=1 list=1",
    "eval demo episodes=2 record=kept" }
  local is_command = {}
  for _, command in ipairs(commands.all()) do is_command[command.name], words[#words + 1] = true, command.name .. " --help" end
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

t.test("list runs sorts", function()
  local text = shell.mneme(dir, "list runs sort=score")
  t.ok(text:find "\n  demo " and text:find "\n  core=gru,seed=1 ", text)
  t.ok(shell.mneme(dir, "list runs sort=scroe"):find "did you mean 'score'")
  t.ok(shell.mneme(dir, "list runs num_steps=32"):find "num_steps= is not a setting")
end)
