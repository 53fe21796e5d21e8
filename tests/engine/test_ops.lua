-- test_ops.lua -- what is true of every op, checked for every file in engine/ops the moment it
-- exists: gradients, runs by rows, any number of threads, and what happens when a call is wrong.
local ffi = require "ffi"
local t = require "tests.harness"
local op_cases = require "tests.support.op_cases"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local C, ctx = engine.C, engine.ctx

-- ---- gradients against difference quotients ----

-- The loss with number k of input x moved by h.
local function moved(op, case, leaves, x, k, h)
  local p = op_cases.data(ctx, leaves + x.place, x.dtype)
  p[k] = x.values[k + 1] + h
  local loss = op_cases.loss(ctx, case, op_cases.apply(ctx, op, case, leaves))
  p[k] = x.values[k + 1]
  C.mn_sweep(ctx)
  return loss
end

local narrower = engine.build:find "/width/[^/]+$" ~= nil                  -- a build for other vectors (tests/run.lua)
local STEPS, MOST = { 0.02, 0.005, 0.00125 }, narrower and 8 or 20        -- MOST numbers are tried per input

-- Compares the gradient of one number: true, or false at a kink, or nil and the difference
-- quotient. Extrapolating from two steps leaves an error of the fourth order.  A kink nearby needs
-- a smaller step; at a kink the slopes on both sides differ by the same amount however small the
-- step.
local function agrees(op, case, leaves, x, k, got, scale)
  local base, near = moved(op, case, leaves, x, k, 0), nil
  for _, h in ipairs(STEPS) do
    local up, down = moved(op, case, leaves, x, k, h), moved(op, case, leaves, x, k, -h)
    local up2, down2 = moved(op, case, leaves, x, k, 2 * h), moved(op, case, leaves, x, k, -2 * h)
    local far, tolerance = (up2 - down2) / (4 * h), 3e-3 * scale + 1e-6 * math.abs(base) / h
    near = (up - down) / (2 * h)
    if math.abs((4 * near - far) / 3 - got) <= tolerance or math.abs(near - got) <= tolerance then
      return true
    end
    local bend, bend2 = math.abs(up + down - 2 * base) / h,
      math.abs(up2 + down2 - 2 * base) / (2 * h)
    if bend > tolerance and bend > 0.9 * bend2 then return false end
  end
  return nil, near
end

-- Has an output of this case a gradient?  A cast to whole numbers has none.
local function has_gradient(op, case)
  local leaves, found = op_cases.leaves(ctx, case, true), false
  local out = op_cases.apply(ctx, op, case, leaves)
  for i = 1, #case.s.outputs do found = found or C.mn_tensor_wants_grad(ctx, out + (i - 1)) end
  op_cases.free(ctx, case, leaves)
  return found
end

-- Gradients of every compared input, by the engine, of one use of the op or of several.
local function gradients(op, case, uses)
  local leaves, grads, loss = op_cases.leaves(ctx, case, true), {}, nil
  for _ = 1, uses do
    loss = op_cases.loss_tensor(ctx, case, op_cases.apply(ctx, op, case, leaves), loss)
  end
  op_cases.check(ctx, C.mn_backward(ctx, ffi.new("mn_tensor[1]", loss), false))
  for i, x in ipairs(case.inputs) do
    if x.compared then
      grads[i] = ffi.new("float[?]", x.n)
      ffi.copy(grads[i], op_cases.check(ctx, C.mn_tensor_grad(ctx, leaves + x.place)), x.n * 4)
    end
  end
  op_cases.free(ctx, case, leaves)
  return grads
end

local function check_gradient(name, op, case)
  for i, o in ipairs(case.s.options) do        -- normalisers near 0 bend too sharply for a quotient
    if o.name == "eps" then case.options[i] = 0.5 end
  end
  local grads, leaves, tried, kinks = gradients(op, case, 1), op_cases.leaves(ctx, case, false), 0, 0
  for i, x in ipairs(case.inputs) do
    if x.compared then
      local scale = 1
      for k = 0, x.n - 1 do scale = math.max(scale, math.abs(grads[i][k])) end
      for j = 0, math.min(x.n, MOST) - 1 do
        local k = x.n <= MOST and j or (j * 7919) % x.n
        local same, quotient = agrees(op, case, leaves, x, k, grads[i][k], scale)
        if same == nil then
          error(("%s: gradient of %s[%d] is %.6g, by differences %.6g"):format(name, x.name, k,
            grads[i][k], quotient), 0)
        end
        tried, kinks = tried + 1, kinks + (same and 0 or 1)
      end
    end
  end
  op_cases.free(ctx, case, leaves)
  t.ok(tried > 0, name .. ": nothing was compared")
  t.ok(kinks <= math.max(1, 0.15 * tried),
    ("%s: %d of %d numbers lie at kinks"):format(name, kinks, tried))
