-- plan_writer.lua -- the graph of an agent's step as JSON: what `load` of the Python module computes by NumPy.
local ffi = require "ffi"
local json = require "mneme.base.json"
local primitives = require "mneme.portable.primitives"
local tables = require "mneme.base.tables"

local writer = {}

local digits = {}
for byte = 0, 255 do digits[string.char(byte)] = ("%02x"):format(byte) end

-- Floats as hexadecimal text of their bytes, little-endian.
function writer.hex(data, n)
  local floats = ffi.new("float[?]", math.max(1, n))
  for i = 0, n - 1 do floats[i] = data[i] end
  return (ffi.string(floats, 4 * n):gsub(".", digits))
end

-- Numbers from 1 on as an array from 0 on.
function writer.floats(list)
  local floats = ffi.new("float[?]", math.max(1, #list))
  for i = 1, #list do floats[i - 1] = list[i] end
  return floats
end

-- A size: a number, or { n } for n of each environment.
local function sizes(list)
  return json.array(tables.map(list, function(size) return type(size) == "table" and json.array { size[1] } or size end))
end

---@param graph table of portable/step_graph.lua
---@param about table what the file says of the agent
function writer.text(graph, about)
  local nodes = tables.map(graph.nodes, function(v)
    local from, slice = json.array(tables.map(v.from, function(x) return x.id - 1 end)), v.op == "slice"
    return { op = v.f or v.op, of = v.op, from = from, shape = sizes(v.general), name = v.name, turned = v.turned, axis = v.axis,
      first = slice and sizes { v.first_of } or nil, past = slice and sizes { v.past_of } or nil, order = v.order and json.array(v.order),
      data = v.op == "parameter" and writer.hex(v.data, primitives.product(v.shape))
        or v.op == "constant" and writer.hex(writer.floats(v.list), #v.list) or nil }
  end)
  local function ends(list)
    return json.array(tables.map(list, function(one)
      local start = one.state and graph.start[one.state]
      return { name = one.name, node = one.value.id - 1, state = one.state, about = one.about, shape = sizes(one.value.general),
        start = start and one.about and writer.hex(start:data(), start:size()) or nil }
    end))
  end
  return json.encode { about = about, nodes = json.array(nodes), inputs = ends(graph.inputs), outputs = ends(graph.outputs) }
end

return writer
