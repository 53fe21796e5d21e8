-- attention_fixtures.lua -- the fixtures attention.NAME: an attention over given q, k, v, and its gradients.
local encoder_attention = require "mneme.models.encoder_attention"
local fixture_parts = require "tests.support.fixture_parts"
local errors = require "mneme.base.errors"
local json = require "mneme.base.json"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops
local below, gradients, need, value_of = fixture_parts.below, fixture_parts.gradients, fixture_parts.need, fixture_parts.value_of

-- Parameters that the file marks as fixed.
local function fixed(meta)
  local set, list = {}, meta.fixed and json.decode(meta.fixed) or {}
  if type(list) ~= "table" then errors.fail "fixed is not a list of names" end
  for _, name in ipairs(list) do set[name] = true end
  return set
end

---@param name string of the attention
---@param file table<string, Tensor> the fixture's tensors
---@param meta table its metadata
---@return table results by name
return function(name, config, file, meta)
  local inputs, shape = below(file, "input.", true), need(file, "input.q"):shape()
  if #shape ~= 4 then errors.fail("input.q has " .. #shape .. " axes, expected 4 [B,H,N,dh]") end
  local m = encoder_attention.new(name, config, { H = shape[2], D = shape[4], N = shape[3] }, true)
  m:load_state_dict(below(file, "param."))
  local y = m(inputs.q, need(file, "input.k") and inputs.k, need(file, "input.v") and inputs.v, inputs)
  local got, trained, constant = { ["output.y"] = value_of(y) }, {}, fixed(meta)
  ops.sum { x = ops.mul(y, need(file, "cotangent.y")) }:backward()
  for key, t in pairs(m:named_parameters()) do if not constant[key] then trained[key] = t end end
  gradients(got, "grad.param.", trained)
  gradients(got, "grad.input.", inputs)
  return got
end
