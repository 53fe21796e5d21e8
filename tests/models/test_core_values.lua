-- test_core_values.lua -- what particular cores are known to be: parameter counts and state sizes of the
-- published models, forms that are the same function, gates at their ends, initial values, refused settings.
local ffi = require "ffi"
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local cores = require "mneme.models.cores"
local registry = require "mneme.base.registry"
local mn = require "mneme"
local nn = require "mneme.tensor.nn"
local state_files = require "tests.support.state_files"

local CLOSE = 2e-5

-- ---- sizes ----

local released = { "galite", decay = "joint", query = "double", embed_act = "none" }
local function with(settings, more)
  local new = {}
  for _, set in ipairs { settings, more } do for key, value in pairs(set) do new[key] = value end end
  return new
end

t.test("parameter counts are those of the published models", function()
  for _, case in ipairs {
    { with(released, { eta = 4 }), 1803072 }, { with(released, { eta = 2 }), 1792736 },
    { { "galite", eta = 4 }, 1740608 }, { { "agalite", eta = 4 }, 1740608 }, { { "agalite", eta = 8 }, 1765376 },
    { { "gru", d_model = 680 }, 1422560 }, { { "lstm" }, 1480800 },
  } do
    local c = cores.new(case[1])
    t.eq(c.module:count(), case[2], case[1][1])
    t.eq(c:describe().parameters, case[2])
    local floats = 0
    for _, p in ipairs(c:parameters()) do floats = floats + p:size() end
    t.eq(floats, case[2], case[1][1] .. ", leaves")
  end
  t.eq(nn.heads(128, 128, 4):count(), 33669)
end)

t.test("states are as large as published, and half of mirrored channels is stored", function()
  local heads = 16
  t.eq(cores.new("galite", { eta = 4 }):describe().state_floats / heads, 16640)
  local c = cores.new("agalite", { eta = 4, r = 2 })
  local file = 0
  for _, s in pairs(state_files.unfold(c, c:initial(1), "value")) do file = file + #s.values end
  t.eq((file - 1) / heads, 896)                                   -- two channels of 64 + 256, and s; the tick
  t.eq((c:describe().state_floats - 1) / heads, 64 + 256 + 256)
  t.near(16640 / 896, 18.57, 0.005)
  t.eq(cores.new("gru"):describe().state_floats, 680)
  t.eq(cores.new("lstm"):describe().state_floats, 1200)
end)

t.test("names and shapes are those of the fixtures", function()
  local c = cores.new("agalite", { d_model = 8, n_heads = 3, d_head = 4, d_ffn = 6, eta = 2, n_layers = 1 })
  local dict = c:state_dict()
  for name, shape in pairs {
    ["embed.weight"] = "8,16", ["embed.bias"] = "8", ["layers.0.norm1.weight"] = "8", ["layers.0.norm2.bias"] = "8",
    ["layers.0.gate1.w_r.weight"] = "8,8", ["layers.0.gate2.u_g.weight"] = "8,8", ["layers.0.gate2.bias"] = "8",
    ["layers.0.ffn.0.weight"] = "6,8", ["layers.0.ffn.1.weight"] = "8,6", ["layers.0.ffn.1.bias"] = "8",
    ["layers.0.attn.out.weight"] = "8,12", ["layers.0.attn.v.weight"] = "12,8", ["layers.0.attn.k.bias"] = "12",
    ["layers.0.attn.p_gamma.weight"] = "6,8", ["layers.0.attn.beta.bias"] = "12",
  } do
    t.ok(dict[name], name)
    t.eq(table.concat(dict[name]:shape(), ","), shape, name)
  end
  local r2 = cores.new(with(released, { d_model = 8, n_heads = 3, d_head = 4, eta = 2 })):state_dict()
  t.eq(table.concat(r2["layers.3.attn.q2.weight"]:shape(), ","), "12,4")
  t.eq(table.concat(r2["layers.3.attn.p_q.weight"]:shape(), ","), "6,4")
end)

-- ---- the same function in two forms ----

local T, B = 9, 2

-- y and the gradients of all parameters of a loss on y, by name.
local function results(c, x, done)
  for _, p in ipairs(c:parameters()) do p:zero_grad() end
  local w = core_rig.normal({ T, B, c.d_out }, 40)
  local y = c(x, done, c:initial(B))
  local out = { y = mn.keep(y) }
  ;(y * w):sum():backward()
  mn.clear_tape()
  for name, p in pairs(c:state_dict()) do
    out[name] = mn.tensor { shape = p:shape() }
    ffi.copy(out[name]:data(), p:grad_data(), p:size() * 4)
  end
  return out
