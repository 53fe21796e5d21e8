-- test_cli.lua -- the program: commands, one-line errors with the user's file and line, exit statuses,
-- Ctrl-C, and that it finds its files wherever it was put.
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local progress = require "mneme.base.progress"
local shell = require "tests.support.shell"

local program = shell.program
local dir = shell.folder()

-- Run a command line in an empty folder: everything it printed, its exit status.
local function sh(line) return shell.run(dir, line) end
local function mneme(words) return sh(program .. " " .. words) end

local function script(name, text)
  files.write(dir .. "/" .. name, { text })
  return name
end

-- One line, with this in it, and that exit status.
local function says(words, pattern, status)
  local text, rc = mneme(words)
  t.ok(text:find(pattern), ("mneme %s: expected '%s', got: %s"):format(words, pattern, text))
  t.eq(rc, status, words)
  t.eq(select(2, text:gsub("\n", "")), 1, words .. ": lines")
end

t.test("version, help, usage", function()
  says("--version", "^mneme %d+%.%d+%.%d+\n$", 0)
  local text, rc = mneme "--help"
  t.ok(rc == 0 and text:find "usage: mneme COMMAND" and text:find "  check ")
  t.eq(select(2, mneme ""), 2)
  says("rnu", "^mneme: unknown command 'rnu'; did you mean 'run'", 2)
  says("run", "^mneme: run: which script", 2)
  says("run nothing.lua", "nothing.lua: there is no such script", 2)
  says("run tmaz", "unknown experiment 'tmaz'; did you mean 'tmaze'", 2)
  says("list coers", "unknown kind of thing 'coers'; did you mean 'cores'", 2)
  says("help tmaez", "did you mean 'tmaze'", 2)
end)

t.test("one of a kind is helped with, and a list may be read by another program", function()
  t.ok(mneme "help env selective_copy":find "^mn.env" and mneme "help dataset selective_copy":find "^mn.dataset")
  says("help op lineer", "unknown op 'lineer'; did you mean 'linear'", 2)
  says("help env tmase", "unknown environment 'tmase'; did you mean 'tmaze'", 2)
  local doctor = mneme "doctor"
  t.ok(doctor:find "blas" and doctor:find "vectors +%l" and not doctor:find "vectors +scalar", doctor)
  t.eq(select(2, mneme "list | head -1"), 0, "a closed pipe")
end)

t.test("a user's core, experiment and scene are found in their folders", function()
  files.make_folder(dir .. "/experiments")
  files.make_folder(dir .. "/cores")
  script("experiments/mine.lua", "-- mine.lua -- What is mine?\nprint(require('mneme').config { a = 1 }.a)")
  script("cores/my_core.lua", "-- my_core.lua -- a memory of my own\nreturn {}")
  t.ok(mneme "list experiments":find "mine +What is mine%?")
  t.ok(mneme "list cores":find "my_core %-%- a memory of my own\n  cannot be built with these settings: ")
  t.eq(mneme "run mine a=7", "7\n")
  local text, rc = mneme "run mine --help"
  t.ok(rc == 0 and text:find "What is mine%?\nusage: mneme run experiments/mine.lua", text)
end)

