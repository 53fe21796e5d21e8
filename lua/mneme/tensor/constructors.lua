-- constructors.lua -- leaves by their sizes: mn.zeros, arange, randn, ..., named as in torch.  Sizes are mn.zeros(2, 3) or
-- mn.zeros { 2, 3 }; options come last, or in the same table: { dtype = "f32"|"i32"|"u8", grad = false, time = false }, as in mn.tensor.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local describe = require("mneme.tensor.op_binding").describe
local random = require "mneme.tensor.random"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local constructors = {}

-- ---- reading arguments ----

local known = { dtype = true, grad = true, time = true }

-- The arguments of M.new: a shape, and options, where words may be among the sizes.
local function spec_of(name, shape, options, dtype)
  local spec = { shape = shape, dtype = dtype }
  for key, value in pairs(options or {}) do
    if not known[key] then errors.unknown("option of " .. name .. ":", key, { "dtype", "grad", "time" }) end
    spec[key] = value
  end
  return spec
end

local function size(name, n)
  if type(n) ~= "number" or n < 1 or n >= 2 ^ 31 or n % 1 ~= 0 then
    errors.raise(("%s: %s is no size, expected a whole number from 1 to 2147483647"):format(name, describe(n)))
  end
  return n
end

-- Sizes in a list, and the options that stand in the same table.
local function split(name, list)
  local shape, options = {}, {}
  for i, n in ipairs(list) do shape[i] = size(name, n) end
  for key, value in pairs(list) do
    if type(key) ~= "number" then options[key] = value
    elseif not shape[key] then errors.raise(("%s: a list of sizes with a gap"):format(name)) end
  end
  return shape, options
end

local function options_of(name, options)
  if options ~= nil and type(options) ~= "table" then
    errors.raise(("%s: %s, expected options such as { grad = true }"):format(name, describe(options)))
  end
  return options
end

-- (2, 3), (2, 3, { ... }), ({ 2, 3 }), ({ 2, 3 }, { ... }) or { 2, 3, grad = true }.
local function sizes(name, dtype, ...)
  local n, first = select("#", ...), (...)
  while n > 0 and (select(n, ...)) == nil do n = n - 1 end             -- options that were not given
  if n == 0 then errors.raise(("%s: no sizes, expected %s(2, 3) or %s { 2, 3 }"):format(name, name, name)) end
  if type(first) == "table" then
    if n > 2 then errors.raise(("%s: %d arguments, expected a list of sizes and options"):format(name, n)) end
    local shape, options = split(name, first)
    return spec_of(name, shape, tables.merged(options, options_of(name, (select(2, ...)))), dtype)
  end
  local list, options = { ... }, nil
  if type(list[n]) == "table" then list[n], options, n = nil, list[n], n - 1 end
  for i = 1, n do size(name, list[i]) end
  return spec_of(name, list, options, dtype)
end

local function number(name, what, x)
  if type(x) ~= "number" or x ~= x or math.abs(x) == math.huge then
    errors.raise(("%s: %s is %s, expected a number"):format(name, what, describe(x)))
  end
  return x
end

local function like(name, x, options, dtype)
  if not tensor.is(x) then errors.raise(("%s: %s, expected a tensor"):format(name, describe(x))) end
  return spec_of(name, x:shape(), options_of(name, options), dtype or x:dtype())
end

-- Element i, from 0, is f(i).
local function filled(spec, f)
  local t = tensor.new(spec)
  local p, dtype = t:data(), t:dtype()
  for i = 0, t:size() - 1 do p[i] = tensor.number(f(i), dtype) end
  return t
end


-- ---- constants ----

---Zeros: mn.zeros(2, 3), mn.zeros({ 2, 3 }, { dtype = "i32" }), mn.zeros { 2, 3, grad = true }.
---@param ... integer|table sizes, then options
---@return Tensor
function constructors.zeros(...) return tensor.new(sizes("zeros", nil, ...)) end

---Ones: see mn.zeros.
---@param ... integer|table sizes, then options
---@return Tensor
function constructors.ones(...) return tensor.new(sizes("ones", nil, ...)):fill(1) end

---Values that were not set (they are zeros): see mn.zeros.
---@param ... integer|table sizes, then options
---@return Tensor
function constructors.empty(...) return tensor.new(sizes("empty", nil, ...)) end

---A value everywhere: mn.full({ 2, 3 }, 7).
---@param shape integer|integer[] sizes
---@param value number
---@param options table? { dtype, grad, time }
---@return Tensor
function constructors.full(shape, value, options)
  if value == nil then errors.raise "full: no value, expected full({ 2, 3 }, value)" end
  return tensor.new(sizes("full", nil, type(shape) == "table" and shape or { shape }, options_of("full", options) or {})):fill(value)
end

---first, first + step, ... up to but not including `last`: mn.arange(5), mn.arange(2, 5), mn.arange(0, 1, 0.25).  Floats, unless
---options say { dtype = "i32" }.
---@param first number the end, if it stands alone
---@param last number|table|nil
---@param step number|table|nil default 1
---@param options table?
---@return Tensor [n]
function constructors.arange(first, last, step, options)
  if type(last) == "table" then last, options = nil, last end
  if type(step) == "table" then step, options = nil, step end
  if last == nil then first, last = 0, first end
  number("arange", "first", first) number("arange", "last", last)
  step = number("arange", "step", step or 1)
  local n = step ~= 0 and math.ceil((last - first) / step) or 0
  if n < 1 then errors.raise(("arange: from %g to %g by %g there is no value"):format(first, last, step)) end
  size("arange", n)
  return filled(spec_of("arange", { n }, options_of("arange", options)), function(i) return first + i * step end)
end

