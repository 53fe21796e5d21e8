-- divergence.lua -- how far two episodes that are shown side by side have gone apart.
local errors = require "mneme.base.errors"

-- Have two entries of a history another place or world?
local function worlds_differ(a, b)
  for name, value in pairs(a.truth or {}) do
    local other = (b.truth or {})[name]
    if other ~= value and (value == value or other == other) then return true end
  end
  return false
end

local function signed(x) return (("%+.2g"):format(x):gsub("^-", "−")) end

---What the episodes of two frames of the same step, or their ends, have in common.
---@param a Frame
---@param b Frame
---@return string text "the same so far"; "apart since step 12: value +0.31, up instead of down, other actions since 14"
---@return integer? since the first step in which the agents or their worlds are not the same
local function divergence(a, b)
  errors.need("divergence: a frame", a, "history", "frames of mneme.recorder")
  errors.need("divergence: a frame", b, "history", "frames of mneme.recorder")
  local since, acted
  for i = 1, math.min(#a.history, #b.history) do
    local p, q = a.history[i], b.history[i]
    if not acted and p.action ~= q.action then acted = p.step end
    if not since and (acted or p.value ~= q.value or p.reward ~= q.reward or worlds_differ(p, q)) then since = p.step end
    if acted then break end
  end
  if not since and #a.history ~= #b.history then since = math.min(#a.history, #b.history) end
  if not since then return "the same so far", nil end
  local words = {}
  if a.outcome and b.outcome then
    local ret, steps = b.outcome.ret - a.outcome.ret, b.outcome.length - a.outcome.length
    words[1] = ret == 0 and "the same return" or "return " .. signed(ret)
    if steps ~= 0 then words[2] = ("%s step%s"):format(signed(steps), math.abs(steps) == 1 and "" or "s") end
  elseif a.outcome or b.outcome then words[1] = (a.outcome and "the left" or "the right") .. " one has ended"
  else
    words[1] = "value " .. signed(b.value - a.value)
    if a.action ~= b.action then words[2] = ("%s instead of %s"):format(b.actions[b.action + 1], a.actions[a.action + 1]) end
  end
  if acted and acted ~= since then words[#words + 1] = "other actions since " .. acted end
  return ("apart since step %d: %s"):format(since, table.concat(words, ", ")), since
end

return divergence
