-- test_feature_maps.lua -- feature maps of the gated linear family against their equations in double, the kernels that
-- random features stand for, rotary positions, and what fixed random matrices are.
local t = require "tests.harness"
local cores = require "mneme.models.cores"
local feature_maps = require "mneme.models.axes.feature_maps"
local mn = require "mneme"
local core_rig = require "tests.support.core_rig"
local ops = mn.ops

-- A leaf with these numbers, in order.
local function filled(shape, list, grad)
  local p = mn.tensor { shape = shape, grad = grad }
  for i, v in ipairs(list) do p:data()[i - 1] = v end
  return p
end

local function numbers(f) local a = f:data() return function(i) return a[i] end end

-- ---- sines ----

t.test("fourier: sines and cosines in float32, for angles that have grown large too", function()
  for _, scale in ipairs { 1, 30, 1000, 1e5 } do
    local x = core_rig.normal({ 200, 5 }, 1)
    for i = 0, x:size() - 1 do x:data()[i] = x:data()[i] * scale end
    local y = ops.fourier(x)
    t.eq(table.concat(y:shape(), ","), "200,10")
    for i = 0, x:size() - 1 do
      local r, c, angle = math.floor(i / 5), i % 5, x:data()[i]
      t.near(y:data()[r * 10 + c], math.sin(angle) / math.sqrt(5), 6e-8, "sin " .. angle)
      t.near(y:data()[r * 10 + 5 + c], math.cos(angle) / math.sqrt(5), 6e-8, "cos " .. angle)
    end
  end
  local far = filled({ 1, 4 }, { 1e30, -3e38, math.huge, -math.huge })
  t.ok(core_rig.finite(mn.keep(ops.fourier(far))), "a phase that has no meaning is still a sine")
  mn.clear_tape()
end)

-- ---- rotary positions ----

t.test("rotary: pairs turn by (tick + t) base^(-2i/D), and a clock that never stops loses nothing", function()
  local T, B, H, D = 5, 2, 3, 6
  for _, start in ipairs { 0, 1, 1000, 16e6 } do
    local x, tick = core_rig.normal({ T, B, H, D }, 3), filled({ B }, { start, start + 7 })
    local y, after = ops.rotary { x = x, tick = tick }
    t.eq(after:data()[1], start + 7 + T)
    local of = numbers(x)
    for row = 0, T * B * H - 1 do
      local step, b = math.floor(row / (B * H)), math.floor(row / H) % B
      for i = 0, D / 2 - 1 do
        local angle = (start + 7 * b + step) * 10000 ^ (-2 * i / D)
        local u, v, at = of(row * D + 2 * i), of(row * D + 2 * i + 1), row * D + 2 * i
        t.near(y:data()[at], u * math.cos(angle) - v * math.sin(angle), 1e-6, "even")
        t.near(y:data()[at + 1], u * math.sin(angle) + v * math.cos(angle), 1e-6, "odd")
      end
    end
    mn.clear_tape()
  end
  t.fails(function() ops.rotary { x = core_rig.normal({ 2, 1, 1, 3 }, 1), tick = mn.tensor { shape = { 1 } } } end)
end)

t.test("rotary: raw products tell distances, whatever the clock says", function()
  local settings = { "galite", feature = "identity", gate = "none", normalise = false, rotary = true, flow = "residual" }
  local c = core_rig.build(settings, 1)
  local x, late = core_rig.normal({ 9, 2, 5 }, 1), c:initial(2)
  late.tick:fill(1000)
  local y, after = core_rig.run(c, x)
  t.near(core_rig.apart(core_rig.run(c, x, nil, late), y), 0, 2e-5, "shifted")
  t.eq(after.tick:data()[0], 9)
  local still = core_rig.build(settings, 1, { rotary = false })
  still:load_state_dict(c:state_dict())
  t.ok(core_rig.apart(core_rig.run(still, x), y) > 1e-2, "rotary changes nothing")
  t.eq(c.claims.reset, "up to tick")
end)

-- ---- DPFP ----

