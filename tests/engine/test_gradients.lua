-- test_gradients.lua -- gradients of computed tensors (retain_grad, mn.grad) and backward passes written in Lua (custom_gradient).
local t = require "tests.harness"
local mn = require "mneme"

local function leaf(values) return mn.tensor { data = values, grad = true } end
local function numbers(x) return table.concat(x:reshape(-1):to_table(), " ") end

-- ---- retain_grad, mn.grad ----

t.test("retain_grad keeps a computed tensor's gradient, through views, several uses and collections", function()
  local x = leaf { 1, 2, 3, 4 }
  local y = (x * 2):retain_grad()
  local z = y:reshape(2, 2):retain_grad()
  local loss = (z * z):sum() + y:sum()
  for _ = 1, 3 do                                       -- enough that collections move them
    local big = mn.tensor { shape = { 4e6 } }
    for _ = 1, 8 do big:add(big) end
  end
  t.eq(numbers(y:grad()), "0 0 0 0")
  loss:backward()
  t.eq(numbers(z:grad()), "4 8 12 16")
  t.eq(numbers(y:grad()), "5 9 13 17")
  t.eq(numbers(x:grad()), "10 18 26 34")
  t.eq(numbers(x:retain_grad():grad()), "10 18 26 34", "a leaf keeps its own")
  t.raises(function() (x * 2):grad() end, "x:retain_grad%(%)")
  t.fails(function() mn.tensor({ 1 }):square():retain_grad() end)
  mn.clear_tape()
end)

t.test("a retained gradient in a plan is that of each replay", function()
  local x, h = leaf { 1, 2 }, nil
  local plan = mn.plan(function()
    x:zero_grad()
    h = x:square():retain_grad()
    h:square():sum():backward()
  end)
  plan()
  t.eq(numbers(h:grad()), "2 8")
  x:data()[0] = 3
  plan:run()
  t.eq(numbers(h:grad()), "18 8")
  t.eq(numbers(x:grad()), "108 32")
  t.fails(function()
    mn.recur(function(v, s) return (v * x):retain_grad(), s * 1 end, { x = mn.tensor { shape = { 3, 1, 2 } }, state = mn.tensor { shape = { 1, 2 } } })
  end)
end)

