-- indexing.lua -- parts of tensors: x[i], x[i] = v, masks, and indices along an axis.
-- What stands between brackets counts from 1, as Lua's own lists do; every other index and all axes count from 0, as in torch.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local renamed = require "mneme.base.renamed"
local describe = require("mneme.tensor.op_binding").describe

---@param M table tensor.lua's
return function(M)
  local ops, functions = M.ops, M.functions

  local function need_tensor(name, what, x)
    if not M.is(x) then errors.raise(("%s: %s is %s, expected a tensor"):format(name, what, describe(x))) end
  end

  -- ---- x[i] ----

  local function check_index(x, i)
    local shape = x:shape()
    if #shape == 0 then errors.raise "x[i]: the tensor has no axis (x:item() is its one number)" end
    if i < 1 or i > shape[1] or i % 1 ~= 0 then
      errors.raise(("x[%s]: expected an index from 1 to %d, the size of axis 0"):format(describe(i), shape[1]))
    end
    return shape
  end

  -- Entry i of axis 0, without that axis; of a vector its element, a number.
  function M.row(x, i)
    local shape = check_index(x, i)
    if #shape == 1 then return x:at(i) end
    return ops.reshape(ops.slice(x, 0, i - 1, i), { unpack(shape, 2) })
  end

  -- Entry i of a leaf's axis 0 becomes v: a number, a list or a tensor.
  function M.assign(x, i, v)
    local shape = check_index(x, i)
    local rest = #shape > 1 and { unpack(shape, 2) } or { 1 }
    if type(v) == "number" then v = M.new({ shape = rest, dtype = x:dtype() }):fill(v)
    elseif type(v) == "table" then v = M.new { shape = rest, dtype = x:dtype(), data = v }
    elseif not M.is(v) then errors.raise(("x[%d] = %s, expected a number, a list or a tensor"):format(i, describe(v))) end
    M.writable(x, ("x[%d] = v"):format(i))
    M.view(x, (i - 1) * x:size() / shape[1], rest):copy(v)
  end

  ---Entry `index` of an axis, without that axis: x:select(0, 2) is what x[3] is.
  ---@param x Tensor
  ---@param axis integer
  ---@param index integer from 0, from the end if negative
  ---@return Tensor
  function functions.select(x, axis, index)
    need_tensor("select", "x", x)
    local shape = x:shape()
    local n = #shape
    if type(axis) ~= "number" or axis % 1 ~= 0 or axis < -n or axis >= n then
      errors.raise(("select: axis is %s, expected a whole number from %d to %d"):format(describe(axis), -n, n - 1))
    end
    if axis < 0 then axis = axis + n end
    local size = shape[axis + 1]
    if type(index) ~= "number" or index % 1 ~= 0 or index < -size or index >= size then
      errors.raise(("select: index is %s, expected a whole number from %d to %d"):format(describe(index), -size, size - 1))
    end
    if index < 0 then index = index + size end
    table.remove(shape, axis + 1)
    local y = ops.slice(x, axis, index, index + 1)
    return n > 1 and ops.reshape(y, shape) or y
  end

  -- ---- masks ----

  ---x with one value where the mask is 1.
  ---@param x Tensor
  ---@param mask Tensor u8, of x's shape or one that broadcasts to it
  ---@param value number
  ---@return Tensor
  function functions.masked_fill(x, mask, value)
    need_tensor("masked_fill", "x", x)
    need_tensor("masked_fill", "mask", mask)
    if type(value) ~= "number" then errors.raise(("masked_fill: value is %s, expected a number"):format(describe(value))) end
    return ops.where(mask, value, x)
  end

  ---The elements where the mask is 1, as a vector.  How many there are depends on the mask, so a plan cannot record it.
  ---@param x Tensor
  ---@param mask Tensor u8, of x's shape or one that broadcasts to it
  ---@return Tensor
  function functions.masked_select(x, mask)
    need_tensor("masked_select", "x", x)
    need_tensor("masked_select", "mask", mask)
    if engine.recording then
      errors.raise("masked_select: while a plan records: every replay would take as many elements",
        { hint = "mn.where and x:masked_fill keep the shape" })
    end
    if mask:dtype() ~= "u8" then errors.raise(("masked_select: mask is %s, expected u8"):format(mask:dtype())) end
    local shape = x:shape()
    if table.concat(mask:shape(), ",") ~= table.concat(shape, ",") then mask = ops.expand(mask, shape) end
    local p, n, size = mask:data(), 0, x:size()
    for i = 0, size - 1 do if p[i] ~= 0 then n = n + 1 end end
    if n == 0 then errors.raise "masked_select: the mask is 0 everywhere, and a tensor has at least one element" end
    local index = M.new { shape = { n }, dtype = "i32" }
    local to, at = index:data(), 0
    for i = 0, size - 1 do
      if p[i] ~= 0 then to[at], at = i, at + 1 end
    end
    return ops.index_select(ops.reshape(x, -1), index, 0)
  end

  -- ---- indices along an axis ----

  -- The op with its tensors first and the axis behind them, or in torch's order: x, axis, tensors.
  local function axis_anywhere(name)
    local op = ops[name]
    return function(x, ...)
      if type((...)) ~= "number" then return op(x, ...) end
      local given = { x, select(2, ...) }
      given[select("#", ...) + 1] = (...)
      return op(unpack(given, 1, select("#", ...) + 1))
    end
  end
  functions.index_select, functions.scatter, functions.scatter_add = axis_anywhere "index_select", axis_anywhere "scatter", axis_anywhere "scatter_add"

  local gather = axis_anywhere "gather"
  -- gather was what pick is, for an index of one axis fewer.
  function functions.gather(x, ...)
    local index = ...
    if M.is(x) and M.is(index) and select("#", ...) == 1 and #index:shape() == #x:shape() - 1 then
      renamed.note("mn.gather with an index of one axis fewer than x", "mn.pick")
      return ops.pick(x, index)
    end
    return gather(x, ...)
  end

  ---Where the values of the sorted x were: the second result of mn.sort.
  ---@param x Tensor
  ---@param axis integer? default -1
  ---@param descending boolean? default false
  ---@return Tensor i32, from 0
  function functions.argsort(x, axis, descending)
    return (select(2, ops.sort(x, axis, descending)))
  end
end
