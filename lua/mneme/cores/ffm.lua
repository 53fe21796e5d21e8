-- ffm.lua -- Fast and Forgetful Memory: d_state traces that fade, each in n_phases phases that turn, at rates that no input changes.
--   v, u, i, o = pre x;   S = exp(a + i w) S + v*sigma(i)   (each trace a with each phase w, complex)
--   y = norm(mix [Re S, Im S])*sigma(o) + u*(1 - sigma(o)),  the norm without parameters
-- a begins evenly spaced from -0.673 to ln(0.01)/1024 and stays in -0.683 .. -1e-6, w from 2 pi down to 2 pi/1024, as published in double
-- precision (memax begins a at 0 .. -0.5).  The state holds all real parts, then all imaginary ones.  Stepped call by call, Memorax's form
-- starts its clock again in each and forgets nothing; here a step is a row of the sequence.
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local parameter = require("mneme.tensor.random").parameters.new
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local LONGEST = 1024             -- steps: the slowest phase, and after which 0.01 is left of the slowest trace
local FASTEST = 709.782712893384 / LONGEST - 0.01                      -- e^709.78 is the largest double

local function rates(a, w) return a:clamp { lo = -FASTEST, hi = -1e-6 }:exp(), w:cos(), w:sin() end

-- Names pre.weight [2m+2d,d_in], .bias, mix.weight [d,2mc], .bias, a [m], w [c].
local function layer(d_in, d, cfg)
  local m, c = cfg.d_state, cfg.n_phases
  local N, torch = m * c, nn.init.uniform
  local function trace(i) return math.floor(i / c) end
  local tensors = {}
  for k, shape in ipairs { { 2 * m + 2 * d, d_in }, { d, 2 * N } } do
    local bound = torch(1 / math.sqrt(shape[2]))
    tensors[2 * k - 1], tensors[2 * k] = parameter(shape, bound), parameter({ shape[1] }, bound)
  end
  local pre, pre_bias, mix, mix_bias = unpack(tensors)
  local a, w = parameter { m }, parameter { c }
  local function spaced(leaf, from, to, f)
    local n = leaf:size()
    for i = 0, n - 1 do leaf:data()[i] = f(from + (n > 1 and i / (n - 1) or 0) * (to - from)) end
  end
  spaced(a, -FASTEST + 0.01, math.log(0.01) / LONGEST, function(v) return v end)
  spaced(w, 1, LONGEST, function(v) return 2 * math.pi / v end)
  local gate = gate_start.decays("a", a, function(v) return math.exp(math.min(math.max(v, -FASTEST), -1e-6)) end, function(keep)
    return math.log(keep)
  end)
  gate.least = math.exp(-FASTEST)
  local phases = tensor.new { shape = { 2 * N, m } }     -- of a trace into each of its phases, real; no imaginary part is written
  for i = 0, N - 1 do phases:data()[i * m + trace(i)] = 1 end
  local ones, zeros = tensor.new({ shape = { d } }):fill(1), tensor.new { shape = { d } }
  local function sensitivities(prefix)
    return { { state = prefix .. "h", count = N, parts = 2, kinds = { { weight = pre, bias = pre_bias, row = trace },
      { weight = pre, bias = pre_bias, row = function(i) return m + d + trace(i) end }, { bias = a, row = trace },
      { bias = w, row = function(i) return i % c end } }, last = function(u, done, h)
        local size, cos, sin = rates(u[3], u[4])
        local x = u[1] * u[2]:sigmoid()
        local lambda = ops.concat(size * cos, size * sin)
        local _, after = ops.complex_scan { x = ops.concat(x, x * 0), a = lambda, done = done, h = ops.concat(h[1], h[2]) }
        return after:slice(-1, 0, N), after:slice(-1, N)
      end } }
  end
  return nn.module({ named = { { "pre.weight", pre }, { "pre.bias", pre_bias }, { "mix.weight", mix }, { "mix.bias", mix_bias }, { "a", a },
    { "w", w } }, decays = { gate }, sensitivities = sensitivities },
    function(_, x, done, h)
      local all = ops.linear(x, pre, pre_bias)
      local open, size, cos, sin = all:slice(-1, m + d):sigmoid(), rates(a, w)
      local into = ops.linear(all:slice(-1, 0, m) * open:slice(-1, 0, m), phases)
      local lambda = ops.concat((size:reshape(m, 1) * cos):reshape(N), (size:reshape(m, 1) * sin):reshape(N))
      local y, after = ops.complex_scan { x = into, a = lambda, done = done, h = h }
      local z, o = ops.layer_norm { x = ops.linear(y, mix, mix_bias), weight = ones, bias = zeros, eps = cfg.ln_eps }, open:slice(-1, m)
      return z * o + all:slice(-1, m, m + d) * (1 - o), after
    end)
end

return {
  doc = "traces that fade in phases that turn, at rates that no input changes (Fast and Forgetful Memory)",
  source = "Morad et al. 2023, Reinforcement Learning with Fast and Forgetful Memory, arXiv 2310.04128, section 4 and the authors' code",
  checked = "an independent program",
  config = { d_in = 16, d_model = 128, n_layers = 1, d_state = 32, n_phases = 4, ln_eps = 1e-5, remember = "published", reset = true },
  build = function(cfg)
    return recurrent.build(cfg, layer, { "h" }, { axes = "[B,S]", sizes = { S = 2 * cfg.d_state * cfg.n_phases }, complexity = { step = "2*L*S" } })
  end,
}
