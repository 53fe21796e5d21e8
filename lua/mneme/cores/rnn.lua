-- rnn.lua -- the simple recurrent network, written with mn.recur: a map of the input and of the state before, and a tanh.
--   h = tanh(W x + U h + bias)
local nn = require "mneme.tensor.nn"
local recur = require "mneme.tensor.recur"
local recurrent = require "mneme.models.recurrent"

local function layer(d_in, d)
  local wi, wh = nn.linear(d_in, d), nn.linear(d, d, { bias = false })
  local function body(i, h)
    local after = (i + wh(h)):tanh()
    return after, after
  end
  return nn.module({ children = { { "i", wi }, { "h", wh } } }, function(_, x, done, h)
    return recur(body, { x = wi(x), state = h, done = done })
  end)
end

return {
  doc = "simple recurrent network: a tanh of the input and of the state before (Elman's RNN)",
  source = "Elman 1990; equations as torch.nn.RNN",
  config = { d_in = 16, d_model = 128, n_layers = 1, reset = true },
  build = function(cfg) return recurrent.build(cfg, layer, { "h" }, { complexity = { step = "L*D" } }) end,
}
