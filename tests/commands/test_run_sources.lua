-- test_run_sources.lua -- a run knows its code: what it was made by is kept, compared, and used where it is asked for; code that a folder
-- brings is not run unasked; a sweep has one code.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"

local dir = shell.folder()
local function sh(line) return shell.run(dir, line) end
local function mneme(words) return shell.mneme(dir, words) end
local function write(name, text) files.write(dir .. "/" .. name, { text }) end
local function info(run) return json.decode((files.read(dir .. "/" .. run .. "/config.json"))) end

write("rules.lua", "return { pay = function(a) return a end }\n")
write("mine.lua", [[
local mn = require "mneme"
local wants = require; local rules = wants "rules"
local cfg = mn.config { core = { "own" }, steps = 2048, num_envs = 4, num_steps = 32, hidden = 16, record_every = 0, threads = 1 }
local env = mn.env { name = "pay", observation = { 2 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed,
  reset = function(self) self.t = 0 return { 1, 0 } end,
  step = function(self, a) self.t = self.t + 1 return { 0, 1 }, rules.pay(a), self.t > 5, a end }
mn.manual_seed(cfg.seed)
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 16 }):train()
]])
files.make_folder(dir .. "/cores")
write("cores/own.lua", (files.read(shell.root .. "lua/mneme/cores/gru.lua"):gsub("local", "-- mine\nlocal", 1)))
local core_text = files.read(dir .. "/cores/own.lua")

local function mean_return(said) return tonumber(said:match "return%s+([%d.]+)") end

