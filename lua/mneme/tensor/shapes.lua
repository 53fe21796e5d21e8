-- shapes.lua -- tensors joined, cut and reshaped in the ways of torch, made of ops.  Each is mn.NAME(x, ...) and x:NAME(...).
-- Then parts of tensors: x[i], x[i] = v, masks, and indices along an axis.  What stands between brackets counts from 1, as Lua's own lists do; every
-- other index and all axes count from 0, as in torch, from the end if negative.
local errors = require "mneme.base.errors"
local engine = require "mneme.base.engine"
local op_binding = require "mneme.tensor.op_binding"
local axis_of, describe = op_binding.axis_of, op_binding.describe
local product = require("mneme.base.tables").product

---@param M table tensor.lua's
return function(M)
  local ops, functions = M.ops, M.functions

  -- ---- checking ----

  -- name: the function that was called.
  local function need_tensor(name, what, x)
    if not M.is(x) then errors.raise(("%s: %s is %s, expected a tensor"):format(name, what, describe(x))) end
  end

  local function shape_of(name, x)
    need_tensor(name, "x", x)
    return x:shape()
  end

  local function is_count(n) return type(n) == "number" and n >= 1 and n < 2 ^ 31 and n % 1 == 0 end

  -- ---- joining ----

  local MOST = 8                       -- tensors that one concat takes

  local function check_list(name, list)
    local named = type(list) == "table" and not M.is(list) and next(list, #list > 0 and #list or nil)
    if named then errors.raise(("%s: '%s' among the tensors, expected mn.%s({ x, y, ... }, axis)"):format(name, tostring(named), name)) end
    if type(list) ~= "table" or M.is(list) or #list == 0 then
      errors.raise(("%s: %s, expected a list of tensors"):format(name, M.is(list) and describe(list) or type(list) == "table" and "an empty list"
        or describe(list)))
    end
    for i, x in ipairs(list) do
      if not M.is(x) then errors.raise(("%s: item %d is %s, expected a tensor"):format(name, i, describe(x))) end
    end
  end

  ---Tensors one after another along an axis.
  ---@param list Tensor[] of one type, with equal sizes off the axis
  ---@param axis integer? default 0
  ---@return Tensor
  function functions.cat(list, axis)
    check_list("cat", list)
    local first, dtype = list[1]:shape(), list[1]:dtype()
    axis = axis_of("cat", axis, #first, 0)
    for i = 2, #list do
      local shape = list[i]:shape()
      if list[i]:dtype() ~= dtype then errors.raise(("cat: item %d is %s, expected %s as item 1"):format(i, list[i]:dtype(), dtype)) end
      if #shape ~= #first then errors.raise(("cat: item %d has %d axes, expected %d as item 1"):format(i, #shape, #first)) end
      for k, size in ipairs(shape) do
        if size ~= first[k] and k ~= axis + 1 then
          errors.raise(("cat: axis %d of item %d is %d, expected %d as in item 1"):format(k - 1, i, size, first[k]))
        end
      end
    end
    local option = { axis = axis }
    while #list > 1 do                 -- a tree: an element is copied once in each of its levels
      local joined = {}
      for i = 1, #list, MOST do
        local last = math.min(i + MOST - 1, #list)
        if i == last then joined[#joined + 1] = list[i]
        else
          local given = { unpack(list, i, last) }
          given[#given + 1] = option
          joined[#joined + 1] = ops.concat(unpack(given))
        end
      end
      list = joined
    end
    return list[1]
  end

  ---Tensors of one shape side by side along a new axis.
  ---@param list Tensor[]
  ---@param axis integer? where the new axis is in the result, default 0
  ---@return Tensor
  function functions.stack(list, axis)
    check_list("stack", list)
    local shape = list[1]:shape()
    local n = #shape
    axis = axis_of("stack", axis, n + 1, 0)
    for i = 2, #list do
      local other = list[i]:shape()
      for k = 1, math.max(n, #other) do
        if other[k] ~= shape[k] then
          errors.raise(("stack: item %d is [%s], expected [%s] as item 1"):format(i, table.concat(other, ","), table.concat(shape, ",")))
        end
      end
    end
    if axis == n then
      local parts = {}
      for i, x in ipairs(list) do parts[i] = functions.unsqueeze(x, n) end
      return functions.cat(parts, n)
    end
    local joined = functions.cat(list, axis)   -- the same elements in the same order
    table.insert(shape, axis + 1, #list)
    return ops.reshape(joined, shape)
  end

  -- ---- cutting ----

  ---Pieces of a tensor along an axis.
  ---@param x Tensor
  ---@param sizes integer|integer[] the size of each piece but the last, which may be smaller; or all sizes
  ---@param axis integer? default 0
  ---@return Tensor[]
  function functions.split(x, sizes, axis)
    local shape = shape_of("split", x)
    axis = axis_of("split", axis, #shape, 0)
    local n, list, from = shape[axis + 1], {}, 0
    if type(sizes) == "table" then
      local sum = 0
      for i, size in ipairs(sizes) do
        if not is_count(size) then
          errors.raise(("split: size %d is %s, expected a whole number of at least 1 (a tensor has at least one element)"):format(i, describe(size)))
        end
        sum = sum + size
      end
      if sum ~= n then errors.raise(("split: the sizes add up to %d, expected %d, the size of axis %d"):format(sum, n, axis)) end
    elseif not is_count(sizes) then errors.raise(("split: size is %s, expected a whole number of at least 1, or a list of such"):format(describe(sizes))) end
    while from < n do
      local to = math.min(n, from + (type(sizes) == "table" and sizes[#list + 1] or sizes))
      list[#list + 1] = to - from == n and x or ops.slice(x, axis, from, to)
      from = to
    end
    return list
  end

  ---At most n pieces along an axis, of equal sizes but for the last.
  ---@param x Tensor
  ---@param n integer
  ---@param axis integer? default 0
  ---@return Tensor[]
  function functions.chunk(x, n, axis)
    local shape = shape_of("chunk", x)
    axis = axis_of("chunk", axis, #shape, 0)
    if not is_count(n) then errors.raise(("chunk: n is %s, expected a whole number of at least 1"):format(describe(n))) end
    return functions.split(x, math.ceil(shape[axis + 1] / n), axis)
  end

  -- ---- other shapes of the same elements ----

  ---Without axes of 1: all of them, or one, if its size is 1.  One axis always stays.
  ---@param x Tensor
  ---@param axis integer?
  ---@return Tensor
  function functions.squeeze(x, axis)
    local shape, left = shape_of("squeeze", x), {}
    if axis ~= nil then axis = axis_of("squeeze", axis, #shape) end
    for i, size in ipairs(shape) do
      if size ~= 1 or (axis and i ~= axis + 1) then left[#left + 1] = size end
    end
    if #left == #shape then return x end
    return ops.reshape(x, #left > 0 and left or { 1 })
  end

  ---With a new axis of 1.
  ---@param x Tensor
  ---@param axis integer where it is in the result
  ---@return Tensor
  function functions.unsqueeze(x, axis)
    local shape = shape_of("unsqueeze", x)
    table.insert(shape, axis_of("unsqueeze", axis, #shape + 1) + 1, 1)
    return ops.reshape(x, shape)
  end

  ---With the axes from..to as one.
  ---@param x Tensor
  ---@param from integer? default 0
  ---@param to integer? default -1
  ---@return Tensor
  function functions.flatten(x, from, to)
    local shape = shape_of("flatten", x)
    from, to = axis_of("flatten", from, #shape, 0, "from"), axis_of("flatten", to, #shape, -1, "to")
    if from > to then errors.raise(("flatten: from is axis %d and to axis %d, expected from <= to"):format(from, to)) end
    if from == to then return x end
    local sizes = { unpack(shape, 1, from) }
    sizes[#sizes + 1] = product(shape, from + 1, to + 1)
    for i = to + 2, #shape do sizes[#sizes + 1] = shape[i] end
    return ops.reshape(x, sizes)
  end

  ---One axis moved to another place; the others keep their order.
  ---@param x Tensor
  ---@param from integer
  ---@param to integer where it is in the result
  ---@return Tensor
  function functions.movedim(x, from, to)
    local n, order = #shape_of("movedim", x), {}
    from, to = axis_of("movedim", from, n, nil, "from"), axis_of("movedim", to, n, nil, "to")
    for axis = 0, n - 1 do if axis ~= from then order[#order + 1] = axis end end
    table.insert(order, to + 1, from)
    return from == to and x or ops.permute(x, order)
  end

  ---Repeated along axes, as a whole: [1,2] three times is [1,2,1,2,1,2].  torch.tile; `repeat` is a word of Lua.
  ---@param x Tensor
  ---@param ... integer how often along each axis, for the last axes; or one list
  ---@return Tensor
  function functions.tile(x, ...)
    local first = ...
    local shape, times = shape_of("tile", x), type(first) == "table" and first or { ... }
    if #times == 0 then errors.raise "tile: how often is missing, expected a whole number for each axis" end
    for i, n in ipairs(times) do
      if not is_count(n) then errors.raise(("tile: number %d is %s, expected a whole number of at least 1"):format(i, describe(n))) end
    end
    local added = #times - #shape
    for _ = 1, added do table.insert(shape, 1, 1) end
    for i = #times, 1, -1 do
      local n, axis = times[i], #shape - #times + i
      if n > 1 then                    -- the first axis stays, as it may be time
        local inner = product(shape, axis, #shape)
        local sizes = axis > 1 and { shape[1], product(shape, 2, axis - 1), 1, inner } or { 1, inner }
        x = ops.reshape(x, sizes)
        sizes[#sizes - 1] = n
        x = ops.expand(x, sizes)
        shape[axis] = shape[axis] * n
        x = ops.reshape(x, shape)
      end
    end
    return added > 0 and ops.reshape(x, shape) or x
  end

  ---With elements of one value around it.
  ---@param x Tensor
  ---@param axis integer|integer[] an axis; or, as in torch, a list: { before, after } of the last axis, then of the one before it ...
  ---@param before integer? with a list: the value
  ---@param after integer?
  ---@param value number? default 0
  ---@return Tensor
  function functions.pad(x, axis, before, after, value)
    if type(axis) ~= "table" or #axis == 0 then return ops.pad(x, axis, before, after, value) end
    local n = #shape_of("pad", x)
    if #axis % 2 == 1 or #axis > 2 * n then
      errors.raise(("pad: a list of %d sizes, expected two for each of at most %d axes"):format(#axis, n))
    end
    for i = 1, #axis, 2 do
      if axis[i] ~= 0 or axis[i + 1] ~= 0 then x = ops.pad(x, -(i + 1) / 2, axis[i], axis[i + 1], before) end
    end
    return x
  end

  -- ---- types ----

  ---As another type; itself if it has that type.  Floats lose their fraction (2.9 is 2, -2.9 is -2; 0.5 is 0, also as u8: x:ne(0) makes a
  ---mask); a value out of range becomes the nearest in range (u8: 0 to 255), NaN becomes 0.  No gradient flows through whole numbers.
  ---@param x Tensor
  ---@param dtype "f32"|"i32"|"u8"
  ---@return Tensor
  function functions.to(x, dtype)
    shape_of("to", x)
    return dtype == x:dtype() and x or ops.cast(x, { to = dtype })
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
    local shape = shape_of("select", x)
    local n = #shape
    axis = axis_of("select", axis, n)
    index = axis_of("select", index, shape[axis + 1], nil, "index")
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
  for _, name in ipairs { "index_select", "scatter", "scatter_add", "gather" } do functions[name] = axis_anywhere(name) end

  ---Where the values of the sorted x were: the second result of mn.sort.
  ---@param x Tensor
  ---@param axis integer? default -1
  ---@param descending boolean? default false
  ---@return Tensor i32, from 0
  function functions.argsort(x, axis, descending)
    return (select(2, ops.sort(x, axis, descending)))
  end
end
