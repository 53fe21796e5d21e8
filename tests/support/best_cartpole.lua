-- best_cartpole.lua -- how to balance a pole that is seen with noise with a perfect memory: a Kalman filter, which knows the physics and that
-- observations end at bounds, and a push towards where a weighted sum of the state falls.  The weights were searched for.
local X, V, ANGLE, TURN = 1, 2, 3, 4
local TAU = 0.02
local linear = { { 1, TAU, 0, 0 }, { 0, 1, -0.7171 * TAU, 0 }, { 0, 0, 1, TAU }, { 0, 0, 15.776 * TAU, 1 } }   -- of small angles

-- Gymnasium's equations, by Euler's rule.
local function moved(s, push)
  local sine, cosine, force = math.sin(s[ANGLE]), math.cos(s[ANGLE]), push == 1 and 10 or -10
  local total = (force + 0.05 * s[TURN] ^ 2 * sine) / 1.1
  local turn = (9.8 * sine - cosine * total) / (0.5 * (4 / 3 - 0.1 / 1.1 * cosine * cosine))
  local pull = total - 0.05 / 1.1 * turn * cosine
  return { s[X] + TAU * s[V], s[V] + TAU * pull, s[ANGLE] + TAU * s[TURN], s[TURN] + TAU * turn }
end

local function spread(p)
  local half, out = {}, {}
  for i = 1, 4 do
    half[i] = {}
    for j = 1, 4 do
      half[i][j] = 0
      for k = 1, 4 do half[i][j] = half[i][j] + linear[i][k] * p[k][j] end
    end
  end
  for i = 1, 4 do
    out[i] = {}
    for j = 1, 4 do
      out[i][j] = 0
      for k = 1, 4 do out[i][j] = out[i][j] + half[i][k] * linear[j][k] end
    end
  end
  return out
end

local function bell(z) return math.exp(-0.5 * z * z) * 0.3989422804 end

-- The mean of a normal distribution's mass beyond z; its tail: Abramowitz and Stegun 26.2.17.
local function mean_beyond(z)
  local t = 1 / (1 + 0.2316419 * math.abs(z))
  local tail = bell(z) * t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return z > 6 and z + 1 / z or bell(z) / (z < 0 and 1 - tail or tail)
end

-- What one observation says of the state: of one at its bound, that it lies there or beyond.
local function learn(m, i, seen, bound, variance)
  local s, p, gain = m.state, m.spread, {}
  local total, off, share = p[i][i] + variance, seen - s[i], 1         -- share: of what an exact observation would take from the spread
  if bound and math.abs(seen) >= bound - 1e-6 then
    local deviation, side = math.sqrt(total), seen > 0 and 1 or -1
    local z = (bound - side * s[i]) / deviation
    local mean = mean_beyond(z)
    off, share = side * mean * deviation, mean * (mean - z)
  end
  for k = 1, 4 do gain[k] = p[k][i] / total end
  for k = 1, 4 do s[k] = s[k] + gain[k] * off end
  for a = 1, 4 do for b = 1, 4 do p[a][b] = p[a][b] - share * gain[a] * gain[b] * total end end
end

local levels = { easy = 0.1, medium = 0.2, hard = 0.3 }

return function(env)
  local noise, all = env.settings.noise or levels[env.settings.level], env.settings.velocities == 1
  local known, start = {}, 0.05 ^ 2 / 3
  local weights = noise < 0.15 and { 0.014, 0.05, 1, 0.16 } or { 0.016, 0.02, 1, 0.22 }
  return function(b, v, o, last)
    local m = known[b]
    if last then
      m.state, m.spread = moved(m.state, last), spread(m.spread)
    else
      m = { state = { 0, 0, 0, 0 }, spread = { { start, 0, 0, 0 }, { 0, start, 0, 0 }, { 0, 0, start, 0 }, { 0, 0, 0, start } } }
      known[b] = m
    end
    learn(m, X, v[o], 4.8, noise ^ 2)
    learn(m, ANGLE, v[o + (all and 2 or 1)], 24 * math.pi / 180, noise ^ 2)
    if all then
      learn(m, V, v[o + 1], nil, noise ^ 2)
      learn(m, TURN, v[o + 3], nil, noise ^ 2)
    end
    local sum = 0
    for k = 1, 4 do sum = sum + weights[k] * m.state[k] end
    return sum > 0 and 1 or 0
  end
end
