-- gru.lua -- the gated recurrent unit, the baseline that is hard to beat.
local nn = require "mneme.nn"
local tensor = require "mneme.tensor"
local ops = tensor.ops

-- One layer: three input gates as one product for the whole sequence, then the recurrence.
local function layer(d_in, d)
  local wi, bi = tensor.new { shape = { 3 * d, d_in }, grad = true }, tensor.new { shape = { 3 * d }, grad = true }
  local wh, bn = tensor.new { shape = { 3 * d, d }, grad = true }, tensor.new { shape = { d }, grad = true }
  local orthogonal = nn.init.orthogonal(math.sqrt(2))
  local named = {}
  for i, gate in ipairs { "r", "z", "n" } do
    local w = tensor.view(wi, (i - 1) * d * d_in, { d, d_in })
    local u = tensor.view(wh, (i - 1) * d * d, { d, d })
    orthogonal(w:data(), d, d_in)
    orthogonal(u:data(), d, d)
    named[#named + 1] = { "i" .. gate .. ".weight", w }
    named[#named + 1] = { "i" .. gate .. ".bias", tensor.view(bi, (i - 1) * d, { d }) }
    named[#named + 1] = { "h" .. gate .. ".weight", u }
  end
  named[#named + 1] = { "hn.bias", bn }
  return nn.module({ leaves = { wi, bi, wh, bn }, named = named }, function(_, x, done, h)
    return ops.gru { i = (ops.linear(x, wi, bi)), w = wh, bias = bn, done = done, h = h }
  end)
end

return {
  doc = "gated recurrent unit: a vector that is mixed with what is new",
  source = "Cho et al. 2014; as in the released agents (flax GRUCell)",
  config = { d_in = 16, d_model = 680, n_layers = 1, reset = true },
  build = function(cfg)
    local layers, states = {}, {}
    for n = 0, cfg.n_layers - 1 do
      layers[n + 1] = { tostring(n), layer(n == 0 and cfg.d_in or cfg.d_model, cfg.d_model) }
      states["layers." .. n .. ".h"] = "[B,D]"
    end
    return {
      module = nn.container { { "layers", nn.container(layers) } },
      d_out = cfg.d_model, states = states, sizes = { D = cfg.d_model },
      complexity = { step = "3*L*D" },
      cost = function()
        local weights = 3 * cfg.d_model * (cfg.d_in + cfg.d_model + (cfg.n_layers - 1) * 2 * cfg.d_model)
        return { products = 2 * weights, forward = 0, backward = 0 }
      end,
      forward = function(x, done, state, probe)
        local new = {}
        for n = 0, cfg.n_layers - 1 do
          local name = "layers." .. n .. ".h"
          x, new[name] = layers[n + 1][2](x, cfg.reset and done or nil, state[name])
          if probe then x = probe(name, x) end
        end
        return x, new
      end,
    }
  end,
}
