-- test_envs.lua -- every environment in engine/envs against the contract of engine/env.h; the T-Mazes
-- against rules written down here a second time; and environments made of Lua functions.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.engine"
local env = require "mneme.env"

local C = engine.C

-- ---- stepping with raw memory ----

-- A deterministic action for a copy and step: fixed, so that two runs do the same.
local function act(copy, step, n) return (copy * 7919 + step * 104729 + math.floor(step / 3) * 31) % 1009 % n end

local function rig(task)
  local n, size = task.num_envs, 1
  for _, k in ipairs(task.observation_space.shape) do size = size * k end
  local u8 = task.observation_space.dtype == "u8"
  return { task = task, n = n, size = size, bytes = size * (u8 and 1 or 4), time = 0,
    obs = ffi.new(u8 and "uint8_t[?]" or "float[?]", n * size), action = ffi.new("int32_t[?]", n), reward = ffi.new("float[?]", n),
    terminated = ffi.new("uint8_t[?]", n), truncated = ffi.new("uint8_t[?]", n) }
end

local function seen(r, i) return ffi.string(ffi.cast("char *", r.obs) + i * r.bytes, r.bytes) end
local function final(r, i) return ffi.string(ffi.cast("const char *", r.task.ended.final_obs) + i * r.bytes, r.bytes) end

-- One step; copy i acts as copy `as[i]` would at step r.time (default: i).
local function step(r, as)
  for i = 0, r.n - 1 do r.action[i] = act(as and as[i] or i, r.time, r.task.action_space.n) end
  r.task:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
  r.time = r.time + 1
end

-- What one copy shows after a step, as a string.
local function glance(r, i) return seen(r, i) .. ("|%.9g|%d|%d"):format(r.reward[i], r.terminated[i], r.truncated[i]) end

