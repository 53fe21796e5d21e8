-- test_altered.lua -- what was altered or removed since a start ended is named by check, report and comparison, and a resume refuses it; a run at
-- work is not taken for damaged; formats of later versions are refused; copies of code are as private as the files.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local sealed = require("mneme.base.json").sealed
local shell = require "tests.support.shell"
local lfs = require "lfs"

local dir = shell.folder()
local function sh(line) return shell.run(dir, line) end
local function mneme(words) return shell.mneme(dir, words) end
local function read(name) return (files.read(dir .. "/" .. name)) end
local function write(name, text) files.write(dir .. "/" .. name, { text }) end
local TRAIN = "tmaze quick=1 core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 threads=1 "

t.eq(select(2, mneme("run " .. TRAIN .. "steps=40000 run=a")), 0)
t.eq(select(2, mneme "where a episodes=4 every=4"), 0)

-- What is done to a run, and the file that a resume names.
local alterations = {
  { [[sed -i 's/"lr": [0-9][0-9.e-]*/"lr": 0.05/' f/config.json]], "config.json" },
  { [[sed -i '2s/: [0-9.]*}/: 0.125}/' f/metrics.jsonl]], "metrics.jsonl" },
  { "sed -i 2d f/metrics.jsonl", "metrics.jsonl" },
  { [[sed -i 's/"step": /"step": 1/' f/outcome.json]], "outcome.json" },
  { "rm f/outcome.json", "outcome.json" },
  { "printf x >> f/events.out.tfevents.mneme", "events.out.tfevents.mneme" },
  { "echo >> $(find f/source -name tmaze.lua)", "source/" },
  { [[sed -i 's/"wall_s": /"wall_s": 1/' f/resources.json]], "resources.json" },
  { "printf x | dd of=$(ls f/where/*.json | head -1) bs=1 seek=90 conv=notrunc", "where/" },
  { "echo >> f/manifest.json", "manifest.json" },
  { "head -1 f/metrics.jsonl >> f/metrics.jsonl", "metrics.jsonl" }, { "printf '{\"step\": 7' >> f/metrics.jsonl", "metrics.jsonl" },
  { "rm $(find f/source -name tmaze.lua)", "source/" },
  { "printf x | dd of=f/events.out.tfevents.mneme bs=1 seek=600 conv=notrunc", "events.out.tfevents.mneme" },
  { "for i in 1 2 3 4; do head -c 42 a/events.out.tfevents.mneme >> f/events.out.tfevents.mneme; done", "events.out.tfevents.mneme" },
}

t.test("a resume refuses what was altered, by name, and touches nothing", function()
  for _, case in ipairs(alterations) do
    sh("rm -rf f; cp -r a f; " .. case[1])
    local said, status = mneme "check f"
    t.ok(status == 1 and said:find(case[2], 1, true), case[1] .. ": " .. said)
    local before = sh "cat f/config.json f/metrics.jsonl f/manifest.json; ls -R f"
    said, status = mneme "run resume=f steps=60000"
    t.ok(status == 2 and said:find("f is not as it was written: .-" .. case[2]:gsub("%p", "%%%0")) and said:find "put it back", case[1] .. ": " .. said)
    t.eq(sh "cat f/config.json f/metrics.jsonl f/manifest.json; ls -R f", before, case[1])
  end
end)

t.test("a report and a comparison say it, too; without what compares it a run goes on, and says which lines it lacks", function()
  sh("rm -rf f; cp -r a f; head -1 a/metrics.jsonl > f/metrics.jsonl")
  t.ok(mneme("report f"):find "not as it was written: .-metrics.jsonl")
  t.ok(mneme("compare f a"):find "f: metrics.jsonl: was altered")
  sh "rm f/manifest.json"
  shell.fine(dir, "run resume=f steps=45000")
  local said, status = mneme "check f"
  t.ok(status == 0 and said:find "note: .*%d+ lines of the log before step %d+ are missing", said)
  t.ok(mneme("compare f a"):find "%d+ lines of the log before step %d+ are missing")
end)

t.test("a damaged checkpoint is named; a resume goes on from the one before", function()
  sh "rm -rf f; cp -r a f; printf x | dd of=$(ls f/checkpoints/* | tail -1) bs=1 seek=3000 conv=notrunc"
  local said, status = mneme "check f"
  t.ok(status == 1 and said:find "checkpoints/step%-40000.safetensors: was altered", said)
  t.ok(shell.fine(dir, "run resume=f steps=41000"):find "step%-40000.safetensors: damaged")
end)

