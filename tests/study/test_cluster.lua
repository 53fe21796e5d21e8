-- test_cluster.lua -- mneme sweep cluster=: the job that it writes for other machines runs every open run once, on a Slurm
-- of one node, and with none; what is told to go keeps what it has and goes on later.
local t = require "tests.harness"
local one_run = require "mneme.lab.study.one_run"
local cluster = require "mneme.lab.study.cluster"
local files = require "mneme.base.files"
local folder = require "mneme.lab.study.folder"
local shell = require "tests.support.shell"
local slurm_rig = require "tests.support.slurm_rig"

local top = shell.folder()
local here = top .. "/it's a place"
files.make_folder(here)
local function path(name) return here .. "/" .. name end

files.write(path "study.lua", { [[
return require("mneme").study {
  title = "marks", axes = { a = { 1, 2, 3 } }, settings = { steps = 10, pause = 0, crash = 0, note = "" }, seeds = 2,
  run = function(cfg)
    local f = assert(io.open("marks", "a"))
    f:write(cfg.run:match "[^/]*$", "\n")
    f:close()
    if cfg.crash == cfg.a then error "this run is cursed" end
    os.execute("while [ -e held ]; do sleep 0.02; done; sleep " .. cfg.pause)
    return { score = cfg.a * 10 + cfg.seed, note = #cfg.note }
  end,
}
]] })

local function marks()
  local list, n = {}, 0
  local f = io.open(path "marks")
  for line in f and f:lines() or function() end do list[line], n = (list[line] or 0) + 1, n + 1 end
  if f then f:close() end
  return list, n
end

local function forget() os.remove(path "marks") end

-- The path is quoted by the shell's own rules, as the folder's name needs it.
local function sweep(words, slurm)
  local line = ("'%s' sweep %s estimate=0"):format(shell.program, words)
  if slurm then return slurm:run(line, cluster.quote(here):sub(2, -2)) end
  return shell.run(cluster.quote(here):sub(2, -2), line)
end

local function sh(line) return shell.run(cluster.quote(here):sub(2, -2), line) end

-- A batch system of two lines: scontrol as a job sees it.
files.make_folder(path "bin")
files.write(path "bin/scontrol", { [[
#!/bin/sh
[ "$1" = show ] && echo "MaxArraySize            = 5" || echo "$@" >> asked
]] })
sh "chmod +x bin/scontrol"
local as_task = 'export PATH="$PWD/bin:$PATH" SLURM_ARRAY_JOB_ID=7; SLURM_ARRAY_TASK_ID=%d sh %s/job.sh'

t.test("words of a shell come back as they were", function()
  for _, word in ipairs { "core=gru", "a b", "it's", "$HOME", "x;y", "`ls`", "a\"b", "*", "a=1,core=galite,seed=1", "" } do
    t.eq((sh("printf %s " .. cluster.quote(word))), word)
  end
end)

t.test("slurm: a script, and the list of the runs that are open, which never changes", function()
  local said, status = sweep "study.lua cluster=slurm jobs=2 time=45 mem=2G partition=long run=one note='a  b' seeds=1"
  t.eq(status, 0, said)
  t.ok(said:find("one: 3 of 3 runs are open; this begins them:\n  sbatch --array=1-3%2 one/slurm/1/job.sh", 1, true), said)
  local text = files.read(path "one/slurm/1/job.sh")
  for _, line in ipairs { "--job-name=one", "--time=45", "--mem=2G", "--partition=long", "--signal=B:USR1@60", "--requeue", "--cpus-per-task=1",
                          "--output=one/slurm/1/%A_%a.txt" } do
    t.ok(text:find("\n#SBATCH " .. line .. "\n", 1, true), line)
  end
  t.eq(text:sub(1, 10), "#!/bin/sh\n") t.ok(not text:find "@%u+@", text)
  t.eq(select(2, sh "sh -n one/slurm/1/job.sh"), 0)
  t.eq(files.read(path "one/slurm/1/runs.txt"), "a=1,seed=1 0\na=2,seed=1 0\na=3,seed=1 0\n")
  sweep "study.lua cluster=slurm run=one note='a  b' seeds=1"
  t.eq(#files.list(path "one/slurm"), 1, "the same runs: the same list")
  forget()
  said, status = sh(as_task:format(2, "one/slurm/1"))
  t.eq(status, 0, said)
  local result = folder.result(path "one/runs/a=2,seed=1")
  t.eq(result.metrics.score, 21) t.eq(result.metrics.note, 4)
  said = sweep "study.lua cluster=slurm run=one note='a  b' seeds=1"
  t.ok(said:find("2 of 3 runs are open; this begins them:\n  sbatch --array=1-2 one/slurm/2/job.sh", 1, true), said)
  t.eq(files.read(path "one/slurm/2/runs.txt"), "a=1,seed=1 0\na=3,seed=1 0\n")
  t.eq(files.read(path "one/slurm/1/runs.txt"), "a=1,seed=1 0\na=2,seed=1 0\na=3,seed=1 0\n")
  t.eq(select(2, sh(as_task:format(2, "one/slurm/1"))), 0)
  t.eq(marks()["a=2,seed=1"], 1, "done: a task that comes again has nothing to do")
  t.eq(select(2, sh(as_task:format(4, "one/slurm/1"))), 2, "there is no fourth cell")
end)

t.test("slurm: what the estimate says is asked for, with a margin, and kept with the result", function()
  local said, status = sh(("'%s' sweep study.lua pause=0.1 cluster=slurm run=told"):format(shell.program))
  t.eq(status, 0, said)
  t.ok(said:find "6 of 6 runs are open, about [%d.e-]+ core hours, up to %d+ MiB each", said)
  local text = files.read(path "told/slurm/1/job.sh")
  t.ok(tonumber(text:match "%-%-time=(%d+)\n") >= 10) t.ok(tonumber(text:match "%-%-mem=(%d+)M\n") > 256)
  t.eq(select(2, sh(as_task:format(1, "told/slurm/1"))), 0)
  local e = folder.result(path "told/runs/a=1,seed=1").estimate
  t.ok(e.wall_s >= 0.1 and e.wall_s < 600 and e.peak_mib > 1)
end)

t.test("slurm: arrays are no longer than the cluster allows", function()
  local said = sh(('export PATH="$PWD/bin:$PATH"; \'%s\' sweep study.lua estimate=0 cluster=slurm jobs=4 run=long'):format(shell.program))
  t.ok(said:find("  sbatch --array=1-4%2 long/slurm/1/job.sh\n  sbatch --array=1-2%2 long/slurm/1/job.sh 4\n", 1, true), said)
  t.eq(select(2, sh((as_task .. " 4"):format(2, "long/slurm/1"))), 0)
  t.eq(folder.result(path "long/runs/a=3,seed=2").status, "done")
end)

t.test("a task that is told to go asks for its return, and the run goes on where it stood", function()
  local words = "corridor=4 core=gru core.d_model=8 hidden=8 num_envs=2 num_steps=16 steps=1000000 run=sent"
  sweep("tmaze cluster=slurm " .. words)
  local log = path "sent/runs/seed=1/metrics.jsonl"
  local function size() return files.is_file(log) and #files.read(log) or 0 end
  local function interrupt(signal)
    local was = size()
    sh(as_task:format(1, "sent/slurm/1") .. " > out 2>&1 & echo $! > pid")
    shell.wait("a run that learns", function() return size() > was end)
    sh("kill -" .. signal .. " $(cat pid)")
    shell.wait("its task to end", function() return sh "kill -0 $(cat pid) 2>&1":find "No such" end)
  end
  interrupt "TERM"                                 -- scancel: nobody wants it back
  t.ok(not files.is_file(path "asked"), files.read(path "out"))
  interrupt "USR1"
  t.eq(files.read(path "asked"), "requeue 7_1\n", files.read(path "out"))
  t.ok(not folder.result(path "sent/runs/seed=1"), "it is open")
  local before = select(2, files.read(log):gsub('"step"', ""))
  local said, status = sh(as_task:format(1, "sent/slurm/1"))
  t.eq(status, 0, said)
  local after, last = 0, 0
  for step in files.read(log):gmatch '"step": (%d+)' do
    t.ok(tonumber(step) > last, "no step is there twice")
    after, last = after + 1, tonumber(step)
  end
  t.ok(before > 0 and after > before and last == 1000000)
end)

t.test("a run that fails is kept; one that another process runs is left to it", function()
  forget()
  local said, status = sweep "study.lua crash=2 run=cursed only=a=2,seed=1"
  t.eq(status, 1, said)
  t.eq(marks()["a=2,seed=1"], 2)
  t.eq(folder.result(path "cursed/runs/a=2,seed=1").attempts, 2)
  t.eq(select(2, sweep "study.lua crash=2 run=cursed only=2 attempts=1"), 1)
  t.eq(folder.result(path "cursed/runs/a=2,seed=1").attempts, 3)
  files.write(path "held", { "" })                 -- it lasts until it is let go
  sh(("'%s' sweep study.lua run=shared only=1 > /dev/null 2>&1 & true"):format(shell.program))
  shell.wait("a run that runs", function() return marks()["a=1,seed=1"] end)
  local patience = one_run.patience
  one_run.patience = 0.2
  t.eq(one_run.process(path "shared/runs/a=1,seed=1", path "study.lua", { words = { "a=1", "seed=1" } }), one_run.TAKEN)
  one_run.patience = patience
  os.remove(path "held")
  shell.wait("its result", function() return folder.result(path "shared/runs/a=1,seed=1") end)
  t.eq(marks()["a=1,seed=1"], 1)
end)

t.test("what cannot be handed over says so", function()
  local function refused(words, what)
    local said, status = sweep("study.lua " .. (words:find "run=" and "" or "run=no ") .. words)
    t.eq(status, 2, said) t.ok(said:find(what), said)
  end
  refused("cluster=slrum", "did you mean 'slurm'")
  refused("cluster=slurm hosts=x", "unknown setting 'hosts'")
  refused("cluster=slurm 'time=1 h'", "sbatch %-%-time")
  refused("cluster=slurm run='a\ntouch pwned'", "run has a line break or control character in its name")
  refused("only=7", "there are 6 runs")
  refused("only=a=9,seed=1", "there are 6 runs")
  refused("mem=1G", "unknown setting")
end)

local slurm, why
t.test("Slurm: an array runs every run; one whose node is wanted is requeued, and is done once", function()
  slurm, why = slurm_rig.new()
  if not slurm then t.skip(why) end
  forget()
  local said, status = sweep("study.lua cluster=slurm jobs=3 run=real submit=1", slurm)
  t.eq(status, 0, said) t.ok(said:find "handed over" and said:find "Submitted batch job", said)
  local words = "corridor=4 core=gru core.d_model=8 hidden=8 num_envs=2 num_steps=16 steps=1000000 run=back"
  sweep("tmaze cluster=slurm submit=1 " .. words, slurm)
  local log = path "back/runs/seed=1/metrics.jsonl"
  shell.wait("a run that learns", function() return files.is_file(log) and files.read(log):find "step" end)
  local id = slurm:run "squeue -h -n back -o %A":match "%d+"
  slurm:run("scancel --signal=USR1 --batch " .. id)
  shell.wait("the task in the queue again", function() return slurm:run("squeue -h -o '%T %r' -j " .. id):find "PENDING BeginTime" end)
  t.ok(not folder.result(path "back/runs/seed=1"))
  shell.wait("its first life to end", function() return slurm:run("cat slurmd.log"):find("[" .. id .. ".batch] done with job", 1, true) end)
  slurm:run(("scontrol update JobId=%s_1 StartTime=now+2"):format(id))       -- Slurm waits two minutes otherwise
  shell.wait("the last result", function() return folder.result(path "back/runs/seed=1") end)
  local last = 0
  for step in files.read(log):gmatch '"step": (%d+)' do
    t.ok(tonumber(step) > last)
    last = tonumber(step)
  end
  t.eq(last, 1000000)
  shell.wait("an empty queue", function() return slurm:run "squeue -h" == "" end)
  local list, n = marks()
  t.eq(n, 6)
  for _, c in ipairs(folder.load(path "real").runs) do
    t.eq(c.status, "done") t.eq(list[c.name], 1)
  end
  t.eq(table.concat(files.list(path "real/slurm/1"), " "), "job.sh runs.txt", "tasks that went well leave nothing")
end)
if slurm then slurm:stop() end

os.execute('rm -r "' .. top .. '"')
