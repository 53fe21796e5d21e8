-- op_hints.lua -- what the signature of an op cannot say of the calls that test it: see op_cases.lua.
-- Per op, a list of cases; in each, all optional:
--   shapes    sizes of inputs with [*]; `large`: those for the test of threads
--   like      of an input with [*]: { "x", from }, the shape of an earlier input, from an axis on
--   sizes     letters that depend on others, "T+1"; `any`: axes written ?, in order, of an input
--   absent    optional inputs to leave out
--   options   options to set
--   positive  inputs to draw from 0.2 .. 1.2, away from poles
--   small     inputs whose numbers are a third as large, so that a recurrence does not grow
--   flags     float inputs to draw as 0 or 1
--   counts    whole numbers that count up along T, from 0 .. 4 and again from 0 now and then
--   counting  no replay gives what another gave: it counts in place
--   distinct  float inputs whose values keep a distance from each other
--   dtype     of inputs marked :any, "i32" or "u8"; each case of such an op is also run with these two
--   apart     of gated attention: write and keep are given, not beta and gamma
--   cpu       only device=cpu takes these inputs
--   stopped   inputs whose gradient leaves a part out on purpose, so that no quotient equals it
local by_axis = { {}, { options = { axis = 0 } }, { options = { axis = 1 } },
  { options = { axis = -1, keepdim = 1 } } }
local pairs_of_shapes = {
  { large = { a = { 3000, 40 }, b = { 40 } } }, { shapes = { a = { 3, 2, 4 }, b = { 4 } } },
  { shapes = { a = { 4, 1, 3 }, b = { 4, 2, 3 } } },
  { shapes = { a = { 2 }, b = { 4, 3, 1 } } }, { shapes = { a = { 3, 1, 4, 1 }, b = { 2, 1, 5 } } },
  { shapes = { a = { 1 }, b = { 1 } } }, { shapes = { a = { 3, 2 }, b = {} } },
}
-- Cases with more to each: the same hints, the same options.
local function with(cases, hint, options)
  local list = {}
  for i, case in ipairs(cases) do
    list[i] = { options = {} }
    for name, value in pairs(case) do if name ~= "options" then list[i][name] = value end end
    for name, value in pairs(hint) do list[i][name] = value end
    for _, more in ipairs { case.options or {}, options or {} } do
      for name, value in pairs(more) do list[i].options[name] = value end
    end
  end
  return list
