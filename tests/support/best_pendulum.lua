-- best_pendulum.lua -- how to swing up a pendulum with a perfect memory: the speed follows from two exact angles; with noise, particles follow
-- what the observations allow.  The torque that loses least is computed backwards from the end of the episode, on a grid.
local ffi = require "ffi"

local PI, STEP, MOST = math.pi, 0.05, 8
local ANGLES, SPEEDS = 128, 129
local grid = {}                                  -- grid[k]: the least cost of k steps, by angle and speed

local function wrap(angle) return angle - 2 * PI * math.floor((angle + PI) / (2 * PI)) end

local function moved(angle, speed, torque)
  speed = speed + (15 * math.sin(angle) + 3 * torque) * STEP
  speed = speed < -MOST and -MOST or speed > MOST and MOST or speed
  return angle + speed * STEP, speed
end

-- Between the four points of the grid around it.
local function at(costs, angle, speed)
  local x = (angle / (2 * PI) + 0.5) * ANGLES
  local y = (speed + MOST) / (2 * MOST) * (SPEEDS - 1)
  local i, j = math.floor(x), math.floor(y)
  if j > SPEEDS - 2 then j = SPEEDS - 2 end
  local u, v = x - i, y - j
  i = i % ANGLES
  local a, b = i * SPEEDS + j, (i + 1) % ANGLES * SPEEDS + j
  return (1 - u) * ((1 - v) * costs[a] + v * costs[a + 1]) + u * ((1 - v) * costs[b] + v * costs[b + 1])
end

-- Cost of the torque itself and of all that follows.
local function later(costs, angle, speed, torque)
  local a, s = moved(angle, speed, torque)
  return 0.001 * torque * torque + at(costs, a, s)
end

local function costs_of(steps, torques)
  if grid.torques ~= torques then grid = { torques = torques, [0] = ffi.new("float[?]", ANGLES * SPEEDS) } end
  for k = #grid + 1, steps do
    local now, after = ffi.new("float[?]", ANGLES * SPEEDS), grid[k - 1]
    for i = 0, ANGLES - 1 do
      local angle = (i / ANGLES - 0.5) * 2 * PI
      for j = 0, SPEEDS - 1 do
        local speed, least = (2 * j / (SPEEDS - 1) - 1) * MOST, math.huge
        for t = 0, torques - 1 do
          local cost = later(after, angle, speed, 4 * t / (torques - 1) - 2)
          if cost < least then least = cost end
        end
        now[i * SPEEDS + j] = angle * angle + 0.1 * speed * speed + least
      end
    end
    grid[k] = now
  end
  return grid
end

-- The torque that loses least on average over n states, fine between the two neighbours of the best of a few.
local function torque_for(costs, angles, speeds, n, torques)
  local best, least
  local function try(torque)
    local cost = 0
    for i = 0, n - 1 do cost = cost + later(costs, angles[i], speeds[i], torque) end
    if not best or cost < least then best, least = torque, cost end
  end
  for t = 0, torques - 1 do try(4 * t / (torques - 1) - 2) end
  local wide = 2 / (torques - 1)
  for _ = 1, 4 do
    local middle = best
    try(math.max(-2, middle - wide))
    try(math.min(2, middle + wide))
    wide = wide / 2
  end
  return best
end

-- How likely a cosine or sine is seen so, but for a factor; what lies beyond -1 and 1 is seen as these.
local function likely(seen, is, noise)
  local z = math.abs(seen - is) / noise
  local bell = math.exp(-0.5 * z * z)
  if math.abs(seen) < 1 then return bell end
  local t = 1 / (1 + 0.2316419 * z)                                    -- the tail of a normal distribution: Abramowitz and Stegun 26.2.17
  return bell * t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
end

local function normal() return math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * PI * math.random()) end

local PARTICLES, ASKED = 600, 60                 -- ASKED: of them a torque is chosen for

local function cloud()
  local c = { angle = ffi.new("double[?]", PARTICLES), speed = ffi.new("double[?]", PARTICLES), weight = ffi.new("double[?]", PARTICLES),
    angle2 = ffi.new("double[?]", PARTICLES), speed2 = ffi.new("double[?]", PARTICLES) }
  for i = 0, PARTICLES - 1 do c.angle[i], c.speed[i] = 2 * PI * (i / PARTICLES - 0.5), 2 * math.random() - 1 end
  return c
