-- learn_recall.lua -- multi-query associative recall (experiments/recall.lua, quick=1 pairs=4): a memory that erases what it writes
-- over finds the values of its keys; plain linear attention of as many parameters learns no more than which values
-- there were (one of four is right).
local t = require "tests.harness"
local learn_rig = require "tests.support.learn_rig"

for _, case in ipairs { { "gated_deltanet", 0.95, 1 }, { "linear_transformer", 0, 0.5 } } do
  for seed = 1, 2 do
    t.test(("%s, seed %d"):format(case[1], seed), function()
      local run, said = learn_rig.train("recall", ("quick=1 pairs=4 steps=1500000 core=%s seed=%d"):format(case[1], seed), case[1] .. seed)
      local steps = tonumber(said:match ": (%d+) steps, on the validation")
      t.ok(steps, said:match "[^\r\n]*%s*$")
      local accuracy = tonumber(learn_rig.mneme("eval " .. run):match "accuracy ([%d.]+)")
      print(("  %-18s seed %d: accuracy %.3f after %4.0fk tokens"):format(case[1], seed, accuracy, steps / 1000))
      io.stdout:flush()
      t.ok(accuracy >= case[2] and accuracy <= case[3], "accuracy " .. accuracy)
    end)
  end
end
learn_rig.clean()
