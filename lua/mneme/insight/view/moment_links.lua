-- moment_links.lua -- the names of moments, as what is behind the # of a link: "run=runs/a&episode=12&step=18".
local moment_links = {}
local KEEPS = "[^%w%-._~/,:+]"               -- all else is written as %XX

---@param fields table[] { key, value } in their order; nil and false are left out
function moment_links.write(fields)
  local list = {}
  for _, field in ipairs(fields) do
    local value = field[2]
    if value then list[#list + 1] = field[1] .. "=" .. tostring(value):gsub(KEEPS, function(c) return ("%%%02X"):format(c:byte()) end) end
  end
  return table.concat(list, "&")
end

---@param text string as somebody may have typed it: what is no field is left out
---@return table<string, string> fields by their names
function moment_links.read(text)
  local fields = {}
  for field in text:gmatch "[^&]+" do
    local key, value = field:match "^([%a_]+)=(.*)$"
    if key then fields[key] = value:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end) end
  end
  return fields
end

---@return integer? a whole number >= 0
function moment_links.whole(text)
  local number = text and text:match "^%d+$" and tonumber(text)
  return number and number < 2 ^ 53 and number or nil
end

return moment_links
