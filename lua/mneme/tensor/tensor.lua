-- tensor.lua -- tensors, and one function for every file in engine/ops, made from its signature.
-- A tensor is a small handle {slot, gen}; using an invalid one is an error and never reads another tensor's values.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local op_binding = require "mneme.tensor.op_binding"
local suggest = op_binding.suggest
local C, check, ctx = engine.C, engine.check, engine.ctx

local handle, describe, owned, types = ffi.typeof "mn_tensor", op_binding.describe, op_binding.owned, op_binding.types
local dtypes = { f32 = C.MN_F32, i32 = C.MN_I32, u8 = C.MN_U8 }
local shape_buffer, dtype_buffer = ffi.new("int[?]", C.MN_AXES), ffi.new "int[1]"

---@class Tensor axes and indices count from 0 (ends excluded, negative from the end); only brackets, x[i], x:at(i, j) and lists count from 1
---@operator add(Tensor|number): Tensor
---@operator sub(Tensor|number): Tensor
---@operator mul(Tensor|number): Tensor
---@operator div(Tensor|number): Tensor
---@operator mod(Tensor|number): Tensor
---@operator pow(Tensor|number): Tensor
---@operator unm: Tensor
---@operator len: integer
local Tensor = {}
local M = { Tensor = Tensor, ops = {}, signatures = {}, functions = {} }    -- functions: made of ops, see the end

---Is it a tensor?
---@param x any
---@return boolean
function M.is(x) return ffi.istype(handle, x) end

-- ---- making leaves ----