t.test("a run of a study that was altered is refused by its sweep", function()
  write("s.lua", [[return require("mneme").study { of = "tmaze", axes = { corridor = { 3 } }, settings = { steps = 2048, num_envs = 2, num_steps = 32,
    hidden = 4, core = { "gru", d_model = 4 } }, seeds = 1, metrics = { score = { "score" } } }]])
  t.eq(select(2, mneme "sweep s.lua run=s estimate=0"), 0)
  t.eq(select(2, mneme "check s"), 0)
  local run = "s/runs/corridor=3,seed=1"
  sh(("cp -r s l2; rm %s/result.json"):format((run:gsub("^s/", "l2/"))))
  local said, status = mneme "sweep s.lua run=l2 estimate=0"
  t.ok(status == 0 and mneme "check l2":find "nothing is damaged", said)          -- a result that was removed is asked for again
  sh(([[rm %s/result.json; sed -i 's/"lr": [0-9][0-9.e-]*/"lr": 0.05/' %s/config.json]]):format(run, run))
  said, status = mneme "sweep s.lua run=s estimate=0 attempts=1"
  t.ok(status ~= 0 and (said .. read(run .. "/log.txt")):find "is not as it was written: config.json", said)
end)

t.test("a flipped byte of a map is found, wherever it lies; a map of an earlier version is read", function()
  local name = files.list(dir .. "/a/where")[1]
  local text = read("a/where/" .. name)
  local found, of = 0, 0
  for at = 1, #text, math.max(1, math.floor(#text / 40)) do
    sh "rm -rf f/where; mkdir -p f/where"
    write("f/where/" .. name, text:sub(1, at - 1) .. string.char((text:byte(at) + 1) % 128) .. text:sub(at + 1))
    local bad = { bad = {} }
    require("mneme.runs.manifest").seals(dir .. "/f", { "where/" .. name }, bad)
    found, of = found + #bad.bad, of + 1
  end
  t.eq(found, of)
  sh "rm -rf f; cp -r a f"
  write("f/where/" .. name, (text:gsub('^[^\n]*\n[^\n]-,"', '{"'):gsub("mneme%-where%-2", "mneme-where-1")))
  t.ok(json.decode(read("f/where/" .. name), "map"))
  local said, status = mneme "where f episodes=4 every=4"
  t.ok(status == 0 and not said:find "damaged", said)
end)

t.test("a run that is being trained is checked without a false alarm", function()
  local pipe = io.popen(("cd '%s'; '%s' run %s steps=1e9 checkpoint_every=256 run=live > live.log 2>&1 & echo $!")
    :format(dir, shell.program, TRAIN))
  local pid = pipe:read "*n"
  pipe:close()
  shell.wait("a checkpoint", function() return files.list(dir .. "/live/checkpoints")[3] end)
  for _ = 1, 3 do
    local said, status = mneme "check live"
    t.ok(status == 0 and said:find "its last start has not ended", said)
  end
  sh [[sed -i 's/"lr": [0-9][0-9.e-]*/"lr": 0.05/' live/config.json]]
  local said, status = mneme "check live"
  t.ok(status == 1 and said:find "config.json: ", said)
  sh(("kill -9 %d; while kill -0 %d; do sleep 0.05; done"):format(pid, pid))
end)

t.eq(select(2, mneme("run " .. TRAIN:gsub("threads=1", "threads=2") .. "steps=40000 run=same checkpoint_every=1e4 keep_checkpoints=9")), 0)

t.test("equal runs have equal checkpoints, whatever their threads and how often they write", function()
  t.eq(read "a/checkpoints/step-40000.safetensors", read "same/checkpoints/step-40000.safetensors")
end)

