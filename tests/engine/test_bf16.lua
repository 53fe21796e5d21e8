-- test_bf16.lua -- precision=bf16 on a CPU: the slow code has the bits of the instructions' definitions and of the instructions here; every op has
-- the same bits on any number of threads and by rows; gradients stay near those of float32.
local ffi = require "ffi"
local t = require "tests.harness"
local op_cases = require "tests.support.op_cases"
local engine = require "mneme.base.engine"
local C = engine.C

local own_way = ffi.string(C.mn_bf16_name "0")                     -- what this CPU has; "": neither
local ways = { "1", "amx" }
if own_way ~= "" then ways[3] = "0" end

local function context(threads, precision, emulate)
  local c = C.mn_ctx_new("cpu", threads)
  if c == nil then error(ffi.string(C.mn_error(nil)), 0) end
  op_cases.check(c, C.mn_set_precision(c, precision, emulate))
  return c
end

-- ---- products against the instructions' definitions ----

local word = ffi.new "int32_t[1]"
local float = ffi.cast("float *", word)
local function bits_of(x) float[0] = x return word[0] end
local function float_of(bits) word[0] = bits return float[0] end
jit.off(bits_of)                    -- compiled, one type's store and the other's load may change places
jit.off(float_of)
local function rounded(x) float[0] = x return float[0] end        -- a double to float32
local function to_bf16(x)
  local b = bits_of(x)
  return float_of(bit.band(bit.tobit(b + 0x7fff + bit.band(bit.rshift(b, 16), 1)), 0xffff0000))
end

-- Numbers whose sums and products a double holds exactly, so that rounding a double to float32 is one rounding.
local seed = 7
local function draw()
  seed = (seed * 16807) % 2147483647
  return (seed % 2 == 0 and 1 or -1) * (1 + (seed % 8191) / 8192) * 2 ^ (seed % 7 - 3)
end

-- Pairs of products, the odd one first.
local function by_pairs(a, b, K, sum)
  for k = 1, K, 2 do
    if k < K then sum = rounded(a[k + 1] * b[k + 1] + sum) end
    sum = rounded(a[k] * b[k] + sum)
  end
  return sum
end

-- 32 products in two sums, then the two together, then the result; what is left as pairs.
local function by_tiles(a, b, K)
  local sum, deep = 0, K - K % 32
  for from = 0, deep - 1, 32 do
    local even, odd = 0, 0
    for k = from + 1, from + 32, 2 do
      even, odd = rounded(a[k] * b[k] + even), rounded(a[k + 1] * b[k + 1] + odd)
    end
    sum = rounded(sum + rounded(even + odd))
  end
  local rest_a, rest_b = {}, {}
  for k = deep + 1, K do rest_a[k - deep], rest_b[k - deep] = a[k], b[k] end
  return by_pairs(rest_a, rest_b, K - deep, sum)
end

local matmul = C.mn_op_find "matmul"

-- a [M,K] times b [K,N], and the gradients of both for cotangents g, as bytes.
local function product(c, M, N, K, a, b)
  local leaves, out = ffi.new("mn_tensor[?]", C.MN_INPUTS), ffi.new("mn_tensor[?]", C.MN_OUTPUTS)
  for i, x in ipairs { { M, K, a }, { K, N, b } } do
    op_cases.check(c, C.mn_leaf_new(c, C.MN_F32, 2, ffi.new("int[6]", { x[1], x[2] }), true, leaves + (i - 1)))
    ffi.copy(op_cases.data(c, leaves + (i - 1), C.MN_F32), x[3], 4 * x[1] * x[2])
  end
  op_cases.check(c, C.mn_apply(c, matmul, leaves, ffi.new "double[12]", out))
  local y = ffi.string(op_cases.data(c, out, C.MN_F32), 4 * M * N)
  local case = { s = { outputs = { { name = "y" } } } }
  op_cases.check(c, C.mn_backward(c, ffi.new("mn_tensor[1]", op_cases.loss_tensor(c, case, out)), false))
  local da, db = ffi.string(C.mn_tensor_grad(c, leaves), 4 * M * K), ffi.string(C.mn_tensor_grad(c, leaves + 1), 4 * K * N)
  C.mn_sweep(c)
  for i = 0, 1 do C.mn_leaf_free(c, leaves + i) end
  return { y, da, db }
