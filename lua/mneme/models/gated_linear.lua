-- gated_linear.lua -- builds the gated linear family: the cores galite and agalite, and their presets.
-- Its axes are tables in axes/ (feature maps, gates, decays) and the files of forms/, how the state is stored (the file is named
-- after the setting `update`, or after `approximation` if update is sum).
-- gated_linear_rules.lua states which combinations are valid.
local block = require "mneme.models.block"
local decay_rules = require "mneme.models.axes.decay_rules"
local decays = require "mneme.models.axes.decays"
local gated_linear_rules = require "mneme.models.gated_linear_rules"
local feature_maps = require "mneme.models.axes.feature_maps"
local gated_linear_sensitivities = require("mneme.base.lazy") "mneme.models.axes.gated_linear_sensitivities"
local gate_start = require "mneme.models.gate_start"
local gates = require "mneme.models.axes.gates"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local family = { features = feature_maps.list, gates = gates.list, decays = decays.list }

---@class Memory what a file of forms/ returns
---@field axis string the setting that chooses it: "approximation" or "update"
---@field doc string|fun(cfg, gate: Gate, law: table): string its equations; law: see decay_rules.law
---@field states fun(cfg): table names -> axes, of one layer; letters H, V, K and those it adds to core.sizes
---@field complexity fun(cfg): table as in core.lua
---@field run fun(cfg, args, state, new, done, prefix, use: DecayUse?): Tensor y [T,B,H,V].  args: q, k, v and the gates that there
---are, by head, [T,B,H,...] (q and k as factors where args.p_q, args.p_k are given: see feature_maps.whole), as beta and gamma or as
---write_v, keep_v, write_k, p_write_k, keep_k; eps, den_clamp, normalise, done; final states go into `new` under prefix .. name
---@field gate Gate? gates of its own, in place of cfg.gate
---@field keys string[]? settings that only this memory has
---@field refuses (fun(cfg, K): string?)? why it does not go with a configuration
---@field any_decay boolean? also runs decays that are not products of values and keys
---@field products string? what it has not for other decays: "has no cosine form"
---@field own_decay string? why the setting `decay` makes no difference
---@field rescales boolean? heeds args.shrink [T,B,H], what is left of the old memory's keys before a token
---@field unnormalised boolean? has no s.q to divide by, whatever `normalise` says
---@field clock boolean? the core has a state `tick` [B], which `run` advances
---@field fused boolean? projections begin as two fused layers
---@field lanes (fun(V, K, M): number)? vector instructions' lanes of one head's step, for the roofline
---@field extend fun(cfg, core)? more of what a core file's build returns (core.lua)

-- What ops.linear applies itself, without another pass.
local fused = { relu = true, elu1 = true, sigmoid = true, tanh = true }

-- ---- the attention of one layer ----

-- How the parts of one layer are called, and what of them a probe sees.
local order = { "k", "q", "q2", "v", "beta", "gamma", "p_k", "p_q", "p_gamma" }
local probed = { "v", "k", "q", "beta", "gamma", "p_k", "p_q", "p_gamma", "shrink" }
local probed_later = { "keep_v", "keep_k" }         -- what is kept, where it is not the rest of the gates

local function projections(cfg, K, memory, gate)
  local feature, act = feature_maps.list[cfg.feature], feature_maps.act(cfg)
  local H, d, double = cfg.n_heads, cfg.d_model, cfg.query == "double"
  local rows = feature_maps.rows(cfg)
  local orthogonal = nn.init.orthogonal(math.sqrt(2), H)
  local init = memory.fused and nn.init.later or orthogonal
  local mapped = feature.lecun and nn.init.lecun_normal() or init
  local at_once = fused[act] and not cfg.rotary and act or nil
  local p = {}
  local function add(name, n, how, first, d_in) p[name] = nn.linear(d_in or d, H * n, { act = how, init = first or init }) end
  add("v", cfg.d_head)
  add("k", rows, at_once, mapped)
  if double then     -- q0 stays raw; its maps q2 and p_q act within each head
    add("q", cfg.d_head)
    add("q2", rows, nil, feature.lecun and mapped or orthogonal, cfg.d_head)
  else
    add("q", rows, at_once, mapped)
  end
  if feature.outer then
    add("p_k", cfg.eta, act)
    add("p_q", cfg.eta, not double and act or nil, nil, double and cfg.d_head or nil)
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
  return p, at_once
