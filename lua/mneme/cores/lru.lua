-- lru.lua -- the linear recurrent unit: complex channels that turn and decay at rates of their own, the same at every step.
--   h = lambda*h + gamma*(B u),   lambda = exp(-exp(nu_log) + i exp(theta_log)),  gamma = exp(gamma_log);   y = Re(C h) + D*u
--   per layer  u = norm(e);   g = gelu(y);   e = e + out1(g)*sigma(out2(g))
-- Lambda begins uniform on the ring r_min <= |lambda| <= r_max, with phases 0 .. max_phase, and gamma = sqrt(1 - |lambda|^2), so that
-- the state begins with the variance of its input.  The state holds d_state real parts, then d_state imaginary parts.
local complex_channels = require "mneme.models.layers.complex_channels"
local nn = require "mneme.tensor.nn"
local parameter = require("mneme.tensor.random").parameters.new

-- Names nu_log, theta_log, gamma_log [N], B_re, B_im [N,d], C_re, C_im [d,N], D [d].
local function unit(cfg)
  local d, N = cfg.d_model, cfg.d_state
  local nu, theta, gate = complex_channels.ring("lru", cfg, N)
  local gamma = parameter { N }
  local function normalise()
    for i = 0, N - 1 do gamma:data()[i] = 0.5 * math.log(1 - math.exp(-2 * math.exp(nu:data()[i]))) end
  end
  normalise()
  local set = gate.set
  gate.set = function(keeps) set(keeps) normalise() end
  return {
    N = N, names = { "nu_log", "theta_log", "gamma_log" }, constants = { nu, theta, gamma }, gate = gate,
    rates = function(n, t, g)
      local lambda = complex_channels.polar(n, t)
      return lambda, g:exp()
    end,
    B = parameter({ 2 * N, d }, nn.init.normal(math.sqrt(1 / (2 * d)))), D = parameter({ d }, nn.init.normal()),
    C_re = parameter({ d, N }, nn.init.normal(math.sqrt(1 / N))), C_im = parameter({ d, N }, nn.init.normal(math.sqrt(1 / N))),
  }
end

return {
  doc = "complex channels that turn and decay at learned constant rates (LRU)",
  source = "Orvieto et al. 2023, Resurrecting Recurrent Neural Networks for Long Sequences, arXiv 2303.06349, section 3 and appendix A",
  checked = "an independent program",
  config = {
    d_in = 16, d_model = 128, n_layers = 4, d_state = 128, r_min = 0, r_max = 1, max_phase = 6.28, embed_act = "none", ln_eps = 1e-6,
    remember = "published", reset = true,
  },
  build = function(cfg) return complex_channels.stack(cfg, "lru", unit) end,
}
