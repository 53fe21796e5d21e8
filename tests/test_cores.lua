-- test_cores.lua -- the contract of a memory, for every core found and for the corners of the gated linear
-- family: sequences and single steps are the same function, a reset is a fresh start, gradients are right,
-- copies and times do not mix, parameters survive a file.
local t = require "tests.harness"
local rig = require "tests.core_rig"
local find = require "mneme.find"
local mn = require "mneme"
local safetensors = require "mneme.safetensors"

local T, B = 19, 3                       -- recurrent ops take sixteen rows at once
local CLOSE = 2e-5                       -- float32, two layers

local function each(what, f)
  for _, case in ipairs(rig.cases()) do
    t.test(case.name .. ": " .. what, function() f(case.settings, rig.build(case.settings)) mn.sweep() end)
  end
end

local function input(c, steps, stream) return rig.normal({ steps or T, B, c.config.d_in }, stream or 1) end
local function close(got, want, what) t.near(rig.apart(got, want), 0, CLOSE, what) end
local function same(got, want, what) t.ok(rig.bytes(got) == rig.bytes(want), what .. ": other bits") end

local function states_close(c, got, want, what)
  for _, name in ipairs(c:state_names()) do close(got[name], want[name], what .. ", state " .. name) end
end

-- ---- cutting a sequence ----

local resets = { { 3, 0 }, { 9, 2 }, { 16 }, { 17, 1 }, { 18, 1 } }

each("a sequence is its single steps, is its parts", function(_, c)
  t.eq(c.claims.steps, "exact")
  local x, done, start = input(c), rig.done(T, B, resets), rig.warm(c, B)
  local y, after = rig.run(c, x, done, start)
  t.ok(rig.finite(y), "y is not finite")
  t.ok(rig.apart(y, rig.run(c, x, nil, start)) > 1e-3, "the resets change nothing")
  t.ok(rig.apart(y, rig.run(c, x, done)) > 1e-3, "the first state changes nothing")
  local function cut(pieces)
    local state, t0 = start, 0
    for _, t1 in ipairs(pieces) do
      local part, next_state = rig.run(c, rig.rows(x, t0, t1), rig.rows(done, t0, t1), state)
      close(part, rig.rows(y, t0, t1), ("rows %d to %d"):format(t0, t1))
      state, t0 = next_state, t1
    end
    states_close(c, state, after, "after the last row")
  end
  for at = 1, T - 1 do cut { at, T } end
  local single = {}
  for at = 1, T do single[at] = at end
  cut(single)
end)

each("a plan by rows is the sequence", function(_, c)
  local x = mn.sequence { shape = { T, B, c.config.d_in } }
  local done = mn.sequence { shape = { T, B }, dtype = "u8" }
  local start = rig.warm(c, B)
  local plan = mn.plan(function(...) return c(...) end)
  local y, after = plan(x, done, start)
  for round, step in ipairs { 1, 2, 7, 16, T } do
    x:copy(input(c, T, 10 + round))
    done:copy(rig.done(T, B, resets))
    local want, want_after = rig.run(c, x, done, start)
    for t0 = 0, T - 1, step do plan:rows(t0, math.min(T, t0 + step)) end
    close(y, want, ("by %d rows"):format(step))
    states_close(c, after, want_after, ("by %d rows"):format(step))
  end
end)

each("the state is what is declared, and as large after any number of steps", function(_, c)
  t.eq(c.claims.state, "constant")
  local _, few = rig.run(c, input(c, 1), nil, c:initial(B))
  local _, many = rig.run(c, input(c, 40), nil, c:initial(B))
  local floats = 0
  for name, tensor in pairs(few) do
    local shape = table.concat(c:state_shape(name, B), ",")
    t.eq(table.concat(tensor:shape(), ","), shape, name)
    t.eq(table.concat(many[name]:shape(), ","), shape, name)
    t.eq(table.concat(c:initial(B)[name]:shape(), ","), shape, name)
    floats = floats + tensor:size() / B
  end
  for name in pairs(c.states) do t.ok(few[name], "no " .. name .. " came out") end
  t.eq(c:describe().state_floats, floats)
end)

