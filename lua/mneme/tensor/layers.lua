-- layers.lua -- more layers of nn: dropout, conv1d, group_norm, pooling, and activations as modules.
local errors = require "mneme.base.errors"
local numbers = require "mneme.base.format"
local module = require "mneme.tensor.module"
local parameters = require "mneme.tensor.parameters"
local random = require "mneme.tensor.random"
local tensor = require "mneme.tensor.tensor"
local engine = require "mneme.base.engine"
local ops = tensor.ops
local parameter, check_options, check_init, check_width = parameters.new, parameters.check_options, parameters.check_init, parameters.check_width

local layers = {}

-- The shape of x, which a layer needs with so many axes.
local function shape_of(what, x, least, most, expected)
  local shape = tensor.is(x) and x:shape()
  if not shape or #shape < least or #shape > most then
    errors.raise(("nn.%s: x is %s, expected a tensor %s"):format(what, shape and "[" .. table.concat(shape, ",") .. "]" or tostring(x), expected))
  end
  return shape
end

-- ---- dropout ----

---Zeros each element with probability p and divides the others by 1 - p, while training: net:eval() switches it off, net:train() on.
---In a plan every replay draws again, and follows the switch.
---@param p number? default 0.5
---@return Module m(x) gives x's shape
function layers.dropout(p)
  if p == nil then p = 0.5 end
  if type(p) ~= "number" or not (p >= 0 and p <= 1) then errors.raise(("nn.dropout: p is %s, expected 0 to 1"):format(tostring(p))) end
  local rate = tensor.new { p }
  local m = module.new({ kind = "dropout", about = ("%g"):format(p) }, function(self, x)
    if not self.training and not engine.recording then return x end
    return random.dropout(x, rate)
  end)
  m.switched = function(on) rate:data()[0] = on and p or 0 end     -- backward has the rate of its forward, so no graph refuses
  return m
end

-- ---- convolution over time ----

-- Rows of zeros, to be put behind x.
local function rows_after(x, shape, n)
  return n > 0 and ops.concat(x, tensor.new { shape = { n, shape[2], shape[3] } }, { axis = 0 }) or x
end

-- Of rows from `first` on, every stride-th: `n` of them; there are n * stride.
local function every(rows, first, stride, n)
  local part = first == 0 and stride == 1 and rows or ops.slice(rows, { axis = 0, from = first, to = first + n * stride })
  if stride == 1 then return part end
  local shape = part:shape()
  return ops.slice(part:reshape(n, stride, shape[2], shape[3]), { axis = 1, to = 1 }):reshape(n, shape[2], shape[3])
end

---A convolution over time of sequences [T,B,d_in], as torch.nn.Conv1d (whose sequences are [B,d_in,T]).
---padding = "causal": row t sees rows t-kernel+1 .. t; then m(x, done, past) stops where an episode begins, starts from `past`
---[B,kernel-1,d_in], returns y and the past of what follows, and runs row by row.
---@param d_in integer channels
---@param d_out integer channels
---@param kernel integer rows that it sees
---@param options table? { stride = 1, padding = 0|"same"|"causal", bias = true, act = "none"|"relu"|..., init = nn.init.orthogonal(sqrt 2) }
---@return Module m(x) gives [(T + 2 padding - kernel) / stride + 1,B,d_out].  Names weight [d_out,d_in,kernel], bias [d_out]
function layers.conv1d(d_in, d_out, kernel, options)
  check_width("conv1d", "d_in", d_in)
  check_width("conv1d", "d_out", d_out)
  check_width("conv1d", "kernel", kernel)
  options = check_options("conv1d", options or {}, { stride = true, padding = true, bias = true, act = true, init = true })
  local stride, padding, causal = options.stride or 1, options.padding or 0, options.padding == "causal"
  check_width("conv1d", "stride", stride)
  if padding == "same" and (kernel % 2 == 0 or stride ~= 1) then
    errors.raise(("nn.conv1d: padding = \"same\" with kernel = %d, stride = %d, expected an odd kernel and stride = 1"):format(kernel, stride))
  elseif causal and stride ~= 1 then errors.raise(("nn.conv1d: padding = \"causal\" with stride = %d, expected stride = 1"):format(stride)) end
  if padding == "same" then padding = (kernel - 1) / 2 end
  if not causal and (type(padding) ~= "number" or not (padding >= 0 and padding < kernel) or padding % 1 ~= 0) then
    errors.raise(("nn.conv1d: padding is %s, expected 0 to %d, \"same\" or \"causal\""):format(tostring(padding), kernel - 1))
  end
  local weight, bias = parameter { d_out, d_in, kernel }, options.bias ~= false and parameter { d_out } or nil
  check_init("conv1d", options.init, parameters.init.orthogonal(math.sqrt(2)))(weight:data(), d_out, d_in * kernel)
  local named = { { "weight", weight }, bias and { "bias", bias } }
  local about = ("%d -> %d, kernel = %d, stride = %d, padding = %s%s"):format(d_in, d_out, kernel, stride, tostring(padding),
    options.act and ", act = " .. tostring(options.act) or "")
  return module.new({ kind = "conv1d", about = about, act = options.act, weight = weight, bias = bias, leaves = { weight, bias }, named = named },
    function(_, x, done, past)
    local shape = shape_of("conv1d", x, 3, 3, ("[T,B,%d]"):format(d_in))
    local w = ops.transpose(weight, { a = 1, b = 2 }):reshape(d_out, kernel * d_in)     -- the oldest row first, as frame_stack has it
    if causal then
      local seen = x
      if kernel > 1 then seen, past = ops.frame_stack { x = x, done = done, past = past, frames = kernel } end
      return (ops.linear { x = seen, w = w, b = bias, act = options.act or "none" }), past
    end
    if done or past then errors.raise "nn.conv1d: done and past go with padding = \"causal\"" end
    local n = math.floor((shape[1] + 2 * padding - kernel) / stride) + 1
    if n < 1 then errors.raise(("nn.conv1d: x has %d rows, expected at least %d"):format(shape[1], kernel - 2 * padding)) end
    local first = kernel - 1 - padding
    local seen = rows_after(x, shape, math.max(0, first + n * stride - shape[1]))
    if kernel > 1 then seen = ops.frame_stack { x = seen, frames = kernel } end
    return (ops.linear { x = every(seen, first, stride, n), w = w, b = bias, act = options.act or "none" })
  end)
