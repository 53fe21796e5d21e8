-- softmax.lua -- softmax attention: every token attends to every token.  y_i = sum over j of softmax(q_i.k_j / sqrt(dh)) v_j.
-- One range of keys for all rows: time N^2, memory N.
local encoder_attention = require "mneme.models.encoder_attention"
local ops = require("mneme.tensor.tensor").ops

return {
  doc = "softmax attention: every token attends to every token",
  source = "Vaswani et al. 2017, eq. 1",
  config = { causal = false },
  build = function(cfg)
    local ranges = encoder_attention.by_length(function(N) return encoder_attention.ranges { { { { 0, N } } } } end)
    return encoder_attention.plain(function(q, k, v)
      return ops.sparse_attention { q = q, k = k, v = v, ranges = ranges(q:shape()[3]), causal = cfg.causal }
    end)
  end,
}
