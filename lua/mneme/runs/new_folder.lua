-- new_folder.lua -- a folder for a new run: runs/SCRIPT-N.
local files = require "mneme.base.files"

---Make the folder runs/NAME-N with the first N that is free.  Two runs that start at once get two folders.
---@param name string of the script
return function(name)
  files.make_folder "runs"
  local n = 0
  for _, entry in ipairs(files.list "runs") do
    local digits = entry:sub(1, #name + 1) == name .. "-" and entry:match("^%d+$", #name + 2)
    if digits and #digits <= 15 then n = math.max(n, tonumber(digits)) end
  end
  repeat n = n + 1 until files.make_folder(("runs/%s-%d"):format(name, n))
  return ("runs/%s-%d"):format(name, n)
end
