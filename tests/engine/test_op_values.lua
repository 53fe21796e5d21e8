-- test_op_values.lua -- what the basic ops compute, against plain Lua in double precision, and how
-- exact exp, log, tanh, sigmoid and erf are over all floats.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"
local mn = require "mneme"
local ops = mn.ops

-- A leaf of the shape with numbers that are neither regular nor near 0.
local function leaf(shape, options)
  local x = mn.tensor { shape = shape, grad = options and options.grad,
    dtype = options and options.dtype }
  local p = x:data()
  for i = 0, x:size() - 1 do p[i] = ((i * 7919 + 13) % 101 - 50.5) / 25 end
  return x
end

local function same_shape(x, shape, name)
  t.eq(table.concat(x:shape(), ","), table.concat(shape, ","), name .. ": shape")
end

-- Every number of x is f(0-based indices).
local function is(name, x, shape, f, tolerance)
  same_shape(x, shape, name)
  local p, at = x:data(), {}
  local function walk(axis, offset)
    if axis > #shape then
      local want = f(unpack(at))
      t.near(p[offset], want, (tolerance or 2e-6) * math.max(1, math.abs(want)),
        name .. "[" .. table.concat(at, ",") .. "]")
      return
    end
    for i = 0, shape[axis] - 1 do
      at[axis] = i
      walk(axis + 1, offset * shape[axis] + i)
    end
  end
  walk(1, 0)
end

t.test("broadcasting matches shapes from the right", function()
  local a, b, c = leaf { 2, 1, 3 }, leaf { 4, 1 }, leaf { 3 }
  local p, q, r = a:data(), b:data(), c:data()
  is("add", ops.add(a, b), { 2, 4, 3 }, function(i, j, k) return p[i * 3 + k] + q[j] end)
  is("sub", ops.sub(b, c), { 4, 3 }, function(j, k) return q[j] - r[k] end)
  is("mul", ops.mul(c, a), { 2, 1, 3 }, function(i, _, k) return r[k] * p[i * 3 + k] end)
  is("div", ops.div(a, c), { 2, 1, 3 }, function(i, _, k) return p[i * 3 + k] / r[k] end)
  is("maximum", ops.maximum(a, b), { 2, 4, 3 }, function(i, j, k)
    return math.max(p[i * 3 + k], q[j])
  end)
  is("minimum", ops.minimum(a, b), { 2, 4, 3 }, function(i, j, k)
    return math.min(p[i * 3 + k], q[j])
  end)
  local mask = mn.tensor { data = { { 1 }, { 0 }, { 0 }, { 1 } }, dtype = "u8" }
  is("where", ops.where(mask, c, b), { 4, 3 }, function(j, k)
    return (j == 0 or j == 3) and r[k] or q[j]
  end)
  t.fails(function() ops.add(leaf { 2, 3 }, leaf { 3, 2 }) end)
  t.fails(function() ops.mul(leaf { 4 }, leaf { 2, 3 }) end)
  mn.clear_tape()
end)

t.test("the gradient of what was repeated is the sum, however long", function()
  local n = 3000                     -- long enough for partial sums
  local a, b, c = leaf { n, 40 }, leaf({ 40 }, { grad = true }), leaf({ n, 1 }, { grad = true })
  ops.mul(ops.mul(a, b), c):sum():backward()
  local p, q, r, gb, gc = a:data(), b:data(), c:data(), b:grad_data(), c:grad_data()
  for j = 0, 39, 13 do
    local want, size = 0, 0
    for i = 0, n - 1 do
      want, size = want + p[i * 40 + j] * r[i], size + math.abs(p[i * 40 + j] * r[i])
    end
    t.near(gb[j], want, 1e-7 * size, "b")
  end
  for i = 0, n - 1, 977 do
    local want = 0
    for j = 0, 39 do want = want + p[i * 40 + j] * q[j] end
    t.near(gc[i], want, 1e-5, "c")
  end
  mn.clear_tape()
end)

