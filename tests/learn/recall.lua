-- recall.lua -- multi-query associative recall (experiments/recall.lua, quick=1): a memory that erases what it writes
-- over finds the values of its keys; plain linear attention of as many parameters learns no more than which values
-- there were (one of four is right).
local t = require "tests.harness"
local engine = require "mneme.engine"
local files = require "mneme.files"

local dir = os.tmpname()
os.remove(dir)
files.make_folder(dir)
local program, script = engine.build .. "/mneme", require("mneme.find").root .. "experiments/recall.lua"

local function run(line)
  local pipe = io.popen(("'%s' %s 2>&1"):format(program, line))
  local said = pipe:read "*a"
  pipe:close()
  return said
end

for _, case in ipairs { { "gated_deltanet", 0.95, 1 }, { "linear_transformer", 0, 0.5 } } do
  for seed = 1, 2 do
    t.test(("%s, seed %d"):format(case[1], seed), function()
      local folder = ("%s/%s-%d"):format(dir, case[1], seed)
      local said = run(("run '%s' quick=1 steps=1500000 core=%s seed=%d run=%s"):format(script, case[1], seed, folder))
      local steps = tonumber(said:match ": (%d+) steps, on the validation")
      t.ok(steps, said:match "[^\r\n]*%s*$")
      local accuracy = tonumber(run("eval " .. folder):match "accuracy ([%d.]+)")
      print(("  %-18s seed %d: accuracy %.3f after %4.0fk tokens"):format(case[1], seed, accuracy, steps / 1000))
      io.stdout:flush()
      t.ok(accuracy >= case[2] and accuracy <= case[3], "accuracy " .. accuracy)
    end)
  end
end
os.execute("rm -rf " .. dir)
