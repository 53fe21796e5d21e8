-- feedforward.lua -- no memory: the control, and a lower bound for what an environment needs memory for.
--   e = relu(embed x);   in every layer  e = e + ffn(norm(e)),  ffn(x) = ffn.1(relu(ffn.0(x)))
-- Its size is that of the published memories (1.59 million parameters; they have 1.42 to 1.80), so that a difference is
-- not one of capacity.
local mlp = require "mneme.models.mlp"

return {
  doc = "no memory: a residual network of the current observation, the control",
  source = "a control; residual layers after He et al. 2016, with layer norm",
  config = { d_in = 16, d_model = 256, n_layers = 4, d_ffn = 768, embed_act = "relu", ln_eps = 1e-6 },
  build = function(cfg) return mlp(cfg, { sizes = {}, complexity = { step = "0" }, reads = "nothing" }) end,
}
