-- mlstm.lua -- mLSTM, a matrix memory with exponential gates and a normaliser, in its block.
--   u, g = up(norm(e));   c = silu(conv(u)) over the last conv_size inputs of the episode;   q, k of c and v of u, in small blocks
--   i~, f~ of (q, k, v), one value per head;   k = k/sqrt(dh);   F = log sigma(f~)
--   m' = max(F + m, i~);   f = exp(F + m - m'),  i = exp(i~ - m')
--   C = f C + i k v^T;   n = f n + i k;   h = C^T q / max(|n.q|, exp(-m'))
--   e = e + down((norm(h)*norm.weight + skip*c) * silu(g)),  the norm over each head
-- m keeps the exponentials in range and changes nothing else.
local block = require "mneme.models.block"
local errors = require "mneme.base.errors"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local LARGEST = 80               -- e^80 is still a float

local function check(cfg)
  local E = cfg.expand * cfg.d_model
  for _, key in ipairs { "n_heads", "qkv_block" } do
    if E % cfg[key] ~= 0 then
      errors.raise(("core mlstm: %s = %g, expected a divisor of expand*d_model = %d"):format(key, cfg[key], E), { status = 2 })
    end
  end
end

local parameter = require("mneme.tensor.random").parameters.new

-- The gates: weights begin at 0, the forget gate open, from 3 in the first head to 6 in the last.  Names i, f .weight [H,3E], .bias [H].
local function gates(H, E)
  local w, bias = parameter { 2 * H, 3 * E }, parameter { 2 * H }
  local named = {}
  for i, name in ipairs { "i", "f" } do
    named[2 * i - 1] = { name .. ".weight", tensor.view(w, (i - 1) * H * 3 * E, { H, 3 * E }) }
    named[2 * i] = { name .. ".bias", tensor.view(bias, (i - 1) * H, { H }) }
  end
  local b_i, b_f = named[2][2], named[4][2]
  nn.init.normal(0.1)(b_i:data(), 1, H)
  for h = 0, H - 1 do b_f:data()[h] = 3 + (H > 1 and 3 * h / (H - 1) or 0) end
  return w, bias, named, gate_start.keeps("f", b_f)
end

-- Names norm, up, conv, q, k, v, i, f, outnorm.weight [E], skip [E], down.
local function layer(cfg, prefix)
  local d, H, E, side, lecun = cfg.d_model, cfg.n_heads, cfg.expand * cfg.d_model, cfg.qkv_block, nn.init.lecun_normal()
  local K = E / H
  local norm, up = nn.layer_norm(d, cfg.ln_eps), nn.linear(d, 2 * E, { bias = false, init = lecun })
  local down = nn.linear(E, d, { bias = false, init = lecun })
  local taps = parameter({ E, cfg.conv_size }, nn.init.uniform(1 / math.sqrt(cfg.conv_size)))
  local w_q, w_k, w_v = parameter({ E, side }, lecun), parameter({ E, side }, lecun), parameter({ E, side }, lecun)
  local w_gates, b_gates, named, forget = gates(H, E)
  local weight, skip = parameter { E }:fill(1), parameter { E }:fill(1)
  for name, t in pairs { ["conv.weight"] = tensor.view(taps, 0, { E, 1, cfg.conv_size }), ["q.weight"] = w_q, ["k.weight"] = w_k, ["v.weight"] = w_v,
    ["outnorm.weight"] = weight, skip = skip } do named[#named + 1] = { name, t } end
  table.sort(named, function(a, b) return a[1] < b[1] end)
  local function constant(value, ...) return tensor.new { shape = { ... } }:fill(value) end
  local ones, zeros, none = constant(1, K), constant(0, K), constant(0, H, K)

  local leaves = { taps, w_q, w_k, w_v, w_gates, b_gates, weight, skip }
  local children = { { "norm", norm }, { "up", up }, { "down", down } }
  return nn.module({ leaves = leaves, named = named, children = children }, function(_, e, done, state, new, probe)
    local T, B = unpack(e:shape())
    local function seen(name, t) return probe and probe(prefix .. name, t) or t end
    local function heads(t, n) return t:reshape(T, B, n, t:size() / (T * B * n)) end
    local function in_blocks(t, w) return ops.head_linear(heads(t, E / side), w):reshape(T, B, E) end
    local both = up(norm(e))
    local u, g = both:slice(-1, 0, E), both:slice(-1, E)
    local c
    c, new[prefix .. "conv"] = ops.short_conv { x = u, w = taps, done = done, state = state[prefix .. "conv"], act = "silu" }
    local q, k, v = in_blocks(c, w_q), in_blocks(c, w_k), in_blocks(u, w_v)
    local raw = ops.linear(ops.concat(ops.concat(q, k), v), w_gates, b_gates)
    local i, f = raw:slice(-1, 0, H), raw:slice(-1, H)

    local F = -(-f):softplus()
    local m, keep, m_after = ops.running_max { z = i:reshape(T, B, H, 1), a = F, done = done, c = state[prefix .. "m"] }
    keep = seen("shrink", heads(keep, H)) * ones
    if probe then probe(prefix .. "f", heads(F:exp(), H)) end
    q, v = seen("q", heads(q, H)), seen("v", heads(v, H))
    k = seen("k", heads(k, H) * heads((i - m):exp() * K ^ -0.5, H))

    -- wkv6 reads before it writes: what is left of the old C, and the step's own value.
    local old, C = ops.wkv6 { r = q * keep, k = k, v = v, keep = keep, first = none, done = done, S = state[prefix .. "C"] }
    local n, n_after = ops.gated_scan { x = k, a = keep, done = done, h = state[prefix .. "n"] }
    new[prefix .. "C"], new[prefix .. "n"], new[prefix .. "m"] = C, n_after, m_after
    local own, sum = (q * k):sum(-1, 1), (q * n):sum(-1, 1)
    local least = heads(ops.clamp { x = -m, hi = LARGEST }:exp(), H)
    local h = seen("retrieved", (old + own * v) / sum:abs():maximum(least):clamp(cfg.den_clamp))
    local unit = ops.layer_norm { x = h, weight = ones, bias = zeros, eps = cfg.gn_eps }:reshape(T, B, E)
    return e + down((unit * weight + c * skip) * g:silu())
  end), { forget }
end

return {
  doc = "a matrix memory with exponential gates and a normaliser (mLSTM, of xLSTM)",
  source = "Beck et al. 2024, xLSTM, arXiv 2405.04517, section 2.3, equations 19 to 27, and the block of figure 11",
  checked = "an independent program",
  config = {
    d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, expand = 2, conv_size = 4, qkv_block = 4, den_clamp = 1e-6, gn_eps = 1e-5,
    embed_act = "none", ln_eps = 1e-5, remember = "published", reset = true,
  },
  counts = { expand = 1, conv_size = 2, qkv_block = 1 },
  build = function(cfg)
    check(cfg)
    local E = cfg.expand * cfg.d_model
    return block.stack(cfg, { start = { m = -1e38 }, sizes = { H = cfg.n_heads, K = E / cfg.n_heads, W = cfg.conv_size - 1, E = E },
      complexity = { step = "2*L*H*K*K" }, reads = "gated",
      no_sensitivities = "its rows read several steps, through a convolution, so that more of them feed each element" },
      { C = "[B,H,K,K]", n = "[B,H,K]", m = "[B,H]", conv = "[B,W,E]" }, function(_, prefix) return layer(cfg, prefix) end,
      { norm = nn.layer_norm(cfg.d_model, cfg.ln_eps) })
  end,
}