t.test("mistakes in a script: one line, with its file and line", function()
  says("run " .. script("syntax.lua", "local x = 1\nlocal y = = 2\n"),
    "^syntax.lua:2: unexpected symbol near '=' %(a syntax error", 1)
  says("run " .. script("nil.lua", "local x\nprint(x.y)\n"), "^nil.lua:2: attempt to index local 'x' %(a nil value%)\n$", 1)
  says("run " .. script("error.lua", "error('two\\nlines')\n"), "^error.lua:1: two", 1)
  says("run " .. script("object.lua", "error({})\n"), "error was given a list of 0, expected a text", 1)
  says("run " .. script("deep.lua", "local function f(n) return 1 + f(n) end\nf(1)\n"), ": stack overflow %(a function that calls itself without end%)\n$", 1)
  for raised, word in pairs { ["error {}"] = "a list of 0", ["error()"] = "nothing" } do
    says("run " .. script("step.lua", "local mn = require 'mneme'\nlocal e = mn.env { observation = { 1 }, actions = 2,\nreset = function() return { 0 } end,\n"
      .. "step = function() " .. raised .. " end }\ne:reset()\ne:step(mn.zeros(8, { dtype = 'i32' }))\n"), "^step.lua:4: error was given " .. word, 1)
  end
  says("run " .. script("shape.lua", "local mn = require 'mneme'\nlocal a = mn.tensor { 1, 2 }\na:matmul(a)\n"),
    "^shape.lua:3: matmul: ", 1)
  says("run " .. script("op.lua", "local mn = require 'mneme'\nmn.relu(3)\n"), "^op.lua:2: relu", 1)
  says("run " .. script("core.lua", "local mn = require 'mneme'\nmn.core('gur', { d_in = 4 })\n"),
    "^core.lua:2: unknown core 'gur'; did you mean 'gru'", 2)
  says("run " .. script("env.lua", "local mn = require 'mneme'\nmn.env('tmaze', { coridor = 4 })\n"),
    "^env.lua:2: .*'coridor'; did you mean 'corridor'", 2)
  says("run " .. script("range.lua", "local mn = require 'mneme'\nmn.env('tmaze', { corridor = 0 })\n"), "^range.lua:2: .*corridor", 2)
  says("run " .. script("plain.lua", "return 1") .. " lr=3", "plain.lua declares no settings, so lr=3 means nothing", 2)
end)

t.test("mistakes on the command line: exit status 2, and no line of the script is to blame", function()
  local maze = script("maze.lua", "local mn = require 'mneme'\n\nlocal cfg = mn.config { corridor = 160 }\nprint(cfg.corridor)\n")
  t.eq(mneme("run " .. maze .. " corridor=20"), "20\n")
  says("run " .. maze .. " device=tpu", "tpu", 2)
  says("run " .. maze .. " resume=nowhere", "nowhere: there is no such run", 2)
  local text, rc = mneme("run " .. maze .. " corridor=x debug=1")
  t.ok(rc == 2 and text:find "stack traceback", "debug=1 shows more")
  local threads = script("threads.lua", "local mn, e = require 'mneme', require 'mneme.base.engine'\nmn.config {}\n" ..
    "print(e.C.mn_threads(e.ctx))\n")
  t.eq(mneme("run " .. threads .. " threads=3"), "3\n")
  local own = script("own_threads.lua", "local mn, e = require 'mneme', require 'mneme.base.engine'\n" ..
    "mn.config { threads = 5 }\nprint(e.C.mn_threads(e.ctx))\n")
  t.eq(mneme("run " .. own), "5\n")
  t.eq(mneme("run " .. own .. " threads=3"), "3\n")
end)

t.test("the same script under plain luajit", function()
  local maze = script("plain_maze.lua", "local mn = require 'mneme'\nprint(mn.config { corridor = 160 }.corridor)\n")
  local path = package.path:gsub(";.*", ""):gsub("^%./", "") .. ";" .. package.path
  if path:sub(1, 1) ~= "/" then path = path:gsub("([^;]+)", function(p) return p:sub(1, 1) == "/" and p or
    require("lfs").currentdir() .. "/" .. p end) end
  t.eq(sh(("LUA_PATH='%s' %s %s corridor=20"):format(path, arg[-1] or "luajit", maze)), "20\n")
end)

t.test("a long doc is cut in a list, whole in help", function()
  t.ok(mneme "list ops":find "\n  agalite +gated linear attention [^\n]* %.%.%.\n")
  t.ok(mneme "help op agalite":find "form=random_sign")
end)

