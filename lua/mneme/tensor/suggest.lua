-- suggest.lua -- what an unknown name of mn, mn.nn or a tensor is answered with: what to write for a name of PyTorch (torch_names.lua),
-- else the nearest names.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local torch = require "mneme.tensor.torch_names"

local suggest = {}

---Raise the error for an unknown name.
---@param whose string "mn.", "mn.nn." or "x:", which stands before the name
---@param name any
---@param list table<string, table> of torch_names.lua
---@param known string[] the names that there are
function suggest.unknown(whose, name, list, known)
  name = tostring(name)
  local entry = list[name]
  if entry and entry[1] then errors.usage(("there is no %s%s; write %s"):format(whose, name, entry[1]), entry[2]) end
  if entry then errors.usage(("there is no %s%s; %s"):format(whose, name, entry[2])) end
  local near = errors.closest(name, known, 3)
  for i, other in ipairs(near) do near[i] = ("'%s%s'"):format(whose == "x:" and "" or whose, other) end
  local last = table.remove(near)
  local guess = last and ("; did you mean %s?"):format(#near > 0 and table.concat(near, ", ") .. " or " .. last or last) or ""
  local what = whose == "x:" and "method or op '" or "name '" .. whose
  errors.usage(("unknown %s%s'%s"):format(what, name, guess), not last and "mneme list ops, mneme help api" or nil)
end

---Give a table of public functions an error for every name that it does not have: nil would be a default somewhere.
---@param whose string "mn.nn."
---@param t table whose metatable, if it has one, stays
---@param list table<string, table>? of torch_names.lua
---@return table t
function suggest.guard(whose, t, list)
  local meta = getmetatable(t) or {}
  meta.guarded, meta.__index = true, function(_, key) suggest.unknown(whose, key, list or {}, tables.keys(t)) end
  return setmetatable(t, meta)
end

suggest.functions, suggest.nn, suggest.init = torch.functions, torch.nn, torch.init

return suggest
