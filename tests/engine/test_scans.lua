-- test_scans.lua -- what the scans compute, against plain Lua in double precision: gated_scan, complex_scan, log_scan, running_max with
-- its decay, cumsum and cumprod; and where they could go wrong: resets, logarithms of zero, zeros in a product, large exponents.
local t = require "tests.harness"
local mn = require "mneme"
local ops = mn.ops

local T, B, D = 19, 3, 4
local RESETS = { [0] = { [7] = true, [8] = true }, { [0] = true, [18] = true }, {} }

local seed = 1
local function random()
  seed = (seed * 16807) % 2147483647
  return 2 * seed / 2147483647 - 1
end
local function leaf(shape, scale, grad)
  local x = mn.tensor { shape = shape, grad = grad }
  for i = 0, x:size() - 1 do x:data()[i] = (scale or 1) * random() end
  return x
end
local function resets()
  local done = mn.tensor { shape = { T, B }, dtype = "u8" }
  for b = 0, B - 1 do for step in pairs(RESETS[b]) do done:data()[step * B + b] = 1 end end
  return done
end

-- Walks time as the equations say.  f(b, i, at, before) is the value of channel i at element `at`; before: nil where there is none.
local function walk(first, n, f)
  local y = {}
  for b = 0, B - 1 do
    for i = 0, n - 1 do
      local before = first and first(b, i)
      for step = 0, T - 1 do
        if RESETS[b][step] then before = nil end
        before = f(b, i, (step * B + b) * n + i, before)
        y[(step * B + b) * n + i] = before
      end
    end
  end
  return y
end

local function equal(name, x, want, tolerance)
  local p, n = x:data(), x:size()
  for k = 0, n - 1 do t.near(p[k], want[k], (tolerance or 2e-6) * math.max(1, math.abs(want[k])), name .. "[" .. k .. "]") end
end
local function last(name, x, want)
  local p, n = x:data(), x:size()
  for k = 0, n - 1 do t.near(p[k], want[(T - 1) * n + k], 2e-6 * math.max(1, math.abs(p[k])), name .. "'[" .. k .. "]") end
end

t.test("gated_scan: h = a h + x, a of any sign and size", function()
  local x, a, c, h, done = leaf { T, B, D }, leaf({ T, B, D }, 1.5), leaf({ D }, 1.2), leaf { B, D }, resets()
  for name, factor in pairs { ["each step"] = function(at) return a:data()[at] end, constant = function(_, i) return c:data()[i] end } do
    local y, final = ops.gated_scan { x = x, a = name == "constant" and c or a, done = done, h = h }
    local want = walk(function(b, i) return h:data()[b * D + i] end, D,
      function(_, i, at, before) return factor(at, i) * (before or 0) + x:data()[at] end)
    equal(name, y, want)
    last(name, final, want)
  end
  local matrix = ops.gated_scan { x = x:reshape(T, B, 2, 2), a = a:reshape(T, B, 2, 2), done = done, h = h:reshape(B, 2, 2) }
  local flat = ops.gated_scan { x = x, a = a, done = done, h = h }
  for k = 0, flat:size() - 1 do t.eq(matrix:data()[k], flat:data()[k]) end
  mn.clear_tape()
end)

t.test("gated_scan, complex_scan, log_scan: a NaN does not outlive its episode", function()
  for _, name in ipairs { "gated_scan", "complex_scan", "log_scan" } do
    local x, a = leaf { T, B, D }, leaf { T, B, D }
    x:data()[3 * B * D] = 0 / 0
    a:data()[7 * B * D] = 0 / 0
    local y = ops[name] { x = x, a = a, done = resets() }
    t.ok(y:data()[6 * B * D] ~= y:data()[6 * B * D], name .. ": lost")
    t.ok(y:data()[7 * B * D] == x:data()[7 * B * D], name .. ": kept")
  end
  mn.clear_tape()
end)

t.test("complex_scan: real parts, then imaginary parts", function()
  local N = D / 2
  local x, a, c, h, done = leaf { T, B, D }, leaf { T, B, D }, leaf { D }, leaf { B, D }, resets()
  for _, factors in ipairs { a, c } do
    local constant = #factors:shape() == 1
    local y, final = ops.complex_scan { x = x, a = factors, done = done, h = h }
    local want, p, q = {}, factors:data(), x:data()
    walk(function(b, i) return { h:data()[b * D + i], h:data()[b * D + i + N] } end, N, function(_, i, at, before)
      local re = math.floor(at / N) * D + i                      -- element `at` of N channels is two of D
      local ar, ai = p[constant and i or re], p[(constant and i or re) + N]
      local hr, hi = before and before[1] or 0, before and before[2] or 0
      want[re], want[re + N] = ar * hr - ai * hi + q[re], ar * hi + ai * hr + q[re + N]
      return { want[re], want[re + N] }
    end)
    equal("y", y, want)
    last("h", final, want)
  end
  t.fails(function() ops.complex_scan { x = leaf { 2, 1, 3 }, a = leaf { 3 } } end)
  t.fails(function() ops.complex_scan { x = leaf { 2, 1, 4 }, a = leaf { 2 } } end)
  mn.clear_tape()
end)

t.test("log_scan: the logarithm of gated_scan, where that overflows, too", function()
  local x, a, h, done = leaf({ T, B, D }, 3), leaf({ T, B, D }, 2), leaf({ B, D }, 3), resets()
  local y, final = ops.log_scan { x = x, a = a, done = done, h = h }
  local plain, end_of_plain = ops.gated_scan { x = x:exp(), a = a:exp(), done = done, h = h:exp() }
  equal("y", y, plain:log():data(), 2e-5)
  equal("h'", final, end_of_plain:log():data(), 2e-5)
  local big = ops.log_scan { x = x * 1000, a = a * 100, done = done, h = h * 1000 }
  equal("large", big, walk(function(b, i) return 1000 * h:data()[b * D + i] end, D, function(_, _, at, before)
    local p, q = before and 100 * a:data()[at] + before, 1000 * x:data()[at]
    if not p then return q end
    return math.max(p, q) + math.log(1 + math.exp(-math.abs(p - q)))
  end), 3e-6)
  mn.clear_tape()
end)

