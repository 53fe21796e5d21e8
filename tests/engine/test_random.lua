-- test_random.lua -- random numbers for scripts: the published answers of Philox, and their statistics.
local ffi = require "ffi"
local t = require "tests.harness"
local C = require("mneme.base.engine").C

t.test("random numbers: Philox's published answer, prefixes, moments", function()
  local n = 200000
  local a, b = ffi.new("float[?]", n), ffi.new("float[?]", n)
  C.mn_random_uniform(0, 0, 0, a, 4)                         -- Random123's kat_vectors: zero key, zero counter
  for k, word in ipairs { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } do
    t.eq(a[k - 1], math.floor(word / 256) / 2 ^ 24, "word " .. k - 1)
  end
  for _, draw in ipairs { "mn_random_uniform", "mn_random_normal" } do
    C[draw](3, 1, 2, a, n)
    b[5] = 99
    C[draw](3, 1, 2, b, 5)
    for i = 0, 4 do t.eq(a[i], b[i], draw .. ": a shorter draw") end
    t.eq(b[5], 99, draw .. ": wrote too much")
    for _, other in ipairs { { 4, 1, 2 }, { 3, 2, 2 }, { 3, 1, 3 } } do
      C[draw](other[1], other[2], other[3], b, 8)
      t.ok(a[0] ~= b[0] and a[1] ~= b[1], draw .. ": two keys, one stream")
    end
    for _, bad in ipairs { 0, -1, 0 / 0 } do C[draw](1, 1, 1, nil, bad) end
  end
  local m1, m2, m4 = 0, 0, 0
  C.mn_random_normal(1, 0, 0, a, n)
  for i = 0, n - 1 do m1, m2, m4 = m1 + a[i], m2 + a[i] ^ 2, m4 + a[i] ^ 4 end
  t.near(m1 / n, 0, 4 / math.sqrt(n), "mean")
  t.near(m2 / n, 1, 4 * math.sqrt(2 / n), "variance")
  t.near(m4 / n, 3, 4 * math.sqrt(96 / n), "fourth moment")
end)
