-- config.lua -- the settings of an experiment: declared once in the script, overridden by key=value words.
--   local cfg = mn.config { corridor = 160, core = { "agalite", eta = 4 }, quick = { corridor = 10 } }
-- Later ones win: default < published values of the chosen core and learner < quick < command line.  A setting that is not
-- declared is an error, so a misspelt one never leads to a run with the wrong value.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local files = require "mneme.base.files"
local learner_settings = require "mneme.runs.learner_settings"
local ranks = require "mneme.tensor.ranks"
local trusted_code = require "mneme.base.trusted_code"
local given_settings = require "mneme.runs.given_settings"
local settings_by_core = require "mneme.runs.settings_by_core"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"

local config = {
  arguments = nil,         -- the command line's words after the script; set by runs/script.lua
  script = nil,            -- the script's path
  device = nil,            -- where the engine was opened, if not on the CPU
  help = nil,              -- function(script, schema, own, common, learner, study) -> the text of --help; the door (init.lua) sets it
  study_rows = nil,        -- function() -> rows about the study that declares these settings, for --help
  opened = nil,            -- true: a run's folder was opened
  survey = nil,            -- a table: what is declared goes there, and the script ends; see runs/script.lua
}

---Settings that every script has: name, default, about.
config.standard = {
  { "run", "", { "the run's folder (default runs/SCRIPT-N)" } },
  { "resume", "", { "folder of a run to resume; every other setting comes from it" } },
  { "init", "", { "parameters to begin with: a run's folder, or FILE.safetensors; those whose names and shapes fit" } },
  { "init_map", "", { "init.map=THEIRS:OURS,...: what names of init= are called here, each the beginning of some up to a dot" } },
  { "freeze", "", { "parts that do not train: core, torso, actor, critic, core.layers.0 ..." } },
  { "quick", false, { "the script's small values, to try it out" } },
  { "full", false, { "the script's large values, as published" } },
  { "view", false, { "watch training in a window" } },
  { "where", "0", { "at the end, store the map of the memory (mneme where), for the window to show: 1: all of it; short: 15 seconds of it at most",
    choices = { "0", "1", "short" } } },
  { "device", "cpu", { "where tensors live and ops run: cpu or cuda" } },
  { "precision", "fp32", { "input precision of matrix products; bf16: on a GPU, or a CPU with AVX512-BF16 or AMX; tf32: on a GPU",
    choices = { "fp32", "tf32", "bf16" } } },
  { "emulate", "0", { "precision=bf16 in slow code on any CPU, to test: 1: with the bits of AVX512-BF16; amx: with those of AMX",
    choices = { "0", "1", "amx" } } },
  { "seed", 1, { "random seed; seeds=4, seeds=3..7 or seeds=1,5,9: one run per seed, each in a process", whole = true, range = { 0, 2 ^ 31 - 1 } } },
  { "size", "script", { "parameters of the agent: script (as many as with the script's own core), published (the core's own sizes), or a number; "
    .. "core.d_model=N wins" } },
  { "steps", 1e6, { "environment steps, summed over all environments", whole = true, range = { 1, 2 ^ 53 } } },
  { "checkpoint_every", 0, { "steps between checkpoints; 0: one a minute", whole = true, range = { 0, 2 ^ 53 } } },
  { "keep_checkpoints", 3, { "newest checkpoints that stay, besides the best", whole = true,
    range = { 1, 2 ^ 31 } } },
  { "threads", 0, { "CPU threads; 0: as many as pay, or one per MPI rank", whole = true, range = { 0, 256 } } },
  { "debug", "0", { "1: check every tensor for NaN and infinity, show tracebacks; nan: find the op that made the first one; "
    .. "grad: log every gradient; credit: log what the gradient of learner=a2c leaves out", choices = { "0", "1", "nan", "grad", "credit" } } },
  { "profile", "0", { "1: time every op and Lua line", choices = { "0", "1" } } },
}
local standard = config.standard
local may_change = { resume = true, steps = true, view = true, where = true, threads = true,
  device = true, precision = true, emulate = true, debug = true, profile = true }