end

local function same_function(a, b, what)
  b:load_state_dict(a:state_dict())
  local x, done = core_rig.normal({ T, B, 5 }, 1), core_rig.done(T, B, { { 4, 1 } })
  local got, want = results(a, x, done), results(b, x, done)
  for name in pairs(want) do t.near(core_rig.apart(got[name], want[name]), 0, CLOSE, what .. ": " .. name) end
end

t.test("agalite form=code: r=1 and r=2 are the same function, up to eps", function()
  same_function(core_rig.build { "agalite", r = 1, eps = 0.05 }, core_rig.build { "agalite", r = 2, eps = 0.1 }, "r=1, r=2")
  local one, two = core_rig.build { "agalite", r = 1, eps = 0.1 }, core_rig.build { "agalite", r = 2, eps = 0.1 }
  local x = core_rig.normal({ T, B, 5 }, 1)
  t.ok(core_rig.apart(core_rig.run(one, x), core_rig.run(two, x)) > 1e-4, "eps is not where it is thought to be")
end)

t.test("agalite form=cossin is exact where r is at least the number of steps", function()
  for _, r in ipairs { T, T + 4 } do
    same_function(core_rig.build { "agalite", form = "cossin", r = r, eps = 0.3 * r }, core_rig.build { "galite", eps = 0.3 },
      "r=" .. r)
  end
  local few, full = core_rig.build { "agalite", form = "cossin", r = 3, eps = 0.9 }, core_rig.build { "galite", eps = 0.3 }
  full:load_state_dict(few:state_dict())
  local x = core_rig.normal({ T, B, 5 }, 1)
  t.ok(core_rig.apart(core_rig.run(few, x), core_rig.run(full, x)) > 1e-3, "fewer channels approximate")
end)

t.test("a very late tick is no less exact: waves are reduced before their cosine", function()
  for _, form in ipairs { "code", "paper", "cossin" } do
    local c = core_rig.build { "agalite", form = form, r = 4 }
    local period = form == "code" and 3 or 4           -- of the step in the angle 2 pi n / period
    local x, late = core_rig.normal({ T, B, 5 }, 1), c:initial(B)
    local y = core_rig.run(c, x, nil, c:initial(B))
    for b = 0, B - 1 do late.tick:data()[b] = late.tick:data()[b] + period * 1e6 end
    t.near(core_rig.apart(core_rig.run(c, x, nil, late), y), 0, 1e-6, form)
  end
end)

-- ---- gates at their ends ----

-- Every gate of a core pushed to 0 or 1 by its bias.
local function saturate(c, to)
  for name, p in pairs(c:state_dict()) do
    if name:find "attn%.beta" or name:find "attn%.gamma" or name:find "attn%.p_gamma" then
      p:fill(name:find "bias$" and (to == 1 and 40 or -40) or 0)
    end
  end
end

-- What goes on in layer 0, by name, as leaves.
local function inside(c, x, state)
  local seen = {}
  mn.no_grad(function()
    c(x, nil, state, function(name, p)
      local short = name:match "^layers%.0%.(.*)$"
      if short then seen[short] = mn.keep(p) end
      return p
    end)
  end)
  return seen
end

-- The feature of one head at one time: the outer product of its factors.
local function feature(seen, which, at, H, V, eta)
  local a, p, out = seen[which]:data() + at * V, seen["p_" .. which]:data() + at * eta, {}
  for e = 0, eta - 1 do for d = 0, V - 1 do out[e * V + d + 1] = p[e] * a[d] end end
  return out, H
end

t.test("open gates remember only the present, shut ones only the past", function()
  local H, V, eta = 2, 4, 2
  for _, decay in ipairs { "separable", "joint" } do
    local c = core_rig.build({ "galite", normalise = false, decay = decay })
    local x, state = core_rig.normal({ T, B, 5 }, 1), c:initial(B)
    saturate(c, 1)
    local seen = inside(c, x, state)
    for at = 0, T * B * H - 1 do                       -- y = v (k.q): the past is gone
      local q, k, dot = feature(seen, "q", at, H, V, eta), feature(seen, "k", at, H, V, eta), 0
      for i = 1, #q do dot = dot + q[i] * k[i] end
      for d = 0, V - 1 do
        t.near(seen.retrieved:data()[at * V + d], seen.v:data()[at * V + d] * dot, 1e-5, decay .. ", open")
      end
    end
    saturate(c, 0)
    for name in pairs(c.states) do state[name] = core_rig.normal(c:state_shape(name, B), 60) end
    seen = inside(c, x, state)
    local C = state["layers.0.C"]:data()
    for at = 0, T * B * H - 1 do                       -- y = C q with the first C
      local q, head = feature(seen, "q", at, H, V, eta), at % (B * H)
      for d = 0, V - 1 do
        local sum = 0
        for i = 1, #q do sum = sum + C[(head * V + d) * #q + i - 1] * q[i] end
        t.near(seen.retrieved:data()[at * V + d], sum, 1e-5, decay .. ", shut")
      end
    end
  end
end)

