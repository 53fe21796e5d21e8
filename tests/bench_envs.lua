-- bench_envs.lua -- steps per second of every environment: uniformly random actions made beforehand, one
-- thread, the loop a learner runs (mn_vec_step with autoreset), for several numbers of copies.
--   luajit tests/bench_envs.lua [seconds for each figure, default 0.5]
local here = arg[0]:match "^(.*)tests/bench_envs%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. package.path
local ffi = require "ffi"
local engine = require "mneme.engine"
engine.open("cpu", 1)
local env = require "mneme.env"

local C, SETS = engine.C, 64          -- sets of actions, used over and over
local seconds = tonumber(arg[1]) or 0.5

local function steps_per_second(name, copies)
  local task = env.new(name, { num_envs = copies })
  local size, u8 = copies, task.observation_space.dtype == "u8"
  for _, n in ipairs(task.observation_space.shape) do size = size * n end
  local obs = ffi.new(u8 and "uint8_t[?]" or "float[?]", size)
  local action, random = ffi.new("int32_t[?]", SETS * copies), ffi.new("float[?]", SETS * copies)
  local reward = ffi.new("float[?]", copies)
  local terminated, truncated = ffi.new("uint8_t[?]", copies), ffi.new("uint8_t[?]", copies)
  C.mn_random_uniform(1, 0, 0, random, SETS * copies)
  for i = 0, SETS * copies - 1 do action[i] = random[i] * task.action_space.n end
  task:reset_raw(obs)
  local best, till = 0, os.clock() + seconds
  repeat                              -- the best of short runs: other programs only slow it down
    local rounds, start = math.max(1, math.floor(1e6 / copies)), os.clock()
    for k = 1, rounds do task:step_raw(action + k % SETS * copies, obs, reward, terminated, truncated) end
    best = math.max(best, rounds * copies / (os.clock() - start))
  until os.clock() > till
  task:close()
  return best
end

print(("%-16s %10s %16s"):format("environment", "copies", "steps/s"))
for _, e in ipairs(env.list()) do
  for _, copies in ipairs { 8, 256, 1024 } do
    print(("%-16s %10d %14.2f M"):format(e.name, copies, steps_per_second(e.name, copies) / 1e6))
  end
end