-- Reset and step; for each copy everything it showed.
local function roll(task, seed, steps)
  local r, log = rig(task), {}
  task:reset_raw(r.obs, seed)
  for i = 0, r.n - 1 do log[i] = { seen(r, i) } end
  for _ = 1, steps do
    step(r)
    for i = 0, r.n - 1 do log[i][#log[i] + 1] = glance(r, i) end
  end
  for i = 0, r.n - 1 do log[i] = table.concat(log[i], "\n") end
  return log, r
end

-- Follow some copies for a while: what they show, and to what seeds of `act` they listen.
local function follow(r, copies, steps, as)
  local log = {}
  for _ = 1, steps do
    step(r, as)
    for k, i in ipairs(copies) do log[k] = (log[k] or "") .. glance(r, i) .. "\n" end
  end
  return log
end

-- ---- every environment ----

for _, e in ipairs(env.list()) do
  local function make(settings) return env.new(e.name, settings) end

  t.test(e.name .. ": the same seed replays bit for bit, another seed does not", function()
    local a, b, c = roll(make { num_envs = 3 }, 5, 300), roll(make { num_envs = 3 }, 5, 300), roll(make { num_envs = 3 }, 6, 300)
    for i = 0, 2 do
      t.eq(a[i], b[i], "copy " .. i)
      t.ok(a[i] ~= c[i], "another seed gives the same episode")
    end
    t.ok(a[0] ~= a[1] and a[1] ~= a[2], "copies share a stream")
    local d = roll(make { num_envs = 3, seed = 5 }, nil, 300)
    t.eq(d[0], a[0], "the seed of the settings")
  end)

  t.test(e.name .. ": a second reset without a seed goes on, with the seed it starts over", function()
    local task = make { num_envs = 2 }
    local first = roll(task, 9, 100)
    local other = roll(task, nil, 100)
    t.ok(first[0] ~= other[0] and first[1] ~= other[1], "the stream did not go on")
    t.eq(roll(task, 9, 100)[1], first[1])
  end)

  t.test(e.name .. ": a copy's stream does not depend on the number of copies", function()
    local few, many = roll(make { num_envs = 3 }, 2, 60), roll(make { num_envs = 70 }, 2, 60)
    for i = 0, 2 do t.eq(few[i], many[i], "copy " .. i) end
    local seventy_one = roll(make { num_envs = 71 }, 2, 60)
    t.eq(seventy_one[69], many[69], "beyond the first 64 copies")
    local r, all, alike, met = rig(make { num_envs = 130 }), {}, {}, {}
    r.task:reset_raw(r.obs, 2)
    for i = 0, 129 do all[i + 1], alike[i] = i, 0 end
    for i, log in ipairs(follow(r, all, 60, alike)) do
      t.ok(not met[log], ("copies %d and %d share a stream"):format(i - 1, met[log] or 0))
      met[log] = i - 1
    end
  end)

  t.test(e.name .. ": any number of threads gives the same bits", function()
    local dtype, shape, logs = ffi.new "int[1]", ffi.new("int[?]", C.MN_AXES), {}
    local n = 2048
    for k, threads in ipairs { 1, 3 } do
      local ctx = ffi.gc(C.mn_ctx_new("cpu", threads), C.mn_ctx_free)
      local vec = C.mn_vec_new(ctx, C.mn_env_find(e.name), n, 4, nil, -1)
      local bytes = 1
      for a = 0, C.mn_vec_space(vec, dtype, shape) - 1 do bytes = bytes * shape[a] end
      bytes = bytes * (dtype[0] == C.MN_U8 and 1 or 4)
      t.ok(n * (16 + bytes / 4) > 50000, "too little work for several threads")
      local obs, action = ffi.new("char[?]", n * bytes), ffi.new("int32_t[?]", n)
      local reward, a, b = ffi.new("float[?]", n), ffi.new("uint8_t[?]", n), ffi.new("uint8_t[?]", n)
      t.eq(C.mn_vec_reset(vec, 4, obs), 0)
      for s = 1, 40 do
        for i = 0, n - 1 do action[i] = act(i, s, C.mn_vec_actions(vec)) end
        t.eq(C.mn_vec_step(vec, action, obs, reward, a, b), 0)
      end
      logs[k] = ffi.string(obs, n * bytes) .. ffi.string(reward, n * 4) .. ffi.string(a, n) .. ffi.string(b, n)
      C.mn_vec_free(vec)
    end
    t.ok(logs[1] == logs[2], "one thread and three differ")
  end)

  t.test(e.name .. ": a saved copy goes on bit for bit, in its place, in another, in another task", function()
    for _, steps in ipairs { 0, 1, 57, 230 } do
      local task = make { num_envs = 4, time_limit = 90 }
      local _, r = roll(task, 3, steps)
      local bytes, here = task:save(1), seen(r, 1)
      local want = follow(r, { 1 }, 150)[1]
      local function goes_on(where, task_to, to)
        local there = rig(task_to)
        task_to:reset_raw(there.obs, 77)
        step(there)
        task_to:restore(to, bytes, ffi.cast("char *", there.obs) + to * there.bytes)
        t.eq(seen(there, to), here, where .. ": the observation that restore gives")
        t.eq(task_to:save(to), bytes, where .. ": saved again")
        there.time = steps
        t.eq(follow(there, { to }, 150, { [0] = 1, 1, 1, 1, 1 })[1], want, where .. (" after %d steps"):format(steps))
      end
      goes_on("its place", task, 1)
      goes_on("another copy", task, 3)
      goes_on("another task", make { num_envs = 5, time_limit = 90, seed = 40 }, 2)
    end
  end)

  t.test(e.name .. ": a task restored copy by copy needs no reset, and saving is repeatable", function()
    local _, r = roll(make { num_envs = 66 }, 3, 41)
    local again = rig(make { num_envs = 66, seed = 8 })
    for i = 0, 65 do
      if i == 65 then t.raises(function() step(again) end, "before reset") end
      again.task:restore(i, r.task:save(i), ffi.cast("char *", again.obs) + i * again.bytes)
    end
    again.time = r.time
    local a, b = follow(r, { 0, 65 }, 120), follow(again, { 0, 65 }, 120)
    t.eq(a[1], b[1])
    t.eq(a[2], b[2])
    for i = 0, 65 do t.ok(r.task:save(i) == again.task:save(i), "equal runs are saved as different bytes") end
  end)

  t.test(e.name .. ": episodes end as they should: limit, final observation, return, length, score", function()
    local limit, task = 23, make { num_envs = 67, time_limit = 23 }
    local free = rig(make { num_envs = 67, time_limit = 0 })           -- the same without a limit
    t.eq(task.time_limit, limit)
    local r, sums, lengths, ends = rig(task), {}, {}, 0
    task:reset_raw(r.obs, 1)
    free.task:reset_raw(free.obs, 1)
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
            t.ok(#task:save(i) > 0)
          end
        end
        if r.terminated[i] + r.truncated[i] > 0 then
          ends = ends + 1
          t.eq(task.ended.length[i], lengths[i])
          t.near(task.ended.ret[i], sums[i], 1e-4)
          t.ok(task.ended.score[i] >= 0 and task.ended.score[i] <= 1, "score outside 0..1")
          sums[i], lengths[i] = 0, 0
        end
      end
    end
    t.ok(ends >= 67 * 2, "episodes did not end")
  end)

  t.test(e.name .. ": observations keep to the space, something is drawn, facts are numbers", function()
    local task = make { num_envs = 2 }
    local r = rig(task)
    task:reset_raw(r.obs, 1)
    for s = 0, 200 do
      if task.observation_space.dtype == "f32" then
        for k = 0, r.n * r.size - 1 do t.ok(r.obs[k] > -1e6 and r.obs[k] < 1e6, "an observation is not finite") end
      end
      if s % 50 == 0 then
        t.ok(C.mn_canvas_count(task:draw(1)) >= 3, "nothing is drawn")
        local facts = 0
        for name, value in pairs(task:truth(1)) do
          facts = facts + 1
          t.ok(value == value, name .. " is NaN")
        end
        t.ok(facts >= 1, "no facts")
      end
      step(r)
    end
    t.eq(#task.action_space.names, task.action_space.n, "names of actions")
  end)

  t.test(e.name .. ": bad input is refused, and nothing has changed", function()
    local task = make { num_envs = 2 }
    local r = rig(task)
    t.raises(function() step(r) end, "step before reset")
    for _, what in ipairs { "save", "draw", "truth" } do
      t.raises(function() task[what](task, 0) end, what .. " before reset")
    end
    task:reset_raw(r.obs, 1)
    local before = task:save(0) .. task:save(1)
    for _, bad in ipairs { -1, task.action_space.n, 2 ^ 31 - 1 } do
      r.action[0], r.action[1] = 0, bad
      t.raises(function() task:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated) end, "action%[1%]=%-?%d+, expected 0%.%.")
    end
    local bytes = task:save(0)
    local flipped = bytes:sub(1, #bytes - 3) .. string.char((bytes:byte(#bytes - 2) + 1) % 256) .. bytes:sub(-2)
    for _, bad in ipairs { "", "hello", bytes:sub(1, -2), bytes .. "x", flipped, ("\255"):rep(#bytes) } do
      t.raises(function() task:restore(0, bad, r.obs) end, "restore: ")
    end
    for _, bad in ipairs { -1, 2, 0.5, 0 / 0, "0" } do t.raises(function() task:save(bad) end, "expected 0%.%.1") end
    t.eq(task:save(0) .. task:save(1), before, "a refused call changed something")
    for _, bad in ipairs { -1, 0.5, 0 / 0, 2 ^ 53 + 2, 1 / 0 } do
      t.raises(function() make { seed = bad } end, "seed=")
      if bad ~= -1 then t.raises(function() task:reset_raw(r.obs, bad) end, "seed=") end
    end
    for _, bad in ipairs { 0, -1, 1.5, 1e9, 0 / 0, "two" } do t.raises(function() make { num_envs = bad } end, "num_envs=") end
    for _, bad in ipairs { -1, 1.5, "x" } do t.raises(function() make { time_limit = bad } end, "time_limit=") end
    t.raises(function() make { num_enws = 3 } end, "unknown setting of " .. e.name .. ".*num_envs")
    for name, _, lo, hi in e.params:gmatch "([%w_]+)=([%d.]+)%[(.-)%.%.(.-)%]" do
      for _, bad in ipairs { lo - 1, hi + 1, 1e9, -1e300, 0 / 0 } do
        t.raises(function() make { [name] = bad } end, name .. "=.*expected .*from")
      end
      t.raises(function() make { [name] = "long" } end, name .. " is a string")
    end
    task:close()
    t.raises(function() task:reset_raw(r.obs, 1) end, "has been closed")
    t.raises(function() task:save(0) end, "has been closed")
  end)
end

t.test("environments are found by name and version", function()
  t.eq(env.new("tmaze-v0", { num_envs = 1 }).id, "tmaze-v0")
  t.eq(env.new({ "tmaze", corridor = 7 }).settings.corridor, 7)
  t.raises(function() env.new "tmaze-v99" end, "unknown environment 'tmaze%-v99'")
  t.raises(function() env.new "tmase" end, "did you mean 'tmaze'")
  t.raises(function() env.new(nil) end, "unknown environment")
  t.raises(function() env.new("tmaze", 3) end, "settings are a number")
  t.raises(function() env.new("tmaze", { corridor = 9 }):restore(0, "") end, "not a saved environment")
  local small = env.new("tmaze", { corridor = 9 })
  small:reset(1)
  t.raises(function() env.new("tmaze", { corridor = 10 }):restore(0, small:save(0)) end, "saved with corridor=9, here it is 10")
  t.raises(function() env.new("tmaze_bakker", { corridor = 9 }):restore(0, small:save(0)) end, "are of tmaze%-v0, this is tmaze_bakker%-v0")
end)

-- ---- the T-Mazes, from their description ----

local function bits_of(x, n)
  local bits = {}
  for i = n, 1, -1 do bits[i], x = x % 2, math.floor(x / 2) end
  return bits
end

-- Gray code of a place, 8 bits, most significant first: each bit differs from its upper neighbour or not.
local function gray(place)
  local b, g = bits_of(place, 8), {}
  for i = 1, 8 do g[i] = i == 1 and b[1] or (b[i] + b[i - 1]) % 2 end
  return g
end

local looks = {
  tmaze = function(place, _, cue, first)
    local head = first and (cue == 0 and { 0, 1 } or { 1, 0 }) or { 0, 0 }
    for _, bit in ipairs(gray(place)) do head[#head + 1] = bit end
    return head
  end,
  tmaze_bakker = function(place, junction, cue, first)
    if first then return cue == 0 and { 0, 1, 1 } or { 1, 1, 0 } end
    return place == junction and { 0, 1, 0 } or { 1, 0, 1 }
  end,
}

for name, look in pairs(looks) do
  t.test(name .. ": exactly the rules of its description", function()
    for _, case in ipairs { { 2, 6 }, { 3, 0 }, { 10, 6 }, { 17, 64 }, { 160, 6 }, { 256, 33 } } do
      local corridor, noise = case[1], case[2]
      local task = env.new(name, { corridor = corridor, distractors = noise, num_envs = 2, time_limit = 400 })
      local r = rig(task)
      task:reset_raw(r.obs, corridor)
      local copies = {}
      for i = 0, 1 do copies[i] = { place = 0, cue = task:truth(i).cue, first = true } end
      for s = 0, 1500 do
        for i = 0, 1 do
          local m = copies[i]
          local want = look(m.place, corridor - 1, m.cue, m.first)
          t.eq(r.size, #want + noise)
          for k, x in ipairs(want) do t.eq(r.obs[i * r.size + k - 1], x, ("step %d, slot %d"):format(s, k - 1)) end
          for k = #want, r.size - 1 do
            local x = r.obs[i * r.size + k]
            t.ok(x == 0 or x == 1 and not m.first, "a distractor is " .. x)
          end
          t.eq(task:truth(i).position, m.place)
          -- mostly to the right, so that long corridors are walked to their end
          r.action[i] = act(i, s, 7) < 4 and 3 or act(i, s + 1, 4)
        end
        task:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
        for i = 0, 1 do
          local m, a = copies[i], r.action[i]
          local reward, over = -0.1, false
          if m.place == corridor - 1 then
            if a < 2 then reward, over = a == m.cue and 4 or -1, true end
          elseif a == 3 then m.place = m.place + 1
          elseif a == 2 then m.place = math.max(0, m.place - 1)
          end
          m.first = false
          t.near(r.reward[i], reward, 1e-7)
          t.eq(r.terminated[i] == 1, over)
          if over then t.eq(task.ended.score[i], reward == 4 and 1 or 0) end
          if r.truncated[i] == 1 then t.eq(task.ended.score[i], 0) end
          if over or r.truncated[i] == 1 then
            local last = look(m.place, corridor - 1, m.cue, false)
            for k, x in ipairs(last) do t.eq(task.ended.final_obs[i * r.size + k - 1], x, "final observation") end
            copies[i] = { place = 0, cue = task:truth(i).cue, first = true }
          end
        end
      end
    end
  end)
end

t.test("tmaze: its limits and spaces are those of the paper", function()
  local a, b = env.new "tmaze", env.new "tmaze_bakker"
  t.eq(a.observation_space.shape[1], 16)
  t.eq(b.observation_space.shape[1], 9)
  t.eq(a.time_limit, 1000)
  t.eq(b.time_limit, 5000)
  t.eq(table.concat(a.action_space.names, " "), "up down left right")
end)

-- Uniformly random play for `steps` steps: mean and standard error of each figure over the first `episodes`
-- episodes of every copy (all of them finished, so that short episodes are not preferred).
local function random_play(settings, episodes, steps)
  local task = env.new("tmaze", settings)
  local r, random = rig(task), ffi.new("float[?]", settings.num_envs)
  task:reset_raw(r.obs, 11)
  local sums, squares, count, total = {}, {}, {}, 0
  local ones, noise = 0, 0
  for i = 0, r.n - 1 do count[i] = 0 end
  local function add(key, x) sums[key], squares[key] = (sums[key] or 0) + x, (squares[key] or 0) + x * x end
  for s = 1, steps do
    C.mn_random_uniform(1, 5, s, random, r.n)
    for i = 0, r.n - 1 do r.action[i] = random[i] * 4 end
    task:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    for i = 0, r.n - 1 do
      if r.terminated[i] + r.truncated[i] > 0 then
        if count[i] < episodes then
          total, count[i] = total + 1, count[i] + 1
          add("length", task.ended.length[i])
          add("ret", task.ended.ret[i])
          add("score", task.ended.score[i])
          add("truncated", r.truncated[i])
          add("cue", task:truth(i).cue)
        end
      else
        noise, ones = noise + 6, ones + r.obs[i * 16 + 10] + r.obs[i * 16 + 11] + r.obs[i * 16 + 12] + r.obs[i * 16 + 13]
          + r.obs[i * 16 + 14] + r.obs[i * 16 + 15]
      end
    end
  end
  local result = { noise = { ones / noise, 0.5 / math.sqrt(noise) } }
  for key, sum in pairs(sums) do
    local mean = sum / total
    result[key] = { mean, math.sqrt(math.max(0, squares[key] / total - mean * mean) / total) }
  end
  t.eq(total, r.n * episodes, "episodes that finished")
  return result
end

local function within(got, want, what, more)
  t.near(got[1], want, 4 * math.sqrt(got[2] ^ 2 + (more or 0) ^ 2) + 1e-12, what)
end

t.test("tmaze: random play comes to what theory says", function()
  local L = 10
  local got = random_play({ corridor = L, num_envs = 64, time_limit = 0 }, 12, 12000)
  within(got.length, 2 * L * (L - 1) + 2, "length")
  within(got.ret, 1.5 - 0.1 * (2 * L * (L - 1) + 1), "return")
  within(got.score, 0.5, "success")
  within(got.cue, 0.5, "cues")
  within(got.noise, 0.5, "distractors")
end)

t.test("tmaze: random play with the limit comes to the published environment's figures", function()
  local got = random_play({ corridor = 20, num_envs = 128 }, 6, 6400)
  within(got.length, 592, "length", 13)                      -- measured on the original, 592 +- 13
  within(got.score, 0.383, "success", 0.018)
  within(got.truncated, 0.258, "time limits", 0.016)
end)

-- What a version does may never change: a digest of a rollout, whole numbers throughout.
t.test("tmaze-v0, tmaze_bakker-v0: their rollouts are those of the day they were made", function()
  local pinned = { ["tmaze-v0"] = 1786693720, ["tmaze_bakker-v0"] = 91228138 }
  for id, want in pairs(pinned) do
    local log, digest = roll(env.new(id, { corridor = 12, num_envs = 2 }), 1, 400), 7
    for i = 0, 1 do
      for k = 1, #log[i] do digest = (digest * 31 + log[i]:byte(k)) % 2147483647 end
    end
    t.eq(digest, want, id)
  end
end)

-- ---- random numbers ----

t.test("random numbers: Philox's published answer, prefixes, moments", function()
  local n = 200000
  local a, b = ffi.new("float[?]", n), ffi.new("float[?]", n)
  C.mn_random_uniform(0, 0, 0, a, 4)                         -- Random123's kat_vectors: zero key, zero counter
  for k, word in ipairs { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } do
    t.eq(a[k - 1], math.floor(word / 256) / 2 ^ 24, "word " .. k - 1)
  end
  for _, draw in ipairs { "mn_random_uniform", "mn_random_normal" } do
    C[draw](3, 1, 2, a, n)
    b[5] = 99
    C[draw](3, 1, 2, b, 5)
    for i = 0, 4 do t.eq(a[i], b[i], draw .. ": a shorter draw") end
    t.eq(b[5], 99, draw .. ": wrote too much")
    for _, other in ipairs { { 4, 1, 2 }, { 3, 2, 2 }, { 3, 1, 3 } } do
      C[draw](other[1], other[2], other[3], b, 8)
      t.ok(a[0] ~= b[0] and a[1] ~= b[1], draw .. ": two keys, one stream")
    end
    for _, bad in ipairs { 0, -1, 0 / 0 } do C[draw](1, 1, 1, nil, bad) end
  end
  local m1, m2, m4 = 0, 0, 0
  C.mn_random_normal(1, 0, 0, a, n)
  for i = 0, n - 1 do m1, m2, m4 = m1 + a[i], m2 + a[i] ^ 2, m4 + a[i] ^ 4 end
  t.near(m1 / n, 0, 4 / math.sqrt(n), "mean")
  t.near(m2 / n, 1, 4 * math.sqrt(2 / n), "variance")
  t.near(m4 / n, 3, 4 * math.sqrt(96 / n), "fourth moment")
end)

-- ---- tasks with tensors ----

t.test("task: tensors in and out, and what ended", function()
  local task = env.new("tmaze", { corridor = 2, num_envs = 3, time_limit = 4 })
  local obs, info = task:reset(1)
  t.eq(table.concat(obs:shape(), ","), "3,16")
  t.eq(info.ended, 0)
  local actions = require("mneme.tensor").new { shape = { 3 }, dtype = "i32", data = { 3, 3, 2 } }
  local same, reward, terminated, truncated = task:step(actions)
  t.ok(same:data() == obs:data(), "a new tensor at each step")
  t.near(reward:data()[2], -0.1, 1e-7)
  local cue = { task:truth(0).cue, task:truth(1).cue }
  task:step { cue[1], 1 - cue[2], 0 }
  t.eq(info.ended, 2)
  t.eq(terminated:data()[0] + terminated:data()[1] + terminated:data()[2], 2)
  t.eq(info.score:data()[0], 1)
  t.eq(info.score:data()[1], 0)
  t.near(info.ret:data()[0], 3.9, 1e-6)
  t.eq(info.length:data()[1], 2)
  t.eq(info.final_obs:data()[9], 1, "the place in the last observation")
  t.eq(obs:data()[9], 0, "the place in the next one")
  task:step { 0, 0, 0 }
  task:step { 0, 0, 0 }
  t.eq(truncated:data()[2], 1)
  for _, bad in ipairs { { 1, 2 }, { 1, 2, 4 }, { 1, 2, -1 }, { 1, 2, 0.5 }, { 1, 2, "3" }, "up", 3 } do
    t.raises(function() task:step(bad) end, "expected")
  end
  local row = task:save(0)
  task:step { 3, 3, 3 }
  t.eq(task:restore(0, row):data(), obs:data())
  t.eq(task:truth(0).position, 0)
  t.raises(function() task:restore(0, 5) end, "expected the string of save")
end)

t.test("task: raw steps leave no garbage", function()
  local r = rig(env.new("tmaze", { corridor = 5, num_envs = 8 }))
  r.task:reset_raw(r.obs, 1)
  local function run(n) for _ = 1, n do r.task:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated) end end
  run(2000)
  collectgarbage()
  collectgarbage "stop"
  local before = collectgarbage "count"
  run(20000)
  local grown = collectgarbage "count" - before
  collectgarbage "restart"
  t.ok(grown < 4, ("%.1f kB of garbage in 20000 steps"):format(grown))
end)

-- ---- environments made of Lua functions ----

-- Repeat the number seen first; the score is the share of right answers.
local function repeat_first(more)
  local spec = {
    observation = { 2 }, actions = { "low", "high" }, name = "repeat_first", num_envs = 3, time_limit = 20,
    reset = function(self, random)
      self.first, self.right, self.steps = random(2) - 1, 0, 0
      return { self.first, 1 }
    end,
    step = function(self, action, random)
      self.steps = self.steps + 1
      local good = action == self.first
      self.right = self.right + (good and 1 or 0)
      return { random(), 0 }, good and 1 or -1, self.steps == 6, self.right / 6
    end,
    draw = function(self, view) view:rect(0, 0, 1, 1, self.first == 1 and 0xFF or 0xFFFF) end,
    truth = function(self) return { first = self.first } end,
  }
  for key, value in pairs(more or {}) do spec[key] = value end
  return env.new(spec)
end

t.test("Lua environment: the same contract", function()
  local task = repeat_first()
  t.eq(task.id, "repeat_first-v0")
  t.eq(table.concat(task.action_space.names, " "), "low high")
  local obs = task:reset(4)
  local first = obs:data()[0]
  t.eq(task:truth(0).first, first)
  t.eq(C.mn_canvas_count(task:draw(0)), 1)
  for s = 1, 6 do
    local _, reward, terminated, truncated, info = task:step { first, 0, 1 }
    t.eq(reward:data()[0], 1)
    t.eq(terminated:data()[0], s == 6 and 1 or 0)
    t.eq(truncated:data()[0], 0)
    t.eq(info.ended, s == 6 and 3 or 0)
    if s == 6 then
      t.eq(info.score:data()[0], 1)
      t.eq(info.ret:data()[0], 6)
      t.eq(info.length:data()[0], 6)
      t.eq(info.final_obs:data()[1], 0)
      t.eq(obs:data()[1], 1, "the next episode's first observation")
    end
  end
  local limited = repeat_first { time_limit = 4 }
  limited:reset(4)
  for s = 1, 4 do t.eq(select(4, limited:step { 0, 0, 0 }):data()[0], s == 4 and 1 or 0, "truncated") end
  local plain = env.new { observation = { 2 }, actions = 2, reset = function() return { 0, 1 } end, step = function() return { 0, 0 }, 0 end }
  plain:reset(1)
  t.eq(C.mn_canvas_count(plain:draw(0)), 1, "without a draw function the observation is drawn")
end)

t.test("Lua environment: seeds, copies, saving", function()
  local a, b, c = roll(repeat_first(), 5, 200), roll(repeat_first { num_envs = 9 }, 5, 200), roll(repeat_first(), 6, 200)
  for i = 0, 2 do t.eq(a[i], b[i]) end
  t.ok(a[0] ~= c[0] and a[0] ~= a[1], "streams are shared")
  for _, steps in ipairs { 0, 3, 70 } do
    local task = repeat_first()
    local _, r = roll(task, 5, steps)
    local bytes, want = task:save(1), follow(r, { 1 }, 100)[1]
    local other = rig(repeat_first { seed = 9 })
    other.task:restore(0, bytes, other.obs)
    other.task:restore(1, bytes, other.obs + 2)
    other.task:restore(2, bytes, other.obs + 4)
    other.time = steps
    t.eq(follow(other, { 2 }, 100, { [0] = 1, 1, 1 })[1], want)
  end
  local odd = env.new { observation = { 1 }, actions = 1, num_envs = 1,
    reset = function(self) self.t = { 1 / 0, -1 / 0, "a;b", [0.1] = true, deep = { x = false } } return { 0 } end,
    step = function(self) return { self.t[0.1] and self.t.deep.x == false and self.t[3] == "a;b" and self.t[2] == -1 / 0 and 1 or 0 }, 0 end }
  odd:reset(1)
  odd:restore(0, odd:save(0))
  t.eq(odd:step({ 0 }):data()[0], 1)
end)

t.test("Lua environment: mistakes are told", function()
  local function broken(key, value) return function() local task = repeat_first { [key] = value } task:reset(1) task:step { 0, 0, 0 } end end
  t.raises(broken("reset", function() return { 1 } end), "reset gave a list of 1 as the observation, expected a list of 2")
  t.raises(broken("reset", function() end), "reset gave a nil as the observation")
  t.raises(broken("step", function() return { 1, 2 } end), "a nil as the reward")
  t.raises(broken("step", function() return { 1, "x" }, 0 end), "a string in place 2")
  t.raises(broken("reset", 3), "reset is a number, expected a function")
  t.raises(broken("observation", {}), "empty list")
  t.raises(broken("actions", 0), "actions=0")
  t.raises(broken("dtype", "f64"), "unknown dtype")
  t.raises(broken("aktions", 3), "did you mean 'actions'")
  t.raises(broken("time_limit", -1), "time_limit=%-1")
  t.raises(broken("seed", 0.5), "seed=0.5")
  local task = repeat_first()
  t.raises(function() task:step { 0, 0, 0 } end, "before reset")
  task:reset(1)
  t.raises(function() task:step { 0, 0, 2 } end, "action%[2%]=2")
  local bytes = task:save(0)
  for _, bad in ipairs { "", "mn_lua1", bytes:sub(1, -2), bytes:sub(1, 40), "mn_lua1{n1;" } do
    t.raises(function() task:restore(0, bad) end, "restore: ")
  end
  t.raises(function() repeat_first { name = "other" }:restore(0, bytes) end, "are of repeat_first%-v0")
  local closure = repeat_first { reset = function(self) self.f = print return { 0, 0 } end }
  closure:reset(1)
  t.raises(function() closure:save(0) end, "self%.self%.f is a function")
end)
