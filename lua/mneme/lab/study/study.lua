-- study.lua -- a grid of runs with a question: mn.study{...} in a script.  `mneme run SCRIPT` runs one of them,
-- `mneme sweep SCRIPT` all, and `mneme report runs/SCRIPT` writes the results.
--   return mn.study {
--     title = "Which gate remembers longest?",
--     axes = { core = { "galite", { "galite", gate = "scalar", label = "scalar" } }, corridor = { 120, 200, quick = { 20 } } },
--     settings = { steps = 5e6, quick = { steps = 1e5 } },             as mn.config takes them
--     seeds = { 5, quick = 2 },
--     run = function(cfg) ... return { success = 0.9 } end,            one run: named numbers, or what train() returns
--   }
-- or, instead of run, of = "tmaze": its runs are runs of that experiment, with its settings; then
--     measure = function(path) ... return { cue = 0.9 } end            further metrics, of the finished run in that folder
local check_declaration = require "mneme.lab.study.check_declaration"
local config = require "mneme.runs.config"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local grid = require "mneme.lab.study.grid"
local default_core_size = require "mneme.models.default_core_size"
local authors_texts = require "mneme.lab.study.authors_texts"
local ranks = require "mneme.tensor.ranks"
local resources = require "mneme.runs.resources"
local runs = require "mneme.runs.run"
local declaration = require "mneme.lab.study.declaration"
local parse_seeds = require "mneme.runs.parse_seeds"
local terminal = require "mneme.base.terminal"
local script = require "mneme.runs.script"
local setting_types = require "mneme.base.setting_types"
local registry = require "mneme.base.registry"

local study = { of_sweep = false }           -- of_sweep: this process runs the points of a sweep, each in turn

-- ---- what it is before it runs: its axes, how many runs they make, and its claims ----

-- The sizes that a study has: "" and those that its axes, settings or seeds name.
local function sizes_of(spec)
  return tables.map({ "", "quick", "full" }, function(size)
    local has = size == "" or (spec.settings or {})[size] ~= nil or spec.seeds[size] ~= nil
    for _, axis in pairs(spec.axes) do has = has or axis[size] ~= nil end
    return has and size or nil
  end)
end

-- The values of an axis in a size; "runs, quick=1": what a row of a size is called.
local function values_of(name, axis, size) return grid.list(name, axis, size ~= "" and size or nil) end
local function titled(title, size) return title .. (size ~= "" and ", " .. size .. "=1" or "") end

-- How many points, seeds and runs a study has.
local function count(spec, size)
  local points = 1
  for name, axis in pairs(spec.axes) do points = points * #values_of(name, axis, size) end
  local seeds = #parse_seeds("study", tostring(spec.seeds[size] or spec.seeds[1] or 1))
  return points * seeds, points, seeds
end

