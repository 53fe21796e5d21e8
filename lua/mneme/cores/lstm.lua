-- lstm.lua -- long short-term memory: a cell that is written, kept and read through gates.
--   i, f, g, o = W x + U h + bias;   c = sigma(f) c + sigma(i) tanh(g);   h = sigma(o) tanh(c)
local nn = require "mneme.nn"
local tensor = require "mneme.tensor"
local ops = tensor.ops

-- One layer: the input's part of the four gates, biases included, as one product for the whole sequence; then the
-- recurrence.
local function layer(d_in, d)
  local wi, wh = tensor.new { shape = { 4 * d, d_in }, grad = true }, tensor.new { shape = { 4 * d, d }, grad = true }
  local bias = tensor.new { shape = { 4 * d }, grad = true }
  local orthogonal = nn.init.orthogonal(math.sqrt(2))
  local named = {}
  for i, gate in ipairs { "i", "f", "g", "o" } do
    local w = tensor.view(wi, (i - 1) * d * d_in, { d, d_in })
    local u = tensor.view(wh, (i - 1) * d * d, { d, d })
    orthogonal(w:data(), d, d_in)
    orthogonal(u:data(), d, d)
    named[#named + 1] = { "i" .. gate .. ".weight", w }
    named[#named + 1] = { "h" .. gate .. ".weight", u }
    named[#named + 1] = { "h" .. gate .. ".bias", tensor.view(bias, (i - 1) * d, { d }) }
  end
  return nn.module({ leaves = { wi, wh, bias }, named = named }, function(_, x, done, h, c)
    return ops.lstm { i = (ops.linear(x, wi, bias)), w = wh, done = done, h = h, c = c }
  end)
end

return {
  doc = "long short-term memory: a cell that is written, kept and read through gates",
  source = "Hochreiter and Schmidhuber 1997; Gers et al. 2000; as in the released agents (flax LSTMCell)",
  config = { d_in = 16, d_model = 600, n_layers = 1, reset = true },
  build = function(cfg)
    local layers, states = {}, {}
    for n = 0, cfg.n_layers - 1 do
      layers[n + 1] = { tostring(n), layer(n == 0 and cfg.d_in or cfg.d_model, cfg.d_model) }
      states["layers." .. n .. ".h"], states["layers." .. n .. ".c"] = "[B,D]", "[B,D]"
    end
    return {
      module = nn.container { { "layers", nn.container(layers) } },
      d_out = cfg.d_model, states = states, sizes = { D = cfg.d_model },
      complexity = { step = "3*L*D" },
      forward = function(x, done, state, probe)
        local new = {}
        for n = 0, cfg.n_layers - 1 do
          local h, c = "layers." .. n .. ".h", "layers." .. n .. ".c"
          x, new[h], new[c] = layers[n + 1][2](x, cfg.reset and done or nil, state[h], state[c])
          if probe then x = probe(h, x) end
        end
        return x, new
      end,
    }
  end,
}
