-- setting_topics.lua -- help about a single setting, or a word that is a value of one: `mneme help decay`, `help horizon`,
-- `help outer_relu`, `help corridor`.  What it means, and which scripts, learners, cores, environments, commands have it; and the words that
-- commands and messages use (`help journal`).
local ffi = require "ffi"
local lazy = require "mneme.base.lazy"
local catalogue = require "mneme.base.catalogue"
local config = lazy "mneme.runs.config"
local cores = lazy "mneme.models.cores"
local engine = require "mneme.base.engine"
local options = require "mneme.commands.options"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local files = require "mneme.base.files"
local script = lazy "mneme.runs.script"
local layout = require "mneme.base.layout"
local learner_settings = lazy "mneme.runs.learner_settings"
local learners = lazy "mneme.learn.learners"
local setting_types = require "mneme.base.setting_types"

local setting_topics = {}

local function paragraph(title, text)
  local lines = layout.wrap(title, layout.width())
  for _, line in ipairs(text and layout.wrap(text, layout.width() - 2) or {}) do lines[#lines + 1] = "  " .. line end
  return table.concat(lines, "\n") .. "\n"
end

-- Which of the cores have a setting, by its default: "separable: agalite, galite; joint: galite_released".
local function by_default(defaults)
  return table.concat(tables.map(tables.groups(defaults, function(entry) return setting_types.show(entry.default) end), function(group)
    return ("%s in %s"):format(group.name, table.concat(tables.map(group.items, function(entry) return entry.name end), ", "))
  end), "; ")
end

-- The tables of words that the axes of gated cores take: a script adds to them.
local function axes()
  local gated_linear = require "mneme.models.gated_linear"
  return { feature = gated_linear.features, gate = gated_linear.gates, decay = gated_linear.decays }
end

-- The settings of every script, and of the learners.
local function of_runs(add)
  for _, setting in ipairs(config.standard) do
    add(setting[1], function() return paragraph(("%s=%s: a setting of every script"):format(setting[1], setting_types.show(setting[2])), setting[3][1]) end)
  end
  for name, key in pairs(learner_settings.cleanrl) do
    add(name, function() return paragraph(("%s: CleanRL's name for %s, which command lines understand"):format(name, key),
      (learner_settings.keys[key] or {})[1]) end)
  end
  for key, about in pairs(learner_settings.keys) do
    add(key, function()
      local all = learners.defaults()
      local has = tables.map(tables.keys(all), function(name) return all[name][key] ~= nil and { name = name, default = all[name][key] } or nil end)
      return paragraph(("%s: a setting of the learner"):format(key), about[1]
        .. (about.choices and " (" .. table.concat(about.choices, " ") .. ")" or "") .. "; default " .. by_default(has))
    end)
  end
end

-- The settings of cores, and the words that some of them take.
local function of_cores(add)
  local core_setting_docs, keys, words, tables_of = require "mneme.models.core_setting_docs", {}, {}, axes()
  for _, name in ipairs(registry.names "cores") do
    local ok, d = pcall(cores.definition, name)
    for key, default in pairs(ok and type(d) == "table" and d.config or {}) do
      keys[key] = keys[key] or {}
      table.insert(keys[key], { name = name, default = default, words = cores.known_words(d, key) })
    end
  end
  for key, entries in pairs(keys) do
    local function page()
      local known = entries[1].words
      for _, entry in ipairs(entries) do known = known or entry.words end
      local list, rows = tables_of[key], {}
      for _, word in ipairs(list and tables.keys(list) or {}) do
        local about = type(list[word]) == "table" and list[word] or {}
        rows[#rows + 1] = { word, (about.doc or "") .. (about.source and " (" .. about.source .. ")" or "") }
      end
      return paragraph(("%s: a setting of cores (core.%s=VALUE)"):format(key, key), (core_setting_docs[key] or "")
        .. (known and not list and " (" .. table.concat(tables.keys(known), " ") .. ")" or "") .. "; default " .. by_default(entries))
        .. (list and "\n" .. layout.columns(rows) .. ("\n  one of your own: mn.%ss.NAME = { ... } in a script\n"):format(key) or "")
    end
    add(key, page)
    if tables_of[key] then add(key .. "s", page) end
    for _, entry in ipairs(entries) do
      for word in pairs(entry.words or {}) do
        words[word] = words[word] or {}
        words[word][key] = true
      end
    end
  end
  for word, of in pairs(words) do
    for key in pairs(of) do
      add(word, function()
        local about = tables_of[key] and tables_of[key][word] or {}
        return paragraph(("%s=%s: a value of the core's setting %s"):format(key, word, key),
          about.doc and about.doc .. (about.source and " (" .. about.source .. ")" or "") or core_setting_docs[key])
      end)
    end
  end
end

-- The settings of things that are files: meaning(definition, key).
local function of_files(add, kind, word, definition, meaning)
  for _, name in ipairs(registry.names(kind)) do
    local ok, d = pcall(definition, name)
    for key, default in pairs(ok and d.config or {}) do
      add(key, function() return paragraph(("%s=%s: a setting of the %s %s"):format(key, setting_types.show(default), word, name), meaning(d, key)) end)
    end
  end
end

-- The settings of attentions, environments and data sets.
local function of_envs(add)
  of_files(add, "attentions", "attention", require("mneme.models.encoder_attention").definition, function(_, key)
    return require("mneme.models.core_setting_docs")[key]
  end)
  for _, env in ipairs(catalogue.list "envs") do
    for key, rule in ffi.string(engine.C.mn_env_params(env.index)):gmatch "([%w_]+)=(%S+)" do
      add(key, function() return paragraph(("%s: a setting of the environment %s"):format(key, env.name), rule) end)
    end
  end
  of_files(add, "datasets", "data set", require("mneme.envs.dataset").definition, function(d, key) return ((d.about or {})[key] or {})[1] end)
end

-- The axes of gated cores, each a setting with words of its own; and what else is called an axis.
local function axes_text()
  local core_setting_docs, all = require "mneme.models.core_setting_docs", axes()
  local rows = tables.map(tables.keys(all), function(key)
    return { "core." .. key, ("%s: %s"):format(core_setting_docs[key] or "", table.concat(tables.keys(all[key]), " ")) }
  end)
  return paragraph "axes of gated linear cores (core=galite and its settings)" .. layout.columns(rows)
    .. paragraph "\neach word has a page: mneme help outer; the axes of a study: mneme run STUDY --help"
end

---A setting that only experiments declare: what each says that it means.
---@return (fun(): string)[]? texts nil: no experiment has it
function setting_topics.of_experiments(key)
  if not key:find "^[%a_][%w_]*$" then return nil end
  local rows = {}
  for _, name in ipairs(registry.names "experiments") do
    local text = files.read(registry.file("experiments", name, "experiment"))
    if text:find("%f[%w_]" .. key .. "%s*=") then            -- the others need not be loaded
      local ok, survey = pcall(function() return script.survey(registry.file("experiments", name, "experiment"), {}) end)
      local entry = ok and survey.schema[key]
      if entry and not entry.of_learner then
        rows[#rows + 1] = { ("mneme run %s %s=%s"):format(name, key, setting_types.show(entry.default)), entry.about[1] or "" }
      end
    end
  end
  return rows[1] and { function() return ("%s: a setting of experiments\n"):format(key) .. layout.columns(rows) end } or nil
end

---What an option is in each command that has it; nil: none has.
---@return string?
function setting_topics.of_option(key)
  local rows, seen = {}, {}
  for _, command in ipairs(options.commands.all(true)) do
    local option = options.by_name(command)[key]
    if option and seen[option] then seen[option][1] = seen[option][1] .. ", " .. command.name
    elseif option then
      rows[#rows + 1] = { "mneme " .. command.name, table.concat(options.rows { option }[1], ": ") }
      seen[option] = rows[#rows]
    end
  end
  return rows[1] and ("%s=: a setting of commands\n"):format(key) .. layout.columns(rows, 24)
end

-- Commands, their options and the words of messages.
local function of_commands(add)
  local keys = {}
  for _, command in ipairs(options.commands.all(true)) do
    add(command.name, function() return layout.prose("usage: " .. options.usage(command)) .. "  " .. command.doc .. "\n" end)
    for _, option in ipairs(options.of(command)) do keys[option[1]] = true end
  end
  for key in pairs(keys) do add(key, function() return setting_topics.of_option(key) end) end
  for _, row in ipairs(require "mneme.base.word_lists" "commands/words_of_messages.txt") do
    local text = ("%s: %s"):format(row[2]:match "%S+":gsub("_", "-"), row[3])
    for word in row[2]:gmatch "%S+" do add(word, function() return layout.prose(text) end) end
  end
end

---Add every setting and every word to the topics of help.
---@param add function add(name, function that gives the text)
function setting_topics.add(add)
  for _, word in ipairs { "axis", "axes" } do add(word, axes_text) end
  of_runs(add)
  of_cores(add)
  of_envs(add)
  of_commands(add)
end

return setting_topics