-- What --help of a study says besides its settings, as rows { title, text }; typed: what the command line names it: that name, or a path.
local function rows_of(spec, name, typed)
  local rows = { { "question", spec.question or spec.title } }
  for _, axis in ipairs(tables.keys(spec.axes)) do
    local texts = tables.map({ "", "quick", "full" }, function(size)
      if size ~= "" and not spec.axes[axis][size] then return nil end
      local labels = tables.map(values_of(axis, spec.axes[axis], size), function(value) return value.label end)
      return (size ~= "" and size .. "=1: " or "") .. table.concat(labels, ", ")
    end)
    rows[#rows + 1] = { "axis " .. axis, table.concat(texts, "; ") }
  end
  for _, size in ipairs(sizes_of(spec)) do
    local all, points, seeds = count(spec, size)
    rows[#rows + 1] = { titled("runs", size), ("%d: %d point%s x %d seed%s"):format(all, points, points == 1 and "" or "s", seeds, seeds == 1 and "" or "s") }
  end
  for i, claim in ipairs(spec.claims or {}) do
    rows[#rows + 1] = { ("claim %d"):format(i), claim.text .. (claim.source and (" (%s)"):format(claim.source) or "") }
  end
  for _, size in ipairs(spec.tune and sizes_of(spec) or {}) do
    local options, ranges = require("mneme.lab.study.tuning").declared(spec.tune, size ~= "" and size or nil)
    rows[#rows + 1] = { titled("tuning", size), ("%s: %s trials x steps for each memory, before these runs"):format(table.concat(tables.keys(ranges), ", "),
      tostring(options.budget)) }
  end
  rows[#rows + 1] = { "all runs", ("mneme sweep %s quick=1, which says how long before it starts, then mneme report runs/%s"):format(typed, name) }
  return rows
end

-- What `mneme run STUDY` says before it runs one point; nil: there is only one run.
local function one_of(spec, size, typed)
  local all, points, seeds = count(spec, size or "")
  if all < 2 then return nil end
  return ("this is one point of %d, with one seed of %d; all %d runs: mneme sweep %s%s"):format(points, seeds, all, typed, size and " " .. size .. "=1" or "")
end

-- ---- its declaration ----

-- What a study may say; those that are texts and tables for the report are read by lab/reports/report.lua.
local known = { title = "string", question = "string", of = "string", jobs = "number", axes = "table", settings = "table", about = "table", seeds = "table",
  run = "function", measure = "function", metrics = "table", figures = "table", claims = "table", references = "table", report = "table", tune = "table" }

local function check(spec)
  if type(spec) == "table" and type(spec.seeds) == "number" then spec.seeds = { spec.seeds } end
  declaration(spec, known, "a study")
  for key in pairs(spec.seeds or {}) do
    if not ({ true, quick = true, full = true })[key] then errors.raise(("study: seeds[%s], expected { how many, quick =, full = }"):format(tostring(key))) end
  end
  if (spec.run == nil) == (spec.of == nil) then errors.raise "study: expected either run = function(cfg) ... end or of = the name of an experiment" end
  if spec.jobs then errors.whole("study", "jobs is", spec.jobs, 1, {}) end
  if spec.measure and not spec.of then errors.raise "study: measure goes with of = the name of an experiment; run can measure itself" end
  if spec.tune then require("mneme.lab.study.tuning").check(spec.tune) end
  grid.check(spec.axes or {})
  authors_texts.check(spec.report or {})
end

-- The settings of one run, as mn.config takes them: each axis that is no setting yet is one, by its first value.
local function declared(spec)
  local settings = tables.merged(spec.settings)
  for name, axis in pairs(spec.axes or {}) do
    local first = grid.value(name, axis[1])
    for _, v in ipairs(axis) do                  -- "gru" beside { "galite", gate = "scalar" } has options too
      if setting_types.is_named(grid.value(name, v).plain) and type(first.plain) == "string" then first.plain = { first.plain } end
    end
    if first.plain ~= nil and settings[name] == nil then settings[name] = first.plain end
    for key, value in pairs(first.set or {}) do if settings[key] == nil then settings[key] = value end end
  end
  settings.quick, settings.full = settings.quick or {}, settings.full or {}      -- axes and seeds may have sizes, too
  return settings
end

-- "quick" or "full", if the command line asks for one.
local function size_of(words)
  local asked = tables.map({ "quick", "full" }, function(size) return (script.setting(words, size) or "0") ~= "0" and size or nil end)
  if asked[2] then errors.usage "quick=1 and full=1: expected one of them" end
  return asked[1]
end

-- The settings that a study of another experiment gives it, as words; quick=1 and full=1 mean the study's own.
local function other_words(spec, words)
  if not spec.of then return {}, words end
  local size, all = size_of(words), {}
  local function add(settings)
    for _, key in ipairs(tables.keys(settings)) do
      if key ~= "quick" and key ~= "full" then
        for _, word in ipairs(setting_types.words(key, settings[key])) do all[#all + 1] = word end
      end
    end
  end
  add(spec.settings or {})
  if size then add((spec.settings or {})[size] or {}) end
  return all, setting_types.without(words, "quick", "full")
end

-- The command-line arguments with a value for every axis: the given one, or the first.
local function filled_in(spec, words)
  if script.setting(words, "resume") then return words end
  local sized = size_of(words)
  local all, own = other_words(spec, words)
  local narrowed, rest = grid.narrow(spec.axes, own, sized)
  for _, name in ipairs(tables.keys(spec.axes)) do
    if narrowed[name] and #narrowed[name] > 1 then errors.usage(("%s: several values are for mneme sweep"):format(name)) end
    local value = (narrowed[name] or grid.list(name, spec.axes[name], sized))[1]
    for _, word in ipairs(value.words) do                     -- env.level=easy goes with its env=: not with another that is given
      local thing = setting_types.pair(word):match "^(.-)%."
      local its, given = script.setting(value.words, thing), script.setting(rest, thing)
      if not its or not given or its == given then all[#all + 1] = word end
    end
  end
  config.note_preset(all)
  for _, word in ipairs(rest) do all[#all + 1] = word end
  return all
end

local function is_series(v) return type(v) == "table" and type(v.x) == "table" and type(v.y) == "table" end

-- What a function of a study gives of its argument: every number must be one.
local function result_of(f, argument)
  local result = f(argument)
  if type(result) ~= "table" then errors.raise(("study: run gave a %s, expected a table of named numbers"):format(type(result))) end
  local function need(what, v)
    if type(v) ~= "number" or not (math.abs(v) <= 1e100) then          -- what statistics count with
      local at_most = type(v) == "number" and v - v == 0 and " of at most 1e100" or ""
      errors.raise(("study: %s %s, expected a finite number%s"):format(what, tostring(v), at_most), { status = 3, where = errors.position_of(f) })
    end
  end
  for name, value in pairs(result) do
    if type(value) == "table" and not is_series(value) then
      errors.raise(("study: run gave %s = %s, expected a number, or a series { x = { ... }, y = { ... } }"):format(tostring(name), tables.in_words(value)),
        { where = errors.position_of(f) })
    end
    for _, list in ipairs(is_series(value) and { value.x, value.y } or {}) do
      for i, v in ipairs(list) do need(("number %d of the series %s is"):format(i, tostring(name)), v) end
    end
    if type(value) == "number" and not result.path then need(tostring(name) .. " =", value) end          -- with a path train() returned it
  end
  return result
end

-- What a study measures must be among them, or its runs would be done and have nothing to show.
local function check_metrics(spec, result)
  local wanted, found = tables.keys(spec.metrics or {}), false
  for _, name in ipairs(wanted) do
    local value = result[name]
    found = found or value ~= nil or spec.metrics[name].mean_of ~= nil
    if value ~= nil and type(value) ~= "number" and type(value) ~= "table" then
      errors.raise(("study: run gave %s = %s, expected a number: it is a metric"):format(name, tostring(value)))
    end
  end
  for name, value in pairs(result) do
    if is_series(value) and #value.x ~= #value.y then
      errors.raise(("study: run gave a series %s with %d places and %d numbers"):format(tostring(name), #value.x, #value.y))
    end
  end
  if wanted[1] and not found then
    errors.raise(("study: run gave none of its metrics (%s), but %s"):format(table.concat(wanted, ", "),
      tables.keys(result)[1] and table.concat(tables.keys(result), ", ") or "nothing"))
  end
end

---Declare a study, and run the one run of it that the command line names (the first values of all axes that it does
---not name).
---@param spec table title, question: texts; axes = { name = { value, ..., quick = {...}, full = {...} } }, a value being a
---  number, a text, a thing with options and maybe a label, or { label = text, set = { setting = value, ... } };
---  settings, about: as for mn.config; of = another experiment, whose runs these are, with `settings` of the study's own;
---  measure = function(path) -> table: more named numbers of such a run; jobs = how many runs may run at a time
---  where nobody says (1 for what measures time);
---  seeds = { how many, quick =, full = }; run = function(cfg) -> table;
---  tune = { setting = "LOW..HIGH:log", budget = "TRIALSxSTEPS" }: see docs/tuning.md; metrics, figures, claims, references, report: see docs/studies.md
---@return table result what run gave, and `path`, the folder of the run
function study.new(spec)
  check(spec)
  spec.axes, spec.seeds = spec.axes or {}, spec.seeds or { 1 }
  check_declaration.study(spec)
  if spec.axes.core and config.arguments then
    local words = grid.list("core", spec.axes.core, size_of(config.arguments))[1].words
    local own = tables.map(words, function(word) return word:find "^core[.=]" and word or nil end)
    -- A mere name says nothing about sizes: the script whose runs these are does.
    if own[2] or not spec.of then config.note_own_core(own) end
  end
  local survey, called = config.survey, (config.script or ""):match "([^/]*)$":gsub("%.lua$", "")
  local typed = script.is_experiment(called) and called or config.script
  config.study_rows = config.study_rows or config.arguments and function() return rows_of(spec, called, typed) end
  if survey and not survey.one then
    survey.spec, survey.where, survey.size = spec, errors.position(), size_of(config.arguments)
    local all, own = other_words(spec, config.arguments)
    survey.narrowed, config.arguments = errors.of_command_line(grid.narrow, spec.axes, own, survey.size)
    if spec.of then survey.given = { unpack(config.arguments) } end
    config.note_preset(all)
    for i, word in ipairs(all) do table.insert(config.arguments, i, word) end
  elseif config.arguments then
    local words = tables.set(config.arguments)                -- nothing is to say of other points where its help is asked for, or a run is resumed
    local told = study.of_sweep or config.survey or ranks.rank ~= 0 or words["--help"] or words["-h"] or script.setting(config.arguments, "resume")
    local line = not told and one_of(spec, size_of(config.arguments), typed)
    if line then terminal.note(line) end
    config.arguments = errors.of_command_line(filled_in, spec, config.arguments)
  end
  if spec.of and script.locate(spec.of) == config.script then errors.raise("study: of = " .. tostring(spec.of) .. ", which is this study itself") end
  local account = resources.begin()
  local function trained(result)
    if ranks.rank == 0 and files.is_folder(result.path) then account:write(result.path) end
    return result
  end
  if spec.of then
    local result = registry.load(script.locate(spec.of))()
    for name, value in pairs(spec.measure and result_of(spec.measure, result.path) or {}) do result[name] = value end
    return trained(result)
  end
  local cfg = config.new(declared(spec), spec.about)
  local result = result_of(spec.run, cfg)
  result.path = result.path or type(config.opened) == "string" and config.opened or nil         -- it trained, and gives numbers of its own
  if result.path then return trained(result) end
  local unsized = default_core_size.idle(cfg.core)
  if unsized and script.setting(config.arguments or {}, "size") then print(unsized) end
  check_metrics(spec, result)
  local run, numbers = runs.open(cfg, { study = spec.title }), {}        -- nothing was trained: the numbers are the run
  for name, value in pairs(result) do if type(value) == "number" then numbers[name] = value end end
  run:log(cfg.steps, numbers)
  account:write(run.path)
  run:close(0)
  result.path = run.path
  local texts = tables.map(tables.keys(numbers), function(name) return name .. " " .. setting_types.show(numbers[name]) end)
  print(("%s: %s"):format(run.path, table.concat(texts, ", ")))
  return result
end

return study
