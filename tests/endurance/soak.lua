-- soak.lua -- is memory flat over a long training?   luajit tests/endurance/soak.lua [SECONDS [SETTING=VALUE ...]]
-- Trains a small agent in experiments/tmaze.lua for that long, with a checkpoint and a recorded episode now and then,
-- writes the resident memory of each second into soak.tsv in the folder of the run, and fails where the second half
-- grows by a megabyte or more.  Not one of the tests: two hours tell what ten seconds cannot.
local here = arg[0]:match "^(.*)tests/endurance/soak%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local C = require("mneme.base.engine").C

local MEGABYTE, PAGE = 2 ^ 20, 4096
local seconds = tonumber(arg[1]) or 7200
local settings = "corridor=8 core.n_layers=2 core.d_model=64 core.d_head=32 core.d_ffn=64 hidden=64 steps=1e12 threads=1 "
  .. "checkpoint_every=20480"

-- The first number of statm is the size, the second what is resident, both in pages; nil: the process has ended.
local function resident(pid)
  local f = io.open(("/proc/%s/statm"):format(pid))
  local pages = f and f:read "*l":match "^%d+ (%d+)"
  if f then f:close() end
  return pages and tonumber(pages) * PAGE
end

local folder = shell.folder()
local said = shell.run(folder, ("'%s' run '%sexperiments/tmaze.lua' run=soak %s %s > log 2>&1 & echo $!"):format(
  shell.program, shell.absolute(here), settings, table.concat(arg, " ", 2)))
local pid = assert(said:match "%d+", said)
local begun, samples, lines = C.mn_clock(false), {}, { "second\tbytes\n" }
while C.mn_clock(false) - begun < seconds do
  C.mn_sleep(1)
  local bytes = resident(pid)
  if not bytes then break end
  samples[#samples + 1] = bytes
  lines[#lines + 1] = ("%.0f\t%.0f\n"):format(C.mn_clock(false) - begun, bytes)
end
local alive = resident(pid) ~= nil
os.execute("kill -TERM " .. pid)
files.write(folder .. "/soak.tsv", lines)
if not alive then
  io.stderr:write("soak: the training ended by itself:\n", (files.read(folder .. "/log")), "\n")
  os.exit(1, false)
end

-- The most of each half: a collector breathes, a leak does not come back.
local function most(first, last)
  local top = 0
  for i = first, last do top = math.max(top, samples[i]) end
  return top
end
local half = math.floor(#samples / 2)
local one, two = most(math.max(1, math.floor(half / 10)), half), most(half + 1, #samples)
print(("soak: %d s; at most %.2f MB in the first half, %.2f MB in the second; %.2f MB at the end; %s/soak.tsv"):format(
  #samples, one / MEGABYTE, two / MEGABYTE, samples[#samples] / MEGABYTE, folder))
os.exit(two - one < MEGABYTE and 0 or 1, false)
