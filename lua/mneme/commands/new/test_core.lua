-- test_core.lua -- does the core NAME remember, and forget at a reset?   mneme run test_core.lua
-- What every core keeps is checked by mneme check core=cores/NAME.lua.
local mn = require "mneme"

local STEPS, D_IN, REMEMBERS = 4, 16, true
mn.manual_seed(1)
local core = mn.core { "NAME", d_in = D_IN }

-- How much the output of the last step depends on the first observation, where an episode begins at step `start`.
local function kept(start)
  local x, begins = mn.randn(STEPS, 1, D_IN, { grad = true }), {}
  for step = 1, STEPS do begins[step] = { step == start and 1 or 0 } end
  local y = core(x, mn.tensor(begins, { dtype = "u8" }), core:initial(1))
  y:slice(0, STEPS - 1, STEPS):square():sum():backward()
  return x:grad():slice(0, 0, 1):abs():max():item()
end

local remembered = kept()
print(("the last of %d outputs depends on the first input: a gradient of %.2g"):format(STEPS, remembered))
assert((remembered > 0) == REMEMBERS, "does the last output depend on the first input?")
assert(kept(3) == 0, "an episode that begins at step 3 knows nothing of step 1")
print "ok"
