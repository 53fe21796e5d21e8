-- galite_released.lua -- galite with decay=joint: it retains 1 - beta gamma^T, more than the paper's (1-beta)(1-gamma)^T.
return require("mneme.models.cores").preset("galite", { decay = "joint", query = "double", embed_act = "none", eps = 1e-10 }, {
  doc = "GaLiTe as in the released code: joint decay, query projected twice",
  source = "released code github.com/subho406/agalite, galite.py: projected_sigmoid, pp_relu (its configuration has eta=2)",
})
