-- gates.lua -- gates of the gated linear family: they decide how much a step writes and forgets.
-- One entry is one gate; a user adds one to the same table: mn.gates.mine = { ... }.
local feature_maps = require "mneme.models.axes.feature_maps"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local parameter, ops = require("mneme.tensor.random").parameters.new, require("mneme.tensor.tensor").ops

local gates = {}

---@class Gate beta, gamma and p_gamma say how many gates a head has, given K, the size of a feature; true: d_head.
---Each is a projection of the input, through a sigmoid.
---@field doc string? the gate as an equation
---@field law string? what it makes of C and s, as equations, where it changes what the memory gets
---@field decay string? a decay of its own, whatever the setting: `apply` sets keep_v and keep_k, which this entry of mn.decays joins
---@field beta true|fun(cfg, K): integer? on values; one value per head and no gamma: a gate of the whole head
---@field gamma true|fun(cfg, K): integer? on keys; where there is p_gamma, the large factor of the gate
---@field p_gamma true|fun(cfg, K): integer?
---@field refuses (fun(cfg, K): string?)? why it does not go with a configuration
---@field module (fun(cfg, K): Module)? parameters of its own: a child named as the gate
---@field apply (fun(module, args): nil)? changes what the memory gets: k, v, beta, gamma; or sets keep_v and keep_k

local function each_key(_, K) return K end

---x times a factor, in equations; without a factor all of it.
---@param factor string? "(1-b)", "g"
function gates.times(factor, x) return factor and ("%s*%s"):format(factor, x) or x end

-- Gates that do not depend on the input: write (B, G) and keep 1 - (B G^T)*(B' G'^T).
local function mega(cfg, K)
  local m = nn.module { named = tables.map({ "beta", "beta_damp", "gamma", "gamma_damp" }, function(name, i)
    return { name, parameter({ cfg.n_heads, i <= 2 and cfg.d_head or K }, nn.init.normal(0.2)) }
  end) }
  for _, entry in ipairs(m.named) do m[entry[1]] = entry[2] end
  return m
end

gates.list = {
  outer = {
    doc = "b = sigma(beta x),  g = sigma(p_gamma x) (x) sigma(gamma x)",
    beta = true, gamma = true, p_gamma = function(cfg, K) return K / cfg.d_head end,
    refuses = function(cfg, K)
      if K % cfg.d_head ~= 0 then
        return ("gate=outer is p_gamma (x) gamma, a multiple of d_head=%d gates, but feature=%s has %d keys"):format(cfg.d_head, cfg.feature, K)
      end
    end,
  },
  elementwise = { doc = "b = sigma(beta x),  g = sigma(gamma x)", beta = true, gamma = each_key },
  scalar = {                                       -- Peng et al. 2021, Random Feature Attention, section 3.2
    doc = "b = sigma(beta x), one value per head",
    beta = function() return 1 end,
  },
  none = { doc = "no gates" },                       -- Katharopoulos et al. 2020
  mega = {                                         -- released code of GaLiTe, update_rule `mega`
    doc = "B, B', G, G' = sigma of learned vectors, the same at every step",
    law = "C = (1 - (B*B')(G*G')^T) * C + (B*v)(G*k)^T,  s = (1 - G*G')*s + G*k",
    module = mega, decay = "joint",
    apply = function(m, args)
      feature_maps.whole(args)
      local beta, gamma = ops.sigmoid(m.beta), ops.sigmoid(m.gamma)
      args.v, args.k = args.v * beta, args.k * gamma
      args.keep_v = ops.expand_time { x = 1 - beta * ops.sigmoid(m.beta_damp), like = args.v }
      args.keep_k = ops.expand_time { x = 1 - gamma * ops.sigmoid(m.gamma_damp), like = args.v }
    end,
  },
}

-- What entries may say: member -> its type; "count": true, or function(cfg, K).
gates.members = { doc = "string", law = "string", decay = "string", beta = "count", gamma = "count", p_gamma = "count", refuses = "function",
  module = "function", apply = "function" }

-- Those of the library; a script may put others into the list, also under these names.
gates.ours = tables.merged(gates.list)

return gates
