-- primitives.lua -- the array operations that an exported agent is made of: every op of acting is lowered to these (lowering.lua), and each
-- writer (torch_writer.lua, onnx_writer.lua, c_writer.lua) has one line or loop for each of them.
--   input parameter constant   what goes in, what is learned, what stays
--   unary binary where         elementwise; binary and where broadcast from the right
--   matmul                     of the last two axes, the others broadcast; `turned`: b's are swapped
--   reduce                     sum, max or min along one axis, which stays with size 1
--   reshape transpose expand slice concat take detach
-- All values are float32: whole numbers up to 2^24 are exact, truth is 1 or 0.  A value is { graph, id, op, shape, from = values, ... } and has
-- Lua's operators + - * / and the functions below as methods.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local Value = {}
Value.__index = Value

local primitives = {}

local product = tables.product
primitives.product = product

local function node(graph, op, shape, from, rest)
  local v = rest or {}
  v.graph, v.op, v.shape, v.from, v.id = graph, op, shape, from, #graph.nodes + 1
  graph.nodes[v.id] = v
  return setmetatable(v, Value)
end

---An empty graph.
---@return table { nodes = values in the order of computing }
function primitives.graph() return { nodes = {}, scalars = {} } end

---@return table value
function primitives.input(graph, name, shape) return node(graph, "input", shape, {}, { name = name }) end

---@param data ffi.cdata* float[]
---@return table value
function primitives.parameter(graph, name, shape, data) return node(graph, "parameter", shape, {}, { name = name, data = data }) end

---@param data ffi.cdata*|table numbers from 0 on (a table: from 1 on)
---@return table value
function primitives.constant(graph, shape, data)
  local list = type(data) == "table" and data or tables.filled(product(shape), function(i) return tonumber(data[i - 1]) end)
  return node(graph, "constant", shape, {}, { list = list })
end

---f(0), f(1), ... f(n - 1).
---@param f fun(i: integer): number
---@return table value
function primitives.filled(graph, n, f)
  return primitives.constant(graph, { n }, tables.filled(n, function(i) return f(i - 1) end))
end

-- A value, or a number as one without axes.
local function lifted(graph, x)
  if type(x) ~= "number" then return x end
  local v = graph.scalars[x] or primitives.constant(graph, {}, { x })
  if x == x then graph.scalars[x] = v end
  return v
end

