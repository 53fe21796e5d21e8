-- test_pendulum.lua -- pendulum, whose action is a box: its physics step for step against Gymnasium's, what it clips, what it hides.
local t = require "tests.harness"
local envs = require "mneme.envs"
local registry = require "mneme.base.registry"
local safetensors = require "mneme.tensor.safetensors"
local rig = require("tests.support.env_rig").rig

local function make(settings) return envs.new("pendulum", settings) end

t.test("pendulum is Pendulum-v1: 6,000 steps as Gymnasium made them", function()
  local file = safetensors.read(registry.root .. "tests/fixtures/envs/pendulum.safetensors")
  local actions, want, rewards = file.tensors.action, file.tensors.obs, file.tensors.reward
  local env = make { num_envs = 1, seed = tonumber(file.metadata.seed) }
  local r, exact = rig(env), 0
  t.eq(actions.count, 6000)
  env:reset_raw(r.obs)
  for s = 0, actions.count - 1 do
    r.action[0] = actions.data[s]
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    t.eq(r.terminated[0], 0)
    t.eq(r.truncated[0], s % 200 == 199 and 1 or 0, "the end at step " .. s)
    local seen = r.truncated[0] == 1 and env.ended.final_obs or r.obs
    t.near(r.reward[0], rewards.data[s], 1e-6 * math.abs(rewards.data[s]) + 1e-7, "reward " .. s)
    for k = 0, 2 do
      local x = want.data[3 * s + k]
      t.near(seen[k], x, 1e-6 * math.abs(x) + 1e-6, ("number %d at step %d"):format(k, s))
      exact = exact + (seen[k] == x and 1 or 0)
    end
  end
  t.ok(exact >= 0.998 * 18000, exact .. " of 18000 numbers are the same float")
end)

t.test("pendulum: the space is a box, and torques beyond it are clipped", function()
  local space = make {}.action_space
  t.eq(space.kind, "box")
  t.eq(space.size, 1)
  t.eq(space.low[1], -2)
  t.eq(space.high[1], 2)
  t.eq(tostring(space), "Box(1): torque -2..2")
  t.raises(function() return space.n end, "Box%(1%): torque")
  local a, b = make { num_envs = 2, seed = 3 }, make { num_envs = 2, seed = 3 }
  a:reset()
  b:reset()
  for _ = 1, 20 do
    local x, y = a:step { { -7 }, { 2.5 } }, b:step { { -2 }, { 2 } }
    for i = 0, 5 do t.eq(x:data()[i], y:data()[i]) end
  end
  t.raises(function() a:step { { 0 / 0 }, { 0 } } end, "finite")
  t.raises(function() a:step { 1, 2 } end, "a list of 1 numbers")
  t.raises(function() a:step { { 1, 2 }, { 1, 2 } } end, "a list of 1 numbers")
end)

t.test("pendulum velocity=hidden: the same world, seen without its speed", function()
  local a, b = make { num_envs = 1, seed = 3 }, make { num_envs = 1, seed = 3, velocity = "hidden" }
  local x, y = a:reset(), b:reset()
  t.eq(b.observation_space.shape[1], 2)
  for _ = 1, 50 do
    for k = 0, 1 do t.eq(x:data()[k], y:data()[k]) end
    x, y = a:step { { 1.5 } }, b:step { { 1.5 } }
  end
end)
