-- test_recur.lua -- mn.recur: a body recorded for one row equals the same ops unrolled, in values and gradients, by rows, with and
-- without kept activations, for several states, resets, starts and given tensors; and says what is wrong with a body.
local t = require "tests.harness"
local mn = require "mneme"

local T, B, I, D = 7, 3, 4, 5

local function drawn(shape, phase, grad)
  local x = mn.tensor { shape = shape, grad = grad }
  local p = x:data()
  for i = 0, x:size() - 1 do p[i] = math.sin(1.7 * i + phase) end
  return x
end

local function flags(T_, every)
  local done = mn.tensor { shape = { T_, B }, dtype = "u8" }
  for i = 0, T_ * B - 1, every do done:data()[i] = 1 end
  return done
end

local function list_of(x) return { x:data(), x:size() } end

local function near(a, b, tolerance, what)
  t.eq(a:size(), b:size(), what)
  local p, q = list_of(a)[1], list_of(b)[1]
  for i = 0, a:size() - 1 do t.near(p[i], q[i], tolerance * math.max(1, math.abs(q[i])), what) end
end

-- A recurrence with two states, a start, a given tensor and two sequences.
mn.manual_seed(1)
local map, gate = mn.nn.linear(I, D), mn.nn.linear(D, D)
local bias = drawn({ D }, 0.3, true)
local function body(x, s, given)
  local z = (gate(s.a) + x.gate):sigmoid()
  local a = z * s.a + (1 - z) * (map(x.value) + bias):tanh()
  local b = s.b * 0.5 + a:sum(-1, 1) * given.w
  return { first = a, second = b * b }, { a = a, b = b }
end

local inputs = { value = drawn({ T, B, I }, 0, true), gate = drawn({ T, B, D }, 1, true) }
local state = { a = drawn({ B, D }, 2, true), b = drawn({ B, 2 }, 3, true) }
local start = { a = drawn({ B, D }, 4, true), b = drawn({ B, 2 }, 5, true) }
local raw = drawn({ 1, 2 }, 6, true)
local done = flags(T, 4)
local leaves = { inputs.value, inputs.gate, state.a, state.b, start.a, start.b, raw, bias, map.weight, map.bias, gate.weight, gate.bias }

local function unrolled(o)
  local s, first, second = o.state, nil, nil
  for k = 1, T do
    local function row(x, n) return x:slice(0, k - 1, k):reshape(B, n) end
    local mask, fresh = {}, {}
    for b = 1, B do
      local on = done:data()[(k - 1) * B + b - 1]
      mask[b], fresh[b] = { 1 - on }, { on }
    end
    mask, fresh = mn.tensor(mask), mn.tensor(fresh)
    s = { a = s.a * mask + o.start.a * fresh, b = s.b * mask + o.start.b * fresh }
    local y
    y, s = body({ value = row(o.x.value, I), gate = row(o.x.gate, D) }, s, o.given)
    local one, two = y.first:reshape(1, B, D), y.second:reshape(1, B, 2)
    first, second = first and first:concat(one, { axis = 0 }) or one, second and second:concat(two, { axis = 0 }) or two
  end
  return { first = first, second = second }, s
end

