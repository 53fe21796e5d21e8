-- unknown_settings.lua -- what was probably meant by a word of the command line that is no setting of the script.
local catalogue = require "mneme.base.catalogue"
local core_setting_docs = require "mneme.models.core_setting_docs"
local engine = require "mneme.base.engine"
local ffi = require "ffi"
local did_you_mean = require "mneme.base.did_you_mean"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"

local unknown_settings = {}

local environments = { env = true, environment = true, task = true, game = true, env_id = true, dataset = true }

-- A setting of environments, which a script with env= takes with env. in front.
local function of_environment(key, text)
  local has = key == "time_limit" and { "every environment" } or {}
  for _, env in ipairs(catalogue.list "envs") do
    if (" " .. ffi.string(engine.C.mn_env_params(env.index))):find("[ ,]" .. key .. "=") then has[#has + 1] = env.name:gsub("%-v%d+$", "") end
  end
  return has[1] and ("it is a setting of the environment (%s): env.%s=%s"):format(table.concat(has, ", "), key, text or "VALUE") or nil
end

local off = { ["0"] = true, ["false"] = true, no = true, off = true, none = true, ["nil"] = true }

-- "norm_reward=1" of one that was to be switched off: "norm_reward=0", or the word that is the default.
local function switched_off(write, schema)
  local head, on = write:match "^([%l_]+)=([%l%d]+)$"
  if not head then return nil end
  local default = schema[head] and schema[head].default
  return ("write %s=%s"):format(head, type(default) == "string" and default ~= on and default or on == "1" and "0" or "VALUE")
end

---A setting that is not known: what to write instead, as a hint; nil: nothing is known about it.
---@param text string? its value
---@param schema table the script's settings
---@return string?
function unknown_settings.of_key(key, text, schema)
  if environments[key] then
    return ("the script chooses it; mneme run train %s=%s"):format(key == "dataset" and "dataset" or "env", text or "NAME")
  end
  if key == "core" then return ("this script makes its memory itself; mneme run train core=%s"):format(text or "NAME") end
  local of_env = key:match "^env%.(.*)"
  if of_env and schema[of_env] then return ("this script makes its environment itself: %s=%s"):format(of_env, text or "VALUE") end
  local answer = did_you_mean.of_field("setting", key)
  local head = answer and answer:match "^([%a_][%w_]*)[%w_.]*="
  if head == "env" and not schema.env then
    return "this script makes its environment itself; mneme run train env=NAME " .. answer:gsub("%f[%w]N%f[%W]", text or "N", 1)
  end
  if head and not schema[head] and head ~= "seeds" and head ~= "jobs" then return ("%s; this script has no %s="):format(answer, head) end
  if answer then
    local write, rest = answer:match "^([^:;]*)(.*)$"
    local is_off = text and off[text:lower()] or key:find "^no_"
    if is_off and switched_off(write, schema) then return switched_off(write, schema) end
    if text and head and not write:find "=N.*=N" then             -- of two, nobody knows which
      write = write:gsub("%f[%w]%u+%f[%W]", function(v)
        return ((v == "N" or v == "X") and tonumber(text) or v == "NAME" and not is_off) and text or v == "FOLDER" and "runs/" .. text:gsub("^runs/", "") or v
      end)
    end
    return head and "write " .. write .. rest or answer
  end
  if core_setting_docs[key] and schema.core then return ("it is a setting of the core: core.%s=%s"):format(key, text or "VALUE") end
  if schema.env then return of_environment(key, text) end
  if key == "previous" or key == "hidden" then
    return ("this script makes its agent itself, without %s=; mneme run train %s=%s has it, and mn.agent { %s = ... }"):format(key, key, text or "VALUE", key)
  end
  if key == "time_limit" then return "this script makes its environment itself; mneme run train env=NAME env.time_limit=" .. (text or "N") end
end

---A word without a value: what to write instead.
---@param after string[] the words that follow it
---@return string? problem
---@return string? hint
function unknown_settings.of_word(word, after, schema)
  local key = word:gsub("-", "_"):match "^_*([%a_][%w_.]*)$"
  local entry = key and schema[key:match "^[^.]+"]
  local given, text = word:match "^%-*([%a_][%w_.]*)[: ] *(.+)$"
  if given and schema[given:match "^[^.]+"] then return ("'%s' is not a setting"):format(word), ("write %s=%s"):format(given, text) end
  if tonumber(word) then return ("'%s' is not a setting"):format(word), ("a value needs its setting: KEY=%s; --help lists the keys"):format(word) end
  if word == "=" or word:find "^=" then return "'=' stands alone", "write key=value without blanks" end
  if entry then
    local value = after[1] == "=" and after[2] or after[1] and not after[1]:find "=" and after[1]
    if type(entry.default) == "boolean" and not value then value = "1" end
    return ("'%s' has no value"):format(word), ("write %s=%s, without blanks"):format(key, value or "VALUE")
  end
  if schema.core and tables.has(registry.names "cores", word) then return ("'%s' is not a setting"):format(word), "write core=" .. word end
end

return unknown_settings
