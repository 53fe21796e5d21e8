-- example_random.lua -- the random numbers of one example of a data set: counter-based, so that example `index` of a split is
-- the same in any process and any order, and only the index has to be saved.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"

local BLOCK = 256
local purposes = { train = 1, valid = 2, test = 3 }      -- + 4 x the number of blocks drawn before
local number = ffi.typeof "float[?]"

---@class Draws
local Draws = {}
Draws.__index = Draws

local function new() return setmetatable({ block = number(BLOCK) }, Draws) end

---Begin the numbers of example `index` (0 .. 2^32-1) of a split ("train", "valid" or "test").
function Draws:seek(seed, split, index)
  self.seed, self.index, self.purpose, self.used = seed, index, purposes[split], BLOCK
  return self
end

---Uniform in [0, 1), in steps of 2^-24.
function Draws:uniform()
  if self.used == BLOCK then
    C.mn_random_uniform(self.seed, self.index, self.purpose, self.block, BLOCK)
    self.purpose, self.used = self.purpose + 4, 0
  end
  local at = self.used
  self.used = at + 1
  return self.block[at]
end

---A whole number 0 .. n-1.
function Draws:below(n)
  if type(n) ~= "number" or n % 1 ~= 0 or n < 1 or n > 2 ^ 24 then
    errors.raise(("random:below(%s): expected a whole number from 1 to 2^24"):format(tostring(n)))
  end
  return math.floor(self:uniform() * n)
end

---The first `count` of a random order of 0 .. n-1, into the array `order`, which keeps n numbers (Fisher and Yates).
function Draws:choose(order, n, count)
  for i = 0, n - 1 do order[i] = i end
  for i = 0, count - 1 do
    local j = i + self:below(n - i)
    order[i], order[j] = order[j], order[i]
  end
end

return { new = new }
