-- run.lua -- runs tests/*/test_*.lua, or the files and folders named, each file in a process of its own with a time limit
-- of its own, so that none can take the others with it; last line "N passed, N failed".  MNEME_TEST_LIMIT: seconds for one file (900, or
-- 20 times what it takes on two ordinary cores).  MNEME_PATHS: build folders of the engine for other vector widths; the tests of the engine and
-- of models run with each of them, too.  MNEME_MAKE: how to make what some files need.  MNEME_TEST_UNTIL: when to stop, in seconds since
-- 1970: where the time may not do short files go first, and what would not be done by then is skipped, and says so.
-- A line begins with how many files of all are done.  The seconds that each took are kept in the build folder: the next time they tell how
-- long all of it takes, and how long is left.  So is which of them failed: those go first.
local here = arg[0]:match "^(.*)tests/run%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path

-- As the child: one file, then its counts for the parent, which gives it a list of trusted code of its own (`run` below); by hand it makes one.
if arg[1] == "one" then
  local state = not (os.getenv "XDG_STATE_HOME" or ""):find "%.state$" and os.tmpname()
  if state then
    require("ffi").cdef "int setenv(const char *, const char *, int);"
    os.remove(state)
    require("ffi").C.setenv("XDG_STATE_HOME", state, 1)
  end
  local t = require "tests.harness"
  local chunk, err = loadfile(arg[2])
  t.test(arg[2], chunk or function() error(err, 0) end)
  require("tests.support.golden_errors").leave()
  collectgarbage()                                -- what a file leaves behind may not crash either
  if state then os.execute("rm -rf '" .. state .. "'") end
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

-- What asks for no number is the same with every width.
local same = "/test_([%w_]+)%.lua$"
local once = {}
for name in ([[check constructors core_rehearsal costs declarations draws faults forged_states fuzz images io modules replays saved tape torch_names
  writers]]):gmatch "%S+" do once[name] = true end
-- Nor what puts parts of models together: each core, and its values, run with another width, and what their ops compute with all of them.
for name in ([[decays gated_linear gate_start encoders implicit_attention own_heads own_parts stability which_memory]]):gmatch "%S+" do
  once[name] = true
end
local build_of, file_of = {}, {}                  -- of an entry of the list that runs with another build
local function with_other_widths()
  local widest = (os.getenv "MNEME_PATHS" or ""):match "([^/%s]+)%s*$"
  for folder in (os.getenv "MNEME_PATHS" or ""):gmatch "%S+" do
    for i = 1, #files do
      local file = files[i]
      local asks = file:find "/engine/" or file:find "/models/" and folder:match "[^/]*$" == widest
      if not file_of[file] and asks and not once[file:match(same)] then
        local entry = ("%s@%s"):format(file, folder:match "[^/]*$")
        files[#files + 1], build_of[entry], file_of[entry] = entry, folder, file
      end
    end
  end
end
if #arg == 0 then with_other_widths() end

-- What a file needs that the program does not: a target of the Makefile, and the seconds that it takes on two cores.
local targets = { widths = 60, emulator = 45 }
local function needs(file)
  if build_of[file] then return "widths" end
  if file:find "/gpu/test_" or file:find "/test_mpi%.lua$" or file:find "/test_run_seeds%.lua$" then return "emulator" end
end

local limit, till = tonumber(os.getenv "MNEME_TEST_LIMIT"), tonumber(os.getenv "MNEME_TEST_UNTIL")
local make = os.getenv "MNEME_MAKE"
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

-- What each file took the last time, in seconds; at first, what the long ones take on two cores.
local long = { docs = 90, signals = 45, gpu_ops = 45, faults = 40, web = 35, episode_page = 32, foreign = 32, one_truth = 32, mpi = 30, cores = 27,
  gym = 27, run_sources = 26, minute = 25, limits = 25, gpu = 25, look_at_runs = 24, without_root = 22, export_step = 22, python = 21, terminal = 21,
  gpu_train = 20, bench = 20, altered = 18, envs = 18, gpu_envs = 18, readings = 16, train = 16, reference = 16, tree = 14, report_markdown = 14,
  credit = 14, used_is_read = 14, gym_vectors = 14, tune = 13, learners = 13, verdicts = 12, export = 12, decays = 12, train_script = 12,
  ops = 11, memory_story = 10, kept_file = 10, timeline = 10, saved = 10, a2c = 10, sweep = 10 }
local kept_in, took, OTHERS = os.getenv "MNEME_BUILD" or here .. "build", {}, 2
local failed_before = {}
local function each_kept(name, pattern, f)
  local file = io.open(kept_in .. "/" .. name)
  for a, b in (file and file:read "*a" or ""):gmatch(pattern) do f(a, b) end
  if file then file:close() end
end
each_kept("test_times", "(%S+) (%d+)\n", function(name, seconds) took[name] = tonumber(seconds) end)
each_kept("test_failed", "(%S+)\n", function(name) failed_before[name] = true end)
local function expected(file)
  local name = file:match "[^/]*$"
  return took[name] or long[name:match "^test_([%w_]+)%.lua"] or OTHERS
end

-- Where all files are run, a lane for each processor and one more, for what only waits: this program starts itself again, in sessions of
-- their own, and each takes the next file that nobody has claimed.  Long ones go first, so that no lane ends with one; where the time may
-- not do, what is short and needs nothing else.  A lane's programs have one thread, where a test does not ask for more: others have the rest.
local lane = os.getenv "MNEME_TEST_LANE"          -- the folder of the claims, in the other lanes
local function processors()
  local pipe = io.popen "nproc 2> /dev/null || echo 2"
  local n = pipe:read "*n"
  pipe:close()
  return n
end
local lanes = #arg == 0 and math.min(processors(), 4) + 1 or 1
local function ordered(rank)
  local at, list = {}, { unpack(files) }
  for i, file in ipairs(list) do at[file] = i end
  table.sort(list, function(a, b)
    local x, y = rank(a), rank(b)
    if x ~= y then return x > y end
    return at[a] < at[b]
  end)
  return list
end
local function worst(file) return failed_before[file:match "[^/]*$"] and 1e6 or 0 end
local long_first = #arg > 0 and files or ordered(function(file) return worst(file) + expected(file) end)
local short_first = ordered(function(file) return worst(file) - expected(file) - 1000 * (targets[needs(file)] or 0) end)

local ffi = require "ffi"
ffi.cdef "int mkdir(const char *path, unsigned mode);"
local claims, beside = lane or os.tmpname(), {}
if not lane then
  os.remove(claims)
  ffi.C.mkdir(claims, 448)
end
for i = 2, lane and 0 or lanes do
  local its = { said = os.tmpname() }
  local start = io.popen(("MNEME_TEST_LANE='%s' MNEME_TEST_BEGAN=%d "
    .. "setsid sh -c 'luajit \"%stests/run.lua\" > \"%s\"; echo over >> \"%s\"' < /dev/null >&2 & echo $!")
    :format(claims, os.time(), here, its.said, its.said))
  its.pid = start:read "*n"
  start:close()
  beside[i - 1] = its
end

local function clock(s) return s < 90 and ("%.0f s"):format(s) or ("%.0f min"):format(s / 60) end

-- What the lanes have done: a line for each file, in a file that all append to.
local all = 0
for _, file in ipairs(files) do all = all + expected(file) end
local done_at = claims .. "/done"
local began = tonumber(os.getenv "MNEME_TEST_BEGAN") or os.time()
local function so_far(file, seconds, failed)
  local to = assert(io.open(done_at, "a"))
  to:write(("%d %s %d %d\n"):format(math.ceil(expected(file)), file:match "[^/]*$", seconds, failed))
  to:close()
  local count, sum = 0, 0
  for line in io.lines(done_at) do count, sum = count + 1, sum + tonumber(line:match "%d+") end
  local left = count < #files and sum > 0 and (os.time() - began) * math.max(0, all - sum) / sum
  return ("%d/%d"):format(count, #files), left and left >= 10 and "  ETA " .. clock(left) or "", sum
end

-- Made once, by whichever lane comes first; others wait only where nothing else is left to do.
local function made(target)
  local there = io.open(("%s/made_%s"):format(claims, target))
  if there then there:close() end
  return there ~= nil
end
local function make_for(file)
  local target = needs(file)
  if not make or not target or made(target) then return end
  ffi.C.mkdir(("%s/making_%s"):format(claims, target), 448)
  os.execute(("flock '%s/lock_%s' sh -c '[ -e \"%s/made_%s\" ] || { %s %s > \"%s/said_%s\" 2>&1 || tail -n 40 \"%s/said_%s\"; }; touch \"%s/made_%s\"'")
    :format(claims, target, claims, target, make, target, claims, target, claims, target, claims, target))
end
local function another_makes_for(file)
  local target = make and needs(file)
  return target and not made(target) and os.rename(("%s/making_%s"):format(claims, target), ("%s/making_%s"):format(claims, target))
end

-- How much slower this machine is than what was expected.
local sum_done = 0
local function slowness() return math.max(1, sum_done > 60 and lanes * (os.time() - began) / sum_done or 1) end

-- Would this file be done in time, as slow as the files before it were here?
local function in_time(file)
  if not till then return true end
  local target = make and needs(file)
  return os.time() + slowness() * (expected(file) + (target and not made(target) and targets[target] or 0)) <= till
end

if not lane and #files > 1 then
  print(("%d test files: about %s, %s; each line says how long is left"):format(#files, clock(all / (next(took) and lanes or math.min(lanes, 2))),
    next(took) and "as the last time" or "as on two cores"))
  io.stdout:flush()
end

local function keep_times()
  for line in io.lines(done_at) do
    local name, seconds, failed = line:match " (%S+) (%d+) (%d+)"
    took[name], failed_before[name] = tonumber(seconds), failed ~= "0" or nil
  end
  local to, failed = io.open(kept_in .. "/test_times", "w"), io.open(kept_in .. "/test_failed", "w")
  for name, seconds in pairs(to and took or {}) do to:write(("%s %d\n"):format(name, seconds)) end
  for name in pairs(failed and failed_before or {}) do failed:write(name, "\n") end
  if to then to:close() end
  if failed then failed:close() end
end

-- Is this file for this lane?  Whoever makes its folder runs it.
local function claimed(file) return ffi.C.mkdir(claims .. "/" .. file:gsub("%W", "_"), 448) == 0 end

local function interrupted()
  for _, its in ipairs(beside) do os.execute(("kill -- -%d"):format(its.pid)) end
  os.exit(130, false)
end

-- What it prints goes to a file: a process that it leaves behind cannot keep anybody waiting for the end of a pipe.  The list of trusted code
-- is one of the test's own.
local function run(file)
  local seconds = limit or math.max(900, 20 * expected(file))
  if till then seconds = math.min(seconds, math.max(60, till + 240 - os.time())) end
  local build = build_of[file] and ("MNEME_BUILD='%s' MNEME_HOME=\"${PWD}/%s\""):format(build_of[file], here) or ""
  local status = os.execute(("%s env -u MNEME_TEST_LANE -u MNEME_TEST_BEGAN XDG_STATE_HOME='%s.state' %s "
    .. "timeout --foreground -k 10 %d luajit '%stests/run.lua' one '%s' > '%s' 2>&1 < /dev/null; e=$?; rm -rf '%s.state'; exit $e")
    :format(lanes > 1 and not os.getenv "OMP_NUM_THREADS" and "OMP_NUM_THREADS=1" or "", said, build, seconds, here, file_of[file] or file, said, said))
  local text = read(said)
  local before, passed, failed, skipped = text:match "^(.-)counts (%d+) (%d+) (%d+)\n"
  io.write(before or text)
  keep_failures(file, before or "")
  if before then return { passed, failed, skipped } end
  status = math.floor(status / 256)
  if status == 130 then interrupted() end         -- Ctrl-C
  if status == 124 and till and os.time() >= till then
    print(("  skipped  the rest of %s: the time for all tests is over"):format(file))
    keep_failures(file, text)
    return { 0, select(2, text:gsub("  FAILED ", "")), 1 }
  end
  local died = ("  FAILED   %s\n           %s"):format(file, (status == 124 or status == 137) and ("was not done after %d seconds"):format(seconds)
    or ("its process died: status %d%s"):format(status, status > 128 and (", signal %d"):format(status - 128) or ""))
  print(died)
  keep_failures(nil, died)
  return { 0, 1, 0 }
end

-- The next file for this lane; nil: there is none.
local gone = {}
local function next_file()
  local list = till and os.time() + slowness() * (all - sum_done) / lanes > till and short_first or long_first
  for pass = 1, 2 do
    for _, file in ipairs(list) do
      if not gone[file] and (pass == 2 or not another_makes_for(file)) then
        gone[file] = true
        if claimed(file) then return file end
      end
    end
  end
end

for file in next_file do
  local begun = os.time()
  if not lane and expected(file) >= 60 then
    print(("        %s: about %s"):format(file:match "[^/]*$", clock(expected(file))))
    io.stdout:flush()
  end
  local timely = in_time(file)
  if timely then make_for(file) else print(("  skipped  %s: the time for all tests is over"):format(file)) end
  local counts = timely and run(file) or { 0, 0, 1 }
  for i = 1, 3 do total[i] = total[i] + counts[i] end
  local count, left, sum = so_far(file, os.time() - begun, counts[2])
  sum_done = sum
  local line = ("%7s %-26s %3d passed %d failed %d skipped %4d s%s"):format(count, file:match "[^/]*$", counts[1], counts[2], counts[3],
    os.time() - begun, left)
  if lane then io.stderr:write(line, "\n") else print(line) end
  io.stdout:flush()
end
local used = require "tests.support.processor_time"()
for _, its in ipairs(beside) do
  local status = os.execute(("i=0; until grep -q '^over$' '%s' || [ $i -gt %d ]; do sleep 0.5; i=$((i+1)); done"):format(its.said,
    2 * (limit or 900) * #files))
  if math.floor(status / 256) == 130 then interrupted() end
  local text = read(its.said)
  local list, seconds, passed, failed, skipped = text:match "^(.-)(%d+) s of processor time\n(%d+) passed, (%d+) failed([^\n]*)\nover\n$"
  io.write(list or text)
  keep_failures(nil, list or text)
  if not list then print "  FAILED   a lane of tests/run.lua\n           its process died" end
  used = used + (seconds or 0)
  for i, n in ipairs { passed or 0, failed or 1, skipped and skipped:match "%d+" or 0 } do total[i] = total[i] + n end
  os.remove(its.said)
end
if not lane then keep_times() end
if not lane then os.execute(("rm -rf '%s'"):format(claims)) end
os.remove(said)
if #arg == 0 and not lane and #failures > 0 then print("What failed:\n" .. table.concat(failures, "\n")) end
if lanes > 1 then print(("%.0f s of processor time"):format(used)) end
print(("%d passed, %d failed%s"):format(total[1], total[2], total[3] > 0 and (", %d skipped"):format(total[3]) or ""))
os.exit(total[2] == 0 and total[1] > 0 and 0 or 1, false)
