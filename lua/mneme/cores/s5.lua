-- s5.lua -- S5, a state space of complex channels that are sampled at steps of their own: lru in other parameters.
--   lambda = exp(Lambda dt),  dt = exp(log_step);   h = lambda*h + (lambda-1)/Lambda * (B u);   y = 2 Re(C h) + D*u
-- (zero-order hold; discretisation=bilinear: lambda = (1 + Lambda dt/2)/(1 - Lambda dt/2), and dt/(1 - Lambda dt/2) before B u.)
-- Each channel stands for itself and its conjugate.  Lambda, B and C begin as those of the normal part of HiPPO-LegS of order 2 d_state in its
-- eigenvectors, dt from 0.001 to 0.1.  The real part of Lambda stays at most -0.0001 (`clip_eigs`, which the published runs leave off, and which
-- keeps endless episodes finite).  With glu=full_glu the layer is that of lru.
local complex_channels = require "mneme.models.layers.complex_channels"
local gate_start = require "mneme.models.gate_start"
local hippo = require "mneme.models.layers.hippo"
local nn = require "mneme.tensor.nn"
local parameter = require("mneme.tensor.random").parameters.new
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local MOST = -1e-4               -- of the real part of Lambda

-- lambda, and the factor of B u.
local rates = {}
function rates.zoh(re, im, log_step)
  local dt = log_step:exp()
  local x = re:clamp { hi = MOST }
  local size, angle, square = (x * dt):exp(), im * dt, x * x + im * im
  local l_re, l_im = size * angle:cos(), size * angle:sin()
  return ops.concat(l_re, l_im), ((l_re - 1) * x + l_im * im) / square, (l_im * x - (l_re - 1) * im) / square
end
function rates.bilinear(re, im, log_step)
  local dt = log_step:exp()
  local z_re, z_im = re:clamp { hi = MOST } * dt * 0.5, im * dt * 0.5
  local square = (1 - z_re) * (1 - z_re) + z_im * z_im
  return ops.concat((1 - z_re * z_re - z_im * z_im) / square, z_im * 2 / square), (1 - z_re) * dt / square, z_im * dt / square
end

-- Names Lambda_re, Lambda_im, log_step [N], B_re, B_im [N,d], C_re, C_im [d,N], D [d].
local function unit(cfg)
  local d, N, lecun = cfg.d_model, cfg.d_state, nn.init.lecun_normal()
  local omega, V_re, V_im = hippo(N)
  local re, im, log_step = parameter({ N }):fill(-0.5), parameter { N }, parameter({ N }, nn.init.uniform(0.5))
  for i = 0, N - 1 do
    im:data()[i] = omega[i + 1]
    log_step:data()[i] = math.log(0.001) + (log_step:data()[i] + 0.5) * math.log(100)
  end
  local B, C_re, C_im = parameter { 2 * N, d }, parameter { d, N }, parameter { d, N }
  tensor.off_tape(function()
    local b, c_re, c_im = parameter({ d, 2 * N }, lecun), parameter({ d, 2 * N }, lecun), parameter({ d, 2 * N }, lecun)
    B:copy(ops.linear(tensor.functions.cat({ V_re, -V_im }, 0), b))
    C_re:copy(ops.linear(c_re, V_re) - ops.linear(c_im, V_im))
    C_im:copy(ops.linear(c_re, V_im) + ops.linear(c_im, V_re))
  end)
  return {
    N = N, names = { "Lambda_re", "Lambda_im", "log_step" }, constants = { re, im, log_step }, rates = rates[cfg.discretisation], conjugate = true,
    B = B, C_re = C_re, C_im = C_im, D = parameter({ d }, nn.init.normal()),
    gate = gate_start.decays("log_step", log_step,           -- |lambda| of zoh, which bilinear has to the second order in dt
      function(v, i) return math.exp(math.min(re:data()[i], MOST) * math.exp(v)) end,
      function(keep, i) return math.log(math.log(keep) / math.min(re:data()[i], MOST)) end),
  }
end

return {
  doc = "a diagonal state space of complex channels with steps of their own (S5)",
  source = "Smith, Warrington, Linderman 2023, Simplified State Space Layers for Sequence Modeling, arXiv 2208.04933, sections 3 and 4, and code",
  checked = "an independent program",
  config = {
    d_in = 16, d_model = 128, n_layers = 4, d_state = 64, discretisation = "zoh", glu = "half_glu2", embed_act = "none", ln_eps = 1e-6,
    remember = "published", reset = true,
  },
  choices = { discretisation = { zoh = true, bilinear = true }, glu = { full_glu = true, half_glu2 = true } },
  build = function(cfg) return complex_channels.stack(cfg, "s5", unit) end,
}
