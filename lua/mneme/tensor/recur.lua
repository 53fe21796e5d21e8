-- recur.lua -- mn.recur: a recurrence written in Lua.  The body is recorded once for one row of time and then run for all rows by the
-- op `recur`, forward and backward; so it acts row by row, learns from sequences, and is reset where episodes begin.
local ffi = require "ffi"
local op_binding = require "mneme.tensor.op_binding"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local C, ctx, check, ops, sorted = engine.C, engine.ctx, engine.check, tensor.ops, tables.ordered_keys

-- ---- structures: a tensor, or a table of such by any keys ----

-- Its tensors in a fixed order.
local function flatten(what, x, list)
  if tensor.is(x) then list[#list + 1] = x
  elseif type(x) == "table" then for _, key in ipairs(sorted(x)) do flatten(what, x[key], list) end
  else errors.raise(("recur: %s holds a %s, expected a tensor or a table of tensors"):format(what, type(x))) end
  return list
end

-- A structure like x of the tensors of a list, in that order.
local function build(x, list, at)
  at = at or { 0 }
  if tensor.is(x) then
    at[1] = at[1] + 1
    return list[at[1]]
  end
  local t = {}
  for _, key in ipairs(sorted(x)) do t[key] = build(x[key], list, at) end
  return t
end

-- Its form as a text: where that is equal, one can take the place of the other.
local function form(x, from)
  if tensor.is(x) then return "[" .. table.concat(x:shape(), ",", from) .. "]" end
  return "{" .. table.concat(tables.map(sorted(x), function(key) return tostring(key) .. "=" .. form(x[key], from) end), ";") .. "}"
end

local function rows(list, T) return tensor.functions.cat(tables.map(list, function(x) return x:reshape(T, -1) end), 1) end
local function numbers(list) return tensor.functions.cat(tables.map(list, function(x) return x:reshape(-1) end), 0) end

-- Tensors of these shapes again, from their numbers side by side along the last axis; lead: sizes of the axes before it.
local function split(joined, shapes, lead)
  local list, at = {}, 0
  for i, shape in ipairs(shapes) do
    local n = tables.product(shape)
    local part = #shapes == 1 and joined or ops.slice(joined, { axis = -1, from = at, to = at + n })
    local sizes = { unpack(lead) }
    for _, size in ipairs(shape) do sizes[#sizes + 1] = size end
    list[i] = part:reshape(unpack(sizes))
    at = at + n
  end
  return list
end

-- ---- recording a body ----

local X, STATE, DONE, START, GIVEN, DY, DSTATE = 0, 1, 2, 3, 4, 5, 6           -- MN_BODY_X ... of mneme.h

local function shapes_of(list, from) return tables.map(list, function(t) return { unpack(t:shape(), from or 1) } end) end

-- New leaves that stand for the parts of a row.
local function inputs(plan, what, shapes, dtype)
  local list = {}
  for i, shape in ipairs(shapes) do
    list[i] = tensor.new { shape = shape, dtype = dtype, grad = dtype == nil and what < DY }
    check(C.mn_body_input(plan, what, list[i]))
  end
  return list
end

-- `state` where the mask [B,1] says that an episode begins is what a new one starts from.
local function reset(mask, state, B, start)
  local zero, list = tensor.new { shape = { 1, 1 } }, {}
  for i, h in ipairs(state) do
    list[i] = ops.where(mask, start and start[i]:reshape(B, -1) or zero, h:reshape(B, -1)):reshape(unpack(h:shape()))
  end
  return list
end

-- What the body returned, as tensors that it computed: it may return an input itself.
local function outputs(plan, is_state, list)
  for i, t in ipairs(list) do
    list[i] = ops.scale(t, { a = 1, b = 0 })
    check(C.mn_body_output(plan, is_state, list[i]))
  end
  return list
end

-- Record the way back from the outputs.
local function record_backward(plan, y, state)
  local from, grads = {}, {}
  for i, list in ipairs { y, state } do
    local given = inputs(plan, i == 1 and DY or DSTATE, shapes_of(list))
    for k, t in ipairs(list) do
      if t:wants_grad() then from[#from + 1], grads[#grads + 1] = t, given[k] end
    end
  end
  if #from == 0 then return end
  local of, grad = ffi.new("mn_tensor[?]", #from), ffi.new("mn_tensor[?]", #from)
  for i, t in ipairs(from) do of[i - 1], grad[i - 1] = t, grads[i] end
  check(C.mn_backward_from(ctx, #from, of, grad))
end

-- Leaves that the body reads and that learn, besides those that stand for a row: each once.
local function learned(plan, own)
  local list, seen, leaf = {}, {}, ffi.typeof "mn_tensor"()
  for _, t in ipairs(own) do seen[t.slot] = true end
  local i = 0
  while C.mn_plan_leaf(plan, i, leaf) do
    i = i + 1
    if not seen[leaf.slot] and C.mn_tensor_wants_grad(ctx, leaf) then
      list[#list + 1] = ffi.typeof "mn_tensor"(leaf.slot, leaf.gen)
    end
    seen[leaf.slot] = true
  end
  return list
end

-- The body recorded for rows of these shapes: { plan, id, version, learned = leaves, y = its form, y_shapes }.
local function record(body, o)
  return op_binding.record_body(C.mn_body_begin, function(entry)
    local plan, own = entry.plan, {}
    local function stand_in(what, shapes)
      local list = inputs(plan, what, shapes)
      for _, t in ipairs(list) do own[#own + 1] = t end
      return list
    end
    local x, before = stand_in(X, shapes_of(o.x_list, 2)), stand_in(STATE, shapes_of(o.state_list))
    local start = o.start_list and stand_in(START, shapes_of(o.start_list))
    local given = o.given ~= nil and build(o.given, stand_in(GIVEN, shapes_of(o.given_list))) or nil
    local begins = o.done and inputs(plan, DONE, { { o.done:shape()[2], 1 } }, "u8")[1]
    local h = build(o.state, begins and reset(begins, before, o.done:shape()[2], start) or before)
    local y, after = body(build(o.x, x), h, given)
    if y == nil or after == nil then
      errors.raise(("recur: the body returned %s, expected y and the next state"):format(y == nil and "nothing" or "y alone"))
    end
    entry.y = y
    local y_list, states = flatten("what the body returned", y, {}), flatten("the state that the body returned", after, {})
    if form(h) ~= form(after) then errors.raise(("recur: the body was given the state %s and returned %s"):format(form(h), form(after))) end
    entry.y_shapes = shapes_of(y_list)
    y_list, states = outputs(plan, false, y_list), outputs(plan, true, states)
    entry.learned = learned(plan, own)
    for _, leaf in ipairs(entry.learned) do check(C.mn_body_input(plan, GIVEN, leaf)) end
    check(C.mn_body_end(plan, true))
    record_backward(plan, y_list, states)
    check(C.mn_body_end(plan, false))
  end)
end

-- ---- calling it ----

local recorded = setmetatable({}, { __mode = "k" })      -- [body] = { [key] = entry }

local function check_options(o)
  if type(o) ~= "table" or tensor.is(o) then errors.raise("recur: " .. type(o) .. ", expected { x =, state =, ... } after the body") end
  errors.members("recur", o, "x state done start given keep")
  for _, key in ipairs { "x", "state" } do
    if o[key] == nil then errors.raise(("recur: %s is missing, expected a tensor or a table of tensors"):format(key)) end
  end
  if o.done ~= nil and not (tensor.is(o.done) and o.done:dtype() == "u8" and #o.done:shape() == 2) then
    errors.raise "recur: done, expected a uint8 tensor [T,B] that is 1 where an episode begins"
  end
  if o.keep ~= nil and type(o.keep) ~= "boolean" then errors.raise "recur: keep, expected true or false" end
end

local function check_rows(o)
  local T
  for _, x in ipairs(o.x_list) do
    local shape = x:shape()
    if #shape < 2 then errors.raise(("recur: x is [%s], expected [T,B,...]"):format(table.concat(shape, ","))) end
    T = T or shape[1]
    if shape[1] ~= T then errors.raise(("recur: x has sequences of %d and of %d rows"):format(T, shape[1])) end
  end
  if not T then errors.raise "recur: x is an empty table, expected a sequence [T,B,...]" end
  if #o.state_list == 0 then errors.raise "recur: state is an empty table, expected at least one tensor" end
  if o.start ~= nil and form(o.start) ~= form(o.state) then
    errors.raise(("recur: start is %s, expected %s as state"):format(form(o.start), form(o.state)))
  end
  for _, h in ipairs(o.done and o.state_list or {}) do
    local shape, B = h:shape(), o.done:shape()[2]
    if shape[1] ~= B then
      errors.raise(("recur: a state is [%s], expected %d environments as its first axis, as done has"):format(table.concat(shape, ","), B))
    end
  end
  return T
end

-- One row without recording the body, for portable/step_graph.lua, which notes the ops that it applies.
local function one_row(body, o)
  local function each(x, f) return build(x, tables.map(flatten("recur", x, {}), f)) end
  local h = build(o.state, o.done and reset(o.done:reshape(-1, 1), o.state_list, o.done:shape()[2], o.start_list) or o.state_list)
  local y, after = body(each(o.x, function(x) return x:reshape(unpack(x:shape(), 2)) end), h, o.given)
  return each(y, function(x) return x:reshape(1, unpack(x:shape())) end), after
end

---A recurrence in Lua: y[t], h[t] = body(x[t], h[t-1], given).  The body is recorded once per set of shapes, with ops alone and no look at
---numbers, and then run for every row, forward and backward.
---@param body fun(x, h, given): any, any gets a row of x [B,...] and the state before; returns y and the next state, shaped as it came
---@param options table { x = sequence [T,B,...] or a table of such, state = tensor or a table, done = u8 [T,B]: 1 where an episode
---  begins, start = what the state is there (zeros), given = computed tensors that the body reads, keep = false: compute activations
---  again in backward instead of keeping them }
---@return any y its rows [T,...], in the form that the body returned
---@return any state after the last row, in the form of options.state
local function recur(body, options)
  local callable = type(body) == "table" and getmetatable(body)
  if type(body) ~= "function" and not (callable and callable.__call) then
    errors.raise(("recur: %s, expected a function of a row of x and the state before"):format(type(body)))
  end
  check_options(options)
  local o = { x = options.x, state = options.state, done = options.done, start = options.start, given = options.given }
  o.x_list, o.state_list = flatten("x", o.x, {}), flatten("state", o.state, {})
  o.start_list = o.start ~= nil and flatten("start", o.start, {}) or nil
  o.given_list = o.given ~= nil and flatten("given", o.given, {}) or {}
  local T = check_rows(o)
  if op_binding.tracing and T == 1 then return one_row(body, o) end

  local key = table.concat({ form(o.x, 2), form(o.state), o.done and o.done:shape()[2] or "", o.start and "start" or "",
    o.given ~= nil and form(o.given) or "" }, "|")
  recorded[body] = recorded[body] or {}
  local entry = recorded[body][key]
  if not entry then
    entry = record(body, o)
    recorded[body][key] = entry
  end
  if entry.bodies.draws and options.keep == false then
    errors.raise "recur: its body draws random numbers, which keep = false would draw again: leave it out"
  end
  op_binding.keep_body(entry)

  local given = {}
  for _, list in ipairs { o.given_list, entry.learned } do
    for _, t in ipairs(list) do given[#given + 1] = t end
  end
  local y, states = ops.recur { x = rows(o.x_list, T), state = numbers(o.state_list), given = #given > 0 and numbers(given) or nil,
    done = o.done, start = o.start_list and numbers(o.start_list) or nil, body = entry.id, version = entry.version, keep = options.keep ~= false }
  local last, from = {}, 0
  for i, h in ipairs(o.state_list) do
    local n = h:size()
    last[i], from = ops.last_row(states, { from = from, to = from + n }):reshape(unpack(h:shape())), from + n
  end
  return build(entry.y, split(y, entry.y_shapes, { T })), build(o.state, last)
end

return recur
