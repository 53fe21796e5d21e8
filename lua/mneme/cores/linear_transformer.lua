-- linear_transformer.lua -- galite without a gate: the linear transformer, whose sums only grow.
return require("mneme.models.cores").preset("galite", { gate = "none", feature = "elu1", nu = 1, eps = 1e-6 }, {
  doc = "linear attention with elu+1; it never forgets",
  source = "Katharopoulos et al. 2020, Transformers are RNNs, section 3",
})
