-- feature_maps.lua -- feature maps phi of the gated linear family, applied to keys and queries.
-- One entry is one map; a user adds one to the same table: mn.features.mine = { ... }.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local feature_maps = {}

---@class Feature
---@field doc string? the map as an equation
---@field rows (fun(cfg): integer)? numbers a head of the projections `a` of k and q; default cfg.d_head
---@field act (string|fun(cfg): string)? an op on `a`, and on the factor p; most are fused into the projection
---@field outer boolean? phi = p (x) a with a second, small projection p of eta numbers a head
---@field map (fun(a: Tensor, about: table): Tensor)? what `a` [T,B,H,rows] becomes after `act`, [T,B,H,size];
---about: cfg, role "q" or "k", w (its buffer), and for the memory: args, state, new, prefix, done
---@field size (fun(cfg): integer)? numbers of phi a head, K; default rows, times eta if outer
---@field keys string[]? settings that only such maps have
---@field buffer (fun(p, cfg): nil)? fills random features W [H,m,dh], fixed
---@field lecun boolean? the projections of k and q begin as flax's lecun_normal, not orthogonal
---@field state table? a state of its own: { name, axes, start }, a constant for gradients
---@field step string? multiply-adds of the map for k and q together, as in cores.lua's complexity
---@field rescales boolean? keys come with args.shrink, by which the memory must shrink what it holds

local function d_head(cfg) return cfg.d_head end
local function wide(cfg) return cfg.nu * cfg.d_head end

---Rows orthogonal in blocks of d_head, each as long as a normal vector is (Choromanski et al. 2021, section 3.2).
local function orthogonal_blocks(p, cfg)
  local H, m, d = cfg.n_heads, cfg.m, cfg.d_head
  local lengths = tensor.new { shape = { H * m, d } }:data()
  nn.init.normal()(p, H * m, d)
  nn.init.normal()(lengths, H * m, d)
  for h = 0, H - 1 do
    for from = 0, m - 1, d do engine.orthogonal(p + (h * m + from) * d, math.min(d, m - from), d, 1) end
  end
  for row = 0, H * m - 1 do
    local square = 0
    for i = row * d, row * d + d - 1 do square = square + lengths[i] ^ 2 end
    for i = row * d, row * d + d - 1 do p[i] = p[i] * math.sqrt(square) end
  end
end

local function normal(p, cfg) nn.init.normal()(p, cfg.n_heads * cfg.m, cfg.d_head) end

local function project(a, about, act)
  local cfg = about.cfg
  local w = ops.reshape(about.w, { d0 = cfg.n_heads * cfg.m, d1 = cfg.d_head })
  return (ops.head_linear { x = a, w = w, act = act })
end

feature_maps.list = {
  -- Pramanik et al. 2023, eq. 10 and 11: phi = act(p) (x) act(a)
  outer_relu = { doc = "phi = relu(p) (x) relu(a)", act = "relu", outer = true, rows = d_head, keys = { "eta" } },
  outer_elu1 = { doc = "phi = elu1(p) (x) elu1(a)", act = "elu1", outer = true, rows = d_head, keys = { "eta" } },
  -- Katharopoulos et al. 2020, section 3.2.1; nu > 1: a wider learned projection
  elu1 = { doc = "phi = elu(a) + 1", act = "elu1", rows = wide, lecun = true, keys = { "nu" } },
  relu = { doc = "phi = relu(a)", act = "relu", rows = wide, lecun = true, keys = { "nu" } },
  -- a learned map with any activation
  nn = { doc = "phi = nn_act(a), a of eta*d_head values", act = function(cfg) return cfg.nn_act end, rows = function(cfg) return cfg.eta * cfg.d_head end,
         keys = { "eta", "nn_act" } },
  -- no map at all: products of either sign, so that the normaliser may vanish (den_clamp, normalise=false)
  identity = { doc = "phi = a", rows = d_head },
  -- Schlag et al. 2021, eq. 37
  dpfp = {
    doc = "phi = [u * roll(u, j)] for j = 1..nu,  u = [relu(a); relu(-a)]",
    rows = d_head, lecun = true, keys = { "nu" },
    size = function(cfg) return 2 * cfg.nu * cfg.d_head end,
    map = function(a, about) return ops.dpfp { x = a, nu = about.cfg.nu } end,
  },
  -- Peng et al. 2021, section 3.1: phi = [sin W n; cos W n] / sqrt(m), n = a / (|a| + 0.001)
  rfa = {
    doc = "phi = [sin W n; cos W n] / sqrt(m),  n = a / (|a| + 0.001), W random",
    rows = d_head, keys = { "m" }, buffer = normal, step = "L*H*K*V",
    size = function(cfg) return 2 * cfg.m end,
    map = function(a, about)
      return ops.fourier(project(ops.normalise { x = a, by = "l2", eps = 1e-3 }, about))
    end,
  },
  -- Choromanski et al. 2021, lemma 1, causally: keys under the largest logit so far
  favor_softmax = {
    doc = "phi = exp(W b - |b|^2/2 - max) / sqrt(m), for q with feature_eps added to exp;  b = a dh^(-1/4), W random; "
      .. "a running max over the keys, by which the state is rescaled",
    rows = d_head, keys = { "m", "feature_eps" }, buffer = orthogonal_blocks, step = "2*L*H*K*V",
    state = { "c", "[B,H]", -1e38 }, rescales = true,
    size = function(cfg) return cfg.m end,
    map = function(a, about)
      local z = ops.favor_logits { x = a, w = about.w }
      if about.role == "q" then
        return ops.favor_features { z = z, top = ops.running_max({ z = z, of = "token" }):detach(), eps = about.cfg.feature_eps }
      end
      local name = about.prefix .. "c"
      local top, shrink, c = ops.running_max { z = z, done = about.done, c = about.state[name] }
      about.args.shrink, about.new[name] = shrink:detach(), c
      return ops.favor_features { z = z, top = top:detach() }
    end,
  },
  -- the same, generalised to relu: phi = relu(W a) + feature_eps
  favor_relu = {
    doc = "phi = relu(W a) + feature_eps,  W random",
    rows = d_head, keys = { "m", "feature_eps" }, buffer = orthogonal_blocks, step = "2*L*H*K*V",
    size = function(cfg) return cfg.m end,
    map = function(a, about)
      local y, eps = project(a, about, "relu"), about.cfg.feature_eps
      return eps == 0 and y or ops.scale { x = y, b = eps }
    end,
  },
}

