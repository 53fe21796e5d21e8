-- complete.lua -- `mneme complete WORD...`: completions of the last argument, one a line, for shells (bindings/shell).
-- A completion that ends with = needs a value.  They come from what commands declare, a script's settings, and the
-- folders of experiments, environments, cores and runs.
local catalogue = require "mneme.base.catalogue"
local files = require "mneme.base.files"
local options = require "mneme.commands.options"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local complete = { name = "complete", doc = "list completions of the last argument (for shells: bindings/shell)", raw = true,
  names_code = function() return {} end, arguments = { { "words", "WORD", nil, noun = "word", several = true, optional = true } } }

local function runs()
  return tables.map(files.list "runs", function(name)
    local path = "runs/" .. name
    return (files.is_file(path .. "/config.json") or files.is_file(path .. "/study.json")) and path or nil
  end)
end

local function names(kind)
  return function() return tables.map(catalogue.names(kind), function(name) return (name:gsub("%-v%d+$", "")) end) end
end

local function topics() return require("mneme.commands.help").names() end

-- Names of arguments, and their possible values.
local words_of = {
  SCRIPT = names "experiments", RUN = runs, STUDY = runs, ENV = names "envs", SCENE = names "scenes", TOPIC = topics,
  KIND = function() return require("mneme.commands.list").kinds() end, BENCHMARK = registry.benchmarks,
}

-- Values of settings that do not declare a list of choices.
local values_of = {
  core = names "cores", learner = names "learners", env = names "envs", scene = names "scenes", resume = runs, run = runs,
  device = function() return { "cpu", "cuda" } end,
}

-- The words that a command's arguments may be.
local function words_for(command)
  local list = {}
  for _, argument in ipairs(command.arguments or {}) do
    for _, word in ipairs(argument.choices or {}) do list[#list + 1] = word end
    for name in (argument.choices and "" or argument[2]):gmatch "%f[%u]%u%u+%f[^%u]" do
      for _, word in ipairs(words_of[name] and words_of[name]() or {}) do list[#list + 1] = word end
    end
  end
  return list
end

-- The settings that a script declares and the axes of a study, found by running it up to mn.config; {} if that fails.
local function schema_of(name)
  local script = require "mneme.runs.script"
  local ok, survey = pcall(function() return script.survey(script.locate(name), {}) end)
  return ok and survey.schema or {}, ok and survey.spec and survey.spec.axes or {}
end

local function values_for(key, entry, option)
  if option and (option.choices or option.type == "switch") then return options.values(option) end
  if values_of[key] or option and option.type == "run" then return (values_of[key] or runs)() end
  local choices = entry and entry.about.choices
  if choices then return choices end
  return entry and type(entry.default) == "boolean" and { "0", "1" } or {}
end

local function offers(words)
  if #words < 2 then return options.commands.names end
  local command = options.commands.find(words[1])
  if not command then return {} end
  if command.part and #words > 2 then command = command.part(words[2]) or command end
  local own = options.by_name(command)
  local scripted = #words > 2 and command.others == "script"          -- the script has been named
  local schema, axes = {}, {}
  if scripted then schema, axes = schema_of(words[2]) end
  local key, list = words[#words]:match "^%-*([%a_][%w_]*)=", {}
  if key then return tables.map(values_for(key, schema[key], own[key]), function(value) return key .. "=" .. value end) end
  if not scripted then list = words_for(command) end
  for name in pairs(tables.merged(own, schema, axes)) do list[#list + 1] = name .. "=" end
  return list
end

---Completions of the last argument, sorted, without duplicates.
---@param words string[] the command line after `mneme`, the last one incomplete
function complete.list(words)
  local start, seen, list = words[#words] or "", {}, {}
  for _, offer in ipairs(offers(words)) do
    if offer:sub(1, #start) == start and not seen[offer] and terminal.plain(offer, true) == offer then      -- one a line
      seen[offer], list[#list + 1] = true, offer
    end
  end
  table.sort(list)
  return list
end

function complete.run(o)
  for _, offer in ipairs(complete.list(o.words)) do io.stdout:write(offer, "\n") end
end

return complete
