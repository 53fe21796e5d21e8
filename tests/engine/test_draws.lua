-- test_draws.lua -- random numbers that ops draw: dropout and samples of distributions.  Statistics, seeds, plans, rows, recurrences.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local random = require "mneme.tensor.random"
local mn = require "mneme"
local nn, ops = mn.nn, mn.ops

local function ones(shape, options)
  local x = mn.tensor { shape = shape, grad = options and options.grad, time = options and options.time }
  return x:fill(1)
end

local function bits(x) return ffi.string(x:data(), x:size() * 4) end

local function moments(x)
  local p, n, sum, squares = x:data(), x:size(), 0, 0
  for i = 0, n - 1 do sum, squares = sum + p[i], squares + p[i] ^ 2 end
  return sum / n, squares / n - (sum / n) ^ 2
end

t.test("uniform and normal numbers have the moments of their distributions, and neighbours are uncorrelated", function()
  mn.manual_seed(1)
  local like = ones { 100003 }
  for name, want in pairs { random_uniform = { 0.5, 1 / 12, 0, 1 }, random_normal = { 0, 1, -8, 8 } } do
    local x = ops[name](like, random.key())
    local mean, variance = moments(x)
    t.near(mean, want[1], 4 * math.sqrt(want[2] / 1e5), name .. ": mean")
    t.near(variance, want[2], 0.02 * want[2], name .. ": variance")
    local p, lag = x:data(), 0
    for i = 0, 1e5 do
      t.ok(p[i] >= want[3] and p[i] < want[4], name)
      lag = lag + (p[i] - want[1]) * (p[i + 1] - want[1])
    end
    t.near(lag / 1e5 / want[2], 0, 0.015, name .. ": lag")
  end
  mn.clear_tape()
end)

t.test("dropout keeps the mean, its gradient has the same mask, and p = 0 and 1 are exact", function()
  mn.manual_seed(2)
  local x = ones({ 40000 }, { grad = true })
  local y = mn.dropout(x, 0.3)
  local p, zeros = y:data(), 0
  for i = 0, 39999 do
    zeros = zeros + (p[i] == 0 and 1 or 0)
    t.ok(p[i] == 0 or math.abs(p[i] - 1 / 0.7) < 1e-6)
  end
  t.near(zeros / 40000, 0.3, 0.01)
  y:sum():backward()
  t.eq(bits(x:grad()), bits(y))
  t.eq(bits(x:dropout(0)), bits(x))
  t.eq(x:dropout(1):sum():item(), 0)
  t.fails(function() x:dropout(1.5) end)
  t.fails(function() nn.dropout(-1) end)
  mn.clear_tape()
end)

t.test("the mask of a dropout whose module was switched meanwhile is still that of forward", function()
  local net, x = nn.dropout(0.5), ones({ 1000 }, { grad = true })
  local y = net(x)
  net:eval()
  y:sum():backward()
  t.eq(bits(x:grad()), bits(y))
  mn.clear_tape()
end)

t.test("draws depend on the seed and their number alone; a plan draws again at each replay, and follows train and eval", function()
  local net = nn.sequential(nn.dropout(0.5), nn.dropout(0.1))
  local x = ones { 500 }
  local function three(f) return { bits(f(x)), bits(f(x)), bits(f(x)) } end
  local plan = mn.plan(function(v) return net(v) end)
  mn.manual_seed(5)
  local eager = three(net)
  mn.manual_seed(5)
  local planned = three(plan)
  for i = 1, 3 do t.eq(planned[i], eager[i]) end
  t.ok(eager[1] ~= eager[2] and eager[2] ~= eager[3])
  mn.manual_seed(6)
  t.ok(bits(plan(x)) ~= eager[1])
  net:eval()
  t.eq(bits(plan(x)), bits(x))
  t.ok(net(x) == x, "eval hands x on")
  net:train()
  t.ok(bits(plan(x)) ~= bits(x))
  local state = mn.keep(random.state())
  local first = bits(net(x))
  random.set_state(state)
  t.eq(bits(net(x)), first)
  mn.clear_tape()
end)

t.test("the number of a draw counts over 2^32", function()
  mn.manual_seed(2 ^ 40 + 3)
  random.key()
  local words = ffi.cast("uint32_t *", random.state():data())
  t.eq(words[0], 3)
  t.eq(words[1], 256)
  words[2] = 0xffffffff
  local a = mn.keep(random.key())
  local b = mn.keep(random.key())
  t.eq(tonumber(ffi.cast("uint32_t *", a:data())[2]), 0xffffffff)
  t.eq(tonumber(ffi.cast("uint32_t *", b:data())[2]), 0)
  t.eq(b:data()[3], 1)
  mn.manual_seed(1)
  mn.clear_tape()
end)

t.test("a plan that runs by rows draws what it draws whole", function()
  local T, x = 7, ones({ 7, 3, 5 }, { time = true })
  local net = nn.dropout(0.5)
  local plan = mn.plan(function(v)
    local y = net(v)
    return y, mn.categorical(y):sample(), mn.normal(y, 1):sample()
  end)
  mn.manual_seed(3)
  local whole, drawn = { plan(x) }, {}
  for i, y in ipairs(whole) do drawn[i] = bits(y) end
  mn.manual_seed(3)
  for _, y in ipairs(whole) do ffi.fill(y:data(), y:size() * 4, 0x55) end
  for row = 0, T - 1 do plan:rows(row, row + 1) end
  for i, y in ipairs(whole) do t.eq(bits(y), drawn[i], "output " .. i) end
end)

