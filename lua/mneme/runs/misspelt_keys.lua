-- misspelt_keys.lua -- refuses a key of mn.config that is nearly one that Mneme reads, such as num_stpes, where nothing reads it: training
-- would have the default instead.  A script may have keys of its own: those that its code reads, or that have a text in `about`.
local errors = require "mneme.base.errors"
local source_files = require "mneme.base.source_files"
local lazy = require "mneme.base.lazy"
local text_places = lazy "mneme.base.text_places"
local traps = require "mneme.base.lua_traps"

-- Does code mention a key other than by setting it?
local function mentions(code, key)
  for after in code:gmatch("%f[%w_]" .. key .. "%f[^%w_]%s*([^\n]?[^\n]?)") do
    if not after:find "^=[^=]" and after ~= "=" then return true end
  end
  return false
end

---Refuse misspelt keys.
---@param own string[] keys that the script declares and Mneme does not know
---@param about table<string, any> texts of settings
---@param known string[] the keys that Mneme reads and the script does not declare
return function(own, about, known)
  local where, code = errors.position(), nil
  for _, key in ipairs(own) do
    local near = about[key] == nil and where and errors.nearest(key, known)
    near = near and math.abs(#near - #key) <= math.max(1, math.floor(#key / 3)) and near              -- "stop" is no slip of "stop_score"
    if near and not code then
      local texts = { traps.text_of("@" .. where:match "^(.*):%d+$") }
      for _, file in ipairs((source_files.list())) do texts[#texts + 1] = file.text end
      code = table.concat(texts, "\n"):gsub("%-%-[^\n]*", "")
    end
    if near and code ~= "" and not mentions(code, key) then
      errors.raise(("unknown setting '%s'; did you mean '%s'?"):format(key, near), { status = 2, where = text_places.of_key(where, key),
        hint = ("nothing reads %s here; a setting of your own gets a text: mn.config({ ... }, { %s = \"what it is\" })"):format(key, key) })
    end
  end
end
