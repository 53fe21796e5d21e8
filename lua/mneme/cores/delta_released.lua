-- delta_released.lua -- galite with update=delta: the gated delta rule of GaLiTe's released code, which never resets.
return require("mneme.models.cores").preset("galite", { update = "delta", feature = "dpfp", reset = false }, {
  doc = "gated delta rule with a normaliser, as released: C = (1-g) C + g b (v - C k) k^T",
  source = "released code github.com/subho406/agalite, galite.py: delta, dpfp",
})
