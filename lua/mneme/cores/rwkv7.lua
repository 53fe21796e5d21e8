-- rwkv7.lua -- RWKV-7 (Goose): one matrix per head that decays, and removes what it holds along a key before it writes.
-- Peng et al. 2025, arXiv 2503.14456; initial values of RWKV-LM's RWKV-v7.  Parameters, V = d_head, H*V wide:
--   layers.N.attn.{r,k,v}.weight [H*V,d], out.weight [d,H*V]      mix_{r,w,k,v,a,g} [d]: weight of the step before
--   decay [H*V], decay_a.weight [decay_rank,d], decay_b.weight [H*V,decay_rank]     w, the decay
--   a [H*V], a_a.weight [rate_rank,d], a_b.weight [H*V,rate_rank]                   a, the in-context learning rate
--   v0 [H*V], v0_a.weight [value_rank,d], v0_b.weight [H*V,value_rank]              mixes v with layer 0's (layers > 0)
--   g_a.weight [gate_rank,d], g_b.weight [H*V,gate_rank]                            the gate of the read-out
--   k_k, k_a [H*V], r_k [H,V], norm.weight, norm.bias [H*V]
--   layers.N.ffn.k.weight [f,d], v.weight [d,f], mix_k [d];  embed, ln0, ln_out, layers.N.norm1, norm2 as in rwkv6
-- States layers.N.S [B,H,V(k),V(v)] (the paper's S transposed), att_x, ffn_x [B,d].
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local rwkv = require "mneme.models.rwkv"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local FASTEST = math.exp(-0.5)          -- the largest rate of decay

local function time_mixing(cfg, n)
  local d, H, V = cfg.d_model, cfg.n_heads, cfg.d_head
  local wide, up, down = H * V, rwkv.depth(cfg, n)
  local function mix(power) return rwkv.curve({ d }, function(i) return 1 - (i / d) ^ (power * down) end) end
  local function line(i) return rwkv.along(i, wide) - 0.5 end                         -- over all channels
  local function zigzag(i)                                                            -- over those of a head
    local x = 2 * rwkv.along(i % V, V) - 1
    return x * math.abs(x)
  end
  local p = {
    mix_r = mix(0.2), mix_w = mix(0.9), mix_k = mix(0.7), mix_v = mix(0.7), mix_a = mix(0.9), mix_g = mix(0.2),
    decay = rwkv.curve({ wide }, function(i) return -5.5 + 6 * rwkv.along(i, wide) ^ (1 + up ^ 0.3) + 2.5 * zigzag(i) end),
    a = rwkv.curve({ wide }, function(i) return -0.19 + 0.3 * zigzag(i) + 0.4 * line(i) end),
    v0 = n > 0 and rwkv.curve({ wide }, function(i) return 0.73 - 0.4 * line(i) end) or nil,
    k_k = rwkv.curve({ H, V }, function(i) return 0.71 - 0.1 * line(i) end),
    k_a = rwkv.curve({ H, V }, function() return 1.02 end),
    r_k = rwkv.curve({ H, V }, function() return -0.04 end),
  }
  local leaves, named = {}, {}
  for _, name in ipairs { "mix_r", "mix_w", "mix_k", "mix_v", "mix_a", "mix_g", "decay", "a", "v0", "k_k", "k_a", "r_k" } do
    local leaf = p[name]
    if leaf then
      leaves[#leaves + 1] = leaf
      named[#named + 1] = { name, name:find "^k_" and tensor.view(leaf, 0, { wide }) or leaf }
    end
  end
  local bound = 0.5 / math.sqrt(d)
  local r, v = rwkv.map(d, wide, nn.init.uniform(bound)), rwkv.map(d, wide, nn.init.uniform(bound))
  local k, out = rwkv.map(d, wide, nn.init.uniform(0.1 * bound)), rwkv.map(wide, d)
  local norm = rwkv.group_norm(cfg, ((1 + n) / cfg.n_layers) ^ 0.7)
  local children = { { "r", r }, { "k", k }, { "v", v }, { "out", out }, { "norm", norm } }
  local function low_rank(name, rank, inner, outer)
    local orthogonal = nn.init.orthogonal(0.1 * math.sqrt(math.max(1, rank / wide)))
    local parts, call = rwkv.low_rank(d, wide, { names = { name .. "_a", name .. "_b" }, bias = p[name], rank = rank,
                                                 inner = inner, outer = outer, up = orthogonal })
    children[#children + 1], children[#children + 2] = parts[1], parts[2]
    return call
  end
  local decay, rate = low_rank("decay", cfg.decay_rank, "tanh"), low_rank("a", cfg.rate_rank, nil, "sigmoid")
  local gate, first_value = low_rank("g", cfg.gate_rank, "sigmoid"), n > 0 and low_rank("v0", cfg.value_rank, nil, "sigmoid")
  local prefix = "layers." .. n .. "."

  local decays = { gate_start.decays("decay", p.decay, function(x) return math.exp(-FASTEST / (1 + math.exp(-x))) end, function(keep)
    local share = math.min(-math.log(keep) / FASTEST, 1 - 1e-6)              -- it keeps at least exp(-FASTEST) = 0.545
    return math.log(share / (1 - share))
  end) }
  return nn.module({ decays = decays, leaves = leaves, named = named, children = children }, function(_, z, done, state, new, probe, shared)
    local mixed = rwkv.shifter(z, done, state, new, prefix .. "att_x", "previous")
    local function heads(t, name) return rwkv.heads(t, H, probe, prefix .. name) end
    local input_v = mixed(p.mix_v)
    local value = v(input_v)
    if n == 0 then shared.value = value
    else value = ops.lerp { a = value, b = shared.value, m = first_value(input_v) } end
    local w = heads(ops.wkv_decay { x = decay(mixed(p.mix_w)), by = "sigmoid" }, "w")
    local a, key = heads(rate(mixed(p.mix_a)), "a"), heads(k(mixed(p.mix_k)), "k")
    local read, g = heads(r(mixed(p.mix_r)), "r"), heads(gate(mixed(p.mix_g)), "g")
    value = heads(value, "v")
    local write, taken, back = ops.wkv7_keys { k = key, a = a, k_k = p.k_k, k_a = p.k_a }
    if probe then
      write, taken, back = probe(prefix .. "k_write", write), probe(prefix .. "k_out", taken), probe(prefix .. "k_back", back)
    end
    local y
    y, new[prefix .. "S"] = ops.wkv7 { r = read, keep = w, k = write, v = value, out = taken, back = back, done = done,
                                       S = state[prefix .. "S"] }
    if probe then y = probe(prefix .. "retrieved", y) end
    return out(rwkv.joined(norm { y = y, gate = g, r = read, k = write, bonus = p.r_k, v = value }))
  end)
end

local function channel_mixing(cfg, n)
  local d, _, down = cfg.d_model, rwkv.depth(cfg, n)
  return rwkv.channel_mixing(cfg, n, {
    mix_k = rwkv.curve({ d }, function(i) return 1 - (i / d) ^ (down ^ 4) end),
    key = nn.init.uniform(0.5 / math.sqrt(d)), weighs = "previous",
  })
end

return {
  doc = "one matrix per head, with a decay and a generalised delta rule (RWKV-7)",
  source = "Peng et al. 2025, RWKV-7 Goose; RWKV-LM, RWKV-v7",
  checked = "an independent program",
  equations = [[
z = norm1(e), delta = z_{t-1} - z_t, input_c = z + delta*mix_c;  r, k, v = products of their inputs
w = exp(-e^{-1/2} sigma(decay + decay_b tanh(decay_a input_w)));  a = sigma(a + a_b a_a input_a);  g = g_b sigma(g_a input_g)
layers > 0: v += (v of layer 0 - v) * sigma(v0 + v0_b v0_a input_v)
kappa = normalize(k*k_k) a head, k~ = k*(1 + (a-1)*k_a)
S = S (diag(w) - kappa (a*kappa)^T) + v k~^T,  y = S r
e += out((groupnorm(y) + (sum r*r_k*k~) v) * g);  z = norm2(e), e += v(relu(k(z + delta*mix_k))^2)]],
  config = {
    d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_head = 32, d_ffn = 512, decay_rank = 32, rate_rank = 32,
    value_rank = 32, gate_rank = 64, embed_act = "none", ln_eps = 1e-5, gn_eps = 64e-5, remember = "published",
    reset = true,
  },
  counts = rwkv.counts,
  build = function(cfg)
    return rwkv.build(cfg, {
      attn = time_mixing, ffn = channel_mixing, states = { S = "[B,H,K,V]" },
      sizes = { H = cfg.n_heads, K = cfg.d_head, V = cfg.d_head }, complexity = "5*L*H*K*V", reads = "unlearned",
    })
  end,
}
