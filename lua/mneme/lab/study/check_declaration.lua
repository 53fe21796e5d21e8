-- check_declaration.lua -- checks the metrics, figures, references and claims of a study before any run starts: otherwise a
-- misspelt name would show only when all runs are done.  `where` and the sides of a claim must name
-- a value of the axis in one of the study's sizes.  Of a sweep it checks the values of the axes: a wrong one would be found by its runs
-- alone, which stay in the study, or, where it sizes the others, by all of them.
local catalogue = require "mneme.base.catalogue"
local claims = require "mneme.lab.study.claims"
local cores = require "mneme.models.cores"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local grid = require "mneme.lab.study.grid"
local learner_settings = require "mneme.runs.learner_settings"
local declaration = require "mneme.lab.study.declaration"
local registry = require "mneme.base.registry"
local key_lines = require "mneme.base.key_lines"
local setting_types = require "mneme.base.setting_types"

local checked = {}
local metric_keys = { [1] = "string", unit = "string", range = "table", goal = "number", mean_of = "string", solved = "number" }
local reference_keys = { [1] = "string", y = "number", of = "string", source = "string", where = "table", curve = "table", steps = "number" }

local function check_metric(name, metric)
  declaration(metric, metric_keys, "metric " .. tostring(name))
  local range = metric.range
  if range and not (#range == 2 and type(range[1]) == "number" and type(range[2]) == "number" and range[1] < range[2]) then
    errors.raise(("study: metric %s: range is %s, expected { low, high }"):format(name, setting_types.show(range)))
  end
end

-- A name of a metric, or of what every run uses.
local function check_name(name, metrics, what)
  if not metrics or metrics[name] or metrics[name:match "[^/]*$"] or study_folder.used[name] then return end
  errors.unknown(what, name, tables.keys(tables.merged(metrics, study_folder.used)))
end

-- Labels of axes: { axis = label or list of labels }.  A value that is written another way than in its axis is the axis's from here on.
local function check_labels(labels, axes, what)
  for axis, wanted in pairs(labels or {}) do
    if not axes[axis] then errors.unknown(("axis in %s:"):format(what), tostring(axis), tables.keys(axes)) end
    local known, list = grid.labels(axis, axes[axis]), type(wanted) == "table" and wanted or { wanted }
    for i, label in ipairs(list) do
      local found = nil
      for _, size in ipairs { "", "quick", "full" } do
        for _, value in ipairs(grid.list(axis, axes[axis], size)) do
          if value.label == setting_types.show(label) then found = label
          elseif found == nil and grid.is(value, label) then found = value.plain end
        end
      end
      if found == nil then errors.unknown(("value of axis %s in %s:"):format(axis, what), setting_types.show(label), known) end
      list[i] = found
    end
    if type(wanted) ~= "table" then labels[axis] = list[1] end
  end
end

-- Curves and series have names of their own, which only runs know; x and by of a series may be no axes.
local function check_figure(f, i, spec)
  local what = "figure " .. i
  declaration.figure(f, what)
  if f[1] == "bars" or f[1] == "ranks" then check_name(f.y, spec.metrics, what .. ": y =") end
  if f[1] == "solved" and not ((spec.metrics or {})[f.y] and spec.metrics[f.y].solved and spec.metrics.steps) then
    errors.raise(("study: %s: y = %s: expected a metric with solved = number, next to a metric steps"):format(what, f.y))
  end
  local free = f[1] == "lines" or f[1] == "heat"
  for _, key in ipairs { "x", "by" } do
    local axis = f[key]
    if axis and not spec.axes[axis] and not free and not (f[1] == "curves" and key == "x") then
      errors.unknown(("%s: axis for %s ="):format(what, key), axis, tables.keys(spec.axes))
    end
  end
  check_labels(f.where, spec.axes, "where of " .. what)
end

-- A learning curve of others: { steps, value } each, in the order of steps.
local function check_curve(curve, what)
  local last = -math.huge
  for k, point in ipairs(curve) do
    local fine = type(point) == "table" and type(point[1]) == "number" and type(point[2]) == "number" and point[1] > last
    if not fine then errors.raise(("%s: curve[%d] is %s, expected { steps, value } with more steps than before"):format(what, k, setting_types.show(point))) end
    last = point[1]
  end
end

---Refuse what cannot be meant.
function checked.study(spec)
  for name, metric in pairs(spec.metrics or {}) do check_metric(name, metric) end
  for i, f in ipairs(spec.figures or {}) do check_figure(f, i, spec) end
  for i, r in ipairs(spec.references or {}) do
    declaration(r, reference_keys, "reference " .. i)
    if not r[1] or (not r.y) == (not r.curve) then
      errors.raise(("study: reference %d: expected { name, y = number, of = metric } or { name, curve = { { steps, value }, ... }, of = metric }"):format(i))
    end
    check_curve(r.curve or {}, "study: reference " .. i)
    if r.of then check_name(r.of, spec.metrics, ("reference %d: of ="):format(i)) end
    check_labels(r.where, spec.axes, "where of reference " .. i)
  end
  claims.check(spec.claims, spec.axes)
  for i, claim in ipairs(spec.claims or {}) do
    local test, what = claim.test, "claim " .. (claim.id or i)
    if test then
      check_name(test.metric, spec.metrics, what .. ": metric")
      if test.time then check_name(test.time, spec.metrics, what .. ": time") end
      for _, key in ipairs { "a", "b", "where" } do check_labels(test[key], spec.axes, ("%s of %s"):format(key, what)) end
    end
  end
end

-- ---- values of axes ----

local named_kinds = { core = "cores", attention = "attentions", dataset = "datasets", learner = "learners", env = "envs" }

local function is_one(kind, name, known)
  return kind == "envs" and type(name) == "string" and engine.C.mn_env_find(name) >= 0 or tables.has(known, name)
end

-- The names of the kind that a setting chooses among; nil: it is no such setting, as none of its values is one.
local function known_names(key, examples)
  local kind = named_kinds[key]
  local known = kind == "envs" and catalogue.names(kind) or kind and registry.names(kind) or {}
  for _, name in ipairs(examples) do if is_one(kind, name, known) then return known, kind end end
end

local function first(v) return type(v) == "table" and v[1] or v end

---Refuse a value of an axis, given on the command line, that names nothing which is there.
---@param examples any[] values of the axis that are right
---@param labels string[] of the axis, to list
function checked.name(name, examples, text, labels)
  local known, kind = known_names(name, tables.map(examples, first))
  if not known or is_one(kind, text, known) or text:find "%.lua$" and files.is_file(text) then return end
  local all = { unpack(labels) }
  for _, one in ipairs(known) do if not tables.has(labels, one) then all[#all + 1] = one end end
  errors.unknown(("value of axis %s:"):format(name), text, all)
end

---Refuse options that the core of a run does not have.
function checked.core(cfg)
  local name, options = first(cfg.core), {}
  if type(cfg.core) ~= "table" or not is_one("cores", name, registry.names "cores") then return end
  for key, value in pairs(cfg.core) do if key ~= 1 and key ~= "size" then options[key] = value end end
  cores.check_settings(name, options)
end

---A value of a setting that is an axis by the command line alone, checked as the script would check it.
---@return table see grid.value
function checked.typed(survey, name, text)
  local cfg = setting_types.copy(survey.cfg)
  setting_types.set(cfg, survey.schema, name, text)
  if survey.schema[name] and name ~= "learner" then checked.name(name, { survey.schema[name].default }, text, {}) end       -- learners: config.lua
  local key = name:match "^[^.]+"
  setting_types.check(key, cfg[key], survey.schema[key].about)
  if key == "core" and not survey.cores then checked.core(cfg) end
  return { label = text, words = { name .. "=" .. text } }
end

-- Check the settings that a value of an axis sets; names: by setting, { known names, kind }.
local function check_words(survey, words, names)
  local cfg, options = setting_types.copy(survey.cfg), {}
  for _, word in ipairs(words) do
    local path, text = word:match "^([^=]*)=(.*)$"
    local key, option = path:match "^([^.]*)%.?(.*)$"
    local known, kind = unpack(names[path] or {})
    if known and not is_one(kind, text, known) then
      if not text:find "%.lua$" then errors.unknown(path, text, known) end
      if not files.is_file(text) then errors.usage(("%s: there is no such file"):format(text)) end
    end
    if key == "learner" and names.learner then learner_settings.extend(survey.schema) end            -- it may bring settings of its own
    setting_types.set(cfg, survey.schema, path, text)
    setting_types.check(key, cfg[key], survey.schema[key].about)
    if key == "core" and option ~= "" and option ~= "size" then options[option] = setting_types.parse(path, text, cfg.core[option]) end
  end
  if names.core and next(options) then cores.check_settings(first(cfg.core), options) end
end

---Refuse values of a study's axes that its runs would refuse, at the study's line.
function checked.axes(plan)
  local survey = plan.survey
  local names = {}
  for key in pairs(named_kinds) do
    local examples = { survey.schema[key] and first(survey.schema[key].default) }
    for _, axis in ipairs(plan.axes) do
      for _, value in ipairs(axis.values) do
        for _, word in ipairs(value.words) do examples[#examples + 1] = word:match("^" .. key .. "=(.*)$") end
      end
    end
    names[key] = { known_names(key, examples) }
    if not names[key][1] then names[key] = nil end
  end
  for _, axis in ipairs(plan.axes) do
    for _, value in ipairs((plan.spec.axes or {})[axis.name] and axis.values or {}) do
      local ok, e = pcall(check_words, survey, value.words, names)
      if not ok and not value.unknown then
        local text = type(value.plain) == "table" and setting_types.show(value.plain[1]) or value.plain and setting_types.show(value.plain) or value.label
        errors.raise(("axis %s, value %s: %s"):format(axis.name, value.label, errors.is(e) and e.message or tostring(e)),
          { hint = errors.is(e) and e.hint or nil, status = 2, where = key_lines.of_key(survey.where, axis.name, text) or false })
      end
    end
  end
end

---Refuse an axis that has a value twice.
function checked.twice(plan)
  for _, axis in ipairs(plan.axes) do
    local again, before = grid.twice(axis.values, plan.survey.schema)
    if again then
      errors.usage(("sweep: axis %s has %s twice%s"):format(axis.name, before, again ~= before and ", once as " .. again or ""), "write it once")
    end
  end
end

return checked