t.test("log_scan: the logarithm of 0 is a value like others", function()
  local nothing = -math.huge
  local x = mn.tensor { data = { { { nothing } }, { { nothing } }, { { 2 } }, { { nothing } } }, grad = true }
  local a = mn.tensor { data = { { { 1 } }, { { -1 } }, { { 0 } }, { { -3 } } }, grad = true }
  local h = mn.tensor { data = { { nothing } }, grad = true }
  local y = ops.log_scan { x = x, a = a, h = h }
  t.eq(table.concat({ y:data()[0], y:data()[1], y:data()[2], y:data()[3] }, " "), "-inf -inf 2 -1")
  y:slice(0, 2):sum():backward()
  for k, want in ipairs { { 0, 0 }, { 0, 0 }, { 2, 0 }, { 0, 1 } } do
    t.eq(x:grad_data()[k - 1], want[1], "x " .. k)
    t.eq(a:grad_data()[k - 1], want[2], "a " .. k)
  end
  t.eq(h:grad_data()[0], 0)
  mn.clear_tape()
end)

-- xLSTM's stabiliser and the gates that it makes; exact: in double, for the maxima that the op gave.
t.test("running_max with a: m = max(a + m, z), and shrink as exact for large exponents", function()
  local H, M = 2, 3
  for _, scale in ipairs { 1, 300 } do
    local z, a, c, done = leaf({ T, B, H, M }, scale), leaf({ T, B, H }, scale), leaf({ B, H }, scale), resets()
    local top, shrink, final = ops.running_max { z = z, a = a, c = c, done = done }
    local p, m = a:data(), top:data()
    local want = walk(function(b, h) return c:data()[b * H + h] end, H, function(_, _, at, before)
      local most = before and before + p[at] or -math.huge
      for k = 0, M - 1 do most = math.max(most, z:data()[at * M + k]) end
      return most
    end)
    equal("top", top, want)
    last("c", final, want)
    for at = 0, shrink:size() - 1 do
      local step, b = math.floor(at / (B * H)), math.floor(at / H) % B
      local before = step > 0 and m[at - B * H] or c:data()[at]
      local exact = RESETS[b][step] and 0 or math.exp(p[at] + before - m[at])
      local rounding = exact > 0 and exact * (3e-7 - 6e-8 * math.log(exact)) or 0           -- of exp, and of its argument
      t.near(shrink:data()[at], exact, math.max(rounding, 1e-30), ("shrink[%d] at scale %g"):format(at, scale))
      t.ok(shrink:data()[at] <= 1, "shrink is above 1")
    end
  end
  mn.clear_tape()
end)

t.test("cumsum and cumprod along any axis", function()
  local x = leaf { 3, 5, 11 }
  local p = x:data()
  for axis, stride in ipairs { 55, 11, 1 } do
    local size = x:shape()[axis]
    local sums, products = {}, {}
    for k = 0, x:size() - 1 do
      local first = math.floor(k / stride) % size == 0
      sums[k], products[k] = p[k] + (first and 0 or sums[k - stride]), p[k] * (first and 1 or products[k - stride])
    end
    equal("cumsum", x:cumsum(axis - 1), sums)
    equal("cumprod", x:cumprod(axis - 1), products)
    equal("cumsum from the end", x:cumsum(axis - 4), sums)
  end
  t.fails(function() x:cumsum(3) end)
  t.fails(function() ops.cumsum { x = x, axis = 1, done = mn.tensor { shape = { 3, 5 }, dtype = "u8" } } end)
  t.fails(function() ops.cumprod { x = x, done = mn.tensor { shape = { 3, 4 }, dtype = "u8" } } end)
  local many = mn.tensor { shape = { 1000000 } }:fill(0.1)
  t.near(many:cumsum():data()[999999], 1e6 * many:data()[0], 0.01)
  mn.clear_tape()
end)

t.test("cumsum and cumprod begin again where an episode does", function()
  local x, done = leaf { T, B, D }, resets()
  equal("cumsum", ops.cumsum { x = x, done = done }, walk(nil, D, function(_, _, at, before) return (before or 0) + x:data()[at] end))
  equal("cumprod", ops.cumprod { x = x, done = done }, walk(nil, D, function(_, _, at, before) return (before or 1) * x:data()[at] end))
  local ones = mn.tensor { shape = { T, B } }:fill(1)
  equal("steps of each episode", ops.cumsum { x = ones, done = done }, walk(nil, 1, function(_, _, _, before) return (before or 0) + 1 end))
  mn.clear_tape()
end)

t.test("the gradient of cumprod is right where x is 0", function()
  local data, n = { 2, 0, 3, -1, 0, 5 }, 6
  local x, w = mn.tensor { data = data, grad = true }, mn.tensor { 1, -2, 3, 4, 5, 6 }
  ;(x:cumprod() * w):sum():backward()
  for k = 1, n do                                       -- each product without element k, where it has it
    local want = 0
    for i = k, n do
      local product = w:data()[i - 1]
      for j = 1, i do product = product * (j == k and 1 or data[j]) end
      want = want + product
    end
    t.eq(x:grad_data()[k - 1], want, "x " .. k)
  end
  mn.clear_tape()
end)