t.test("dpfp: u * roll(u, j) to the right, also past a whole turn", function()
  local D = 3
  for _, nu in ipairs { 1, 2, 7 } do
    local x = core_rig.normal({ 4, D }, 2)
    local y, of = ops.dpfp { x = x, nu = nu }, numbers(x)
    t.eq(y:shape()[2], 2 * nu * D)
    for r = 0, 3 do
      local u = {}
      for i = 0, D - 1 do u[i], u[D + i] = math.max(of(r * D + i), 0), math.max(-of(r * D + i), 0) end
      for j = 1, nu do
        for i = 0, 2 * D - 1 do
          t.near(y:data()[r * 2 * nu * D + (j - 1) * 2 * D + i], u[i] * u[(i - j) % (2 * D)], 1e-6, "nu=" .. nu)
        end
      end
    end
    mn.clear_tape()
  end
  t.fails(function() ops.dpfp { x = core_rig.normal({ 2, 3 }, 1), nu = 1.5 } end)
end)

-- ---- positive random features ----

-- y of ungated attention on logits, in double, with no maximum taken off anywhere but over everything.
local function direct(zq, zk, v, T, heads, M, V, first)
  local out, top = {}, -math.huge
  for i = 0, T * heads * M - 1 do top = math.max(top, zk(i)) end
  for h = 0, heads - 1 do
    for now = 0, T - 1 do
      local num, den, from = {}, 0, 0
      for s = 0, now do if first(s, h) then from = s end end
      for d = 0, V - 1 do num[d] = 0 end
      local above = -math.huge
      for m = 0, M - 1 do above = math.max(above, zq((now * heads + h) * M + m)) end
      for s = from, now do
        local dot = 0
        for m = 0, M - 1 do
          dot = dot + math.exp(zq((now * heads + h) * M + m) - above) * math.exp(zk((s * heads + h) * M + m) - top)
        end
        den = den + dot
        for d = 0, V - 1 do num[d] = num[d] + dot * v((s * heads + h) * V + d) end
      end
      for d = 0, V - 1 do out[(now * heads + h) * V + d] = num[d] / den end
    end
  end
  return out
end

t.test("favor: a running maximum gives what one maximum over everything gives, through jumps and resets", function()
  local T, B, H, M, V = 35, 2, 1, 4, 3
  local zq, zk, v = core_rig.normal({ T, B, H, M }, 1), core_rig.normal({ T, B, H, M }, 2), core_rig.normal({ T, B, H, V }, 3)
  local p = zk:data()
  for i = 0, zk:size() - 1 do      -- logits that climb by steps, so that old keys shrink and then vanish
    local now = math.floor(i / (B * H * M))
    p[i] = p[i] + (now >= 20 and 40 or now >= 10 and 12 or 0)
  end
  local done = core_rig.done(T, B, { { 5, 0 }, { 16, 1 }, { 25, 0 } })
  local top, shrink, c = ops.running_max { z = zk, done = done }
  local y = ops.linear_attention { q = ops.favor_features { z = zq, top = ops.running_max { z = zq, of = "token" } },
    k = ops.favor_features { z = zk, top = top }, v = v, done = done, shrink = shrink, eps = 0 }
  local want = direct(numbers(zq), numbers(zk), numbers(v), T, B, M, V, function(s, b) return done:data()[s * B + b] ~= 0 end)
  for i = 0, T * B * V - 1 do t.near(y:data()[i], want[i], 2e-5, "y[" .. i .. "]") end
  local largest = -math.huge
  for i = 0, zk:size() - 1 do
    if math.floor(i / M) % B == 0 and i >= 25 * B * M then largest = math.max(largest, p[i]) end
  end
  t.near(c:data()[0], largest, 1e-6, "c is the largest since the reset")
  mn.clear_tape()
end)

t.test("favor: the largest logit is a constant, and starts at minus infinity again after a reset", function()
  local z = filled({ 3, 1, 1, 2 }, { 3, 1, -5, -4, 7, 2 }, true)
  local done = core_rig.done(3, 1, { { 1 } })
  local top, shrink, c = ops.running_max { z = z, done = done, c = filled({ 1, 1 }, { 2 }) }
  for i, want in ipairs { 3, -4, 7 } do t.eq(top:data()[i - 1], want) end
  for i, want in ipairs { math.exp(-1), 0, math.exp(-11) } do t.near(shrink:data()[i - 1], want, 1e-7) end
  t.eq(c:data()[0], 7)
  ops.favor_features({ z = z, top = top:detach() }):sum():backward()
  for i, want in ipairs { 1, math.exp(-2), math.exp(-1), 1, 1, math.exp(-5) } do
    t.near(z:grad_data()[i - 1], want / math.sqrt(2), 1e-6, "dz " .. i)
  end
  mn.clear_tape()
end)

