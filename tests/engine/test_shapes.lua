-- test_shapes.lua -- what moves elements about: shapes, joining and cutting, indices, sorting, types.  Each against plain Lua
-- loops; what holds for all of them (every type, gradients, rows of a plan) is checked for a list of calls.
local t = require "tests.harness"
local mn = require "mneme"

local floor = math.floor
local function text(x) return table.concat(x:shape(), ",") .. ": " .. table.concat(x:flatten():to_table(), " ") end
local function i32(data) return mn.tensor { data = data, dtype = "i32" } end
local function u8(data) return mn.tensor { data = data, dtype = "u8" } end

-- 0, 1, 2 ... in the shape: each element's value is where it is.
local function places(shape, options)
  local x = mn.tensor { shape = shape, grad = options and options.grad, time = options and options.time }
  local p = x:data()
  for i = 0, x:size() - 1 do p[i] = i end
  return x
end

-- y has the shape, and its element at 0-based indices is f of them.
local function is(name, y, shape, f)
  t.eq(table.concat(y:shape(), ","), table.concat(shape, ","), name .. ": shape")
  local p, n = y:data(), y:size()
  for k = 0, n - 1 do
    local at, left = {}, k
    for axis = #shape, 1, -1 do at[axis], left = left % shape[axis], floor(left / shape[axis]) end
    t.eq(p[k], f(unpack(at)), ("%s[%s]"):format(name, table.concat(at, ",")))
  end
end

local function at(i, j, k) return (i * 4 + j) * 5 + k end

t.test("axes: permute, transpose, movedim, flip, roll", function()
  local x = places { 3, 4, 5 }
  is("permute", x:permute(2, 0, 1), { 5, 3, 4 }, function(k, i, j) return at(i, j, k) end)
  is("permute of a list", mn.permute(x, { 1, -1, 0 }), { 4, 5, 3 }, function(j, k, i) return at(i, j, k) end)
  is("transpose", x:transpose(-1, 0), { 5, 4, 3 }, function(k, j, i) return at(i, j, k) end)
  is("movedim", x:movedim(0, -1), { 4, 5, 3 }, function(j, k, i) return at(i, j, k) end)
  is("movedim back", x:movedim(2, 0), { 5, 3, 4 }, function(k, i, j) return at(i, j, k) end)
  is("flip", x:flip(1), { 3, 4, 5 }, function(i, j, k) return at(i, 3 - j, k) end)
  is("flip last", x:flip(), { 3, 4, 5 }, function(i, j, k) return at(i, j, 4 - k) end)
  for _, shift in ipairs { 0, 1, -1, 7, -13 } do
    is("roll " .. shift, x:roll(shift), { 3, 4, 5 }, function(i, j, k) return at(i, j, (k - shift) % 5) end)
    is("roll " .. shift, x:roll(shift, 0), { 3, 4, 5 }, function(i, j, k) return at((i - shift) % 3, j, k) end)
  end
end)