end

local sizes = { { 1, 1, 1 }, { 3, 5, 2 }, { 17, 33, 31 }, { 8, 64, 32 }, { 33, 31, 97 }, { 70, 34, 65 }, { 12, 40, 259 }, { 65, 7, 515 } }

t.test("bf16: sums are rounded in the order of VDPBF16PS and of TDPBF16PS, in the slow code and here", function()
  for _, way in ipairs(ways) do
    local c = context(1, "bf16", way)
    local tiles = way == "amx" or way == "0" and own_way:find "AMX"
    for _, size in ipairs { { 1, 1, 1 }, { 2, 3, 2 }, { 5, 33, 31 }, { 18, 34, 70 }, { 3, 2, 259 } } do
      local M, N, K = unpack(size)
      local a, b = ffi.new("float[?]", M * K), ffi.new("float[?]", K * N)
      for i = 0, M * K - 1 do a[i] = draw() end
      for i = 0, K * N - 1 do b[i] = draw() end
      local parts = product(c, M, N, K, a, b)
      local y = ffi.cast("const float *", parts[1])
      for m = 0, M - 1 do
        for n = 0, N - 1 do
          local row, column = {}, {}
          for k = 1, K do row[k], column[k] = to_bf16(a[m * K + k - 1]), to_bf16(b[(k - 1) * N + n]) end
          local want = (tiles and by_tiles or by_pairs)(row, column, K, 0)
          if bits_of(y[m * N + n]) ~= bits_of(want) then
            error(("emulate=%s, %dx%dx%d: y[%d,%d] is %.9g, by the definition %.9g"):format(way, M, N, K, m, n, y[m * N + n], want), 0)
          end
        end
      end
    end
    C.mn_ctx_free(c)
  end
end)

-- Any bits: denormals, infinities and NaN among them, and many that cancel.
local function wild(n)
  local x = ffi.new("int32_t[?]", n)
  for i = 0, n - 1 do
    draw()
    local kind, exponent = seed % 16, 118 + seed % 19
    if kind == 0 then exponent = 0 elseif kind == 1 then exponent = seed % 70 elseif kind == 2 and seed % 512 == 2 then exponent = 255 end
    x[i] = bit.bor(bit.lshift(seed % 2, 31), bit.lshift(exponent, 23), bit.band(seed * 3, 0x7fffff))
  end
  return x
end

t.test("bf16: the slow code has the bits of this CPU's instructions, for any numbers and sizes", function()
  if own_way == "" then t.skip "this CPU has neither AVX512-BF16 nor AMX-BF16" end
  local here, slow = context(1, "bf16", "0"), context(1, "bf16", own_way:find "AMX" and "amx" or "1")
  for _, size in ipairs(sizes) do
    local M, N, K = unpack(size)
    local a, b = wild(M * K), wild(K * N)
    local got, want = product(here, M, N, K, a, b), product(slow, M, N, K, a, b)
    for part = 1, 3 do
      local x, y = ffi.cast("const float *", got[part]), ffi.cast("const float *", want[part])
      for i = 0, #got[part] / 4 - 1 do
        if bits_of(x[i]) ~= bits_of(y[i]) and (x[i] == x[i] or y[i] == y[i]) then
          error(("%dx%dx%d, part %d: number %d is %.9g here, %.9g in slow code"):format(M, N, K, part, i, x[i], y[i]), 0)
        end
      end
    end
  end
  C.mn_ctx_free(here)
  C.mn_ctx_free(slow)
end)

-- ---- every op ----

