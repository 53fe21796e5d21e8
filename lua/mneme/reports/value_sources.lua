-- value_sources.lua -- where the value of a setting in a run comes from: a source that the authors wrote for this very value, the study's
-- quick=1, the command line, what is published for its core, the setting size=, or nobody has written it.
local core = require "mneme.models.core"
local files = require "mneme.base.files"
local grid = require "mneme.study.grid"
local prose = require "mneme.study.report_texts"
local registry = require "mneme.base.registry"
local script = require "mneme.runs.script"
local settings = require "mneme.study.settings_diff"
local values = require "mneme.base.setting_types"

local sources = {}
local of_size = { ["core.d_model"] = true, ["core.d_head"] = true, ["core.d_ffn"] = true, ["core.n_layers"] = true }

-- The settings that a script gives for these arguments, flat; {} where it takes none of them.
local function settings_of(path, words)
  local ok, survey = pcall(script.survey, path, words, true)
  local flat = {}
  for key, value in pairs(ok and survey.cfg or {}) do flat[key] = values.to_json(value) end
  return settings.flat(flat)
end

-- The words of a run's point as far as the study itself has its values.
local function own_words(spec, labels)
  local words = {}
  for name, axis in pairs(spec.axes or {}) do
    for _, size in ipairs { "", "quick", "full" } do
      local found
      for _, value in ipairs(grid.list(name, axis, size)) do found = found or grid.is(value, labels[name]) and value or nil end
      if found then
        for _, word in ipairs(found.words) do words[#words + 1] = word end
        break
      end
    end
  end
  return words
end

-- The settings that the command line of a sweep gave: as they were written, and by their first part.
local function given_of(study, spec)
  local given = {}
  for word in values.show(study.info.settings or ""):gmatch "%S+" do
    local key = word:match "^%-*([%w_.]+)="
    if key and key ~= "quick" and key ~= "full" then given[key] = true end
  end
  for _, c in ipairs(study.runs) do
    for name, label in pairs(c.labels or {}) do            -- axes, and values of axes, that the study does not have
      local known = false
      for _, of in ipairs(spec.axes and spec.axes[name] and grid.labels(name, spec.axes[name]) or {}) do known = known or of == label end
      if not known then given[name .. "=" .. label] = true end
    end
  end
  return given
end

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
  local entry = values.entry(published, of_run)
  return type(entry) == "table" and entry[key] ~= nil
end

---Where values of a study's runs come from.
---@param study table of folder.load
---@param source table of report.source: path, of = path of the experiment that the study is of, spec, report, published
---@param words table the report's fixed texts
---@return fun(run: table, key: string): string of a run of report_method.runs: text for the page
function sources.new(study, source, words)
  local spec, report, known, given = source.spec or {}, source.report or {}, {}, given_of(study, source.spec or {})
  local quick = values.show(study.info.settings):find "%f[%w]quick=1%f[%W]" ~= nil
  local function at(path, list, small)
    local all = { unpack(list) }
    if small then all[#all + 1] = "quick=1" end
    local name = path .. " " .. table.concat(all, " ")
    known[name] = known[name] or settings_of(path, all)
    return known[name]
  end
  -- The settings of an entry's script, without running it, as far as the run wrote where its value came from.
  local function recorded(entry, small, key, value, from)
    local own = from == nil or from == "published" or from == "full"
    if small then own = from == "quick" elseif not entry.inherited and not quick then own = own or from == "study" end
    return own and { [key] = value } or nil
  end
  return function(r, key)
    local value, from = r.flat[key], nil
    local origins = type(r.info.values_from) == "table" and r.info.values_from or nil
    if origins then from = origins[key] end
    local words_of_run = own_words(spec, r.run.labels or {})
    local name = r.flat.core
    local of_core = type(name) == "string" and { "core=" .. name } or {}
    local about_core = key == "core" or key:find "^core%." ~= nil
    local cited, named = prose.source(report, key, value, function(entry, small)
      if small and not quick then return nil end
      if entry.source:lower():find("released", 1, true) then
        local fits = published_for(source.published, key, r.flat, (source.defaults or {}).learner)
        if fits == false or about_core and not is_released(name) then return nil end
      end
      if not source.path then return origins and recorded(entry, small, key, value, from) end
      if entry.inherited then return at(source.of, of_core, small) end
      return at(source.path, words_of_run, small)
    end)
    if cited then return cited end
    local label = (r.run.labels or {})[key:match "^[^.]+"]
    if from == "given" or given[key] or label and given[key:match "^[^.]+" .. "=" .. label] and not of_size[key] then return words.given end
    if from == "size" or not origins and of_size[key] and r.info.size and r.info.size ~= "published" then return words.of_size:format(tostring(r.info.size)) end
    if from == "published" then return words.of_published:format(values.show(name)) end
    if from == "learner" then return words.of_learner:format(values.show(r.flat.learner)) end
    if from == "quick" and not source.path then return words.of_quick end
    if from == "study" then return words.of_study end
    if quick and source.path and at(source.path, words_of_run, true)[key] == value and at(source.path, words_of_run, false)[key] ~= value then
      return words.of_quick
    end
    if not source.path and not origins then return "–" end
    if origins and from == nil and source.of then return named and words.of_default or "–" end
    return named and words.of_study or "–"
  end
end

return sources
