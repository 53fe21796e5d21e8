-- features.lua -- feature maps phi of the gated linear family: what keys and queries become before they meet.
-- One entry is one map; a user's own goes into the same table, mn.features.mine = { ... }.
local features = {}

local function d_head(cfg) return cfg.d_head end
local function wide(cfg) return cfg.nu * cfg.d_head end

---@class Feature
---@field act string the activation of the projection `a` (of rows(cfg) numbers a head) and of the factor p
---@field outer boolean? phi = p (x) a with a second, small projection p of eta numbers a head
---@field rows fun(cfg): integer
---@field size (fun(cfg): integer)? numbers of phi a head; default rows, times eta if outer
---@field lecun boolean? the projections of k and q begin as flax's lecun_normal, not orthogonal

features.list = {
  outer_relu = { act = "relu", outer = true, rows = d_head },
  outer_elu1 = { act = "elu1", outer = true, rows = d_head },
  elu1       = { act = "elu1", rows = wide, lecun = true },
  relu       = { act = "relu", rows = wide, lecun = true },
}

---K: how many numbers phi has a head.
function features.size(cfg)
  local f = features.list[cfg.feature]
  if f.size then return f.size(cfg) end
  return (f.outer and cfg.eta or 1) * f.rows(cfg)
end

return features
