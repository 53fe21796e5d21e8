-- test_tmaze.lua -- the T-Mazes against their rules, written down here a second time from the description
-- of the published environment, and random play against theory and that environment's own figures.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local env_rig = require "tests.support.env_rig"

local C, act, rig, roll = engine.C, env_rig.act, env_rig.rig, env_rig.roll

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
      local env = envs.new(name, { corridor = corridor, distractors = noise, num_envs = 2, time_limit = 400 })
      local r = rig(env)
      env:reset_raw(r.obs, corridor)
      local copies = {}
      for i = 0, 1 do copies[i] = { place = 0, cue = env:truth(i).cue, first = true } end
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
          t.eq(env:truth(i).position, m.place)
          -- mostly to the right, so that long corridors are walked to their end
          r.action[i] = act(i, s, 7) < 4 and 3 or act(i, s + 1, 4)
        end
        env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
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
          if over then t.eq(env.ended.score[i], reward == 4 and 1 or 0) end
          if r.truncated[i] == 1 then t.eq(env.ended.score[i], 0) end
          if over or r.truncated[i] == 1 then
            local last = look(m.place, corridor - 1, m.cue, false)
            for k, x in ipairs(last) do t.eq(env.ended.final_obs[i * r.size + k - 1], x, "final observation") end
            copies[i] = { place = 0, cue = env:truth(i).cue, first = true }
          end
        end
      end
    end
  end)
end

t.test("tmaze: its limits and spaces are those of the paper", function()
  local a, b = envs.new "tmaze", envs.new "tmaze_bakker"
  t.eq(a.observation_space.shape[1], 16)
  t.eq(b.observation_space.shape[1], 9)
  t.eq(a.time_limit, 1000)
  t.eq(b.time_limit, 5000)
  t.eq(table.concat(a.action_space.names, " "), "up down left right")
end)

-- Uniformly random play for `steps` steps: mean and standard error of each figure over the first `episodes`
-- episodes of every environment (all of them finished, so that short episodes are not preferred).
local function random_play(settings, episodes, steps)
  local env = envs.new("tmaze", settings)
  local r, random = rig(env), ffi.new("float[?]", settings.num_envs)
  env:reset_raw(r.obs, 11)
  local sums, squares, count, total = {}, {}, {}, 0
  local ones, noise = 0, 0
  for i = 0, r.n - 1 do count[i] = 0 end
  local function add(key, x) sums[key], squares[key] = (sums[key] or 0) + x, (squares[key] or 0) + x * x end
  for s = 1, steps do
    C.mn_random_uniform(1, 5, s, random, r.n)
    for i = 0, r.n - 1 do r.action[i] = random[i] * 4 end
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    for i = 0, r.n - 1 do
      if r.terminated[i] + r.truncated[i] > 0 then
        if count[i] < episodes then
          total, count[i] = total + 1, count[i] + 1
          add("length", env.ended.length[i])
          add("ret", env.ended.ret[i])
          add("score", env.ended.score[i])
          add("truncated", r.truncated[i])
          add("cue", env:truth(i).cue)
        end
      else
        noise = noise + 6
        for k = 10, 15 do ones = ones + r.obs[i * 16 + k] end
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
    local log, digest = roll(envs.new(id, { corridor = 12, num_envs = 2 }), 1, 400), 7
    for i = 0, 1 do
      for k = 1, #log[i] do digest = (digest * 31 + log[i]:byte(k)) % 2147483647 end
    end
    t.eq(digest, want, id)
  end
end)
