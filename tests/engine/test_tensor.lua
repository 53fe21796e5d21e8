-- test_tensor.lua -- tensors as a script holds them: making, looking, operators, gradients, lifetimes; and that
-- whatever is given wrongly is an error at the user's line, never a crash and never another tensor's numbers.
local ffi = require "ffi"
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local tensor = require "mneme.tensor.tensor"
local C, ctx = engine.C, engine.ctx

local function settle() for _ = 1, 4 do collectgarbage() end end

-- f must fail with this message, at a line of this file.
local function refuses(pattern, f, ...)
  local ok, err = pcall(f, ...)
  t.ok(not ok, "accepted, expected: " .. pattern)
  err = tostring(err)
  t.ok(err:find(pattern), ("expected '%s', got: %s"):format(pattern, err))
  t.ok(err:find "test_tensor%.lua:%d+: ", "does not name the line: " .. err)
end

local function list(x) return table.concat(x:to_table(), " ") end

-- ---- making and looking ----

t.test("leaves: lists, nested lists, shapes, types", function()
  local a = mn.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
  t.eq(table.concat(a:shape(), ","), "2,3")
  t.eq(a:size(), 6)
  t.eq(a:dtype(), "f32")
  t.eq(a:at(2, 1), 4)
  t.eq(a:data()[5], 6)
  t.eq(a:to_table()[1][3], 3)
  t.eq(mn.tensor({ 7 }):item(), 7)
  t.eq(mn.tensor({ 7, 8 })[2], 8)
  t.eq(list(mn.tensor { shape = { 3 } }), "0 0 0")
  t.eq(list(mn.tensor { shape = { 2 }, data = { -1, 5 }, dtype = "i32" }), "-1 5")
  t.eq(list(mn.tensor { 0, 255, dtype = "u8" }), "0 255")
  t.eq(list(mn.tensor({ shape = { 2 } }):fill(3)), "3 3")
  t.eq(table.concat(mn.tensor({ { { { { { 1 } } } } } }):shape(), ","), "1,1,1,1,1,1")
  local scalar = mn.tensor { shape = {}, data = 4 }
  t.eq(#scalar:shape(), 0)
  t.eq(scalar:item(), 4)
  local g = mn.tensor { data = { 1, 2 }, grad = true }
  t.ok(g:wants_grad() and not a:wants_grad())
  t.eq(list(g:grad()), "0 0")
  t.ok(mn.is_tensor(a) and not mn.is_tensor {} and not mn.is_tensor(3) and not mn.is_tensor(nil) and not mn.is_tensor(ffi.new "int"))
end)

t.test("printing", function()
  t.eq(tostring(mn.tensor { 1, 2.5 }), "tensor [2] f32 [1.0000, 2.5000]")
  t.eq(tostring(mn.tensor { shape = { 3, 4 }, dtype = "u8" }), "tensor [3,4] u8\n[[0, 0, 0, 0],\n [0, 0, 0, 0],\n [0, 0, 0, 0]]")
  local y = mn.tensor { 1 } + 1
  t.eq(tostring(y), "tensor [1] f32 [2]")
  mn.clear_tape()
  t.eq(tostring(y), "tensor (gone)")
  t.ok(tostring(mn.tensor { 0 / 0, 1 / 0 }):find "nan, inf")
end)

t.test("what is no tensor is refused", function()
  for _, case in ipairs {
    { 3, "tensor: 3, expected a list" }, { "x", 'tensor: "x", expected' }, { nil, "tensor: nil, expected" },
    { {}, "tensor: " }, { { {}, {} }, "axis 1 is 0" }, { { { 1, 2 }, { 3 } }, "uneven list at axis 1: 1 values, expected 2" },
    { { 1, { 2 } }, "is not a number" }, { { { 1 }, 2 }, "uneven list at axis 1: 2, expected" }, { { 1, "a" }, '"a" is not a number' },
    { { 1, true }, "true is not a number" }, { { shape = { 0 } }, "axis 0 is 0, expected a whole number of at least 1" },
    { { shape = { 2, -1 } }, "axis 1 is %-1" }, { { shape = { 2.5 } }, "axis 0 is 2.5" }, { { shape = { 0 / 0 } }, "axis 0 is %-?nan" },
    { { shape = { 2 ^ 31 } }, "axis 0 is 2147483648" }, { { shape = { "2" } }, "axis 0 is 2, expected a whole number" },
    { { shape = 3 }, "a shape is a list of at most 6" }, { { shape = { 1, 1, 1, 1, 1, 1, 1 } }, "at most 6" },
    { { shape = { 2 }, data = { 1, 2, 3 } }, "uneven list at axis 0: 3 values, expected 2" }, { { shape = { 2 }, data = 5 }, "uneven list" },
    { { shape = {}, data = { 1 } }, "tensor: " }, { { shape = {}, data = "x" }, "tensor: " },
    { { shape = { 2 }, dtype = "f64" }, 'unknown dtype "f64"' }, { { shape = { 2 }, dtype = 3 }, "unknown dtype 3" },
    { { shpe = { 2 } }, "unknown key 'shpe'" }, { { 1, 2, dtyp = "i32" }, "unknown key 'dtyp'" }, { { 1, 2, nil, 4 }, "tensor: " },
    { { shape = { 2 }, dtype = "i32", grad = true }, "only float32 tensors have a gradient" },
    { { shape = {}, time = true }, "only a leaf with an axis can be a sequence" },
    { { 1.5, dtype = "i32" }, "1.5 .*i32" }, { { 256, dtype = "u8" }, "256 .*u8" }, { { -1, dtype = "u8" }, "%-1 .*u8" },
    { { 2 ^ 31, dtype = "i32" }, "2147483648 .*i32" }, { { 0 / 0, dtype = "i32" }, "nan .*i32" },
    { { shape = { 2 }, grad = "yes" }, "tensor: " }, { { data = mn.tensor { 1 } }, "tensor: " },
  } do refuses(case[2], function() return mn.tensor(case[1]) end) end
  refuses("more elements than fit", function() mn.tensor { shape = { 2 ^ 31 - 1, 2 ^ 31 - 1, 2 ^ 31 - 1 } } end)
  refuses("out of memory: %d+", function() mn.tensor { shape = { 2 ^ 31 - 1, 500 } } end)
  refuses("out of memory: %d+", function() mn.tensor { shape = { 2 ^ 31 - 1, 500 }, grad = true } end)
end)

t.test("looking wrongly is refused", function()
  local a, y = mn.tensor { { 1, 2 }, { 3, 4 } }, mn.tensor { 1 } * 2
  refuses("at: 1 indices for 2 axes", function() return a:at(1) end)
  refuses("index 3 of axis 1, expected 1 to 2", function() return a:at(1, 3) end)
  refuses("index 0 of axis 0", function() return a:at(0, 1) end)
  refuses("index 1.5 of axis 0", function() return a:at(1.5, 1) end)
  refuses("index %-?nan of axis 0", function() return a:at(0 / 0, 1) end)
  refuses("index x of axis 1", function() return a:at(1, "x") end)
  refuses("item: the tensor has 4 elements", function() return a:item() end)
  refuses("unknown method or op 'shpe'; did you mean 'shape'", function() return a:shpe() end)
  refuses("tensor: nil is not a number", function() a:fill() end)
  refuses('tensor: "x" is not a number', function() a:fill "x" end)
  refuses("1.5 does not fit i32", function() mn.tensor({ 1, dtype = "i32" }):fill(1.5) end)
  refuses("copy: 3 is not a tensor", function() a:copy(3) end)
  refuses("copy: 1 elements into 4", function() a:copy(mn.tensor { 1 }) end)
  refuses("another element type", function() a:copy(mn.tensor { shape = { 2, 2 }, dtype = "i32" }) end)
  refuses("copy: the target was computed", function() y:copy(mn.tensor { 1 }) end)
  refuses("expected a leaf with grad = true", function() return a:grad() end)
  refuses("expected a leaf with grad = true", function() return y:grad_data() end)
  refuses("has no member named 'x'", function() a.x = 3 end)
  for _, method in ipairs { "shape", "size", "data", "dtype", "grad_data", "zero_grad", "backward" } do
    refuses("is nil, expected a tensor .a method needs the colon", function() a[method]() end)
  end
  t.raises(function() return a.fill(3, 4) end, "number")
  mn.clear_tape()
end)

-- ---- operators ----

t.test("operators, with numbers on either side", function()
  local a, b = mn.tensor { 2, 8 }, mn.tensor { 4, 2 }
  for text, y in pairs { ["6 10"] = a + b, ["-2 6"] = a - b, ["8 16"] = a * b, ["0.5 4"] = a / b, ["-2 -8"] = -a,
    ["3 9"] = a + 1, ["4 10"] = 2 + a, ["-1 5"] = a - 3, ["1 -5"] = 3 - a, ["10 40"] = a * 5, ["6 24"] = 3 * a,
    ["1 4"] = a / 2, ["4 1"] = 8 / a } do t.eq(list(y), text) end
  t.eq(list((1 + a * 2) / (b - 1)), "1.6666666269302 17")
  mn.clear_tape()
  for _, wrong in ipairs { "x", {}, true, print, { 1 } } do
    refuses("add: ", function() return a + wrong end)
    refuses("add: ", function() return wrong + a end)
    refuses("mul: ", function() return a * wrong end)
    refuses("div: ", function() return wrong / a end)
  end
  refuses("sub: ", function() return a - nil end)
  refuses("sub: ", function() return nil - a end)
  refuses("add: ", function() return a + mn.tensor { 1, 2, 3 } end)
  refuses("add: b is int32, expected float32", function() return a + mn.tensor { 1, 2, dtype = "i32" } end)
end)

t.test("options of mn.tensor last, as other constructors take them; the size of an axis", function()
  local x = mn.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, { dtype = "i32" })
  t.eq(x:dtype(), "i32")
  t.eq(x:size(), 6)
  t.eq(x:size(0), 2)
  t.eq(x:size(-1), 3)
  t.eq(mn.tensor({ 1 }, { grad = true }):wants_grad(), true)
  t.fails(function() mn.tensor({ 1 }, { requires_grad = true }) end)
  t.raises(function() mn.tensor({ 1 }, 3) end, "options are 3")
  t.fails(function() x:size(2) end)
  t.fails(function() return x * mn.tensor { 1 } end)
end)

