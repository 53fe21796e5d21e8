-- lockstep.lua -- for environments that are held against their original step by step: the sums that the scripts of tests/reference
-- record, of values below 2^16 times weights, modulo 2^32.  And means of two samples, for random numbers that only have to agree in
-- distribution.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"

local lockstep = {}

local weight = ffi.new "double[32768]"
local function times(a, b) return tonumber(ffi.cast("uint32_t", ffi.cast("uint64_t", a) * ffi.cast("uint64_t", b))) end
for k = 0, 32767 do
  local x = times(k + 1, 0x9E3779B1)
  x = times(bit.bxor(x, bit.rshift(x, 15)) % 2 ^ 32, 0x2C1B3C6D)
  weight[k] = bit.bor(bit.bxor(x, bit.rshift(x, 12)), 1) % 2 ^ 32
end
lockstep.weight = weight

---Of v[0 .. n-1], the first of which has weight `from`.
function lockstep.sum(v, n, from)
  local s, w = 0, weight + (from or 0)
  for k = 0, n - 1 do
    if v[k] ~= 0 then s = (s + v[k] * w[k]) % 2 ^ 32 end
  end
  return s
end

---Of numbers of which some are negative: those count as the original's 32 bits.
function lockstep.sum_of_whole(v, n)
  local s = 0
  for k = 0, n - 1 do
    local x = v[k] % 2 ^ 32
    s = (s + x % 65536 * weight[k] + math.floor(x / 65536) * weight[k] % 65536 * 65536) % 2 ^ 32
  end
  return s
end

---Of floats, as their halves.
function lockstep.sum_of_floats(v, n) return lockstep.sum(ffi.cast("const uint16_t *", v), 2 * n) end

---Of bits, a row of `wide` in 64.
function lockstep.sum_of_bits(rows, n, wide, from)
  local s, half = 0, ffi.cast("const uint32_t *", rows)
  for i = 0, 2 * n - 1 do
    local word, at = half[i], (from or 0) + math.floor(i / 2) * wide + i % 2 * 32
    if word ~= 0 then
      for k = 0, 31 do
        if bit.band(bit.rshift(word, k), 1) ~= 0 then s = (s + weight[at + k]) % 2 ^ 32 end
      end
    end
  end
  return s
end

local last = ffi.new "struct { float reward; uint16_t done; }"

---Of a step's observation, reward and end.
function lockstep.result(obs, n, reward, done)
  last.reward, last.done = reward, done
  return (lockstep.sum_of_floats(obs, n) + lockstep.sum(ffi.cast("const uint16_t *", last), 3)) % 2 ^ 32
end

---Means of two samples differ by at most four standard errors.
---@return number mean of the first
function lockstep.alike(a, b, what)
  local function moments(x)
    local sum, squares = 0, 0
    for _, v in ipairs(x) do sum, squares = sum + v, squares + v * v end
    return sum / #x, (squares / #x - (sum / #x) ^ 2) / #x
  end
  local mean_a, var_a = moments(a)
  local mean_b, var_b = moments(b)
  t.ok(math.abs(mean_a - mean_b) <= 4 * math.sqrt(math.max(var_a + var_b, 0)) + 1e-9, ("%s: %.4g and %.4g"):format(what, mean_a, mean_b))
  return mean_a
end

return lockstep