t.test("each row of a recurrence draws its own numbers, the gradient has them too, and keep = false is refused", function()
  local x, h = ones({ 6, 2, 50 }, { grad = true }), mn.tensor { shape = { 2, 50 } }
  local function body(x_t, before) return mn.dropout(x_t, 0.5), before * 1 end
  mn.manual_seed(4)
  local y = mn.recur(body, { x = x, state = h })
  local p, equal = y:data(), 0
  for i = 0, 99 do equal = equal + (p[i] == p[100 + i] and 1 or 0) end
  t.ok(equal > 20 and equal < 80, equal .. " of 100 equal")
  y:sum():backward()
  t.eq(bits(x:grad()), bits(y))
  t.fails(function() mn.recur(body, { x = x, state = h, keep = false }) end)
  local function outer(x_t, before)
    local z = mn.recur(body, { x = x_t:reshape(1, 2, 50), state = before })
    return z:reshape(2, 50), before * 1
  end
  mn.recur(outer, { x = x, state = h })
  t.fails(function() mn.recur(outer, { x = x, state = h, keep = false }) end)
  mn.clear_tape()
end)

t.test("categorical samples come as often as their probabilities, in any shape, and modes are the likeliest", function()
  mn.manual_seed(8)
  local N, probs = 20000, { 0.1, 0.2, 0.05, 0.65 }
  local p = mn.tensor { shape = { N, 4 } }
  for i = 0, N - 1 do for a = 0, 3 do p:data()[4 * i + a] = probs[a + 1] end end
  local d = mn.categorical { probs = p }
  local x, count = d:sample(), { 0, 0, 0, 0 }
  t.eq(x:dtype(), "i32")
  t.eq(#x:shape(), 1)
  for i = 0, N - 1 do count[x:data()[i] + 1] = count[x:data()[i] + 1] + 1 end
  for a = 1, 4 do t.near(count[a] / N, probs[a], 4 * math.sqrt(probs[a] * (1 - probs[a]) / N), "class " .. a) end
  t.eq(d:mode():data()[77], 3)
  t.near(d:probs():data()[1], 0.2, 1e-6)
  local masked = mn.categorical(mn.tensor { data = { { -1 / 0, 1, 1 } }, grad = true })
  for _ = 1, 50 do t.ok(masked:sample():data()[0] > 0) end
  t.near(masked:entropy():item(), math.log(2), 1e-6)
  t.near(masked:kl(mn.categorical(mn.tensor { { -1 / 0, 1, 1 } })):item(), 0, 1e-6)
  masked:entropy():sum():backward()
  for i = 0, 2 do t.near(masked.logits:grad():data()[i], 0, 1e-6) end
  t.eq(table.concat(mn.categorical(ones { 2, 3, 4, 5 }):sample():shape(), ","), "2,3,4")
  mn.clear_tape()
end)

t.test("bernoulli and normal samples have their means and deviations; rsample has a gradient", function()
  mn.manual_seed(9)
  local p = ones { 20000 }:fill(0.3)
  local b = mn.bernoulli { probs = p }
  local mean = moments(b:sample())
  t.near(mean, 0.3, 0.015)
  t.eq(b:mode():sum():item(), 0)
  t.near(b:probs():data()[5], 0.3, 1e-6)
  local m, s = ones({ 20000 }, { grad = true }), mn.tensor { data = { 2 }, grad = true }
  local d = mn.normal(m * 3, s)
  local x = d:sample()
  t.ok(not x:wants_grad())
  local average, variance = moments(x)
  t.near(average, 3, 0.06)
  t.near(variance, 4, 0.2)
  t.ok(d:mode():data()[3] == 3)
  local y = d:rsample()
  y:sum():backward()
  t.near(m:grad():data()[7], 3, 1e-6)
  local sum = 0
  for i = 0, 19999 do sum = sum + (y:data()[i] - 3) / 2 end
  t.near(s:grad():item(), sum, 0.05)
  t.eq(#mn.normal(0, 1):sample():shape(), 1)
  mn.clear_tape()
end)

t.test("distributions say what they were given and what they expected", function()
  local x = ones { 2, 3 }
  t.fails(function() mn.categorical(3) end)
  t.fails(function() mn.categorical { logits = x, probs = x } end)
  t.fails(function() mn.bernoulli { prob = x } end)
  t.fails(function() mn.normal(x) end)
  t.fails(function() mn.categorical(x):kl(mn.bernoulli(x)) end)
  t.fails(function() mn.kl_divergence(x, 3) end)
  t.fails(function() mn.categorical(x):log_prob(x) end)
end)

t.test("a loop that samples makes no garbage that grows, and no memory", function()
  local net = nn.linear(4, 3)
  local x, most = ones { 8, 4 }, { 0, 0 }               -- in the first and in the second half: between collections memory rises
  for i = 1, 6000 do
    local d = mn.categorical(net(x))
    local a = d:sample();
    (-d:log_prob(a):mean() - d:entropy():mean() * 0.01):backward()
    if i % 100 == 0 then
      collectgarbage()
      local half = i <= 3000 and 1 or 2
      most[half] = math.max(most[half], engine.C.mn_bytes(engine.ctx, "arena") + engine.C.mn_bytes(engine.ctx, "leaf") + collectgarbage "count" * 1024)
    end
  end
  t.ok((most[2] - most[1]) / 3000 < 2000, ("%.0f, then %.0f bytes: that many are due to a graph"):format(most[1], most[2]))
  mn.clear_tape()
end)
