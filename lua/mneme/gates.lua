-- gates.lua -- gates of the gated linear family: what decides how much is written and forgotten.
-- One entry is one gate; a user's own goes into the same table, mn.gates.mine = { ... }.
local gates = {}

---@class Gate each field says how many gates a head has, given K, the size of a feature; true: d_head
---@field beta true|fun(cfg, K): integer? on values
---@field gamma true|fun(cfg, K): integer? on keys; where there is p_gamma, the large factor of the gate
---@field p_gamma true|fun(cfg, K): integer?

gates.list = {
  outer       = { beta = true, gamma = true, p_gamma = function(cfg, K) return K / cfg.d_head end },
  elementwise = { beta = true, gamma = function(_, K) return K end },
  none        = {},
}

return gates
