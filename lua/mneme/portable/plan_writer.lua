-- plan_writer.lua -- the graph of an agent's step as JSON: what `load` of the Python module computes by NumPy.
local ffi = require "ffi"
local json = require "mneme.base.json"
local primitives = require "mneme.portable.primitives"

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
  local out = json.array {}
  for i, size in ipairs(list) do out[i] = type(size) == "table" and json.array { size[1] } or size end
  return out
end

---@param graph table of portable/step_graph.lua
---@param about table what the file says of the agent
function writer.text(graph, about)
  local nodes = json.array {}
  for i, v in ipairs(graph.nodes) do
    local from, slice = json.array {}, v.op == "slice"
    for k, x in ipairs(v.from) do from[k] = x.id - 1 end
    nodes[i] = { op = v.f or v.op, of = v.op, from = from, shape = sizes(v.general), name = v.name, turned = v.turned, axis = v.axis,
      first = slice and sizes { v.first_of } or nil, past = slice and sizes { v.past_of } or nil, order = v.order and json.array(v.order),
      data = v.op == "parameter" and writer.hex(v.data, primitives.product(v.shape))
        or v.op == "constant" and writer.hex(writer.floats(v.list), #v.list) or nil }
  end
  local function ends(list)
    local out = json.array {}
    for i, one in ipairs(list) do
      local start = one.state and graph.start[one.state]
      out[i] = { name = one.name, node = one.value.id - 1, state = one.state, about = one.about, shape = sizes(one.value.general),
        start = start and one.about and writer.hex(start:data(), start:size()) or nil }
    end
    return out
  end
  return json.encode { about = about, nodes = nodes, inputs = ends(graph.inputs), outputs = ends(graph.outputs) }
end

return writer