t.test("maximum, max, relu and abs at ties", function()
  local a, b = mn.tensor { data = { 1, 2, 2 }, grad = true },
    mn.tensor { data = { 2, 2, 1 }, grad = true }
  ops.maximum(a, b):sum():backward()
  t.eq(table.concat(a:grad():to_table(), " "), "0 1 1")
  t.eq(table.concat(b:grad():to_table(), " "), "1 0 0")
  local x = mn.tensor { data = { 3, 7, 7 }, grad = true }
  local y, index = ops.max(x)
  y:backward()
  t.eq(y:item(), 7) t.eq(index:item(), 1)
  t.eq(table.concat(x:grad():to_table(), " "), "0 1 0")
  local zero = mn.tensor { data = { 0 }, grad = true }
  ops.add(ops.relu(zero), ops.abs(zero)):sum():backward()
  t.eq(zero:grad():item(), 0)
  mn.clear_tape()
end)

t.test("a NaN is never lost", function()
  local bad = mn.tensor { 0 / 0, 1 }
  for _, name in ipairs { "exp", "log", "tanh", "sigmoid", "softplus", "relu", "clamp", "elu1",
    "erf", "gelu", "silu", "softmax", "log_softmax", "logsumexp", "sum", "mean", "max" } do
    local y = ops[name](bad):data()[0]
    t.ok(y ~= y, name)
  end
  for _, name in ipairs { "maximum", "minimum" } do
    local y, z = ops[name](bad, mn.tensor { 5, 5 }):data()[0],
      ops[name](mn.tensor { 5, 5 }, bad):data()[0]
    t.ok(y ~= y and z ~= z, name)
  end
  mn.clear_tape()
end)

t.test("a sum keeps its last axis as 1, refuses an axis that is not there, and of many numbers is exact", function()
  same_shape(ops.sum(leaf { 4 }, { axis = 0 }), { 1 }, "the last axis stays as 1")
  t.fails(function() ops.sum(leaf { 3, 4, 5 }, { axis = 3 }) end)
  local long = mn.tensor { shape = { 300001 } }:fill(0.1)
  t.near(ops.sum(long):item(), 300001 * tonumber(ffi.new("float", 0.1)), 0.004)
  mn.clear_tape()
end)

t.test("softmax, log_softmax and logsumexp, also far from 0", function()
  for _, shift in ipairs { 0, 5000, -5000 } do
    local x = ops.scale(leaf { 3, 7 }, { b = shift })
    local p = x:data()
    local function lse(i)
      local s = 0
      for k = 0, 6 do s = s + math.exp(p[i * 7 + k] - shift) end
      return shift + math.log(s)
    end
    is("softmax", ops.softmax(x), { 3, 7 }, function(i, k)
      return math.exp(p[i * 7 + k] - lse(i))
    end)
    is("log_softmax", ops.log_softmax(x), { 3, 7 }, function(i, k) return p[i * 7 + k] - lse(i) end)
    is("logsumexp", ops.logsumexp(x), { 3 }, function(i) return lse(i) end)
  end
  mn.clear_tape()
end)

t.test("logsumexp of infinities is torch's, and a row of -inf alone has gradient 0", function()
  local inf, nan = math.huge, 0 / 0
  for row, want in pairs { [{ -inf, -inf, -inf }] = { -inf, 0, 0, 0 }, [{ inf, 2, -inf }] = { inf, nan, 0, 0 }, [{ inf, inf, 1 }] = { inf, nan, nan, 0 },
    [{ -inf, 3, -inf }] = { 3, 0, 1, 0 }, [{ -inf, nan, -inf }] = { nan, nan, nan, nan }, [{ inf, nan, 0 }] = { nan, nan, nan, nan } } do
    local x = mn.tensor { data = row, grad = true }
    local y = ops.logsumexp(x)
    y:sum():backward()
    local got = { y:item(), x:grad_data()[0], x:grad_data()[1], x:grad_data()[2] }
    for i = 1, 4 do
      local a, b = got[i], want[i]
      t.ok(a == b or a ~= a and b ~= b, ("row %g %g %g: value %d is %g, expected %g"):format(row[1], row[2], row[3], i, a, b))
    end
  end
  mn.clear_tape()
end)

