-- test_odd_conditions.lua -- few descriptors, errors that are tables, odd names and numbers: one line says what is wrong, and nothing hangs.
local t = require "tests.harness"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"

local dir = shell.folder()
local SMALL = "tmaze core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 threads=1"
local function mneme(words) return shell.mneme(dir, words) end
local function write(name, text) files.write(dir .. "/" .. name, { text }) end

-- A script with an environment whose observation's first value is `seen`.
local function script(seen)
  return ([[
local mn = require "mneme"
local cfg = mn.config { steps = 200, num_envs = 2, num_steps = 32, hidden = 8, core = { "gru", d_model = 8 }, threads = 1 }
local env = mn.env { name = "odd", observation = { 2 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed,
  reset = function(self) self.t = 0 return { 1, 0 } end,
  step = function(self, a) self.t = self.t + 1 return { %s, 1 }, 0, self.t > 5, 0 end }
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 8 }):train()
]]):format(seen)
end

t.test("no descriptor for another program: the run goes on, or says so", function()
  local said, status = shell.run(dir, ("ulimit -n 5; '%s' run %s steps=200 run=few"):format(shell.program, SMALL))
  t.ok(not said:find "attempt to", said)
  t.ok(status == 0 or said:find "Too many open files", said)
end)

t.test("an error that is a table says what it holds", function()
  write("e.lua", "local mn = require 'mneme'\nerror({ code = 3, why = 'because' })\n")
  local said, status = mneme "run e.lua"
  t.ok(status == 1 and said:find "e.lua:2: error was given a table with code, why, expected a text", said)
end)

