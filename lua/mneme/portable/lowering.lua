-- lowering.lua -- what each op of acting is in terms of primitives.lua: of one row of time, for any number of environments.  What ops compute
-- with a memory is in memory_lowering.lua.  An op that is in neither is an error that names it, and where it is applied.
--   entry(x, o, c) -> values of the op's outputs, in their order; outputs after those are nobody's to read
--   x  inputs by name; o  options by name, words as words; c  { graph, shapes = of the outputs, numbers(name) = the values of an input that is
--   constant, from 1 on, refuse(what) }
local primitives = require "mneme.portable.primitives"
local tables = require "mneme.base.tables"

local lowering = {}

-- ---- elementwise ----

local acts = {
  none = function(x) return x end, relu = function(x) return x:relu() end, sigmoid = function(x) return x:sigmoid() end,
  tanh = function(x) return x:tanh() end, silu = function(x) return x:silu() end,
  elu1 = function(x) return x:lt(0):where(x:minimum(0):exp(), x + 1) end,
}
lowering.acts = acts

for _, f in ipairs { "neg", "exp", "log", "sqrt", "abs", "sin", "cos", "tan", "atan", "tanh", "sigmoid", "softplus", "relu", "erf", "floor", "ceil",
  "sign", "log1p", "expm1", "detach", "square", "silu" } do
  lowering[f] = function(x) return x.x[f](x.x) end
end
for op, f in pairs { add = "add", sub = "sub", mul = "mul", div = "div", maximum = "maximum", minimum = "minimum", power = "pow", lt = "lt", le = "le",
  eq = "eq" } do
  lowering[op] = function(x) return x.a[f](x.a, x.b) end
end
function lowering.gt(x) return x.b:lt(x.a) end
function lowering.ge(x) return x.b:le(x.a) end
function lowering.ne(x) return x.a:eq(x.b):negated() end
function lowering.logical_and(x) return x.a * x.b end
function lowering.logical_or(x) return x.a:maximum(x.b) end
function lowering.logical_xor(x) return (x.a - x.b):abs() end
function lowering.logical_not(x) return (x.mask or x.a or x.x):negated() end
function lowering.reciprocal(x) return 1 / x.x end
function lowering.rsqrt(x) return 1 / x.x:sqrt() end
function lowering.trunc(x) return x.x:sign() * x.x:abs():floor() end
function lowering.gelu(x) return x.x * 0.5 * ((x.x * math.sqrt(0.5)):erf() + 1) end
function lowering.mish(x) return x.x * x.x:softplus():tanh() end
function lowering.elu1(x) return acts.elu1(x.x) end
function lowering.elu(x, o) return x.x:lt(0):where(x.x:minimum(0):expm1() * o.alpha, x.x) end
function lowering.leaky_relu(x, o) return x.x:lt(0):where(x.x * o.slope, x.x) end
function lowering.scale(x, o)
  local y = o.a == 1 and x.x or o.a == -1 and -x.x or x.x * o.a
  return o.b == 0 and y or y + o.b
end
function lowering.pow(x, o) return x.x:pow(o.p) end
function lowering.clamp(x, o)
  local y = x.x
  if o.lo > -math.huge then y = y:maximum(o.lo) end
  if o.hi < math.huge then y = y:minimum(o.hi) end
  return y
end
function lowering.between(x, o) return x.x:lt(o.lo):negated() * x.x:le(o.hi) end
function lowering.lerp(x) return x.a + (x.b - x.a) * x.m end
lowering["where"] = function(x) return x.mask:where(x.a, x.b) end
function lowering.wkv_decay(x, o)
  return o.by == "exp" and (-x.x:exp()):exp() or (x.x:sigmoid() * -math.exp(-0.5)):exp()
end
function lowering.cast(x, o)
  if o.to == "u8" then return x.x:eq(0):negated() end
  return o.to == "i32" and lowering.trunc(x) or x.x
end
function lowering.custom_gradient(x) return x.y end

-- ---- along an axis ----

local function along(f)
  return function(x, o, c)
    local y, y2
    if o.axis == -100 then y, y2 = f(x.x:reshape(-1), 0, o) else y, y2 = f(x.x, o.axis, o) end
    return y:reshape(c.shapes[1]), y2 and y2:reshape(c.shapes[1])
  end
