-- trace.lua -- one step of acting as the list of its ops: the plan is recorded once, and every op is noted with what it was given.
local ffi = require "ffi"
local op_binding = require "mneme.tensor.op_binding"
local errors = require "mneme.base.errors"
local plan = require "mneme.tensor.plan"
local tensor = require "mneme.tensor.tensor"

local trace = {}

local handle = ffi.typeof "mn_tensor"

---A tensor's name while it lasts.
function trace.key(t) return t.slot .. ":" .. t.gen end

---Note the ops that f applies while a plan records it.
---@param f function of ops on leaves
---@return table calls { op, signature, given = tensors or false by place, options = numbers by name (words as words), out = tensors, where },
---  with leaves = { shape, values } by key of what no call computed, which may be freed before anyone reads it
---@return table results
function trace.record(f)
  local calls, made = { leaves = {} }, {}
  local function keep(t)
    local key = trace.key(t)
    if made[key] or calls.leaves[key] then return end
    calls.leaves[key] = { shape = t:shape(), learned = t:wants_grad() }
    if calls.leaves[key].learned then return end
    local values, data = {}, t:data()
    for i = 1, t:size() do values[i] = tonumber(data[i - 1]) end
    calls.leaves[key].values = values
  end
  local function note(name, signature, given, options, out)
    local call = { op = name, signature = signature, given = {}, options = {}, out = {}, where = errors.position() }
    for i = 1, #signature.inputs do
      local t = given[i - 1]
      call.given[i] = t.gen ~= 0 and handle(t.slot, t.gen) or false
      if call.given[i] then keep(call.given[i]) end
    end
    for i, o in ipairs(signature.options) do call.options[o.name] = o.words and o.words[options[i - 1] + 1] or options[i - 1] end
    for i = 1, #signature.outputs do
      call.out[i] = handle(out[i - 1].slot, out[i - 1].gen)
      made[trace.key(call.out[i])] = true
    end
    calls[#calls + 1] = call
  end
  local recorded = plan(function() return tensor.off_tape(f) end)
  local before = op_binding.tracing
  op_binding.tracing = note
  local results = { pcall(recorded) }
  op_binding.tracing = before
  if not results[1] then error(results[2], 0) end
  calls.plan = recorded                        -- keeps what was computed
  return calls, { unpack(results, 2, 12) }
end

return trace
