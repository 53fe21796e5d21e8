-- memory_parts.lua -- the parts of a core's memory one by one, from all of it to each head or group of channels: the rows of a map.
local interventions = require "mneme.insight.episodes.interventions"
local state_arrays = require "mneme.models.state_arrays"

local memory_parts = {}
local GROUPS = 8                   -- of channels, where a layer has no heads
local MOST = 64                    -- entries of a state's first axis that are shown one by one

---@class MemoryRow
---@field word string as interventions take it: "layers.1.head.3"
---@field text string "layer 1, head 3"
---@field layer integer? from 0
---@field head integer? from 0

-- Sizes of a state's axes besides the one of environments.
local function sizes_of(core, name)
  local sizes = core:state_shape(name, 1)
  table.remove(sizes, core:batch_axis(name))
  return sizes
end

-- The channels of a layer whose states are vectors of one size; nil: they are not.
local function channels_of(core, names)
  local n
  for _, name in ipairs(names) do
    local sizes = sizes_of(core, name)
    if #sizes ~= 1 or n and sizes[1] ~= n then return nil end
    n = sizes[1]
  end
  return n
end

-- What a layer divides into: its heads and the states that have none, or groups of channels, or its states.
local function divided(core, layer, names)
  local rows, prefix, rest = {}, "layers." .. layer, {}
  for _, name in ipairs(names) do if not interventions.head_axis(core, name) then rest[#rest + 1] = name end end
  if #rest < #names then
    for head = 0, core.sizes.H - 1 do
      rows[#rows + 1] = { word = ("%s.head.%d"):format(prefix, head), text = ("layer %d, head %d"):format(layer, head), layer = layer, head = head }
    end
  end
  local channels = #rows == 0 and channels_of(core, names)
  for group = 0, channels and math.min(GROUPS, channels) - 1 or -1 do
    local n = math.min(GROUPS, channels)
    local first, last = math.floor(group * channels / n), math.floor((group + 1) * channels / n) - 1
    rows[#rows + 1] = { word = ("%s.channels.%d-%d"):format(prefix, first, last), layer = layer,
      text = (first == last and "layer %d, channel %d" or "layer %d, channels %d to %d"):format(layer, first, last) }
  end
  for _, name in ipairs(channels and {} or rest) do
    rows[#rows + 1] = { word = name, text = ("layer %d, %s"):format(layer, select(2, state_arrays.parse(name))), layer = layer }
  end
  return #rows > 1 and rows or {}
end

-- A state outside layers, by the index of its first axis; as a whole where that has one entry or very many.
local function entries(core, name)
  local rows, sizes = {}, sizes_of(core, name)
  for i = 0, #sizes > 1 and sizes[1] > 1 and sizes[1] <= MOST and sizes[1] - 1 or -1 do
    rows[#rows + 1] = { word = ("%s.%d"):format(name, i), text = ("%s %d"):format(name, i) }
  end
  return #rows > 0 and rows or { { word = name, text = name } }
end

---The rows of a map of a core's memory: all of it, each layer, and what the layers divide into.
---@param by string? "head" (default): heads, groups of channels or single states; "layer": layers alone
---@return MemoryRow[]
function memory_parts.list(core, by)
  interventions.parts(core, "all")                          -- an error where there is no memory
  local rows, layers, named, others = { { word = "all", text = "all" } }, {}, {}, {}
  for _, name in ipairs(core:state_names()) do
    local layer = state_arrays.parse(name)
    if not core:is_constant(name) then
      if not layer then others[#others + 1] = name
      elseif named[layer] then table.insert(named[layer], name)
      else named[layer], layers[#layers + 1] = { name }, layer end
    end
  end
  table.sort(layers)
  for _, layer in ipairs(layers) do
    if #layers > 1 then rows[#rows + 1] = { word = "layers." .. layer, text = "layer " .. layer, layer = layer } end
    for _, row in ipairs(by ~= "layer" and divided(core, layer, named[layer]) or {}) do rows[#rows + 1] = row end
  end
  for _, name in ipairs(others) do
    for _, row in ipairs(entries(core, name)) do rows[#rows + 1] = row end
  end
  return rows
end

return memory_parts
