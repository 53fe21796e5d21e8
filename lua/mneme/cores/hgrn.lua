-- hgrn.lua -- HGRN: a gated recurrence whose forget gates have a lower bound that rises with the layer.
--   f = b + (1-b) sigma(W_f x + bias);   h = f*h + (1-f)*silu(W_i x);   attn = out(h / rms(h) * norm.weight * silu(W_g x))
--   b of layer n: softmax of lower_bounds over the layers, added up over layers 1 .. n; 0 in layer 0
-- As in flash-linear-attention, whose state is real (the paper's is complex).  The bias is ours: it begins at 0, as if it were not there, and
-- core.remember sets it.  Embedding, norms, feed-forward and residual connections are those of the other cores here (block.lua).
local block = require "mneme.models.block"
local errors = require "mneme.base.errors"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local parameter = require("mneme.tensor.random").parameters.new

-- The lower bound of layer n, elementwise, of what all layers' rows give; nil in layer 0.
local function bound(rows, n)
  if n == 0 then return nil end
  local most, below, sum = rows[1], nil, nil
  for l = 2, #rows do most = most:maximum(rows[l]) end
  for l, row in ipairs(rows) do
    local e = (row - most):exp()
    sum = sum and sum + e or e
    if l > 1 and l <= n + 1 then below = below and below + e or e end
  end
  return below / sum
end

-- The recurrence, of what the rows give.
local function recur(f, i, b, done, h)
  local keep = b and b + (1 - b) * f or f
  return ops.gated_scan { x = (1 - keep) * i:silu(), a = keep, done = done, h = h }
end

-- Names f, i, g .weight [d,d], f.bias [d], norm.weight [d], out.weight [d,d].  bounds: the leaf of all layers.
local function attention(cfg, n, prefix, bounds)
  local d, L, lecun, state = cfg.d_model, cfg.n_layers, nn.init.lecun_normal(), prefix .. "h"
  local W, bias, weight, named = parameter { 3 * d, d }, parameter { d }, parameter({ d }):fill(1), {}
  for k, name in ipairs { "f", "i", "g" } do
    local part = tensor.view(W, (k - 1) * d * d, { d, d })
    lecun(part:data(), d, d)
    named[k] = { name .. ".weight", part }
  end
  named[4], named[5] = { "f.bias", bias }, { "norm.weight", weight }
  local out = nn.linear(d, d, { bias = false, init = lecun, act = block.closing(cfg.flow) })
  local function rows_of(t) return function(l) return t:slice(-1, l * d, (l + 1) * d) end end
  local function bounds_of(t)
    local rows = {}
    for l = 1, L do rows[l] = rows_of(t)(l - 1) end
    return bound(rows, n)
  end
  local least = n / L                                     -- of the decay of a new core
  local decay = gate_start.decays("f", bias, function(v) return least + (1 - least) / (1 + math.exp(-v)) end, function(keep)
    local p = (keep - least) / (1 - least)
    if p <= 0 then
      errors.raise(("core hgrn: layer %d keeps at least %.3g of each step, and this half-life asks for %.3g"):format(n, least, keep), { status = 2 })
    end
    p = math.min(p, 1 - 1e-6)
    return math.log(p / (1 - p))
  end)
  local kinds = { { weight = W }, { weight = W, row = d }, { bias = bias } }
  for l = 0, n > 0 and L - 1 or -1 do kinds[#kinds + 1] = { bias = bounds, row = l * d } end
  local credit = { { state = state, count = d, kinds = kinds, last = function(u, done, h)
    local _, after = recur((u[1] + u[3]):sigmoid(), u[2], bound({ unpack(u, 4) }, n), done, h)
    return after
  end } }
  return nn.module({ leaves = { W, bias, weight }, named = named, children = { { "out", out } } }, function(_, x, done, all, new, probe, sense)
    if sense then sense(x) end
    local T, B = unpack(x:shape())
    local function seen(name, t) return probe and probe(prefix .. name, t) or t end
    local row = rows_of(ops.linear(x, W))
    local y
    y, new[state] = recur(seen("f", (row(0) + bias):sigmoid()), row(1), bounds_of(bounds), done, all[state])
    y = seen("retrieved", y):reshape(T, B, 1, d):normalise { by = "rms", eps = cfg.rms_eps }:reshape(T, B, d)
    return out(y * weight * row(2):silu())
  end), { decay }, credit
end

return {
  doc = "a gated recurrence whose forget gates have lower bounds that rise with the layer (HGRN)",
  source = "Qin et al. 2023, Hierarchically Gated Recurrent Neural Network, arXiv 2311.04823, section 3; real, as flash-linear-attention has it",
  checked = "an independent program",
  config = {
    d_in = 16, d_model = 128, n_layers = 4, d_ffn = 128, rms_eps = 1e-5, flow = "residual", embed_act = "relu", ln_eps = 1e-6,
    remember = "published", reset = true,
  },
  build = function(cfg)
    local d, L = cfg.d_model, cfg.n_layers
    local bounds = parameter { L * d }
    local core = block.stack(cfg, { sizes = { D = d }, complexity = { step = "2*L*D" }, reads = "vector" }, { h = "[B,D]" }, function(n, prefix)
      local attn, decays, credit = attention(cfg, n, prefix, bounds)
      return block.new(cfg, attn), decays, credit
    end)
    core.module.leaves, core.module.named = { bounds }, { { "lower_bounds", tensor.view(bounds, 0, { L, d }) } }
    return core
  end,
}
