-- slstm_block.lua -- sLSTM in its block: the cell of slstm by heads, behind a short convolution, and a gated feed-forward part.
local block = require "mneme.models.block"
local slstm_cell = require "mneme.models.layers.slstm_cell"
local errors = require "mneme.base.errors"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local parameter = require("mneme.tensor.random").parameters.new

-- i, f, z, o of x, [.,.,4*d], by matrices [4*d,K] of one block a head and gate; named with a first letter.
local function by_heads(w, bias, H, K)
  return function(x, T, B) return (ops.head_linear { x = x:reshape(T, B, 4 * H, K), w = w, b = bias }):reshape(T, B, -1) end
end

-- Names norm1, conv.weight, conv.bias, i, f, z, o .weight [d,K] and .bias [d], ri, rf, rz, ro .weight [d,K], outnorm.weight [d], norm2, up, down.
local function layer(cfg, l, prefix)
  local d, H, W, F = cfg.d_model, cfg.n_heads, cfg.conv_size, cfg.d_ffn
  local K = d / H
  local small = nn.init.normal(math.sqrt(2 / (5 * d)))
  local taps, conv_bias = parameter({ d, W }, nn.init.uniform(1 / math.sqrt(W))), parameter({ d }, nn.init.uniform(1 / math.sqrt(W)))
  local inward, again, bias, weight = parameter({ 4 * d, K }, small), parameter { 4 * d, K }, parameter { 4 * d }, parameter({ d }):fill(1)
  local named = { { "conv.weight", tensor.view(taps, 0, { d, 1, W }) }, { "conv.bias", conv_bias }, { "outnorm.weight", weight } }
  for k, gate in ipairs { "i", "f", "z", "o" } do
    local at = (k - 1) * d
    named[#named + 1] = { gate .. ".weight", tensor.view(inward, at * K, { d, K }) }
    named[#named + 1] = { gate .. ".bias", tensor.view(bias, at, { d }) }
    named[#named + 1] = { "r" .. gate .. ".weight", tensor.view(again, at * K, { d, K }) }
  end
  local depth = cfg.n_layers > 1 and l / (cfg.n_layers - 1) or 0
  for j = 0, d - 1 do bias:data()[d + j] = 5 - 12 * (K > 1 and (j % K) / (K - 1) or 0) ^ (0.3 + 1.3 * depth) end
  local norm1, norm2 = nn.layer_norm(d, cfg.ln_eps), nn.layer_norm(d, cfg.ln_eps)
  local up = nn.linear(d, 2 * F, { bias = false, init = small })
  local down = nn.linear(F, d, { bias = false, init = nn.init.normal(2 / (cfg.n_layers * math.sqrt(d))) })
  local gates, more = by_heads(inward, bias, H, K), by_heads(again, nil, H, K)
  local run = slstm_cell.new(d, function(h)
    local B = h:shape()[1]
    return more(ops.concat { a = h, b = h, c = h, d = h }, 1, B):reshape(B, 4 * d)
  end)
  local ones, zeros = tensor.new { shape = { K } }:fill(1), tensor.new { shape = { K } }
  local children = { { "norm1", norm1 }, { "norm2", norm2 }, { "up", up }, { "down", down } }
  local function of_convolution(j)                     -- its bias, through the forget gate's row of unit j
    local sum, w, b = 0, inward:data() + (d + j) * K, conv_bias:data() + math.floor(j / K) * K
    for k = 0, K - 1 do sum = sum + w[k] * b[k] / (1 + math.exp(-b[k])) end
    return sum
  end
  local decays = { gate_start.keeps("f", tensor.view(bias, d, { d }), nil, of_convolution) }
  return nn.module({ leaves = { taps, conv_bias, inward, again, bias, weight }, named = named, children = children }, function(_, e, done, state, new, probe)
    local T, B = unpack(e:shape())
    local function of(name) return state[prefix .. name] end
    local x = norm1(e)
    local c
    c, new[prefix .. "conv"] = ops.short_conv { x = x, w = taps, done = done, state = of "conv" }
    c = (c + conv_bias):silu()
    local y, h, c_after, n, m = run(gates(ops.concat { a = c, b = c, c = x, d = x }, T, B), done, of "h", of "c", of "n", of "m")
    for name, s in pairs { h = h, c = c_after, n = n, m = m } do new[prefix .. name] = s end
    if probe then y = probe(prefix .. "h", y) end
    y = (ops.layer_norm { x = y:reshape(T, B, H, K), weight = ones, bias = zeros, eps = cfg.gn_eps }):reshape(T, B, d)
    e = e + y * weight
    local both = up(norm2(e))
    return e + down(both:slice(-1, 0, F):gelu() * both:slice(-1, F))
  end), decays
end

return {
  doc = "sLSTM in its block: heads, a short convolution and a gated feed-forward part (xLSTM)",
  source = "Beck et al. 2024, xLSTM, arXiv 2405.04517, section 2.2 and figure 10; NX-AI/xlstm, xlstm/blocks/slstm",
  checked = "an independent program",
  equations = [[
x = norm1(e);  c = silu(conv(x) + bias) over the last conv_size inputs of the episode
i, f of c and z, o of x, each W . + R h + bias, with W and R a block a head
m' = max(log sigma(f) + m, i);  a = exp(log sigma(f) + m - m'),  b = exp(i - m')
c = a c + b tanh(z);  n = a n + b;  h = sigma(o) c / n
e += h by heads, less its mean, over its deviation, times outnorm.weight;  e += down(gelu(g) u),  g, u = up(norm2(e))
as published: all of it and the initial values but for the embedding, the biases of layer norms and the last norm; published d_ffn: 4/3 d_model, as here
to the next multiple of 64]],
  config = { d_in = 16, d_model = 128, n_layers = 2, n_heads = 4, conv_size = 4, d_ffn = 192, embed_act = "none", ln_eps = 1e-5, gn_eps = 1e-5,
    remember = "published", reset = true },
  counts = { conv_size = 2 },
  build = function(cfg, given)
    while not (given and given.n_heads) and cfg.d_model % cfg.n_heads ~= 0 do cfg.n_heads = cfg.n_heads - 1 end     -- a width that size= chose
    if cfg.d_model % cfg.n_heads ~= 0 then
      errors.raise(("core slstm_block: n_heads = %g, expected a divisor of d_model = %d"):format(cfg.n_heads, cfg.d_model), { status = 2 })
    end
    return block.stack(cfg, { start = { m = slstm_cell.LOWEST }, sizes = { D = cfg.d_model, W = cfg.conv_size - 1 }, complexity = { step = "5*L*D" },
      reads = "vector" }, { h = "[B,D]", c = "[B,D]", n = "[B,D]", m = "[B,D]", conv = "[B,W,D]" },
      function(l, prefix) return layer(cfg, l, prefix) end, { norm = nn.layer_norm(cfg.d_model, cfg.ln_eps) })
  end,
}
