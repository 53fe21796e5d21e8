-- mingru.lua -- minGRU, a GRU whose gate and candidate do not depend on the state, so that its recurrence is a gated scan.
--   z = sigma(W_z x + b_z);   h = (1-z)*h + z*(W_h x + b_h)
-- cell=lstm is minLSTM (section 3.2): f = sigma(W_f x + b_f), i = sigma(W_i x + b_i), and z = i/(f+i) in place of the gate.  That is sigma of
-- softplus(-(W_f x + b_f)) - softplus(-(W_i x + b_i)), so only what is given to sigma differs.  z_bias: b_z, or b_i = -b_f, which are the same z.
-- space=log keeps log h, for sequences so long that the product of the gates leaves the range of a float (appendix B): the
-- candidate is g(W_h x + b_h) > 0, g(v) = v + 1/2 or, below 0, sigma(v).  An episode begins with h = 0.
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- log g(v) = log(v + 1/2) or log sigma(v): where v is on the other side, each part is log(1/2).
local function log_g(v) return (v:relu() + 0.5):log() - (-v):relu():softplus() + math.log(2) end

-- minLSTM's gate before the sigmoid.
local function logit(f, i) return (-f):softplus() - (-i):softplus() end

-- All products as one.  Names z (f, i), h .weight [d,d_in], .bias [d].
local function layer(d_in, d, cfg)
  local rows = cfg.cell == "gru" and { "z", "h" } or { "f", "i", "h" }
  local n = #rows
  local w, bias, named = tensor.new { shape = { n * d, d_in }, grad = true }, tensor.new { shape = { n * d }, grad = true }, {}
  local init = nn.init.orthogonal(1)
  for i, name in ipairs(rows) do
    local part = tensor.view(w, (i - 1) * d * d_in, { d, d_in })
    init(part:data(), d, d_in)
    named[2 * i - 1], named[2 * i] = { name .. ".weight", part }, { name .. ".bias", tensor.view(bias, (i - 1) * d, { d }) }
  end
  local b_z = tensor.view(bias, 0, { d })
  local b_i = n == 3 and tensor.view(bias, d, { d })
  if cfg.z_bias ~= 0 then
    b_z:fill(b_i and -cfg.z_bias or cfg.z_bias)
    if b_i then b_i:fill(cfg.z_bias) end
  end
  -- The recurrence, from what all rows give.
  local function recur(u, done, h)
    if cfg.space == "log" then
      local z = n == 2 and u[1] or logit(u[1], u[2])
      return ops.log_scan { x = log_g(u[n]) - (-z):softplus(), a = -z:softplus(), done = done, h = h }
    end
    if n == 2 then return ops.gated_scan { x = u[1]:sigmoid() * u[2], a = (-u[1]):sigmoid(), done = done, h = h } end
    local x, keep = ops.minlstm_gate(u[1], u[2], u[3])
    return ops.gated_scan { x = x, a = keep, done = done, h = h }
  end
  local function sensitivities(prefix)
    local kinds = {}
    for k = 1, n do kinds[k] = { weight = w, bias = bias, row = (k - 1) * d } end
    return { { state = prefix .. "h", count = d, kinds = kinds, last = function(u, done, h) return select(2, recur(u, done, h)) end } }
  end
  local decay = b_i and gate_start.keeps("f", b_z, b_i) or gate_start.forgets("z", b_z, 1)
  return nn.module({ leaves = { w, bias }, named = named, decays = { decay }, sensitivities = sensitivities },
    function(_, x, done, h)
      local all, u = ops.linear(x, w, bias), {}
      for k = 1, n do u[k] = all:slice(-1, (k - 1) * d, k * d) end
      local y, after = recur(u, done, h)
      return cfg.space == "real" and y or y:exp(), after
    end)
end

return {
  doc = "a GRU whose gate does not depend on the state (minGRU)",
  source = "Feng et al. 2024, Were RNNs All We Needed?, section 3.1 and appendix B; without its blocks",
  checked = "an independent program",
  config = { d_in = 16, d_model = 128, n_layers = 1, cell = "gru", space = "real", z_bias = 0, remember = "published", reset = true },
  choices = { cell = { gru = true, lstm = true }, space = { real = true, log = true } },
  build = function(cfg)
    return recurrent.build(cfg, layer, { "h" }, { complexity = { step = "2*L*D" }, start = cfg.space == "log" and { h = -1e38 } or nil })
  end,
}
