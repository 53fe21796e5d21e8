-- test_tune.lua -- a sweep that tunes first: killed at every trial it proposes and picks the same; budgets are equal and seeds fresh; and what cannot
-- be tuned.
local t = require "tests.harness"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local tuning_picks = require "mneme.lab.study.tuning_picks"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"
local stats = require "mneme.stats"
local tuning = require "mneme.lab.study.tuning"

local here = shell.folder()
local function path(name) return here .. "/" .. name end
local function mneme(words) return shell.mneme(here, words) end

-- A training without one: best at lr 10^-2.5.  Where the folder `killing` is, each run kills its sweep when it first begins, and
-- itself; where the file in it is not empty, those of odd seeds do, and live on.
files.write(path "toy.lua", { [[
local ffi = require "ffi"
local mn = require "mneme"
ffi.cdef "int getppid(void); int getpid(void); int kill(int pid, int signal);"
return mn.study {
  title = "toy", axes = { core = { "gru", "lstm" } }, settings = { lr = 1e-4, kind = "plain", steps = 100, stop = -1 }, seeds = 2,
  run = function(cfg)
    local name = cfg.run:match "[^/]*$"
    local f = assert(io.open("marks", "a"))
    f:write(name, " ", cfg.steps, " ", cfg.seed, "\n")
    f:close()
    local mark = io.open "killing/on" and "killing/" .. name
    local both = mark and #io.open "killing/on":read "*a" == 0
    if mark and not io.open(mark) and (both or cfg.seed % 2 == 1) then
      io.open(mark, "w"):close()
      ffi.C.kill(ffi.C.getppid(), 9)
      if both then ffi.C.kill(ffi.C.getpid(), 9) end
    end
    if cfg.lr > 0.1 then error "this rate is broken" end
    if cfg.kind == "returns" then return { mean_return = cfg.lr } end
    local x, wave = math.log(cfg.lr) / math.log(10), math.sin(1e4 * cfg.lr + 12.9898 * cfg.seed) * 43758.5453
    return { score = math.exp(-(x + 2.5) ^ 2) * (cfg.core == "gru" and 1 or 0.5) + 0.1 * (wave - math.floor(wave)), other = x }
  end,
}
]] })

local ARGS = "sweep toy.lua lr=1e-5..1:log budget=10x20 estimate=0"
local function proposals(run) return json.encode(study_folder.info(("%s/%s/tune"):format(here, run)).runs) end

