-- core_keys.lua -- what the settings of cores mean: one line each, for `mneme help core NAME`.  A key means the
-- same in every core that has it.
return {
  d_in = "numbers of an observation", d_model = "width of the stream between layers (d)", n_layers = "layers (L)",
  n_heads = "heads (H)", d_head = "numbers of a head's value (dh); n_heads*d_head need not be d_model",
  d_ffn = "hidden width of the feed-forward part", flow = "how sub-layers join: gtrxl gates, residual, postnorm",
  embed_act = "after the embedding: relu or none", ln_eps = "added to the variance in layer norm",
  reset = "an episode's start clears the memory; false: done is ignored",
  eta = "factor of the outer-product feature map (and of nn): K = eta*d_head", nu = "factor of elu1, relu (K = nu*d_head) and dpfp (2*nu*d_head)",
  m = "random features of a head", r = "channels of cos and random_sign, rank of svd", eps = "added to the normaliser s.q",
  den_clamp = "least size of the normaliser, its sign kept; 0: none", norm_eps = "added to the norm of keys (delta, fastweight)",
  feature_eps = "added to random features (favor)", nn_act = "activation of feature=nn: relu, elu1 or exp",
  feature = "the map phi of keys and queries", gate = "what is written and forgotten", query = "q from x (single), or projected twice (double, as released)",
  decay = "separable (1-beta)(1-gamma), the paper's, or joint 1-beta*gamma, the released code's",
  update = "sum, or a delta rule: delta (released, gated), fastweight (Schlag et al.)", normalise = "divide by s.q",
  approximation = "of the matrix C: full (none), cos, random_sign, svd", form = "cosines: code (released), paper, cossin (exact for r >= steps)",
  rotary = "rotate q and k by their position before the feature map", seed = "of the signs of random_sign",
  memory = "tokens kept (M)", mem_slots = "memory tokens", segment = "tokens of a segment (S)", frames = "observations side by side, the newest last",
  window = "tokens of the local window", globals = "first positions that see and are seen by all", dilation = "every how manieth token the window takes",
  chunk = "tokens that are compressed together", rho = "compressed tokens of a chunk", block = "tokens of a block",
  global_blocks = "blocks that see and are seen by all", random = "random blocks of a head and block", context = "tokens kept of an episode, at most",
  mix_rank = "rank of the data-dependent token shift", decay_rank = "rank of the data-dependent decay", gn_eps = "added to the variance in group norm",
}
