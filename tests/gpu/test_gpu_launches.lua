-- test_gpu_launches.lua -- what a plan on a GPU launches: linear maps of the same x go together, those that need each
-- other do not, and the numbers are the CPU's either way.
local ffi = require "ffi"
local t = require "tests.harness"
local op_cases = require "tests.support.op_cases"
local engine = require "mneme.base.engine"
t.need_built("libmneme_emu.so", "g++")
local C = engine.C

local plugin = ffi.load(engine.build .. "/libmneme_emu.so")
ffi.cdef "const char *mn_emu_listen(int on);"

-- What has run since it was last asked: how often which.
local function heard()
  local count = {}
  for name in ffi.string(plugin.mn_emu_listen(1)):gmatch "[^\n]+" do
    local short = name:match "[%a_]+"
    count[short] = (count[short] or 0) + 1
  end
  return count
end

local function leaf(ctx, stream, shape, timed, wants_grad)
  local out, n = ffi.new "mn_tensor[1]", 1
  op_cases.check(ctx, C.mn_leaf_new(ctx, C.MN_F32, #shape, ffi.new("int[6]", shape), wants_grad or false, out))
  for _, size in ipairs(shape) do n = n * size end
  C.mn_random_normal(7, stream, 0, op_cases.data(ctx, out, C.MN_F32), n)
  if timed then op_cases.check(ctx, C.mn_leaf_time(ctx, out, true)) end
  return ffi.new("mn_tensor", out[0])    -- out[0] alone is a reference, and does not keep its array
end

local function apply(ctx, op, given, ...)
  local inputs, out = ffi.new("mn_tensor[?]", C.MN_INPUTS), ffi.new("mn_tensor[?]", C.MN_OUTPUTS)
  for i, x in ipairs(given) do inputs[i - 1] = x end
  local options = ffi.new "double[12]"
  for i = 1, select("#", ...) do options[i - 1] = (select(i, ...)) end
  op_cases.check(ctx, C.mn_apply(ctx, C.mn_op_find(op), inputs, options, out))
  return ffi.new("mn_tensor", out[0])
end

local function map(ctx, x, w, b, act) return apply(ctx, "linear", { x, w, b }, act) end

-- Runs the maps that `record` makes of x [T,B,12], by rows or whole; their numbers, and what was launched.
local function run(device, T, B, by_rows, record)
  local ctx = C.mn_ctx_new(device, 1)
  if ctx == nil then error(ffi.string(C.mn_error(nil)), 0) end
  local plan, x = op_cases.check(ctx, C.mn_plan_new(ctx)), leaf(ctx, 1, { T, B, 12 }, true)
  local stream = 1
  local function new(...)
    stream = stream + 1
    return leaf(ctx, stream, { ... })
  end
  op_cases.check(ctx, C.mn_plan_begin(plan))
  local made = record(ctx, x, new)
  op_cases.check(ctx, C.mn_plan_end(plan))
  if device == "emu" then heard() end
  for t0 = 0, by_rows and T - 1 or 0 do
    op_cases.check(ctx, C.mn_plan_run(plan, by_rows and t0 or 0, by_rows and t0 + 1 or -1))
  end
  local launched, numbers = device == "emu" and heard(), {}
  for _, y in ipairs(made) do
    local at = ffi.new("mn_tensor[1]", { y })
    local _, n = op_cases.info(ctx, at)
    local p = op_cases.data(ctx, at, C.MN_F32)
    for k = 0, n - 1 do numbers[#numbers + 1] = p[k] end
  end
  C.mn_plan_free(plan)
  C.mn_ctx_free(ctx)
  return numbers, launched
end

local function same_as_cpu(T, B, by_rows, record)
  local got, launched = run("emu", T, B, by_rows, record)
  local want = run("cpu", T, B, by_rows, record)
  t.eq(#got, #want)
  for k, v in ipairs(want) do t.near(got[k], v, 2e-5) end
  return launched
end

-- As a layer's projections: of different widths, with and without bias, each with its activation.
local function projections(ctx, x, new)
  return { map(ctx, x, new(33, 12), new(33), 0), map(ctx, x, new(5, 12), nil, 1), map(ctx, x, new(8, 12), new(8), 2),
           map(ctx, x, new(1, 12), new(1), 4) }
end

t.test("gpu: a few rows go through maps of the same x in one launch", function()
  for _, B in ipairs { 1, 8, 16, 40 } do
    local launched = same_as_cpu(3, B, true, projections)
    t.eq(launched.few_rows, 3, "a launch a step")
  end
end)

t.test("gpu: many rows take a product each, and one launch for all biases and activations", function()
  local launched = same_as_cpu(33, 5, false, projections)
  t.eq(launched.cublas, 4)
  t.eq(launched.finish, 1)
  t.eq(launched.few_rows, nil)
end)

t.test("gpu: maps that need one another stay apart", function()
  local launched = same_as_cpu(2, 3, true, function(ctx, x, new)
    local hidden = map(ctx, x, new(12, 12), new(12), 3)
    return { hidden, map(ctx, hidden, new(4, 12), nil, 0), map(ctx, x, new(4, 12), nil, 0) }
  end)
  t.eq(launched.few_rows, 6)
  launched = same_as_cpu(1, 12, false, function(ctx, x, new)      -- weights that another map has just made
    local made = map(ctx, x, new(12, 12), nil, 0)
    local square = apply(ctx, "reshape", { made }, 12, 12)
    return { made, map(ctx, x, square, nil, 0) }
  end)
  t.eq(launched.few_rows, 2)
end)

t.test("gpu: gradients of maps of the same x share the way back through activations", function()
  local function gradients(device)
    local ctx = C.mn_ctx_new(device, 1)
    if ctx == nil then error(ffi.string(C.mn_error(nil)), 0) end
    local leaves, stream = {}, 1
    local function new(...)
      stream = stream + 1
      local at = leaf(ctx, stream, { ... }, false, true)
      leaves[#leaves + 1] = at
      return at
    end
    local x = new(30, 2, 12)
    local forward, back = op_cases.check(ctx, C.mn_plan_new(ctx)), op_cases.check(ctx, C.mn_plan_new(ctx))
    op_cases.check(ctx, C.mn_plan_begin(forward))
    local made = projections(ctx, x, new)
    op_cases.check(ctx, C.mn_plan_end(forward))
    local weights, loss = {}, nil
    for i, y in ipairs(made) do
      local _, _, shape = op_cases.info(ctx, ffi.new("mn_tensor[1]", { y }))
      weights[i] = leaf(ctx, 40 + i, shape)
    end
    op_cases.check(ctx, C.mn_plan_begin(back))
    for i, y in ipairs(made) do
      local part = apply(ctx, "sum", { apply(ctx, "mul", { y, weights[i] }) }, -100, 0)
      loss = loss and apply(ctx, "add", { loss, part }) or part
    end
    op_cases.check(ctx, C.mn_backward(ctx, ffi.new("mn_tensor[1]", { loss }), false))
    op_cases.check(ctx, C.mn_plan_end(back))
    for _, plan in ipairs { forward, back } do      -- once more, which is when calls go together
      if plan == back then for _, at in ipairs(leaves) do C.mn_zero_grad(ctx, ffi.new("mn_tensor[1]", { at })) end end
      if device == "emu" then heard() end
      op_cases.check(ctx, C.mn_plan_run(plan, 0, -1))
    end
    local launched, numbers = device == "emu" and heard(), {}
    for _, at in ipairs(leaves) do
      local one = ffi.new("mn_tensor[1]", { at })
      local _, n = op_cases.info(ctx, one)
      local p = op_cases.check(ctx, C.mn_tensor_grad(ctx, one))
      for k = 0, n - 1 do numbers[#numbers + 1] = p[k] end
    end
    C.mn_plan_free(back)
    C.mn_plan_free(forward)
    C.mn_ctx_free(ctx)
    return numbers, launched
  end
  local got, launched = gradients "emu"
  local want = gradients "cpu"
  t.eq(#got, #want)
  for k, v in ipairs(want) do t.near(got[k], v, 2e-4) end          -- sums of 60 rows
  t.eq(launched.cublas, 8)
  t.eq(launched.cu_part_sums, 1, "60 rows are one part")
end)