-- A list that holds itself has no end: more axes than there may be are enough to refuse it.
local function shape_of(list)
  local shape = {}
  while type(list) == "table" and #shape <= C.MN_AXES do
    shape[#shape + 1] = #list
    list = list[1]
  end
  return shape
end

-- x as a number that the type can hold.
local function number(x, dtype)
  local t = types[dtypes[dtype or "f32"]]
  if type(x) ~= "number" then errors.raise("tensor: " .. describe(x) .. " is not a number") end
  if t.lowest and not (x >= t.lowest and x <= t.highest and x % 1 == 0) then
    errors.raise(("tensor: %.16g does not fit %s"):format(x, dtype))
  end
  return x
end
M.number = number

local function fill_from(p, at, list, shape, axis, dtype)
  if type(list) ~= "table" or #list ~= shape[axis] then
    errors.raise(("tensor: uneven list at axis %d: %s, expected %d values"):format(axis - 1,
      type(list) == "table" and #list .. " values" or describe(list), shape[axis]))
  end
  for i = 1, #list do
    if axis < #shape then at = fill_from(p, at, list[i], shape, axis + 1, dtype)
    else p[at], at = number(list[i], dtype), at + 1 end
  end
  return at
end

local known = { shape = true, data = true, dtype = true, grad = true, time = true }

-- Sizes into the buffer that the engine reads.
local function put_shape(shape)
  if type(shape) ~= "table" or #shape > C.MN_AXES then errors.raise("tensor: a shape is a list of at most " .. C.MN_AXES .. " sizes") end
  for i, n in ipairs(shape) do
    if type(n) ~= "number" or n < 1 or n >= 2 ^ 31 or n % 1 ~= 0 then errors.whole("tensor", ("axis %d is"):format(i - 1), n, 1, {}) end
    shape_buffer[i - 1] = n
  end
end

---A leaf tensor, which owns its numbers: `{1, 2, 3}`, nested lists, or
---`{ shape = {T, B}, data = nested list, dtype = "f32"|"i32"|"u8", grad = wants one, time = first axis is time }`.
---@param spec table
---@param options table? dtype, grad and time of a list, as other constructors take them: mn.tensor({ 1, 2 }, { dtype = "i32" })
---@param more nil a second list of numbers, which is refused
---@return Tensor
function M.new(spec, options, more)
  if more ~= nil or type(options) == "table" and #options > 0 then
    errors.raise("tensor: a second list, expected one: mn.tensor { { 1, 2 }, { 3, 4 } } has two rows")
  end
  if type(spec) ~= "table" then errors.raise("tensor: " .. describe(spec) .. ", expected a list of numbers or { shape = {...} }") end
  if options ~= nil then
    if type(options) ~= "table" then errors.raise("tensor: options are " .. describe(options) .. ", expected { dtype = ..., grad = ... }") end
    spec = tables.merged(#spec > 0 and { data = spec } or spec, options)
  end
  local n = #spec
  for key, value in pairs(spec) do
    local listed = type(key) == "number" and key >= 1 and key <= n and key % 1 == 0
    if key == 0 then errors.raise("tensor: " .. tables.in_words(spec) .. ", expected one that begins at 1, as Lua's lists do")
    elseif not listed and not known[key] then
      errors.raise("tensor: unknown key '" .. tostring(key) .. "', expected shape, data, dtype, grad or time")
    elseif (key == "grad" or key == "time") and type(value) ~= "boolean" then
      errors.raise(("tensor: %s = %s, expected true or false"):format(key, describe(value)))
    end
  end
  local data = n > 0 and spec or spec.data
  if data == nil and not spec.shape then errors.raise "tensor: an empty list, expected numbers or { shape = {...} }" end
  local shape = spec.shape or shape_of(data)
  put_shape(shape)
  local dtype = dtypes[spec.dtype or "f32"]
  if not dtype then errors.raise("tensor: unknown dtype " .. describe(spec.dtype) .. ", expected f32, i32 or u8") end
  local t = handle()
  if C.mn_leaf_new(ctx, dtype, #shape, shape_buffer, spec.grad or false, t) < 0 then
    M.collect()
    put_shape(shape)                               -- finalizers may have used the buffer
    check(C.mn_leaf_new(ctx, dtype, #shape, shape_buffer, spec.grad or false, t))
  end
  owned(t)
  M.leaf_budget()
  if data ~= nil and #shape == 0 then t:data()[0] = number(data, spec.dtype)
  elseif data ~= nil then fill_from(t:data(), 0, data, shape, 1, spec.dtype) end
  if spec.time then check(C.mn_leaf_time(ctx, t, true)) end
  return t
end

---A leaf whose first axis is time: sequences of plans that run by rows.
---@param spec table as for mn.tensor
---@param options table? as for mn.tensor
---@return Tensor
function M.sequence(spec, options)
  if type(spec) == "table" then spec.time = true end          -- anything else is refused by new
  return M.new(spec, options)
end

M.collect = op_binding.free

-- The collector does not see C memory: prod it when leaves have grown by half since it last ran.
local budget = 64e6

function M.leaf_budget()
  if C.mn_bytes(ctx, "leaf") < budget then return end
  collectgarbage()
  budget = math.max(64e6, 1.5 * C.mn_bytes(ctx, "leaf"))
end

---A new leaf of zeros with the type, shape and time of another tensor.
---@return Tensor
function M.like(of)
  local t = handle()
  check(C.mn_leaf_like(ctx, of, t))
  return owned(t)
end

---A window on part of a leaf's numbers (and of its gradient), `offset` numbers in: parts of packed parameters.
---@param of Tensor a leaf
---@return Tensor
function M.view(of, offset, shape)
  put_shape(shape)
  local t = handle()
  check(C.mn_leaf_view(ctx, of, offset, #shape, shape_buffer, t))
  return owned(t)
end

-- ---- looking inside ----

---Its sizes, axis by axis; {} of a single number.
---@return integer[]
function Tensor:shape()
  local n, p = check(C.mn_tensor_info(ctx, self, dtype_buffer, shape_buffer)), shape_buffer
  if n == 1 then return { p[0] } elseif n == 2 then return { p[0], p[1] } elseif n == 3 then return { p[0], p[1], p[2] } end   -- no loop: see bind
  local shape = {}
  for i = 1, n do shape[i] = p[i - 1] end
  return shape
end

---How many values it has, or the size of one axis.
---@param axis integer? from 0, or from -1 backwards
---@return integer
function Tensor:size(axis)
  if axis ~= nil then
    local shape = self:shape()
    return shape[op_binding.axis_of("size", axis, #shape) + 1]
  end
  local n, p = check(C.mn_tensor_info(ctx, self, dtype_buffer, shape_buffer)), shape_buffer
  return (n > 0 and p[0] or 1) * (n > 1 and p[1] or 1) * (n > 2 and p[2] or 1)
    * (n > 3 and p[3] or 1) * (n > 4 and p[4] or 1) * (n > 5 and p[5] or 1)
end

---The type of its numbers.
---@return "f32"|"i32"|"u8"
function Tensor:dtype()
  check(C.mn_tensor_info(ctx, self, dtype_buffer, shape_buffer))
  return types[dtype_buffer[0]].name
end

---Borrowed FFI pointer to the numbers (zero-based, row-major); good until the tensor goes.
---@return ffi.cdata*
function Tensor:data()
  local p = check(C.mn_tensor_data(ctx, self))
  check(C.mn_tensor_info(ctx, self, dtype_buffer, shape_buffer))
  return ffi.cast(types[dtype_buffer[0]].pointer, p)
end

---Borrowed FFI pointer to a leaf's gradient.
---@return ffi.cdata*
function Tensor:grad_data()
  return check(C.mn_tensor_grad(ctx, self))
end

local retained = setmetatable({}, { __mode = "k" })      -- [computed tensor] = the leaf that its gradient is copied into

---A leaf's gradient, as a new tensor; or a computed tensor's, of the last backward that reached it, after x:retain_grad().
---@return Tensor
function Tensor:grad()
  local g = M.new { shape = self:shape() }
  ffi.copy(g:data(), retained[self] and retained[self]:data() or self:grad_data(), g:size() * 4)
  return g
end

---Keep a computed tensor's gradient, as torch does: x:grad() after backward (zeros before).  A leaf keeps its own anyway.
---@return Tensor itself
function Tensor:retain_grad()
  local leaf = not retained[self] and M.new { shape = self:shape() }
  if leaf and check(C.mn_retain_grad(ctx, self, leaf)) == 0 then retained[self] = leaf end
  return self
end

---Does a gradient flow to it?
---@return boolean
function Tensor:wants_grad() return (C.mn_tensor_wants_grad(ctx, self)) end
---Forget a leaf's gradient: the next one is stored, not added.
function Tensor:zero_grad() check(C.mn_zero_grad(ctx, self)) end

-- A number that Lua reads while a plan records would be the same in all replays.
local function not_recording(what)
  if engine.recording then
    errors.raise(what .. ": while a plan records: every replay would use this value",
      { hint = "cores, gates and feature maps are recorded: stay with tensors (mn.where, max, ...), or read outside of the plan" })
  end
end

---The one number it holds.
---@return number
function Tensor:item()
  not_recording "item"
  if self:size() ~= 1 then errors.raise("item: the tensor has " .. self:size() .. " elements, expected 1") end
  return self:data()[0]
end

---One number, by indices that start at 1.
---@return number
function Tensor:at(...)
  not_recording "at"
  local shape, offset = self:shape(), 0
  if select("#", ...) ~= #shape then errors.raise(("at: %d indices for %d axes"):format(select("#", ...), #shape)) end
  for axis = 1, #shape do
    local i = (select(axis, ...))
    if type(i) ~= "number" or i < 1 or i > shape[axis] or i % 1 ~= 0 then
      errors.raise(("at: index %s of axis %d, expected 1 to %d"):format(tostring(i), axis - 1, shape[axis]))
    end
    offset = offset * shape[axis] + i - 1
  end
  return self:data()[offset]
end

---Its numbers as a nested list.
---@return number|table
function Tensor:to_table()
  not_recording "to_table"
  local shape, p, at = self:shape(), self:data(), 0
  local function read(axis)
    if axis > #shape then at = at + 1 return p[at - 1] end
    return tables.filled(shape[axis], function() return read(axis + 1) end)
  end
  return read(1)
end

---Where a leaf's numbers are, to write into now: a graph that used them refuses its backward().  All of the library that writes into a
---tensor which a script may hold gets its pointer here; x:data() alone tells nobody.
---@param t Tensor a leaf; what was computed is refused
---@param what string who writes, for the error
---@return ffi.cdata*
function M.writable(t, what)
  local p = check(C.mn_tensor_write(ctx, t, what))
  check(C.mn_tensor_info(ctx, t, dtype_buffer, shape_buffer))
  return ffi.cast(types[dtype_buffer[0]].pointer, p)
end

---Set every number of a leaf to x.  What was computed (x[i], slices, other shapes) is a copy, and refused.
---@param x number
---@return Tensor itself
function Tensor:fill(x)
  number(x, self:dtype())
  local p = M.writable(self, "fill")
  for i = 0, self:size() - 1 do p[i] = x end
  return self
end

---Copy another tensor's values into this leaf (recorded by a plan; no gradient).
---@param from Tensor of the same type and number of numbers
---@return Tensor itself
function Tensor:copy(from)
  if not M.is(from) then errors.raise("copy: " .. describe(from) .. " is not a tensor") end
  check(C.mn_copy(ctx, from, self))
  return self
end

---The option retain of what walks back from a loss, checked.
---@param what string "backward"
---@param options { retain: boolean }?
---@return boolean
function M.retain(what, options)
  if options == nil then return false end
  if type(options) ~= "table" then errors.raise(("%s: %s, expected { retain = true }"):format(what, describe(options))) end
  for key, value in pairs(options) do
    if key ~= "retain" then errors.unknown(("argument of %s:"):format(what), tostring(key), { "retain" }) end
    if type(value) ~= "boolean" then errors.raise(("%s: retain = %s, expected true or false"):format(what, describe(value))) end
  end
  return options.retain or false
end

---Refuse a loss that depends on nothing that wants a gradient.
---@param what string "backward"
function M.need_graph(what, loss)
  if not M.is(loss) or loss:wants_grad() or C.mn_tensor_info(ctx, loss, dtype_buffer, shape_buffer) < 0 then return end
  errors.raise(what .. ": no input of this number requires a gradient", { hint = "a leaf made with { grad = true } does; what no_grad, detach or mn.grad "
    .. "gave has no graph, so there are no second derivatives" })
end

---Walk back from this one number: every leaf that wants one gets, or adds, its gradient.  Frees the graph that it walked: tensors
---computed on the way keep their values, but no other backward can pass through them.
---@param options { retain: boolean }? retain = true keeps the graph, for another backward
function Tensor:backward(options)
  M.need_graph("backward", self)
  check(C.mn_backward(ctx, self, M.retain("backward", options)))
end

-- ---- ops ----

for op = 0, C.mn_op_count() - 1 do
  local name, apply, s = op_binding.bind(op)
  M.ops[name], M.signatures[name] = apply, s
  if not Tensor[name] then Tensor[name] = apply end
end

-- ---- operators ----

local ops = M.ops
local function binary(op, number_left, number_right)
  return function(a, b)
    if type(b) == "number" then return number_right(a, b) end
    if type(a) == "number" then return number_left(a, b) end
    return op(a, b)
  end
end
local function affine(x, a, b) return ops.scale(x, a, b) end
local function no_order(name)
  return function(a, b)
    errors.raise(("a comparison of tensors by %s has one answer, true or false"):format(name == "lt" and "< or >" or "<= or >="),
      { hint = ("x:%s(y) compares element by element; x:item() is a number"):format(
        M.is(a) and name or not M.is(b) and name or name == "lt" and "gt" or "ge") })
  end
end

ffi.metatype(handle, {
  __index = function(t, key)
    if type(key) == "number" then return M.row(t, key) end                  -- row, assign: shapes.lua
    return Tensor[key]
  end,
  __newindex = function(t, key, value)
    if type(key) ~= "number" then errors.raise(("tensor: it has no member named '%s' to set"):format(tostring(key))) end
    M.assign(t, key, value)
  end,
  __len = function(t) return t:shape()[1] or 1 end,
  __add = binary(ops.add, function(a, b) return affine(b, 1, a) end, function(a, b) return affine(a, 1, b) end),
  __sub = binary(ops.sub, function(a, b) return affine(b, -1, a) end, function(a, b) return affine(a, 1, -b) end),
  __mul = binary(ops.mul, function(a, b) return affine(b, a, 0) end, function(a, b) return affine(a, b, 0) end),
  __div = binary(ops.div, function(a, b) return ops.reciprocal(b, a) end, function(a, b) return affine(a, 1 / b, 0) end),
  __mod = function(a, b) return a - ops.floor(a / b) * b end,
  __pow = function(a, b) return M.functions.pow(a, b) end,
  __lt = no_order "lt", __le = no_order "le",
  __unm = function(a) return affine(a, -1, 0) end,
  __tostring = function(t) return require("mneme.tensor.tensor_text")(t) end,
})

---Refuse what is not a pointer to numbers: what is read or written there would end the process.
---@param what string "tmaze-v0: obs"
function M.need_pointer(what, p)
  if type(p) == "cdata" and p ~= nil and not M.is(p) then return end
  errors.raise(("%s is a %s, expected a pointer, such as x:data()"):format(what, M.is(p) and "tensor" or p == nil and "null" or type(p)))
end

-- ---- lifetimes ----

---Free at once everything that was computed, whether held or not: the tape is emptied.  backward() and the collector free what is
---not held any more by themselves.
function M.clear_tape() C.mn_sweep(ctx) end

-- What no_grad gives back: tensors that were computed in it as leaves, also those in tables, nested ones and those that hold themselves.
-- Others stay as they are: leaves, a plan's, and those of a graph around it.
local function lasting(x, seen)
  if M.is(x) then
    local computed = x.slot >= 0 and C.mn_tensor_info(ctx, x, dtype_buffer, shape_buffer) >= 0 and not x:wants_grad()
    return computed and M.keep(x) or x
  elseif type(x) == "table" and not seen[x] then
    seen[x] = true
    for key, value in next, x do
      local kind = type(value)
      if kind == "cdata" or kind == "table" then rawset(x, key, lasting(value, seen)) end
    end
  end
  return x
end

---Run f without a tape.  The tensors that it returns last, alone or in tables; what else it computed is gone.
---@param f function|table called with what follows: a function, a module
---@return any ... what it returns
function M.no_grad(f, ...)
  local meta = type(f) == "table" and getmetatable(f)                -- a core or a module may be called, too
  if type(f) ~= "function" and not (meta and meta.__call) then errors.raise(("no_grad: %s, expected a function"):format(describe(f))) end
  check(C.mn_no_grad(ctx, true))
  local function finish(ok, ...)
    if not ok then C.mn_no_grad(ctx, false) error((...), 0) end
    local kept, seen = { n = select("#", ...), ... }, {}
    for i = 1, kept.n do kept[i] = lasting(kept[i], seen) end
    check(C.mn_no_grad(ctx, false))
    return unpack(kept, 1, kept.n)
  end
  return finish(pcall(f, ...))
end

---The same within a plan, whose results stay.
function M.off_tape(f, ...)
  check(C.mn_no_grad(ctx, true))
  local function finish(ok, ...)
    C.mn_no_grad(ctx, false)
    if not ok then error((...), 0) end
    return ...
  end
  return finish(pcall(f, ...))
end

---Copy a tensor, or a table of them, into leaves that outlive a sweep.  Leaves of `into` are used again.
---@generic T
---@param what T
---@param into T?
---@return T
function M.keep(what, into)
  if into ~= nil and (M.is(what) or type(what) == "table") and type(into) ~= type(what) then
    errors.raise(("keep: %s into %s"):format(describe(what), describe(into)))
  end
  if type(what) == "table" then
    local kept = into or {}
    for key, t in pairs(what) do kept[key] = M.keep(t, into and into[key]) end
    return kept
  end
  if not M.is(what) then return what end
  local t = into or M.new { shape = what:shape(), dtype = what:dtype() }
  return t:copy(what)
end

-- ---- what is made of ops: mn.NAME and x:NAME(...) ----

for _, part in ipairs { "functions", "shapes" } do require("mneme.tensor." .. part)(M) end
for name, f in pairs(M.functions) do Tensor[name] = f end
Tensor.cat, Tensor.stack = nil, nil                                 -- of lists
suggest.guard("x:", Tensor, setmetatable({}, { __index = function(_, key)
  return M.functions[key] and { ("mn.%s { x, ... }"):format(key) } or suggest.functions[key]
end }))
suggest.guard("mn.ops.", M.ops, suggest.functions)

return M
