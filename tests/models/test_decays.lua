-- test_decays.lua -- decays of the gated linear family: every entry is what its function says, however it is computed; those of a
-- script keep the contract of a core, are drawn with the weights that are measured, begin as asked, and say what is wrong with them.
local ffi = require "ffi"
local t = require "tests.harness"
local mn = require "mneme"
local contract = require "mneme.models.contract"
local cores = require "mneme.models.cores"
local implicit_attention = require "mneme.models.implicit_attention"
local core_rig = require "tests.support.core_rig"
local reading_rig = require "tests.support.reading_rig"
local tables = require "mneme.base.tables"

-- ---- decays of a script ----

-- b g^T as [T,B,H,V,K].
local function pairs_of(b, g)
  local s, K = b:shape(), g:shape()[4]
  return b:reshape(s[1], s[2], s[3], s[4], 1) * g:reshape(s[1], s[2], s[3], 1, K)
end

local own = {
  squared = { doc = "keep_v = 1-b^2,  keep_k = 1-g/2", keep = function(b, g) return b and 1 - b * b, g and 1 - g * 0.5 end },
  keys_alone = { keep = function(_, g) return nil, 1 - g * g end, needs = { "gamma" } },
  of_head = { doc = "the head keeps 1 - mean g", keep = function(_, g) return nil, 1 - g:mean(-1, 1) end, needs = { "gamma" } },
  crossed = { keep = function(b, g) return 1 - b * g:mean(-1, 1), 1 - g * b:mean(-1, 1) end, needs = { "beta", "gamma" } },
  joined = { joint = true, needs = { "beta", "gamma" }, keep = function(b, g) return 1 - b * b, 1 - g * g end },
  element = { doc = "1 - (b g^T)^2", needs = { "beta", "gamma" }, keep = function(b, g) return 1 - pairs_of(b, g):square(), 1 - g * g end },
  element_joint = { needs = { "beta", "gamma" }, keep = function(b, g) return 1 - pairs_of(b, g), 1 - g end },
  element_separable = { needs = { "beta", "gamma" }, keep = function(b, g) return pairs_of(1 - b, 1 - g), 1 - g end },
}
for name, entry in pairs(mn.decays) do own[name .. "_apart"] = { doc = entry.doc, keep = entry.keep, joint = entry.joint, needs = entry.needs } end

local function with_own(f)
  for name, entry in pairs(own) do mn.decays[name] = entry end
  local ok, problem = pcall(f)
  for name in pairs(own) do mn.decays[name] = nil end
  if not ok then error(problem, 0) end
end

-- ---- what is computed ----

-- y, states and all gradients of a small core.
local function results(settings)
  local c = core_rig.build(settings, 1)
  local x, done = core_rig.normal({ 19, 2, 5 }, 1, true), core_rig.done(19, 2, { { 4, 0 }, { 11 } })
  local y, after = c(x, done, core_rig.warm(c, 2))
  local all, loss = { y = core_rig.bytes(y) }, (y * core_rig.normal(y:shape(), 3)):sum()
  for name, s in pairs(after) do
    all["state " .. name] = core_rig.bytes(s)
    if not c:is_stopped(name) then loss = loss + (s * core_rig.normal(s:shape(), 4)):sum() end
  end
  loss:backward()
  all["gradient of x"] = ffi.string(x:grad_data(), 4 * x:size())
  for name, p in pairs(c:named_parameters()) do all["gradient of " .. name] = ffi.string(p:grad_data(), 4 * p:size()) end
  mn.clear_tape()
  return all, c
end

local function agree(what, a, b, tolerance)
  for name, bytes in pairs(a) do
    local n, p, q, size = #bytes / 4, ffi.cast("const float *", bytes), ffi.cast("const float *", b[name]), 1e-2
    for i = 0, n - 1 do size = math.max(size, math.abs(p[i])) end
    for i = 0, n - 1 do t.near(q[i], p[i], tolerance * size, what .. ": " .. name) end
  end
end

local gates_of = { outer = true, elementwise = true, scalar = true }

-- f(settings) for each gate and form that a decay goes with.
local function each_use(name, forms, f)
  local ran = 0
  for gate in pairs(gates_of) do
    for _, form in ipairs(forms) do
      local settings = { "galite", decay = name, gate = gate, approximation = form }
      if form == "svd" then settings.r = 24 end
      local ok, problem = pcall(cores.new, "galite", { decay = name, gate = gate, approximation = form, n_layers = 1, eta = 1, d_head = 4 })
      if ok then
        f(settings, ("decay=%s gate=%s approximation=%s"):format(name, gate, form))
        ran = ran + 1
      else
        local said = tostring(problem)
        t.ok(said:find "needs a gate" or said:find "needs a decay of" or said:find "is not a product", said)
      end
    end
  end
  t.ok(ran > 0, name .. " goes with no gate")
