-- nn.lua -- neural-network layers, named as in torch.nn: linear, conv2d, layer_norm, embedding, gru_gate, sequential, heads, dropout, conv1d,
-- group_norm, pooling, and activations as modules.  A module is called like a function, m(x), and lists its parameters by the names of torch's state dicts.
-- Several named parameters may share one packed leaf (a gate's six matrices are one product): the
-- names are views of it, and ops and optimisers use the leaf.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local module = require "mneme.tensor.module"
local tables = require "mneme.base.tables"
local parameters = require("mneme.tensor.random").parameters
local suggest = require("mneme.tensor.op_binding").suggest
local tensor = require "mneme.tensor.tensor"
local format = require("mneme.base.lazy") "mneme.base.format"
local random = require "mneme.tensor.random"
local engine = require "mneme.base.engine"
local ops = tensor.ops

local nn = {}

local parameter, check_options, check_init, check_width = parameters.new, parameters.check_options, parameters.check_init, parameters.check_width

nn.module, nn.init, nn.dry, nn.manual_seed = module.new, parameters.init, parameters.dry, parameters.manual_seed

-- The weight of a layer [d_out,...] and its bias, and both as nn.module takes them.
local function weighted(what, shape, options)
  local weight = parameter(shape, check_init(what, options.init, nn.init.orthogonal(math.sqrt(2))))
  local bias = options.bias ~= false and parameter { shape[1] } or nil
  return weight, bias, { { "weight", weight }, bias and { "bias", bias } }
end

-- The same of what scales and shifts d channels.
local function affine(d)
  local weight, bias = parameter { d }:fill(1), parameter { d }
  return weight, bias, { { "weight", weight }, { "bias", bias } }
end

---y = act(x w^T + b).  Names weight [d_out,d_in], bias [d_out].
---@param d_in integer
---@param d_out integer
---@param options table? { bias = true, act = "none"|"relu"|"sigmoid"|"tanh"|"elu1", init = nn.init.orthogonal(sqrt 2) }
---@return Module
function nn.linear(d_in, d_out, options)
  check_width("linear", "d_in", d_in, "d_out", d_out)
  options = check_options("linear", options or {}, "bias act init")
  local weight, bias, named = weighted("linear", { d_out, d_in }, options)
  local args = { w = weight, b = bias, act = options.act or "none" }
  local about = ("%d -> %d%s%s"):format(d_in, d_out, bias and "" or ", bias = false", options.act and ", act = " .. tostring(options.act) or "")
  return nn.module({ kind = "linear", about = about, act = options.act, weight = weight, bias = bias, named = named }, function(_, x)
    args.x = x
    return (ops.linear(args))
  end)
end

---A convolution over images [T,B,Y,X,d_in], float32 or uint8 (taken as 0..1), with its activation.
---Names weight [d_out,d_in,kernel,kernel], bias [d_out], as torch.nn.Conv2d.
---@param d_in integer channels
---@param d_out integer channels
---@param kernel integer its side, in pixels
---@param options table? { stride = 1, padding = 0, act = "none"|"relu", init = nn.init.orthogonal(sqrt 2) }
---@return Module
function nn.conv2d(d_in, d_out, kernel, options)
  check_width("conv2d", "d_in", d_in, "d_out", d_out, "kernel", kernel)
  options = check_options("conv2d", options or {}, "stride padding act init")
  local weight, bias, named = weighted("conv2d", { d_out, d_in, kernel, kernel }, options)
  local args = { w = weight, b = bias, stride = options.stride or 1, padding = options.padding or 0, act = options.act or "none" }
  local about = ("%d -> %d, kernel = %d, stride = %s, padding = %s%s"):format(d_in, d_out, kernel, tostring(args.stride), tostring(args.padding),
    options.act and ", act = " .. tostring(options.act) or "")
  return nn.module({ kind = "conv2d", about = about, act = options.act, weight = weight, bias = bias, named = named }, function(_, x)
    if not tensor.is(x) then errors.raise(("nn.conv2d: x is %s, expected a tensor [T,B,Y,X,%d]"):format(tostring(x), d_in)) end
    local bytes = x:dtype() == "u8"
    args.x, args.image = not bytes and x or nil, bytes and x or nil
    return (ops.conv2d(args))
  end)
end

---Initialise several linears as one matrix of all their rows (as a fused Dense layer would be).
---@param linears Module[] with equally many columns
---@param init fun(p: ffi.cdata*, rows: integer, cols: integer) such as nn.init.orthogonal(1)
function nn.init_together(linears, init)
  local rows, cols = 0, linears[1].weight:shape()[2]
  for _, l in ipairs(linears) do rows = rows + l.weight:shape()[1] end
  local all, at = ffi.new("float[?]", rows * cols), 0
  init(all, rows, cols)
  for _, l in ipairs(linears) do
    ffi.copy(l.weight:data(), all + at, l.weight:size() * 4)
    at = at + l.weight:size()
  end
end

---Layer normalisation over the last axis, population variance.  Names weight, bias [d].
---@param d integer length of the last axis
---@param eps number? default 1e-6
---@return Module m(x) gives x's shape
function nn.layer_norm(d, eps)
  check_width("layer_norm", "d", d)
  local weight, bias, named = affine(d)
  local args = { weight = weight, bias = bias, eps = eps or 1e-6 }
  return nn.module({ kind = "layer_norm", about = tostring(d), eps = args.eps, named = named }, function(_, x)
    args.x = x
    return (ops.layer_norm(args))
  end)
end

---Rows of a table: m(index) with index [...] i32 gives [...,d].  Name weight [n,d].
---@param n integer rows
---@param d integer length of a row
---@param init fun(p: ffi.cdata*, rows: integer, cols: integer)? default nn.init.normal(1), as torch's
---@return Module
function nn.embedding(n, d, init)
  check_width("embedding", "n", n, "d", d)
  local weight = parameter({ n, d }, check_init("embedding", init, nn.init.normal()))
  return nn.module({ kind = "embedding", about = n .. ", " .. d, named = { { "weight", weight } } }, function(_, index)
    return (ops.embedding(weight, index))
  end)
end

---The gate of GTrXL (Parisotto et al. 2020, section 3.2): gate(x, y).  Names {w_r,u_r,w_z,u_z,w_g,u_g}.weight [d,d],
---bias [d] (starts at 2).
---@param d integer
---@param init fun(p: ffi.cdata*, rows: integer, cols: integer)? default nn.init.orthogonal(sqrt 2)
---@return Module
function nn.gru_gate(d, init)
  check_width("gru_gate", "d", d)
  local w, u, bias = parameter { 3, d, d }, parameter { 3, d, d }, parameter { d }:fill(2)
  init = check_init("gru_gate", init, nn.init.orthogonal(math.sqrt(2)))
  local named = {}
  for i, gate in ipairs { "r", "z", "g" } do
    for _, part in ipairs { { "w_", w }, { "u_", u } } do
      local window = tensor.view(part[2], (i - 1) * d * d, { d, d })
      init(window:data(), d, d)
      named[#named + 1] = { part[1] .. gate .. ".weight", window }
    end
  end
  named[#named + 1] = { "bias", bias }
  local args = { w = w, u = u, bias = bias }
  return nn.module({ kind = "gru_gate", about = tostring(d), leaves = { w, u, bias }, named = named }, function(_, x, y)
    args.x, args.y = x, y
    return (ops.gru_gate(args))
  end)
end

---Modules one after another, named "0", "1", ...: nn.sequential(nn.linear(4, 64), nn.tanh(), nn.linear(64, 2)).
---@param ... Module|fun(x: Tensor): Tensor modules or functions of one tensor, or one list of them
---@return Module
function nn.sequential(...)
  local list, children = { ... }, {}
  if #list == 1 and type(list[1]) == "table" and getmetatable(list[1]) == nil then list = list[1] end
  errors.need("nn.sequential", list[1] ~= nil and list or nil, nil, "modules")
  for i, m in ipairs(list) do
    local f = type(m) == "function" and m
    if not f and not module.of(m) then
      errors.raise(("nn.sequential: item %d is a %s, expected a module or a function"):format(i, type(m)))
    end
    children[i] = { tostring(i - 1), f and nn.module({ kind = "function", about = "" }, function(_, x) return f(x) end) or module.of(m) }
  end
  -- An error names the layer.
  local function handler(child)
    return function(e)
      local problem = errors.handler(e)
      problem.message = ("sequential.%s, %s(%s): %s"):format(child[1], child[2].kind or "module", child[2].about or "", problem.message)
      return problem
    end
  end
  for _, child in ipairs(children) do child.handler = handler(child) end
  return nn.module({ kind = "sequential", children = children }, function(_, x)
    for _, child in ipairs(children) do
      local ok, y = xpcall(child[2], child.handler, x)
      if not ok then error(y, 0) end
      x = y
    end
    return x
  end)
end

---A module made of named others, called as the function says: nn.container({ {"embed", m}, ... }, f).
---@param children table[] { name, module }
---@param call (fun(self: Module, ...): any)?
---@return Module
function nn.container(children, call)
  local list = {}
  for i, child in ipairs(type(children) == "table" and children or {}) do
    list[i] = type(child) == "table" and { child[1], module.need("nn.container: item " .. i, child[2]) } or child
  end
  return nn.module({ kind = "container", children = list }, call)
end

-- How the released agents' heads begin: gains of orthogonal matrices in the hidden layer, the policy's and the value's last.
local SQRT2 = math.sqrt(2)
local head_gains = { tanh = { SQRT2, SQRT2, SQRT2 }, relu = { 2, 0.01, 1 } }

---Policy and value from the core's output: two small networks, as in the released agents.
---Names actor.0, actor.1, critic.0, critic.1; returns logits [...,actions] and values [...].
---@param d integer width of the core's output
---@param hidden integer width of each network
---@param actions integer
---@param act "tanh"|"relu"|"leaky_relu"|nil of the hidden layers; tanh: all matrices start orthogonal times sqrt 2, as the released A2C; relu: times 2,
---  then 0.01 for the policy and 1 for the value, as the released Craftax agents; leaky_relu: layer normalisation without parameters before it, and
---  nine tenths of each row start at 0, as stream AC has them (Elsayed et al. 2024, algorithm 1)
---@param gain number? with which the policy's last matrix begins, instead
---@return Module
function nn.heads(d, hidden, actions, act, gain)
  act = act or "tanh"
  local sparse = act == "leaky_relu" and parameters.init.sparse(0.9)
  local gains = sparse and {} or head_gains[act] or errors.unknown("activation of heads:", tostring(act), { "leaky_relu", "relu", "tanh" })
  local one, zero = sparse and tensor.new { shape = { hidden } }:fill(1), sparse and tensor.new { shape = { hidden } }
  local function normalised(x) return (ops.leaky_relu((ops.layer_norm { x = x, weight = one, bias = zero, eps = 1e-5 }))) end
  local function head(n, last)
    if sparse then return nn.sequential { nn.linear(d, hidden, { init = sparse }), normalised, nn.linear(hidden, n, { init = sparse }) } end
    local first = nn.linear(d, hidden, { act = act, init = parameters.init.orthogonal(gains[1]) })
    return nn.sequential { first, nn.linear(hidden, n, { init = parameters.init.orthogonal(last) }) }
  end
  local actor = head(actions, gain or gains[2])
  local critic = head(1, gains[3])
  return nn.container({ { "actor", actor }, { "critic", critic } }, function(_, y)
    local shape, values = y:shape(), critic(y)
    return actor(y), ops.reshape(values, { d0 = shape[1], d1 = shape[2] })
  end)
end

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
function nn.dropout(p)
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
function nn.conv1d(d_in, d_out, kernel, options)
  check_width("conv1d", "d_in", d_in, "d_out", d_out, "kernel", kernel)
  options = check_options("conv1d", options or {}, "stride padding bias act init")
  local stride, padding, causal = options.stride or 1, options.padding or 0, options.padding == "causal"
  check_width("conv1d", "stride", stride)
  if padding == "same" and (kernel % 2 == 0 or stride ~= 1) then
    errors.raise(("nn.conv1d: padding = \"same\" with kernel = %d, stride = %d, expected an odd kernel and stride = 1"):format(kernel, stride))
  elseif causal and stride ~= 1 then errors.raise(("nn.conv1d: padding = \"causal\" with stride = %d, expected stride = 1"):format(stride)) end
  if padding == "same" then padding = (kernel - 1) / 2 end
  if not causal and (type(padding) ~= "number" or not (padding >= 0 and padding < kernel) or padding % 1 ~= 0) then
    errors.raise(("nn.conv1d: padding is %s, expected 0 to %d, \"same\" or \"causal\""):format(tostring(padding), kernel - 1))
  end
  local weight, bias, named = weighted("conv1d", { d_out, d_in, kernel }, options)
  local about = ("%d -> %d, kernel = %d, stride = %d, padding = %s%s"):format(d_in, d_out, kernel, stride, tostring(padding),
    options.act and ", act = " .. tostring(options.act) or "")
  return module.new({ kind = "conv1d", about = about, act = options.act, weight = weight, bias = bias, named = named },
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
function nn.group_norm(groups, d, eps)
  check_width("group_norm", "groups", groups, "d", d)
  if d % groups ~= 0 then errors.raise(("nn.group_norm: groups is %d, expected a divisor of the %d channels: %s"):format(groups, d, format.divisors(d))) end
  local weight, bias, named = affine(d)
  return module.new({ kind = "group_norm", about = groups .. ", " .. d, named = named }, function(_, x)
    local shape = shape_of("group_norm", x, 2, 6, ("[T,B,...,%d]"):format(d))
    local samples = x:reshape(shape[1], #shape > 2 and shape[2] or 1, -1, shape[#shape])
    return (ops.group_norm { x = samples, weight = weight, bias = bias, groups = groups, eps = eps or 1e-5 }):reshape(unpack(shape))
  end)
end

-- ---- pooling ----

local function pooling(name, kernel, options, known)
  check_width(name, "kernel", kernel)
  local args = tables.merged({ kernel = kernel }, check_options(name, options or {}, known))
  return module.new({ kind = name, about = tostring(kernel) }, function(_, x)
    args.x = x
    return (ops[name](args))
  end)
end

---The largest of each window of images [T,B,Y,X,C].
---@param kernel integer its side, in pixels
---@param options table? { stride = kernel, padding = 0, ceil = false }
---@return Module
function nn.max_pool2d(kernel, options) return pooling("max_pool2d", kernel, options, "stride padding ceil") end

---The mean of each window of images [T,B,Y,X,C], padding included.
---@param kernel integer its side, in pixels
---@param options table? { stride = kernel, padding = 0 }
---@return Module
function nn.avg_pool2d(kernel, options) return pooling("avg_pool2d", kernel, options, "stride padding") end

---The mean of each `kernel` rows of time of sequences [T,B,C]; rows left over at the end are dropped, as in torch.nn.AvgPool1d(kernel).
---@param kernel integer rows of a window, and from window to window
---@return Module m(x) gives [T / kernel,B,C]
function nn.avg_pool1d(kernel)
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
function nn.flatten(first)
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
function nn.identity() return module.new({ kind = "identity", about = "" }, function(_, x) return x end) end

-- nn.tanh() and its like: the op of that name as a module, with the op's option.
for name in ("elu elu1 gelu leaky_relu log_softmax mish relu sigmoid silu softmax softplus tanh"):gmatch "%S+" do
  if rawget(ops, name) then
    ---The op of this name as a module.
    ---@param option number? the op's, such as the slope of leaky_relu
    ---@return Module
    nn[name] = function(option)
      return module.new({ kind = name, about = option ~= nil and tostring(option) or "" }, function(_, x) return (ops[name](x, option)) end)
    end
  end
end

return suggest.guard("mn.nn.", nn, suggest.nn)
