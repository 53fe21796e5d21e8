-- slstm.lua -- sLSTM's cell as a core: an LSTM whose input gate is an exponential and whose cell is normalised (slstm_cell.lua has it).  One
-- head, R a full matrix; slstm_block is it in its block.
local slstm_cell = require "mneme.models.layers.slstm_cell"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local function layer(d_in, d, cfg)
  local gates = { "i", "f", "z", "o" }
  local wi, wh, bias, named = recurrent.gates(gates, d_in, d, "h")
  local f = tensor.view(bias, d, { d })
  if cfg.f_bias ~= 0 then f:fill(cfg.f_bias) end
  local run = slstm_cell.new(d, function(h) return (ops.linear(h, wh)) end)
  return nn.module({ decays = { gate_start.keeps("f", f) }, leaves = { wi, wh, bias }, named = named },
    function(_, x, done, ...) return run((ops.linear(x, wi, bias)), done, ...) end)
end

return {
  doc = "LSTM with an exponential input gate and a normalised cell (sLSTM, of xLSTM)",
  source = "Beck et al. 2024, xLSTM, section 2.2, equations 8 to 17, forget gate sigma; without its block of projections",
  config = { d_in = 16, d_model = 128, n_layers = 1, f_bias = 0, remember = "published", reset = true },
  build = function(cfg)
    return recurrent.build(cfg, layer, slstm_cell.states, { complexity = { step = "5*L*D" }, start = { m = slstm_cell.LOWEST } })
  end,
}
