-- naive_gtrxl.lua -- a GTrXL agent in loops of doubles, from the papers' equations alone: one step at a time, from a memory that is
-- a list of what each layer was given.  Kept to M entries after every step it acts as the released agents do; kept whole it is
-- the released update of a row (see Parisotto et al. 2020; Dai et al. 2019, section 3.3; Mnih et al. 2016).
local naive = {}

-- W x + b, of W [rows, #x] that lies row by row; b may be missing.
local function dense(p, name, x)
  local w, b, n, y = p[name .. ".weight"], p[name .. ".bias"], #x, {}
  for i = 0, #w / n - 1 do
    local sum = b and b[i + 1] or 0
    for j = 1, n do sum = sum + w[i * n + j] * x[j] end
    y[i + 1] = sum
  end
  return y
end

local function each(f, x, y)
  local out = {}
  for i = 1, #x do out[i] = f(x[i], y and y[i]) end
  return out
end

local function relu(x) return math.max(0, x) end
local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
local function tanh(x) return 2 * sigmoid(2 * x) - 1 end
local function plus(x, y) return x + y end
local function times(x, y) return x * y end

local function norm(p, name, x, eps)
  local mean, var, n = 0, 0, #x
  for i = 1, n do mean = mean + x[i] / n end
  for i = 1, n do var = var + (x[i] - mean) ^ 2 / n end
  local y = {}
  for i = 1, n do y[i] = (x[i] - mean) / math.sqrt(var + eps) * p[name .. ".weight"][i] + p[name .. ".bias"][i] end
  return y
end

-- r = sigma(W_r y + U_r x), z = sigma(W_z y + U_z x - b), g = (1-z) x + z tanh(W_g y + U_g (r x)).
local function gate(p, name, x, y)
  local function sum(letter, of_x) return each(plus, dense(p, name .. ".w_" .. letter, y), dense(p, name .. ".u_" .. letter, of_x)) end
  local r = each(sigmoid, sum("r", x))
  local z = each(function(s, b) return sigmoid(s - b) end, sum("z", x), p[name .. ".bias"])
  local new, out = each(tanh, sum("g", each(times, r, x))), {}
  for i = 1, #x do out[i] = (1 - z[i]) * x[i] + z[i] * new[i] end
  return out
end

local function place(d, distance)
  local y = {}
  for i = 0, d / 2 - 1 do
    local angle = distance * 10000 ^ (-2 * i / d)
    y[i + 1], y[d / 2 + i + 1] = math.sin(angle), math.cos(angle)
  end
  return y
end

-- What layer n reads for its input x, of x and the earlier inputs `before`, oldest first.
local function attention(p, cfg, n, before, x)
  local prefix, H, K = ("core.layers.%d.attn."):format(n), cfg.n_heads, cfg.d_head
  local q, read = dense(p, prefix .. "q", x), {}
  local scores, values = {}, {}
  for j = 1, #before + 1 do
    local normed = norm(p, ("core.layers.%d.norm1"):format(n), before[j] or x, cfg.ln_eps)
    local k, r = dense(p, prefix .. "k", normed), dense(p, prefix .. "pos", place(cfg.d_model, #before + 1 - j))
    values[j] = dense(p, prefix .. "v", normed)
    for h = 0, H - 1 do
      local score = 0
      for i = h * K + 1, h * K + K do score = score + (q[i] + p["core.u"][i]) * k[i] + (q[i] + p["core.v"][i]) * r[i] end
      scores[h] = scores[h] or {}
      scores[h][j] = score / math.sqrt(K)
    end
  end
  for h = 0, H - 1 do
    local top, sum = -math.huge, 0
    for j = 1, #scores[h] do top = math.max(top, scores[h][j]) end
    for j = 1, #scores[h] do sum = sum + math.exp(scores[h][j] - top) end
    for i = h * K + 1, h * K + K do
      read[i] = 0
      for j = 1, #scores[h] do read[i] = read[i] + math.exp(scores[h][j] - top) / sum * values[j][i] end
    end
  end
  return dense(p, prefix .. "out", read)
end

---One step of one environment.
---@param p table<string, number[]> the agent's parameters
---@param cfg table of the core
---@param memory table[] inputs of each layer, from 0: changed to what it is after the step
---@param x number[] observation
---@param reset boolean the memory is cleared before it
---@param most number entries that a memory keeps
---@return number[] logits
---@return number value
function naive.step(p, cfg, memory, x, reset, most)
  local e = each(relu, dense(p, "core.embed", x))
  for n = 0, cfg.n_layers - 1 do
    local layer, before = ("core.layers.%d."):format(n), reset and {} or memory[n]
    local h = gate(p, layer .. "gate1", e, each(relu, attention(p, cfg, n, before, e)))
    local hidden = each(relu, dense(p, layer .. "ffn.0", norm(p, layer .. "norm2", h, cfg.ln_eps)))
    memory[n] = { unpack(before, math.max(1, #before + 2 - most)) }
    table.insert(memory[n], e)
    e = gate(p, layer .. "gate2", h, each(relu, dense(p, layer .. "ffn.1", hidden)))
  end
  local function head(name) return dense(p, name .. ".1", each(tanh, dense(p, name .. ".0", e))) end
  return head "actor", head "critic"[1]
end

---Steps of some environments one after another.
---@param memory table[] by environment: changed
---@param x number[][][] observations, [row][environment]
---@param resets boolean[][]
---@return number[][][] logits [row][environment][action]
---@return number[][] values
function naive.run(p, cfg, memory, x, resets, most)
  local logits, values = {}, {}
  for row = 1, #x do
    logits[row], values[row] = {}, {}
    for b = 1, #x[row] do logits[row][b], values[row][b] = naive.step(p, cfg, memory[b], x[row][b], resets[row][b], most) end
  end
  return logits, values
end

---G[t] = r[t] + gamma (1 - done[t+1]) ((1 - lambda) V[t+1] + lambda G[t+1]), and G[T] = V[T].
function naive.returns(values, rewards, done, gamma, lambda)
  local G = { [#values] = values[#values] }
  for row = #values - 1, 1, -1 do
    G[row] = {}
    for b = 1, #values[row] do
      local on = done[row + 1][b] and 0 or gamma
      G[row][b] = rewards[row][b] + on * ((1 - lambda) * values[row + 1][b] + lambda * G[row + 1][b])
    end
  end
  return G
end

---The loss of A2C; returns and advantages are constants.
---@param advantages number[][]
function naive.loss(logits, values, actions, G, advantages, entropy_coef, value_coef)
  local actor, value, entropy, n = 0, 0, 0, 0
  for row = 1, #actions do
    for b = 1, #actions[row] do
      local z, sum = logits[row][b], 0
      for a = 1, #z do sum = sum + math.exp(z[a]) end
      local log_sum = math.log(sum)
      actor = actor - (z[actions[row][b]] - log_sum) * advantages[row][b]
      for a = 1, #z do entropy = entropy - math.exp(z[a] - log_sum) * (z[a] - log_sum) end
      value, n = value + (G[row][b] - values[row][b]) ^ 2, n + 1
    end
  end
  return actor / n - entropy_coef * entropy / n + value_coef * value / n
end

return naive
