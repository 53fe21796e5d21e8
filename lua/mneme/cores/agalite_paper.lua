-- agalite_paper.lua -- a setting of agalite: at r=1 every cosine is 1: a gated average of values, whatever the query.
return require("mneme.models.core").preset("agalite", { form = "paper", r = 1 }, {
  doc = "AGaLiTe as the text has it, frequencies 2 pi i/r for i = 0..r",
  source = "Pramanik et al., AGaLiTe, TMLR 10/2024, eq. 34-36",
})