end

op_cases.each(function(name, hints, op)
  if not C.mn_op_differentiable(op) then return end
  t.test(name .. ": gradients", function()
    local compared = 0
    for i, hint in ipairs(hints) do
      op_cases.seed(i)
      local case = op_cases.make(name, hint)
      if has_gradient(op, case) then
        compared = compared + 1
        check_gradient(name, op, case)
        if op_cases.walks_time(name) then check_gradient(name, op, op_cases.make(name, hint, op_cases.long)) end
      end
    end
    t.ok(compared > 0, "no case has a gradient")
  end)
end)

-- A gradient that comes a second time is added, by the tape or by the op itself.
t.test("two uses of an op give twice the gradient", function()
  op_cases.each(function(name, hints, op)
    if not C.mn_op_differentiable(op) then return end
    op_cases.seed(2)
    local case = op_cases.make(name, hints[1])
    local once, twice = gradients(op, case, 1), gradients(op, case, 2)
    for i, x in ipairs(case.inputs) do
      for k = 0, once[i] and x.n - 1 or -1 do
        t.near(twice[i][k], 2 * once[i][k], 1e-5 * math.max(1, math.abs(once[i][k])),
          name .. ": gradient of " .. x.name)
      end
    end
  end)
end)

-- An op without backward must not let a wanted gradient vanish in silence.
t.test("an op without a gradient says so, or gives outputs that want none", function()
  op_cases.each(function(name, hints, op)
    if C.mn_op_differentiable(op) then return end
    local case, open_end = op_cases.make(name, hints[1]), false
    for _, o in ipairs(case.s.outputs) do
      open_end = open_end or not (o.no_grad or o.domain ~= "")
    end
    local leaves = op_cases.leaves(ctx, case, true)
    local ok, result = pcall(op_cases.apply, ctx, op, case, leaves)
    if open_end then
      t.ok(not ok and result:find(name .. " has no gradient", 1, true), name .. " was not refused")
    else
      t.ok(ok, result)
      for i = 1, #case.s.outputs do
        t.ok(not C.mn_tensor_wants_grad(ctx, result + (i - 1)), name)
      end
    end
    op_cases.free(ctx, case, leaves)
  end)
end)

-- ---- by rows ----

