-- test_cartpole.lua -- noisy_cartpole: its physics step for step against Gymnasium's, its noise, random play and a
-- player that balances against POPGym's figures.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local registry = require "mneme.base.registry"
local safetensors = require "mneme.tensor.safetensors"
local env_rig = require "tests.support.env_rig"

local C, rig = engine.C, env_rig.rig

local function make(settings) return envs.new("noisy_cartpole", settings) end

-- Episodes of at most 200 steps: a falling pole doubles a difference every ten steps or so, and after 300 the last bit
-- of a double shows in a float.
t.test("noise=0 velocities=1 is CartPole-v1: 12,000 steps as Gymnasium made them", function()
  local file = safetensors.read(registry.root .. "tests/fixtures/envs/cartpole.safetensors")
  local actions, want, ended = file.tensors.action, file.tensors.obs, file.tensors.ended
  local env = make { noise = 0, velocities = 1, num_envs = 1, time_limit = 200, seed = tonumber(file.metadata.seed) }
  local r, exact, fallen, limits = rig(env), 0, 0, 0
  t.eq(actions.count, 12000)
  env:reset_raw(r.obs)
  for s = 0, actions.count - 1 do
    r.action[0] = actions.data[s]
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    local over = r.terminated[0] + 2 * r.truncated[0]
    local seen = over > 0 and env.ended.final_obs or r.obs
    t.eq(over, ended.data[s], "the end at step " .. s)
    t.eq(r.reward[0], 1)
    for k = 0, 3 do
      local x = want.data[4 * s + k]
      t.near(seen[k], x, 1e-6 * math.abs(x) + 1e-7, ("number %d at step %d"):format(k, s))
      exact = exact + (seen[k] == x and 1 or 0)
    end
    fallen, limits = fallen + r.terminated[0], limits + r.truncated[0]
  end
  t.ok(exact >= 0.998 * 48000, exact .. " of 48000 numbers are the same float")
  t.ok(fallen > 400 and limits >= 5, ("%d episodes ended by a fall, %d by the limit"):format(fallen, limits))
end)

local function within(got, want, error, what) t.near(got, want, 4 * error + 1e-9, what) end

-- Sums of x and x^2 as they come.
local function sums() return { n = 0, x = 0, xx = 0 } end
local function add(s, x) s.n, s.x, s.xx = s.n + 1, s.x + x, s.xx + x * x end
local function mean(s) return s.x / s.n end
local function sd(s) return math.sqrt(s.xx / s.n - mean(s) ^ 2) end

-- 100,000 random episodes, and the same without noise, which shows the state.
local function random_play(noise)
  local copies, each = 1000, 100
  local noisy, clean = rig(make { noise = noise, num_envs = copies }), rig(make { noise = 0, num_envs = copies })
  local count, random = ffi.new("int[?]", copies), ffi.new("float[?]", copies)
  local got = { length = sums(), ret = sums(), x = sums(), angle = sums(), clipped = 0, seen = 0 }
  local left, step = copies * each, 0
  noisy.env:reset_raw(noisy.obs, 3)
  clean.env:reset_raw(clean.obs, 3)
  while left > 0 do
    C.mn_random_uniform(1, 7, step, random, copies)
    step = step + 1
    for _, r in ipairs { noisy, clean } do
      for i = 0, copies - 1 do r.action[i] = random[i] * 2 end
      r.env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    end
    local last, true_last = noisy.env.ended.final_obs, clean.env.ended.final_obs
    for i = 0, copies - 1 do
      if count[i] < each then
        local over = noisy.terminated[i] + noisy.truncated[i] > 0
        local see, is = over and last or noisy.obs, over and true_last or clean.obs
        add(got.x, see[2 * i] - is[2 * i])
        add(got.angle, see[2 * i + 1] - is[2 * i + 1])
        got.seen = got.seen + 1
        if math.abs(see[2 * i + 1]) >= 0.41887 then got.clipped = got.clipped + 1 end
        if over then
          count[i], left = count[i] + 1, left - 1
          add(got.length, noisy.env.ended.length[i])
          add(got.ret, noisy.env.ended.ret[i])
          if noisy.env.ended.score[i] ~= clean.env.ended.score[i] then error "noise changes the physics" end
        end
      end
    end
  end
  return got
end

-- 20,000 episodes of POPGym at each level: share of angles that were clipped, its standard error, sd of the noise in
-- the angle after clipping.  Lengths are of the same physics: 22.293 +- 0.042, of 80,000 episodes.
local popgym = {
  { noise = 0.1, clipped = 0.00270, error = 0.00008, angle = 0.0997 },
  { noise = 0.2, clipped = 0.06210, error = 0.00037, angle = 0.1895 },
  { noise = 0.3, clipped = 0.18692, error = 0.00059, angle = 0.2521 },
}

