-- gated_deltanet.lua -- Gated DeltaNet: a matrix with a scalar decay, and a delta rule that corrects what a key holds.
--   q, k, v = silu(conv(W x)) over the last conv_size inputs of the episode;  q, k scaled to length 1
--   alpha = exp(-exp(A_log) softplus(a x + dt_bias)),  beta = sigma(b x), one value per head
--   C = alpha C (I - beta k k^T) + beta v k^T  =  alpha C + beta (v - alpha C k) k^T,   o = C q
--   attn = out(o / rms(o) * norm.weight * silu(g x))
-- It combines a gate like GaLiTe's with the delta rule of Schlag et al.; recent large models (Qwen3-Next, Kimi Linear)
-- use it in place of most of their attention.
-- As in the paper: all of the above, its initial values (Mamba-2's for the decay), no biases.  As in the other cores
-- here: embedding, norms, feed-forward and residual connections (block.lua).  Weights start with variance 1/d, which is
-- the published 0.02^2 at the published width.  The published code scales o by 1/sqrt(d_head), which the norm undoes.
local block = require "mneme.models.block"
local errors = require "mneme.base.errors"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local function check(cfg)
  if cfg.conv_size > 16 then
    errors.raise(("core gated_deltanet: conv_size = %g, expected at most 16"):format(cfg.conv_size), { status = 2 })
  end
  for _, key in ipairs { "norm_eps", "rms_eps", "ln_eps" } do
    if not (cfg[key] >= 0) then
      errors.raise(("core gated_deltanet: %s = %g, expected at least 0"):format(key, cfg[key]), { status = 2 })
    end
  end
end

local function parameter(shape) return tensor.new { shape = shape, grad = true } end

-- Rows of a packed leaf under names of their own, each begun by init.
local function windows(leaf, parts, named, suffix, cols, init)
  local at = 0
  for _, part in ipairs(parts) do
    local name, rows = part[1], part[2]
    local shape = suffix == "_conv" and { rows, 1, cols } or { rows, cols }
    local w = tensor.view(leaf, at * cols, shape)
    init(w:data(), rows, cols)
    named[#named + 1] = { name .. suffix .. ".weight", w }
    at = at + rows
  end
end

-- Initial values of the decay as in Mamba-2: A in 0 .. 16, and a step whose logarithm is uniform in 0.001 .. 0.1.
local function initial_decays(H)
  local A_log, dt_bias, draw = parameter { H }, parameter { H }, nn.init.uniform(0.5)
  draw(A_log:data(), 1, H)
  draw(dt_bias:data(), 1, H)
  for h = 0, H - 1 do
    local u, w = A_log:data()[h] + 0.5, dt_bias:data()[h] + 0.5
    A_log:data()[h] = math.log(16 * math.max(u, 1e-6))
    local dt = math.exp(math.log(0.001) + w * math.log(100))
    dt_bias:data()[h] = dt + math.log(1 - math.exp(-dt))        -- softplus of it is dt
  end
  return A_log, dt_bias
end

-- Names q, k .weight [H*K,d], v, g .weight [H*V,d], q_conv, k_conv, v_conv .weight [.,1,W], a, b .weight [H,d], A_log,
-- dt_bias [H], norm.weight [V], out.weight [d,H*V].
local function attention(cfg, n, all_decays)
  local H, K, d, W = cfg.n_heads, cfg.d_head, cfg.d_model, cfg.conv_size
  local V, lecun, prefix = K * cfg.expand_v, nn.init.lecun_normal(), "layers." .. n .. "."
  local parts, D = { { "q", H * K }, { "k", H * K }, { "v", H * V } }, 2 * H * K + H * V
  local inward, conv, open = parameter { D, d }, parameter { D, W }, parameter { 2 * H, d }
  local A_log, dt_bias = initial_decays(H)
  all_decays[n + 1] = { gate_start.decays("keep", dt_bias,
    function(x, h) return math.exp(-math.exp(A_log:data()[h]) * math.log(1 + math.exp(x))) end,
    function(keep, h)
      local dt = -math.log(keep) / math.exp(A_log:data()[h])
      return dt > 30 and dt or math.log(math.exp(dt) - 1)
    end) }
  local weight = parameter { V }:fill(1)
  local named = { { "A_log", A_log }, { "dt_bias", dt_bias }, { "norm.weight", weight } }
  windows(inward, parts, named, "", d, lecun)
  windows(conv, parts, named, "_conv", W, nn.init.uniform(1 / math.sqrt(W)))
  windows(open, { { "a", H }, { "b", H } }, named, "", d, lecun)
  local g = nn.linear(d, H * V, { bias = false, init = lecun })
  local out = nn.linear(H * V, d, { bias = false, init = lecun, act = block.closing(cfg.flow) })

  return nn.module({
    leaves = { inward, conv, open, A_log, dt_bias, weight }, named = named, children = { { "g", g }, { "out", out } },
  }, function(_, x, done, state, new, probe)
    local shape = x:shape()
    local T, B = shape[1], shape[2]
    local function seen(name, t) return probe and probe(prefix .. name, t) or t end
    local function heads(t, count, size) return ops.reshape(t, { d0 = T, d1 = B, d2 = count, d3 = size }) end

    local qkv
    qkv, new[prefix .. "conv"] = ops.short_conv { x = ops.linear(x, inward), w = conv, done = done, state = state[prefix .. "conv"],
      act = "silu" }
    local qk = heads(qkv:slice { axis = 2, from = 0, to = 2 * H * K }, 2 * H, K):normalise { by = "l2", eps = cfg.norm_eps }
    local q, k = seen("q", qk:slice { axis = 2, from = 0, to = H }), seen("k", qk:slice { axis = 2, from = H })
    local v = seen("v", heads(qkv:slice { axis = 2, from = 2 * H * K }, H, V))

    local ab = ops.linear(x, open)
    local dt = ops.softplus(ab:slice { axis = 2, from = 0, to = H } + dt_bias)
    local keep = seen("keep", ops.exp(-(dt * ops.exp(A_log))))
    local beta = seen("beta", ops.sigmoid(ab:slice { axis = 2, from = H }))

    local y, C = ops.delta_rule { q = q, k = k, v = v, write = beta, keep = keep, done = done, C = state[prefix .. "C"],
      erase = "after", normalise = 0 }
    new[prefix .. "C"] = C
    y = seen("retrieved", y):normalise { by = "rms", eps = cfg.rms_eps } * weight * ops.silu(heads(g(x), H, V))
    return out(ops.reshape(y, { d0 = T, d1 = B, d2 = H * V }))
  end)
end

return {
  doc = "gated delta rule: a matrix with a scalar decay that writes only the error of its prediction (Gated DeltaNet)",
  source = "Yang, Kautz, Hatamizadeh 2024, Gated Delta Networks, arXiv 2412.06464, eq. 10 and figure 1",
  checked = "an independent program",
  config = {
    d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_head = 64, expand_v = 1, d_ffn = 128, conv_size = 4,
    norm_eps = 1e-6, rms_eps = 1e-5, flow = "residual", embed_act = "relu", ln_eps = 1e-6, remember = "published", reset = true,
  },
  counts = { expand_v = 1, conv_size = 2 },
  build = function(cfg)
    check(cfg)
    local embed = nn.linear(cfg.d_in, cfg.d_model, { act = cfg.embed_act })
    local layers, states, decays = {}, {}, {}
    for n = 0, cfg.n_layers - 1 do
      layers[n + 1] = { tostring(n), block.new(cfg, attention(cfg, n, decays)) }
      states["layers." .. n .. ".C"], states["layers." .. n .. ".conv"] = "[B,H,V,K]", "[B,W,D]"
    end
    local H, K = cfg.n_heads, cfg.d_head
    local V = K * cfg.expand_v
    return {
      module = nn.container { { "embed", embed }, { "layers", nn.container(layers) } },
      d_out = cfg.d_model, states = states,
      sizes = { H = H, K = K, V = V, W = cfg.conv_size - 1, D = 2 * H * K + H * V },
      complexity = { step = "3*L*H*V*K" }, reads = "gated_delta", decays = decays,
      forward = function(x, done, state, probe)
        local e, new = embed(x), {}
        done = cfg.reset and done or nil
        for n = 1, cfg.n_layers do e = layers[n][2](e, done, state, new, probe) end
        return e, new
      end,
    }
  end,
}
