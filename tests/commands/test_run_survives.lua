-- test_run_survives.lua -- what an accident, a limit or another program does to a run: nothing that was logged is erased, nothing
-- crashes, and a message says what happened.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local dir = shell.folder()
local SMALL = "core=gru core.d_model=16 hidden=16 corridor=6 num_envs=4 num_steps=32 threads=1"
local function sh(line) return shell.run(dir, line) end
local function mneme(words) return shell.mneme(dir, words) end
local function train(run, words) return mneme(("run tmaze quick=1 %s run=%s %s"):format(SMALL, run, words or "")) end
local function read(name) return (files.read(dir .. "/" .. name)) end
local function lines(name) return select(2, read(name):gsub("\n", "")) end
local function steps(name)
  local list = {}
  for step in read(name):gmatch '{"step": (%d+)' do list[#list + 1] = tonumber(step) end
  return list
end

t.test("without a checkpoint a run begins again, and its log is kept aside", function()
  t.eq(select(2, train("cut", "steps=60000")), 0)
  local log = read "cut/metrics.jsonl"
  sh "rm cut/checkpoints/*"
  local said = shell.fine(dir, "run resume=cut steps=90000")
  t.ok(said:find "warning: cut/metrics.jsonl holds lines that no checkpoint goes with.-kept in cut/earlier%-log.jsonl", said)
  t.eq(read "cut/earlier-log.jsonl", log)
  t.ok(files.is_file(dir .. "/cut/earlier-log.events") and lines "cut/metrics.jsonl" > lines "cut/earlier-log.jsonl")
end)

t.test("a log that lost its end is reported, and goes on in order", function()
  t.eq(select(2, train("power", "steps=60000")), 0)
  files.write(dir .. "/power/metrics.jsonl", { read("power/metrics.jsonl"):match "^(.-\n.-\n.-\n.......)" })
  sh "rm power/manifest.json"
  local said = shell.fine(dir, "run resume=power steps=90000")
  t.ok(said:find "power/metrics.jsonl has 3 of the %d+ lines that the checkpoint counts", said)
  t.eq(select(2, mneme "run resume=power steps=120000"), 0)
  local list = steps "power/metrics.jsonl"
  for i = 2, #list do t.ok(list[i] > list[i - 1], "steps go back") end
  t.eq(lines "power/metrics.jsonl", #list)
end)

t.test("a log that is gone is reported, and lines are counted from there", function()
  t.eq(select(2, train("gone", "steps=60000")), 0)
  sh "rm gone/metrics.jsonl gone/manifest.json"
  local said = mneme "run resume=gone steps=90000"
  t.ok(said:find "gone/metrics.jsonl has 0 of the %d+ lines that the checkpoint counts", said)
  said = mneme "check gone"
  t.ok(lines "gone/metrics.jsonl" > 0 and said:find "lines of the log before step %d+ are missing", said)
end)

t.test("a line of an earlier step that the checkpoint does not count is kept aside", function()
  t.eq(select(2, train("odd", "steps=60000")), 0)
  local log = read "odd/metrics.jsonl" .. '{"step": 7, "mine": 1}\n'
  files.write(dir .. "/odd/metrics.jsonl", { log })
  sh "rm odd/manifest.json"
  local said = mneme "run resume=odd steps=70000"
  t.ok(said:find "odd/metrics.jsonl holds lines that no later step explains", said)
  t.eq(read "odd/earlier-log.jsonl", log)
end)

t.test("a checkpoint that counts no lines is damaged, not an empty log", function()
  for _, value in ipairs { "1e15", "-5", "\"x\"", "0.5" } do
    sh "rm -rf lines"
    t.eq(select(2, train("lines", "steps=30000 checkpoint_every=1e9")), 0)
    local at = files.list(dir .. "/lines/checkpoints")[1]
    local safetensors, json = require "mneme.tensor.safetensors", require "mneme.base.json"
    local file, list = safetensors.load(dir .. "/lines/checkpoints/" .. at), {}
    for name, tensor in pairs(file.tensors) do list[#list + 1] = { name, tensor } end
    local metadata = file.metadata
    metadata.state = metadata.state:gsub('"lines": %d+', '"lines": ' .. value)
    t.ok(json.decode(metadata.state, "state"))
    safetensors.write(dir .. "/lines/checkpoints/" .. at, list, metadata)
    local before = read "lines/metrics.jsonl"
    local said = mneme "run resume=lines steps=60000"
    if value == "1e15" then t.ok(said:find "of the 1000000000000000 lines", said)
    else t.ok(said:find "damaged: lines is", said) end
    t.ok(read("lines/metrics.jsonl"):find(before, 1, true) or read("lines/earlier-log.jsonl") == before)
  end
end)

t.test("a checkpoint with a right checksum and other counters or shapes is damaged, in words", function()
  t.eq(select(2, train("odd-state", "steps=20000 checkpoint_every=1e9")), 0)
  local name = files.list(dir .. "/odd-state/checkpoints")[1]
  local safetensors = require "mneme.tensor.safetensors"
  local path = dir .. "/odd-state/checkpoints/" .. name
  local whole = read("odd-state/checkpoints/" .. name)
  for _, case in ipairs { { '"logged": %d+', '"logged": "x"', "logged is x" }, { '"logged": %d+', '"logged": -5', "logged is %-5" },
    { '"episodes": {', '"episodes": 1, "x": {', "it has no list of its episodes" }, { '"total": %d+', '"total": 1e300', "number of episodes is" },
    { '"sum_score": [%d.]+', '"sum_score": []', "sum_score is not a number" }, { '"scores": %[', '"scores": ["x", ', "scores" },
    { '"step": %d+', '"step": 0.5', "step is 0.5" }, { '"score": [%d.]+', '"score": "x"', "its score is not a number" } } do
    local file, list = safetensors.load(path), {}
    for tensor_name, tensor in pairs(file.tensors) do list[#list + 1] = { tensor_name, tensor } end
    local changed
    file.metadata.state, changed = file.metadata.state:gsub(case[1], case[2], 1)
    t.eq(changed, 1, case[1])
    safetensors.write(path, list, file.metadata)
    local said = mneme "run resume=odd-state steps=30000"
    t.ok(said:find("damaged: .-" .. case[3]) and not said:find "lua/mneme", case[2] .. ": " .. said)
    sh "rm -f odd-state/checkpoints/* odd-state/earlier-log* odd-state/manifest.json"
    files.write(path, { whole })
  end
  local file, list = safetensors.load(path), {}
  for tensor_name, tensor in pairs(file.tensors) do
    local mn = require "mneme"
    list[#list + 1] = { tensor_name, tensor_name == "worlds" and mn.zeros { 1, 8 } or tensor }
  end
  safetensors.write(path, list, file.metadata)
  local said, status = mneme "run resume=odd-state steps=30000"
  t.ok(status == 1 and said:find "worlds is f32 %[1,8%], expected u8 %[4, bytes%]", said)
end)

-- A training in the background, at work when `line` is run.
local function during(run, words, line)
  local said, status = sh(("'%s' run tmaze quick=1 %s run=%s %s > %s.txt 2>&1 & pid=$!; for i in $(seq 600); do "
    .. "[ -n \"$(ls %s/checkpoints 2>/dev/null)\" ] && break; sleep 0.05; done; %s; wait $pid; echo status $?")
    :format(shell.program, SMALL, run, words, run, run, line))
  return read(run .. ".txt"), tonumber(said:match "status (%d+)"), status
end

t.test("a checkpoint that somebody removed does not end the training", function()
  local said, status = during("purged", "steps=4e5 checkpoint_every=4096",
    "while kill -0 $pid 2>/dev/null; do rm -f purged/checkpoints/*.safetensors; sleep 0.02; done")
  t.eq(status, 0, said)
  t.ok(said:find "steps, score", said)
end)

t.test("a terminal that closes leaves a checkpoint; nohup's stays ignored", function()
  local said, status = during("hup", "steps=1e9 checkpoint_every=4096", "kill -HUP $pid")
  t.eq(status, 143, said)
  t.ok(said:find "stopped at step %d+; to go on", said)
  said = sh(("trap '' HUP; '%s' run tmaze quick=1 %s run=deaf steps=1e6 checkpoint_every=4096 > deaf.txt 2>&1 & pid=$!; "
    .. "until ls deaf/checkpoints/* >/dev/null 2>&1 || ! kill -0 $pid; do sleep 0.02; done; "
    .. "kill -HUP $pid; wait $pid; echo status $?"):format(shell.program, SMALL))
  t.ok(said:find "status 0", said)
end)

t.test("a live file that is cut short does not end the training", function()
  local said, status = during("live", "steps=2e5 checkpoint_every=4096 view=1",
    "while kill -0 $pid 2>/dev/null; do truncate -s 0 live/live; sleep 0.01; done")
  t.eq(status, 0, said)
end)

t.test("limits: address space, file size, closed streams", function()
  local said, status = sh(("ulimit -v 300000; '%s' run tmaze quick=1 %s run=space steps=2000"):format(shell.program, SMALL))
  t.eq(status, 0, said)
  said, status = sh(("ulimit -v 200000; timeout 60 '%s' run tmaze quick=1 %s run=little steps=2000"):format(shell.program, SMALL))
  t.ok(status == 1 and said:find "the address space is limited to 195 MiB %(ulimit %-v%), expected 240 or more", said)
  said, status = sh(("ulimit -v 2000000; '%s' run tmaze quick=1 core=gtrxl core.memory=1000000 threads=1 run=far steps=200"):format(shell.program))
  t.ok(status == 1 and said:find "warning: core gtrxl: the state of 8 environments takes 4.1 GiB" and said:find "out of memory; the address space", said)
  said, status = sh(("ulimit -f 8; '%s' run tmaze quick=1 %s run=size steps=20000"):format(shell.program, SMALL))
  t.eq(status, 1)
  t.ok(said:find "cannot be written: File too large", said)
  t.eq(#files.list(dir .. "/size/checkpoints"), 0)
  said, status = sh(("'%s' run tmaze quick=1 %s run=closed steps=20000 <&- >&- 2>&-"):format(shell.program, SMALL))
  t.eq(status, 0, said)
  t.eq(read "closed/lock", "")
end)

t.test("one is counted in the singular; a picture says that its map is not measured yet", function()
  t.eq(select(2, train("one", "steps=2000")), 0)
  for _, words in ipairs { "eval one episodes=1", "intervene one erase=all at=1 episodes=1", "credit one at=1", "play tmaze keys=right" } do
    local said, status = mneme(words)
    t.ok(status == 0 and not said:find "%f[%w]1 %l*%s?episodes" and not said:find "%f[%w]1 steps", said)
  end
  for wait, unfinished in pairs { [0] = true, [600] = false } do
    local said, status = mneme("view one scene=where out=one.png wait=" .. wait)
    t.eq(status, 0, said)
    t.eq(said:find "its panels are not complete" ~= nil, unfinished, said)
  end
end)

t.test("no folder for temporary files is one sentence; they lie in TMPDIR, and none is left", function()
  t.eq(select(2, train("seen", "steps=2000")), 0)
  for _, words in ipairs { "run tmaze quick=1 " .. SMALL .. " steps=2000 seeds=2", "view seen out=page.html wait=1", "check core=gru" } do
    local said, status = sh(("TMPDIR=nowhere '%s' %s 2>&1"):format(shell.program, words))
    t.eq(status, 1, said)
    t.ok(said:find "nowhere/mneme: cannot be written: No such file or directory", said)
    said, status = sh(("mkdir -p temporary; TMPDIR='%s/temporary' '%s' %s 2>&1; s=$?; ls temporary; (exit $s)"):format(dir, shell.program, words))
    t.ok(status == 0 and not said:find "%.tmp", said)
  end
end)

t.test("two writers of one path: the file is always one of theirs, whole", function()
  files.write(dir .. "/writer.lua", { ([[package.path = "%s/lua/?.lua;%s/lua/?/init.lua;" .. package.path
    local files = require "mneme.base.files"
    for i = 1, 200 do files.write("shared", { string.rep(arg[1], 2e5) }) end]]):format(shell.root, shell.root) })
  files.write(dir .. "/writers.txt", { "" })
  os.execute(("cd '%s' && { { MNEME_BUILD='%s' luajit writer.lua a & MNEME_BUILD='%s' luajit writer.lua b & wait; echo ended; } > writers.txt 2>&1 & }")
    :format(dir, shell.build, shell.build))
  local torn, count = 0, 0
  shell.wait("the writers", function()
    if files.is_file(dir .. "/shared") then
      local text = read "shared"
      count = count + 1
      if #text ~= 2e5 or text:find(text:sub(1, 1) == "a" and "b" or "a", 1, true) then torn = torn + 1 end
    end
    return read("writers.txt"):find "ended"
  end)
  t.eq(read "writers.txt", "ended\n")
  t.ok(count > 0)
  t.eq(torn, 0)
  for _, name in ipairs(files.list(dir)) do t.ok(not name:find "%.tmp$", name) end
end)

t.test("a draft that a killed process left is removed when its run is resumed", function()
  t.eq(select(2, train("draft", "steps=20000")), 0)
  files.write(dir .. "/draft/checkpoints/step-9.safetensors.4711.tmp", { "half" })
  t.eq(select(2, mneme "run resume=draft steps=30000"), 0)
  t.ok(not files.is_file(dir .. "/draft/checkpoints/step-9.safetensors.4711.tmp"))
end)

t.test("a run's name is no part of a shell's command", function()
  sh(("DISPLAY=:99 '%s' run tmaze quick=1 %s steps=2000 view=1 run=\"x';touch pwned;'\"; sleep 0.2"):format(shell.program, SMALL))
  t.ok(not files.is_file(dir .. "/pwned"))
end)

shell.run("/", "sleep 0.5; rm -rf '" .. dir .. "'")                    -- the last run's window may still be ending
