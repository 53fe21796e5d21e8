-- draws.lua -- random numbers that scripts draw, by mn.randn and the like.  They are Philox's, a function of the seed and of how many
-- draws came before alone, so that they do not depend on threads.  Initial parameters have numbers of their own (nn.lua): a draw more
-- or less does not change them.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local C = engine.C

local draws = {}
local PURPOSE = 5                    -- 1: initial parameters, 3: the order of minibatches
local seed, count = 0, 0

---Start the draws again.
---@param s integer
function draws.manual_seed(s) seed, count = s, 0 end

local function draw(what, fill, p, n)
  if engine.recording then
    errors.raise(what .. ": while a plan records: every replay would use these numbers", { hint = "draw outside of it and pass the tensor in" })
  end
  fill(seed, count, PURPOSE, p, n)
  count = count + 1
end

---n numbers in [0, 1), 24 bits each.
---@param what string who draws, for errors
---@param p ffi.cdata* float[n]
---@param n integer
function draws.uniform(what, p, n) draw(what, C.mn_random_uniform, p, n) end

---n numbers of the standard normal distribution.
---@param what string
---@param p ffi.cdata* float[n]
---@param n integer
function draws.normal(what, p, n) draw(what, C.mn_random_normal, p, n) end

---n numbers in [0, 1), 48 bits each: f(i) is the i-th, from 0.
---@param what string
---@param n integer
---@return fun(i: integer): number
function draws.fractions(what, n)
  local halves = ffi.new("float[?]", 2 * n)
  draws.uniform(what, halves, 2 * n)
  return function(i) return halves[2 * i] + halves[2 * i + 1] * 2 ^ -24 end
end

return draws
