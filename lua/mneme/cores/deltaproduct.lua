-- deltaproduct.lua -- gated_deltaproduct without its decay: what several keys a step write stays until keys overwrite it.
return require("mneme.models.cores").preset("gated_deltaproduct", { gated = false }, {
  doc = "delta rule with several keys a step, which never decays (DeltaProduct)",
  source = "Siems et al. 2025, DeltaProduct, arXiv 2502.10297",
})