-- What entries may say: member -> its type, or "word" for the name of an op or function(cfg) that gives one.
feature_maps.members = { doc = "string", rows = "function", act = "word", outer = "boolean", map = "function", size = "function", keys = "table",
  buffer = "function", lecun = "boolean", state = "table", step = "string", rescales = "boolean" }

-- What rows or size of the setting's map gives.
local function count(cfg, member)
  local f = feature_maps.list[cfg.feature][member]
  return errors.whole("mn.features." .. cfg.feature, member .. " is", f(cfg), 1, { where = errors.position_of(f), status = 2 })
end

---Numbers a head of the projections of k and q.
function feature_maps.rows(cfg)
  return feature_maps.list[cfg.feature].rows and count(cfg, "rows") or cfg.d_head
end

---K: how many numbers phi has a head.
function feature_maps.size(cfg)
  local f = feature_maps.list[cfg.feature]
  if f.size then return count(cfg, "size") end
  return (f.outer and cfg.eta or 1) * feature_maps.rows(cfg)
end

---phi of what a projection gives, through the setting's map.
---@param a Tensor [T,B,H,rows]
---@param about table see Feature
---@return Tensor [T,B,H,size]
function feature_maps.map(a, about)
  local cfg, f = about.cfg, feature_maps.list[about.cfg.feature]
  local y = errors.call(f.map, a, about)
  if f == feature_maps.ours[cfg.feature] then return y end
  local shape, expected = tensor.is(y) and y:shape() or {}, a:shape()
  expected[4] = f.outer and feature_maps.rows(cfg) or feature_maps.size(cfg)
  if table.concat(shape, ",") ~= table.concat(expected, ",") then
    errors.raise(("mn.features.%s.map gave %s, expected a tensor [%s]: [T,B,H,%s]"):format(cfg.feature,
      tensor.is(y) and "[" .. table.concat(shape, ",") .. "]" or tables.in_words(y), table.concat(expected, ","), f.size and "size" or "rows"),
      { where = errors.position_of(f.map), status = 2 })
  end
  return y
end

---The activation of a map, as the name of an op; nil: none.
function feature_maps.act(cfg)
  local act = feature_maps.list[cfg.feature].act
  if type(act) == "function" then act = act(cfg) end
  if act ~= nil and not rawget(ops, act) then
    errors.unknown(("mn.features.%s: act"):format(cfg.feature), act, { "elu1", "exp", "relu", "sigmoid", "silu", "softplus", "square", "tanh" })
  end
  return act
end

---A memory's arguments with k and q as they are, not as factors.
function feature_maps.whole(args)
  if args.p_k then
    args.k, args.q = ops.outer(args.p_k, args.k), ops.outer(args.p_q, args.q)
    args.p_k, args.p_q = nil, nil
  end
  return args
end

-- Those of the library; a script may put others into the list, also under these names.
feature_maps.ours = tables.merged(feature_maps.list)

return feature_maps