local function result_of(f, keep)
  mn.clear_tape()
  for _, leaf in ipairs(leaves) do leaf:zero_grad() end
  local o = { x = inputs, state = state, start = start, done = done, given = { w = raw * 2 }, keep = keep }
  local y, s = f(o)
  local loss = (y.first * y.first):sum() + (y.second * 3):sum() + s.a:sum() + (s.b * s.b):sum()
  loss:backward()
  local result = { mn.keep(y.first), mn.keep(y.second), mn.keep(s.a), mn.keep(s.b), mn.keep(loss) }
  for _, leaf in ipairs(leaves) do result[#result + 1] = leaf:grad() end
  return result
end

t.test("recur: the same as its body unrolled, values, final states and all gradients, kept or computed again", function()
  local want = result_of(unrolled)
  for _, keep in ipairs { true, false } do
    local got = result_of(function(o) return mn.recur(body, o) end, keep)
    t.eq(#got, #want)
    for i = 1, #want do near(got[i], want[i], 2e-5, ("result %d, keep = %s"):format(i, tostring(keep))) end
  end
end)

t.test("recur: gradients are finite differences'", function()
  local function loss_of()
    mn.clear_tape()
    local y, s = mn.recur(body, { x = inputs, state = state, start = start, done = done, given = { w = raw * 2 } })
    return (y.first * y.first):sum() + (y.second * 3):sum() + s.a:sum()
  end
  for _, leaf in ipairs(leaves) do leaf:zero_grad() end
  loss_of():backward()
  for number, leaf in ipairs(leaves) do
    local grad, p, h = leaf:grad():data(), leaf:data(), 1e-2
    for i = 0, leaf:size() - 1, 3 do
      local was = p[i]
      p[i] = was + h
      local up = loss_of():item()
      p[i] = was - h
      local down = loss_of():item()
      p[i] = was
      local quotient = (up - down) / (2 * h)
      t.near(grad[i], quotient, 2e-2 * (1 + math.abs(quotient)), ("leaf %d, element %d"):format(number, i))
    end
  end
end)

t.test("recur: rows, one after another or several at once, are the whole's bits, and learn the same bits", function()
  local x = mn.sequence { shape = { T, B, I } }
  for i = 0, x:size() - 1 do x:data()[i] = math.sin(1.7 * i) end
  local resets = mn.sequence { shape = { T, B }, dtype = "u8" }
  for i = 0, T * B - 1, 4 do resets:data()[i] = 1 end
  local h0 = drawn({ B, D }, 2)
  local wi, wh = mn.nn.linear(I, D), mn.nn.linear(D, D)
  local function step(i, h)
    local after = (i + wh(h)):tanh()
    return after, after
  end
  local function model(steps) return mn.recur(step, { x = wi(steps), state = h0, done = resets }) end
  local y, h
  local act = mn.plan(function(steps) y, h = model(steps) return y, h end)
  act(x)
  local whole, last = mn.keep(y), mn.keep(h)
  local learn = mn.plan(function()
    for _, leaf in ipairs { wi.weight, wh.weight, wh.bias } do leaf:zero_grad() end
    y:square():mean():backward()
  end)
  learn()
  local grads = wh.weight:grad()
  for _, cuts in ipairs { { 0, 1, 2, 3, 4, 5, 6, 7 }, { 0, 3, 4, 7 }, { 0, 7 } } do
    for i = 1, #cuts - 1 do act:rows(cuts[i], cuts[i + 1]) end
    near(y, whole, 0, "y")
    near(h, last, 0, "h")
    learn:run()
    near(wh.weight:grad(), grads, 0, "gradient")
  end
  wh.weight:fill(0)                                     -- weights are read anew by every run
  act:run()
  local zero = mn.no_grad(function() return (wi(x) + wh.bias):tanh() end)
  near(y, zero, 1e-6, "new weights")
end)

t.test("recur: any number of threads gives the same bits", function()
  local engine = require "mneme.base.engine"
  local before, results = engine.C.mn_threads(engine.ctx), {}
  for _, threads in ipairs { 1, 3 } do
    engine.C.mn_set_threads(engine.ctx, threads)
    results[#results + 1] = result_of(function(o) return mn.recur(body, o) end)
  end
  engine.C.mn_set_threads(engine.ctx, before)
  for i = 1, #results[1] do near(results[1][i], results[2][i], 0, "result " .. i) end
end)

t.test("recur: bodies inside bodies, inputs handed through, numbers of rows that change", function()
  mn.clear_tape()
  local w = drawn({ D, D }, 1, true)
  local function inner(x, h)
    local after = (x + h):tanh()
    return after, after
  end
  local function outer(x, h)
    local y = mn.recur(inner, { x = x:reshape(B, 1, D), state = (h:sum(0, 1) * 0.1):reshape(1, D) })
    return x, y:reshape(B, D):matmul(w)
  end
  for _, rows in ipairs { 2, 5 } do
    local x = drawn({ rows, B, D }, 0, true)
    local y, h = mn.recur(outer, { x = x, state = drawn({ B, D }, 2) })
    near(y, x, 0, "handed through")
    w:zero_grad()
    h:sum():backward()
    local norm = 0
    for i = 0, w:size() - 1 do norm = norm + math.abs(w:grad_data()[i]) end
    t.ok(norm > 0.01, norm)
  end
end)

t.test("recur: the graph outlives what else a loop computes", function()
  mn.clear_tape()
  local w = drawn({ D, D }, 1, true)
  local function one(x, h) local after = (x + h:matmul(w)):tanh() return after, after end
  local x = drawn({ T, B, D }, 0)
  local y = mn.recur(one, { x = x, state = drawn({ B, D }, 2) })
  local big = mn.tensor { shape = { 4e6 } }
  for _ = 1, 8 do big:add(big) end
  w:zero_grad()
  y:sum():backward()
  local kept = w:grad()
  mn.clear_tape()
  w:zero_grad()
  local again = mn.recur(one, { x = x, state = drawn({ B, D }, 2) })
  again:sum():backward()
  near(w:grad(), kept, 0, "gradient")
end)

t.test("recur: what is wrong is said", function()
  mn.clear_tape()
  local x, h, w = drawn({ T, B, D }, 0), drawn({ B, D }, 1), drawn({ D, D }, 2, true)
  local function good(i, s) return i, i + s end
  local computed = w * 2
  local function raises(pattern, f, o) t.raises(function() mn.recur(f, o) end, pattern) end
  raises("recur: nil, expected a function", nil, { x = x, state = h })
  raises("copy: in the body of a recurrence no leaf changes", function(i, s)
    local leaf = mn.zeros_like(s)
    local y = i + s + leaf:copy(s)
    return y, y
  end, { x = x, state = h })
  raises("unknown key of recur: 'strat'; did you mean 'start'", good, { x = x, state = h, strat = h })
  raises("recur: state is missing", good, { x = x })
  raises("recur: the body returned y alone", function(i) return i end, { x = x, state = h })
  raises("recur: the body returned nothing", function() end, { x = x, state = h })
  raises("the body was given the state %[3,5%] and returned %[3,1%]", function(i, s) return i, s:sum(-1, 1) end, { x = x, state = h })
  raises("recur: x is %[5%], expected %[T,B,...%]", good, { x = drawn({ 5 }, 0), state = h })
  raises("recur: done, expected a uint8 tensor", good, { x = x, state = h, done = h })
  raises("a state is %[2,5%], expected 3 environments", good, { x = x, state = drawn({ 2, D }, 0), done = done })
  raises("computed outside the recurrence's body: pass it in given", function(i, s) return i, s:matmul(computed) end, { x = x, state = h })
  raises("while a plan records", function(i, s) return i, s * s:sum():item() end, { x = x, state = h })
  local y = mn.recur(good, { x = x, state = h })                    -- and after all that it works
  near(y, x, 0, "after errors")
end)
