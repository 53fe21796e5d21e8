-- help.lua -- `mneme help TOPIC` and mn.help("topic"): an op's signature, the settings of an environment, a core or a
-- script, and what a single setting means.  All of it is read from where it is declared.
local ffi = require "ffi"
local lazy = require "mneme.base.lazy"
local api = lazy "mneme.commands.api"
local encoder_attention = lazy "mneme.models.encoder_attention"
local catalogue = require "mneme.base.catalogue"
local cores = lazy "mneme.models.cores"
local core_setting_docs = lazy "mneme.models.core_setting_docs"
local nn = lazy "mneme.tensor.nn"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local envs = lazy "mneme.envs"
local files = lazy "mneme.base.files"
local reference_scores = lazy "mneme.envs.reference_scores"
local did_you_mean = require "mneme.base.did_you_mean"
local options = require "mneme.commands.options"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local grouped = require("mneme.base.format").grouped
local layout = require "mneme.base.layout"
local learner_settings = require "mneme.runs.learner_settings"
local learners = lazy "mneme.learn.learners"
local setting_topics = lazy "mneme.commands.setting_topics"
local dataset = lazy "mneme.envs.dataset"
local tensor = lazy "mneme.tensor.tensor"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"

local columns = layout.columns
local function fold(text) return terminal.fold(text, terminal.width()) end
local function prose(path) return layout.prose(catalogue.prose(path)) end
local help = { name = "help", doc = "explain a command or topic", raw = "but help", about = [[
Topics are commands and their settings, cores, environments, ops, experiments, scenes, settings and the words that messages use.
  mneme help core agalite core.remember=40   one of a kind, with settings of it
  mneme help api                             all functions of Lua
  mneme help annotations to=FOLDER           the same for editors
  mneme help how do I resume a run           a section of docs/ by its heading
  mneme help man                             the manual page
  mneme help commands                        all commands and their options, as Markdown]],
  arguments = { { "topics", "TOPIC", nil, noun = "topic", several = true, optional = true } } }

-- What the settings mean that most scripts declare, where a script says nothing else.
local usual = {
  core = "the agent's core, and its settings (mneme list cores)", num_envs = "environments that are stepped together",
  hidden = "hidden units of the policy and value heads", previous = "inputs besides the observation: the last action, reward, both or none",
  learner = "how it learns: a2c, ppo, pqn, stream, or one of your own (mneme list learners)", env = "the environment (mneme list envs)",
  attention = "how tokens attend to each other (mneme list attentions)", d_embed = "width of the tokens' embedding",
  episodes = "episodes that are played", corridor = "cells from the cue to the junction",
}

-- What a setting means in most scripts, in every learner, data set or core; nil: nothing is known about it.
local function usual_meaning(key)
  if usual[key] or learner_settings.keys[key] then return usual[key] or learner_settings.keys[key][1] end
  if dataset.common_about[key] then return dataset.common_about[key][1] end
  for _, name in ipairs(registry.names "datasets") do
    local ok, d = pcall(dataset.definition, name)
    if ok and (d.about or {})[key] then return d.about[key][1] end
  end
  return core_setting_docs[key]
end

local kinds_of = { core = "cores", experiment = "experiments", environment = "envs", learner = "learners", scene = "scenes", op = "ops" }

---The meaning of a name, in one line, where an error suggests it: see base/did_you_mean.lua.
---@param kind string "setting", "core setting", "argument", "command", "core", "environment" ...
---@return string?
function help.meaning(kind, name)
  if kind == "core setting" then return core_setting_docs[name] end
  if kind == "command" then return (options.commands.find(name) or {}).doc end
  for _, thing in ipairs(kinds_of[kind] and catalogue.list(kinds_of[kind]) or {}) do
    if thing.name:gsub("%-v%d+$", "") == name then return thing.doc end
  end
  if kind ~= "setting" and kind ~= "argument" then return nil end
  for _, s in ipairs(require("mneme.runs.config").standard) do if s[1] == name then return s[3][1] end end
  return usual_meaning(name)
