-- test_vectorisation.lua -- what stepping many copies promises, for every environment in C and for rules in Lua:
-- any number of environments, observations where the learner reads them, a seed for each environment, final observations,
-- copies that are saved, restored and cloned at any step, and errors that change nothing.
local ffi = require "ffi"
local t = require "tests.harness"
local envs = require "mneme.envs"
local env_rig = require "tests.support.env_rig"
local tensor = require "mneme.tensor.tensor"

local rig, seen, final, step, follow = env_rig.rig, env_rig.seen, env_rig.final, env_rig.step, env_rig.follow

-- Walk along a line, blown about: episodes of any length, a random number in each observation.
local function in_lua(settings)
  local spec = { name = "walk", observation = { 3 }, actions = 3,
    reset = function(self, random)
      self.x, self.goal = 0, random(6)
      return { 0, self.goal, random() }
    end,
    step = function(self, action, random)
      self.x = self.x + action - 1 + (random() < 0.3 and 1 or 0)
      return { self.x, self.goal, random() }, -self.x / 8, self.x >= self.goal, 1
    end }
  for key, value in pairs(settings or {}) do spec[key] = value end
  return envs.new(spec)
end

local makers = { { "rules in Lua", in_lua } }
for _, e in ipairs(envs.list()) do
  makers[#makers + 1] = { e.name, function(settings) return envs.new(e.name, settings) end }
end

local function begun(env, seed)
  local r = rig(env)
  env:reset_raw(r.obs, seed)
  return r
end

-- Everything that copies show for a while, each acting as copy `as` (default 0) would.
local function lives(r, copies, steps, as)
  local all = {}
  for i = 0, r.n - 1 do all[i] = as or 0 end
  return follow(r, copies, steps, all)
end

for _, maker in ipairs(makers) do
  local name, make = maker[1], maker[2]

  t.test(name .. ": any number of copies, each as it is among others", function()
    local want
    for _, n in ipairs { 1, 2, 63, 64, 65, 129, 300 } do
      local r = begun(make { num_envs = n, time_limit = 15 }, 3)
      local log = seen(r, 0) .. lives(r, { 0 }, 40)[1]
      want = want or log
      t.eq(log, want, n .. " copies")
    end
  end)

  t.test(name .. ": observations land in the learner's own memory, and nowhere else", function()
    local env = make { num_envs = 5, time_limit = 12 }
    local space, size, T = env.observation_space, 1, 9
    for _, k in ipairs(space.shape) do size = size * k end
    local x = tensor.new { shape = { T + 1, 5, unpack(space.shape) }, dtype = space.dtype, time = true }
    local reward = tensor.new { shape = { T, 5 } }
    local r, data = rig(env), x:data()
    ffi.fill(data, x:size() * r.bytes / size, 0x55)
    env:reset_raw(data, 4)
    local twin = begun(make { num_envs = 5, time_limit = 12 }, 4)
    local function row(k) return ffi.string(ffi.cast("char *", data) + k * 5 * r.bytes, 5 * r.bytes) end
    t.eq(row(0), ffi.string(twin.obs, 5 * r.bytes))
    for k = 1, T do
      t.eq(row(k), ("\x55"):rep(5 * r.bytes), "a row that is not yet due was written")
      step(twin)
      env:step_raw(twin.action, data + k * 5 * size, reward:data() + (k - 1) * 5, r.terminated, r.truncated)
      t.eq(row(k), ffi.string(twin.obs, 5 * r.bytes), "row " .. k)
      t.eq(reward:data()[(k - 1) * 5 + 4], twin.reward[4])
    end
  end)

  t.test(name .. ": a list of seeds gives every copy the stream of an environment of its own", function()
    local seeds = { 7, 7, 2 ^ 53, 0, 123456789 }
    local r = begun(make { num_envs = 5, time_limit = 20 }, seeds)
    local first = {}
    for i = 0, 4 do first[i] = seen(r, i) end
    local logs = lives(r, { 0, 1, 2, 3, 4 }, 50)
    for i = 1, 5 do
      local one = begun(make { num_envs = 1, time_limit = 20, seed = seeds[i] })
      t.eq(seen(one, 0), first[i - 1], "first observation of copy " .. i - 1)
      t.eq(lives(one, { 0 }, 50)[1], logs[i], "copy " .. i - 1)
    end
    t.eq(logs[1], logs[2], "equal seeds")
    t.ok(logs[1] ~= logs[3] and logs[3] ~= logs[4] and logs[4] ~= logs[5], "other seeds give the same")
    t.eq(r.env.seed, seeds)
    r.env:reset_raw(r.obs, 7)                           -- one seed again: copies differ
    t.ok(table.concat(lives(r, { 0 }, 50)) ~= table.concat(lives(r, { 1 }, 50)))
  end)

  t.test(name .. ": bad seeds are refused, and nothing has changed", function()
    local env = make { num_envs = 3 }
    local r = begun(env, 1)
    local before = env:save(0) .. env:save(1) .. env:save(2)
    for _, bad in ipairs { { 1, 2 }, { 1, 2, 3, 4 }, {}, { 1, 2, -1 }, { 1, 2, 0.5 }, { 0 / 0, 1, 2 }, { 1, "x", 2 }, { 1, 2, 2 ^ 54 } } do
      t.raises(function() env:reset_raw(r.obs, bad) end, "seed")
      t.raises(function() env:reset(bad) end, "seed")
    end
    t.raises(function() env:reset "seven" end, "seed is a string")
    t.eq(env:save(0) .. env:save(1) .. env:save(2), before)
  end)

  t.test(name .. ": an environment can be saved, restored and cloned after every step", function()
    local env = make { num_envs = 4, time_limit = 11 }
    local r = begun(env, 2)
    local fresh = rig(make { num_envs = 4, time_limit = 11, seed = 9 })
    for k = 0, 30 do
      if k > 0 then step(r) end
      for i = 0, 3 do                                    -- into an environment that was never reset
        fresh.env:restore(i, env:save(i), ffi.cast("char *", fresh.obs) + i * fresh.bytes)
        t.eq(seen(fresh, i), seen(r, i), ("step %d, copy %d"):format(k, i))
      end
      fresh.time = r.time
    end
    local a, b = follow(r, { 0, 1, 2, 3 }, 25), follow(fresh, { 0, 1, 2, 3 }, 25)
    for i = 1, 4 do t.eq(a[i], b[i]) end
    env:clone(1, 3, ffi.cast("char *", r.obs) + 3 * r.bytes)
    t.eq(seen(r, 3), seen(r, 1), "the clone sees the same")
    t.ok(env:save(3) == env:save(1))
    local logs = lives(r, { 1, 3, 0 }, 40)
    t.eq(logs[1], logs[2], "the clone goes on alike")
    t.ok(logs[1] ~= logs[3])
    t.raises(function() env:clone(0, 4, r.obs) end, "environment 4, expected 0..3")
    t.raises(function() env:clone(-1, 0, r.obs) end, "environment %-1, expected 0..3")
  end)

  t.test(name .. ": an environment whose copies are restored at their first observation needs no reset", function()
    local r = begun(make { num_envs = 2 }, 2)
    local fresh = rig(make { num_envs = 2 })
    for i = 0, 1 do fresh.env:restore(i, r.env:save(i), ffi.cast("char *", fresh.obs) + i * r.bytes) end
    t.eq(follow(fresh, { 1 }, 30)[1], follow(r, { 1 }, 30)[1])
  end)

  t.test(name .. ": where an episode ends, the next one begins in the same step", function()
    local env = make { num_envs = 6, time_limit = 4 }
    local r, ends = begun(env, 8), { 0, 0 }
    for _ = 1, 40 do
      step(r)
      for i = 0, 5 do
        local over = r.terminated[i] + r.truncated[i]
        t.ok(over <= 1, "terminated and truncated at once")
        if over == 1 then
          ends[1], ends[2] = ends[1] + r.terminated[i], ends[2] + r.truncated[i]
          local kept, last = seen(r, i), final(r, i)
          t.eq(#last, #kept)
          local bytes = env:save(i)                     -- the copy stands at the first observation
          env:restore(i, bytes, ffi.cast("char *", r.obs) + i * r.bytes)
          t.eq(seen(r, i), kept)
          t.eq(final(r, i), last, "restore touched the final observation")
          t.ok(env.ended.length[i] >= 1 and env.ended.length[i] <= 4)
        end
      end
    end
    t.ok(ends[1] + ends[2] >= 60, "episodes of four steps at most")
  end)

  t.test(name .. ": after close every call is refused", function()
    local env = make { num_envs = 2 }
    local r = begun(env, 1)
    local bytes = env:save(0)
    env:close()
    for what, f in pairs {
      step = function() env:step { 0, 0 } end, step_raw = function() step(r) end, reset = function() env:reset(1) end,
      save = function() env:save(0) end, restore = function() env:restore(0, bytes) end, truth = function() env:truth(0) end,
      clone = function() env:clone(0, 1) end, draw = function() env:draw(0) end, close = function() env:close() end } do
      t.ok(t.raises(f, "has been closed"), what)
    end
  end)

  t.test(name .. ": actions out of range are refused in both ways to step, and nothing has changed", function()
    local env = make { num_envs = 3 }
    if env.action_space.kind ~= "discrete" then return end          -- floats: test_envs.lua, test_pendulum.lua
    local r, n = begun(env, 1), env.action_space.n
    local before = env:save(0) .. env:save(2)
    for _, bad in ipairs { -1, n, 10000, 2 ^ 31 - 1, -2 ^ 31 } do
      r.action[0], r.action[1], r.action[2] = 0, 0, bad
      t.raises(function() env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated) end, "action%[2%]=%-?%d+, expected 0%.%.")
      t.raises(function() env:step { 0, 0, bad } end, "action%[2%]=.*expected 0%.%.")
    end
    t.raises(function() env:step { 0, 0, 0 / 0 } end, "action%[2%]=")
    t.eq(env:save(0) .. env:save(2), before)
  end)
end

t.test("sizes of 0 and 10,000: every parameter takes them or says what it takes", function()
  for _, e in ipairs(envs.list()) do
    for name in e.params:gmatch "([%w_]+)=[%-%d]" do
      for _, size in ipairs { 0, 10000 } do
        local ok, env = pcall(envs.new, e.name, { [name] = size, num_envs = 1 })
        if ok then
          local r = begun(env, 1)
          for _ = 1, 3 do step(r) end
          env:close()
        else
          t.ok(tostring(env):find(e.name, 1, true) and tostring(env):find(name, 1, true),
            ("%s: %s=%d: %s"):format(e.name, name, size, tostring(env)))
        end
      end
    end
  end
end)

t.test("10,000 copies", function()
  for _, make in ipairs { in_lua, function(s) return envs.new("tmaze", s) end } do
    local r = begun(make { num_envs = 10000 }, 1)
    step(r)
    r.env:save(9999)
    t.raises(function() r.env:save(10000) end, "environment 10000, expected 0..9999")
    t.raises(function() make { num_envs = 0 } end, "num_envs=0")
    r.env:close()
  end
end)
