-- test_plan.lua -- plans: a replay is the eager run, bit for bit; plans lean on plans; what goes wrong in them;
-- and that replays cost no memory and leave no garbage.
local ffi = require "ffi"
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local C, ctx = engine.C, engine.ctx

local T, B, D = 6, 2, 3
local function x_of(stream, rows) return core_rig.normal({ rows or T, B, D }, stream) end
local function same(a, b, what) t.ok(core_rig.bytes(a) == core_rig.bytes(b), (what or "") .. " other bits") end

-- Everything that was dropped is gone: what a finalizer lets go of is for the next collection.
local function settle() for _ = 1, 4 do collectgarbage() end end

-- ---- replays ----

-- A small network with a memory: linear, gru, and a value for every row.
local function network(seed)
  mn.manual_seed(seed or 1)
  local into, out = mn.nn.linear(D, 3 * D, { act = "tanh" }), mn.nn.linear(D, 1)
  local w, bias = core_rig.normal({ 3 * D, D }, 8, true), core_rig.normal({ D }, 9, true)
  local net = { leaves = { into.weight, into.bias, out.weight, out.bias, w, bias } }
  function net.forward(x, done, h)
    local y, last = mn.gru { i = into(x), w = w, bias = bias, done = done, h = h }
    return out(y), last
  end
  return net
end

local function grads(net)
  local list = {}
  for i, p in ipairs(net.leaves) do list[i] = core_rig.bytes(p:grad()) end
  return table.concat(list)
end
local function zero(net) for _, p in ipairs(net.leaves) do p:zero_grad() end end

t.test("a replay has the bits of the eager run", function()
  local net, done = network(), core_rig.done(T, B, { { 2, 1 } })
  local plan = mn.plan(net.forward)
  for stream = 1, 4 do
    local x, h = x_of(stream), core_rig.normal({ B, D }, 20 + stream)
    local y, last = plan(x, done, h)
    local want, want_last
    mn.no_grad(function()
      local a, b = net.forward(x, done, h)
      want, want_last = mn.keep(a), mn.keep(b)
    end)
    same(y, want, "y")
    same(last, want_last, "h")
  end
end)

t.test("its results are the same tensors every time; nil and several results come through", function()
  local plan = mn.plan(function(x) return x + 1, nil, { both = x * 2 } end)
  plan(x_of(1))
  local a, none, list = plan(x_of(3))
  local again, nothing, same_list = plan(x_of(2))
  t.ok(a.slot == again.slot and a.gen == again.gen and list == same_list and none == nil and nothing == nil)
  t.near(a:data()[0], x_of(2):data()[0] + 1, 1e-6)
end)

t.test("other shapes, types, constants or keys record anew", function()
  local calls, constant = 0, nil
  local plan = mn.plan(function(a, k)
    calls, constant = calls + 1, k
    return (mn.is_tensor(a) and a or a.first or a.second) * (k or 1)
  end)
  local function gives(value, recorded, ...)
    local y = plan(...)
    t.near(y:data()[0], value, 1e-6)
    t.eq(calls, recorded, "recordings")
  end
  local x = mn.tensor { 3, 4 }
  gives(3, 1, x)
  gives(3, 1, x)
  gives(7, 2, mn.tensor { 7, 8, 9 })
  local more = mn.tensor { 7, 8, 9 }
  gives(14, 3, more, 2)
  t.eq(constant, 2)
  gives(14, 3, more, 2)
  gives(21, 4, more, 3)
  gives(3, 5, { first = x })
  gives(3, 6, { second = x })
  gives(7, 7, { second = mn.tensor { { 7, 8 } } })
  gives(7, 8, { second = mn.tensor { shape = { 1, 2 }, data = { { 7, 8 } }, grad = true } })
end)

