-- learn_noisy_cartpole.lua -- PPO balances a pole: plain CartPole is solved (a hundred episodes of 500 steps in a row) within
-- a million steps; through noise and without velocities a memory is far ahead of the network without one.
-- experiments/noisy_cartpole.lua with quick=1, three seeds each; evaluated on 500 fresh episodes.
local t = require "tests.harness"
local learn_rig = require "tests.support.learn_rig"

-- Train: steps that it took, the last hundred episodes' score, and success over fresh ones.
local function train(name, seed, settings)
  local run, said = learn_rig.train("noisy_cartpole", ("quick=1 size=published seed=%d threads=1 %s"):format(seed, settings), name .. seed)
  local steps, score = learn_rig.outcome(run).step, learn_rig.outcome(run).results.score
  local success = learn_rig.evaluate(run, 500, "success")
  t.ok(steps and success, said:match "[^\r\n]*%s*$")
  print(("  %-12s seed %d: %4.0fk steps, score %.3f, of 500 fresh episodes %.3f"):format(name, seed, steps / 1000, score, success))
  io.stdout:flush()
  return score, success
end

for seed = 1, 3 do
  t.test("plain CartPole is solved, seed " .. seed, function()
    local score, success = train("plain", seed, "noise=0 velocities=1 core=feedforward previous= steps=1000000")
    t.eq(score, 1)
    t.ok(success >= 0.95, "success " .. success)
  end)
end

t.test("noise 0.1 without velocities: gru and agalite are ahead of feedforward", function()
  local mean = {}
  for _, core in ipairs { "gru", "agalite", "feedforward" } do
    mean[core] = 0
    for seed = 1, 3 do mean[core] = mean[core] + select(2, train(core, seed, "core=" .. core)) / 3 end
  end
  print(("  success: gru %.3f, agalite %.3f, feedforward %.3f"):format(mean.gru, mean.agalite, mean.feedforward))
  t.ok(mean.gru > mean.feedforward + 0.2, "gru")
  t.ok(mean.agalite > mean.feedforward + 0.1, "agalite")
end)
learn_rig.clean()