end

for _, name in ipairs(tables.keys(mn.decays)) do
  t.test(name .. ": what kernels do without storing it equals what keep returns", function()
    with_own(function()
      each_use(name, { "full", "cos", "svd" }, function(settings, what)
        local fused = results(settings)
        settings.decay = name .. "_apart"
        agree(what, fused, results(settings), 3e-5)
      end)
    end)
  end)
end

t.test("a decay of elements equals the kernels where it is one that they know", function()
  with_own(function()
    for _, more in ipairs { {}, { normalise = false }, { den_clamp = 0.4, gate = "elementwise" }, { feature = "favor_softmax", m = 8 },
                            { eps = 0, feature = "relu" } } do
      for _, name in ipairs { "joint", "separable" } do
        local settings = { "galite", decay = name }
        for key, value in pairs(more) do settings[key] = value end
        local kernel = results(settings)
        settings.decay = "element_" .. name
        agree(settings.decay, kernel, results(settings), more.eps and 5e-4 or 3e-5)      -- without eps every slope is steep
      end
    end
  end)
end)

for _, name in ipairs { "squared", "of_head", "crossed", "joined", "element" } do
  t.test("a script's decay " .. name .. " keeps the contract of a core", function()
    with_own(function()
      for _, more in ipairs { { "galite", feature = "outer_elu1" }, { "galite", gate = "elementwise", feature = "elu1", normalise = false, embed_act = "none" },
        { "agalite", r = 3 } } do
        if more[1] == "galite" or not own[name].joint and not name:find "element" then
          more.decay = name
          for _, property in ipairs(contract) do
            local ok, problem = pcall(property.holds, more)
            t.ok(ok, ("%s %s: %s: %s"):format(more[1], name, property.name, tostring(problem)))
          end
        end
      end
    end)
  end)
end

-- ---- what is drawn ----