t.test("matmul, with one matrix or one each", function()
  local a, b, each = leaf { 2, 3, 4 }, leaf { 4, 5 }, leaf { 2, 4, 5 }
  local p, q, r = a:data(), b:data(), each:data()
  local function dot(i, j, k, z, offset)
    local s = 0
    for m = 0, 3 do s = s + p[(i * 3 + j) * 4 + m] * z[offset + m * 5 + k] end
    return s
  end
  is("shared", ops.matmul(a, b), { 2, 3, 5 }, function(i, j, k) return dot(i, j, k, q, 0) end)
  is("each", ops.matmul(a, each), { 2, 3, 5 }, function(i, j, k) return dot(i, j, k, r, i * 20) end)
  t.fails(function() ops.matmul(a, leaf { 3, 5 }) end)
  t.fails(function() ops.matmul(a, leaf { 3, 4, 5 }) end)
  t.fails(function() ops.matmul(leaf { 4 }, b) end)
  mn.clear_tape()
end)

t.test("layer_norm uses the population variance", function()
  local x, w, b = leaf { 5, 2, 6 }, leaf { 6 }, leaf { 6 }
  local p, q, r = x:data(), w:data(), b:data()
  is("layer_norm", (ops.layer_norm { x = x, weight = w, bias = b, eps = 1e-3 }), { 5, 2, 6 },
    function(i, j, k)
    local at, mean, var = (i * 2 + j) * 6, 0, 0
    for m = 0, 5 do mean = mean + p[at + m] / 6 end
    for m = 0, 5 do var = var + (p[at + m] - mean) ^ 2 / 6 end
    return (p[at + k] - mean) / math.sqrt(var + 1e-3) * q[k] + r[k]
  end, 5e-6)
  mn.clear_tape()
end)

t.test("moving numbers about, from transpose to outer", function()
  local x = leaf { 3, 4, 5 }
  local p = x:data()
  local function at(i, j, k) return p[(i * 4 + j) * 5 + k] end
  is("0,2", ops.transpose(x, { a = 0, b = 2 }), { 5, 4, 3 }, function(k, j, i)
    return at(i, j, k)
  end, 0)
  is("1,-1", ops.transpose(x, { a = 1, b = -1 }), { 3, 5, 4 }, function(i, k, j)
    return at(i, j, k)
  end, 0)
  is("0,1", ops.transpose(x), { 4, 3, 5 }, function(j, i, k) return at(i, j, k) end, 0)
  is("slice", ops.slice(x, { axis = 1, from = -3, to = 3 }), { 3, 2, 5 }, function(i, j, k)
    return at(i, j + 1, k)
  end, 0)
  local rest = ops.slice(x, { axis = -1, from = 2 })
  is("slice to the end", rest, { 3, 4, 3 }, function(i, j, k) return at(i, j, k + 2) end, 0)
  is("concat", ops.concat(ops.slice(x, { axis = -1, to = 2 }), rest), { 3, 4, 5 }, at, 0)
  is("concat rows", ops.concat(x, x, { axis = 0 }), { 6, 4, 5 }, function(i, j, k)
    return at(i % 3, j, k)
  end, 0)
  is("reshape", ops.reshape(x, { d0 = 3, d1 = 2, d2 = -1 }), { 3, 2, 10 }, function(i, j, k)
    return p[(i * 2 + j) * 10 + k]
  end, 0)
  local index = mn.tensor { data = { { 4, 0, 1, 2 }, { 3, 3, 0, 1 }, { 0, 1, 2, 4 } },
    dtype = "i32" }
  local c = index:data()
  is("pick", ops.pick(x, index), { 3, 4 }, function(i, j) return at(i, j, c[i * 4 + j]) end, 0)
  local w = leaf { 5, 3 }
  is("embedding", ops.embedding(w, index), { 3, 4, 3 }, function(i, j, d)
    return w:data()[c[i * 4 + j] * 3 + d]
  end, 0)
  is("one_hot", ops.one_hot(index, { classes = 4 }), { 3, 4, 4 }, function(i, j, a)
    return c[i * 4 + j] == a and 1 or 0
  end, 0)
  local e = leaf { 3, 4, 2 }
  is("outer", ops.outer(e, x), { 3, 4, 10 }, function(i, j, n)     -- eta-major
    return e:data()[(i * 4 + j) * 2 + math.floor(n / 5)] * at(i, j, n % 5)
  end)
  t.fails(function() ops.slice(x, { axis = 1, from = 4 }) end)
  t.fails(function() ops.slice(x, { from = 2, to = 1 }) end)
  t.fails(function() ops.concat(x, leaf { 3, 3, 5 }) end)
  t.fails(function() ops.concat(x, leaf { 3, 4 }) end)
  t.fails(function() ops.reshape(x, { d0 = 7, d1 = -1 }) end)
  t.fails(function() ops.reshape(x, { d0 = -1, d1 = -1 }) end)
  t.raises(function() ops.reshape(x, { d0 = 3, d2 = 20 }) end, "reshape: d1 is 0")
  t.raises(function() ops.transpose(x, { a = 0.5 }) end, "transpose: a is 0.5")
  t.fails(function() ops.one_hot(index) end)
  t.fails(function() ops.clamp(x, { lo = 2, hi = 1 }) end)
  -- 2^66 numbers, which a 64-bit product takes for none
  local n = 4194304
  local a, b = mn.tensor { shape = { 1, n, 1 } }, mn.tensor { shape = { 1, 1, n } }
  t.fails(function() ops.where { mask = mn.tensor { shape = { n, 1, 1 }, dtype = "u8" }, a = a, b = b } end)
  mn.clear_tape()
end)

