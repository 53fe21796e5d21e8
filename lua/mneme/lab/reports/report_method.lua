-- report_method.lua -- the method section of a report: models, environments, settings and their sources, machine, and
-- resources, all from the files of the runs.
local cores = require "mneme.models.cores"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local json = require "mneme.base.json"
local learners = require "mneme.learn.learners"
local model_sizes = require "mneme.lab.study.model_sizes"
local format = require "mneme.base.format"
local settings_diff = require "mneme.lab.study.settings_diff"
local stats = require "mneme.stats"
local setting_types = require "mneme.base.setting_types"

local method = {}
local MOST = 13                  -- points of which the table of resources is open

-- Settings that do not change a run's result, or that are shown elsewhere.
local left_out = settings_diff.idle("seed", "device")

local function show(v) return v == nil and "–" or setting_types.show(v) end

---What the runs of a study wrote into their config.json, in the order of its runs; those that never began are missing.
---@return table[] list { run, info, flat = its settings with dotted keys, given = those of its script }
function method.runs(study)
  local list = tables.map(study.runs, function(c)
    local info = c:info()
    return info and { run = c, info = info, flat = settings_diff.flat(info.config), given = settings_diff.flat(info.config) } or nil
  end)
  settings_diff.fill(list, true)
  return list
end

-- The distinct values of something over runs, in order, as a text.
local function distinct(runs, of)
  local groups = tables.groups(runs, function(r)
    local v = of(r)
    if v ~= nil then return show(v) end
  end)
  return tables.map(groups, function(group) return group.name end)
end

