-- learn_overwrite.lua -- recall of keys that come again with other values (experiments/overwrite.lua, quick=1; one layer of
-- 64): memories that erase, by a gate or by the delta rule, answer everything; plain linear attention, which adds
-- all values of a key up, does not get there.  About a minute of one core.
local t = require "tests.harness"
local learn_rig = require "tests.support.learn_rig"

local SIZE = "core.n_layers=1 core.d_model=64 core.n_heads=4 core.d_head=16 core.d_ffn=64"

for _, case in ipairs { { "galite", 0.95, 1 }, { "delta", 0.95, 1 }, { "linear_transformer", 0, 0.75 } } do
  for seed = 1, 3 do
    t.test(("%s, seed %d"):format(case[1], seed), function()
      local run, said = learn_rig.train("overwrite", ("quick=1 core=%s %s seed=%d"):format(case[1], SIZE, seed), case[1] .. seed)
      local steps = learn_rig.outcome(run).step
      local score = t.ok(learn_rig.evaluate(run, 1000, "score"), said)
      print(("  %-18s seed %d: of 1000 fresh episodes %.3f of the answers after %4.0fk steps"):format(case[1], seed, score, steps / 1000))
      io.stdout:flush()
      t.ok(score >= case[2] and score <= case[3], "score " .. score)
    end)
  end
end
learn_rig.clean()
