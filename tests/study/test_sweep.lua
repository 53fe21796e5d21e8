-- test_sweep.lua -- mneme sweep: the grid that a study and a command line mean; every run once, whatever is killed and
-- when; runs that crash are kept, reported and tried once more.
local lfs = require "lfs"
local t = require "tests.harness"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local grid = require "mneme.lab.study.grid"
local mn = require "mneme"
local resources = require "mneme.runs.resources"
local shell = require "tests.support.shell"
local sweep = require "mneme.lab.study.sweep"
local C = require("mneme.base.engine").C

local here = shell.folder()
local function path(name) return here .. "/" .. name end

local function write(name, text)
  local f = assert(io.open(path(name), "w"))
  f:write(text)
  f:close()
  return path(name)
end

-- Each run leaves a mark, so that running one twice is seen.
local study = write("study.lua", ([[
local mn = require "mneme"
return mn.study {
  title = "marks",
  axes = { a = { 1, 2, 3, quick = { 1 } }, core = { "gru", { "galite", gate = "scalar", label = "scalar" } },
    kind = { { label = "slow", set = { lr = 0.1 } }, { label = "fast", set = { lr = 0.5 } } } },
  settings = { steps = 10, crash = 0, quick = { steps = 5 } },
  seeds = { 3, quick = 2 },
  run = function(cfg)
    local f = assert(io.open("HERE/marks", "a"))
    f:write(cfg.run:match "[^/]*$", "\n")
    f:close()
    if cfg.crash == cfg.seed then error "this seed is cursed" end
    if cfg.crash == -cfg.seed then os.exit(9) end
    os.execute "while [ -e 'HERE/held' ]; do sleep 0.02; done"
    return { score = cfg.a * 10 + cfg.seed, lr = cfg.lr, scalar = cfg.core.gate == "scalar" and 1 or 0 }
  end,
}
]]):gsub("HERE", here))

local function marks()
  local list, n = {}, 0
  local f = io.open(path "marks")
  for line in f and f:lines() or function() end do list[line], n = (list[line] or 0) + 1, n + 1 end
  if f then f:close() end
  return list, n
end

local function forget() os.remove(path "marks") end

local function mneme(words)
  local said, status = shell.mneme(here, words)
  return status, said
end

local function run(words) return mneme("sweep " .. study .. " estimate=0 " .. words) end

