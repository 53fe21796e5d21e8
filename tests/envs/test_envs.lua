-- test_envs.lua -- every environment in engine/envs against the contract of engine/env.h, and environments with
-- tensors.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local envs = require "mneme.envs"
local check_resumable = require "mneme.envs.check_resumable"
local env_rig = require "tests.support.env_rig"

local C = engine.C
local choose, rig, seen, final = env_rig.choose, env_rig.rig, env_rig.seen, env_rig.final
local hidden, step, roll, follow = env_rig.hidden, env_rig.step, env_rig.roll, env_rig.follow

for _, e in ipairs(envs.list()) do
  local function make(settings) return envs.new(e.name, settings) end

  t.test(e.name .. ": the same seed replays bit for bit, another seed does not", function()
    local function run(seed) return (roll(make { num_envs = 3, time_limit = 20 }, seed, 300)) end
    local a, b, c = run(5), run(5), run(6)
    for i = 0, 2 do
      t.eq(a[i], b[i], "copy " .. i)
      t.ok(a[i] ~= c[i], "another seed gives the same episode")
    end
    t.ok(a[0] ~= a[1] and a[1] ~= a[2], "copies share a stream")
    local d = roll(make { num_envs = 3, seed = 5, time_limit = 20 }, nil, 300)
    t.eq(d[0], a[0], "the seed of the settings")
  end)

  t.test(e.name .. ": a second reset without a seed goes on, with the seed it starts over", function()
    local env = make { num_envs = 2, time_limit = 10 }
    local first = roll(env, 9, 100)
    local other = roll(env, nil, 100)
    t.ok(first[0] ~= other[0] and first[1] ~= other[1], "the stream did not go on")
    t.eq(roll(env, 9, 100)[1], first[1])
  end)

  t.test(e.name .. ": a copy's stream does not depend on the number of copies", function()
    local function short(n) return make { num_envs = n, time_limit = 4 } end     -- every episode draws again
    local few, many = roll(short(3), 2, 60), roll(short(70), 2, 60)
    for i = 0, 2 do t.eq(few[i], many[i], "copy " .. i) end
    local seventy_one = roll(short(71), 2, 60)
    t.eq(seventy_one[69], many[69], "beyond the first 64 copies")
    local r, all, alike, met = rig(short(130)), {}, {}, {}
    r.env:reset_raw(r.obs, 2)
    local secret = {}                  -- worlds may look alike for a while, and be different ones
    for i = 0, 129 do all[i + 1], alike[i], secret[i + 1] = i, 0, hidden(r.env, i) end
    local logs = follow(r, all, 60, alike)
    for _ = 1, r.bytes > 8 and 0 or 24 do                            -- what is drawn is seldom seen in so few numbers
      for i, log in ipairs(follow(r, all, 4, alike)) do logs[i] = logs[i] .. log .. hidden(r.env, i - 1) end
    end
    for i, log in ipairs(logs) do
      log = log .. secret[i]
      t.ok(not met[log], ("copies %d and %d share a stream"):format(i - 1, met[log] or 0))
      met[log] = i - 1
    end
  end)

  t.test(e.name .. ": any number of threads gives the same bits", function()
    local dtype, shape, logs = ffi.new "int[1]", ffi.new("int[?]", C.MN_AXES), {}
    local n = 4096
    for k, threads in ipairs { 1, 3 } do
      local ctx = ffi.gc(C.mn_ctx_new("cpu", threads), C.mn_ctx_free)
      local vec = C.mn_vec_new(ctx, C.mn_env_find(e.name), n, 4, nil, nil, -1)
      local bytes = 1
      for a = 0, C.mn_vec_space(vec, dtype, shape) - 1 do bytes = bytes * shape[a] end
      bytes = bytes * (dtype[0] == C.MN_U8 and 1 or 4)
      t.ok(n * (16 + bytes / 4) > 50000, "too little work for several threads")
      local space = make({ num_envs = 1 }).action_space
      local obs, action = ffi.new("char[?]", n * bytes), space:room(n)
      local reward, a, b = ffi.new("float[?]", n), ffi.new("uint8_t[?]", n), ffi.new("uint8_t[?]", n)
      t.eq(C.mn_vec_reset(vec, 4, obs), 0)
      for s = 1, 40 do
        for i = 0, n - 1 do choose(space, action, i, i, s) end
        t.eq(C.mn_vec_step(vec, action, obs, reward, a, b), 0)
      end
      logs[k] = ffi.string(obs, n * bytes) .. ffi.string(reward, n * 4) .. ffi.string(a, n) .. ffi.string(b, n)
      C.mn_vec_free(vec)
    end
    t.ok(logs[1] == logs[2], "one thread and three differ")
  end)

  t.test(e.name .. ": a saved copy goes on bit for bit, in its place, in another, in another environment", function()
    for _, steps in ipairs { 0, 1, 57, 230 } do
      local env = make { num_envs = 4, time_limit = 90 }
      local _, r = roll(env, 3, steps)
      local bytes, here = env:save(1), seen(r, 1)
      local want = follow(r, { 1 }, 150)[1]
      local function goes_on(where, task_to, to)
        local there = rig(task_to)
        task_to:reset_raw(there.obs, 77)
        step(there)
        task_to:restore(to, bytes, ffi.cast("char *", there.obs) + to * there.bytes)
        t.eq(seen(there, to), here, where .. ": the observation that restore gives")
        t.eq(task_to:save(to), bytes, where .. ": saved again")
        there.time = steps
        local got = follow(there, { to }, 150, { [0] = 1, 1, 1, 1, 1 })[1]
        t.eq(got, want, where .. (" after %d steps"):format(steps))
      end
      goes_on("its place", env, 1)
      goes_on("another copy", env, 3)
      goes_on("another environment", make { num_envs = 5, time_limit = 90, seed = 40 }, 2)
    end
  end)

  t.test(e.name .. ": an environment restored copy by copy needs no reset, and saving is repeatable", function()
    local _, r = roll(make { num_envs = 66 }, 3, 41)
    local again = rig(make { num_envs = 66, seed = 8 })
    for i = 0, 65 do
      if i == 65 then t.raises(function() step(again) end, "before reset") end
      again.env:restore(i, r.env:save(i), ffi.cast("char *", again.obs) + i * again.bytes)
    end
    again.time = r.time
    local a, b = follow(r, { 0, 65 }, 120), follow(again, { 0, 65 }, 120)
    t.eq(a[1], b[1])
    t.eq(a[2], b[2])
    for i = 0, 65 do t.ok(r.env:save(i) == again.env:save(i), "equal runs are saved as different bytes") end
  end)

  t.test(e.name .. ": episodes end as they should: limit, final observation, return, length, score", function()
    local limit, env = 23, make { num_envs = 67, time_limit = 23 }
    local free = rig(make { num_envs = 67, time_limit = 0 })           -- the same without a limit
    t.eq(env.time_limit, limit)
    local r, sums, lengths, ends = rig(env), {}, {}, 0
    env:reset_raw(r.obs, 1)
    free.env:reset_raw(free.obs, 1)
    for i = 0, r.n - 1 do sums[i], lengths[i] = 0, 0 end
    for s = 1, 60 do
      step(r)
      if s <= limit then step(free) end
      for i = 0, r.n - 1 do
        sums[i], lengths[i] = sums[i] + r.reward[i], lengths[i] + 1
        t.ok(r.terminated[i] + r.truncated[i] <= 1, "terminated and truncated at once")
        t.eq(r.truncated[i] == 1, lengths[i] == limit and r.terminated[i] == 0, "truncated at the limit")
        if s <= limit and lengths[i] == s then
          t.eq(r.terminated[i], free.terminated[i])
          t.eq(r.reward[i], free.reward[i])
          if r.truncated[i] == 1 then
            t.eq(final(r, i), seen(free, i), "the observation at the limit")
            t.ok(#env:save(i) > 0)
          end
        end
        if r.terminated[i] + r.truncated[i] > 0 then
          ends = ends + 1
          t.eq(env.ended.length[i], lengths[i])
          t.near(env.ended.ret[i], sums[i], 1e-4)
          t.ok(env.ended.score[i] >= 0 and env.ended.score[i] <= 1, "score outside 0..1")
          sums[i], lengths[i] = 0, 0
        end
      end
    end
    t.ok(ends >= 67 * 2, "episodes did not end")
  end)

  t.test(e.name .. ": observations keep to the space, something is drawn, facts are numbers", function()
    local env = make { num_envs = 2 }
    local r = rig(env)
    env:reset_raw(r.obs, 1)
    for s = 0, 200 do
      if env.observation_space.dtype == "f32" then
        for k = 0, r.n * r.size - 1 do t.ok(r.obs[k] > -1e6 and r.obs[k] < 1e6, "an observation is not finite") end
      elseif env.observation_space.codes then
        for k = 0, r.n * r.size - 1 do t.ok(r.obs[k] < env.observation_space.codes, "an observation is no code") end
      end
      if s % 50 == 0 then
        t.ok(C.mn_canvas_count(env:draw(1)) >= 3, "nothing is drawn")
        local facts = 0
        for name, value in pairs(env:truth(1)) do
          facts = facts + 1
          for _, x in ipairs(type(value) == "table" and value or { value }) do t.ok(x == x, name .. " is NaN") end
        end
        t.ok(facts >= 1, "no facts")
      end
      step(r)
    end
    local space = env.action_space
    t.eq(#space.names, space.kind == "discrete" and space.n or space.size, "names of actions")
  end)

  t.test(e.name .. ": bad input is refused, and nothing has changed", function()
    local env = make { num_envs = 2 }
    local r = rig(env)
    t.raises(function() step(r) end, "step before reset")
    for _, what in ipairs { "save", "draw", "truth" } do
      t.raises(function() env[what](env, 0) end, what .. " before reset")
    end
    env:reset_raw(r.obs, 1)
    local before = env:save(0) .. env:save(1)
    local box = env.action_space.kind == "box"
    for _, bad in ipairs(box and { 0 / 0, math.huge } or { -1, env.action_space.n, 2 ^ 31 - 1 }) do
      r.action[0], r.action[1] = 0, bad
      t.raises(function() env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated) end,
        box and "action%[1%]%[0%] %(.*%) is not finite" or "action%[1%]=%-?%d+, expected 0%.%.")
    end
    local bytes = env:save(0)
    local flipped = bytes:sub(1, #bytes - 3) .. string.char((bytes:byte(#bytes - 2) + 1) % 256) .. bytes:sub(-2)
    for _, bad in ipairs { "", "hello", bytes:sub(1, -2), bytes .. "x", flipped, ("\255"):rep(#bytes) } do
      t.raises(function() env:restore(0, bad, r.obs) end, "restore: ")
    end
    for _, bad in ipairs { -1, 2, 0.5, 0 / 0, "0" } do t.raises(function() env:save(bad) end, "expected 0%.%.1") end
    t.eq(env:save(0) .. env:save(1), before, "a refused call changed something")
    for _, bad in ipairs { -1, 0.5, 0 / 0, 2 ^ 53 + 2, 1 / 0 } do
      t.raises(function() make { seed = bad } end, "seed=")
      if bad ~= -1 then t.raises(function() env:reset_raw(r.obs, bad) end, "seed=") end
    end
    for _, bad in ipairs { 0, -1, 1.5, 1e9, 0 / 0, "two" } do
      t.raises(function() make { num_envs = bad } end, "num_envs=")
    end
    for _, bad in ipairs { -1, 1.5, "x" } do
      t.raises(function() make { time_limit = bad } end, "time_limit=")
    end
    t.raises(function() make { num_enws = 3 } end, "unknown setting of " .. e.name .. ".*num_envs")
    for name, _, lo, hi in e.params:gmatch "([%w_]+)=([%d.]+)%[(.-)%.%.(.-)%]" do
      for _, bad in ipairs { lo - 1, hi + 1, 1e9, -1e300, 0 / 0 } do
        t.raises(function() make { [name] = bad } end, name .. "=.*expected .*from")
      end
      t.raises(function() make { [name] = "long" } end, name .. " is a string")
    end
    env:close()
    t.raises(function() env:reset_raw(r.obs, 1) end, "has been closed")
    t.raises(function() env:save(0) end, "has been closed")
  end)
end

t.test("a name that a file says is no file of Lua: its code would be run unasked", function()
  local path = os.tmpname() .. ".lua"
  files.write(path, { "ran = true\nreturn { observation = { 1 }, actions = 2, reset = function() return { 0 } end,\n",
    "step = function() return { 0 }, 0, true end }\n" })
  t.raises(function() envs.known(path, {}) end, "unknown environment")
  t.raises(function() envs.known({ path }, {}) end, "unknown environment")
  t.eq(rawget(_G, "ran"), nil)
  os.remove(path)
end)

t.test("environments are found by name and version", function()
  t.eq(envs.new("tmaze-v0", { num_envs = 1 }).id, "tmaze-v0")
  t.eq(envs.new({ "tmaze", corridor = 7 }).settings.corridor, 7)
  t.raises(function() envs.new "tmaze-v99" end, "unknown environment 'tmaze%-v99' %(known: .* tmaze_bakker .*%)")
  t.fails(function() envs.new "tmase" end)
  t.raises(function() envs.new(nil) end, "unknown environment")
  t.fails(function() envs.new("tmaze", 3) end)
  t.fails(function() envs.new("tmaze", { corridor = 9 }):restore(0, "") end)
  local small = envs.new("tmaze", { corridor = 9 })
  small:reset(1)
  local function refuse(name, corridor, pattern)
    t.raises(function() envs.new(name, { corridor = corridor }):restore(0, small:save(0)) end, pattern)
  end
  refuse("tmaze", 10, "saved with corridor=9, here it is 10")
  refuse("tmaze_bakker", 9, "saved from tmaze%-v0, this is tmaze_bakker%-v0")
end)

-- ---- environments with tensors ----

t.test("environment: tensors in and out, and what ended", function()
  local env = envs.new("tmaze", { corridor = 2, num_envs = 3, time_limit = 4 })
  local obs, info = env:reset(1)
  t.eq(table.concat(obs:shape(), ","), "3,16")
  t.eq(info.ended, 0)
  local actions = require("mneme.tensor.tensor").new { shape = { 3 }, dtype = "i32", data = { 3, 3, 2 } }
  local same, reward, terminated, truncated = env:step(actions)
  t.ok(same:data() == obs:data(), "a new tensor at each step")
  t.near(reward:data()[2], -0.1, 1e-7)
  local cue = { env:truth(0).cue, env:truth(1).cue }
  env:step { cue[1], 1 - cue[2], 0 }
  t.eq(info.ended, 2)
  t.eq(terminated:data()[0] + terminated:data()[1] + terminated:data()[2], 2)
  t.eq(info.score:data()[0], 1)
  t.eq(info.score:data()[1], 0)
  t.near(info.ret:data()[0], 3.9, 1e-6)
  t.eq(info.length:data()[1], 2)
  t.eq(info.final_obs:data()[9], 1, "the place in the last observation")
  t.eq(obs:data()[9], 0, "the place in the next one")
  env:step { 0, 0, 0 }
  env:step { 0, 0, 0 }
  t.eq(truncated:data()[2], 1)
  for _, bad in ipairs { { 1, 2 }, { 1, 2, 4 }, { 1, 2, -1 }, { 1, 2, 0.5 }, { 1, 2, "3" }, "up", 3 } do
    t.raises(function() env:step(bad) end, "expected")
  end
  local row = env:save(0)
  env:step { 3, 3, 3 }
  t.eq(env:restore(0, row):data(), obs:data())
  t.eq(env:truth(0).position, 0)
  t.fails(function() env:restore(0, 5) end)
end)

t.test("environment: raw steps leave no garbage", function()
  local r = rig(envs.new("tmaze", { corridor = 5, num_envs = 8 }))
  r.env:reset_raw(r.obs, 1)
  local function run(n) for _ = 1, n do r.env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated) end end
  run(2000)
  collectgarbage()
  collectgarbage "stop"
  local before = collectgarbage "count"
  run(20000)
  local grown = collectgarbage "count" - before
  collectgarbage "restart"
  t.ok(grown < 4, ("%.1f kB of garbage in 20000 steps"):format(grown))
end)

t.test("mneme check env= names a code, number or reward that an environment may not give, in every environment", function()
  for _, e in ipairs(envs.list()) do
    local env = envs.new(e.name, { num_envs = 1 })
    local original = env.again
    local function with(change) env.again = function(...) return { world = change(original(...).world) } end end
    if env.world.codes then
      with(function(world) world.codes = 0 return world end)
      t.raises(function() check_resumable.compare(env, 4, 4) end, "reset gave %d+ in place %d+, expected codes below 0")
    end
    with(function(world)
      local take = world.step
      world.step = function(self, action, obs, reward, ...)
        take(self, action, obs, reward, ...)
        reward[0] = 0 / 0
      end
      return world
    end)
    t.raises(function() check_resumable.compare(env, 4, 4) end, "as the reward, expected")
    env.again = nil
    t.eq((pcall(check_resumable.compare, env, 40, 40)), true, e.name)
  end
end)
