-- search_conditions.lua -- what is looked for: words, and conditions such as core=gru, score<0.5 or length>30, all of which are to be met.
local setting_types = require "mneme.base.setting_types"

local search_conditions = {}

---@return table[] list { key, sign = "<", "=" or ">", value = text, number = or nil }, or { word }
function search_conditions.read(text)
  local list = {}
  for word in text:gmatch "%S+" do
    local key, sign, value = word:match "^([%w_./]+)([<=>])(.+)$"
    list[#list + 1] = key and { key = key, sign = sign, value = value, number = tonumber(value) } or { word = word }
  end
  return list
end

---Does something meet all conditions?  A value that it has not meets none.
---@param list table[] of conditions.read
---@param value_of fun(key): any
---@param has fun(word): boolean
function search_conditions.met(list, value_of, has)
  for _, c in ipairs(list) do
    if c.word then
      if not has(c.word) then return false end
    else
      local value = value_of(c.key)
      local number = tonumber(value)
      local met
      if value == nil then met = false
      elseif c.sign == "=" then met = setting_types.same(c.value, value) or c.number ~= nil and c.number == number
      else met = number ~= nil and c.number ~= nil and (c.sign == "<" and number < c.number or c.sign == ">" and number > c.number) end
      if not met then return false end
    end
  end
  return true
end

return search_conditions
