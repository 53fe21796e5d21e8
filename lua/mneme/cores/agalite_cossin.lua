-- agalite_cossin.lua -- a setting of agalite: without the aliases that cosines alone have.
return require("mneme.models.core").preset("agalite", { form = "cossin", r = 8 }, {
  doc = "AGaLiTe with sines beside its cosines: exact for r at least the number of steps",
  source = "cosine products of Pramanik et al., AGaLiTe, TMLR 10/2024, completed by sines",
})
