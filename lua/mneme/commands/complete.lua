-- complete.lua -- `mneme complete WORD...`: completions of the last argument, one a line, for shells (bindings/shell).
-- A completion that ends with = needs a value.  They come from the commands' usage lines, a script's settings, and the
-- folders of experiments, environments, cores and runs.
local catalogue = require "mneme.base.catalogue"
local tables = require "mneme.base.tables"
local files = require "mneme.base.files"
local terminal = require "mneme.base.terminal"

local complete = {}

local function runs()
  local list = {}
  for _, name in ipairs(files.list "runs") do
    if files.is_file("runs/" .. name .. "/config.json") or files.is_file("runs/" .. name .. "/study.json") then
      list[#list + 1] = "runs/" .. name
    end
  end
  return list
end

local function names(kind)
  return function()
    local list = {}
    for i, name in ipairs(catalogue.names(kind)) do list[i] = name:gsub("%-v%d+$", "") end
    return list
  end
end

local function topics() return require("mneme.commands.help").names() end

-- Names of arguments in usage lines, and their possible values.
local words_of = {
  SCRIPT = names "experiments", RUN = runs, STUDY = runs, ENV = names "envs", SCENE = names "scenes", TOPIC = topics,
}

-- Values of settings that do not declare a list of choices.
local values_of = {
  core = names "cores", learner = names "learners", env = names "envs", scene = names "scenes", resume = runs, run = runs,
  device = function() return { "cpu", "cuda" } end,
}

-- A usage line, " SCRIPT [cores|envs] [jobs=2]" say -> possible values of its arguments, and its settings.
local function read_usage(usage)
  local words, settings = {}, {}
  for key in usage:gmatch "([%l_]+)=" do
    if key ~= "key" and key ~= "setting" then settings[#settings + 1] = key .. "=" end   -- placeholders
  end
  for name in usage:gmatch "%f[%u]%u%u+%f[^%u]" do
    for _, word in ipairs(words_of[name] and words_of[name]() or {}) do words[#words + 1] = word end
  end
  for choice in usage:gmatch "%[([%l|]+)%]" do
    for word in choice:gmatch "[^|]+" do words[#words + 1] = word end
  end
  return words, settings
end

-- The settings that a script declares, found by running it up to mn.config; {} if that fails.
local function schema_of(name)
  local script = require "mneme.runs.script"
  local ok, survey = pcall(function() return script.survey(script.locate(name), {}) end)
  return ok and survey.schema or {}
end

local function values_for(key, entry)
  if values_of[key] then return values_of[key]() end
  local choices = entry and entry.about.choices
  if choices then return choices end
  return entry and type(entry.default) == "boolean" and { "0", "1" } or {}
end

local function offers(words, commands)
  local command = words[1]
  if #words < 2 then
    local list = {}
    for i, c in ipairs(commands) do list[i] = c.name end
    return list
  end
  for _, c in ipairs(commands) do
    if c.name == command then
      local list, settings = read_usage(c.usage)
      local scripted = #words > 2 and c.usage:find " SCRIPT" ~= nil          -- the script has been named
      local schema = scripted and schema_of(words[2]) or {}
      local key = words[#words]:match "^%-*([%a_][%w_]*)="
      if key then
        local given = {}
        for i, value in ipairs(values_for(key, schema[key])) do given[i] = key .. "=" .. value end
        return given
      end
      if scripted then list = {} end
      for _, setting in ipairs(settings) do list[#list + 1] = setting end
      for _, setting in ipairs(tables.keys(schema)) do list[#list + 1] = setting .. "=" end
      return list
    end
  end
  return {}
end

---Completions of the last argument, sorted, without duplicates.
---@param words string[] the command line after `mneme`, the last one incomplete
---@param commands table[] those of commands/command_table.lua
---@return string[]
function complete.list(words, commands)
  local start, seen, list = words[#words] or "", {}, {}
  for _, offer in ipairs(offers(words, commands)) do
    if offer:sub(1, #start) == start and not seen[offer] and terminal.plain(offer, true) == offer then      -- one a line
      seen[offer], list[#list + 1] = true, offer
    end
  end
  table.sort(list)
  return list
end

return complete
