-- framestack.lua -- the last few observations concatenated, as in DQN: the control for environments that need a few steps only.
--   z_t = [x_{t-frames+1}; ...; x_t], zeros for frames of another episode;   then the network of feedforward on z
local errors = require "mneme.base.errors"
local mlp = require "mneme.models.mlp"
local tables = require "mneme.base.tables"
local ops = require("mneme.tensor.tensor").ops

return {
  doc = "the last observations concatenated, then a network without memory: a control",
  source = "Mnih et al. 2015 (four frames); the network is that of feedforward",
  config = { d_in = 16, frames = 4, d_model = 256, n_layers = 4, d_ffn = 768, embed_act = "relu", ln_eps = 1e-6, reset = true },
  build = function(cfg)
    errors.whole("core framestack", "frames =", cfg.frames, 2, { status = 2, hint = "one frame is the core feedforward" })
    local core = mlp(tables.merged(cfg, { d_in = cfg.frames * cfg.d_in }), { states = { frames = "[B,F,D]" },
      sizes = { F = cfg.frames - 1, D = cfg.d_in }, complexity = { step = "0" }, reads = "frames", looks_back = "F" })
    local forward = core.forward
    core.forward = function(x, done, state, probe)
      local z, frames = ops.frame_stack { x = x, done = cfg.reset and done or nil, past = state.frames, frames = cfg.frames }
      return forward(z, nil, state, probe), { frames = frames }
    end
    return core
  end,
}
