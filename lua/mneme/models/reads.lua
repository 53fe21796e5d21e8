-- reads.lua -- how a core reads its memory: the values of `reads` (implicit_attention.lua explains each), and the measurement that tells
-- whether one is so.  What a head reads is linear in the values: with the value of step j at 1 and all others at 0 it reads the weight of
-- step j, which must be the one that is computed from the probes, up to a factor of each head (the normaliser).
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local parameters = require "mneme.tensor.parameters"
local tables = require "mneme.base.tables"

local known = {
  gated = true, kept = true, delta = true, fastweight = true, gated_delta = true, bonus = true, unlearned = true, averages = true,
  softmax = true, frames = true, joint = true, vector = true, nothing = true,
}
local with_weights = { "gated", "kept", "delta", "fastweight", "gated_delta", "bonus", "unlearned", "averages", "softmax" }
local reads = { known = known }
local T, STREAMS = 12, 6         -- steps of an episode, and episodes, that are measured

reads.CLOSE = 0.999              -- weights that agree better are the same up to rounding

---Does a step of the past have a weight in this way of reading?
---@param way string
---@return boolean
function reads.has_weights(way)
  for _, one in ipairs(with_weights) do if one == way then return true end end
  return false
end

---Refuse an unknown word; nil is allowed.
---@param word string? a core's `reads`
---@param where string of whom, for the error
function reads.check(word, where)
  if word ~= nil and not known[word] then errors.unknown(where .. ": reads =", tostring(word), tables.keys(known)) end
end

-- Needs later modules, which need this one.
local function rig() return require "mneme.models.contract_rig" end
local function recall() return require "mneme.models.implicit_attention" end

-- The frame of the last of T steps, as scenes get it, and what heads of the first layer read where one step's value is 1 (j < T), or all (T):
-- read[j][i], i over heads and channels; nil: `v` or `retrieved` is not probed.
local function look(c, stream)
  local tensors = require "mneme.tensor.tensor"
  local d = c.config.d_in
  local x, copies, B = rig().normal({ T, 1, d }, stream), tensors.new { shape = { T, T + 1, d } }, T + 1
  for step = 0, T - 1 do
    for b = 0, T do ffi.copy(copies:data() + (step * B + b) * d, x:data() + step * d, 4 * d) end
  end
  local now, read, heads = { probes = {}, memory = {}, history = {}, step = T - 1 }, nil, nil
  for step = 1, T do now.history[step] = { step = step - 1, probes = {} } end
  tensors.no_grad(function()
    c:act(x, nil, nil, function(name, p)
      local shape, first = p:shape(), p:shape()[1]
      local row = p:size() / first
      for step = 1, T do
        local values = ffi.new("float[?]", row)
        ffi.copy(values, p:data() + (first == T and step - 1 or 0) * row, 4 * row)
        now.history[step].probes[name] = { values = values, shape = { unpack(shape, 3) } }
      end
      return p
    end)
    c:act(copies, nil, nil, function(name, p)
      if name == "layers.0.v" then
        local v = tensors.new { shape = p:shape() }
        local each = v:size() / T / B
        heads = #p:shape() == 4 and p:shape()[3] or 1
        for j = 0, T - 1 do
          for i = 0, each - 1 do v:data()[(j * B + j) * each + i], v:data()[(j * B + T) * each + i] = 1, 1 end
        end
        return v
      end
      if name == "layers.0.retrieved" and heads then
        read = {}
        local each = p:size() / T / B
        for j = 0, T do
          read[j] = {}
          for i = 0, each - 1 do read[j][i] = p:data()[((T - 1) * B + j) * each + i] end
        end
      end
      return p
    end)
  end)
  tensors.clear_tape()
  now.probes = now.history[T].probes
  return now, read, heads
end

-- Cosine between the weights computed for a way and those measured, over steps and channels, of the head where it is least; nil: they
-- cannot be computed, or no head reads anything.
local function agreement(way, now, read, heads)
  now.reads = way
  if recall().problem(now) then return nil end
  local least, channels = nil, (#read[0] + 1) / heads
  for head = 0, heads - 1 do
    local both, mine, theirs = 0, 0, 0
    for channel = 0, channels - 1 do
      local w = recall().weights(now, 0, head, channel)
      for j = 0, T - 1 do
        local a, b = w[j], read[j][head * channels + channel]
        both, mine, theirs = both + a * b, mine + a * a, theirs + b * b
      end
    end
    if mine > 0 or theirs > 0 then least = math.min(least or 1, mine > 0 and theirs > 0 and math.abs(both) / math.sqrt(mine * theirs) or 0) end
  end
  return least
end

-- Is what is read of all values the sum of what is read of each?
local function is_linear(read)
  for i = 0, #read[T] do
    local sum, size = 0, 1e-6
    for j = 0, T - 1 do sum, size = sum + read[j][i], size + math.abs(read[j][i]) end
    if math.abs(sum - read[T][i]) > 1e-3 * size then return false end
  end
  return true
end

---Measures how a core reads its memory.
---@param c Core a small one, whose parameters all matter (contract_rig.build)
---@return table<string, number>? agreement of each way whose weights can be computed, 1 where they are those that are measured; nil: the core
---  has no probes `v` and `retrieved` to measure at
---@return boolean? linear what is read is linear in the values
function reads.measure(c)
  local list, linear = {}, true
  for stream = 1, STREAMS do
    local now, read, heads = look(c, stream)
    if not read then return nil end
    linear = linear and is_linear(read)
    for _, way in ipairs(with_weights) do
      local ok, agrees = pcall(agreement, way, now, read, heads)
      if ok and agrees then list[way] = math.min(list[way] or 1, agrees) end
    end
  end
  return list, linear
end

---The way whose weights are those that are measured.
---@param found table<string, number>? of reads.measure
---@param linear boolean?
---@return string? way nil: there is none
function reads.best(found, linear)
  for _, way in ipairs(found and linear and with_weights or {}) do
    if (found[way] or 0) > reads.CLOSE then return way end
  end
end

---How a core that does not declare it reads its memory: measured on a small one like it.
---@param c Core
---@return string? way nil: no way's weights are those that are read
function reads.find(c)
  local before = parameters.random_state()
  local ok, way = pcall(function()
    local settings = { c.file or c.name }
    for key, value in pairs(c.config) do if not rig().small[key] then settings[key] = value end end
    return reads.best(reads.measure(rig().build(settings)))
  end)
  parameters.restore_random(before)
  return ok and way or nil
end

return reads
