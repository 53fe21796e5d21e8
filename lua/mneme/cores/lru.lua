-- lru.lua -- the linear recurrent unit: complex channels that turn and decay at rates of their own, the same at every step.
--   h = lambda*h + gamma*(B u),   lambda = exp(-exp(nu_log) + i exp(theta_log)),  gamma = exp(gamma_log);   y = Re(C h) + D*u
--   per layer  u = norm(e);   g = gelu(y);   e = e + out1(g)*sigma(out2(g))
-- Lambda begins uniform on the ring r_min <= |lambda| <= r_max, with phases 0 .. max_phase, and gamma = sqrt(1 - |lambda|^2), so that
-- the state begins with the variance of its input.  The state holds d_state real parts, then d_state imaginary parts.
local errors = require "mneme.base.errors"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local NEAR = 1e-7                -- of |lambda|^2 and of phases to the ends of their ranges, where logarithms are infinite

local function check(cfg)
  if not (cfg.r_min >= 0 and cfg.r_max > cfg.r_min and cfg.r_max <= 1) then
    errors.raise(("core lru: r_min = %g and r_max = %g, expected 0 <= r_min < r_max <= 1"):format(cfg.r_min, cfg.r_max), { status = 2 })
  end
  if not (cfg.max_phase > 0) then errors.raise(("core lru: max_phase = %g, expected more than 0"):format(cfg.max_phase), { status = 2 }) end
end

local function parameter(shape, init)
  local p = tensor.new { shape = shape, grad = true }
  if init then init(p:data(), shape[1], shape[2] or 1) end
  return p
end

-- nu_log, theta_log and gamma_log as published, and the gate that core.remember sets: |lambda|, and gamma with it.
local function eigenvalues(cfg)
  local N, draw = cfg.d_state, nn.init.uniform(0.5)
  local nu, theta, gamma = parameter({ N }, draw), parameter({ N }, draw), parameter { N }
  local function normalise()
    for i = 0, N - 1 do gamma:data()[i] = 0.5 * math.log(1 - math.exp(-2 * math.exp(nu:data()[i]))) end
  end
  for i = 0, N - 1 do
    local u, w = nu:data()[i] + 0.5, theta:data()[i] + 0.5
    local squared = u * (cfg.r_max ^ 2 - cfg.r_min ^ 2) + cfg.r_min ^ 2
    nu:data()[i] = math.log(-0.5 * math.log(math.min(math.max(squared, NEAR), 1 - NEAR)))
    theta:data()[i] = math.log(cfg.max_phase * math.max(w, NEAR))
  end
  normalise()
  local gate = gate_start.decays("nu_log", nu, function(v) return math.exp(-math.exp(v)) end, function(keep) return math.log(-math.log(keep)) end)
  local set = gate.set
  gate.set = function(keeps) set(keeps) normalise() end
  return nu, theta, gamma, gate
end

-- lambda and gamma from their logarithms, [...,N] each.
local function rates(nu, theta, gamma)
  local size, angle = (-nu:exp()):exp(), theta:exp()
  return ops.concat(size * angle:cos(), size * angle:sin()), gamma:exp()
end

-- For exact credit: real and imaginary part of a channel turn into each other, and each depends on two rows of B and on three constants.
local function sensitivities(N, B, nu, theta, gamma, state)
  return { { state = state, count = N, parts = 2, kinds = { { weight = B }, { weight = B, row = N }, { bias = nu }, { bias = theta }, { bias = gamma } },
    last = function(u, done, h)
      local lambda, scale = rates(u[3], u[4], u[5])
      local _, after = ops.complex_scan { x = ops.concat(u[1] * scale, u[2] * scale), a = lambda, done = done, h = ops.concat(h[1], h[2]) }
      return after:slice(-1, 0, N), after:slice(-1, N)
    end } }
end

