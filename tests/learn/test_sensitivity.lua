-- test_sensitivity.lua -- exact credit: over windows of any length, with episodes that end within them, gradients add up to those of
-- backpropagation through all steps, for every core that has sensitivities.
local ffi = require "ffi"
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local mn = require "mneme"
local cores = require "mneme.models.cores"
local exact_credit = require "mneme.learn.exact_credit"
local registry = require "mneme.base.registry"
local ops = require("mneme.tensor.tensor").ops

local T, B = 29, 3
local small = { d_in = 4, d_model = 6, n_layers = 1, n_heads = 2, d_head = 4, d_ffn = 4, d_state = 3, eta = 2 }

-- Settings that change the recurrence of a core, beside core_rig's.
local more = { { "gla", decay_rank = 0 }, { "gla", decay_rank = 3, n_layers = 2, expand_v = 1 }, { "retnet", expand_v = 1 },
  { "hgrn2", n_layers = 2 }, { "hgrn", n_layers = 2 },
  { "mingru", z_bias = -2 }, { "rtu", linear = false }, { "s5", discretisation = "bilinear" },
  { "agalite", r = 5 }, { "agalite_long", r = 1 }, { "agalite_cossin", r = 5 }, { "agalite", reset = false } }
-- What begins with zeros is random here: behind rwkv4's there is no gradient.  Its feed-forward part does not look at the step before: over
-- the end of a window what passes there is left out.
local function configured(case)
  local definition, config = cores.definition(case[1]), {}
  for _, set in ipairs { small, case } do
    for key, value in pairs(set) do if key ~= 1 and definition.config[key] ~= nil then config[key] = value end end
  end
  local core = cores.new(case[1], config, true)
  mn.manual_seed(3)
  for _, p in ipairs(core:parameters()) do
    local zeros = true
    for i = 0, p:size() - 1 do zeros = zeros and p:data()[i] == 0 end
    if zeros then p:copy(mn.randn(unpack(p:shape())) * 0.3) end
  end
  core.module:each(function(key, p) if key:find "ffn%.mix" then p:fill(1) end end)
  mn.clear_tape()
  return core
