-- test_costs.lua -- what cores say they cost: every core found has a formula, and formulas and numbers agree.
local t = require "tests.harness"
local catalogue = require "mneme.base.catalogue"
local cores = require "mneme.models.cores"
local core_setting_docs = require "mneme.models.core_setting_docs"
local costs = require "mneme.models.costs"
local registry = require "mneme.base.registry"
local help = require "mneme.commands.help"
local nn = require "mneme.tensor.nn"

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
