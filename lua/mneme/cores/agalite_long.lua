-- agalite_long.lua -- agalite whose gates begin nearly closed, so that a step's gradient reaches hundreds of steps back.
-- sigma(beta) = 0.018 and sigma(gamma) sigma(p_gamma) = 0.014 at the start, where the published gates begin at 0.5 and 0.25: half
-- of what is written is left after 21 steps, not after 0.7.  Everything else is as published; with core.remember=published the gates, too.
return require("mneme.models.cores").preset("agalite", { beta_bias = -4, gamma_bias = -2, p_gamma_bias = -2, remember = "biases" }, {
  doc = "AGaLiTe whose gates begin nearly closed, with a half-life of 21 steps",
  source = "ours; the idea is that of chrono initialisation, Tallec and Ollivier 2018, for LSTMs",
})