-- Names nu_log, theta_log, gamma_log [N], B_re, B_im [N,d], C_re, C_im [d,N], D [d].
local function unit(cfg, state)
  local d, N = cfg.d_model, cfg.d_state
  local nu, theta, gamma, gate = eigenvalues(cfg)
  local B, D = parameter({ 2 * N, d }, nn.init.normal(math.sqrt(1 / (2 * d)))), parameter({ d }, nn.init.normal())
  local C_re, C_im = parameter({ d, N }, nn.init.normal(math.sqrt(1 / N))), parameter({ d, N }, nn.init.normal(math.sqrt(1 / N)))
  local named = { { "nu_log", nu }, { "theta_log", theta }, { "gamma_log", gamma }, { "B_re", tensor.view(B, 0, { N, d }) },
    { "B_im", tensor.view(B, N * d, { N, d }) }, { "C_re", C_re }, { "C_im", C_im }, { "D", D } }
  local module = nn.module({ leaves = { nu, theta, gamma, B, C_re, C_im, D }, named = named }, function(_, u, done, h)
    local lambda, scale = rates(nu, theta, gamma)
    local into, out = B * ops.concat(scale, scale):reshape(2 * N, 1), ops.concat(C_re, -C_im)
    local states, after = ops.complex_scan { x = ops.linear(u, into), a = lambda, done = done, h = h }
    return ops.linear(states, out) + D * u, after
  end)
  return module, gate, sensitivities(N, B, nu, theta, gamma, state)
end

local function layer(cfg, state)
  local d, lecun = cfg.d_model, nn.init.lecun_normal()
  local norm, lru, gate, credit = nn.layer_norm(d, cfg.ln_eps), unit(cfg, state)
  local out1, out2 = nn.linear(d, d, { init = lecun }), nn.linear(d, d, { init = lecun, act = "sigmoid" })
  local children = { { "norm", norm }, { "lru", lru }, { "out1", out1 }, { "out2", out2 } }
  return nn.module({ children = children }, function(_, e, done, h, probe, sense)
    local u = norm(e)
    if sense then sense(u) end
    local y, after = lru(u, done, h)
    local g = (probe and probe(y) or y):gelu()
    return e + out1(g) * out2(g), after
  end), gate, credit
end

return {
  doc = "complex channels that turn and decay at learned constant rates (LRU)",
  source = "Orvieto et al. 2023, Resurrecting Recurrent Neural Networks for Long Sequences, arXiv 2303.06349, section 3 and appendix A",
  checked = "an independent program",
  config = {
    d_in = 16, d_model = 128, n_layers = 4, d_state = 128, r_min = 0, r_max = 1, max_phase = 6.28, embed_act = "none", ln_eps = 1e-6,
    remember = "published", reset = true,
  },
  build = function(cfg)
    check(cfg)
    local embed = nn.linear(cfg.d_in, cfg.d_model, { act = cfg.embed_act })
    local layers, states, decays, credit = {}, {}, {}, {}
    for n = 0, cfg.n_layers - 1 do
      local built, gate
      built, gate, credit[n + 1] = layer(cfg, "layers." .. n .. ".h")
      layers[n + 1], decays[n + 1], states["layers." .. n .. ".h"] = { tostring(n), built }, { gate }, "[B,S]"
    end
    return {
      module = nn.container { { "embed", embed }, { "layers", nn.container(layers) } },
      d_out = cfg.d_model, states = states, sizes = { S = 2 * cfg.d_state }, complexity = { step = "2*L*S" }, reads = "vector", decays = decays,
      sensitivities = credit,
      forward = function(x, done, state, probe, _, _, sense)
        local e, new = embed(x), {}
        for n = 0, cfg.n_layers - 1 do
          local name = "layers." .. n .. "."
          local function seen(y) return probe(name .. "retrieved", y) end
          e, new[name .. "h"] = layers[n + 1][2](e, cfg.reset and done or nil, state[name .. "h"], probe and seen,
            sense and function(u) sense(n + 1, u) end)
        end
        return e, new
      end,
    }
  end,
}
