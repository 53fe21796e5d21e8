-- test_limits.lua -- what batch systems and containers limit: memory and processors of a control group, and processes (ulimit -u).
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local dir = shell.folder()
shell.run(dir, "chmod 777 .")
local RUN = ("'%s' run tmaze core=gru core.d_model=8 hidden=8 corridor=4 num_envs=8 num_steps=32 steps=2000"):format(shell.program)
local CORES = ("MNEME_BUILD='%s' luajit -e 'package.path = \"%slua/?.lua;%slua/?/init.lua;\" .. package.path; "):format(shell.build, shell.root, shell.root)
  .. "print(require(\"mneme.base.engine\").C.mn_cores())'"

-- Runs a command in a control group of its own, made with these limits; nil: none can be made here.
local function limited(controller, limits, command)
  local path
  for line in io.lines "/proc/self/cgroup" do
    local of, at = line:match "^%d+:([^:]*):(.*)$"
    if ("," .. of .. ","):find("," .. controller .. ",", 1, true) then path = path or { "/sys/fs/cgroup/" .. of .. at, 1 } end
    if of == "" and files.is_file("/sys/fs/cgroup" .. at .. "/cgroup.controllers") then path = path or { "/sys/fs/cgroup" .. at, 2 } end
  end
  if not path then return nil end
  local group = path[1]:gsub("/$", "") .. "/mneme-test"
  local _, failed = shell.run(dir, ("mkdir '%s' 2>/dev/null"):format(group))
  if failed ~= 0 then return nil end
  for _, limit in ipairs(limits[path[2]]) do
    local _, refused = shell.run(dir, ("echo '%s' > '%s/%s'"):format(limit[2], group, limit[1]))
    failed = failed ~= 0 and failed or refused
  end
  local said, status = "", 0
  if failed == 0 then said, status = shell.run(dir, ("sh -c 'echo $$ > \"$0/cgroup.procs\" && %s' '%s'"):format(command:gsub("'", "'\\''"), group)) end
  shell.run(dir, ("rmdir '%s'"):format(group))
  if failed ~= 0 then return nil end
  return said, status
end

t.test("a control group's memory is what the machine has", function()
  local said, status = limited("memory", { { { "memory.limit_in_bytes", "64M" } }, { { "memory.max", "64M" } } }, RUN .. " threads=1 run=small")
  if not said then return t.skip "no control group for memory can be made here" end
  t.eq(status, 0, said)
end)

t.test("a control group's processor time limits the threads by default", function()
  if tonumber((shell.run(dir, CORES))) < 2 then return t.skip "one processor" end
  local said = limited("cpu", { { { "cpu.cfs_period_us", "100000" }, { "cpu.cfs_quota_us", "90000" } }, { { "cpu.max", "90000 100000" } } }, CORES)
  if not said then return t.skip "no control group for processors can be made here" end
  t.eq(said, "1\n")
end)

t.test("the processors of a batch job limit the threads by default", function()
  for _, name in ipairs { "SLURM_CPUS_PER_TASK", "OMP_NUM_THREADS" } do
    local said = shell.run(dir, name .. "=1 " .. CORES:gsub("C.mn_cores%(%)", "C.mn_threads(require(\"mneme.base.engine\").ctx)"))
    t.eq(said, "1\n")
  end
end)

t.test("fewer threads than wanted: an error in words, or what is granted", function()
  if shell.run(dir, "id -u") ~= "0\n" then return t.skip "needs root, to be a user without other processes" end
  local user = "setpriv --reuid=65533 --regid=65533 --clear-groups bash -c 'ulimit -u 3; %s'"
  local _, there = shell.run(dir, user:format(("test -x \"%s\""):format(shell.program)))
  if there ~= 0 then return t.skip "other users cannot read this tree" end
  local said, status = shell.run(dir, user:format((RUN .. " threads=4 run=four"):gsub("'", '"')))
  t.ok(status == 2 or status == 1, said)
  t.ok(said:find "threads=4: the system grants %d %(ulimit %-u", said)
  files.write(dir .. "/refused.lua", { ("package.path = '%slua/?.lua;%slua/?/init.lua;' .. package.path\n"):format(shell.root, shell.root) .. [[
local engine = require "mneme.base.engine"
local before = engine.C.mn_threads(engine.ctx)
print(engine.C.mn_set_threads(engine.ctx, 4), engine.C.mn_threads(engine.ctx) == before)]] })
  said = shell.run(dir, "OMP_NUM_THREADS=1 " .. user:format(("MNEME_BUILD=\"%s\" luajit refused.lua"):format(shell.build)))
  t.ok(said:find "%-1%s+true", "a refused number of threads stays: " .. said)
  said, status = shell.run(dir, "OMP_NUM_THREADS=4 " .. user:format((RUN .. " threads=0 run=all"):gsub("'", '"')))
  t.eq(status, 0, said)
end)

