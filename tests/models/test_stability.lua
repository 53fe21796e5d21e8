-- test_stability.lua -- no input makes a memory's numbers infinite or NaN in silence: every core found, at its
-- published settings of eps and the like, over inputs of any size, endless episodes, resets out of ruined states.
local ffi = require "ffi"
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local cores = require "mneme.models.cores"
local engine = require "mneme.base.engine"
local registry = require "mneme.base.registry"
local mn = require "mneme"
local ops = mn.ops

-- A small core whose guards against division by zero are the published ones, not those of the gradient tests.
local function build(settings, more)
  local defaults, config = cores.definition(settings[1]).config, {}
  for key in pairs(defaults) do
    if key:find "eps$" and settings[key] == nil then config[key] = defaults[key] end
  end
  for key, value in pairs(more or {}) do if defaults[key] ~= nil then config[key] = value end end
  return core_rig.build(settings, 1, config)
end

local function all_finite(tensors, what)
  for name, x in pairs(tensors) do t.ok(core_rig.finite(x), ("%s: %s is not finite"):format(what, name)) end
end

-- ---- inputs ----

local T, B = 37, 2                       -- two chunks and a part of one

local function times(factor)
  return function(x) for i = 0, x:size() - 1 do x:data()[i] = x:data()[i] * factor end end
end
local kinds = {
  { "inputs of 1e4", times(1e4) }, { "inputs of 1e-30", times(1e-30) }, { "denormal inputs", times(1e-41) },
  { "inputs of zero", times(0) },
  { "inputs of both kinds", function(x) for i = 0, x:size() - 1 do x:data()[i] = x:data()[i] * (i % 7 < 3 and 1e4 or 1e-30) end end },
}

-- Forward and backward; everything that comes out is finite, or there is an error that a user can read.
local function survives(c, x, done, what)
  local ok, problem = pcall(function()
    for _, p in ipairs(c:parameters()) do p:zero_grad() end
    local y, after = c(x, done, c:initial(B))
    local results = { y = mn.keep(y) }
    for name, s in pairs(after) do results[name] = mn.keep(s) end
    ;(y * core_rig.normal(y:shape(), 9)):sum():backward()
    mn.clear_tape()
    for name, p in pairs(c:named_parameters()) do
      local g = mn.tensor { shape = p:shape() }
      ffi.copy(g:data(), p:grad_data(), 4 * p:size())
      results["gradient of " .. name] = g
    end
    return results
  end)
  mn.clear_tape()
  if ok then all_finite(problem, what)
  else t.ok(type(problem) == "table" and problem.message, ("%s: %s"):format(what, tostring(problem))) end
end

for _, case in ipairs(core_rig.cases()) do
  t.test(case.name .. ": finite for inputs of any size", function()
    local c = build(case.settings)
    local everywhere = core_rig.done(T, B)
    everywhere:fill(1)
    for _, kind in ipairs(kinds) do
      local x = core_rig.normal({ T, B, c.config.d_in }, 1)
      kind[2](x)
      survives(c, x, core_rig.done(T, B, { { 0, 0 }, { 9, 1 }, { 16 }, { 17, 0 } }), kind[1])
      survives(c, x, everywhere, kind[1] .. ", done everywhere")
    end
  end)
end

-- ---- states that are ruined ----

-- A reset is a choice, not a product: 0 * NaN would be NaN.
for _, case in ipairs(core_rig.cases()) do
  t.test(case.name .. ": a reset forgets infinities and NaNs", function()
    local c = build(case.settings)
    if next(c.states) == nil then return end
    local x = core_rig.normal({ T, B, c.config.d_in }, 1)
    for _, ruin in ipairs { 1 / 0, -1 / 0, 0 / 0 } do
      for _, k in ipairs { 0, c.config.segment or 5, 16 } do
        local function run(value)
          local state = c:initial(B)
          for name, s in pairs(state) do if not c:is_constant(name) then s:fill(value) end end
          return core_rig.run(c, x, core_rig.done(T, B, { { k } }), state)
        end
        local y, after = run(ruin)
        local want, want_after = run(0)
        local function same(got, value, what)
          t.ok(core_rig.apart(got, value) < 1e-6, ("%s after a reset at %d from %g"):format(what, k, ruin))
        end
        same(core_rig.rows(y, k, T), core_rig.rows(want, k, T), "y")
        for name, s in pairs(want_after) do same(after[name], s, "state " .. name) end
      end
    end
    local free, state, k = core_rig.normal({ T, B, c.config.d_in }, 1, true), c:initial(B), c.config.segment or 16
    for name, s in pairs(state) do if not c:is_constant(name) then s:fill(0 / 0) end end
    free:data()[c.config.d_in] = 0 / 0                       -- nor what was seen before
    local y = c(free, core_rig.done(T, B, { { k } }), state)
    t.ok(core_rig.finite(core_rig.rows(mn.keep(y), k, T)), "a NaN that was seen before the reset")
    y:slice({ axis = 0, from = k }):sum():backward()
    mn.clear_tape()
    for i = k * B * c.config.d_in, free:size() - 1 do t.ok(free:grad_data()[i] - free:grad_data()[i] == 0, "a gradient after the reset") end
  end)
end

-- ---- long lives ----

local STEPS, PART = 30000, 1000

