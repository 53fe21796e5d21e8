-- sobol.lua -- points that fill a cube evenly: Sobol's sequence (1967) with the direction numbers of Joe and Kuo (2008,
-- "Constructing Sobol sequences with better two-dimensional projections").
local bit = require "bit"
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"

local BITS = 30
local sobol = {}

-- Of each dimension from the second on: its primitive polynomial as a binary number, and its first direction numbers.
local JOE_KUO = {
  { 3, 1 }, { 7, 1, 3 }, { 11, 1, 3, 1 }, { 13, 1, 1, 1 }, { 19, 1, 1, 3, 3 }, { 25, 1, 3, 5, 13 }, { 37, 1, 1, 5, 5, 17 }, { 41, 1, 1, 5, 5, 5 },
  { 47, 1, 1, 7, 11, 19 }, { 55, 1, 1, 5, 1, 1 }, { 59, 1, 1, 1, 3, 11 }, { 61, 1, 3, 5, 5, 31 }, { 67, 1, 3, 3, 9, 7, 49 },
  { 91, 1, 1, 1, 15, 21, 21 }, { 97, 1, 3, 1, 13, 27, 49 }, { 103, 1, 1, 1, 15, 7, 5 }, { 109, 1, 3, 1, 15, 13, 25 }, { 115, 1, 1, 5, 5, 19, 61 },
  { 131, 1, 3, 7, 11, 23, 15, 103 }, { 137, 1, 3, 7, 13, 13, 15, 69 }, { 143, 1, 1, 3, 13, 7, 35, 63 }, { 145, 1, 3, 5, 9, 1, 25, 53 },
  { 157, 1, 3, 1, 13, 9, 35, 107 },
}
sobol.MOST = #JOE_KUO + 1          -- dimensions

-- The direction numbers of a dimension, as whole numbers of BITS bits.
local function directions(dimension)
  local v = {}
  if dimension == 1 then
    for k = 1, BITS do v[k] = bit.lshift(1, BITS - k) end
    return v
  end
  local row = JOE_KUO[dimension - 1]
  local polynomial, s = row[1], #row - 1
  for k = 1, s do v[k] = bit.lshift(row[k + 1], BITS - k) end
  for k = s + 1, BITS do
    v[k] = bit.bxor(v[k - s], bit.rshift(v[k - s], s))
    for j = 1, s - 1 do
      if bit.band(bit.rshift(polynomial, s - j), 1) == 1 then v[k] = bit.bxor(v[k], v[k - j]) end
    end
  end
  return v
end

---A sequence of points in [0, 1)^dimensions.
---@param dimensions integer 1 to sobol.MOST
---@param shift number[]? one number in [0, 1) a dimension: its bits flip those of every point, so that another shift gives other points
---  that fill the cube as evenly
---@return fun(): number[] next_point
function sobol.new(dimensions, shift)
  if dimensions < 1 or dimensions > sobol.MOST then
    errors.raise(("sobol: %d dimensions, expected 1 to %d"):format(dimensions, sobol.MOST))
  end
  local v, x, n = {}, {}, 0
  for d = 1, dimensions do v[d], x[d] = directions(d), shift and math.floor(shift[d] * 2 ^ BITS) or 0 end
  return function()
    local point = {}
    for d = 1, dimensions do point[d] = x[d] / 2 ^ BITS end
    local zero, m = 1, n                       -- the lowest bit of n that is 0
    while m % 2 == 1 do zero, m = zero + 1, (m - 1) / 2 end
    for d = 1, dimensions do x[d] = bit.bxor(x[d], v[d][zero]) end
    n = n + 1
    return point
  end
end

---A shift for sobol.new, the same for equal seeds on every machine.
function sobol.shift(dimensions, seed)
  local drawn, shift = ffi.new("float[?]", sobol.MOST), {}
  C.mn_random_uniform(seed, 0, 0, drawn, sobol.MOST)
  for d = 1, dimensions do shift[d] = math.min(math.max(drawn[d - 1], 1e-7), 1 - 1e-7) end
  return shift
end

return sobol
