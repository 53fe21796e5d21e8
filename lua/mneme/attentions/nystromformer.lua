-- nystromformer.lua -- softmax attention interpolated from landmarks, the means of N/m neighbours each:
--   y = F1 pinv(A) (F3 v),  F1 = softmax(q kl^T),  A = softmax(ql kl^T),  F3 = softmax(ql k^T),  q, k times dh^(-1/4).
-- The pseudo-inverse is iterated: Z = Z/4 (13 - AZ (15 - AZ (7 - AZ))), from A^T / (its largest column sum).
local encoder_attention = require "mneme.models.encoder_attention"
local errors = require "mneme.base.errors"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local parameter, ops = require("mneme.tensor.random").parameters.new, tensor.ops

local scales = { head = true, global = true }

-- The largest column sum: of each matrix, or of all.  Rows of A sum to 1.
local function largest_sum(A, scale)
  local columns = ops.sum { x = A, axis = 2, keepdim = 1 }
  if scale == "global" then return (ops.max { x = columns }) end
  return (ops.max { x = columns, axis = -1, keepdim = 1 })
end

local function pinv(A, cfg, eye)
  local Z = ops.div(encoder_attention.turned(A), largest_sum(A, cfg.pinv_scale))
  for _ = 1, cfg.iterations do
    local AZ = ops.matmul(A, Z)
    local inner = eye * 15 - ops.matmul(AZ, eye * 7 - AZ)
    Z = ops.matmul(Z * 0.25, eye * 13 - ops.matmul(AZ, inner))
  end
  return Z
end

return {
  doc = "softmax attention interpolated from landmarks (Nystroem)",
  source = "Xiong et al. 2021, eq. 13 and 14",
  config = { landmarks = 32, iterations = 6, pinv_scale = "head", conv_kernel = 0 },
  causal = "a landmark is a mean over the sequence and the pseudo-inverse mixes all landmarks, so position t would see the future",
  check = function(cfg)
    if not scales[cfg.pinv_scale] then errors.unknown("pinv_scale =", cfg.pinv_scale, { "global", "head" }) end
  end,
  build = function(cfg, sizes)
    local m, n = cfg.landmarks, cfg.conv_kernel
    local conv = n > 0 and parameter({ sizes.H, n }, nn.init.lecun_normal())
    local eye = tensor.new { shape = { m, m } }
    for i = 0, m - 1 do eye:data()[i * (m + 1)] = 1 end
    local scale = sizes.D ^ -0.25
    local function landmarks(x, s)
      return (ops.mean { x = ops.reshape(x, { d0 = s[1], d1 = s[2], d2 = m, d3 = s[3] / m, d4 = s[4] }), axis = 3 })
    end
    local function look(q, k) return ops.softmax(ops.matmul(q, encoder_attention.turned(k))) end
    return nn.module({ named = { conv and { "conv", conv } or nil } }, function(_, q, k, v)
      local s = q:shape()
      if s[3] % m ~= 0 then
        errors.raise(("attention nystromformer: the sequence has %d tokens, expected a multiple of landmarks = %d"):format(s[3], m))
      end
      q, k = q * scale, k * scale
      local ql, kl = landmarks(q, s), landmarks(k, s)
      local right = ops.matmul(pinv(look(ql, kl), cfg, eye), ops.matmul(look(ql, k), v))
      local y = ops.matmul(look(q, kl), right)
      return conv and y + ops.head_conv(v, conv) or y
    end)
  end,
}
