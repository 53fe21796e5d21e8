-- test_observation_names.lua -- what environments say of their observations: every number has one name, and the named ones hold what they say.
local t = require "tests.harness"
local envs = require "mneme.envs"
local mn = require "mneme"
local native = require "mneme.envs.native"

-- The settings in which every environment is tried: its own, and others where its observation has another form.
local cases = { memory_maze = { { observation = "vector" }, { minimap = 1 }, { view = 5 }, { observation = "pixels" } },
  mystery_path = { { observation = "pixels" } }, noisy_cartpole = { { velocities = 1 } }, tmaze = { { corridor = 200 } }, gridworld = { { view = 3 } } }

t.test("every number of a flat observation has one name, in order, in every environment that declares any", function()
  local declared = 0
  for _, one in ipairs(envs.list()) do
    for _, given in ipairs { {}, unpack(cases[one.name] or {}) } do
      local settings = { num_envs = 1 }
      for key, value in pairs(given) do settings[key] = value end
      local env = mn.env(one.name, settings)
      local at, seen, space = 0, {}, env.observation_space
      for _, group in ipairs(space.groups) do
        t.eq(group.from, at, one.name)
        t.eq(#group.names, group.n, one.name .. " " .. group.name)
        for _, name in ipairs(group.names) do
          t.ok(not seen[name], one.name .. ": twice " .. name)
          seen[name] = true
        end
        at = at + group.n
      end
      if #space.shape > 1 then t.eq(at, 0) else
        t.eq(at, space.shape[1], one.name)
        declared = declared + 1
      end
    end
  end
  t.ok(declared >= 14)
end)

-- The values of a group of one observation, after some steps.
local function group_of(env, name)
  for _, group in ipairs(env.observation_space.groups) do if group.name == name then return group end end
  error("no group " .. name)
end

t.test("the names are true: a T-Maze's cue is the cue and its place the place; a cart-pole's numbers are its state", function()
  local env = mn.env("tmaze", { corridor = 9, num_envs = 4, seed = 3 })
  local obs = env:reset()
  local cue, place, n = group_of(env, "cue"), group_of(env, "place"), env.observation_space.shape[1]
  for b = 0, 3 do
    local down = env:truth(b).cue > 0.5
    t.eq(cue.names[1], "cue down") t.eq(cue.names[2], "cue up")
    t.eq(obs:data()[b * n + cue.from], down and 1 or 0)
    t.eq(obs:data()[b * n + cue.from + 1], down and 0 or 1)
  end
  for _ = 1, 3 do obs = env:step { 3, 3, 3, 3 } end
  for b = 0, 3 do
    local gray, value = 0, 0
    for i = 0, place.n - 1 do
      gray = (gray + obs:data()[b * n + place.from + i]) % 2
      value = 2 * value + gray
    end
    t.eq(value, env:truth(b).position)
  end
  env = mn.env("noisy_cartpole", { noise = 0.0, velocities = 1, num_envs = 1 })
  obs = env:reset()
  for _, group in ipairs(env.observation_space.groups) do
    t.near(obs:data()[group.from], env:truth(0)[group.name], 1e-6, group.name)
  end
end)

t.test("a declaration that does not fit is refused with its reason; one of a script names its numbers", function()
  local space = { shape = { 6 }, dtype = "f32" }
  local function groups(text) return native.groups("mine", text, space, { side = 2 }) end
  t.eq(#groups(nil), 0)
  t.eq(groups("cue[side*side] asked[*]")[2].n, 2)
  t.eq(groups("u8: a[*] f32: b=x,y c[4]")[1].names[2], "b y")
  t.fails(function() groups "cue[4]" end)
  t.raises(function() groups "cue[4] asked[3]" end, "names 7 numbers")
  t.fails(function() groups "cue[width]" end)
  t.fails(function() groups "cue(4)" end)
  local spec = { observation = { 3 }, actions = 2, num_envs = 1, reset = function() return { 0, 0, 0 } end,
    step = function() return { 0, 0, 0 }, 0, false end, observes = "sign[2] asked" }
  t.eq(mn.env(spec).observation_space.groups[2].name, "asked")
  spec.observes = 3
  t.fails(function() mn.env(spec) end)
end)
