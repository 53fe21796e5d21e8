-- run_arguments.lua -- the arguments of a command about a run: its folder, the command's own settings, and the environment's or data set's.
local engine = require "mneme.base.engine"
local env_settings = require "mneme.commands.env_settings"
local errors = require "mneme.base.errors"
local meanings = require "mneme.base.meanings"
local run_folder = require "mneme.runs.folder"
local terminal = require "mneme.base.terminal"

local run_arguments = {}

---Read the command line of a command about one run; threads=N, which each of them takes, sets the CPU threads (default: all processors).
---@param command { name: string, usage: string, whole: table<string, integer>, other: table<string, fun(o: table, text: string, key: string)> } whole:
---  settings that are whole numbers, with the least of each; other: settings that are read by a function; draws: how its episodes
---  follow from a seed, where other commands do it in another way
---@param words string[]
---@param o table options with their defaults; what is a boolean here takes 0 or 1; with a list `folders` several runs may be given
---@return table o with `folder`, the first of `folders`, and what was given
---@return table<string, number|string> settings of the environment or data set
function run_arguments.read(command, words, o)
  local env = {}
  for _, word in ipairs(words) do
    local key, text = env_settings.word(word)
    local least = key == "threads" and 1 or command.whole[key]
    if not key then
      if o.folders then table.insert(o.folders, word)
      elseif o.folder then errors.usage(("%s: one run, got '%s' and '%s'"):format(command.name, o.folder, word),
        ("one after the other; mneme compare %s %s compares them"):format(o.folder, word)) end
      o.folder = o.folder or word
    elseif least then
      local value = tonumber(text)
      if not value or value % 1 ~= 0 or value < least or value > 2 ^ 53 then
        errors.usage(("%s: %s=%s, expected a whole number of at least %d"):format(command.name, key, text, least),
          meanings.hint(key .. " =", text) or key == "at" and "one step at a time; every step: mneme where RUN" or nil)
      end
      if key == "seed" and command.draws then
        terminal.note(("note: seed=%s: %s; their episodes are not the same"):format(text, command.draws))
      end
      if type(o[key]) == "boolean" then value = value ~= 0 end
      o[key] = value
    elseif command.other[key] then command.other[key](o, text, key)
    elseif text:find "^[%d.]+,[%d.,]+$" then
      errors.usage(("%s: %s=%s, expected one value"):format(command.name, key, text), "once for each: " .. key .. "=" .. text:match "^[^,]*")
    else env[key] = tonumber(text) or text end
  end
  if not o.folder then errors.usage(command.name .. ": which run?", command.usage) end
  if o.threads then engine.check(engine.C.mn_set_threads(engine.ctx, math.min(o.threads, 2 ^ 31 - 1))) end
  return o, env
end

---Refuse settings that neither the command nor a run's environment has.
---@param command table as for read
---@param path string the run
---@param env table of read
function run_arguments.check_settings(command, path, env)
  local own = { "threads" }
  for _, list in ipairs { command.whole, command.other } do for key in pairs(list) do own[#own + 1] = key end end
  env_settings.check(command.name, path, env, own)
end

---Refuse a run without episodes, and settings that nothing has.
---@param command table as for read
---@param o table of read
---@param env table of read
---@param what string "to probe": what its episodes are for
function run_arguments.check(command, o, env, what)
  if run_folder.read_info(o.folder).sequence_task then errors.usage(("%s: a run on sequences has no episodes %s"):format(o.folder, what)) end
  run_arguments.check_settings(command, o.folder, env)
end

return run_arguments
