-- galite.lua -- gated linear attention with its axes: gate x decay x query x feature x approximation x flow.
-- Per head: v, k = phi(x), q = phi(x); gates beta on the value axis, gamma on the key axis;
--   C = (1-beta)(1-gamma)^T * C + (beta*v)(gamma*k)^T     s = (1-gamma)*s + gamma*k     y = C q / (s.q + eps)
-- (decay=separable, the paper's GaLiTe; decay=joint is the released code's, with 1 - beta gamma^T; a script adds others: mn.decays).
-- The matrix C can be approximated: approximation=cos by vectors modulated by cosines (AGaLiTe), random_sign by random
-- signs (unbiased), svd by its nearest matrix of rank r, U W^T.
local gated_linear_rules = require "mneme.models.gated_linear_rules"
local gated_linear = require "mneme.models.gated_linear"

return {
  doc = "gated linear attention with an outer-product gate and feature map (GaLiTe / ReLiT)",
  source = "Pramanik et al., AGaLiTe, TMLR 10/2024; released code github.com/subho406/agalite",
  checked = "the released code and an independent program",
  config = {
    d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_head = 64, d_ffn = 128,
    feature = "outer_relu", eta = 4, nu = 1, m = 64, nn_act = "relu", feature_eps = 1e-6, rotary = false,
    query = "single", gate = "outer", beta_bias = 0, gamma_bias = 0, p_gamma_bias = 0, remember = "published",
    decay = "separable", update = "sum", norm_eps = 1e-6,
    approximation = "full", form = "code", r = 2, seed = 1, normalise = true, eps = 1e-5, den_clamp = 0,
    flow = "gtrxl", embed_act = "relu", ln_eps = 1e-6, reset = true,
  },
  choices = gated_linear_rules.words,
  equations = gated_linear.equations, build = gated_linear.build,
}
