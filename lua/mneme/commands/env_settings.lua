-- env_settings.lua -- arguments of a command that evaluates a run: those that are no settings of the command are the environment's.  One
-- that the environment does not have either is refused by the name that was probably meant.
local ffi = require "ffi"
local catalogue = require "mneme.base.catalogue"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local run_folder = require "mneme.runs.folder"

local env_settings = {}

---An argument of such a command: a setting of the environment or data set may have its name in front, as the script that trained the run
---may want it: env.corridor=20 is corridor=20.
---@param word string
---@return string? key nil: it is no key=value
---@return string? text
function env_settings.word(word)
  local key, text = word:match "^%-*([%w_.]+)=(.*)$"
  key = key and key:gsub("^env%.", ""):gsub("^dataset%.", "")
  if key and key:find(".", 1, true) then errors.usage(("unknown setting '%s'"):format(key), "a setting of the environment has no parts: corridor=20") end
  return key, text
end

---Refuse settings that neither the command nor the run's environment has.  One in Lua has those of its script, which rebuild.lua refuses to
---change.
---@param command string
---@param path string the run
---@param given table<string, any> settings for the environment
---@param own string[] the command's settings
function env_settings.check(command, path, given, own)
  if not next(given) then return end
  local info, known, all = run_folder.read_info(path), { time_limit = true }, { unpack(own) }
  for _, env in ipairs(catalogue.list "envs") do
    if env.name == info.env then
      for key in ffi.string(engine.C.mn_env_params(env.index)):gmatch "([%w_]+)=" do known[key], all[#all + 1] = true, key end
    end
  end
  for key in pairs(info.env_of_script and info.config or {}) do known[key] = true end
  if #all == #own and not info.env_of_script then return end
  table.sort(all)
  for key in pairs(given) do
    if not known[key] then errors.unknown(("setting of %s and %s"):format(command, info.env), key, all) end
  end
end

return env_settings
