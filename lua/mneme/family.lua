-- family.lua -- the gated linear family: what the cores galite and agalite (and presets of them) are built of.
-- Adding a feature map or a gate is one entry of `features` or `gates`.
local ffi = require "ffi"
local block = require "mneme.block"
local engine = require "mneme.engine"
local errors = require "mneme.errors"
local find = require "mneme.find"
local nn = require "mneme.nn"
local tensor = require "mneme.tensor"
local ops, C = tensor.ops, engine.C

local family = {}

-- ---- axes ----

---phi(x): `act` is applied to the projection `a` (of rows(cfg) numbers a head) and, for outer products, to the
---small factor p (eta numbers a head); K is the size of the result.
family.features = {
  outer_relu = { act = "relu", outer = true, rows = function(cfg) return cfg.d_head end },
  outer_elu1 = { act = "elu1", outer = true, rows = function(cfg) return cfg.d_head end },
  elu1       = { act = "elu1", rows = function(cfg) return cfg.nu * cfg.d_head end, lecun = true },
  relu       = { act = "relu", rows = function(cfg) return cfg.nu * cfg.d_head end, lecun = true },
}

---What decides how much is written and forgotten: which projections a gate adds, given K.
family.gates = {
  outer       = { beta = true, gamma = function(cfg) return cfg.d_head end, p_gamma = function(cfg, K) return K / cfg.d_head end },
  elementwise = { beta = true, gamma = function(_, K) return K end },
  none        = {},
}

local choices = {
  feature = family.features, gate = family.gates,
  decay = { separable = true, joint = true }, query = { single = true, double = true },
  approximation = { full = true, cos = true }, form = { code = true, paper = true, cossin = true },
  update = { sum = true }, flow = { gtrxl = true, residual = true, postnorm = true },
  embed_act = { relu = true, none = true },
}

local function check(cfg)
  for key, known in pairs(choices) do
    if not known[cfg[key]] then errors.unknown(key .. " =", cfg[key], find.keys(known)) end
  end
  for _, key in ipairs { "eta", "nu", "r" } do
    if cfg[key] < 1 or cfg[key] % 1 ~= 0 then
      errors.raise(("core: %s = %g, expected a whole number of at least 1"):format(key, cfg[key]), { status = 2 })
    end
  end
  if cfg.approximation == "cos" and cfg.decay == "joint" then
    errors.raise("core: decay=joint has no cosine form: its decay 1 - beta gamma^T is not a product of vectors", { status = 2 })
  end
  if cfg.decay == "joint" and cfg.gate == "none" then
    errors.raise("core: decay=joint needs a gate", { status = 2 })
  end
end

-- ---- the attention of one layer ----

