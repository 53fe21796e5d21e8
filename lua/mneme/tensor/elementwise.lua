-- elementwise.lua -- functions of one line over elementwise ops: pow for any exponent, isnan, isinf, isfinite.
local BIGGEST = (2 - 2 ^ -23) * 2 ^ 127              -- the largest finite float

---@param M table tensor.lua's
return function(M)
  local ops, functions = M.ops, M.functions
  local own = { [-1] = ops.reciprocal, [-0.5] = ops.rsqrt, [0.5] = ops.sqrt, [2] = ops.square }

  ---x^p; NaN where x < 0 and p is no whole number.  Also written x ^ p.
  ---@param x Tensor|number
  ---@param p Tensor|number
  ---@return Tensor
  function functions.pow(x, p)
    if not M.is(x) or type(p) ~= "number" then return (type(x) == "table" and ops.pow or ops.power)(x, p) end
    local op = own[p]
    if op then return op(x) end
    return ops.pow(x, p)
  end

  ---Where x is NaN: a mask.
  ---@param x Tensor
  ---@return Tensor u8
  function functions.isnan(x) return ops.ne(x, x) end

  ---Where x is infinite: a mask.
  ---@param x Tensor
  ---@return Tensor u8
  function functions.isinf(x) return ops.eq(ops.abs(x), math.huge) end

  ---Where x is neither infinite nor NaN: a mask.
  ---@param x Tensor
  ---@return Tensor u8
  function functions.isfinite(x) return ops.between(x, -BIGGEST, BIGGEST) end
end
