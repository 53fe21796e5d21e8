-- value_sources.lua -- where the value of a setting in a run of a study comes from: a source that the authors wrote for this very value, the
-- study's quick=1, the command line, the setting size=, or nobody has written it.
local grid = require "mneme.study.grid"
local prose = require "mneme.study.report_texts"
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
      for _, value in ipairs(grid.list(name, axis, size)) do found = found or value.label == labels[name] and value or nil end
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

---Where values of a study's runs come from.
---@param study table of folder.load
---@param source table of report.source: path, of = path of the experiment that the study is of, spec, report
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
  return function(r, key)
    local value = r.flat[key]
    local words_of_run = own_words(spec, r.run.labels or {})
    local core = type(r.flat.core) == "string" and { "core=" .. r.flat.core } or {}
    local cited, named = prose.source(report, key, value, function(entry, small)
      if small and not quick or not source.path then return nil end
      if entry.inherited then return at(source.of, core, small) end
      return at(source.path, words_of_run, small)
    end)
    if cited then return cited end
    local label = (r.run.labels or {})[key:match "^[^.]+"]
    if given[key] or label and given[key:match "^[^.]+" .. "=" .. label] and not of_size[key] then return words.given end
    if of_size[key] and r.info.size and r.info.size ~= "published" then return words.of_size:format(tostring(r.info.size)) end
    if not source.path then return "–" end
    if quick and at(source.path, words_of_run, true)[key] == value and at(source.path, words_of_run, false)[key] ~= value then
      return words.of_quick
    end
    return named and words.of_study or "–"
  end
end

return sources
