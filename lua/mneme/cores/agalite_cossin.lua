-- agalite_cossin.lua -- agalite with form=cossin: sines and cosines, without the aliasing of cosines alone.
return require("mneme.models.cores").preset("agalite", { form = "cossin", r = 8 }, {
  doc = "AGaLiTe with sines and cosines: exact for r >= the number of steps",
  source = "cosine products of Pramanik et al., AGaLiTe, TMLR 10/2024, completed by sines",
})