-- Every argument of every op given as something that it is not: an error of that op, at the line of the call.
t.test("whatever is given to an op in whatever place, it is an error that says where", function()
  local stale = mn.tensor { 1 } * 2
  mn.clear_tape()
  local wrong = { 3, "x", true, {}, { 1, 2 }, { { 1 } }, print, stale, ffi.new "int[2]" }
  local bytes, numbers = mn.tensor { shape = { 1, 1, 1, 1, 1, 1 }, dtype = "u8" }, mn.tensor { 1 }
  local function of_another_type(input)
    return (input.domain == "bit" or input.domain == "u8") and numbers or input.domain ~= "any" and bytes or nil
  end
  for name, op in pairs(mn.ops) do
    local s, full = tensor.signatures[name], {}
    for _, input in ipairs(s.inputs) do full[input.name] = mn.tensor { shape = { 1 } } end
    for _, input in ipairs(s.inputs) do
      wrong[10] = of_another_type(input)
      for _, value in ipairs(wrong) do
        local given = {}
        for key, x in pairs(full) do given[key] = x end
        given[input.name] = value
        local fits = value == 3 and C.mn_op_broadcasts(C.mn_op_find(name))
        if not fits then refuses("^[^ ]+ " .. name .. ": ", function() op(given) end) end
      end
    end
    for _, option in ipairs(s.options) do
      for _, value in ipairs { "no such word", {}, print, stale, mn.tensor { 1 } } do
        local given = {}
        for key, x in pairs(full) do given[key] = x end
        given[option.name] = value
        refuses(name .. ": " .. option.name .. " = ", function() op(given) end)
      end
    end
    wrong[10] = of_another_type(s.inputs[1])
    for _, value in ipairs(wrong) do if type(value) ~= "table" then refuses(name .. ": ", function() op(value) end) end end
    refuses(name .. ": ", function() op() end)
    refuses(name .. ": ", function() op {} end)
    refuses(name .. ": ", function() op(nil, nil) end)
    refuses(name .. ": ", function() op({}, {}) end)
    refuses(name .. ": unknown argument 'nonsense'", function() op { nonsense = 1 } end)
    refuses(name .. ": unknown argument '1'", function() op { mn.tensor { 1 } } end)
    local many = {}
    for i = 1, 20 do many[i] = mn.tensor { 1 } end
    refuses(name .. ": ", function() op(unpack(many)) end)
  end
  mn.clear_tape()
end)