t.test("arguments are never written to: other leaves are copied into leaves of the plan", function()
  local calls = 0
  local plan = mn.plan(function(a, s) calls = calls + 1 return a + s.k, a * 2 end)
  local a, b, k = mn.tensor { 1 }, mn.tensor { 2 }, mn.tensor { 10 }
  for round = 1, 3 do
    t.eq(plan(a, { k = k }):item(), 11)
    t.eq(plan(b, { k = k }):item(), 12)
    t.eq(plan(b, { k = mn.tensor { 20 } }):item(), 22)
    t.ok(a:item() == 1 and b:item() == 2 and k:item() == 10, "an argument was changed")
    t.eq(calls, 3, "recordings after round " .. round)
  end
  local _, twice = plan(a, { k = k })          -- a result goes back in: states do
  for power = 2, 5 do
    _, twice = plan(twice, { k = k })
    t.eq(twice:item(), 2 ^ power)
  end
  t.eq(calls, 3)
  a:fill(5)
  local shared = mn.plan(function(x) return x * 3 end)
  local y = shared(a)
  a:fill(7)
  shared:run()
  t.eq(y:item(), 21, "what is written into the leaf of the first call is seen")
end)

t.test("a sequence's own leaf is a sequence too", function()
  local first, x = mn.sequence { shape = { T, B, D } }, mn.sequence { shape = { T, B, D } }
  local plan = mn.plan(function(a) return a * 2 end)
  plan(first)
  x:fill(4)
  local y = plan(x)
  for row = 0, T - 1 do plan:rows(row, row + 1) end
  t.eq(y:data()[T * B * D - 1], 8)
end)

t.test("old results are errors after recording anew, never other numbers", function()
  local plan = mn.plan(function(x) return x * 2 end)
  local old = plan(mn.tensor { 1, 2 })
  plan(mn.tensor { 1, 2, 3 })
  t.raises(function() return old:data() end, "recorded again")
  t.raises(function() return old + 1 end, "recorded again")
  t.raises(function() return old:shape() end, "recorded again")
end)

t.test("a sweep leaves what plans made", function()
  local plan = mn.plan(function(x) return x * 2 end)
  local y = plan(mn.tensor { 4 })
  mn.clear_tape()
  t.eq(y:item(), 8)
end)

-- ---- gradients ----

local function loss_of(y) return (y * y):mean() end

t.test("backward inside a plan, replayed, has the bits of the eager one", function()
  local net, done = network(), core_rig.done(T, B, { { 3, 0 } })
  local learn = mn.plan(function(x)
    zero(net)
    local loss = loss_of((net.forward(x, done, nil)))
    loss:backward()
    return loss
  end)
  for stream = 1, 4 do
    local loss = learn(x_of(stream)):item()
    local got = grads(net)
    zero(net)
    local eager = loss_of((net.forward(x_of(stream), done, nil)))
    eager:backward()
    t.eq(loss, eager:item())
    t.ok(got == grads(net), "gradients")
    mn.clear_tape()
  end
end)

t.test("a plan leans on another: the whole gradient, however the first was run", function()
  local net = network()
  local x, done = mn.sequence { shape = { T, B, D } }, mn.sequence { shape = { T, B }, dtype = "u8" }
  local h = mn.tensor { shape = { B, D } }
  local act = mn.plan(net.forward)
  local y = act(x, done, h)
  local learn = mn.plan(function()
    zero(net)
    local loss = loss_of(y)
    loss:backward()
    return loss
  end)
  local loss = learn()
  for stream = 1, 4 do
    x:copy(x_of(stream))
    done:copy(core_rig.done(T, B, { { stream, 1 } }))
    h:copy(core_rig.normal({ B, D }, 30 + stream))
    if stream % 2 == 1 then act:run() else for row = 0, T - 1 do act:rows(row, row + 1) end end
    learn:run()
    local got, value = grads(net), loss:item()
    zero(net)
    local eager = loss_of((net.forward(x, done, h)))
    eager:backward()
    t.near(value, eager:item(), 1e-6)
    if stream % 2 == 1 then t.ok(got == grads(net), "gradients")
    else
      local want = grads(net)
      local a, b = ffi.cast("const float *", got), ffi.cast("const float *", want)
      for i = 0, #got / 4 - 1 do t.near(a[i], b[i], 1e-6, "gradient by rows") end
    end
    mn.clear_tape()
  end
end)

