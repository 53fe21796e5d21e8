-- learn_tmaze.lua -- every memory learns to carry the cue down a corridor of 20 cells: experiments/demo.lua, three
-- seeds each.  A seed is solved if a hundred episodes in a row were, within its 2 million steps; chance is 0.5.
local t = require "tests.harness"
local learn_rig = require "tests.support.learn_rig"

for _, core in ipairs { "agalite", "galite", "gru" } do
  for seed = 1, 3 do
    t.test(("%s, seed %d"):format(core, seed), function()
      local run, said = learn_rig.train("demo", ("core=%s size=published seed=%d"):format(core, seed), core .. seed)
      local steps = learn_rig.outcome(run).step
      t.ok(learn_rig.outcome(run).results.score == 1, "not solved: " .. said:match "[^\r\n]*%s*$")
      local success = learn_rig.evaluate(run, 1000, "success")
      print(("  %-8s seed %d: solved after %4.0fk of %.0fk steps, success %.3f over 1000 fresh episodes"):format(core,
        seed, steps / 1000, learn_rig.settings(run).steps / 1000, success))
      io.stdout:flush()
      t.ok(success >= 0.9, "success " .. success)
    end)
  end
end

-- What the README's row of tmaze says: the quick form learns.
for seed = 1, 3 do
  t.test(("tmaze quick=1, seed %d"):format(seed), function()
    local run, said = learn_rig.train("tmaze", "quick=1 threads=1 seed=" .. seed, "quick" .. seed)
    t.ok(learn_rig.outcome(run).results.score >= 0.97, said:match "[^\r\n]*%s*$")
    t.ok(learn_rig.evaluate(run, 500, "success") >= 0.9)
  end)
end
learn_rig.clean()