end

local LARGEST = 30           -- of exp's arguments: products of keys, queries and values stay far from infinity

local function activate(x, act)
  if act == "exp" then x = ops.clamp { x = x, hi = LARGEST } end
  return ops[act](x)
end

-- The gates of a layer that forget, for core.remember; nil: there is none, or it has a decay of its own.
local function forgetting(cfg, K, p, gate, use)
  local H, list = cfg.n_heads, use and not use.own and decay_rules.start(use, cfg, gate, K) or {}
  if gate.apply then return nil end
  if p.beta and use and use.uses.beta then list[#list + 1] = gate_start.forgets("beta", p.beta.bias, H) end
  if p.gamma and (not use or use.uses.gamma) then
    list[#list + 1] = p.p_gamma and gate_start.forgets_outer("gamma", p.gamma.bias, p.p_gamma.bias, H)
      or gate_start.forgets("gamma", p.gamma.bias, H)
  end
  return #list > 0 and list or nil
end

-- Its module, gates that forget, and sensitivities, unless the core says why it has none.
local function attention(cfg, prefix, K, memory, use, core)
  local feature, act, H = feature_maps.list[cfg.feature], feature_maps.act(cfg), cfg.n_heads
  local gate = memory.gate or gates.list[cfg.gate]
  local p, at_once = projections(cfg, K, memory, gate)
  for _, name in ipairs { "beta", "gamma", "p_gamma" } do
    if p[name] and cfg[name .. "_bias"] ~= 0 then p[name].bias:fill(cfg[name .. "_bias"]) end
  end
  local double, late = cfg.query == "double", act and not at_once
  local out = nn.linear(H * cfg.d_head, cfg.d_model, { act = block.closing(cfg.flow) })
  local children, named = { { "out", out } }, {}
  for _, name in ipairs(order) do if p[name] then children[#children + 1] = { name, p[name] } end end
  local extra = gate.module and gate.module(cfg, K)
  if extra then children[#children + 1] = { cfg.gate, extra } end
  local random
  if feature.buffer then
    random = tensor.new { shape = { H, cfg.m, cfg.d_head } }
    feature.buffer(random:data(), cfg)
    named[1] = { "features", random, buffer = true }
  end
  -- a [T,B,H,rows] as q or k: turned, activated where the projection did not, and mapped.
  local function phi(a, role, about)
    if cfg.rotary then a, about.new.tick = ops.rotary { x = a, tick = about.state.tick } end
    if late then a = activate(a, act) end
    if not feature.map then return a end
    about.role = role
    return feature_maps.map(a, about)
  end

  return nn.module({ children = children, named = named }, function(_, x, done, state, new, probe, sense)
    local shape = x:shape()
    local T, B = shape[1], shape[2]
    local args = { eps = cfg.eps, den_clamp = cfg.den_clamp, normalise = cfg.normalise, done = done }
    local about = { cfg = cfg, w = random, args = args, state = state, new = new, prefix = prefix, done = done }
    local function by_head(name)
      local y = p[name](x)
      return ops.reshape(y, { d0 = T, d1 = B, d2 = H, d3 = y:shape()[3] / H })
    end
    for _, name in ipairs { "k", "v", "beta", "gamma", "p_k", "p_gamma" } do if p[name] then args[name] = by_head(name) end end
    args.k, args.q = phi(args.k, "k", about), by_head "q"
    if sense then
      local given = {}
      for _, name in ipairs { "v", "beta", "k", "p_k", "gamma", "p_gamma" } do
        local y = args[name]
        given[name] = y and ops.reshape(y, { d0 = T, d1 = B, d2 = y:size() / (T * B) })
      end
      sense(x, nil, given)
    end
    if double then
      local q0 = args.q
      args.q = ops.head_linear { x = q0, w = p.q2.weight, b = p.q2.bias, act = at_once }
      if p.p_q then args.p_q = ops.head_linear { x = q0, w = p.p_q.weight, b = p.p_q.bias, act = act } end
    elseif p.p_q then args.p_q = by_head "p_q" end
    args.q = phi(args.q, "q", about)
    if gate.apply then gate.apply(extra, args) end
    if probe then
      for _, name in ipairs(probed) do if args[name] then args[name] = probe(prefix .. name, args[name]) end end
    end
    if use then decay_rules.apply(use, args, probe ~= nil) end
    if probe then
      for _, name in ipairs(probed_later) do if args[name] then args[name] = probe(prefix .. name, args[name]) end end
    end
    local y = memory.run(cfg, args, state, new, done, prefix, use)
    if probe then y = probe(prefix .. "retrieved", y) end
    return out(ops.reshape(y, { d0 = T, d1 = B, d2 = H * cfg.d_head }))
  end), forgetting(cfg, K, p, gate, use), not core.no_sensitivities and function() return gated_linear_sensitivities.groups(cfg, K, p, prefix) end or nil
end

-- ---- the whole ----

-- What one step of one environment costs, in floating-point operations at the rate of fused multiply-adds: products
-- with weights, and the recurrence forward and backward (a lane's instruction counts 2, whatever it does).
local function cost(cfg, core, memory)
  local weights, sizes = 0, core.sizes
  core.module:each(function(name, t) if name:find "weight$" and not name:find "norm" then weights = weights + t:size() end end)
  local lanes = cfg.n_layers * sizes.H * memory.lanes(sizes.V, sizes.K, sizes.M)
  return { products = 2 * weights, forward = 2 * lanes, backward = 6 * lanes }
end

---What a setting of the family comes to, as equations of one head and step.
function family.equations(cfg)
  local memory, feature = gated_linear_rules.memory(cfg), feature_maps.list[cfg.feature]
  local gate = memory.gate or gates.list[cfg.gate]
  local use = gated_linear_rules.decay(cfg)
  local kept = use and decay_rules.law(use, gate) or {}
  local law = type(memory.doc) == "function" and memory.doc(cfg, gate, kept) or memory.doc
  local lines = { "v = W x,  k = phi(x),  q = " .. (cfg.query == "double" and "phi(W x)" or "phi(x)") }
  if feature.doc then
    lines[#lines + 1] = ("%s;  a%s: %s of phi's argument"):format(feature.doc, feature.outer and ", p" or "",
      feature.outer and "projections" or "a projection")
  end
  lines[#lines + 1] = gate.doc
  lines[#lines + 1] = law
  lines[#lines + 1] = kept.doc
  if law:find "den%(" then
    lines[#lines + 1] = not cfg.normalise and "normalise=false: nothing is divided but by " .. (law:find "den%(D" and "D" or "1")
      or "den(x) = x + eps" .. (cfg.den_clamp > 0 and ", kept den_clamp away from 0" or "")
  end
  return table.concat(lines, "\n")
end

-- How it reads its memory, a value of models/cores.lua: whether a step has a weight follows from what its decay keeps.
local function reading(cfg, use)
  if not use then return cfg.update end
  return not use.product and "joint" or use.rest and "gated" or "kept"
end

---Build a core of the family from a complete configuration.
---@param given table what the user set
---@param lenient boolean? ignore settings that make no difference
function family.build(cfg, given, lenient)
  gated_linear_rules.check(cfg, given, lenient)
  local memory, feature = gated_linear_rules.memory(cfg), feature_maps.list[cfg.feature]
  local K, use = feature_maps.size(cfg), gated_linear_rules.decay(cfg)
  local core, states = { sizes = { H = cfg.n_heads, V = cfg.d_head, K = K }, start = {}, constants = {},
    no_sensitivities = gated_linear_rules.no_sensitivities(cfg) }, memory.states(cfg)
  local extra = feature.state                        -- of the map: { name, axes, start }
  if extra then states[extra[1]], core.start[extra[1]], core.constants[extra[1]] = extra[2], extra[3], true end
  block.stack(cfg, core, states, function(_, prefix)
    local attn, forgets, credit = attention(cfg, prefix, K, memory, use, core)
    return block.new(cfg, attn), forgets, credit
  end)
  local clock = memory.clock or cfg.rotary
  if clock then core.states.tick = "[B]" end
  core.reads, core.approximates = reading(cfg, use), cfg.approximation ~= "full"
  core.claims = { reset = clock and "up to tick" or "exact" }
  core.complexity = memory.complexity(cfg)
  if feature.step then core.complexity.step = core.complexity.step .. " + " .. feature.step end
  if memory.lanes then core.cost = function() return cost(cfg, core, memory) end end
  if memory.extend then memory.extend(cfg, core) end
  return core
end

return family