t.test("retained gradients are freed with their tensors", function()
  local x, marks = leaf { 1, 2 }, {}
  for i = 1, 3000 do
    local y = (x * 2):retain_grad()
    y:sum():backward()
    if i % 1000 == 0 then
      collectgarbage() collectgarbage()
      marks[#marks + 1] = require("mneme.base.engine").C.mn_bytes(require("mneme.base.engine").ctx, "leaf")
    end
  end
  t.ok(marks[3] <= marks[1] + 1000, ("%g, then %g bytes of leaves"):format(marks[1], marks[3]))
  mn.clear_tape()
end)

t.test("mn.grad returns gradients and leaves those of leaves alone", function()
  local x, w, other = leaf { 1, 2 }, leaf { 3, 4 }, leaf { 1, 1 };
  (x * 10):sum():backward()
  local y = x * w
  local loss = y:square():sum()
  local g = mn.grad(loss, { x, w, y, other }, { retain = true })
  t.eq(numbers(g[1]), "18 64")
  t.eq(numbers(g[2]), "6 32")
  t.eq(numbers(g[3]), "6 16")
  t.eq(numbers(g[4]), "0 0")
  t.eq(numbers(x:grad()), "10 10")
  t.eq(numbers(w:grad()), "0 0")
  t.eq(numbers(mn.grad(loss, w)), "6 32")
  t.fails(function() mn.grad(loss, w) end)
  t.raises(function() mn.grad((x * w):sum(), { x, x }) end, "given twice")
  t.fails(function() mn.grad((x * w):sum(), mn.tensor { 1 }) end)
  t.fails(function() mn.grad(x * w, x) end)
  t.fails(function() mn.grad((x * w):sum(), { x }, { retian = true }) end);
  (x * w):sum():backward()                              -- what failed left nothing behind
  t.eq(numbers(x:grad()), "13 14")
  local net = mn.nn.gru_gate(2)
  local a = leaf { { 1, 2 } }
  t.fails(function() mn.grad(net(a, a):sum(), net:state_dict()["w_r.weight"]) end)
  mn.clear_tape()
end)

t.test("mn.grad in a plan gives the gradient of each replay", function()
  local x, w = leaf { 1, 2 }, leaf { 3, 4 }
  local plan = mn.plan(function() return mn.grad((x * w):square():sum(), x) end)
  local g = plan()
  t.eq(numbers(g), "18 64")
  x:data()[0] = 2
  plan:run()
  t.eq(numbers(g), "36 64")
  t.eq(numbers(x:grad()), "0 0")
  local penalty = mn.grad((w * w):sum(), w)             -- and outside of it as before
  t.eq(numbers(penalty), "6 8")
  mn.clear_tape()
end)

-- ---- custom_gradient ----

local straight = mn.custom_gradient { forward = function(x) return x:sign() end, backward = function(dy) return dy end }
local reversal = mn.custom_gradient { forward = function(x) return x * 1 end, backward = function(dy, _, by) return dy * -by end }
local product = mn.custom_gradient {                   -- x^2 w, summed over the first axis for w
  forward = function(x, w) return x * x * w end,
  backward = function(dy, x, w) return dy * x * w * 2, (dy * x * x):sum(0) end,
}
local exponential = mn.custom_gradient { forward = function(x) return x:exp() end, backward = function(dy, _, y) return dy * y end }

t.test("custom_gradient: straight-through, reversal, and what needs arguments or the output", function()
  local x, w = leaf { { 1, -2 }, { 3, 4 } }, leaf { 5, 6 }
  straight(x * 2):sum():backward()
  t.eq(numbers(x:grad()), "2 2 2 2")
  x:zero_grad()
  reversal(x, 0.5):square():sum():backward()
  t.eq(numbers(x:grad()), "-1 2 -3 -4")
  x:zero_grad()
  reversal(x, 2):sum():backward()                      -- another constant is another recording
  t.eq(numbers(x:grad()), "-2 -2 -2 -2")
  x:zero_grad()
  product(x, w):sum():backward()
  t.eq(numbers(x:grad()), "10 -24 30 48")
  t.eq(numbers(w:grad()), "10 20")
  local one_way = mn.custom_gradient { forward = function(a, b) return a * b end, backward = function(_, a) return nil, a end }
  x:zero_grad() w:zero_grad()
  local v = leaf { { 1, 1 }, { 1, 1 } }
  one_way(x, v):sum():backward()
  t.eq(numbers(x:grad()), "0 0 0 0")
  t.eq(numbers(v:grad()), "1 -2 3 4")
  mn.clear_tape()
end)

t.test("custom_gradient: equal to the ops' own gradients and to differences", function()
  local x, w = leaf { { 0.3, -0.7 }, { 1.1, 0.4 } }, leaf { 0.5, -0.2 }
  local function loss(p, e) return (p(x, w) * e(w)):square():mean() end
  local function own_product(a, b) return a * a * b end
  local got = mn.grad(loss(product, exponential), { x, w })
  local want = mn.grad(loss(own_product, mn.exp), { x, w })
  for i = 1, 2 do
    for k = 0, got[i]:size() - 1 do t.near(got[i]:data()[k], want[i]:data()[k], 1e-6) end
  end
  for i, t_ in ipairs { x, w } do
    local p, h = t_:data(), 1e-2
    for k = 0, t_:size() - 1 do
      local at = p[k]
      p[k] = at + h
      local up = loss(product, exponential):item()
      p[k] = at - h
      local down = loss(product, exponential):item()
      p[k] = at
      t.near((up - down) / (2 * h), got[i]:data()[k], 2e-3)
    end
  end
  mn.clear_tape()
end)

t.test("custom_gradient in a plan, by rows, and in recurrences within recurrences", function()
  local x, w = leaf { { 1, -2 }, { 3, 4 } }, leaf { 5, 6 }
  local plan = mn.plan(function()
    x:zero_grad() w:zero_grad()
    local y = product(x * 1, w)
    y:sum():backward()
    return y
  end)
  plan()
  t.eq(numbers(w:grad()), "10 20")
  x:data()[0] = 2
  plan:run()
  t.eq(numbers(x:grad()), "20 -24 30 48")
  t.eq(numbers(w:grad()), "13 20")

  local seq = mn.sequence { shape = { 5, 2, 3 } }
  for i = 0, 29 do seq:data()[i] = i / 7 - 2 end
  local acting = mn.plan(function(v) return straight(v) end)
  local y = acting(seq)
  local whole = numbers(y)
  y:data()[4] = 77
  for row = 0, 4 do acting:rows(row, row + 1) end
  t.eq(numbers(y), whole)

  local weight = leaf { 0.5, -1, 2 }
  local function gradients(p, e)
    local function inner(x_t, h) return e(h * 0.1), p(x_t, weight) + h * 0.5 end
    local function outer(x_t, h)
      local z = mn.recur(inner, { x = x_t:reshape(1, 2, 3), state = h })
      return z:reshape(2, 3), p(h, weight) * 0.1 + x_t
    end
    local a = mn.tensor { shape = { 5, 2, 3 }, grad = true }
    for i = 0, 29 do a:data()[i] = math.sin(i) end
    local out = mn.recur(outer, { x = a, state = mn.tensor { shape = { 2, 3 } } })
    return mn.grad(out:square():sum(), { a, weight })
  end
  local got, want = gradients(product, exponential), gradients(function(a, b) return a * a * b end, mn.exp)
  for i = 1, 2 do
    for k = 0, got[i]:size() - 1 do t.near(got[i]:data()[k], want[i]:data()[k], 1e-5) end
  end
  mn.clear_tape()
end)

t.test("custom_gradient says what is wrong with it", function()
  local x = leaf { 1, 2 }
  local function f(forward, backward) return mn.custom_gradient { forward = forward, backward = backward } end
  local function same(v) return v * 1 end
  t.fails(function() mn.custom_gradient(3) end)
  t.fails(function() mn.custom_gradient { forward = same } end)
  t.fails(function() mn.custom_gradient { forward = same, backwards = same } end)
  t.fails(function() f(same, same)() end)
  t.fails(function() f(same, same)(mn.tensor { data = { 1 }, dtype = "i32" }) end)
  t.fails(function() f(function() return 3 end, same)(x) end)
  t.fails(function() f(same, function(dy) return dy, dy end)(x) end)
  t.fails(function() f(function(a, b) return a * b end, function(dy, _, b) return dy * b end)(x, leaf { 3, 4 }) end)
  t.fails(function() f(same, function(dy) return dy:sum() end)(x) end)
  t.fails(function() f(same, function(dy) return dy * dy:item() end)(x) end)
  t.fails(function() f(same, function() return 5 end)(x) end)
  t.fails(function() mn.ops.custom_gradient { y = x:detach(), a = x, plan = 0, version = 0 } end)
  t.fails(function() same(x):sum():backward() f(same, same)(x, {}) end)
  mn.clear_tape()
end)

t.test("custom_gradient: many constants do not fill memory", function()
  local x, C, ctx = leaf { 1, 2 }, require("mneme.base.engine").C, require("mneme.base.engine").ctx
  local marks = {}
  for i = 1, 1500 do
    reversal(x, i / 1000):sum():backward()
    if i % 500 == 0 then
      collectgarbage() collectgarbage()
      marks[#marks + 1] = C.mn_bytes(ctx, "plan")
    end
  end
  t.ok(marks[3] <= marks[1] * 1.1, ("%g, then %g bytes of plans"):format(marks[1], marks[3]))
  mn.clear_tape()
end)

t.test("linear: the gradient of a row of weights has the same bits, however many rows there are", function()
  local rows = 300                                       -- more than one piece of the depth of a product
  local function gradient(inputs, outputs)
    local x, w, up = mn.tensor { shape = { rows, inputs } }, mn.tensor { shape = { outputs, inputs }, grad = true }, mn.tensor { shape = { rows, outputs } }
    for i = 0, rows * inputs - 1 do x:data()[i] = math.sin(0.7 * i) end
    for o = 0, outputs - 1 do
      for i = 0, inputs - 1 do w:data()[o * inputs + i] = math.cos(o + 0.3 * i) end
      for r = 0, rows - 1 do up:data()[r * outputs + o] = math.sin(1.3 * r + o) end
    end
    local y = mn.ops.linear { x = x, w = w } + mn.ops.linear { x = x:tanh(), w = w }     -- stored, then added to
    ;(y * up):sum():backward()
    return w:grad()
  end
  for _, inputs in ipairs { 1, 5, 8, 9, 64 } do
    local whole = gradient(inputs, 97)                   -- through packed panels
    for _, outputs in ipairs { 1, 2, 3, 4, 32, 64, 96 } do
      local some = gradient(inputs, outputs)
      for i = 0, outputs * inputs - 1 do t.eq(some:data()[i], whole:data()[i], ("%d inputs, %d outputs, number %d"):format(inputs, outputs, i)) end
    end
  end
end)