-- Weights of every step in the last one, drawn and measured: what is read where one step's value is 1 and all others are 0.
local function drawn_and_measured(settings)
  local c, pairs_seen = core_rig.build(settings, 1), {}
  local now, read, heads = reading_rig.look(c, 2)
  now.reads = c.reads
  for head = 0, heads - 1 do
    for channel = 0, c.config.d_head - 1 do
      local w, n, unseen = implicit_attention.weights(now, 0, head, channel)
      t.eq(n, #read) t.eq(unseen, 0)
      for j = 0, n - 1 do pairs_seen[#pairs_seen + 1] = { w[j], read[j][head * c.config.d_head + channel] } end
    end
  end
  return pairs_seen, now
end

t.test("the weights that are drawn of a decay that is a product are those that are measured", function()
  with_own(function()
    local seen = 0
    for _, name in ipairs(tables.keys(mn.decays)) do
      for gate in pairs(gates_of) do
        local settings = { "galite", decay = name, gate = gate, normalise = false, feature = "elu1" }
        local ok, c = pcall(cores.new, "galite", { decay = name, gate = gate, feature = "elu1", n_layers = 1, d_head = 4 })
        if ok and c.reads ~= "joint" then
          local list, now = drawn_and_measured(settings)
          t.eq(implicit_attention.problem(now), nil, name)
          local most = 0
          for _, pair in ipairs(list) do most = math.max(most, math.abs(pair[2])) end
          t.ok(most > 0, name)
          for _, pair in ipairs(list) do t.near(pair[1], pair[2], 2e-5 * most, ("decay=%s gate=%s"):format(name, gate)) end
          t.ok(implicit_attention.horizon(now, 0, 0) > 0, name)
          seen = seen + 1
        end
      end
    end
    t.ok(seen > 20, seen .. " were compared")
  end)
end)

t.test("half-lives that are drawn are those of what is kept", function()
  with_own(function()
    mn.decays.constant = { keep = function(b, g) return b * 0 + 0.9, g * 0 + 0.95 end, needs = { "beta", "gamma" } }
    local _, now = drawn_and_measured { "galite", decay = "constant", feature = "elu1", normalise = false }
    local steps = implicit_attention.horizon(now, 0, 0)
    t.near(steps, math.log(0.5) / math.log(0.9 * 0.95), 1e-3)
    mn.decays.constant = nil
    _, now = drawn_and_measured { "galite", decay = "none", feature = "elu1", normalise = false }
    t.eq(implicit_attention.horizon(now, 0, 0), math.huge)
  end)
end)

t.test("no weight belongs to a step where the decay is no product, whatever it is called", function()
  with_own(function()
    for _, name in ipairs { "joint", "joined", "element", "joint_apart", "element_joint" } do
      local c = cores.new("galite", { decay = name, n_layers = 1 })
      local now = { reads = c.reads, probes = {}, history = { { step = 0, probes = {} } }, step = 0 }
      t.ok(implicit_attention.problem(now):find "^no weight belongs to a step: this core's decay is no product", name)
      t.eq(implicit_attention.horizon(now, 0, 0), nil)
      t.ok(implicit_attention.no_horizon(now):find "each element", name)
    end
    local ours = mn.decays.joint
    mn.decays.joint = own.squared
    t.eq(cores.new("galite", { decay = "joint", n_layers = 1 }).reads, "kept")
    mn.decays.joint = ours
    mn.gates.halved = { beta = true, gamma = function(_, K) return K end,
      apply = function(_, args) args.beta, args.gamma = args.beta * 0.5, args.gamma * 0.5 end }
    t.eq(cores.new("galite", { gate = "halved", n_layers = 1 }).reads, "gated")
    local list = drawn_and_measured { "galite", gate = "halved", normalise = false, feature = "elu1" }
    for _, pair in ipairs(list) do t.near(pair[1], pair[2], 1e-4) end
    mn.gates.constant = { beta = true, decay = "separable", apply = function(_, args)
      local H, V, K = args.v:shape()[3], args.v:shape()[4], args.k:shape()[4]
      args.keep_v = mn.expand_time { x = mn.tensor { shape = { H, V } }:fill(0.9), like = args.v }
      args.keep_k = mn.expand_time { x = mn.tensor { shape = { H, K } }:fill(0.8), like = args.v }
    end }
    t.eq(cores.new("galite", { gate = "constant", n_layers = 1 }).reads, "kept")
    list = drawn_and_measured { "galite", gate = "constant", normalise = false, feature = "elu1" }
    for _, pair in ipairs(list) do t.near(pair[1], pair[2], 1e-4) end
    t.eq(cores.new("galite", { gate = "mega", n_layers = 1 }).reads, "joint")
    mn.gates.halved, mn.gates.constant = nil, nil
  end)
end)

-- ---- how gates begin ----

-- What is left of the first layer's state of ones after a step with a zero input that writes nothing: the first element, or with `whole` all, and how many.
local function left_after_a_step(c, whole)
  local state = c:initial(1)
  for name in pairs(c.states) do state[name]:fill(1) end
  local _, after = c(mn.tensor { shape = { 1, 1, c.config.d_in } }, nil, state)
  local C = after["layers.0.C"]
  if whole then return C:data(), C:size() end
  return C:data()[0]
end

t.test("core.remember is the half-life of every decay, or says why it cannot be", function()
  with_own(function()
    local sizes = { d_in = 8, d_model = 16, n_layers = 2, n_heads = 2, d_head = 8, d_ffn = 16 }
    local function build(name, gate, remember)
      local config = { decay = name, gate = gate, remember = remember }
      for key, value in pairs(sizes) do config[key] = value end
      return cores.new("galite", config)
    end
    local seen = 0
    for _, name in ipairs(tables.keys(mn.decays)) do
      for gate in pairs(gates_of) do
        local ok, c = pcall(build, name, gate, "published")
        if ok and name:find "^none" then
          t.raises(function() build(name, gate, "20") end, "no gate that forgets")
        elseif ok then
          local half_life = c:half_lives()[1].median
          if gate ~= "outer" then t.near(math.log(0.5) / math.log(left_after_a_step(c)), half_life, 2e-3 * half_life, name .. " as published") end
          c = build(name, gate, "20")
          t.near(left_after_a_step(c), 0.5 ^ (1 / 20), 1e-5, name .. " " .. gate)
          for _, layer in ipairs(c:half_lives()) do
            t.near(layer.shortest, 20, 0.02, name)
            t.near(layer.longest, 20, 0.02, name)
          end
          c = build(name, gate, "5..50")
          local spread, all = c:half_lives()[1], {}
          local p, n = left_after_a_step(c, true)
          for i = 0, n - 1 do all[i + 1] = math.log(0.5) / math.log(p[i]) end
          table.sort(all)
          for key, want in pairs { shortest = all[1], median = (all[n / 2] + all[n / 2 + 1]) / 2, longest = all[n] } do
            t.near(spread[key], want, 2e-3 * want, ("%s %s %s"):format(name, gate, key))
          end
          t.ok(spread.longest < 50.1 and (spread.shortest < spread.longest or name == "of_head"), name)
          seen = seen + 1
        end
      end
    end
    t.ok(seen > 25, seen .. " were measured")
    t.fails(function() build("exponential", "outer", "0.2") end)
    mn.decays.uneven = { keep = function(_, g)
      local K = g:shape()[4]
      local power = mn.tensor { shape = { K } }
      for i = 0, K - 1 do power:data()[i] = i / K end
      return nil, 1 - g * power
    end }
    t.eq(build("uneven", "outer", "published"):half_lives(), nil)
    t.fails(function() build("uneven", "outer", "20") end)
    mn.decays.uneven = nil
  end)
end)

-- ---- what is wrong ----

t.test("what is wrong with a decay is said by name", function()
  local function refused(pattern, entry, config)
    mn.decays.mine = entry
    config = config or {}
    config.decay, config.n_layers, config.n_heads, config.d_head, config.eta = "mine", 1, 2, 4, 2
    local ok, err = pcall(cores.new, "galite", config)
    mn.decays.mine = nil
    t.ok(not ok and err.message:find(pattern), tostring(err) .. "\nexpected " .. pattern)
    t.eq(err.status, pattern == "mn.decays.mine" and 1 or 2)
  end
  refused("mn.decays.mine", 3)
  refused("mn.decays.mine.keep is missing, expected function%(beta, gamma%)", {})
  refused("key of mn.decays.mine: 'kep'; did you mean 'keep'", { kep = function() end, keep = function() end })
  refused("decay=mine: keep gave %[1,2,1,4%] as keep_v, expected %[T,B,H,V%]", { keep = function(b) return b:reshape(1, 2, 1, 4) end })
  refused("decay=mine: keep gave %[1,1,2,8%] as keep_v, expected %[T,B,H,V%] = %[1,1,2,4%], %[T,B,H,V,K%] = %[1,1,2,4,8%], %[T,B,H,1%], or nil",
    { keep = function(_, g) return g end })
  refused("decay=mine: keep gave %[1,1,2,4%] as keep_k, expected %[T,B,H,K%] = %[1,1,2,8%], %[T,B,H,1%], or nil", { keep = function(b) return nil, b end })
  refused("decay=mine: keep gave a number as keep_v", { keep = function() return 0.5 end })
  refused("decay=mine: keep_k is 1.4 at beta = 0, gamma = 0.9, expected 0 to 1", { keep = function(_, g) return nil, 0.5 + g end })
  refused("decay=mine: keep_v is %-", { keep = function(b) return 0.5 - b end })
  refused("decay=mine: keep_k is NaN at beta = 0, gamma = 0.9, expected", { keep = function(_, g) return nil, mn.pow(0.5 - g, 0.5) end })
  refused("decay=mine: keep%(beta, gamma%) failed with gate=scalar, which has no gamma: ", { keep = function(_, g) return nil, 1 - g end }, { gate = "scalar" })
  refused("decay=mine: joint = true joins keep_v", { joint = true, keep = function(b) return 1 - b end })
  refused("decay=mine: its rest says that keep_k = 1 at beta = 0, gamma = 0, and keep gives 0.9",
    { rest = { gamma = true }, keep = function(_, g) return nil, 0.9 - g * 0.5 end })
  refused("decay=mine: its rest says that keep gives keep_v, and it does not", { rest = { beta = true }, keep = function() end })
  refused("decay=mine makes no difference: decay=mine has no cosine form", own.element, { approximation = "cos" })
  refused("decay=mine makes no difference: gate=mega has a decay of its own", own.squared, { gate = "mega" })
  refused("decay=mine makes no difference: update=delta has a scalar decay", own.squared, { update = "delta" })
  t.fails(function() cores.new("galite", { decay = "seperable" }) end)
  mn.gates.mine = { beta = true, apply = function(_, args) args.keep_v = 1 - args.beta end }
  local c = cores.new("galite", { gate = "mine", n_layers = 1 })
  t.fails(function() c(mn.tensor { shape = { 1, 1, 16 } }) end)
  refused("mn.decays.mine.needs names gama, expected \"beta\" or \"gamma\"", { needs = { "gama" }, keep = own.squared.keep })
  mn.gates.mine = { beta = true, apply = function(_, args) args.write_v = args.beta end }
  c = cores.new("galite", { gate = "mine", n_layers = 1 })
  t.fails(function() c(mn.tensor { shape = { 1, 1, 16 } }) end)
  mn.gates.mine = { beta = true, decay = "separable" }
  c = cores.new("galite", { gate = "mine", n_layers = 1 })
  t.fails(function() c(mn.tensor { shape = { 1, 1, 16 } }) end)
  mn.gates.mine = nil
end)
