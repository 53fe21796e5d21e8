-- parse_seeds.lua -- parses `seeds=...`: 10 (1 to 10), 3..7, or 1,5,9.
local errors = require "mneme.base.errors"

local LARGEST = 2 ^ 53             -- above, numbers of Lua are not whole
local MOST = 1e6                   -- seeds: more are a slip

-- A seed (or how many), or nil.
local function whole(text)
  local n = text:find "^%d+$" and tonumber(text)
  return n and n < LARGEST and n or nil
end

local EXPECTED = "a whole number of at least 1, FIRST..LAST, or seeds with commas between"

---@param command string for errors
---@param key string? the setting, if it is not `seeds`
---@return number[] list at least one
return function(command, text, key)
  key = key or "seeds"
  local function refuse(why)
    errors.raise(("%s: %s=%s%s, expected %s"):format(command, key, text, why, EXPECTED), { status = 2, setting = key, given = text, expected = EXPECTED })
  end
  local list, first, last = {}, text:match "^(%d+)%.%.(%d+)$"
  first, last = whole(first or "1"), whole(last or text)
  if first and last then
    if last - first >= MOST then refuse ": more than a million" end
    for seed = first, last do list[#list + 1] = seed end
    if #list == 0 then refuse ": there are none" end
    return list
  end
  for word in (text .. ","):gmatch "([^,]*)," do list[#list + 1] = whole(word) or false end
  local there = {}
  for _, seed in ipairs(list) do
    if seed and there[seed] then refuse((": %.0f is there twice"):format(seed)) end
    there[seed] = true
    if not seed then refuse "" end
  end
  return list
end
