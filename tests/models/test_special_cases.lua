-- test_special_cases.lua -- what must be so whatever the weights: gates at 1, plain sums, forms that collapse; and how sums
-- that nothing ever leaves grow, in numbers.
local t = require "tests.harness"
local cores = require "mneme.models.cores"
local mn = require "mneme"
local core_rig = require "tests.support.core_rig"

local T, B, H, V = 19, 2, 2, 4

-- What layer 0 works with, by name, in a run where `probe` may replace things.
local function inside(c, x, done, probe)
  local seen = {}
  mn.no_grad(function()
    c(x, done, nil, function(name, p)
      local short = name:match "^layers%.0%.(.*)$"
      if probe and short then p = probe(short, p) or p end
      if short then seen[short] = mn.keep(p) end
      return p
    end)
  end)
  return seen
end

local function ones(name, p)
  if name == "beta" or name == "gamma" or name == "p_gamma" then return mn.tensor({ shape = p:shape() }):fill(1) end
end

-- phi of one head at one time: what is seen, times its factor where there is one.
local function phi(seen, which, at)
  local a, p, out = seen[which], seen["p_" .. which], {}
  local n, E = a:shape()[4], p and p:shape()[4] or 1
  for e = 0, E - 1 do
    for d = 0, n - 1 do out[e * n + d + 1] = (p and p:data()[at * E + e] or 1) * a:data()[at * n + d] end
  end
  return out
end

local function dot(a, b)
  local sum = 0
  for i = 1, #a do sum = sum + a[i] * b[i] end
  return sum
end

t.test("without gates and normaliser what is read is a plain sum over the episode", function()
  for _, settings in ipairs {
    { "galite", gate = "none", normalise = false }, { "galite", gate = "none", feature = "elu1", nu = 2, normalise = false },
    { "galite", gate = "none", feature = "dpfp", nu = 2, normalise = false }, { "galite", gate = "none", feature = "identity", normalise = false },
    { "galite", gate = "none", feature = "rfa", normalise = false, query = "double" },
    { "agalite", gate = "none", form = "cossin", r = T, normalise = false },
  } do
    local c, x, done = core_rig.build(settings, 1), core_rig.normal({ T, B, 5 }, 1), core_rig.done(T, B, { { 7, 1 } })
    local seen = inside(c, x, done)
    for now = 0, T - 1 do for b = 0, B - 1 do for h = 0, H - 1 do
      local at, want = (now * B + b) * H + h, {}
      local q = phi(seen, "q", at)
      for d = 0, V - 1 do want[d] = 0 end
      for s = b == 1 and now >= 7 and 7 or 0, now do
        local then_ = (s * B + b) * H + h
        local w = dot(q, phi(seen, "k", then_))
        for d = 0, V - 1 do want[d] = want[d] + w * seen.v:data()[then_ * V + d] end
      end
      for d = 0, V - 1 do
        t.near(seen.retrieved:data()[at * V + d], want[d], 2e-5 * math.max(1, math.abs(want[d])), settings[1] .. " " .. (settings.feature or ""))
      end
    end end end
  end
end)

t.test("gates fixed to 1 by a probe: only the present is remembered, and what is read is v", function()
  for _, settings in ipairs {
    { "galite", feature = "outer_elu1", eps = 0 }, { "galite", feature = "outer_elu1", decay = "joint", eps = 0 },
    { "galite", feature = "elu1", gate = "elementwise", eps = 0 }, { "gated_linear", eps = 0 },
    { "agalite", feature = "outer_elu1", form = "cossin", r = 5, eps = 0 }, { "agalite_paper", feature = "outer_elu1", eps = 0 },
  } do
    local c = core_rig.build(settings, 1)
    local seen = inside(c, core_rig.normal({ T, B, 5 }, 1), nil, ones)
    t.near(core_rig.apart(seen.retrieved, seen.v), 0, 1e-5, settings[1])
    settings.normalise, settings.eps = false, nil
    seen = inside(core_rig.build(settings, 1), core_rig.normal({ T, B, 5 }, 1), nil, ones)
    for at = 0, T * B * H - 1 do
      local w = dot(phi(seen, "q", at), phi(seen, "k", at))
      for d = 0, V - 1 do
        t.near(seen.retrieved:data()[at * V + d], w * seen.v:data()[at * V + d], 1e-4 * math.max(1, w), settings[1] .. " raw")
      end
    end
  end
end)

