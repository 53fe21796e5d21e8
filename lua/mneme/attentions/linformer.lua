-- linformer.lua -- keys and values are projected along the sequence to length k, by learned matrices E and F [k,N]:
--   y = softmax(q (E k)^T / sqrt(dh)) (F v).  A shorter sequence uses the first columns, as if zeros followed it.
local encoder_attention = require "mneme.models.encoder_attention"
local errors = require "mneme.base.errors"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local parameter, ops = require("mneme.tensor.random").parameters.new, require("mneme.tensor.tensor").ops

return {
  doc = "keys and values projected along the sequence to length k",
  source = "Wang et al. 2020, eq. 7",
  config = { k = 32, share = false },
  causal = "E and F mix all positions into each key, so position t would see the future",
  build = function(cfg, sizes)
    local named = tables.map(cfg.share and { "e" } or { "e", "f" }, function(name)
      return { name, parameter({ cfg.k, sizes.N }, nn.init.lecun_normal()) }
    end)
    local e, f = named[1][2], named[#named][2]
    -- [B,H,N,D] -> [B,H,k,D]: one product, m times x of all environments and heads side by side
    local function mixed(m, x)
      local s = x:shape()
      if s[3] < sizes.N then m = ops.slice { x = m, axis = 1, from = 0, to = s[3] } end
      return encoder_attention.turned(ops.matmul(encoder_attention.turned(x), encoder_attention.turned(m)))
    end
    return nn.module({ named = named }, function(_, q, k, v)
      local N = q:shape()[3]
      if N > sizes.N then
        errors.raise(("attention linformer: the sequence has %d tokens, expected at most %d, as e and f have columns"):format(N, sizes.N))
      end
      local keys, values = mixed(e, k), mixed(f, v)
      local scores = ops.matmul(q * sizes.D ^ -0.5, encoder_attention.turned(keys))
      return ops.matmul(ops.softmax(scores), values)
    end)
  end,
}
