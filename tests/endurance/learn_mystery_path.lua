-- learn_mystery_path.lua -- who remembers where it fell gets farther: experiments/mystery_path.lua with quick=1 on the grid,
-- easy, a GRU of 128 beside a network without memory and as many parameters; 6 million steps each, about five minutes
-- of one core in all.  The gain comes late: after 3 million steps both still return 0.8.  Random play returns 0.267,
-- the whole path about 1.8.
local t = require "tests.harness"
local learn_rig = require "tests.support.learn_rig"

local RANDOM = 0.267
local cores = { { "gru", "core=gru core.d_model=128" }, { "feedforward", "core=feedforward core.d_model=128 core.n_layers=2 core.d_ffn=128" } }
local reached = {}

for _, core in ipairs(cores) do
  t.test(core[1] .. " learns", function()
    local run, said = learn_rig.train("mystery_path", "quick=1 steps=6e6 " .. core[2], core[1])
    local ret = t.ok(learn_rig.evaluate(run, 2000, "return"), said)
    print(("  %-12s return %.3f, success %.3f over 2000 fresh episodes; random play returns %.3f"):format(core[1], ret,
      learn_rig.evaluate(run, 2000, "success"), RANDOM))
    io.stdout:flush()
    t.ok(ret > 2.5 * RANDOM, "hardly above random play")
    reached[core[1]] = ret
  end)
end

t.test("memory pays", function()
  t.ok(reached.gru > 1.05 * reached.feedforward, ("with memory %.2f, without %.2f"):format(reached.gru, reached.feedforward))
end)
learn_rig.clean()
