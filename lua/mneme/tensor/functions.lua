-- functions.lua -- functions of a few lines over ops: pow for any exponent, isnan, isinf, isfinite; reductions over several axes,
-- x:sum({ 0, 2 }); softmax over any axis.  The ops reduce one axis: several are first made one, by reshaping where they are neighbours,
-- else moved to the end.
local errors = require "mneme.base.errors"
local axis_of = require("mneme.tensor.op_binding").axis_of

local BIGGEST = (2 - 2 ^ -23) * 2 ^ 127              -- the largest finite float

---@param M table tensor.lua's
return function(M)
  local ops, functions = M.ops, M.functions

  -- ---- elementwise ----

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

  -- ---- reductions ----

  -- The axes of a list, from 0, in order.
  local function sorted(name, axes, n)
    local list, seen = {}, {}
    for i, axis in ipairs(axes) do
      list[i] = axis_of(name, axis, n, nil, "axis in a list")
      if seen[list[i]] then errors.raise(("%s: axis %d twice"):format(name, list[i])) end
      seen[list[i]] = true
    end
    if #list == 0 then errors.raise(("%s: axis = an empty list, expected axes such as { 0, 2 }"):format(name)) end
    table.sort(list)
    return list
  end

  -- x with these axes, in order, as one; its place, the last one if `last` says so or they are not neighbours; and x's shape with 1 in
  -- their places.
  local function merged(x, axes, last)
    local shape, kept, k, gone = x:shape(), x:shape(), #axes, {}
    local n, first = #shape, axes[1]
    for _, axis in ipairs(axes) do kept[axis + 1], gone[axis] = 1, true end
    if last or axes[k] - first >= k then
      local order = {}
      for axis = 0, n - 1 do if not gone[axis] then order[#order + 1] = axis end end
      for _, axis in ipairs(axes) do order[#order + 1] = axis end
      x, first = ops.permute(x, order), n - k
      shape = x:shape()
    end
    local to = {}
    for axis = 0, n - 1 do
      if axis <= first or axis >= first + k then to[#to + 1] = shape[axis + 1] else to[#to] = to[#to] * shape[axis + 1] end
    end
    return ops.reshape(x, to), first, kept
  end

  -- A call's arguments by name: x, then the options in the order of the signature; a table at the end is named options, unless it is a
  -- list where the axis belongs.
  local function named(name, ...)
    local s, n, args = M.signatures[name], select("#", ...), {}
    while n > 1 and (select(n, ...)) == nil do n = n - 1 end
    for i = 1, n do
      local value = (select(i, ...))
      local option = s.options[i - 1]
      if type(value) == "table" and i == n and not (option and option.name == "axis" and #value > 0) then
        for key, v in pairs(value) do args[key] = v end
      elseif i == 1 then args[s.inputs[1].name] = value
      elseif not option and value ~= nil then errors.raise(name .. ": too many arguments", { hint = "x:" .. name .. "(axis, keepdim)" })
      elseif option then args[option.name] = value end
    end
    return args
  end

  -- Reductions of masks and floats that take lists of axes.  Of max and min a list gives no index.
  local function reduction(name)
    local op, input = ops[name], M.signatures[name].inputs[1].name
    functions[name] = function(x, a, b, c, ...)
      local ta, tb, tc = type(a), type(b), type(c)
      if type(x) ~= "table" and ta ~= "table" and tb ~= "table" and tc ~= "table" then
        if b == nil and c == nil then
          if a == nil then return op(x) end
          return op(x, a)
        end
        return op(x, a, b, c, ...)
      end
      local args = named(name, x, a, b, c, ...)
      if type(args.axis) ~= "table" then return op(args) end
      local whole = args[input]
      if not M.is(whole) then return op { [input] = whole } end           -- which says what is wrong
      local x1, axis, kept = merged(whole, sorted(name, args.axis, #whole:shape()))
      args[input], args.axis = x1, axis
      local y = op(args)
      local keep = args.keepdim or args.keepdims
      return (keep == true or keep == 1) and ops.reshape(y, kept) or y
    end
  end
  for _, name in ipairs { "sum", "mean", "max", "min", "prod", "var", "std", "norm", "any", "all", "count_nonzero" } do reduction(name) end

  -- ---- ops along the last axis, along any ----

  for _, name in ipairs { "softmax", "log_softmax" } do
    local op = ops[name]
    functions[name] = function(x, axis)
      if type(x) == "table" then x, axis = x.x, x.axis end
      if axis == nil or not M.is(x) then return op(x) end
      local n = #x:shape()
      axis = axis_of(name, axis, n, -1)
      if axis == n - 1 then return op(x) end
      return ops.transpose(op(ops.transpose(x, axis, n - 1)), axis, n - 1)
    end
  end

  ---ln(sum of e^x) over an axis (default: the last) or several, the largest x subtracted first.
  ---@param x Tensor
  ---@param axis integer|integer[]|nil
  ---@param keepdim boolean?
  ---@return Tensor
  function functions.logsumexp(x, axis, keepdim)
    if type(x) == "table" then x, axis, keepdim = x.x, x.axis, x.keepdim end
    if not M.is(x) or (axis == nil and not keepdim) then return ops.logsumexp(x) end
    local n = #x:shape()
    local x1, _, kept = merged(x, sorted("logsumexp", type(axis) == "table" and axis or { axis_of("logsumexp", axis, n, -1) }, n), true)
    local y = ops.logsumexp(x1)
    return keepdim and ops.reshape(y, kept) or y
  end
end
