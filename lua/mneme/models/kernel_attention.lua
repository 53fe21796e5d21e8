-- kernel_attention.lua -- attention by products of features, for the attentions linear, rfa and performer: with
-- weights phi(q_i).phi(k_j), keys and values are summed before they are multiplied with a query, so the cost is linear in N.
local encoder_attention = require "mneme.models.encoder_attention"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local kernel = {}

---A number as a tensor that broadcasts.
function kernel.number(x) return tensor.new { x } end

---W x of every head: x [B,H,N,D], features [H,m,D] -> [B,H,N,m].
function kernel.project(x, features)
  local w, B, s = encoder_attention.turned(features), x:shape()[1], features:shape()
  local copies = tensor.new({ shape = { B, 1, 1, 1 } }):fill(1)
  return ops.matmul(x, ops.mul(copies, ops.reshape(w, { d0 = 1, d1 = s[1], d2 = s[3], d3 = s[2] })))
end

---Over all tokens: num_i = phi_q,i sum_j phi_k,j v_j^T [B,H,N,D] and den_i = phi_q,i . sum_j phi_k,j [B,H,N,1].
---@param fq Tensor phi(q) [B,H,N,K]
---@param fk Tensor phi(k) [B,H,N,K]
---@param v Tensor [B,H,N,D]
function kernel.sums(fq, fk, v)
  local num = ops.matmul(fq, ops.matmul(encoder_attention.turned(fk), v))
  local total = ops.sum { x = fk, axis = 2, keepdim = 1 }
  return num, ops.matmul(fq, encoder_attention.turned(total))
end

---Over the tokens up to one's own: num / clamp(den + eps).  `options`: eps, den_clamp, ... of linear_attention.
function kernel.causal(fq, fk, v, options)
  options.q, options.k, options.v = encoder_attention.by_time(fq), encoder_attention.by_time(fk), encoder_attention.by_time(v)
  local y = ops.linear_attention(options)
  return encoder_attention.by_copy(y)
end

---num and den over the tokens up to one's own: den is the sum of one more value, which is 1.
function kernel.causal_sums(fq, fk, v, options)
  local s = v:shape()
  local one = tensor.new({ shape = { s[1], s[2], s[3], 1 } }):fill(1)
  options.normalise = 0
  local y = kernel.causal(fq, fk, ops.concat(v, one), options)
  return ops.slice { x = y, axis = 3, from = 0, to = s[4] }, ops.slice { x = y, axis = 3, from = s[4] }
end

---num / den, with den + 2s in place of den where |den| <= s.
function kernel.stabilised(s, num, den)
  if s > 0 then den = ops.where(ops.between(den, { lo = -s, hi = s }), den + 2 * s, den) end
  return num / den
end

return kernel
