-- nearest.lua -- the name that was probably meant: "corridr" -> "corridor".

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

---The known name that was probably meant, or nil if none is near.
---@param name any
---@param known string[]
---@return string?
return function(name, known)
  name = tostring(name)
  local best, found = math.min(math.max(1, math.floor(#name / 3)) + 0.5, #name), nil
  for _, candidate in ipairs(known) do
    local d = math.abs(#name - #candidate)       -- it takes as many edits at least, and a long name long to compare
    if d < best then d = distance(name:lower(), candidate:lower()) end
    if d < best then best, found = d, candidate end
  end
  if found or #name < 3 then return found end
  for _, candidate in ipairs(known) do          -- "corr" for "corridor", "env" for "num_envs"
    if candidate:find(name, 1, true) then return candidate end
  end
end