-- Features of a few vectors, with the matrix that a core of this configuration would have.
local function mapped(name, m, d, vectors)
  local cfg = { feature = name, n_heads = 1, d_head = d, m = m, feature_eps = 0 }
  local f, w = feature_maps.list[name], mn.tensor { shape = { 1, m, d } }
  mn.manual_seed(5)
  f.buffer(w:data(), cfg)
  local a = filled({ #vectors / d, 1, 1, d }, vectors)
  return a, w, cfg
end

t.test("random features stand for their kernels", function()
  local d, m = 4, 20000
  local vectors = { 0.5, -0.3, 0.8, 0.1, 0.9, 0.2, -0.4, 0.6, -0.7, 0.3, 0.2, -0.1 }
  local function dot(y, K, i, j)
    local sum = 0
    for k = 0, K - 1 do sum = sum + y:data()[i * K + k] * y:data()[j * K + k] end
    return sum
  end
  local function product(i, j, scale)
    local sum = 0
    for k = 1, d do sum = sum + vectors[i * d + k] * vectors[j * d + k] * scale[i] * scale[j] end
    return sum
  end
  local one = { [0] = 1, 1, 1 }
  -- exp(z_q).exp(z_k) / m is in the mean exp(q.k / sqrt d)
  local a, w = mapped("favor_softmax", m, d, vectors)
  local z = ops.favor_logits { x = a, w = w }
  local y = ops.favor_features { z = z, top = mn.tensor { shape = { 3, 1, 1 } } }
  for i = 0, 2 do for j = 0, 2 do
    t.near(dot(y, m, i, j) / math.exp(product(i, j, one) / math.sqrt(d)), 1, 0.04, "softmax kernel")
  end end
  -- cos(w.(q - k)) is in the mean exp(-|q - k|^2 / 2), here for unit vectors
  local b, u, cfg = mapped("rfa", m, d, vectors)
  local r = feature_maps.list.rfa.map(b, { cfg = cfg, w = u })
  local length = {}
  for i = 0, 2 do length[i] = 1 / (math.sqrt(product(i, i, one)) + 1e-3) end
  for i = 0, 2 do for j = 0, 2 do
    t.near(dot(r, 2 * m, i, j), math.exp(product(i, j, length) - (product(i, i, length) + product(j, j, length)) / 2), 0.03, "Gaussian kernel")
  end end
  mn.clear_tape()
end)

t.test("random matrices are saved but not trained; Performer's rows are orthogonal in blocks and as long as normal ones", function()
  mn.manual_seed(2)
  local d, m = 8, 20
  for _, name in ipairs { "performer", "performer_relu", "rfa" } do
    local c = cores.new(name, { n_layers = 1, n_heads = 2, d_head = d, m = m, d_model = 8, d_ffn = 4 })
    local key = "layers.0.attn.features"
    local w = c:state_dict()[key]
    t.eq(table.concat(w:shape(), ","), "2,20,8", name)
    t.ok(not c:named_parameters()[key], name .. ": features are listed as parameters")
    for _, p in ipairs(c:parameters()) do t.ok(p:size() ~= w:size() or #p:shape() ~= 3, name) end
    local lengths, other = 0, 0
    for row = 0, 2 * m - 1 do
      for col = row, 2 * m - 1 do
        local sum = 0
        for i = 0, d - 1 do sum = sum + w:data()[row * d + i] * w:data()[col * d + i] end
        if row == col then lengths = lengths + sum
        elseif math.floor(row / m) == math.floor(col / m) and math.floor(row % m / d) == math.floor(col % m / d) then
          other = t.larger(other, math.abs(sum))
        end
      end
    end
    t.near(lengths / (2 * m * d), 1, 0.25, name .. ": mean square")
    if name == "rfa" then t.ok(other > 1, "independent rows") else t.near(other, 0, 1e-5, name .. ": orthogonal blocks") end
  end
  local one, two = cores.new("rfa", { n_layers = 2, m = 4 }), cores.new("rfa", { n_layers = 2, m = 4 })
  local a, b = one:state_dict(), two:state_dict()
  t.ok(core_rig.bytes(a["layers.0.attn.features"]) ~= core_rig.bytes(a["layers.1.attn.features"]), "layers share a matrix")
  two:load_state_dict(a)
  t.ok(core_rig.bytes(a["layers.1.attn.features"]) == core_rig.bytes(b["layers.1.attn.features"]), "features are not loaded")
end)

-- ---- learned maps ----

t.test("feature=nn takes its activation, and exp stays finite", function()
  for _, act in ipairs { "relu", "elu1", "exp" } do
    local c, seen = core_rig.build({ "galite", feature = "nn", nn_act = act, n_layers = 1 }, 1), {}
    mn.no_grad(function()
      c(core_rig.normal({ 2, 1, 5 }, 1), nil, nil, function(name, p) seen[name] = mn.keep(p) return p end)
    end)
    local k, least, most = seen["layers.0.k"], math.huge, -math.huge
    t.eq(k:shape()[4], 8)                                      -- eta * d_head
    for i = 0, k:size() - 1 do least, most = math.min(least, k:data()[i]), math.max(most, k:data()[i]) end
    t.ok(act == "relu" and least == 0 or act ~= "relu" and least > 0, act)
    t.ok(most > 1, act)
  end
  local c = core_rig.build({ "galite", feature = "nn", nn_act = "exp", flow = "postnorm", eps = 1e-5 }, 1)
  local x = core_rig.normal({ 4, 1, 5 }, 1)
  for i = 0, x:size() - 1 do x:data()[i] = 1e4 * x:data()[i] end
  t.ok(core_rig.finite(core_rig.run(c, x)), "exp overflows")
end)

-- ---- a map of a script's ----

local function galite(feature)
  return mn.core("galite", { d_in = 8, d_model = 16, n_layers = 1, n_heads = 2, d_head = 8, d_ffn = 16, gate = "elementwise", feature = feature })
end

t.test("a feature map of a script's needs `map` alone; each member that is wrong is named, with the user's line", function()
  mn.features.mine = { doc = "phi = a^2", map = function(a) return a:square() end }
  local y = galite("mine")(core_rig.normal({ 5, 2, 8 }, 1))
  t.eq(table.concat(y:shape(), ","), "5,2,16")
  for pattern, entry in pairs {
    ["key of mn.features.mine: 'mpa'; did you mean 'map'"] = { mpa = print },
    ["mn.features.mine.rows is a number, expected a function"] = { rows = 3 },
    ["mn.features.mine.keys is a string, expected a table"] = { keys = "eta" },
    ["mn.features.mine: rows is nil"] = { rows = function() end }, ["mn.features.mine: size is 1.5"] = { size = function() return 1.5 end },
    ["mn.features.mine: unknown act 'rleu'; did you mean 'relu'"] = { act = "rleu" },
    ["mn.features.mine.act is a boolean, expected the name of an op"] = { act = true },
    ["mn.features.mine.map gave %[5,2,2,8%], expected a tensor %[5,2,2,16%]"] = { size = function() return 16 end, map = function(a) return a end },
    ["mn.features.mine.map gave nothing"] = { map = function() end },
  } do
    mn.features.mine = entry
    t.raises(function() galite("mine")(core_rig.normal({ 5, 2, 8 }, 1)) end, "test_feature_maps.lua:%d+: .*" .. pattern)
  end
  mn.features.mine = nil
  t.fails(function() galite "mine" end)
  for key, wrong in pairs { beta = 3, gamma = "true", apply = {}, decay = true } do
    mn.gates.mine = { [key] = wrong }
    t.raises(function() mn.core("galite", { d_in = 8, d_model = 16, gate = "mine" }) end, "mn.gates.mine." .. key .. " is ")
  end
  mn.gates.mine = nil
  for list, of in pairs { features = feature_maps, gates = require "mneme.models.axes.gates", decays = require "mneme.models.axes.decays" } do
    for name, entry in pairs(of.ours) do
      for key in pairs(entry) do t.ok(of.members[key], ("mn.%s.%s has %s, which is no declared member"):format(list, name, key)) end
    end
  end
end)