t.test("an eager loss on a plan's result reaches the plan's parameters", function()
  local net = network()
  local plan = mn.plan(function(x) return (net.forward(x)) end)
  plan(x_of(1))
  for stream = 1, 3 do
    local y = plan(x_of(stream))
    zero(net)
    loss_of(y):backward()
    mn.clear_tape()
    local got = grads(net)
    zero(net)
    loss_of((net.forward(x_of(stream)))):backward()
    mn.clear_tape()
    t.ok(got == grads(net), "gradients")
  end
end)

t.test("zero_grad before each replay, and optimisers outside of the plan, work as without a plan", function()
  local function train(planned)
    local w = mn.tensor { data = { 1, -2 }, grad = true }
    local adam = mn.adam({ w }, { lr = 0.1 })
    local function f(x) ((w * x):square():sum()):backward() end
    local step = planned and mn.plan(f) or f
    for i = 1, 5 do
      adam:zero_grad()
      step(mn.tensor { i, 1 / i })
      t.near(w:grad():data()[0], 2 * w:data()[0] * i * i, 1e-3, "gradient of step " .. i)
      adam:step()
      mn.clear_tape()
    end
    return core_rig.bytes(w)
  end
  t.ok(train(true) == train(false), "other parameters")
end)

t.test("a plan may keep: the copy is made by each replay", function()
  local memory = mn.tensor { 1 }
  local plan = mn.plan(function(x) mn.keep(memory * 2 + x, memory) end)
  plan(mn.tensor { 1 })
  plan(mn.tensor { 10 })
  plan:run()
  t.eq(memory:item(), 42)
end)

-- ---- plans that lean on what is gone ----

t.test("the plan below freed or recorded anew: an error, and recording again helps", function()
  local w = mn.tensor { data = { 3 }, grad = true }
  local held = { below = mn.plan(function(x) return w * x end) }
  local y = held.below(mn.tensor { 2 })
  local above = mn.plan(function(z)
    w:zero_grad()
    local loss = (z * z):sum()
    loss:backward()
    return loss
  end)
  t.eq(above(y):item(), 36)
  y = held.below(mn.tensor { 2, 4 })
  t.fails(function() above:run() end)
  t.eq(above(y):item(), 180)
  t.eq(w:grad():item(), 120)
  held.below = nil
  settle()
  t.fails(function() above:run() end)
  t.fails(function() return y:item() end)
end)

t.test("a freed plan under an eager tape is an error of backward", function()
  local w = mn.tensor { data = { 3 }, grad = true }
  local held = { below = mn.plan(function(x) return w * x end) }
  local loss = held.below(mn.tensor { 2 }):sum()
  held.below = nil
  settle()
  t.fails(function() loss:backward() end)
  mn.clear_tape()
end)

t.test("a dropped leaf lives as long as the plan that uses it", function()
  local plan
  do
    local hidden = core_rig.normal({ 1000 }, 5)
    plan = mn.plan(function(x) return (x * hidden):sum() end)
  end
  local first = plan(mn.tensor { 2 }):item()
  settle()
  for i = 1, 50 do core_rig.normal({ 1000 }, i) end
  t.eq(plan(mn.tensor { 2 }):item(), first)
  t.ok(plan.recorded and first == first and first ~= 0)
end)

-- ---- errors ----

t.test("an error inside leaves the plan unrecorded and the engine usable", function()
  local fail = true
  local plan = mn.plan(function(x)
    local y = x * 2
    if fail then error "on purpose" end
    return y + 1
  end)
  t.raises(function() plan(mn.tensor { 1 }) end, "on purpose")
  t.ok(not plan.recorded)
  t.fails(function() plan:run() end)
  t.fails(function() plan:rows(0, 1) end)
  t.eq((mn.tensor { 1 } + 1):item(), 2)
  fail = false
  t.eq(plan(mn.tensor { 1 }):item(), 3)
  fail = true
  t.raises(function() plan(mn.tensor { 1, 2 }) end, "on purpose")
  t.fails(function() plan:run() end)
  local shapes = mn.plan(function(x) return x:matmul(x) end)
  t.raises(function() shapes(mn.tensor { { 1, 2, 3 } }) end, "matmul: ")
  t.eq(shapes(mn.tensor { { 3 } }):item(), 9)
end)

