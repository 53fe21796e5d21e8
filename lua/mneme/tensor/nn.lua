-- nn.lua -- neural-network layers, named as in torch.nn: linear, conv2d, layer_norm, embedding, gru_gate, sequential, heads; layers.lua has
-- more.  A module is called like a function, m(x), and lists its parameters by the names of torch's state dicts.
-- Several named parameters may share one packed leaf (a gate's six matrices are one product): the
-- names are views of it, and ops and optimisers use the leaf.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local layers = require "mneme.tensor.layers"
local module = require "mneme.tensor.module"
local parameters = require "mneme.tensor.parameters"
local suggest = require "mneme.tensor.suggest"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local nn = {}

local parameter, check_options, check_init, check_width = parameters.new, parameters.check_options, parameters.check_init, parameters.check_width

nn.module, nn.init, nn.dry, nn.manual_seed = module.new, parameters.init, parameters.dry, parameters.manual_seed
for name, layer in pairs(layers) do nn[name] = layer end

---y = act(x w^T + b).  Names weight [d_out,d_in], bias [d_out].
---@param d_in integer
---@param d_out integer
---@param options table? { bias = true, act = "none"|"relu"|"sigmoid"|"tanh"|"elu1", init = nn.init.orthogonal(sqrt 2) }
---@return Module
function nn.linear(d_in, d_out, options)
  check_width("linear", "d_in", d_in)
  check_width("linear", "d_out", d_out)
  options = check_options("linear", options or {}, { bias = true, act = true, init = true })
  local weight = parameter { d_out, d_in }
  local bias = options.bias ~= false and parameter { d_out } or nil
  check_init("linear", options.init, nn.init.orthogonal(math.sqrt(2)))(weight:data(), d_out, d_in)
  local args = { w = weight, b = bias, act = options.act or "none" }
  local named = { { "weight", weight } }
  if bias then named[2] = { "bias", bias } end
  local about = ("%d -> %d%s%s"):format(d_in, d_out, bias and "" or ", bias = false", options.act and ", act = " .. tostring(options.act) or "")
  return nn.module({ kind = "linear", about = about, act = options.act, weight = weight, bias = bias, leaves = { weight, bias }, named = named }, function(_, x)
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
  check_width("conv2d", "d_in", d_in)
  check_width("conv2d", "d_out", d_out)
  check_width("conv2d", "kernel", kernel)
  options = check_options("conv2d", options or {}, { stride = true, padding = true, act = true, init = true })
  local weight, bias = parameter { d_out, d_in, kernel, kernel }, parameter { d_out }
  check_init("conv2d", options.init, nn.init.orthogonal(math.sqrt(2)))(weight:data(), d_out, d_in * kernel * kernel)
  local args = { w = weight, b = bias, stride = options.stride or 1, padding = options.padding or 0, act = options.act or "none" }
  local named = { { "weight", weight }, { "bias", bias } }
  local about = ("%d -> %d, kernel = %d, stride = %s, padding = %s%s"):format(d_in, d_out, kernel, tostring(args.stride), tostring(args.padding),
    options.act and ", act = " .. tostring(options.act) or "")
  return nn.module({ kind = "conv2d", about = about, act = options.act, weight = weight, bias = bias, leaves = { weight, bias }, named = named }, function(_, x)
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
  local weight, bias = parameter { d }:fill(1), parameter { d }
  local args = { weight = weight, bias = bias, eps = eps or 1e-6 }
  local named = { { "weight", weight }, { "bias", bias } }
  return nn.module({ kind = "layer_norm", about = tostring(d), eps = args.eps, leaves = { weight, bias }, named = named }, function(_, x)
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
  check_width("embedding", "n", n)
  check_width("embedding", "d", d)
  local weight = parameter { n, d }
  check_init("embedding", init, nn.init.normal())(weight:data(), n, d)
  return nn.module({ kind = "embedding", about = n .. ", " .. d, leaves = { weight }, named = { { "weight", weight } } }, function(_, index)
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
---@param act "tanh"|"relu"|nil of the hidden layers; tanh: all matrices start orthogonal times sqrt 2, as the released A2C; relu: times 2,
---  then 0.01 for the policy and 1 for the value, as the released Craftax agents
---@return Module
function nn.heads(d, hidden, actions, act)
  act = act or "tanh"
  local gains = head_gains[act] or errors.unknown("activation of heads:", tostring(act), { "relu", "tanh" })
  local function head(n, gain)
    local first = nn.linear(d, hidden, { act = act, init = parameters.init.orthogonal(gains[1]) })
    return nn.sequential { first, nn.linear(hidden, n, { init = parameters.init.orthogonal(gain) }) }
  end
  local actor = head(actions, gains[2])
  local critic = head(1, gains[3])
  return nn.container({ { "actor", actor }, { "critic", critic } }, function(_, y)
    local shape, values = y:shape(), critic(y)
    return actor(y), ops.reshape(values, { d0 = shape[1], d1 = shape[2] })
  end)
end

return suggest.guard("mn.nn.", nn, suggest.nn)
