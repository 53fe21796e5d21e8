-- family.lua -- the gated linear family: what the cores galite and agalite (and presets of them) are built of.
-- Its axes are tables: features.lua (what keys become), gates.lua (what is written and forgotten), and memories/
-- (how it is held: the word of `update`, or where that is sum, of `approximation`, is the name of the file).
local block = require "mneme.block"
local errors = require "mneme.errors"
local features = require "mneme.features"
local find = require "mneme.find"
local gates = require "mneme.gates"
local nn = require "mneme.nn"
local tensor = require "mneme.tensor"
local ops = tensor.ops

local family = { features = features.list, gates = gates.list }

---How the memory is held, by name.  A file returns
---  doc         one line with the equation
---  states      function(cfg) -> names -> axes, of one layer; letters H, V, K and those it adds to core.sizes
---  complexity  function(cfg) -> as in core.lua
---  run         function(cfg, args, state, new, done, prefix) -> y [T,B,H,V]; args: q, k, v and the gates that
---              there are, by head, [T,B,H,...] (q and k as factors where args.p_q, args.p_k are given: see
---              features.whole), eps, den_clamp, normalise, done; final states go into `new` under prefix .. name
---  gate        a gate of its own (as in gates.lua), in place of cfg.gate
---  check       function(cfg): raises what cannot be combined
---  clock       true: the core has a state `tick` [B]; `run` advances it
---  fused       true: projections begin as two fused layers
---  extend      function(cfg, core): more of what a core file's build returns (core.lua)
-- Every file, and the axis that chooses it:
local held = { full = "approximation", cos = "approximation" }
family.memories = setmetatable({}, { __index = function(t, name)
  t[name] = require("mneme.memories." .. name)
  return t[name]
end })

local choices = {
  feature = features.list, gate = gates.list,
  decay = { separable = true, joint = true }, query = { single = true, double = true },
  approximation = { full = true, cos = true }, form = { code = true, paper = true, cossin = true },
  update = { sum = true }, flow = { gtrxl = true, residual = true, postnorm = true },
  embed_act = { relu = true, none = true },
}
for name, axis in pairs(held) do choices[axis][name] = true end

local function check(cfg)
  for key, known in pairs(choices) do
    if not known[cfg[key]] then errors.unknown(key .. " =", cfg[key], find.keys(known)) end
  end
  for _, key in ipairs { "eta", "nu", "r" } do
    if cfg[key] < 1 or cfg[key] % 1 ~= 0 then
      errors.raise(("core: %s = %g, expected a whole number of at least 1"):format(key, cfg[key]), { status = 2 })
    end
  end
end

-- ---- the attention of one layer ----

