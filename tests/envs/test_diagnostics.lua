-- test_diagnostics.lua -- the field's diagnostics of memory against what tests/reference/diagnostics.py recorded of the originals: every observation,
-- reward and end, with the same random words.  make golden PYTHON=... compares longer recordings.
local t = require "tests.harness"
local envs = require "mneme.envs"
local json = require "mneme.base.json"
local registry = require "mneme.base.registry"
local safetensors = require "mneme.tensor.safetensors"
local env_rig = require "tests.support.env_rig"

local folder = os.getenv "ORIGINALS" or registry.root .. "tests/fixtures/envs"

local function same(seen, want, from, size, what)
  for k = 0, size - 1 do
    if math.abs(seen[k] - want[from + k]) > 1e-6 then t.eq(seen[k], want[from + k], ("%s: number %d"):format(what, k)) end
  end
end

for _, name in ipairs { "memory_chain", "tmaze_passive", "tmaze_active", "rock_sample", "minigrid_memory" } do
  t.test(name .. ": step by step the original", function()
    local file = safetensors.read(("%s/diagnostics_%s.safetensors"):format(folder, name))
    for i, settings in ipairs(json.decode(file.metadata.cases)) do
      local function of(what) return file.tensors[("%d.%s"):format(i - 1, what)] end
      local given = { num_envs = 1, seed = tonumber(file.metadata.seed) }
      for key, value in pairs(settings) do given[key] = value end
      local env = envs.new(name, given)
      local r, episode, paid = env_rig.rig(env), 0, 0
      local actions, want, first, rewards, ended = of "action", of "obs", of "first", of "reward", of "ended"
      local size = want.shape[2]
      t.eq(env.observation_space.shape[1], size)
      env:reset_raw(r.obs)
      same(r.obs, first.data, 0, size, ("%s %d: the first observation"):format(name, i))
      for s = 0, actions.count - 1 do
        local where = ("%s %d: step %d"):format(name, i, s + 1)
        r.action[0] = actions.data[s]
        env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
        t.eq(r.terminated[0] + r.truncated[0], ended.data[s], where)
        t.near(r.reward[0], rewards.data[s], 1e-6, where)
        same(ended.data[s] > 0 and env.ended.final_obs or r.obs, want.data, s * size, size, where)
        if ended.data[s] > 0 then
          episode = episode + 1
          same(r.obs, first.data, episode * size, size, where .. ", the next episode")
        end
        paid = paid + (r.reward[0] > 0 and 1 or 0)
      end
      t.ok(episode >= 2 and paid >= 1, ("%s %d: %d episodes, %d rewards"):format(name, i, episode, paid))
    end
  end)
end
