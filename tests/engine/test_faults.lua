-- test_faults.lua -- the world as an attacker: a disk that is full or broken, files that cannot be opened, no memory,
-- kill -9 in the midst of a write.  tests/faults/faults.c makes the n-th call of a kind fail in a process of the
-- program: it must end well or say in one line what is wrong, never crash, and what it had kept must be whole, so that
-- going on reaches the very files of a run that nothing happened to.
-- Of most kinds one to three n are tried, some 120 in all; MNEME_FAULTS=all tries every n, but for jansson's memory, of which a
-- hundred are tried, and MNEME_FAULTS='a picture' does so for that subject alone: thousands, so MNEME_TEST_LIMIT must be raised.
local t = require "tests.harness"
local files = require "mneme.base.files"
local run_contents = require "tests.support.run_contents"
local shell = require "tests.support.shell"

local asked = os.getenv "MNEME_FAULTS"                     -- nil, "all" or a subject's name
local here = shell.folder()
local preloaded = os.getenv "LD_PRELOAD" or ""             -- a sanitizer, which has an allocator of its own
local source = shell.root
local library = shell.folder() .. "/faults.so"
local KILLED = 137

-- ---- what is done to ----

local small = ("run '%sexperiments/tmaze.lua' corridor=4 core=gru core.d_model=16 hidden=16 num_envs=2 num_steps=32 steps=512 "
  .. "checkpoint_every=128 threads=1 where=0 "):format(source)

files.write(here .. "/few.lua", { [[
local mn = require "mneme"
return mn.study { title = "few", axes = { a = { 1, 2 } }, settings = { steps = 10 }, seeds = 2,
  run = function(cfg) return { score = cfg.a + cfg.seed } end, metrics = { score = { "score" } },
  figures = { { "bars", y = "score", x = "a", title = "scores" } },
  claims = { { text = "High.", test = { "at_least", metric = "score", a = { a = 2 }, value = 1 } } } }
]] })

files.write(here .. "/read.lua", { [[
local ffi, json = require "ffi", require "mneme.base.json"
ffi.cdef "void mn_fault_at(long n); long mn_fault_count(void);"
local text = '{"name": "' .. ("\195\160"):rep(100) .. '", "step": 512}'
local function read_and_write() if json.encode(json.decode(text)) ~= text then error "it was misread" end end
read_and_write()
ffi.C.mn_fault_at(0)
read_and_write()
local count = tonumber(ffi.C.mn_fault_count())
for n = 1, count do
  ffi.C.mn_fault_at(n)
  local ok, why = pcall(read_and_write)
  ffi.C.mn_fault_at(0)
  local said = type(why) == "table" and why.message or tostring(why)
  if ok or not said:find "no memory to [rw]" then error(("%d of %d: %s"):format(n, count, said)) end
end
print(count, "faults")
]] })

local whole

-- Going on, or beginning where nothing was begun yet; then nothing tells the run from one that was left in peace.
local function goes_on(what)
  local begun = files.is_file(here .. "/it/config.json")
  local said, status = shell.mneme(here, begun and "run resume=it" or small .. "run=it")
  t.eq(status, 0, what .. ", and going on: " .. said)
  local other = run_contents.differs(run_contents(here .. "/it"), whole)
  if other then error(("%s, and going on: %s"):format(what, other)) end
end

-- A file that is made whole or not at all, and is made when the fault is over.
local function makes(line, name)
  return function(what)
    local before = files.is_file(here .. "/" .. name) and files.read(here .. "/" .. name)
    local said, status = shell.mneme(here, line)
    t.eq(status, 0, what .. ", and again: " .. said)
    if before and before ~= files.read(here .. "/" .. name) then error(what .. ": half of " .. name .. " was there") end
  end
end

local subjects = {
  { name = "training", line = small .. "run=it", after = goes_on },
  { name = "going on", before = "cp -r half it", line = "run resume=it", after = goes_on },
  { name = "evaluating", line = "eval whole episodes=10 record=it", after = function(what)
    local said, status = shell.mneme(here, "eval whole episodes=10")
    t.eq(status, 0, what .. ": " .. said)
  end },
  { name = "a picture", line = "view whole scene=world out=it.png wait=0 size=320x240",
    after = makes("view whole scene=world out=it.png wait=0 size=320x240", "it.png") },
  { name = "a film", line = "view whole scene=world out=it.gif size=320x240", after = makes("view whole scene=world out=it.gif size=320x240", "it.gif") },
  { name = "a report", line = "report few out=it.html", after = makes("report few out=it.html", "it.html") },
  { name = "a sweep", line = "sweep few.lua run=it estimate=0 jobs=1", after = function(what)
    local said, status = shell.mneme(here, "sweep few.lua run=it estimate=0 jobs=1")
    t.eq(status, 0, what .. ": " .. said)
    said, status = shell.mneme(here, "report it")
    t.ok(status == 0, what .. ": " .. said)
  end },
}

