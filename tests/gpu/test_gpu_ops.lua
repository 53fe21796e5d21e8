-- test_gpu_ops.lua -- every op that has a kernel, in a context on the emulated GPU, against the CPU: all
-- of tests/support/op_cases.lua, forward, by rows, and gradients, also where they are added to.
--   ONLY=linear,relu make test TESTS=tests/gpu/test_gpu_ops.lua       these alone, which then must have kernels
--   GPU=cuda ...                                                  on a real GPU
local ffi = require "ffi"
local t = require "tests.harness"
local op_cases = require "tests.support.op_cases"
local engine = require "mneme.base.engine"
local devices = require "tests.gpu.device"
local C = engine.C

local DEVICE, TOLERANCE = devices.name, 2e-5
local plugin = ffi.load(engine.build .. "/libmneme_" .. DEVICE .. ".so")
ffi.cdef "void mn_emu_order(int order); void mn_emu_forget(void); void mn_emu_slice(double floats);"
ffi.cdef "typedef struct { void *forward, *backward; } mn_kernel;"

-- ---- kernels that there are ----

local chosen
for name in (os.getenv "ONLY" or ""):gmatch "[%w_]+" do
  chosen = chosen or {}
  chosen[name] = true
end

local function kernel_of(name)
  ffi.cdef(("extern const mn_kernel mn_kernel_%s;"):format(name))
  local found, kernel = pcall(function() return plugin["mn_kernel_" .. name] end)
  return found and kernel
end

-- ---- one case on two devices ----

local function list_of(p, n)
  local list = {}
  for k = 1, n do list[k] = p[k - 1] end
  return list
end

local function put_outputs(ctx, case, out, into, how)
  for i, o in ipairs(case.s.outputs) do
    if not o.work_space then                       -- which each device lays out its own way
      local dtype, n = op_cases.info(ctx, out + (i - 1))
      into[how .. o.name] = list_of(op_cases.data(ctx, out + (i - 1), dtype), n)
    end
  end
end

-- Numbers that the case does not say: gradients that come in.
local function give(ctx, leaf, n)
  local p = op_cases.data(ctx, leaf, C.MN_F32)
  for k = 0, n - 1 do p[k] = op_cases.cotangent(k) end
end

