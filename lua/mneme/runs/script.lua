-- script.lua -- runs a user's script with the arguments of the command line.
local lfs = require "lfs"
local lazy = require "mneme.base.lazy"
local catalogue = lazy "mneme.base.catalogue"
local config = lazy "mneme.runs.config"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local learner_settings = require "mneme.runs.learner_settings"
local did_you_mean = lazy "mneme.base.did_you_mean"
local trusted_code = require "mneme.base.trusted_code"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"

local script = {}
local lua_print = print

---The value of a setting among words, or nil.
---@param words string[] key=value
function script.setting(words, key)
  local value
  for _, word in ipairs(words) do
    local name, text = setting_types.pair(word)
    if name == key then value = text end
  end
  return value
end

---Refuse a setting that is given twice: which of the two was meant, nobody knows.
---@param words string[] that a user typed
function script.once(words)
  local given = {}
  for _, word in ipairs(words) do
    local key = setting_types.pair(word)
    key = key and key:gsub("%-", "_")
    key = learner_settings.cleanrl[key] or key
    if key and given[key] then errors.usage(("%s is given twice: %s and %s"):format(key, given[key], word),
      word:find "^core=[%a_]+=" and "write core." .. word:sub(6) or "write one of them") end
    if key then given[key] = word end
  end
end

---Is this the name of an experiment that comes with Mneme?
function script.is_experiment(name) return tables.has(registry.names "experiments", name) end

