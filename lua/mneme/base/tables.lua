-- tables.lua -- helpers for Lua tables.
local tables = {}

---The keys of a table as texts, sorted.
function tables.keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  return keys
end

---A new table with the entries of others, later ones over earlier; nil is passed over.
---@return table
function tables.merged(...)
  local all = {}
  for i = 1, select("#", ...) do
    for key, value in pairs((select(i, ...)) or {}) do all[key] = value end
  end
  return all
end

---Is it among the items of a list?
function tables.has(list, item)
  for _, each in ipairs(list) do if each == item then return true end end
  return false
end

---The entry of a list that was used last, or a new one; the newest stand first, and beyond `most` the oldest go.
---@param is_it fun(entry): boolean
---@param make fun(): any
---@return any entry
function tables.recent(list, most, is_it, make)
  local found
  for k, entry in ipairs(list) do
    if is_it(entry) then found = table.remove(list, k) break end
  end
  found = found or make()
  table.insert(list, 1, found)
  list[most + 1] = nil
  return found
end

---The product of a list, or of its items first .. last: of a shape, how many numbers it holds.
---@param list number[]
---@return number product
function tables.product(list, first, last)
  local product = 1
  for i = first or 1, last or #list do product = product * list[i] end
  return product
end

---What stands where a list was expected, in words: "a list of 3", "a list that begins at 0", "a table with x, y", "a number".
function tables.in_words(t)
  if t == nil then return "nothing" elseif type(t) ~= "table" then return type(t) == "cdata" and tostring(t) or "a " .. type(t) end
  local most, count, names = 0, 0, {}
  for key in pairs(t) do
    if type(key) == "number" then most, count = math.max(most, key), count + 1 else names[#names + 1] = tostring(key) end
  end
  table.sort(names)
  if t[0] ~= nil then return ("a list that begins at 0, of %d"):format(count) end
  for i = 1, most do
    if t[i] == nil then return ("a list with nothing in place %d"):format(i) end
  end
  if count == 0 and #names > 0 then return "a table with " .. table.concat(names, ", ", 1, math.min(#names, 5)) .. (#names > 5 and ", ..." or "") end
  return type(t[1]) == "table" and ("a list of %d lists"):format(count) or ("a list of %d"):format(count)
end

return tables