for _, name in ipairs(registry.names "cores") do
  t.test(("%s: %d steps in parts, with resets"):format(name, STEPS), function()
    local c = build({ name }, { n_layers = 1 })
    local state, resets = c:initial(1), 0
    for part = 1, STEPS / PART do
      local x, done = core_rig.normal({ PART, 1, c.config.d_in }, part), core_rig.done(PART, 1)
      if part % 3 == 0 then             -- an episode of up to 3000 steps ends somewhere; where segments end, there
        local at = part * 7919 % PART
        done:data()[at - at % (c.config.segment or 1)] = 1
        resets = resets + 1
      end
      local y
      y, state = core_rig.run(c, x, done, state)
      t.ok(core_rig.finite(y), ("y after %d steps"):format(part * PART))
    end
    all_finite(state, "at the end")
    t.eq(resets, STEPS / PART / 3)
  end)
end

-- The kernels alone: a hundred thousand steps without one reset, at gates that are nothing, everything, or hardly one
-- of them.
local hard = { 0, 1, 1e-6, 1e-40, 1 - 2 ^ -24, 0.4 }
local L, PARTS, H, V, K = 1000, 100, 1, 4, 6

local function filled(f, ...)
  local x = mn.tensor { shape = { ... } }
  for i = 0, x:size() - 1 do x:data()[i] = f(i) end
  return x
end

local function kernel(op, more)
  local args = { q = filled(function() return 0 end, L, 1, H, K), k = filled(function() return 0 end, L, 1, H, K),
                 v = filled(function() return 0 end, L, 1, H, V) }
  -- Channels that stay at gates of nothing would hold their first values for ever, and all keys are taken in some time.
  args.beta = filled(function(i) return hard[(i * 7 + math.floor(i / 97)) % 6 + 1] end, L, 1, H, V)
  args.gamma = filled(function(i) return hard[(i * 5 + math.floor(i / 89)) % 6 + 1] end, L, 1, H, K)
  for key, value in pairs(more) do args[key] = value end
  return function(part)
    for stream, name in ipairs { "q", "k", "v" } do
      local x = args[name]
      engine.C.mn_random_normal(part, stream, 4, x:data(), x:size())
      if name ~= "v" then for i = 0, x:size() - 1 do x:data()[i] = math.max(0, x:data()[i]) end end
    end
    return mn.no_grad(function()
      local out = { ops[op](args) }
      return mn.keep(out[1]), mn.keep(out[2]), mn.keep(out[3]), out[4] and mn.keep(out[4]), out[5] and mn.keep(out[5])
    end)
  end, args
end

for _, case in ipairs {
  { "linear_attention", { "C", "s" } }, { "joint_gate_attention", { "C", "s" } },
  { "agalite", { "vs", "ks", "s", "tick" }, { form = "code", r = 4 } },
  { "agalite", { "vs", "ks", "s", "tick" }, { form = "cossin", r = 5 } },
  { "agalite", { "vs", "ks", "s", "tick" }, { form = "random_sign", r = 3 } },
  { "low_rank_attention", { "U", "W", "s" }, { r = 2 } },
} do
  t.test(("%s %s: %d steps at gates of every kind"):format(case[1], case[3] and case[3].form or "", L * PARTS), function()
    local more = {}
    for key, value in pairs(case[3] or {}) do more[key] = value end
    if case[1] == "agalite" then more.tick = mn.tensor { shape = { 1 } } end
    local run, args = kernel(case[1], more)
    local most = 0
    for part = 1, PARTS do
      local out = { run(part) }
      for i = 0, out[1]:size() - 1 do most = math.max(most, math.abs(out[1]:data()[i])) end
      t.ok(core_rig.finite(out[1]), ("y after %d steps"):format(part * L))
      for i, name in ipairs(case[2]) do
        t.ok(core_rig.finite(out[i + 1]), name)
        args[name] = out[i + 1]
      end
    end
    t.ok(most > 0.1, "nothing came out")
    if args.tick then t.eq(args.tick:data()[0], L * PARTS) end
  end)
end

t.test("a normaliser of exactly zero reads nothing", function()
  for _, op in ipairs { "linear_attention", "joint_gate_attention", "low_rank_attention", "agalite" } do
    local args = { eps = 0, q = core_rig.normal({ 20, 1, 1, 3 }, 1, true), k = mn.tensor { shape = { 20, 1, 1, 3 }, grad = true },
                   v = core_rig.normal({ 20, 1, 1, 2 }, 3, true) }
    if op == "agalite" then args.tick = mn.tensor { shape = { 1 } } end
    local function half(n) return filled(function() return 0.5 end, 20, 1, 1, n) end
    if op == "joint_gate_attention" then args.beta, args.gamma = half(2), half(3) end
    local y = ops[op](args)
    y:sum():backward()
    for i = 0, y:size() - 1 do t.eq(y:data()[i], 0, op) end
    for _, name in ipairs { "q", "k", "v" } do
      for i = 0, args[name]:size() - 1 do t.ok(math.abs(args[name]:grad_data()[i]) < math.huge, op .. ": gradient of " .. name) end
    end
    mn.clear_tape()
  end
end)

-- ---- nothing at all ----

t.test("no steps or no copies are refused where they would begin", function()
  for _, shape in ipairs { { 0, 2, 5 }, { 3, 0, 5 }, { 3, 2, 0 } } do
    t.fails(function() mn.tensor { shape = shape } end)
    t.fails(function() mn.sequence { shape = shape } end)
  end
  for _, name in ipairs(registry.names "cores") do
    local c = build { name }
    if next(c.states) then t.raises(function() c:initial(0) end, "is 0, expected a whole number of at least 1") end
  end
end)
