-- rfa_gate.lua -- a setting of galite: random Fourier features and one forgetting number a head.
return require("mneme.models.core").preset("galite", { gate = "scalar", feature = "rfa", m = 64, den_clamp = 1e-3 }, {
  doc = "random feature attention with a scalar gate that forgets",
  source = "Peng et al. 2021, Random Feature Attention, section 3.2",
})
