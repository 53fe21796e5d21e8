-- observation_torsos.lua -- encoders of observations: observations [T,B,...] of any element type become features [T,B,d] for the
-- core.  A torso is a module (nn.lua) with a field `d_out`, the core's input size.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local module = require "mneme.tensor.module"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local setting_types = require "mneme.base.setting_types"
local ops = tensor.ops

local torso = {}

-- What each torso is: the options it takes with their defaults, which observations it reads, and how it is made.
local kinds = {}

-- The features of a step in a row.
local function flattened(x)
  local shape = x:shape()
  if #shape == 3 then return x end
  return ops.reshape(x, { d0 = shape[1], d1 = shape[2], d2 = -1 })
end

-- A torso that gives so many features.
local function giving(d_out, m)
  m.d_out = d_out
  return m
end

kinds.flat = {
  reads = "numbers (f32)", options = {},
  fits = function(space) return space.dtype ~= "u8" and space.dtype ~= "i32" end,
  make = function(space)
    return nn.module({ d_out = tables.product(space.shape) }, function(_, x) return flattened(x) end)
  end,
}

kinds.linear = {
  reads = "numbers (f32)", options = { hidden = 128 },
  fits = kinds.flat.fits,
  make = function(space, o)
    local layer = nn.linear(tables.product(space.shape), o.hidden, { act = "relu" })
    return giving(o.hidden, nn.container({ { "0", layer } }, function(_, x) return layer(flattened(x)) end))
  end,
}

-- What a linear layer makes of one-hots and numbers, where the one-hots are given as the places of their ones, -1 for none.
kinds.rows = {
  reads = "numbers (f32): places of ones, then numbers", options = { hidden = 128, ones = 1, numbers = 1 },
  fits = function(space) return space.dtype ~= "u8" and #space.shape == 1 end,
  make = function(space, o)
    local places = space.shape[1] - o.numbers
    if places < 1 then errors.raise(("torso rows: numbers=%d, expected fewer than the %d of an observation"):format(o.numbers, space.shape[1])) end
    local layer, weight = nn.linear(o.ones + o.numbers, o.hidden), tensor.new { shape = { o.ones, o.hidden }, grad = true }
    local dense = nn.linear(o.numbers, o.hidden, { init = function() end })        -- both begin as the one layer does
    local from, to, all = layer.weight:data(), weight:data(), o.ones + o.numbers
    for d = 0, o.hidden - 1 do
      for n = 0, o.ones - 1 do to[n * o.hidden + d] = from[d * all + n] end
      for n = 0, o.numbers - 1 do dense.weight:data()[d * o.numbers + n] = from[d * all + o.ones + n] end
    end
    local table_of = nn.module({ named = { { "weight", weight } } }, function(_, index) return (ops.sum_rows(weight, index)) end)
    return giving(o.hidden, nn.container({ { "rows", table_of }, { "0", dense } }, function(_, x)
      local index = ops.cast { x = ops.slice { x = x, axis = -1, to = places }, to = "i32" }
      return ops.relu(table_of(index) + dense(ops.slice { x = x, axis = -1, from = places }))
    end))
  end,
}

kinds.codes = {
  reads = "codes (u8 with codes = n)", options = {},
  fits = function(space) return space.dtype ~= "f32" and (space.codes or 0) > 0 end,
  make = function(space)
    return nn.module({ d_out = tables.product(space.shape) * space.codes }, function(_, x)
      return flattened((space.dtype == "i32" and ops.one_hot { index = x, classes = space.codes } or ops.one_hot_codes(x, { codes = space.codes })))
    end)
  end,
}

kinds.embedding = {
  reads = "codes (u8, or a part of a dict)", options = { width = 16 },
  fits = function(space) return (space.codes or 0) > 0 end,
  make = function(space, o)
    local rows = nn.embedding(space.codes, o.width)
    return giving(tables.product(space.shape) * o.width,
      nn.container({ { "0", rows } }, function(_, x) return flattened(rows((ops.cast { x = flattened(x), to = "i32" }))) end))
  end,
}

-- ---- pictures ----

local function is_picture(space) return #space.shape == 3 and (space.codes or 0) == 0 end

-- Maps [T,B,Y,X,C] in a row, channel after channel, as torch has them.
local function channels_in_a_row(x)
  local s = x:shape()
  local pixels = ops.reshape(x, { d0 = s[1], d1 = s[2], d2 = s[3] * s[4], d3 = s[5] })
  return flattened((ops.transpose(pixels, { a = -1, b = -2 })))
end

