-- gradients.lua -- mn.grad: gradients of a loss as new tensors; mn.custom_gradient: a function whose backward pass is written in Lua.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local op_binding = require "mneme.tensor.op_binding"
local tensor = require "mneme.tensor.tensor"
local C, ctx, check, ops, describe = engine.C, engine.ctx, engine.check, tensor.ops, op_binding.describe

local gradients = {}

-- ---- mn.grad ----

---The gradient of a loss with respect to tensors, as new tensors; gradients of leaves stay as they are, as with torch.autograd.grad.
---Frees the graph that it walked.
---@param loss Tensor one number
---@param inputs Tensor|Tensor[] leaves that want a gradient, or computed tensors that the loss depends on
---@param options { retain: boolean }? retain = true keeps the graph, for another backward
---@return Tensor|Tensor[] gradients as `inputs`: one, or a list; zeros where the loss does not depend on it
function gradients.grad(loss, inputs, options)
  local single = tensor.is(inputs)
  local list = single and { inputs } or inputs
  if not tensor.is(loss) then errors.raise(("grad: loss is %s, expected a tensor of one number"):format(describe(loss))) end
  errors.need("grad: inputs", list, nil, "a tensor or a list of tensors")
  local retain = tensor.retain("grad", options)
  tensor.need_graph("grad", loss)
  local of, into, result = ffi.new("mn_tensor[?]", #list + 1), ffi.new("mn_tensor[?]", #list + 1), {}
  for i, x in ipairs(list) do
    if not tensor.is(x) then errors.raise(("grad: inputs[%d] is %s, expected a tensor"):format(i, describe(x))) end
    result[i] = tensor.new { shape = x:shape() }
    of[i - 1], into[i - 1] = x, result[i]
  end
  check(C.mn_grad(ctx, loss, #list, of, into, retain))
  return single and result[1] or result
end

-- ---- mn.custom_gradient ----

local NAMES = { "a", "b", "c", "d", "e", "f", "g", "h" }       -- arguments of the op

-- A leaf that stands for a tensor.
local function stand_in(t) return tensor.new { shape = t:shape() } end

-- What backward returned, checked: a gradient, or nil, for each of the tensors.
local function check_gradients(name, xs, ...)
  local given = { n = select("#", ...), ... }
  if given.n ~= #xs then errors.raise(("%s: backward returned %d values, expected a gradient, or nil, for each of %d tensors"):format(name, given.n, #xs)) end
  for i, x in ipairs(xs) do
    local g = given[i]
    if g ~= nil and not tensor.is(g) then errors.raise(("%s: gradient %d is %s, expected a tensor or nil"):format(name, i, describe(g))) end
    local shape, expected = g and table.concat(g:shape(), ","), table.concat(x:shape(), ",")
    if g and shape ~= expected then errors.raise(("%s: gradient %d is [%s], expected [%s]"):format(name, i, shape, expected)) end
  end
  return given
end

-- Record f.backward for arguments like these: { plan, id, version }.
local function record(f, xs, y, arguments, n)
  return op_binding.record_body(C.mn_way_back_begin, function(entry)
    local dy, out, inputs, k = stand_in(y), stand_in(y), {}, 0
    local given = { unpack(arguments, 1, n) }
    for i = 1, n do
      if tensor.is(given[i]) then
        k = k + 1
        inputs[k] = stand_in(given[i])
        given[i] = inputs[k]
      end
    end
    given[n + 1] = out
    local dx = check_gradients("custom_gradient", xs, f.backward(dy, unpack(given, 1, n + 1)))
    local from, to = ffi.new("mn_tensor[?]", #xs + 2), ffi.new("mn_tensor[?]", #xs)
    from[0], from[#xs + 1] = dy, out
    for i = 1, #xs do
      from[i] = inputs[i]
      if dx[i] then to[i - 1] = dx[i] end
    end
    check(C.mn_way_back_end(entry.plan, #xs, from, to))
  end)
end

-- What tells recordings apart: shapes, and whatever else was given.
local function key_of(arguments, n)
  local parts = {}
  for i = 1, n do
    local x = arguments[i]
    if tensor.is(x) then parts[i] = "[" .. table.concat(x:shape(), ",") .. "]"
    elseif x == nil or type(x) == "number" or type(x) == "string" or type(x) == "boolean" then parts[i] = type(x) .. ":" .. tostring(x)
    else errors.raise(("custom_gradient: argument %d is a %s, expected a tensor, a number, a text or nothing"):format(i, type(x))) end
  end
  return table.concat(parts, "|")
end

---A function with a backward pass of its own, as torch.autograd.Function: forward(...) computes y with ops, and no gradient flows
---through it; backward(dy, ..., y) returns a gradient for each tensor argument, in order (nil: none), with ops alone and no look at
---values, since it is recorded once for each set of shapes and other arguments (so what changes at every call belongs into a tensor).
---Works in plans and in mn.recur.
---@param f { forward: fun(...): Tensor, backward: fun(dy: Tensor, ...): Tensor?, ... }
---@return fun(...): Tensor call up to eight float32 tensors, and numbers, texts or booleans as constants
function gradients.custom_gradient(f)
  errors.need("custom_gradient", f, nil, "{ forward = function(...) end, backward = function(dy, ...) end }")
  errors.members("custom_gradient", f, "forward backward")
  for _, key in ipairs { "forward", "backward" } do
    if type(f[key]) ~= "function" then errors.raise(("custom_gradient: %s is %s, expected a function"):format(key, describe(f[key]))) end
  end
  local recorded, latest = setmetatable({}, { __mode = "v" }), nil
  return function(...)
    local n, arguments, xs = select("#", ...), { ... }, {}
    for i = 1, n do if tensor.is(arguments[i]) then xs[#xs + 1] = arguments[i] end end
    for i, x in ipairs(xs) do
      if x:dtype() ~= "f32" then errors.raise(("custom_gradient: tensor %d is %s, expected float32"):format(i, x:dtype())) end
    end
    if #xs < 1 or #xs > #NAMES then errors.raise(("custom_gradient: %d tensors given, expected 1 to %d"):format(#xs, #NAMES)) end
    local key, y, second = key_of(arguments, n), f.forward(...)
    if second ~= nil then errors.raise "custom_gradient: forward returned several values, expected one tensor (mn.cat joins several)" end
    if not tensor.is(y) or y:dtype() ~= "f32" then errors.raise(("custom_gradient: forward returned %s, expected a float32 tensor"):format(describe(y))) end
    key = key .. ">" .. table.concat(y:shape(), ",")
    local entry = recorded[key]
    if not entry then
      entry = record(f, xs, y, arguments, n)
      recorded[key] = entry
    end
    latest = entry
    op_binding.keep_body(latest)
    if y:wants_grad() then y = y:detach() end
    local call = { y = y, plan = entry.id, version = entry.version }
    for i, x in ipairs(xs) do call[NAMES[i]] = x end
    return (ops.custom_gradient(call))
  end
end

return gradients