local function projections(cfg, K)
  local feature, gate = family.features[cfg.feature], family.gates[cfg.gate]
  local H, d, double = cfg.n_heads, cfg.d_model, cfg.query == "double"
  local rows = feature.rows(cfg)
  local init = nn.init.orthogonal(math.sqrt(2), H)
  local mapped = feature.lecun and nn.init.lecun_normal() or init
  local p = {}
  local function add(name, n, act, how, d_in) p[name] = nn.linear(d_in or d, H * n, { act = act, init = how or init }) end
  add("v", cfg.d_head)
  add("k", rows, feature.act, mapped)
  if double then     -- q0 stays raw; its maps q2 and p_q act within each head
    add("q", cfg.d_head)
    add("q2", rows, nil, mapped, cfg.d_head)
  else
    add("q", rows, feature.act, mapped)
  end
  if feature.outer then
    add("p_k", cfg.eta, feature.act)
    add("p_q", cfg.eta, not double and feature.act or nil, nil, double and cfg.d_head or nil)
  end
  if gate.beta then add("beta", cfg.d_head, "sigmoid") end
  if gate.gamma then add("gamma", gate.gamma(cfg, K), "sigmoid") end
  if gate.p_gamma then add("p_gamma", gate.p_gamma(cfg, K), "sigmoid") end
  if cfg.approximation == "cos" then    -- the released AGaLiTe has two fused Dense layers
    local wide, narrow = {}, {}
    for _, name in ipairs { "k", "q", "v", "beta", "gamma" } do wide[#wide + 1] = p[name] end
    for _, name in ipairs { "p_k", "p_q", "p_gamma" } do narrow[#narrow + 1] = p[name] end
    local whole = nn.init.orthogonal(math.sqrt(2))
    nn.init_together(wide, whole)
    if #narrow > 0 then nn.init_together(narrow, whole) end
  end
  return p
end

local function attention(cfg, n, K, kept)
  local p = projections(cfg, K)
  local out = nn.linear(cfg.n_heads * cfg.d_head, cfg.d_model, { act = block.closing(cfg.flow) })
  local order = { "k", "q", "q2", "v", "beta", "gamma", "p_k", "p_q", "p_gamma" }
  local children = { { "out", out } }
  for _, name in ipairs(order) do if p[name] then children[#children + 1] = { name, p[name] } end end
  local feature, H = family.features[cfg.feature], cfg.n_heads
  local double = cfg.query == "double"
  local prefix = "layers." .. n .. "."
  local joint, cos = cfg.decay == "joint", cfg.approximation == "cos"
  local op = cos and ops.agalite or joint and ops.joint_gate_attention or ops.linear_attention

  local function by_head(t, T, B, probe, name)
    local shape = t:shape()
    t = ops.reshape(t, { d0 = T, d1 = B, d2 = H, d3 = shape[3] / H })
    return probe and probe(prefix .. name, t) or t
  end

  return nn.module({ children = children }, function(_, x, done, state, new, probe)
    local shape = x:shape()
    local T, B = shape[1], shape[2]
    local a = { eps = cfg.eps, den_clamp = cfg.den_clamp, normalise = cfg.normalise, done = done }
    for _, name in ipairs(order) do
      local within = double and (name == "q" or name == "q2" or name == "p_q")
      if p[name] and not within then a[name] = by_head(p[name](x), T, B, probe, name) end
    end
    if double then
      local q0 = by_head(p.q(x), T, B)
      a.q = ops.head_linear { x = q0, w = p.q2.weight, b = p.q2.bias, act = feature.act }
      if p.p_q then a.p_q = ops.head_linear { x = q0, w = p.p_q.weight, b = p.p_q.bias, act = feature.act } end
      if probe then a.q = probe(prefix .. "q", a.q) end
    end
    local y
    if cos then
      a.form, a.r, a.stored = cfg.form, cfg.r, kept.all and "all" or "distinct"
      a.tick, a.vs, a.ks, a.s = state.tick, state[prefix .. "v"], state[prefix .. "k"], state[prefix .. "s"]
      local vs, ks, s, tick
      y, vs, ks, s, tick = op(a)
      new[prefix .. "v"], new[prefix .. "k"], new.tick = vs, ks, tick
      if cfg.normalise then new[prefix .. "s"] = s end
    else
      a.C, a.s = state[prefix .. "C"], state[prefix .. "s"]
      local after_C, s
      y, after_C, s = op(a)
      new[prefix .. "C"] = after_C
      if cfg.normalise then new[prefix .. "s"] = s end
    end
    if probe then y = probe(prefix .. "retrieved", y) end
    return out(ops.reshape(y, { d0 = T, d1 = B, d2 = H * cfg.d_head }))
  end)
end

-- ---- the whole ----

-- What one step of one copy costs, in floating-point operations at the rate of fused multiply-adds: products
-- with weights, and the recurrence forward and backward (a lane's instruction counts 2, whatever it does).
local function cost(cfg, module, K, M)
  local weights = 0
  module:each(function(name, t) if name:find "weight$" and not name:find "norm" then weights = weights + t:size() end end)
  local V, heads = cfg.d_head, cfg.n_layers * cfg.n_heads
  local lanes = cfg.approximation == "cos" and 3 * M * (V + K) + 2 * K or 4 * V * K
  return { products = 2 * weights, forward = 2 * heads * lanes, backward = 6 * heads * lanes }
end

-- Files hold every cosine channel; the engine one of each mirrored pair.  Which, and with which sign:
local function channels(cfg)
  local form = ({ code = 0, paper = 1, cossin = 2 })[cfg.form]
  local count = ffi.new "int[1]"
  local M = engine.check(C.mn_agalite_channels(engine.ctx, form, cfg.r, count, nil, nil))
  local R = count[0]
  local stored, sign = ffi.new("int[?]", R), ffi.new("int[?]", R)
  C.mn_agalite_channels(engine.ctx, form, cfg.r, count, stored, sign)
  local map = {}
  for i = 0, R - 1 do map[i + 1] = { stored = stored[i], sign = sign[i] } end
  return R, M, map
end

---Build a core of the family from a complete configuration.
function family.build(cfg)
  check(cfg)
  local feature = family.features[cfg.feature]
  local K = (feature.outer and cfg.eta or 1) * feature.rows(cfg)
  local cos = cfg.approximation == "cos"
  local R, M, map
  if cos then R, M, map = channels(cfg) end
  local embed = nn.linear(cfg.d_in, cfg.d_model, { act = cfg.embed_act })
  local layers, states, kept = {}, {}, { all = false }
  for n = 0, cfg.n_layers - 1 do
    layers[n + 1] = { tostring(n), block.new(cfg, attention(cfg, n, K, kept)) }
    local prefix = "layers." .. n .. "."
    if cos then states[prefix .. "v"], states[prefix .. "k"] = "[B,M,H,V]", "[B,M,H,K]"
    else states[prefix .. "C"] = "[B,H,V,K]" end
    if cfg.normalise then states[prefix .. "s"] = "[B,H,K]" end
  end
  if cos then states.tick = "[B]" end
  local module = nn.container { { "embed", embed }, { "layers", nn.container(layers) } }
  local core
  core = {
    module = module, d_out = cfg.d_model, states = states,
    -- From now on keep every channel: for a state whose mirrored channels are not equal.
    store_all_channels = cos and function()
      kept.all, core.sizes.M, core.channels = true, R, nil
    end or nil,
    sizes = { H = cfg.n_heads, V = cfg.d_head, K = K, M = M },
    start = cos and cfg.form == "code" and { tick = 1 } or {},
    claims = { steps = "exact", reset = cos and "up to tick" or "exact", state = "constant" },
    channels = cos and { file = R, stored = M, map = map } or nil,
    cost = function() return cost(cfg, module, K, M or 0) end,
    forward = function(x, done, state, probe)
      local e, new = embed(x), {}
      done = cfg.reset and done or nil
      for n = 1, cfg.n_layers do e = layers[n][2](e, done, state, new, probe) end
      return e, new
    end,
  }
  return core
end

return family
