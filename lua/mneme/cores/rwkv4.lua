-- rwkv4.lua -- RWKV-4: per channel, an average of values with exponentially decaying weights; no matrix, no softmax.
-- Peng et al. 2023, arXiv 2305.13048; initial values of RWKV-LM's RWKV-v4.
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local rwkv = require "mneme.models.rwkv"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- Orthogonal, tall matrices longer.
local function orthogonal(rows, cols) return nn.init.orthogonal(rows > cols and math.sqrt(rows / cols) or 1) end

-- Names k, v, r, out .weight [d,d], mix_k, mix_v, mix_r, decay, first [d].
local function time_mixing(cfg, n)
  local d = cfg.d_model
  local up, down = rwkv.depth(cfg, n)
  local p = {
    mix_k = rwkv.curve({ d }, function(i) return (i / d) ^ down end),
    mix_v = rwkv.curve({ d }, function(i) return (i / d) ^ down + 0.3 * up end),
    mix_r = rwkv.curve({ d }, function(i) return (i / d) ^ (0.5 * down) end),
    decay = rwkv.curve({ d }, function(i) return -5 + 8 * rwkv.along(i, d) ^ (0.7 + 1.3 * up) end),
    first = rwkv.curve({ d }, function(i) return math.log(0.3) + 0.5 * ((i + 1) % 3 - 1) end),
  }
  local named = tables.map({ "mix_k", "mix_v", "mix_r", "decay", "first" }, function(name) return { name, p[name] } end)
  local k, v, r, out = rwkv.map(d, d), rwkv.map(d, d, orthogonal(d, d)), rwkv.map(d, d, nil, "sigmoid"), rwkv.map(d, d)
  local children = { { "k", k }, { "v", v }, { "r", r }, { "out", out } }
  local prefix = "layers." .. n .. "."
  local decays = { gate_start.decays("decay", p.decay, rwkv.keep_of, rwkv.decay_of) }
  local function average(args, state)
    args.decay, args.first, args.p, args.q, args.o = p.decay, p.first, state[prefix .. "p"], state[prefix .. "q"], state[prefix .. "o"]
    return ops.wkv4(args)
  end
  -- One of the two sums as it is kept, over e^o: what scales it is the same of both, and no function of the parameters.
  local function sum(name, kinds)
    return { state = prefix .. name, count = d, kinds = kinds, last = function(u, done, h, state)
      local key, value, decay = u[1], kinds[3] and u[2], u[#u]
      local _, _, _, o = tensor.off_tape(average, { k = key, v = key, done = done }, state)
      local x = (key - o):exp()
      return select(2, ops.gated_scan { x = value and x * value or x, a = (-decay:exp()):exp(), done = done, h = h * (state[prefix .. "o"] - o):exp() })
    end }
  end
  local of_k, of_v, of_decay = { weight = k.weight }, { weight = v.weight, input = 2 }, { bias = p.decay }
  local sensitivities = { sum("p", { of_k, of_v, of_decay }), sum("q", { of_k, of_decay }) }
  return nn.module({ decays = decays, named = named, children = children, sensitivities = sensitivities },
    function(_, z, done, state, new, probe, _, sense)
    local mixed = rwkv.shifter(z, done, state, new, prefix .. "att_x", "current")
    local function seen(name, t) return probe and probe(prefix .. name, t) or t end
    local read_k, read_v = mixed(p.mix_k), mixed(p.mix_v)
    if sense then
      sense(read_k)
      sense(read_v, 2)
    end
    local key, value, gate = seen("k", k(read_k)), seen("v", v(read_v)), seen("r", r(mixed(p.mix_r)))
    if probe then
      local function constant(x) return (ops.reshape(x, { d0 = 1, d1 = d })) end
      probe(prefix .. "w", (ops.probe_constant { like = key, x = ops.wkv_decay { x = constant(p.decay) } }))
      probe(prefix .. "first", (ops.probe_constant { like = key, x = constant(p.first) }))
    end
    local y
    y, new[prefix .. "p"], new[prefix .. "q"], new[prefix .. "o"] = average({ k = key, v = value, done = done }, state)
    return out(gate * seen("retrieved", y))
  end)
end

local function channel_mixing(cfg, n)
  local d, _, down = cfg.d_model, rwkv.depth(cfg, n)
  local function mix() return rwkv.curve({ d }, function(i) return (i / d) ^ down end) end
  return rwkv.channel_mixing(cfg, n, { mix_k = mix(), mix_r = mix(), key = orthogonal(cfg.d_ffn, d), weighs = "current" })
end

return {
  doc = "averages of values, each channel with its own learned decay (RWKV-4)",
  source = "Peng et al. 2023, RWKV; RWKV-LM, RWKV-v4",
  checked = "an independent program",
  equations = [[
z = norm1(e), inputs mixed with the step before: z_t*mix + z_{t-1}*(1-mix);  k, v, r = products of them
wkv_t = (sum_{i<t} e^{(t-1-i)w + k_i} v_i + e^{first + k_t} v_t) / (the same without v),  w = -exp(decay)
e += out(sigma(r) * wkv);  z = norm2(e), e += sigma(r) * v(relu(k)^2)
kept: p, q, the two sums over e^o, and o, the largest exponent; the inputs of the last step]],
  config = {
    d_in = 16, d_model = 128, n_layers = 4, d_ffn = 512, embed_act = "none", ln_eps = 1e-5, remember = "published", reset = true,
  },
  build = function(cfg)
    return rwkv.build(cfg, {
      attn = time_mixing, ffn = channel_mixing, states = { p = "[B,D]", q = "[B,D]", o = "[B,D]" },
      start = { o = -1e38 }, complexity = "8*L*D", reads = "averages",
      lanes = { 52 * cfg.n_layers * cfg.d_model, 150 * cfg.n_layers * cfg.d_model },       -- two exponentials, again in backward
    })
  end,
}