-- The three convolutions of DQN: kernel, stride, channels; and the side of the smallest picture that they read.
local dqn, SMALLEST = { { 8, 4, 32 }, { 4, 2, 64 }, { 3, 1, 64 } }, 36

kinds.conv = {
  reads = "pictures [Y,X,C]", options = { hidden = 512 }, fits = is_picture,
  make = function(space, o)
    local y, x, channels = unpack(space.shape)
    local m = nn.container {}
    m.products = 0
    for i, layer in ipairs(dqn) do
      local kernel, stride, out = unpack(layer)
      m.children[i] = { tostring(2 * i - 2), nn.conv2d(channels, out, kernel, { stride = stride, act = "relu" }) }
      y, x = math.floor((y - kernel) / stride) + 1, math.floor((x - kernel) / stride) + 1
      m.products, channels = m.products + y * x * out * kernel ^ 2 * channels, out
    end
    if y < 1 or x < 1 then
      errors.raise(("torso conv needs pictures of at least 36 x 36 pixels, these have %d x %d"):format(space.shape[1], space.shape[2]),
        { hint = "torso impala takes any size" })
    end
    local last = nn.linear(y * x * channels, o.hidden, { act = "relu" })
    m.children[4], m.products = { "7", last }, m.products + y * x * channels * o.hidden
    m.d_out, m.call = o.hidden, function(_, picture)
      for i = 1, 3 do picture = m.children[i][2](picture) end
      return last(channels_in_a_row(picture))
    end
    return m
  end,
}

-- Residual blocks add up, so their layers start smaller than orthogonal times sqrt 2: as torch starts any layer.
local function as_torch(layer)
  local shape = layer.weight:shape()
  local fan_in = layer.weight:size() / shape[1]
  local init = nn.init.uniform(1 / math.sqrt(fan_in))
  init(layer.weight:data(), shape[1], fan_in)
  init(layer.bias:data(), shape[1], 1)
  return layer
end

-- One stage of IMPALA: a convolution, half the pixels, and two residual blocks.
local function stage(d_in, d)
  local function conv(from, act) return as_torch(nn.conv2d(from, d, 3, { padding = 1, act = act })) end
  local function block()
    local conv0, conv1 = conv(d, "relu"), conv(d)
    return nn.container({ { "conv0", conv0 }, { "conv1", conv1 } }, function(_, x) return x + conv1(conv0(ops.relu(x))) end)
  end
  local first, block0, block1 = conv(d_in), block(), block()
  return nn.container({ { "conv", first }, { "res_block0", block0 }, { "res_block1", block1 } }, function(_, x)
    local pooled = ops.max_pool2d { x = first(x), kernel = 3, stride = 2, padding = 1 }
    return block1(block0(pooled))
  end)
end

kinds.impala = {
  reads = "pictures [Y,X,C]", options = { hidden = 256 }, fits = is_picture,
  make = function(space, o)
    local y, x, channels = unpack(space.shape)
    local m = nn.container {}
    m.products = 0
    for i, d in ipairs { 16, 32, 32 } do
      m.children[i] = { tostring(i - 1), stage(channels, d) }
      m.products = m.products + y * x * d * 9 * channels
      y, x, channels = math.floor((y + 1) / 2), math.floor((x + 1) / 2), d
      m.products = m.products + 4 * y * x * d * 9 * d
    end
    local last = as_torch(nn.linear(y * x * channels, o.hidden, { act = "relu" }))
    m.children[4], m.products = { "5", last }, m.products + y * x * channels * o.hidden
    m.d_out, m.call = o.hidden, function(_, picture)
      for i = 1, 3 do picture = m.children[i][2](picture) end
      return last(channels_in_a_row((ops.relu(picture))))
    end
    return m
  end,
}

-- ---- several arrays ----

---Those that a torso reads: all but a mask of actions.
---@return ObservationPart[]
function torso.read_parts(parts) return tables.map(parts, function(part) return part.kind ~= "mask" and part or nil end) end

---A row of several arrays as tensors by name: floats and pictures (from 0 to 1) f32, codes i32, each [T,B,...].
---@param x Tensor [T,B,n]
---@return table<string, Tensor>
function torso.split(parts, x)
  local by_name, shape = {}, x:shape()
  for _, part in ipairs(torso.read_parts(parts)) do
    local y = #parts > 1 and ops.slice { x = x, axis = -1, from = part.from, to = part.from + part.n } or x
    if part.kind == "codes" then y = ops.cast { x = y, to = "i32" } elseif part.kind == "picture" then y = y * (1 / 255) end
    local sizes = { d0 = shape[1], d1 = shape[2] }
    for k, size in ipairs(part.shape) do sizes["d" .. k + 1] = size end
    by_name[part.name] = #part.shape == 1 and y or ops.reshape(y, sizes)
  end
  return by_name