end
-- The first place of the largest.
local function place_of(x, axis, top)
  axis = axis % #x.shape
  local n = x.shape[axis + 1]
  local shape = tables.filled(#x.shape, function(i) return i == axis + 1 and n or 1 end)
  local at = x:eq(top):where(primitives.range(x.graph, n):reshape(shape), n)
  return at:reduce("min", axis)
end
local function variance(x, axis, o)
  local n = x.shape[axis % #x.shape + 1]
  return (x - x:mean(axis)):square():sum(axis) / (n - o.correction)
end
lowering.sum = along(function(x, axis) return x:sum(axis) end)
lowering.mean = along(function(x, axis) return x:mean(axis) end)
lowering.max = along(function(x, axis) local top = x:max(axis) return top, place_of(x, axis, top) end)
lowering.min = along(function(x, axis) local low = x:reduce("min", axis) return low, place_of(x, axis, low) end)
lowering.argmax = along(function(x, axis) return place_of(x, axis, x:max(axis)) end)
lowering.argmin = along(function(x, axis) return place_of(x, axis, x:reduce("min", axis)) end)
lowering.any = function(x, o, c) return along(function(y, axis) return y:max(axis) end)({ x = x.mask }, o, c) end
lowering.all = function(x, o, c) return along(function(y, axis) return y:reduce("min", axis) end)({ x = x.mask }, o, c) end
lowering.var = along(variance)
lowering.std = along(function(x, axis, o) return variance(x, axis, o):sqrt() end)
function lowering.norm(x, o, c)
  if o.p ~= 2 then c.refuse(("p=%g"):format(o.p)) end
  return along(function(y, axis) return y:square():sum(axis):sqrt() end)(x, o, c)
end
function lowering.softmax(x) return x.x:softmax(-1) end
function lowering.log_softmax(x) return x.x - x.x:logsumexp(-1) end
function lowering.logsumexp(x, _, c) return x.x:logsumexp(-1):reshape(c.shapes[1]) end
function lowering.layer_norm(x, o) return x.x:normed(-1, o.eps) * x.weight + x.bias end
function lowering.group_norm(x, o)
  local T, B, N, C = unpack(x.x.shape)
  local y = x.x:reshape(T, B, N, o.groups, C / o.groups):transpose { 0, 1, 3, 2, 4 }:reshape(T, B, o.groups, -1):normed(-1, o.eps)
  return y:reshape(T, B, o.groups, N, C / o.groups):transpose { 0, 1, 3, 2, 4 }:reshape(x.x.shape) * x.weight + x.bias
end
function lowering.normalise(x, o)
  local x_, D = x.x, x.x.shape[#x.x.shape]
  local den = o.by == "sum" and x_:sum(-1) + o.eps or o.by == "l2" and x_:square():sum(-1):sqrt() + o.eps
    or (x_:square():sum(-1) / D + o.eps):sqrt()
  local empty = den:abs():lt(1.2e-38)
  return empty:where(0, x_ / empty:where(1, den))
end
function lowering.cumsum(x, o)
  local axis = o.axis % #x.x.shape
  local n, list = x.x.shape[axis + 1], {}
  if axis == 0 and n == 1 then return x.x end
  for i = 1, n do for j = 1, n do list[#list + 1] = j <= i and 1 or 0 end end
  local last, triangle = #x.x.shape - 1, primitives.constant(x.x.graph, { n, n }, list)
  return x.x:swap(axis, last):unsqueeze(-1):swap(-1, -2):matmul(triangle, true):squeeze(-2):swap(axis, last)
end

-- ---- shapes ----

function lowering.reshape(x, _, c) return x.x:reshape(c.shapes[1]) end
function lowering.transpose(x, o) return x.x:swap(o.a, o.b) end
function lowering.permute(x, o)
  local n = #x.x.shape
  return x.x:transpose(tables.filled(n, function(i) return o["a" .. i - 1] % n end))
end
function lowering.expand(x, _, c) return x.x:expand(c.shapes[1]) end
function lowering.expand_time(x, _, c) return x.x:expand(c.shapes[1]) end
local function within(i, n) return math.max(0, math.min(n, i < 0 and i + n or i)) end
function lowering.slice(x, o)
  local n = x.x.shape[o.axis % #x.x.shape + 1]
  return x.x:slice(o.axis, within(o.from, n), within(o.to, n))
end
function lowering.concat(x, o)
  return primitives.concat(tables.map({ "a", "b", "c", "d", "e", "f", "g", "h" }, function(name) return x[name] end), o.axis)
end
function lowering.pad(x, o)
  local list = {}
  for _, n in ipairs { o.before, false, o.after } do
    if not n then list[#list + 1] = x.x
    elseif n > 0 then
      local shape = { unpack(x.x.shape) }
      shape[o.axis % #shape + 1] = n
      list[#list + 1] = primitives.constant(x.x.graph, {}, { o.value }):expand(shape)
    end
  end
  return primitives.concat(list, o.axis)
end
function lowering.roll(x, o) return x.x:rolled(o.axis, o.shift) end
function lowering.flip(x, o)
  local n = x.x.shape[o.axis % #x.x.shape + 1]
  return x.x:take(o.axis, primitives.filled(x.x.graph, n, function(i) return n - 1 - i end))
end
local function triangle(keeps)
  return function(x, o)
    local s, list = x.x.shape, {}
    for i = 0, s[#s - 1] - 1 do for j = 0, s[#s] - 1 do list[#list + 1] = keeps(j - i, o.diagonal) and 1 or 0 end end
    return primitives.constant(x.x.graph, { s[#s - 1], s[#s] }, list):where(x.x, 0)
  end
end
lowering.tril = triangle(function(distance, diagonal) return distance <= diagonal end)
lowering.triu = triangle(function(distance, diagonal) return distance >= diagonal end)
function lowering.last_row(x, o, c)
  local n = x.x.shape[2]
  return x.x:slice(0, x.x.shape[1] - 1, x.x.shape[1]):slice(1, o.from, math.min(n, o.to)):reshape(c.shapes[1])
end
function lowering.index_select(x, o) return x.x:take(o.axis, x.index) end
-- Numbers 0 .. classes - 1 as a new last axis that is 1 at the number.
local function one_hot(index, classes) return index:unsqueeze(-1):eq(primitives.range(index.graph, classes)) end
function lowering.one_hot(x, o) return one_hot(x.index, o.classes) end
function lowering.one_hot_codes(x, o) return one_hot(x.code, o.codes) end
function lowering.pick(x, _, c) return (one_hot(x.index, x.x.shape[#x.x.shape]) * x.x):sum(-1):reshape(c.shapes[1]) end
function lowering.gather(x, o)
  local axis, n = o.axis % #x.x.shape, #x.x.shape
  local from, index = x.x:swap(axis, n - 1):unsqueeze(-2), x.index:swap(axis, n - 1)
  return (one_hot(index, from.shape[n + 1]) * from):sum(-1):squeeze(-1):swap(axis, n - 1)
end
function lowering.embedding(x) return x.w:take(0, x.index) end
function lowering.sum_rows(x, _, c)
  local w, index = x.w or x.weight or x.x, x.index
  local rows = w:take(0, index:maximum(0))
  return index:lt(0):unsqueeze(-1):where(0, rows):sum(-2):reshape(c.shapes[1])
end

-- ---- products ----

-- x [...,I] by w [O,I].
local function times(x, w)
  if #x.shape > 1 then return x:matmul(w, true) end
  return x:reshape(1, -1):matmul(w, true):reshape(-1)
end
function lowering.linear(x, o)
  local y = times(x.x, x.w)
  return acts[o.act](x.b and y + x.b or y)
end
function lowering.head_linear(x, o)
  local T, B, H, I = unpack(x.x.shape)
  local y = x.x:unsqueeze(-2):matmul(x.w:reshape(H, -1, I), true):squeeze(-2)
  if x.b then y = y + x.b:reshape(H, -1) end
  return acts[o.act](y:reshape(T, B, H, -1))
end
function lowering.matmul(x) return x.a:matmul(x.b) end
function lowering.outer(x, _, c) return (x.p:unsqueeze(-1) * x.a:unsqueeze(-2)):reshape(c.shapes[1]) end
function lowering.gru_gate(x)
  local D = x.x.shape[#x.x.shape]
  local function both(k, of_x)
    return times(x.y, x.w:slice(0, k, k + 1):reshape(D, D)) + times(of_x, x.u:slice(0, k, k + 1):reshape(D, D))
  end
  local r, z = both(0, x.x):sigmoid(), (both(1, x.x) - x.bias):sigmoid()
  local new = both(2, r * x.x):tanh()
  return (1 - z) * x.x + z * new
end

-- ---- pictures [T,B,Y,X,C] ----

-- Windows of pictures as [T*B, places, kernel^2, C]; a pixel beyond the border is `border`.
local function windows(x, kernel, stride, padding, border, y_out, x_out)
  local T, B, Y, X, C = unpack(x.shape)
  local list, rows = {}, type(kernel) == "table" and kernel or { kernel, kernel }
  for y = 0, y_out - 1 do for x_ = 0, x_out - 1 do
    for k = 0, rows[1] - 1 do for l = 0, rows[2] - 1 do
      local at_y, at_x = y * stride + k - padding, x_ * stride + l - padding
      list[#list + 1] = at_y >= 0 and at_y < Y and at_x >= 0 and at_x < X and at_y * X + at_x or Y * X
    end end
  end end
  local pixels = x:reshape(T * B, Y * X, C)
  local beyond = primitives.constant(x.graph, {}, { border }):expand { T * B, 1, C }
  return primitives.concat({ pixels, beyond }, 1):take(1, primitives.constant(x.graph, { y_out * x_out, rows[1] * rows[2] }, list))
end
function lowering.conv2d(x, o, c)
  local image = x.x or x.image / o.divide
  local O, C, K, L = unpack(x.w.shape)
  local shape = c.shapes[1]
  local seen = windows(image, { K, L }, o.stride, o.padding, 0, shape[3], shape[4])
  local y = seen:reshape(seen.shape[1], seen.shape[2], K * L * C):matmul(x.w:transpose { 0, 2, 3, 1 }:reshape(O, K * L * C), true)
  if x.b then y = y + x.b end
  return acts[o.act](y:reshape(shape))
end
local function pooled(border, over)
  return function(x, o, c)
    local shape = c.shapes[1]
    local seen = windows(x.x, o.kernel, o.stride > 0 and o.stride or o.kernel, o.padding, border, shape[3], shape[4])
    return over(seen):reshape(shape)
  end
end
lowering.max_pool2d = pooled(-3e38, function(x) return x:max(2) end)
lowering.avg_pool2d = pooled(0, function(x) return x:mean(2) end)

return lowering
