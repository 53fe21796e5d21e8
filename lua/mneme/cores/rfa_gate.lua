-- rfa_gate.lua -- galite with random Fourier features and gate=scalar: one decay per head.
return require("mneme.models.cores").preset("galite", { gate = "scalar", feature = "rfa", m = 64, den_clamp = 1e-3 }, {
  doc = "random feature attention with a scalar gate",
  source = "Peng et al. 2021, Random Feature Attention, section 3.2",
})