t.test("wrong uses say what is wrong", function()
  t.fails(function() mn.plan(3) end)
  t.fails(function() mn.plan() end)
  local plan = mn.plan(function(x) return x * 2 end)
  t.fails(function() plan(mn.tensor { 1 } + 1) end)
  local outside = mn.tensor { 1 } * 5
  t.fails(function() mn.plan(function(x) return x + outside end)(mn.tensor { 1 }) end)
  mn.clear_tape()
  local outer, one = mn.plan(function(x) return plan(x) end), mn.tensor { 1 }
  t.fails(function() outer(one) end)
  plan(one)
  t.fails(function() outer(one) end)
  t.eq(plan(mn.tensor { 4 }):item(), 8)
  t.raises(function() mn.plan(function() end)():run() end, "")
  t.fails(function() local p = mn.plan(function() end) p() p:run() end)
end)

t.test("rows out of range, out of order, or where there are none", function()
  local x = mn.sequence { shape = { T, B, D } }
  local plan = mn.plan(function(a) return a * 2 end)
  plan(x)
  for _, rows in ipairs { { -1, 1 }, { 0, T + 1 }, { 2, 2 }, { 3, 1 }, { T, T + 1 }, { 0, 2 ^ 31 - 1 } } do
    t.fails(function() plan:rows(rows[1], rows[2]) end)
  end
  plan:rows(0, 2)
  t.fails(function() plan:rows(3, 4) end)
  plan:rows(2, T)
  local flat = mn.plan(function(a) return a * 2 end)
  flat(x_of(1))
  t.fails(function() flat:rows(0, 1) end)
  local mixed = mn.plan(function(a, b) return a * b end)
  mixed(x, x_of(1))
  t.fails(function() mixed:rows(0, 1) end)
  local whole = mn.plan(function(a) return a:sum { axis = 0 } end)
  whole(x)
  t.fails(function() whole:rows(0, 1) end)
  local back = mn.plan(function(a)
    local w = core_rig.normal({ D, D }, 2, true)
    mn.linear(a, w):sum():backward()
  end)
  back(x)
  t.fails(function() back:rows(0, 1) end)
  t.fails(function()
    mn.plan(function(a, b) return a + 1, b + 1 end)(x, mn.sequence { shape = { T + 1, B } })
  end)
end)

t.test("what does not depend on time is computed at row 0", function()
  local x, scale = mn.sequence { shape = { T, B, D } }, mn.tensor { 2 }
  local plan = mn.plan(function(a, k) return a * (k * k) end)
  local y = plan(x, scale)
  scale:fill(3)
  x:fill(1)
  for row = 0, T - 1 do
    plan:rows(row, row + 1)
    t.eq(y:data()[row * B * D], 9)
  end
end)

t.test("rows have the same bits on any number of threads, which share out each op or the copies of several", function()
  local threads, d, copies, bits = C.mn_threads(ctx), 64, 13, {}
  mn.manual_seed(3)
  local nn = mn.nn
  local into, norm, wide, gate, out = nn.linear(D, d, { act = "tanh" }), nn.layer_norm(d), nn.linear(d, d), nn.gru_gate(d), nn.linear(d, 1)
  local w, h = core_rig.normal({ 3 * d, d }, 8), core_rig.normal({ copies, d }, 9)
  local x = mn.sequence { shape = { T, copies, D } }:copy(core_rig.normal({ T, copies, D }, 7))
  local function forward(input)
    local a = into(input)
    local b = gate(a, wide(norm(a)))
    local c = mn.gru { i = mn.linear(b, w), w = w, bias = core_rig.normal({ d }, 10), h = h }
    return out(gate(b, wide(norm(c))))
  end
  for n = 1, 3 do
    engine.check(C.mn_set_threads(ctx, n))
    local plan = mn.plan(forward)
    local y = plan(x)
    y:fill(0)
    for row = 0, T - 1 do plan:rows(row, row + 1) end
    bits[n] = core_rig.bytes(y)
  end
  engine.check(C.mn_set_threads(ctx, threads))
  t.ok(bits[1] == bits[2] and bits[1] == bits[3], "the bits depend on the number of threads")
end)