t.test("the grid of a study: axes, sizes, seeds, labels", function()
  local plan = sweep.plan({ script = study }, {})
  t.eq(#plan.runs, 3 * 2 * 2 * 3)
  t.eq(plan.runs[1].name, "a=1,core=gru,kind=slow,seed=1")
  t.eq(plan.runs[4].name, "a=1,core=scalar,kind=fast,seed=1")
  t.eq(table.concat(plan.runs[4].words, " "), "a=1 core=galite core.gate=scalar lr=0.5 seed=1 threads=1")
  t.eq(plan.runs[#plan.runs].seed, 3)
  plan = sweep.plan({ script = study }, { "a=1", "core=gru", "kind=slow", "lr=0.3", "seed=1" })
  t.eq(table.concat(plan.runs[1].words, " "), "a=1 core=gru lr=0.1 seed=1 lr=0.3 threads=1")            -- one's word is the last
  t.eq(#sweep.plan({ script = study }, { "quick=1" }).runs, 1 * 2 * 2 * 2)
  plan = sweep.plan({ script = study, seeds = "5..6" }, { "core=scalar", "a=2,9", "kind=fast", "crash=0" })
  t.eq(#plan.runs, 2 * 2)
  t.eq(plan.runs[2].name, "a=9,core=scalar,kind=fast,seed=5")
  t.eq(#sweep.plan({ script = study, seeds = "10" }, { "a=1", "core=gru", "kind=slow", "crash=1,2" }).runs, 20)
  t.eq(#sweep.plan({ script = study }, { "a=1", "core=gru", "kind=slow", "seed=4,7" }).runs, 2)
end)

t.test("what cannot be swept says so", function()
  local function refused(what, seeds, ...)
    local words = { ... }
    t.raises(function() sweep.plan({ script = study, seeds = seeds }, words) end, what)
  end
  refused("axis kind: 'medium' %(known: slow fast%)", nil, "kind=medium")
  refused("unknown setting", nil, "pauze=1")
  refused("expected a number", nil, "a=1,x")
  refused("seeds=x", "x")
  refused("axis a has 1 twice", nil, "a=1,1")
  for text, what in pairs {
    ["axes = { a = 3 }"] = "is no list", ["axes = { ['a b'] = { 1 } }"] = "needs a name", ["axes = { a = { 1, 1 } }"] = "has 1 twice",
    ["axes = { a = { { set = { b = 1 } } } }"] = "no label", ["axis = {}"] = "unknown key", ["metrics = 1"] = "expected a table",
  } do
    local bad = write("bad.lua", 'local mn = require "mneme"\nmn.study { run = function() end, ' .. text .. " }")
    t.raises(function() sweep.plan({ script = bad }, {}) end, what)
  end
  local function declares(text)
    return function()
      local bad = write("bad.lua", ('local mn = require "mneme"\nreturn mn.study { axes = { core = { "gru", "lstm", quick = { "rwkv7" } } }, '
        .. 'metrics = { score = { "it", range = { 0, 1 } } },\n  run = function() end, %s }'):format(text))
      sweep.plan({ script = bad }, {})
    end
  end
  for text, what in pairs {
    ['metrics = { score = { "it", ragne = { 0, 1 } } }'] = "unknown key of metric score: 'ragne'; did you mean 'range'",
    ['metrics = { score = { "it", range = { 1, 0 } } }'] = "range is 1,0, expected { low, high }",
    ['figures = { { "bars", y = "scroe", by = "core" } }'] = "figure 1: unknown y = 'scroe'; did you mean 'score'",
    ['figures = { { "bars", y = "score", by = "coer" } }'] = "figure 1: unknown axis for by = 'coer'; did you mean 'core'",
    ['figures = { { "bar", y = "score" } }'] = "figure 1: unknown kind 'bar'; did you mean 'bars'",
    ['figures = { { "lines", y = "score", x = "core", log = "z" } }'] = "figure 1: unknown log = 'z' (known: x xy y)",
    ['figures = { { "curves", y = "charts/score", by = "core", where = { corridor = 1 } } }'] = "unknown axis in where of figure 1: 'corridor'",
    ['figures = { { "curves", y = "charts/score", by = "core", where = { core = "gur" } } }'] = "'gur'; did you mean 'gru'",
    ['references = { { "guessing", y = 0.5, of = "scor" } }'] = "reference 1: unknown of = 'scor'; did you mean 'score'",
    ['references = { { "guessing" } }'] = "expected { name, y = number",
    ['claims = { { id = "m", text = "", test = { "better", metric = "sore", a = { core = "gru" }, b = { core = "lstm" } } } }'] =
      "claim m: unknown metric 'sore'; did you mean 'score'",
    ['claims = { { id = "m", text = "", test = { "better", metric = "score", a = { core = "gru" }, b = { core = "lsmt" } } } }'] =
      "unknown value of axis core in b of claim m: 'lsmt'; did you mean 'lstm'",
    ['claims = { { id = "m", text = "", test = { "better", metric = "score", a = { coer = "gru" }, b = { core = "lstm" } } } }'] =
      "'coer'; did you mean 'core'",
    ['claims = { { id = "m", text = "", test = { "best", metric = "score" } } }'] =
      "claim m: unknown kind of test 'best' (known: at_least better equal ratio solves sooner)",
  } do
    local ok, problem = pcall(declares(text))
    t.ok(not ok and tostring(problem):find(what, 1, true), text .. ": " .. tostring(problem))
    t.ok(tostring(problem):find("bad.lua:[23]: "), "the study's own line: " .. tostring(problem))
  end
  local claim = '{ id = "m", text = "", test = { "at_least", metric = "score", a = { core = "gru" }, value = 1 } }'
  local ok, problem = pcall(declares(("claims = { %s, %s }"):format(claim, claim)))
  t.ok(not ok and tostring(problem):find "bad.lua:2: study: claims 1 and 2 have one id, m", tostring(problem))
  local of_cores = write("of_cores.lua", 'local mn = require "mneme"\nreturn mn.study { axes = { core = { "gru", { "lstm", d_model = 4, label = "small" } } }, '
    .. "settings = { core = { 'gru' } }, run = function() end }")
  t.fails(function() sweep.plan({ script = of_cores }, { "core=smal" }) end)
  t.eq(#sweep.plan({ script = of_cores }, { "core=small,rwkv7" }).runs, 2)
  t.fails(function() sweep.plan({ script = of_cores }, { "quick=1", "full=1" }) end)
  declares 'claims = { { text = "", test = { "better", metric = "cpu_s", a = { core = "rwkv7" }, b = { core = "gru" } } } }'()
  t.raises(function() mn.study { title = "no run" } end, "either run")
  t.fails(function() grid.check { a = {} } end)
end)

t.test("every run runs once; again: none; more seeds: only those", function()
  forget()
  local status, out = run("quick=1 jobs=3 run=" .. path "once")
  t.eq(status, 0, out)
  t.ok(out:find "8 of 8 runs done")
  local list, n = marks()
  t.eq(n, 8) t.eq(list["a=1,core=scalar,kind=fast,seed=2"], 1)
  t.eq((run("quick=1 run=" .. path "once")), 0)
  t.eq(select(2, marks()), 8)
  t.eq((run("quick=1 seeds=3 run=" .. path "once")), 0)
  t.eq(select(2, marks()), 12)
  local s = study_folder.load(path "once")
  t.eq(#s.runs, 12)
  for _, c in ipairs(s.runs) do
    t.eq(c.status, "done")
    t.eq(c.metrics.score, 10 + c.seed)
    t.eq(c.metrics.lr, c.labels.kind == "fast" and 0.5 or 0.1)
    t.eq(c.metrics.scalar, c.labels.core == "scalar" and 1 or 0)
    t.ok(c.resources.wall_s >= 0 and c.resources.cpu_s > 0 and c.resources.peak_mib > 1)
  end
  status, out = run("quick=1 crash=7 run=" .. path "once")
  t.eq(status, 2) t.ok(out:find "other settings", out)
end)

t.test("runs may have every processor, also where OMP_PROC_BIND bound the sweep to one", function()
  local script = write("processors.lua", [[
local mn = require "mneme"
return mn.study { title = "processors", axes = { a = { 1, 2 } }, settings = { steps = 1 }, metrics = { processors = { "processors" } },
  run = function()
    local pipe = io.popen "env -u OMP_NUM_THREADS nproc"
    local n = tonumber(pipe:read "*a":match "%d+")
    pipe:close()
    return { processors = n }
  end }
]])
  local said, status = shell.run(here, ("OMP_PROC_BIND=true '%s' sweep '%s' jobs=2 run='%s'"):format(shell.program, script, path "processors"))
  t.eq(status, 0, said)
  local have = tonumber((shell.run(here, "env -u OMP_NUM_THREADS nproc"):match "%d+"))
  for _, c in ipairs(study_folder.load(path "processors").runs) do t.eq(c.metrics.processors, have) end
end)

t.test("a folder that holds another study, or a run, stays as it is", function()
  local other = write("other_study.lua", 'return require("mneme").study { axes = { a = { 1 } }, run = function(cfg) return { score = cfg.a } end }\n')
  local before = shell.run(here, "find once | sort")
  local status, out = mneme("sweep " .. other .. " estimate=0 run=" .. path "once")
  t.eq(status, 2) t.ok(out:find("once holds a sweep of " .. study .. ", not of " .. other .. " (run=FOLDER puts this one elsewhere)", 1, true), out)
  t.eq(shell.run(here, "find once | sort"), before)
  local one_run = "once/runs/a=1,core=gru,kind=fast,seed=1"
  before = shell.run(here, ("find '%s' | sort"):format(one_run))
  status, out = mneme(("sweep %s estimate=0 run='%s'"):format(other, path(one_run)))
  t.eq(status, 2) t.ok(out:find("seed=1 is a run, not a study", 1, true), out)
  t.eq(shell.run(here, ("find '%s' | sort"):format(one_run)), before)
end)

t.test("a run that fails is kept, reported and tried once more", function()
  forget()
  local status, out = run("quick=1 crash=2 core=gru jobs=2 run=" .. path "cursed")
  t.eq(status, 1)
  t.ok(out:find "this seed is cursed" and out:find "2 failed", out)
  local list = marks()
  t.eq(list["a=1,core=gru,kind=fast,seed=1"], 1) t.eq(list["a=1,core=gru,kind=fast,seed=2"], 2)
  local result = study_folder.result(path "cursed/runs/a=1,core=gru,kind=fast,seed=2")
  t.eq(result.status, "failed") t.eq(result.exit, 1) t.eq(result.attempts, 2)
  t.ok(result.error:find "cursed")
  t.eq((run("quick=1 crash=-1 core=gru kind=fast jobs=1 run=" .. path "exits")), 1)
  t.eq(study_folder.result(path "exits/runs/a=1,core=gru,kind=fast,seed=1").exit, 9)
end)

-- Begin a sweep whose first two runs last until they are let go, and do something to it once they run.
local function begin(words)
  forget()
  files.write(path "held", { "" })
  local pid = shell.run(here,
    ("env --default-signal=INT '%s' sweep %s estimate=0 %s >%s 2>&1 & echo $!"):format(shell.program, study, words, path "out")):match "%d+"
  shell.wait("two cells", function() return select(2, marks()) == 2 end)
  return pid
end

local function let_go() os.remove(path "held") end

-- What a sweep said, once it has ended.
local function ended(pid)
  shell.wait("the sweep's end", function() return os.execute("kill -0 " .. pid .. " 2>/dev/null") ~= 0 end)
  return files.read(path "out")
end

t.test("kill -9 of the sweep: its runs end too, and the next sweep runs those that are open", function()
  local pid = begin("quick=1 jobs=2 run=" .. path "killed")
  os.execute("kill -9 " .. pid)
  let_go()
  local status, out = run("quick=1 jobs=4 run=" .. path "killed")
  t.eq(status, 0, out)
  for _, c in ipairs(study_folder.load(path "killed").runs) do t.eq(c.status, "done") end
end)

t.test("kill -9 of a run: it is tried again; Ctrl-C: what is open stays open", function()
  local pid = begin("quick=1 kind=slow jobs=2 run=" .. path "shot")
  shell.run(here, ('for f in /proc/[0-9]*/stat; do read -r p _ _ of _ < $f; [ "$of" = %s ] && kill -9 $p; done'):format(pid))
  let_go()
  local out = ended(pid)
  t.ok(out:find "failed, tried once more .*killed by signal 9", out)
  t.ok(out:find "4 of 4 runs done", out)
  pid = begin("quick=1 kind=fast jobs=2 run=" .. path "stopped")
  os.execute("kill -INT " .. pid)
  let_go()
  out = ended(pid)
  t.ok(out:find "open; the same command goes on", out)
  t.ok(not out:find "failed", out)
end)

t.test("two sweeps on one folder: the second says so", function()
  local pid = begin("quick=1 jobs=2 run=" .. path "twice")
  local status, out = run("quick=1 run=" .. path "twice")
  t.eq(status, 1) t.ok(out:find "twice/lock", out)
  os.execute("kill -9 " .. pid)
  let_go()
end)

t.test("a script without a study: settings with several values are the axes; its runs are runs that resume", function()
  local words = "tmaze corridor=4,5 core=gru core.d_model=8 hidden=8 num_envs=2 num_steps=16 steps=64 seeds=2 run=" .. path "plain"
  local status, out = mneme("sweep " .. words)
  t.eq(status, 0, out)
  local s = study_folder.load(path "plain")
  t.eq(#s.runs, 4) t.eq(s.runs[1].name, "corridor=4,seed=1")
  t.eq(s.runs[1].metrics.steps, 64)
  t.ok(lfs.attributes(s.runs[1].path .. "/config.json"))
  os.remove(s.runs[1].path .. "/result.json")                  -- killed before the result was written
  status, out = mneme("sweep " .. words)
  t.eq(status, 0, out)
  t.eq(study_folder.load(path "plain").runs[1].metrics.steps, 64)
  status, out = mneme("sweep " .. words .. " only=2")
  t.eq(status, 0, out)
  status, out = mneme("sweep " .. words .. " list=1")
  t.ok(status == 0 and out:find "   4  done    corridor=5,seed=2", out)
end)

t.test("a study of another experiment: its runs, with the study's settings, and what one says wins", function()
  local script = write("other.lua", [[
local small = { "gru", d_model = 8, label = "small" }
return require("mneme").study { of = "tmaze", seeds = { 2, quick = 1 },
  axes = { core = { { "gru", d_model = 16, label = "small" }, "lstm", quick = { small } }, corridor = { 4, 5 } },
  settings = { hidden = 8, num_envs = 2, num_steps = 16, steps = 640, quick = { steps = 64 } } }
]])
  local plan = sweep.plan({ script = script }, { "quick=1" })
  t.eq(#plan.runs, 2)
  t.eq(table.concat(plan.runs[1].words, " "), "core=gru core.d_model=8 corridor=4 seed=1 quick=1 threads=1")
  t.eq(table.concat(sweep.plan({ script = script }, { "core=small", "steps=32" }).runs[1].words, " "),
    "core=gru core.d_model=16 corridor=4 seed=1 steps=32 threads=1")
  t.eq(sweep.plan({ script = script }, { "quick=1", "core=small" }).runs[1].words[2], "core.d_model=8")
  t.raises(function() sweep.plan({ script = script }, { "coridor=4" }) end, "coridor")
  local status, out = mneme(("sweep %s quick=1 estimate=0 run=%s"):format(script, path "of"))
  t.eq(status, 0, out)
  local s = study_folder.load(path "of")
  t.eq(s.runs[1].metrics.steps, 64)
  local said = files.read(s.runs[1].path .. "/config.json")
  t.ok(said:find '"hidden": 8' and said:find '"corridor": 4' and said:find "other.lua")
  os.remove(s.runs[2].path .. "/result.json")
  t.eq((mneme(("sweep %s quick=1 estimate=0 run=%s"):format(script, path "of"))), 0, "goes on by its run folder")
end)

t.test("power=1 asks only the claims that the sweep has runs for, and corrects for those", function()
  local claim = '{ id = "%s", text = "", test = { "solves", metric = "score", above = 0.5, a = { core = "gru" }, b = { core = "%s" } } }'
  local script = write("claims.lua", ('local mn = require "mneme"\nreturn mn.study { axes = { core = { "gru", "lstm", "rwkv7" } }, '
    .. 'metrics = { score = { "it", range = { 0, 1 } } }, run = function() end, claims = { %s, %s } }'):format(claim:format("one", "lstm"),
    claim:format("two", "rwkv7")))
  local function told(words)
    local status, out = mneme(("sweep %s power=1 seeds=10 run=%s %s"):format(script, path "power", words))
    t.eq(status, 0, out)
    return out
  end
  local both, first = told "", told "core=gru,lstm"
  t.ok(both:find "one: " and both:find "two: shares" and not both:find "no runs", both)
  t.ok(both:find("one: shares of seeds that can be told apart: 0.6 against 0,", 1, true), both)
  t.ok(first:find("two: no runs in this sweep\n", 1, true), first)
  t.ok(first:find("one: shares of seeds that can be told apart: 0.5 against 0,", 1, true), first)
  local _, none = told "core=gru":gsub("no runs in this sweep\n", "")
  t.eq(none, 2)
end)

t.test("a wrong setting or value of an axis of a study is refused before anything runs, at the study's line", function()
  local function study_with(axes, settings)
    return write("wrong.lua", ('local mn = require "mneme"\nreturn mn.study { of = "tmaze",\n  axes = { %s },\n  settings = { %s hidden = 8 } }'):format(axes,
      settings or ""))
  end
  local function refused(script, what)
    for _, words in ipairs { "list=1", "estimate=0", "power=1" } do
      local status, out = mneme(("sweep %s %s run=%s"):format(script, words, path "wrong"))
      t.eq(status, 2, out)
      t.ok(out:find(what), out)
    end
    t.ok(not lfs.attributes(path "wrong"), "something ran")
  end
  refused(study_with 'core = { "gru", "hgat" }', "wrong.lua:3: axis core, value hgat: unknown core 'hgat' %(known: ")
  refused(study_with 'core = { "grv", "lstm" }', "wrong.lua:3: axis core, value grv: unknown core 'grv'; did you mean 'gru'")
  refused(study_with 'core = { "gru", { "lstm", d_modl = 4, label = "small" } }',
    "axis core, value small: unknown key of core lstm 'd_modl'; did you mean 'd_model'")
  refused(study_with 'core = { "gru" }, corridor = { 4, 3000 }', "wrong.lua:3: axis corridor, value 3000: corridor=3000: expected 2..2048")
  refused(study_with 'learner = { "a2c", "poo" }', "axis learner, value poo: unknown learner 'poo'; did you mean 'ppo'")
  refused(study_with 'kind = { { label = "a", set = { corridor = 4 } }, { label = "b", set = { coridor = 4 } } }',
    "axis kind, value b: unknown setting 'coridor'")
  for _, axes in ipairs { 'core = { "gru", function() end }', 'core = { { "agalite", feature = function() end } }', '["core.feature"] = { { 1 } }',
    'core = { { "agalite", feature = { f = print } } }' } do
    refused(study_with(axes), 'label = "mine", set = { core = { "agalite", feature = "mine" } }')
  end
  for _, typed in ipairs { "core=gru core.d_modle=8,16", "core=gru core.d_modle=8", "core=gru core.eta=2,3" } do
    refused("tmaze " .. typed, "unknown key of core gru '" .. typed:match "core%.([%w_]+)")
  end
  refused(study_with('core = { "gru" }', 'steps = "a",'), "wrong.lua:4: steps=a: expected a number")
  refused(study_with('core = { "gru" }', "stop_score = 7,"), "wrong.lua:4: stop_score=7: expected %-1%.%.1")
  refused(study_with('core = { "gru" }', "stepz = 7,"), "wrong.lua:4: unknown setting 'stepz'; did you mean 'steps'")
  t.eq((mneme(("sweep %s core=gru list=1"):format(study_with 'core = { "gru", "hgat" }'))), 0, "the others alone")
end)

t.test("an estimate comes first: runs are tried for a moment, and leave nothing behind", function()
  local words = "tmaze corridor=4 core=gru,lstm core.d_model=8 hidden=8 num_envs=2 num_steps=16 steps=6400 run=" .. path "told"
  local status, out = mneme("sweep jobs=8 " .. words)
  t.eq(status, 0, out)
  local minutes, seconds = out:match "told: 2 runs in 2 processes: about (%d+):(%d%d), up to %d+ MiB each %(2 kinds were tried%)"
  t.ok(minutes, out)
  t.ok(not lfs.attributes(path "told/estimate"))
  local longest = 0
  for _, c in ipairs(study_folder.load(path "told").runs) do
    local e = study_folder.result(c.path).estimate
    t.ok(e.wall_s > 0 and e.wall_s < 1000 and e.peak_mib > 1)
    t.eq(c.metrics.steps, 6400)
    longest = math.max(longest, e.wall_s)
  end
  t.near(60 * minutes + seconds, longest, 1, "two runs side by side take as long as the longer one, however many processes there are")
end)

t.test("an estimate counts no more processes than there are runs, and one of a thing", function()
  local estimate, process_pool = require "mneme.lab.study.estimate", require "mneme.lab.study.process_pool"
  t.eq(estimate.text({ seconds = 60, peak_mib = 9, tried = 1 }, 1, 8), "1 run in 1 process: about 1:00, up to 9 MiB each (1 kind was tried)")
  t.eq(estimate.text({ seconds = 60, peak_mib = 9, tried = 2 }, 5, 3), "5 runs in 3 processes: about 1:00, up to 9 MiB each (2 kinds were tried)")
  t.eq(estimate.text({ tried = 1 }, 1, 8), "1 run: how long it takes is not known before")
  t.eq(process_pool.seconds(60, 1, 8, 60), 60)
  t.eq(process_pool.seconds(70, 2, 8, 60), 60)
  t.eq(process_pool.seconds(600, 10, 4, 60), 150)
  t.eq(process_pool.seconds(0, 0, 4, 0), 0)
end)

t.test("what a run does before and after its training counts as its own, and is estimated", function()
  local script = write("around.lua", [[
local mn = require "mneme"
local function work() local from = os.clock() repeat until os.clock() - from > 0.25 end
return mn.study { settings = { steps = 256, num_envs = 2, num_steps = 16, core = { "gru", d_model = 8 }, hidden = 8 }, seeds = { 1 },
  run = function(cfg)
    work()
    local env = mn.env("tmaze", { corridor = 4, num_envs = 2, seed = cfg.seed })
    local result = mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 8 }):train()
    work()
    return result
  end }
]])
  local from = C.mn_clock(false)
  local status, out = mneme(("sweep %s run=%s"):format(script, path "around"))
  local whole = C.mn_clock(false) - from
  t.eq(status, 0, out)
  local result = study_folder.result(study_folder.load(path "around").runs[1].path)
  t.ok(result.resources.cpu_s > 0.5 and result.resources.wall_s > 0.5 and result.resources.wall_s < whole, result.resources.cpu_s)
  t.ok(result.estimate.wall_s > 0.5, result.estimate.wall_s)
end)

t.test("labels with a comma, and names as runs have them, narrow an axis as others do", function()
  local axes = { core = { { "gtrxl", memory = 128, label = "gtrxl, 128" }, { "gtrxl", memory = 256, label = "gtrxl, 256" }, "gru",
    { "gtrxl", label = "gtrxl" } } }
  local function labels(text)
    local list = {}
    for i, v in ipairs(grid.narrow(axes, { "core=" .. text }).core) do list[i] = v.label end
    return table.concat(list, "; ")
  end
  t.eq(labels "gtrxl, 256", "gtrxl, 256") t.eq(labels "gru,gtrxl, 128,gtrxl", "gru; gtrxl, 128; gtrxl")
  t.eq(labels "gtrxl__256,gru", "gtrxl, 256; gru") t.eq(labels "lstm,gru", "lstm; gru") t.eq(labels "gtrxl", "gtrxl")
end)

-- What a terminal shows of a sweep: its first run has begun.
local function shown(runs, jobs, waiting)
  local said, stderr = {}, io.stderr
  io.stderr = { write = function(_, ...) said[#said + 1] = table.concat { ... } end, flush = function() end }       -- luacheck: ignore
  local ok, problem = pcall(function()
    local it = require("mneme.lab.study.sweep_progress").new({ runs = runs }, jobs, { done = 0, failed = 0, all = 3 }, true)
    it:update({ { job = runs[1], since = C.mn_clock(false) } }, waiting)
  end)
  io.stderr = stderr                                                                                               -- luacheck: ignore
  t.ok(ok, problem)
  return table.concat(said)
end

t.test("before a run has ended, how long a sweep will take comes from the estimates", function()
  local runs = { { name = "a=1,seed=1", estimate = { wall_s = 100 } }, { name = "a=2,seed=1", estimate = { wall_s = 300 } }, { name = "a=3,seed=1" } }
  local function eta(jobs, waiting)
    local minutes, seconds = shown(runs, jobs, waiting):match "ETA (%d+):(%d+)"
    return 60 * minutes + seconds
  end
  t.near(eta(2, 2), 250, 1, "(100 + 2 x 200) / 2")
  t.near(eta(8, 2), 200, 1, "the longest of three")
  t.near(eta(8, 0), 100, 1, "the one that is left")
end)

t.test("a setting that each of several learners has is one of their sweep's; where one lacks it, that one is named: every pair", function()
  local class, names, tried = mn.learners, mn.names "learners", 0
  for i, a in ipairs(names) do
    for j = i + 1, #names do
      local b, shared = names[j]
      for key, value in pairs(class[a].defaults) do
        if type(value) == "number" and class[b].defaults[key] ~= nil and class.a2c.defaults[key] == nil then shared = key .. "=" .. value end
      end
      if shared then
        tried = tried + 1
        local words = ("sweep tmaze quick=1 list=1 %s learner=%s,%s"):format(shared, a, b)
        t.ok(shell.fine(here, words):find("learner=" .. b, 1, true), words)
        shell.refused(here, words .. ",a2c", "the learner of this run is a2c")
      end
    end
  end
  t.ok(tried > 2, tried)
end)

t.test("energy comes from a meter that begins anew, or is not known", function()
  t.eq(resources.joules(1e6, 5e6, 1e7), 4)
  t.eq(resources.joules(9e6, 1e6, 1e7), 2)
  t.eq(resources.joules(1e6, 5e6), 4)
  t.eq(resources.joules(9e6, 1e6), nil)
end)

os.execute("rm -r '" .. here .. "'")