-- ---- gradients ----

t.test("gradients add up where a tensor is used more than once", function()
  local x = mn.tensor { data = { 2, -3 }, grad = true }
  local function gradient(f)
    x:zero_grad()
    f():sum():backward()
    mn.clear_tape()
    return list(x:grad())
  end
  t.eq(gradient(function() return x * x end), "4 -6")
  t.eq(gradient(function() return x + x + x end), "3 3")
  t.eq(gradient(function() local y = x * 2 return y * y + y end), "18 -22")
  t.eq(gradient(function() return x - x end), "0 0")
  t.eq(gradient(function() local y = x:square() return y * y * y / (y * y) end), "4 -6")
  local w = mn.tensor { data = { { 1, 2 }, { 3, 4 } }, grad = true }
  mn.linear(w, w):sum():backward()             -- sum of W W^T: its gradient is 2 times the column sums
  mn.clear_tape()
  t.eq(table.concat(w:grad():to_table()[1], " ") .. " " .. table.concat(w:grad():to_table()[2], " "), "8 12 8 12")
end)

t.test("gradients add up over calls of backward, until zero_grad", function()
  local x = mn.tensor { data = { 3 }, grad = true }
  for k = 1, 3 do
    x:square():sum():backward()
    mn.clear_tape()
    t.eq(x:grad():item(), 6 * k)
  end
  x:zero_grad()
  t.eq(x:grad():item(), 0)
  local loss = x:square():sum()
  loss:backward { retain = true }
  loss:backward()
  t.eq(x:grad():item(), 12)
  local other = (x * 5):sum()
  other:backward()
  t.eq(x:grad():item(), 17)
  mn.clear_tape()
end)

