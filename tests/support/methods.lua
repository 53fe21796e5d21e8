-- methods.lua -- every method that an object answers to, its own and what it inherits, by name; not the functions of its class that
-- take no self.
local mn = require "mneme"

-- half_lives calls it `core`.
local function by_colon(f)
  local first = debug.getlocal(f, 1)
  return first == "self" or first == "core"
end

return function(object)
  if mn.is_tensor(object) then return mn.Tensor end
  if rawget(object, "new") then return {} end              -- a class, such as mn.learners.ppo: methods are of what it makes
  local list, at = {}, getmetatable(object)
  while type(at) == "table" and type(rawget(at, "__index")) == "table" do
    at = at.__index
    for key, value in pairs(at) do
      if type(value) == "function" and not key:find "^__" and by_colon(value) then list[key] = list[key] or value end
    end
    at = getmetatable(at)
  end
  return list
end
