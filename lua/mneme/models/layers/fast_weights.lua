-- fast_weights.lua -- the form that gated_deltanet, deltaproduct, kda, mamba2, gla, retnet and hgrn2 share: a matrix of values by keys a head,
-- in the block of the other cores (block.lua).  What differs is a few functions in each core's file.
--   parts = W x, of which some go through a short convolution;   keys, values and gates of them: the core's `memory`
--   y = what it reads;   attn = out(y / rms(y) * norm.weight * gate(x)),  the rms over each head or over all
-- Weights start with variance 1/d, biases at 0, no other biases.  The published codes scale y by 1/sqrt(d_head), which the norm undoes but for its
-- epsilon: `scaled` scales that.
local block = require "mneme.models.block"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local parameter, fast_weights = require("mneme.tensor.random").parameters.new, {}

---@class FastWeights what a core's file gives, besides doc, source and config
---@field counts table<string, integer>? its settings that are counts
---@field parts fun(cfg): table { { name, rows }, ... }: one product, and one convolution where there is conv_size; names .weight, _conv.weight
---@field open (fun(cfg): table)? more of them, in a product of their own that no convolution follows
---@field shared (fun(cfg): Module)? a child named "shared" of the core: what its layers share
---@field memory fun(cfg, own: Own, n: integer, shared: Module?): fun(s: Step): Tensor  the recurrence of layer n, from 0: y [T,B,H,V]
---@field gate string? what the output's gate goes through; nil: no gate
---@field gate_first boolean? the gate comes before the norm
---@field norm string? "all": over all heads at once
---@field scaled boolean? y is scaled by 1/sqrt(K)
---@field conv_bias boolean? the convolution has a bias
---@field rotary boolean? there is a clock, and s.turned
---@field states table<string, string>? instead of C = "[B,H,V,K]"
---@field sizes (fun(cfg): integer, integer)? K and V, if they are not d_head and d_head*expand_v
---@field complexity string of a step, as in cores.lua
---@field reads string
---@field credit (fun(cfg, own: Own, n: integer, shared: Module?): table[], function)? sensitivities of C (see exact_credit.lua): its kinds, each with
---  of = "v" where its rows are those of values, part = "k" where they are one of `parts`, from = the row of element 0; and what each step adds and
---  keeps, of what the rows give: fun(u, states): x, keep
---@field lacks string? why there are none, where `reads` does not say

---@class Own the parameters of a layer that are its core's own
---@field leaf fun(name: string, shape: integer[], init: function?): Tensor
---@field buffer fun(name: string, shape: integer[]): Tensor  saved, not trained
---@field child fun(name: string, module: Module): Module
---@field forgets fun(gate: table) declares a gate for core.remember
---@field named table<string, Tensor> its leaves and buffers, once they are made
---@field modules table<string, Module> its children

---@class Step one call of a layer
---@field x Tensor [T,B,d], the layer's input after its norm
---@field T integer
---@field B integer
---@field done Tensor?
---@field all Tensor [T,B,D], what the products of `parts` gave
---@field cut fun(t: Tensor, from: integer, rows: integer, heads: integer): Tensor  [T,B,heads,rows/heads] of t
---@field part fun(name: string, heads: integer?): Tensor  of a part, by head; heads = 0: as it is
---@field seen fun(name: string, t: Tensor): Tensor  shows it to the probe
---@field carried fun(name: string, op: function, args: table): Tensor  runs an op whose argument `name` is a state, and whose second result is the next
---@field turned fun(t: Tensor): Tensor  queries or keys, turned by their position

