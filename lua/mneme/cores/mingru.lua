-- mingru.lua -- minGRU, a GRU whose gate and candidate do not depend on the state, so that its recurrence is a gated scan.
--   z = sigma(W_z x + b_z);   h = (1-z)*h + z*(W_h x + b_h)
-- space=log keeps log h, for sequences so long that the product of the gates leaves the range of a float (appendix B): the
-- candidate is g(W_h x + b_h) > 0, g(v) = v + 1/2 or, below 0, sigma(v).  An episode begins with h = 0.
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- log g(v) = log(v + 1/2) or log sigma(v): where v is on the other side, each part is log(1/2).
local function log_g(v) return (v:relu() + 0.5):log() - (-v):relu():softplus() + math.log(2) end

-- Both products as one.  Names z, h .weight [d,d_in], .bias [d].
local function layer(d_in, d, cfg)
  local w, bias, named = tensor.new { shape = { 2 * d, d_in }, grad = true }, tensor.new { shape = { 2 * d }, grad = true }, {}
  local init = nn.init.orthogonal(1)
  for i, name in ipairs { "z", "h" } do
    local rows = tensor.view(w, (i - 1) * d * d_in, { d, d_in })
    init(rows:data(), d, d_in)
    named[2 * i - 1], named[2 * i] = { name .. ".weight", rows }, { name .. ".bias", tensor.view(bias, (i - 1) * d, { d }) }
  end
  local b_z = tensor.view(bias, 0, { d })
  if cfg.z_bias ~= 0 then b_z:fill(cfg.z_bias) end
  -- The recurrence, from what both rows give: z and v.
  local function recur(z, v, done, h)
    if cfg.space == "real" then return ops.gated_scan { x = z:sigmoid() * v, a = (-z):sigmoid(), done = done, h = h } end
    return ops.log_scan { x = log_g(v) - (-z):softplus(), a = -z:softplus(), done = done, h = h }
  end
  local function sensitivities(prefix)
    return { { state = prefix .. "h", count = d, kinds = { { weight = w, bias = bias }, { weight = w, bias = bias, row = d } },
      last = function(u, done, h) return select(2, recur(u[1], u[2], done, h)) end } }
  end
  return nn.module({ leaves = { w, bias }, named = named, decays = { gate_start.forgets("z", b_z, 1) }, sensitivities = sensitivities },
    function(_, x, done, h)
      local both = ops.linear(x, w, bias)
      local y, after = recur(both:slice(-1, 0, d), both:slice(-1, d), done, h)
      return cfg.space == "real" and y or y:exp(), after
    end)
end

return {
  doc = "a GRU whose gate does not depend on the state (minGRU)",
  source = "Feng et al. 2024, Were RNNs All We Needed?, section 3.1 and appendix B; without its blocks",
  checked = "an independent program",
  config = { d_in = 16, d_model = 128, n_layers = 1, space = "real", z_bias = 0, remember = "published", reset = true },
  choices = { space = { real = true, log = true } },
  build = function(cfg)
    local core = recurrent.build(cfg, layer, { "h" })
    core.complexity = { step = "2*L*D" }
    if cfg.space == "log" then core.start = { h = -1e38 } end
    return core
  end,
}