-- ---- what happens ----

-- Kinds of faults, and how many of a subject's calls are tried where not all of them are: the first ones, and some from
-- there to the last; of what neither trains nor goes on half as many, each subject another part of its calls.  FreeType's first are
-- those of its modules, without which it paints something else and says nothing.
-- LuaJIT's own memory is not among them: it may crash where there is none while a compiled loop ends, in itself (lj_snap_restore).
local kinds = {
  { "write", some = 2 }, { "eio", some = 1 }, { "fill", some = 2 }, { "fsync", some = 2 }, { "rename", some = 2 },
  { "open", some = 3 }, { "read", some = 2 }, { "kill", some = 3 },
  { "memory", from = "libmneme.so", some = 3 }, { "memory", from = "jansson", some = 2, most = 100 },
  { "memory", from = "libpng", some = 1 }, { "memory", from = "libgif", some = 1 },
  { "memory", from = "libmneme_view", first = 25, some = 1 },
}
local modules = "a picture"                                -- whose first calls of FreeType are all tried

local function clear() shell.run(here, "rm -rf it it.*") end

-- The subject under the n-th fault of a kind; n = 0: none.  What it said, its status, and for n = 0 what was counted.
local function under(kind, n, subject)
  clear()
  if subject.before then shell.run(here, subject.before) end
  local said, status = shell.run(here, ("MNEME_FAULT='%s %d' MNEME_FAULT_FROM=%s MNEME_FAULT_COUNT='%s.count' LD_PRELOAD='%s %s' '%s' %s > out"):format(
    kind[1], n, kind.from or "-", library, preloaded, library, shell.program, subject.line))
  return said, status, n == 0 and files.read(library .. ".count")
end

-- One line of complaint, at the end, if it did not end well; of a sweep that goes on with others, one for each run that failed.
local function complains(what, said, status)
  if status == 0 then return end
  t.ok(status <= 3, ("%s: status %d: %s"):format(what, status, said))
  t.ok(not said:find "stack traceback", what .. ": " .. said)
  t.ok(said:find "mneme: [^\n]+\n$" or said:find "  failed  %d+:%d%d: [^\n]+\n" or said:find "libgomp: Out of memory", what .. ": " .. said)
end

-- Which calls of that many: all, or the first ones and some from there to the last; of one alone `share` says which.
local function chosen(count, some, first, share)
  first = math.min(first, count)
  local left, list = count - first, {}
  if left <= some then some = left end
  for i = 1, first do list[i] = i end
  for i = 1, some do list[first + i] = first + 1 + math.floor((some == 1 and share or (i - 1) / (some - 1)) * (left - 1) + 0.5) end
  return list
end

local built = shell.has "cc" and os.execute(("cc -O1 -shared -fPIC -o '%s' '%stests/faults/faults.c' -ldl"):format(library, source)) == 0
if built then
  for _, line in ipairs { small .. "run=whole", "sweep few.lua run=few estimate=0 jobs=1" } do
    local said, status = shell.mneme(here, line)
    t.eq(status, 0, said)
  end
  whole = run_contents(here .. "/whole")
  under({ "kill" }, 150, { line = small .. "run=half" })
end