local function broadcast(...)
  local n, shape = 0, {}
  for i = 1, select("#", ...) do n = math.max(n, #(select(i, ...))) end
  for axis = 1, n do
    shape[axis] = 1
    for i = 1, select("#", ...) do
      local s = select(i, ...)
      local size = s[axis - n + #s] or 1
      if size ~= 1 and shape[axis] ~= 1 and size ~= shape[axis] then
        errors.fail(("primitives: [%s] does not broadcast with the others"):format(table.concat(s, ",")))
      end
      if size ~= 1 then shape[axis] = size end
    end
  end
  return shape
end

local unary = { "neg", "exp", "log", "sqrt", "abs", "sin", "cos", "tan", "atan", "tanh", "sigmoid", "softplus", "relu", "erf", "floor", "ceil", "sign",
  "log1p", "expm1" }
for _, f in ipairs(unary) do Value[f] = function(x) return node(x.graph, "unary", x.shape, { x }, { f = f }) end end
local binary = { "add", "sub", "mul", "div", "pow", "maximum", "minimum", "lt", "le", "eq", "mod" }        -- mod: of numbers that are not negative
for _, f in ipairs(binary) do
  Value[f] = function(a, b)
    local graph = (type(a) == "table" and a or b).graph
    a, b = lifted(graph, a), lifted(graph, b)
    return node(graph, "binary", broadcast(a.shape, b.shape), { a, b }, { f = f })
  end
end
Value.__add, Value.__sub, Value.__mul, Value.__div, Value.__unm = Value.add, Value.sub, Value.mul, Value.div, Value.neg

---a where the mask is not 0, else b; the mask is the value itself.
function Value:where(a, b)
  a, b = lifted(self.graph, a), lifted(self.graph, b)
  return node(self.graph, "where", broadcast(self.shape, a.shape, b.shape), { self, a, b })
end

local function copy(t) return { unpack(t) } end
-- An axis counted from 1, given from 0 or from the end.
local function place(x, axis) return axis < 0 and axis + #x.shape + 1 or axis + 1 end

---a [...,M,K] b [...,K,N], turned: b is [...,N,K].
function Value:matmul(b, turned)
  local s, K, N = broadcast({ unpack(self.shape, 1, #self.shape - 2) }, { unpack(b.shape, 1, #b.shape - 2) }), b.shape[#b.shape - 1], b.shape[#b.shape]
  if turned then K, N = N, K end
  if K ~= self.shape[#self.shape] then
    errors.fail(("primitives: matmul of [%s] and [%s]"):format(table.concat(self.shape, ","), table.concat(b.shape, ",")))
  end
  s[#s + 1], s[#s + 2] = self.shape[#self.shape - 1], N
  return node(self.graph, "matmul", s, { self, b }, { turned = turned or false })
end

---f = "sum", "max" or "min" along an axis, counted from 0 or from the end, which stays with size 1.
function Value:reduce(f, axis)
  local shape, at = copy(self.shape), place(self, axis)
  shape[at] = 1
  return node(self.graph, "reduce", shape, { self }, { f = f, axis = at - 1 })
end
function Value:sum(axis) return self:reduce("sum", axis) end
function Value:max(axis) return self:reduce("max", axis) end
function Value:mean(axis) return self:sum(axis) / self.shape[place(self, axis)] end

---In another shape; one size may be -1.
function Value:reshape(...)
  local shape = type((...)) == "table" and copy((...)) or { ... }
  local open, n = nil, 1
  for i, size in ipairs(shape) do if size == -1 then open = i else n = n * size end end
  if open then shape[open] = product(self.shape) / n end
  if product(shape) ~= product(self.shape) then
    errors.fail(("primitives: [%s] as [%s]"):format(table.concat(self.shape, ","), table.concat(shape, ",")))
  end
  return node(self.graph, "reshape", shape, { self })
end
---A new axis of size 1 before `axis`, counted from 0; -1: at the end.
function Value:unsqueeze(axis)
  local shape = copy(self.shape)
  table.insert(shape, axis < 0 and #shape + axis + 2 or axis + 1, 1)
  return self:reshape(shape)
end
---Without that axis, whose size is 1.
function Value:squeeze(axis)
  local shape = copy(self.shape)
  table.remove(shape, place(self, axis))
  return self:reshape(shape)
end

---Axis i of the result is axis order[i], counted from 0.
function Value:transpose(order)
  return node(self.graph, "transpose", tables.map(order, function(axis) return self.shape[axis + 1] end), { self }, { order = order })
end
function Value:swap(a, b)
  local order = tables.filled(#self.shape, function(i) return i - 1 end)
  a, b = place(self, a), place(self, b)
  order[a], order[b] = order[b], order[a]
  return self:transpose(order)
end

function Value:expand(shape) return node(self.graph, "expand", copy(shape), { self }) end

---Elements first .. past - 1 of an axis.
function Value:slice(axis, first, past)
  local shape, at = copy(self.shape), place(self, axis)
  if first == 0 and past == shape[at] then return self end
  shape[at] = past - first
  return node(self.graph, "slice", shape, { self }, { axis = at - 1, first = first, past = past })
end

---Values one after another along an axis.
function primitives.concat(list, axis)
  local first = list[1]
  if #list == 1 then return first end
  local shape, at = copy(first.shape), place(first, axis)
  for i = 2, #list do shape[at] = shape[at] + list[i].shape[at] end
  return node(first.graph, "concat", shape, copy(list), { axis = at - 1 })
end

---Elements of an axis by number: index of any shape takes the place of that axis.
function Value:take(axis, index)
  local at = place(self, axis)
  local shape = { unpack(self.shape, 1, at - 1) }
  for _, list in ipairs { index.shape, { unpack(self.shape, at + 1) } } do for _, size in ipairs(list) do shape[#shape + 1] = size end end
  return node(self.graph, "take", shape, { self, index }, { axis = at - 1 })
end

function Value:detach() return node(self.graph, "detach", self.shape, { self }) end

-- ---- made of these ----

---0, 1, ... n - 1.
function primitives.range(graph, n) return primitives.filled(graph, n, function(i) return i end) end
function Value:square() return self * self end
function Value:silu() return self * self:sigmoid() end
function Value:softmax(axis)
  local e = (self - self:max(axis):detach()):exp()
  return e / e:sum(axis)
end
function Value:logsumexp(axis)
  local top = self:max(axis):detach()
  return (self - top):exp():sum(axis):log() + top
end
function Value:negated() return 1 - self end
---Of every row: population variance 1 and mean 0, but for eps.
function Value:normed(axis, eps)
  local x = self - self:mean(axis)
  return x / (x:square():mean(axis) + eps):sqrt()
end
---Rolled along an axis: what was at i is at i + by.
function Value:rolled(axis, by)
  local n = self.shape[place(self, axis)]
  by = by % n
  if by == 0 then return self end
  return primitives.concat({ self:slice(axis, n - by, n), self:slice(axis, 0, n - by) }, axis)
end

-- ---- any number of environments ----

-- A size that is b for one environment and a for two: a number, or { n } for n of each environment.
local function general(one, two)
  if one == two then return one end
  if two == 2 * one then return { one } end
  errors.fail(("primitives: a size is %s for one environment and %s for two"):format(tostring(one), tostring(two)))
end

---The graph of one environment, with sizes as they are for any number: { n } is n for each environment.
---@param one table the graph as it is for one environment
---@param two table the same for two
---@return table one, whose values now have `general`, and slices `first_of` and `past_of`
function primitives.generalise(one, two)
  if #one.nodes ~= #two.nodes then errors.fail "primitives: what is computed depends on the number of environments" end
  for i, a in ipairs(one.nodes) do
    local b = two.nodes[i]
    a.general = {}
    if a.op ~= b.op or a.f ~= b.f or #a.shape ~= #b.shape then errors.fail "primitives: what is computed depends on the number of environments" end
    for k, size in ipairs(a.shape) do a.general[k] = general(size, b.shape[k]) end
    if a.op == "slice" then a.first_of, a.past_of = general(a.first, b.first), general(a.past, b.past) end
    if a.op == "constant" then
      for k = 1, #b.list do
        if b.list[k] ~= a.list[(k - 1) % #a.list + 1] and not (b.list[k] ~= b.list[k]) then
          errors.fail "primitives: a constant differs between environments"
        end
      end
    end
  end
  return one
end

return primitives