-- Rows of a packed leaf under names of their own, each begun by init.
local function windows(leaf, parts, named, suffix, cols, init)
  local at = 0
  for _, part in ipairs(parts) do
    local name, rows = part[1], part[2]
    local shape = suffix == "_conv" and { rows, 1, cols } or { rows, cols }
    local w = tensor.view(leaf, at * cols, shape)
    init(w:data(), rows, cols)
    named[#named + 1] = { name .. suffix .. ".weight", w }
    at = at + rows
  end
end

local function rows_of(parts)
  local n, at = 0, {}
  for _, part in ipairs(parts) do at[part[1]], n = { n, part[2] }, n + part[2] end
  return n, at
end

---A decay exp(-exp(A_log) softplus(dt + dt_bias)) as in Mamba-2: A_log [H] from A uniform between two values, dt_bias [H*per] from steps whose
---logarithms are uniform between 0.001 and 0.1.
---@param H integer heads
---@param per integer steps a head
---@param low number least A
---@param high number largest A
---@param name string of the probe
---@return Tensor A_log
---@return Tensor dt_bias
function fast_weights.time_steps(own, H, per, low, high, name)
  local draw = nn.init.uniform(0.5)
  local A_log, dt_bias = own.leaf("A_log", { H }, draw), own.leaf("dt_bias", { H * per }, draw)
  for h = 0, H - 1 do A_log:data()[h] = math.log(low + (high - low) * math.max(A_log:data()[h] + 0.5, 1e-6)) end
  for i = 0, H * per - 1 do
    local dt = math.exp(math.log(0.001) + (dt_bias:data()[i] + 0.5) * math.log(100))
    dt_bias:data()[i] = dt + math.log(1 - math.exp(-dt))        -- softplus of it is dt
  end
  local function A(i) return math.exp(A_log:data()[math.floor(i / per)]) end
  own.forgets(gate_start.decays(name, dt_bias, function(x, i) return math.exp(-A(i) * math.log(1 + math.exp(x))) end, function(keep, i)
    local dt = -math.log(keep) / A(i)
    return dt > 30 and dt or math.log(math.exp(dt) - 1)
  end))
  return A_log, dt_bias
end

---The output's gate: g x, or g_b(g_a x) where there is a gate_rank.
local function output_gate(cfg, rows, lecun)
  if not cfg.gate_rank then return { { "g", nn.linear(cfg.d_model, rows, { bias = false, init = lecun }) } } end
  return { { "g_a", nn.linear(cfg.d_model, cfg.gate_rank, { bias = false, init = lecun }) },
    { "g_b", nn.linear(cfg.gate_rank, rows, { init = lecun }) } }
end

---A memory that adds, C = C diag(keep) + v k^T, y = C q, shown to the probe.
---@param q Tensor [T,B,H,K]
---@param v Tensor [T,B,H,V]
---@param keep Tensor [T,B,H,K] of keys, or [T,B,H,1]
---@return Tensor y [T,B,H,V]
function fast_weights.sum(s, q, k, v, keep)
  return s.seen("retrieved", s.carried("C", ops.linear_attention,
    { keep_k = s.seen("keep_k", keep), q = s.seen("q", q), k = s.seen("k", k), v = s.seen("v", v), normalise = 0 }))
end

-- The sensitivities of layer n: element (h, i, j) of C [H,V,K] is fed by row h*V+i of values, and by row h*K+j of keys.
local function credit_of(spec, cfg, K, V, own, n, shared, inward, at)
  local kinds, step = spec.credit(cfg, own, n, shared)
  for _, kind in ipairs(kinds) do
    if kind.part then kind.weight, kind.from = inward, at[kind.part][1] end
    local other = kind.row or function(j) return j end             -- of key j
    kind.row = kind.of == "v" and function(e) return math.floor(e / K) end or function(e) return math.floor(e / (V * K)) * K + other(e % K) end
    if kind.from then
      local row = kind.row
      kind.row = function(e) return kind.from + row(e) end
    end
  end
  return { { state = "layers." .. n .. ".C", count = cfg.n_heads * V * K, kinds = kinds, last = function(u, done, C, states)
    local x, keep = step(u, states)
    return select(2, ops.gated_scan { x = x, a = keep, done = done, h = C })
  end } }
end

---Queries [T,B,H,K] and keys [T,B,n,K] of length 1: the first rows of `parts`.
---@param n integer keys of a step
---@return Tensor q
---@return Tensor k
function fast_weights.unit_keys(cfg, s, n)
  local H = cfg.n_heads
  local qk = s.cut(s.all, 0, (H + n) * cfg.d_head, H + n):normalise { by = "l2", eps = cfg.norm_eps }
  return qk:slice { axis = 2, from = 0, to = H }, qk:slice { axis = 2, from = H }
end

---q, k [.,.,H,K] and v [.,.,H,V] of d_head values.
---@return table parts
function fast_weights.qkv(cfg)
  local keys = cfg.n_heads * cfg.d_head
  return { { "q", keys }, { "k", keys }, { "v", keys * cfg.expand_v } }
end

-- What a layer knows of its own parameters while its core makes them.
local function collector(leaves, named, children, decays)
  local modules = {}
  return {
    modules = modules,
    leaf = function(name, shape, init)
      local p = parameter(shape, init)
      leaves[#leaves + 1], named[#named + 1] = p, { name, p }
      return p
    end,
    buffer = function(name, shape)
      local p = tensor.new { shape = shape }
      named[#named + 1] = { name, p, buffer = true }
      return p
    end,
    child = function(name, module)
      children[#children + 1] = { name, module }
      modules[name] = module
      return module
    end,
    forgets = function(gate) decays[#decays + 1] = gate end,
    named = {},
  }
end

-- The layer's memory.
local function attention(cfg, n, prefix, spec, K, V, shared)
  local H, d, W, lecun, decays = cfg.n_heads, cfg.d_model, cfg.conv_size, nn.init.lecun_normal(), {}
  local parts, open_parts = spec.parts(cfg), spec.open and spec.open(cfg) or {}
  local D, at = rows_of(parts)
  local O, open_at = rows_of(open_parts)
  local leaves, named, children = {}, {}, {}
  local function packed(rows, cols)
    local p = parameter { rows, cols }
    leaves[#leaves + 1] = p
    return p
  end
  local inward, conv, open = packed(D, d), W and packed(D, W), O > 0 and packed(O, d)
  local own = collector(leaves, named, children, decays)
  local remembered = spec.memory(cfg, own, n, shared)
  local bias = conv and spec.conv_bias and own.leaf("conv.bias", { D })
  local weight = own.leaf("norm.weight", { spec.norm == "all" and H * V or V }):fill(1)
  windows(inward, parts, named, "", d, lecun)
  if conv then windows(conv, parts, named, "_conv", W, nn.init.uniform(1 / math.sqrt(W))) end
  if open then windows(open, open_parts, named, "", d, lecun) end
  local gate = spec.gate and output_gate(cfg, H * V, lecun) or {}
  for _, child in ipairs(gate) do children[#children + 1] = child end
  local out = own.child("out", nn.linear(H * V, d, { bias = false, init = lecun, act = block.closing(cfg.flow) }))
  local eps = cfg.rms_eps * (spec.scaled and K or 1)
  for _, entry in ipairs(named) do own.named[entry[1]] = entry[2] end

  return nn.module({ leaves = leaves, named = named, children = children }, function(_, x, done, state, new, probe, sense)
    if sense then sense(x) end
    local T, B = unpack(x:shape())
    local function heads(t, count) return ops.reshape(t, { d0 = T, d1 = B, d2 = count, d3 = t:size() / (T * B * count) }) end
    local function seen(name, t) return probe and probe(prefix .. name, t) or t end
    local s = { x = x, T = T, B = B, done = done, seen = seen, heads = heads, all = ops.linear(x, inward) }
    local others = open and ops.linear(x, open)
    if conv then
      s.all, new[prefix .. "conv"] = ops.short_conv { x = s.all, w = conv, done = done, state = state[prefix .. "conv"], act = bias and "none" or "silu" }
      if bias then s.all = ops.silu(s.all + bias) end
    end
    function s.cut(t, from, rows, count) return heads(t:slice { axis = 2, from = from, to = from + rows }, count) end
    function s.part(name, count)
      local place = at[name] or open_at[name]
      local part = (at[name] and s.all or others):slice { axis = 2, from = place[1], to = place[1] + place[2] }
      return count == 0 and part or heads(part, count or H)
    end
    function s.turned(t)
      t, new.tick = ops.rotary { x = t, tick = state.tick }
      return t
    end
    function s.carried(name, op, args)
      local y
      args.done, args[name] = done, state[prefix .. name]
      y, new[prefix .. name] = op(args)
      return y
    end

    local y, g = remembered(s), x
    for _, child in ipairs(gate) do g = child[2](g) end
    g = spec.gate and ops[spec.gate](spec.norm == "all" and g or heads(g, H))
    if spec.norm == "all" then y = ops.reshape(y, { d0 = T, d1 = B, d2 = H * V }) end
    if spec.gate_first then y = y * g end
    y = y:normalise { by = "rms", eps = eps } * weight
    if g and not spec.gate_first then y = y * g end
    return out(ops.reshape(y, { d0 = T, d1 = B, d2 = H * V }))
  end), decays, spec.credit and credit_of(spec, cfg, K, V, own, n, shared, inward, at)
end

local function build(spec, cfg)
  local K, V = cfg.d_head, cfg.d_head * (cfg.expand_v or 1)
  if spec.sizes then K, V = spec.sizes(cfg) end
  local D, conv = rows_of(spec.parts(cfg)), cfg.conv_size
  local sizes = { H = cfg.n_heads, K = K, V = V, W = conv and conv - 1, D = conv and D, P = cfg.keys }
  local core = { no_sensitivities = spec.lacks, reads = spec.reads, complexity = { step = spec.complexity }, sizes = sizes }
  if spec.rotary then core.states, core.claims = { tick = "[B]" }, { reset = "up to tick" } end
  local shared
  block.stack(cfg, core, tables.merged(spec.states or { C = "[B,H,V,K]" }, conv and { conv = "[B,W,D]" }), function(n, prefix)
    shared = shared or spec.shared and spec.shared(cfg)              -- after the embedding, before the layers
    local attn, decays, credit = attention(cfg, n, prefix, spec, K, V, shared)
    return block.new(cfg, attn), decays, credit
  end)
  if shared then table.insert(core.module.children, { "shared", shared }) end
  return core
end

---A core's file from what is its own.
---@param spec FastWeights with doc, source, equations?, config
---@return table definition as core.lua wants it
function fast_weights.core(spec)
  local config = tables.merged({ d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_ffn = 128, rms_eps = 1e-5, flow = "residual", embed_act = "relu",
    ln_eps = 1e-6, remember = "published", reset = true }, spec.config)
  local counts = spec.counts or {}
  for key, least in pairs { expand_v = 1, conv_size = 2, gate_rank = 1, decay_rank = 1 } do if config[key] then counts[key] = counts[key] or least end end
  return { doc = spec.doc, source = spec.source, checked = "an independent program", equations = spec.equations, config = config, counts = counts,
    build = function(cfg) return build(spec, cfg) end }
end

return fast_weights