t.test("what has no gradient says so", function()
  local x, plain = mn.tensor { data = { 3, 4 }, grad = true }, mn.tensor { 1 }
  refuses("the loss has 2 elements, expected 1", function() x:square():backward() end)
  refuses("backward: no input of this number requires a gradient", function() plain:square():sum():backward() end)
  refuses("backward: no input of this number requires a gradient", function() plain:backward() end)
  refuses("no input of this number requires", function() mn.tensor({ data = { 1 }, grad = true }):backward() end)
  local y = mn.no_grad(function() return x:sum() end)
  refuses("no input of this number requires", function() y:backward() end)
  mn.clear_tape()
end)

t.test("zero_grad of a window empties that part", function()
  local x = mn.tensor { data = { 1, 2, 3 }, grad = true }
  local window = tensor.view(x, 1, { 2 })
  x:sum():backward()
  mn.clear_tape()
  window:zero_grad()
  t.eq(list(x:grad()), "1 0 0")
  t.eq(list(window:grad()), "0 0")
  t.eq(list(window), "2 3")
  refuses("elements 2 to 4 of a tensor of 3", function() tensor.view(x, 2, { 2 }) end)
  refuses("elements %-1", function() tensor.view(x, -1, { 1 }) end)
  tensor.view(window, 1, { 1 }):fill(9)                 -- a window on a window is one on the leaf
  t.eq(list(x), "1 2 9")
  refuses("elements 1 to 3 of a tensor of 2", function() tensor.view(window, 1, { 2 }) end)
  refuses("the target was computed", function() tensor.view(x * 2, 0, { 1 }) end)
  refuses("at most 6", function() tensor.view(x, 0, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }) end)
end)

-- ---- lifetimes ----