t.test("a limited address space (ulimit -v): every command works, or says what is missing", function()
  local words = "core=gru core.d_model=8 hidden=8 corridor=4 num_envs=8 num_steps=32 steps=2000 threads=1"
  t.eq(select(2, shell.mneme(dir, "run tmaze quick=1 run=there " .. words)), 0)
  t.eq(select(2, shell.mneme(dir, "sweep tmaze quick=1 seeds=2 estimate=0 jobs=1 run=study " .. words)), 0)
  local commands = { "help", "help run", "doctor", "list", "list runs", "complete list ''", "check there", "check study", "report there out=r.html",
    "report study out=s.html", "compare there study",
    "view there out=v.png", "view there out=v.html wait=1", "eval there episodes=16", "export there to=e.safetensors",
    "where there episodes=4 every=4",
    "probe there episodes=48", "credit there", "intervene there erase=all at=1 episodes=4", "diff there there",
    "run tmaze quick=1 run=new " .. words, "run resume=there steps=4000", "sweep tmaze quick=1 seeds=2 estimate=0 jobs=1 run=study " .. words,
    "run tmaze quick=1 run=large num_envs=2048 num_steps=256 core=agalite steps=1e6 threads=1" }
  -- Where less sufficed more does, unless arenas reserve it: every fourth, and what is large.
  for k, limit in ipairs { 246000, 300000, 1000000, 3000000 } do
    for i, command in ipairs(commands) do if limit <= 300000 or (i + 2 * k) % 4 == 0 or command:find("large", 1, true) then
      local said, status = shell.run(dir, ("(rm -rf new large; ulimit -v %d; ulimit -t 60; exec timeout 100 '%s' %s)"):format(limit, shell.program, command))
      local large = command:find("large", 1, true) ~= nil
      if not (large and limit >= 1000000) then
        t.ok(status == 0 or status == 1 and (said:find "memory" or large),
          ("ulimit -v %d; mneme %s: %d %s"):format(limit, command, status, said))
      end
      if limit >= 300000 and not large then t.eq(status, 0, ("ulimit -v %d; mneme %s: %s"):format(limit, command, said)) end
    end end
  end
end)

t.test("a small stack (ulimit -s) is refused in words, and few descriptors (ulimit -n) and no room for a file (ulimit -f) are no crash", function()
  local commands = { "list envs", "doctor", "run tmaze quick=1 core=gru core.d_model=8 hidden=8 num_envs=2 num_steps=32 steps=64 threads=1 run=stack" }
  for limit, expected in pairs { ["-s 64"] = 1, ["-s 256"] = 0, ["-n 4"] = 2, ["-f 1"] = 2 } do
    for _, command in ipairs(commands) do
      local said, status = shell.run(dir, ("(rm -rf stack; ulimit %s; exec timeout 60 '%s' %s)"):format(limit, shell.program, command))
      t.ok(status <= expected and not said:find "attempt to" and (expected ~= 1 or status == 1 and said:find "stack is limited to 64 KiB"),
        ("ulimit %s; mneme %s: %d %s"):format(limit, command, status, said))
    end
  end
end)

t.test("arenas together reserve at most half of a limited address space", function()
  files.write(dir .. "/arenas.lua", { ("package.path = '%slua/?.lua;%slua/?/init.lua;' .. package.path\n"):format(shell.root, shell.root) .. [[
local mn = require "mneme"
local function addresses() return io.open "/proc/self/statm":read "*n" * 4096 end
local x, before, kept = mn.tensor { shape = { 64 } }, nil, {}
before = addresses()
for i = 1, 400 do
  kept[i] = require("mneme.tensor.plan")(function() return x * i end)
  kept[i]()
end
print(addresses() - before)]] })
  local said, status = shell.run(dir, ("(ulimit -v 2000000; MNEME_BUILD='%s' luajit arenas.lua)"):format(shell.build))
  t.eq(status, 0, said)
  t.ok(tonumber(said:match "(%d+)%s*$") < 1.05e9, said)
end)

files.remove_folder(dir)