t.test("an embedding's gradient adds up over repeated indices", function()
  local w = leaf({ 3, 2 }, { grad = true })
  local y = ops.embedding(w, mn.tensor { data = { 2, 0, 2 }, dtype = "i32" })
  ops.mul(y, mn.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }):sum():backward()
  local g = w:grad():to_table()
  t.eq(table.concat({ g[1][1], g[1][2], g[2][1], g[2][2], g[3][1], g[3][2] }, " "), "3 4 0 0 6 8")
  mn.clear_tape()
end)

-- ---- learning ----

local T, B, A = 5, 3, 4
local rewards, values, logits = leaf { T, B }, leaf({ T + 1, B }, { grad = true }),
  leaf({ T + 1, B, A }, { grad = true })
local done = mn.tensor { shape = { T + 1, B }, dtype = "u8" }
local actions = mn.tensor { shape = { T, B }, dtype = "i32" }
done:data()[3 * B + 1], done:data()[T * B + 2], done:data()[0] = 1, 1, 1
for i = 0, T * B - 1 do actions:data()[i] = i % A end

t.test("lambda_returns stops at the end of an episode", function()
  local gamma, lambda = 0.9, 0.7
  local g, advantage = ops.lambda_returns { rewards = rewards, values = values, done = done,
    gamma = gamma, lambda = lambda }
  local r, v, d = rewards:data(), values:data(), done:data()
  local function returns(i, b)
    if i == T then return v[T * B + b] end
    local n = (i + 1) * B + b
    return r[i * B + b] + gamma * (1 - d[n]) * ((1 - lambda) * v[n] + lambda * returns(i + 1, b))
  end
  is("returns", g, { T, B }, returns)
  is("advantages", advantage, { T, B }, function(i, b) return returns(i, b) - v[i * B + b] end)
  t.fails(function() ops.lambda_returns { rewards = rewards, values = leaf { T, B },
    done = mn.tensor { shape = { T, B }, dtype = "u8" } } end)
  mn.clear_tape()
end)

t.test("the advantages of lambda_returns are GAE", function()
  local gamma, lambda = 0.9, 0.7
  local _, advantage = ops.lambda_returns { rewards = rewards, values = values, done = done,
    gamma = gamma, lambda = lambda }
  local r, v, d = rewards:data(), values:data(), done:data()
  local function gae(i, b)               -- Schulman et al. 2016, equation 16, one step at a time
    if i == T then return 0 end
    local n, live = (i + 1) * B + b, 1 - d[(i + 1) * B + b]
    return r[i * B + b] + gamma * live * v[n] - v[i * B + b] + gamma * lambda * live * gae(i + 1, b)
  end
  is("advantages", advantage, { T, B }, gae)
  mn.clear_tape()
end)

