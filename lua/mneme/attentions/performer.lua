-- performer.lua -- softmax by positive random features (FAVOR+), or relu features.  y = num / den with weights
-- phi(q_i).phi(k_j).  kernel=softmax: b = x dh^(-1/4), phi = (exp(W b - |b|^2/2 - c) + feature_eps) / sqrt(m), where c is the
-- largest W b, of a query or of all keys of a head, and a constant.  kernel=relu: relu(W x) + feature_eps, or without W
-- (deterministic).  den gains 2*stabilizer where |den| <= stabilizer.  Causally, keys are taken under the largest
-- logit so far and have no feature_eps (kernel=softmax).
local encoder_attention = require "mneme.models.encoder_attention"
local errors = require "mneme.base.errors"
local kernel_attention = require "mneme.models.kernel_attention"
local nn = require "mneme.tensor.nn"
local ops = require("mneme.tensor.tensor").ops

local kernels = { softmax = true, relu = true }

return {
  doc = "softmax by positive random features (FAVOR+), or relu features",
  source = "Choromanski et al. 2021; the authors' code",
  config = { kernel = "softmax", deterministic = false, m = 256, feature_eps = 1e-6, stabilizer = 1e-6, causal = false },
  check = function(cfg)
    if not kernels[cfg.kernel] then errors.unknown("kernel =", cfg.kernel, { "relu", "softmax" }) end
  end,
  build = function(cfg, sizes)
    local bare = cfg.kernel == "relu" and cfg.deterministic
    local features = not bare and encoder_attention.random_features(sizes.H, cfg.m, sizes.D, math.sqrt(sizes.D)) or nil
    local named = features and { { "features", features, buffer = true } } or nil

    local function relu(x) return ops.relu(bare and x or kernel_attention.project(x, features)) + cfg.feature_eps end
    -- exp(W b - |b|^2/2 - c): c of every row, or of all rows of a head
    local function positive(x, of_all)
      local b = x * sizes.D ^ -0.25
      local z = kernel_attention.project(b, features)
      local top = ops.max { x = z, axis = -1, keepdim = 1 }
      if of_all then top = ops.max { x = top, axis = 2, keepdim = 1 } end
      local half = ops.sum { x = ops.square(b), axis = -1, keepdim = 1 } * 0.5
      return (ops.exp(z - half - ops.detach(top)) + cfg.feature_eps) * cfg.m ^ -0.5
    end

    local function causal(q, k, v)
      if cfg.kernel == "relu" then return kernel_attention.causal_sums(relu(q), relu(k), v, { eps = 0 }) end
      local z = ops.favor_logits(encoder_attention.by_time(k), features)
      local top, shrink = ops.running_max { z = z }
      return kernel_attention.causal_sums(positive(q), encoder_attention.by_copy(ops.favor_features(z, top:detach())), v, { eps = 0, shrink = shrink:detach() })
    end

    return nn.module({ named = named }, function(_, q, k, v)
      if cfg.causal then return kernel_attention.stabilised(cfg.stabilizer, causal(q, k, v)) end
      local phi_q = cfg.kernel == "relu" and relu or positive
      local phi_k = cfg.kernel == "relu" and relu or function(x) return positive(x, true) end
      return kernel_attention.stabilised(cfg.stabilizer, kernel_attention.sums(phi_q(q), phi_k(k), v))
    end)
  end,
}
