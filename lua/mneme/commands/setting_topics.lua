-- setting_topics.lua -- help about a single setting, or a word that is a value of one: `mneme help decay`, `help horizon`,
-- `help outer_relu`, `help corridor`.  What it means, and which scripts, learners, cores, environments, commands have it.
local ffi = require "ffi"
local lazy = require "mneme.base.lazy"
local catalogue = require "mneme.base.catalogue"
local commands = require("mneme.commands.options").commands
local config = lazy "mneme.runs.config"
local core = lazy "mneme.models.core"
local engine = require "mneme.base.engine"
local options = require "mneme.commands.options"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
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
  local groups, names = {}, {}
  for _, entry in ipairs(defaults) do
    local shown = setting_types.show(entry.default)
    if not groups[shown] then groups[shown], names[#names + 1] = {}, shown end
    table.insert(groups[shown], entry.name)
  end
  for i, shown in ipairs(names) do names[i] = ("%s in %s"):format(shown, table.concat(groups[shown], ", ")) end
  return table.concat(names, "; ")
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
      local has = {}
      for name, defaults in pairs(learners.defaults()) do
        local default = defaults[key]
        if default ~= nil then has[#has + 1] = { name = name, default = default } end
      end
      table.sort(has, function(a, b) return a.name < b.name end)
      return paragraph(("%s: a setting of the learner"):format(key), about[1]
        .. (about.choices and " (" .. table.concat(about.choices, " ") .. ")" or "") .. "; default " .. by_default(has))
    end)
  end
end

-- The settings of cores, and the words that some of them take.
local function of_cores(add)
  local core_setting_docs, keys, words = require "mneme.models.core_setting_docs", {}, {}
  local gated_linear = require "mneme.models.gated_linear"
  local tables_of = { feature = gated_linear.features, gate = gated_linear.gates, decay = gated_linear.decays }      -- a script adds to them
  for _, name in ipairs(registry.names "cores") do
    local ok, d = pcall(core.definition, name)
    for key, default in pairs(ok and type(d) == "table" and d.config or {}) do
      keys[key] = keys[key] or {}
      table.insert(keys[key], { name = name, default = default, words = core.known_words(d, key) })
    end
  end
  for key, cores in pairs(keys) do
    local function page()
      local known = cores[1].words
      for _, entry in ipairs(cores) do known = known or entry.words end
      local list, rows = tables_of[key], {}
      for _, word in ipairs(list and tables.keys(list) or {}) do
        local about = type(list[word]) == "table" and list[word] or {}
        rows[#rows + 1] = { word, (about.doc or "") .. (about.source and " (" .. about.source .. ")" or "") }
      end
      return paragraph(("%s: a setting of cores (core.%s=VALUE)"):format(key, key), (core_setting_docs[key] or "")
        .. (known and not list and " (" .. table.concat(tables.keys(known), " ") .. ")" or "") .. "; default " .. by_default(cores))
        .. (list and "\n" .. layout.columns(rows) .. ("\n  one of your own: mn.%ss.NAME = { ... } in a script\n"):format(key) or "")
    end
    add(key, page)
    if tables_of[key] then add(key .. "s", page) end
    for _, entry in ipairs(cores) do
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

-- The settings of attentions.
local function of_attentions(add)
  local encoder_attention, core_setting_docs = require "mneme.models.encoder_attention", require "mneme.models.core_setting_docs"
  for _, name in ipairs(registry.names "attentions") do
    local ok, d = pcall(encoder_attention.definition, name)
    for key, default in pairs(ok and d.config or {}) do
      add(key, function() return paragraph(("%s=%s: a setting of the attention %s"):format(key, setting_types.show(default), name), core_setting_docs[key]) end)
    end
  end
end

-- The settings of environments and of data sets.
local function of_envs(add)
  for _, env in ipairs(catalogue.list "envs") do
    for key, rule in ffi.string(engine.C.mn_env_params(env.index)):gmatch "([%w_]+)=(%S+)" do
      add(key, function() return paragraph(("%s: a setting of the environment %s"):format(key, env.name), rule) end)
    end
  end
  local dataset = require "mneme.envs.dataset"
  for _, name in ipairs(registry.names "datasets") do
    local ok, d = pcall(dataset.definition, name)
    for key, default in pairs(ok and d.config or {}) do
      add(key, function()
        return paragraph(("%s=%s: a setting of the data set %s"):format(key, setting_types.show(default), name), ((d.about or {})[key] or {})[1])
      end)
    end
  end
end

---What an option is in each command that has it; nil: none has.
---@return string?
function setting_topics.of_option(key)
  local rows, seen = {}, {}
  for _, command in ipairs(commands.all(true)) do
    local option = options.by_name(command)[key]
    if option and seen[option] then seen[option][1] = seen[option][1] .. ", " .. command.name
    elseif option then
      rows[#rows + 1] = { "mneme " .. command.name, table.concat(options.rows { option }[1], ": ") }
      seen[option] = rows[#rows]
    end
  end
  return rows[1] and ("%s=: a setting of commands\n"):format(key) .. layout.columns(rows, 24)
end

-- Commands and their options.
local function of_commands(add)
  local keys = {}
  for _, command in ipairs(commands.all(true)) do
    add(command.name, function() return layout.prose("usage: " .. options.usage(command)) .. "  " .. command.doc .. "\n" end)
    for _, option in ipairs(options.of(command)) do keys[option[1]] = true end
  end
  for key in pairs(keys) do add(key, function() return setting_topics.of_option(key) end) end
end

---Add every setting to the topics of help.
---@param add function add(name, function that gives the text)
function setting_topics.add(add)
  of_runs(add)
  of_cores(add)
  of_attentions(add)
  of_envs(add)
  of_commands(add)
end

return setting_topics