-- The numbers of every output but work spaces. In the order of
-- the signature, so that of two that are wrong always the same one is told.
local function numbers(c, case, out)
  local list = {}
  for i, o in ipairs(case.s.outputs) do
    local dtype, n = op_cases.info(c, out + (i - 1))
    if not o.work_space then
      local p, copy = op_cases.data(c, out + (i - 1), dtype), { name = o.name }
      for k = 1, n do copy[k] = p[k - 1] end
      list[#list + 1] = copy
    end
  end
  return list
end

local function spoil(case, out)
  for i in ipairs(case.s.outputs) do
    local dtype, n = op_cases.info(ctx, out + (i - 1))
    local p = op_cases.data(ctx, out + (i - 1), dtype)
    for k = 0, n - 1 do p[k] = 77 end
  end
end

local function compare(name, how, got, want)
  for i, list in ipairs(want) do
    for k, v in ipairs(list) do
      local close = got[i][k] == v
        or math.abs(got[i][k] - v) <= 5e-6 * math.max(1, math.abs(v))
      if not close then
        error(("%s: %s[%d] %s is %.9g, whole %.9g"):format(name, list.name, k - 1, how,
          got[i][k], v), 0)
      end
    end
  end
end

-- Record one call, then ask for its rows again, in pieces; false if that is refused.
-- `only_first`: of the inputs that could, only the first is a sequence; then a refusal or the
-- right numbers will do.
local function check_rows(name, op, case, only_first)
  if #case.s.outputs == 0 then return false end
  local probe = op_cases.leaves(ctx, case, false)
  local _, _, shape = op_cases.info(ctx, op_cases.apply(ctx, op, case, probe))
  op_cases.free(ctx, case, probe)
  local timed, T = op_cases.timed_inputs(case, shape), shape[1]
  if not timed then return false end
  if only_first then
    local seen = false
    for i = 1, #timed do seen, timed[i] = seen or timed[i], timed[i] and not seen end
  end
  local leaves, plan = op_cases.leaves(ctx, case, false, timed), op_cases.check(ctx, C.mn_plan_new(ctx))
  op_cases.check(ctx, C.mn_plan_begin(plan))
  local out = op_cases.apply(ctx, op, case, leaves)
  op_cases.check(ctx, C.mn_plan_end(plan))
  local whole, refused = numbers(ctx, case, out), nil
  for _, size in ipairs { { 1, 1 }, { 2, 2 }, { T, T }, { math.max(1, T - 1), 1 } } do
    local first, step = unpack(size)
    local t0, t1 = 0, first
    spoil(case, out)
    while not refused and t0 < T do
      if C.mn_plan_run(plan, t0, math.min(t1, T)) ~= 0 then refused = ffi.string(C.mn_error(ctx)) end
      t0, t1 = t1, t1 + step
    end
    local how = first > step and ("by %d rows, then row by row,"):format(first) or step > 1 and ("by %d rows"):format(step) or "row by row"
    if not refused then compare(name, how, numbers(ctx, case, out), whole) end
  end
  op_cases.check(ctx, C.mn_plan_run(plan, 0, -1))
  if not case.hint.counting then compare(name, "run again", numbers(ctx, case, out), whole) end
  C.mn_plan_free(plan)
  op_cases.free(ctx, case, leaves)
  if refused then
    t.ok(refused:find("needs the whole sequence", 1, true)
      or refused:find("is not a sequence", 1, true), refused)
  end
  return not refused
end

-- These, in these cases, must run by rows: a plan that acts is made of them.
local by_rows = 0
op_cases.each(function(name, hints, op)
  t.test(name .. ": by rows as whole", function()
    for i, hint in ipairs(hints) do
      op_cases.seed(i)
      for _, fixed in ipairs { false, op_cases.many, op_cases.walks_time(name) and op_cases.long or nil } do
        if check_rows(name, op, op_cases.make(name, hint, fixed or nil)) then by_rows = by_rows + 1 end
        check_rows(name, op, op_cases.make(name, hint, fixed or nil), true)
      end
    end
  end)
end)
t.test("most calls run by rows",
  function() t.ok(by_rows > C.mn_op_count(), by_rows .. " calls ran by rows") end)

-- ---- threads ----

-- Outputs, gradients and inputs (some ops act in place) of one call in a context of its own, as
-- bytes.
local function trace(threads, op, case)
  local own = C.mn_ctx_new("cpu", threads)
  if own == nil then error(ffi.string(C.mn_error(nil)), 0) end
  local differentiable = C.mn_op_differentiable(op)
  local leaves = op_cases.leaves(own, case, true)
  local out, parts = op_cases.apply(own, op, case, leaves), {}
  for i, o in ipairs(case.s.outputs) do
    local dtype, n = op_cases.info(own, out + (i - 1))
    if not o.work_space then
      parts[#parts + 1] = ffi.string(op_cases.data(own, out + (i - 1), dtype),
        n * (dtype == C.MN_U8 and 1 or 4))
    end
  end
  if differentiable then
    op_cases.check(own, C.mn_backward(own, ffi.new("mn_tensor[1]", op_cases.loss_tensor(own, case, out)), false))
  end
  for _, x in ipairs(case.inputs) do
    if x.given and x.dtype == C.MN_F32 then
      local from = differentiable and not x.no_grad and C.mn_tensor_grad(own, leaves + x.place)
        or C.mn_tensor_data(own, leaves + x.place)
      parts[#parts + 1] = ffi.string(op_cases.check(own, from), x.n * 4)
    end
  end
  C.mn_ctx_free(own)
  return parts
end

op_cases.each(function(name, hints, op)
  t.test(name .. ": the same bits with 1 and 3 threads", function()
    op_cases.seed(5)
    local case = op_cases.make(name, hints[1], op_cases.large(name))
    local one, three = trace(1, op, case), trace(3, op, case)
    for i, bytes in ipairs(one) do
      t.ok(bytes == three[i], ("%s: part %d of %d differs"):format(name, i, #one))
    end
  end)
end)

if narrower then return end                       -- what is said of a wrong call asks for no number

-- ---- wrong calls ----

local function number_in(text, n) return text:find("%f[%w]" .. n .. "%f[%W]") end

-- The call must fail with a message that starts with the op's name and has each of the words.
local function must_fail(name, op, case, words)
  local leaves = op_cases.leaves(ctx, case, false)
  local ok, message = pcall(op_cases.apply, ctx, op, case, leaves)
  op_cases.free(ctx, case, leaves)
  t.ok(not ok, ("%s accepted a call without %s"):format(name, table.concat(words, ", ")))
  t.ok(message:find(name .. ": ", 1, true) == 1, message)
  for _, word in ipairs(words) do
    t.ok(type(word) == "number" and number_in(message, word) or message:find(word, 1, true),
      message .. "  lacks " .. word)
  end
end

-- How often an axis symbol occurs among the given inputs.
local function uses(case, symbol)
  local n = 0
  for _, x in ipairs(case.inputs) do
    local seen = false
    for _, s in ipairs(x.given and x.symbols or {}) do
      if s == symbol and (symbol ~= "." or not seen) then n, seen = n + 1, true end
    end
  end
  return n
end

-- How many of the given inputs have any type, but one together.
local function any_types(case)
  local n = 0
  for _, x in ipairs(case.inputs) do if x.given and x.domain == "any" then n = n + 1 end end
  return n
end

local function resize(x, axis, size)
  local was = x.shape[axis]
  x.shape[axis], x.n = size, x.n / was * size
  for k = #x.values + 1, x.n do x.values[k] = x.values[1] end
  return was
end

local names = { [C.MN_F32] = "float32", [C.MN_I32] = "int32", [C.MN_U8] = "uint8" }

op_cases.each(function(name, hints, op)
  t.test(name .. ": a wrong call is an error that says so", function()
    for _, hint in ipairs(hints) do
      op_cases.seed(3)
      local case = op_cases.make(name, hint)
      for _, x in ipairs(case.inputs) do
        for axis = 1, x.given and #x.shape or 0 do
          local symbol = x.symbols[axis]
          local fixed = tonumber(symbol) or (symbol:match "[%u.]" and uses(case, symbol) > 1)
          local was = resize(x, axis, x.shape[axis] + 1)
          if fixed then must_fail(name, op, case, { "axis ", was, was + 1 })
          else       -- another size may be right here; if it is not, it must be an error of this op
            local leaves = op_cases.leaves(ctx, case, false)
            local ok, message = pcall(op_cases.apply, ctx, op, case, leaves)
            t.ok(ok or message:find(name .. ": ", 1, true) == 1, message)
            op_cases.free(ctx, case, leaves)
          end
          resize(x, axis, was)
        end
        if x.given then
          local dtype = x.dtype
          x.dtype = dtype == C.MN_F32 and C.MN_I32 or C.MN_F32
          if x.domain ~= "any" then
            must_fail(name, op, case, { x.name .. " is " .. names[x.dtype],
              "expected " .. names[dtype] })
          elseif any_types(case) > 1 then must_fail(name, op, case, { names[x.dtype], "expected", names[dtype] }) end
          x.dtype = dtype
          if not case.s.inputs[x.place + 1].optional then
            x.given = false
            must_fail(name, op, case, { x.name .. " is missing" })
            x.given = true
          end
          if not case.s.inputs[x.place + 1].axes:find "[.*]" then
            table.insert(x.shape, 1, 1)
            must_fail(name, op, case, { x.name, #x.shape, #x.shape - 1, "axes" })
            table.remove(x.shape, 1)
          end
        end
      end
    end
    t.raises(function() mn.ops[name] { no_such_argument = 1 } end,
      name .. ": unknown argument 'no_such_argument'")
  end)
end)

t.test("an index outside its axis is refused, and gives NaN where a replayed plan meets one",
  function()
  op_cases.each(function(name, hints, op)
    local case = op_cases.make(name, hints[1])
    for _, x in ipairs(case.inputs) do
      if x.domain:sub(1, 1) == "<" then
        for _, wrong in ipairs { -1, 1000 } do
          local was = x.values[1]
          x.values[1] = wrong
          must_fail(name, op, case, { x.name, wrong })
          x.values[1] = was
        end
        local leaves, plan = op_cases.leaves(ctx, case, false), op_cases.check(ctx, C.mn_plan_new(ctx))
        op_cases.check(ctx, C.mn_plan_begin(plan))
        local out = op_cases.apply(ctx, op, case, leaves)
        op_cases.check(ctx, C.mn_plan_end(plan))
        op_cases.data(ctx, leaves + x.place, x.dtype)[0] = 1000
        op_cases.check(ctx, C.mn_plan_run(plan, 0, -1))
        local y = op_cases.data(ctx, out, C.MN_F32)[0]
        t.ok(y ~= y, name .. ": no NaN")
        C.mn_plan_free(plan)
        op_cases.free(ctx, case, leaves)
      end
    end
  end)
end)

t.test("every op has a line that says what it does", function()
  op_cases.each(function(name, _, op)
    local doc = ffi.string(C.mn_op_doc(op))
    t.ok(#doc > 4 and not doc:find "\n", name .. " has no doc line")
    for list in doc:gmatch "%f[%w]see ([%w_, ]+)" do              -- "(see position, kv_slots)"
      for word in list:gmatch "[%w_]+" do t.ok(C.mn_op_find(word) >= 0, ("%s: see %s, which is no op"):format(name, word)) end
    end
  end)
end)
