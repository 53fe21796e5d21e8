-- report_method.lua -- the method section of a report: models, environments, settings and their sources, machine, and
-- resources, all from the files of the runs.
local core = require "mneme.models.core"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local folder = require "mneme.lab.study.folder"
local json = require "mneme.base.json"
local learners = require "mneme.learn.learners"
local model_sizes = require "mneme.lab.study.model_sizes"
local format = require "mneme.base.format"
local report_texts = require "mneme.lab.study.report_texts"
local settings_diff = require "mneme.lab.study.settings_diff"
local stats = require "mneme.stats"
local setting_types = require "mneme.base.setting_types"
local report_strings = require "mneme.lab.reports.report_strings"

local method = {}
local MOST = 13                  -- points of which the table of resources is open

-- Settings that do not change a run's result, or that are shown elsewhere.
local left_out = settings_diff.idle("seed", "device")

local function show(v) return v == nil and "–" or setting_types.show(v) end

---What the runs of a study wrote into their config.json, in the order of its runs; those that never began are missing.
---@return table[] list { run, info, flat = its settings with dotted keys }
function method.runs(study)
  local list = {}
  for _, c in ipairs(study.runs) do
    local info = c:info()
    if info then list[#list + 1] = { run = c, info = info, flat = settings_diff.flat(info.config) } end
  end
  settings_diff.fill(list, true)
  return list
end

-- The distinct values of something over runs, in order, as a text.
local function distinct(runs, of)
  local seen, list = {}, {}
  for _, r in ipairs(runs) do
    local v = of(r)
    local text = v ~= nil and show(v)
    if text and not seen[text] then seen[text], list[#list + 1] = true, text end
  end
  return list
end

---The size of a study's runs in a few words, which every verdict carries: "1 layer, 2M steps"; "" if nothing was recorded.
function method.size(runs)
  local parts = {}
  local function add(form, key, each)
    local low, high = math.huge, -math.huge
    for _, r in ipairs(runs) do
      local n = tonumber(r.flat[key])
      if n then low, high = math.min(low, n), math.max(high, n) end
    end
    if high >= low then parts[#parts + 1] = form:format(low == high and each(low) or each(low) .. "–" .. each(high)) end
  end
  add(report_strings.of_layers, "core.n_layers", tostring)
  add(report_strings.of_steps, "steps", format.short)
  return table.concat(parts, ", ")
end

---Cores, how many parameters models with them have, and all their options.
function method.model(out, runs)
  local rows, options, by_name = {}, {}, {}
  for _, r in ipairs(runs) do
    local about = type(r.info.core) == "table" and r.info.core or nil
    local name = about and (r.run.labels.core or about.name)
    if name and not by_name[name] then
      by_name[name] = {}
      rows[#rows + 1] = { name, about.name }
      options[#rows] = { name = name, text = json.encode(about.config or {}, "  ") }
    end
    if name then table.insert(by_name[name], r) end
  end
  for _, row in ipairs(rows) do
    row[3] = table.concat(distinct(by_name[row[1]], function(r) return r.info.parameters end), ", ")
  end
  if #rows > 0 then out:table({ report_strings.kind, "core", report_strings.parameters }, rows) end
  local known = {}
  for _, r in ipairs(runs) do model_sizes.add(known, r.run, r.info) end
  local apart = model_sizes.warning(known)
  if apart then out:paragraphs((apart:gsub("^r", "R")) .. ".", "warning") end
  for _, o in ipairs(options) do out:folded(report_strings.all_options:format(o.name), o.text) end
end

-- A core as it is named, what is said of its checks, and by what it was checked.
local function checks_of(info)
  local about = info.core
  local name = type(about.name) == "string" and about.name or "–"
  if type(info.own_words) == "string" then return report_strings.own_words:format(name, info.own_words), "own_core" end
  if name:find "[^%w_]" or not files.is_file(registry.library .. "cores/" .. name .. ".lua") then return name, "own_core" end
  local by = core.definition(name).checked
  return name, by and "checked" or "not_checked", by
end

---Against what the cores of the runs are checked: of the library's, what their files say.
function method.checks(out, runs)
  local lists, order = {}, {}
  for _, r in ipairs(runs) do
    if type(r.info.core) == "table" then
      local name, kind, by = checks_of(r.info)
      local key = kind .. (by or "")
      if not lists[key] then
        lists[key] = { names = {}, kind = kind, by = by }
        order[#order + 1] = lists[key]
      end
      lists[key].names[name] = true
    end
  end
  for _, list in ipairs(order) do out:paragraphs(report_strings[list.kind]:format(table.concat(tables.keys(list.names), ", "), list.by)) end
end

---What was minimised: the loss of the learner, with the values of its coefficients.
---@param defaults table? the script's, flat
function method.objective(out, runs, defaults)
  local names, supervised = distinct(runs, function(r) return r.flat.learner or type(r.info.learner) == "table" and r.info.learner.name or nil end), false
  for _, r in ipairs(runs) do supervised = supervised or r.info.sequence_task ~= nil end
  if #names == 0 and defaults and type(defaults.learner) == "string" and runs[1] and runs[1].info.env then names = { defaults.learner } end
  if supervised then names = { "supervised" } end
  for _, name in ipairs(names) do
    local objective = learners.objective(name)
    if objective then
      out:paragraphs(objective)
      local values_of = {}
      for _, key in ipairs { "gamma", "lambda", "value_coef", "entropy_coef", "clip", "epochs", "max_norm" } do
        local list = distinct(runs, function(r) return r.flat[key] end)
        if #list > 0 then values_of[#values_of + 1] = key .. " " .. table.concat(list, ", ") end
      end
      local weights = distinct(runs, function(r) return r.flat.aux_coef end)
      if #weights > 0 then out:paragraphs(report_strings.own_terms:format(table.concat(weights, ", "))) end
      if #values_of > 0 then out:paragraphs(report_strings.objective_note:format(table.concat(values_of, "; ")), "dim") end
    else out:paragraphs(report_strings.no_objective:format(name)) end
  end
end

---What was acted in or learned from.
function method.data(out, runs)
  local keys, rows, flats = {}, {}, {}
  local names = distinct(runs, function(r) return type(r.info.env) == "string" and r.info.env or nil end)
  if #names > 0 then rows[1] = { report_strings.environment, table.concat(names, ", ") } end
  for i, r in ipairs(runs) do
    flats[i] = settings_diff.flat(r.info.task or r.info.sequence_task or {})
    for key in pairs(flats[i]) do keys[key] = true end
  end
  for _, key in ipairs(tables.keys(keys)) do
    if key ~= "seed" then
      local at = 0
      rows[#rows + 1] = { key, table.concat(distinct(runs, function() at = at + 1 return flats[at][key] end), ", ") }
    end
  end
  if #rows > 0 then out:table({}, rows) end
end

-- ---- where the value of a setting comes from ----
-- A source that the authors wrote for this very value, the study's quick=1, the command line, what is published for its core, the setting size=, or
-- nobody has written it.  Runs write it when they begin (runs/published_values.lua); of those of earlier versions it is not known.

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
function method.sources(study, source)
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

-- Where each value of a setting comes from: once where that is the same for all.
local function by_value(runs, key, source_of)
  local all, list = {}, {}
  for _, r in ipairs(runs) do if r.flat[key] ~= nil then all[#all + 1] = r end end
  local texts = distinct(all, function(r) return source_of(r, key) end)
  if not texts[2] then return texts[1] or "–" end
  for _, text in ipairs(texts) do
    list[#list + 1] = ("%s: %s"):format(table.concat(distinct(all, function(r) return source_of(r, key) == text and r.flat[key] or nil end), ", "), text)
  end
  return table.concat(list, "; ")
end

---Settings with their sources: those that are equal everywhere once, the others with all their values.
---@param defaults table? the script's, flat
---@param source_of fun(run: table, key: string): string where a run's value comes from
function method.hyperparameters(out, runs, defaults, report, source_of)
  local flats, rows = {}, {}
  local function default_of(key, of)               -- an axis has none
    if defaults and not of.labels[key:match "^[^.]+"] then return defaults[key] end
  end
  local rounds = false
  for i, r in ipairs(runs) do
    flats[i], rounds = r.flat, rounds or tostring(r.info.device):find "cuda" ~= nil or r.flat.precision ~= nil and r.flat.precision ~= "fp32"
  end
  local function told(key) return not left_out[key] and (key ~= "precision" or rounds) and (key ~= "emulate" or rounds) end
  local same, other = settings_diff.divide(flats)
  for _, key in ipairs(same) do
    if told(key) then
      local value, default = flats[1][key], default_of(key, runs[1].run)
      local differs = default ~= nil and default ~= value
      rows[#rows + 1] = { { key, bold = differs }, show(value), show(default),
        table.concat(distinct(runs, function(r) return source_of(r, key) end), "; ") }
    end
  end
  for _, entry in ipairs(report.hyperparameters or {}) do          -- what the runs do not know of
    local names, known = report_texts.names(entry), entry.value == nil
    for _, flat in ipairs(flats) do
      for _, name in ipairs(names) do known = known or flat[name] ~= nil end
    end
    if not known then rows[#rows + 1] = { names[1], show(entry.value), "–", entry.source or "–" } end
  end
  if #rows > 0 then out:table({ report_strings.setting, report_strings.value, report_strings.default, report_strings.source }, rows, report_strings.same) end
  rows = {}
  for _, key in ipairs(other) do
    if told(key) then
      rows[#rows + 1] = { key, table.concat(distinct(runs, function(r) return r.flat[key] end), ", "), by_value(runs, key, source_of) }
    end
  end
  if #rows > 0 then out:table({ report_strings.setting, report_strings.values, report_strings.source }, rows, report_strings.changed) end
  if #same > 0 then out:paragraphs(report_strings.unsourced, "dim") end
end

-- What runs wrote of their machine, as rows; of some that wrote nothing, that, too.
local function machine_rows(runs)
  local any = false
  for _, r in ipairs(runs) do any = any or type(r.info.machine) == "table" end
  if not any then return nil end
  local function of(row)
    return table.concat(distinct(runs, function(r) return type(r.info.machine) == "table" and row(r.info.machine) or report_strings.not_recorded end), "; ")
  end
  return { report_strings.processor, of(function(m) return report_strings.machine:format(show(m.processor), show(m.cores), show(m.memory_gib)) end) },
    { report_strings.system, of(function(m) return show(m.system) end) },
    { report_strings.built_with, of(function(m) return table.concat({ show(m.compiler), show(m.blas), show(m.vectors), show(m.lua) }, ", ") end) }
end

---Where and with what it was run.
function method.setup(out, study, runs)
  local info, seeds = study.info, {}
  for _, c in ipairs(study.runs) do seeds[c.seed] = true end
  local list = {}
  for seed in pairs(seeds) do list[#list + 1] = seed end
  table.sort(list)
  local function of(key) return table.concat(distinct(runs, function(r) return r.info[key] end), ", ") end
  local rows = { { report_strings.made_with, show(info.mneme) }, { report_strings.script, show(info.script) }, { report_strings.words_given,
    show(info.settings) },
    { report_strings.seeds_used, table.concat(list, ", ") }, { report_strings.host, of "host" }, { report_strings.device, of "device" },
      { report_strings.threads, of "threads" },
    { report_strings.commit, of "commit" }, { report_strings.program, of "program" }, machine_rows(runs) }
  for _, row in ipairs(rows) do if row[2] == "" then row[2] = "–" end end
  out:table({}, rows)
end

-- Sum, mean and maximum of a resource over the runs that recorded it.
local function account(runs, of)
  local list, highest = {}, -math.huge
  for _, c in ipairs(runs) do
    local v = of(c)
    if type(v) == "number" and v - v == 0 then list[#list + 1], highest = v, math.max(highest, v) end
  end
  if #list == 0 then return nil end
  return { n = #list, mean = stats.mean(list), sum = stats.mean(list) * #list, highest = highest }
end

local function used(key) return function(c) return c.status == "done" and c.resources and c.resources[key] end end

---What was thought to be needed, and what was.
function method.resources(out, study)
  local told = account(study.runs, used "energy_j") ~= nil
  local function row(name, runs, whole)
    local which = whole and "sum" or "mean"
    local before, wall = account(runs, function(c) return c.estimate and c.estimate.wall_s end), account(runs, used "wall_s")
    local cpu, peak, energy = account(runs, used "cpu_s"), account(runs, used "peak_mib"), account(runs, used "energy_j")
    if whole and before and wall and before.n < wall.n then before = nil end
    local function number(key, v, of) return { v and format.resource(key, v[of or which]) or "–", class = "number" } end
    return { name ~= "" and name or "–", tostring(wall and wall.n or 0), number("wall_s", before), number("wall_s", wall), number("cpu_s", cpu),
      number("peak_mib", peak, "highest"), told and number("energy_j", energy) or nil }
  end
  local rows = {}
  for _, group in ipairs(folder.groups(study.runs)) do rows[#rows + 1] = row(group.name, group.runs) end
  rows[#rows + 1] = row(report_strings.sum, study.runs, true)
  local head = { report_strings.kind, report_strings.statuses.done, report_strings.time .. ", " .. report_strings.before, report_strings.time,
    report_strings.processor, report_strings.memory }
  if told then head[#head + 1] = report_strings.energy end
  if #rows > MOST then out:fold(report_strings.resources_of, function() out:table(head, rows) end) else out:table(head, rows) end
  out:paragraphs(report_strings.resource_note .. (told and report_strings.energy_note or report_strings.no_energy), "dim")
end

return method
