-- test_keep_or_write.lua -- the four starts of experiments/keep_or_write.lua are what their names say: how long a new agent's memory
-- keeps, measured on its state, and how strongly it writes; and separating the two changes nothing else.
local t = require "tests.harness"
local mn = require "mneme"
local script = require "mneme.runs.script"

local study = script.survey("experiments/keep_or_write.lua", {}).spec
local starts = {}

local function build(options)
  local set = { d_in = 8 }
  for key, value in pairs(options) do if type(key) == "string" and key ~= "label" then set[key] = value end end
  mn.manual_seed(3)
  return mn.core(options[1], set)
end
for _, options in ipairs(study.axes.core) do starts[options.label] = build(options) end

-- One step from a state of ones with a zero input, where gates are their biases: what is left of values times keys, and
-- how strongly values and keys are written.
local function measured(core)
  local state, gates = core:initial(1), {}
  for _, name in ipairs { "v", "k", "s" } do state["layers.0." .. name]:fill(1) end
  local _, after = core(mn.tensor { shape = { 1, 1, 8 } }, nil, state, function(name, x)
    gates[name:match "[^.]+$"] = x:data()[0]
    return x
  end)
  local left = after["layers.0.v"]:data()[0] * after["layers.0.k"]:data()[0]
  return { steps = math.log(0.5) / math.log(left), sum = after["layers.0.s"]:data()[0], beta = gates.beta, gamma = gates.gamma * gates.p_gamma }
end

t.test("each start keeps as long and writes as much as its name says", function()
  local SMALL = 1 - 0.5 ^ (1 / 80)
  for label, want in pairs { published = { 0.7067, 0.5, 0.25, 0.75 }, ["keeps longer"] = { 40, 0.5, 0.25, 1 - SMALL },
                             ["writes less"] = { 0.7067, SMALL, SMALL, 0.75 }, both = { 40, SMALL, SMALL, 1 - SMALL } } do
    local core = starts[label]
    local found = measured(core)
    t.near(found.steps, want[1], 1e-3 * want[1], label .. ": half-life of the state")
    t.near(found.beta, want[2], 1e-4 * want[2], label .. ": beta")
    t.near(found.gamma, want[3], 1e-4 * want[3], label .. ": gamma")
    t.near(found.sum, want[4], 1e-5, label .. ": what is left of the sum of keys")
    local layers = core:half_lives()
    t.eq(#layers, 1)
    t.near(layers[1].shortest, want[1], 1e-3 * want[1], label)
    t.near(layers[1].longest, want[1], 1e-3 * want[1], label)
  end
end)

t.test("the starts differ in the biases of the gates alone", function()
  local published = starts.published:state_dict()
  for label, core in pairs(starts) do
    local other, n = core:state_dict(), 0
    for name, x in pairs(published) do
      local same = x:size() == other[name]:size()
      for i = 0, x:size() - 1 do same = same and x:data()[i] == other[name]:data()[i] end
      local gate = name:find "gamma%.bias$" or name:find "beta%.bias$"
      t.eq(same, not gate or label == "published" or label == "keeps longer", label .. ": " .. name)
      n = n + 1
    end
    for _ in pairs(other) do n = n - 1 end
    t.eq(n, 0, label .. ": as many parameters")
  end
end)

t.test("a gate keeps what it would with another bias, however far it is opened", function()
  local odds_long = 2 ^ (1 / 80) - 1
  for name, shifts in pairs { keeps_longer = { odds_long, 3 * odds_long }, keeps_shorter = { 1 / odds_long, 1 / (3 * odds_long) } } do
    for _, x in ipairs { -9, -3, -0.5, 0, 2, 5, 9 } do
      local gate = mn.tensor { shape = { 1, 1, 1, 1 } }:fill(1 / (1 + math.exp(-x)))
      for i, keep in ipairs { mn.decays[name].keep(gate, gate) } do
        local want = 1 - 1 / (1 + math.exp(-x - math.log(shifts[i])))
        t.near(keep:data()[0], want, 1e-3 * want, ("%s %d at %g"):format(name, i, x))
      end
    end
  end
end)
