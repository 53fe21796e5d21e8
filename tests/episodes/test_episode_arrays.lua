-- test_episode_arrays.lua -- episodes that become arrays: every nth of all environments, as it was lived, and what the agent had in mind.
local t = require "tests.harness"
local episode_arrays = require "mneme.insight.episodes.episode_arrays"
local fresh_episodes = require "mneme.insight.episodes.fresh_episodes"
local files = require "mneme.base.files"
local mn = require "mneme"
local npz_reader = require "tests.support.npz_reader"
local stepper = require "mneme.insight.episodes.stepper"
local shell = require "tests.support.shell"

local folder = shell.folder()
local function path(name) return folder .. "/" .. name end

for _, num_envs in ipairs { 1, 3, 6 } do
  t.test(("evaluation: every nth episode of %d environments, with what the agent had in mind"):format(num_envs), function()
    local env = mn.env("tmaze", { corridor = 4, num_envs = num_envs, time_limit = 12 })
    local core = mn.core("gru", { d_in = 16, d_model = 8 })
    local p = stepper.new(env, mn.agent { env = env, core = core, hidden = 8 }, { seed = 4, title = "a gru" })
    local function play(name, options)
      options.folder = path(name .. num_envs)
      local book = episode_arrays.album(p, options)
      p:restart()
      local out = fresh_episodes.play(p, 10, { album = book })
      return out, files.list(options.folder), book
    end
    local out, names, book = play("all", { episodes = 10, internals = true })
    t.eq(#names, 10)
    t.eq(book.written, 10)
    for n = 0, 9 do
      local back = npz_reader(path(("all%d/episode-%d.npz"):format(num_envs, n)))
      local steps = out.length[n + 1]
      t.eq(back.about.environment, n % num_envs)
      t.eq(back.about.episode, n)
      t.eq(back.about.env, "tmaze-v0")
      t.eq(table.concat(back.observations.shape, ","), steps .. ",16")
      t.eq(table.concat(back.actions.shape, ","), tostring(steps))
      t.eq(table.concat(back["memory:layers.0.h"].shape, ","), steps .. ",8")
      local ret = 0
      for k = 0, steps - 1 do
        ret = ret + back.rewards.values[k]
        local policy = 0
        for i = 0, 3 do policy = policy + back.policy.values[4 * k + i] end
        t.near(policy, 1, 1e-5)
        t.eq(back.terminated.values[k] + back.truncated.values[k], k == steps - 1 and 1 or 0)
      end
      t.near(ret, out.ret[n + 1], 1e-4)
      -- the agent, given the recorded observations one after another, has the recorded values
      local state = core:initial(1)
      for k = 0, steps - 1 do
        local x = mn.tensor { shape = { 1, 1, 16 } }
        for i = 0, 15 do x:data()[i] = back.observations.values[16 * k + i] end
        local fresh = mn.tensor { shape = { 1, 1 }, dtype = "u8" }
        fresh:data()[0] = k == 0 and 1 or 0
        local _, values, after = mn.no_grad(function() return p.agent:act(x, fresh, state) end)
        state = after
        t.near(values:data()[0], back.value.values[k], 1e-5)
      end
      mn.clear_tape()
    end
    local fewer
    fewer, names = play("some", { episodes = 10, every = 4 })
    t.eq(table.concat(names, " "), "episode-0.npz episode-4.npz episode-8.npz")
    t.eq(npz_reader(path(("some%d/episode-4.npz"):format(num_envs))).value, nil)
    t.eq(#fewer.score, 10)
  end)
end

t.test("actions of several numbers, observations of bytes: their types and shapes", function()
  for name, make in pairs { pendulum = function() return mn.env("pendulum", { num_envs = 2, time_limit = 5 }) end,
    mystery_path = function() return mn.env("mystery_path", { num_envs = 2, time_limit = 5 }) end } do
    local env = make()
    local p = stepper.new(env, mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8 }, { seed = 4 })
    local book = episode_arrays.album(p, { folder = path(name), episodes = 2 })
    local did = {}
    for k = 0, 4 do
      p:forward()
      book:before()
      did[k] = p.env.action_space:read(p:acting(), 1)
      p:step()
      book:after()
    end
    local back = npz_reader(path(name .. "/episode-1.npz"))
    t.eq(table.concat(back.observations.shape, ","), "5," .. table.concat(env.observation_space.shape, ","))
    for k = 0, 4 do t.near(back.actions.values[k], type(did[k]) == "table" and did[k][1] or did[k], 0) end
    t.eq(back.truncated.values[4], 1)
  end
end)

files.remove_folder(folder)
