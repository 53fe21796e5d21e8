-- run_contents.lua -- what a run keeps that must not depend on when it was stopped, killed or starved of disk: every
-- checkpoint, and every metric but clocks.
local files = require "mneme.base.files"

---A list of { name, bytes }.
---@param run string its folder
local function kept(_, run)
  local list = { { "metrics.jsonl", (files.read(run .. "/metrics.jsonl"):gsub('"charts/SPS": [%d.e+]+', "")) } }
  for _, name in ipairs(files.list(run .. "/checkpoints")) do
    list[#list + 1] = { name, (files.read(run .. "/checkpoints/" .. name)) }
  end
  return list
end

---The first thing by which two such lists differ; nil: none.
local function differs(a, b)
  for i = 1, math.max(#a, #b) do
    if not a[i] or not b[i] then return "it is there once only: " .. (a[i] or b[i])[1] end
    if a[i][1] ~= b[i][1] then return ("%s in place of %s"):format(a[i][1], b[i][1]) end
    if a[i][2] ~= b[i][2] then return a[i][1] .. " has other bytes" end
  end
end

return setmetatable({ differs = differs }, { __call = kept })
