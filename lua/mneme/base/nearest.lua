-- nearest.lua -- the name of which a word is a slip of the keyboard: "corridr" -> "corridor".  Only the same word counts: its parts one by
-- one, the same first letter, the same digits.  Another word of few other letters, such as max_steps for num_steps, is another thing, and
-- has its entry in field_words.lua or none.

-- Edits (insert, delete, change, swap neighbours) that turn a into b.
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

-- "num_stpes" -> { "num", "stpes" }
local function parts_of(text)
  local list = {}
  for part in text:gmatch "[^_%-. /]+" do list[#list + 1] = part end
  return list
end

-- Edits between two parts; nil: they are two words.  Of three letters two may have changed places.  Other digits, or another first
-- letter, are another word, unless `loosely`.
local function slips(a, b, loosely)
  if a == b then return 0 end
  local most = math.min(#a, #b) >= 2 and math.max(#a, #b) == 3 and 1 or math.min(2, math.floor(math.max(#a, #b) / 4))
  local swapped = #a == #b and #a > 2 and a:sub(1, 1) == b:sub(2, 2) and a:sub(2, 2) == b:sub(1, 1)
  if math.abs(#a - #b) > 2 or not loosely and a:gsub("%D", "") ~= b:gsub("%D", "") or not (loosely or swapped or a:sub(1, 1) == b:sub(1, 1)) then return nil end
  if #a > #b + 1 and a:sub(1, #b) == b then return nil end                  -- more was written on purpose: transformerxl
  local d = distance(a, b)
  if loosely then return d <= math.max(1, most) and d or nil end
  local doubled = d == 1 and a:gsub("(.)%1", "%1") == b:gsub("(.)%1", "%1")
  return (d <= most or doubled or swapped and d == 1) and d or nil
end

-- Edits between two names; nil: they are two names.
local function between(name, candidate, loosely)
  local a, b, total = parts_of(name), parts_of(candidate), 0
  if table.concat(a) == table.concat(b) then return 0 end                    -- numsteps, T-Maze
  if #a ~= #b then return nil end
  for i = 1, #a do
    local d = slips(a[i], b[i], loosely)
    if not d then return nil end
    total = total + d
  end
  return total <= 2 and total or nil
end

local nearest = {}

---Up to n known names of which this is a slip, the nearest first; those of a word that was cut off ("corr") after them.
---@param name any
---@param known string[]
---@param n integer
---@return string[]
function nearest.several(name, known, n)
  name = tostring(name):lower()
  local list, seen, rival = {}, {}, math.huge
  for i, candidate in ipairs(known) do
    local whole = candidate:lower()
    local d = math.abs(#name - #whole) <= 3 and between(name, whole) or nil
    if not d and whole:match "[^/.]*$" == name then d = 3 end                                  -- "loss" for "losses/loss"
    local cut = #name >= 4 and #name * 2 >= #whole and whole:sub(1, #name) == name and whole:find("^%a", #name + 1)
    if not d and cut and name:find "%a$" then d = 4 end                                        -- "corr" for "corridor"
    if not d and math.abs(#name - #whole) <= 3 then rival = math.min(rival, between(name, whole, true) or rival) end
    if d and not seen[candidate] then seen[candidate], list[#list + 1] = true, { candidate, d, i } end
  end
  table.sort(list, function(a, b) if a[2] ~= b[2] then return a[2] < b[2] end return a[3] < b[3] end)
  local names = {}
  for i = 1, math.min(n, #list) do names[i] = list[i][1] end
  names.tie = list[1] ~= nil and (rival <= list[1][2] or list[2] ~= nil and list[1][2] == list[2][2])
  return names
end

---The known name that was probably meant; nil: none is near, or two are as near.
---@param name any
---@param known string[]
---@return string?
function nearest.one(name, known)
  local names = nearest.several(name, known, 1)
  return not names.tie and names[1] or nil
end

return nearest