-- What is known of a resolved config besides its values, by config.
local meta = setmetatable({}, { __mode = "k" })

---What lies behind a resolved config: { script, name, schema, published = what was taken of the core's published values, as a text,
---resumed = config.json of the run that is resumed }.
function config.meta(cfg) return meta[cfg] end

---Where the values of a new run's settings came from: see settings_by_core.lua.
function config.origins(cfg)
  local origins = settings_by_core.add_size(meta[cfg].origins, meta[cfg].core, cfg.core)
  for key in pairs(origins) do if cfg[key:match "^[^.]+"] == nil then origins[key] = nil end end       -- of another learner than the chosen one
  return origins
end

-- ---- what the script declares ----

-- The range of a learner's setting that a script declares without one, so that a wrong value is refused before an agent is built.
local function ranged(key, default, about)
  local rule = learner_settings.keys[key]
  local lo, hi = unpack(rule and rule.range or {})
  if not lo or about.range or about.choices or type(default) ~= "number" or default < lo or default > hi then return about end
  return { about[1], range = rule.range, whole = about.whole or rule.whole and default % 1 == 0 or nil }
end

local typed = {}             -- settings of runs that the user gave: { key, value }

-- Refuse, before an agent is built, a folder that holds a run.
local function check_run(cfg, by_user)
  typed = {}
  for _, key in ipairs { "run", "steps", "checkpoint_every", "keep_checkpoints", "view" } do
    if by_user[key] then typed[#typed + 1] = { key, cfg[key] } end
  end
  if by_user.run and cfg.run:find "^/[/.]*$" then errors.usage(("run=%s: expected a folder of its own, since a run is a folder"):format(cfg.run)) end
  if ranks.rank == 0 and by_user.run and cfg.run ~= "" and files.is_file(cfg.run .. "/config.json") then
    errors.usage(cfg.run .. " already holds a run", "resume=" .. cfg.run .. " goes on with it")
  end
end

---At the end of a script that opened no run: say which settings of runs it was given.  Without its folder nothing can have used run=.
function config.finish(script)
  local words, lost = {}, nil
  for i, pair in ipairs(typed) do
    words[i] = pair[1] .. "=" .. setting_types.show(pair[2])
    if pair[1] == "run" and not files.is_folder(pair[2]) then lost = words[i] end
  end
  if config.opened or not words[1] or ranks.size > 1 then return end          -- ranks say themselves where they differ
  local why = "it has a loop of its own; mneme run train has a run's settings"
  if lost then errors.usage(("%s: this script opened no run, and made no such folder"):format(lost), why) end
  terminal.note(("note: %s opened no run: %s %s only where the script itself reads %s"):format(script, table.concat(words, " "),
    words[2] and "count" or "counts", words[2] and "them" or "it"))
end

-- Schema: key -> { default, about }, and the order in which help lists the keys.
local function declare(defaults, about)
  local schema, own, common = {}, {}, {}
  for key, default in pairs(defaults) do
    if key ~= "quick" and key ~= "full" then
      schema[key] = { default = default, about = ranged(key, default, setting_types.declared("config", key, default, about[key])) }
      own[#own + 1] = key
    end
  end
  table.sort(own)
  for _, s in ipairs(standard) do
    local key = s[1]
    local mine = schema[key]
    if key == "size" and (mine and type(mine.default) ~= "string" or schema.parameters) then goto continue end
    if mine and type(mine.default) ~= type(s[2]) then
      errors.raise(("config: every script has %s (%s); it is a %s, and cannot be %s here: choose another name"):format(key, s[3][1],
        type(s[2]), setting_types.show(mine.default)))
    end
    if mine then
      for field, value in pairs(s[3]) do if mine.about[field] == nil then mine.about[field] = value end end
    else
      schema[key] = { default = s[2], about = s[3] }
      common[#common + 1] = key
    end
    ::continue::
  end
  for key in pairs(about) do
    if not schema[key] and key ~= "published" then errors.unknown("setting", key, tables.keys(schema)) end
  end
  learner_settings.extend(schema)
  return schema, own, common
end

-- ---- the command line ----

-- Refuse keys of the script's own that are nearly one that Mneme reads, and that nothing reads.
local function check_spelling(own, about)
  local known, declares, mine, others = tables.merged(learner_settings.keys), {}, {}, {}
  for _, s in ipairs(standard) do known[s[1]] = true end
  for _, key in ipairs(own) do
    declares[key] = true
    if not known[key] then mine[#mine + 1] = key end
  end
  for _, key in ipairs(tables.keys(known)) do if not declares[key] then others[#others + 1] = key end end
  if mine[1] then given_settings.check_keys(mine, about, others) end
end

-- The arguments of this script: the command line's, unless another script is the program.
local function own_arguments(level)
  if config.arguments then return config.arguments, config.script end
  local source = debug.getinfo(level + 1, "S").source:match "^@(.*)"
  local main = rawget(_G, "arg")
  if main and source and main[0] == source then return { unpack(main) }, source end
  return {}, source
end

-- ---- the learner ----

-- Read the learners that a run may have, so that their settings are known: by default, in quick and full, in the run that is resumed,
-- by the arguments.  Returns the one that --help is about; nil: the learner is no setting.
local function read_learners(defaults, arguments)
  if defaults.learner == nil then return nil end
  if type(defaults.learner) ~= "string" then
    errors.raise(("config: learner is a %s, expected the name of a learner such as \"a2c\""):format(type(defaults.learner)))
  end
  local names, chosen = {}, defaults.learner
  for _, size in ipairs { "quick", "full" } do
    if type(defaults[size]) == "table" then names[#names + 1] = defaults[size].learner end
  end
  for _, word in ipairs(arguments) do
    local key, text = setting_types.pair(word)
    if key == "resume" then chosen = require("mneme.runs.run_folder").read_info(text).config.learner or chosen end    -- late: as below
    for name in (key == "learner" and text or ""):gmatch "[^,]+" do
      names[#names + 1], chosen = name, name
    end
  end
  names[#names + 1], names[#names + 2] = defaults.learner, chosen
  for _, name in ipairs(names) do learner_settings.find(name) end
  return chosen
end

local own_core              -- the words of a study's own core, the first of its axis

---The next config gets these arguments from a study, not from the user.
config.note_preset = given_settings.note_preset

---The script's own core is, for the next config, the one of these arguments.
---@param list string[] core=NAME core.option=value
function config.note_own_core(list) own_core = list end

-- The settings of other learners that a script or study declares mean nothing to the chosen one, or those of a sweep; those that the user gives are refused.
local function leave_out_others(cfg, schema, given)
  local learners = { cfg.learner }
  for _, axis in ipairs(config.survey and config.survey.axes or {}) do learners = axis.name == "learner" and axis.texts or learners end
  local function foreign(key, name) return learner_settings.keys[key] and learner_settings.find(name).defaults[key] == nil end
  for _, name in ipairs(learners) do
    for _, pair in ipairs(given) do
      if foreign(pair[1], name) and not given_settings.of_study(pair[1]) then
        learner_settings.refuse(name, pair[1], learner_settings.find(name).defaults)
      end
    end
  end
  for key in pairs(schema) do if foreign(key, learners[1]) then cfg[key] = nil end end
end

-- ---- putting it together ----

-- Lay a table of values over cfg.  `chosen`: things that were named on the command line keep that name.
local function set_all(cfg, schema, new, what, chosen)
  if type(new) ~= "table" then
    errors.raise(("config: %s is a %s, expected { key = value }"):format(what, type(new)))
  end
  for key, value in pairs(new) do
    if not schema[key] then errors.unknown(("setting in %s:"):format(what), key, setting_types.known(schema)) end
    local other = setting_types.is_named(value) and setting_types.is_named(cfg[key]) and value[1] ~= cfg[key][1]
    local old = cfg[key]
    if old == nil then old = schema[key].default end
    if not (chosen and other) then cfg[key] = setting_types.merge(key, old, value) end
  end
end

-- Settings of the run that is resumed; returns its config.json.
local function resume(cfg, schema, given, folder)
  local info = require("mneme.runs.run_folder").read_info(folder)       -- late: it opens the context
  local known = config.script and config.script:match "[^/]*$"
  local made_by = info.script and info.script:match "[^/]*$"
  if known and made_by and known ~= made_by then
    errors.usage(("%s was made by %s, not by %s"):format(folder, info.script, config.script))
  end
  local stored = {}
  for i = #given, 1, -1 do
    local key, text = given[i][1], given[i][2]
    if not may_change[key] then
      local value = setting_types.from_json(info.config[key], schema[key] and schema[key].default)
      if value == nil or text ~= (setting_types.is_named(value) and value[1]) and not setting_types.same(text, value) then
        errors.usage(("resume takes every value from %s/config.json: '%s' cannot change"):format(folder, key),
          "steps, view, threads, device, precision, emulate, debug and profile can")
      end
      table.remove(given, i)                                          -- what is as it was may be said
    end
  end
  for key, value in pairs(info.config) do
    local switch = value == true and "1" or value == false and "0"      -- as debug and profile once were
    stored[key] = setting_types.from_json((key == "debug" or key == "profile") and switch or value, schema[key] and schema[key].default)
  end
  if setting_types.is_named(stored.core) then stored.core.sees = stored.core.sees or require("mneme.models.cores").stored_sees(info.core) end
  stored.record_every = nil                        -- runs recorded episodes once
  set_all(cfg, schema, stored, folder .. "/config.json")
  return info
end

-- quick or full, where one is asked for.
local function size_of(cfg, defaults, command_line)
  command_line "quick"
  command_line "full"
  if cfg.quick and cfg.full then errors.usage "quick=1 full=1: expected one of them" end
  local size = cfg.quick and "quick" or cfg.full and "full"
  if size and not defaults[size] then errors.usage(("%s=1: this script has no %s values"):format(size, size)) end
  return size
end

-- The words without those that are several values of one setting: these go to the survey's axes.
local function take_axes(survey, arguments, schema)
  local rest = {}
  for _, word in ipairs(arguments) do
    local key, text = setting_types.pair(word)
    local entry = key and schema[key:match "^[^.]+"]
    if entry and text:find(",", 1, true) and setting_types.is_one(key, entry.default) then
      survey.axes[#survey.axes + 1] = { name = key, texts = setting_types.items(text) }
    else rest[#rest + 1] = word end
  end
  return rest
end

local guard = {
  __index = function(cfg, key)
    if errors.asked_by_user() then errors.unknown("setting", key, tables.keys(cfg)) end
  end,                                         -- the library may ask for what a script does not declare
}

-- Its fields: api.lua reads them from config.standard.
---@class Config the settings that every script has, besides its own
---@field [string] any

-- What every setting is before anything is chosen.
local function defaults_of(schema)
  local cfg = {}
  for key, entry in pairs(schema) do if not entry.of_learner then cfg[key] = setting_types.copy(entry.default) end end
  return cfg
end

-- Lay what goes with quick=1 or full=1 and with the core and the learner over cfg.
local function lay_out(cfg, schema, sized, size, published, choose)
  set_all(cfg, schema, sized, size)              -- here for the core and the learner that it may choose,
  choose()
  local entry, defaults = settings_by_core.of(published, cfg, schema.learner and schema.learner.default)
  set_all(cfg, schema, defaults, "published")
  set_all(cfg, schema, entry, "published")
  set_all(cfg, schema, sized, size, true)        -- and here because it wins over published values
  return { published = entry, learner = defaults, size = size, sized = sized }
end

-- The schema with what is chosen as the defaults, for --help.
local function resolved(schema, cfg) return tables.each(schema, function(entry, key) return tables.merged(entry, { default = cfg[key] }) end) end

-- What the core's size is to be (a sizing of default_core_size.lua); nil: there is no core with options, or a stored run has its size.
local function sizing_of(cfg, own, given)
  local named, text = {}, type(cfg.size) == "string" and cfg.size or "script"
  for _, pair in ipairs(given) do named[pair[1]:match "^core%.(.*)" or pair[1]] = true end
  if not own then return nil end
  if not (setting_types.is_named(cfg.core) and setting_types.is_named(own.core)) then
    if named.size and type(cfg.size) == "string" then errors.usage("size=" .. text .. ": this script has no core as a setting") end
    return nil
  end
  text, own.core.size, cfg.core.size = tostring(cfg.core.size or text), nil, nil            -- core.size=N: of this core alone
  local size = (text == "script" or text == "published") and text or setting_types.number(text)
  if not size or type(size) == "number" and not (size >= 1 and size % 1 == 0 and size < 2 ^ 40) then
    errors.usage(("size=%s: expected script, published or a number of parameters"):format(text))
  end
  return { size = size, script = own.core, given = named, same = setting_types.show(cfg.core) == setting_types.show(own.core) }
end

local declared = {}         -- the arguments of the run, and where its settings were declared

-- The arguments as pairs.  A run has one declaration: a file that it loads and that declares others does not know the arguments.
local function read_once(arguments, schema)
  local ok, given, help = pcall(given_settings.read, arguments, schema)
  local first = config.arguments and declared.arguments == config.arguments and declared.where
  if not ok and first and given.message:find "^unknown setting" then
    local file = (errors.position() or "FILE"):gsub(":%d+$", "")
    errors.usage(("mn.config: the settings of this run are declared at %s, and %s declares others"):format(first, file),
      ("mneme run %s runs it alone; a file for env= returns what mn.env takes"):format(file))
  elseif not ok then error(given, 0) end
  declared = { arguments = config.arguments, where = errors.position() }
  return given, help
end

---Declare the settings of an experiment and get their values.
---@generic T: table
---@param defaults T key = default: a number, boolean, string; { "name", option = ... } for a thing with
---  options; a list of numbers or strings; a group of settings.  `quick = {...}` and `full = {...}`: values for
---  quick=1 and full=1
---@param about table? key = "text", or { "text", range = {lo, hi}, choices = {...}, whole = true };
---  published = { NAME = { lr = ... }, ["NAME option=value"] = { ... }, ["NAME learner=ppo"] = { ... } } or function(name, cfg): values that
---  go with cfg.core's name, with an option of it, or with another learner than the script's
---@return T|Config cfg every key that the script declared, and those of every script
function config.new(defaults, about)
  about = about or {}
  if type(defaults) ~= "table" or type(about) ~= "table" then
    errors.raise "config: expected { key = default, ... }"
  end
  local arguments, script = own_arguments(2)
  local learner = given_settings.blame(nil, read_learners, defaults, arguments)
  arguments = given_settings.renamed(arguments, defaults, learner and learner_settings.find(learner).defaults or learner_settings.own())
  local schema, own_keys, common = declare(defaults, about)
  if not table.concat(arguments, " "):find "%f[%w]resume=" then check_spelling(own_keys, about) end      -- a stored run trained with it
  local published = settings_by_core.by_learner(about.published or {}, defaults.learner)
  config.asked = true
  if script and not config.arguments and files.is_file(script) then trusted_code.note(script, files.read(script)) end      -- run by luajit itself
  if config.survey and not config.survey.one then arguments = take_axes(config.survey, arguments, schema) end
  local given, help = read_once(arguments, schema)
  local cfg, by_user, last = defaults_of(schema), {}, {}          -- last: the last word that sets each key
  for _, pair in ipairs(given) do
    local key = pair[1]:match "^[^.]+"
    by_user[key] = not given_settings.of_study(key) or nil
    last[key] = pair
  end
  local function command_line(only)
    for _, pair in ipairs(given) do
      if not only or pair[1]:match "^[^.]+" == only then
        given_settings.blame(pair, setting_types.set, cfg, schema, pair[1], pair[2])
      end
    end
  end
  command_line "resume"
  local resumed, own, layers
  if cfg.resume ~= "" then
    resumed = given_settings.blame(nil, resume, cfg, schema, given, cfg.resume)
  else
    local size = given_settings.blame(nil, size_of, cfg, defaults, command_line)
    local sized = size and defaults[size] or {}
    own = defaults_of(schema)
    own.quick, own.full = cfg.quick, cfg.full
    lay_out(own, schema, sized, size, published, function()
      for _, word in ipairs(own_core or {}) do setting_types.set(own, schema, word:match "^([^=]*)=(.*)$") end
    end)
    layers = lay_out(cfg, schema, sized, size, published, function()
      command_line "core"
      command_line "learner"
    end)
    layers.given, layers.by_user = given, by_user
  end
  command_line()
  if learner then given_settings.blame(nil, leave_out_others, cfg, schema, given) end
  local taken
  if own then
    local named = tables.each(layers.sized, function() return true end)
    for _, pair in ipairs(given) do named[pair[1]] = true end
    taken = settings_by_core.text(published, cfg, own, defaults.learner, named, defaults.core)
  end
  if help then
    local rows = config.study_rows and config.study_rows()
    io.stdout:write(terminal.pasted(config.help(script, resolved(schema, cfg), own_keys, common, learner, rows)), taken and "\n" .. taken .. "\n" or "")
    local name = script and (script:match "experiments/([%w_]+)%.lua$" or script)
    if name then terminal.next_step.say({ "run", name, "quick=1" }, rows and { "sweep", name, "quick=1" } or nil) end
    errors.stop(0)
  end
  local sizing = sizing_of(cfg, own, given)
  local for_learner = {}
  for key, entry in pairs(schema) do
    if cfg[key] ~= nil then
      local check = setting_types.check
      if last[key] then given_settings.blame(last[key], check, key, cfg[key], entry.about) else check(key, cfg[key], entry.about) end
      for_learner[key] = entry.of_learner
    end
  end
  if not resumed and not config.survey then given_settings.blame(nil, check_run, cfg, by_user) end
  given_settings.forget_preset()
  own_core = nil
  local name = script and script:match "([^/]*)$":gsub("%.lua$", "") or "run"
  meta[cfg] = { script = script, name = name, schema = schema, resumed = resumed, published = taken, origins = layers and settings_by_core.origins(layers),
    core = setting_types.copy(cfg.core) }
  if config.survey then
    config.survey.published = published
    config.survey.cfg, config.survey.schema, config.survey.words, config.survey.sizing = cfg, schema, arguments, sizing
    error(config.survey, 0)
  end
  if cfg.device ~= (config.device or "cpu") then
    errors.usage(("device=%s: tensors live on %s already"):format(cfg.device, config.device or "cpu"),
      "mneme run SCRIPT device=" .. cfg.device .. " chooses before the script begins")
  end
  if sizing then require("mneme.models.default_core_size").want(cfg.core, sizing) end
  engine.check(engine.C.mn_set_threads(engine.ctx, ranks.threads(cfg.threads)))
  engine.check(engine.C.mn_set_precision(engine.ctx, cfg.precision, cfg.emulate))
  if cfg.debug == "1" or cfg.debug == "nan" then engine.C.mn_set_debug(engine.ctx, true) end
  if cfg.debug == "nan" or cfg.profile == "1" then require("mneme.tensor.op_locations").note() end
  learner_settings.expect(cfg, for_learner)
  return setmetatable(cfg, guard)
end

return config