t.test("what a later version of Mneme wrote is refused in words", function()
  sh "rm -rf n; cp -r a n"
  local function later(name)
    local object = json.decode(read(name))
    object.format = 99
    write(name, sealed.encode(object))
  end
  later "n/config.json"
  for _, words in ipairs { "eval n episodes=2", "view n out=x.png wait=0", "run resume=n steps=90000", "check n", "report n", "compare n a",
      "export n to=x.safetensors", "diff n a", "where n episodes=2", "credit n", "probe n", "intervene n erase=layers.0 at=1" } do
    local said, status = mneme(words)
    t.ok((status ~= 0 or words == "report n") and said:find "n/config.json: a later version of Mneme wrote it: format 99, expected 1 at most",
      words .. ": " .. said)
  end
  t.ok(mneme("list runs ."):find "n +.-of a later version")
  sh "rm -rf n; cp -r a n"
  local at = files.list(dir .. "/n/checkpoints")[1]
  local safetensors = require "mneme.tensor.safetensors"
  local file, list = safetensors.load(dir .. "/n/checkpoints/" .. at), {}
  for name, tensor in pairs(file.tensors) do list[#list + 1] = { name, tensor } end
  sh "rm n/manifest.json"
  file.metadata.format = "mneme-checkpoint-2"
  safetensors.write(dir .. "/n/checkpoints/" .. at, list, file.metadata)
  for _, words in ipairs { "eval n episodes=2", "run resume=n steps=90000" } do
    local said, status = mneme(words)
    t.ok(status ~= 0 and said:find "a later version of Mneme wrote it: format 2", words .. ": " .. said)
  end
  t.eq(files.list(dir .. "/n/checkpoints")[1], at, "it is not taken for damaged")
  later "s/study.json"
  for _, words in ipairs { "report s", "compare s", "check s", "sweep s.lua run=s" } do
    local said, status = mneme(words)
    t.ok(status ~= 0 and said:find "s/study.json: a later version of Mneme wrote it", words .. ": " .. said)
  end
end)

t.test("copies of code have the modes of the files; of data there is the checksum alone", function()
  write("token.txt", "3\n")
  write("mine.lua", [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 4 }, steps = 512, num_envs = 2, num_steps = 32, hidden = 4, threads = 1 }
local pay = tonumber(io.open("token.txt"):read "*l")
local env = mn.env { name = "pay", observation = { 2 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed,
  reset = function(self) self.t = 0 return { 1, 0 } end,
  step = function(self, a) self.t = self.t + 1 return { 0, 1 }, pay * a, self.t > 5, a end }
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 4 }):train()
]])
  sh "chmod 600 token.txt mine.lua"
  t.eq(select(2, mneme "run mine.lua run=p"), 0)
  local data = json.decode(read "p/config.json").history[1].data
  t.ok(#data == 1 and data[1].path == "token.txt" and data[1].checksum and data[1].bytes == 2)
  t.eq(sh "grep -rlx 3 p/source || true", "")
  t.eq(lfs.attributes(dir .. "/p/source/mine.lua", "permissions"), "rw-------")
end)

t.test("mneme check of a study checks each run, and its result against it", function()
  write("pair.lua", [[
local mn = require "mneme"
return mn.study { of = "tmaze", axes = { corridor = { 3, 4 } }, settings = { steps = 2048, num_envs = 2, num_steps = 32, hidden = 4,
  core = { "gru", d_model = 4 } }, seeds = 1, metrics = { score = { "score" } } }
]])
  shell.fine(dir, "sweep pair.lua run=pair estimate=0 jobs=2")
  local said, status = mneme "check pair"
  t.ok(status == 0 and said:find "^ok +pair  a study of 2 runs, 2 done\n", said)
  local first, second = "pair/runs/corridor=3,seed=1", "pair/runs/corridor=4,seed=1"
  local function damaged(line, ...)
    sh("rm -rf whole; cp -r pair whole; " .. line)
    local found, code = mneme "check pair"
    t.eq(code, 1, line .. ": " .. found)
    for _, expected in ipairs { ... } do t.ok(found:find(expected), line .. ": " .. found) end
    sh "rm -rf pair; mv whole pair"
  end
  damaged(("sed -i 's/\"steps\": 2048/\"steps\": 4096/' %s/result.json"):format(first), "DAMAGED +pair/runs/corridor=3,seed=1 .-result.json: was altered")
  damaged(("printf x | dd of=$(ls %s/checkpoints/*) bs=1 seek=5000 conv=notrunc"):format(second),
    "DAMAGED +pair/runs/corridor=4,seed=1 .-step%-2048.safetensors: ")
  damaged(("rm %s/result.json"):format(first), "DAMAGED +pair .-runs/corridor=3,seed=1: was done, and has no result now")
  damaged(("rm -r %s"):format(first), "DAMAGED +pair .-runs/corridor=3,seed=1: was done, and has no result now")
  damaged(("rm -r %s; cp -r %s %s"):format(second, first, second), "DAMAGED +pair/runs/corridor=4,seed=1 .-config.json: is of the run corridor=3,seed=1")
  damaged("sed -i 's/\"corridor\": \"3\"/\"corridor\": \"7\"/' pair/study.json", "DAMAGED +pair .-study.json: was altered")
  t.eq(select(2, mneme "report pair export=pair.jsonl"), 0)
  t.eq(select(2, mneme "sweep pair.lua run=taken import=pair.jsonl jobs=0"), 0)
  said, status = mneme "check taken"
  t.ok(status == 0 and said:find "note: of 2 runs" and mneme("check 'taken/runs/corridor=3,seed=1'"):find "ok", said)
end)

files.remove_folder(dir)
