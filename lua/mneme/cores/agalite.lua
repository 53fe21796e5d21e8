-- agalite.lua -- AGaLiTe: GaLiTe whose matrix is approximated by r pairs of vectors, modulated by cosines.
-- Per head and channel m, at time tau:
--   v_m = (1-beta)*v_m + cos(w_m tau) beta*v     k_m = (1-gamma)*k_m + cos(w_m tau) gamma*k
--   s = (1-gamma)*s + gamma*k                    y = sum_m v_m (k_m.q) / (D s.q + eps)
-- form=code is the released model (r=1 and r=2 are the same function up to eps), form=paper follows the text,
-- form=cossin is exact for r >= the number of steps.
return require("mneme.models.cores").preset("galite", { approximation = "cos" }, {
  doc = "approximate gated linear attention: r pairs of vectors and cosines approximate the matrix (AGaLiTe / AReLiT)",
  source = "Pramanik et al., AGaLiTe, TMLR 10/2024; released code github.com/subho406/agalite",
})
