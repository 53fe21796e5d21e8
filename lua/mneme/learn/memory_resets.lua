-- memory_resets.lua -- when the state of an environment is reset: flags that cores take as `done`.  A reset happens where an
-- episode begins (unless reset_on_done = false), after `context` observations since the last reset (0: never), and
-- where the learner asks for it (between rollouts, carry = false).
local ffi = require "ffi"
local tensor = require "mneme.tensor.tensor"

---@class MemoryResets
---@field seen Tensor [B] i32: observations that each environment's memory holds; saved with checkpoints
local MemoryResets = {}
MemoryResets.__index = MemoryResets

---@param B integer environments
---@param reset_on_done boolean
---@param context integer
local function new(B, reset_on_done, context)
  local seen = tensor.new { shape = { B }, dtype = "i32" }
  return setmetatable({ B = B, reset_on_done = reset_on_done, context = context, seen = seen, count = seen:data() }, MemoryResets)
end

---Clear every environment's memory: `flags` (uint8_t[B]) of the observations that come next.
function MemoryResets:all(flags)
  ffi.fill(flags, self.B, 1)
  ffi.fill(self.count, 4 * self.B)
end

---An observation was taken in and another comes, which starts an episode where `done` (uint8_t[B]) says so.
function MemoryResets:step(done, flags)
  local count, context = self.count, self.context
  for b = 0, self.B - 1 do
    count[b] = count[b] + 1
    local clear = (self.reset_on_done and done[b] ~= 0) or (context > 0 and count[b] >= context)
    flags[b] = clear and 1 or 0
    if clear then count[b] = 0 end
  end
end

return new