t.test("frame_stack shows the oldest frame first, and zeros where another episode was", function()
  local x = mn.tensor { { { 1 }, { 10 } }, { { 2 }, { 20 } }, { { 3 }, { 30 } }, { { 4 }, { 40 } } }
  local past = mn.tensor { { { -2 }, { -1 } }, { { -20 }, { -10 } } }
  local starts = mn.tensor { shape = { 4, 2 }, dtype = "u8", data = { { 0, 1 }, { 0, 0 }, { 1, 0 }, { 0, 0 } } }
  local y, after = ops.frame_stack { x = x, done = starts, past = past, frames = 3 }
  local want = { { { -2, -1, 1 }, { 0, 0, 10 } }, { { -1, 1, 2 }, { 0, 10, 20 } },
    { { 0, 0, 3 }, { 10, 20, 30 } }, { { 0, 3, 4 }, { 20, 30, 40 } } }
  is("frames", y, { 4, 2, 3 }, function(i, b, k) return want[i + 1][b + 1][k + 1] end)
  is("state", after, { 2, 2, 1 }, function(b, k) return want[4][b + 1][k + 2] end)
  t.fails(function() ops.frame_stack { x = x, frames = 1 } end)
  t.fails(function() ops.frame_stack { x = mn.tensor { shape = { 1, 1, 1048577 } }, frames = 4096 } end)
  t.fails(function() ops.frame_stack { x = x, past = past } end)
  mn.clear_tape()
end)

t.test("a2c_loss and its gradients", function()
  local returns, ce, cv = leaf { T, B }, 0.02, 0.4
  values:zero_grad() logits:zero_grad()
  local loss, actor, value, entropy = ops.a2c_loss { logits = logits, values = values,
    returns = returns, actions = actions,
    entropy_coef = ce, value_coef = cv }
  loss:backward()
  local z, v, g, a = logits:data(), values:data(), returns:data(), actions:data()
  local N, want_actor, want_value, want_entropy = T * B, 0, 0, 0
  local log_p, H = {}, {}
  for i = 0, N - 1 do
    local s, h = 0, 0
    for k = 0, A - 1 do s = s + math.exp(z[i * A + k]) end
    for k = 0, A - 1 do
      log_p[i * A + k] = z[i * A + k] - math.log(s)
      h = h - math.exp(log_p[i * A + k]) * log_p[i * A + k]
    end
    H[i] = h
    want_actor = want_actor - log_p[i * A + a[i]] * (g[i] - v[i]) / N
    want_value = want_value + (g[i] - v[i]) ^ 2 / N
    want_entropy = want_entropy + h / N
  end
  t.near(actor:item(), want_actor, 2e-6)
  t.near(value:item(), want_value, 2e-6)
  t.near(entropy:item(), want_entropy, 2e-6)
  t.near(loss:item(), want_actor - ce * want_entropy + cv * want_value, 2e-6)
  is("gradient of values", values:grad(), { T + 1, B }, function(i, b)
    return i == T and 0 or -2 * cv * (g[i * B + b] - v[i * B + b]) / N
  end)
  is("gradient of logits", logits:grad(), { T + 1, B, A }, function(i, b, k)
    local at = i * B + b
    if i == T then return 0 end
    local p = math.exp(log_p[at * A + k])
    local chosen = a[at] == k and 1 or 0
    return ((g[at] - v[at]) * (p - chosen) + ce * p * (log_p[at * A + k] + H[at])) / N
  end)
  mn.clear_tape()
end)

-- ---- maths.h ----

local number = ffi.new "union { float x; uint32_t u; }"

