-- gated_linear.lua -- galite with gate=scalar: the linear transformer with one decay per head.
return require("mneme.models.cores").preset("galite", { gate = "scalar", feature = "elu1", nu = 2, query = "double", embed_act = "none", eps = 1e-10 }, {
  doc = "linear attention with a scalar gate and a learned feature map: the paper's \"Linear Transformer\"",
  source = "Pramanik et al., AGaLiTe, TMLR 10/2024, baseline; gate of Peng et al. 2021; released code: gated_peng, eluplus1",
})
