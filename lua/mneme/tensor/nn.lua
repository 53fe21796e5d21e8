-- nn.lua -- neural-network layers, named as in torch.nn: linear, conv2d, layer_norm, embedding, gru_gate, sequential, heads.
-- A module is called like a function, m(x), and lists its parameters by the names of torch's state dicts.
-- Several named parameters may share one packed leaf (a gate's six matrices are one product): the
-- names are views of it, and ops and optimisers use the leaf.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local C, ops = engine.C, tensor.ops

local nn = {}

-- ---- initial values: counter-based, so that they depend on the seed and the order of creation alone ----

local seed, stream = 0, 0

---Start the random numbers of initial parameters again.
---@param s integer
function nn.manual_seed(s)
  if type(s) ~= "number" or s % 1 ~= 0 then errors.raise(("manual_seed: %s, expected a whole number"):format(tostring(s))) end
  seed, stream = s, 0
end

local function normal(p, n)
  C.mn_random_normal(seed, stream, 1, p, n)
  stream = stream + 1
end

nn.init = {}

local dry = false

---Call f with parameters left at zero: to count them, not to use them.
---@param f function|table called with what follows
---@return any what it returns
function nn.dry(f, ...)
  dry = true
  local ok, result = pcall(f, ...)
  dry = false
  if not ok then error(result, 0) end
  return result
end

---Orthogonal rows (or columns, whichever are fewer), times gain; `groups` blocks of rows on their own.
---@param gain number
---@param groups integer? default 1
---@return fun(p: ffi.cdata*, rows: integer, cols: integer)
function nn.init.orthogonal(gain, groups)
  return function(p, rows, cols)
    if dry then return end
    groups = groups or 1
    normal(p, rows * cols)
    for g = 0, groups - 1 do engine.orthogonal(p + g * rows / groups * cols, rows / groups, cols, gain) end
  end
end

---Truncated normal with variance 1/fan_in (flax's lecun_normal).
---@return fun(p: ffi.cdata*, rows: integer, cols: integer)
function nn.init.lecun_normal()
  return function(p, rows, cols)
    if dry then return end
    local n, spare = rows * cols, ffi.new("float[?]", 4096)
    local std, left = math.sqrt(1 / cols) / 0.87962566103423978, 0
    normal(p, n)
    for i = 0, n - 1 do
      while math.abs(p[i]) > 2 do        -- draw again what lies beyond two standard deviations
        if left == 0 then normal(spare, 4096) left = 4096 end
        left = left - 1
        p[i] = spare[left]
      end
      p[i] = p[i] * std
    end
  end
end

---Normal with a standard deviation.
---@param std number? default 1
---@return fun(p: ffi.cdata*, rows: integer, cols: integer)
function nn.init.normal(std)
  return function(p, rows, cols)
    if dry then return end
    normal(p, rows * cols)
    for i = 0, rows * cols - 1 do p[i] = (std or 1) * p[i] end
  end
end

---Uniform between -bound and bound.
---@param bound number
---@return fun(p: ffi.cdata*, rows: integer, cols: integer)
function nn.init.uniform(bound)
  return function(p, rows, cols)
    if dry then return end
    C.mn_random_uniform(seed, stream, 1, p, rows * cols)
    stream = stream + 1
    for i = 0, rows * cols - 1 do p[i] = bound * (2 * p[i] - 1) end
  end
end

-- ---- modules ----

---@class Module
---@field weight Tensor? of linear, conv2d
---@field bias Tensor?
---@field leaves Tensor[] what an optimiser moves
---@field named table[] { name, tensor, buffer = boolean? }
---@field children table[] { name, module }
local Module = {}
Module.__index = Module

-- What is in no list would not be trained, without a word.
local function check_list(what, list, thing)
  for key, entry in pairs(list) do
    local fine = type(key) == "number" and type(entry) == "table" and type(entry[1]) == "string"
      and (type(entry[2]) == "table" or type(entry[2]) == "cdata")
    if not fine then
      errors.raise(("nn.module: %s[%s] is %s, expected { name, %s }"):format(what, tostring(key), tostring(entry), thing))
    end
  end
end

---A module: `leaves` own the numbers that are trained, `named` lists { name, tensor } (leaves or windows; with
---buffer = true: saved but not trained), `children` lists { name, module }; `call` is what m(...) does.
---@generic T: table
---@param m T { leaves, named, children }; anything else in it stays its own
---@param call (fun(self: Module, ...): any)?
---@return T|Module m
function nn.module(m, call)
  errors.need("nn.module", m, nil, "{ leaves = ..., named = ..., children = ... }")
  m.leaves, m.named, m.children, m.call = m.leaves or {}, m.named or {}, m.children or {}, call
  check_list("named", m.named, "a tensor")
  check_list("children", m.children, "a module")
  return setmetatable(m, Module)
end

---What the module computes.
---@param ... any usually one Tensor
---@return Tensor y
---@return any ... what else it returns
function Module:__call(...) return self.call(self, ...) end

---Visit every named parameter and buffer in a fixed order: f(name, tensor, buffer).
---@param f fun(name: string, t: Tensor, buffer: boolean?)
---@param prefix string? put before each name
function Module:each(f, prefix)
  prefix = prefix or ""
  for _, p in ipairs(self.named) do f(prefix .. p[1], p[2], p.buffer) end
  for _, child in ipairs(self.children) do child[2]:each(f, prefix .. child[1] .. ".") end
end

---The leaves that an optimiser moves, packed ones once.
---@param into Tensor[]? a list to add to
---@return Tensor[]
function Module:parameters(into)
  into = into or {}
  for _, leaf in ipairs(self.leaves) do into[#into + 1] = leaf end
  for _, child in ipairs(self.children) do child[2]:parameters(into) end
  return into
end

---Of each leaf, in the same order, the part of the model that it belongs to: a layer, or the rest.
---@param into string[]? a list to add to
---@param path string? where this module stands in the model
---@return string[] "core.layers.0", "core.embed", "actor" ...
function Module:parts(into, path)
  into, path = into or {}, path or ""
  local part = path:match "^.-layers%.%d+" or path:gsub("%.%d.*$", "")
  for _ in ipairs(self.leaves) do into[#into + 1] = part end
  for _, child in ipairs(self.children) do child[2]:parts(into, path == "" and child[1] or path .. "." .. child[1]) end
  return into
end

---Names and tensors as in torch's state_dict; the tensors are the parameters themselves.
---@return table<string, Tensor>
function Module:state_dict()
  local dict = {}
  self:each(function(name, t) dict[name] = t end)
  return dict
end

---The part of the state_dict that is trained: without buffers.
---@return table<string, Tensor>
function Module:named_parameters()
  local dict = {}
  self:each(function(name, t, buffer) if not buffer then dict[name] = t end end)
  return dict
end

---How many numbers are trained.
---@return integer
function Module:count()
  local n = 0
  self:each(function(_, t, buffer) if not buffer then n = n + t:size() end end)
  return n
end

---Load values by name; missing and unexpected names, or other shapes, are errors before anything changes.
---@param dict table<string, Tensor>
function Module:load_state_dict(dict)
  errors.need("load_state_dict", dict, nil, "tensors by name")
  local mine, missing, unexpected = self:state_dict(), {}, {}
  for name, t in pairs(mine) do
    local from = dict[name]
    if not from then missing[#missing + 1] = name
    elseif not tensor.is(from) then errors.raise(("load_state_dict: %s is a %s, expected a tensor"):format(name, type(from)))
    else
      local a, b = table.concat(t:shape(), ","), table.concat(from:shape(), ",")
      if a ~= b then errors.raise(("load_state_dict: %s is [%s], expected [%s]"):format(name, b, a)) end
    end
  end
  for name in pairs(dict) do if not mine[name] then unexpected[#unexpected + 1] = tostring(name) end end
  table.sort(missing) table.sort(unexpected)
  if #missing + #unexpected > 0 then
    errors.raise(("load_state_dict: missing %s; unexpected %s"):format(
      #missing > 0 and table.concat(missing, ", ") or "nothing", #unexpected > 0 and table.concat(unexpected, ", ") or "nothing"))
  end
  for name, t in pairs(mine) do ffi.copy(t:data(), dict[name]:data(), t:size() * 4) end
end

local function parameter(shape) return tensor.new { shape = shape, grad = true } end

-- Options of a layer; a misspelt one would be none at all.
local function check_options(what, options, known)
  errors.need("nn." .. what .. ": options", options, nil, "a table such as { act = \"relu\" }")
  for key in pairs(options) do
    if not known[key] then errors.unknown("option of nn." .. what, key, tables.keys(known)) end
  end
  return options
end

-- What fills a parameter: given, or the usual.
local function check_init(what, init, usual)
  if init ~= nil and type(init) ~= "function" then
    errors.raise(("nn.%s: init is a %s, expected a function such as nn.init.normal(1)"):format(what, type(init)))
  end
  return init or usual
end

local function check_width(what, name, n)
  if type(n) ~= "number" or n < 1 or n % 1 ~= 0 then
    errors.raise(("nn.%s: %s is %s, expected a whole number of at least 1"):format(what, name, tostring(n)))
  end
end

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
  return nn.module({ weight = weight, bias = bias, leaves = { weight, bias }, named = named }, function(_, x)
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
  return nn.module({ weight = weight, bias = bias, leaves = { weight, bias }, named = named }, function(_, x)
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
  return nn.module({ leaves = { weight, bias }, named = { { "weight", weight }, { "bias", bias } } }, function(_, x)
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
  return nn.module({ leaves = { weight }, named = { { "weight", weight } } }, function(_, index)
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
  return nn.module({ leaves = { w, u, bias }, named = named }, function(_, x, y)
    args.x, args.y = x, y
    return (ops.gru_gate(args))
  end)
end

---Modules one after another, named "0", "1", ...
---@param list Module[]
---@return Module
function nn.sequential(list)
  errors.need("nn.sequential", list, nil, "a list of modules")
  local children = {}
  for i, m in ipairs(list) do children[i] = { tostring(i - 1), m } end
  return nn.module({ children = children }, function(_, x)
    for _, child in ipairs(children) do x = child[2](x) end
    return x
  end)
end

---A module made of named others, called as the function says: nn.container({ {"embed", m}, ... }, f).
---@param children table[] { name, module }
---@param call (fun(self: Module, ...): any)?
---@return Module
function nn.container(children, call) return nn.module({ children = children }, call) end

---Policy and value from the core's output: two small networks, as in the released agents.
---Names actor.0, actor.1, critic.0, critic.1; returns logits [...,actions] and values [...].
---@param d integer width of the core's output
---@param hidden integer width of each network
---@param actions integer
---@return Module
function nn.heads(d, hidden, actions)
  local actor = nn.sequential { nn.linear(d, hidden, { act = "tanh" }), nn.linear(hidden, actions) }
  local critic = nn.sequential { nn.linear(d, hidden, { act = "tanh" }), nn.linear(hidden, 1) }
  return nn.container({ { "actor", actor }, { "critic", critic } }, function(_, y)
    local shape, values = y:shape(), critic(y)
    return actor(y), ops.reshape(values, { d0 = shape[1], d1 = shape[2] })
  end)
end

return nn
