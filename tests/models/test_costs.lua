-- test_costs.lua -- what cores say they cost: every core found has a formula, and formulas and numbers agree.
local t = require "tests.harness"
local ffi = require "ffi"
local catalogue = require "mneme.base.catalogue"
local cores = require "mneme.models.cores"
local core_setting_docs = require "mneme.models.core_setting_docs"
local costs = require "mneme.models.costs"
local registry = require "mneme.base.registry"
local engine = require "mneme.base.engine"
local help = require "mneme.commands.help"
local nn = require "mneme.tensor.nn"
local op_binding = require "mneme.tensor.op_binding"
local contract_rig = require "mneme.models.contract_rig"

-- The keys that a head sees in each of N rows after N others, and multiply-adds with the M numbers that were carried.
local function met(c, N, M)
  local x, keys, carried, kind, shape = contract_rig.normal({ 2 * N, 1, c.config.d_in }, 1), 0, 0, ffi.new "int[1]", ffi.new "int[8]"
  local _, state = contract_rig.run(c, contract_rig.rows(x, 0, N))
  local function count(name, weights)                                  -- steps back, 1, weight; of the last row
    for i = 1, name:find "attention$" and weights:size() - 1 or 0, 3 do keys = keys + weights:data()[i] end
    return weights
  end
  for n = 1, N do contract_rig.run(c, contract_rig.rows(x, N, N + n), nil, state, count) end
  op_binding.noting = function(signature, given)
    if not signature.inputs[2] or signature.inputs[2].axes ~= "O,I" then return end      -- no linear map
    local axes = engine.C.mn_tensor_info(engine.ctx, given, kind, shape)
    if shape[0] ~= M then return end
    local inputs = M * shape[axes - 1]
    engine.C.mn_tensor_info(engine.ctx, given + 1, kind, shape)
    carried = carried + inputs * shape[0]
  end
  contract_rig.run(c, contract_rig.rows(x, N, 2 * N), nil, state)
  op_binding.noting = nil
  return keys / c.sizes.H / c.config.n_layers, carried
end

for _, name in ipairs(registry.names "cores") do
  if cores.definition(name).config.memory then
    t.test(name .. ": an update is counted with the memory that it begins with", function()
      local N, before = 8, 0
      for _, M in ipairs { 3, 5 } do
        local c = contract_rig.build({ name }, 1, { memory = M })
        local keys, carried = met(c, N, M)
        t.eq(N * c:describe(N).cost.forward / 2, keys * c:evaluate(c.complexity.step, 0) + carried)
        local training = costs.training(name, { memory = M })
        t.ok(training > before, "a longer memory costs more")
        before = training
      end
    end)
  end
end

for _, name in ipairs(registry.names "cores") do
  t.test(name .. ": cost and state by formula", function()
    local c = nn.dry(cores.new, name)
    local few, many = c:describe(16), c:describe(4096)
    t.ok(c.complexity.step, "no complexity is declared")
    t.eq(c:evaluate(few.state_formula), few.state_floats)
    t.ok(few.step.macs >= 0 and many.step.macs >= few.step.macs)
    t.ok(many.sequence.macs >= 256 * few.sequence.macs * 0.999, "a sequence grows at least in proportion")
    local grows = many.step.macs > few.step.macs
    t.ok(not grows or many.sequence.macs > 256 * few.sequence.macs, "the steps grow but the sequence does not")
  end)

  t.test(name .. ": mneme help core explains it and every key", function()
    local text, d = help.text(name, "core"):gsub("%s+", " "), cores.definition(name)
    t.ok(d.doc and d.source, "a core file says what it is and where it comes from")
    for key in pairs(d.config) do
      t.ok(core_setting_docs[key], "core_setting_docs.lua does not explain " .. key)
      t.ok(text:find(core_setting_docs[key], 1, true), key)
    end
    t.ok(#catalogue.comment(registry.file("cores", name, "core")) > 40, "the file opens with what it is")
  end)
end

t.test("the list has every core, in numbers that follow the settings", function()
  local list = costs.list({}, 256)
  for _, name in ipairs(registry.names "cores") do
    t.ok(list:find("\n" .. name .. " -- ", 1, true) or list:sub(1, #name) == name, name)
  end
  t.ok(list:find("1,740,608 parameters; state of one environment 266,240 floats", 1, true), "galite as published")
  t.ok(costs.list({ eta = "8" }, 256):find("1,765,376 parameters", 1, true), "agalite at eta=8")
end)

t.test("wrong words are errors", function()
  t.fails(function() costs.list({ dmodel = "3" }, 256) end)
end)
