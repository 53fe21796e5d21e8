-- kill.lua -- kill -9 at random moments: does going on give what an undisturbed run gives, bit for bit?
-- luajit tests/endurance/kill.lua [KILLS [SEED]].  Each run is killed at a moment drawn again (one that ended before is not
-- counted), and now and then again while it goes on; then it goes on to its end, and every checkpoint (parameters, optimiser, environments,
-- memories, random numbers) and every metric but clocks must be those of the run that nothing happened to.
-- tests/engine/test_faults.lua kills in the midst of each write; this is the same from outside, between any two instructions.
local here = arg[0]:match "^(.*)tests/endurance/kill%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local run_contents = require "tests.support.run_contents"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local C = require("mneme.base.engine").C

local kills, seed = tonumber(arg[1]) or 200, tonumber(arg[2]) or 1
local source = shell.absolute(here)
local folder = shell.folder()
math.randomseed(seed)

-- Small runs of what differs in what it keeps: memories, learners, sequences, several threads.
local sizes = "corridor=6 num_envs=4 num_steps=32 hidden=16 checkpoint_every=2048 "
local lines = {
  { "tmaze", sizes .. "core=agalite core.n_layers=1 core.d_model=32 core.d_head=16 core.d_ffn=32 steps=16384 threads=1" },
  { "tmaze", sizes .. "core=gru core.d_model=32 steps=65536 threads=2" },
  { "tmaze", sizes .. "core=gtrxl core.n_layers=1 core.d_model=32 core.d_head=16 core.d_ffn=32 core.memory=16 steps=16384 threads=1" },
  { "recall", "quick=1 checkpoint_every=8192 steps=65536 threads=1" },
}

local function mneme(words)
  local said, status = shell.mneme(folder, words)
  if status ~= 0 then error(words .. ": " .. said, 0) end
end

for i, line in ipairs(lines) do
  line.words = ("run '%sexperiments/%s.lua' %s"):format(source, line[1], line[2])
  local begun = C.mn_clock(false)
  mneme(line.words .. " run=whole-" .. i)
  line.seconds, line.kept = C.mn_clock(false) - begun, run_contents(("%s/whole-%d"):format(folder, i))
end

-- Start, and kill at a moment drawn from the seconds that such a run takes, which are learnt.  Was it killed?  In the foreground, timeout waits
-- for the end of what it killed, whose lock the next start needs.
local function killed(line, words)
  local begun, seconds = C.mn_clock(false), line.seconds * math.random()
  local said = shell.run(folder, ("timeout --foreground -s KILL %.4f '%s' %s > log 2>&1; echo $?"):format(seconds, shell.program, words))
  local status = tonumber(said:match "(%d+)%s*$")
  if status ~= 0 and status ~= 137 then error(("status %d: %s"):format(status, (files.read(folder .. "/log"))), 0) end
  if status == 0 then line.seconds = math.min(line.seconds, C.mn_clock(false) - begun) end
  return status ~= 0
end

local done, same, again, before = 0, 0, 0, 0
while done < kills do
  local line = lines[done % #lines + 1]
  local ok, problem = pcall(function()
    repeat shell.run(folder, "rm -rf it") until killed(line, line.words .. " run=it")
    local begun = files.is_file(folder .. "/it/config.json")
    if not begun then before = before + 1 end
    if begun and math.random() < 0.3 and killed(line, "run resume=it") then again = again + 1 end
    mneme(begun and "run resume=it" or line.words .. " run=it")
    local what = run_contents.differs(run_contents(folder .. "/it"), line.kept)
    if what then error(what, 0) end
  end)
  done = done + 1
  if ok then same = same + 1
  else
    print(("kill %d, %s: %s"):format(done, line.words, tostring(problem)))
    shell.run(folder, ("cp -r it failed-%d"):format(done))
  end
end
print(("%d of %d runs are the same; %d were killed again while they went on, %d had kept nothing yet"):format(
  same, kills, again, before))
if same < kills then
  print("what failed lies in " .. folder)
  os.exit(1, false)
end
shell.run(folder, ("rm -r '%s'"):format(folder))
