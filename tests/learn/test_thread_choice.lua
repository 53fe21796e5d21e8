-- test_thread_choice.lua -- threads=0 finds how many threads pay, goes on looking, and changes no bit.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local thread_choice = require "mneme.learn.thread_choice"

-- A training on a machine where n threads make speed(n) steps a second: which number is used after each update of 10 steps.
local function rig(list, speed)
  local steps, time, used = 0, 0, list[#list]
  local choice = thread_choice.new(list, function() return steps end, function() return time end, function(n) used = n end)
  return function(seconds)
    local stop = time + seconds
    while time < stop do
      time, steps = time + 10 / speed(used, time), steps + 10
      choice:after()
    end
    return used
  end
end

t.test("the fewest threads that are nearly as fast as any are chosen, and looked for again", function()
  t.eq(rig({ 1, 2 }, function(n) return n == 1 and 900 or 300 end)(5), 1)
  t.eq(rig({ 1, 2 }, function(n) return n == 1 and 900 or 1500 end)(5), 2)
  t.eq(rig({ 1, 2 }, function(n) return n == 1 and 900 or 920 end)(5), 1, "a gain of two in a hundred")
  t.eq(rig({ 1, 2, 4, 8, 12 }, function(n) return 100 * math.min(n, 5) end)(9), 8, "4 are too few, 12 are no faster")
  local busy = rig({ 1, 2 }, function(n, time) return n == 1 and 900 or time < 40 and 1600 or 200 end)
  t.eq(busy(5), 2)
  t.eq(busy(100), 1, "another program has come")
end)

t.test("slow updates are tried as well as fast ones, and a trial never leaves the numbers it may use", function()
  for _, rate in ipairs { 5, 1e6 } do
    local seen = {}
    local advance = rig({ 1, 2 }, function(n) seen[n] = true return rate * n end)
    t.eq(advance(rate == 5 and 200 or 1), 2)
    t.ok(seen[1] and seen[2])
    for n in pairs(seen) do t.ok(n == 1 or n == 2) end
  end
end)

t.test("the bits are those of one thread", function()
  local dir = shell.folder()
  local words = "run tmaze core=agalite core.n_layers=1 core.d_model=16 core.d_head=8 corridor=4 num_envs=8 num_steps=32 steps=60000"
  for _, threads in ipairs { 0, 1 } do
    local said, status = shell.run(dir, ("OMP_NUM_THREADS=2 '%s' %s threads=%d run=run-%d"):format(shell.program, words, threads, threads))
    t.eq(status, 0, said)
  end
  local name = files.list(dir .. "/run-1/checkpoints")[1]
  t.ok(files.read(("%s/run-0/checkpoints/%s"):format(dir, name)) == files.read(("%s/run-1/checkpoints/%s"):format(dir, name)))
  os.execute("rm -r '" .. dir .. "'")
end)

t.test("where chooses its threads, and the map's bits are those of one thread", function()
  local dir, maps = shell.folder(), {}
  local words = "core=gru core.d_model=8 hidden=8 corridor=4 num_envs=8 num_steps=32 steps=4096 threads=1 run=run"
  local said, status = shell.run(dir, ("'%s' run tmaze %s"):format(shell.program, words))
  t.eq(status, 0, said)
  for k, threads in ipairs { "", "threads=1", "threads=2" } do
    said, status = shell.run(dir, ("rm -rf run/where; OMP_NUM_THREADS=2 '%s' where run %s out=map.json"):format(shell.program, threads))
    t.eq(status, 0, said)
    maps[k] = files.read(dir .. "/map.json")
  end
  t.ok(#maps[1] > 100 and maps[1] == maps[2] and maps[1] == maps[3])
  said, status = shell.run(dir, ("rm -rf run/where; touch run/where; '%s' where run threads=1 out=map.json 2>&1"):format(shell.program))
  t.eq(status, 0, said)
  t.ok(said:find "not stored" and files.read(dir .. "/map.json") == maps[1], "what cannot be stored is measured, and said: " .. said)
  os.execute("rm -r '" .. dir .. "'")
end)
