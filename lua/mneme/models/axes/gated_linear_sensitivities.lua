-- gated_linear_sensitivities.lua -- exact credit in the gated linear family (see exact_credit.lua): the rows that feed each element of a state.
--   a vector of values   v, beta                        v_m = (1-beta) v_m + w_m beta v
--   a vector of keys     k, p_k, gamma, p_gamma         k_m = (1-gamma) k_m + w_m gamma k,  s likewise with w = 1
--   a matrix             all of them                    C = (1-beta)(1-gamma)^T C + (beta v)(gamma k)^T
-- Queries have no past.  w_m is the wave of a channel: cos(omega_m tau), or a sine.
local feature_maps = require "mneme.models.axes.feature_maps"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local credit = {}

-- omega_m tau of stored channel m over 2 pi is step tau / period: engine/ops/agalite.c.
local function channel(cfg, m)
  local r = cfg.r
  if cfg.form == "code" then return r == 1 and 1 or 2 * m - (r - 1), r == 1 and 2 or 2 * (r - 1) end
  local cosines = math.floor(r / 2) + 1
  if cfg.form == "paper" or m < cosines then return m, r end
  return m - cosines + 1, r, true
end

-- The wave of channel m at every step, [T,B,1]; steps: 1, 2, ... T, [T,1].
local function wave(cfg, m, tick, steps)
  local step, period, sine = channel(cfg, m)
  local turns = (steps + ops.reshape(tick, { d0 = 1, d1 = tick:size() })) * step
  turns = turns - ops.floor(turns / period) * period
  local angle = turns * (2 * math.pi / period)
  local y = sine and ops.sin(angle) or ops.cos(angle)
  local shape = y:shape()
  return ops.reshape(y, { d0 = shape[1], d1 = shape[2], d2 = 1 })
end

local function counted(T)
  local t = tensor.new { shape = { T, 1 } }
  for i = 0, T - 1 do t:data()[i] = i + 1 end
  return t
end

---Of one layer.
---@param K integer numbers of a key
---@param p table<string, Module> its projections by name
---@param prefix string of its states
---@return table[] groups
function credit.groups(cfg, K, p, prefix)
  local H, V, D = cfg.n_heads, cfg.d_head, feature_maps.rows(cfg)
  local act = feature_maps.act(cfg)
  local groups = {}
  local of_head = p.beta and not p.gamma and p.beta.weight:shape()[1] == H          -- one gate for the whole head
  -- Rows of a projection that feed the elements of a state with n a head: index(element of the head) -> row of the head.
  local function kind(name, n, index)
    local linear = p[name]
    local rows = linear.weight:shape()[1] / H
    return { weight = linear.weight, bias = linear.bias, row = function(i)
      local h = math.floor(i / n)
      return h * rows + index(i - h * n)
    end }
  end
  local function activate(u) return act and ops[act](u) or u end
  -- Kinds of a group, by name: at[name] is the place of its u.
  local function group(state, from, count, n, of_value, of_key, last)
    local kinds, at = {}, {}
    local function add(name, index)
      if not p[name] then return end
      kinds[#kinds + 1] = kind(name, n, index)
      at[name] = #kinds
    end
    if of_value then
      add("v", of_value)
      if not of_head then add("beta", of_value) end
    end
    if of_head then add("beta", function() return 0 end) end
    if of_key then
      local G = p.gamma and p.gamma.weight:shape()[1] / H
      add("k", function(i) return of_key(i) % D end)
      add("p_k", function(i) return math.floor(of_key(i) / D) end)
      if p.gamma then add("gamma", function(i) return of_key(i) % G end) end
      if p.p_gamma then add("p_gamma", function(i) return math.floor(of_key(i) / G) end) end
    end
    local function gate(u, ...)
      local y
      for _, name in ipairs { ... } do
        local one = at[name] and ops.sigmoid(u[at[name]])
        y = y and one and y * one or y or one
      end
      return y
    end
    local function times(a, b) return a and b and a * b or a or b end
    local factors = {}
    for name, place in pairs(at) do factors[place] = name end
    local gated = (not act or act == "relu" or act == "elu1") and { factors = factors, act = act, wave = last }
    groups[#groups + 1] = { gated = gated, state = prefix .. state, from = from, count = count, kinds = kinds, last = function(u, done, h, states)
      local beta, gamma = gate(u, "beta"), gate(u, "gamma", "p_gamma")
      local x = times(at.v and u[at.v], times(at.k and activate(u[at.k]), at.p_k and activate(u[at.p_k])))
      local keep = times(beta and 1 - beta, gamma and 1 - gamma)
      x = times(times(x, beta), gamma)
      local w = last and last(u[1]:shape()[1], states)
      if w then x = x * w end
      return select(2, ops.gated_scan { x = x, a = keep or tensor.new { shape = { count } }:fill(1), done = done, h = h })
    end }
  end
  local function same(i) return i end
  if cfg.approximation == "cos" then
    local steps = {}
    for m = 0, credit.channels(cfg) - 1 do
      local function of_channel(T, states)
        steps[T] = steps[T] or counted(T)
        return wave(cfg, m, states.tick, steps[T])
      end
      group("v", m * H * V, H * V, V, same, nil, of_channel)
      group("k", m * H * K, H * K, K, nil, same, of_channel)
    end
  else
    group("C", 0, H * V * K, V * K, function(i) return math.floor(i / K) end, function(i) return i % K end)
  end
  if cfg.normalise then group("s", 0, H * K, K, nil, same) end
  return groups
end

---How many channels a state holds.
function credit.channels(cfg)
  local r = cfg.r
  return cfg.form == "code" and math.floor((r + 1) / 2) or cfg.form == "paper" and math.floor(r / 2) + 1 or r
end

return credit
