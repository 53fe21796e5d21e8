-- lstm.lua -- long short-term memory: a cell with input, forget and output gates.
--   i, f, g, o = W x + U h + bias;   c = sigma(f) c + sigma(i) tanh(g);   h = sigma(o) tanh(c)
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local gates = { "i", "f", "g", "o" }             -- in torch's order

-- One layer: the input's part of the four gates, biases included, as one product for the whole sequence; then the
-- recurrence.
local function layer(d_in, d, cfg)
  local wi, wh, bias, named = recurrent.gates(gates, d_in, d, "h")
  local i, f = tensor.view(bias, 0, { d }), tensor.view(bias, d, { d })
  if cfg.i_bias ~= 0 then i:fill(cfg.i_bias) end
  if cfg.f_bias ~= 0 then f:fill(cfg.f_bias) end
  return nn.module({ decays = { gate_start.keeps("f", f, i) }, leaves = { wi, wh, bias }, named = named }, function(_, x, done, h, c)
    return ops.lstm { i = (ops.linear(x, wi, bias)), w = wh, done = done, h = h, c = c }
  end)
end

return {
  doc = "long short-term memory: a cell with input, forget and output gates (LSTM)",
  source = "Hochreiter and Schmidhuber 1997; Gers et al. 2000; as in the released agents (flax LSTMCell)",
  checked = "the released code and an independent program",
  config = { d_in = 16, d_model = 600, n_layers = 1, f_bias = 0, i_bias = 0, remember = "published", reset = true },
  build = function(cfg) return recurrent.build(cfg, layer, { "h", "c" }, { gates = gates }) end,
}