local function marks()
  local list = {}
  for line in io.lines(path "marks") do list[#list + 1] = line end
  os.remove(path "marks")
  return list
end

local reference
t.test("each memory has the same trials, the best runs with fresh seeds, and the order of processes does not matter", function()
  local said, status = mneme(ARGS .. " run=a jobs=1")
  t.eq(status, 0, said)
  local trials, fresh = {}, {}
  for _, line in ipairs(marks()) do
    local name, steps, seed = line:match "^(%S+) (%d+) (%d+)$"
    local trial = tonumber(seed) >= tuning.FIRST_SEED
    t.eq(steps, trial and "20" or "100")
    local of, core = trial and trials or fresh, name:match "core=(%w+)"
    of[core] = of[core] or {}
    of[core][name] = true
  end
  local function count(list) local n = 0 for _ in pairs(list) do n = n + 1 end return n end
  t.eq(count(trials.gru), 10) t.eq(count(trials.lstm), 10) t.eq(count(fresh.gru), 2)
  local tuned = tuning_picks.tuned(path "a")
  for _, point in ipairs(tuned.points) do
    t.eq(point.trials, 10)
    t.ok(tonumber(point.picks[1].values.lr) < 0.1, "what fails is not picked")
    t.eq(point.default.lr, "0.0001")
  end
  t.ok(said:find("mneme report a", 1, true) and said:find(("core=gru: lr=%s, tuned in 10 trials"):format(tuned.points[1].picks[1].values.lr), 1, true), said)
  t.eq(#study_folder.load(path "a").runs, 4)
  t.eq(#study_folder.load(path "a/tune").runs, 20)
  reference = proposals "a"
  said, status = mneme(ARGS .. " run=b jobs=3")
  t.eq(status, 0, said)
  t.eq(proposals "b", reference)
  os.remove(path "marks")
  said, status = mneme(ARGS .. " run=a jobs=1")
  t.eq(status, 0, said)
  t.ok(not files.is_file(path "marks"), "nothing is run again, failed trials neither")
end)

t.test("killed at every run, with and without the run itself, it proposes and picks the same", function()
  for _, itself in ipairs { "", "no" } do
    files.make_folder(path "killing")
    files.write(path "killing/on", { itself })
    local killed, said, status = 0
    repeat
      said, status = mneme(ARGS .. " jobs=1 run=killed" .. itself)
      killed = killed + (status == 137 and 1 or 0)
    until status ~= 137
    t.eq(status, 0, said)
    t.ok(killed > (itself == "" and 20 or 8), killed .. " times killed")
    t.eq(proposals("killed" .. itself), reference)
    t.eq(json.encode(tuning_picks.tuned(path("killed" .. itself)).points), json.encode(tuning_picks.tuned(path "a").points))
    files.remove_folder(path "killing")
  end
  os.remove(path "marks")
end)

t.test("a folder has one tuning; what cannot be tuned is said before the first trial", function()
  local function refused(words, why)
    local said, status = mneme(words)
    t.eq(status, 2, said)
    t.ok(said:find(why), said)
  end
  refused(ARGS:gsub("10x20", "12x20") .. " run=a", "a: it was tuned with budget=10x20, not 12x20")
  refused(ARGS:gsub("1e%-5", "1e-6") .. " run=a", "a: it was tuned with ranges=")
  refused(ARGS .. " stop=3 run=a", "other settings")
  refused("sweep toy.lua lr=1e-5..1:log", "budget=TRIALSxSTEPS is missing")
  refused("sweep toy.lua budget=10", "which settings")
  refused("sweep toy.lua lr=1..2:lag budget=10", "did you mean 'log'")
  refused("sweep toy.lua ler=1..2 budget=10 run=new", "did you mean 'lr'")
  refused("sweep toy.lua seed=1..2 budget=10 run=new", "cannot be tuned")
  refused("sweep toy.lua lr=1..2 budget=10xx", "expected TRIALS or TRIALSxSTEPS")
  refused("sweep toy.lua lr=1..2 budget=10 seeds=1003..1004 run=new", "seed 1003 is one of the tuning's, which are 1001 to 1010")
  refused("sweep toy.lua lr=1e-3..1:log budget=4 by=othr estimate=0 run=new", "by=othr: the trials measure other, score")
  t.ok(not files.is_folder(path "new/runs") or #files.list(path "new/runs") == 0)
  t.ok(mneme("sweep toy.lua core=gru kind=returns lr=1e-5..1e-3 budget=2x20 estimate=0 run=returns"):find "no trial has a score.-by=mean_return")
  marks()
end)

t.test("a study that tunes: trials first, then its own seeds with what was picked", function()
  files.write(path "tuned.lua", { (files.read(path "toy.lua"):gsub("title = \"toy\",", [[title = "tuned",
    tune = { lr = "1e-5..1:log", budget = "10x20", quick = { budget = "5" } }, metrics = { score = { "score", solved = 0.4 } },]])) })
  local said, status = mneme "sweep tuned.lua estimate=0"
  t.eq(status, 0, said)
  local tuned, scores = tuning_picks.tuned(path "runs/tuned"), { gru = {}, lstm = {} }
  for _, run in ipairs(study_folder.load(path "runs/tuned").runs) do
    t.ok(run.seed <= 2)
    local point = tuned.points[run.labels.core == "gru" and 1 or 2]
    t.eq(point.name, "core=" .. run.labels.core)
    local config = run:info().config
    t.eq(config.lr, tonumber(point.picks[1].values.lr))
    t.eq(config.steps, 100, "its own steps")
    table.insert(scores[run.labels.core], run.metrics.score)
  end
  local solved = {}
  for core, list in pairs(scores) do
    solved[core] = ("solved by %d of %d seeds (%.2f to %.2f)"):format(stats.solved(list, 0.4))
    t.ok(said:find(("core=%s: score of at least 0.4: %s"):format(core, solved[core]), 1, true), said)
  end
  said, status = mneme "report runs/tuned"
  t.eq(status, 0, said)
  local html = files.read(path "runs/tuned/report.html"):gsub("<[^>]+>", " ")
  t.ok(html:find("The settings lr were tuned, for each of 2 with the same budget of 10 trials of 20 steps", 1, true))
  t.ok(html:find "Trials had the seeds 1001 to 10%d+, in the order of need; the runs of this page have others")
  t.ok(html:find(solved.gru, 1, true) and html:find(solved.lstm, 1, true))
  said, status = mneme "sweep tuned.lua seeds=1000..1001 estimate=0"
  t.eq(status, 2, said)
  t.ok(said:find "seed 1001 is one of the tuning's", said)
  said, status = mneme "sweep tuned.lua lr=1 estimate=0 run=other"
  t.eq(status, 2, said)
  t.ok(said:find "the study tunes lr", said)
  said, status = mneme "sweep tuned.lua lr=1..2 budget=3 estimate=0 run=other"
  t.eq(status, 2, said)
  t.ok(said:find "says itself what is tuned", said)
end)

t.test("a file of a study that tunes has its picks: imported, nothing is tuned again, more seeds run with them, and other ranges are refused", function()
  local said, status = mneme "report runs/tuned export=tuned.jsonl"
  t.eq(status, 0, said)
  os.remove(path "marks")
  said, status = mneme "sweep tuned.lua import=tuned.jsonl run=taken jobs=0"
  t.eq(status, 0, said)
  t.ok(said:find "4 of the 4 runs" and not files.is_file(path "marks"), said)
  said, status = mneme "sweep tuned.lua run=taken seeds=3 estimate=0"
  t.eq(status, 0, said)
  t.eq(#marks(), 2)
  local tuned = tuning_picks.tuned(path "taken")
  for _, run in ipairs(study_folder.load(path "taken").runs) do
    t.eq(run:info().config.lr, tonumber(tuned.points[run.labels.core == "gru" and 1 or 2].picks[1].values.lr))
  end
  said, status = mneme "report taken export=again.jsonl"
  t.eq(status, 0, said)
  local function of(name) return assert(files.read(path(name)):match '[^\n]*"tuned": {[^\n]*') end
  t.eq(of "again.jsonl", of "tuned.jsonl")
  files.write(path "tuned.jsonl", { (files.read(path "tuned.jsonl"):gsub('"budget": ?"10x20"', '"budget":"9x20"')) })
  said, status = mneme "sweep tuned.lua import=tuned.jsonl run=refused jobs=0"
  t.eq(status, 2, said)
  t.ok(said:find "tuned.jsonl: it was tuned with budget=9x20, not 10x20", said)
end)

t.test("what an imported file has no tuning of is tuned here, and the rest is taken; the same again tunes nothing", function()
  local said, status = mneme "sweep tuned.lua core=gru run=half estimate=0"
  t.eq(status, 0, said)
  said, status = mneme "report half export=half.jsonl"
  t.eq(status, 0, said)
  marks()
  said, status = mneme "sweep tuned.lua import=half.jsonl run=whole estimate=0"
  t.eq(status, 0, said)
  for _, line in ipairs(marks()) do t.ok(line:find "core=lstm", line) end
  local half, whole = tuning_picks.tuned(path "half"), tuning_picks.tuned(path "whole")
  t.eq(json.encode(whole.points[1]), json.encode(half.points[1]))
  t.eq(whole.points[2].name, "core=lstm") t.eq(#whole.points, 2) t.eq(whole.points[2].trials, half.points[1].trials)
  said, status = mneme "sweep tuned.lua run=whole estimate=0"
  t.eq(status, 0, said)
  t.ok(not files.is_file(path "marks"), "nothing ran")
  said, status = mneme "report whole export=whole.jsonl"
  t.eq(status, 0, said)
  said, status = mneme "sweep tuned.lua import=whole.jsonl run=taken_whole jobs=0"
  t.eq(status, 0, said)
end)

t.test("tune: what a study cannot mean; low may be good", function()
  local function refused(spec, why) t.raises(tuning.check, why, spec) end
  refused({ lr = "1..2" }, "tune has no budget")
  refused({ lr = "2..1", budget = "4" }, "lower end first")
  refused({ budget = "4" }, "which settings")
  refused({ lr = "1..2", budget = "0x3" }, "expected TRIALS")
  refused({ lr = "1..2", budget = 8, by = 3 }, "by is a number, expected a string")
  files.write(path "low.lua", { (files.read(path "toy.lua"):gsub("title = \"toy\",",
    [[title = "low", tune = { lr = "1e-5..1:log", budget = "12", by = "other", minimise = true },]])) })
  local said, status = mneme "sweep low.lua core=gru estimate=0"
  t.eq(status, 0, said)
  t.ok(tonumber(tuning_picks.tuned(path "runs/low").points[1].picks[1].values.lr) < 1e-4, said)
end)

files.remove_folder(here)
