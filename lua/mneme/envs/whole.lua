-- whole.lua -- checks settings of environments that must be integers.
local errors = require "mneme.base.errors"

---A setting that must be a whole number, at least `least`.
return function(what, name, x, least)
  if type(x) ~= "number" or x % 1 ~= 0 or x < least or x >= 2 ^ 31 then
    errors.usage(("%s: %s=%s, expected a whole number of at least %d"):format(what, name,
      tostring(x), least))
  end
  return x
end
