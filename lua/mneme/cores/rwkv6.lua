-- rwkv6.lua -- RWKV-6 (Finch): one matrix per head; each key channel decays at a rate that depends on the input.
-- Peng et al. 2024, arXiv 2404.05892; initial values of RWKV-LM's RWKV-v5, x060.
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local rwkv = require "mneme.models.rwkv"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local streams = { "w", "k", "v", "r", "g" }               -- in the order of mix_a and mix_b

-- Names {r,k,v,g}.weight [H*V,d], out.weight [d,H*V], mix_{x,w,k,v,r,g} [d], mix_a.weight [5*mix_rank,d],
-- mix_b [5,d,mix_rank], decay [H*V], decay_a.weight, decay_b.weight, first [H,V], norm.weight, norm.bias [H*V].
local function time_mixing(cfg, n)
  local d, H, wide = cfg.d_model, cfg.n_heads, cfg.n_heads * cfg.d_head
  local up, down = rwkv.depth(cfg, n)
  local function mix(power, more)
    return rwkv.curve({ d }, function(i) return 1 - (i / d) ^ (power * down) - (more or 0) end)
  end
  local p = {
    mix_x = mix(1), mix_w = mix(1), mix_k = mix(1), mix_v = mix(1, 0.3 * up), mix_r = mix(0.5), mix_g = mix(0.5),
    mix_b = tensor.new { shape = { 5 * d, cfg.mix_rank }, grad = true },
    decay = rwkv.curve({ wide }, function(i) return -6 + 5 * rwkv.along(i, wide) ^ (0.7 + 1.3 * up) end),
    first = rwkv.curve({ H, cfg.d_head }, function(i)
      return up * (1 - rwkv.along(i, wide)) + 0.1 * ((i + 1) % 3 - 1)
    end),
  }
  local small, orthogonal = nn.init.uniform(0.01), nn.init.orthogonal
  small(p.mix_b:data(), 5 * d, cfg.mix_rank)
  local leaves, named = {}, {}
  for i, name in ipairs { "mix_x", "mix_w", "mix_k", "mix_v", "mix_r", "mix_g", "mix_b", "decay", "first" } do
    leaves[i], named[i] = p[name], { name, p[name] }
  end
  named[7] = { "mix_b", tensor.view(p.mix_b, 0, { 5, d, cfg.mix_rank }) }
  local mix_a = rwkv.map(d, 5 * cfg.mix_rank, nil, "tanh")
  local parts, decay = rwkv.low_rank(d, wide, { names = { "decay_a", "decay_b" }, bias = p.decay, rank = cfg.decay_rank,
                                                inner = "tanh", up = small })
  local r, v = rwkv.map(d, wide, orthogonal(1)), rwkv.map(d, wide, orthogonal(1))
  local k, g, out = rwkv.map(d, wide, orthogonal(0.1)), rwkv.map(d, wide, orthogonal(0.1)), rwkv.map(wide, d)
  local norm = rwkv.group_norm(cfg, ((1 + n) / cfg.n_layers) ^ 0.7)
  local children = { { "r", r }, { "k", k }, { "v", v }, { "g", g }, { "out", out }, { "mix_a", mix_a }, parts[1], parts[2],
                     { "norm", norm } }
  local prefix = "layers." .. n .. "."
  local map = { r = r, k = k, v = v, g = g, w = function(x) return (ops.wkv_decay { x = decay(x) }) end }

  local decays = { gate_start.decays("decay", p.decay, rwkv.keep_of, rwkv.decay_of) }
  return nn.module({ decays = decays, leaves = leaves, named = named, children = children }, function(_, z, done, state, new, probe)
    local mixed = rwkv.shifter(z, done, state, new, prefix .. "att_x", "previous")
    local low = ops.head_linear { x = rwkv.heads(mix_a(mixed(p.mix_x)), 5), w = p.mix_b }
    local t = {}
    for i, name in ipairs(streams) do
      t[name] = rwkv.heads(map[name](mixed(p["mix_" .. name], low, i - 1)), H, probe, prefix .. name)
    end
    if probe then probe(prefix .. "first", (ops.probe_constant { like = t.k, x = p.first })) end
    local y
    y, new[prefix .. "S"] = ops.wkv6 { r = t.r, k = t.k, v = t.v, keep = t.w, first = p.first, done = done, S = state[prefix .. "S"] }
    if probe then y = probe(prefix .. "retrieved", y) end
    return out(rwkv.joined(norm { y = y, gate = t.g, act = "silu" }))
  end)
end

local function channel_mixing(cfg, n)
  local d, _, down = cfg.d_model, rwkv.depth(cfg, n)
  local function mix() return rwkv.curve({ d }, function(i) return 1 - (i / d) ^ down end) end
  return rwkv.channel_mixing(cfg, n, { mix_k = mix(), mix_r = mix(), key = nn.init.orthogonal(1), weighs = "previous" })
end

return {
  doc = "one matrix per head, with a data-dependent decay per key channel (RWKV-6)",
  source = "Peng et al. 2024, Eagle and Finch; RWKV-LM, RWKV-v5 (x060)",
  checked = "an independent program",
  equations = [[
z = norm1(e), delta = z_{t-1} - z_t, low = tanh(mix_a(z + delta*mix_x)), input_c = z + delta*(mix_c + mix_b[c] low_c)
w = exp(-exp(decay + decay_b tanh(decay_a input_w)));  r, k, v, g = products of their inputs
y_t = r^T(S + diag(first) k v^T),  S = diag(w) S + k v^T;  e += out(groupnorm(y) * silu(g))
z = norm2(e), e += sigma(r) * v(relu(k)^2), inputs z + delta*mix]],
  config = {
    d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_head = 32, d_ffn = 512, mix_rank = 32, decay_rank = 64,
    embed_act = "none", ln_eps = 1e-5, gn_eps = 64e-5, remember = "published", reset = true,
  },
  counts = rwkv.counts,
  build = function(cfg)
    return rwkv.build(cfg, {
      attn = time_mixing, ffn = channel_mixing, states = { S = "[B,H,K,V]" },
      sizes = { H = cfg.n_heads, K = cfg.d_head, V = cfg.d_head }, complexity = "3*L*H*K*V", reads = "bonus",
      no_sensitivities = "its decays go through two layers, so that many rows feed each element",
    })
  end,
}