t.test("an open gru takes the candidate, a shut one keeps its state", function()
  local c = core_rig.build { "gru", n_layers = 1 }
  local dict, state = c:state_dict(), { ["layers.0.h"] = core_rig.normal({ B, 8 }, 60) }
  local function gate(bias)
    dict["layers.0.iz.weight"]:fill(0)
    dict["layers.0.hz.weight"]:fill(0)
    dict["layers.0.iz.bias"]:fill(bias)
    return core_rig.run(c, core_rig.normal({ 1, B, 5 }, 1), nil, state)
  end
  t.near(core_rig.apart(gate(40), state["layers.0.h"]), 0, 1e-6, "shut")
  dict["layers.0.ir.weight"]:fill(0)
  dict["layers.0.hr.weight"]:fill(0)
  dict["layers.0.ir.bias"]:fill(-40)
  dict["layers.0.in.weight"]:fill(0)
  local y, bias = gate(-40), dict["layers.0.in.bias"]:data()
  for i = 0, B * 8 - 1 do
    local e = math.exp(2 * bias[i % 8])
    t.near(y:data()[i], (e - 1) / (e + 1), 1e-6, "n = tanh of its bias")
  end
end)

-- ---- initial values ----

-- Largest entry of |M - gain^2 I|, where M is w w^T or w^T w, whichever is smaller.
local function off_orthogonal(w, rows, cols, gain)
  local by_rows, worst = rows <= cols, 0
  local n, len = by_rows and rows or cols, by_rows and cols or rows
  for i = 0, n - 1 do
    for j = i, n - 1 do
      local dot = 0
      for k = 0, len - 1 do
        dot = dot + (by_rows and w[i * cols + k] * w[j * cols + k] or w[k * cols + i] * w[k * cols + j])
      end
      worst = t.larger(worst, math.abs(dot - (i == j and gain * gain or 0)))
    end
  end
  return worst
end

local function orthogonal(p, groups, what)
  local shape = p:shape()
  local rows, cols = shape[1] / groups, shape[2]
  for g = 0, groups - 1 do
    t.near(off_orthogonal(p:data() + g * rows * cols, rows, cols, math.sqrt(2)), 0, 1e-5, what)
  end
end

t.test("weights begin orthogonal with gain sqrt 2, biases at 0, gates at 2", function()
  mn.manual_seed(3)
  local sizes = { d_in = 5, d_model = 24, n_layers = 1, n_heads = 2, d_head = 10, d_ffn = 14, eta = 3 }
  for _, settings in ipairs { { "galite" }, with(released, {}), { "agalite" }, { "gru" } } do
    local config = {}
    for key, value in pairs(with(sizes, settings)) do
      if key ~= 1 and cores.definition(settings[1]).config[key] ~= nil then config[key] = value end
    end
    local dict = cores.new(settings[1], config):state_dict()
    for name, p in pairs(dict) do
      local of_head = name:match "attn%.(.*)%.weight"
      if #p:shape() == 1 then
        local start = name:find "gate%d%.bias" and 2 or name:find "norm%d%.weight" and 1 or 0
        for i = 0, p:size() - 1 do t.eq(p:data()[i], start, name) end
      elseif settings[1] ~= "agalite" or not of_head or of_head == "out" then
        orthogonal(p, of_head and of_head ~= "out" and 2 or 1, settings[1] .. " " .. name)
      end
    end
    if settings[1] == "agalite" then                 -- as the released code's two fused layers
      for _, names in ipairs { { "k", "q", "v", "beta", "gamma" }, { "p_k", "p_q", "p_gamma" } } do
        local rows, at = 0, 0
        for _, name in ipairs(names) do rows = rows + dict["layers.0.attn." .. name .. ".weight"]:shape()[1] end
        local all = ffi.new("float[?]", rows * 24)
        for _, name in ipairs(names) do
          local p = dict["layers.0.attn." .. name .. ".weight"]
          ffi.copy(all + at, p:data(), p:size() * 4)
          at = at + p:size()
        end
        t.near(off_orthogonal(all, rows, 24, math.sqrt(2)), 0, 1e-5, table.concat(names, " "))
      end
    end
  end
end)

