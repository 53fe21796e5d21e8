-- test_foreign.lua -- a run or study folder that a stranger wrote: its names are data to the terminal, to pages and to the shell, its links are
-- not written through, and what is no regular file is refused before it is read.  tests/endurance/fuzz_folders.lua goes on at random.
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local foreign = require "tests.support.foreign"
local json = require "mneme.base.json"
local lfs = require "lfs"
local shell = require "tests.support.shell"
local t = require "tests.harness"
local terminal = require "mneme.base.terminal"

local dir = shell.folder()
foreign.prepare(dir)

-- Every file of a run, by its path in it.
local function inside(path, prefix, list)
  list, prefix = list or {}, prefix or ""
  for _, name in ipairs(files.list(path)) do
    if lfs.symlinkattributes(path .. "/" .. name, "mode") == "directory" then inside(path .. "/" .. name, prefix .. name .. "/", list)
    else list[#list + 1] = prefix .. name end
  end
  return list
end

-- ---- files ----

t.test("no file of a run is written through a link, whichever it is; a linked folder works", function()
  foreign.copy(dir, "r")
  local names = inside(dir .. "/x")
  for _, more in ipairs { "live", "live.tmp", "view.log", "log.txt", "gradients.jsonl", "outcome.json.tmp", "report.html" } do names[#names + 1] = more end
  t.ok(#names >= 14, table.concat(names, " "))
  local text = ("a line of the victim\n"):rep(2000)
  for _, name in ipairs(names) do
    foreign.copy(dir, "r")
    files.write(dir .. "/victim", { text })
    shell.run(dir, ("ln -sf '%s/victim' 'x/%s'"):format(dir, name))
    shell.mneme(dir, "run resume=x steps=4160 view=1 debug=gradients")
    if not name:find "/" then shell.mneme(dir, "report x") end
    t.eq(files.read(dir .. "/victim"), text, name)
  end
  foreign.copy(dir, "r")
  local said, status = shell.run(dir, ("mkdir -p scratch && mv x/checkpoints scratch/c && ln -s ../scratch/c x/checkpoints && '%s' run resume=x steps=4160")
    :format(shell.program))
  t.eq(status, 0, said)
  t.ok(files.is_file(dir .. "/scratch/c/step-4160.safetensors"))
end)

t.test("each way of writing refuses a link and what is no regular file, and says so", function()
  files.write(dir .. "/target", { "0123456789" })
  shell.run(dir, "ln -sf target link; rm -f pipe; mkfifo pipe; ln -sf nowhere dangling")
  for _, name in ipairs { "link", "dangling" } do
    t.raises(files.append, name .. ": cannot be written: it is a link", dir .. "/" .. name, "x")
    t.raises(files.cut, name .. ": cannot be cut: it is a link", dir .. "/" .. name, 1)
    t.raises(files.lock, name .. ": cannot be locked: it is a link", dir .. "/" .. name)
  end
  for _, path in ipairs { dir .. "/pipe", "/dev/null" } do
    t.raises(files.append, "cannot be written: it is not a regular file", path, "x")
    t.raises(files.lock, "cannot be locked: it is not a regular file", path)
  end
  shell.run(dir, "ln -sf pipe to_pipe")
  for _, put in ipairs { files.write, files.draft } do             -- they replace no FIFO, nor a device, which is not tried: /dev/null is everybody's
    for _, name in ipairs { "pipe", "to_pipe" } do t.raises(put, name .. ": cannot be written: it is not a regular file", dir .. "/" .. name, { "x" }) end
  end
  t.eq(lfs.attributes(dir .. "/pipe", "mode"), "named pipe")
  t.eq(engine.C.mn_process_fork(engine.ctx, dir .. "/link"), -1)
  files.write(dir .. "/link", { "new" })                   -- in place of the link
  t.eq(files.read(dir .. "/target"), "0123456789")
  t.eq(lfs.symlinkattributes(dir .. "/link", "mode"), "file")
  t.ok(not files.is_file(dir .. "/nowhere"))
end)

t.test("a draft's name cannot be foreseen, and leaves room for any name", function()
  local one, other = files.draft(dir .. "/f"), files.draft(dir .. "/f")
  t.ok(one ~= other and one:find "/f%.%x+%.tmp$" and files.is_file(one) and files.is_file(other), one)
  files.remove_drafts(dir)
  t.ok(not files.is_file(one) and not files.is_file(other))
  for _, n in ipairs { 230, 246, 255 } do
    local path = dir .. "/" .. ("n"):rep(n)
    files.write(path, { "x" })
    t.eq(files.read(path), "x")
    files.remove(path)
  end
  local wide = dir .. "/" .. ("ü"):rep(127)
  files.write(wide, { "x" })
  files.remove(wide)
  t.raises(files.write, "cannot be written: File name too long", dir .. "/" .. ("n"):rep(256), { "x" })
  for _, kind in ipairs { "svg", "csv", "html", "md" } do
    local name = ("m"):rep(246 - #kind - 1) .. "." .. kind
    local said, status = shell.mneme(dir, ("%s r out=%s"):format((kind == "html" or kind == "md") and "report" or "where episodes=2", name))
    t.ok(status == 0 and files.is_file(dir .. "/" .. name) or status ~= 0 and said:find "too long", said)
  end
end)

t.test("a name that begins with - is no option of a program that draws", function()
  if not shell.has "rsvg-convert" then t.skip "rsvg-convert is not installed" end
  for _, name in ipairs { "-x.pdf", "--help.pdf" } do
    shell.fine(dir, "where r episodes=2 out=" .. name)
    t.ok(files.is_file(dir .. "/" .. name), name)
  end
  if shell.has "ffmpeg" then
    local said, status = shell.mneme(dir, "view r episodes=1 out=-y.mp4")
    t.ok(status == 0 and files.is_file(dir .. "/-y.mp4"), said)
  end
  for _, name in ipairs(files.list(dir)) do t.ok(not name:find "%.tmp$" and not name:find "%.new", name) end
end)

t.test("a FIFO, a device, a socket or a file of /proc in place of any file is refused, without waiting", function()
  local puts = { "mkfifo '%s'", "ln -s /dev/full '%s'", "ln -s /proc/kmsg '%s'", "ln -s /sys/kernel/notes '%s'" }
  foreign.copy(dir, "r")
  for i, name in ipairs(inside(dir .. "/x")) do
    foreign.copy(dir, "r")
    shell.run(dir, ("rm 'x/%s'; "):format(name) .. puts[i % #puts + 1]:format("x/" .. name))
    for k, words in ipairs { "list runs .", "check x", "diff x r", "compare x", "run resume=x steps=4160" } do
      local said, status = shell.run(dir, ("timeout -k 1 60 '%s' %s < /dev/null"):format(shell.program, words))
      if k > 2 and (i + k) % 3 > 0 then break end
      t.ok(status and status < 124, ("%s: %s: %s %s"):format(name, words, status, said))
    end
  end
  for _, at in ipairs { "pipe", "/dev/zero", "/proc/kmsg", "/proc/self/mem" } do
    local path = at:sub(1, 1) == "/" and at or dir .. "/" .. at
    t.ok(not files.is_file(path), path)
    t.raises(files.read, "cannot be read: it is not a regular file", path)
  end
  foreign.copy(dir, "r")
  local info = foreign.read(dir, "config.json")
  info.data = json.array { { path = "/proc/kmsg", checksum = "00000000", bytes = 1 } }
  info.history[1].data = info.data
  foreign.write(dir, "config.json", info)
  for _, words in ipairs { "check x", "compare x", "eval x episodes=2", "report x", "view x out=v.png wait=0" } do
    local _, status = shell.run(dir, ("timeout -k 1 60 '%s' %s < /dev/null"):format(shell.program, words))
    t.ok(status and status < 124, words)
  end
end)

t.test("a lock is seen whoever holds it; a folder that may not be read is passed over", function()
  foreign.copy(dir, "r")
  files.write(dir .. "/hold.py", { [[
import fcntl, os, time
f = open("x/lock", "r+"); fcntl.lockf(f, fcntl.LOCK_EX); print(os.getpid(), flush=True); time.sleep(100)]] })
  local pipe = io.popen(("cd '%s' && exec python3 hold.py"):format(dir))
  local holder = t.ok(pipe:read "*n", "it holds the lock")
  t.ok(engine.C.mn_file_locked(dir .. "/x/lock"))
  local said = shell.run(dir, ("unshare -pf --mount-proc '%s' list runs . 2> /dev/null || '%s' list runs ."):format(shell.program, shell.program))
  t.ok(said:find "x +running", said)
  local status
  said, status = shell.mneme(dir, "run resume=x steps=4160")
  t.ok(status ~= 0 and said:find "at work here" and not said:find "process 0", said)
  os.execute(("kill %d"):format(holder))
  pipe:close()
  t.ok(not engine.C.mn_file_locked(dir .. "/x/lock"))
end)

t.test("a copy made while a run trains can be resumed", function()
  shell.run(dir, ("'%s' run tmaze %s corridor=4 steps=1e9 checkpoint_every=256 run=hot > /dev/null 2>&1 & echo $! > hot.pid"):format(
    shell.program, foreign.small))
  shell.wait("a checkpoint", function() return files.list(dir .. "/hot/checkpoints")[1] end)
  shell.run(dir, "cp -r hot copied 2> /dev/null; kill -9 $(cat hot.pid)")
  shell.fine(dir, ("run resume=copied steps=%d"):format(1e5))
end)

-- ---- what is printed ----

t.test("control characters and bytes that are no UTF-8 are shown by their numbers, letters stay", function()
  for text, want in pairs { ["a\27[2Jb"] = "a\\27[2Jb", ["\7\8\r\127"] = "\\7\\8\\13\\127", ["\194\155x"] = "\\194\\155x", ["\255\254"] = "\\255\\254",
    ["ü → 日本 😀 –"] = "ü → 日本 😀 –", ["\237\160\128"] = "\\237\\160\\128", ["\192\128"] = "\\192\\128", ["\226\128\174x"] = "\\226\\128\\174x",
    ["\195"] = "\\195", ["a\tb\nc"] = "a\tb\nc", ["\0"] = "\\0" } do t.eq(terminal.plain(text), want) end
  t.eq(terminal.plain("a\nb", true), "a\\10b")
  t.eq(terminal.fold "x\27y", "x\\27y")
end)

local PAYLOAD, LINE = "\27[2J\27]0;zq\7\194\155q\r\nZZ smuggled", "ZZ smuggled"
local stores = { { "r", "config.json", foreign.of_run }, { "r", "outcome.json", foreign.of_run }, { "r", "resources.json", foreign.of_run },
  { "s", "study.json", foreign.of_study }, { "s", "declaration.json", foreign.of_study }, { "s", "runs/core=gru,seed=1/config.json", foreign.of_study },
  { "s", "runs/core=gru,seed=1/result.json", foreign.of_study } }

-- Every fourth place has one of the commands, in turn; tests/endurance/fuzz_folders.lua has the others.
local EACH = 4
local function each_place(list_of, change, line)
  local n, bad = 0, {}
  for _, store in ipairs(stores) do
    foreign.copy(dir, store[1])
    local root, text = foreign.read(dir, store[2]), files.read(dir .. "/x/" .. store[2])
    for _, path in ipairs(list_of(root)) do
      n = n + 1
      if n % EACH == 0 then
      local other = json.decode(text)
      change(other, path, n)
      foreign.write(dir, store[2], other)
      local words = store[3][n / EACH % #store[3] + 1]
      local said, status = foreign.run(dir, words)
      local problem = foreign.problem(said or "", status, line)
      if problem then bad[#bad + 1] = ("%s %s: %s: %s: %s"):format(store[2], table.concat(path, "."), words, problem, said:sub(-300)) end
      if words:find "resume" then foreign.copy(dir, store[1]) end
      end
    end
    foreign.write(dir, store[2], root)
  end
  t.ok(n > 200, n .. " places")
  t.ok(#bad == 0, table.concat(bad, "\n  "))
end

t.test("no text of a folder reaches the terminal raw", function()
  each_place(foreign.leaves, function(root, path, n)
    if n / EACH % 3 == 0 and type(path[#path]) == "string" then foreign.set(root, path, nil, PAYLOAD) else foreign.set(root, path, PAYLOAD) end
  end, LINE)
end)

t.test("a value of another type is an error in words, or none", function()
  local values = { "text", 7, true, {}, json.array { 1 }, { x = {} }, json.null }
  each_place(foreign.nodes, function(root, path, n) foreign.set(root, path, values[n / EACH % #values + 1]) end)
end)

t.test("names of metrics and files are data, too", function()
  foreign.copy(dir, "r")
  files.write(dir .. "/x/metrics.jsonl", { json.encode { step = 4096, [PAYLOAD] = 1, ["charts/score"] = 0.5 } .. "\n" })
  files.write(dir .. "/x/" .. PAYLOAD, { "x" })
  for _, words in ipairs(foreign.of_run) do
    local said, status = foreign.run(dir, words)
    t.eq(foreign.problem(said, status, LINE), nil, words .. ": " .. said)
  end
end)

os.execute(("rm -rf '%s'"):format(dir))
