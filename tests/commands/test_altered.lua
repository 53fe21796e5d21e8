-- test_altered.lua -- a resume never blesses what was altered: it refuses by name, use=altered goes on and the run says so for ever; another
-- run's checkpoint is such, and an altered log of a killed run; check covers maps and logs, and takes no file that is being written for damage;
-- formats of later versions are refused; copies of code are as private as the files.
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
  { [[sed -i '2d; s/"gamma": [0-9.]*/"gamma": 0.5/' f/config.json]], "config.json" },
  { [[sed -i '2s/: [0-9.]*}/: 0.125}/' f/metrics.jsonl]], "metrics.jsonl" },
  { "sed -i 2d f/metrics.jsonl", "metrics.jsonl" },
  { [[sed -i 's/"step": /"step": 1/' f/outcome.json]], "outcome.json" },
  { "rm f/outcome.json", "outcome.json" },
  { "printf x >> f/events.out.tfevents.mneme", "events.out.tfevents.mneme" },
  { "printf x | dd of=$(ls f/checkpoints/* | tail -1) bs=1 seek=3000 conv=notrunc", "checkpoints/" },
  { "echo >> $(find f/source -name tmaze.lua)", "source/" },
  { [[sed -i 's/"wall_s": /"wall_s": 1/' f/resources.json]], "resources.json" },
  { "printf x | dd of=$(ls f/where/*.json | head -1) bs=1 seek=90 conv=notrunc", "where/" },
  { "echo >> f/manifest.json", "manifest.json" }, { "rm f/manifest.json", "manifest.json" },
  { "head -1 f/metrics.jsonl >> f/metrics.jsonl", "metrics.jsonl" }, { "printf '{\"step\": 7' >> f/metrics.jsonl", "metrics.jsonl" },
  { "rm $(find f/source -name tmaze.lua)", "source/" },
  { "printf x | dd of=f/events.out.tfevents.mneme bs=1 seek=600 conv=notrunc", "events.out.tfevents.mneme" },
  { "for i in 1 2 3 4; do head -c 42 a/events.out.tfevents.mneme >> f/events.out.tfevents.mneme; done", "events.out.tfevents.mneme" },
  { "cd f/checkpoints; cp $(ls | tail -1) step-99999.safetensors", "checkpoints/step-99999" },
}

t.test("a resume refuses what was altered, by name, and touches nothing", function()
  for _, case in ipairs(alterations) do
    sh("rm -rf f; cp -r a f; " .. case[1])
    local said, status = mneme "check f"
    t.ok(status == 1 and said:find(case[2], 1, true), case[1] .. ": " .. said)
    local before = sh "cat f/config.json f/metrics.jsonl f/manifest.json; ls -R f"
    said, status = mneme "run resume=f steps=60000"
    t.ok(status == 2 and said:find("f is not as it was written: .-" .. case[2]:gsub("%p", "%%%0")) and said:find "use=altered", case[1] .. ": " .. said)
    t.eq(sh "cat f/config.json f/metrics.jsonl f/manifest.json; ls -R f", before, case[1])
  end
end)

