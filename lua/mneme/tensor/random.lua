-- random.lua -- the generator that ops draw from: mn.manual_seed starts it, and every draw has a number of its own.  A draw that a plan
-- recorded is another one at each replay.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local binding = require "mneme.tensor.op_binding"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local random = {}

local seed, generator = 0, nil              -- a leaf: the seed's halves, and those of the number of the next draw

---Start again from a seed.
---@param s integer
function random.manual_seed(s)
  seed = s
  if not generator then return end
  local words = ffi.cast("uint32_t *", tensor.writable(generator, "manual_seed"))
  words[0], words[1], words[2], words[3] = s % 2 ^ 32, math.floor(s / 2 ^ 32) % 2 ^ 32, 0, 0
end

---The generator's state: an int32 leaf, the seed's halves and those of the number of draws so far; nil: nothing was drawn yet.
---@return Tensor?
function random.state() return generator end

---The key of the next draw; in a plan, of the next at each replay.
---@return Tensor key
function random.key()
  if not generator then
    generator = tensor.new { shape = { 4 }, dtype = "i32" }
    random.manual_seed(seed)
  end
  if engine.recording then engine.recording.draws = true end
  return ops.random_key(generator)
end

---Continue where a generator was that had this state.
---@param state Tensor
function random.set_state(state)
  if not tensor.is(state) or state:dtype() ~= "i32" or state:size() ~= 4 then
    errors.raise(("random: state is %s, expected four int32"):format(binding.describe(state)))
  end
  random.key()
  generator:copy(state)
end

---x with each element zeroed with probability p and the others divided by 1 - p, as torch.nn.functional.dropout.
---@param x Tensor
---@param p number|Tensor? 0.5; or a leaf [1], which a plan reads at every replay
---@return Tensor
function random.dropout(x, p)
  if p == nil then p = 0.5 end
  if not tensor.is(x) then errors.raise(("dropout: x is %s, expected a tensor"):format(binding.describe(x))) end
  if not tensor.is(p) then
    if type(p) ~= "number" or not (p >= 0 and p <= 1) then errors.raise(("dropout: p is %s, expected 0 to 1"):format(binding.describe(p))) end
    p = tensor.new { p }
  end
  return (ops.dropout(x, random.key(), p))
end
tensor.Tensor.dropout = random.dropout

return random
