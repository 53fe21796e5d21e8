-- learn_memory_maze.lua -- a maze of 9x9 seen through a window, each new target shown for five steps: an agent with a
-- memory finds far more of what is asked for than random play (0.37 an episode), and clearly more than one without.
-- A million steps by the quick settings of experiments/memory_maze.lua: two to three minutes on a core of its own for
-- each of the two.  Reached when this was written: 9.8 with, 7.5 without; 10.4 and 9.1 where the target is always shown.
local t = require "tests.harness"
local learn_rig = require "tests.support.learn_rig"

local RANDOM = 0.37
local cores = { { "gru", "core=gru core.d_model=128" }, { "feedforward", "core=feedforward core.d_model=128 core.n_layers=2 core.d_ffn=256" } }
local reached = {}
for _, core in ipairs(cores) do
  t.test(core[1] .. " learns", function()
    local run, said = learn_rig.train("memory_maze", "quick=1 steps=1e6 cue_frames=5 " .. core[2], core[1])
    reached[core[1]] = t.ok(learn_rig.evaluate(run, 500, "return"), said)
    print(("  %-12s return %.2f over 500 fresh episodes; random play %.2f"):format(core[1], reached[core[1]], RANDOM))
    t.ok(reached[core[1]] > 5 * RANDOM, "hardly above random play")
  end)
end

t.test("memory pays", function()
  t.ok(reached.gru > 1.15 * reached.feedforward, ("with memory %.2f, without %.2f"):format(reached.gru, reached.feedforward))
end)
learn_rig.clean()
