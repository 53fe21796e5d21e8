-- reading_rig.lua -- how a core reads its memory, measured: is it what its `reads` says?
local ffi = require "ffi"
local contract_rig = require "mneme.models.contract_rig"
local expect = require "mneme.models.expect"
local implicit_attention = require "mneme.models.implicit_attention"
local tensor = require "mneme.tensor.tensor"

local rig = {}
local with_weights = { "gated", "kept", "delta", "fastweight", "gated_delta", "bonus", "unlearned", "averages", "softmax" }       -- a step of the past has one
local has_weights = {}
for _, way in ipairs(with_weights) do has_weights[way] = true end

-- What a head reads is linear in the values: with the value of step j at 1 and all others at 0 it reads the weight of step j, which must be
-- the one that implicit_attention.lua computes from the probes, up to a factor of each head (the normaliser).
local STEPS_READ, STREAMS = 12, 6         -- steps of an episode, and episodes, that are measured
rig.CLOSE = 0.999                         -- weights that agree better are the same up to rounding

---The frame of the last of T steps, as scenes get it, and what heads of the first layer read where one step's value is 1 (j < T), or all (T).
---@param stream integer of the random inputs
---@return table frame
---@return table? read read[j][i], i over heads and channels; nil: `v` or `retrieved` is not probed
---@return integer? heads
function rig.look(c, stream)
  local d = c.config.d_in
  local x, copies, B = contract_rig.normal({ STEPS_READ, 1, d }, stream), tensor.new { shape = { STEPS_READ, STEPS_READ + 1, d } }, STEPS_READ + 1
  for step = 0, STEPS_READ - 1 do
    for b = 0, STEPS_READ do ffi.copy(copies:data() + (step * B + b) * d, x:data() + step * d, 4 * d) end
  end
  local now, read, heads = { probes = {}, memory = {}, history = {}, step = STEPS_READ - 1 }, nil, nil
  for step = 1, STEPS_READ do now.history[step] = { step = step - 1, probes = {} } end
  tensor.no_grad(function()
    c:act(x, nil, nil, function(name, p)
      local shape, first = p:shape(), p:shape()[1]
      local row = p:size() / first
      for step = 1, STEPS_READ do
        local values = ffi.new("float[?]", row)
        ffi.copy(values, p:data() + (first == STEPS_READ and step - 1 or 0) * row, 4 * row)
        now.history[step].probes[name] = { values = values, shape = { unpack(shape, 3) } }
      end
      return p
    end)
    c:act(copies, nil, nil, function(name, p)
      if name == "layers.0.v" then
        local v = tensor.new { shape = p:shape() }
        local each = v:size() / STEPS_READ / B
        heads = #p:shape() == 4 and p:shape()[3] or 1
        for j = 0, STEPS_READ - 1 do
          for i = 0, each - 1 do v:data()[(j * B + j) * each + i], v:data()[(j * B + STEPS_READ) * each + i] = 1, 1 end
        end
        return v
      end
      if name == "layers.0.retrieved" and heads then
        read = {}
        local each = p:size() / STEPS_READ / B
        for j = 0, STEPS_READ do
          read[j] = {}
          for i = 0, each - 1 do read[j][i] = p:data()[((STEPS_READ - 1) * B + j) * each + i] end
        end
      end
      return p
    end)
  end)
  tensor.clear_tape()
  now.probes = now.history[STEPS_READ].probes
  return now, read, heads
end

-- Cosine between the weights computed for a way and those measured, over steps and channels, of the head where it is least; nil: they
-- cannot be computed, or no head reads anything.
local function agreement(way, now, read, heads)
  now.reads = way
  if implicit_attention.problem(now) then return nil end
  local least, channels = nil, (#read[0] + 1) / heads
  for head = 0, heads - 1 do
    local both, mine, theirs = 0, 0, 0
    for channel = 0, channels - 1 do
      local w = implicit_attention.weights(now, 0, head, channel)
      for j = 0, STEPS_READ - 1 do
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
  for i = 0, #read[STEPS_READ] do
    local sum, size = 0, 1e-6
    for j = 0, STEPS_READ - 1 do sum, size = sum + read[j][i], size + math.abs(read[j][i]) end
    if math.abs(sum - read[STEPS_READ][i]) > 1e-3 * size then return false end
  end
  return true
end

---Measures how a core reads its memory.
---@param c Core a small one, whose parameters all matter (contract_rig.build)
---@return table<string, number>? agreement of each way whose weights can be computed, 1 where they are those that are measured; nil: the core
---  has no probes `v` and `retrieved` to measure at
---@return boolean? linear what is read is linear in the values
function rig.measure_reading(c)
  local list, linear = {}, true
  for stream = 1, STREAMS do
    local now, read, heads = rig.look(c, stream)
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
---@param found table<string, number>? of rig.measure_reading
---@param linear boolean?
---@return string? way nil: there is none
function rig.best_reading(found, linear)
  for _, way in ipairs(found and linear and with_weights or {}) do
    if (found[way] or 0) > rig.CLOSE then return way end
  end
end

-- How it begins, so that the small constants that rig.build makes large are as they are by default.
local function as_it_is(settings)
  local defaults = require("mneme.models.cores").definition(settings[1]).config
  return contract_rig.build(settings, 1, { eps = settings.eps or defaults.eps, norm_eps = settings.norm_eps or defaults.norm_eps })
end

---Raises an error where what a core reads of the past is not what its `reads` says.
function rig.holds(settings)
  local c = as_it_is(settings)
  if not c.reads then return end
  if c.reads == "nothing" then
    return expect.ok(not (next(c.states) ~= nil), "reads = \"nothing\", but it has a state")
  end
  expect.ok((next(c.states) ~= nil), ("reads = \"%s\", but it has no state"):format(c.reads))
  local found, linear = rig.measure_reading(c)
  local other = rig.best_reading(found, linear)
  if not has_weights[c.reads] then
    return expect.ok(not other, ("reads = \"%s\", measured: weights as of reads = \"%s\""):format(c.reads, tostring(other)))
  end
  if c.approximates or c.reads == "softmax" and not linear then return end      -- its weights are another memory's, or of chunks
  expect.ok(found, ("reads = \"%s\" cannot be measured without the probes layers.0.v and layers.0.retrieved: leave it out"):format(c.reads))
  expect.ok(linear, ("reads = \"%s\", measured: what is read is not linear in the values"):format(c.reads))
  local agrees = found[c.reads]
  expect.ok(agrees and agrees > rig.CLOSE, ("reads = \"%s\", measured: %s%s"):format(c.reads,
    agrees and ("its weights agree with those that are read to %.3f, expected 1"):format(agrees)
      or "the probes that its weights are computed from are missing or do not fit",
    other and ("; those of reads = \"%s\" are read"):format(other) or ""))
  tensor.clear_tape()
end

return rig
