-- rfa.lua -- random feature attention: random Fourier features of a Gaussian kernel.  For unit vectors,
--   phi(x) = [sin W x', cos W x'] / sqrt(m),  x' = x / (|x| + 1e-3),  y_i = sum_j (phi_i.phi_j) v_j / sum_j phi_i.phi_j.
-- The features have both signs: the denominator keeps its sign and a magnitude of at least den_clamp.
local encoder_attention = require "mneme.models.encoder_attention"
local kernel_attention = require "mneme.models.kernel_attention"
local nn = require "mneme.tensor.nn"
local ops = require("mneme.tensor.tensor").ops

return {
  doc = "random Fourier features of a Gaussian kernel",
  source = "Peng et al. 2021, eq. 4 and 5",
  config = { m = 64, den_clamp = 1e-3, causal = false },
  build = function(cfg, sizes)
    local features = encoder_attention.random_features(sizes.H, cfg.m, sizes.D, math.sqrt(sizes.D))
    local function phi(x) return ops.fourier(kernel_attention.project((ops.normalise(x, { by = "l2", eps = 1e-3 })), features)) end
    return nn.module({ named = { { "features", features, buffer = true } } }, function(_, q, k, v)
      local fq, fk = phi(q), phi(k)
      if cfg.causal then return kernel_attention.causal(fq, fk, v, { eps = 0, den_clamp = cfg.den_clamp }) end
      local num, den = kernel_attention.sums(fq, fk, v)
      local above, below = ops.maximum(den, kernel_attention.number(cfg.den_clamp)), ops.minimum(den, kernel_attention.number(-cfg.den_clamp))
      return num / ops.where(ops.between(den, { lo = 0 }), above, below)
    end)
  end,
}
