-- mlp.lua -- a residual network applied to every step independently, for the cores without recurrence.
--   e = act(embed x);   per layer  e = e + ffn(norm(e))
local nn = require "mneme.tensor.nn"

local mlp = {}

---Names embed, layers.N.norm [d], layers.N.ffn.0 [f,d], layers.N.ffn.1 [d,f].
---@param cfg table d_model, n_layers, d_ffn, embed_act, ln_eps
---@return Module m(x, probe)
function mlp.new(cfg, d_in)
  local d, layers = cfg.d_model, {}
  local embed = nn.linear(d_in, d, { act = cfg.embed_act })
  for n = 0, cfg.n_layers - 1 do
    local norm = nn.layer_norm(d, cfg.ln_eps)
    local ffn = nn.sequential { nn.linear(d, cfg.d_ffn, { act = "relu" }), nn.linear(cfg.d_ffn, d) }
    layers[n + 1] = { tostring(n), nn.container({ { "norm", norm }, { "ffn", ffn } }, function(_, e) return e + ffn(norm(e)) end) }
  end
  return nn.container({ { "embed", embed }, { "layers", nn.container(layers) } }, function(_, x, probe)
    local e = embed(x)
    for n = 1, cfg.n_layers do
      e = layers[n][2](e)
      if probe then e = probe("layers." .. n - 1 .. ".e", e) end
    end
    return e
  end)
end

return mlp
