-- linear.lua -- linear attention: a product of features replaces softmax, so that keys and values are summed once.
-- phi(x) = elu(x) + 1:
--   y_i = phi(q_i) (sum_j phi(k_j) v_j^T) / (phi(q_i).sum_j phi(k_j) + eps);  causal: the sums run over j <= i.
local encoder_attention = require "mneme.models.encoder_attention"
local kernel_attention = require "mneme.models.kernel_attention"
local ops = require("mneme.tensor.tensor").ops

return {
  doc = "linear attention with the feature map elu+1",
  source = "Katharopoulos et al. 2020, eq. 5 and 7",
  config = { causal = false, eps = 1e-6 },
  build = function(cfg)
    return encoder_attention.plain(function(q, k, v)
      if cfg.causal then return kernel_attention.causal(ops.elu1(q), ops.elu1(k), v, { eps = cfg.eps }) end
      local num, den = kernel_attention.sums(ops.elu1(q), ops.elu1(k), v)
      return num / (den + cfg.eps)
    end)
  end,
}
