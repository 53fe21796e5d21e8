-- state_arrays.lua -- how a core's named state tensors divide into layers and heads: "layers.0.C" is kind "C" of layer 0, and
-- its dimensions "HVK" say that its first axis counts heads.
local ffi = require "ffi"
local tables = require "mneme.base.tables"

local state_arrays = {}

-- Probes of these kinds are gates; the first that a core has is drawn over time.
state_arrays.gates = { "beta", "z", "write", "gate", "g", "i", "gamma", "r", "f", "o", "decay", "w", "keep", "keep_v", "keep_k" }

---Split a name such as "layers.0.C".
---@param name string
---@return integer? layer from 0; nil where the name has none
---@return string kind
function state_arrays.parse(name)
  local layer, kind = name:match "^layers?%.(%d+)%.(.+)$"
  return tonumber(layer), kind or name
end

---How many numbers a shape holds.
state_arrays.size = tables.product

local MOST = 2 ^ 31

---Is this, from a file, a shape: up to 8 whole lengths of at least 1, fewer than 2^31 values?
---@param dims any a letter for each axis, or nil
function state_arrays.is_shape(shape, dims)
  if type(shape) ~= "table" or #shape > 8 or dims ~= nil and (type(dims) ~= "string" or #dims ~= #shape) then return false end
  for _, length in ipairs(shape) do
    if type(length) ~= "number" or length % 1 ~= 0 or length < 1 or length > MOST then return false end
  end
  return state_arrays.size(shape) < MOST
end

---A core's state of one environment, as arrays without values yet: name -> { shape, dims }, from the core's own
---declaration.
function state_arrays.of_core(core)
  local arrays = {}
  for name, axes in pairs(core.states) do
    local shape = core:state_shape(name, 1)
    table.remove(shape, core:batch_axis(name))
    arrays[name] = { shape = shape, dims = axes:gsub("%W", ""):gsub("B", "", 1) }
  end
  return arrays
end

---The sizes around an axis of a shape: the product of those before it, and of those after it.
---@param axis integer from 1
---@return integer blocks, integer inner
function state_arrays.around(shape, axis) return tables.product(shape, 1, axis - 1), tables.product(shape, axis + 1) end

---A function that returns a pointer to one environment's values of a state tensor, those of of_core; where the
---batch is not the first axis they are gathered into a buffer that the next call overwrites.
---@return fun(env: integer): ffi.cdata* by the index of an environment, from 0
function state_arrays.env_reader(core, name, t)
  local shape, axis = t:shape(), core:batch_axis(name)
  local B, blocks, inner = shape[axis], state_arrays.around(shape, axis)
  -- Asking for the numbers each time makes a plan finish what it only makes when it is read.
  if axis == 1 then return function(b) return t:data() + b * inner end end
  local buffer = ffi.new("float[?]", blocks * inner)
  return function(b)
    local data = t:data()
    for block = 0, blocks - 1 do ffi.copy(buffer + block * inner, data + (block * B + b) * inner, inner * 4) end
    return buffer
  end
end

---Which axis of an array counts heads, from 1; nil if none does.
---@param array table { shape = {...}, dims = "HVK"? one letter an axis }
---@param n_heads integer? what the core's state says, for arrays without dims: probes, of which [T,B,H] has one value a head
function state_arrays.head_axis(array, n_heads)
  if array.dims then return (array.dims:find("H", 1, true)) end
  if #array.shape == 1 and n_heads ~= 1 and array.shape[1] == n_heads then return 1 end
  for axis = 1, #array.shape - 1 do
    if array.shape[axis] == n_heads then return axis end
  end
end

---How many heads an array has; 1 where it is not divided.
---@param array table { shape, dims? }
---@param n_heads integer? of the core; nil: as its dims say
---@return integer
function state_arrays.count(array, n_heads)
  local axis = state_arrays.head_axis(array, n_heads)
  return axis and array.shape[axis] or 1
end

---One head's numbers as a matrix: the last axis makes the columns, all others the rows.
---@param array table { shape, dims?, values }
---@param head integer from 0
---@param n_heads integer? as for count
---@return integer rows, integer cols, ffi.cdata* values float[rows * cols]
function state_arrays.slice(array, head, n_heads)
  local shape, axis = array.shape, state_arrays.head_axis(array, n_heads)
  if not axis then
    local cols = math.max(1, shape[#shape] or 1)
    return state_arrays.size(shape) / cols, cols, array.values
  end
  local outer, inner = state_arrays.around(shape, axis)
  local values = ffi.new("float[?]", outer * inner)
  for i = 0, outer - 1 do
    ffi.copy(values + i * inner, array.values + (i * shape[axis] + head) * inner, inner * 4)
  end
  local cols = axis == #shape and outer or shape[#shape]
  return outer * inner / cols, cols, values
end

---Least, mean and greatest value of n floats.
---@param values ffi.cdata*|number[] from 0
---@param n integer
---@return number least
---@return number mean
---@return number greatest
function state_arrays.summary(values, n)
  local least, greatest, sum = math.huge, -math.huge, 0
  for i = 0, n - 1 do
    local v = values[i]
    if v < least then least = v end
    if v > greatest then greatest = v end
    sum = sum + v
  end
  return least, sum / n, greatest
end

---The rows of a grid: each head of each layer, or the layers if none is divided into heads.
---@param layers integer[]
---@param kinds string[]
---@param by_layer table as of grid
---@param n_heads integer?
---@return table[] rows { layer, head = nil or from 0 }
---@return integer columns the most heads of a layer
function state_arrays.owners(layers, kinds, by_layer, n_heads)
  local rows, columns = {}, 1
  for _, layer in ipairs(layers) do
    for _, kind in ipairs(kinds) do
      local array = by_layer[layer][kind]
      if array then columns = math.max(columns, state_arrays.count(array, n_heads)) end
    end
  end
  for _, layer in ipairs(layers) do
    for head = 0, columns - 1 do rows[#rows + 1] = { layer = layer, head = columns > 1 and head or nil } end
  end
  return rows, columns
end

---The layers and kinds among named arrays, in order; single numbers (ticks) are left out.
---@param arrays table<string, table> name -> { shape, dims?, values }
---@param wanted string[]? only these kinds, in this order
---@return integer[] layers, string[] kinds, table by_layer by_layer[layer][kind] = array
function state_arrays.grid(arrays, wanted)
  local layers, kinds, by_layer, seen, ok = {}, {}, {}, {}, {}
  for _, kind in ipairs(wanted or {}) do ok[kind] = true end
  for name, array in pairs(arrays) do
    local layer, kind = state_arrays.parse(name)
    layer = layer or 0
    if state_arrays.size(array.shape) > 1 and (not wanted or ok[kind]) then
      if not by_layer[layer] then by_layer[layer], layers[#layers + 1] = {}, layer end
      if not seen[kind] then seen[kind], kinds[#kinds + 1] = true, kind end
      by_layer[layer][kind] = array
    end
  end
  table.sort(layers)
  table.sort(kinds)
  return layers, wanted or kinds, by_layer
end

return state_arrays
