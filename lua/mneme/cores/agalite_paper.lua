-- agalite_paper.lua -- agalite with form=paper: at r=1 every cosine is 1, and y is a gated average of values, whatever the query.
return require("mneme.models.cores").preset("agalite", { form = "paper", r = 1 }, {
  doc = "AGaLiTe as in the text, with frequencies 2 pi i/r for i = 0..r",
  source = "Pramanik et al., AGaLiTe, TMLR 10/2024, eq. 34-36",
})
