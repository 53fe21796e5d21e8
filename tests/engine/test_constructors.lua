-- test_constructors.lua -- mn.zeros, arange, randn, ...: every way to write sizes, values, random draws, refusals.
local t = require "tests.harness"
local mn = require "mneme"

local function list(x)
  local p, values = x:data(), {}
  for i = 0, x:size() - 1 do values[i + 1] = tonumber(p[i]) end
  return table.concat(values, " ")
end
local function shape(x) return table.concat(x:shape(), ",") end

local by_sizes = { "zeros", "ones", "empty", "rand", "randn" }

t.test("sizes as arguments or as a list, options last or among them", function()
  for _, name in ipairs(by_sizes) do
    local f = mn[name]
    for _, x in ipairs { f(2, 3), f { 2, 3 }, f(2, 3, {}), f({ 2, 3 }, { grad = false }), f({ 2, 3 }, nil), f(2, 3, nil) } do
      t.eq(shape(x) .. x:dtype() .. tostring(x:wants_grad()), "2,3f32false", name)
    end
    for _, x in ipairs { f(2, { grad = true }), f({ 2 }, { grad = true }), f { 2, grad = true } } do
      t.eq(shape(x) .. tostring(x:wants_grad()), "2true", name)
    end
    t.eq(shape(f {}), "", name .. ": no axes")
  end
  t.eq(mn.zeros(2, { dtype = "i32" }):dtype() .. mn.ones({ 2 }, { dtype = "u8" }):dtype() .. mn.zeros { 2, dtype = "u8" }:dtype(), "i32u8u8")
end)

t.test("values", function()
  for want, x in pairs { ["0 0 0"] = mn.zeros(3), ["1 1"] = mn.ones(2), ["7 7"] = mn.full({ 2, 1 }, 7), ["2 2 2"] = mn.full(3, 2, { dtype = "i32" }),
    ["0 1 2"] = mn.arange(3), ["2 3 4"] = mn.arange(2, 5), ["0 0.25 0.5 0.75"] = mn.arange(0, 1, 0.25), ["3 2 1"] = mn.arange(3, 0, -1),
    ["5 7"] = mn.arange(5, 8, 2, { dtype = "i32" }), ["0 1"] = mn.arange(2, { dtype = "u8" }), ["1 2 3 4"] = mn.arange(1, 4.5),
    ["0 0.5 1"] = mn.linspace(0, 1, 3), ["4"] = mn.linspace(4, 9, 1), ["-1 -3"] = mn.linspace(-1, -3, 2),
    ["1 0 0 1"] = mn.eye(2), ["1 0 0 0 1 0"] = mn.eye(2, 3), ["1 0 0 1 0 0"] = mn.eye(3, 2, { dtype = "u8" }), ["1"] = mn.eye(1, { grad = true }) } do
    t.eq(list(x), want)
  end
  local third = mn.linspace(0, 1, 4):data()
  t.ok(third[3] == 1 and third[1] == mn.tensor({ 1 / 3 }):data()[0], "both ends are exact")
end)

t.test("with the shape of another tensor, and its type", function()
  local x, i = mn.ones(2, 3), mn.zeros(4, { dtype = "i32" })
  t.eq(shape(mn.zeros_like(x)) .. mn.zeros_like(i):dtype() .. list(mn.ones_like(i)) .. "|" .. list(mn.full_like(i, 3)), "2,3i321 1 1 1|3 3 3 3")
  t.eq(shape(mn.rand_like(x)) .. mn.randn_like(i):dtype() .. tostring(mn.zeros_like(x, { grad = true }):wants_grad()), "2,3f32true")
  t.eq(mn.zeros_like(x, { dtype = "u8" }):dtype(), "u8")
end)

-- ---- random draws ----

t.test("a seed gives the same draws again, each draw others, and initial parameters do not depend on them", function()
  local draws = { function() return mn.rand(7) end, function() return mn.randn(7) end, function() return mn.randint(1000, { 7 }) end,
    function() return mn.randperm(50) end }
  local function all()
    local texts = {}
    for i, f in ipairs(draws) do texts[i] = list(f()) end
    return table.concat(texts, "|")
  end
  mn.manual_seed(3)
  local first, second = all(), all()
  mn.manual_seed(3)
  t.ok(first == all() and first ~= second)
  mn.manual_seed(4)
  t.ok(first ~= all())
  mn.manual_seed(5)
  local weights = list(mn.nn.linear(3, 4).weight)
  mn.manual_seed(5)
  all()
  t.eq(list(mn.nn.linear(3, 4).weight), weights)
end)