t.test("a script may assign every name of Lua: the library has its own, in training and in looking", function()
  local names = {}
  for name in pairs(_G) do if name:find "^[a-z]+$" and name ~= "require" and name ~= "arg" then names[#names + 1] = name end end
  t.ok(#names > 25, #names .. " names")
  files.write(dir .. "/names.lua", { "local mn = require 'mneme' ", table.concat(names, ", "), " = ", ("1, "):rep(#names), [[1
require = nil
local cfg = mn.config { core = { "gru", d_model = 4 }, hidden = 4, num_envs = 2, num_steps = 8, steps = 16, threads = 1 }
local env = mn.env { observation = { 1 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed,
  reset = function() return { assert } end, step = function() return { type }, error, true, 1 end }
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]] })
  for _, words in ipairs { "run names.lua run=names", "eval names episodes=3", "view names out=names.png", "run resume=names steps=32" } do
    local said, status = mneme(words)
    t.eq(status, 0, words .. ": " .. said)
  end
end)

t.test("os.exit in what a training or a tool calls is an error of its line, with every learner; elsewhere it ends the script", function()
  files.write(dir .. "/exits.lua", { [[
local mn = require "mneme"
local cfg = mn.config({ at = "", core = { "gru", d_model = 4 }, hidden = 4, num_envs = 1, num_steps = 8, steps = 64, threads = 1,
  learner = "a2c" }, { at = "which function" })
local calls = {}
local function may_exit(at)
  calls[at] = (calls[at] or 0) + 1
  if cfg.at == at and calls[at] > 3 then os.exit(0) end
end
if cfg.at == "script" then os.exit(7) end
local env = mn.env { observation = { 1 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed,
  reset = function() may_exit "reset" return { 0 } end, step = function() may_exit "step" return { 1 }, 1, true, 1 end,
  truth = function() may_exit "truth" return { x = 1 } end, to_know = { x = "number" } }
local function own(at, f) return function(x) may_exit(at) return f(x) end end
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden, torso = own("torso", function(x) return x end),
  policy = cfg.at == "policy" and own("policy", function(x) return x:slice(2, 0, 2) end) or nil }
return mn.learner(cfg, env, agent):train()
]] })
  for _, learner in ipairs(registry.names "learners") do
    local words = "run exits.lua norm_obs=0 learner=" .. learner
    if learner == "ppo" or learner == "pqn" then words = words .. " minibatches=1" end
    for _, at in ipairs { "reset", "step", "torso", "policy" } do
      local said, status = mneme(words .. " at=" .. at)
      t.ok(status == 1 and said:find "exits.lua:7: os.exit%(0%)", learner .. " " .. at .. ": " .. said)
    end
  end
  local said, status = mneme "run exits.lua at=truth run=truth"
  t.eq(status, 0, said)
  said, status = mneme "probe truth"
  t.ok(status == 1 and said:find "exits.lua:7: os.exit%(0%)", said)
  t.eq(select(2, mneme "run exits.lua at=script"), 7)
end)

t.test("a broken pipe is ignored while a training runs, and afterwards as it was before", function()
  write("pipe.lua", ("package.path = '%slua/?.lua;%slua/?/init.lua;' .. package.path\n"):format(shell.root, shell.root) .. [[
local engine = require "mneme.base.engine"
local function ignored()                                  -- SIGPIPE, 13
  local word
  for line in io.lines "/proc/self/status" do word = line:match "^SigIgn:%s*(%x+)" or word end
  return math.floor(tonumber(word:sub(-4), 16) / 2 ^ 12) % 2
end
local before = ignored()
engine.C.mn_watch_signals(true)
engine.C.mn_watch_signals(true)
local during = ignored()
engine.C.mn_watch_signals(false)
engine.C.mn_watch_signals(false)
print(before, during, ignored())]])
  local command = ("MNEME_BUILD='%s' luajit pipe.lua"):format(shell.build)
  t.ok(shell.run(dir, command):find "0%s+1%s+0")
  t.ok(shell.run(dir, "trap '' PIPE; " .. command):find "1%s+1%s+1", "inherited as ignored, it was not kept")
end)

t.test("threads: what was given, and the same range everywhere", function()
  local said, status = mneme("run " .. SMALL:gsub("threads=1$", "threads=1025") .. " steps=100")
  t.ok(status == 2 and said:find "threads=1025, expected 1%.%.256", said)
  t.ok(mneme("run tmaze --help"):find "threads [^\n]*%(0%.%.256%)")
end)

t.test("a number that float32 does not hold is the environment's mistake, not a divergence", function()
  write("big.lua", script "1e300")
  local said, status = mneme "run big.lua run=big"
  t.ok(status ~= 3 and said:find "1e%+300 in place 1 of the observation, expected a finite number", said)
end)

t.test("a script whose name is not UTF-8 is refused, which it would be when resumed", function()
  write("caf\233.lua", script "0")
  local said, status = mneme "run 'caf\233.lua' run=latin"
  t.ok(status == 2 and said:find "its name is not UTF%-8", said)
  t.ok(not files.is_file(dir .. "/latin/config.json"))
end)

t.test("labels of other alphabets, and labels longer than a file's name may be, are runs of their own", function()
  write("labels.lua", [[
local mn = require "mneme"
return mn.study { title = "labels", axes = { name = { "größe", "grüße", "日本", "中国", ("x"):rep(300), ("x"):rep(299) .. "y" } },
  settings = { steps = 10, name = "a" }, seeds = 1, run = function(cfg) return { score = #cfg.name } end, metrics = { score = { "score" } } }
]])
  local said, status = mneme "sweep labels.lua run=labels estimate=0 jobs=2"
  t.ok(status == 0 and said:find "6 of 6 runs done", said)
  shell.fine(dir, "report labels")
  said, status = mneme "sweep labels.lua run=one name=grüße estimate=0 jobs=1"
  t.ok(status == 0 and said:find "1 of 1 runs done", said)
end)

t.test("an action's name of 100,000 letters is drawn at once", function()
  files.write(dir .. "/names.lua", { 'return { name = "names", observation = { 1 }, actions = { ("W"):rep(100000), "other" }, time_limit = 3, '
    .. "reset = function() return { 0 } end, step = function() return { 1 }, 0, false end }" })
  local said, status = shell.run(dir, ("timeout 30 '%s' play names.lua keys=2*other out=h.png"):format(shell.program))
  t.eq(status, 0, said)
end)

t.test("a config.json with values of other kinds is refused in words", function()
  t.eq(select(2, mneme("run " .. SMALL .. " steps=2000 run=long")), 0)
  for _, change in ipairs { 's/"device": "cpu"/"device": 9e15/', 's/"d_model": 8/"d_model": "x"/', 's/"d_model": 8/"d_model": -1/',
    's/"name": "gru"/"name": 7/', 's/"z_bias": 0/"z_bias": {}/', 's/"hidden": 8/"hidden": "a"/', 's/"env": "tmaze-v0"/"env": "nope"/',
    's/"config": {/"config": 3, "y": {/' } do
    shell.run(dir, ("rm -rf odd; cp -r long odd; sed -i '%s' odd/config.json"):format(change))
    local said, status = mneme "eval odd episodes=2"
    t.ok((status == 1 or status == 2) and not said:find "attempt to" and not said:find "traceback", change .. ": " .. said)
  end
end)

t.test("episodes of one step: every tool writes its figure, or refuses in words", function()
  write("one.lua", [[return { name = "one", observation = { 1 }, actions = 1, to_know = { b = "class" }, truth = function(self) return { b = self.b } end,
    reset = function(self, random) self.b = random(2) return { self.b } end, step = function() return { 0 }, 1, true, 1 end }
]])
  t.eq(select(2, mneme "run train env=one.lua core=gru core.d_model=4 hidden=4 num_envs=2 num_steps=8 steps=64 threads=1 run=one"), 0)
  for _, tool in ipairs { "where one episodes=4", "credit one", "probe one episodes=48", "intervene one patch=0:1", "view one", "report one" } do
    for _, kind in ipairs { "svg", "csv", "json", "png", "html" } do
      local words = ("%s out=one.%s"):format(tool, kind)
      os.remove(dir .. "/one." .. kind)
      local said, status = mneme(words)
      t.eq(status, files.is_file(dir .. "/one." .. kind) and 0 or 2, words .. ": " .. said)
    end
  end
end)

files.remove_folder(dir)