end

-- Particles in proportion to their weights, evenly from a random start, a little apart.
local function drawn(c, angles, speeds, n, apart)
  local sum, mean_s, mean_c, mean_w, spread_a, spread_w = 0, 0, 0, 0, 0, 0
  for i = 0, PARTICLES - 1 do
    local w = c.weight[i]
    sum, mean_w = sum + w, mean_w + w * c.speed[i]
    mean_s, mean_c = mean_s + w * math.sin(c.angle[i]), mean_c + w * math.cos(c.angle[i])
  end
  mean_w = mean_w / sum
  local mean = math.atan2(mean_s, mean_c)
  if apart then
    for i = 0, PARTICLES - 1 do
      spread_a = spread_a + c.weight[i] * wrap(c.angle[i] - mean) ^ 2
      spread_w = spread_w + c.weight[i] * (c.speed[i] - mean_w) ^ 2
    end
    spread_a, spread_w = math.sqrt(spread_a / sum), math.sqrt(spread_w / sum)
  end
  local start, passed, i = math.random(), c.weight[0], 0
  for k = 0, n - 1 do
    while i < PARTICLES - 1 and passed < (k + start) / n * sum do
      i = i + 1
      passed = passed + c.weight[i]
    end
    angles[k], speeds[k] = c.angle[i], c.speed[i]
    if apart then
      angles[k] = angles[k] + apart * spread_a * normal()
      speeds[k] = math.max(-MOST, math.min(MOST, speeds[k] + apart * spread_w * normal()))
    end
  end
end

local function with_noise(noise, limit, costs, torques)
  local clouds, steps = {}, {}
  local angles, speeds = ffi.new("double[?]", ASKED), ffi.new("double[?]", ASKED)
  return function(b, v, o, last)
    if not last then clouds[b], steps[b] = cloud(), 0 end
    local c = clouds[b]
    local sum, squares = 0, 0
    for i = 0, PARTICLES - 1 do
      if last then c.angle[i], c.speed[i] = moved(c.angle[i], c.speed[i], last) end
      local w = likely(v[o], math.cos(c.angle[i]), noise) * likely(v[o + 1], math.sin(c.angle[i]), noise)
      if last then w = w * c.weight[i] end
      c.weight[i] = w + 1e-300
      sum, squares = sum + w, squares + w * w
    end
    for i = 0, PARTICLES - 1 do c.weight[i] = c.weight[i] / (sum + 1e-290) end
    drawn(c, angles, speeds, ASKED)
    if sum * sum < 0.5 * PARTICLES * squares then
      drawn(c, c.angle2, c.speed2, PARTICLES, 0.1)
      c.angle, c.angle2, c.speed, c.speed2 = c.angle2, c.angle, c.speed2, c.speed
      for i = 0, PARTICLES - 1 do c.weight[i] = 1 / PARTICLES end
    end
    steps[b] = steps[b] + 1
    return torque_for(costs[math.max(0, limit - steps[b])], angles, speeds, ASKED, torques)
  end
end

return function(env, torques)
  local limit = env.settings.time_limit
  local noise = env.id:find "^noisy" and ({ easy = 0.1, medium = 0.2, hard = 0.3 })[env.settings.level]
  torques = torques or 9
  local costs = costs_of(limit, torques)
  if noise then return with_noise(noise, limit, costs, torques) end
  local before, steps = {}, {}
  local angles, speeds = ffi.new("double[?]", 9), ffi.new("double[?]", 9)
  return function(b, v, o, last)
    local angle, n = math.atan2(v[o + 1], v[o]), last and 1 or 9
    steps[b] = (last and steps[b] or 0) + 1
    for i = 0, n - 1 do angles[i], speeds[i] = angle, last and wrap(angle - before[b]) / STEP or (i - 4) / 4.5 end
    before[b] = angle
    return torque_for(costs[math.max(0, limit - steps[b])], angles, speeds, n, torques)
  end
end
