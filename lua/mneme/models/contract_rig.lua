-- contract_rig.lua -- what the contract's checks share: small cores with fixed random inputs, running them, cutting
-- sequences, comparing results, and finite differences.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local cores = require "mneme.models.cores"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local rig = {}

-- Sizes that keep a core small enough for thousands of runs; a key is used where the core has it.
local small = { d_in = 5, d_model = 8, n_layers = 2, n_heads = 2, d_head = 4, d_ffn = 6, eta = 2, m = 6,
                memory = 32, window = 3, globals = 2, block = 3, random_blocks = 1, chunk = 4, rho = 2, context = 12, segment = 4, frames = 3,
                d_state = 5, mix_rank = 3, decay_rank = 3, rate_rank = 3, value_rank = 3, gate_rank = 3, gn_eps = 0.1,
                reset = true, norm_eps = 0.1 }   -- a key's direction turns too fast near 0 for difference quotients

-- Biases, and matrices that start at zero or near it, become random too, so that they matter.
local function stir(p, stream)
  local shape, n, data, largest = p:shape(), p:size(), p:data(), 0
  for k = 0, n - 1 do largest = math.max(largest, math.abs(data[k])) end
  local scale = #shape == 1 and 0.3 or largest < 0.1 and 1 / math.sqrt(shape[#shape]) or 0
  if scale == 0 then return end
  local noise = rig.normal({ n }, stream):data()
  for k = 0, n - 1 do data[k] = data[k] + scale * noise[k] end
end

---Build a case's core, small, as it begins with a given seed.
function rig.fresh(settings, seed, more)
  local config, defaults = {}, cores.definition(settings[1]).config   -- a name or the path of a file
  for key in pairs(defaults) do config[key] = small[key] end
  -- Without an eps a running maximum cancels out of the read-out: a constant for gradients and for quotients.
  local running = (settings.feature or defaults.feature) == "favor_softmax"
  if defaults.eps then config.eps = running and 0 or 1 end
  if running then config.feature_eps = 0 end
  config = tables.merged(config, settings, more)
  config[1] = nil
  nn.manual_seed(seed or 1)
  local c = cores.new(settings[1], config, true)
  c.module:eval()                                -- no dropout: what is left has to be the same every time
  return c
end

---The same with parameters that all matter.
function rig.build(settings, seed, more)
  local c = rig.fresh(settings, seed, more)
  for i, p in ipairs(c:parameters()) do stir(p, 100 + i) end
  return c
end

---A leaf full of normal numbers; the same ones for the same stream.
function rig.normal(shape, stream, grad)
  local t = tensor.new { shape = shape, grad = grad }
  C.mn_random_normal(7, stream, 2, t:data(), t:size())
  return t
end

---done[T,B] with a 1 at each { t, b } (b nil: every environment).
function rig.done(T, B, where)
  local done = tensor.new { shape = { T, B }, dtype = "u8" }
  for _, at in ipairs(where or {}) do
    for b = 0, B - 1 do if not at[2] or at[2] == b then done:data()[at[1] * B + b] = 1 end end
  end
  return done
end

---Rows t0 .. t1-1 of a leaf, as a new one.
function rig.rows(t, t0, t1)
  local shape, bytes = t:shape(), t:dtype() == "u8" and 1 or 4
  local row = t:size() / shape[1]
  shape[1] = t1 - t0
  local part = tensor.new { shape = shape, dtype = t:dtype() }
  ffi.copy(part:data(), t:data() + t0 * row, (t1 - t0) * row * bytes)
  return part
end

---Numbers of a tensor as a string: equal strings are equal bits.
function rig.bytes(t) return ffi.string(t:data(), t:size() * (t:dtype() == "u8" and 1 or 4)) end

---A state that the core really comes to: the one after some steps, as leaves.
function rig.warm(c, B, grad)
  local start = grad and {} or c:initial(B)
  tensor.no_grad(function()
    local _, after = c(rig.normal({ 6, B, c.config.d_in }, 50), nil, c:initial(B))
    for name, t in pairs(after) do
      start[name] = (start[name] or tensor.new { shape = t:shape(), grad = grad and not c:is_constant(name) }):copy(t)
    end
  end)
  return start
end

