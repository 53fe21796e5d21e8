-- test_sensitivity.lua -- exact credit: over windows of any length, with episodes that end within them, gradients add up to those of
-- backpropagation through all steps, for every core that has sensitivities.
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local mn = require "mneme"
local cores = require "mneme.models.cores"
local exact_credit = require "mneme.learn.exact_credit"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"
local ops = require("mneme.tensor.tensor").ops
local check_sensitivities = require "mneme.learn.check_sensitivities"

local B = 3
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

local function random(...)
  local x = mn.tensor { shape = { ... } }
  x:copy(mn.randn(...))
  return x
end

local function check(name, case)
  local core = configured(case)
  if not core.sensitivities then return false end
  t.test(name .. ": windows with a past add up to the whole", function()
    check_sensitivities.holds(core, 3e-5)        -- what half a last place of its inputs moves agalite_paper's by
    local data = check_sensitivities.data(core)
    local whole = check_sensitivities.gradients(core, data, { 29 })
    t.ok(check_sensitivities.apart(check_sensitivities.gradients(core, data, { 8, 16, 24, 29 }), whole) > 1e-3, "without a past they do not")
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
    t.near(check_sensitivities.apart(alone, declared), 0, 2e-6)
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

-- The core of docs/write-a-core.md, and what may be declared wrongly: either it is an error before training, or `check core=` finds it.
local example = files.read(registry.root .. "docs/write-a-core.md"):match "as `cores/average.lua`:\n```lua\n(.-)\n```"
local dir = shell.folder()
local written = 0
local function own(from, to)
  local text = t.ok(example:find(from, 1, true), from) and example:gsub(from:gsub("%p", "%%%0"), (to:gsub("%%", "%%%%")))
  written = written + 1
  files.write(("%s/own%d.lua"):format(dir, written), { text })
  return ("%s/own%d.lua"):format(dir, written)
end
local last = "last = function(u, done, h) return (select(2, recur(u[1], u[2], done, h))) end"

t.test("a core of one's own: what it declares holds, or is refused", function()
  check_sensitivities.holds(core_rig.build { own("average.lua", "average.lua") }, 1e-5)
  for _, wrong in ipairs { { "if sense then sense(1, x) end", "" }, { "sense(1, x)", "sense(2, x)" }, { 'state = "h", count', 'state = "g", count' },
    { "count = d", "count = 2 * d" }, { last, "" }, { last, "last = function(u, done, h) return recur(u[1], u[2], done, h) end" },
    { "{ { group } }", "{ group }" }, { "{ weight = value.weight, bias = value.bias }", "{ weight = value }" },
    { "{ weight = value.weight, bias = value.bias }", "{ weight = gate.weight }" } } do
    local file = own(unpack(wrong))
    t.fails(function() check_sensitivities.holds(core_rig.build { file }, 1e-5) end)
  end
end)

t.test("a core of one's own: rows, biases and recurrences that are off by percents are found", function()
  for _, wrong in ipairs { { last, "last = function(u, done, h) return (select(2, recur(u[2], u[1], done, h))) end" },
    { "{ weight = value.weight, bias = value.bias }", "{ weight = value.weight }" } } do
    local core = core_rig.build { own(unpack(wrong)) }
    local data = check_sensitivities.data(core)
    local whole = check_sensitivities.gradients(core, data, { 29 })
    t.ok(check_sensitivities.apart(check_sensitivities.gradients(core, data, { 8, 16, 24, 29 }, true), whole) > 1e-2)
    t.ok(not pcall(check_sensitivities.holds, core, 2e-5))
  end
end)
files.remove_folder(dir)