end

kinds.dict = {
  reads = "several arrays by name", options = {},
  fits = function(space) return space.parts ~= nil end,
  make = function(space, o)
    local m, at, parts = nn.container {}, 0, torso.read_parts(space.parts)
    m.arrays = {}
    for i, part in ipairs(parts) do
      local usual = part.kind == "codes" and "embedding" or part.kind == "floats" and "linear" or nil
      local one = torso.for_space({ shape = part.shape, dtype = part.kind == "codes" and "i32" or "f32", codes = part.codes }, o[part.name] or usual
        or math.min(part.shape[1], part.shape[2]) < SMALLEST and "impala" or "conv", "torso." .. part.name)
      m.children[i] = { part.name, one }
      m.arrays[i] = { name = part.name, from = at, n = one.d_out }
      at, m.products = at + one.d_out, one.products and (m.products or 0) + one.products or m.products
    end
    m.d_out, m.call = at, function(_, x)
      local seen, y = torso.split(space.parts, x), nil
      for i, part in ipairs(parts) do
        local features = m.children[i][2](seen[part.name])
        y = y and ops.concat(y, features) or features
      end
      return y
    end
    return m
  end,
}

---The space as text: "u8 [84,84,3]", "u8 [11,11] of 7 codes", "card [2], eye [64,64,3]".
local function described(space)
  if space.parts then
    return table.concat(tables.map(space.parts, function(part) return ("%s [%s]"):format(part.name, table.concat(part.shape, ",")) end), ", ")
  end
  local codes = (space.codes or 0) > 0 and (" of %d codes"):format(space.codes) or ""
  return ("%s [%s]%s"):format(space.dtype or "f32", table.concat(space.shape, ","), codes)
end

local function whole(x, lo, hi) return type(x) == "number" and x % 1 == 0 and x >= lo and x <= hi end

-- A space as environments have them, or an error that says what it is not.
local function check_space(name, space)
  local function refuse(what) errors.raise(("torso %s: the space's %s"):format(name, what)) end
  for i, size in ipairs(space.shape) do errors.whole("torso " .. name, ("the space's shape[%d] is"):format(i), size, 1) end
  if space.dtype ~= nil and space.dtype ~= "f32" and space.dtype ~= "u8" and not (space.dtype == "i32" and space.codes) then
    refuse(("dtype is %s, expected f32 or u8"):format(tostring(space.dtype)))
  end
  if space.codes ~= nil and not whole(space.codes, 0, space.dtype == "i32" and 2 ^ 20 or 256) then
    refuse(("codes is %s, expected a whole number from 1 to 256, or nil"):format(tostring(space.codes)))
  end
end

