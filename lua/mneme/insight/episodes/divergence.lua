-- divergence.lua -- since which step two episodes shown side by side differ, and by how much.
local errors = require "mneme.base.errors"

-- Does what the environment knows differ at two steps?
local function worlds_differ(a, b)
  for name, value in pairs(a.truth or {}) do
    local other = (b.truth or {})[name]
    if other ~= value and (value == value or other == other) then return true end
  end
  return false
end

-- What was done at a step, as text: an action's name, or its numbers.
local function did(at, names)
  if at.did then return table.concat(at.did, " ") end
  return at.action and names and names[at.action + 1] or tostring(at.action)
end

local function signed(x) return (("%+.2g"):format(x):gsub("^-", "−")) end

---Compares the episodes of two frames of the same step, or their ends.
---@return string text "identical so far"; "differ since step 12: value +0.31, up instead of down, actions differ since 14"
---@return integer? since the first step at which the agents or their environments differ
local function divergence(a, b)
  errors.need("divergence: a frame", a, "history", "a Frame")
  errors.need("divergence: a frame", b, "history", "a Frame")
  local since, acted
  for i = 1, math.min(#a.history, #b.history) do
    local p, q = a.history[i], b.history[i]
    if not acted and did(p) ~= did(q) then acted = p.step end
    if not since and (acted or p.value ~= q.value or p.reward ~= q.reward or worlds_differ(p, q)) then since = p.step end
    if acted then break end
  end
  if not since and #a.history ~= #b.history then since = math.min(#a.history, #b.history) end
  if not since then return "identical so far", nil end
  local parts = {}
  if a.outcome and b.outcome then
    local ret, steps = b.outcome.ret - a.outcome.ret, b.outcome.length - a.outcome.length
    parts[1] = ret == 0 and "same return" or "return " .. signed(ret)
    if steps ~= 0 then parts[2] = ("%s step%s"):format(signed(steps), math.abs(steps) == 1 and "" or "s") end
  elseif a.outcome or b.outcome then parts[1] = (a.outcome and "left" or "right") .. " episode ended"
  else
    parts[1] = "value " .. signed(b.value - a.value)
    if did(a) ~= did(b) then parts[2] = ("%s instead of %s"):format(did(b, b.actions), did(a, a.actions)) end
  end
  if acted and acted ~= since then parts[#parts + 1] = "actions differ since " .. acted end
  return ("differ since step %d: %s"):format(since, table.concat(parts, ", ")), since
end

return divergence
