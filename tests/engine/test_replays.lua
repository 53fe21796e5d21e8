-- test_replays.lua -- what replays of a plan leave in gradients, and rows that cannot be run: they are refused, and what Lua
-- reads while a plan records.
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local ops = require("mneme.tensor.tensor").ops

t.test("gradients of replays add up, in any order, unless the plan itself empties them", function()
  local w = mn.tensor { data = { 2 }, grad = true }
  local function back(by, empties)
    local plan = mn.plan(function()
      if empties then w:zero_grad() end
      (w * by):sum():backward()
    end)
    plan()
    return plan
  end
  w:zero_grad()
  local a, b = back(3), back(10)
  t.eq(w:grad():item(), 13)
  for _, case in ipairs { { 13, a, b }, { 13, b, a }, { 6, a, a }, { 20, b, b }, { 16, a, b, a } } do
    w:zero_grad()
    for i = 2, #case do case[i]:run() end
    t.eq(w:grad():item(), case[1])
  end
  local own = back(5, true)
  own:run()
  own:run()
  t.eq(w:grad():item(), 5)
  a:run()
  t.eq(w:grad():item(), 8)
end)

t.test("an optimiser in a plan of its own finds gradients as zero_grad left them", function()
  local reached, not_reached = mn.tensor { data = { 1 }, grad = true }, mn.tensor { data = { 1 }, grad = true }
  local adam = mn.adam({ reached, not_reached }, { lr = 0.1 })
  local step = mn.plan(function() adam:step() end)
  local loss = (reached * 3 + not_reached):sum()
  loss:backward()
  step()
  adam:zero_grad()
  mn.clear_tape();
  (reached * 3):sum():backward()
  step:run()
  t.near(adam:grad_norm(), 3, 1e-6)
end)

t.test("a norm beyond float32 is infinite, not NaN", function()
  local a, b = mn.tensor { data = { 1 }, grad = true }, mn.tensor { data = { 1 }, grad = true }
  local adam = mn.adam({ a, b }, { lr = 0.1 })
  local loss = (a * 3e38 + b * 3e38):sum()
  loss:backward()
  adam:step()
  t.eq(adam:grad_norm(), math.huge)
end)

t.test("attention computes with nothing of an episode that has ended, or that its window has left behind", function()
  local T = 64
  local function finite_from(done_at, window)
    local x = {}
    for name, value in pairs { q = 0.1, k = 0.2, v = 0.3 } do
      x[name] = mn.tensor { shape = { T, 1, 1, 4 } }
      x[name]:fill(value)
    end
    x.v:data()[35 * 4] = 0 / 0
    x.window = window
    if done_at then
      x.done = mn.tensor { shape = { T, 1 }, dtype = "u8" }
      x.done:data()[done_at] = 1
    end
    local y, last = ops.attention(x):data(), -1
    for row = 0, T - 1 do if y[row * 4] ~= y[row * 4] then last = row end end
    return last + 1
  end
  t.eq(finite_from(40, nil), 40)
  t.ok(finite_from(nil, 3) <= 35 + 3 + 8, "a window of 3 reaches back further than a group of rows")
end)

-- ---- rows that cannot be run ----

t.test("rows: what they would make wrong is refused", function()
  local function sequence(rows) return mn.sequence { shape = { rows, 2 } } end
  local twice = mn.plan(function(x) return x * 2 end)
  local also = mn.plan(function(x) return x * 3 end)
  local seven, five = twice(sequence(7)), also(sequence(5))
  local uneven = mn.plan(function() return seven * 1, five * 1 end)
  uneven()
  t.fails(function() uneven:rows(0, 1) end)
  local cell = mn.core { "gru", d_model = 3, d_in = 2 }
  local state, x = cell:initial(1), mn.sequence { shape = { 4, 1, 2 } }
  local ends = mn.plan(function()
    local _, after = cell(x, nil, state)
    return select(2, next(after)) * 2
  end)
  ends()
  t.fails(function() ends:rows(0, 1) end)
  ends:run()
  local plain = mn.plan(function() return (cell(x, nil, state)) end)
  plain()
  plain:rows(0, 2)
  plain:run()
  t.fails(function() plain:rows(2, 4) end)
  plain:rows(0, 2)
  plain:rows(2, 4)
end)

t.test("numbers that Lua reads while a plan records are refused: replays would keep them", function()
  local x = mn.tensor { 1, 2, 3 }
  for what, f in pairs {
    item = function(a) return a * a:sum():item() end,
    at = function(a) return a:at(1) > 0 and a * 2 or a end,
    to_table = function(a) return a * a:to_table()[2] end,
  } do
    local plan = mn.plan(f)
    t.raises(function() plan(x) end, what .. ": while a plan records")
    t.eq(x:at(2), 2)
  end
  t.fails(function() mn.tensor({ { 1, 2 }, { 3, 4 } }):at(nil, 2) end)
end)

t.test("a plan that is freed while it records leaves the recording around it, and no_grad, as they were", function()
  local C, ctx = engine.C, engine.ctx
  local function new() return engine.check(C.mn_plan_new(ctx)) end
  local outer, middle, inner = new(), new(), new()
  engine.check(C.mn_plan_begin(outer))
  engine.check(C.mn_no_grad(ctx, true))
  engine.check(C.mn_way_back_begin(middle))
  engine.check(C.mn_way_back_begin(inner))
  C.mn_plan_free(middle)
  C.mn_plan_free(inner)
  t.eq(C.mn_no_grad(ctx, false), 0, "no_grad was lost")
  t.eq(C.mn_plan_end(outer), 0, "the outer recording was lost")
  C.mn_plan_free(outer)
  t.eq((mn.tensor { 2 } * 2):item(), 4)
end)

t.test("plans: wrong arguments are refused in words, and nothing leaves a recording open", function()
  local x, leaf = mn.tensor { shape = { 2, 3 } }, mn.tensor { shape = { 2, 3 } }
  local plan = mn.plan(function(a) return a * 2 end)
  t.fails(function() plan:carry({ a = x }, { a = leaf }) end)                            -- before its first call
  local y = plan(x)
  for _, given in ipairs { {}, { 1 }, { { a = 1 }, { a = leaf } }, { { a = y } }, { { a = y }, 3 }, { { a = y }, {} }, { { a = y }, { a = "x" } },
    { { a = y }, { a = mn.tensor { shape = { 3 } } } }, { { a = y }, { a = y } } } do
    t.fails(function() plan:carry(given[1], given[2]) end)
  end
  t.fails(function() plan:rows("a", 1) end)
  t.fails(function() plan:rows(0) end)
  plan:carry({ a = y }, { a = leaf })
  local random = math.random
  t.fails(function() mn.plan(function(a) return a * math.random() end)(x) end)
  t.ok(math.random == random, "math.random is another")
  local asleep = mn.plan(function(a) coroutine.yield() return a * 2 end)
  local ok, why = coroutine.resume(coroutine.create(function() return asleep(x) end))
  t.ok(not ok and why:find "yield", why)
  t.eq(mn.ones(2):sum():item(), 2)
  t.eq(mn.plan(function(a) return a + 1 end)(x):sum():item(), 6)
end)
