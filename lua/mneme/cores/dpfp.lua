-- dpfp.lua -- galite with DPFP features and no gate: it never forgets.
return require("mneme.models.cores").preset("galite", { gate = "none", feature = "dpfp", nu = 1 }, {
  doc = "deterministic parameter-free projection with the sum rule",
  source = "Schlag et al. 2021, Linear Transformers Are Secretly Fast Weight Programmers, section 5.3",
})