t.test("after a sweep a tensor is an error, whatever has taken its place", function()
  local old = {}
  for i = 1, 20 do old[i] = mn.tensor { i } * 1 end
  mn.clear_tape()
  for i = 1, 20 do old[i + 20] = mn.tensor { 100 + i } * 1 end
  for i = 1, 20 do
    for _, f in ipairs { function(x) return x:data() end, function(x) return x:shape() end, function(x) return x + 1 end,
      function(x) return mn.tensor { 1 } + x end, function(x) return x:item() end, function(x) return mn.keep(x) end,
      function(x) x:backward() end, function(x) return x:to_table() end, function(x) return x:size() end,
      function(x) return mn.tensor({ 1 }):copy(x) end, function(x) return x:dtype() end, function(x) return x[1] end } do
      refuses("computed before the last sweep", f, old[i])
    end
    t.ok(not old[i]:wants_grad())
    t.eq(old[i + 20]:item(), 100 + i)
  end
  mn.clear_tape()
end)

t.test("no_grad: results are kept, the rest is gone, errors and nesting do no harm", function()
  local x, inner = mn.tensor { data = { 3 }, grad = true }, nil
  local outer = x * 2
  local a, n, b = mn.no_grad(function()
    inner = x * 5
    local nested = mn.no_grad(function() return x * 7 end)
    return x * 4, 17, nested
  end)
  refuses("inside mn.no_grad", function() return inner:item() end)
  t.eq(a:item() + n + b:item(), 12 + 17 + 21)
  t.raises(function() mn.no_grad(function() local _ = x * 2 error "on purpose" end) end, "on purpose")
  local y = outer * x
  y:backward()
  t.eq(x:grad():item(), 12)
  mn.clear_tape()
  t.eq(a:item(), 12)
  refuses("nested too deeply", function()
    local function dig() return mn.no_grad(dig) end
    dig()
  end)
  t.eq((x * 1):item(), 3)
  mn.clear_tape()
end)

t.test("no_grad around backward: its gradient buffers do not come back as someone else's", function()
  local x = mn.tensor { shape = { 64 }, grad = true }
  x:fill(2)
  local function loss() return (x:square() * x):sum() end
  local first = loss()
  mn.no_grad(function() first:backward() end)
  local held = {}
  for i = 1, 8 do held[i] = x * i end
  loss():backward()
  for i = 1, 8 do for k = 0, 63 do t.eq(held[i]:data()[k], 2 * i) end end
  t.eq(x:grad():data()[5], 24)
  mn.clear_tape()
end)

t.test("a leaf dropped while the tape needs it lives on", function()
  local w, want = core_rig.normal({ 100 }, 3, true), {}
  local function loss()
    local x = core_rig.normal({ 100 }, 4)
    for k = 0, 99 do want[k] = x:data()[k] end
    return (w * x):sum()
  end
  local l = loss()
  settle()
  for i = 1, 100 do core_rig.normal({ 100 }, 50 + i) end
  l:backward()
  for k = 0, 99 do t.eq(w:grad():data()[k], want[k]) end
  mn.clear_tape()
end)

t.test("reshape shares what was computed, and copies a leaf", function()
  local x = mn.tensor { data = { 1, 2, 3, 4, 5, 6 }, grad = true }
  local y = x * 2
  local z = y:reshape { d0 = 2, d1 = 3 }
  t.ok(y:data() == z:data(), "computed numbers are shared")
  local w = x:reshape { d0 = 3, d1 = 2 }
  t.ok(w:data() ~= x:data(), "a leaf's are not")
  local squares = (z * z):sum()
  squares:backward()
  t.eq(list(x:grad()), "8 16 24 32 40 48")
  x:zero_grad()
  mn.clear_tape()
  y = x * 2
  local total = (y:reshape { d0 = 2, d1 = 3 }):sum() + (y:reshape { d0 = 3, d1 = 2 } * 3):sum() + y:sum()
  total:backward()
  t.eq(list(x:grad()), "10 10 10 10 10 10")
  mn.clear_tape()
end)

