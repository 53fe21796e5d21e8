-- linear_transformer.lua -- a setting of galite: the linear transformer: positive sums that only grow.
return require("mneme.models.core").preset("galite", { gate = "none", feature = "elu1", nu = 1, eps = 1e-6 }, {
  doc = "linear attention with elu+1, nothing is forgotten",
  source = "Katharopoulos et al. 2020, Transformers are RNNs, section 3",
})