-- Distance of a float from the true value, in units of the last place of the true value.
local function ulps(got, want)
  if want ~= want then return got ~= got and 0 or 1e9 end
  if math.abs(want) >= 3.4028236e38 then
    return (got == want or math.abs(got) > 3.4028234e38) and 0 or 1e9
  end
  if got ~= got or math.abs(got) == math.huge then return 1e9 end
  number.x = want
  local e = bit.band(bit.rshift(number.u, 23), 255)
  return math.abs(got - want) / 2 ^ (math.max(e, 1) - 150)
end

-- What counts as zero while an op runs (engine/base/denormals.h), as what goes in and as what comes out.
local function flushed(x) return math.abs(x) < 2 ^ -126 and 0 or x end

ffi.cdef "double erf(double x);"
local function log1p(y) local u = 1 + y return u == 1 and y or math.log(u) * y / (u - 1) end
local exact = {
  { "exp", math.exp, 1 }, { "log", math.log, 1 }, { "tanh", math.tanh, 2.7 },
  { "sigmoid", function(x) return 1 / (1 + math.exp(-x)) end, 2.5 },
  { "softplus", function(x) return math.max(x, 0) + log1p(math.exp(-math.abs(x))) end, 1.8 },
  { "erf", ffi.C.erf, 1.2 },
}

for _, case in ipairs(exact) do
  local name, f, most = unpack(case)
  t.test(("%s is within %.1f ulp of the true value for all normal floats"):format(name, most), function()
    local n = 250007                       -- every 17179th float, and a dense stretch around 0
    local x = mn.tensor { shape = { n } }
    local p = x:data()
    for i = 0, n - 1 do
      if i % 2 == 0 then number.u = i * 17179 else number.x = (i / n - 0.5) * 40 end
      if bit.band(number.u, 0x7fffffff) > 0x7f800000 then number.u = 0x7fc00000 end       -- other NaNs are no numbers to LuaJIT's interpreter
      p[i] = number.x
    end
    local special = { 0, -1 / math.huge, math.huge, -math.huge, 0 / 0, 1e-45, -1e-45, 88.73, -103.98, -87.4,
      3.4e38, -3.4e38 }                                -- the literal -0.0 is 0 to LuaJIT on arm64
    for i, v in ipairs(special) do p[i] = v end
    local y = ops[name](x):data()
    for i = 0, n - 1 do
      local given = flushed(tonumber(p[i]))
      local want = flushed(f(given))
      local error_of = ulps(flushed(y[i]), want)
      -- The logarithm of a number that is not quite zero may be that of the smallest, or of a negative one.
      if name == "log" and given == 0 and p[i] ~= 0 and (y[i] < -87.3 or p[i] < 0) then error_of = 0 end
      if error_of > most then
        t.ok(false, ("%s(%.9g) = %.9g, expected %.9g: %.2f ulp"):format(name, p[i], y[i], want, error_of))
      end
    end
    mn.clear_tape()
  end)
end

t.test("tanh keeps the sign of zero; the limits are exact", function()
  local x = mn.tensor { -1 / math.huge, math.huge, -math.huge, 30 }          -- -0: LuaJIT for arm64 reads the literal as 0
  local y = ops.tanh(x):data()
  t.eq(1 / y[0], -math.huge) t.eq(y[1], 1) t.eq(y[2], -1) t.eq(y[3], 1)
  local s = ops.sigmoid(x):data()
  t.eq(s[0], 0.5) t.eq(s[1], 1) t.eq(s[2], 0)
  local e = ops.exp(x):data()
  t.eq(e[0], 1) t.eq(e[1], math.huge) t.eq(e[2], 0)
  mn.clear_tape()
end)

-- A number's result does not depend on its place: not on the vector it falls in, nor on its
-- neighbours.
t.test("the same bits wherever a number stands", function()
  for _, name in ipairs { "exp", "log", "tanh", "sigmoid", "softplus", "elu1", "silu", "erf", "gelu" } do
    local x = leaf { 67 }
    local whole, p = ops[name](x):data(), x:data()
    for i = 0, 66 do
      local one = ops[name](mn.tensor { p[i] }):data()[0]
      t.ok(one == whole[i] or (one ~= one and whole[i] ~= whole[i]), name)
    end
    mn.clear_tape()
  end
end)
