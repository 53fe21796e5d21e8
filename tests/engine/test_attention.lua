-- test_attention.lua -- the recurrent attention ops against their recurrence, in double precision.
-- Outputs and final states are compared with it, gradients (through the final states too) with its
-- difference quotients, after whole runs and after runs row by row.  That states hand on, that a reset is a fresh start, and that
-- phases stay exact is tested of the cores that are made of them (models/contract.lua, models/test_core_values.lua).
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local plan = require "mneme.tensor.plan"
local gated_recurrence = require "tests.support.gated_recurrence"
local ops = mn.ops

-- ---- cases ----

local function zeros(n) return ffi.new("double[?]", n) end

local seed
local function random() seed = (seed * 16807) % 2147483647 return seed / 2147483647 end
local function between(lo, hi) return function() return lo + (hi - lo) * random() end end

-- Gates that are anything: nothing, everything, almost nothing, a denormal, almost everything.
local hard = { 0, 1, 1e-6, 1e-40, 1 - 2 ^ -24, 0.4 }
local function any_gate() return hard[1 + math.floor(random() * #hard)] end

-- The channels of a form: which are stored, with what sign.
local function channels(form, r)
  local index, count = ({ code = 0, paper = 1, cossin = 2 })[form], ffi.new "int[1]"
  local M = engine.C.mn_agalite_channels(engine.ctx, index, r, count, nil, nil)
  t.ok(M >= 1, "mn_agalite_channels failed")
  local stored, sign = ffi.new("int[?]", count[0]), ffi.new("int[?]", count[0])
  engine.C.mn_agalite_channels(engine.ctx, index, r, nil, stored, sign)
  local a, b = {}, {}
  for i = 0, count[0] - 1 do a[i + 1], b[i + 1] = stored[i], sign[i] end
  return M, a, b
end

local function lists(list, name)
  for _, x in ipairs(list) do if x == name then return true end end
end

-- Inputs of a case, as { shape, at = doubles that are exact floats }.  Features are positive, so that s.q is.
local function make(case)
  seed = 1234
  for key, value in pairs { B = 2, H = 2, E = 1, eps = 0.3, clamp = 0, normalise = true, form = "code", r = 2 } do
    if case[key] == nil then case[key] = value end
  end
  case.K = case.D * case.E
  local T, B, H, V, K, D, E = case.T, case.B, case.H, case.V, case.K, case.D, case.E
  local x, feature, gate = {}, between(0.1, 1.5), case.hard and any_gate or between(0.05, 0.95)
  local function put(name, f, ...)
    local input = { shape = { ... } }
    local n = 1
    for _, size in ipairs(input.shape) do n = n * size end
    input.n, input.at = n, zeros(n)
    local float = ffi.new "float[1]"
    for i = 0, n - 1 do
      float[0] = f()
      input.at[i] = float[0]
    end
    x[name] = input
  end
  put("q", feature, T, B, H, D)
  put("k", feature, T, B, H, D)
  put("v", between(-1, 1), T, B, H, V)
  if E > 1 then put("p_q", feature, T, B, H, E) put("p_k", feature, T, B, H, E) end
  if case.gate == "outer" or case.gate == "value" then put("beta", gate, T, B, H, V) end
  if case.gate == "scalar" then case.scalar = true put("beta", gate, T, B, H, 1) end
  if case.gate == "outer" and E > 1 then put("gamma", gate, T, B, H, D) put("p_gamma", gate, T, B, H, E)
  elseif case.gate == "outer" or case.gate == "key" then put("gamma", gate, T, B, H, K) end
  if case.gate == "elementwise" then put("beta", gate, T, B, H, V) put("gamma", gate, T, B, H, K) end
  for _, name in ipairs(case.apart or {}) do       -- "write_k", "write_k:1" one value per head, "p_write_k"
    local of, one = name:match "^([%w_]+)(:?)"
    local n = one ~= "" and 1 or of == "p_write_k" and E or of:find "_v$" and V or of == "gamma" and K or of == "beta" and V
      or of == "write_k" and lists(case.apart, "p_write_k") and D or K
    put(of, of:find "^write" and case.loud and between(-2, 2) or gate, T, B, H, n)
  end
  if case.done then put("done", function() return random() < case.done and 1 or 0 end, T, B) end
  if case.op == "agalite" then
    case.M, case.stored, case.sign = channels(case.form, case.r)
    if case.all then               -- every channel is stored, and mirrored ones start apart
      case.M = #case.stored
      for i = 1, case.M do case.stored[i], case.sign[i] = i - 1, 1 end
    end
    put("tick", function() return math.floor(random() * 30) end, B)
    if case.state then put("vs", between(-1, 1), B, case.M, H, V) put("ks", feature, B, case.M, H, K) end
  elseif case.state then put("C", between(-1, 1), B, H, V, K) end
  if case.state then put("s", feature, B, H, K) end
  return x
end

local outputs = { agalite = { "y", "vs", "ks", "s", "tick" } }
local function names(case) return outputs[case.op] or { "y", "C", "s" } end

-- The op's call on leaves made from x, inside a plan so that it can run by rows.
local function call(case, x)
  local args, leaves = { eps = case.eps, den_clamp = case.clamp, normalise = case.normalise }, {}
  if case.op == "agalite" then
    args.form, args.r, args.stored = case.form, case.r, case.all and "all" or "distinct"
  end
  for name, input in pairs(x) do
    local leaf = mn.tensor { shape = input.shape, grad = name ~= "done" and name ~= "tick",
                             dtype = name == "done" and "u8" or "f32", time = input.shape[1] == case.T }
    local p = leaf:data()
    for i = 0, input.n - 1 do p[i] = input.at[i] end
    args[name], leaves[name] = leaf, leaf
  end
  local act = plan(function() return ops[case.op](args) end)
  local results = { act() }
  local out = {}
  for i, name in ipairs(names(case)) do out[name] = results[i] end
  return act, out, leaves
end

local function compare(what, got, want, n, tolerance)
  local size = 1e-3
  for i = 0, n - 1 do size = math.max(size, math.abs(want[i])) end
  for i = 0, n - 1 do t.near(got[i], want[i], tolerance * size, what .. "[" .. i .. "]") end
end

local function check_outputs(case, out, want, how)
  for _, name in ipairs(names(case)) do
    if name ~= "tick" then compare(how .. ": " .. name, out[name]:data(), want[name], out[name]:size(), 2e-5) end
  end
end

-- Random weights make one loss of all outputs; the final states are part of it.
local function weights_for(case, out)
  local weights = {}
  for _, name in ipairs(names(case)) do
    if name ~= "tick" then
      local w = { shape = out[name]:shape(), at = zeros(out[name]:size()), n = out[name]:size() }
      for i = 0, w.n - 1 do w.at[i] = math.floor(random() * 16) / 8 - 1 end
      weights[name] = w
    end
  end
  return weights
end

local function backward(out, weights)
  local loss
  for name, w in pairs(weights) do
    local leaf = mn.tensor { shape = w.shape }
    local p = leaf:data()
    for i = 0, w.n - 1 do p[i] = w.at[i] end
    local part = ops.mul(out[name], leaf):sum()
    loss = loss and loss + part or part
  end
  loss:backward()
end

local function loss_of(case, x, weights)
  local out, loss = gated_recurrence(case, x), 0
  for name, w in pairs(weights) do
    for i = 0, w.n - 1 do loss = loss + w.at[i] * out[name][i] end
  end
  return loss
end

local MOST = 12                    -- numbers tried per input
local function check_gradients(case, x, leaves, weights)
  for name, leaf in pairs(leaves) do
    if leaf:wants_grad() then
      local g, input, size = leaf:grad_data(), x[name], 1e-2
      for i = 0, input.n - 1 do
        t.ok(g[i] == g[i] and math.abs(g[i]) < 1e30, ("gradient of %s[%d] is %g"):format(name, i, g[i]))
        size = math.max(size, math.abs(g[i]))
      end
      for try = 0, math.min(MOST, input.n) - 1 do
        local i, h = input.n <= MOST and try or (try * 7919 + 5) % input.n, 1e-5
        local old = input.at[i]
        input.at[i] = old + h
        local up = loss_of(case, x, weights)
        input.at[i] = old - h
        local down = loss_of(case, x, weights)
        input.at[i] = old
        t.near(g[i], (up - down) / (2 * h), 3e-5 * size, ("gradient of %s[%d]"):format(name, i))
      end
    end
  end
end

local function check(case)
  local x = make(case)
  local want = gated_recurrence(case, x)
  local act, out, leaves = call(case, x)
  local weights = weights_for(case, out)
  check_outputs(case, out, want, "whole")
  if case.cuts then
    for _, name in ipairs(names(case)) do ffi.fill(out[name]:data(), 4 * out[name]:size(), 0x7f) end
    for i = 1, #case.cuts - 1 do act:rows(case.cuts[i], case.cuts[i + 1]) end
    check_outputs(case, out, want, "by rows")
  end
  backward(out, weights)
  check_gradients(case, x, leaves, weights)
  if out.tick then
    for b = 0, case.B - 1 do t.eq(out.tick:data()[b], x.tick.at[b] + case.T, "tick") end
  end
  mn.clear_tape()
end

local function every(list)
  for _, case in ipairs(list) do
    local parts = {}
    for _, key in ipairs { "gate", "T", "D", "E", "V", "form", "r", "all" } do
      if case[key] then parts[#parts + 1] = key .. "=" .. tostring(case[key]) end
    end
    if case.apart then parts[#parts + 1] = table.concat(case.apart, " ") end
    local name = ("%s %s%s%s"):format(case.op, table.concat(parts, " "), case.cuts and " by rows" or "",
                                      case.hard and " hard" or "")
    t.test(name, function() check(case) end)
  end
end

local steps = {}
for i = 0, 18 do steps[i + 1] = i end

for _, op in ipairs { "linear_attention", "joint_gate_attention", "agalite" } do
  every {
    { op = op, gate = "outer", T = 18, D = 3, E = 2, V = 5, done = 0.15, state = true, cuts = steps },
    { op = op, gate = "elementwise", T = 37, D = 7, V = 3, H = 1, done = 0.1, state = true,
      cuts = { 0, 2, 3, 15, 16, 33, 37 } },
    { op = op, gate = "outer", T = 1, D = 5, V = 1, state = true },
    { op = op, gate = "outer", T = 19, D = 4, E = 3, V = 4, hard = true, done = 0.2, state = true },
    { op = op, gate = "outer", T = 17, D = 2, V = 2, normalise = false },
    { op = op, gate = "outer", T = 20, D = 3, V = 2, clamp = 1.4, done = 0.1 },
    { op = op, gate = "outer", T = 3, B = 1, H = 1, D = 17, E = 2, V = 19, state = true },
  }
end
every {
  { op = "linear_attention", gate = "scalar", T = 18, D = 3, E = 2, V = 3, done = 0.1, state = true, cuts = steps },
  { op = "linear_attention", gate = "scalar", T = 18, D = 3, V = 3, hard = true },
  { op = "linear_attention", gate = "key", T = 18, D = 3, E = 2, V = 3, done = 0.1, state = true },
  { op = "linear_attention", gate = "value", T = 18, D = 3, V = 3, done = 0.1, state = true },
  { op = "linear_attention", gate = "none", T = 18, D = 3, E = 2, V = 3, done = 0.1, state = true, cuts = steps },
  { op = "agalite", gate = "none", T = 18, D = 3, V = 3, done = 0.1, state = true, r = 3, normalise = false },
}
-- What is written and what is kept, apart.
local apart = {
  { "write_v", "keep_v", "write_k", "keep_k" }, { "keep_v", "keep_k" }, { "write_v", "write_k" }, { "beta", "write_k", "keep_k" },
  { "write_v", "keep_v", "gamma" }, { "keep_v", "write_k:1", "keep_k" }, { "keep_v", "write_k", "keep_k:1" }, { "beta", "keep_k:1" },
  { "write_v", "keep_k" }, { "write_k:1", "keep_k:1" }, { "keep_k:1" }, { "write_k:1" }, { "write_k", "keep_k:1" }, { "keep_k" }, { "keep_v" },
}
for _, list in ipairs(apart) do
  local has = {}
  for _, name in ipairs(list) do has[name:match "^[%w_]+"] = true end
  for _, op in ipairs { "linear_attention", "joint_gate_attention", "agalite" } do
    if op ~= "joint_gate_attention" or (has.beta or has.keep_v) and (has.gamma or has.keep_k) then
      every {
        { op = op, apart = list, T = 18, D = 3, V = 5, done = 0.15, state = true, cuts = steps },
        { op = op, apart = list, T = 19, D = 4, V = 4, hard = true, done = 0.2, state = true },
      }
    end
  end
end
for _, op in ipairs { "linear_attention", "joint_gate_attention", "agalite" } do
  every {
    { op = op, apart = { "write_v", "keep_v", "write_k", "p_write_k", "keep_k" }, T = 37, D = 3, E = 2, V = 5, done = 0.1, state = true,
      loud = true, normalise = false, cuts = { 0, 2, 3, 15, 16, 33, 37 } },
    { op = op, apart = { "keep_v", "write_k", "p_write_k", "keep_k:1" }, T = 17, D = 16, E = 4, V = 2, done = 0.1 },
    { op = op, apart = { "write_v", "keep_v", "write_k", "keep_k" }, T = 3, B = 1, H = 1, D = 17, E = 2, V = 19, state = true },
    { op = op, apart = { "write_v", "keep_v", "write_k", "keep_k" }, T = 20, D = 3, V = 2, clamp = 1.4, done = 0.1 },
  }
end
for _, list in ipairs { { "write_v", "keep_v", "write_k", "keep_k" }, { "write_k:1", "keep_k:1" } } do
  every { { op = "linear_attention", apart = list, T = 150, B = 1, D = 2, V = 2, done = 0.04, state = true,
    cuts = { 0, 1, 2, 3, 30, 64, 67, 101, 128, 150 } } }
end

-- Longer than from one checkpoint to the next, whole and cut where none is.
for _, case in ipairs { { "linear_attention", "outer" }, { "linear_attention", "scalar" }, { "linear_attention", "none" },
                        { "joint_gate_attention", "outer" } } do
  local long = { op = case[1], gate = case[2], T = 150, B = 1, D = 2, V = 2, done = 0.04, state = true }
  local cut = { cuts = { 0, 1, 2, 3, 30, 64, 67, 101, 128, 150 } }
  for key, value in pairs(long) do cut[key] = value end
  every { long, cut }
end
for _, form in ipairs { "code", "paper", "cossin" } do
  for r = 1, 6 do
    local small = { op = "agalite", gate = "outer", T = 9, B = 1, D = 2, V = 2, form = form, r = r, state = true }
    local all = { all = true }
    for key, value in pairs(small) do all[key] = value end
    every { small, all }
  end
end

-- ---- what must be exactly so ----

t.test("what does not fit is refused by name", function()
  local function leaf(...) return mn.tensor { shape = { ... } } end
  local q, v = leaf(3, 2, 1, 4), leaf(3, 2, 1, 5)
  local function refused(op, pattern, args)
    args.q, args.k, args.v = q, q, v
    t.raises(function() ops[op](args) end, pattern)
  end
  refused("linear_attention", "p_q is given without p_k", { p_q = leaf(3, 2, 1, 2) })
  refused("linear_attention", "gamma makes 3 gates per head, expected 4", { gamma = leaf(3, 2, 1, 3) })
  refused("linear_attention", "axis 3 of beta is 4, expected 5", { beta = leaf(3, 2, 1, 4) })
  refused("linear_attention", "axis 3 of keep_v is 3, expected 5", { keep_v = leaf(3, 2, 1, 3) })
  refused("linear_attention", "axis 3 of C is 3, expected 4", { C = leaf(2, 1, 5, 3) })
  refused("linear_attention", "p_gamma is given without gamma", { p_gamma = leaf(3, 2, 1, 4) })
  refused("joint_gate_attention", "beta is missing, or keep_v", {})
  refused("joint_gate_attention", "gamma is missing, or keep_k", { keep_v = leaf(3, 2, 1, 5) })
  refused("linear_attention", "beta and keep_v are given", { beta = leaf(3, 2, 1, 5), keep_v = leaf(3, 2, 1, 5) })
  refused("linear_attention", "gamma and write_k are given", { gamma = leaf(3, 2, 1, 4), write_k = leaf(3, 2, 1, 4) })
  refused("linear_attention", "p_write_k is given without write_k", { p_write_k = leaf(3, 2, 1, 4) })
  refused("linear_attention", "write_k makes 3 gates per head, expected 4 as in the features of k, or 1", { write_k = leaf(3, 2, 1, 3) })
  refused("linear_attention", "axis 3 of keep_k is 3, expected 4 as in the features of k, or 1", { keep_k = leaf(3, 2, 1, 3) })
  refused("linear_attention", "axis 3 of beta is 1, expected 5 as in v$", { beta = leaf(3, 2, 1, 1), keep_k = leaf(3, 2, 1, 4) })
  refused("agalite", "r is 0, expected a whole number", { tick = leaf(2), r = 0 })
  refused("agalite", "axis 1 of vs is 3, expected 1", { tick = leaf(2), vs = leaf(2, 3, 1, 5) })
  t.eq(engine.C.mn_agalite_channels(engine.ctx, 3, 2, nil, nil, nil), -1)
  t.eq(engine.C.mn_agalite_channels(engine.ctx, 0, 0, nil, nil, nil), -1)
  mn.clear_tape()
end)

-- Within a call the clock is an integer, so one long call is what many short ones should come to.
t.test("agalite: the clock goes on past 2^24, where floats no longer count", function()
  local T, H, K, V = 40, 2, 3, 4
  local function part(n, stream, lo, hi)
    seed = stream
    local x, draw = mn.sequence { shape = { T, 1, H, n } }, between(lo, hi)
    for i = 0, x:size() - 1 do x:data()[i] = draw() end
    return x
  end
  local x = { q = part(K, 1, 0.1, 1), k = part(K, 2, 0.1, 1), v = part(V, 3, -1, 1), beta = part(V, 4, 0.1, 0.9), gamma = part(K, 5, 0.1, 0.9) }
  for _, case in ipairs { { "code", 4 }, { "code", 2 }, { "paper", 5 }, { "cossin", 3 }, { "random_sign", 4 } } do
    local function advance(from, n, state)
      local args = { form = case[1], r = case[2], tick = state.tick, vs = state.vs, ks = state.ks, s = state.s }
      for name, whole in pairs(x) do args[name] = whole:slice { axis = 0, from = from, to = from + n } end
      local y, vs, ks, s, tick = ops.agalite(args)
      return y, { vs = vs, ks = ks, s = s, tick = tick }
    end
    local start = { tick = mn.tensor { 2 ^ 24 - 11 } }
    local whole = advance(0, T, start)
    local state, worst = start, 0
    for i = 0, T - 1 do
      local y, after = advance(i, 1, state)
      state = after
      for k = 0, H * V - 1 do worst = t.larger(worst, math.abs(y:data()[k] - whole:data()[i * H * V + k])) end
    end
    -- the signs begin again at 2^24, so that those of one long call are others from there on
    if case[1] ~= "random_sign" then t.ok(worst < 1e-4, ("%s %d: differs by %g"):format(case[1], case[2], worst)) end
    t.ok(state.tick:item() < 2 ^ 24, ("%s %d: the clock stands still"):format(case[1], case[2]))
    mn.clear_tape()
  end
end)
