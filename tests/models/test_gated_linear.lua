-- test_gated_linear.lua -- the grid of the gated linear family: every combination of its axes either runs or says why
-- not; corners keep the contract; settings that make no difference are refused; users add to the tables.
local t = require "tests.harness"
local gated_linear_rules = require "mneme.models.gated_linear_rules"
local contract = require "mneme.models.contract"
local cores = require "mneme.models.cores"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local mn = require "mneme"
local core_rig = require "tests.support.core_rig"

-- ---- the whole grid ----

local axes = {
  { "flow", "gtrxl", "residual", "postnorm" }, { "normalise", true, false }, { "query", "single", "double" },
  { "decay", "separable", "joint", "gamma_only", "exponential" }, { "gate", "outer", "elementwise", "scalar", "none", "mega" },
  { "update", "sum", "delta", "fastweight" }, { "approximation", "full", "cos", "random_sign", "svd" },
  { "feature", "outer_relu", "outer_elu1", "elu1", "relu", "nn", "identity", "dpfp", "rfa", "favor_softmax", "favor_relu" },
}
local tiny = { d_in = 3, d_model = 4, n_layers = 1, n_heads = 2, d_head = 2, d_ffn = 2, eta = 2, m = 2 }

-- Why a combination may be refused.
local reasons = {
  "update=%a+ needs the whole matrix", "update=%a+ has gates of its own", "update=fastweight has no normaliser",
  "decay=joint has no cosine form", "decay=joint has no form with random signs", "decay=joint has no form of low rank",
  "decay=joint needs a gate of values and one of keys", "decay=gamma_only needs a gate of keys", "decay=exponential needs a gate",
  "gate=mega has a decay of its own",
  "approximation=[%w_]+ needs a decay of values and one of keys", "approximation=svd needs a decay that scales rows",
  "update=%a+ has a scalar decay", "update=fastweight does not forget",
  "update=%a+ divides keys by their sum", "cannot be rescaled",
}

local function explained(message)
  for _, reason in ipairs(reasons) do if message:find(reason) then return reason end end
end

-- Forward and backward through a reset: everything that comes out is finite.
local function runs(c, what)
  local x, done = core_rig.normal({ 3, 2, 3 }, 1, true), core_rig.done(3, 2, { { 1, 0 }, { 2 } })
  local y, after = c(x, done)
  local loss = y:sum()
  for _, name in ipairs(c:state_names()) do if not c:is_stopped(name) then loss = loss + after[name]:sum() end end
  t.ok(core_rig.finite(y), what .. ": y")
  for name, s in pairs(after) do t.ok(core_rig.finite(s), what .. ": " .. name) end
  loss:backward()
  local g = x:grad_data()
  for i = 0, x:size() - 1 do t.ok(g[i] - g[i] == 0, what .. ": gradient of x") end
  for name, p in pairs(c:named_parameters()) do
    local q = p:grad_data()
    for i = 0, p:size() - 1 do t.ok(q[i] - q[i] == 0, what .. ": gradient of " .. name) end
  end
  mn.clear_tape()
end

-- Every combination of axes[i..], f(settings, the sum of their places in the axes).
local function each_combination(f, i, settings, places)
  i, settings, places = i or #axes, settings or {}, places or 0
  if i == 0 then return f(settings, places) end
  for k = 2, #axes[i] do
    settings[axes[i][1]] = axes[i][k]
    each_combination(f, i - 1, settings, places + k)
  end
end

