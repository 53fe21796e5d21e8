-- recurrent.lua -- what the cores gru and lstm share: layers whose state is one or two vectors, and gates whose
-- matrices are in one leaf, so that they are one product.
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"

local recurrent = {}

---The matrices of gates, each orthogonal (gain sqrt 2) on its own: names i<gate>.weight and h<gate>.weight.
---@param gates string[]
---@return Tensor wi [gates*d,d_in]
---@return Tensor wh [gates*d,d]
---@return table named windows on them, as nn.module takes them
function recurrent.gates(gates, d_in, d)
  local wi = tensor.new { shape = { #gates * d, d_in }, grad = true }
  local wh = tensor.new { shape = { #gates * d, d }, grad = true }
  local orthogonal, named = nn.init.orthogonal(math.sqrt(2)), {}
  for i, gate in ipairs(gates) do
    for _, part in ipairs { { "i", wi, d_in }, { "h", wh, d } } do
      local window = tensor.view(part[2], (i - 1) * d * part[3], { d, part[3] })
      orthogonal(window:data(), d, part[3])
      named[#named + 1] = { part[1] .. gate .. ".weight", window }
    end
  end
  return wi, wh, named
end

---Build a core of such layers.
---@param cfg table d_in, d_model, n_layers, reset
---@param layer fun(d_in: integer, d: integer, cfg: table): Module called as m(x, done, ...states) -> y, ...states; its field
---  `decays`: as in gate_start.lua
---@param names string[] of a layer's states, [B,D] each
function recurrent.build(cfg, layer, names)
  local layers, states, decays = {}, {}, {}
  for n = 0, cfg.n_layers - 1 do
    local built = layer(n == 0 and cfg.d_in or cfg.d_model, cfg.d_model, cfg)
    layers[n + 1], decays[n + 1] = { tostring(n), built }, built.decays
    for _, name in ipairs(names) do states["layers." .. n .. "." .. name] = "[B,D]" end
  end
  return {
    module = nn.container { { "layers", nn.container(layers) } },
    d_out = cfg.d_model, states = states, sizes = { D = cfg.d_model },
    complexity = { step = "3*L*D" }, reads = "vector", decays = decays,
    forward = function(x, done, state, probe)
      local new = {}
      for n = 0, cfg.n_layers - 1 do
        local prefix, before = "layers." .. n .. ".", {}
        for i, name in ipairs(names) do before[i] = state[prefix .. name] end
        local out = { layers[n + 1][2](x, cfg.reset and done or nil, unpack(before)) }
        for i, name in ipairs(names) do new[prefix .. name] = out[i + 1] end
        x = probe and probe(prefix .. names[1], out[1]) or out[1]
      end
      return x, new
    end,
  }
end

return recurrent