t.test("sizes: squeeze, unsqueeze, flatten, expand, tile, pad, tril, triu", function()
  local x, row = places { 3, 4, 5 }, places { 4, 1 }
  is("unsqueeze", x:unsqueeze(1), { 3, 1, 4, 5 }, function(i, _, j, k) return at(i, j, k) end)
  is("unsqueeze last", x:unsqueeze(-1), { 3, 4, 5, 1 }, at)
  is("squeeze", x:reshape(1, 3, 4, 1, 5):squeeze(), { 3, 4, 5 }, at)
  is("squeeze of one axis", x:reshape(1, 3, 4, 1, 5):squeeze(-2), { 1, 3, 4, 5 }, function(_, ...) return at(...) end)
  is("squeeze of an axis that is no 1", x:squeeze(1), { 3, 4, 5 }, at)
  is("squeeze to nothing keeps an axis", places({ 1, 1 }):squeeze(), { 1 }, function() return 0 end)
  is("flatten", x:flatten(), { 60 }, function(n) return n end)
  is("flatten from 1", x:flatten(1), { 3, 20 }, function(i, n) return i * 20 + n end)
  is("flatten to 1", x:flatten(0, -2), { 12, 5 }, function(n, k) return n * 5 + k end)
  is("expand", row:expand(3, -1, 2), { 3, 4, 2 }, function(_, j) return j end)
  is("tile", x:tile(2, 1, 3), { 6, 4, 15 }, function(i, j, k) return at(i % 3, j, k % 5) end)
  is("tile of the last axis", x:tile(2), { 3, 4, 10 }, function(i, j, k) return at(i, j, k % 5) end)
  is("tile adds axes", row:tile(3, 2, 2), { 3, 8, 2 }, function(_, j) return j % 4 end)
  is("tile of a list", row:tile { 1, 2 }, { 4, 2 }, function(j) return j end)
  local function padded(i, j, k) return i >= 1 and i < 4 and at(i - 1, j, k) or -1 end
  is("pad", x:pad(0, 1, 2, -1), { 6, 4, 5 }, padded)
  is("pad as in torch", mn.pad(x, { 0, 0, 2, 0 }, 7), { 3, 6, 5 }, function(i, j, k) return j >= 2 and at(i, j - 2, k) or 7 end)
  is("pad of two axes", x:pad { 1, 0, 0, 1 }, { 3, 5, 6 }, function(i, j, k) return k >= 1 and j < 4 and at(i, j, k - 1) or 0 end)
  for _, d in ipairs { 0, 1, -2, 9, -9 } do
    is("tril " .. d, x:tril(d), { 3, 4, 5 }, function(i, j, k) return k - j <= d and at(i, j, k) or 0 end)
    is("triu " .. d, x:triu(d), { 3, 4, 5 }, function(i, j, k) return k - j >= d and at(i, j, k) or 0 end)
  end
end)