end
local cases = core_rig.cases()
for _, case in ipairs(more) do cases[#cases + 1] = { name = case[1] .. " more", settings = case } end

local function rows(x, from, to)
  local shape = x:shape()
  local bytes = x:size() / shape[1] * (x:dtype() == "u8" and 1 or 4)
  shape[1] = to - from
  local y = mn.tensor { shape = shape, dtype = x:dtype() }
  ffi.copy(y:data(), ffi.cast("char *", x:data()) + from * bytes, (to - from) * bytes)
  return y
end

local function random(...)
  local x = mn.tensor { shape = { ... } }
  x:copy(mn.randn(...))
  return x
end

-- Gradients of the rows that have sensitivities, of sum(weights * tanh(y)), in windows that end at `ends`.
local function gradients(core, data, ends, exact)
  local past, state, from, list = exact and exact_credit(core, B), core:initial(B), 0, {}
  for _, p in ipairs(core:parameters()) do p:zero_grad() end
  for _, to in ipairs(ends) do
    local x, done, weights = rows(data.x, from, to), rows(data.done, from, to), rows(data.weights, from, to)
    local y, after = core(x, done, past and past:with_past(state) or state)
    ops.sum(y:tanh() * weights):backward()
    if past then
      past:look(x, done, state)
      past:move_on()
    end
    state, from = {}, to
    for name, s in pairs(after) do state[name] = mn.keep(s:detach()) end
  end
  local last = core.sensitivities[#core.sensitivities]                           -- layer: a lower one's past reaches it, too
  for _, group in ipairs(type(last) == "function" and last() or last) do
    for _, kind in ipairs(group.kinds) do
      for _, leaf in pairs { kind.weight or false, kind.bias or false, kind.before or false } do if leaf then list[#list + 1] = leaf:grad() end end
    end
  end
  local numbers = {}
  for i, g in ipairs(list) do
    numbers[i] = {}
    for k = 0, g:size() - 1 do numbers[i][k] = g:data()[k] end
  end
  return numbers
end

-- The largest difference of two lists, of the largest number of the second.
local function apart(got, want)
  local scale, most = 0, 0
  for i, w in ipairs(want) do
    for k = 0, #w do scale, most = math.max(scale, math.abs(w[k])), math.max(most, math.abs(got[i][k] - w[k])) end
  end
  return most / scale
end

local function check(name, case)
  local core = configured(case)
  if not core.sensitivities then return false end
  t.test(name .. ": windows with a past add up to the whole", function()
    mn.manual_seed(7)
    local data = { x = random(T, B, core.config.d_in), weights = random(T, B, core.d_out), done = mn.tensor { shape = { T, B }, dtype = "u8" } }
    for _, at in ipairs { 11 * B, 16 * B + 1, 17 * B + 1, 8 * B + 2 } do data.done:data()[at] = 1 end
    local whole = gradients(core, data, { T })
    t.near(apart(gradients(core, data, { 8, 16, 24, T }, true), whole), 0, 1e-5, "windows of 8")
    t.near(apart(gradients(core, data, { 1, 2, 9, 22, T }, true), whole), 0, 1e-5, "windows of 1, 1, 7, 13, 7")
    t.ok(apart(gradients(core, data, { 8, 16, 24, T }), whole) > 1e-3, "without a past they do not")
    mn.clear_tape()
  end)
  return true
end

local count = 0
for _, case in ipairs(cases) do count = count + (check(case.name, case.settings) and 1 or 0) end
t.test("cores have sensitivities", function() t.ok(count >= 25, count .. " cases") end)

-- The engine carries S of the gated linear family by itself: by the recursion that its layers declare for every device it is the same, over
-- windows longer than what the op makes at a time, with gates that leave nothing of a window's beginning, and with ends of episodes.
local function carried(core, windows, engine_alone)
  local own = core.sensitivities
  core.sensitivities = {}
  for n, groups in ipairs(own) do
    core.sensitivities[n] = groups()
    for _, group in ipairs(core.sensitivities[n]) do group.gated = engine_alone and group.gated end
  end
  local past, state = exact_credit(core, B), core:initial(B)
  core.sensitivities = own
  for _, w in ipairs(windows) do
    local after = select(2, core(w.x, w.done, state))
    past:look(w.x, w.done, state)
    past:move_on()
    state = {}
    for name, s in pairs(after) do state[name] = mn.keep(s:detach()) end
  end
  local numbers = {}
  for k, entry in ipairs(past:contents()) do
    numbers[k] = {}
    for i = 0, entry[2]:size() - 1 do numbers[k][i] = entry[2]:data()[i] end
  end
  mn.clear_tape()
  return numbers
end

local function words_of(case)
  local words = {}
  for key, value in pairs(case) do if key ~= 1 then words[#words + 1] = key .. "=" .. tostring(value) end end
  table.sort(words)
  return words
end

for _, case in ipairs { { "agalite" }, { "agalite", r = 5, eta = 3 }, { "agalite_long" }, { "agalite_cossin", r = 5, d_head = 17, n_layers = 2 },
  { "gated_linear" }, { "galite", gate = "scalar" }, { "linear_transformer" }, { "galite", feature = "outer_elu1", d_head = 9 } } do
  t.test("the engine carries what the layers declare: " .. table.concat({ case[1], unpack(words_of(case)) }, " "), function()
    local core, windows = configured(case), {}
    mn.manual_seed(5)
    for i, length in ipairs { 7, 300, 530, 1 } do
      windows[i] = { x = random(length, B, core.config.d_in), done = mn.tensor { shape = { length, B }, dtype = "u8" } }
      windows[i].done:data()[math.floor(length / 3) * B + i % B] = 1
    end
    local alone, declared = carried(core, windows, true), carried(core, windows, false)
    t.eq(#alone, #declared)
    t.near(apart(alone, declared), 0, 2e-6)
  end)
end

t.test("the engine's op refuses rows and lengths that are not there", function()
  local function call(given)
    local a = { state = mn.tensor { shape = { 1, 4 } }, S = mn.tensor { shape = { 2, 1, 4, 3 } }, rows = mn.tensor { shape = { 2, 4 }, dtype = "i32" },
      x = random(5, 1, 2), v = random(5, 1, 4), beta = random(5, 1, 4) }
    for key, value in pairs(given) do a[key] = value end
    ops.carry_gated_sensitivity(a)
  end
  call {}
  local beyond = mn.tensor { shape = { 2, 4 }, dtype = "i32" }
  beyond:data()[5] = 4
  t.raises(function() call { rows = beyond } end, "row 4 of beta, expected 0 to 3")
  t.raises(function() call { steps = 6 } end, "steps=6 of 5 rows")
  t.raises(function() call { from = 1 } end, "elements 1 to 4")
  t.raises(function() call { k = random(5, 1, 4) } end, "2 factors, 3 are given")
  t.raises(function() call { x = random(5, 1, 4) } end, "rows of 3, expected 4")
end)

t.test("others say why they have none", function()
  for _, name in ipairs { "gru", "performer", "delta", "gtrxl" } do t.fails(function() exact_credit(configured { name }, 1) end) end
  local refused = 0
  for _, name in ipairs(registry.names "cores") do
    local core = configured { name }
    if not core.sensitivities then
      local ok, err = pcall(exact_credit, core, 1)
      t.ok(not ok and tostring(err):find("has no sensitivities: ", 1, true) and not tostring(err):find("declares none", 1, true), tostring(err))
      refused = refused + 1
    end
  end
  t.ok(refused > 20)
end)
