-- test_env.lua -- does NAME.lua keep what it declares?   mneme run test_env.lua
local mn = require "mneme"

local EPISODES = 400
local env = mn.env("NAME.lua", { num_envs = 1, seed = 1 })

-- The mean score of EPISODES episodes; `choose` gives their actions.
local function mean_score(choose)
  local sum, ended = 0, 0
  env:reset(1)
  while ended < EPISODES do
    local _, _, terminated, truncated = env:step { choose() }
    if terminated[1] + truncated[1] > 0 then
      local score = env:outcome(0).score
      assert(score and score >= 0 and score <= 1, "an episode ended without a score from 0 to 1")
      sum, ended = sum + score, ended + 1
    end
  end
  return sum / EPISODES
end

local n = assert(env.action_space.n, "this test plays discrete actions")
local expected, random = env.reference or {}, mean_score(function() return math.random(n) - 1 end)
print(("random actions score %.3f, declared: %s"):format(random, tostring(expected.chance)))
assert(not expected.chance or math.abs(random - expected.chance) < 4 * math.sqrt(0.25 / EPISODES), "chance is not what random actions score")

for _, fact in ipairs(env.to_know) do
  if fact.acts then                                -- to_know names the right action: whoever plays it is the best
    local best = mean_score(function()
      local truth = env:truth(0)
      return (not fact.when or truth[fact.when] == 0) and truth[fact.name] >= 0 and truth[fact.name] or 0
    end)
    print(("the right actions score %.3f, declared: %s"):format(best, tostring(expected.best)))
    assert(not expected.best or math.abs(best - expected.best) < 4 * math.sqrt(0.25 / EPISODES), "best is not what the right actions score")
  end
end
print "ok"