t.test("a run keeps its script, what that required, and its own core, with checksums and who made it", function()
  local said, status = mneme "run mine.lua core.d_model=8 run=r"
  t.eq(status, 0, said)
  for _, name in ipairs { "mine.lua", "rules.lua", "cores/own.lua" } do
    t.eq((files.read(dir .. "/r/source/" .. name)), (files.read(dir .. "/" .. name)))
  end
  local about = info "r"
  t.eq(#about.source, 3)
  t.eq(#about.history, 1)
  t.ok(about.history[1].from_step == 0 and about.history[1].program_checksum:find "^%x+$" and about.history[1].host)
  t.eq(select(2, mneme "run resume=r steps=4096"), 0)
  t.eq(info("r").history[2].from_step, 2048)
end)

local before

t.test("changed code is an error that names file and line; use=stored and use=now choose", function()
  before = mean_return(mneme "eval r episodes=20")
  t.ok(before and before < 10)
  write("rules.lua", "-- richer\nreturn { pay = function(a) return 100 * a end }\n")
  for _, command in ipairs { "eval r episodes=20", "run resume=r steps=8192", "intervene r erase=layers.0 at=2 episodes=4",
      "view r out=r.png" } do
    local said, status = mneme(command)
    t.eq(status, 2, command .. ": " .. said)
    t.ok(said:find "r: rules.lua has changed since the run began %(line 1%) %(use=stored runs r/source/rules.lua; use=now takes", said)
  end
  t.eq(mean_return(mneme "eval r episodes=20 use=stored"), before)
  t.ok(mean_return(mneme "eval r episodes=20 use=now") >= 50 * before)
  sh "cp -r r s"
  t.eq(select(2, mneme "run resume=s steps=8192 use=now"), 0)
  t.eq(info("s").history[3].code, "now")
  write("rules.lua", "return { pay = function(a) return a end }\n")
end)

t.test("a core that was edited is not evaluated in place of the trained one", function()
  write("cores/own.lua", core_text .. "\n-- changed\n")
  local said, status = mneme "eval r episodes=4"
  t.ok(status == 2 and said:find "cores/own.lua has changed since the run began %(line %d+%)", said)
  t.eq(mean_return(mneme "eval r episodes=20 use=stored"), before)
  write("cores/own.lua", core_text)
  t.eq(mean_return(mneme "eval r episodes=20"), before)
end)

t.test("a moved folder evaluates from what it keeps, if it is trusted", function()
  sh "mkdir away; cp -r r away/r"
  local away = dir .. "/away"
  local said, status = shell.mneme(away, "eval r episodes=20")
  t.ok(status == 2 and said:find "r: mine.lua is not here %(trust=1 runs the copy that the run keeps, r/source/mine.lua%)", said)
  t.eq(mean_return((shell.mneme(away, "eval r episodes=20 trust=1"))), before)
  said, status = shell.mneme(away, "run resume=r steps=6144 trust=1")
  t.eq(status, 0, said)
  sh "sed -i 's/a end }/-a end }/' away/r/source/rules.lua"
  said = shell.mneme(away, "eval r episodes=20 trust=1")
  t.ok(said:find "r/source/rules.lua was changed after the run wrote it", said)
end)

t.test("a script that the command line names is the user's own, wherever it lies", function()
  sh "mkdir -p below"
  local below = dir .. "/below"
  write("plain.lua", (files.read(dir .. "/mine.lua"):gsub("\n[^\n]*wants[^\n]*", ""):gsub("rules.pay%(a%)", "a"):gsub('"own"', '"gru", d_model = 4')))
  local first, begun = shell.mneme(below, "run ../plain.lua run=q steps=2048")
  t.eq(begun, 0, first)
  local said, status = shell.mneme(below, "run resume=q steps=4096")
  t.ok(status ~= 0 and said:find("q brings its own code, ../plain.lua", 1, true), said)
  said, status = shell.mneme(below, "run ../plain.lua resume=q steps=4096")
  t.eq(status, 0, said)
  sh "rm -r below"
end)

t.test("code that a run's folder names is not run unasked", function()
  sh "cp -r r evil"
  write("evil/core.lua", 'io.open("pwned", "w"):close()\n' .. core_text)
  local text = files.read(dir .. "/evil/config.json")
  for _, name in ipairs { "evil/core.lua", dir .. "/evil/core.lua" } do
    local about = json.decode((text))
    about.source, about.env_of_script, about.env, about.task = {}, nil, "tmaze-v0", {}
    about.core.name = name
    write("evil/config.json", json.encode(about))
    for _, command in ipairs { "eval evil episodes=2", "view evil out=e.png", "intervene evil erase=layers.0 at=1 episodes=2" } do
      local said, status = mneme(command)
      t.ok(status ~= 0 and said:find "evil brings its own code, .-core.lua, which was not run %(trust=1 runs it%)", command .. ": " .. said)
      t.ok(not files.is_file(dir .. "/pwned"))
    end
  end
  local about = json.decode((text))
  about.script, about.source = "evil/mine.lua", {}
  write("evil/mine.lua", 'io.open("pwned", "w"):close()\n' .. files.read(dir .. "/mine.lua"))
  write("evil/config.json", json.encode(about))
  for _, command in ipairs { "run resume=evil steps=9000", "eval evil episodes=2" } do
    local said, status = mneme(command)
    t.ok(status ~= 0 and said:find "brings its own code", command .. ": " .. said)
    t.ok(not files.is_file(dir .. "/pwned"))
  end
  mneme "eval evil episodes=2 trust=1"
  t.ok(files.is_file(dir .. "/pwned"))
end)

t.test("a core that a run's folder brings is not run by a report or a comparison, unless it is trusted", function()
  local _, status = mneme "run demo core=gru core.d_model=8 hidden=8 steps=256 num_envs=2 num_steps=32 threads=1 run=honest"
  t.eq(status, 0)
  sh "cp -r honest forged"
  write("forged/bad.lua", "os.execute 'touch ran_by_report'\n" .. files.read(require("mneme.base.registry").library .. "cores/gru.lua"))
  write("forged/config.json", (files.read(dir .. "/forged/config.json"):gsub('"name": "gru"', '"name": "forged/bad.lua"')))
  for _, command in ipairs { "report forged out=f.html", "report honest forged out=f.md", "compare forged honest out=f.svg", "compare honest forged" } do
    mneme(command)
    t.ok(not files.is_file(dir .. "/ran_by_report"), command)
  end
  mneme "report forged out=f.html trust=1"
  t.ok(files.is_file(dir .. "/ran_by_report"))
end)

t.test("compiled Lua is refused", function()
  sh "luajit -b mine.lua code.lua"
  local said, status = mneme "run code.lua"
  t.ok(status == 1 and said:find "code.lua: is compiled Lua, expected text", said)
end)

t.test("a data file that was replaced is noticed", function()
  write("text.txt", ("the quick brown fox jumps over the lazy dog. "):rep(400))
  local said, status = mneme "run char_lm quick=1 file=text.txt steps=4096 core=gru core.d_model=16 run=lm threads=1"
  t.eq(status, 0, said)
  t.ok(info("lm").data[1].path == "text.txt" and info("lm").data[1].bytes > 1000)
  write("text.txt", ("the quick brown dog jumps over the lazy fox. "):rep(400))
  said, status = mneme "run resume=lm steps=8192"
  t.ok(status == 2 and said:find "lm: text.txt has changed since the run began", said)
  t.eq(select(2, mneme "run resume=lm steps=8192 use=now"), 0)
end)

write("grid.lua", [[
local mn = require "mneme"
local rules = dofile "rules.lua"
return mn.study { title = "grid", axes = { a = { 1, 2 } }, settings = { steps = 10 }, seeds = 2,
  run = function(cfg) return { score = rules.pay(cfg.a) + cfg.seed } end, metrics = { score = { "score" } } }
]])

t.test("a sweep has one code", function()
  t.eq(select(2, mneme "sweep grid.lua run=g estimate=0 jobs=1"), 0)
  write("rules.lua", "return { pay = function(a) return 7 * a end }\n")
  local said, status = mneme "sweep grid.lua run=g estimate=0 jobs=1 seeds=3"
  t.ok(status == 2 and said:find "g: 4 of its runs were made by other code: rules.lua has changed since g/runs/", said)
  said = mneme "report g"
  t.ok(said:find "warning: g: rules.lua has changed since its runs were made", said)
  t.eq(select(2, mneme "sweep grid.lua run=h estimate=0 jobs=1"), 0)
  said = mneme "compare g h"
  t.ok(said:find "code of rules.lua", said)
  write("rules.lua", "return { pay = function(a) return a end }\n")
  t.eq(select(2, mneme "sweep grid.lua run=g estimate=0 jobs=1 seeds=3"), 0)
end)

t.test("a study's folder that brings its script is not a program", function()
  write("g/grid.lua", 'io.open("pwned2", "w"):close()\n' .. files.read(dir .. "/grid.lua"))
  sh [[sed -i 's|"script": "grid.lua"|"script": "g/grid.lua"|' g/study.json]]
  local said, status = mneme "report g"
  t.ok(status ~= 0 and said:find "g brings its own code, g/grid.lua", said)
  t.ok(not files.is_file(dir .. "/pwned2"))
  t.eq(select(2, mneme "report g trust=1"), 0)
end)

t.test("mneme check RUN examines a folder", function()
  t.eq(select(2, mneme "run tmaze quick=1 core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 threads=1 steps=60000 run=sound"), 0)
  local said, status = mneme "check sound"
  t.eq(status, 0, said)
  t.ok(said:find "^ok +sound  %d+ lines of log, %d checkpoints, 1 episodes, 1 source files, 1 starts\n$", said)
  local function damaged(line, expected)
    sh("rm -rf hurt; cp -r sound hurt; " .. line)
    local found, code = mneme "check hurt"
    t.ok(code == 1 and found:find "^DAMAGED +hurt " and found:find(expected), line .. ": " .. found)
  end
  damaged("printf 'x' | dd of=$(ls hurt/checkpoints/*) bs=1 seek=3000 conv=notrunc", "step%-%d+.safetensors")
  damaged("sed -i '2d' hurt/metrics.jsonl", "counts %d+ lines of the log, which has %d+")
  damaged("head -1 hurt/metrics.jsonl >> hurt/metrics.jsonl", "step %d+ comes after step %d+")
  damaged("printf '{\"step\": 7' >> hurt/metrics.jsonl", "line %d+ is not whole")
  damaged("echo >> hurt/source/*/tmaze.lua || echo >> $(find hurt/source -name '*.lua')", "was changed after the run wrote it")
  damaged("printf 'x' | dd of=$(ls hurt/episodes/*.mnt) bs=1 seek=400 conv=notrunc", "episodes/")
  damaged("rm $(find hurt/source -name '*.lua')", "source/.-tmaze.lua: is not there")
  damaged("printf 'x' | dd of=hurt/events.out.tfevents.mneme bs=1 seek=600 conv=notrunc", "events.-: record %d+ is damaged")
  damaged("for i in 1 2 3 4; do head -c 42 sound/events.out.tfevents.mneme >> hurt/events.out.tfevents.mneme; done",
    "events.-: has %d+ records after its first two, the log has %d+ lines")
  damaged("cd hurt/checkpoints; cp $(ls | tail -1) step-99999.safetensors", "step%-99999.safetensors: holds step %d+")
end)

t.test("mneme check names code, data and program that have changed since", function()
  sh "cp text.txt new; sed 's/dog jumps over the lazy fox/fox jumps over the lazy dog/g' new > text.txt"          -- as it was at the start
  local said, status = mneme "check lm"
  t.ok(status == 0 and not said:find "text.txt", said)
  sh "cp -r lm other; sed -i 's/\"program_checksum\": \"[^\"]*\"/\"program_checksum\": \"0\"/' other/config.json; echo x >> text.txt"
  said, status = mneme "check other"
  t.ok(status == 0 and said:find "note: text.txt has changed since the run began" and said:find "note: it was made by another build of Mneme", said)
  write("rules.lua", "return 1\n")
  said = mneme "check r"
  t.ok(said:find "note: rules.lua has changed since the run began %(line 1%)", said)
  sh "rm rules.lua"
  t.ok(mneme("check r"):find "note: rules.lua is gone since the run began")
end)

t.test("mneme check of a study checks each run, and its result against it", function()
  local said, status = mneme "check g"
  t.ok(status == 0 and said:find "ok +g/runs/a=1,seed=1", said)
  write("pair.lua", [[
local mn = require "mneme"
return mn.study { of = "tmaze", axes = { corridor = { 3, 4 } }, settings = { steps = 2048, num_envs = 2, num_steps = 32, hidden = 4,
  core = { "gru", d_model = 4 } }, seeds = 1, metrics = { score = { "score" } } }
]])
  said, status = mneme "sweep pair.lua run=pair estimate=0 jobs=2"
  t.eq(status, 0, said)
  t.eq(select(2, mneme "check pair"), 0)
  sh "sed -i 's/\"steps\": 2048/\"steps\": 4096/' pair/runs/corridor=3,seed=1/result.json"
  sh "printf x | dd of=$(ls pair/runs/corridor=4,seed=1/checkpoints/*) bs=1 seek=5000 conv=notrunc"
  said, status = mneme "check pair"
  t.ok(status == 1 and said:find "DAMAGED +pair/runs/corridor=3,seed=1 .-result.json: is of step 4096, the newest checkpoint of step 2048", said)
  t.ok(said:find "DAMAGED +pair/runs/corridor=4,seed=1 .-step%-2048.safetensors: ", said)
end)

files.remove_folder(dir)
