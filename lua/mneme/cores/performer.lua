-- performer.lua -- galite with FAVOR+ features: a running maximum replaces the one over the whole sequence.
return require("mneme.models.cores").preset("galite", { gate = "none", feature = "favor_softmax", m = 256 }, {
  doc = "positive random features approximate the softmax kernel (FAVOR+), causally",
  source = "Choromanski et al. 2021, Rethinking Attention with Performers, lemma 1",
})