t.test("find_nan names the op and the tensor", function()
  local x, w = x_of(1), core_rig.normal({ D, D }, 2, true)
  local plan = mn.plan(function(a)
    w:zero_grad()
    local y = mn.linear(a, w)
    local loss = (y:log() * 2):sum()
    loss:backward()
    return loss
  end)
  x:fill(1)
  w:fill(1)
  plan(x)
  t.eq(plan:find_nan(), nil)
  w:fill(-1)
  plan:run()
  t.ok(plan:find_nan():find "^log: output y is not finite", plan:find_nan())
  w:data()[2] = 0 / 0
  plan:run()
  t.ok(plan:find_nan():find "^linear: input w is not finite", plan:find_nan())
  w:fill(1)
  x:data()[4] = 1 / 0
  plan:run()
  t.ok(plan:find_nan():find "^linear: input x is not finite", plan:find_nan())
  local steep = mn.plan(function(a)
    w:zero_grad()
    mn.linear(a, w):sqrt():sum():backward()
  end)
  x:fill(0)
  steep(x)
  t.ok(steep:find_nan():find "gradient of x is not finite", steep:find_nan())
end)

t.test("profile adds up the seconds of each op", function()
  local plan = mn.plan(function(a) return mn.linear(a, core_rig.normal({ D, D }, 2)):tanh() end)
  plan(x_of(1))
  plan:profile()
  for _ = 1, 10 do plan:run() end
  local seconds = plan:profile()
  t.ok(seconds["linear forward"] > 0 and seconds["tanh forward"] > 0)
end)

-- ---- memory ----

-- Lua memory left by n runs of f, without the JIT, whose traces would be counted.
local function garbage(n, f)
  local compiled = jit.status()
  jit.off()
  jit.flush()
  f() f()
  collectgarbage() collectgarbage "stop"
  local before = collectgarbage "count"
  for _ = 1, n do f() end
  local left = collectgarbage "count" - before
  collectgarbage "restart"
  if compiled then jit.on() end
  return left
end

t.test("1,000 replays leave no garbage and take no memory", function()
  local net = network()
  local x, done = mn.sequence { shape = { T, B, D } }, mn.sequence { shape = { T, B }, dtype = "u8" }
  local act = mn.plan(net.forward)
  local y = act(x, done)
  local learn = mn.plan(function() zero(net) loss_of(y):backward() end)
  learn()
  act:rows(0, T)
  settle()
  local plan_bytes, leaf_bytes = C.mn_bytes(ctx, "plan"), C.mn_bytes(ctx, "leaf")
  t.eq(garbage(1000, function()
    for row = 0, T - 1 do act:rows(row, row + 1) end
    learn:run()
  end), 0, "kB")
  t.ok(C.mn_bytes(ctx, "plan") <= plan_bytes, "plans grew")
  t.ok(C.mn_bytes(ctx, "leaf") <= leaf_bytes, "leaves grew")
end)

t.test("recording again and again takes no more memory", function()
  local net = network()
  local plan = mn.plan(function(x) zero(net) loss_of((net.forward(x))):backward() end)
  local short, long = x_of(1, 3), x_of(2, 9)
  local function round() plan(short) plan(long) end
  for _ = 1, 20 do round() end
  settle()
  local bytes, heap = C.mn_bytes(ctx, "plan"), core_rig.heap()
  for _ = 1, 1500 do round() end
  settle()
  t.eq(C.mn_bytes(ctx, "plan"), bytes)
  t.ok(core_rig.heap() - heap < 2e5, ("%d bytes of the heap are lost"):format(core_rig.heap() - heap))
end)

t.test("dropped plans give their memory back", function()
  local x = mn.tensor { shape = { 256, 1024 } }
  settle()
  local bytes = C.mn_bytes(ctx, "plan")
  for _ = 1, 40 do
    mn.plan(function(a) return a + 1 end)(x)
    collectgarbage()
  end
  settle()
  t.eq(C.mn_bytes(ctx, "plan"), bytes)
end)
