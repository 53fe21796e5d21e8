-- sparse_transformer.lua -- what the cores longformer, bigbird and longshort share: layers of the core `transformer` with an
-- attention to positions of the current episode.
local block = require "mneme.models.block"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local ops = require("mneme.tensor.tensor").ops

local episode_core = {}

---Settings that all of them have.
episode_core.config = {
  d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_head = 64, d_ffn = 128,
  flow = "gtrxl", embed_act = "relu", ln_eps = 1e-6, reset = true,
}

---Settings of a core: the common ones and its own.
function episode_core.with(own) return tables.merged(own, episode_core.config) end

---What a layer's attention is given, as a function of its input: projections by head, the state, what to keep.
---@class EpisodeLayer
---@field heads fun(name: string, x: Tensor): Tensor the projection `name` of x [T,B,d], as [T,B,H,n]
---@field pos Tensor [T,B] i32
---@field state fun(name: string): Tensor
---@field show fun(name: string, op: function, args: table) where there is a probe: what the op says of the weights
---@field put fun(name: string, t: Tensor) the state after these rows
---@field keep fun(name: string, t: Tensor, pinned: integer?) the same: what t was at the positions seen (the op `slots`)

---Build a core.
---@param spec table { projections = { { name, numbers a head } ... }, states = { k = "[B,S,H,K]", ... }, sizes,
---  position = { most, back }, modules = { { name, module } ... } of one layer (a function), claims, complexity, looks_back,
---  attend = function(layer, x, modules) -> y [T,B,H,dh] }
function episode_core.build(cfg, spec)
  local H, D = cfg.n_heads, cfg.d_head
  local init = nn.init.orthogonal(math.sqrt(2), H)
  local function attention(prefix)
    local p, children, more = {}, {}, spec.modules and spec.modules() or {}
    for i, wanted in ipairs(spec.projections) do
      p[wanted[1]] = nn.linear(cfg.d_model, H * wanted[2], { init = init })
      children[i] = { wanted[1], p[wanted[1]] }
    end
    local out = nn.linear(H * D, cfg.d_model, { act = block.closing(cfg.flow) })
    children[#children + 1] = { "out", out }
    for _, m in ipairs(more) do children[#children + 1] = m end
    return nn.module({ children = children }, function(_, x, pos, state, new, probe)
      local T, B = unpack(x:shape())
      local function by_head(name, t)
        t = ops.reshape(t, { d0 = T, d1 = B, d2 = H, d3 = -1 })
        return probe and probe(prefix .. name, t) or t
      end
      local y = spec.attend({
        pos = pos,
        heads = function(name, map)
          local t = p[name](x)
          return by_head(name, map and map(t) or t)
        end,
        state = function(name) return state[prefix .. name] end,
        show = function(name, op, args) if probe then probe(prefix .. name, (op(args))) end end,
        put = function(name, t) new[prefix .. name] = t end,
        keep = function(name, t, pinned)
          new[prefix .. name] = ops.kv_slots { x = t, pos = pos, memory = state[prefix .. name], pinned = pinned or 0 }
        end,
      }, more)
      return out(ops.reshape(by_head("retrieved", y), { d0 = T, d1 = B, d2 = H * D }))
    end)
  end
  local core = { states = { tick = "[B]" }, sizes = tables.merged(spec.sizes, { H = H, K = D }), claims = spec.claims, complexity = spec.complexity,
    reads = "softmax", looks_back = spec.looks_back }
  local function flags(x, done, state, new)
    local pos
    pos, new.tick = ops.position { like = x, done = done, tick = state.tick, most = spec.position[1], back = spec.position[2] }
    return pos
  end
  return block.stack(cfg, core, spec.states, function(_, prefix) return block.new(cfg, attention(prefix)) end, { flags = flags })
end

return episode_core