---The size of a study's runs in a few words, which every verdict carries: "1 layer, 2M steps"; "" if nothing was recorded.
function method.size(runs)
  local parts = {}
  local function add(form, key, each)
    local low, high = tables.span(tables.map(runs, function(r) return tonumber(r.flat[key]) end))
    if high >= low then parts[#parts + 1] = form:format(low == high and each(low) or each(low) .. "–" .. each(high)) end
  end
  add("layers: %s", "core.n_layers", tostring)
  add("steps: %s", "steps", format.short)
  return table.concat(parts, ", ")
end

---Cores, how many parameters models with them have, and all their options.
function method.model(out, runs)
  local of_cores = tables.groups(runs, function(r)
    return type(r.info.core) == "table" and (r.run.labels.core or r.info.core.name) or nil
  end)
  if #of_cores > 0 then
    out:table({ "runs", "core", "parameters" }, tables.map(of_cores, function(of)
      return { of.name, of.items[1].info.core.name, table.concat(distinct(of.items, function(r) return r.info.parameters end), ", ") }
    end))
  end
  local known = {}
  for _, r in ipairs(runs) do model_sizes.add(known, r.run, r.info) end
  local apart = model_sizes.warning(known)
  if apart then out:paragraphs((apart:gsub("^r", "R")) .. ".", "warning") end
  for _, of in ipairs(of_cores) do out:folded(("All options of %s"):format(of.name), json.encode(of.items[1].info.core.config or {}, "  ")) end
end

local CHECKED = "%s: outputs, gradients and parameters are checked against values computed with %s (tests/fixtures)."
local NOT_CHECKED, OWN_CORE = "%s: no values of another program are kept for it.",
  "%s: not a core of the library; nothing that is said here of checks is about it."

-- A core as it is named, what is said of its checks, and by what it was checked.
local function checks_of(info)
  local about = info.core
  local name = type(about.name) == "string" and about.name or "–"
  if type(info.own_words) == "string" then return ("%s (%s, which the script defines)"):format(name, info.own_words), OWN_CORE end
  if name:find "[^%w_]" or not files.is_file(registry.library .. "cores/" .. name .. ".lua") then return name, OWN_CORE end
  local by = cores.definition(name).checked
  return name, by and CHECKED or NOT_CHECKED, by
end

---Against what the cores of the runs are checked: of the library's, what their files say.
function method.checks(out, runs)
  local checks = tables.map(runs, function(r) return type(r.info.core) == "table" and { checks_of(r.info) } or nil end)
  for _, alike in ipairs(tables.groups(checks, function(c) return c[2] .. (c[3] or "") end)) do
    local names = tables.keys(tables.set(tables.map(alike.items, function(c) return c[1] end)))
    out:paragraphs(alike.items[1][2]:format(table.concat(names, ", "), alike.items[1][3]))
  end
end

---What was minimised, as the learners say it.
function method.objective(out, runs)
  for _, name in ipairs(distinct(runs, function(r)
    return r.info.sequence_task and "supervised" or r.flat.learner or type(r.info.learner) == "table" and r.info.learner.name or nil
  end)) do
    local objective = learners.objective(name)
    if objective then out:paragraphs(objective) end
  end
end

---What was acted in or learned from.
function method.data(out, runs)
  local keys, rows, flats = {}, {}, {}
  local names = distinct(runs, function(r) return type(r.info.env) == "string" and r.info.env or nil end)
  if #names > 0 then rows[1] = { "environment", table.concat(names, ", ") } end
  for i, r in ipairs(runs) do
    flats[i] = settings_diff.flat(r.info.task or r.info.sequence_task or {})
    for key in pairs(flats[i]) do keys[key] = true end
  end
  for _, key in ipairs(tables.keys(keys)) do
    if key ~= "seed" then rows[#rows + 1] = { key, table.concat(distinct(flats, function(flat) return flat[key] end), ", ") } end
  end
  if #rows > 0 then out:table({}, rows) end
end

---Settings: those that are equal everywhere once, with the word by which the run chose it, the others with all their values.
---@param defaults table? the script's, flat
---@param words string that the study was swept with
function method.hyperparameters(out, runs, defaults, words)
  local flats, rows, given = {}, {}, {}
  for key in (" " .. words):gmatch "%s%-*([%w_.]+)=" do given[key] = key ~= "quick" and key ~= "full" and "given" or nil end
  local function default_of(key, of)               -- an axis has none
    if defaults and not of.labels[key:match "^[^.]+"] then return defaults[key] end
  end
  local rounds = false
  for i, r in ipairs(runs) do
    flats[i], rounds = r.flat, rounds or tostring(r.info.device):find "cuda" ~= nil or r.flat.precision ~= nil and r.flat.precision ~= "fp32"
  end
  local function told(key) return not left_out[key] and (key ~= "precision" or rounds) and (key ~= "emulate" or rounds) end
  local function chosen(key)
    return table.concat(distinct(runs, function(r)
      local learner = type(r.info.learner) == "table" and r.info.learner.config or {}
      return type(r.info.values_from) == "table"
        and (given[key] or r.info.values_from[key] or r.given[key] == nil and learner[key] ~= nil and "learner" or "script") or nil
    end), ", ")
  end
  local same, other = settings_diff.divide(flats)
  for _, key in ipairs(same) do
    if told(key) then
      local value, default = flats[1][key], default_of(key, runs[1].run)
      rows[#rows + 1] = { { key, bold = default ~= nil and default ~= value }, show(value), show(default), chosen(key) }
    end
  end
  if #rows > 0 then
    out:table({ "setting", "value", "default", "chosen by" }, rows, "Settings that are the same in all runs; those in bold differ from the script's defaults.")
  end
  rows = {}
  for _, key in ipairs(other) do
    if told(key) then rows[#rows + 1] = { key, table.concat(distinct(runs, function(r) return r.flat[key] end), ", "), chosen(key) } end
  end
  if #rows > 0 then out:table({ "setting", "values", "chosen by" }, rows, "Settings that differ, each with its values") end
  if #same > 0 then
    out:paragraphs("Chosen by: given on the command line, study, quick or full (the sizes of the study), published (for this core by the script), size, "
      .. "learner (its default), or the script.", "dim")
  end
end

-- What runs wrote of their machine, as rows; of some that wrote nothing, that, too.
local function machine_rows(runs)
  if not tables.map(runs, function(r) return type(r.info.machine) == "table" or nil end)[1] then return nil end
  local function of(row)
    return table.concat(distinct(runs, function(r) return type(r.info.machine) == "table" and row(r.info.machine) or "not recorded" end), "; ")
  end
  return { "processor", of(function(m) return ("%s, %s of its processors, %s GiB"):format(show(m.processor), show(m.cores), show(m.memory_gib)) end) },
    { "system", of(function(m) return show(m.system) end) },
    { "built with", of(function(m) return table.concat({ show(m.compiler), show(m.blas), show(m.vectors), show(m.lua) }, ", ") end) }
end

---Where and with what it was run.
function method.setup(out, study, runs)
  local info = study.info
  local list = tables.map(tables.groups(study.runs, function(c) return c.seed end), function(group) return group.name end)
  table.sort(list)
  local function of(key) return table.concat(distinct(runs, function(r) return r.info[key] end), ", ") end
  local rows = { { "mneme", show(info.mneme) }, { "script", show(info.script) }, { "settings given", show(info.settings) },
    { "seeds", table.concat(list, ", ") }, { "host", of "host" }, { "device", of "device" }, { "threads", of "threads" },
    { "commit", of "commit" }, { "commit that the program was built of", of "program" }, machine_rows(runs) }
  for _, row in ipairs(rows) do if row[2] == "" then row[2] = "–" end end
  out:table({}, rows)
end

-- Sum, mean and maximum of a resource over the runs that recorded it.
local function account(runs, of)
  local list = tables.map(runs, function(c)
    local v = of(c)
    return type(v) == "number" and v - v == 0 and v or nil
  end)
  return list[1] and { n = #list, mean = stats.mean(list), sum = stats.mean(list) * #list, highest = select(2, tables.span(list)) } or nil
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
  local rows = tables.map(study_folder.groups(study.runs), function(group) return row(group.name, group.runs) end)
  rows[#rows + 1] = row("sum of all runs", study.runs, true)
  local head = { "runs", "done", "time, estimated before", "time", "processor", "peak memory" }
  if told then head[#head + 1] = "energy" end
  if #rows > MOST then out:fold("Resources of each point", function() out:table(head, rows) end) else out:table(head, rows) end
  out:paragraphs("Mean of a run. The estimate is from a short trial before the sweep, and only there where one was made."
    .. (told and " Energy is that of the whole processor package, whatever else ran; a dash: the machine does not tell."
      or " The machine does not tell what energy it took."), "dim")
end

return method