end

-- ---- normalisation ----

---Normalisation of groups of channels over all positions of a sample, population variance (Wu, He 2018), as torch.nn.GroupNorm with
---channels last: x is [T,B,d], [T,B,...,d], or [N,d].  Names weight, bias [d].
---@param groups integer a divisor of d
---@param d integer channels
---@param eps number? default 1e-5
---@return Module m(x) gives x's shape
function layers.group_norm(groups, d, eps)
  check_width("group_norm", "groups", groups)
  check_width("group_norm", "d", d)
  if d % groups ~= 0 then errors.raise(("nn.group_norm: groups is %d, expected a divisor of the %d channels: %s"):format(groups, d, numbers.divisors(d))) end
  local weight, bias = parameter { d }:fill(1), parameter { d }
  local named = { { "weight", weight }, { "bias", bias } }
  return module.new({ kind = "group_norm", about = groups .. ", " .. d, leaves = { weight, bias }, named = named }, function(_, x)
    local shape = shape_of("group_norm", x, 2, 6, ("[T,B,...,%d]"):format(d))
    local samples = x:reshape(shape[1], #shape > 2 and shape[2] or 1, -1, shape[#shape])
    return (ops.group_norm { x = samples, weight = weight, bias = bias, groups = groups, eps = eps or 1e-5 }):reshape(unpack(shape))
  end)
end

-- ---- pooling ----

local function pooling(name, kernel, options, known)
  check_width(name, "kernel", kernel)
  local args = { kernel = kernel }
  for key, value in pairs(check_options(name, options or {}, known)) do args[key] = value end
  return module.new({ kind = name, about = tostring(kernel) }, function(_, x)
    args.x = x
    return (ops[name](args))
  end)
end

---The largest of each window of images [T,B,Y,X,C].
---@param kernel integer its side, in pixels
---@param options table? { stride = kernel, padding = 0, ceil = false }
---@return Module
function layers.max_pool2d(kernel, options) return pooling("max_pool2d", kernel, options, { stride = true, padding = true, ceil = true }) end

---The mean of each window of images [T,B,Y,X,C], padding included.
---@param kernel integer its side, in pixels
---@param options table? { stride = kernel, padding = 0 }
---@return Module
function layers.avg_pool2d(kernel, options) return pooling("avg_pool2d", kernel, options, { stride = true, padding = true }) end

---The mean of each `kernel` rows of time of sequences [T,B,C]; rows left over at the end are dropped, as in torch.nn.AvgPool1d(kernel).
---@param kernel integer rows of a window, and from window to window
---@return Module m(x) gives [T / kernel,B,C]
function layers.avg_pool1d(kernel)
  check_width("avg_pool1d", "kernel", kernel)
  return module.new({ kind = "avg_pool1d", about = tostring(kernel) }, function(_, x)
    local shape = shape_of("avg_pool1d", x, 3, 3, "[T,B,C]")
    local n = math.floor(shape[1] / kernel)
    if n < 1 then errors.raise(("nn.avg_pool1d: x has %d rows, expected at least %d"):format(shape[1], kernel)) end
    local whole = n * kernel == shape[1] and x or ops.slice(x, { axis = 0, to = n * kernel })
    return ops.mean(whole:reshape(n, kernel, shape[2], shape[3]), { axis = 1 })
  end)
end

-- ---- shapes and activations ----

---Joins the last axes: [T,B,...] gives [T,B,n].
---@param first integer? axes that stay, default 2
---@return Module
function layers.flatten(first)
  first = first or 2
  check_width("flatten", "first", first)
  return module.new({ kind = "flatten", about = "" }, function(_, x)
    local sizes = { unpack(shape_of("flatten", x, first, 6, "of at least " .. first .. " axes"), 1, first) }
    sizes[first + 1] = -1
    return x:reshape(unpack(sizes))
  end)
end

---Hands x on.
---@return Module
function layers.identity() return module.new({ kind = "identity", about = "" }, function(_, x) return x end) end

-- nn.tanh() and its like: the op of that name as a module, with the op's option.
for name in ("elu elu1 gelu leaky_relu log_softmax mish relu sigmoid silu softmax softplus tanh"):gmatch "%S+" do
  if rawget(ops, name) then
    ---The op of this name as a module.
    ---@param option number? the op's, such as the slope of leaky_relu
    ---@return Module
    layers[name] = function(option)
      return module.new({ kind = name, about = option ~= nil and tostring(option) or "" }, function(_, x) return (ops[name](x, option)) end)
    end
  end
end

return layers
