-- run.lua -- runs tests/*/test_*.lua, or the files and folders named, each file in a process of its own with a time limit
-- of its own, so that none can take the others with it; last line "N passed, N failed".  MNEME_TEST_LIMIT: seconds for one file (900).
local here = arg[0]:match "^(.*)tests/run%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path

-- As the child: one file, then its counts for the parent.
if arg[1] == "one" then
  local t = require "tests.harness"
  local chunk, err = loadfile(arg[2])
  t.test(arg[2], chunk or function() error(err, 0) end)
  collectgarbage()                                -- what a file leaves behind may not crash either
  print(("counts %d %d %d"):format(t.passed, t.failed, t.skipped))
  io.stdout:flush()
  os.exit(t.failed == 0 and 0 or 1, false)
end

local files = {}
for _, name in ipairs(#arg > 0 and arg or { here .. "tests" }) do
  if name:find "%.lua$" then files[#files + 1] = name
  else
    local list = io.popen(("find '%s' -name 'test_*.lua' | LC_ALL=C sort"):format((name:gsub("/+$", ""))))
    for file in list:lines() do files[#files + 1] = file end
    list:close()
  end
end

local limit = tonumber(os.getenv "MNEME_TEST_LIMIT" or 900)
local said = os.tmpname()
local total = { 0, 0, 0 }
local failures = {}

-- A failure is printed where it happens, with its stack, and again before the last line: its name and its message.
local function keep_failures(file, text)
  for name, message in text:gmatch "  FAILED   ([^\n]*)\n *([^\n]*)" do
    failures[#failures + 1] = ("  FAILED   %s%s\n           %s"):format(file and file:match "[^/]*$" .. ": " or "", name, message)
  end
end

local function read(path)
  local f = assert(io.open(path))
  local text = f:read "*a"
  f:close()
  return text
end

-- Two lanes: a GPU's kernels, compiled and emulated, take one processor minutes.  Where all files are run, those and a few other long ones
-- go beside the rest, as a run of this program with a session of its own.
local second = { "tests/gpu/", "/test_attack%.lua$", "/test_docs%.lua$", "/test_faults%.lua$" }
local function in_second(file)
  for _, pattern in ipairs(second) do if file:find(pattern) then return true end end
  return false
end

local beside, beside_said, beside_pid = {}, os.tmpname(), nil
if #arg == 0 then
  for i = #files, 1, -1 do
    if in_second(files[i]) then table.insert(beside, 1, ('"%s"'):format(table.remove(files, i))) end
  end
end
if #beside > 0 then
  local start = io.popen(("setsid sh -c 'luajit \"%stests/run.lua\" %s; echo over' > '%s' 2>&1 < /dev/null & echo $!"):format(here,
    table.concat(beside, " "), beside_said))
  beside_pid = start:read "*n"
  start:close()
end

local function interrupted()
  if beside_pid then os.execute(("kill -- -%d"):format(beside_pid)) end
  os.exit(130, false)
end

-- What it prints goes to a file: a process that it leaves behind cannot keep anybody waiting for the end of a pipe.
local function run(file)
  local status = os.execute(("timeout --foreground -k 10 %d luajit '%stests/run.lua' one '%s' > '%s' 2>&1 < /dev/null"):format(limit, here, file, said))
  local text = read(said)
  local before, passed, failed, skipped = text:match "^(.-)counts (%d+) (%d+) (%d+)\n"
  io.write(before or text)
  keep_failures(file, before or "")
  if before then return { passed, failed, skipped } end
  status = math.floor(status / 256)
  if status == 130 then interrupted() end         -- Ctrl-C
  local died = ("  FAILED   %s\n           %s"):format(file, (status == 124 or status == 137) and ("was not done after %d seconds"):format(limit)
    or ("its process died: status %d%s"):format(status, status > 128 and (", signal %d"):format(status - 128) or ""))
  print(died)
  keep_failures(nil, died)
  return { 0, 1, 0 }
end

for _, file in ipairs(files) do
  local begun = os.time()
  local counts = run(file)
  for i = 1, 3 do total[i] = total[i] + counts[i] end
  print(("%-32s %4d passed %3d failed %3d skipped  %4d s"):format(file:match "[^/]*$", counts[1], counts[2], counts[3],
    os.time() - begun))
  io.stdout:flush()
end
if beside_pid then
  local status = os.execute(("i=0; until grep -q '^over$' '%s' || [ $i -gt %d ]; do sleep 0.5; i=$((i+1)); done"):format(beside_said,
    2 * limit * #beside))
  if math.floor(status / 256) == 130 then interrupted() end
  local text = read(beside_said)
  local list, passed, failed, skipped = text:match "^(.-)(%d+) passed, (%d+) failed([^\n]*)\nover\n$"
  io.write(list or text)
  keep_failures(nil, list or text)
  if not list then print(("  FAILED   %s\n           its process died"):format(table.concat(beside, " "))) end
  for i, n in ipairs { passed or 0, failed or 1, skipped and skipped:match "%d+" or 0 } do total[i] = total[i] + n end
end
os.remove(said)
os.remove(beside_said)
if #arg == 0 and #failures > 0 then print("What failed:\n" .. table.concat(failures, "\n")) end
print(("%d passed, %d failed%s"):format(total[1], total[2], total[3] > 0 and (", %d skipped"):format(total[3]) or ""))
os.exit(total[2] == 0 and total[1] > 0 and 0 or 1, false)