end
local function join(...)
  local all = {}
  for _, cases in ipairs { ... } do for _, case in ipairs(cases) do all[#all + 1] = case end end
  return all
end
local divisors, powers = with(pairs_of_shapes, { positive = "b" }), with(pairs_of_shapes, { positive = "a" })
local comparisons = pairs_of_shapes
local variances = join(by_axis, with(by_axis, {}, { correction = 0 }))
local norms = join(by_axis, with(by_axis, {}, { p = 1 }), with(by_axis, {}, { p = math.huge }), with(by_axis, {}, { p = 3 }))

-- Gates as beta and gamma, or where `apart` what is written and what is kept.
local function attention(cases)
  for _, case in ipairs(cases) do
    case.positive = "q k p_q p_k C s vs ks write_k p_write_k"
    case.absent = (case.absent or "") .. (case.apart and " beta gamma p_gamma" or " write_v keep_v write_k p_write_k keep_k")
  end
  return cases
end
local apart = { write_v = { "V" }, keep_v = { "V" }, write_k = { "D" }, p_write_k = { "E" }, keep_k = { "E*D" }, C = { "E*D" }, s = { "E*D" },
  vs = { 1 }, ks = { 1, "E*D" } }
local values_by_head = {}                    -- the same with one keep_v a head
for name, size in pairs(apart) do values_by_head[name] = size end
values_by_head.keep_v = { 1 }
local by_head = { write_k = { 1 }, keep_k = { 1 }, C = { "D" }, s = { "D" } }
local factored = { gamma = { "D" }, p_gamma = { "E" }, beta = { "V" }, C = { "E*D" },
  s = { "E*D" } }
local plain = { gamma = { "D" }, beta = { "V" }, C = { "D" }, s = { "D" } }
local waves = { gamma = { "D" }, p_gamma = { "E" }, vs = { 1 }, ks = { 1, "E*D" }, s = { "E*D" } }

-- The layers of rmt: two heads of 2, a hidden width of 3.  Rows of two numbers would say nothing: normalised, they are
-- 1 and -1 whatever they were.
local plain_layer, gated = "28*D + 15", "12*D*D + 30*D + 15"
local function with_layers(sizes) sizes.L, sizes.M, sizes.D = 2, 3, 4 return sizes end
local function with_heads(o) o.heads, o.d_head, o.d_ffn, o.segment = 2, 2, 3, o.segment or 4 return o end
local function slots(S)
  return ("(1 + (T - T % S)/S)*B*3*D + 2*B*(6 + (T < S and T or S))*8"):gsub("S", S)
end

-- A factor for each step, and one for all steps.
local function scans(sizes)
  local list = {}
  for i = 1, 4 do list[i] = { sizes = sizes, like = { a = { "x", i % 2 == 1 and 1 or 3 } }, absent = i > 2 and "done h" or nil } end
  return list
end

local along = { { absent = "done", large = { x = { 300, 400 } } }, { sizes = { T = 21, B = 2 }, shapes = { x = { 21, 2, 3 } } },
  { sizes = { T = 19, B = 3 }, shapes = { x = { 19, 3 } } }, { options = { axis = 1 }, absent = "done" },
  { options = { axis = -1 }, absent = "done", shapes = { x = { 3, 5, 11 } } }, { options = { axis = -1 }, absent = "done", shapes = { x = { 21 } } } }

local hints = {
  add = pairs_of_shapes, sub = pairs_of_shapes, mul = pairs_of_shapes, div = divisors,
  maximum = pairs_of_shapes, minimum = pairs_of_shapes, atan2 = pairs_of_shapes,
  power = powers, eq = comparisons, ne = comparisons, lt = comparisons, le = comparisons, gt = comparisons, ge = comparisons,
  logical_and = pairs_of_shapes, logical_or = pairs_of_shapes, logical_xor = pairs_of_shapes,
  where = { { large = { mask = { 3000, 1 }, a = { 40 }, b = { 1 } } },
    { shapes = { mask = { 3, 1 }, a = { 4 }, b = { 3, 4 } } },
    { shapes = { mask = { 4 }, a = { 1 }, b = { 3, 1 } } } },
  sum = by_axis, mean = by_axis, max = by_axis, min = by_axis, argmax = by_axis, argmin = by_axis, prod = by_axis,
  any = by_axis, all = by_axis, count_nonzero = by_axis,
  var = variances, std = variances, norm = norms,
  sqrt = { { positive = "x" } }, rsqrt = { { positive = "x" } }, log1p = { { positive = "x" } }, reciprocal = { {}, { options = { a = -2 } } },
  elu = { {}, { options = { alpha = 0.5 } } },
  pow = { {}, { options = { p = 3 } }, { positive = "x", options = { p = -1.5 } }, { options = { p = 0 } } },
  leaky_relu = { {}, { options = { slope = -0.5 } } },
  clamp = { {}, { options = { lo = -0.5, hi = 0.7 } } },
  scale = { {}, { options = { a = -1.5, b = 0.25 } } },
  one_hot = { { options = { classes = 4 } } },
  conv2d = { { sizes = { Y = "K+3", X = "L+2" }, absent = "image" },
    { sizes = { Y = "K+4", X = "L+5", O = 19 }, absent = "image", options = { stride = 2, padding = 1 } },
    { sizes = { Y = "K+6", X = "L+1", C = 2, O = 33 }, absent = "image b", options = { stride = 3 } },
    { sizes = { K = 1, L = 2, Y = 5, X = 6 }, absent = "image", options = { stride = 3, padding = 2 } },
    { sizes = { Y = "K", X = "L", O = 2 }, absent = "image", options = { act = "relu" } },
    { sizes = { Y = "K+2", X = "L+2" }, absent = "x", options = { stride = 2, divide = 100 } } },
  max_pool2d = { { sizes = { Y = 5, X = 4 } }, { sizes = { Y = 5, X = 6 }, options = { kernel = 3, stride = 2, padding = 1 } },
    { sizes = { Y = 6, X = 5 }, options = { kernel = 3, stride = 2, ceil = 1 } } },
  avg_pool2d = { { sizes = { Y = 5, X = 4 } }, { sizes = { Y = 5, X = 6 }, options = { kernel = 3, stride = 2, padding = 1 } } },
  group_norm = { { sizes = { C = 4 }, options = { groups = 2 } }, {}, { sizes = { P = 1, C = 3 }, options = { groups = 3 } } },
  dropout = { {} }, random_key = { { counting = true } },
  sgd = { { positive = "hyper norm" }, { positive = "hyper norm", options = { nesterov = 1 } }, { positive = "hyper norm", absent = "v" } },
  adam = { { positive = "v hyper norm", small = "hyper" }, { positive = "v hyper norm", small = "hyper", absent = "weight_decay" },
    { positive = "v hyper norm", small = "hyper", options = { rectified = 1 } } },
  rmsprop = { { positive = "v hyper norm", small = "mean" }, { positive = "v hyper norm", absent = "m mean" } },
  one_hot_codes = { { options = { codes = 256 } } },
  matmul = { { shapes = { a = { 3, 4 }, b = { 4, 5 } } },
    { shapes = { a = { 3, 2, 4 }, b = { 4, 3 } } },
             { shapes = { a = { 3, 2, 4 }, b = { 3, 4, 5 } } } },
  concat = { { absent = "c d e f g h" }, {}, { absent = "c d e f g h", options = { axis = 0 }, shapes = { a = { 2, 3 }, b = { 4, 3 } } },
             { absent = "d e g h", options = { axis = 1 }, shapes = { a = { 3, 2, 2 }, b = { 3, 1, 2 }, c = { 3, 4, 2 }, f = { 3, 1, 2 } } } },
  slice = { {}, { options = { axis = -1, from = 1 } },
    { options = { axis = 1, from = -2, to = -1 } },
            { options = { axis = 0, from = 1, to = 3 } } },
  reshape = { { options = { d0 = -1 } }, { options = { d0 = 3, d1 = -1 } },
    { options = { d0 = 3, d1 = 1, d2 = 3, d3 = 4 } } },
  transpose = { {}, { options = { a = 1, b = -1 } }, { options = { a = -1, b = 0 } },
    { options = { a = 1, b = 1 } } },
  permute = { { options = { a0 = 0, a1 = 2, a2 = 1 } }, { options = { a0 = -1, a1 = 0, a2 = 1 } }, { options = { a0 = 0, a1 = 1, a2 = 2 } },
    { shapes = { x = { 3, 2, 4, 2 } }, options = { a0 = 0, a1 = 3, a2 = 2, a3 = 1 } },
    { shapes = { x = { 2, 1, 3, 2, 2 } }, options = { a0 = 4, a1 = 2, a2 = 0, a3 = 3, a4 = 1 } } },
  flip = { {}, { options = { axis = 0 } }, { options = { axis = 1 } } },
  roll = { {}, { options = { shift = -7, axis = 1 } }, { options = { shift = 2, axis = 0 } }, { options = { shift = 3, axis = 1 } } },
  pad = { { options = { before = 2, after = 1, value = 3 } }, { options = { axis = 0, before = 1 } }, { options = { axis = 1, after = 2 } }, {} },
  expand = { { shapes = { x = { 3, 1, 4 } }, large = { x = { 70, 1, 50 } }, options = { d0 = -1, d1 = 5, d2 = -1 } },
    { shapes = { x = { 3, 1 } }, large = { x = { 50, 1 } }, options = { d0 = 2, d1 = -1, d2 = 4 } },
    { shapes = { x = { 1 } }, large = { x = { 1 } }, options = { d0 = 3 } },
    { shapes = { x = { 2, 1, 3, 1 } }, large = { x = { 2, 1, 3, 1 } }, options = { d0 = 2, d1 = 2, d2 = 2, d3 = 3, d4 = 2 } } },
  tril = { {}, { options = { diagonal = -1 } }, { shapes = { x = { 4, 3 } }, options = { diagonal = 1 } } },
  triu = { {}, { options = { diagonal = 1 } }, { shapes = { x = { 2, 5 } }, options = { diagonal = -9 } } },
  gather = { { shapes = { x = { 3, 4, 5 }, index = { 3, 4, 2 } }, large = { x = { 70, 30, 50 }, index = { 70, 30, 40 } } },
    { shapes = { x = { 3, 4, 2 }, index = { 3, 6, 2 } }, options = { axis = 1 } },
    { shapes = { x = { 5, 3 }, index = { 2, 3 } }, options = { axis = 0 } } },
  index_select = { { sizes = { N = 5 } }, { options = { axis = 1 } }, { options = { axis = -1 }, sizes = { N = 7 } } },
  scatter_add = { { shapes = { x = { 3, 4, 5 }, index = { 3, 4, 7 }, src = { 3, 4, 7 } },
      large = { x = { 70, 30, 50 }, index = { 70, 30, 40 }, src = { 70, 30, 40 } } },
    { shapes = { x = { 3, 4, 2 }, index = { 3, 2, 2 }, src = { 3, 2, 2 } }, options = { axis = 1 } },
    { shapes = { x = { 5, 3 }, index = { 4, 3 }, src = { 4, 3 } }, options = { axis = 0 } } },
  sort = { {}, { options = { descending = 1 } }, { options = { axis = 1 } }, { options = { axis = 0 } },
    { shapes = { x = { 2, 150 } }, distinct = "x", options = { descending = 1 } } },
  topk = { { options = { k = 2 } }, { options = { k = 3, axis = 1, largest = 0 } }, { options = { axis = 0 } },
    { shapes = { x = { 2, 150 } }, distinct = "x", options = { k = 100 } }, { shapes = { x = { 2, 150 } }, distinct = "x", options = { k = 5 } } },
  sparse_attention = { { any = { ranges = { 1 } }, sizes = { P = 1 } },
    { any = { ranges = { "H" } }, sizes = { P = "N" }, options = { causal = 1 } },
    { any = { ranges = { 1 } }, sizes = { P = "N" }, options = { stride = 2 } } },
  rotary = { { sizes = { D = "2*H" } } },
  dpfp = { {}, { options = { nu = 3 } } },
  window_attention = { { sizes = { S = 5 }, counts = "pos", options = { window = 3, dilation = 2, globals = 1 } },
    { sizes = { S = 4 }, counts = "pos", options = { window = 4, globals = 1 } },
    { sizes = { S = 3 }, counts = "pos", options = { globals = 3, rows = "first" } } },
  block_attention = { { sizes = { S = "2*N" }, counts = "pos" } },
  window_weights = { { sizes = { S = 5 }, counts = "pos", options = { window = 3, dilation = 2, globals = 1 } },
    { sizes = { S = 3 }, counts = "pos", options = { globals = 3, rows = "first" } } },
  block_weights = { { sizes = { S = "2*N" }, counts = "pos" } },
  longshort_weights = { { sizes = { S = "J+1", W = "2*R", E = "H*D", C = "R*((T + J - 1) - (T + J - 1) % J)/J" }, counts = "pos",
    options = { window = 3 } } },
  longshort_attention = { { sizes = { S = "J+1", W = "2*R", E = "H*D" }, counts = "pos", options = { window = 3, eps = 0.5 } },
    { sizes = { J = 2, S = 3, W = "R", E = "H*D" }, counts = "pos", options = { window = 1, eps = 0.5 } } },
  kv_slots = { { counts = "pos", options = { pinned = 1 } }, { counts = "pos" } },
  kv_chunk_slots = { { sizes = { C = "T + 1 - (T + 1) % 2", W = 4 }, counts = "pos", options = { chunk = 2 } } },
  gated_scan = scans(), log_scan = scans(), complex_scan = scans { D = "2*T" },
  cumsum = along, cumprod = along,
  lambda_returns = { { sizes = { S = "T+1" } } },
  a2c_loss = { { sizes = { S = "T+1" }, stopped = "values" } },
  frame_stack = { { sizes = { P = 3 } }, { sizes = { P = 1 }, options = { frames = 2 } },
    { absent = "done past", options = { frames = 3 } } },
  rmt = { { sizes = with_layers { P = gated }, options = with_heads {} },
    { sizes = with_layers { P = plain_layer }, options = with_heads { flow = "postnorm", segment = 2 } },
    { sizes = with_layers { P = plain_layer }, options = with_heads { flow = "residual", segment = 3 }, absent = "done mem" } },
  rmt_memory = { { sizes = with_layers { P = gated, K = slots(4) }, options = with_heads {} },
    { sizes = with_layers { P = plain_layer, K = slots(2) }, options = with_heads { flow = "postnorm", segment = 2 } } },
  rmt_weights = { { sizes = with_layers { P = gated, K = slots(4) }, options = with_heads {} },
    { sizes = with_layers { P = plain_layer, K = slots(2) }, options = with_heads { flow = "postnorm", segment = 2 } } },
  ppo_loss = { {}, { options = { clip = 0.9, clip_values = 1, normalise_advantages = 0 } } },
  gru = { { sizes = { G = "3*D" } }, { sizes = { G = "3*D" }, absent = "done h" } },
  wkv7 = { { small = "out back" }, { small = "out back", absent = "done S" } },
  lstm = { { sizes = { G = "4*D" } }, { sizes = { G = "4*D" }, absent = "done h c" } },
  slstm_gate = { { sizes = { G = "4*D" }, positive = "n" } },
  attention = { { flags = "mask", sizes = { F = "M+T" }, options = { window = 3 } },
    { absent = "mk mv mask", sizes = { F = "T" } },
    { absent = "u w r mask done" }, { absent = "mk mv mask done u w r", options = { window = 2 } } },
  attention_weights = { { flags = "mask", sizes = { F = "M+T" }, options = { window = 3 } }, { absent = "mk mv mask done u w r" } },
  input_attention = { { flags = "mask", sizes = { F = "M+T" }, options = { window = 3 } }, { flags = "mask", sizes = { F = "M+T" }, absent = "done" } },
  input_attention_weights = { { flags = "mask", sizes = { F = "M+T" }, options = { window = 3 } } },
  memory_push = { { sizes = { C = "L*D" } }, { sizes = { C = "L*D", M = "T+2" } }, { sizes = { C = "L*D", T = "M+2" } } },
  memory_read = { { flags = "mask" },
    { flags = "mask", absent = "done", options = { level = 1 } } },
  memory_push_mask = { { flags = "mask" }, { flags = "mask", absent = "done" } },
  head_linear = { { sizes = { P = "2*H" } },
    { sizes = { P = "2*H" }, absent = "b", options = { act = "elu1" } } },
  linear_attention = attention { { any = factored },
    { any = plain, absent = "p_q p_k p_gamma done" },
    { any = { beta = { 1 }, C = { "D" }, s = { "D" } }, absent = "p_q p_k p_gamma gamma" },
    { any = plain, absent = "p_q p_k p_gamma beta gamma", options = { normalise = 0 } },
    { any = apart, apart = true }, { any = by_head, apart = true, absent = "p_q p_k write_v keep_v p_write_k" },
    { any = apart, apart = true, absent = "write_v write_k p_write_k done" }, { any = values_by_head, apart = true, cpu = true },
    { any = { C = { "D" }, s = { "D" } }, apart = true, absent = "p_q p_k write_v keep_v write_k p_write_k keep_k" } },
  joint_gate_attention = attention { { any = factored },
    { any = apart, apart = true }, { any = apart, apart = true, absent = "write_v write_k p_write_k" },
    { any = plain, absent = "p_q p_k p_gamma C s" }, { any = values_by_head, apart = true, cpu = true } },
  delta_rule = { { sizes = { P = "H" }, small = "k", positive = "q k s write" },
    { sizes = { P = "H" }, small = "k", positive = "write", absent = "C s done", options = { erase = "after", normalise = 0 } },
    { sizes = { P = "2*H" }, small = "k", positive = "write", absent = "keep", options = { normalise = 0 } },
    { sizes = { P = "3*H" }, small = "k", positive = "q k s write" },
    { sizes = { P = "3*H" }, small = "k", positive = "q k s write", options = { erase = "after", den_clamp = 0.1 } } },
  short_conv = { { sizes = { W = 4 }, any = { state = { 3 } } }, { absent = "state done" },
    { any = { state = { "W-1" } }, options = { act = "silu" } } },
  normalise = { {}, { options = { by = "sum" }, positive = "x" }, { options = { by = "rms" } } },
  agalite = attention { { any = waves }, { any = waves, sizes = { D = 16 } }, { any = waves, sizes = { D = 16, E = 5 }, absent = "done" },
    { any = waves, absent = "vs ks s done", options = { form = "paper", r = 3 } },
    { any = { gamma = { "D" } }, absent = "p_q p_k p_gamma vs ks s",
      options = { form = "cossin", r = 4, normalise = 0 } },
    { any = { gamma = { "D" }, vs = { 5 }, ks = { 5, "D" }, s = { "D" } }, absent = "p_q p_k p_gamma",
      options = { form = "random_sign", r = 5, seed = 3 } },
    { any = apart, apart = true }, { any = apart, apart = true, absent = "keep_v write_k p_write_k", options = { form = "paper", r = 1 } },
    { any = values_by_head, apart = true, cpu = true } },
  -- More columns than tokens: where something is discarded, no quotient equals the gradient.
  low_rank_attention = attention { { any = factored, absent = "U W s", options = { r = 24 } },
    { any = plain, absent = "p_q p_k p_gamma done U W s", options = { r = 24, normalise = 0 } },
    { any = { beta = { 1 } }, absent = "p_q p_k p_gamma gamma U W s", options = { r = 24, den_clamp = 0.1 } },
    { any = apart, apart = true, absent = "U W s", options = { r = 24 } } },
}

hints.scatter = hints.scatter_add

return hints