t.test("one-factor features begin as flax's lecun_normal: variance 1/fan_in, nothing beyond two deviations", function()
  mn.manual_seed(4)
  local dict = cores.new("galite", { n_layers = 1, d_model = 100, feature = "elu1", nu = 4 }):state_dict()
  for _, name in ipairs { "k", "q" } do
    local p = dict["layers.0.attn." .. name .. ".weight"]
    local n, sum, square, most = p:size(), 0, 0, 0
    for i = 0, n - 1 do
      local v = p:data()[i]
      sum, square, most = sum + v, square + v * v, math.max(most, math.abs(v))
    end
    local variance = square / n - (sum / n) ^ 2
    t.near(sum / n, 0, 5 * math.sqrt(0.01 / n), "mean")
    t.near(variance / 0.01, 1, 5 * math.sqrt(2 / n), "variance")
    t.ok(most <= 2 * 0.1 / 0.8796 + 1e-6, "largest " .. most)
    t.ok(most > 1.9 * 0.1 / 0.8796, "largest " .. most)
  end
end)

t.test("s5 begins with the eigenvalues and eigenvectors of the normal part of HiPPO-LegS", function()
  local N = 6
  local omega, V_re, V_im = require("mneme.models.layers.hippo")(N)
  local dict = cores.new("s5", { n_layers = 1, d_model = 4, d_state = N }):state_dict()
  local function S(i, j) return i == j and -0.5 or (i < j and 0.5 or -0.5) * math.sqrt((2 * i + 1) * (2 * j + 1)) end
  for k = 0, N - 1 do
    t.near(dict["layers.0.s5.Lambda_im"]:data()[k], omega[k + 1], 1e-5)
    local re, im = V_re:data() + k * 2 * N, V_im:data() + k * 2 * N
    for i = 0, 2 * N - 1 do                            -- S v = (-1/2 + i omega) v
      local got_re, got_im = 0, 0
      for j = 0, 2 * N - 1 do got_re, got_im = got_re + S(i, j) * re[j], got_im + S(i, j) * im[j] end
      t.near(got_re, -0.5 * re[i] - omega[k + 1] * im[i], 1e-5)
      t.near(got_im, -0.5 * im[i] + omega[k + 1] * re[i], 1e-5)
    end
    for other = 0, k do
      local dot = 0
      for j = 0, 2 * N - 1 do dot = dot + re[j] * V_re:data()[other * 2 * N + j] + im[j] * V_im:data()[other * 2 * N + j] end
      t.near(dot, other == k and 1 or 0, 1e-6)
    end
  end
end)