-- A bound of 5 standard errors: wrong once in two million seeds, and the seed is fixed.
t.test("moments of uniform, normal and whole numbers", function()
  mn.manual_seed(1)
  local n = 100000
  local function moments(x) return x:mean():item(), x:var():item() end
  local mean, var = moments(mn.rand(n))
  t.near(mean, 0.5, 5 * math.sqrt(1 / 12 / n)) t.near(var, 1 / 12, 5 * math.sqrt(1 / 180 / n))
  mean, var = moments(mn.randn(n / 2, 2))
  t.near(mean, 0, 5 / math.sqrt(n)) t.near(var, 1, 5 * math.sqrt(2 / n))
  local x, counts = mn.randint(-2, 3, { n }), {}
  for i = 0, n - 1 do counts[x:data()[i]] = (counts[x:data()[i]] or 0) + 1 end
  local chi = 0
  for k = -2, 2 do chi = chi + (counts[k] - n / 5) ^ 2 / (n / 5) end
  t.ok(chi < 33.4, "chi squared of 4 degrees: " .. chi)          -- 1e-6
  t.eq(x:dtype() .. #counts, "i322")
  local r = mn.rand(n):data()
  for i = 0, n - 1 do t.ok(r[i] >= 0 and r[i] < 1) end
end)

t.test("randint reaches all of a range wider than a float's digits", function()
  local x, odd = mn.randint(-2 ^ 31, 2 ^ 31, { 4000 }), 0
  for i = 0, 3999 do odd = odd + x:data()[i] % 2 end
  t.ok(math.abs(odd - 2000) < 5 * math.sqrt(1000), odd .. " odd numbers")
end)

t.test("randperm holds every number once, at every place alike", function()
  mn.manual_seed(2)
  local n, rounds, at = 5, 4000, {}
  for _ = 1, rounds do
    local p, seen = mn.randperm(n):data(), {}
    for i = 0, n - 1 do
      t.ok(p[i] >= 0 and p[i] < n and not seen[p[i]])
      seen[p[i]] = true
      at[i * n + p[i]] = (at[i * n + p[i]] or 0) + 1
    end
  end
  for i = 0, n * n - 1 do t.near(at[i], rounds / n, 5 * math.sqrt(rounds * 0.16)) end
  t.eq(list(mn.randperm(1)), "0")
end)

t.test("in a recurrence every row draws numbers of its own", function()
  local y = mn.recur(function(x, h) return x + mn.randn(2), h end, { x = mn.zeros(3, 1, 2), state = mn.zeros(1, 2) })
  local p = y:data()
  for i = 0, 5 do for k = 0, i - 1 do t.ok(p[i] ~= p[k]) end end
end)

t.test("a plan draws other numbers at each replay, as calls outside of it would, or refuses", function()
  for _, f in ipairs { function() return mn.randn(3) end, function() return mn.rand(3) end, function(x) return mn.randn_like(x) end } do
    local x, plan = mn.ones(3), mn.plan(function(x) return x + f(x) end)
    local function three(draw)
      mn.manual_seed(6)
      return list(draw()) .. "|" .. list(draw()) .. "|" .. list(draw())
    end
    local outside = three(function() return x + f(x) end)
    t.eq(three(function() return plan(x) end), outside)
    t.ok(outside:match "^(.-)|" ~= outside:match "|(.-)|")
  end
  for _, f in ipairs { function() return mn.randint(3, { 2 }) end, function() return mn.randperm(3) end } do
    t.fails(function() mn.plan(function(x) return x + f(x) end)(mn.ones(3)) end)
  end
  t.eq(list(mn.plan(function(x) return x + mn.ones(3) end)(mn.ones(3))), "2 2 2")
end)

-- ---- refusals ----

t.test("what is no size, number or option is refused at the user's line", function()
  for _, name in ipairs(by_sizes) do
    for _, case in ipairs { { {}, "no sizes" }, { { 0 }, "0 is no size" }, { { 2, -1 }, "%-1 is no size" }, { { 2.5 }, "2.5 is no size" },
      { { "x" }, '"x" is no size' }, { { { 2, "y" } }, '"y" is no size' }, { { 2, nil, 3 }, "nil is no size" }, { { 2 ^ 31 }, "is no size" },
      { { 2, { shape = { 1 } } }, "unknown option of " .. name .. ": 'shape'" }, { { { 2, requires_grad = true } }, "'requires_grad'" },
      { { { 2 }, 3 }, "3, expected options" }, { { { 2 }, {}, 3 }, "3 arguments" }, { { 2, { grad = "yes" } }, "grad = \"yes\"" },
      { { 1, 1, 1, 1, 1, 1, 1 }, "at most 6" }, { { 2, { dtype = "f64" } }, "unknown dtype" } } do
      local arguments = case[1]
      t.raises(function() mn[name](unpack(arguments, 1, table.maxn(arguments))) end, "test_constructors.lua:%d+: .*" .. case[2])
    end
  end
  for pattern, f in pairs { ["full: no value"] = function() mn.full { 2 } end, ["randn: dtype is i32"] = function() mn.randn(2, { dtype = "i32" }) end,
    ["arange: from 3 to 3 by 1 there is no value"] = function() mn.arange(3, 3) end, ["arange: step is"] = function() mn.arange(0, 3, "x") end,
    ["arange: from 0 to 3 by %-1"] = function() mn.arange(0, 3, -1) end, ["arange: from 0 to 3 by 0"] = function() mn.arange(0, 3, 0) end,
    ["0.5 does not fit i32"] = function() mn.arange(0, 1, 0.5, { dtype = "i32" }) end,
    ["256 does not fit u8"] = function() mn.arange(300, { dtype = "u8" }) end,
    ["arange: last is inf"] = function() mn.arange(math.huge) end, ["linspace: 0 is no size"] = function() mn.linspace(0, 1, 0) end,
    ["eye: nil is no size"] = function() mn.eye() end, ["randint: low is 3, high is 3"] = function() mn.randint(3, 3, { 2 }) end,
    ["randint: sizes are 2"] = function() mn.randint(0, 3, 2) end, ["300 does not fit u8"] = function() mn.randint(301, { 2 }, { dtype = "u8" }) end,
    ["zeros_like: 3, expected a tensor"] = function() mn.zeros_like(3) end, ["randperm: 0 is no size"] = function() mn.randperm(0) end,
    ["only float32 tensors have a gradient"] = function() mn.randperm(3, { grad = true }) end } do
    t.raises(f, "test_constructors.lua:%d+: .*" .. pattern)
  end
end)
