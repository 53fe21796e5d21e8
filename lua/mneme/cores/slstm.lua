-- slstm.lua -- sLSTM, an LSTM whose input gate is an exponential and whose cell is normalised, written with mn.recur.
--   i, f, z, o = W x + U h + bias;   m' = max(log sigma(f) + m, i);   a = exp(log sigma(f) + m - m'),  b = exp(i - m')
--   c = a c + b tanh(z);   n = a n + b;   h = sigma(o) c / n
-- m keeps the exponentials in range and changes nothing else; it begins below all inputs, so that the first i is the first m.  One head: U is a full matrix.
local nn = require "mneme.tensor.nn"
local recur = require "mneme.tensor.recur"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local LOWEST = -1e30                     -- of m where an episode begins

-- What the state is there, by number of environments.
local function starts(d)
  local by_size = {}
  return function(B)
    local zero = tensor.new { shape = { B, d } }
    by_size[B] = by_size[B] or { h = zero, c = zero, n = zero, m = tensor.new { shape = { B, d } }:fill(LOWEST) }
    return by_size[B]
  end
end

local function layer(d_in, d, cfg)
  local gates = { "i", "f", "z", "o" }
  local wi, wh, named = recurrent.gates(gates, d_in, d)
  local bias = tensor.new { shape = { 4 * d }, grad = true }
  for k, gate in ipairs(gates) do named[#named + 1] = { "h" .. gate .. ".bias", tensor.view(bias, (k - 1) * d, { d }) } end
  if cfg.f_bias ~= 0 then tensor.view(bias, d, { d }):fill(cfg.f_bias) end
  local function body(input, s)
    local all = input + ops.linear(s.h, wh)
    local function gate(k) return all:slice(-1, (k - 1) * d, k * d) end
    local i, keep = gate(1), s.m - (-gate(2)):softplus()            -- log sigma(f) = -softplus(-f)
    local m = keep:maximum(i)
    local a, b = (keep - m):exp(), (i - m):exp()
    local c, n = a * s.c + b * gate(3):tanh(), a * s.n + b
    local h = gate(4):sigmoid() * (c / n)
    return h, { h = h, c = c, n = n, m = m }
  end
  local start = starts(d)
  return nn.module({ leaves = { wi, wh, bias }, named = named }, function(_, x, done, h, c, n, m)
    local y, s = recur(body, { x = (ops.linear(x, wi, bias)), state = { h = h, c = c, n = n, m = m }, done = done,
      start = done and start(x:shape()[2]) or nil })
    return y, s.h, s.c, s.n, s.m
  end)
end

return {
  doc = "LSTM with an exponential input gate and a normalised cell (sLSTM, of xLSTM)",
  source = "Beck et al. 2024, xLSTM, section 2.2, equations 8 to 17, forget gate sigma; without its block of projections",
  config = { d_in = 16, d_model = 128, n_layers = 1, f_bias = 0, reset = true },
  build = function(cfg)
    local core = recurrent.build(cfg, layer, { "h", "c", "n", "m" })
    core.complexity, core.start = { step = "5*L*D" }, { m = LOWEST }
    return core
  end,
}
