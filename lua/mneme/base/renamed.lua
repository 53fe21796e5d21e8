-- renamed.lua -- old public names: each works for one more release, and prints its successor once.
local errors = require "mneme.base.errors"
local terminal = require "mneme.base.terminal"

local renamed, seen = {}, {}

---Print once a process that a name has a successor: "mneme: x.lua:3: mn.task is now mn.dataset ...".
---@param old string as the user wrote it: "mn.task", "kept="
---@param new string what to write instead
function renamed.note(old, new)
  if seen[old] then return end
  seen[old] = true
  local where = errors.position()
  terminal.note(("mneme: %s%s is now %s (the old name works until the release after this one)"):format(where and where .. ": " or "", old, new))
end

---Take a value from a table under its new or its old name.
---@param t table of options
---@param new string
---@param old string
---@param shown string? how the pair is printed, "mn.agent: %s" say; default "%s"
function renamed.field(t, new, old, shown)
  if t[new] == nil and t[old] ~= nil then
    shown = shown or "%s"
    renamed.note(shown:format(old), shown:format(new))
    return t[old]
  end
  return t[new]
end

-- Modules that scripts had to require before everything was in mn.
for old, now in pairs {
  scene = { "mneme.view.scene", "scene" }, core = { "mneme.models.core", "core" }, player = { "mneme.episodes.stepper", "stepper" },
  meter = { "mneme.measure.timing", "measure.timing" }, probing = { "mneme.measure.linear_probes", "measure.linear_probes" },
  denominators = { "mneme.measure.denominators", "measure.denominators" }, endless = { "mneme.measure.endless_stream", "measure.endless_stream" },
  same_weights = { "mneme.measure.weight_transplant", "measure.weight_transplant" },
} do
  package.preload["mneme." .. old] = function()
    renamed.note("the module mneme." .. old, "mn." .. now[2])
    return require(now[1])
  end
end

return renamed
