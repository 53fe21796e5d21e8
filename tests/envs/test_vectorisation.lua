-- test_vectorisation.lua -- what stepping many copies promises, for every environment in C and for rules in Lua:
-- any number of copies, observations where the learner reads them, a seed for each copy, final observations,
-- copies that are saved, restored and cloned at any step, and errors that change nothing.
local ffi = require "ffi"
local t = require "tests.harness"
local env = require "mneme.envs.env"
local stepping = require "tests.support.env_rig"
local tensor = require "mneme.tensor.tensor"

local rig, seen, final, step, follow = stepping.rig, stepping.seen, stepping.final, stepping.step, stepping.follow

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
  return env.new(spec)
end

local makers = { { "rules in Lua", in_lua } }
for _, e in ipairs(env.list()) do
  makers[#makers + 1] = { e.name, function(settings) return env.new(e.name, settings) end }
end

local function begun(task, seed)
  local r = rig(task)
  task:reset_raw(r.obs, seed)
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
    local task = make { num_envs = 5, time_limit = 12 }
    local space, size, T = task.observation_space, 1, 9
    for _, k in ipairs(space.shape) do size = size * k end
    local x = tensor.new { shape = { T + 1, 5, unpack(space.shape) }, dtype = space.dtype, time = true }
    local reward = tensor.new { shape = { T, 5 } }
    local r, data = rig(task), x:data()
    ffi.fill(data, x:size() * r.bytes / size, 0x55)
    task:reset_raw(data, 4)
    local twin = begun(make { num_envs = 5, time_limit = 12 }, 4)
    local function row(k) return ffi.string(ffi.cast("char *", data) + k * 5 * r.bytes, 5 * r.bytes) end
    t.eq(row(0), ffi.string(twin.obs, 5 * r.bytes))
    for k = 1, T do
      t.eq(row(k), ("\x55"):rep(5 * r.bytes), "a row that is not yet due was written")
      step(twin)
      task:step_raw(twin.action, data + k * 5 * size, reward:data() + (k - 1) * 5, r.terminated, r.truncated)
      t.eq(row(k), ffi.string(twin.obs, 5 * r.bytes), "row " .. k)
      t.eq(reward:data()[(k - 1) * 5 + 4], twin.reward[4])
    end
  end)

  t.test(name .. ": a list of seeds gives every copy the stream of a task of its own", function()
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
    t.eq(r.task.seed, seeds)
    r.task:reset_raw(r.obs, 7)                           -- one seed again: copies differ
    t.ok(table.concat(lives(r, { 0 }, 50)) ~= table.concat(lives(r, { 1 }, 50)))
  end)

  t.test(name .. ": bad seeds are refused, and nothing has changed", function()
    local task = make { num_envs = 3 }
    local r = begun(task, 1)
    local before = task:save(0) .. task:save(1) .. task:save(2)
    for _, bad in ipairs { { 1, 2 }, { 1, 2, 3, 4 }, {}, { 1, 2, -1 }, { 1, 2, 0.5 }, { 0 / 0, 1, 2 }, { 1, "x", 2 }, { 1, 2, 2 ^ 54 } } do
      t.raises(function() task:reset_raw(r.obs, bad) end, "seed")
      t.raises(function() task:reset(bad) end, "seed")
    end
    t.raises(function() task:reset "seven" end, "seed is a string")
    t.eq(task:save(0) .. task:save(1) .. task:save(2), before)
  end)

  t.test(name .. ": a copy can be saved, restored and cloned after every step", function()
    local task = make { num_envs = 4, time_limit = 11 }
    local r = begun(task, 2)
    local fresh = rig(make { num_envs = 4, time_limit = 11, seed = 9 })
    for k = 0, 30 do
      if k > 0 then step(r) end
      for i = 0, 3 do                                    -- into a task that was never reset
        fresh.task:restore(i, task:save(i), ffi.cast("char *", fresh.obs) + i * fresh.bytes)
        t.eq(seen(fresh, i), seen(r, i), ("step %d, copy %d"):format(k, i))
      end
      fresh.time = r.time
    end
    local a, b = follow(r, { 0, 1, 2, 3 }, 25), follow(fresh, { 0, 1, 2, 3 }, 25)
    for i = 1, 4 do t.eq(a[i], b[i]) end
    task:clone(1, 3, ffi.cast("char *", r.obs) + 3 * r.bytes)
    t.eq(seen(r, 3), seen(r, 1), "the clone sees the same")
    t.ok(task:save(3) == task:save(1))
    local logs = lives(r, { 1, 3, 0 }, 40)
    t.eq(logs[1], logs[2], "the clone goes on alike")
    t.ok(logs[1] ~= logs[3])
    t.raises(function() task:clone(0, 4, r.obs) end, "copy 4, expected 0..3")
    t.raises(function() task:clone(-1, 0, r.obs) end, "copy %-1, expected 0..3")
  end)

  t.test(name .. ": a task whose copies are restored at their first observation needs no reset", function()
    local r = begun(make { num_envs = 2 }, 2)
    local fresh = rig(make { num_envs = 2 })
    for i = 0, 1 do fresh.task:restore(i, r.task:save(i), ffi.cast("char *", fresh.obs) + i * r.bytes) end
    t.eq(follow(fresh, { 1 }, 30)[1], follow(r, { 1 }, 30)[1])
  end)

  t.test(name .. ": where an episode ends, the next one begins in the same step", function()
    local task = make { num_envs = 6, time_limit = 4 }
    local r, ends = begun(task, 8), { 0, 0 }
    for _ = 1, 40 do
      step(r)
      for i = 0, 5 do
        local over = r.terminated[i] + r.truncated[i]
        t.ok(over <= 1, "terminated and truncated at once")
        if over == 1 then
          ends[1], ends[2] = ends[1] + r.terminated[i], ends[2] + r.truncated[i]
          local kept, last = seen(r, i), final(r, i)
          t.eq(#last, #kept)
          local bytes = task:save(i)                     -- the copy stands at the first observation
          task:restore(i, bytes, ffi.cast("char *", r.obs) + i * r.bytes)
          t.eq(seen(r, i), kept)
          t.eq(final(r, i), last, "restore touched the final observation")
          t.ok(task.ended.length[i] >= 1 and task.ended.length[i] <= 4)
        end
      end
    end
    t.ok(ends[1] + ends[2] >= 60, "episodes of four steps at most")
  end)

  t.test(name .. ": after close every call is refused", function()
    local task = make { num_envs = 2 }
    local r = begun(task, 1)
    local bytes = task:save(0)
    task:close()
    for what, f in pairs {
      step = function() task:step { 0, 0 } end, step_raw = function() step(r) end, reset = function() task:reset(1) end,
      save = function() task:save(0) end, restore = function() task:restore(0, bytes) end, truth = function() task:truth(0) end,
      clone = function() task:clone(0, 1) end, draw = function() task:draw(0) end, close = function() task:close() end } do
      t.ok(t.raises(f, "has been closed"), what)
    end
  end)

  t.test(name .. ": actions out of range are refused in both ways to step, and nothing has changed", function()
    local task = make { num_envs = 3 }
    local r, n = begun(task, 1), task.action_space.n
    local before = task:save(0) .. task:save(2)
    for _, bad in ipairs { -1, n, 10000, 2 ^ 31 - 1, -2 ^ 31 } do
      r.action[0], r.action[1], r.action[2] = 0, 0, bad
      t.raises(function() task:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated) end, "action%[2%]=%-?%d+, expected 0%.%.")
      t.raises(function() task:step { 0, 0, bad } end, "action%[2%]=.*expected 0%.%.")
    end
    t.raises(function() task:step { 0, 0, 0 / 0 } end, "action%[2%]=")
    t.eq(task:save(0) .. task:save(2), before)
  end)
end

t.test("sizes of 0 and 10,000: every parameter takes them or says what it takes", function()
  for _, e in ipairs(env.list()) do
    for name in e.params:gmatch "([%w_]+)=[%-%d]" do
      for _, size in ipairs { 0, 10000 } do
        local ok, task = pcall(env.new, e.name, { [name] = size, num_envs = 1 })
        if ok then
          local r = begun(task, 1)
          for _ = 1, 3 do step(r) end
          task:close()
        else
          t.ok(tostring(task):find(e.name, 1, true) and tostring(task):find(name, 1, true),
            ("%s: %s=%d: %s"):format(e.name, name, size, tostring(task)))
        end
      end
    end
  end
end)

t.test("10,000 copies", function()
  for _, make in ipairs { in_lua, function(s) return env.new("tmaze", s) end } do
    local r = begun(make { num_envs = 10000 }, 1)
    step(r)
    r.task:save(9999)
    t.raises(function() r.task:save(10000) end, "copy 10000, expected 0..9999")
    t.raises(function() make { num_envs = 0 } end, "num_envs=0")
    r.task:close()
  end
end)
