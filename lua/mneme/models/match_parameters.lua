-- match_parameters.lua -- finds the width at which a model has a given number of parameters, for fair comparisons.
local core = require "mneme.models.core"
local errors = require "mneme.base.errors"
local nn = require "mneme.tensor.nn"

local WIDEST, MOST = 4096, 1e12               -- d_model; parameters
local along = { "d_head", "d_ffn" }            -- what a core has of these keeps its share of d_model

-- The settings with another width, or nil where a share of it is no whole number.
local function widened(spec, width, defaults)
  local wide = { d_model = width }
  for key, value in pairs(spec) do wide[key] = value end
  for _, key in ipairs(along) do
    if defaults[key] and spec[key] == nil then
      wide[key] = defaults[key] * width / defaults.d_model
      if wide[key] % 1 ~= 0 then return nil end
    end
  end
  return wide
end

---Settings of a core with the d_model that brings a model nearest to `parameters`; d_head and d_ffn, where they are
---not given, grow with it as in the core's defaults.
---@param spec table { "agalite", n_layers = 2, ... }, without d_model
---@param parameters integer
---@param build fun(core: Core): { module: Module } a model with such a core; what is built here is only counted
---@return table settings for mn.core
local function sized(spec, parameters, build)
  errors.need("sized: the core", spec, 1, '{ "gru", option = ... }')
  if type(parameters) ~= "number" or not (parameters >= 1 and parameters <= MOST) then
    errors.usage(("sized: parameters=%s, expected a number in 1..%g"):format(tostring(parameters), MOST))
  end
  if type(build) ~= "function" then errors.raise(("sized: build is a %s, expected a function"):format(type(build))) end
  local defaults = core.definition(spec[1]).config
  if spec.d_model then return spec end
  local best, nearest, fewest = nil, math.huge, nil
  for width = 4, WIDEST, 2 do
    local wide = widened(spec, width, defaults)
    if wide then
      local count = nn.dry(function()
        local model = build(core.new(wide))
        errors.need("sized: what build gives", model, "module", "a model")
        return model.module:count()
      end)
      fewest = fewest or count
      if math.abs(count - parameters) < nearest then best, nearest = wide, math.abs(count - parameters) end
      if count > parameters then break end
    end
  end
  if not best or parameters < fewest then
    errors.usage(("sized: %s has at least %s parameters here, expected at most %d"):format(spec[1], tostring(fewest), parameters))
  end
  return best
end

return sized
