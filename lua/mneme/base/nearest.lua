-- nearest.lua -- the names that were probably meant: "corridr" -> "corridor".

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

local nearest = {}

---Up to n known names that were probably meant, the nearest first.
---@param name any
---@param known string[]
---@param n integer
---@return string[]
function nearest.several(name, known, n)
  name = tostring(name)
  local list, most = {}, math.max(1, math.floor(#name / 3))
  for i, candidate in ipairs(known) do
    -- It takes as many edits as lengths differ at least, and a long name long to compare.
    local d = math.abs(#name - #candidate) <= most and distance(name:lower(), candidate:lower()) or math.huge
    if d > most and candidate:match "[^/.]*$" == name then d = most end                 -- "loss" for "losses/loss"
    if d > most then d = #name >= 3 and candidate:find(name, 1, true) and most + 1 or math.huge end       -- "corr" for "corridor"
    if d < #name then list[#list + 1] = { candidate, d, i } end
  end
  table.sort(list, function(a, b) if a[2] ~= b[2] then return a[2] < b[2] end return a[3] < b[3] end)
  local names = {}
  for i = 1, math.min(n, #list) do names[i] = list[i][1] end
  return names
end

---The known name that was probably meant, or nil if none is near.
---@param name any
---@param known string[]
---@return string?
function nearest.one(name, known) return nearest.several(name, known, 1)[1] end

return nearest
