-- test_signals.lua -- a signal is a request, once: whatever trains, told to go by its whole process group, twice, keeps a checkpoint of every
-- run and goes on later; a second Ctrl-C, or a signal five seconds later, ends at once; every command that can run long ends when it is told.
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"

local dir = shell.folder()
local SMALL = "core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=32 threads=1 steps=1e12"
local function sh(line) return shell.run(dir, line) end

files.write(dir .. "/long.lua", { [[
return require("mneme").study { title = "long", of = "tmaze", seeds = 2, metrics = { score = { "score" } },
  settings = { core = { "gru", d_model = 8 }, hidden = 8, corridor = 4, num_envs = 2, num_steps = 32, steps = 1e12 } }
]] })
files.make_folder(dir .. "/bin")
files.write(dir .. "/bin/scontrol", { "#!/bin/sh\necho \"$@\" >> \"$OLDPWD/asked\"\n" })
sh "chmod +x bin/scontrol"

-- Begin a line in a session of its own; once `runs` runs below `folder` have learned something, send the signal twice to all of its
-- processes.  What it said, its status, and how many checkpoints there are.
local function told(line, folder, runs, signal, whom, again)
  local said, status = sh(("setsid %s > said 2>&1 & all=$!; i=0; "
    .. "until [ $(find . -path './%s*/metrics.jsonl' -size +0 | wc -l) -ge %d ] "
    .. "|| ! kill -0 $all 2> /dev/null || [ $i = 1200 ]; do sleep 0.1; i=$((i + 1)); done; "
    .. "whom=\"%s\"; kill -s %s -- $whom; sleep 0.01; %s; "
    .. "i=0; while kill -0 $all 2> /dev/null && [ $i -lt 1000 ]; do sleep 0.05; i=$((i + 1)); done; kill -s KILL -- -$all 2> /dev/null; "
    .. "wait $all; status=$?; cat said; (exit $status)")
    :format(line, folder, runs, whom or "-$all", signal, again or ("kill -s %s -- $whom 2> /dev/null"):format(signal)))
  return said, status, select(2, sh(("find . -path './%s*/checkpoints/step-*'"):format(folder)):gsub("\n", ""))
end

local function program(words) return ("'%s' %s"):format(shell.program, words) end

-- Seconds of a command that does next to nothing: what a limit in seconds is measured in, since machines differ by a factor of ten.
local START
do
  local begun = engine.C.mn_clock(false)
  sh(program "help where > /dev/null")
  START = engine.C.mn_clock(false) - begun
end

local kinds = {
  { "run", program("run tmaze quick=1 " .. SMALL .. " run=run"), 1 },
  { "run seeds=2", program("run tmaze quick=1 " .. SMALL .. " seeds=2 jobs=2 run=seeds"), 2 },
  { "sweep", program "sweep long.lua estimate=0 jobs=2 threads=1 run=sweep", 2 },
  { "sweep only=1", program "sweep long.lua estimate=0 only=1 threads=1 run=only", 1 },
  { "a tuning", program "sweep long.lua lr=1e-5..1:log budget=3 jobs=2 estimate=0 threads=1 run=tune", 2 },
  { "the job of a Slurm task", "env PATH=\"$PWD/bin:$PATH\" SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=1 sh job.sh", 1, "job" },
}

-- The script of docs/clusters.md.
local job = files.read(require("mneme.base.registry").root .. "docs/clusters.md"):match "\n(    #!/bin/sh\n.-)\n\n":gsub("%f[^\n%z]    ", "")
local n
job, n = job:gsub("mneme sweep fig13a_gating full=1 run=/shared/fig13a", (program("sweep long.lua threads=1 run=job"):gsub("%%", "%%%%")))
t.test("the page's script has the sweep", function() t.eq(n, 1) end)
files.write(dir .. "/job.sh", { job, "\n" })
for _, kind in ipairs(kinds) do
  local folder = kind[4] or kind[2]:match "run=(%w+)$"
  t.test("TERM, twice, to all processes of " .. kind[1] .. ": nothing is lost", function()
    local said, status, kept = told(kind[2], folder, kind[3], "TERM")
    t.eq(status, 143, said)
    t.eq(kept, kind[3], said)
    t.ok(not said:find "failed" and not said:find "killed", said)
  end)
