-- value_sources.lua -- where the value of a setting in a run comes from: a source that the authors wrote for this very value, the study's
-- quick=1, the command line, what is published for its core, the setting size=, or nobody has written it.  Runs write it when they begin
-- (runs/published_values.lua); of those of earlier versions it is not known.
local core = require "mneme.models.core"
local files = require "mneme.base.files"
local report_texts = require "mneme.lab.study.report_texts"
local registry = require "mneme.base.registry"
local settings_diff = require "mneme.lab.study.settings_diff"
local setting_types = require "mneme.base.setting_types"
local report_strings = require "mneme.lab.reports.report_strings"

local sources = {}

-- Does a core have a released configuration?  One of the library that was taken from released code, or checked against it.
local function is_released(name)
  if type(name) ~= "string" or name:find "[^%w_]" or not files.is_file(registry.library .. "cores/" .. name .. ".lua") then return false end
  local d = core.definition(name)
  local text = ((d.source or "") .. " " .. (d.checked or "")):lower()
  return text:find("released", 1, true) ~= nil
end

-- Whether a script publishes a setting for a run's core and learner; nil: it does so for no core.
local function published_for(published, key, flat, learner)
  if type(published) ~= "table" then return nil end
  local any, of_run = false, { flat.core, learner = flat.learner or learner }
  for _, of_core in pairs(published) do any = any or type(of_core) == "table" and of_core[key] ~= nil end
  if not any then return nil end
  for option, value in pairs(flat) do if option:find "^core%." then of_run[option:sub(6)] = value end end
  local entry = setting_types.entry(published, of_run)
  return type(entry) == "table" and entry[key] ~= nil
end

---Where values of a study's runs come from.
---@param source table of report.source: of = path of the experiment that the study is of, report, published, defaults
---@return fun(run: table, key: string): string of a run of report_method.runs: text for the page
function sources.new(study, source)
  local report, quick = source.report or {}, setting_types.show(study.info.settings):find "%f[%w]quick=1%f[%W]" ~= nil
  local given = {}
  for key in (" " .. setting_types.show(study.info.settings or "")):gmatch "%s%-*([%w_.]+)=" do given[key] = key ~= "quick" and key ~= "full" end
  return function(r, key)
    local origins = type(r.info.values_from) == "table" and r.info.values_from
    local value, from = r.flat[key], origins and origins[key] or nil
    local about_core = key == "core" or key:find "^core%." ~= nil
    local cited, named = report_texts.source(report, key, value, function(entry, small)
      if small and not quick or not origins then return nil end
      if entry.source:lower():find("released", 1, true) then
        local fits = published_for(source.published, key, r.flat, (source.defaults or {}).learner)
        if fits == false or about_core and not is_released(r.flat.core) then return nil end
      end
      local own = from == nil or from == "published" or from == "full"
      if small then own = from == "quick" elseif not entry.inherited and not quick then own = own or from == "study" end
      return own and { [key] = value } or nil
    end)
    if cited then return cited end
    if from == "given" or given[key] then return report_strings.given end
    if from == "size" then return report_strings.of_size:format(tostring(r.info.size)) end
    if from == "published" then return report_strings.of_published:format(setting_types.show(r.flat.core)) end
    if from == "learner" then return report_strings.of_learner:format(setting_types.show(r.flat.learner)) end
    if from == "quick" then return report_strings.of_quick end
    if from == "study" then return report_strings.of_study end
    if not origins then return "–" end
    local learner, by_script = r.info.learner or {}, settings_diff.flat(r.info.config)[key] ~= nil
    if not by_script and (learner.config or {})[key] ~= nil then return report_strings.of_learner:format(setting_types.show(learner.name)) end
    if source.of then return named and report_strings.of_default or "–" end
    return named and report_strings.of_study or "–"
  end
end

return sources
