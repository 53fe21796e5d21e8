-- contract.lua -- the contract of a core, as properties that hold for every core within its claims: sequences
-- and single steps compute the same function, a reset gives the initial state, gradients are right, environments and times
-- do not mix, parameters survive a file.  The tests check every core; `mneme check core=FILE.lua` checks a user's.
local ffi = require "ffi"
local costs = require "mneme.models.costs"
local expect = require "mneme.models.expect"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local plans = require "mneme.tensor.plan"
local contract_rig = require "mneme.models.contract_rig"
local safetensors = require "mneme.tensor.safetensors"
local state_arrays = require "mneme.models.state_arrays"
local tensors = require "mneme.tensor.tensor"

local contract = {}

local T, B = 19, 3                       -- recurrent ops take sixteen rows at once
local CLOSE = 2e-5                       -- float32, two layers

-- A property: f(settings, core) raises an error where it does not hold.
local function each(what, f)
  contract[#contract + 1] = { name = what, holds = function(settings) f(settings, contract_rig.build(settings)) tensors.clear_tape() end }
end

local function input(c, steps, stream) return contract_rig.normal({ steps or T, B, c.config.d_in }, stream or 1) end
local function close(got, want, what) expect.near(contract_rig.apart(got, want), 0, CLOSE, what) end
local function same(got, want, what) expect.ok(contract_rig.bytes(got) == contract_rig.bytes(want), what .. ": other bits") end

local function states_close(c, got, want, what)
  got, want = contract_rig.visible(c, got), contract_rig.visible(c, want)
  for _, name in ipairs(c:state_names()) do close(got[name], want[name], what .. ", state " .. name) end
end

-- ---- cutting a sequence ----

local anywhere = { { 3, 0 }, { 9, 2 }, { 16 }, { 17, 1 }, { 18, 1 } }

-- May a sequence be cut, and begin again, at a time?  By what the core claims.
local function may_cut(c, t)
  return c.claims.steps ~= "between segment ends" or t % c.config.segment == 0
end

-- Resets of some environments; where segments end, of all environments at once.
local function resets(c)
  return c.claims.steps ~= "between segment ends" and anywhere or { { 2 * c.config.segment } }
end

local function remembers(c) return next(c.states) ~= nil end

each("a sequence equals its single steps and its parts", function(_, c)
  local x, done, start = input(c), contract_rig.done(T, B, resets(c)), contract_rig.warm(c, B)
  local y, after = contract_rig.run(c, x, done, start)
  expect.ok(contract_rig.finite(y), "y is not finite")
  if remembers(c) then
    expect.ok(contract_rig.apart(y, contract_rig.run(c, x, nil, start)) > 20 * CLOSE, "the resets change nothing")
    expect.ok(contract_rig.apart(y, contract_rig.run(c, x, done)) > 20 * CLOSE, "the first state changes nothing")
  end
  local function cut(pieces)
    local state, t0 = start, 0
    for _, t1 in ipairs(pieces) do
      local part, next_state = contract_rig.run(c, contract_rig.rows(x, t0, t1), contract_rig.rows(done, t0, t1), state)
      close(part, contract_rig.rows(y, t0, t1), ("rows %d to %d"):format(t0, t1))
      state, t0 = next_state, t1
    end
    states_close(c, state, after, "after the last row")
  end
  local most = {}
  for at = 1, T - 1 do
    if may_cut(c, at) then
      cut { at, T }
      most[#most + 1] = at
    end
  end
  most[#most + 1] = T
  cut(most)
end)

each("a plan run row by row equals the sequence", function(_, c)
  local x = tensors.sequence { shape = { T, B, c.config.d_in } }
  local done = tensors.sequence { shape = { T, B }, dtype = "u8" }
  local start = contract_rig.warm(c, B)
  local plan = plans(function(...) return c(...) end)
  plan.by_rows = true                    -- so that the rows alone compute what is compared
  local y, after = plan(x, done, start)
  for round, step in ipairs { 1, 2, 7, 16, T } do
    x:copy(input(c, T, 10 + round))
    done:copy(contract_rig.done(T, B, resets(c)))
    local want, want_after = contract_rig.run(c, x, done, start)
    for t0 = 0, T - 1, step do plan:rows(t0, math.min(T, t0 + step)) end
    close(y, want, ("by %d rows"):format(step))
    states_close(c, after, want_after, ("by %d rows"):format(step))
  end
end)

-- ---- acting ----

local SHORT = { memory = 3 }             -- a memory that is full after a few steps

-- Calls of one step that carry the state: y of all of them, and the last state.
local function by_single_calls(c, x, done, state)
  local steps = x:shape()[1]
  local y = tensors.new { shape = { steps, B, c.d_out } }
  for at = 0, steps - 1 do
    local row, after = contract_rig.run(c, contract_rig.rows(x, at, at + 1), done and contract_rig.rows(done, at, at + 1), state)
    ffi.copy(y:data() + at * row:size(), row:data(), 4 * row:size())
    state = after
  end
  return y, state
end

each("acting equals single calls that carry the state, in rows and as a whole", function(settings)
  local c = contract_rig.build(settings, 1, SHORT)
  local x, done = tensors.sequence { shape = { T, B, c.config.d_in } }, tensors.sequence { shape = { T, B }, dtype = "u8" }
  x:copy(input(c))
  done:copy(contract_rig.done(T, B, anywhere))
  local start = contract_rig.warm(c, B)
  local steps = c.acts == "steps" or c.claims.steps == "exact"             -- else it acts as a sequence
  local want, want_after = (steps and by_single_calls or contract_rig.run)(c, x, done, start)
  local plan = plans(function(...) return c:act(...) end)
  local y, after = plan(x, done, start)
  for _, step in ipairs { T, 1, 7 } do
    for t0 = 0, T - 1, step do plan:rows(t0, math.min(T, t0 + step)) end
    close(y, want, ("by %d rows"):format(step))
    states_close(c, after, want_after, ("by %d rows"):format(step))
  end
  if c.acts == "steps" then expect.ok(contract_rig.apart(contract_rig.run(c, x, done, start), want) > 20 * CLOSE,
    "acts = \"steps\", but a sequence is its steps") end
end)

-- Inputs of other values in rows t0 .. t1-1.
local function changed(c, x, t0, t1)
  local other, row = tensors.keep(x), B * c.config.d_in
  ffi.copy(other:data() + t0 * row, input(c, x:shape()[1], 2):data() + t0 * row, 4 * (t1 - t0) * row)
  return other
end

each("a step of acting looks back as far as the core says", function(settings)
  local c = contract_rig.build(settings, 1, SHORT)
  local back = c:reach()
  if not back then                       -- by gradients, since what fades is lost in the digits of a sum
    local x, seen = contract_rig.normal({ T, B, c.config.d_in }, 1, true), false
    c:act(x):slice(0, T - 1, T):sum():backward()
    for i = 0, B * c.config.d_in - 1 do seen = seen or x:grad_data()[i] ~= 0 end
    tensors.clear_tape()
    return expect.ok(seen, ("the first of %d steps changes nothing in the last: looks_back is missing"):format(T))
  end
  local n = 2 * (back + 1)
  local last, x = n - 1, input(c, n)
  local function y_of(inputs) return contract_rig.rows(by_single_calls(c, inputs), last, n) end
  local y = y_of(x)
  same(y_of(changed(c, x, 0, last - back)), y, ("the last step, with other inputs more than %d steps before"):format(back))
  expect.ok(contract_rig.bytes(y_of(changed(c, x, last - back, last - back + 1))) ~= contract_rig.bytes(y),
    ("the input %d steps before changes nothing"):format(back))
end)

each("the state is as declared, and of the same size after any number of steps", function(_, c)
  local _, few = contract_rig.run(c, input(c, 1), nil, c:initial(B))
  local _, many = contract_rig.run(c, input(c, 40), nil, c:initial(B))
  local floats = 0
  for name, tensor in pairs(few) do
    local shape = table.concat(c:state_shape(name, B), ",")
    expect.eq(table.concat(tensor:shape(), ","), shape, name)
    expect.eq(table.concat(many[name]:shape(), ","), shape, name)
    expect.eq(table.concat(c:initial(B)[name]:shape(), ","), shape, name)
    floats = floats + tensor:size() / B
  end
  for name in pairs(c.states) do expect.ok(few[name], "no " .. name .. " came out") end
  expect.eq(c:describe().state_floats, floats)
end)

-- ---- what it says of itself ----

each("a step's multiply-adds are as many as `complexity` says", function(settings)
  local c, steps = contract_rig.build(settings), 6
  local start, x, after = contract_rig.warm(c, 1), contract_rig.normal({ 1, 1, c.config.d_in }, 60), nil
  local most = costs.counted(function() after = select(2, contract_rig.run(c, x, nil, start)) end)
  local copied, least = {}, 0                    -- what is moved costs nothing
  local function moved(from) for i = 0, from:size() - 1 do copied[from:data()[i]] = true end end
  moved(x)
  for _, s in pairs(start) do moved(s) end
  for name, s in pairs(after) do
    for i = 0, c:is_constant(name) and -1 or s:size() - 1 do if not copied[s:data()[i]] then least = least + 1 end end
  end
  local formula = c:step_formula()
  local declared = c:evaluate(formula, steps + 1)
  local said = ("complexity: step = %s = %g multiply-adds, measured: "):format(formula, declared)
  expect.ok(declared >= least, said .. ("a step computes %d values of the state"):format(least))
  expect.ok(c.decomposes or declared <= 2 * most, said .. ("at most %d in all of a step's ops"):format(most))
end)

-- ---- resets ----

-- The state that a reset at time k must be like: a fresh one, but for the clocks where the claim says so.
local function fresh(c, start, k)
  local state = c:initial(B)
  if c.claims.reset == "up to tick" then
    for b = 0, B - 1 do state.tick:data()[b] = start.tick:data()[b] + k end
  end
  return state
end

each("a reset equals a fresh start", function(_, c)
  local x, start = input(c), contract_rig.warm(c, B)
  for _, k in ipairs { 0, 1, 7, 16, 18 } do
    if not may_cut(c, k) then k = 2 * c.config.segment end
    local y, after = contract_rig.run(c, x, contract_rig.done(T, B, { { k } }), start)
    local want, want_after = contract_rig.run(c, contract_rig.rows(x, k, T), nil, fresh(c, start, k))
    close(contract_rig.rows(y, k, T), want, "reset at " .. k)
    states_close(c, after, want_after, "reset at " .. k)
  end
end)

each("a reset leaves nothing behind", function(_, c)
  local x, done, huge = input(c), contract_rig.done(T, B, { { 0 } }), contract_rig.warm(c, B)
  for name, s in pairs(huge) do if not c:is_constant(name) then s:fill(1e20) end end
  local y, after = contract_rig.run(c, x, done, huge)
  local want, want_after = contract_rig.run(c, x, done, fresh(c, huge, 0))
  same(y, want, "y")
  after, want_after = contract_rig.visible(c, after), contract_rig.visible(c, want_after)
  for _, name in ipairs(c:state_names()) do same(after[name], want_after[name], name) end
end)

each("reset=false ignores done", function(settings, c)
  if c.config.reset == nil then return end
  local deaf = contract_rig.build(settings, 1, { reset = false })
  local x, start = input(c), contract_rig.warm(c, B)
  local y, after = contract_rig.run(deaf, x, contract_rig.done(T, B, resets(c)), start)
  local want, want_after = contract_rig.run(c, x, nil, start)
  same(y, want, "y")
  for _, name in ipairs(c:state_names()) do same(after[name], want_after[name], name) end
end)

-- ---- environments and times ----

-- A tensor with environment b's numbers changed.
local function change_env(tensor, b, axis)
  local out, blocks, inner = tensors.keep(tensor), state_arrays.around(tensor:shape(), axis)
  local p = out:data()
  for block = 0, blocks - 1 do
    for i = 0, inner - 1 do
      local at = (block * B + b) * inner + i
      p[at] = p[at] * 0.5 + 0.3
    end
  end
  return out
end

-- The numbers of every environment but b, as bytes.
local function others(tensor, b, axis)
  local blocks, inner = state_arrays.around(tensor:shape(), axis)
  local all, parts, bytes = contract_rig.bytes(tensor), {}, inner * 4
  for block = 0, blocks - 1 do
    for env = 0, B - 1 do
      local at = (block * B + env) * bytes
      if env ~= b then parts[#parts + 1] = all:sub(at + 1, at + bytes) end
    end
  end
  return table.concat(parts)
end

each("environments do not mix", function(_, c)
  local x, start = input(c), contract_rig.warm(c, B)
  local y, after = contract_rig.run(c, x, contract_rig.done(T, B, resets(c)), start)
  for b = 0, B - 1 do
    local other = tables.each(start, function(s, name) return c:is_constant(name) and s or change_env(s, b, c:batch_axis(name)) end)
    local more = { unpack(resets(c)) }
    more[#more + 1] = { 5, b }
    local y2, after2 = contract_rig.run(c, change_env(x, b, 2), contract_rig.done(T, B, more), other)
    expect.ok(contract_rig.bytes(y) ~= contract_rig.bytes(y2))
    expect.ok(others(y, b, 2) == others(y2, b, 2), "y of another environment changed with environment " .. b)
    for name in pairs(c.states) do
      local axis = c:batch_axis(name)
      expect.ok(others(after[name], b, axis) == others(after2[name], b, axis), name .. " of another environment changed with environment " .. b)
    end
  end
end)

each("later inputs do not change earlier outputs", function(_, c)
  local x, start = input(c), contract_rig.warm(c, B)
  local y = contract_rig.run(c, x, nil, start)
  for _, k in ipairs { 1, 8, 15, 16, 18 } do
    local later, other = tensors.keep(x), input(c, T, 2)
    local row = B * c.config.d_in
    for i = k * row, T * row - 1 do later:data()[i] = other:data()[i] end
    local y2 = contract_rig.run(c, later, contract_rig.done(T, B, { { k, 1 } }), start)
    same(contract_rig.rows(y2, 0, k), contract_rig.rows(y, 0, k), "rows before " .. k)
    expect.ok(contract_rig.apart(contract_rig.rows(y2, k, k + 1), contract_rig.rows(y, k, k + 1)) > 1e-3, "row " .. k .. " does not change")
  end
end)

-- ---- gradients ----

-- A direction in the space of a tensor's numbers: one of them, or all with random signs, of length 1.
local function directions(p, stream)
  local n, noise = p:size(), contract_rig.normal({ p:size() }, stream)
  local list, best = {}, 0
  for i = 0, n - 1 do if math.abs(p:grad_data()[i]) > math.abs(p:grad_data()[best]) then best = i end end
  for _, i in ipairs { best, (stream * 7919) % n } do list[#list + 1] = function(k) return k == i and 1 or 0 end end
  list[3] = function(k) return (noise:data()[k] > 0 and 1 or -1) / math.sqrt(n) end
  return list
end

-- Inputs, parameters and the initial state, in a fixed order.
local function leaves_of(c, x, start)
  local list, dict = { { "x", x } }, {}
  for name, p in pairs(c:named_parameters()) do dict[name] = p end
  for name, s in pairs(start) do if not c:is_constant(name) then dict["state " .. name] = s end end
  for _, name in ipairs(tables.keys(dict)) do list[#list + 1] = { name, dict[name] } end
  return list
end

each("gradients equal difference quotients", function(_, c)
  if c.claims.gradients ~= "exact" then return end
  local steps = 5
  local x, done = contract_rig.normal({ steps, B, c.config.d_in }, 3, true), contract_rig.done(steps, B, { { 2, 0 }, { 4, 1 } })
  local start = contract_rig.warm(c, B, true)
  for _, p in ipairs(c:parameters()) do p:zero_grad() end
  contract_rig.loss_tensor(c, c(x, done, start)):backward()
  tensors.clear_tape()
  local tried, wrong, _, size = 0, 0, contract_rig.loss(c, contract_rig.run(c, x, done, start))
  for stream, named in ipairs(leaves_of(c, x, start)) do
    local name, leaf = named[1], named[2]
    local n, data, grad, kept = leaf:size(), leaf:data(), leaf:grad_data(), tensors.keep(leaf)
    local rest, scale, mine = kept:data(), 1, 0
    for k = 0, n - 1 do scale = math.max(scale, math.abs(grad[k])) end
    for _, direction in ipairs(directions(leaf, stream)) do
      local slope = 0
      for k = 0, n - 1 do slope = slope + direction(k) * grad[k] end
      local ok, quotient = contract_rig.agrees(function(h)
        for k = 0, n - 1 do data[k] = rest[k] + h * direction(k) end
        local loss = contract_rig.loss(c, contract_rig.run(c, x, done, start))
        for k = 0, n - 1 do data[k] = rest[k] end
        return loss
      end, slope, 3e-3 * scale, 1e-7 * size)
      tried, mine, wrong = tried + 1, mine + (ok and 0 or 1), wrong + (ok and 0 or 1)
      if mine > 1 then error(("%s: slope %.6g, by differences %.6g"):format(name, slope, quotient), 0) end
    end
    expect.ok(kept)
  end
  expect.ok(wrong <= 0.02 * tried, ("%d of %d slopes are wrong"):format(wrong, tried))   -- kinks on both sides
end)

local function all_zero(p, from, to)
  for i = from, to - 1 do if p[i] ~= 0 then return false end end
  return true
end

each("no gradient crosses a reset, or reaches another environment", function(_, c)
  local x, start, row, k, b = contract_rig.normal({ T, B, c.config.d_in }, 3, true), contract_rig.warm(c, B, true), B * c.config.d_in, 11, 1
  local function backward(done, from, env)
    local w = tensors.new { shape = { T, B, c.d_out } }
    for i = 0, w:size() - 1 do
      local inside = i >= from * B * c.d_out and (not env or math.floor(i / c.d_out) % B == env)
      w:data()[i] = inside and contract_rig.weight(i) or 0
    end
    x:zero_grad()
    for name, s in pairs(start) do if not c:is_constant(name) then s:zero_grad() end end
    local y = c(x, done, start)
    ;(y * w):sum():backward()
    tensors.clear_tape()
    return x:grad_data()
  end
  local grad = backward(contract_rig.done(T, B, { { k } }), k)
  expect.ok(all_zero(grad, 0, k * row), "a gradient crossed the reset")
  expect.ok(not all_zero(grad, k * row, T * row))
  for name, s in pairs(start) do
    if not c:is_constant(name) then
      expect.ok(all_zero(s:grad_data(), 0, s:size()), name .. " has a gradient across the reset")
    end
  end
  if remembers(c) then
    grad = backward(nil, k)
    expect.ok(not all_zero(grad, (k - 1) * row, k * row), "no gradient flows without the reset")
  end
  grad = backward(nil, 0, b)
  for i = 0, T * row - 1 do
    if math.floor(i / c.config.d_in) % B ~= b then expect.eq(grad[i], 0, "gradient of another environment") end
  end
end)

-- ---- files, probes, wrong calls ----

each("parameters survive saving and loading; wrong files change nothing", function(settings, c)
  local list = {}
  for name, p in pairs(c:state_dict()) do list[#list + 1] = { name, p } end
  local other = contract_rig.build(settings, 2)
  local x = input(c)
  local y, before = contract_rig.run(c, x), contract_rig.run(other, x)
  expect.ok(contract_rig.apart(y, before) > 1e-3)
  local dict = files.temporary(function(path)
    safetensors.write(path, list)
    return safetensors.load(path).tensors
  end)
  local name, p = next(dict)
  dict[name] = nil
  expect.raises(function() other:load_state_dict(dict) end, "missing " .. name:gsub("%p", "%%%0"))
  dict[name] = tensors.new { shape = { p:size() + 1 } }
  expect.raises(function() other:load_state_dict(dict) end, "expected %[")
  dict[name], dict.more = p, p
  expect.raises(function() other:load_state_dict(dict) end, "unexpected more")
  same(contract_rig.run(other, x), before, "after refused loads")
  dict.more = nil
  other:load_state_dict(dict)
  same(contract_rig.run(other, x), y, "after loading")
end)

local gates = tables.set(state_arrays.gates)

each("a probe gets every named value, and its result is used", function(_, c)
  local x, seen, first, shapes = input(c), {}, nil, {}
  local y = contract_rig.run(c, x)
  local probed = contract_rig.run(c, x, nil, nil, function(name, p)
    expect.ok(tensors.is(p) and not seen[name], name)
    seen[name], first, shapes[name] = true, first or name, p:shape()
    return p
  end)
  same(probed, y, "a probe that only looks")
  expect.ok(first, "there is no probe")
  for name, shape in pairs(shapes) do
    local _, kind = state_arrays.parse(name)
    expect.ok(not gates[kind] or (shape[1] == x:shape()[1] or shape[1] == 1) and shape[2] == x:shape()[2],
      ("gate %s is [%s], expected [T,B,...]: a gate is [T,B,H] or [T,B,H,n] of heads, else [T,B,n]"):format(name, table.concat(shape, ",")))
  end
  local forced = contract_rig.run(c, x, nil, nil, function(name, p) return name == first and p * 0.5 or p end)
  expect.ok(contract_rig.apart(forced, y) > 1e-4, "replacing " .. first .. " changes nothing")
end)

each("wrong calls raise errors that name the mistake", function(_, c)
  local name, d = c.name, c.config.d_in
  expect.raises(function() c(3) end, name .. ": x is 3, expected a tensor")
  expect.raises(function() c(contract_rig.normal({ T, B, d + 1 }, 1)) end, ("expected %%[T,B,%d%%]"):format(d))
  expect.raises(function() c(contract_rig.normal({ T, d }, 1)) end, "expected %[T,B,")
  if remembers(c) then expect.raises(function() c(input(c), nil, c:initial(B + 1)) end, "state .* expected %[") end
  expect.raises(function() c(input(c), contract_rig.done(T, B + 1), c:initial(B)) end, ("expected %%[%d,%d%%]"):format(T, B))
  expect.raises(function() c(input(c), contract_rig.normal({ T, B }, 1), c:initial(B)) end, "done is float32, expected uint8")
  local short, long = c:initial(B), c:initial(B)
  if remembers(c) then
    short[c:state_names()[1]] = nil
    expect.raises(function() c(input(c), nil, short) end, "the state has no '")
  end
  long.more = input(c)
  expect.raises(function() c(input(c), nil, long) end, "unexpected 'more'")
end)

---Every property of the contract: { name, holds = function(settings) }, which raises an error where it does not.
---@type { name: string, holds: fun(settings: table) }[]
return contract
