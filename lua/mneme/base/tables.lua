-- tables.lua -- helpers for Lua tables.
local tables = {}

---The keys of a table as texts, sorted.
function tables.keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  return keys
end

local place = { number = 1, string = 2 }

---The keys of a table: numbers ascending, then texts, then others as texts.
---@param odd (fun(key: any))? gets a key that is neither a number nor a text
---@return any[]
function tables.ordered_keys(t, odd)
  local keys = {}
  for key in pairs(t) do
    if odd and not place[type(key)] then odd(key) end
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    local of_a, of_b = place[type(a)] or 3, place[type(b)] or 3
    if of_a ~= of_b then return of_a < of_b elseif of_a == 3 then return tostring(a) < tostring(b) end
    return a < b
  end)
  return keys
end

---What f gives for each item of a list; items for which it gives nil are left out.
---@param f fun(item: any, i: integer): any
---@return any[]
function tables.map(list, f)
  local out = {}
  for i, item in ipairs(list) do out[#out + 1] = f(item, i) end
  return out
end

---f(1), ..., f(n) as a list.
---@param f fun(i: integer): any
---@return any[]
function tables.filled(n, f)
  local out = {}
  for i = 1, n do out[i] = f(i) end
  return out
end

---A table of the same keys, with what f gives for each value; those for which it gives nil are left out.
---@param f fun(value: any, key: any): any
function tables.each(t, f)
  local out = {}
  for key, value in pairs(t) do out[key] = f(value, key) end
  return out
end

---All that a pattern finds in a text.
---@return string[]
function tables.found(text, pattern)
  local out = {}
  for part in text:gmatch(pattern) do out[#out + 1] = part end
  return out
end

---The items of a list as the keys of a table.
---@return table<any, true>
function tables.set(list)
  local set = {}
  for _, item in ipairs(list) do set[item] = true end
  return set
end

---The entries of several tables in a new one; of a key that is there twice the last counts.
---@param ... table? each, or nil
function tables.merged(...)
  local out = {}
  for i = 1, select("#", ...) do for key, value in pairs((select(i, ...)) or {}) do out[key] = value end end
  return out
end

---The least and the largest number of a list; infinities of none.
function tables.span(list)
  local least, most = math.huge, -math.huge
  for _, v in ipairs(list) do least, most = math.min(least, v), math.max(most, v) end
  return least, most
end

---Items that have a name in common, in the order in which names come.
---@param name_of fun(item: any): any nil: of no group
---@param field string? what a group calls its items: "runs"
---@return table[] groups { name, items }
function tables.groups(list, name_of, field)
  local groups, by_name = {}, {}
  for _, item in ipairs(list) do
    local name = name_of(item)
    if name ~= nil then
      by_name[name] = by_name[name] or { name = name, [field or "items"] = {} }
      local of = by_name[name][field or "items"]
      if not of[1] then groups[#groups + 1] = by_name[name] end
      of[#of + 1] = item
    end
  end
  return groups
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
---@param first integer? of the items that count, 1
---@param last integer? their last, #list
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