t.test("--help lists what the learner reads; its settings work where a script does not declare them", function()
  local text = mneme "run tmaze --help"
  t.ok(text:find "settings of the learner %(a2c%)\n.*  horizon +0 +steps through which gradients flow back", text)
  t.ok(text:find "gamma +0.99 +discount of future rewards", text)
  t.ok(not text:find "\n  clip ", "PPO's")
  local line = "run tmaze core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 steps=64 "
  t.eq(select(2, mneme(line .. "horizon=16 weight_decay=0.1 run=with_horizon")), 0)
  t.ok(files.read(dir .. "/with_horizon/config.json"):find '"horizon": 16,')
  says(line .. "clip=0.1", "^mneme: clip is a setting of ppo, and the learner of this run is a2c", 2)
  says(line .. "lr_schedule=liner", "lr_schedule=liner: expected one of constant.*did you mean 'linear'", 2)
  local idle = script("idle.lua", "require('mneme').config { a = 1 }\n")
  says("run " .. idle .. " horizon=16", "idle.lua: horizon is a learner's setting, and this script made no learner that reads it", 2)
end)

t.test("the program finds its files in an installation, through a link, and by MNEME_HOME", function()
  local root, build = shell.root, shell.build
  files.make_folder(dir .. "/usr/bin")
  files.make_folder(dir .. "/usr/lib")
  files.make_folder(dir .. "/usr/share/mneme")
  files.make_folder(dir .. "/usr/include/mneme")
  os.execute(("cp %s %s/usr/bin/mneme; cp %s %s/usr/lib/; cp -r %s/lua %s/usr/share/mneme/; cp %s/engine/mneme.h %s/usr/include/mneme/")
    :format(program, dir, engine.library, dir, root, dir, root, dir))
  local clean = "env -u MNEME_HOME -u MNEME_BUILD "
  local text = sh(clean .. "usr/bin/mneme doctor")
  t.ok(text:find("mneme +%S+ %S*usr/share/mneme/lua/mneme/../../../../lib/libmneme.so"), text)
  sh "ln -s usr/bin/mneme link"
  t.eq(sh(clean .. "./link list ops | grep -c '^  relu '"), "1\n")
  sh "mkdir -p elsewhere; cp usr/bin/mneme elsewhere/; mv usr/share/mneme/lua elsewhere/"
  local lost, rc = sh(clean .. "LD_LIBRARY_PATH=usr/lib usr/bin/mneme --version")
  t.ok(rc == 1 and lost:find "Lua files are missing" or lost:find "^mneme %d", lost)
  t.eq(select(2, sh("MNEME_BUILD=" .. build .. " MNEME_HOME=" .. root .. " LD_LIBRARY_PATH=usr/lib elsewhere/mneme --version")), 0)
  for _, name in ipairs { "semi;colon", "quest?ion" } do
    sh(("mkdir '%s'; cp elsewhere/mneme '%s'; cp -r elsewhere/lua '%s'"):format(name, name, name))
    lost, rc = sh(("env -u MNEME_BUILD MNEME_HOME='%s' ./'%s'/mneme --version"):format(name, name))
    t.ok(rc == 1 and lost:find "Lua finds none in a folder with ';' or '%?' in its name", lost)
  end
  sh [[mkdir "o'neil"; cp -r usr elsewhere/lua "o'neil/"; mkdir -p "o'neil/usr/share/mneme"; mv "o'neil/lua" "o'neil/usr/share/mneme/"]]
  lost = sh(clean .. [["./o'neil/usr/bin/mneme" list cores]])
  t.ok(lost:find "^agalite " and not lost:find "[Uu]nterminated", lost)
end)

-- ---- training ----

local small = "tmaze core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 "

