-- mlp.lua -- a residual network applied to every step independently, for the cores without recurrence.
--   e = act(embed x);   per layer  e = e + ffn(norm(e))
local block = require "mneme.models.block"
local nn = require "mneme.tensor.nn"

---Names embed, layers.N.norm [d], layers.N.ffn.0 [f,d], layers.N.ffn.1 [d,f].
---@param cfg table d_in, d_model, n_layers, d_ffn, embed_act, ln_eps
---@param core table what else build of a core returns
---@return table core
return function(cfg, core)
  return block.stack(cfg, core, {}, function(_, prefix)
    local norm = nn.layer_norm(cfg.d_model, cfg.ln_eps)
    local ffn = nn.sequential { nn.linear(cfg.d_model, cfg.d_ffn, { act = "relu" }), nn.linear(cfg.d_ffn, cfg.d_model) }
    return nn.container({ { "norm", norm }, { "ffn", ffn } }, function(_, e, _, _, _, probe)
      e = e + ffn(norm(e))
      return probe and probe(prefix .. "e", e) or e
    end)
  end)
end