local function projections(cfg, K, memory)
  local feature, gate = features.list[cfg.feature], memory.gate or gates.list[cfg.gate]
  local H, d, double = cfg.n_heads, cfg.d_model, cfg.query == "double"
  local rows = feature.rows(cfg)
  local init = nn.init.orthogonal(math.sqrt(2), H)
  local mapped = feature.lecun and nn.init.lecun_normal() or init
  local p = {}
  local function add(name, n, act, how, d_in) p[name] = nn.linear(d_in or d, H * n, { act = act, init = how or init }) end
  add("v", cfg.d_head)
  add("k", rows, feature.act, mapped)
  if double then     -- q0 stays raw; its maps q2 and p_q act within each head
    add("q", cfg.d_head)
    add("q2", rows, nil, mapped, cfg.d_head)
  else
    add("q", rows, feature.act, mapped)
  end
  if feature.outer then
    add("p_k", cfg.eta, feature.act)
    add("p_q", cfg.eta, not double and feature.act or nil, nil, double and cfg.d_head or nil)
  end
  for _, name in ipairs { "beta", "gamma", "p_gamma" } do
    local n = gate[name]
    if n then add(name, n == true and cfg.d_head or n(cfg, K), "sigmoid") end
  end
  if memory.fused then
    local wide, narrow = {}, {}
    for _, name in ipairs { "k", "q", "v", "beta", "gamma" } do wide[#wide + 1] = p[name] end
    for _, name in ipairs { "p_k", "p_q", "p_gamma" } do narrow[#narrow + 1] = p[name] end
    local whole = nn.init.orthogonal(math.sqrt(2))
    nn.init_together(wide, whole)
    if #narrow > 0 then nn.init_together(narrow, whole) end
  end
  return p
end

local function attention(cfg, n, K, memory)
  local p = projections(cfg, K, memory)
  local out = nn.linear(cfg.n_heads * cfg.d_head, cfg.d_model, { act = block.closing(cfg.flow) })
  local order = { "k", "q", "q2", "v", "beta", "gamma", "p_k", "p_q", "p_gamma" }
  local children = { { "out", out } }
  for _, name in ipairs(order) do if p[name] then children[#children + 1] = { name, p[name] } end end
  local feature, H = features.list[cfg.feature], cfg.n_heads
  local double = cfg.query == "double"
  local prefix = "layers." .. n .. "."

  local function by_head(t, T, B, probe, name)
    local shape = t:shape()
    t = ops.reshape(t, { d0 = T, d1 = B, d2 = H, d3 = shape[3] / H })
    return probe and probe(prefix .. name, t) or t
  end

  return nn.module({ children = children }, function(_, x, done, state, new, probe)
    local shape = x:shape()
    local T, B = shape[1], shape[2]
    local a = { eps = cfg.eps, den_clamp = cfg.den_clamp, normalise = cfg.normalise, done = done }
    for _, name in ipairs(order) do
      local within = double and (name == "q" or name == "q2" or name == "p_q")
      if p[name] and not within then a[name] = by_head(p[name](x), T, B, probe, name) end
    end
    if double then
      local q0 = by_head(p.q(x), T, B)
      a.q = ops.head_linear { x = q0, w = p.q2.weight, b = p.q2.bias, act = feature.act }
      if p.p_q then a.p_q = ops.head_linear { x = q0, w = p.p_q.weight, b = p.p_q.bias, act = feature.act } end
      if probe then a.q = probe(prefix .. "q", a.q) end
    end
    local y = memory.run(cfg, a, state, new, done, prefix)
    if probe then y = probe(prefix .. "retrieved", y) end
    return out(ops.reshape(y, { d0 = T, d1 = B, d2 = H * cfg.d_head }))
  end)
end

-- ---- the whole ----

-- What one step of one copy costs, in floating-point operations at the rate of fused multiply-adds: products
-- with weights, and the recurrence forward and backward (a lane's instruction counts 2, whatever it does).
local function cost(cfg, module, K, M)
  local weights = 0
  module:each(function(name, t) if name:find "weight$" and not name:find "norm" then weights = weights + t:size() end end)
  local V, heads = cfg.d_head, cfg.n_layers * cfg.n_heads
  local lanes = cfg.approximation == "cos" and 3 * M * (V + K) + 2 * K or 4 * V * K
  return { products = 2 * weights, forward = 2 * heads * lanes, backward = 6 * heads * lanes }
end

---Build a core of the family from a complete configuration.
function family.build(cfg)
  check(cfg)
  local memory = family.memories[cfg.update ~= "sum" and cfg.update or cfg.approximation]
  if memory.check then memory.check(cfg) end
  local K = features.size(cfg)
  local embed = nn.linear(cfg.d_in, cfg.d_model, { act = cfg.embed_act })
  local layers, states = {}, {}
  for n = 0, cfg.n_layers - 1 do
    layers[n + 1] = { tostring(n), block.new(cfg, attention(cfg, n, K, memory)) }
    for name, axes in pairs(memory.states(cfg)) do states["layers." .. n .. "." .. name] = axes end
  end
  if memory.clock then states.tick = "[B]" end
  local module = nn.container { { "embed", embed }, { "layers", nn.container(layers) } }
  local core = {
    module = module, d_out = cfg.d_model, states = states,
    sizes = { H = cfg.n_heads, V = cfg.d_head, K = K }, start = {},
    claims = { reset = memory.clock and "up to tick" or "exact" },
    complexity = memory.complexity(cfg),
    forward = function(x, done, state, probe)
      local e, new = embed(x), {}
      done = cfg.reset and done or nil
      for n = 1, cfg.n_layers do e = layers[n][2](e, done, state, new, probe) end
      return e, new
    end,
  }
  core.cost = function() return cost(cfg, module, K, core.sizes.M or 0) end
  if memory.extend then memory.extend(cfg, core) end
  return core
end

return family
