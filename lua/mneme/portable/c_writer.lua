-- c_writer.lua -- the graph of an agent's step as a C99 header: weights inside, one function a step, no dependency but libm.
-- Every value has its place in one array of the state, which later values use again; what only has another shape shares it.
local primitives = require "mneme.portable.primitives"
local tables = require "mneme.base.tables"

local writer = {}

local unary = { neg = "-%s", exp = "expf(%s)", log = "logf(%s)", sqrt = "sqrtf(%s)", abs = "fabsf(%s)", sin = "sinf(%s)", cos = "cosf(%s)", tan = "tanf(%s)",
  atan = "atanf(%s)", tanh = "tanhf(%s)", sigmoid = "1.0f / (1.0f + expf(-%s))", relu = "fmaxf(%s, 0.0f)", erf = "erff(%s)", floor = "floorf(%s)",
  ceil = "ceilf(%s)", log1p = "log1pf(%s)", expm1 = "expm1f(%s)", softplus = "fmaxf(%s, 0.0f) + log1pf(expf(-fabsf(%s)))",
  sign = "(float)((%s > 0.0f) - (%s < 0.0f))" }
local binary = { add = "%s + %s", sub = "%s - %s", mul = "%s * %s", div = "%s / %s", pow = "powf(%s, %s)", maximum = "fmaxf(%s, %s)", minimum = "fminf(%s, %s)",
  lt = "%s < %s ? 1.0f : 0.0f", le = "%s <= %s ? 1.0f : 0.0f", eq = "%s == %s ? 1.0f : 0.0f", mod = "fmodf(%s, %s)" }

-- A float as C writes it.
local function number(x)
  if x ~= x then return "(float)NAN" end
  if x == math.huge then return "(float)INFINITY" elseif x == -math.huge then return "-(float)INFINITY" end
  local text = ("%.9g"):format(x)
  return (text:find "[.e]" and text or text .. ".0") .. "f"
end