t.test("keep: copies that last, into leaves that are used again", function()
  local state = mn.keep { a = mn.tensor { 1 } + 1, b = { mn.tensor { 2 } * 3 }, n = 5 }
  mn.clear_tape()
  t.ok(state.a:item() == 2 and state.b[1]:item() == 6 and state.n == 5)
  local a, inner = state.a, state.b[1]
  local again = mn.keep({ a = mn.tensor { 9 } * 1, b = { mn.tensor { 8 } * 1 }, n = 5 }, state)
  mn.clear_tape()
  t.ok(again == state and state.a == a and state.b[1] == inner, "the same leaves")
  t.ok(a:item() == 9 and inner:item() == 8)
  refuses("copy: ", function() mn.keep(mn.tensor { 1, 2 }, mn.tensor { 1 }) end)
  refuses("keep: ", function() mn.keep(mn.tensor { 1, 2 }, 3) end)
  refuses("keep: ", function() mn.keep({ mn.tensor { 1 } }, mn.tensor { 1 }) end)
  t.eq(mn.keep(4), 4)
end)

-- ---- memory ----

t.test("dropped leaves give their memory back without being asked", function()
  settle()
  local most, before = 0, C.mn_bytes(ctx, "resident")
  for _ = 1, 2000 do
    mn.tensor({ shape = { 512, 512 } }):fill(1)
    most = math.max(most, C.mn_bytes(ctx, "leaf"))
  end
  t.ok(most < 200e6, ("leaves took %.0f MB"):format(most / 1e6))
  if core_rig.heap() > 0 then t.ok(C.mn_bytes(ctx, "resident") - before < 300e6, "resident memory") end   -- not under ASan
  settle()
  t.ok(C.mn_bytes(ctx, "leaf") < 64e6)
end)

t.test("small leaves and eager steps leave nothing behind", function()
  local w = core_rig.normal({ 8, 8 }, 1, true)
  local function step()
    local x = mn.tensor { shape = { 8, 8 } }
    for _ = 1, 5 do x = mn.tensor { shape = { 8, 8 }, grad = true } + x end
    w:zero_grad()
    mn.linear(x, w):sum():backward()
    mn.clear_tape()
  end
  for _ = 1, 300 do step() end
  settle()
  local leaf, peak, heap = C.mn_bytes(ctx, "leaf"), C.mn_bytes(ctx, "arena_peak"), core_rig.heap()
  for _ = 1, 40 do                       -- in bounds, so that the number of leaves at once is the same
    for _ = 1, 300 do step() end
    settle()
  end
  t.eq(C.mn_bytes(ctx, "leaf"), leaf)
  t.eq(C.mn_bytes(ctx, "arena_peak"), peak)
  t.eq(C.mn_bytes(ctx, "arena"), 0)
  t.ok(core_rig.heap() - heap < 2e5, ("%d bytes of the heap are lost"):format(core_rig.heap() - heap))
end)

t.test("backward refuses values that were overwritten since", function()
  local w, x = core_rig.normal({ 3, 3 }, 1, true), core_rig.normal({ 2, 3 }, 2)
  local y = mn.linear(x, w)
  local loss = y:sum()
  mn.keep(y, x)
  t.fails(function() loss:backward() end)
  loss = mn.linear(x, w):sum()
  loss:backward()
  mn.keep(mn.linear(x, w):sum(), mn.tensor { 0 })
  mn.clear_tape()
  x:copy(core_rig.normal({ 2, 3 }, 3))
  mn.no_grad(function() mn.keep(mn.linear(x, w), x) end)
end)

t.test("numbers and words after the tensors are options, in the order of the signature", function()
  local x = mn.tensor { shape = { 2, 3, 4 } }
  for i = 0, 23 do x:data()[i] = i end
  t.eq(table.concat(x:reshape(6, -1):shape(), ","), "6,4")
  t.eq(table.concat(x:sum(1, 1):shape(), ","), "2,1,4")
  t.eq(x:slice(2, 1, 3):at(2, 3, 2), 22)
  t.eq(table.concat(mn.concat(x, x, 0):shape(), ","), "4,3,4")
  t.eq(x:normalise("sum", 0):at(1, 1, 4), 3 / 6)
  t.fails(function() return x:reshape(1, 2, 3, 4, 1, 1, 1) end)
  t.fails(function() return x:reshape "wide" end)
  t.fails(function() return x:normalise "length" end)
  t.fails(function() return x:matmul(2) end)
  t.eq(table.concat(x:sum(nil, true):shape(), ","), "1,1,1", "an option that is nil is left as it is")
end)
