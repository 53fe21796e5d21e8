-- decays.lua -- decays of the gated linear family: what a step keeps of the state, given its gates.
-- One entry is one decay; a user adds one to the same table: mn.decays.mine = { ... }.
local tables = require "mneme.base.tables"
local ops = require("mneme.tensor.tensor").ops

local decays = {}
local GLA_POWER = 16               -- GLA's gate keeps sigma(.)^(1/16): one that begins half open 0.958

---@class Decay
---@field doc string what is kept, as equations of the gates b and g
---@field source string?
---@field keep fun(beta: Tensor?, gamma: Tensor?): Tensor?, Tensor?  from the gates of values [T,B,H,V] and of keys [T,B,H,K], nil
---where there is none, keep_v [T,B,H,V] and keep_k [T,B,H,K], from 0 to 1; nil: all is kept.  The matrix is multiplied with
---keep_v keep_k^T, the sum of keys with keep_k.  One value per head [T,B,H,1], as gate=scalar has it, is for the whole head.
---A decay that is no product returns a factor for each element of the matrix, [T,B,H,V,K], in place of keep_v
---@field joint boolean? the matrix is multiplied with 1 - (1-keep_v)(1-keep_k)^T: what either keeps
---@field needs string[]? gates without which it has no meaning: "beta", "gamma"
---@field rest table<string, boolean>? gates whose rest is all that is kept (keep_v = 1-b, keep_k = 1-g): the kernels work that out
---without storing it

decays.list = {
  separable = {
    doc = "keep_v = 1-b,  keep_k = 1-g", source = "Pramanik et al. 2023, GaLiTe, eq. 10-16",
    keep = function(beta, gamma) return beta and 1 - beta, gamma and 1 - gamma end,
    rest = { beta = true, gamma = true },
  },
  joint = {
    doc = "1 - b g^T of the matrix, 1-g of the sum of keys", source = "released code of GaLiTe",
    keep = function(beta, gamma) return 1 - beta, 1 - gamma end,
    joint = true, needs = { "beta", "gamma" }, rest = { beta = true, gamma = true },
  },
  gamma_only = {
    doc = "keep_k = 1-g;  b only writes", needs = { "gamma" },
    keep = function(_, gamma) return nil, 1 - gamma end,
    rest = { gamma = true },
  },
  beta_only = {
    doc = "keep_v = 1-b;  g only writes", needs = { "beta" },
    keep = function(beta) return 1 - beta end,
    rest = { beta = true },
  },
  none = { doc = "everything is kept; b and g only write", keep = function() end, rest = {} },
  exponential = {                                  -- a step forgets at most all but 1/e of each factor
    doc = "keep_v = exp(-b),  keep_k = exp(-g)", source = "gates as time steps of dC/dt = -C: Dao and Gu 2024, Mamba-2, with A = -1",
    keep = function(beta, gamma) return beta and ops.exp(-beta), gamma and ops.exp(-gamma) end,
  },
  gla = {
    doc = "keep_k = (1-g)^(1/16);  b only writes", source = "Yang et al. 2024, Gated Linear Attention: sigma(.)^(1/16)", needs = { "gamma" },
    keep = function(_, gamma) return nil, ops.exp(ops.log(ops.clamp { x = 1 - gamma, lo = 1e-6 }) * (1 / GLA_POWER)) end,
  },
}

-- Of the core gla: what a gate keeps with the input u, with a bias alone, and the bias for that.
decays.gla = {
  kept = function(u) return (ops.exp(ops.softplus(-u) * (-1 / GLA_POWER))) end,
  of_bias = function(bias) return (1 + math.exp(-bias)) ^ (-1 / GLA_POWER) end,
  bias_of = function(keep) return -math.log(keep ^ -GLA_POWER - 1) end,
}

-- What entries may say: member -> its type.
decays.members = { doc = "string", source = "string", keep = "function", joint = "boolean", needs = "table", rest = "table" }

-- Those of the library; a script may put others into the list, also under these names.
decays.ours = tables.merged(decays.list)

return decays
