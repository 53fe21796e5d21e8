-- slstm_cell.lua -- the recurrence of slstm and slstm_block, of any products of the last output:
--   i, f, z, o = input + R(h);   m' = max(log sigma(f) + m, i);   a = exp(log sigma(f) + m - m'),  b = exp(i - m')
--   c = a c + b tanh(z);   n = a n + b;   h = sigma(o) c / n
-- m keeps the exponentials in range and changes nothing else; it begins below all inputs, so that the first i is the first m.
local recur = require "mneme.tensor.recur"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local cell = { LOWEST = -1e30, states = { "h", "c", "n", "m" } }         -- LOWEST: m where an episode begins

---The recurrence.
---@param again fun(h: Tensor): Tensor what the last output [B,d] adds to i, f, z, o: [B,4*d]
---@return fun(x: Tensor, done: Tensor?, h: Tensor, c: Tensor, n: Tensor, m: Tensor): Tensor, Tensor, Tensor, Tensor, Tensor  x [T,B,4*d]; y [T,B,d] and
---  the states after it
function cell.new(d, again)
  local by_size = {}
  local function start(B)
    local zero = tensor.new { shape = { B, d } }
    by_size[B] = by_size[B] or { h = zero, c = zero, n = zero, m = tensor.new { shape = { B, d } }:fill(cell.LOWEST) }
    return by_size[B]
  end
  local function body(input, s)
    local h, c, n, m = ops.slstm_gate(input, again(s.h), s.c, s.n, s.m)
    return h, { h = h, c = c, n = n, m = m }
  end
  return function(x, done, h, c, n, m)
    local y, s = recur(body, { x = x, state = { h = h, c = c, n = n, m = m }, done = done, start = done and start(x:shape()[2]) or nil })
    return y, s.h, s.c, s.n, s.m
  end
end

return cell
