-- key_lines.lua -- where a file of the user's sets a key: errors about declarations name that line, not the one that begins the table.
local errors = require "mneme.base.errors"

local key_lines = {}

---The line on which a key is set, the first from a given place on, or else the first of the file.
---@param where string? "file:line", the place
---@param value string? the line from there on that has this text in it, too
---@return string? where "file:line"; `where` itself where no line sets the key
function key_lines.of_key(where, key, value)
  local path, from = (where or ""):match "^(.*):(%d+)$"
  if not path then return where end
  local pattern, line, first, at, of_value = "%f[%w_]" .. key:gsub("%p", "%%%0") .. "%f[^%w_]%s*=[^=]", 0, nil, nil, nil
  for text in (errors.text_of("@" .. path) .. "\n"):gmatch "(.-)\n" do
    line = line + 1
    local code = text:gsub("%-%-.*", "") .. " "
    if code:find(pattern) then
      first = first or line
      at = at or line >= tonumber(from) and line or nil
    end
    if value and at and not of_value and code:find(value, 1, true) then of_value = line end
  end
  return ("%s:%s"):format(path, of_value or at or first or from)
end

return key_lines
