-- block.lua -- one layer around an attention: norm, attention, norm, feed-forward, joined as `flow` says.
--   gtrxl     h = gate1(e, relu(attn(norm1(e))));  y = gate2(h, relu(ffn(norm2(h))))      (Parisotto et al. 2020)
--   residual  h = e + relu(attn(norm1(e)));        y = h + relu(ffn(norm2(h)))
--   postnorm  h = norm1(e + attn(e));              y = norm2(h + ffn(h))
local nn = require "mneme.tensor.nn"

local block = {}

---What the last product of a sub-layer is followed by: give it to the attention's `out`.
---@param flow string
---@return string act
function block.closing(flow) return flow == "postnorm" and "none" or "relu" end

---One layer.  Names attn.*, norm1, norm2 [d], ffn.0 [f,d], ffn.1 [d,f] and, for flow=gtrxl, gate1, gate2.
---@param cfg table d_model, d_ffn, ln_eps, flow
---@param attn Module called as attn(x, ...) -> [...,d_model], closed by block.closing(flow)
---@param options table? { init = of the products (default orthogonal sqrt 2), raw = true: attn normalises its own
---input, by attn(norm1, e, ...), as Transformer-XL's does }
---@return Module m(e, ...): the rest of the arguments go to attn
function block.new(cfg, attn, options)
  options = options or {}
  local d, f, init = cfg.d_model, cfg.d_ffn, options.init
  local norm1, norm2 = nn.layer_norm(d, cfg.ln_eps), nn.layer_norm(d, cfg.ln_eps)
  local ffn = nn.sequential { nn.linear(d, f, { act = "relu", init = init }),
                              nn.linear(f, d, { act = block.closing(cfg.flow), init = init }) }
  local children = { { "attn", attn }, { "norm1", norm1 }, { "norm2", norm2 }, { "ffn", ffn } }
  local function attend(e, ...)
    if options.raw then return attn(norm1, e, ...) end
    return attn(norm1(e), ...)
  end
  if cfg.flow == "gtrxl" then
    local gate1, gate2 = nn.gru_gate(d, init), nn.gru_gate(d, init)
    children[5], children[6] = { "gate1", gate1 }, { "gate2", gate2 }
    return nn.module({ children = children }, function(_, e, ...)
      local h = gate1(e, attend(e, ...))
      return gate2(h, ffn(norm2(h)))
    end)
  elseif cfg.flow == "residual" then
    return nn.module({ children = children }, function(_, e, ...)
      local h = e + attend(e, ...)
      return h + ffn(norm2(h))
    end)
  end
  return nn.module({ children = children }, function(_, e, ...)
    local h = norm1(e + attn(e, ...))
    return norm2(h + ffn(h))
  end)
end

return block
