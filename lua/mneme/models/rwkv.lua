-- rwkv.lua -- what the RWKV cores share: the residual stream around their layers, the token shift, the channel
-- mixing, and the initial values published with RWKV-LM, most of them curves over channels and layers.
--   e = ln0(embed x);  per layer  e += attn(norm1(e)),  e += ffn(norm2(e));  y = ln_out(e)
-- State att_x, ffn_x [B,d]: the inputs of attn and ffn at the last step, with which the next step's are mixed.
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local parameter, ops = require("mneme.tensor.random").parameters.new, tensor.ops

local rwkv = {}

-- ---- parameters ----

---A parameter whose number i (from 0) starts at f(i).
---@param f fun(i: integer): number
function rwkv.curve(shape, f)
  return parameter(shape, function(p, rows, cols) for i = 0, rows * cols - 1 do p[i] = f(i) end end)
end

---A linear map without bias.
---@param init function? nil: zero
function rwkv.map(d_in, d_out, init, act)
  return nn.linear(d_in, d_out, { bias = false, act = act, init = init or function() end })
end

---outer(bias + up inner(down x)): names down .. ".weight" [rank,d_in], which starts at zero, and up .. ".weight" [d_out,rank].
---@param options table { names = { down, up }, bias = leaf?, rank, inner, outer = activations, up = initial value }
---@return table children
---@return fun(x: Tensor): Tensor call
function rwkv.low_rank(d_in, d_out, options)
  local down = rwkv.map(d_in, options.rank, nil, options.inner)
  local up = rwkv.map(options.rank, d_out, options.up)
  local args = { w = up.weight, b = options.bias, act = options.outer or "none" }
  return { { options.names[1], down }, { options.names[2], up } }, function(x)
    args.x = down(x)
    return (ops.linear(args))
  end
end

---How far a layer is up the stack, and how far down: 0 .. 1, and 1 .. almost 0.
function rwkv.depth(cfg, n)
  return cfg.n_layers > 1 and n / (cfg.n_layers - 1) or 0, 1 - n / cfg.n_layers
end

---i/(n-1), and 0 where there is only one.
function rwkv.along(i, n) return n > 1 and i / (n - 1) or 0 end

-- ---- a sub-layer's tools ----

---Mix z with the step before it, for several streams at once: state[name] is the step before the first.
---@param weighs string what mix weighs: "previous" or "current"
---@return fun(mix: Tensor, low: Tensor?, part: integer?): Tensor mixed
function rwkv.shifter(z, done, state, new, name, weighs)
  return function(mix, low, part)
    local y, last = ops.token_shift { x = z, mix = mix, low = low, part = part or 0, done = done, prev = state[name], weighs = weighs }
    new[name] = new[name] or last
    return y
  end
end

---Channel mixing: sigma(r) * v(relu(k)^2), or without r where there is no mix_r.  Names k.weight [f,d], v.weight [d,f],
---r.weight [d,d], mix_k, mix_r [d].
---@param options table { mix_k, mix_r = leaves, key = initial value of k, weighs }
function rwkv.channel_mixing(cfg, n, options)
  local d, f = cfg.d_model, cfg.d_ffn
  local key, value = rwkv.map(d, f, options.key, "relu"), rwkv.map(f, d)
  local children, named = { { "k", key }, { "v", value } }, { { "mix_k", options.mix_k } }
  local receptance
  if options.mix_r then
    receptance = rwkv.map(d, d, nil, "sigmoid")
    children[3], named[2] = { "r", receptance }, { "mix_r", options.mix_r }
  end
  local name = "layers." .. n .. ".ffn_x"
  return nn.module({ children = children, named = named }, function(_, z, done, state, new)
    local mixed = rwkv.shifter(z, done, state, new, name, options.weighs)
    local y = value(ops.square(key(mixed(options.mix_k))))
    return receptance and receptance(mixed(options.mix_r)) * y or y
  end)
end