t.test("use=altered goes on, and history, check, report and comparison repeat it for ever", function()
  for _, case in ipairs { alterations[1], alterations[3], alterations[5] } do
    sh("rm -rf f; cp -r a f; " .. case[1])
    local said, status = mneme "run resume=f steps=45000 use=altered"
    t.ok(status == 0 and said:find("warning: f is not as it was written: .-" .. case[2]), case[1] .. ": " .. said)
    said, status = mneme "run resume=f steps=50000"
    t.eq(status, 0, said)                                                  -- what was said once is not asked again
    local history = json.decode(read "f/config.json").history
    t.eq(#history, 3)
    t.ok(history[2].altered[1]:find(case[2], 1, true) and not history[3].altered, json.encode(history))
    said, status = mneme "check f"
    t.ok(status == 1 and said:find("DAMAGED.-before it was resumed at step %d+: " .. case[2]), said)
    t.ok(mneme("report f"):find("not as it was written: .-" .. case[2]))
    t.ok(mneme("compare f a"):find(case[2] .. ": "), case[1])
  end
end)

t.test("a run of a study that was altered is refused by its sweep", function()
  write("s.lua", [[return require("mneme").study { of = "tmaze", axes = { corridor = { 3 } }, settings = { steps = 2048, num_envs = 2, num_steps = 32,
    hidden = 4, core = { "gru", d_model = 4 } }, seeds = 1, metrics = { score = { "score" } } }]])
  t.eq(select(2, mneme "sweep s.lua run=s estimate=0"), 0)
  t.eq(select(2, mneme "check s"), 0)
  local run = "s/runs/corridor=3,seed=1"
  sh "cp -r s l; echo x | tee -a l/runs/*/log.txt"
  local said, status = mneme "check l"
  t.ok(status == 1 and said:find "log.txt: was altered", said)
  sh(("cp -r s l2; rm %s/result.json"):format((run:gsub("^s/", "l2/"))))
  said, status = mneme "sweep s.lua run=l2 estimate=0"
  t.ok(status == 0 and mneme "check l2":find "nothing is damaged", said)          -- a result that was removed is asked for again
  sh(([[rm %s/result.json; sed -i 's/"lr": [0-9][0-9.e-]*/"lr": 0.05/' %s/config.json]]):format(run, run))
  said, status = mneme "sweep s.lua run=s estimate=0 attempts=1"
  t.ok(status ~= 0 and (said .. read(run .. "/log.txt")):find "is not as it was written: config.json", said)
  shell.fine(dir, "sweep s.lua run=s estimate=0 attempts=1 use=altered")
  t.ok(json.decode(read(run .. "/config.json")).history[2].altered[1]:find "config.json")
end)

t.test("a flipped byte of a map is found, wherever it lies; a map of an earlier version is read", function()
  local name = files.list(dir .. "/a/where")[1]
  local text = read("a/where/" .. name)
  local found, of = 0, 0
  for at = 1, #text, math.max(1, math.floor(#text / 40)) do
    sh "rm -rf f/where; mkdir -p f/where"
    write("f/where/" .. name, text:sub(1, at - 1) .. string.char((text:byte(at) + 1) % 128) .. text:sub(at + 1))
    local bad = { bad = {}, altered = {} }
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

t.test("a run that is being trained is checked without a false alarm, and so is a copy of it", function()
  local pipe = io.popen(("cd '%s'; '%s' run %s steps=1e9 checkpoint_every=256 run=live > live.log 2>&1 & echo $!")
    :format(dir, shell.program, TRAIN))
  local pid = pipe:read "*n"
  pipe:close()
  shell.wait("a checkpoint", function() return files.list(dir .. "/live/checkpoints")[3] end)
  for i = 1, 6 do
    local said, status = mneme "check live"
    t.ok(status == 0, said)
    sh "rm -rf hot; cp -r live hot"
    said, status = mneme "check hot"
    t.ok(status == 0 or said:find "checkpoints/", said)                    -- cp itself may meet a file that is taken away
    if i == 3 then
      sh [[sed -i 's/"lr": [0-9][0-9.e-]*/"lr": 0.05/' live/config.json]]
      said, status = mneme "check live"
      t.ok(status == 1 and said:find "config.json: ", said)
      break
    end
  end
  sh(("kill -9 %d; while kill -0 %d; do sleep 0.05; done"):format(pid, pid))
end)

-- A run that is killed once it has written some checkpoints.
local function killed(name)
  local pipe = io.popen(("cd '%s'; '%s' run %s steps=3e6 checkpoint_every=8192 run=%s > %s.log 2>&1 & echo $!")
    :format(dir, shell.program, TRAIN, name, name))
  local pid = pipe:read "*n"
  pipe:close()
  shell.wait("a log", function() return files.is_file(dir .. "/" .. name .. "/metrics.jsonl") and read(name .. "/metrics.jsonl"):find ".*\n.*\n.*\n.*\n" end)
  shell.wait("a checkpoint", function() return files.list(dir .. "/" .. name .. "/checkpoints")[3] end)
  sh(("kill -9 %d; while kill -0 %d; do sleep 0.05; done"):format(pid, pid))
  sh(("rm -f %s/checkpoints/*.tmp"):format(name))
  local list = require("mneme.runs.checkpoints").list(dir .. "/" .. name)
  return list[#list].path:match "[^/]*$", list[#list].step
end
local last, last_step = killed "k"
t.eq(select(2, mneme("run " .. TRAIN .. "steps=42000 run=longer")), 0)
t.eq(select(2, mneme("run " .. TRAIN .. "steps=40000 run=other seed=2")), 0)
t.eq(select(2, mneme("run " .. TRAIN:gsub("threads=1", "threads=2") .. "steps=40000 run=same checkpoint_every=1e4 keep_checkpoints=9")), 0)

t.eq(select(2, mneme("run " .. TRAIN .. "steps=40000 run=elsewhere seed=3")), 0)
t.eq(select(2, mneme "where elsewhere episodes=4 every=8"), 0)

-- Another run's checkpoint, map, log or events in the place of one, as the newest, as an older one; of a run that ended, and of one that was killed.
local foreign = {
  { "a", "cp other/checkpoints/step-40000.safetensors f/checkpoints/" },
  { "a", "cp other/checkpoints/step-40000.safetensors f/checkpoints/step-40064.safetensors" },
  { "a", "cp other/checkpoints/step-40000.safetensors f/checkpoints/step-64.safetensors" },
  { "k", "cp other/checkpoints/step-40000.safetensors f/checkpoints/step-900000000.safetensors" },
  { "k", "cp other/checkpoints/step-40000.safetensors f/checkpoints/" .. last },
  { "k", "rm f/checkpoints/*; cp other/checkpoints/* f/checkpoints/" },
  { "k", "rm f/manifest.json; cp other/checkpoints/* f/checkpoints/", "manifest.json" },
  { "k", "rm f/manifest.json", "manifest.json" },
  { "k", "cp other/manifest.json f/; cp other/checkpoints/* f/checkpoints/", "config.json" },
  { "a", "cp longer/checkpoints/step-42* f/checkpoints/" },
  { "k", "cp other/config.json f/", "config.json" },
  { "a", "cp other/resources.json f/", "resources.json" },
  { "a", "cp same/resources.json f/", "resources.json" },
  { "a", "cp other/outcome.json f/", "outcome.json" },
  { "a", "mkdir -p f/where; cp elsewhere/where/* f/where/", "where/" }, { "k", "mkdir -p f/where; cp elsewhere/where/* f/where/", "where/" },
  { "k", "cp other/events* f/", "events" }, { "k", "rm f/events*", "events" }, { "k", "printf x | dd of=$(ls f/events*) bs=1 seek=300 conv=notrunc", "events" },
  { "k", "cp other/metrics.jsonl f/", "metrics.jsonl" }, { "k", "rm f/metrics.jsonl", "metrics.jsonl" },
}

t.test("another run's file is refused by name, in a run that ended and in one that was killed", function()
  for _, case in ipairs(foreign) do
    sh(("rm -rf f; cp -r %s f; ls f/checkpoints/* > kept"):format(case[1]))
    shell.fine(dir, "check f")
    sh(case[2])
    local said, status = mneme "check f"
    t.ok(status == 1 and said:find("DAMAGED.-" .. (case[3] or "checkpoints/step%-")), case[2] .. ": " .. said)
    said, status = mneme "run resume=f steps=60000"
    t.ok(status == 2 and said:find("f is not as it was written: .-" .. (case[3] or "checkpoints/step%-") .. ".*use=altered"), case[2] .. ": " .. said)
  end
  sh "rm -rf f; cp -r a f; cp other/checkpoints/step-40000.safetensors f/checkpoints/step-40064.safetensors"
  local said, status = mneme "run resume=f steps=42000 use=altered"
  t.ok(status == 0 and said:find "step%-40064.safetensors: is of another run", said)
  t.ok(json.decode(read "f/config.json").history[2].altered[1]:find("step%-40064"))
  t.ok(mneme "check f":find "DAMAGED.-before it was resumed at step 40%d+: checkpoints/step%-40064")
  t.eq(select(2, mneme "run resume=f steps=44000"), 0)
end)

t.test("equal runs have equal checkpoints, whatever their threads and how often they write; others have other ids", function()
  local one = json.decode(read "a/config.json").id
  t.eq(json.decode(read "same/config.json").id, one)
  t.eq(read "a/checkpoints/step-40000.safetensors", read "same/checkpoints/step-40000.safetensors")
  t.ok(one and json.decode(read "other/config.json").id ~= one)
end)

t.test("a line of a killed run's log that a checkpoint counts and that was altered or removed is found; lines that a copy or a crash lost are named", function()
  for _, how in ipairs { [[sed -i '2s/: [0-9.]*}/: 0.125}/' f/metrics.jsonl]], "sed -i 2d f/metrics.jsonl",
    [[sed -i '1s/"step": /"step": 1/' f/metrics.jsonl]] } do
    sh("rm -rf f; cp -r k f; " .. how)
    local said, status = mneme "check f"
    t.ok(status == 1 and said:find "metrics.jsonl: ", how .. said)
    said, status = mneme "run resume=f steps=4e6"
    t.ok(status == 2 and said:find "f is not as it was written: metrics.jsonl.*use=altered", how .. said)
  end
  for _, how in ipairs { "sed -i '$d' f/metrics.jsonl", "truncate -s 700 f/metrics.jsonl", "truncate -s -100 f/events*",
      "printf '{\"step\": 3' >> f/metrics.jsonl", "printf 'half a record' >> f/events.out.tfevents.mneme", "true" } do
    sh("rm -rf f; cp -r k f; " .. how)
    local said, status = mneme "check f"
    t.eq(status, 0, how .. said)
    said, status = mneme(("run resume=f steps=%d"):format(last_step + 5000))
    t.eq(status, 0, how .. said)
    said, status = mneme "check f"
    t.ok(status == 0 and (not how:find "700" or said:find "note: .*%d+ lines of the log before step %d+ are missing"), how .. said)
  end
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
  file.metadata.format = "mneme-checkpoint-2"
  safetensors.write(dir .. "/n/checkpoints/" .. at, list, file.metadata)
  for _, words in ipairs { "eval n episodes=2", "run resume=n steps=90000 use=altered" } do
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
  damaged(("rm %s/result.json"):format(first), "DAMAGED +pair .-runs/corridor=3,seed=1: was done, and has no result now",
    "DAMAGED +pair/runs/corridor=3,seed=1 .-result.json: is not there")
  damaged(("rm -r %s"):format(first), "DAMAGED +pair .-runs/corridor=3,seed=1: was done, and has no result now")
  damaged(("rm %s/manifest.json"):format(first), "manifest.json: is not there, and was before the first checkpoint")
  damaged(("rm -r %s; cp -r %s %s"):format(second, first, second), "DAMAGED +pair/runs/corridor=4,seed=1 .-config.json: is of the run corridor=3,seed=1")
  damaged(("cp %s/result.json %s/"):format(first, second), "DAMAGED +pair/runs/corridor=4,seed=1 .-result.json: is of another run")
  damaged(("cp -r %s pair/runs/corridor=5,seed=1"):format(first), "DAMAGED +pair .-runs/corridor=5,seed=1: is no run of this study")
  damaged("sed -i 2d pair/study.json", "DAMAGED +pair .-study.json: was altered")
  damaged("sed -i 2d pair/declaration.json", "DAMAGED +pair .-declaration.json: was altered")
  damaged("sed -i 's/\"corridor\": \"3\"/\"corridor\": \"7\"/' pair/study.json", "DAMAGED +pair .-study.json: was altered")
  t.eq(select(2, mneme "report pair export=pair.jsonl"), 0)
  t.eq(select(2, mneme "sweep pair.lua run=taken import=pair.jsonl jobs=0"), 0)
  said, status = mneme "check taken"
  t.ok(status == 0 and said:find "note: all 2 runs: it was imported from pair.jsonl: settings and results, without code" and not said:find "is not there", said)
end)

files.remove_folder(dir)