end

t.test("so do the signals of other batch systems", function()
  for _, signal in ipairs { "HUP", "USR1", "USR2", "XCPU", "PWR" } do
    local said, status, kept = told(program("run tmaze quick=1 " .. SMALL .. " run=by-" .. signal), "by-" .. signal, 1, signal)
    t.eq(status, 143, signal .. ": " .. said)
    t.eq(kept, 1, signal)
  end
  local _, _, of_sweep = told(program "sweep long.lua estimate=0 jobs=2 threads=1 run=sweep-USR1", "sweep-USR1", 2, "USR1")
  t.eq(of_sweep, 2)
  sh(("timeout %.1f "):format(3 + 60 * START) .. program("run tmaze quick=1 " .. SMALL .. " run=timeout"))
  t.eq(#files.list(dir .. "/timeout/checkpoints"), 1, "timeout")
  local said, status = sh(("(ulimit -S -t %d; exec %s)"):format(math.ceil(2 + 30 * START), program("run tmaze quick=1 " .. SMALL .. " run=limit")))
  t.eq(status, 143, said)
  t.eq(#files.list(dir .. "/limit/checkpoints"), 1, said)
end)

t.test("ranks: TERM to mpirun and all of them", function()
  if not shell.has "mpirun" then t.skip "there is no mpirun (Debian: openmpi-bin)" end
  if os.getenv "LD_PRELOAD" then t.skip "a sanitizer looks at the ranks, not at mpirun" end
  local line = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --mca odls_base_sigkill_timeout 40 -n 2 "
  -- mpirun passes it on, so that a rank has it twice; a second one within five seconds makes mpirun kill all, saved or not.
  local said, _, kept = told(line .. program("run tmaze quick=1 " .. SMALL .. " run=ranks"), "ranks", 1, "TERM", "$(ps -o pid= -s $all)", "true")
  t.eq(kept, 1, said)
end)

-- A program that never asks whether there was a signal, and lives for some seconds: what ended it, and when.
local function unasked(seconds, sends)
  local said = sh(("rm -f ready; env --default-signal=INT MNEME_BUILD='%s' luajit -e \"package.path = '%s/lua/?.lua;%s/lua/?/init.lua;' .. package.path; "
    .. "local C = require('mneme.base.engine').C; C.mn_watch_signals(true); io.open('ready', 'w'):close(); local t = C.mn_clock(false) "
    .. "require('ffi').cdef 'int usleep(unsigned us);' while C.mn_clock(false) < t + %d do "
    .. "require('ffi').C.usleep(20000) end\" 2> /dev/null & p=$!; while [ ! -e ready ]; do sleep 0.02; done; "
    .. "begun=$(date +%%s%%N); %s; wait $p; echo $? $((($(date +%%s%%N) - begun) / 1000000))"):format(shell.build, shell.root, shell.root, seconds, sends))
  local status, ms = said:match "(%d+) (%d+)%s*$"
  return tonumber(status), tonumber(ms)
end

t.test("a second Ctrl-C ends at once, and so does any signal after five seconds; repeats of another do not", function()
  local status, ms = unasked(10, "kill -INT $p; sleep 0.5; kill -INT $p")
  t.ok(status == 130 and ms < 5000, ("%d after %d ms"):format(status, ms))
  status, ms = unasked(3, "kill -INT $p; kill -TERM $p; sleep 0.2; kill -TERM $p; kill -HUP $p")
  t.ok(status == 0 and ms > 2000, ("%d after %d ms"):format(status, ms))
  status, ms = unasked(10, "kill -TERM $p; sleep 5.3; kill -XCPU $p; sleep 0.2; kill -USR1 $p")
  t.ok(status == 138 and ms < 9000, ("%d after %d ms"):format(status, ms))
end)

t.test("a folder of checkpoints that is removed while its run trains is made again", function()
  local said, status, kept = told(program("run tmaze quick=1 " .. SMALL .. " checkpoint_every=20000 run=gone"), "gone", 1,
    "TERM", "$(rm -rf gone/checkpoints; sleep 0.5; rm -rf gone/checkpoints; echo $all)")
  t.eq(status, 143, said)
  t.ok(kept >= 1, said)
  t.eq(select(2, sh(program "check gone")), 0)
end)

-- ---- every command that can run long ends when it is told ----

local function ends(words, signal, display)
  local said = sh(("env -u DISPLAY --default-signal=INT " .. (display or "") .. " '%s' %s > said 2>&1 < /dev/null & p=$!; "
    .. " sleep 0.5; begun=$(date +%%s%%N); kill -%s $p 2> /dev/null; "
    .. "i=0; while kill -0 $p 2> /dev/null && [ $i -lt 1200 ]; do sleep 0.05; i=$((i + 1)); done; ms=$((($(date +%%s%%N) - begun) / 1000000)); "
    .. "kill -9 $p 2> /dev/null; wait $p; echo $? $ms"):format(shell.program, words, signal))
  local status, ms = said:match "(%d+) (%d+)%s*$"
  t.ok(tonumber(status) ~= 137 and tonumber(ms) < 1000 * (4 + 60 * START),                     -- a second where nothing else runs
    ("%s: %s after SIG%s: status %s after %s ms"):format(words, (files.read(dir .. "/said")), signal, status, ms))
  t.ok(tonumber(status) ~= 2, words .. ": " .. files.read(dir .. "/said"))
end

t.test("every command that can run long ends on SIGTERM and SIGINT", function()
  local text = sh(program("run tmaze quick=1 " .. SMALL:gsub("1e12", "4000") .. " run=small"))
  t.ok(files.is_file(dir .. "/small/config.json"), text)
  sh(program("run demo quick=1 core=agalite num_envs=2 num_steps=32 steps=64 where=0 threads=1 run=large"))
  local lines = { "eval small episodes=100000000", "where large episodes=50000", "probe small episodes=2048",
    "intervene small erase=all at=1 episodes=10000000", "view small out=x.gif episodes=1", "view small out=x.html wait=100", "report sweep out=r.html",
    "check small", "compare small sweep", "export small to=x.safetensors", "list runs",
    "diff small small", "doctor", "help where", "new env small_world", "credit small", "complete mneme wh", "report small small",
    "sweep long.lua jobs=2 threads=1 run=sweep", "sweep long.lua lr=1e-5..1:log budget=3 run=again",
    "run tmaze " .. SMALL, "run tmaze where=1 quick=1 run=mapped core=gru num_envs=2 threads=1 steps=1e6" }
  local asked = { bench = true, play = true }                      -- below
  for _, line in ipairs(lines) do asked[line:match "^%S+"] = true end
  for _, name in ipairs(require("mneme.commands.options").commands.names) do t.ok(asked[name], name .. ": a command without a line here") end
  for _, name in ipairs(registry.benchmarks()) do lines[#lines + 1] = "bench " .. name end
  for i, line in ipairs(lines) do
    if line ~= "bench peers" then ends(line, i % 2 == 0 and "INT" or "TERM") end         -- it needs PyTorch
  end
  for _, line in ipairs { "view small", "view tmaze", "play tmaze", "view small scene=where" } do
    for _, signal in ipairs { "INT", "TERM" } do ends(line, signal, "SDL_VIDEODRIVER=dummy") end
  end
  for _, line in ipairs { "bench train", "eval small episodes=100000000", "view large out=x.gif episodes=9" } do
    ends(line, "INT") ends(line, "TERM")
  end
  t.eq(sh "ls | grep '^x.gif.*tmp'", "", "no half of a film stays")
end)

shell.run("/", "sleep 0.5; rm -rf '" .. dir .. "'")