---A state as far as it counts: what stands in a slot (axis M) that the state's mask blocks is zero here.
function rig.visible(c, state)
  if c.states.mask ~= "[M,B]" then return state end
  local seen, mask = {}, state.mask:data()
  for name, t in pairs(state) do
    local letters, shape, stride, slot, copy = c.states[name]:gsub("%W", ""), t:shape(), 1, nil, nil
    for axis = #shape, 1, -1 do
      local letter = letters:sub(axis, axis)
      if letter == "M" then slot = stride elseif letter == "B" then copy = stride end
      stride = stride * shape[axis]
    end
    seen[name] = tensor.keep(t)
    local p, M, B = seen[name]:data(), c.sizes.M, state.mask:shape()[2]
    for i = 0, slot and name ~= "mask" and t:size() - 1 or -1 do
      if mask[math.floor(i / slot) % M * B + math.floor(i / copy) % B] ~= 0 then p[i] = 0 end
    end
  end
  return seen
end

---Run without a tape; y and the final state as leaves.
function rig.run(c, x, done, state, probe)
  local y, after
  tensor.no_grad(function()
    local a, b = c(x, done, state, probe)
    y, after = tensor.keep(a), tensor.keep(b)
  end)
  return y, after
end

---The largest difference between two tensors, as a fraction of the larger of 1 and the largest number.
function rig.apart(a, b)
  local p, q, n = a:data(), b:data(), a:size()
  local worst, scale = 0, 1
  if n ~= b:size() then return math.huge end
  for i = 0, n - 1 do
    local d = math.abs(p[i] - q[i])
    if d ~= d then return math.huge end
    worst, scale = math.max(worst, d), math.max(scale, math.abs(q[i]))
  end
  return worst / scale
end

---Is every number of these tensors finite?  Tests that compare would not notice NaN == NaN in bytes.
function rig.finite(t)
  for i = 0, t:size() - 1 do
    local v = t:data()[i]
    if v - v ~= 0 then return false end
  end
  return true
end

-- ---- a loss over everything that comes out ----

local function weight(k) return ((k * 37 + 11) % 19 - 9) / 9 end
rig.weight = weight

-- Does a final state count?  Not one without gradient, nor what is held relative to a constant: difference quotients
-- would see the constant move.
local function counts(c, name) return not c:is_stopped(name) and not next(c.constants) end

---Sum of fixed weights times y and the final state, in double; and how large its terms are.
function rig.loss(c, y, after)
  local total, size = 0, 0
  local function add(t)
    local p = t:data()
    for k = 0, t:size() - 1 do
      local term = weight(k) * p[k]
      total, size = total + term, size + term * term
    end
  end
  add(y)
  for _, name in ipairs(c:state_names()) do if counts(c, name) then add(after[name]) end end
  return total, math.sqrt(size)
end

---The same as a tensor.
function rig.loss_tensor(c, y, after)
  local function part(t)
    local w = tensor.new { shape = t:shape() }
    for k = 0, t:size() - 1 do w:data()[k] = weight(k) end
    return (t * w):sum()
  end
  local total = part(y)
  for _, name in ipairs(c:state_names()) do if counts(c, name) then total = total + part(after[name]) end end
  return total
end

-- ---- difference quotients ----

local STEPS = { 0.02, 0.005, 0.00125 }

---Does a slope agree with a difference quotient of f?  Of both sides, or of one, so that a kink nearby on the
---other side does no harm; where there are kinks on both sides, smaller steps may still lie between them.
---@param f fun(h: number): number the loss, moved by h
---@param noise number rounding error of f
---@return boolean, number quotient
function rig.agrees(f, slope, tolerance, noise)
  local base, quotient = f(0), nil
  for _, h in ipairs(STEPS) do
    local up, down, up2, down2 = f(h), f(-h), f(2 * h), f(-2 * h)
    quotient = (up - down) / (2 * h)
    for _, q in ipairs { quotient, (4 * quotient - (up2 - down2) / (4 * h)) / 3,
                         (4 * up - up2 - 3 * base) / (2 * h), (3 * base - 4 * down + down2) / (2 * h) } do
      if math.abs(q - slope) <= tolerance + noise / h then return true, q end
    end
  end
  return false, quotient
end

return rig
