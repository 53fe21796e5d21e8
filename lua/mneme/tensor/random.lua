-- random.lua -- the generator that ops draw from: mn.manual_seed starts it, and every draw has a number of its own.  A draw that a plan
-- recorded is another one at each replay.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local op_binding = require "mneme.tensor.op_binding"
local tensor = require "mneme.tensor.tensor"
local C, ops, suggest = engine.C, tensor.ops, op_binding.suggest

local random = {}

local seed, generator = 0, nil              -- a leaf: the seed's halves, and those of the number of the next draw

---Start again from a seed.
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
function random.set_state(state)
  if not tensor.is(state) or state:dtype() ~= "i32" or state:size() ~= 4 then
    errors.raise(("random: state is %s, expected four int32"):format(op_binding.describe(state)))
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
  if not tensor.is(x) then errors.raise(("dropout: x is %s, expected a tensor"):format(op_binding.describe(x))) end
  if not tensor.is(p) then
    if type(p) ~= "number" or not (p >= 0 and p <= 1) then errors.raise(("dropout: p is %s, expected 0 to 1"):format(op_binding.describe(p))) end
    p = tensor.new { p }
  end
  return (ops.dropout(x, random.key(), p))
end
tensor.Tensor.dropout = random.dropout

-- ---- what parameters of layers begin with (nn.init): a count, so that it depends on the seed and the order of creation alone ----

local init = {}
local parameters = { init = init }

local first, stream = 0, 0             -- the seed of parameters, and the number of the next

---Start all random numbers of scripts again: initial parameters, mn.randn and the like, dropout, samples of
---distributions.
---@param s integer
function parameters.manual_seed(s)
  if type(s) ~= "number" or s % 1 ~= 0 then errors.raise(("manual_seed: %s, expected a whole number"):format(tostring(s))) end
  first, stream = s, 0
  random.manual_seed(s)
end

local function normal(p, n)
  C.mn_random_normal(first, stream, 1, p, n)
  stream = stream + 1
end

local dry, replaced = false, false

---Call f with matrices of weights left at zero, to count them or to ask for half-lives; random numbers go on from where they were.
---@param f function called with what follows
---@return any what it returns
function parameters.dry(f, ...)
  local before = stream
  dry = true
  local ok, result = pcall(f, ...)
  dry, stream = false, before
  if not ok then error(result, 0) end
  return result
end

---Call f, which makes modules whose parameters are loaded next: orthogonal matrices, the slow ones, are left at zero; later draws are what they were.
---@param f function called with what follows
---@return any what it returns
function parameters.replaced(f, ...)
  replaced = true
  local ok, result = pcall(f, ...)
  replaced = false
  if not ok then error(result, 0) end
  return result
end

---Nothing yet: another init fills these parameters, and theirs is counted.
function init.later() stream = stream + 1 end

---Orthogonal rows (or columns, whichever are fewer), times gain; `groups` blocks of rows on their own.
---@param gain number
---@param groups integer? default 1
---@return fun(p, rows, cols)
function init.orthogonal(gain, groups)
  return function(p, rows, cols)
    if dry or replaced then stream = stream + 1 return end
    groups = groups or 1
    normal(p, rows * cols)
    for g = 0, groups - 1 do engine.orthogonal(p + g * rows / groups * cols, rows / groups, cols, gain) end
  end
end

---Uniform in +- 1/sqrt(fan_in); a share of each row is set to 0, at random places (Elsayed et al. 2024, algorithm 1), never all: zeros do not learn.
---@param share number 0..1
---@return fun(p, rows, cols)
function init.sparse(share)
  return function(p, rows, cols)
    if dry then stream = stream + 1 return end
    local zeros, order = math.min(math.ceil(share * cols), cols - 1), ffi.new("float[?]", cols)
    init.uniform(1 / math.sqrt(cols))(p, rows, cols)
    for r = 0, rows - 1 do
      normal(order, cols)
      local sorted = {}
      for c = 0, cols - 1 do sorted[c + 1] = c end
      table.sort(sorted, function(a, b) return order[a] < order[b] or order[a] == order[b] and a < b end)
      for k = 1, zeros do p[r * cols + sorted[k]] = 0 end
    end
  end
end

---Truncated normal with variance 1/fan_in (flax's lecun_normal).
---@return fun(p, rows, cols)
function init.lecun_normal()
  return function(p, rows, cols)
    if dry then stream = stream + 1 return end
    local n, spare = rows * cols, ffi.new("float[?]", 4096)
    local std, left = math.sqrt(1 / cols) / 0.87962566103423978, 0
    normal(p, n)
    for i = 0, n - 1 do
      while math.abs(p[i]) > 2 do        -- draw again what lies beyond two standard deviations
        if left == 0 then normal(spare, 4096) left = 4096 end
        left = left - 1
        p[i] = spare[left]
      end
      p[i] = p[i] * std
    end
  end
end

---Normal with a standard deviation (default 1).
---@param std number?
---@return fun(p, rows, cols)
function init.normal(std)
  return function(p, rows, cols)
    if dry then stream = stream + 1 return end
    normal(p, rows * cols)
    for i = 0, rows * cols - 1 do p[i] = (std or 1) * p[i] end
  end
end

---Uniform between -bound and bound.
---@param bound number
---@return fun(p, rows, cols)
function init.uniform(bound)
  return function(p, rows, cols)
    C.mn_random_uniform(first, stream, 1, p, rows * cols)
    stream = stream + 1
    for i = 0, rows * cols - 1 do p[i] = bound * (2 * p[i] - 1) end
  end
end

suggest.guard("mn.nn.init.", init, suggest.init)

-- ---- making layers ----

---A parameter, of zeros or as `begin` fills it (nn.init).
---@return Tensor
function parameters.new(shape, begin)
  local p = tensor.new { shape = shape, grad = true }
  if begin then begin(p:data(), shape[1], p:size() / shape[1]) end
  return p
end

---Options of a layer; a misspelt one would be none at all.
---@param known string those that there are
function parameters.check_options(what, options, known)
  errors.need("nn." .. what .. ": options", options, nil, "a table such as { act = \"relu\" }")
  errors.members("nn." .. what, options, known)
  return options
end

---What fills a parameter: given, or the usual.
function parameters.check_init(what, given, usual)
  if given ~= nil and type(given) ~= "function" then
    errors.raise(("nn.%s: init is a %s, expected a function such as nn.init.normal(1)"):format(what, type(given)))
  end
  return given or usual
end

function parameters.check_width(what, name, n, ...)
  errors.whole("nn." .. what, name .. " is", n, 1, {})
  if ... then parameters.check_width(what, ...) end
end

random.parameters = parameters

return random
