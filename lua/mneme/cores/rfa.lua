-- rfa.lua -- galite with random Fourier features; their normaliser may be near 0, so it is clamped.
return require("mneme.models.cores").preset("galite", { gate = "none", feature = "rfa", m = 64, den_clamp = 1e-3 }, {
  doc = "random feature attention: sines and cosines approximate a Gaussian kernel",
  source = "Peng et al. 2021, Random Feature Attention, section 3.1",
})
