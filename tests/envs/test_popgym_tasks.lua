-- test_popgym_tasks.lua -- POPGym's games, carts, pendulums and labyrinths: step by step what the originals did with the same boards, decks, mazes and
-- states (tests/reference/popgym_tasks.py); random play against theirs; their names.
local t = require "tests.harness"
local registry = require "mneme.base.registry"
local safetensors = require "mneme.tensor.safetensors"
local popgym_tasks = require "tests.support.popgym_tasks"

local file = safetensors.read((os.getenv "ORIGINALS" or registry.root .. "tests/fixtures/envs") .. "/popgym_tasks.safetensors").tensors
for name in pairs(popgym_tasks.steps) do
  t.test(name .. ": POPGym observes, pays and ends the same at every step", function()
    for _, level in ipairs(popgym_tasks.levels) do
      local at, played = name .. "." .. level .. ".", popgym_tasks.play(name, level)
      local obs, rewards, ended = file[at .. "obs"], file[at .. "reward"], file[at .. "ended"]
      local size, ends = obs.shape[2], 0
      t.eq(rewards.count, #played.actions)
      for s = 1, rewards.count do
        local where = at .. "step " .. s
        for k = 1, size do t.near(played.seen[s][k], obs.data[(s - 1) * size + k - 1], 1e-5, where .. ", observation " .. k) end
        t.near(played.rewards[s], rewards.data[s - 1], 1e-6, where .. ", reward")
        t.eq(played.ended[s], ended.data[s - 1], where .. ", end")
        ends = ends + (ended.data[s - 1] > 0 and 1 or 0)
      end
      t.ok(ends > 0, at .. "no episode ended")
    end
  end)
end