-- A third of all: any values of six axes meet, since the two others reach every sum.
t.test("every combination of axes runs, or says why it has no meaning", function()
  local defaults, ran, seen, n = cores.definition "galite".config, 0, {}, 0
  mn.manual_seed(1)
  each_combination(function(settings, places)
    n = n + 1
    if places % 3 > 0 then return end
    local config, words = {}, {}
    for key, value in pairs(tiny) do config[key] = value end
    for key, value in pairs(settings) do
      if value ~= defaults[key] then config[key] = value words[#words + 1] = key .. "=" .. tostring(value) end
    end
    config.eta, config.m = nil, nil              -- which are set in vain where the axes do not have them
    if settings.feature:find "^outer" or settings.feature == "nn" then config.eta = 2 end
    if settings.feature == "rfa" or settings.feature:find "^favor" then config.m = 2 end
    local what = table.concat(words, " ")
    local ok, c = xpcall(cores.new, errors.handler, "galite", config)
    if not ok then
      local reason = explained(c.message)
      t.ok(reason and c.status == 2, what .. ": " .. c.message)
      seen[reason] = true
    -- flows and read-outs are the same code for all: a few of each will do
    elseif settings.flow == "gtrxl" or n % 4 == 0 then
      runs(c, what)
      ran = ran + 1
    end
  end)
  t.eq(n, 28800)
  t.ok(ran > 500, ran .. " combinations ran")
  for _, reason in ipairs(reasons) do
    if not reason:find "no normaliser" then t.ok(seen[reason], "nothing was refused because: " .. reason) end
  end
end)

t.test("the equations that help prints name the gates, the decay and the normaliser that there are, and no other", function()
  local n = 0
  for _, gate in ipairs { "outer", "elementwise", "scalar", "none" } do
    for _, held in ipairs { { "approximation", "full" }, { "approximation", "cos" }, { "approximation", "random_sign" }, { "approximation", "svd" },
                            { "update", "delta" }, { "update", "fastweight" } } do
      for _, decay in ipairs(tables.keys(mn.decays)) do
        for _, normalise in ipairs { true, false } do
          local d, cfg = cores.definition "galite", {}
          for key, value in pairs(d.config) do cfg[key] = value end
          cfg.gate, cfg.decay, cfg.normalise, cfg[held[1]] = gate, decay, normalise, held[2]
          if pcall(gated_linear_rules.check, cfg, {}) then
            local text, own = d.equations(cfg), (gated_linear_rules.memory(cfg).gate or mn.gates[gate])
            local function names(letter) return text:find("%f[%a]" .. letter .. "%f[%A]") ~= nil end
            local what = table.concat({ gate, held[2], decay, tostring(normalise), text }, " ")
            if mn.decays[decay].rest then
              t.eq(names "b", own.beta ~= nil, what)
              t.eq(names "g", own.gamma ~= nil, what)
            end
            local kept = not gated_linear_rules.memory(cfg).gate and not mn.decays[decay].rest
            t.eq(text:find("keep", 1, true) ~= nil, kept, what)
            t.eq(text:find("decay=" .. decay, 1, true) ~= nil, kept, what)
            t.eq(text:find("1 - b g^T", 1, true) ~= nil, held[2] == "full" and decay == "joint", what)
            t.eq(text:find("den(x) = ", 1, true) ~= nil, normalise and held[2] ~= "fastweight", what)
            n = n + 1
          end
        end
      end
    end
  end
  t.ok(n > 30, n .. " combinations")
end)

-- ---- corners, against the whole contract ----

local corners = {
  { "galite", gate = "scalar", feature = "nn", nn_act = "exp", query = "double" },
  { "galite", gate = "mega", query = "double", flow = "residual" },
  { "galite", gate = "mega", feature = "rfa", normalise = false },
  { "galite", gate = "elementwise", decay = "joint", feature = "dpfp", nu = 2, rotary = true },
  { "galite", feature = "favor_softmax", gate = "elementwise", m = 5 },
  { "galite", feature = "favor_softmax", gate = "outer", decay = "joint", m = 8, query = "double" },
  { "galite", feature = "identity", gate = "none", normalise = false, rotary = true, flow = "postnorm" },
  { "galite", feature = "favor_relu", gate = "outer", m = 8, feature_eps = 0.1 },
  { "agalite", feature = "favor_softmax", form = "cossin", r = 3, m = 4 },
  { "agalite", feature = "rfa", m = 4, query = "double", den_clamp = 0.1, rotary = true },
}
for _, settings in ipairs(corners) do
  local words = {}
  for key, value in pairs(settings) do if key ~= 1 then words[#words + 1] = key .. "=" .. tostring(value) end end
  table.sort(words)
  t.test(settings[1] .. " " .. table.concat(words, " ") .. ": the contract", function()
    for _, property in ipairs(contract) do
      local ok, problem = pcall(property.holds, settings)
      t.ok(ok, property.name .. ": " .. tostring(problem))
    end
  end)
end

-- ---- settings ----

local function refused(pattern, name, config)
  local ok, err = pcall(cores.new, name, config)
  t.ok(not ok, "accepted: expected " .. pattern)
  t.ok(tostring(err):find(pattern), tostring(err))
  t.eq(type(err) == "table" and err.status, 2, tostring(err))
end

t.test("a setting that makes no difference is refused, with its reason", function()
  refused("nu=2 makes no difference: it belongs to feature=dpfp or feature=elu1 or feature=relu", "galite", { nu = 2 })
  refused("m=8 makes no difference: it belongs to feature=favor_relu or", "galite", { m = 8 })
  refused("nn_act=exp makes no difference", "galite", { feature = "elu1", nn_act = "exp" })
  refused("form=paper makes no difference", "galite", { approximation = "full", form = "paper" })
  refused("decay=joint makes no difference: decay=joint needs a gate of values and one of keys", "galite_released", { gate = "scalar" })
  refused("decay=joint has no cosine form", "galite_released", { approximation = "cos" })
  refused("approximation=cos makes no difference: update=delta needs the whole matrix", "agalite", { update = "delta" })
  refused("gate=outer makes no difference: update=delta has gates of its own", "galite", { update = "delta", gate = "outer" })
  refused("normalise=true makes no difference: update=fastweight has no normaliser", "galite", { update = "fastweight", normalise = true })
end)

t.test("what cannot be computed is refused, whoever set it", function()
  for _, lenient in ipairs { false, true } do
    local function no(pattern, name, config)
      local ok, err = pcall(cores.new, name, config, lenient)
      t.ok(not ok and tostring(err):find(pattern), tostring(err))
    end
    no("needs a decay of values and one of keys, as gate = outer, elementwise or none has, not scalar", "agalite", { gate = "scalar" })
    no("gate=outer is p_gamma %(x%) gamma, a multiple of d_head=64 gates, but feature=rfa has 20 keys", "galite", { feature = "rfa", m = 10 })
    no("feature=favor_softmax rescales the state.*update=delta cannot", "galite", { update = "delta", feature = "favor_softmax" })
    no("rotary=true rotates pairs of values, but a key has 5", "galite", { rotary = true, d_head = 5 })
    no("eps = %-1, expected at least 0", "galite", { eps = -1 })
    no("m = 0, expected a whole number of at least 1", "rfa", { m = 0 })
  end
end)

t.test("files may list every key: what does not apply is ignored", function()
  local c = cores.new("galite", { nu = 3, m = 7, form = "paper", r = 5, nn_act = "exp", gate = "none", decay = "joint" }, true)
  t.eq(c.module:count(), cores.new("galite", { gate = "none" }).module:count())
  t.eq(cores.new("agalite", { decay = "joint" }, true).module:count(), cores.new("agalite").module:count())
end)

t.test("whoever chose another map or memory may leave sizes that it does not have", function()
  for name, config in pairs { linear_transformer = { eta = 2, nu = 2 }, rfa = { eta = 8 }, agalite_paper = { eta = 2 },
                              galite = { feature = "elu1", eta = 8 } } do
    config.n_layers = 1
    cores.new(name, config)
  end
end)

-- ---- presets ----

t.test("presets are settings of a family, and say so", function()
  for name, want in pairs {
    linear_transformer = { "galite", gate = "none", feature = "elu1", nu = 1, eps = 1e-6 },
    gated_linear = { "galite", gate = "scalar", feature = "elu1", nu = 2, query = "double", embed_act = "none", eps = 1e-10 },
    rfa = { "galite", gate = "none", feature = "rfa", m = 64, den_clamp = 1e-3 },
    rfa_gate = { "galite", gate = "scalar", feature = "rfa", m = 64, den_clamp = 1e-3 },
    performer = { "galite", gate = "none", feature = "favor_softmax", m = 256 },
    performer_relu = { "galite", gate = "none", feature = "favor_relu", m = 256 },
    dpfp = { "galite", gate = "none", feature = "dpfp", nu = 1 },
    delta = { "galite", feature = "dpfp", update = "fastweight" },
    delta_released = { "galite", feature = "dpfp", update = "delta", reset = false },
    galite_released = { "galite", decay = "joint", query = "double", embed_act = "none", eps = 1e-10 },
    agalite_paper = { "agalite", form = "paper", r = 1 }, agalite_cossin = { "agalite", form = "cossin", r = 8 },
  } do
    local d, base = cores.definition(name), cores.definition(want[1])
    t.eq(d.preset[1], want[1], name)
    for key, value in pairs(base.config) do
      if want[key] ~= nil then value = want[key] end
      if name ~= "performer_relu" or key ~= "feature_eps" then t.eq(d.config[key], value, name .. "." .. key) end
    end
    t.ok(d.doc and d.source, name)
  end
  t.eq(cores.new("gated_linear").module:count(), 1718928)
  t.eq(cores.new("galite_released").module:count(), 1803072)
  t.eq(cores.new("galite_released", { eta = 2 }).module:count(), 1792736)
  t.eq(cores.new("galite", { feature = "relu", nu = 2, gate = "scalar", query = "double", embed_act = "none" }).module:count(), 1718928)
  t.eq(cores.new("gated_linear", { nu = 1 }).module:count(), 1520272)
end)

-- ---- a user's own ----

t.test("a user's gates and maps are entries of the tables", function()
  mn.features.absolute = { rows = function(cfg) return cfg.d_head end,
    map = function(a) return mn.ops.abs(a) end }
  mn.features.old = { act = "relu", rows = function(cfg) return 3 * cfg.d_head end }
  mn.gates.keys_only = { gamma = function(_, K) return K end }
  mn.gates.open = { beta = true, gamma = true, p_gamma = function(cfg, K) return K / cfg.d_head end }
  for _, settings in ipairs {
    { "galite", feature = "absolute", gate = "keys_only" }, { "galite", feature = "absolute", gate = "outer", decay = "joint", query = "double" },
    { "galite", feature = "old", gate = "open" }, { "agalite", feature = "absolute", gate = "keys_only" },
    { "galite", feature = "absolute", update = "delta" },
  } do
    for i = 1, 3 do contract[i].holds(settings) end
    runs(cores.new(settings[1], (function()
      local config = { rotary = true }
      for _, set in ipairs { tiny, settings } do for key, value in pairs(set) do config[key] = value end end
      config[1], config.m, config.eta = nil, nil, nil
      return config
    end)()), settings.feature)
  end
  t.eq(cores.new("galite", { feature = "old", gate = "none", n_layers = 1, d_head = 4 }).sizes.K, 12)
  refused("unknown feature = 'absolut'; did you mean 'absolute'", "galite", { feature = "absolut" })
  refused("decay=joint needs a gate of values and one of keys", "galite", { gate = "keys_only", decay = "joint", feature = "absolute" })
  mn.features.absolute, mn.features.old, mn.gates.keys_only, mn.gates.open = nil, nil, nil, nil
end)

t.test("help names the words of every axis", function()
  local help = require "mneme.commands.help"
  local text = help.text "galite"
  for _, word in ipairs(tables.keys(mn.features)) do t.ok(text:find(word, 1, true), word) end
end)