t.test("initial values depend on the seed, and on nothing else", function()
  for _, name in ipairs(registry.names "cores") do
    local function numbers(seed)
      local parts, c = {}, core_rig.fresh({ name }, seed)
      for key, p in pairs(c:state_dict()) do parts[key] = core_rig.bytes(p) end
      return parts
    end
    local a, b, other = numbers(1), numbers(1), numbers(2)
    for key, bytes in pairs(a) do
      t.ok(b[key] == bytes, key .. " differs")
      local drawn = bytes ~= bytes:sub(1, 4):rep(#bytes / 4)        -- not all ones or zeros
      if key:find "weight$" and drawn then t.ok(other[key] ~= bytes, key .. " is the same for another seed") end
    end
  end
end)

-- ---- refused settings ----

local function refused(pattern, ...)
  local ok, err = pcall(cores.new, ...)
  t.ok(not ok, "accepted: expected " .. pattern)
  t.ok(tostring(err):find(pattern), tostring(err))
  t.ok(type(err) == "table" and err.status == 2, "status of: " .. tostring(err))
end

t.test("unknown and senseless settings are refused with status 2", function()
  refused("unknown core 'gruu'; did you mean 'gru'", "gruu")
  refused("unknown core 'galitee'; did you mean 'galite'", { "galitee" })
  refused("unknown key of core gru 'eta'", "gru", { eta = 4 })
  refused("unknown key of core galite 'n_heds'; did you mean 'n_heads'", "galite", { n_heds = 4 })
  refused("unknown feature = 'outer_rel'; did you mean 'outer_relu'", "galite", { feature = "outer_rel" })
  refused("unknown gate = 'outr'; did you mean 'outer'", "galite", { gate = "outr" })
  refused("unknown flow = 'x'.*known: gtrxl postnorm residual", "galite", { flow = "x" })
  refused("n_layers = 0, expected a whole number of at least 1", "gru", { n_layers = 0 })
  refused("d_model = 2.5, expected a whole number", "gru", { d_model = 2.5 })
  refused("d_model = big, expected a number", "gru", { d_model = "big" })
  refused("eta = 0, expected a whole number of at least 1", "galite", { eta = 0 })
  refused("r = 1.5, expected a whole number", "agalite", { r = 1.5 })
  refused("r=2 makes no difference: it belongs to approximation=cos", "galite", { r = 2 })
  refused("decay=joint has no cosine form", "agalite", { decay = "joint" })
  refused("decay=joint needs a gate", "galite", { decay = "joint", gate = "none" })
  refused("d_model = nan", "gru", { d_model = 0 / 0 })
  refused("d_model = inf", "gru", { d_model = math.huge })
  t.raises(function() cores.new(3) end, "expected a name")
  t.raises(function() cores.new {} end, "expected a name")
  t.fails(function() cores.new("gru", { d_model = 7e8 }) end)
  t.fails(function() cores.new("gru", { d_model = 2 ^ 40 }) end)
end)

-- ---- core files that leave something out ----

t.test("what a core's file leaves out, or gives in another shape, is named", function()
  local path = os.tmpname()
  os.remove(path)
  path = path .. ".lua"
  local file = [[
    local mn = require "mneme"
    return {
      config = { d_in = 4 },
      build = function(cfg)
        local map = mn.nn.linear(cfg.d_in, 3)
        return {
          module = map,
          d_out = 3,
          states = { h = "[B,D]" },
          sizes = { D = 3 },
          forward = function(x, done, state, probe) return map(x), { h = state.h } end,
        }
      end,
    }]]
  local x = mn.tensor { shape = { 2, 1, 4 } }
  local function with_line(from, to)
    local f = io.open(path, "w")
    f:write((file:gsub(from:gsub("%p", "%%%0"), (to:gsub("%%", "%%%%")))))
    f:close()
    package.loaded["mneme.models.cores"] = nil             -- which keeps files that it has read
    return require "mneme.models.cores".new(path)(x, nil, nil, function(_, seen) return seen end)
  end
  t.eq(table.concat(with_line("", ""):shape(), ","), "2,1,3")
  for _, case in ipairs {
    { "config = { d_in = 4 },", "", "a core file returns { doc = " }, { "build =", "built =", "a core file returns { doc = " },
    { "module = map,", "", "build gave module = nil, expected its parameters" }, { "d_out = 3,", "", "build gave d_out = nil" },
    { "states = { h = \"[B,D]\" },", "", "build gave states = nil" }, { "sizes = { D = 3 },", "sizes = {},", "state h is %[B,D%], and sizes has no D" },
    { ", { h = state.h }", "", "forward gave nothing as state h, expected %[1,3%]" },
    { "{ h = state.h }", "{}", "forward gave nothing as state h" },
    { "d_out = 3", "d_out = 5", "forward gave %[2,1,3%] as y, %[T,B,d_out%], expected %[2,1,5%]" },
    { "config = { d_in = 4 },", "config = { d_model = 4 },", "a core file returns { doc = " },
    { "{ h = state.h }", "{ h = map(x) }", "forward gave %[2,1,3%] as state h" },
    { "return map(x)", "if probe then probe(3, x) end return map(x)", "a probe was given a number and a tensor, expected a name" },
    { "return map(x)", "if probe then probe('h', 3) end return map(x)", "a probe was given a string and a number, expected a name" },
    { "map(x), { h", "3, { h", "forward gave a number as y" }, { "sizes = { D = 3 },", "sizes = { D = '3' },", "sizes.D = 3, expected a whole number" },
    { '"[B,D]"', "3", "state h is a number, expected its axes" }, { "d_out = 3,", "d_out = 3, start = { q = 1 },", "start has q, expected one of its states" },
    { "cfg.d_in, 3", "cfg.d_in, cfg.width", "nn.linear: d_out is nil, expected a whole number" },
  } do
    local ok, why = pcall(with_line, case[1], case[2])
    t.ok(not ok and tostring(why):find(case[3]), tostring(why))
    t.ok(case[3]:find "nn.linear" or case[3]:find "core file returns" or why.where:find(path, 1, true), tostring(why))
  end
  package.loaded["mneme.models.cores"] = cores
  os.remove(path)
end)