end

local function setting_row(key, entry, default)
  local about = entry.about
  local doc = about[1] or usual_meaning(key) or ""
  if about.choices then doc = doc .. " (" .. table.concat(about.choices, " ") .. ")"
  elseif about.range and about.range[2] < 2 ^ 24 then
    doc = ("%s (%s..%s)"):format(doc, setting_types.show(about.range[1]), setting_types.show(about.range[2]))
  end
  return { key, default or setting_types.show(entry.default), (doc:gsub("^ ", "")) }
end

-- The learner that was chosen, or that a script names: its own defaults of what the script leaves out.  And the settings that
-- the script declares for other learners, by name.
local function learner_rows(script, schema, chosen)
  local text, all, rows, others = script and files.read(script) or "", learners.defaults(), {}, {}
  local explicit = chosen ~= nil
  for _, name in ipairs(tables.keys(all)) do if text:find("mn%." .. name .. "%f[^%w_]") then chosen = chosen or name end end
  if not chosen then return rows, nil, others end
  local defaults = all[chosen] or learners.find(chosen).defaults
  for _, key in ipairs(tables.keys(schema)) do
    local of_learner = learner_settings.keys[key] ~= nil
    if schema[key].of_learner and defaults[key] ~= nil then rows[#rows + 1] = setting_row(key, schema[key], setting_types.show(defaults[key])) end
    if explicit and of_learner and not schema[key].of_learner and defaults[key] == nil then others[key] = true end
  end
  return rows, chosen, others
end

-- The settings of an environment in C as rows { name, value or default, range }.
local function env_rows(index, prefix, given)
  local rows = {}
  for key, rule in ffi.string(C.mn_env_params(index)):gmatch "([%w_]+)=(%S+)" do
    local default, range = rule:match "^([^%[]*)%[(.*)%]$"
    rows[#rows + 1] = { prefix .. key, given[key] ~= nil and setting_types.show(given[key]) or default or rule:match "^[^|]*", range or rule:gsub("|", " ") }
  end
  return rows
end

-- The settings of the chosen environment, as the command line has them; "" where the script has no such setting.
local function env_settings_text(entry)
  local rows = {}
  for _, env in ipairs(entry and setting_types.is_named(entry.default) and catalogue.list "envs" or {}) do
    if env.name:gsub("%-v%d+$", "") == entry.default[1] or env.name == entry.default[1] then
      rows = env_rows(env.index, "env.", entry.default)
      rows[#rows + 1] = { "env.time_limit", "", "steps after which an episode is cut" }
    end
  end
  return rows[1] and ("\nsettings of the environment (%s)\n"):format(entry.default[1]) .. columns(rows, 24) or ""
end

---What --help of a script prints.
---@param script string? its path
---@param schema table key -> { default, about, of_learner }
---@param own string[] its own keys
---@param common string[] keys that every script has
---@param chosen string? the learner, where it is a setting
---@param study string[][]? rows about the study that the script is
function help.settings(script, schema, own, common, chosen, study)
  local rows, rest = {}, {}
  local of_learner, learner, others = learner_rows(script, schema, chosen)
  for _, key in ipairs(own) do
    if not others[key] then rows[#rows + 1] = setting_row(key, schema[key], key == "learner" and chosen or nil) end
  end
  for i, key in ipairs(common) do rest[i] = setting_row(key, schema[key]) end
  local doc = script and catalogue.first_comment(script) or ""
  return fold(doc .. (doc ~= "" and "\n" or "") .. "usage: mneme run " .. (script or "SCRIPT") .. " [key=value ...]\n")
    .. (study and "\nstudy\n" .. columns(study) or "") .. "\nsettings\n" .. columns(rows, 24)
    .. env_settings_text(schema.env)
    .. (#of_learner > 0 and ("\nsettings of the learner (%s)\n"):format(learner) .. columns(of_learner) or "")
    .. "\nsettings of every script\n" .. columns(rest)
end

-- ---- topics ----

local function op_text(i)
  local sig = ffi.string(C.mn_op_sig(i))
  local inputs, outputs, given = sig:match "^(.-)%s*%->%s*([^|]*)|?%s*(.*)$"
  local title = ("mn.%s -- %s"):format(ffi.string(C.mn_op_name(i)), ffi.string(C.mn_op_doc(i)))
  return ("%s\n\n%s"):format(table.concat(layout.wrap(title, layout.width()), "\n"),
    columns { { "inputs", inputs }, { "outputs", (outputs:gsub("%s+$", "")) }, { "options", given ~= "" and given or "none" },
              { "gradient", C.mn_op_differentiable(i) and "yes" or "no" } })
end

-- level: of POPGym's ID; nil: the default settings.
local function env_text(i, level)
  local rows = env_rows(i, "", { level = level })
  rows[#rows + 1] = { "num_envs, seed, time_limit", "", "every environment has these" }
  local about, actions, settable = C.mn_env_about(i), ffi.string(C.mn_env_actions(i)), C.mn_env_settable(i)
  local facts = settable ~= nil and ("settable facts (for `mneme intervene`): %s\n"):format((ffi.string(settable):gsub("=[%d.]+%[", "["))) or ""
  local to_know = C.mn_env_to_know(i)
  if to_know ~= nil then facts = facts .. ("facts that a memory may know (for `mneme probe`): %s\n"):format((ffi.string(to_know):gsub("=[%w@_]+", ""))) end
  local env = envs.new(ffi.string(C.mn_env_name(i)), { num_envs = 1, level = level })
  if env.reference then facts = ("%sscores with these settings: %s\n"):format(facts, reference_scores.list(env.reference)) end
  if env.action_space.kind ~= "discrete" then actions = tostring(env.action_space) end
  if actions == "" then actions = ("integers from 0 to %d"):format(env.action_space.n - 1) end
  env:close()
  local rules = C.mn_env_rules(i)
  local doc = ffi.string(C.mn_env_doc(i)) .. (rules ~= nil and "\n" .. ffi.string(rules) or "")
  return ("mn.env(\"%s\") -- %s\nactions: %s\n%s\nsettings\n%s%s"):format(ffi.string(C.mn_env_name(i)),
    doc, actions, facts, columns(rows), about ~= nil and "\n" .. ffi.string(about) .. "\n" or "")
end

-- The file of one of a kind, by its name or by its own path.
local function file_of(kind, name, word) return name:find "%.lua$" and name or registry.file(kind, name, word) end

---What a core is, with these settings of it.
---@param words string[]? key=value, or core.key=value
local function core_text(name, words)
  local d, keys, rows, cfg = cores.definition(name), core_setting_docs, {}, { core = { name } }
  for _, word in ipairs(words or {}) do
    local key, text = word:match "^([^=]*)=(.*)$"
    setting_types.set(cfg, { core = { default = { name } } }, "core." .. key:gsub("^core%.", ""), text)
  end
  local built = nn.dry(cores.new, cfg.core)
  for _, key in ipairs(tables.keys(d.config)) do
    local known = cores.known_words(d, key)
    rows[#rows + 1] = { key, setting_types.show(built.config[key]), (keys[key] or "") .. (known and " (" .. table.concat(tables.keys(known), " ") .. ")"
      or "") }
  end
  local about, layers = built:describe(), built:half_lives()
  local base = d.preset and ("a setting of %s: %s\n"):format(d.preset[1], setting_types.show(d.preset[2])) or ""
  local equations = type(d.equations) == "function" and d.equations(built.config) or d.equations
  return table.concat { ("mn.core(\"%s\") -- %s\n%s\n%s\n"):format(name, d.doc or "", d.source or "", base),
    prose(file_of("cores", name, "core")), equations and "\n" .. equations .. "\n" or "",
    "\nsettings\n", columns(rows), ("\nwith these settings: %s parameters, state %s floats per environment = %s\n"):format(grouped(about.parameters),
      grouped(about.state_floats), about.state_formula),
    built.looks_back and ("a step of acting looks back %s steps at most = %s\n"):format(grouped(built:reach()), built.looks_back) or "",
    layers and ("initial memory %s (core.remember)\n"):format((require("mneme.models.gate_start").describe(layers))) or "" }
end

local function attention_text(name)
  local d = encoder_attention.definition(name)
  local rows = tables.map(tables.keys(d.config), function(key)
    return setting_row(key, { default = d.config[key], about = next(d.about[key]) and d.about[key] or { core_setting_docs[key] or "" } })
  end)
  return ("mn.encoder { attention = \"%s\" } -- %s\n%s\n\n%s\nsettings, in addition to those of mn.encoder\n%s%s"):format(name, d.doc or "", d.source or "",
    prose(registry.file("attentions", name, "attention")), columns(rows),
    d.causal and "\nno causal form: " .. d.causal .. "\n" or "")
end

local function dataset_text(name)
  local d, rows = dataset.definition(name), {}
  for _, list in ipairs { { d.config, d.about }, { dataset.common, dataset.common_about } } do
    for _, key in ipairs(tables.keys(list[1])) do
      rows[#rows + 1] = setting_row(key, { default = list[1][key], about = list[2][key] or {} })
    end
  end
  return ("mn.dataset(\"%s\") -- %s\n%s\n\n%s\nsettings\n%s"):format(name, d.doc or "", d.source or "",
    prose(registry.file("datasets", name, "data set")), columns(rows))
end

-- What follows a learner's title.
local function learner_page(title, page, defaults)
  return ("%s\n\nsettings, on the command line or as keys of cfg (docs/%s.md explains them)\n%s"):format(title, page,
    columns(learner_settings.rows(defaults)))
end

local function learner_text(name)
  local class = learners.find(name)
  return learner_page(("learner=%s -- %s\n%s\nmn.learner(cfg, env, agent):train(), or mn.learners.%s(cfg, env, agent):train()"):format(name,
    class.doc or "", class.source or "", name), "learners", class.defaults)
end

-- An op by its name.
local function op_named(name)
  for _, op in ipairs(catalogue.list "ops") do if op.name == name then return op_text(op.index) end end
  errors.unknown("op", name, catalogue.names "ops")
end

-- An environment by its name, with or without its version, or by POPGym's ID.
local function env_named(name) return env_text(require("mneme.envs.native").find(name)) end

-- Kinds that a topic may begin with: `mneme help env selective_copy`, which is a data set, too.
local named_texts = { core = core_text, attention = attention_text, dataset = dataset_text, learner = learner_text,
  op = op_named, env = env_named }
help.named = named_texts

function help.kind(kind) return layout.list(tables.map(catalogue.list(kind), function(thing) return { thing.name, thing.doc } end)) end

local config_text = [[
key=value (or --key=value) overrides a setting of a script; its --help lists them.

  corridor=20 lr=5e-5 view=1     numbers, true/false or 1/0, names
  core=gru                       another core, with its own settings
  core.eta=8  optim.beta=0.9     a setting of the core; a part of a group
  sizes=64,64                    a list

Later values win: the script's defaults, published values of the chosen core, quick=1, the command line.
  run=FOLDER       the run's folder (default runs/SCRIPT-N)
  seeds=4          one run per seed (4: seeds 1 to 4; 3..7; 1,5,9), each in a process; run=F: F-seed1 ...
  resume=FOLDER    resume a run; only steps, view, threads, device, precision, emulate, debug and profile may change
]]

local function supervised_text()
  return learner_page("supervised -- training on labelled sequences: mn.supervised(cfg, dataset, model):train()", "datasets",
    learners.defaults().supervised)
end

local function torso_text()
  return "mn.agent { torso = NAME or { NAME, option = value } } -- the layers between the observations and the core\n\n"
    .. columns(require("mneme.models.observation_torsos").rows())
end

-- Other words for a kind.
local other_kinds = { cores = { "memory", "memories" }, envs = { "environment", "environments" }, datasets = { "data set", "data sets" },
  attentions = { "encoder", "encoders" } }

local function studies_text()
  local rows = tables.map(catalogue.list "experiments", function(thing)
    return files.text(registry.file("experiments", thing.name, "experiment")):find "mn%.study" and { thing.name, thing.doc } or nil
  end)
  return "experiments that are studies: a grid of settings and seeds, with claims (docs/studies.md)\n" .. columns(rows)
    .. "axes, runs, claims: mneme run NAME --help\nall runs of one: mneme sweep NAME quick=1\n"
end

local SECTION = 16                 -- lines of it that are shown, and the paragraph that they end in

-- Paragraphs as lines that fold; code stays.
local function unbroken(text)
  local marked = ("\n" .. text):gsub("\n```.-\n```", function(code) return code:gsub("\n", "\1") .. "\2" end)
  return (marked:gsub("([^\n\1\2|])\n *([%a(*`\"])", "%1 %2"):gsub("\1", "\n"):gsub("\2", ""))
end

-- A page of docs/ by its file or its title, or a section of one by its heading: where it is, and how it begins; of "docs", all pages.
local function page_text(topic)
  local function plain(text) return text:lower():gsub("[%p%s]+", " "):gsub(" $", "") end
  local rows, wanted = {}, plain((topic:gsub("^docs/", ""):gsub("%.md$", "")))
  local folder = registry.root:gsub("/lua/mneme/%.%./%.%./", "/") .. "docs"
  for _, name in ipairs(files.is_folder(folder) and files.list(folder) or {}) do
    local text, title = name:find "%.md$" and files.read(folder .. "/" .. name) or "", nil
    for heading, at in ("\n" .. text):gmatch "\n##? ([^\n]*)()" do
      if not title then rows[#rows + 1] = { "docs/" .. name, heading } end
      if plain(heading) == wanted or not title and plain((name:gsub("%.md$", ""))) == wanted then
        local rest = text:sub(at):gsub("^\n+", ""):gsub("\n##.*", "")
        local lines = rest:match(("[^\n]*\n?"):rep(SECTION))
        local begins = title and lines .. (rest:sub(#lines + 1) .. "\n\n"):match "^(.-)\n\n"
          or rest:gsub("^```.-\n```\n+", ""):gsub("\n\n.*", ""):gsub("\n```.*", "")
        return ("docs/%s: %s\n%s\n%s"):format(name, heading, unbroken(begins), files.is_folder "docs" and "" or "\n" .. folder .. "/" .. name .. "\n")
      end
      title = title or heading
    end
  end
  if wanted == "docs" and rows[1] then return "pages of the documentation (mneme help NAME: where it is)\n" .. columns(rows) end
end

-- What another program's word means here, for every kind of thing that has such a word; nil: it is not known.
local function field_text(topic, first)
  local lines = tables.map({ "topic", "setting", "core", "environment", "learner", "command" }, function(kind)
    local answer = did_you_mean.of_field(kind, topic)
    return answer and (kind == "topic" and answer or ("%s: as %s %s of other programs: %s"):format(topic, kind:find "^[ae]" and "an" or "a", kind, answer))
  end)
  return lines[1] and table.concat(lines, "\n", 1, first and 1 or #lines) .. "\n" or nil
end

-- What help says of one of a kind in the catalogue; of the others the texts by their names do.
local texts_of = { envs = function(thing) return env_text(thing.index) end, ops = function(thing) return op_text(thing.index) end }
function texts_of.experiments(thing)
  return ("%s\nsettings: mneme run %s --help\n"):format(prose(registry.file("experiments", thing.name, "experiment")), thing.name)
end
function texts_of.scenes(thing)
  return layout.prose(("scene %s: %s"):format(thing.name, catalogue.prose(registry.file("scenes", thing.name, "scene"))))
end

---What there is a text about, by name: it reads the first lines of all files.
---@return table<string, (fun(): string)[]>
function help.topics()
  local all = {}
  local function add(name, text)
    all[name] = all[name] or {}
    table.insert(all[name], text)
  end
  for _, word in ipairs { "config", "settings", "setting" } do add(word, function() return config_text end) end
  add("torso", torso_text)
  add("supervised", supervised_text)
  for _, kind in ipairs(catalogue.kinds) do
    for _, word in ipairs { kind, kind:sub(1, -2), unpack(other_kinds[kind] or {}) } do add(word, function() return help.kind(kind) end) end
  end
  for _, word in ipairs { "study", "studies", "sweep", "sweeps" } do add(word, studies_text) end
  for _, kind in ipairs { "cores", "attentions", "datasets", "learners", "envs", "ops", "experiments", "scenes" } do      -- some names are of several
    for _, thing in ipairs(catalogue.list(kind)) do
      local text = texts_of[kind] or function() return named_texts[kind:sub(1, -2)](thing.name) end
      for name in pairs { [thing.name] = true, [thing.name:gsub("%-v%d+$", "")] = true } do add(name, function() return text(thing) end) end
    end
  end
  for key, meaning in pairs(usual) do add(key, function() return layout.prose(("%s: a setting of most scripts\n"):format(key) .. "  " .. meaning) end) end
  for _, word in ipairs { "run", "runs" } do
    add(word, function() return "a run is one training, and its folder\n  your runs: mneme list runs\n  to begin one: mneme run SCRIPT [key=value ...]\n" end)
  end
  setting_topics.add(add)
  return all
end

---Is there a page about this word?
function help.is_topic(word) return help.topics()[word] ~= nil end

---The names of all topics, sorted.
function help.names() return tables.keys(help.topics()) end

---The text about an op, environment, core, setting or kind of thing.
---@param kind string? "core", "attention", "dataset", "learner", "op" or "env": the one of that name, where something else has it too
---@param words string[]? settings of a core, "remember=40"
---@param all table? help.topics(), from who asks for many texts
function help.text(topic, kind, words, all)
  if type(topic) ~= "string" then errors.raise(("help: a %s, expected a topic such as \"gru\" or \"mn.cat\""):format(type(topic))) end
  if named_texts[kind] then
    if kind ~= "op" and kind ~= "env" and not (kind == "core" and topic:find "%.lua$") then
      registry.file(kind .. "s", topic, kind)    -- or an error that lists what there is
    end
    return fold(named_texts[kind](topic, words))
  end
  if topic:find "^popgym[:-]" then return fold(named_texts.env(topic)) end
  if topic:find "^layers%.%d" then topic = "erase" end                                  -- a part of a memory
  all = all or help.topics()
  if did_you_mean.of_field("topic", topic) then
    local of_commands = setting_topics.of_option(topic)
    return fold(field_text(topic, true) .. (of_commands and "\n" .. of_commands or ""))
  end
  topic = all[topic] and topic or topic:gsub("^core%.", ""):gsub("=$", "")             -- core.eta, gate=
  local key, value = topic:match "^([%w_.]+)=(.+)$"
  if key then topic = all[value] and value or key:gsub("^core%.", "") end
  local found = all[topic]
  if topic:find "^mn%." then                          -- a function, or an op
    local name = topic:sub(4)
    local text = api.text(topic) or tensor.signatures[name] and named_texts.op(name)
    if text then return fold(text) end
    found = all[name]
  end
  if not found then found = setting_topics.of_experiments(topic) end
  if not found then
    local spelled = topic:lower():gsub("[ -]", "_")                                   -- delta rule, PPO
    local text = api.text("mn." .. topic) or api.class_text(topic) or all[spelled] and help.text(spelled, nil, nil, all)       -- cat, as mn.cat; Tensor
      or page_text(topic) or field_text(topic)
    if text then return fold(text) end
    local as_core = did_you_mean.core_of_class(topic, registry.names "cores")
    if as_core then return help.text(as_core, "core") end
    local near = errors.nearest(topic, tables.keys(all))
    errors.usage(("help: unknown topic '%s'"):format(topic), near and ("did you mean '%s'%s?"):format(near, did_you_mean.shown("setting", near))
      or ("pages and their sections: mneme help docs; topics: config, supervised, torso, %s, the names that these list, and settings")
        :format(table.concat(catalogue.kinds, ", ")))
  end
  local texts = {}
  if tensor.signatures[topic] then texts[1] = api.text("mn." .. topic) end        -- mn.adam, and its op
  for _, text in ipairs(found) do texts[#texts + 1] = text() end
  return fold(table.concat(texts, "\n"))
end

---Print the text about a topic.
---@param topic string? nil: about settings
---@param kind string? as in text
---@param words string[]? as in text
function help.show(topic, kind, words) io.stdout:write(help.text(topic or "config", kind, words)) end

-- ---- the command ----

---What `mneme help` says without a topic.
function help.overview()
  local rows = tables.map(options.commands.all(), function(c) return { (options.usage(c):gsub("^mneme ", ""):gsub(" %[key=value ...%]", "")), c.doc } end)
  return layout.prose("mneme " .. require "mneme.base.version" .. ": a research sandbox for memory in agents") .. "\nusage: mneme COMMAND [key=value ...]\n\n"
    .. columns(rows, 34) .. "\n" .. columns { { "mneme help COMMAND", "explains a command" },
      { "mneme help TOPIC", "explains a core, environment, op, experiment, scene or setting: mneme help gate" },
      { "mneme run SCRIPT --help", "lists the settings of a script" } }
end

-- The words that name code: `help core mine`, a file.
function help.names_code(words)
  return tables.map(words, function(word, i) return (word:find "%.lua$" or i > 1 and help.named[words[1]]) and word or nil end)
end

local pages = { man = function() return options.man(options.commands.all(true)) end, api = function() return api.page() end,
  commands = function() return options.markdown(options.commands.all()) end }

---What `mneme help` makes besides pages.
---@return Command?
function help.part(name) return name == "annotations" and require "mneme.commands.annotations" or nil end

---@return Command[]
function help.parts() return { help.part "annotations" } end

function help.run(o)
  local words = o.topics
  local phrase, joined = words[2] and table.concat(words, " "), table.concat(words, "_")
  local section = phrase and (page_text(phrase) or help.is_topic(joined) and help.text(joined) or field_text(phrase))
  if section then io.stdout:write(fold(section))
  elseif #words == 0 then
    io.stdout:write(help.overview())
    return terminal.next_step.say("run demo", "list")
  elseif help.part(words[1]) then return require("mneme.commands.arguments").run(help.part(words[1]), { unpack(words, 2) })
  elseif pages[words[1]] then io.stdout:write(pages[words[1]]())
  elseif options.commands.find(words[1]) then io.stdout:write(fold(options.page(options.commands.find(words[1]))))
  elseif help.named[words[1]] and words[2] then
    local settings = {}
    for i = #words, 3, -1 do if words[1] == "core" and words[i]:find "=" then table.insert(settings, 1, table.remove(words, i)) end end
    for i = 2, #words do help.show(words[i], words[1], settings) end
  else
    for _, topic in ipairs(words) do help.show(topic) end
  end
end

return help