-- Numbers from `at(0)` to `at(n - 1)` as the lines of an initialiser, which need no suffix.
local TEN = "  " .. ("%.9g, "):rep(9) .. "%.9g"
local function numbers(n, at)
  local lines, whole, sum = {}, n - n % 10, 0
  for i = 0, whole - 10, 10 do
    local a, b, c, d, e, f, g, h, j, k = at(i), at(i + 1), at(i + 2), at(i + 3), at(i + 4), at(i + 5), at(i + 6), at(i + 7), at(i + 8), at(i + 9)
    sum = sum + (a + b + c + d + e + f + g + h + j + k) * 0
    lines[#lines + 1] = TEN:format(a, b, c, d, e, f, g, h, j, k)
  end
  local line = {}
  for i = sum == 0 and whole or 0, n - 1 do line[#line + 1] = number(at(i)) end          -- 0 * infinity is not 0
  if sum ~= 0 then lines = {} end
  if line[1] then lines[#lines + 1] = "  " .. table.concat(line, ",\n  ") end
  return table.concat(lines, ",\n")
end

-- ---- loops ----

local function strides(shape)
  local s, step = {}, 1
  for i = #shape, 1, -1 do
    s[i] = step
    step = step * shape[i]
  end
  return s
end
-- Steps of an operand through a result of that shape, to which it is broadcast.
local function steps(shape, to)
  local own, lead = strides(shape), #to - #shape
  return tables.filled(#to, function(i) return i > lead and shape[i - lead] ~= 1 and own[i - lead] or 0 end)
end

-- Nested loops over a shape; each operand { base, steps } is read or written at base[...]; body(places) is the statement inside.  Axes that
-- all operands walk in one go are one loop.
local function loops(shape, operands, body)
  local sizes, walks = {}, tables.map(operands, function() return {} end)
  for i = 1, #shape do
    if shape[i] ~= 1 then
      local last, together = #sizes, #sizes > 0
      for k, o in ipairs(operands) do together = together and walks[k][last] == o.steps[i] * shape[i] end
      if together then sizes[last] = sizes[last] * shape[i] else sizes[last + 1] = shape[i] end
      for k, o in ipairs(operands) do walks[k][together and last or last + 1] = o.steps[i] end
    end
  end
  local places = {}
  for k, o in ipairs(operands) do
    local terms = {}
    for i, step in ipairs(walks[k]) do
      if step ~= 0 then terms[#terms + 1] = step == 1 and "i" .. i or ("i%d * %d"):format(i, step) end
    end
    if (o.offset or 0) ~= 0 or not terms[1] then terms[#terms + 1] = tostring(o.offset or 0) end
    places[k] = o.literal or ("%s[%s]"):format(o.base, table.concat(terms, " + "))
  end
  local heads = tables.map(sizes, function(n, i) return ("for (long i%d = 0; i%d < %d; i%d++) "):format(i, i, n, i) end)
  return "  " .. table.concat(heads) .. body(unpack(places))
end

local emit = {}

local function operand(v, to) return { base = v.place, literal = v.literal, steps = steps(v.shape, to) } end
function emit.unary(v)
  local x = v.from[1]
  return loops(v.shape, { operand(v, v.shape), operand(x, v.shape) }, function(y, a)
    return ("%s = %s;"):format(y, (unary[v.f]:gsub("%%s", function() return a end)))
  end)
end
function emit.binary(v)
  return loops(v.shape, { operand(v, v.shape), operand(v.from[1], v.shape), operand(v.from[2], v.shape) }, function(y, a, b)
    return ("%s = %s;"):format(y, binary[v.f]:format(a, b))
  end)
end
emit["where"] = function(v)
  return loops(v.shape, { operand(v, v.shape), operand(v.from[1], v.shape), operand(v.from[2], v.shape), operand(v.from[3], v.shape) },
    function(y, mask, a, b) return ("%s = %s != 0.0f ? %s : %s;"):format(y, mask, a, b) end)
end
local function copy(v, x, to_steps, to_offset, shape, from_steps, from_offset)
  local from = { base = x.place, literal = x.literal, steps = from_steps, offset = from_offset }
  return loops(shape, { { base = v.place, steps = to_steps, offset = to_offset }, from }, function(y, a) return ("%s = %s;"):format(y, a) end)
end
function emit.expand(v) return copy(v, v.from[1], strides(v.shape), 0, v.shape, steps(v.from[1].shape, v.shape), 0) end
function emit.transpose(v)
  local own = strides(v.from[1].shape)
  local from = tables.map(v.order, function(axis) return own[axis + 1] end)
  return copy(v, v.from[1], strides(v.shape), 0, v.shape, from, 0)
end
function emit.slice(v)
  local own = strides(v.from[1].shape)
  return copy(v, v.from[1], strides(v.shape), 0, v.shape, own, v.first * own[v.axis + 1])
end
function emit.concat(v)
  local own, at, lines = strides(v.shape), 0, {}
  for i, x in ipairs(v.from) do
    lines[i] = copy(v, x, own, at * own[v.axis + 1], x.shape, strides(x.shape), 0)
    at = at + x.shape[v.axis + 1]
  end
  return table.concat(lines, "\n")
end
function emit.reduce(v)
  local x = v.from[1]
  local n, own = x.shape[v.axis + 1], strides(x.shape)
  return loops(v.shape, { operand(v, v.shape), { base = x.place, steps = own } }, function(y, a)
    local at = a:gsub("%]$", (" + k * %d]"):format(own[v.axis + 1]))
    local step = v.f == "sum" and "t += %s" or v.f == "max" and "t = fmaxf(t, %s)" or "t = fminf(t, %s)"
    return ("{ float t = %s; for (long k = %d; k < %d; k++) %s; %s = t; }"):format(v.f == "sum" and "0.0f" or a, v.f == "sum" and 0 or 1, n,
      step:format(at), y)
  end)
end
function emit.matmul(v)
  local a, b = unpack(v.from)
  local rank, K = #v.shape, a.shape[#a.shape]
  local sa, own_b, unit = steps({ unpack(a.shape, 1, #a.shape - 1) }, { unpack(v.shape, 1, rank - 1) }), strides(b.shape), strides(a.shape)
  for i = 1, rank - 1 do sa[i] = sa[i] * K end
  sa[rank] = 0
  local sb = steps({ unpack(b.shape, 1, #b.shape - 2) }, { unpack(v.shape, 1, rank - 2) })
  for i = 1, rank - 2 do sb[i] = sb[i] * b.shape[#b.shape] * b.shape[#b.shape - 1] end
  sb[rank - 1], sb[rank] = 0, v.turned and own_b[#own_b - 1] or own_b[#own_b]
  local step_b = v.turned and own_b[#own_b] or own_b[#own_b - 1]
  return loops(v.shape, { { base = v.place, steps = strides(v.shape) }, { base = a.place, steps = sa }, { base = b.place, steps = sb } }, function(y, x, w)
    local x_at, w_at = x:gsub("%]$", unit[#unit] == 1 and " + k]" or (" + k * %d]"):format(unit[#unit])), w:gsub("%]$", (" + k * %d]"):format(step_b))
    return ("{ float t = 0.0f; for (long k = 0; k < %d; k++) t += %s * %s; %s = t; }"):format(K, x_at, w_at, y)
  end)
end
function emit.take(v)
  local x, index = unpack(v.from)
  local n, outer, inner = primitives.product(index.shape), primitives.product(x.shape, 1, v.axis), primitives.product(x.shape, v.axis + 2)
  local size = x.shape[v.axis + 1]
  return ("  for (long i = 0; i < %d; i++) for (long j = 0; j < %d; j++) for (long k = 0; k < %d; k++)\n"
    .. "    %s[(i * %d + j) * %d + k] = %s[(i * %d + (long)%s[j]) * %d + k];"):format(outer, n, inner, v.place, n, inner, x.place, size, index.place, inner)
end

-- ---- places ----

-- Where each value is: `place` names it; returns the floats of the work space.
local function arrange(graph)
  local last, owner, free, top = {}, {}, {}, 0
  for _, v in ipairs(graph.nodes) do
    owner[v] = (v.op == "reshape" or v.op == "detach") and owner[v.from[1]] or v
    for _, from in ipairs(v.from) do last[owner[from]] = v.id end
  end
  for _, out in ipairs(graph.outputs) do last[owner[out.value]] = #graph.nodes + 1 end
  local ends = {}
  for v, id in pairs(last) do
    if v.op ~= "input" and v.op ~= "parameter" and v.op ~= "constant" then
      ends[id] = ends[id] or {}
      table.insert(ends[id], v)
    end
  end
  for _, v in ipairs(graph.nodes) do
    if owner[v] == v and v.op ~= "input" and v.op ~= "parameter" and v.op ~= "constant" then
      local n, best = primitives.product(v.shape), nil
      for i, piece in ipairs(free) do if piece.n >= n and (not best or piece.n < free[best].n) then best = i end end
      if best then
        v.at = free[best].at
        if free[best].n == n then table.remove(free, best) else free[best] = { at = v.at + n, n = free[best].n - n } end
      else v.at, top = top, top + n end
      v.place = "v" .. v.id
    elseif owner[v] ~= v then v.place = owner[v].place end
    table.sort(ends[v.id] or {}, function(a, b) return a.id < b.id end)
    for _, gone in ipairs(ends[v.id] or {}) do
      local piece = { at = gone.at, n = primitives.product(gone.shape) }
      for i = #free, 1, -1 do                                   -- with its neighbours, if these are free
        if free[i].at + free[i].n == piece.at then piece = { at = free[i].at, n = free[i].n + piece.n } table.remove(free, i)
        elseif piece.at + piece.n == free[i].at then piece.n = piece.n + free[i].n table.remove(free, i) end
      end
      free[#free + 1] = piece
    end
  end
  return top
end

---The header.
---@param graph table of portable/step_graph.lua
---@param name string of the functions and types: a C identifier
---@param about string what the agent is, for the comment at the top
function writer.text(graph, name, about)
  local lines = {}
  local function add(text, ...) lines[#lines + 1] = select("#", ...) > 0 and text:format(...) or text end
  local upper, arguments, states = name:upper(), { ("%s_state *state"):format(name), "const float *observation", "int done" }, {}
  local input = {}
  for _, one in ipairs(graph.inputs) do
    input[one.name] = one
    one.value.place = one.state and "state->" .. one.name or one.name
    if one.state then states[#states + 1] = one end
  end
  if input.done then input.done.value.place = "begins" end
  if input.previous_action then arguments[#arguments + 1] = "const float *previous_action" end
  if input.previous_reward then arguments[#arguments + 1], input.previous_reward.value.place = "float previous_reward", "paid" end
  arguments[#arguments + 1], arguments[#arguments + 2] = "float *distribution", "float *value"
  local n_constants = 0
  for _, v in ipairs(graph.nodes) do
    if v.op == "constant" and #v.shape == 0 then v.literal, v.place = number(v.list[1]), ""
    elseif v.op == "parameter" or v.op == "constant" then
      n_constants = n_constants + 1
      v.place = ("%s_%s%d"):format(name, v.op == "parameter" and "p" or "c", n_constants)
    end
  end
  local work = arrange(graph)

  add("/* %s */", about:gsub("%*/", "* /"):gsub("\n", "\n** "))
  add("#ifndef %s_H\n#define %s_H\n#include <math.h>\n#include <string.h>\n", upper, upper)
  add("enum { %s_OBSERVATION = %d, %s_DISTRIBUTION = %d };\n", upper, primitives.product(graph.inputs[1].value.shape), upper, graph.actions)
  add("/* What is remembered from step to step, and room to compute in. */\ntypedef struct %s_state {", name)
  for _, one in ipairs(states) do
    add("  float %s[%d];%s", one.name, primitives.product(one.value.shape), ("   /* %s [%s] */"):format(one.state, table.concat(one.value.shape, ",", 1)))
  end
  add("  float work[%d];\n} %s_state;\n", math.max(1, work), name)
  for _, v in ipairs(graph.nodes) do
    if (v.op == "parameter" or v.op == "constant") and not v.literal then
      local n = primitives.product(v.shape)
      add("%sstatic const float %s[%d] = {\n%s\n};", v.name and ("/* %s [%s] */\n"):format(v.name, table.concat(v.shape, ",")) or "", v.place, n,
        numbers(n, v.list and function(i) return v.list[i + 1] end or function(i) return tonumber(v.data[i]) end))
    end
  end
  add("\n/* The memory before anything was seen. */\nstatic inline void %s_begin(%s_state *state) {", name, name)
  add("  memset(state, 0, sizeof *state);")
  for _, one in ipairs(states) do
    local start, n, same = graph.start[one.state], primitives.product(one.value.shape), true
    for i = 1, n - 1 do same = same and start:data()[i] == start:data()[0] end
    if not same then
      add("  static const float %s[%d] = {\n%s\n  };", one.name, n, numbers(n, function(i) return tonumber(start:data()[i]) end))
      add("  memcpy(state->%s, %s, sizeof %s);", one.name, one.name, one.name)
    elseif start:data()[0] ~= 0 then add("  for (long i = 0; i < %d; i++) state->%s[i] = %s;", n, one.name, number(tonumber(start:data()[0]))) end
  end
  add("}\n")
  add("/* One step.  observation: %s_OBSERVATION floats, as the environment gives them; done: 1 where it begins an episode.", upper)
  add("** To distribution: %s_DISTRIBUTION parameters of the policy; to value: one float. */", upper)
  add("static inline void %s_step(%s) {", name, table.concat(arguments, ", "))
  if input.done then add("  const float begins[1] = { done ? 1.0f : 0.0f };") end
  if input.previous_reward then add("  const float paid[1] = { previous_reward };") end
  local used = {}
  for _, v in ipairs(graph.nodes) do for _, from in ipairs(v.from) do used[from.place] = true end end
  for _, out in ipairs(graph.outputs) do used[out.value.place] = true end
  for _, one in ipairs(graph.inputs) do
    if not used[one.value.place] then add("  (void)%s;", one.name == "done" and "begins" or one.name == "previous_reward" and "paid" or one.value.place) end
  end
  if not used.begins then add("  (void)done;") end
  for _, v in ipairs(graph.nodes) do
    if v.note then add("  /* %s */", v.note) end
    if emit[v.op] then
      if v.at then add("  float *const %s = state->work + %d;", v.place, v.at) end
      add(emit[v.op](v))
    end
  end
  for _, out in ipairs(graph.outputs) do
    local to, n = out.state and "state->" .. out.name or out.name, primitives.product(out.value.shape)
    if to ~= out.value.place then add("  memcpy(%s, %s, %d * sizeof(float));", to, out.value.place, n) end
  end
  add("}\n#endif")
  return table.concat(lines, "\n") .. "\n"
end

return writer