-- Applies the op `uses` times and walks back, with gradients of its outputs that are given.
local function put_gradients(ctx, op, case, uses, into)
  for _, x in ipairs(case.inputs) do x.no_grad = x.no_grad or x.name == "shrink" end     -- only the CPU has its gradient
  local leaves, of, grad, n = op_cases.leaves(ctx, case, true), ffi.new "mn_tensor[32]", ffi.new "mn_tensor[32]", 0
  for _ = 1, uses do
    local out = op_cases.apply(ctx, op, case, leaves)
    for i = 1, #case.s.outputs do
      if C.mn_tensor_wants_grad(ctx, out + (i - 1)) then
        local _, size, shape = op_cases.info(ctx, out + (i - 1))
        op_cases.check(ctx, C.mn_leaf_new(ctx, C.MN_F32, #shape, ffi.new("int[6]", shape), false, grad + n))
        give(ctx, grad + n, size)
        of[n], n = out[i - 1], n + 1
      end
    end
  end
  op_cases.check(ctx, C.mn_backward_from(ctx, n, of, grad))
  for _, x in ipairs(case.inputs) do
    if x.given and x.dtype == C.MN_F32 and not x.no_grad then
      into[("%sthe gradient of %s"):format(uses > 1 and "added up: " or "", x.name)] =
        list_of(op_cases.check(ctx, C.mn_tensor_grad(ctx, leaves + x.place)), x.n)
    end
  end
  for i = 0, n - 1 do C.mn_leaf_free(ctx, grad + i) end
  op_cases.free(ctx, case, leaves)
end

-- The same call in pieces of `step` rows; nothing where it cannot run by rows.
local function put_rows(ctx, op, case, shape, step, into)
  local timed = op_cases.timed_inputs(case, shape)
  if not timed then return end
  local leaves, plan = op_cases.leaves(ctx, case, false, timed), op_cases.check(ctx, C.mn_plan_new(ctx))
  op_cases.check(ctx, C.mn_plan_begin(plan))
  local out = op_cases.apply(ctx, op, case, leaves)
  op_cases.check(ctx, C.mn_plan_end(plan))
  local ran = true
  for _ = 1, step == 2 and 3 or 1 do               -- the second time is captured, the third launched again
    for t0 = 0, shape[1] - 1, step do
      ran = ran and C.mn_plan_run(plan, t0, math.min(t0 + step, shape[1])) == 0
    end
  end
  if ran then put_outputs(ctx, case, out, into, ("by %d rows: "):format(step)) end
  C.mn_plan_free(plan)
  op_cases.free(ctx, case, leaves)
end

-- Everything that can be known of a case: lists of numbers by name.  Of large ones gradients added up are enough, and rows by one and by many.
local function numbers(device, op, case, large)
  local ctx, all = C.mn_ctx_new(device, 1), {}
  if ctx == nil then error(ffi.string(C.mn_error(nil)), 0) end
  local ok, why = pcall(function()
    local in_place = not C.mn_op_differentiable(op)
    local leaves = op_cases.leaves(ctx, case, in_place)
    for _, x in ipairs(case.inputs) do             -- ops that act on leaves may read their gradients
      if in_place and x.given and x.dtype == C.MN_F32 and not x.no_grad then
        local p = op_cases.check(ctx, C.mn_tensor_grad(ctx, leaves + x.place))
        for k = 0, x.n - 1 do p[k] = op_cases.cotangent(k) end
      end
    end
    local out, shape = op_cases.apply(ctx, op, case, leaves), nil
    put_outputs(ctx, case, out, all, "")
    if #case.s.outputs > 0 then shape = select(3, op_cases.info(ctx, out)) end
    for _, x in ipairs(case.inputs) do
      if in_place and x.given then
        all[x.name .. " afterwards"] = list_of(op_cases.data(ctx, leaves + x.place, x.dtype), x.n)
      end
    end
    op_cases.free(ctx, case, leaves)
    if not in_place then
      if not large then put_gradients(ctx, op, case, 1, all) end
      put_gradients(ctx, op, case, 2, all)
    end
    local steps = not shape and {} or not large and { 1, 2, 17 } or shape[1] * (shape[2] or 1) > 100 and { 17 } or { 1, 17 }
    for _, step in ipairs(steps) do put_rows(ctx, op, case, shape, step, all) end
  end)
  if not ok and devices.emulated then plugin.mn_emu_forget() end
  C.mn_ctx_free(ctx)
  if not ok then error(why, 0) end
  return all
end

local function compare(got, want)
  for what, list in pairs(want) do
    local worst, scale, at = 0, 1e-30, 0
    t.ok(got[what], what .. ": it did not run")
    for k, v in ipairs(list) do
      if v == v then scale = math.max(scale, math.abs(v)) end
      local difference = got[what][k] == v and 0 or math.abs(got[what][k] - v)
      if not (difference <= worst) and not (v ~= v and got[what][k] ~= got[what][k]) then
        worst, at = difference, k
        if worst ~= worst then break end           -- a NaN is the worst that can be, whatever follows it
      end
    end
    if not (worst <= TOLERANCE * scale) then
      error(("%s[%d] is %.9g, on the CPU %.9g (largest %.3g)"):format(what, at - 1, got[what][at], list[at], scale), 0)
    end
  end
end

-- Which case it was, in a word or two.
local function title(i, hint, long)
  local words = { "case " .. i }
  for name, value in pairs(hint.options or {}) do words[#words + 1] = name .. "=" .. tostring(value) end
  if hint.absent then words[#words + 1] = "without " .. hint.absent end
  if long then words[#words + 1] = "long" end
  return table.concat(words, ", ")
end

-- Memories over more than two chunks of sixteen tokens, of heads that no tile divides; resets come with `done`.
local positive, factored = "q k p_q p_k C s vs ks write_k p_write_k", { gamma = { "D" }, p_gamma = { "E" }, beta = { "V" }, C = { "E*D" }, s = { "E*D" } }
local other_factors = { gamma = { "E" }, p_gamma = { "D" }, beta = { "V" }, C = { "E*D" }, s = { "E*D" } }
local scalar = { beta = { 1 }, C = { "D" }, s = { "D" } }
local function waves(M) return { gamma = { "D" }, p_gamma = { "E" }, vs = { M }, ks = { M, "E*D" }, s = { "E*D" } } end
local apart = { write_v = { "V" }, keep_v = { "V" }, write_k = { "D" }, p_write_k = { "E" }, keep_k = { "E*D" }, C = { "E*D" }, s = { "E*D" },
  vs = { 2 }, ks = { 2, "E*D" } }
local by_head = { write_k = { 1 }, keep_k = { 1 }, C = { "D" }, s = { "D" } }
local of_apart, of_gates = "beta gamma p_gamma", "write_v keep_v write_k p_write_k keep_k"
local function memory(any, T, D, E, V, options)
  local absent = any == scalar and of_gates .. " p_q p_k p_gamma gamma" or any == by_head and of_apart .. " p_q p_k write_v keep_v p_write_k"
    or any == apart and of_apart or of_gates
  return { hint = { any = any, positive = positive, absent = absent, options = options }, T = T, B = 2, H = 2, D = D, E = E, V = V }
end
-- Enough that the chunks of a head go one after the other (CU_FILL in gpu/lib/chunk.cuh); elsewhere they go side by side.
local function of_many_heads(case)
  case.B, case.H = 16, 8
  return case
end
local function delta(T, K, V, options, keys)
  return { hint = { sizes = { P = ("%d*H"):format(keys or 1) }, small = "k", positive = "q k s write", options = options }, T = T, B = 2, H = 1, K = K, V = V }
end

local lanes = {}
for i, case in ipairs { { 3, 17000 }, { 3, 17000, axis = 1 }, { 40, 300, axis = 0 } } do
  local shape = { case[1], case[2] }
  lanes[i] = { hint = { shapes = { x = shape, mask = shape }, options = { axis = case.axis } } }
end

-- Sizes at which kernels go other ways than at the tiny ones of op_cases: several blocks, sums in pieces,
-- tiles, long rows.  A hint, and what op_cases takes for the letters and for `...` (rest).
local wide = {
  abs = { { hint = {}, rest = { 37, 111 } } },
  add = { { hint = { shapes = { a = { 900, 40 }, b = { 40 } } } }, { hint = { shapes = { a = { 6, 300, 12 }, b = { 6, 1, 12 } } } } },
  mul = { { hint = { shapes = { a = { 5, 9001 }, b = { 5, 1 } } } }, { hint = { shapes = { a = { 30011 }, b = { 1 } } } },
    { hint = { shapes = { a = { 7, 1, 33, 5 }, b = { 50, 1, 5 } } } } },
  where = { { hint = { shapes = { mask = { 90, 1 }, a = { 40 }, b = { 90, 40 } } } } },
  sum = { { hint = { shapes = { x = { 3, 20000 } } } }, { hint = { shapes = { x = { 3, 20000 } }, options = { axis = 1 } } },
    { hint = { shapes = { x = { 9000, 7 } }, options = { axis = 0 } } } },
  max = lanes, min = lanes, argmax = lanes, argmin = lanes, var = lanes, norm = lanes, any = lanes,
  all = { { hint = { shapes = { mask = { 3, 1100 } }, options = { axis = 1 } } } },
  prod = { { hint = { shapes = { x = { 3, 300 } }, options = { axis = 1 } } }, { hint = { shapes = { x = { 40, 70 } }, options = { axis = 0 } } } },
  eq = { { hint = { type = "u8", shapes = { a = { 900, 40 }, b = { 40 } } } } },
  transpose = { { hint = { shapes = { x = { 70, 3, 45 } }, options = { a = 0, b = 2 } } },
    { hint = { shapes = { x = { 20, 33, 6 } } } } },
  concat = { { hint = { absent = "c d e f g h", shapes = { a = { 60, 37 }, b = { 60, 64 } } } },
    { hint = { dtype = "u8", absent = "d e f g h", shapes = { a = { 60, 37 }, b = { 60, 64 }, c = { 60, 12 } } } } },
  permute = { { hint = { shapes = { x = { 40, 3, 45, 2 } }, options = { a0 = 2, a1 = 0, a2 = 3, a3 = 1 } } } },
  roll = { { hint = { shapes = { x = { 60, 48 } }, options = { shift = 16 } } }, { hint = { dtype = "u8", shapes = { x = { 60, 48 } } } } },
  expand = { { hint = { shapes = { x = { 1, 40, 1 } }, options = { d0 = 60, d1 = 40, d2 = 9 } } },
    { hint = { shapes = { x = { 40 } }, options = { d0 = 900, d1 = 40 } } } },
  gather = { { hint = { shapes = { x = { 60, 300 }, index = { 60, 90 } } } },
    { hint = { shapes = { x = { 5, 90, 70 }, index = { 5, 9, 70 } }, options = { axis = 1 } } } },
  index_select = { { hint = { sizes = { N = 300 }, shapes = { x = { 7, 600 } } } } },
  scatter_add = { { hint = { shapes = { x = { 60, 300 }, index = { 60, 900 }, src = { 60, 900 } } } } },
  scatter = { { hint = { shapes = { x = { 60, 300 }, index = { 60, 900 }, src = { 60, 900 } } } } },
  sort = { { hint = { shapes = { x = { 3, 2048 } } } }, { hint = { dtype = "u8", shapes = { x = { 2, 4100 } }, options = { descending = 1 } } },
    { hint = { shapes = { x = { 300, 40 } }, options = { axis = 0 } } } },
  topk = { { hint = { shapes = { x = { 3, 4097 } }, options = { k = 50 } } } },
  slice = { { hint = { shapes = { x = { 60, 48 } }, options = { axis = 1, from = 4, to = 44 } } } },
  softmax = { { hint = {}, D = 150, rest = { 5 } }, { hint = {}, D = 1500, rest = { 3 } } },
  log_softmax = { { hint = {}, D = 1100, rest = { 3 } } }, logsumexp = { { hint = {}, D = 1100, rest = { 3 } } },
  normalise = { { hint = {}, D = 700, rest = { 3 } }, { hint = { options = { by = "sum" } }, D = 700, rest = { 3 } },
    { hint = { options = { by = "rms" } }, D = 40, rest = { 90 } } },
  outer = { { hint = {}, E = 5, D = 66, rest = { 40 } } },
  embedding = { { hint = {}, V = 300, D = 5, rest = { 70, 61 } }, { hint = {}, V = 3, D = 270, rest = { 1100 } } },
  expand_time = { { hint = {}, T = 60, B = 50, H = 2, K = 8, rest = { 1 } } },
  running_max = { { hint = {}, T = 20, B = 3, H = 2, M = 200 } },
  gated_scan = { { hint = { like = { a = { "x", 1 } } }, T = 37, B = 3, rest = { 90 } },
    { hint = { like = { a = { "x", 3 } } }, T = 20, B = 90, rest = { 7 } } },
  log_scan = { { hint = { like = { a = { "x", 1 } } }, T = 37, B = 3, rest = { 90 } } },
  complex_scan = { { hint = { like = { a = { "x", 1 } } }, T = 37, B = 3, D = 90 }, { hint = { like = { a = { "x", 3 } } }, T = 20, B = 90, D = 6 } },
  cumsum = { { hint = { sizes = { T = 37, B = 30 }, shapes = { x = { 37, 30, 11 } } } },
    { hint = { absent = "done", shapes = { x = { 300, 37 } }, options = { axis = 1 } } } },
  cumprod = { { hint = { sizes = { T = 37, B = 30 }, shapes = { x = { 37, 30, 11 } } } } },
  memory_push_mask = { { hint = { flags = "mask" }, T = 40, M = 70, B = 40, rest = { 1 } } },
  a2c_loss = { { hint = { sizes = { S = "T+1" } }, T = 40, B = 30, A = 5 }, { hint = { sizes = { S = "T+1" } }, T = 3, B = 4, A = 140 } },
  ppo_loss = { { hint = {}, T = 60, B = 50, A = 4 } },
  cross_entropy = { { hint = {}, V = 200, rest = { 30, 11 } }, { hint = { absent = "asked" }, V = 3, rest = { 900 } } },
  attention = { { hint = { absent = "done", flags = "mask", sizes = { F = "M+T" }, options = { window = 90 } },
      T = 70, B = 1, H = 1, K = 33, V = 68, M = 37 },
    { hint = { absent = "mk mv mask u w r done" }, T = 66, B = 2, H = 1, K = 8, V = 12 } },
  window_attention = { { hint = { counts = "pos", sizes = { S = 21 }, options = { window = 20, globals = 1 } }, T = 70, B = 1, H = 1, D = 20 } },
  block_attention = { { hint = { counts = "pos", sizes = { S = "16*N" } }, T = 70, B = 1, H = 1, D = 8, N = 5, R = 2 } },
  longshort_attention = { { hint = { counts = "pos", sizes = { S = "J+1", W = "2*R", E = "H*D" }, options = { window = 9, eps = 0.5 } },
    T = 70, B = 1, H = 2, D = 12, J = 8, R = 2 } },
  sparse_attention = { { hint = { any = { ranges = { 1 } }, sizes = { P = "N" }, options = { causal = 1 } }, B = 1, H = 1, N = 70, M = 70, D = 8, R = 2 } },
  rmt = { { hint = { small = "params", sizes = { L = 1, M = 3, D = 44, P = "12*D*D + 30*D + 15" },
    options = { heads = 2, d_head = 2, d_ffn = 3, segment = 20 } }, T = 25, B = 1 } },
  linear_attention = { memory(factored, 37, 9, 4, 10), memory(factored, 18, 35, 5, 17, { den_clamp = 0.3 }), memory(factored, 17, 60, 5, 3),
    memory(other_factors, 35, 3, 5, 9), memory(scalar, 21, 6, 1, 5), memory(apart, 37, 9, 4, 10), memory(by_head, 21, 6, 1, 5), memory(factored, 150, 3, 2, 3),
    of_many_heads(memory(factored, 17, 2, 2, 63)) },
  joint_gate_attention = { memory(factored, 37, 9, 4, 10), memory(factored, 18, 35, 5, 17), memory(apart, 17, 60, 5, 3) },
  agalite = { memory(waves(2), 37, 9, 4, 40, { r = 3 }), memory(waves(6), 18, 35, 3, 5, { form = "cossin", r = 6 }),
    memory(waves(130), 17, 5, 2, 3, { form = "random_sign", r = 130, seed = 3 }), memory(apart, 37, 9, 4, 40, { r = 3 }),
    of_many_heads(memory(waves(1), 18, 2, 1, 250, { r = 1, normalise = 0 })) },
  delta_rule = { delta(37, 40, 10), delta(18, 70, 17, { erase = "after" }), delta(17, 300, 3, { normalise = 0 }),
    delta(19, 40, 10, nil, 2), delta(13, 33, 5, { erase = "after" }, 3) },
  wkv4 = { { hint = {}, T = 37, B = 3, D = 70 } },
  wkv6 = { { hint = {}, T = 37, B = 2, H = 2, K = 20, V = 11 }, { hint = { absent = "done S" }, T = 18, B = 1, H = 1, K = 70, V = 9 },
    { hint = {}, T = 17, B = 1, H = 1, K = 300, V = 3 } },
  wkv7 = { { hint = { small = "out back" }, T = 37, B = 2, H = 2, K = 12, V = 11 }, { hint = { small = "out back k" }, T = 18, B = 1, H = 1, K = 20, V = 9 } },
  wkv7_keys = { { hint = {}, T = 37, B = 3, H = 2, K = 70 } },
  wkv_out = { { hint = { options = { act = "silu" } }, T = 37, B = 3, H = 2, V = 70, K = 33 } },
  linear = { { hint = {}, I = 33, O = 70, rest = { 40, 5 } }, { hint = { options = { act = "tanh" } }, I = 64, O = 41, rest = { 3, 4 } },
    { hint = { options = { act = "elu1" } }, I = 130, O = 9, rest = { 8 } }, { hint = { absent = "b" }, I = 12, O = 5, rest = { 17 } },
    { hint = { options = { act = "relu" } }, I = 5, O = 3, rest = { 2500 } } },
  head_linear = { { hint = { sizes = { P = "7*H" }, options = { act = "tanh" } }, T = 40, B = 3, H = 3, I = 33 },
    { hint = { sizes = { P = "9*H" } }, T = 3, B = 4, H = 2, I = 64 } },
  layer_norm = { { hint = {}, D = 40, rest = { 300 } }, { hint = {}, D = 300, rest = { 60 } },
    { hint = {}, D = 700, rest = { 40 } }, { hint = {}, D = 1300, rest = { 5 } } },
  gru_gate = { { hint = {}, D = 64, rest = { 3 } }, { hint = {}, D = 33, rest = { 13 } }, { hint = {}, D = 40, rest = { 50 } },
    { hint = {}, D = 24, rest = { 90 } } },
  gru = { { hint = { sizes = { G = "3*D" } }, T = 5, B = 9, D = 34 }, { hint = { sizes = { G = "3*D" } }, T = 4, B = 40, D = 12 } },
  lstm = { { hint = { sizes = { G = "4*D" } }, T = 5, B = 9, D = 36 }, { hint = { sizes = { G = "4*D" } }, T = 4, B = 40, D = 13 } },
  slstm_gate = { { hint = { sizes = { G = "4*D" }, positive = "n" }, D = 33, rest = { 5, 9 } } }, minlstm_gate = { { hint = {}, rest = { 70, 61 } } },
  token_shift = { { hint = {}, T = 50, B = 3, D = 70, C = 2 } },
  short_conv = { { hint = { sizes = { W = 4 }, any = { state = { 3 } } }, T = 90, B = 3, D = 40 },
    { hint = { sizes = { W = 16 }, any = { state = { 15 } }, options = { act = "silu" } }, T = 20, B = 3, D = 7 } },
  conv2d = { { hint = { absent = "image", options = { act = "relu", stride = 2, padding = 1 } },
      T = 2, B = 3, Y = 20, X = 17, C = 3, O = 40, K = 4, L = 3 },
    { hint = { absent = "x", options = { stride = 3 } }, T = 2, B = 9, Y = 16, X = 17, C = 5, O = 6, K = 5, L = 4 } },
  max_pool2d = { { hint = { options = { kernel = 3, stride = 2, padding = 1 } }, T = 2, B = 3, Y = 20, X = 17, C = 5 } },
  avg_pool2d = { { hint = { options = { kernel = 3, stride = 2, padding = 1 } }, T = 2, B = 3, Y = 20, X = 17, C = 5 } },
  group_norm = { { hint = { options = { groups = 3 } }, T = 5, B = 3, P = 70, C = 12 }, { hint = {}, T = 2, B = 2, P = 300, C = 5 } },
  dropout = { { hint = {}, rest = { 70, 61 } } }, random_uniform = { { hint = {}, rest = { 70, 61 } } },
  random_normal = { { hint = {}, rest = { 70, 61 } } }, random_index = { { hint = {}, A = 7, rest = { 70, 11 } } },
  sgd = { { hint = { positive = "hyper norm" }, rest = { 90, 101 } } },
  rmsprop = { { hint = { positive = "v hyper norm", absent = "mean" }, rest = { 90, 101 } } },
  head_conv = { { hint = {}, B = 2, H = 3, N = 50, D = 16, J = 7 }, { hint = {}, B = 2, H = 2, N = 3, D = 5, J = 9 } },
  rotary = { { hint = { sizes = { D = 70 } }, T = 20, B = 3, H = 2 } },
  dpfp = { { hint = { options = { nu = 3 } }, D = 40, rest = { 30 } } }, fourier = { { hint = {}, M = 70, rest = { 30 } } },
  favor_logits = { { hint = {}, T = 20, B = 3, H = 2, D = 33, M = 70 } },
  favor_features = { { hint = {}, T = 20, B = 3, H = 2, M = 70 } },
  grad_norm = { { hint = {}, rest = { 90, 101 } } }, adam = { { hint = { positive = "hyper v norm" }, rest = { 90, 101 } },
    { hint = { positive = "hyper v norm", options = { rectified = 1 } }, rest = { 90, 101 } } },
}

local function of_five_heads(case)
  case.B, case.H = 5, 1
  return case
end
local sliced = { linear_attention = of_five_heads(memory(factored, 37, 3, 2, 3)), agalite = of_five_heads(memory(waves(2), 37, 3, 2, 3, { r = 3 })),
  joint_gate_attention = of_five_heads(memory(factored, 37, 3, 2, 3)), delta_rule = of_five_heads(delta(37, 4, 3, nil, 2)),
  wkv6 = { hint = {}, T = 37, B = 5, H = 1, K = 4, V = 3 }, wkv7 = { hint = { small = "out back" }, T = 37, B = 5, H = 1, K = 4, V = 3 } }

local anywhere = { last_row = true }            -- runs on any device by the device's own copies: test_gpu_recur.lua has its tests
local cpu_alone = { input_attention = true, input_attention_weights = true, last_linear = true }         -- gtrxl acts by them on a CPU alone
local missing, one_way, ran = {}, {}, 0
op_cases.each(function(name, hints, op)
  if chosen and not chosen[name] or anywhere[name] or cpu_alone[name] then return end
  local kernel = kernel_of(name)
  if kernel and C.mn_op_differentiable(op) and kernel.backward == nil then one_way[#one_way + 1] = name end
  if not kernel or (C.mn_op_differentiable(op) and kernel.backward == nil) then
    if not kernel then missing[#missing + 1] = name end
    return
  end
  ran = ran + 1
  t.test("gpu: " .. name, function()
    local wrong = {}
    for i, hint in ipairs(hints) do
      -- The first has the rank that leaves nothing out, as the CPU's tests need it; it takes ten times as long.
      if i > 1 and name == "low_rank_attention" then hint.options.r = 7 end
      for _, long in ipairs { false, op_cases.walks_time(name) or nil } do
        if devices.emulated then plugin.mn_emu_order((i + (long and 1 or 0)) % 3) end
        op_cases.seed(i)
        local case = op_cases.make(name, hint, long and op_cases.long or nil)
        local ok, why = pcall(function() compare(numbers(DEVICE, op, case), numbers("cpu", op, case)) end)
        if hint.cpu then ok, why = not ok and tostring(why):find("device=cpu alone", 1, true), "not refused: " .. tostring(why) end
        if not ok then wrong[#wrong + 1] = title(i, hint, long) .. ": " .. tostring(why) end
      end
    end
    for i, sizes in ipairs(wide[name] or {}) do
      if devices.emulated then plugin.mn_emu_order(i % 3) end
      local case = op_cases.make(name, sizes.hint, sizes)
      local ok, why = pcall(function() compare(numbers(DEVICE, op, case, true), numbers("cpu", op, case, true)) end)
      if not ok then wrong[#wrong + 1] = ("wide %s: %s"):format(title(i, sizes.hint), why) end
    end
    if #wrong > 0 then error(table.concat(wrong, "\n"), 0) end
  end)
end)

-- Memories of many heads are computed in slices whose scratch fits a cache.  Five heads in small slices, the last of them smaller.
for _, name in ipairs { "linear_attention", "agalite", "joint_gate_attention", "delta_rule", "wkv6", "wkv7" } do
  local sizes = sliced[name]
  if not chosen or chosen[name] then
    t.test(("gpu: %s in slices of heads"):format(name), function()
      if not devices.emulated then t.skip "only the emulator makes slices small" end
      local op, case = C.mn_op_find(name), op_cases.make(name, sizes.hint, sizes)
      local want = numbers("cpu", op, case)
      for _, floats in ipairs { 2000, 12000 } do
        plugin.mn_emu_slice(floats)
        local ok, why = pcall(function() compare(numbers(DEVICE, op, case), want) end)
        plugin.mn_emu_slice(12 * 2 ^ 20)
        t.ok(ok, ("%d floats: %s"):format(floats, tostring(why)))
      end
    end)
  end
end

-- A plan hands calls that follow each other to a kernel in one go: more leaves than it takes at once, of odd
-- sizes; one leaf twice; a second sum.
local grad_norm, adam = C.mn_op_find "grad_norm", C.mn_op_find "adam"
local function optimised(device)
  local ctx = C.mn_ctx_new(device, 1)
  local function leaf(n, f, wants_grad)
    local new = ffi.new "mn_tensor[1]"
    op_cases.check(ctx, C.mn_leaf_new(ctx, C.MN_F32, 1, ffi.new("int[6]", { n }), wants_grad or false, new))
    local p = op_cases.data(ctx, new, C.MN_F32)
    for k = 0, n - 1 do p[k] = f(k) end
    return new
  end
  local function zero() return 0 end
  local hyper_of = { [0] = 0.01, 0.1, 0.01, 1e-8, 0.5, 3 }
  local hyper, sum, norm = leaf(6, function(k) return hyper_of[k] end), leaf(2, zero), leaf(1, zero)
  local leaves, all = {}, {}
  for i = 1, 61 do
    local n = i % 7 == 0 and 4099 + i or i % 9 + 1
    leaves[i] = { w = leaf(n, function(k) return op_cases.cotangent(k + i) end, true), m = leaf(n, zero), v = leaf(n, zero), own = leaf(1, zero), n = n }
    local p = op_cases.check(ctx, C.mn_tensor_grad(ctx, leaves[i].w))
    for k = 0, n - 1 do p[k] = op_cases.cotangent(3 * k + i) / 50 end
  end
  leaves[62] = leaves[5]
  local function apply(op, options, ...)
    local given = ffi.new("mn_tensor[?]", C.MN_INPUTS)
    for i, x in ipairs { ... } do given[i - 1] = x[0] end
    op_cases.check(ctx, C.mn_apply(ctx, op, given, ffi.new("double[12]", options), ffi.new("mn_tensor[?]", C.MN_OUTPUTS)))
  end
  local plan = op_cases.check(ctx, C.mn_plan_new(ctx))
  op_cases.check(ctx, C.mn_plan_begin(plan))
  for i, l in ipairs(leaves) do apply(grad_norm, { i == 1 and 1 or 0 }, l.w, sum, norm, l.own) end
  for _, l in ipairs(leaves) do apply(adam, {}, l.w, l.m, l.v, hyper, norm) end
  for i = 1, 2 do apply(grad_norm, { i == 1 and 1 or 0 }, leaves[i].w, sum, norm) end
  op_cases.check(ctx, C.mn_plan_end(plan))
  for _ = 1, 2 do op_cases.check(ctx, C.mn_plan_run(plan, 0, -1)) end
  for i, l in ipairs(leaves) do
    for name, kept in pairs { w = l.w, m = l.m, v = l.v } do all[name .. i] = list_of(op_cases.data(ctx, kept, C.MN_F32), l.n) end
    all["own" .. i] = list_of(op_cases.data(ctx, l.own, C.MN_F32), 1)
  end
  all.norm = list_of(op_cases.data(ctx, norm, C.MN_F32), 1)
  C.mn_ctx_free(ctx)
  return all
end
if not chosen or chosen.adam then
  t.test("gpu: a plan takes many leaves in one go", function() compare(optimised(DEVICE), optimised "cpu") end)
end

t.test("gpu: every op has its kernels", function()
  t.ok(#missing == 0, "without a kernel: " .. table.concat(missing, " "))
  t.ok(#one_way == 0, "without a backward kernel: " .. table.concat(one_way, " "))
  t.ok(ran > 0, "OPS names no op")
end)
