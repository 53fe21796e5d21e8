-- onnx_writer.lua -- the graph of an agent's step, of one environment, as an ONNX model: bytes of protobuf, of which ONNX takes little.
-- https://onnx.ai/onnx/repo-docs/IR.html; fields by number as in onnx.proto of opset 13
local bit = require "bit"
local ffi = require "ffi"
local plan_writer = require "mneme.portable.plan_writer"
local primitives = require "mneme.portable.primitives"
local tables = require "mneme.base.tables"

local writer = {}

local OPSET, IR = 13, 8
local FLOAT, INT64, BOOL = 1, 7, 9
local ATTRIBUTE_INT, ATTRIBUTE_INTS = 2, 7

-- ---- protobuf ----

local function varint(n)
  local bytes = {}
  local x = ffi.cast("uint64_t", ffi.cast("int64_t", n))
  repeat
    local low = tonumber(bit.band(x, 127))
    x = bit.rshift(x, 7)
    bytes[#bytes + 1] = string.char(x ~= 0 and low + 128 or low)
  until x == 0
  return table.concat(bytes)
end
local function whole(field, n) return varint(field * 8) .. varint(n) end
local function bytes(field, text) return varint(field * 8 + 2) .. varint(#text) .. text end
local function each(list, f) return table.concat(tables.map(list, f)) end

local function attribute(name, value)
  if type(value) == "number" then return bytes(5, bytes(1, name) .. whole(3, value) .. whole(20, ATTRIBUTE_INT)) end
  return bytes(5, bytes(1, name) .. each(value, function(n) return whole(8, n) end) .. whole(20, ATTRIBUTE_INTS))
end

local function tensor(name, kind, shape, data)
  return each(shape, function(n) return whole(1, n) end) .. whole(2, kind) .. bytes(8, name) .. bytes(9, data)
end

local function value_info(name, shape, kind)
  local dims = each(shape, function(n) return bytes(1, whole(1, n)) end)
  return bytes(1, name) .. bytes(2, bytes(1, whole(1, kind) .. bytes(2, dims)))
end

local function floats_of(data, n) return ffi.string(ffi.cast("const char *", data), 4 * n) end
local function whole_numbers(list)
  local data = ffi.new("int64_t[?]", math.max(1, #list))
  for i, n in ipairs(list) do data[i - 1] = n end
  return ffi.string(ffi.cast("const char *", data), 8 * #list)
end

-- ---- nodes ----

local unary = { neg = "Neg", exp = "Exp", log = "Log", sqrt = "Sqrt", abs = "Abs", sin = "Sin", cos = "Cos", tan = "Tan", atan = "Atan", tanh = "Tanh",
  sigmoid = "Sigmoid", softplus = "Softplus", relu = "Relu", erf = "Erf", floor = "Floor", ceil = "Ceil", sign = "Sign" }
local binary = { add = "Add", sub = "Sub", mul = "Mul", div = "Div", pow = "Pow", maximum = "Max", minimum = "Min" }
local truths = { lt = "Less", le = "LessOrEqual", eq = "Equal" }

---The model.
---@param graph table of portable/step_graph.lua
---@param about string what the agent is
---@return string bytes
function writer.text(graph, about)
  local nodes, weights, of, numbered = {}, {}, {}, {}
  local function node(op, from, name, attributes)
    local list = tables.map(from, function(x) return bytes(1, x) end)
    list[#list + 1] = bytes(2, name) .. bytes(3, name) .. bytes(4, op)
    for key, value in pairs(attributes or {}) do list[#list + 1] = attribute(key, value) end
    nodes[#nodes + 1] = bytes(1, table.concat(list))
    return name
  end
  local function list_of(numbers)
    local key = "i" .. table.concat(numbers, "_")
    if not numbered[key] then
      numbered[key] = true
      weights[#weights + 1] = bytes(5, tensor(key, INT64, { #numbers }, whole_numbers(numbers)))
    end
    return key
  end
  local function truth(x, name) return node("Cast", { x }, name, { to = BOOL }) end

  for _, v in ipairs(graph.nodes) do
    local name, from = "v" .. v.id, tables.map(v.from, function(x) return of[x] end)
    of[v], numbered[v.f or v.op] = name, true
    if v.op == "parameter" or v.op == "constant" then
      if v.op == "parameter" then name, of[v] = v.name, v.name end
      local n = primitives.product(v.shape)
      weights[#weights + 1] = bytes(5, tensor(name, FLOAT, v.shape, floats_of(v.op == "parameter" and v.data or plan_writer.floats(v.list), n)))
    elseif v.op == "input" then of[v] = v.name
    elseif v.op == "unary" then
      if v.f == "log1p" then node("Log", { node("Add", { from[1], "unit" }, name .. "_1") }, name)
      elseif v.f == "expm1" then node("Sub", { node("Exp", from, name .. "_1"), "unit" }, name)
      else node(unary[v.f], from, name) end
    elseif v.op == "binary" then
      if truths[v.f] then node("Cast", { node(truths[v.f], from, name .. "_1") }, name, { to = FLOAT })
      elseif v.f == "mod" then node("Mod", from, name, { fmod = 1 })
      else node(binary[v.f], from, name) end
    elseif v.op == "where" then node("Where", { truth(from[1], name .. "_1"), from[2], from[3] }, name)
    elseif v.op == "matmul" then
      if v.turned then
        local n = #v.from[2].shape
        local order = tables.filled(n, function(i) return i - 1 end)
        order[n], order[n - 1] = order[n - 1], order[n]
        from[2] = node("Transpose", { from[2] }, name .. "_1", { perm = order })
      end
      node("MatMul", from, name)
    elseif v.op == "reduce" then
      if v.f == "sum" then node("ReduceSum", { from[1], list_of { v.axis } }, name, { keepdims = 1 })
      else node(v.f == "max" and "ReduceMax" or "ReduceMin", from, name, { axes = { v.axis }, keepdims = 1 }) end
    elseif v.op == "reshape" then node("Reshape", { from[1], list_of(v.shape) }, name)
    elseif v.op == "expand" then node("Expand", { from[1], list_of(v.shape) }, name)
    elseif v.op == "transpose" then node("Transpose", from, name, { perm = v.order })
    elseif v.op == "slice" then node("Slice", { from[1], list_of { v.first }, list_of { v.past }, list_of { v.axis } }, name)
    elseif v.op == "concat" then node("Concat", from, name, { axis = v.axis })
    elseif v.op == "take" then node("Gather", { from[1], node("Cast", { from[2] }, name .. "_1", { to = INT64 }) }, name, { axis = v.axis })
    else node("Identity", from, name) end
  end
  if numbered.log1p or numbered.expm1 then weights[#weights + 1] = bytes(5, tensor("unit", FLOAT, {}, floats_of(ffi.new("float[1]", 1), 1))) end
  local ends = tables.map(graph.inputs, function(one) return bytes(11, value_info(one.name, one.value.shape, FLOAT)) end)
  for _, one in ipairs(graph.outputs) do
    local name = one.state and "next_" .. one.name or one.name
    node("Identity", { of[one.value] }, name)
    ends[#ends + 1] = bytes(12, value_info(name, one.value.shape, FLOAT))
  end
  local body = table.concat(nodes) .. bytes(2, "agent") .. table.concat(weights) .. table.concat(ends)
  local start = each(graph.inputs, function(one)
    local t = graph.start[one.state]
    return t and bytes(14, bytes(1, "start." .. one.name) .. bytes(2, plan_writer.hex(t:data(), t:size())))
  end)
  return whole(1, IR) .. bytes(2, "mneme") .. bytes(6, about) .. bytes(7, body) .. bytes(8, bytes(1, "") .. whole(2, OPSET)) .. start
end

return writer
