-- script_agent.lua -- runs a script until it trains, without training: to play its environment by hand, and to obtain environments and
-- agents that are defined in the script, which config.json cannot describe.  The learner is made without what only learning needs: its
-- settings are not checked, its buffers not allocated, `setup` not called, so any num_envs will do.
local config = require "mneme.runs.config"
local envs = require "mneme.envs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local learner_settings = require "mneme.runs.learner_settings"
local registry = require "mneme.base.registry"
local terminal = require "mneme.base.terminal"
local trainer = require "mneme.learn.trainer"
local trusted_code = require "mneme.base.trusted_code"

local C = engine.C
local TAKEN = {}                   -- what ends the script once its learner is there
local script_agent = {}

-- key=value as the settings of an environment.
local function settings_of(words)
  local settings = {}
  for _, word in ipairs(words) do
    local key, text = word:match "^%-*([%w_]+)=(.*)$"
    if key then settings[key] = tonumber(text) or text end
  end
  return settings
end

---Run a script as far as the learner that it would train; a file that returns an environment's rules has that alone.
---@param path string the script
---@param words string[] its command line
---@param settings table? num_envs, seed, time_limit that its environment gets instead of the script's
---@param field string? what the learner is wanted for: "agent" (default), "env", "model" of supervised learning
---@return table learner
function script_agent.script(path, words, settings, field)
  local chunk = registry.load(path)
  local arguments, script, learner, made_env = config.arguments, config.script, nil, nil
  config.arguments, config.script = words, path
  envs.override = settings
  trainer.instead = function(made, trains)
    learner = made
    if trains then error(TAKEN, 0) end
  end
  local ok, problem_there = xpcall(function()
    local returned = chunk()
    local rules = type(returned) == "function" or type(returned) == "table" and type(returned.step) == "function" and not returned.action_space
    if field == "env" and not learner and rules then made_env = envs.of_file(path, returned, settings_of(words)) end
  end, function(e) return e == TAKEN and e or errors.handler(e) end)
  config.arguments, config.script, envs.override, trainer.instead = arguments, script, nil, nil
  if ok and made_env then return { env = made_env } end
  if learner and learner.cfg then learner_settings.expect(learner.cfg, {}) end          -- it is not made to learn, and reads none
  if not (ok or problem_there == TAKEN or learner) then error(problem_there, 0) end          -- once it has made its learner it learns, by a loop of its own
  if not learner or not learner[field or "agent"] then
    errors.fail(path .. (field == "model" and ": this script trains no model on a data set" or ": this script trains no agent in an environment"))
  end
  return learner
end

-- The learner of a run, made again by its script with the run's settings.
local function of_run(folder, info, what, settings, field)
  if not info.script or not trusted_code.exists(info.script) then
    errors.fail(("%s: its %s is written in %s, which is not here"):format(folder, what, info.script or "a script that is not named"),
      "run this where the script is")
  end
  return script_agent.script(info.script, { "resume=" .. folder, "device=" .. (engine.device or "cpu"), "precision=fp32",
    ("threads=%d"):format(C.mn_threads(engine.ctx)) }, settings, field)
end

---Make the model of a run of supervised learning again.
---@return SequenceModel
function script_agent.model(folder, info) return of_run(folder, info, "model", nil, "model").model end

---Make the environment and the agent of a run again.
---@param settings table num_envs, seed, time_limit that its environment gets instead of the script's; of one in C any of its settings
---@return Env
---@return Agent
function script_agent.run(folder, info, settings)
  for key in pairs(info.env_of_script and settings or {}) do
    if key ~= "num_envs" and key ~= "seed" and key ~= "time_limit" then
      errors.usage(("%s: %s cannot change: its environment is written in %s, which has only num_envs, seed and time_limit free"):format(
        folder, key, info.script or "a script"))
    end
  end
  local learner = of_run(folder, info, info.env_of_script and "environment" or "agent", settings)
  local now = learner.env.world.packages or {}             -- of Python, where the environment is Gymnasium's
  for name, version in pairs(info.packages or {}) do
    if now[name] ~= version then terminal.note(("%s: was trained with %s %s, this is %s"):format(folder, name, version, tostring(now[name]))) end
  end
  return learner.env, learner.agent
end

return script_agent