-- ---- resets ----

-- The state that a reset at time k must be like: a fresh one, but for the clocks where the claim says so.
local function fresh(c, start, k)
  local state = c:initial(B)
  if c.claims.reset == "up to tick" then
    for b = 0, B - 1 do state.tick:data()[b] = start.tick:data()[b] + k end
  else t.eq(c.claims.reset, "exact") end
  return state
end

each("after a reset everything is as at a fresh start", function(_, c)
  local x, start = input(c), rig.warm(c, B)
  for _, k in ipairs { 0, 1, 7, 16, 18 } do
    local y, after = rig.run(c, x, rig.done(T, B, { { k } }), start)
    local want, want_after = rig.run(c, rig.rows(x, k, T), nil, fresh(c, start, k))
    close(rig.rows(y, k, T), want, "reset at " .. k)
    states_close(c, after, want_after, "reset at " .. k)
  end
end)

each("a reset leaves nothing behind", function(_, c)
  local x, done, huge = input(c), rig.done(T, B, { { 0 } }), rig.warm(c, B)
  for name, s in pairs(huge) do if name ~= "tick" then s:fill(1e20) end end
  local y, after = rig.run(c, x, done, huge)
  local want, want_after = rig.run(c, x, done, fresh(c, huge, 0))
  same(y, want, "y")
  for _, name in ipairs(c:state_names()) do same(after[name], want_after[name], name) end
end)

each("reset=false ignores done", function(settings, c)
  if c.config.reset == nil then return end
  local deaf = rig.build(settings, 1, { reset = false })
  local x, start = input(c), rig.warm(c, B)
  local y, after = rig.run(deaf, x, rig.done(T, B, resets), start)
  local want, want_after = rig.run(c, x, nil, start)
  same(y, want, "y")
  for _, name in ipairs(c:state_names()) do same(after[name], want_after[name], name) end
end)

-- ---- copies and times ----

-- A tensor [T,B,...] or [B,...] with copy b's numbers changed.
local function change_copy(tensor, b, leading)
  local shape, out = tensor:shape(), mn.keep(tensor)
  local n, blocks = tensor:size(), 1
  for i = 1, leading do blocks = blocks * shape[i] end
  local each_copy = n / blocks / B
  for block = 0, blocks - 1 do
    for i = 0, each_copy - 1 do
      local at = (block * B + b) * each_copy + i
      out:data()[at] = out:data()[at] * 0.5 + 0.3
    end
  end
  return out
end