---Where a script is: a file, or the name of an experiment.
function script.locate(name)
  local folder_of = lfs.attributes(name, "mode") == "directory" and (name:find "/" or not script.is_experiment(name))
  if folder_of then
    local run = trusted_code.exists(name .. "/config.json")
    errors.usage(name .. " is a folder, expected a script", run
      and ("it is a run: mneme run resume=%s goes on with it, mneme view %s shows it"):format(name, name)
      or "mneme list experiments")
  end
  if trusted_code.exists(name) then return name end
  if name:find "/" or name:find "%.lua$" or name:find "%.py$" and script.is_experiment(name:sub(1, -4)) then
    local folder, file = name:match "^(.*/)([^/]*)$"
    local plain = (file or name):gsub("%.%a+$", "")
    if script.is_experiment(plain) then
      errors.usage(name .. ": there is no such script", "did you mean the experiment " .. plain .. "? mneme run " .. plain)
    end
    local near = errors.nearest(file or name, files.list(folder or "."))
    errors.usage(name .. ": there is no such script", near and "did you mean " .. (folder or "") .. near .. "?")
  end
  if setting_types.pair(name) == "env" then errors.usage("run: which script?", "mneme run train " .. name) end
  if name:find "%.%a[%w]*$" then errors.usage(name .. ": a script is a file of Lua", "mneme list experiments; settings are words: key=value") end
  local function instead(hint) errors.usage(("unknown experiment '%s'"):format(name), hint) end
  if not script.is_experiment(name) and not errors.nearest(name, registry.names "experiments") then
    if trusted_code.exists(name .. ".lua") then instead(("did you mean the file %s.lua?"):format(name)) end
    for kind, key in pairs { cores = "core", learners = "learner" } do
      if tables.has(registry.names(kind), name) then instead(("it is a %s: mneme run tmaze %s=%s"):format(key, key, name)) end
    end
    local env = tables.has(catalogue.names "envs", name) and name
    local means = env and "mneme run train env=" .. env or did_you_mean.of_field("environment", name)
    if means then instead(env and means or "as an environment, mneme run train env=NAME: " .. means) end
  end
  local path = registry.file("experiments", name, "experiment"):gsub("^%./", "")
  path = path:gsub("/lua/mneme/%.%./%.%./", "/")
  local here = lfs.currentdir() .. "/"
  return path:sub(1, #here) == here and path:sub(#here + 1) or path
end

---The same of a script that the command line names: it is the user's own, wherever it lies.
function script.named(name)
  local path = script.locate(name)
  trusted_code.name(path, true)
  return path
end

---What a run's config.json says, read without the engine; {} where that fails: mn.config will say why.
function script.peek(folder)
  local path = folder .. "/config.json"
  local f = require("mneme.base.files").is_file(path) and io.open(path)
  local info = f and require("mneme.base.json").decode(f:read "*a")
  if f then f:close() end
  if type(info) == "table" then require("mneme.base.json").sealed.need(folder .. "/config.json", info.format) end
  return type(info) == "table" and type(info.config) == "table" and info or { config = {} }
end

-- Threads and device are the context's, which is there before the script can declare anything.
local function open_context(words)
  local resume = script.setting(words, "resume")
  local stored = resume and script.peek(resume).config or {}
  local threads = tonumber(script.setting(words, "threads") or stored.threads)
  config.device = script.setting(words, "device") or stored.device or "cpu"
  threads = threads == threads and threads and math.max(0, math.min(threads, 2 ^ 31 - 1)) or 0               -- NaN: the script's declaration refuses it
  require("mneme.base.engine").open(config.device, require("mneme.tensor.ranks").threads(threads))
end

-- print of scripts: tables as mn.print shows them.
local function shown(...)
  for i = 1, select("#", ...) do if type((select(i, ...))) == "table" then return require("mneme.tensor.show").print(...) end end
  lua_print(...)
end

---Refuse a file that returns a part of a training: a core, a learner, an environment, a data set, an attention.
---@param result any what the file returned
---@param expected string "a script"
---@param fine string? a kind that will do: "core"
function script.no_part(path, result, expected, fine)
  local function has(member) return type(result) == "table" and type(rawget(result, member)) == "function" end
  local settings = has "build" and rawget(result, "config") or {}
  local kind = has "step" and { "env", "an environment" } or has "new" and { "learner", "a learner" } or settings.d_in and { "core", "a core" }
    or has "build" and { nil, rawget(result, "about") and "a data set" or "an attention" }
  if not kind or fine and kind[1] == fine then return end
  errors.usage(("%s is %s, expected %s"):format(path, kind[2], expected),
    kind[1] and ("mneme run train %s=%s"):format(kind[1], require("mneme.base.terminal").shell_quote(path)) or nil)
end

---Run a script.
---@param words string[] key=value
---@return any what it returns
function script.run(path, words)
  config.arguments, config.script = words, path
  open_context(words)
  local resumed = script.setting(words, "resume")
  if resumed and not trusted_code.folder then require("mneme.runs.run_sources").adopt(resumed, script.peek(resumed)) end
  if print == lua_print then print = shown end      -- luacheck: ignore
  local result = registry.load(path)()
  if not config.asked then script.no_part(path, result, "a script") end
  if #words > 0 and not config.asked then
    errors.usage(path .. " declares no settings, so " .. words[1] .. " means nothing", "mn.config { ... } declares them")
  end
  learner_settings.finish(path)
  config.finish(path)
  return result
end

---Run a script as far as its declaration of settings: see `survey` in runs/config.lua.
---@param words string[] key=value, where a value may be several with commas between
---@param one boolean? the words mean one run, whose settings are asked for, as script.run would read them
---@return table survey { cfg, schema, sizing = what the core's size is to be, axes = the lists among the words: { name, texts },
---  spec = what mn.study was given, or nil }
function script.survey(path, words, one)
  local chunk, survey = registry.load(path), { axes = {}, one = one }
  config.arguments, config.script, config.survey = words, path, survey
  local ok, problem = xpcall(chunk, function(e) return e == survey and e or errors.handler(e) end)
  config.arguments, config.script, config.survey = nil, nil, nil
  if not ok and problem ~= survey then error(problem, 0) end
  if not survey.cfg then errors.usage(path .. " declares no settings: there is nothing to sweep over", "mn.config { ... } declares them") end
  return survey
end

return script
