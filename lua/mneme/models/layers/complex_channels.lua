-- complex_channels.lua -- what lru, s5 and rtu share: complex channels that turn and decay at rates of their own, the same at every step.
--   h = lambda*h + scale*(B u),   lambda and scale functions of a few constants per channel
-- A state holds N real parts, then N imaginary parts; B has the rows of both.  `stack` is the layer and the core of lru and s5:
--   per layer  u = norm(e);   y = Re(C h) + D*u, of both of a conjugate pair (s5) 2 Re(C h) + D*u
--   glu=full_glu  g = gelu(y);   e = e + out1(g)*sigma(out2(g))
--   glu=half_glu2 e = e + y*sigma(out2(gelu(y)))
local block = require "mneme.models.block"
local errors = require "mneme.base.errors"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local complex = {}
local NEAR = 1e-7                -- of |lambda|^2 and of phases to the ends of their ranges, where logarithms are infinite

local parameter = require("mneme.tensor.random").parameters.new

---Logarithms whose lambda = exp(-exp(nu) + i exp(theta)) begins uniform on the ring r_min <= |lambda| <= r_max, with phases 0 .. max_phase
---(Orvieto et al. 2023, lemma 3.2).
---@param core string for errors
---@param cfg table r_min, r_max, max_phase
---@param N integer channels
---@return Tensor nu [N]
---@return Tensor theta [N]
---@return table gate |lambda|, as in gate_start.lua
function complex.ring(core, cfg, N)
  if not (cfg.r_min >= 0 and cfg.r_max > cfg.r_min and cfg.r_max <= 1) then
    errors.raise(("core %s: r_min = %g and r_max = %g, expected 0 <= r_min < r_max <= 1"):format(core, cfg.r_min, cfg.r_max), { status = 2 })
  end
  if not (cfg.max_phase > 0) then errors.raise(("core %s: max_phase = %g, expected more than 0"):format(core, cfg.max_phase), { status = 2 }) end
  local draw = nn.init.uniform(0.5)
  local nu, theta = parameter({ N }, draw), parameter({ N }, draw)
  for i = 0, N - 1 do
    local u, w = nu:data()[i] + 0.5, theta:data()[i] + 0.5
    local squared = u * (cfg.r_max ^ 2 - cfg.r_min ^ 2) + cfg.r_min ^ 2
    nu:data()[i] = math.log(-0.5 * math.log(math.min(math.max(squared, NEAR), 1 - NEAR)))
    theta:data()[i] = math.log(cfg.max_phase * math.max(w, NEAR))
  end
  local function keep_of(v) return math.exp(-math.exp(v)) end
  return nu, theta, gate_start.decays("nu_log", nu, keep_of, function(keep) return math.log(-math.log(keep)) end)
end

---From logarithms, [...,N] each.
---@return Tensor lambda [...,2N]
---@return Tensor size |lambda|
function complex.polar(nu, theta)
  local size, angle = (-nu:exp()):exp(), theta:exp()
  return ops.concat(size * angle:cos(), size * angle:sin()), size
end

-- (a + i b) times scale = re + i im; im nil: 0.
local function times(a, b, re, im)
  if not im then return a * re, b * re end
  return a * re - b * im, a * im + b * re
end

---The recurrence, and how its channels depend on the past.  For exact credit: real and imaginary part of a channel turn into each other, and
---each depends on two rows of B and on the constants.
---@param o table { N =, B = Tensor [2N,d], constants = Tensor[] [N] each, rates = function(constants...) -> lambda [...,2N], scale re and
---  scale im? [...,N], scan = in place of complex_scan }
---@return fun(u: Tensor, done: Tensor?, h: Tensor): Tensor, Tensor states [T,B,2N] and the last [B,2N]
---@return fun(state: string): table the group of exact_credit.lua
function complex.channels(o)
  local N, scan = o.N, o.scan or ops.complex_scan
  local function run(u, done, h)
    local lambda, re, im = o.rates(unpack(o.constants))
    local into = o.B
    if im then into = tensor.functions.cat({ times(into:slice(0, 0, N), into:slice(0, N), re:reshape(N, 1), im:reshape(N, 1)) }, 0)
    else into = into * ops.concat(re, re):reshape(2 * N, 1) end
    return scan { x = ops.linear(u, into), a = lambda, done = done, h = h }
  end
  local kinds = { { weight = o.B }, { weight = o.B, row = N } }
  for _, c in ipairs(o.constants) do kinds[#kinds + 1] = { bias = c } end
  return run, function(state)
    return { { state = state, count = N, parts = 2, kinds = kinds, last = function(u, done, h)
      local lambda, re, im = o.rates(unpack(u, 3))
      local _, after = scan { x = ops.concat(times(u[1], u[2], re, im)), a = lambda, done = done, h = ops.concat(h[1], h[2]) }
      return after:slice(-1, 0, N), after:slice(-1, N)
    end } }
  end
end

local function layer(cfg, prefix, name, unit)
  local d, N, lecun = cfg.d_model, cfg.d_state, nn.init.lecun_normal()
  local full = cfg.glu ~= "half_glu2"
  local norm, made = nn.layer_norm(d, cfg.ln_eps), unit(cfg)
  local run, credit = complex.channels(made)
  local pairs_of = made.conjugate and 2 or 1
  local leaves = { unpack(made.constants) }
  for _, leaf in ipairs { made.B, made.C_re, made.C_im, made.D } do leaves[#leaves + 1] = leaf end
  local named = { { "B_re", tensor.view(made.B, 0, { N, d }) }, { "B_im", tensor.view(made.B, N * d, { N, d }) }, { "C_re", made.C_re },
    { "C_im", made.C_im }, { "D", made.D } }
  for i, constant in ipairs(made.names) do table.insert(named, i, { constant, made.constants[i] }) end
  local core = nn.module({ leaves = leaves, named = named }, function(_, u, done, h)
    local out = ops.concat(made.C_re, -made.C_im)
    local states, after = run(u, done, h)
    return ops.linear(states, pairs_of == 1 and out or out * pairs_of) + made.D * u, after
  end)
  local out1 = full and nn.linear(d, d, { init = lecun })
  local out2 = nn.linear(d, d, { init = lecun, act = "sigmoid" })
  local children = { { "norm", norm }, { name, core }, { "out2", out2 } }
  if full then table.insert(children, 3, { "out1", out1 }) end
  return nn.module({ children = children }, function(_, e, done, state, new, probe, sense)
    local u = norm(e)
    if sense then sense(u) end
    local y, after = core(u, done, state[prefix .. "h"])
    new[prefix .. "h"] = after
    y = probe and probe(prefix .. "retrieved", y) or y
    local g = y:gelu()
    return e + (full and out1(g) or y) * out2(g)
  end), { made.gate }, credit(prefix .. "h")
end

---The core of such layers.
---@param cfg table d_in, d_model, n_layers, d_state, embed_act, ln_eps, reset, glu
---@param name string of the channels within a layer
---@param unit fun(cfg: table): table what `channels` takes, besides names = of the constants, C_re, C_im [d,N], D [d], gate, conjugate =
---  each channel stands for itself and its conjugate
---@return table what a core's build returns
function complex.stack(cfg, name, unit)
  return block.stack(cfg, { sizes = { S = 2 * cfg.d_state }, complexity = { step = "2*L*S" }, reads = "vector" }, { h = "[B,S]" },
    function(_, prefix) return layer(cfg, prefix, name, unit) end)
end

return complex