-- The numbers of every copy but b, as bytes.
local function others(tensor, b, leading)
  local shape, blocks, parts = tensor:shape(), 1, {}
  for i = 1, leading do blocks = blocks * shape[i] end
  local bytes = tensor:size() / blocks / B * 4
  for block = 0, blocks - 1 do
    for copy = 0, B - 1 do
      local all = rig.bytes(tensor)
      if copy ~= b then parts[#parts + 1] = all:sub((block * B + copy) * bytes + 1, (block * B + copy + 1) * bytes) end
    end
  end
  return table.concat(parts)
end

each("copies do not mix", function(_, c)
  local x, start = input(c), rig.warm(c, B)
  local y, after = rig.run(c, x, rig.done(T, B, resets), start)
  for b = 0, B - 1 do
    local other = {}
    for name, s in pairs(start) do other[name] = name == "tick" and s or change_copy(s, b, 0) end
    local more = { unpack(resets) }
    more[#more + 1] = { 5, b }
    local y2, after2 = rig.run(c, change_copy(x, b, 1), rig.done(T, B, more), other)
    t.ok(rig.bytes(y) ~= rig.bytes(y2))
    t.ok(others(y, b, 1) == others(y2, b, 1), "y of another copy changed with copy " .. b)
    for name in pairs(c.states) do
      t.ok(others(after[name], b, 0) == others(after2[name], b, 0), name .. " of another copy changed with copy " .. b)
    end
  end
end)

each("what comes later changes nothing before", function(_, c)
  local x, start = input(c), rig.warm(c, B)
  local y = rig.run(c, x, nil, start)
  for _, k in ipairs { 1, 8, 15, 16, 18 } do
    local later, other = mn.keep(x), input(c, T, 2)
    local row = B * c.config.d_in
    for i = k * row, T * row - 1 do later:data()[i] = other:data()[i] end
    local y2 = rig.run(c, later, rig.done(T, B, { { k, 1 } }), start)
    same(rig.rows(y2, 0, k), rig.rows(y, 0, k), "rows before " .. k)
    t.ok(rig.apart(rig.rows(y2, k, k + 1), rig.rows(y, k, k + 1)) > 1e-3, "row " .. k .. " does not change")
  end
end)

-- ---- gradients ----

-- A direction in the space of a tensor's numbers: one of them, or all with random signs, of length 1.
local function directions(p, stream)
  local n, noise = p:size(), rig.normal({ p:size() }, stream)
  local list, best = {}, 0
  for i = 0, n - 1 do if math.abs(p:grad_data()[i]) > math.abs(p:grad_data()[best]) then best = i end end
  for _, i in ipairs { best, (stream * 7919) % n } do list[#list + 1] = function(k) return k == i and 1 or 0 end end
  list[3] = function(k) return (noise:data()[k] > 0 and 1 or -1) / math.sqrt(n) end
  return list
end

-- Inputs, parameters and the initial state, in a fixed order.
local function leaves_of(c, x, start)
  local list, dict = { { "x", x } }, {}
  for name, p in pairs(c:state_dict()) do dict[name] = p end
  for name, s in pairs(start) do if name ~= "tick" then dict["state " .. name] = s end end
  for _, name in ipairs(find.keys(dict)) do list[#list + 1] = { name, dict[name] } end
  return list
end

each("gradients are those of difference quotients", function(_, c)
  local steps = 5
  local x, done = rig.normal({ steps, B, c.config.d_in }, 3, true), rig.done(steps, B, { { 2, 0 }, { 4, 1 } })
  local start = rig.warm(c, B, true)
  for _, p in ipairs(c:parameters()) do p:zero_grad() end
  rig.loss_tensor(c, c(x, done, start)):backward()
  mn.sweep()
  local tried, wrong, _, size = 0, 0, rig.loss(c, rig.run(c, x, done, start))
  for stream, named in ipairs(leaves_of(c, x, start)) do
    local name, leaf = named[1], named[2]
    local n, data, grad, kept = leaf:size(), leaf:data(), leaf:grad_data(), mn.keep(leaf)
    local rest, scale, mine = kept:data(), 1, 0
    for k = 0, n - 1 do scale = math.max(scale, math.abs(grad[k])) end
    for _, direction in ipairs(directions(leaf, stream)) do
      local slope = 0
      for k = 0, n - 1 do slope = slope + direction(k) * grad[k] end
      local ok, quotient = rig.agrees(function(h)
        for k = 0, n - 1 do data[k] = rest[k] + h * direction(k) end
        local loss = rig.loss(c, rig.run(c, x, done, start))
        for k = 0, n - 1 do data[k] = rest[k] end
        return loss
      end, slope, 3e-3 * scale, 1e-7 * size)
      tried, mine, wrong = tried + 1, mine + (ok and 0 or 1), wrong + (ok and 0 or 1)
      if mine > 1 then error(("%s: slope %.6g, by differences %.6g"):format(name, slope, quotient), 0) end
    end
    t.ok(kept)
  end
  t.ok(wrong <= 0.02 * tried, ("%d of %d slopes are wrong"):format(wrong, tried))   -- kinks on both sides
end)

local function all_zero(p, from, to)
  for i = from, to - 1 do if p[i] ~= 0 then return false end end
  return true
end

each("no gradient crosses a reset, or reaches another copy", function(_, c)
  local x, start, row, k, b = rig.normal({ T, B, c.config.d_in }, 3, true), rig.warm(c, B, true), B * c.config.d_in, 11, 1
  local function backward(done, from, copy)
    local w = mn.tensor { shape = { T, B, c.d_out } }
    for i = 0, w:size() - 1 do
      local inside = i >= from * B * c.d_out and (not copy or math.floor(i / c.d_out) % B == copy)
      w:data()[i] = inside and rig.weight(i) or 0
    end
    x:zero_grad()
    for _, s in pairs(start) do s:zero_grad() end
    local y = c(x, done, start)
    ;(y * w):sum():backward()
    mn.sweep()
    return x:grad_data()
  end
  local grad = backward(rig.done(T, B, { { k } }), k)
  t.ok(all_zero(grad, 0, k * row), "a gradient crossed the reset")
  t.ok(not all_zero(grad, k * row, T * row))
  for name, s in pairs(start) do t.ok(all_zero(s:grad_data(), 0, s:size()), name .. " has a gradient across the reset") end
  grad = backward(nil, k)
  t.ok(not all_zero(grad, 0, row), "without the reset there is one")
  grad = backward(nil, 0, b)
  for i = 0, T * row - 1 do
    if math.floor(i / c.config.d_in) % B ~= b then t.eq(grad[i], 0, "gradient of another copy") end
  end
end)

-- ---- files, probes, wrong calls ----

each("parameters survive a file; wrong ones change nothing", function(settings, c)
  local path, list = os.tmpname(), {}
  for name, p in pairs(c:state_dict()) do list[#list + 1] = { name, p } end
  safetensors.write(path, list)
  local other = rig.build(settings, 2)
  local x = input(c)
  local y, before = rig.run(c, x), rig.run(other, x)
  t.ok(rig.apart(y, before) > 1e-3)
  local dict = safetensors.load(path).tensors
  local name, p = next(dict)
  dict[name] = nil
  t.raises(function() other:load_state_dict(dict) end, "missing " .. name:gsub("%p", "%%%0"))
  dict[name] = mn.tensor { shape = { p:size() + 1 } }
  t.raises(function() other:load_state_dict(dict) end, "expected %[")
  dict[name], dict.more = p, p
  t.raises(function() other:load_state_dict(dict) end, "unexpected more")
  same(rig.run(other, x), before, "after refused loads")
  dict.more = nil
  other:load_state_dict(dict)
  same(rig.run(other, x), y, "after loading")
  os.remove(path)
end)

each("a probe sees every named thing, and what it gives back is used", function(_, c)
  local x, seen, first = input(c), {}, nil
  local y = rig.run(c, x)
  local probed = rig.run(c, x, nil, nil, function(name, p)
    t.ok(mn.is_tensor(p) and not seen[name], name)
    seen[name], first = true, first or name
    return p
  end)
  same(probed, y, "a probe that only looks")
  t.ok(first, "there is no probe")
  local forced = rig.run(c, x, nil, nil, function(name, p) return name == first and p * 0.5 or p end)
  t.ok(rig.apart(forced, y) > 1e-4, "replacing " .. first .. " changes nothing")
end)

each("wrong calls are errors that say so", function(_, c)
  local name, d = c.name, c.config.d_in
  t.raises(function() c(3) end, name .. ": x is 3, expected a tensor")
  t.raises(function() c(rig.normal({ T, B, d + 1 }, 1)) end, ("expected %%[T,B,%d%%]"):format(d))
  t.raises(function() c(rig.normal({ T, d }, 1)) end, "expected %[T,B,")
  t.raises(function() c(input(c), nil, c:initial(B + 1)) end, "expected " .. B)
  t.raises(function() c(input(c), rig.done(T, B + 1), c:initial(B)) end, "expected " .. B)
  t.raises(function() c(input(c), rig.normal({ T, B }, 1), c:initial(B)) end, "done is float32, expected uint8")
  local short, long = c:initial(B), c:initial(B)
  short[c:state_names()[1]] = nil
  t.raises(function() c(input(c), nil, short) end, "the state has no '")
  long.more = long[c:state_names()[1]]
  t.raises(function() c(input(c), nil, long) end, "unexpected 'more'")
end)