t.test("joining and cutting: cat, stack, split, chunk", function()
  local x = places { 3, 4, 5 }
  is("cat", mn.cat({ x, x, x }, -1), { 3, 4, 15 }, function(i, j, k) return at(i, j, k % 5) end)
  is("cat of one", mn.cat { x }, { 3, 4, 5 }, at)
  for _, n in ipairs { 2, 7, 8, 9, 17, 65, 150 } do             -- one op, trees, and trees with a rest
    local list, start = {}, {}
    local size = 0
    for i = 1, n do
      list[i] = places { 2, i % 3 + 1 }
      for k = 0, i % 3 do start[size + k] = { i % 3 + 1, k } end
      size = size + i % 3 + 1
    end
    is("cat of " .. n, mn.cat(list, 1), { 2, size }, function(r, k) return r * start[k][1] + start[k][2] end)
  end
  local y = x + 100
  is("stack", mn.stack { x, y, x }, { 3, 3, 4, 5 }, function(n, ...) return at(...) + (n == 1 and 100 or 0) end)
  is("stack 1", mn.stack({ x, y }, 1), { 3, 2, 4, 5 }, function(i, n, j, k) return at(i, j, k) + 100 * n end)
  is("stack last", mn.stack({ x, y }, -1), { 3, 4, 5, 2 }, function(i, j, k, n) return at(i, j, k) + 100 * n end)
  is("stack of one, last", mn.stack({ x }, 3), { 3, 4, 5, 1 }, at)
  local parts = x:split(2, -1)
  t.eq(#parts, 3)
  for n, part in ipairs(parts) do
    is("split", part, { 3, 4, n == 3 and 1 or 2 }, function(i, j, k) return at(i, j, k + 2 * (n - 1)) end)
  end
  parts = mn.split(x, { 1, 3 }, 1)
  is("split by sizes", parts[1], { 3, 1, 5 }, at)
  is("split by sizes", parts[2], { 3, 3, 5 }, function(i, j, k) return at(i, j + 1, k) end)
  t.eq(#x:split(9), 1)
  local sizes = {}
  for i, part in ipairs(places({ 7 }):chunk(3)) do sizes[i] = part:size() end
  t.eq(table.concat(sizes, " "), "3 3 1")
  t.eq(#places({ 4 }):chunk(9), 4, "no piece is empty")
  t.eq(text(mn.cat(x:split(1, 2), 2)), text(x))
end)

t.test("indices along an axis: gather, scatter, scatter_add, index_select, pick, select", function()
  local x = places { 3, 4, 5 }
  local index = mn.tensor { shape = { 3, 2, 5 }, dtype = "i32" }
  local p = index:data()
  for n = 0, 29 do p[n] = (n * 7 + floor(n / 4)) % 4 end
  local function to(i, j, k) return p[(i * 2 + j) * 5 + k] end
  is("gather", x:gather(1, index), { 3, 2, 5 }, function(i, j, k) return at(i, to(i, j, k), k) end)
  is("gather, the axis last", mn.gather(x, index, -2), { 3, 2, 5 }, function(i, j, k) return at(i, to(i, j, k), k) end)
  local src = places { 3, 2, 5 } + 1000
  local q = src:data()
  local function sum(i, j, k, last)
    local y = at(i, j, k)
    for n = 0, 1 do if to(i, n, k) == j then y = last and q[(i * 2 + n) * 5 + k] or y + q[(i * 2 + n) * 5 + k] end end
    return y
  end
  is("scatter_add", x:scatter_add(1, index, src), { 3, 4, 5 }, sum)
  is("scatter", x:scatter(1, index, src), { 3, 4, 5 }, function(i, j, k) return sum(i, j, k, true) end)
  is("index_select", x:index_select(1, i32 { 3, 0, 3 }), { 3, 3, 5 }, function(i, n, k) return at(i, n == 1 and 0 or 3, k) end)
  is("index_select of rows", mn.index_select(x, i32 { 2 }), { 1, 4, 5 }, function(_, j, k) return at(2, j, k) end)
  is("pick", mn.pick(x, i32 { { 0, 1, 2, 3 }, { 4, 3, 2, 1 }, { 0, 0, 4, 4 } }), { 3, 4 }, function(i, j)
    return at(i, j, ({ { 0, 1, 2, 3 }, { 4, 3, 2, 1 }, { 0, 0, 4, 4 } })[i + 1][j + 1])
  end)
  is("select", x:select(1, -1), { 3, 5 }, function(i, k) return at(i, 3, k) end)
  is("select", x:select(-1, 0), { 3, 4 }, function(i, j) return at(i, j, 0) end)
  is("select of a vector", places({ 4 }):select(0, 2), { 1 }, function() return 2 end)
end)

t.test("of equal indices scatter takes the last, and its gradient goes there alone", function()
  local x, src = mn.tensor { data = { 5, 6, 7 }, grad = true }, mn.tensor { data = { 1, 2, 3 }, grad = true }
  local y = mn.scatter(x, i32 { 2, 0, 2 }, src)
  t.eq(text(y), "3: 2 6 3");
  (y * mn.tensor { 10, 20, 30 }):sum():backward()
  t.eq(text(x:grad()), "3: 0 20 0")
  t.eq(text(src:grad()), "3: 0 10 30")
end)

-- ---- brackets ----

t.test("x[i] is a row, with a gradient; of a vector it is a number", function()
  local x = places({ 3, 4, 5 }, { grad = true })
  is("row", x[2], { 4, 5 }, function(j, k) return at(1, j, k) end)
  is("row of a row", x[3][4], { 5 }, function(k) return at(2, 3, k) end)
  t.eq(x[3][4][5], 59)
  t.eq(#x, 3)
  t.eq(mn.tensor({ 7, 8 })[2], 8)
  t.eq(i32({ 7, 8 })[1], 7)
  t.eq(text(u8({ { 1, 2 }, { 3, 4 } })[2]), "2: 3 4");
  (x[2] * 2):sum():backward()
  is("gradient", x:grad(), { 3, 4, 5 }, function(i) return i == 1 and 2 or 0 end)
  for _, i in ipairs { 0, 4, -1, 1.5, 0 / 0 } do t.fails(function() return x[i] end) end
  t.fails(function() return mn.tensor({ shape = {}, data = 3 })[1] end)
  local plan = mn.plan(function(y) return y[2] * 2 end)
  is("in a plan", plan(places { 3, 2 }), { 2 }, function(k) return 2 * (2 + k) end)
  t.fails(function() mn.plan(function(y) return y * y[1] end)(places { 3 }) end)
end)

t.test("x[i] = v sets a row of a leaf: from a tensor, a list or a number", function()
  local x = mn.tensor { shape = { 3, 2 } }
  x[1], x[2], x[3] = mn.tensor { 1, 2 } * 2, { 5, 6 }, 7
  t.eq(text(x), "3,2: 2 4 5 6 7 7")
  x[1] = x[3]
  t.eq(text(x[1]), "2: 7 7")
  local v = i32 { 1, 2, 3 }
  v[2], v[3] = 9, i32 { 8 }
  t.eq(text(v), "3: 1 9 8")
  t.fails(function() x[4] = 1 end)
  t.fails(function() x[1] = "a" end)
  t.raises(function() x[1] = nil end, "x%[1%] = nil, expected")
  t.raises(function() x[1] = { 1, 2, 3 } end, "3 values, expected 2")
  t.fails(function() x[1] = mn.tensor { 1, 2, 3 } end)
  t.fails(function() v[1] = 1.5 end)
  t.fails(function() v[1] = mn.tensor { 1 } end)
  t.fails(function() (x * 2)[1] = 0 end)
  t.fails(function() x.name = 1 end)
  local w = mn.tensor { data = { { 1, 2 }, { 3, 4 } }, grad = true }
  local loss = (w * w):sum()
  loss:backward()
  t.eq(text(w:grad()), "2,2: 2 4 6 8")
  loss = (w * w):sum()
  w[1] = 0
  t.fails(function() loss:backward() end)
  local counter = mn.tensor { shape = { 2, 2 } }
  local put = mn.plan(function(y) counter[2] = y * 2 return y + 0 end)
  put(mn.tensor { 1, 2 })
  put(mn.tensor { 3, 4 })
  t.eq(text(counter), "2,2: 0 0 6 8", "a plan does it again")
end)

t.test("masks: where with numbers, masked_fill, masked_select", function()
  local x = mn.tensor { data = { { 1, -2, 3 }, { -4, 5, -6 } }, grad = true }
  local mask = x:between { lo = 0 }
  t.eq(text(mn.where(mask, x, 0)), "2,3: 1 0 3 0 5 0")
  t.eq(text(mn.where(mask, 1, -1)), "2,3: 1 -1 1 -1 1 -1")
  t.eq(mn.where(mask, i32 { 7 }, 2):dtype(), "i32")
  t.eq(text(mn.where(mask, u8 { { 9, 9, 9 } }, 2)), "2,3: 9 2 9 2 9 2")
  t.eq(text(x:masked_fill(mask, -1 / 0)), "2,3: -inf -2 -inf -4 -inf -6")
  t.eq(text(x:masked_fill(u8 { 0, 0, 1 }, 9)), "2,3: 1 -2 9 -4 5 9")
  local y = x:masked_select(mask)
  t.eq(text(y), "3: 1 3 5");
  (y * mn.tensor { 2, 3, 4 }):sum():backward()
  t.eq(text(x:grad()), "2,3: 2 0 3 0 4 0")
  t.eq(text(mn.masked_select(i32 { { 1, 2 }, { 3, 4 } }, u8 { 0, 1 })), "2: 2 4")
  t.fails(function() x:masked_select(x:between { lo = 9 }) end)
  t.fails(function() x:masked_select(x) end)
  t.fails(function() x:masked_select(u8 { 0, 1 }) end)
  t.fails(function() mn.plan(function(z) return z:masked_select(mask) end)(mn.keep(x)) end)
  t.fails(function() mn.where(mask, i32 { 1 }, 0.5) end)
end)

-- ---- order ----

t.test("sort, argsort, topk: against table.sort, with ties, NaN, infinities and zeros of both signs", function()
  local nan = 0 / 0
  local odd = { 3, nan, -1 / 0, 0, -1 / (1 / 0), 2, 1 / 0, 3, -5, nan, 1e-40, -1e-40, 0, 2 }          -- -0.0 is 0 to LuaJIT on arm64
  for _, n in ipairs { 1, 2, 14, 33, 100, 700 } do
    local x = mn.tensor { shape = { n } }
    for i = 1, n do x:data()[i - 1] = i <= #odd and odd[i] or (i * 7919) % 101 % (n > 600 and 7 or 40) - 20 end
    local v = x:to_table()
    for _, descending in ipairs { false, true } do
      local order = {}
      for i = 1, n do order[i] = i end
      table.sort(order, function(a, b)
        local p, q = v[a], v[b]
        if descending then p, q = q, p end
        if p ~= p or q ~= q then
          if p ~= p and q ~= q then return a < b end
          return q ~= q
        end
        if p == q then return a < b end
        return p < q
      end)
      local y, index = x:sort(0, descending)
      for i = 1, n do
        t.eq(index[i], order[i] - 1, ("index %d of %d, descending %s"):format(i, n, tostring(descending)))
        t.ok(y[i] == v[order[i]] or y[i] ~= y[i] and v[order[i]] ~= v[order[i]], "value " .. i)
      end
      t.eq(text(mn.argsort(x, nil, descending)), text(index))
      for _, k in ipairs { 1, 5, n } do
        if k <= n then
          local _, first = x:topk(k, -1, descending)
          t.eq(text(first), text(index:slice(0, 0, k)), "topk " .. k)
        end
      end
    end
  end
  local x = mn.tensor { data = { { 3, 1 }, { 2, 5 }, { 9, 4 } }, grad = true }
  local y, index = x:sort { axis = 0 }
  t.eq(text(y), "3,2: 2 1 3 4 9 5")
  t.eq(text(index), "3,2: 1 0 0 2 2 1");
  (y * mn.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }):sum():backward()
  t.eq(text(x:grad()), "3,2: 3 2 1 6 5 4")
  t.eq(text((i32({ -3, 2147483647, -2147483648, 0 }):sort())), "4: -2147483648 -3 0 2147483647")
  t.eq(text((u8({ 255, 0, 128 }):sort(-1, true))), "3: 255 128 0")
  t.fails(function() x:topk(4, 0) end)
  t.raises(function() x:topk(0) end, "topk: k is 0")
end)

-- ---- types ----

t.test("cast: fractions go, what does not fit becomes the nearest, NaN 0", function()
  local x = mn.tensor { data = { 2.9, -2.9, 0.5, 255.9, 256, -1, 3e9, -3e9, 1 / 0, -1 / 0, 0 / 0, 2147483520 }, grad = true }
  t.eq(text(x:to "i32"), "12: 2 -2 0 255 256 -1 2147483647 -2147483648 2147483647 -2147483648 0 2147483520")
  t.eq(text(x:to "u8"), "12: 2 0 0 255 255 0 255 0 255 0 0 255")
  t.eq(text(i32({ -1, 5, 300 }):to "u8"), "3: 0 5 255")
  t.eq(text(i32({ 16777217, -7 }):to "f32"), "2: 16777216 -7")
  t.eq(text(u8({ 0, 200 }):cast { to = "f32" }), "2: 0 200")
  t.eq(u8({ 1 }):to("i32"):dtype(), "i32")
  t.ok(x:to "f32" == x or x:to("f32").slot == x.slot, "the same type is the same tensor")
  t.ok(not x:to("i32"):wants_grad() and not x:to("i32"):to("f32"):wants_grad() and mn.cast(x):wants_grad())
  mn.cast(x):sum():backward()
  t.eq(x:grad():at(2), 1)
  t.fails(function() x:to "f64" end)
end)

t.test("done can be cut, joined and reshaped, and floats be made of it", function()
  local done = u8 { { 0, 1 }, { 1, 0 }, { 0, 0 } }
  t.eq(text(done:slice(0, 1, 2)), "1,2: 1 0")
  t.eq(text(done[3]), "2: 0 0")
  t.eq(text(mn.cat { done, done:slice(0, 0, 1) }), "4,2: 0 1 1 0 0 0 0 1")
  t.eq(text(1 - done:to "f32"), "3,2: 1 0 0 1 1 1")
  t.fails(function() done:concat(mn.tensor { { 1, 2 } }) end)
end)

-- ---- what holds for all of them ----

-- name, call of x [3,4,5], and whether its rows stand alone: axis 0 is as it was.
local index3 = i32 { { { 2, 0 }, { 1, 1 }, { 4, 3 }, { 0, 4 } }, { { 0, 1 }, { 2, 3 }, { 4, 4 }, { 1, 0 } }, { { 3, 3 }, { 1, 2 }, { 0, 0 }, { 4, 2 } } }
local movers = {
  { "reshape", function(x) return x:reshape(3, 2, 10) end, true }, { "slice", function(x) return x:slice(1, 1, 3) end, true },
  { "slice of rows", function(x) return x:slice(0, 1) end }, { "row", function(x) return x[2] end },
  { "concat", function(x) return x:concat(x, x, 1) end, true }, { "cat", function(x) return mn.cat { x, x, x:flip(0) } end },
  { "cat of 20", function(x)
    local list = {}
    for i = 1, 20 do list[i] = i % 3 == 0 and x:flip(2) or x end
    return mn.cat(list, 2)
  end, true },
  { "stack", function(x) return mn.stack({ x, x:roll(1) }, 1) end, true }, { "stack last", function(x) return mn.stack({ x, x:roll(1) }, -1) end, true },
  { "stack of rows", function(x) return mn.stack { x[1], x[3] } end },
  { "split", function(x) local p = x:split({ 1, 3, 1 }, 2) return p[3]:concat(p[2]) end, true },
  { "permute", function(x) return x:permute(0, 2, 1) end, true }, { "permute all", function(x) return x:permute(2, 1, 0) end },
  { "transpose", function(x) return x:transpose(1, 2) end, true }, { "transpose of rows", function(x) return x:transpose(0, 1) end },
  { "movedim", function(x) return x:movedim(1, 2) end, true }, { "flip", function(x) return x:flip(1) end, true },
  { "flip of rows", function(x) return x:flip(0) end }, { "roll", function(x) return x:roll(2, 1) end, true },
  { "roll of rows", function(x) return x:roll(2, 0) end },
  { "pad", function(x) return x:pad(2, 1, 2) end, true }, { "pad of rows", function(x) return x:pad(0, 1, 0) end },
  { "expand", function(x) return x:slice(1, 0, 1):expand(-1, 6, -1) end, true }, { "expand to more axes", function(x) return x:expand(2, 3, 4, 5) end },
  { "tile", function(x) return x:tile(2, 2) end, true }, { "tile of rows", function(x) return x:tile(2, 1, 1) end },
  { "unsqueeze", function(x) return x:unsqueeze(2) end, true }, { "squeeze", function(x) return x:slice(2, 1, 2):squeeze(2) end, true },
  { "flatten", function(x) return x:flatten(1) end, true }, { "tril", function(x) return x:tril(1) end, true },
  { "triu", function(x) return x:triu(1) end, true },
  { "gather", function(x) return x:gather(2, index3) end }, { "index_select", function(x) return x:index_select(1, i32 { 3, 3, 0 }) end, true },
  { "index_select of rows", function(x) return x:index_select(0, i32 { 2, 0, 2, 1 }) end },
  { "scatter", function(x) return x:scatter(2, index3, x:slice(2, 0, 2)) end }, { "pick", function(x) return mn.pick(x, index3:select(2, 0)) end },
  { "sort", function(x) return (x:flip(2):sort()) end, true }, { "topk", function(x) return (x:topk(2, 1)) end, true },
  { "topk of rows", function(x) return (x:topk(2, 0, false)) end },
  { "select", function(x) return x:select(1, 2) end, true }, { "chunk", function(x) return x:chunk(2, 2)[2] end, true },
  { "masked_select", function(x) return x:masked_select(u8 { { 1 }, { 0 }, { 1 }, { 1 } }) end, false, true },
  { "where", function(x) return mn.where(u8 { { { 1 }, { 0 }, { 0 }, { 1 } } }, x, x:flip(2)) end, true },
  { "masked_fill", function(x) return x:masked_fill(u8 { 0, 1, 0, 0, 1 }, 0) end, true },
}

t.test("movers: the same for every type", function()
  for _, m in ipairs(movers) do
    local y = m[2](places { 3, 4, 5 })
    for _, dtype in ipairs { "i32", "u8" } do
      local z = m[2](places({ 3, 4, 5 }):to(dtype))
      t.eq(z:dtype(), dtype, m[1])
      t.eq(text(z), text(y), m[1] .. " of " .. dtype)
    end
    mn.clear_tape()
  end
end)

-- The values say where each element came from, so they say where its gradient goes; 0 is also what padding gives, and left out.
t.test("movers: the gradient of an element is the sum over the places that it went to", function()
  for _, m in ipairs(movers) do
    local x = places({ 3, 4, 5 }, { grad = true })
    local y = m[2](x)
    local w, want, p = mn.tensor { shape = y:shape() }, {}, y:data()
    for k = 0, y:size() - 1 do
      w:data()[k] = (k * 37 + 11) % 19 - 9
      want[p[k]] = (want[p[k]] or 0) + w:data()[k]
    end
    (y * w):sum():backward()
    local g = x:grad_data()
    for i = 1, 59 do t.eq(g[i], want[i] or 0, ("%s: gradient of element %d"):format(m[1], i)) end
    mn.clear_tape()
  end
end)

t.test("movers: recorded by plans, for every type, and by rows where axis 0 stays", function()
  for _, m in ipairs(movers) do
    local plan_of = mn.plan(m[2])
    for _, dtype in ipairs(m[4] and {} or { "f32", "i32", "u8" }) do
      local x = mn.keep(places({ 3, 4, 5 }):to(dtype))
      local want = text(m[2](x))
      local y = plan_of(x)
      t.eq(text(y), want, m[1] .. " in a plan")
      y:data()[0] = 77
      plan_of:run()
      t.eq(text(y), want, m[1] .. " again")
      local sequence = mn.sequence { shape = { 3, 4, 5 }, dtype = dtype }
      sequence:copy(x)
      local plan = mn.plan(m[2])
      local z = plan(sequence)
      for k = 0, z:size() - 1 do z:data()[k] = 77 end
      local ok, why = pcall(function() for row = 0, 2 do plan:rows(row, row + 1) end end)
      t.eq(ok, m[3] or false, ("%s by rows: %s"):format(m[1], tostring(why)))
      if ok then t.eq(text(z), want, m[1] .. " by rows")
      else t.ok(tostring(why):find "cannot run by rows", tostring(why)) end
    end
    mn.clear_tape()
  end
end)

-- ---- errors ----

t.test("an axis of one number without axes is answered with that", function()
  local one = mn.tensor { shape = {}, data = 3 }
  for _, name in ipairs { "sum", "max", "argmax", "std", "sort", "cumsum", "flip", "slice", "softmax", "logsumexp", "squeeze", "flatten", "size" } do
    t.raises(one[name], name .. ": .* is 0, and x has no axis: it is one number", one, 0)
  end
  t.raises(one.sum, "sum: axis in a list is %-1, and x has no axis", one, { -1 })
end)

t.test("wrong calls name axis, sizes and what was expected", function()
  local x, index = places { 3, 4, 5 }, i32 { { 1, 2 } }
  for words, f in pairs {
    ["permute: 2 axes given, expected all 3 of x"] = function() x:permute(0, 1) end,
    ["permute: axis 1 is given twice"] = function() x:permute(0, 1, -2) end,
    ["permute: a2 is 3, expected a whole number from -3 to 2"] = function() x:permute(0, 1, 3) end,
    ["permute: a list of 7, expected at most 6"] = function() x:permute { 0, 1, 2, 3, 4, 5, 6 } end,
    ["flip: axis is 3, expected a whole number from -3 to 2"] = function() x:flip(3) end,
    ["roll: shift is 0.5, expected a whole number"] = function() x:roll(0.5) end,
    ["pad: before is -1, expected a whole number of at least 0 (slice cuts)"] = function() x:pad(0, -1) end,
    ["pad: value is 0.5, which does not fit the type of x"] = function() x:to("u8"):pad(0, 1, 0, 0.5) end,
    ["pad: a list of 3 sizes, expected two for each of at most 3 axes"] = function() x:pad { 1, 2, 3 } end,
    ["expand: axis 1 of x is 4, expected 1 or 2 as d1"] = function() x:expand(3, 2, 5) end,
    ["expand: 2 sizes given, expected at least the 3 axes of x"] = function() x:expand(4, 5) end,
    ["expand: d0 is -1, expected a whole number of at least 1"] = function() x:expand(-1, 3, 4, 5) end,
    ["tril: x has 1 axes, expected at least 2"] = function() places({ 3 }):tril() end,
    ["tile: number 1 is 0, expected a whole number of at least 1"] = function() x:tile(0) end,
    ["tile: how often is missing"] = function() x:tile() end,
    ["gather: index has 2 axes, expected 3 as x (pick takes one element of each row)"] = function() mn.ops.gather(x, index) end,
    ["gather: axis 0 of index is 1, expected 3 as in x"] = function() x:gather(2, i32 { { { 1 } } }) end,
    ["gather: index[0] is 5, expected 0 to 4"] = function() x:slice(0, 0, 1):slice(1, 0, 1):gather(2, i32 { { { 5 } } }) end,
    ["gather: index is float32, expected int32"] = function() x:gather(0, x) end,
    ["scatter_add: axis 1 of src is 3, expected 2 as in index"] = function() places({ 1, 4 }):scatter_add(1, index, places { 1, 3 }) end,
    ["scatter: src is int32, expected float32 as x"] = function() places({ 1, 4 }):scatter(1, index, index) end,
    ["index_select: index has 2 axes, expected 1"] = function() x:index_select(0, index) end,
    ["index_select: index[1] is -1, expected 0 to 3"] = function() x:index_select(1, i32 { 3, -1 }) end,
    ["select: index is 4, expected a whole number from -4 to 3"] = function() x:select(1, 4) end,
    ["cat: an empty list, expected a list of tensors"] = function() mn.cat {} end,
    ["cat: 'axis' among the tensors, expected mn.cat({ x, y, ... }, axis)"] = function() mn.cat { x, x, axis = 1 } end,
    ["stack: 'dim' among the tensors, expected mn.stack({ x, y, ... }, axis)"] = function() mn.stack { x, x, dim = 1 } end,
    ["cat: item 2 is i32, expected f32 as item 1"] = function() mn.cat { x, x:to "i32" } end,
    ["cat: item 2 is 3, expected a tensor"] = function() mn.cat { x, 3 } end,
    ["cat: axis 1 of item 2 is 5, expected 4 as in item 1"] = function() mn.cat { x, x:transpose(1, 2) } end,
    ["cat: item 2 has 1 axes, expected 3 as item 1"] = function() mn.cat { x, places { 3 } } end,
    ["cat: axis is 3, expected a whole number from -3 to 2"] = function() mn.cat({ x }, 3) end,
    ["cat: a tensor [3,4,5], expected a list of tensors"] = function() mn.cat(x) end,
    ["stack: item 2 is [4,5], expected [3,4,5] as item 1"] = function() mn.stack { x, x[1] } end,
    ["split: the sizes add up to 4, expected 3, the size of axis 0"] = function() x:split { 2, 2 } end,
    ["split: size 1 is 0, expected a whole number of at least 1"] = function() x:split { 0, 3 } end,
    ["split: size is nil, expected"] = function() x:split() end,
    ["chunk: n is 0"] = function() x:chunk(0) end,
    ["squeeze: axis is 3"] = function() x:squeeze(3) end,
    ["unsqueeze: axis is nil, expected a whole number from -4 to 3"] = function() x:unsqueeze() end,
    ["flatten: from is axis 2 and to axis 1, expected from <= to"] = function() x:flatten(2, 1) end,
    ["movedim: to is nil"] = function() x:movedim(0) end,
    ["masked_fill: value is nil, expected a number"] = function() x:masked_fill(index) end,
    ["slice: from 2 to 2 is empty, and no tensor is: it has at least one element"] = function() x:slice(0, 2, 2) end,
  } do t.raises(f, (words:gsub("%p", "%%%0"))) end
end)
