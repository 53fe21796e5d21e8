-- gru.lua -- the gated recurrent unit, a strong baseline.
--   r, z = sigma(W x + U h),  n = tanh(W x + r*(U h + bias)),  h = (1-z)*n + z*h;   every W x has its own bias
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local gates = { "r", "z", "n" }             -- in torch's order

-- One layer: three input gates as one product for the whole sequence, then the recurrence.
local function layer(d_in, d, cfg)
  local wi, wh, bi, named = recurrent.gates(gates, d_in, d, "i")
  local bn = tensor.new { shape = { d }, grad = true }
  named[#named + 1] = { "hn.bias", bn }
  local z = tensor.view(bi, d, { d })
  if cfg.z_bias ~= 0 then z:fill(cfg.z_bias) end
  return nn.module({ decays = { gate_start.keeps("z", z) }, leaves = { wi, bi, wh, bn }, named = named }, function(_, x, done, h)
    return ops.gru { i = (ops.linear(x, wi, bi)), w = wh, bias = bn, done = done, h = h }
  end)
end

return {
  doc = "gated recurrent unit (GRU)",
  source = "Cho et al. 2014; as in the released agents (flax GRUCell)",
  checked = "the released code and an independent program",
  config = { d_in = 16, d_model = 680, n_layers = 1, z_bias = 0, remember = "published", reset = true },
  build = function(cfg) return recurrent.build(cfg, layer, { "h" }, { gates = gates }) end,
}