t.test("agalite_paper, r=1: every wave is 1, and what is read is a gated average of values, whatever the query", function()
  local c, x = core_rig.build({ "agalite_paper", feature = "outer_elu1", eps = 0 }, 1), core_rig.normal({ T, B, 5 }, 1)
  local done = core_rig.done(T, B, { { 4, 0 }, { 16 } })
  local seen, kept = inside(c, x, done), {}
  local beta, v, y = seen.beta:data(), seen.v:data(), seen.retrieved:data()
  for now = 0, T - 1 do for i = 0, B * H * V - 1 do
    local at, b = now * B * H * V + i, math.floor(i / (H * V))
    local before = done:data()[now * B + b] ~= 0 and 0 or kept[i] or 0
    kept[i] = (1 - beta[at]) * before + beta[at] * v[at]
    t.near(y[at], kept[i], 1e-5, "step " .. now)
  end end
  local other = inside(c, x, done, function(name, p) return name == "q" and p * 3 or nil end)
  t.near(core_rig.apart(other.retrieved, seen.retrieved), 0, 1e-5, "another query")
end)

t.test("a scalar gate is an outer gate whose numbers are all the same, up to what it writes twice", function()
  local one = core_rig.build({ "galite", gate = "scalar", feature = "elu1" }, 1)
  local x, done = core_rig.normal({ T, B, 5 }, 1), core_rig.done(T, B, { { 6 } })
  local seen = inside(one, x, done)
  local g = seen.beta                           -- the key gate alone, elementwise, does the same
  local gamma = mn.tensor { shape = { T, B, H, V } }
  for i = 0, gamma:size() - 1 do gamma:data()[i] = g:data()[math.floor(i / V)] end
  local y = mn.ops.linear_attention { q = seen.q, k = seen.k, v = seen.v, gamma = gamma, done = done, eps = one.config.eps }
  t.near(core_rig.apart(mn.keep(y), seen.retrieved), 0, 1e-6, "scalar")
  mn.clear_tape()
end)

-- ---- sums that only grow ----

local function norm(p, n)
  local sum = 0
  for i = 0, n - 1 do sum = sum + p[i] * p[i] end
  return math.sqrt(sum)
end

-- After T steps: the size of the matrix, and of the gradient of the last output with respect to the attention.
local function sizes_after(name, steps, normalise)
  mn.manual_seed(3)
  local c = cores.new(name, { d_in = 4, d_model = 16, n_layers = 1, n_heads = 2, d_head = 8, d_ffn = 16, flow = "residual", normalise = normalise })
  local y, after = c(core_rig.normal({ steps, 1, 4 }, 1))
  local state = norm(after["layers.0.C"]:data(), after["layers.0.C"]:size())
  local last = mn.ops.slice { x = y, axis = 0, from = steps - 1 }
  ;(last * core_rig.normal({ 1, 1, 16 }, 5)):sum():backward()
  local square = 0
  for key, p in pairs(c:named_parameters()) do
    if key:find "attn" then square = square + norm(p:grad_data(), p:size()) ^ 2 end
  end
  mn.clear_tape()
  return state, math.sqrt(square)
end

t.test("ungated sums grow with time, and without a normaliser so do their gradients; gated ones do not", function()
  local state, raw, gradient = {}, {}, {}
  for _, name in ipairs { "linear_transformer", "gated_linear", "galite", "galite_released" } do
    for i, steps in ipairs { 64, 256, 1024 } do
      state[i], raw[i] = sizes_after(name, steps, false)
      gradient[i] = select(2, sizes_after(name, steps, true))
    end
    local said = ("%s: |C| %.3g %.3g %.3g, gradient %.3g %.3g %.3g"):format(name, state[1], state[2], state[3], raw[1], raw[2], raw[3])
    t.ok(gradient[3] < 5 * gradient[1], name .. ": the normaliser bounds the gradient")
    if name == "linear_transformer" then
      for i = 1, 2 do t.ok(state[i + 1] / state[i] > 3.5 and state[i + 1] / state[i] < 4.5, said) end
      t.ok(raw[3] / raw[1] > 10 and raw[3] / raw[1] < 25 and raw[2] > 2.5 * raw[1] and raw[3] > 2.5 * raw[2], said)
      t.ok(state[3] > 5000 and raw[3] > 1e4, said)
    else
      t.ok(state[3] / state[1] < 2.5 and state[3] < 100, said)
      t.ok(raw[3] / raw[1] < 3 and raw[3] < 500, said)
    end
  end
end)
