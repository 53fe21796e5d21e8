-- seed_list.lua -- parses `seeds=...`: 10 (1 to 10), 3..7, or 1,5,9.
local errors = require "mneme.base.errors"

local LARGEST = 2 ^ 53             -- above, numbers of Lua are not whole
local MOST = 1e6                   -- seeds: more are a slip

-- A seed (or how many), or nil.
local function whole(text)
  local n = text:find "^%d+$" and tonumber(text)
  return n and n < LARGEST and n or nil
end

---@param command string for errors
---@param text string
---@return number[] list at least one
return function(command, text)
  local list, first, last = {}, text:match "^(%d+)%.%.(%d+)$"
  first, last = whole(first or "1"), whole(last or text)
  if first and last then
    if last - first >= MOST then errors.usage(("%s: seeds=%s: more than a million"):format(command, text)) end
    for seed = first, last do list[#list + 1] = seed end
    if #list == 0 then errors.usage(("%s: seeds=%s: there are none"):format(command, text)) end
    return list
  end
  for word in (text .. ","):gmatch "([^,]*)," do list[#list + 1] = whole(word) or false end
  local there = {}
  for _, seed in ipairs(list) do
    if seed and there[seed] then errors.usage(("%s: seeds=%s: %.0f is there twice"):format(command, text, seed)) end
    there[seed] = true
    if not seed then
      errors.usage(("%s: seeds=%s, expected a whole number of at least 1, FIRST..LAST, or seeds with commas between"):format(command, text))
    end
  end
  return list
end