---Group norm of y[T,B,H,V] a head, its gate and, for RWKV-7, the newest value: names weight, bias [H*V].
function rwkv.group_norm(cfg, init)
  local H, V = cfg.n_heads, cfg.d_head
  local weight, bias = parameter({ H, V }):fill(init), parameter { H, V }
  local named = { { "weight", tensor.view(weight, 0, { H * V }) }, { "bias", tensor.view(bias, 0, { H * V }) } }
  return nn.module({ leaves = { weight, bias }, named = named }, function(_, args)
    args.weight, args.bias, args.eps = weight, bias, cfg.gn_eps
    return (ops.wkv_out(args))
  end)
end

---[T,B,H*n] as [T,B,H,n], shown to the probe under its name; and back.
function rwkv.heads(t, H, probe, name)
  local shape = t:shape()
  t = ops.reshape(t, { d0 = shape[1], d1 = shape[2], d2 = H, d3 = shape[3] / H })
  return probe and probe(name, t) or t
end

function rwkv.joined(t)
  local shape = t:shape()
  return (ops.reshape(t, { d0 = shape[1], d1 = shape[2], d2 = shape[3] * shape[4] }))
end

-- ---- decays of rwkv4 and rwkv6: a channel keeps exp(-exp(decay)) per step ----

function rwkv.keep_of(decay) return math.exp(-math.exp(decay)) end
function rwkv.decay_of(keep) return math.log(-math.log(keep)) end

-- ---- the whole ----

---Settings that are ranks.
rwkv.counts = { mix_rank = 1, decay_rank = 1, rate_rank = 1, value_rank = 1, gate_rank = 1 }

---Build a core from its layers.
---@param cfg table a complete configuration
---@param parts table { attn = function(cfg, n) -> module called as (z, done, state, new, probe, shared, sense), ffn = likewise,
---states = { name = axes } of one layer besides att_x and ffn_x, sizes, start, complexity, reads, lanes = { forward, backward }:
---what a step's remembering takes of the lanes, where that is more than the formula counts }
function rwkv.build(cfg, parts)
  local d, eps = cfg.d_model, cfg.ln_eps
  local embed = nn.linear(cfg.d_in, d, { act = cfg.embed_act })
  local ln0, ln_out = nn.layer_norm(d, eps), nn.layer_norm(d, eps)
  local layers, containers, states, decays, sensitivities = {}, {}, {}, {}, {}
  for n = 0, cfg.n_layers - 1 do
    local layer = { norm1 = nn.layer_norm(d, eps), attn = parts.attn(cfg, n), norm2 = nn.layer_norm(d, eps), ffn = parts.ffn(cfg, n) }
    layers[n + 1], decays[n + 1], sensitivities[n + 1] = layer, layer.attn.decays, layer.attn.sensitivities
    containers[n + 1] = { tostring(n), nn.container { { "attn", layer.attn }, { "norm1", layer.norm1 },
                                                      { "norm2", layer.norm2 }, { "ffn", layer.ffn } } }
    local prefix = "layers." .. n .. "."
    states[prefix .. "att_x"], states[prefix .. "ffn_x"] = "[B,D]", "[B,D]"
    for name, axes in pairs(parts.states) do states[prefix .. name] = axes end
  end
  local module = nn.container { { "embed", embed }, { "ln0", ln0 }, { "layers", nn.container(containers) }, { "ln_out", ln_out } }
  return {
    module = module, d_out = d, states = states, sizes = tables.merged({ D = d }, parts.sizes), start = parts.start, reads = parts.reads, decays = decays,
    sensitivities = sensitivities[1] and sensitivities, no_sensitivities = parts.no_sensitivities,
    complexity = { step = parts.complexity },
    cost = parts.lanes and function()
      local weights = 0
      module:each(function(_, t) if #t:shape() > 1 then weights = weights + t:size() end end)
      return { products = 2 * weights, forward = 2 * parts.lanes[1], backward = 2 * parts.lanes[2] }
    end,
    forward = function(x, done, state, probe, _, _, sense)
      local e, new, shared = ln0(embed(x)), {}, {}
      done = cfg.reset and done or nil
      for n = 1, cfg.n_layers do
        local layer = layers[n]
        e = e + layer.attn(layer.norm1(e), done, state, new, probe, shared, sense and function(...) sense(n, ...) end)
        e = e + layer.ffn(layer.norm2(e), done, state, new)
      end
      return ln_out(e), new
    end,
  }
end

return rwkv
