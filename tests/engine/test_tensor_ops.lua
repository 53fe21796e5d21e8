-- test_tensor_ops.lua -- elementwise ops, comparisons and reductions as a script calls them: against PyTorch in float64
-- (tests/reference/tensor_ops.py), with gradients; numbers in place of tensors, masks, several axes.
local t = require "tests.harness"
local op_cases = require "tests.support.op_cases"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tensor = require "mneme.tensor.tensor"
local mn = require "mneme"
local C, ctx = engine.C, engine.ctx

local function list(x)
  local p, values = x:data(), {}
  for i = 0, x:size() - 1 do values[i + 1] = tonumber(p[i]) end
  return table.concat(values, " ")
end

-- ---- against PyTorch ----

local special = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }
local function value(v) return special[v] or v end

local function compare(what, x, values)
  local p = x:data()
  for i, v in ipairs(values) do
    local got, want = tonumber(p[i - 1]), value(v)
    local same = got == want or (got ~= got and want ~= want) or math.abs(got - want) <= 3e-6 * math.max(1, math.abs(want))
    t.ok(same, ("%s[%d] is %.9g, in PyTorch %.9g"):format(what, i - 1, got, want))
  end
end

local function run(case)
  local given, leaves = {}, {}
  for i, input in ipairs(case.inputs) do
    if type(input) == "table" then
      local x = mn.zeros(input.shape, { grad = input.gradient ~= nil })
      for k, v in ipairs(input.data) do x:data()[k - 1] = value(v) end
      given[i], leaves[i] = x, x
    else given[i] = input end
  end
  for _, argument in ipairs(case.arguments) do given[#given + 1] = value(argument) end
  local y = mn[case.op](unpack(given))
  t.eq(#y:shape() == 0 and "1" or table.concat(y:shape(), ","), table.concat(case.shape, ","), "shape")
  compare("y", y, case.y)
  if not next(leaves) or not select(2, next(leaves)):wants_grad() then return end
  local weights = mn.zeros_like(y)
  for k = 0, y:size() - 1 do weights:data()[k] = op_cases.cotangent(k) end
  (y * weights):sum():backward()
  for i, x in pairs(leaves) do compare("the gradient of input " .. i, x:grad(), case.inputs[i].gradient) end
end

local all = mn.json.decode(files.read(registry.root .. "tests/fixtures/tensor_ops.json"))
local ops = {}
for number, case in ipairs(all) do
  ops[case.op] = ops[case.op] or {}
  table.insert(ops[case.op], { case = case, number = number })
end
for op, entries in pairs(ops) do
  t.test(op .. " is PyTorch's", function()
    local failed = {}
    for _, entry in ipairs(entries) do
      local ok, why = pcall(run, entry.case)
      if not ok then failed[#failed + 1] = ("%s(%s), case %d: %s"):format(op, mn.json.encode(entry.case.arguments), entry.number, tostring(why)) end
    end
    t.ok(#failed == 0, table.concat(failed, "\n"))
  end)
end

-- ---- numbers in place of tensors ----

t.test("every op that broadcasts takes a number for either operand, which is a tensor without axes", function()
  local tried = 0
  op_cases.each(function(name, hints, op)
    if not C.mn_op_broadcasts(op) then return end
    local hint = { shapes = {}, positive = hints[1].positive, type = hints[1].type }
    for i, input in ipairs(tensor.signatures[name].inputs) do hint.shapes[input.name] = i == 1 and { 2, 3 } or { 3 } end
    local case = op_cases.make(name, hint)
    for place, x in ipairs(case.inputs) do
      local with_number, with_tensor = {}, {}
      for i, input in ipairs(case.inputs) do
        local dtype = input.dtype == C.MN_U8 and "u8" or input.dtype == C.MN_I32 and "i32" or "f32"
        local leaf = mn.zeros(i == place and {} or input.shape, { dtype = dtype })
        for k = 0, leaf:size() - 1 do leaf:data()[k] = input.values[k + 1] end
        with_number[i], with_tensor[i] = i == place and tonumber(leaf:data()[0]) or leaf, leaf
      end
      t.eq(list(mn[name](unpack(with_number))), list(mn[name](unpack(with_tensor))), name .. ": " .. x.name)
      tried = tried + 1
    end
  end)
  t.ok(tried > 20, tried .. " operands")
  mn.clear_tape()
end)

t.test("a number takes the type of the tensor beside it, or does not fit", function()
  local i, u = mn.arange(4, { dtype = "i32" }), mn.zeros({ 2 }, { dtype = "u8" })
  t.eq(list(i:eq(2)), "0 0 1 0")
  t.eq(list(mn.gt(2, i)), "1 1 0 0")
  t.eq(list(u:lt(255)), "1 1")
  t.fails(function() return i:eq(2.5) end)
  t.fails(function() return u:eq(256) end)
  t.fails(function() return i:eq(0 / 0) end)
  t.fails(function() return i:eq(mn.ones(4)) end)
  t.ok(list(mn.maximum(mn.ones(2), 0 / 0)):find "nan", "a NaN is a number too")
end)

t.test("numbers of a call do not stay for the next, nor after an error", function()
  local x = mn.tensor { 1, 2 }
  t.eq(list(x:maximum(5)), "5 5")
  t.fails(function() return mn.maximum(5) end)
  t.raises(function() return mn.maximum(7, "x") end, 'maximum: b is "x"')
  t.eq(list(x:maximum(x)), "1 2")
  t.fails(function() return mn.maximum(x) end)
end)

t.test("a loop with numbers makes no leaf a step", function()
  local x = mn.randn(8)
  for _ = 1, 4 do collectgarbage() end
  collectgarbage "stop"
  local before = C.mn_bytes(ctx, "leaf")
  for _ = 1, 1000 do local _ = x:maximum(0) + 1 / x + mn.where(x:gt(0.25), x, -1) end
  local after = C.mn_bytes(ctx, "leaf")
  collectgarbage "restart"
  t.ok(after - before <= 3 * 4, after - before .. " bytes")
  mn.clear_tape()
end)

t.test("in a plan, numbers are constants", function()
  local f = mn.plan(function(x) return (x:maximum(0.5) / 2):lt(1) end)
  local x = mn.tensor { -1, 1, 3 }
  t.eq(list(f(x)), "1 1 0")
  for _ = 1, 3 do collectgarbage() end
  x:data()[2] = 1.5
  t.eq(list(f(x)), "1 1 1")
end)

-- ---- order and equality ----

t.test("< and the like name the method; == is identity", function()
  local x, y = mn.tensor { 1 }, mn.tensor { 1 }
  for want, f in pairs { ["x:lt%(y%)"] = function() return x < y end, ["x:le%(y%)"] = function() return x <= y end,
    ["x:gt%(y%)"] = function() return x > 3 end, ["x:ge%(y%)"] = function() return x >= 3 end } do
    t.raises(f, "test_tensor_ops.lua:%d+: a comparison of tensors by .*" .. want)
  end
  t.ok(x == x and x ~= y)
end)

-- ---- masks ----

t.test("masks: logic, any, all, count_nonzero, where", function()
  local x = mn.tensor { { -1, 2 }, { 3, 4 } }
  local low, high = x:lt(3), x:gt(-1)
  t.eq(list(low:logical_and(high)), "0 1 0 0")
  t.eq(list(low:logical_or(high)), "1 1 1 1")
  t.eq(list(low:logical_xor(high)), "1 0 1 1")
  t.eq(list(low:logical_not()), "0 0 1 1")
  t.eq(list(low:any()) .. list(low:all()) .. list(low:count_nonzero()), "102")
  t.eq(list(low:any(0)) .. "|" .. list(low:all(1)) .. "|" .. list(high:count_nonzero(0, true)), "1 1|1 0|1 2")
  t.eq(list(mn.where(low, 0, x)), "0 0 3 4")
  local m = mn.arange(8):reshape(2, 2, 2):ge(6)
  t.eq(list(m:any { 0, 2 }) .. "|" .. list(m:all { 0, 1, 2 }) .. "|" .. list(m:count_nonzero({ 0, 2 }, true)), "0 1|0|0 2")
  t.eq(high:count_nonzero():dtype() .. low:any():dtype() .. x:argmax():dtype(), "i32u8i32")
  t.fails(function() return x:any() end)
end)

-- ---- reductions ----

t.test("names for keeping the axis, and lists of axes that are none", function()
  local x = mn.ones(2, 3, 4)
  local function shape(y) return table.concat(y:shape(), ",") end
  for _, y in ipairs { x:sum(1, true), x:sum { axis = 1, keepdim = true }, x:sum { axis = 1, keepdims = 1 }, mn.sum { x = x, axis = -2, keepdim = 1 },
    mn.sum(x, { 1 }, true), x:sum { axis = { 1 }, keepdims = true } } do t.eq(shape(y), "2,1,4") end
  t.eq(shape(x:sum { 0, 2 }), "3")
  t.eq(shape(x:norm(1, { 0, 1 }, true)), "1,1,4")
  t.fails(function() return x:sum { 0, 3 } end)
  t.fails(function() return x:sum { 0, -3 } end)
  t.fails(function() return x:sum { 0, "x" } end)
  t.fails(function() return x:sum { axis = {} } end)
  t.fails(function() return x:sum({ 0, 1 }, false, 3) end)
  t.fails(function() return x:mean { axes = 1 } end)
  t.fails(function() return x:norm(-1) end)
  t.raises(function() return x:argmax { 0, 1 } end, "argmax: ")
  t.raises(function() return x:softmax(3) end, "softmax: axis is 3")
end)

t.test("a NaN is never lost by a reduction or an elementwise op", function()
  local bad = mn.tensor { 1, 0 / 0, 2 }
  for _, name in ipairs { "min", "max", "prod", "var", "std", "norm", "sum", "mean" } do
    local y = mn[name](bad):item()
    t.ok(y ~= y, name)
  end
  local y, i = bad:norm(math.huge):item(), bad:argmax():item()
  t.ok(y ~= y and i == 1 and bad:argmin():item() == 1)
  for _, name in ipairs { "expm1", "log1p", "tan", "atan", "reciprocal", "elu", "mish", "ceil", "trunc" } do
    local z = mn[name](bad):data()[1]
    t.ok(z ~= z, name)
  end
end)

t.test("% has the sign of the divisor, and a gradient", function()
  local x, y = mn.tensor { data = { 5, -5, 5.5 }, grad = true }, mn.tensor { data = { 3, 3, -2 }, grad = true }
  t.eq(list(x % y), "2 1 -0.5")
  t.eq(list(x % 3) .. "|" .. list(7 % y), "2 1 2.5|1 1 -1")
  local z = (x % y):sum()
  z:backward()
  t.eq(list(x:grad()) .. "|" .. list(y:grad()), "1 1 1|-1 2 3")
end)
