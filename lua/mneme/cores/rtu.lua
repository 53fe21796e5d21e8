-- rtu.lua -- recurrent trace units: complex channels with the lambda of lru, written as pairs of real ones.
--   c1' = f(g c1 - p c2 + n W1 x),   c2' = f(g c2 + p c1 + n W2 x);   g + i p = lambda = exp(-exp(nu_log) + i exp(theta_log))
-- n = sqrt(1 - |lambda|^2) + 1e-8 is no parameter, and has a gradient.  linear=true: f is the identity, and y = act([c1, c2]); else f is act, and
-- y = [c1, c2].  d_model = 2N values.  Both have exact credit, since the pairs do not mix.  The released code leaves the factor exp(theta_log)
-- out of its gradient of theta_log; this one has it.
local complex_channels = require "mneme.models.layers.complex_channels"
local errors = require "mneme.base.errors"
local nn = require "mneme.tensor.nn"
local parameter = require("mneme.tensor.random").parameters.new
local recur = require "mneme.tensor.recur"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- complex_scan with act on both parts of every step.  a [2N], or [T,B,2N].
local function curved(act, N)
  return function(o)
    local each_step = #o.a:shape() > 1
    return recur(function(i, h, given)
      local a, x = each_step and i.a or given.a, i.x
      local function part(t, k) return t:slice(-1, k * N, (k + 1) * N) end
      local g, p, c1, c2 = part(a, 0), part(a, 1), part(h, 0), part(h, 1)
      local after = ops[act](ops.concat(g * c1 - p * c2 + part(x, 0), g * c2 + p * c1 + part(x, 1)))
      return after, after
    end, { x = { x = o.x, a = each_step and o.a or nil }, given = { a = not each_step and o.a or nil }, state = o.h, done = o.done })
  end
end

-- Names nu_log, theta_log [N], w1, w2 .weight [N,d_in].
local function layer(d_in, d, cfg)
  local N, act = d / 2, cfg.act
  local nu, theta, gate = complex_channels.ring("rtu", cfg, N)
  local W = parameter({ d, d_in }, nn.init.lecun_normal())
  local run, credit = complex_channels.channels { N = N, B = W, constants = { nu, theta }, scan = not cfg.linear and curved(act, N) or nil,
    rates = function(n, t)
      local lambda, size = complex_channels.polar(n, t)
      return lambda, (1 - size * size):sqrt() + 1e-8
    end }
  local named = { { "nu_log", nu }, { "theta_log", theta }, { "w1.weight", tensor.view(W, 0, { N, d_in }) },
    { "w2.weight", tensor.view(W, N * d_in, { N, d_in }) } }
  return nn.module({ leaves = { nu, theta, W }, named = named, decays = { gate }, sensitivities = function(prefix) return credit(prefix .. "h") end },
    function(_, x, done, h)
      local y, after = run(x, done, h)
      return cfg.linear and ops[act](y) or y, after
    end)
end

return {
  doc = "pairs of channels that turn and decay at learned constant rates, linear or not (RTU)",
  source = "Elelimy et al. 2024, Real-Time Recurrent Learning using Trace Units in Reinforcement Learning, arXiv 2409.01449, section 4 and appendix",
  checked = "an independent program",
  config = { d_in = 16, d_model = 128, n_layers = 1, linear = true, act = "relu", r_min = 0, r_max = 1, max_phase = 6.28, remember = "published",
    reset = true },
  choices = { act = { relu = true, tanh = true } },
  build = function(cfg)
    if cfg.d_model % 2 ~= 0 then errors.raise(("core rtu: d_model = %d, expected an even number: pairs"):format(cfg.d_model), { status = 2 }) end
    return recurrent.build(cfg, layer, { "h" }, { complexity = { step = "2*L*D" } })
  end,
}