---A torso by name:
---  flat    floats, put in a row
---  linear  the same, through a linear layer of `hidden` = 128 with relu
---  rows    the same layer of `ones` = N one-hot numbers and `numbers` = F others, of observations that say which of the N are 1 (-1:
---          none) and end with the F: rows of a table are summed in place of products with zeros
---  codes   u8 codes as one-hots, put in a row
---  embedding  codes, each as a vector of `width` = 16 that is learned
---  dict    several arrays by name, each through a torso of its own, the features side by side: codes through embedding, floats through linear,
---          pictures through conv or impala; { "dict", eye = "impala", place = { "linear", hidden = 32 }, card = your_module } chooses others
---  conv    pictures through the three convolutions of DQN and a linear layer of `hidden` = 512 (Mnih et al. 2015)
---  impala  pictures through a residual network of depths 16, 32, 32 and a linear layer of `hidden` = 256
---          (Espeholt et al. 2018)
---Parameters are named, and start, as in CleanRL's networks for Atari and Procgen.
---@param name string
---@param options table { space = env.observation_space, ... the torso's own }
---@return Module m(x) with x [T,B,...] gives [T,B,m.d_out]; torsos for pictures know their `products`, the
---  multiplications that one picture takes
function torso.new(name, options)
  local kind = kinds[name]
  if not kind then errors.unknown("torso", name, tables.keys(kinds)) end
  local space = type(options) == "table" and options.space
  if type(space) ~= "table" or type(space.shape) ~= "table" then
    errors.raise(("torso %s: expected { space = env.observation_space }"):format(name))
  end
  local chosen = tables.merged(kind.options)
  for key, value in pairs(options) do
    if kind == kinds.dict and key ~= "space" then
      local names, found = {}, false
      for i, part in ipairs(torso.read_parts(space.parts or {})) do names[i], found = part.name, found or part.name == key end
      if not found and space.parts then errors.unknown("part of the observation in torso dict:", key, names) end
      chosen[key] = value
    elseif key ~= "space" then
      if chosen[key] == nil then errors.unknown("option of torso " .. name, key, tables.keys(kind.options)) end
      chosen[key] = errors.whole("torso " .. name, key, value, 1)
    end
  end
  check_space(name, space)
  if not kind.fits(space) then
    errors.raise(("torso %s reads %s, but the observations are %s"):format(name, kind.reads, described(space)))
  end
  local m = kind.make(space, chosen)
  m.name = name
  return m
end

---A part of an agent that the script made: a module, or a function, which has no parameters.  It is called once on zeros.
---@param what string "agent: torso", for errors
---@param part Module|function
---@param input Tensor [T,B,...]
---@param expected string the shapes that it may give, in words
---@param fits fun(shape: integer[]): boolean are these sizes of one step, without [T,B], right?
---@return Module
---@return integer[] shape of what it gives for one step: without [T,B]
function torso.own(what, part, input, expected, fits)
  local own = part
  if type(part) == "function" then own = nn.module({}, function(_, x) return part(x) end) end
  own = module.need(what, own)
  local ok, y = errors.try(tensor.no_grad, own, input)
  if not ok then errors.raise(("%s, called with zeros [%s]: %s"):format(what, table.concat(input:shape(), ","), y.message)) end
  local from, shape = input:shape(), tensor.is(y) and y:shape()
  if not shape or y:dtype() ~= "f32" or shape[1] ~= from[1] or shape[2] ~= from[2] or not fits { unpack(shape, 3) } then
    errors.raise(("%s gave %s for [%s], expected %s"):format(what,
      shape and ("[%s] (%s)"):format(table.concat(shape, ","), y:dtype()) or type(y) == "nil" and "nothing" or "a " .. type(y),
      table.concat(from, ","), expected))
  end
  return own, { unpack(shape, 3) }
end

---The torso of an environment's observations: the one asked for, or else the one that fits.
---@param space table env.observation_space: { shape, dtype = "f32"|"u8", codes }
---@param asked string|table|function|nil a name, { name, option = value }, or one of your own: a module or function that makes [T,B,d]
---  of [T,B,...]; of observations with several arrays it gets these by name; d is found by calling it
---@param what string? "torso.eye", for errors
---@return Module
function torso.for_space(space, asked, what)
  if type(asked) == "function" or module.of(asked) then
    local zeros = tensor.new { shape = { 2, 3, unpack(space.shape) }, dtype = space.dtype }
    if space.parts then
      local by_name = asked
      local function call(_, x) return by_name(torso.split(space.parts, x)) end
      asked = module.of(asked) and nn.container({ { "own", module.of(asked) } }, call) or nn.module({}, call)
    end
    local own, shape = torso.own("agent: " .. (what or "torso"), asked, zeros, "[2,3,d]: the features of each step", function(sizes) return #sizes == 1 end)
    if own.d_out ~= nil and own.d_out ~= shape[1] then
      errors.raise(("agent: torso has d_out=%s, but gives %d numbers a step"):format(tostring(own.d_out), shape[1]))
    end
    own.d_out = shape[1]
    return own
  end
  local name, options = asked, { space = space }
  if type(asked) == "table" then
    name, options = asked[1] or asked.name, tables.merged(options, asked)
    options[1], options.name = nil, nil
  end
  name = name or space.parts and "dict"
    or space.dtype ~= "u8" and "flat" or (space.codes or 0) > 0 and "codes"
    or is_picture(space) and math.min(space.shape[1], space.shape[2]) < SMALLEST and "impala" or "conv"
  return torso.new(name, options)
end

---Is it, or a part of it, the script's own?
---@param asked any as for_space takes it
function torso.is_own(asked)
  if type(asked) == "function" or module.of(asked) then return true end
  for _, part in pairs(type(asked) == "table" and asked or {}) do if torso.is_own(part) then return true end end
  return false
end

---What there is, as rows of a help text: name, what it reads, its options.
---@return string[][]
function torso.rows()
  local rows = {}
  for _, name in ipairs(tables.keys(kinds)) do
    rows[#rows + 1] = { name, kinds[name].reads, setting_types.show(kinds[name].options) }
  end
  return rows
end

return torso
