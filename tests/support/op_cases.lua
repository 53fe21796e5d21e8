-- op_cases.lua -- calls of every op, made from its signature alone, for the sweeps of test_ops.lua.
-- A new op needs no line here as long as letters say its sizes; op_hints.lua has what they cannot say.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local tensor = require "mneme.tensor.tensor"
local op_hints = require "tests.support.op_hints"
local C = engine.C

local M = { list = {} }

-- Ops without a hint: everything given; nothing optional given; each word of an option.
local function default_cases(s)
  local cases, optional = { {} }, {}
  for _, a in ipairs(s.inputs) do if a.optional then optional[#optional + 1] = a.name end end
  if #optional > 0 then cases[2] = { absent = table.concat(optional, " ") } end
  for _, o in ipairs(s.options) do
    for i = 2, o.words and #o.words or 0 do
      cases[#cases + 1] = { options = { [o.name] = o.words[i] } }
    end
  end
  return cases
end

local function lists(names, name)
  return (" " .. (names or "") .. " "):find(" " .. name .. " ", 1, true) ~= nil
end

-- ---- random numbers of our own: the same on every machine ----

local seed = 1
local function random() seed = (seed * 16807) % 2147483647 return seed / 2147483647 end
local function between(a, b) return a + math.floor(random() * (b - a + 1)) end
function M.seed(n) seed = n end

-- Floats keep away from 0, where many an op has a kink.
local function draw(domain, dtype, positive, bound)
  if domain == "bit" then return random() < 0.3 and 1 or 0 end
  if dtype == C.MN_U8 then return between(0, 255) end
  if domain:sub(1, 1) == "<" then return between(0, bound - 1) end
  if domain == "i32" then return between(0, 3) end
  if dtype == C.MN_I32 then return between(-3, 3) end
  if domain == "01" then return 0.15 + 0.7 * random() end
  if domain == "pos" or positive then return 0.2 + random() end
  return (random() < 0.5 and -1 or 1) * (0.15 + 1.2 * random())
end

-- ---- a case: shapes and numbers of one call ----

local function axes_of(text)
  local list = {}
  for symbol in text:gsub("%.%.%.", "."):gmatch "[^,%s]" do list[#list + 1] = symbol end
  return list
end

local function evaluate(expression, sizes)
  if type(expression) == "number" then return expression end
  return setfenv(assert(loadstring("return " .. expression)), sizes)()
end

---Numbers for one call: { name, inputs = { {name, dtype, shape, values}... }, options }.
---@param fixed table? sizes of letters (and `rest`, the axes of `...`) that should not be random
function M.make(name, hint, fixed)
  local s = tensor.signatures[name]
  local sizes, fixed_any, case = {}, hint.any or {},
    { name = name, hint = hint, options = {}, inputs = {}, s = s }
  local rest = fixed and fixed.rest or { between(2, 4), between(2, 4) }
  for _, a in ipairs(s.inputs) do
    for _, symbol in ipairs(axes_of(a.axes)) do
      if symbol:match "%u" and not sizes[symbol] then
        sizes[symbol] = fixed and (fixed[symbol] or fixed.letter) or between(2, 5)
      end
    end
  end
  for _, kind in ipairs { "number", "string" } do  -- expressions may count on the numbers
    for letter, expression in pairs(hint.sizes or {}) do
      if type(expression) == kind then sizes[letter] = evaluate(expression, sizes) end
    end
  end
  for i, o in ipairs(s.options) do
    local value = hint.options and hint.options[o.name]
    if type(value) == "string" then
      for k, word in ipairs(o.words) do if word == value then value = k - 1 end end
    end
    case.options[i] = value or o.default
  end
  for i, a in ipairs(s.inputs) do
    local x = { name = a.name, domain = a.domain, place = i - 1, shape = {}, symbols = {},
      values = {} }
    local n_any = 0
    for _, symbol in ipairs(axes_of(a.axes)) do
      local shapes = fixed and fixed.free and hint.large or hint.shapes
      local list = symbol == "." and rest or symbol == "*"
        and (shapes and shapes[a.name] or fixed and fixed.free or { 3, 3, 4 })
      local like = symbol == "*" and hint.like and hint.like[a.name]
      if like then list = { unpack(case.inputs[s.place[like[1]]].shape, like[2]) } end
      if symbol == "?" then
        n_any = n_any + 1
        list = { evaluate((fixed_any[a.name] or {})[n_any] or 3, sizes) }
      end
      for _, size in ipairs(list or { tonumber(symbol) or sizes[symbol] }) do
        x.shape[#x.shape + 1], x.symbols[#x.symbols + 1] = size, symbol
      end
    end
    local d = a.domain
    local kind = d == "any" and hint.dtype or d
    x.dtype = (kind == "bit" or kind == "u8") and C.MN_U8
      or (kind == "i32" or d:sub(1, 1) == "<") and C.MN_I32 or C.MN_F32
    x.n = 1
    for _, size in ipairs(x.shape) do x.n = x.n * size end
    local factor, bound = lists(hint.small, a.name) and 1 / 3 or 1, sizes[d:sub(2)]
    if d == "<axis" then
      local of, axis = case.inputs[1].shape, case.options[s.options.axis]
      bound = of[axis % #of + 1]
    end
    for k = 1, x.n do
      x.values[k] = lists(hint.flags, a.name) and between(0, 1)
        or draw(d, x.dtype, lists(hint.positive, a.name), bound) * factor
    end
    if lists(hint.distinct, a.name) and x.dtype == C.MN_F32 then
      local order = {}
      for k = 1, x.n do order[k] = k end
      table.sort(order, function(k, l) return x.values[k] < x.values[l] end)
      for rank, k in ipairs(order) do x.values[k] = 0.06 * (rank - x.n / 2) end
    end
    if lists(hint.counts, a.name) then
      local rows, count = x.n / x.shape[1], {}
      for k = 1, x.n do
        local b = (k - 1) % rows
        count[b] = k <= rows and between(0, 4) or random() < 0.15 and 0 or count[b] + 1
        x.values[k] = count[b]
      end
    end
    x.given = not (a.optional and lists(hint.absent, a.name))
    x.no_grad = a.no_grad
    x.compared = x.given and x.dtype == C.MN_F32 and not a.no_grad and not lists(hint.stopped, a.name)
    case.inputs[i] = x
  end
  return case
end

-- More than the sixteen rows that recurrent ops take at once, and no multiple of the 19 over which cotangents cancel.
M.long = { T = 21, B = 2, letter = 3 }

-- Rows of which a few are "few" (engine/numerics/packed_gemm.h) and most of them are not; D is the width of whole panels.
M.many = { T = 16, B = 24, letter = 4, D = 32, rest = { 16, 24 } }

---Does one of the op's inputs begin with the axis T?
function M.walks_time(name)
  for _, a in ipairs(tensor.signatures[name].inputs) do if a.axes:find "^T" then return true end end
  return false
end

---Sizes that give the largest input some 100,000 numbers: enough to wake the threads.
function M.large(name)
  local axes = 1
  for _, a in ipairs(tensor.signatures[name].inputs) do
    local n = #axes_of(a.axes) + (a.axes:find("...", 1, true) and 1 or 0)
    axes = math.max(axes, n)
  end
  local size = math.ceil(100000 ^ (1 / axes))
  return { letter = size, rest = { size, size }, free = { 70, 30, 50 } }
end

-- A case with any type is one with each.
local function with_types(name, list)
  local any, all = false, { unpack(list) }
  for _, a in ipairs(tensor.signatures[name].inputs) do any = any or a.domain == "any" end
  for _, hint in ipairs(any and list or {}) do
    for _, dtype in ipairs(hint.dtype and {} or { "i32", "u8" }) do
      local case = { dtype = dtype }
      for key, value in pairs(hint) do case[key] = value end
      all[#all + 1] = case
    end
  end
  return all
end

-- What these run was recorded from Lua, so no call of them can be drawn: test_recur.lua, test_gpu_recur.lua and test_gradients.lua have
-- their tests.  The gradient of with_past is that of what came before, which no difference shows, and carry_sensitivity makes it: test_sensitivity.lua.
-- eligibility_trace and obgd: test_stream.lua.
local own_tests = { recur = true, custom_gradient = true, with_past = true, carry_sensitivity = true, carry_gated_sensitivity = true,
  eligibility_trace = true, obgd = true }

---Every op with its hints, in order.
function M.each(f)
  for op = 0, C.mn_op_count() - 1 do
    local name = ffi.string(C.mn_op_name(op))
    if not own_tests[name] then f(name, with_types(name, op_hints[name] or default_cases(tensor.signatures[name])), op) end
  end
end

-- ---- the engine, called directly, so that a test may have contexts of its own ----

local pointer = { [C.MN_F32] = ffi.typeof "float *", [C.MN_I32] = ffi.typeof "int32_t *",
  [C.MN_U8] = ffi.typeof "uint8_t *" }

local function check(ctx, result)
  if result == nil or result == -1 then error(ffi.string(C.mn_error(ctx)), 0) end
  return result
end
M.check = check

---Inputs that run along the first axis of the first output: they carry time.  nil: there are none.
---@param shape integer[] of the first output
function M.timed_inputs(case, shape)
  local timed, any = {}, false
  local first = case.s.outputs[1] and case.s.outputs[1].axes:match "^%s*([^,%s]+)"
  for i, x in ipairs(case.inputs) do
    local symbol = x.symbols[1] == "." and "..." or x.symbols[1]
    timed[i] = x.given and symbol == first and x.shape[1] == shape[1] and x.shape[1] > 1
    any = any or timed[i]
  end
  return any and timed
end

---A leaf of its own for every given input.
function M.leaves(ctx, case, wants_grad, timed)
  local leaves = ffi.new("mn_tensor[?]", C.MN_INPUTS)
  for i, x in ipairs(case.inputs) do
    if x.given then
      local shape = ffi.new("int[6]", x.shape)
      check(ctx, C.mn_leaf_new(ctx, x.dtype, #x.shape, shape,
        wants_grad and x.dtype == C.MN_F32 and not x.no_grad or false, leaves + (i - 1)))
      local p = M.data(ctx, leaves + (i - 1), x.dtype)
      for k = 1, x.n do p[k - 1] = x.values[k] end
      if timed and timed[i] then check(ctx, C.mn_leaf_time(ctx, leaves + (i - 1), true)) end
    end
  end
  return leaves
end

function M.free(ctx, case, leaves)
  C.mn_sweep(ctx)
  for i, x in ipairs(case.inputs) do if x.given then C.mn_leaf_free(ctx, leaves + (i - 1)) end end
end

function M.data(ctx, t, dtype)
  return ffi.cast(pointer[dtype], check(ctx, C.mn_tensor_data(ctx, t)))
end

local dtype_of, shape_of = ffi.new "int[1]", ffi.new "int[6]"
---dtype, number of elements and shape of a tensor.
function M.info(ctx, t)
  local n, shape = 1, {}
  for i = 1, check(ctx, C.mn_tensor_info(ctx, t, dtype_of, shape_of)) do
    shape[i] = shape_of[i - 1]
    n = n * shape[i]
  end
  return dtype_of[0], n, shape
end

---Apply the case's op; returns its outputs.
function M.apply(ctx, op, case, leaves)
  local out = ffi.new("mn_tensor[?]", C.MN_OUTPUTS)
  check(ctx, C.mn_apply(ctx, op, leaves, ffi.new("double[12]", case.options), out))
  return out
end

---Weights of an output's numbers in the loss of the gradient tests: fixed, of both signs.
function M.cotangent(k) return ((k * 37 + 11) % 19 - 9) / 9 end

---sum of cotangent * y over the outputs that have a gradient, in double.
function M.loss(ctx, case, out)
  local total = 0
  for i, o in ipairs(case.s.outputs) do
    local dtype, n = M.info(ctx, out + (i - 1))
    if not o.no_grad and dtype == C.MN_F32 then
      local y = M.data(ctx, out + (i - 1), dtype)
      for k = 0, n - 1 do total = total + M.cotangent(k) * y[k] end
    end
  end
  return total
end

local op_add, op_mul, op_sum = C.mn_op_find "add", C.mn_op_find "mul", C.mn_op_find "sum"
local function apply2(ctx, op, options, a, b)
  local given, out = ffi.new("mn_tensor[?]", C.MN_INPUTS), ffi.new("mn_tensor[?]", C.MN_OUTPUTS)
  given[0] = a
  if b then given[1] = b end
  check(ctx, C.mn_apply(ctx, op, given, options, out))
  return ffi.new("mn_tensor", out[0])    -- out[0] alone is a reference, and does not keep its array
end

---The same loss as a tensor, by ops, added to `total` if there is one.
function M.loss_tensor(ctx, case, out, total)
  for i, o in ipairs(case.s.outputs) do
    local dtype, n, shape = M.info(ctx, out + (i - 1))
    if not o.no_grad and dtype == C.MN_F32 then
      local weights = ffi.new "mn_tensor[1]"
      check(ctx, C.mn_leaf_new(ctx, C.MN_F32, #shape, ffi.new("int[6]", shape), false, weights))
      local p = M.data(ctx, weights, C.MN_F32)
      for k = 0, n - 1 do p[k] = M.cotangent(k) end
      local part = apply2(ctx, op_sum, ffi.new("double[12]", { -100, 0 }),
        apply2(ctx, op_mul, nil, out[i - 1], weights[0]))
      total = total and apply2(ctx, op_add, nil, total, part) or part
      C.mn_leaf_free(ctx, weights)
    end
  end
  return total
end

return M