-- Outputs and gradients of one call, as bytes, and their names.
local function trace(c, op, case)
  local leaves = op_cases.leaves(c, case, true)
  local out, parts, names = op_cases.apply(c, op, case, leaves), {}, {}
  for i, o in ipairs(case.s.outputs) do
    local dtype, n = op_cases.info(c, out + (i - 1))
    if not o.no_grad and dtype == C.MN_F32 then
      parts[#parts + 1], names[#names + 1] = ffi.string(op_cases.data(c, out + (i - 1), dtype), 4 * n), o.name
    end
  end
  if C.mn_op_differentiable(op) then
    local loss = op_cases.loss_tensor(c, case, out)
    if loss then op_cases.check(c, C.mn_backward(c, ffi.new("mn_tensor[1]", loss), false)) end
    for _, x in ipairs(case.inputs) do
      if x.given and x.dtype == C.MN_F32 and not x.no_grad then
        parts[#parts + 1] = ffi.string(op_cases.check(c, C.mn_tensor_grad(c, leaves + x.place)), 4 * x.n)
        names[#names + 1] = "gradient of " .. x.name
      end
    end
  end
  op_cases.free(c, case, leaves)
  return parts, names
end

local function distance(a, b)
  local x, y, off, all = ffi.cast("const float *", a), ffi.cast("const float *", b), 0, 0
  for i = 0, #a / 4 - 1 do off, all = off + (x[i] - y[i]) ^ 2, all + y[i] ^ 2 end
  return math.sqrt(off / math.max(all, 1e-30))
end

-- Products of matrices; in favor_features and rmt_memory by the ops they are made of.  All others compute in float32.
local multiply = {}
for name in ("linear head_linear matmul gru lstm gru_gate favor_logits rmt rmt_memory attention"):gmatch "%S+" do multiply[name] = true end

-- y of a case by rows of one, two and all steps: the bits of the whole, since a sum's order is that of K alone; `most`: attention acts by
-- other sums than those of blocks of rows, and its queries and weights stay float32.
local function by_rows(c, op, case, most)
  local probe = op_cases.leaves(c, case, false)
  local _, n, shape = op_cases.info(c, op_cases.apply(c, op, case, probe))
  op_cases.free(c, case, probe)
  local timed = op_cases.timed_inputs(case, shape)
  if not timed then return end
  for i, x in ipairs(case.inputs) do timed[i] = timed[i] and i == 1 or timed[i] and x.shape[2] == case.inputs[1].shape[2] end
  local leaves, plan = op_cases.leaves(c, case, false, timed), op_cases.check(c, C.mn_plan_new(c))
  op_cases.check(c, C.mn_plan_begin(plan))
  local out = op_cases.apply(c, op, case, leaves)
  op_cases.check(c, C.mn_plan_end(plan))
  local whole = ffi.string(op_cases.data(c, out, C.MN_F32), 4 * n)
  for _, step in ipairs { 1, 2, shape[1] } do
    ffi.fill(op_cases.data(c, out, C.MN_F32), 4 * n, 77)
    for t0 = 0, shape[1] - 1, step do
      if C.mn_plan_run(plan, t0, math.min(t0 + step, shape[1])) ~= 0 then return nil, ffi.string(C.mn_error(c)) end
    end
    local y = ffi.string(op_cases.data(c, out, C.MN_F32), 4 * n)
    t.ok(y == whole or distance(y, whole) <= (most or 0), ("%s by rows of %d differs from the whole by %.2g"):format(case.name, step, distance(y, whole)))
  end
  C.mn_plan_free(plan)
  op_cases.free(c, case, leaves)
  return true
end

local exact, one, three, slow = context(1, "fp32", "0"), context(1, "bf16", ways[3] or "1"), context(3, "bf16", ways[3] or "1"),
  context(1, "bf16", own_way:find "AMX" and "amx" or "1")
local rows_ran = 0
local SMALL = 0.3
local MOST = 0.02                  -- relative error of outputs and gradients: an input is off by 2^-9 at most
local LAYERS = 0.1                 -- of rmt_memory, several layers of products over a sequence of tokens

op_cases.each(function(name, hints, op)
  t.test("bf16: " .. name .. (multiply[name] and ": gradients near float32's, the same bits on 1 and 3 threads, by rows and in slow code"
    or " computes in float32"), function()
    for i, hint in ipairs(multiply[name] and hints or { hints[1] }) do
      op_cases.seed(i)
      local case = op_cases.make(name, hint, multiply[name] and op_cases.many or nil)
      for _, x in ipairs(multiply[name] and case.inputs or {}) do       -- large numbers saturate gates and softmax, whose slopes vanish
        for k = 1, x.dtype == C.MN_F32 and x.n or 0 do x.values[k] = x.values[k] * SMALL end
      end
      local want, names = trace(exact, op, case)
      local got, threads, emulated, differ = trace(one, op, case), trace(three, op, case), trace(slow, op, case), false
      for k = 1, #want do
        local off = distance(got[k], want[k])
        differ = differ or got[k] ~= want[k]
        t.ok(got[k] == threads[k], ("%s differs on three threads"):format(names[k]))
        t.ok(got[k] == emulated[k], ("%s differs in slow code"):format(names[k]))
        t.ok(off <= (name == "rmt_memory" and LAYERS or MOST), ("%s is off by %.2g of float32's"):format(names[k], off))
      end
      t.eq(differ, multiply[name] or false, "other bits than float32's")
      if multiply[name] and by_rows(one, op, case, name == "attention" and MOST or nil) then rows_ran = rows_ran + 1 end
    end
  end)
end)

-- A few rows are converted once for all columns, in pieces of 256 numbers, where there is room; products of `linear` go by tiles of 32 rows.
t.test("bf16: rows of several pieces, of more than a tile and of more than there is room for have the bits of the whole", function()
  local tiles, ran = context(1, "bf16", "amx"), 0
  for _, case in ipairs { { "linear", I = 600, O = 70, B = 5 }, { "linear", I = 600, O = 70, B = 33 }, { "linear", I = 100, O = 16, B = 40 },
    { "linear", I = 31, O = 1, B = 9 }, { "linear", I = 290, O = 17, B = 1 }, { "gru_gate", D = 288, B = 3 }, { "gru_gate", D = 64, B = 70 },
    { "gru", D = 270, G = 810, B = 3 } } do
    for _, way in ipairs { { "fp32", exact }, { "bf16", one }, { "bf16, three threads", three }, { "bf16 in slow code", slow }, { "tiles", tiles } } do
      op_cases.seed(1)
      case.rest, case.T = { 4, case.B }, 4
      local made = op_cases.make(case[1], {}, case)
      made.name = ("%s of %d x %d by %s"):format(case[1], case.I or case.D, case.B, way[1])
      t.ok(by_rows(way[2], C.mn_op_find(case[1]), made, way[1] == "fp32" and 1e-6 or nil))    -- fp32 cuts the depth of many rows only
      ran = ran + 1
    end
  end
  t.eq(ran, 40)
  C.mn_ctx_free(tiles)
end)

t.test("bf16: ops with products ran by rows", function() t.ok(rows_ran >= 5, rows_ran .. " did") end)

-- ---- what is refused ----

t.test("bf16: an unknown way, one that the device has not, and rows across a change of precision are refused", function()
  local c = context(1, "fp32", "0")
  for _, case in ipairs { { "fp8", "0", "expected fp32, tf32 or bf16" }, { "bf16", "2", "expected 0, 1 or amx" }, { "fp32", "1", "only precision=bf16" },
    { "tf32", "0", "tf32 is for device=cuda" } } do
    t.eq(C.mn_set_precision(c, case[1], case[2]), -1)
    t.ok(ffi.string(C.mn_error(c)):find(case[3], 1, true), ffi.string(C.mn_error(c)))
  end
  if own_way == "" then
    t.eq(C.mn_set_precision(c, "bf16", "0"), -1)
    t.ok(ffi.string(C.mn_error(c)):find("neither AVX512-BF16 nor AMX-BF16", 1, true), ffi.string(C.mn_error(c)))
  end
  local op = C.mn_op_find "linear"
  local case = op_cases.make("linear", {}, op_cases.many)
  local leaves, plan = op_cases.leaves(c, case, false, { true }), op_cases.check(c, C.mn_plan_new(c))
  op_cases.check(c, C.mn_plan_begin(plan))
  op_cases.apply(c, op, case, leaves)
  op_cases.check(c, C.mn_plan_end(plan))
  t.eq(C.mn_plan_run(plan, 0, 1), 0)
  op_cases.check(c, C.mn_set_precision(c, "bf16", "1"))
  t.eq(C.mn_plan_run(plan, 1, 2), -1)
  t.ok(ffi.string(C.mn_error(c)):find("expected from 0", 1, true), ffi.string(C.mn_error(c)))
  C.mn_ctx_free(c)
end)