local tried = 0
for place, subject in ipairs(subjects) do
  local trains, share = place <= 2, place <= 2 and 1 or (place - 3) / (#subjects - 3)
  local meant = not asked or asked == "all" or asked == subject.name
  local counted                                            -- of all kinds but memory, by one run
  for _, kind in ipairs(meant and kinds or {}) do
    local called = kind.from and kind[1] .. " of " .. kind.from or kind[1]
    t.test(("%s: %s"):format(subject.name, called), function()
      if not built then t.skip "no C compiler" end
      if kind[1] == "memory" and preloaded ~= "" then t.skip "a sanitizer has its own allocator" end
      local said, status, count = nil, 0, counted
      if kind.from or not counted then said, status, count = under(kind.from and kind or { "all" }, 0, subject) end
      t.eq(status, 0, said)
      if not kind.from then counted = count end
      count = tonumber(count:match(kind.from and "%d+" or "%f[%l]" .. kind[1] .. " (%d+)"))
      local first = kind.first and (asked or subject.name == modules) and kind.first or 0
      for _, n in ipairs(chosen(count, asked and (kind.most or count) or trains and kind.some or math.ceil(kind.some / 2), first, share)) do
        local what = ("%s, %s %d of %d"):format(subject.name, called, n, count)
        said, status = under(kind, n, subject)
        if kind[1] == "kill" then t.eq(status, KILLED, what .. ": " .. said) else complains(what, said, status) end
        if n > first then subject.after(what) end
        tried = tried + 1
      end
    end)
  end
end

t.test("JSON is read and written, or there is no memory: no allocation that fails makes it another text, or an invalid one", function()
  if not built then t.skip "no C compiler" end
  if preloaded ~= "" then t.skip "a sanitizer has its own allocator" end
  local kind, subject = { "memory", from = "jansson" }, { line = "run read.lua" }
  local said, status, count = under(kind, 0, subject)
  t.eq(status, 0, said)
  t.ok(tonumber((files.read(here .. "/out"):match "(%d+)%s+faults")) > 10, said)          -- each of them, in one process
  for _, n in ipairs { 1, 5 } do                                       -- and as a user sees it
    said, status = under(kind, n, subject)
    t.ok(status == 1 and said:find "^mneme: no memory to [rw]", ("%d of %d: status %d: %s"):format(n, count, status, said))
  end
end)

t.test("a file system without locks is a warning", function()
  if not built then t.skip "no C compiler" end
  local said, status = under({ "lock" }, 1, { line = small .. "run=it" })
  t.eq(status, 0, said)
  t.ok(said:find "warning: it/lock: this file system has no locks", said)
  goes_on "without locks"
end)

t.test("a checkpoint whose draft goes before it has its name is written again", function()
  if not built then t.skip "no C compiler" end
  local said, status = under({ "gone" }, 1, { line = small .. "run=it" })
  t.eq(status, 0, said)
  goes_on "the draft went"
end)

t.test("a file system that cannot sync is a warning, once", function()
  if not built then t.skip "no C compiler" end
  local said, status = under({ "unsynced" }, 1, { line = small .. "run=it" })
  t.eq(status, 0, said)
  t.eq(select(2, said:gsub("warning: it/[^:\n]+: this file system cannot sync files", "")), 1, said)
  goes_on "without syncs"
end)

files.write(here .. "/stuck.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 4 }, steps = 1e5, num_envs = 2, num_steps = 32, hidden = 4, threads = 1 }
local steps = 0
local env = mn.env { name = "stuck", observation = { 1 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed,
  reset = function(self) self.time = 0; return { 0 } end,
  step = function(self)
    self.time, steps = self.time + 1, steps + 1
    if steps > 2000 then
      assert(io.open("stuck", "w")):close()
      while true do end
    end
    return { 0 }, 0, self.time > 5
  end }
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]] })

-- "hurry" makes the minute that a first signal waits a second.
local function stuck(preload, after)
  if not built then t.skip "no C compiler" end
  clear()
  shell.run(here, "rm -f stuck")
  return shell.run(here, ("%s '%s' run stuck.lua run=it & p=$!; while [ ! -e stuck ]; do sleep 0.05; done; kill -TERM $p; %s wait $p"):format(
    preload, shell.program, after))
end

t.test("a loop of a script that never ends: the second signal ends it", function()
  local said, status = stuck("", "while kill -TERM $p 2>/dev/null; do sleep 0.1; done;")
  t.eq(status, 143, said)
end)

t.test("a loop of a script that never ends: one signal ends it after a while", function()
  local said, status = stuck(("MNEME_FAULT='hurry 0' LD_PRELOAD='%s %s'"):format(preloaded, library), "")
  t.eq(status, 143, said)
  t.ok(said:find "mneme: finishing first; another signal %(Ctrl%-C%) stops at once, without saving\nmneme: it did not finish", said)
end)

t.test("what is printed goes nowhere: the run does not mind", function()
  clear()
  local said, status = shell.run(here, ("'%s' %s run=it > /dev/full"):format(shell.program, small))
  t.ok(status == 0 or said:find "mneme: ", said)
  goes_on "a full standard output"
end)

if asked then print(("  %d faults tried"):format(tried)) end
shell.run(here, ("rm -r '%s' '%s'"):format(here, library:match "^(.*)/"))