t.test("Ctrl-C finishes the update, keeps a checkpoint, says how to resume, and exits with 130", function()
  -- what the shell begins with & ignores Ctrl-C, and the program leaves that as it is; env undoes it
  local text, rc = sh(("env --default-signal=INT %s run %s steps=1e12 run=run_INT & pid=$!; "
    .. "while [ ! -s run_INT/metrics.jsonl ]; do sleep 0.05; kill -0 $pid || break; done; kill -INT $pid; wait $pid"):format(program, small))
  t.eq(rc, 130, text)
  t.ok(text:find "to go on: mneme run %S+ resume=run_INT", text)
  t.eq(#files.list(dir .. "/run_INT/checkpoints"), 1)
  text, rc = mneme "run resume=run_INT steps=1"
  t.ok(rc == 0 and text:find "run_INT is finished", text)
end)

t.test("what plays a stored run plays any of its checkpoints", function()
  local text, rc = mneme("run " .. small .. "checkpoint_every=1024 keep_checkpoints=9 threads=1 steps=4096 run=steps")
  t.eq(rc, 0, text)
  local at = tonumber(files.list(dir .. "/steps/checkpoints")[1]:match "%d+")
  text, rc = mneme "credit steps at=0 time_limit=9 out=credit.svg"
  t.eq(rc, 0, text)
  local drawing = files.read(dir .. "/credit.svg")
  t.ok(drawing:find("<style", 1, true) and not drawing:find("var(", 1, true), "a file has its colours in it")
  for _, words in ipairs { "eval steps episodes=4", "intervene steps erase=all at=1 episodes=4", "credit steps at=0",
    "where steps episodes=4", "probe steps episodes=48",
    "view steps out=steps.png wait=0" } do
    local short = words:find "^view" and "" or " time_limit=9"
    text, rc = mneme(("%s%s checkpoint=%d"):format(words, short, at))
    t.eq(rc, 0, text)
    t.ok(words:find "^view" or words:find "^credit" or text:find(("steps at %d steps"):format(at), 1, true), text)
    says(words .. short .. " checkpoint=5", "steps has no checkpoint at 5 steps %(there are " .. at, 2)
  end
end)

t.test("a folder that cannot be written: one line, exit status 1", function()
  says("run " .. small .. "run=/proc/mneme/run", "^mneme: /proc/mneme: cannot be made", 1)
  script("occupied", "")
  says("run " .. small .. "run=occupied/run", "occupied/run: cannot be made: Not a directory", 1)
end)

-- ---- errors and progress, from inside ----

t.test("what could not be printed is told: one line, exit status 1", function()
  for _, words in ipairs { "list ops", "--version", "help gru" } do
    local said, status = mneme(words .. " 2>&1 > /dev/full")
    t.eq(status, 1, words)
    t.ok(said:find "^mneme: standard output: [^\n]+\n$", said)
  end
  t.eq(select(2, mneme "list ops | head -n 1"), 0)
end)

t.test("an error of the library points at the user's line", function()
  local ok, e = pcall(function() errors.raise("m", { hint = "h", status = 3 }) end)
  t.ok(not ok and tostring(e):find "^[^%s]*test_cli.lua:%d+: m %(h%)$", tostring(e))
  t.eq(e.status, 3)
  t.eq(tostring(select(2, pcall(errors.fail, "disk"))), "disk", "the world's faults have no line")
  local _, plain = xpcall(function() error "oops" end, errors.handler)
  t.ok(errors.is(plain) and tostring(plain):find "test_cli.lua:%d+: oops$")
  local _, inside = xpcall(function() errors.nearest("a", nil) end, errors.handler)
  t.ok(tostring(inside):find "test_cli.lua:%d+: .*errors.lua:%d+: ", tostring(inside))
end)

t.test("progress: one line that renews itself on a terminal, plain lines elsewhere", function()
  local function shown(options)
    local out = {}
    options.steps = 1000
    options.out = { write = function(_, ...) for _, s in ipairs { ... } do out[#out + 1] = s end end, flush = function() end }
    local p = progress.new(options)
    for step = 0, 1000, 5 do p:update(step, { ["return"] = 3.9, score = step / 1000 }) end
    p:finish(1000, { ["return"] = 4, score = 0 / 0 })
    return table.concat(out)
  end
  local plain = shown { tty = false, color = false }
  t.eq(select(2, plain:gsub("\n", "")), 11, "a line every tenth")
  t.ok(not plain:find "[\r\27]" and plain:find " 50%%  500/1000 steps .*return 3.90  score 0.50")
  t.ok(shown({ tty = false, unit = "episodes" }):find " 50%%  500/1000 episodes  [%d.kMG]+/s")
end)

os.execute("rm -rf " .. dir)
