-- test_cores.lua -- the contract of a memory (lua/mneme/contract.lua), over every core found and corners of axes.
local t = require "tests.harness"
local contract = require "mneme.contract"
local rig = require "tests.core_rig"

for _, property in ipairs(contract) do
  for _, case in ipairs(rig.cases()) do
    t.test(case.name .. ": " .. property.name, function() property.holds(case.settings) end)
  end
end