for _, want in ipairs(popgym) do
  t.test(("noise=%g: 100,000 random episodes come to POPGym's figures"):format(want.noise), function()
    local got = random_play(want.noise)
    local error = sd(got.length) / math.sqrt(got.length.n)
    t.eq(got.length.n, 100000)
    within(mean(got.length), 22.293, math.sqrt(error ^ 2 + 0.042 ^ 2), "length")
    within(mean(got.ret), mean(got.length) / 200, 1e-6, "return")
    within(mean(got.x), 0, want.noise / math.sqrt(got.x.n), "mean of the noise")
    within(sd(got.x), want.noise, want.noise / math.sqrt(2 * got.x.n), "sd of the noise in x")
    within(sd(got.angle), want.angle, 0.0005, "sd of the noise in the angle")
    within(got.clipped / got.seen, want.clipped, math.sqrt(2) * want.error, "clipped")
  end)
end

-- The noise itself, where nothing is clipped: all four numbers of first observations and of later ones.
local function noise_of(copies, steps, f)
  local noise = 0.001
  local a, b = rig(make { noise = noise, velocities = 1, num_envs = copies }), rig(make { noise = 0, velocities = 1, num_envs = copies })
  for _, r in ipairs { a, b } do r.env:reset_raw(r.obs, 6) end
  for s = 0, steps do
    for i = 0, copies - 1 do f(s, i, a.obs + 4 * i, b.obs + 4 * i, noise) end
    for _, r in ipairs { a, b } do env_rig.step(r) end
  end
end

t.test("the noise is normal: its moments, its tails, and independent in every way", function()
  local beyond, got, cross, lag, first = { 0, 0, 0, 0 }, sums(), sums(), sums(), sums()
  local last, fourth = ffi.new("double[?]", 4000), 0
  noise_of(4000, 100, function(s, i, see, is, noise)
    local z = {}
    for k = 0, 3 do
      z[k] = (see[k] - is[k]) / noise
      add(got, z[k])
      fourth = fourth + z[k] ^ 4
      if s == 0 then add(first, z[k]) end
      for m = 1, 4 do if math.abs(z[k]) > m then beyond[m] = beyond[m] + 1 end end
    end
    add(cross, z[0] * z[2])
    add(cross, z[0] * z[1])
    add(cross, z[1] * z[3])
    if s > 0 then add(lag, z[2] * last[i]) end
    last[i] = z[2]
  end)
  local n = got.n
  within(mean(got), 0, 1 / math.sqrt(n), "mean")
  within(sd(got), 1, 1 / math.sqrt(2 * n), "sd")
  within(fourth / n, 3, math.sqrt(96 / n), "fourth moment")
  within(sd(first), 1, 1 / math.sqrt(2 * first.n), "sd of the first observations")
  within(mean(cross), 0, 1 / math.sqrt(cross.n), "two numbers of a step")
  within(mean(lag), 0, 1 / math.sqrt(lag.n), "a number and the one before")
  for m, p in ipairs { 0.3173105, 0.0455003, 0.0026998, 0.00006334 } do
    within(beyond[m] / n, p, math.sqrt(p * (1 - p) / n), ("beyond %d sd"):format(m))
  end
end)

t.test("episodes begin within 0.05 of the middle, uniformly; bounds are Gymnasium's", function()
  local r, got = rig(make { noise = 0, velocities = 1, num_envs = 20000 }), sums()
  r.env:reset_raw(r.obs, 8)
  for k = 0, 4 * r.n - 1 do
    t.ok(math.abs(r.obs[k]) <= 0.05, "beyond 0.05")
    add(got, r.obs[k])
  end
  within(mean(got), 0, 0.1 / math.sqrt(12 * got.n), "mean")
  within(sd(got), 0.1 / math.sqrt(12), 0.1 / math.sqrt(12) * math.sqrt(0.2 / got.n), "sd")
end)

-- Who sees the whole state balances for ever: lean with the pole, and push back towards the middle.
t.test("a player that sees the state scores 1, at the limit; one that sees noisy positions alone does not", function()
  for _, case in ipairs { { 0, 1, 500, 500 }, { 0, 0, 200, 1 }, { 0.1, 0, 200, 1 }, { 0.3, 0, 200, 1 } } do
    local noise, velocities, limit, ret = case[1], case[2], case[3], case[4]
    local r, ends, blind = rig(make { noise = noise, velocities = velocities, num_envs = 20 }), 0, sums()
    t.eq(r.env.time_limit, limit)
    t.eq(r.env.observation_space.shape[1], velocities == 1 and 4 or 2)
    r.env:reset_raw(r.obs, 5)
    for _ = 1, limit do
      for i = 0, r.n - 1 do
        local now = r.env:truth(i)
        r.action[i] = now.angle + 0.4 * now.angle_dot + 0.05 * now.x + 0.1 * now.x_dot > 0 and 1 or 0
      end
      r.env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
      for i = 0, r.n - 1 do ends = ends + r.terminated[i] end
    end
    t.eq(ends, 0, "the pole fell")
    for i = 0, r.n - 1 do
      t.eq(r.truncated[i], 1)
      t.eq(r.env.ended.score[i], 1)
      t.near(r.env.ended.ret[i], ret, 1e-4)
    end
    for _ = 1, 400 do
      for i = 0, r.n - 1 do r.action[i] = r.obs[i * r.size + r.size / 2] > 0 and 1 or 0 end
      r.env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
      for i = 0, r.n - 1 do if r.terminated[i] == 1 then add(blind, r.env.ended.score[i]) end end
    end
    t.ok(mean(blind) < 0.5, ("without velocities: %.2f"):format(mean(blind)))
  end
end)
