-- test_tape.lua -- a tape that forgets by itself: what backward walked is freed, what a script holds stays as it is, memory of a long
-- loop does not grow, and gradients are those of a loop that clears its tape.
local t = require "tests.harness"
local mn = require "mneme"
local engine = require "mneme.base.engine"
local tensor = require "mneme.tensor.tensor"

local MILLION = 1e6

local function bytes(what) return engine.C.mn_bytes(engine.ctx, what) end

-- Enough computed numbers that those not held are collected.
local function fill_memory()
  local x = mn.tensor { shape = { 4 * MILLION } }
  for _ = 1, 8 do x:add(x) end
end

local function numbers(x) return table.concat(x:to_table(), " ") end

-- A small network, trained; each(loss, i) runs after each update.
local function train(iterations, each)
  mn.manual_seed(7)
  local one, two = mn.nn.linear(8, 16), mn.nn.linear(16, 1)
  local parameters = {}
  for _, layer in ipairs { one, two } do
    for _, p in ipairs(layer:parameters()) do parameters[#parameters + 1] = p end
  end
  local opt = mn.adam(parameters, { lr = 0.01 })
  local x = mn.tensor { { 1, 2, 3, 4, 5, 6, 7, 8 }, { 8, 7, 6, 5, 4, 3, 2, 1 } }
  for i = 1, iterations do
    local y = two(one(x):tanh())
    local loss = (y - 1):square():mean()
    loss:backward()
    opt:step()
    each(loss, i, y)
  end
  local result = {}
  for i, p in ipairs(parameters) do result[i] = numbers(p:reshape(-1)) end
  return table.concat(result, "\n")
end

t.test("tape: a loop without clear_tape trains the same bits as one with it, in memory that does not grow", function()
  mn.clear_tape()
  local cleared = train(300, function() mn.clear_tape() end)
  t.eq(train(300, function(_, i) if i % 100 == 0 then fill_memory() end end), cleared)
  mn.clear_tape()
  local marks = {}
  train(30000, function(_, i, y)
    local aside = (y * 2):mean()                       -- a graph whose backward is never called
    t.ok(aside:size() == 1)
    if i % 10000 == 0 then marks[#marks + 1] = bytes "arena" + bytes "resident" end
  end)
  t.ok(marks[3] < marks[2] + 16e6, ("%.0f, then %.0f bytes"):format(marks[2], marks[3]))
end)

t.test("tape: without clear_tape and without backward memory does not grow either, inside no_grad too", function()
  mn.clear_tape()
  local x = mn.tensor { shape = { MILLION / 4 } }
  local function loop() for _ = 1, 500 do x:add(x) end end
  loop()
  t.ok(bytes "arena" < 100e6, bytes "arena")
  mn.no_grad(function()
    loop()
    t.ok(bytes "arena" < 200e6, bytes "arena")
  end)
  mn.clear_tape()
end)

t.test("tape: what a script holds keeps its values through collections, views and graphs too", function()
  mn.clear_tape()
  local w = mn.tensor { data = { 1, 2, 3, 4 }, grad = true }
  local held, early = {}, w:mul(w)
  for i = 1, 50 do
    held[i] = (w * i):sum()
    if i % 10 == 0 then fill_memory() end
  end
  for i = 1, 50 do t.near(held[i]:item(), 10 * i, 1e-4) end
  local square = early:reshape(2, 2)
  fill_memory()
  early = square                                       -- no variable holds what it is a view of
  fill_memory()
  t.eq(numbers(early:reshape(-1)), "1 4 9 16")
  w:zero_grad()
  square:sum():backward()                              -- through an alias whose source no variable holds
  t.eq(numbers(w:grad()), "2 4 6 8")
  w:zero_grad()
  held[50]:backward()
  fill_memory()
  held[20]:backward()
  t.eq(numbers(w:grad()), "70 70 70 70")
  t.near(held[50]:item(), 500, 1e-4)
  mn.clear_tape()
end)

t.test("tape: a mask that has no gradient itself is there when a collected graph is walked", function()
  mn.clear_tape()
  local w = mn.tensor { data = { 1, 2, 3, 4 }, grad = true }
  local loss
  do
    local mask = mn.tensor { data = { 1, 0, 1, 0 }, dtype = "u8" }
    loss = mn.where(mask, w * 3, w * 5):sum()
  end
  for _ = 1, 3 do fill_memory() end
  loss:backward()
  t.eq(numbers(w:grad()), "3 5 3 5")
  mn.clear_tape()
end)

t.test("tape: backward frees what it walked and nothing else; retain = true keeps it", function()
  mn.clear_tape()
  local w = mn.tensor { data = { 2 }, grad = true }
  local both = w:square()
  local a, b = both:sum(), (w * 10):sum()
  a:backward { retain = true }
  a:backward()
  t.eq(w:grad():item(), 8)
  b:backward()
  t.eq(w:grad():item(), 18)
  t.eq(both:item(), 4)                                 -- numbers stay
  t.fails(function() a:backward() end)
  t.fails(function() (both * 2):sum():backward() end)
  w:zero_grad()
  ;(both:detach() * w):sum():backward()
  t.eq(w:grad():item(), 4)
  t.fails(function() b:backward { retian = true } end)
  t.fails(function() b:backward(true) end)
  mn.clear_tape()
end)

t.test("tape: truncated backpropagation with a detached state", function()
  mn.clear_tape()
  local w = mn.tensor { data = { 0.5 }, grad = true }
  local h = mn.tensor { 1 }
  for _ = 1, 5 do
    for _ = 1, 3 do h = h * w + 1 end
    h:sum():backward()
    h = h:detach()
  end
  t.near(h:item(), 2, 1e-3)
  t.near(w:grad():item(), 16.643, 1e-2)
  mn.clear_tape()
end)

t.test("tape: backward from a loss that was computed outside the recording plan is refused, and does the loss no harm", function()
  mn.clear_tape()
  local w = mn.tensor { data = { 3 }, grad = true }
  local loss = (w * w):sum()
  t.fails(function() mn.plan(function() loss:backward() return w * 1 end)() end)
  loss:backward()
  t.eq(w:grad():item(), 6)
  mn.clear_tape()
end)

t.test("tape: backward outside from a loss that a plan computed walks the plan's tape, every time", function()
  mn.clear_tape()
  local w = mn.tensor { data = { 3 }, grad = true }
  local plan = mn.plan(function(x) return (w * w * x):sum() end)
  for round = 1, 3 do
    plan(mn.tensor { round }):backward()
    t.eq(w:grad():item(), 6 * round)
    w:zero_grad()
  end
  local loss = plan(mn.tensor { 5 })
  local back = mn.plan(function() loss:backward() return w:sum() end)
  for round = 1, 3 do
    w:zero_grad()
    plan(mn.tensor { round })
    back()
    t.eq(w:grad():item(), 6 * round)
  end
  mn.clear_tape()
end)

t.test("tape: backward refuses a graph whose leaves changed in place after it was computed, and no other", function()
  mn.clear_tape()
  local REFUSED = "was changed in place after it was used here"
  local w, x = mn.tensor { data = { 3 }, grad = true }, mn.tensor { 2 }
  local function losses() return (w * w):sum(), (w * w * x):sum() end
  local one, two = losses()
  one:backward()                                       -- frees its own graph, not the other's
  w:copy(mn.tensor { 5 })
  t.raises(function() two:backward() end, REFUSED)
  local opts = { mn.sgd({ w }, { lr = 0.1 }), mn.adam({ w }, { lr = 0.1 }), mn.rmsprop({ w }, { lr = 0.1 }) }
  for _, opt in ipairs(opts) do
    one, two = losses()
    one:backward()
    opt:step()
    t.raises(function() two:backward() end, REFUSED)
    one, two = losses()                                -- both before the step
    opt:zero_grad()
    one:backward()
    two:backward()
    t.near(w:grad():item(), 6 * w:item(), 1e-4)
    opt:step()
  end
  local base = mn.tensor { data = { 1, 2 } }
  local window = tensor.view(base, 0, { 1 })
  local loss = (w * window):sum()
  base:copy(mn.tensor { 7, 8 })
  t.raises(function() loss:backward() end, REFUSED)
  loss = (w * base):sum()
  window:copy(mn.tensor { 9 })
  t.raises(function() loss:backward() end, REFUSED)
  mn.clear_tape()
end)

t.test("tape: a change that a plan replays counts, and graphs that nobody walks do not stand in its way", function()
  mn.clear_tape()
  local w = mn.tensor { data = { 3 }, grad = true }
  local opt = mn.sgd({ w }, { lr = 0.5 })
  local update = mn.plan(function(x)
    opt:zero_grad()
    local loss = (w * w * x):sum()
    loss:backward()
    opt:step()
    return loss
  end)
  local before = w:item()
  for round = 1, 4 do                                  -- the first records; each changes w
    local loss = (w * w):sum()
    update(mn.tensor { 0.5 })
    t.ok(w:item() ~= before, "round " .. round)
    before = w:item()
    t.fails(function() loss:backward() end)
  end
  mn.clear_tape()
end)

t.test("tape: what backward adds up and copies belongs to the place of the op that it is for", function()
  mn.clear_tape()
  local w = mn.tensor { data = { 3, 4 }, grad = true }
  local function at(place) engine.C.mn_set_place(engine.ctx, place) end
  local plan = mn.plan(function(x)
    at(1)
    local y = w * x
    y:retain_grad()
    at(2)
    local z = y:tanh() + y:square()
    at(3)
    local loss = z:sum()
    at(4)
    loss:backward()
    at(5)
    return loss + 1
  end)
  plan(mn.tensor { 1, 2 })
  at(0)
  local seen = {}
  for _, call in ipairs(plan:costs()) do
    t.ok(call.place > 0, call.name .. " has no place")
    seen[call.name] = (seen[call.name] or "") .. call.place
  end
  t.eq(seen["mul backward"], "1")
  t.eq(seen["adding gradients"], "21")              -- of y, then of the leaf, which the plan did not empty
  t.eq(seen["a copy"], "1")
  t.eq(seen["sum backward"], "3")
  t.eq(seen["add forward"], "2")
  mn.clear_tape()
end)

t.test("tape: a warning, once, names the line where a script holds a gigabyte", function()
  local shell = require "tests.support.shell"
  local folder = shell.folder()
  local path = folder .. "/hold.lua"
  local f = assert(io.open(path, "w"))
  f:write 'local mn = require "mneme"\nlocal x, held = mn.tensor { shape = { 1e6 } }, {}\nfor i = 1, 600 do\n  held[i] = x:add(x)\nend\nprint "done"\n'
  f:close()
  local said = shell.mneme(folder, "run " .. path)
  local _, warnings = said:gsub("warning: [^\n]*hold.lua:4: %d+%.%d GB of computed tensors are kept", "")
  t.eq(warnings, 1, said)
  t.ok(said:find("done", 1, true), said)
  os.execute("rm -r '" .. folder .. "'")
end)

t.test("what no_grad returns in tables lasts: nested, shared, and in circles; leaves and graphs around it stay themselves", function()
  local w = mn.ones(3, { grad = true })
  local around = w * 5
  local function f()
    local shared = w * 2
    local all = { shared, { deep = { w * 3, same = shared } }, leaf = w, around = around, text = "a", f = print }
    all.itself = all
    return all, setmetatable({ x = w * 4 }, { __index = {} }), w * 6
  end
  local all, object, x = mn.no_grad(f)
  mn.no_grad(f)                                      -- which computes where these were
  mn.clear_tape()
  t.eq(all[1]:sum():item(), 6) t.eq(all[2].deep[1]:sum():item(), 9) t.eq(all[2].deep.same:sum():item(), 6)
  t.eq(object.x:sum():item(), 12) t.eq(x:sum():item(), 18)
  t.eq(all.itself, all) t.eq(all.leaf, w) t.eq(all.text, "a")
  local y = w * 5
  local kept = mn.no_grad(function() return { y } end)
  kept[1]:sum():backward()
  t.eq(w:grad():sum():item(), 15, "a graph around no_grad stays")
end)

t.test("a second list is refused, not taken for the first; a second derivative says that there is none", function()
  t.fails(function() mn.tensor({ 1, 2 }, { 3, 4 }) end)
  t.fails(function() mn.tensor({ 1 }, {}, { 2 }) end)
  t.fails(function() mn.sequence({ 1, 2 }, { 3, 4 }) end)
  for name, call in pairs {
    full = function() mn.full({ 2 }, 1, { 3, 4 }) end, zeros = function() mn.zeros({ 2 }, { 3 }) end,
    zeros_like = function() mn.zeros_like(mn.ones(2), { 3 }) end,
    cat = function() mn.cat({ mn.ones(2) }, { mn.ones(2) }) end, stack = function() mn.stack({ mn.ones(2) }, { mn.ones(2) }) end,
    adam = function() mn.adam({ mn.ones(2, { grad = true }) }, { mn.ones(2, { grad = true }) }) end,
    sequential = function() mn.nn.sequential({ mn.nn.tanh() }, { mn.nn.tanh() }) end,
  } do t.ok(not pcall(call), name .. " takes a second list") end
  t.eq(mn.tensor({ 1, 2 }, { dtype = "i32" }):dtype(), "i32")
  local w = mn.ones(2, { grad = true })
  local g = mn.grad((w * w * w):sum(), w)
  t.fails(function() mn.grad(g:sum(), w) end)
  t.fails(function() g:sum():backward() end)
  t.raises(function() mn.custom_gradient { forward = function(a) return a, a end, backward = function(d) return d end }(w) end, "several values")
end)
