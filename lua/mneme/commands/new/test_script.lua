-- test_script.lua -- does NAME.lua train, and twice the same?   mneme run test_script.lua
local STEPS = 4096
local program = '"$(readlink /proc/$PPID/exe)"'            -- the one that runs this test

-- A short training with the small settings: the last line of its log, without the speed.
local function train()
  local folder = os.tmpname()
  os.remove(folder)
  local words = (" run NAME.lua quick=1 threads=1 where=0 steps=%d run=%s >%s.log 2>&1"):format(STEPS, folder, folder)
  assert(os.execute(program .. words) == 0, "the training failed: see " .. folder .. ".log")
  local last
  for line in io.lines(folder .. "/metrics.jsonl") do last = line:gsub('"charts/SPS": [^,}]*', "") end
  os.execute(("rm -r %s %s.log"):format(folder, folder))
  return assert(last, "nothing was logged")
end

local first, second = train(), train()
local steps, loss = tonumber(first:match '"step": (%d+)'), tonumber(first:match '"losses/[%w_]+": ([%d.e+-]+)')
print(("%s steps, a loss of %s"):format(tostring(steps), tostring(loss)))
assert(steps and steps >= STEPS, "the training ended early")
assert(loss, "no loss was logged")
assert(first == second, "two trainings with one seed differ:\n" .. first .. "\n" .. second)
print "ok"
