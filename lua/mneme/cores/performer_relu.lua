-- performer_relu.lua -- galite with feature=favor_relu: Performer with relu in place of exp.
return require("mneme.models.cores").preset("galite", { gate = "none", feature = "favor_relu", m = 256, feature_eps = 1e-3 }, {
  doc = "generalised attention: relu of random projections",
  source = "Choromanski et al. 2021, Rethinking Attention with Performers; feature_eps of the authors' code",
})
