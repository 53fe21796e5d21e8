-- block.lua -- layers in a row, as most cores are (stack); and one layer around an attention: norm, attention, norm, feed-forward, joined as `flow` says.
--   gtrxl     h = gate1(e, relu(attn(norm1(e))));  y = gate2(h, relu(ffn(norm2(h))))      (Parisotto et al. 2020)
--   residual  h = e + relu(attn(norm1(e)));        y = h + relu(ffn(norm2(h)))
--   postnorm  h = norm1(e + attn(e));              y = norm2(h + ffn(h))
local errors = require "mneme.base.errors"
local module = require "mneme.tensor.module"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local block = {}

---What the last product of a sub-layer is followed by: give it to the attention's `out`.
---@return string act
function block.closing(flow) return flow == "postnorm" and "none" or "relu" end

---One layer.  Names attn.*, norm1, norm2 [d], ffn.0 [f,d], ffn.1 [d,f] and, for flow=gtrxl, gate1, gate2.
---@param cfg table d_model, d_ffn, ln_eps, flow
---@param attn Module called as attn(x, ...) -> [...,d_model], closed by block.closing(flow)
---@param options table? { init = of the products (default orthogonal sqrt 2), raw = true: attn normalises its own
---input, by attn(norm1, e, ...), as Transformer-XL's does; close = true: attn is not closed, the block does it }
---@return Module m(e, ...): the rest of the arguments go to attn; what attn returns besides follows the block's output
function block.new(cfg, attn, options)
  options = options or {}
  local d, f, init = cfg.d_model, cfg.d_ffn, options.init
  local norm1, norm2 = nn.layer_norm(d, cfg.ln_eps), nn.layer_norm(d, cfg.ln_eps)
  local ffn = nn.sequential { nn.linear(d, f, { act = "relu", init = init }),
                              nn.linear(f, d, { act = block.closing(cfg.flow), init = init }) }
  local close = options.close and block.closing(cfg.flow) == "relu"
  local children = { { "attn", module.of(attn) }, { "norm1", norm1 }, { "norm2", norm2 }, { "ffn", ffn } }
  local function closed(y, ...) return tensor.ops.relu(y), ... end
  local function attend(e, ...)
    if options.raw then return attn(norm1, e, ...) end
    if close then return closed(attn(norm1(e), ...)) end
    return attn(norm1(e), ...)
  end
  if cfg.flow == "gtrxl" then
    local gate1, gate2 = nn.gru_gate(d, init), nn.gru_gate(d, init)
    children[5], children[6] = { "gate1", gate1 }, { "gate2", gate2 }
    return nn.module({ children = children }, function(_, e, ...)
      local y, state = attend(e, ...)
      local h = gate1(e, y)
      return gate2(h, ffn(norm2(h))), state
    end)
  elseif cfg.flow == "residual" then
    return nn.module({ children = children }, function(_, e, ...)
      local y, state = attend(e, ...)
      local h = e + y
      return h + ffn(norm2(h)), state
    end)
  end
  return nn.module({ children = children }, function(_, e, ...)
    local y, state = attn(e, ...)
    local h = norm1(e + y)
    return norm2(h + ffn(h)), state
  end)
end

---A core of layers in a row: e = embed x;  e = layer(e) for each;  y = norm(e), where there is a norm.
---@param cfg table d_in, d_model, n_layers, embed_act, reset
---@param core table what else the core's build returns; its states, if there are some besides those of layers
---@param states table<string, string> axes of a layer's states
---@param make fun(n: integer, prefix: string): Module, table?, table? layer n, from 0, called as m(e, done, state, new, probe, sense), with
---  sense of this layer: sense(x, i, given); its gates that forget (gate_start.lua), and its sensitivities; prefix: "layers.n."
---@param options table? { norm = Module, flags = fun(x, done, state, new): what layers get in place of done, after = fun(e, done, state, new) }
---@return table core
function block.stack(cfg, core, states, make, options)
  options = options or {}
  local embed, layers, decays, credit = nn.linear(cfg.d_in, cfg.d_model, { act = cfg.embed_act }), {}, {}, {}
  core.states = core.states or {}
  for n = 0, cfg.n_layers - 1 do
    local prefix, layer = "layers." .. n .. "."
    layer, decays[n + 1], credit[n + 1] = make(n, prefix)
    layers[n + 1] = { tostring(n), layer }
    for name, axes in pairs(states) do core.states[prefix .. name] = axes end
  end
  core.module = nn.container { { "embed", embed }, { "layers", nn.container(layers) }, options.norm and { "norm", options.norm } }
  core.d_out, core.decays, core.sensitivities = cfg.d_model, decays, credit[1] and credit
  core.forward = function(x, done, state, probe, _, _, sense)
    local e, new = embed(x), {}
    done = cfg.reset and done or nil
    local flags = done
    if options.flags then flags = options.flags(x, done, state, new) end
    for n = 1, cfg.n_layers do e = layers[n][2](e, flags, state, new, probe, sense and function(...) sense(n, ...) end) end
    if options.after then options.after(e, done, state, new) end
    return options.norm and options.norm(e) or e, new
  end
  return core
end

local defaults = { d_model = 64, d_ffn = 64, ln_eps = 1e-6, flow = "gtrxl" }
local flows = { gtrxl = true, residual = true, postnorm = true }

---The frame in which agalite and gtrxl hold their memories, around one of your own: norm, memory, norm, feed-forward, joined by gates
---(flow = "gtrxl") or by sums ("residual", "postnorm").  So memories are compared inside the same frame.
---@param cfg table d_model, d_ffn, flow = "gtrxl", ln_eps = 1e-6; a core's cfg will do: its other settings are ignored
---@param memory Module|Core called as memory(x, ...) -> y [T,B,d_model], state
---@return Module m(e, ...) with e [T,B,d_model] -> y [T,B,d_model], state.  Names attn.*, norm1, norm2, ffn, gate1, gate2
function block.frame(cfg, memory)
  errors.need("core.block: settings", cfg, nil, "{ d_model = 64, d_ffn = 64, flow = \"gtrxl\" }")
  module.need("core.block: memory", memory)
  local full = tables.merged(defaults, cfg)
  for key, default in pairs(defaults) do
    if type(full[key]) ~= type(default) then errors.raise(("core.block: %s is %s, expected a %s"):format(key, tostring(full[key]), type(default))) end
  end
  if not flows[full.flow] then errors.unknown("flow =", full.flow, tables.keys(flows)) end
  local function checked(y, ...)
    local shape = tensor.is(y) and y:shape() or {}
    if #shape ~= 3 or shape[3] ~= full.d_model then
      errors.raise(("core.block: the memory gave %s, expected [T,B,%d]"):format(tensor.is(y) and "[" .. table.concat(shape, ",") .. "]" or tables.in_words(y),
        full.d_model))
    end
    return y, ...
  end
  local called = setmetatable({ module = module.of(memory) }, { __call = function(_, ...) return checked(memory(...)) end })
  return block.new(full, called, { close = true })
end

return block