---`steps` values from first to last, both included, equally far apart.
---@param first number
---@param last number
---@param steps integer
---@param options table?
---@return Tensor [steps]
function constructors.linspace(first, last, steps, options)
  number("linspace", "first", first) number("linspace", "last", last)
  size("linspace", steps)
  local gap = steps > 1 and (last - first) / (steps - 1) or 0
  return filled(spec_of("linspace", { steps }, options_of("linspace", options)),
    function(i) return i < steps / 2 and first + i * gap or last - (steps - 1 - i) * gap end)
end

---Ones on the diagonal, zeros elsewhere.
---@param n integer rows
---@param m integer|table|nil columns, default n
---@param options table?
---@return Tensor [n,m]
function constructors.eye(n, m, options)
  if type(m) == "table" then m, options = nil, m end
  m = size("eye", m or n)
  return filled(spec_of("eye", { size("eye", n), m }, options_of("eye", options)),
    function(i) return i % m == math.floor(i / m) and 1 or 0 end)
end

-- ---- random numbers: a leaf of the next draw of the generator that mn.manual_seed starts; in a plan, of the next at each replay ----

local function drawn(name, op, spec)
  local t = tensor.new(spec)
  if t:dtype() ~= "f32" then errors.raise(("%s: dtype is %s, expected f32"):format(name, t:dtype())) end
  local values = op(t, random.key())
  return engine.recording and not t:wants_grad() and values or t:copy(values)
end

-- n numbers in [0, 1), of 48 bits each: f(i) is the i-th, from 0.
local function fractions(name, n)
  if engine.recording then
    errors.raise(name .. ": while a plan records: every replay would use these numbers", { hint = "draw outside of it and pass the tensor in" })
  end
  local halves = drawn(name, tensor.ops.random_uniform, { shape = { n, 2 } })
  local p = halves:data()
  return function(i) return halves and p[2 * i] + p[2 * i + 1] * 2 ^ -24 end                     -- the leaf lasts as long as its handle
end

---Uniform in [0, 1), from mn.manual_seed: see mn.zeros for the arguments.
---@param ... integer|table sizes, then options
---@return Tensor
function constructors.rand(...)
  return drawn("rand", tensor.ops.random_uniform, sizes("rand", nil, ...))
end

---Standard normal, from mn.manual_seed: see mn.zeros for the arguments.
---@param ... integer|table sizes, then options
---@return Tensor
function constructors.randn(...)
  return drawn("randn", tensor.ops.random_normal, sizes("randn", nil, ...))
end

---Whole numbers from low to high - 1, all equally likely: mn.randint(10, { 2, 3 }), mn.randint(-1, 2, { 8 }).
---@param low integer high, if one number stands before the sizes
---@param high integer|integer[]
---@param shape integer[]|table|nil sizes
---@param options table? default { dtype = "i32" }
---@return Tensor i32
function constructors.randint(low, high, shape, options)
  if type(high) == "table" then low, high, shape, options = 0, low, high, shape end
  number("randint", "low", low) number("randint", "high", high)
  if low % 1 ~= 0 or high % 1 ~= 0 or high <= low then
    errors.raise(("randint: low is %g, high is %g, expected whole numbers, high above low"):format(low, high))
  end
  if type(shape) ~= "table" then
    errors.raise(("randint: sizes are %s, expected a list: randint(low, high, { 2, 3 })"):format(describe(shape)))
  end
  local t = tensor.new(sizes("randint", "i32", shape, options_of("randint", options) or {}))
  tensor.number(low, t:dtype())
  tensor.number(high - 1, t:dtype())
  local fraction, p, span = fractions("randint", t:size()), t:data(), high - low
  local half = span > 2 ^ 31 and 2 ^ 31 or 0         -- each term fits into 32 bits: LuaJIT for arm64 cuts those of a sum that is stored into them
  for i = 0, t:size() - 1 do p[i] = low + half + math.floor(fraction(i) * span - half) end
  return t
end

---The whole numbers 0 .. n-1 in random order.
---@param n integer
---@param options table? default { dtype = "i32" }
---@return Tensor [n] i32
function constructors.randperm(n, options)
  local spec = spec_of("randperm", { size("randperm", n) }, options_of("randperm", options), "i32")
  local t, fraction = filled(spec, function(i) return i end), fractions("randperm", n)
  local p = t:data()
  for i = n - 1, 1, -1 do                                -- Fisher and Yates
    local k = math.floor(fraction(i) * (i + 1))
    p[i], p[k] = p[k], p[i]
  end
  return t
end

-- ---- with the shape of another tensor ----

---Zeros with a tensor's shape and type.
---@param x Tensor
---@param options table? { dtype, grad, time }
---@return Tensor
function constructors.zeros_like(x, options) return tensor.new(like("zeros_like", x, options)) end

---Ones with a tensor's shape and type.
---@param x Tensor
---@param options table?
---@return Tensor
function constructors.ones_like(x, options) return tensor.new(like("ones_like", x, options)):fill(1) end

---A value everywhere, with a tensor's shape and type.
---@param x Tensor
---@param value number
---@param options table?
---@return Tensor
function constructors.full_like(x, value, options) return tensor.new(like("full_like", x, options)):fill(value) end

---Uniform in [0, 1), with a tensor's shape.
---@param x Tensor
---@param options table?
---@return Tensor f32
function constructors.rand_like(x, options) return constructors.rand(like("rand_like", x, options, "f32").shape, options) end

---Standard normal, with a tensor's shape.
---@param x Tensor
---@param options table?
---@return Tensor f32
function constructors.randn_like(x, options) return constructors.randn(like("randn_like", x, options, "f32").shape, options) end

return constructors
