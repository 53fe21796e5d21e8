-- layer_arguments.lua -- checks of what layers are made with.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local arguments = {}

---A parameter of zeros.
---@param shape integer[]
---@return Tensor
function arguments.parameter(shape) return tensor.new { shape = shape, grad = true } end

---Options of a layer; a misspelt one would be none at all.
function arguments.options(what, options, known)
  errors.need("nn." .. what .. ": options", options, nil, "a table such as { act = \"relu\" }")
  for key in pairs(options) do
    if not known[key] then errors.unknown("option of nn." .. what, key, tables.keys(known)) end
  end
  return options
end

---What fills a parameter: given, or the usual.
function arguments.init(what, init, usual)
  if init ~= nil and type(init) ~= "function" then
    errors.raise(("nn.%s: init is a %s, expected a function such as nn.init.normal(1)"):format(what, type(init)))
  end
  return init or usual
end

function arguments.width(what, name, n)
  if type(n) ~= "number" or n < 1 or n % 1 ~= 0 then
    errors.raise(("nn.%s: %s is %s, expected a whole number of at least 1"):format(what, name, tostring(n)))
  end
end

return arguments
