-- check.lua -- `mneme check`: test a core or an environment of your own, or examine a run's folder.
local lazy = require "mneme.base.lazy"
local provenance = lazy "mneme.lab.study.provenance"
local study_folder = lazy "mneme.lab.study.study_folder"
local cores = lazy "mneme.models.cores"
local envs = lazy "mneme.envs"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local progress = lazy "mneme.base.progress"
local registry = lazy "mneme.base.registry"
local script = lazy "mneme.runs.script"
local check_resumable = lazy "mneme.envs.check_resumable"
local sweep = lazy "mneme.lab.study.sweep"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"
local options = require "mneme.commands.options"

local command = { name = "check", doc = "examine a run's folder, or test a core, an environment or a study of your own", loads = true,
  others = "core", about = [[
Of a run or study: no file altered or removed since its start ended, each run the one that its study names; status 1 where something is damaged.
A note says what changed since, of code and data too, or cannot be checked here.
Of FILE.lua: a core keeps the contract of core=, an environment that of env=; of a script or study, its settings, runs and claims can be read.]],
  arguments = { { "paths", "RUN|STUDY|FILE.lua", "what is checked", noun = "file", several = true, optional = true } },
  options = {
    { "core", "the contract that every core keeps, one property a line, for a core of your own", type = "text", example = "mine.lua" },
    { "env", "do steps with random actions repeat, and go on alike after save and restore?  For an environment of Gymnasium or of your own",
      type = "text", example = "gym:CartPole-v1" },
  } }

local ENV_STEPS = 500      -- of an environment before it is saved, and after

-- The contract of a core, one line a property.
local function check_core(file, given)
  local settings, defaults = { file }, next(given) and cores.definition(file).config
  for key, text in pairs(given) do
    if defaults[key] == nil then errors.unknown("key of core " .. file, key, tables.keys(defaults)) end
    settings[key] = setting_types.parse(key, text, defaults[key])
  end
  local built = cores.new(settings[1])          -- its error says what is wrong with the file
  local wrong, properties = 0, { unpack(require "mneme.models.contract") }
  if built.sensitivities and built.file then
    local check_sensitivities = require "mneme.learn.check_sensitivities"
    local function holds(of) check_sensitivities.holds(require("mneme.models.contract_rig").build(of), 2e-5) end
    properties[#properties + 1] = { name = check_sensitivities.name, holds = holds }
  end
  for _, property in progress.each(properties, "properties") do
    local ok, problem = xpcall(property.holds, errors.handler, settings)
    print(("%-9s %s"):format(ok and "ok" or "FAILED", property.name))
    if not ok then
      local said = problem.message:gsub("^%S*contract%.lua:%d+: ", ""):gsub("^%S*check_sensitivities%.lua:%d+: ", "")
      if problem.where and problem.where:find(settings[1], 1, true) then said = problem.where .. ": " .. said end
      print("          " .. said .. (problem.hint and " (" .. problem.hint .. ")" or ""))
      wrong = wrong + 1
    end
  end
  if not built.complexity.step then print(("measured  complexity: %s multiply-adds, two for each number of the state"):format(built:step_formula())) end
  print(("%s: %d of %d properties hold"):format(settings[1], #properties - wrong, #properties))
  if wrong > 0 and errors.position_of(built.forward):find(settings[1], 1, true) then print("its forward begins at " .. errors.position_of(built.forward)) end
  if wrong == 0 then terminal.next_step.say { "run", "tmaze", "quick=1", "core=" .. settings[1] } end
  return wrong == 0 and 0 or 1
end

-- What copies of an environment of Gymnasium are good for, by the form in which they can be had.
local COPIES = { state = "by its get_state and set_state: intervene, where and going back continue from copies",
  pickle = "by pickle: intervene, where and going back continue from copies",
  deepcopy = "by copy.deepcopy alone: intervene and going back continue from copies, where plays episodes again",
  none = "in no way, as it loses its state or is refused: intervene, where and going back play episodes again" }

-- Whether an environment can be repeated: 1,000 steps, saved in the middle and restored into a second one.
local function check_env(name, given)
  local settings = { num_envs = 1 }
  for key, text in pairs(given) do
    local value = tonumber(text)
    if value == nil then value = text end
    if text == "true" or text == "false" then value = text == "true" end
    settings[key:gsub("^env%.", "")] = value
  end
  local env = envs.new(name, settings)
  if env.truncates then print(("copies    %s: %s"):format(name, COPIES[env:copied() or "none"])) end
  io.stdout:flush()
  check_resumable.compare(env, ENV_STEPS, ENV_STEPS)
  print(("ok        %s: saved after %d steps and restored, it goes on alike for %d"):format(name, ENV_STEPS, ENV_STEPS))
  terminal.next_step.say { "run", "train", "env=" .. name }
  return 0
end

-- A file of Lua: a script or study by the settings that it declares, a core or an environment by what it returns.
local function check_lua(path, given)
  if not files.is_file(path) then errors.usage(path .. ": there is no such file") end
  local text = files.read(path)
  if text:find "mn%.study%s*[%({]" or text:find "mn%.config%s*[%({]" then
    if next(given) then errors.unknown("setting of check", next(given), options.names(command)) end
    local plan = sweep.plan({ script = path }, {})
    local study = text:find "mn%.study" and ("study of %d runs, with %d claims"):format(#plan.runs, #(plan.spec.claims or {}))
    print(("ok        %s: a %s"):format(path, study or "script whose settings can be read"))
    terminal.next_step.say { study and "sweep" or "run", path }
    return 0
  end
  local own = registry.load(path)()
  if type(own) == "function" or type(own) == "table" and own.step then return check_env(path, given) end
  script.no_part(path, own, "a core, an environment, a script or a study", "core")
  return check_core(path, given)
end

-- ---- folders of runs and studies ----

-- Prints what was found; is it sound?
local function report(path, found, summary, briefly)
  print(("%-9s %s  %s"):format(#found.bad == 0 and "ok" or "DAMAGED", path, summary))
  for _, text in ipairs(found.bad) do print("          " .. terminal.plain(text, true)) end
  for _, text in ipairs(briefly and {} or found.notes) do print("          note: " .. terminal.plain(text, true)) end
  return #found.bad == 0
end

-- Checks a run, or a study and each of its runs.
local function check_folder(path)
  path = path:gsub("(.)/+$", "%1")
  if not files.is_file(path .. "/study.json") then return report(path, provenance.run(path)) and 0 or 1 end
  local study, noted, damaged = study_folder.load(path), 0, 0
  local sound = report(path, provenance.study(path, study))
  for _, r in progress.each(study.runs, "runs") do
    if files.is_file(r.path .. "/config.json") then
      local ok, found, summary = xpcall(provenance.run, errors.handler, r.path, r)
      if not ok then found, summary = { bad = { found.message }, notes = {} }, "" end
      noted = noted + (found.notes[1] and 1 or 0)
      if not report(r.path, found, summary, true) then damaged = damaged + 1 end
    end
  end
  if noted > 0 then print(("note: of %d runs something has changed since, or cannot be checked: mneme check RUN"):format(noted)) end
  print(("%s: %s"):format(path, damaged > 0 and ("%d of %d runs are damaged"):format(damaged, #study.runs) or sound and "nothing is damaged"
    or "its runs are sound, the study's folder is not"))
  return sound and damaged == 0 and 0 or 1
end

---One line a folder; exit status 0, 1 (damaged) or 2 (not there).  core=FILE.lua: does a core keep the contract?
function command.run(o)
  local words = o.paths
  if o.core then return check_core(o.core, o.core_settings) end
  if o.env then return check_env(o.env, o.core_settings) end
  if #words == 0 then errors.usage("check: which file?", "mneme check RUN, core=FILE.lua or env=gym:ID") end
  if #words == 1 and words[1]:find "%.lua$" then return check_lua(words[1], o.core_settings) end
  if next(o.core_settings) then errors.unknown("setting of check", next(o.core_settings), options.names(command)) end
  local status = 0
  for _, path in progress.each(words, "things") do
    if path:find "%.lua$" then errors.usage("check: several files, of which one is Lua code: " .. path,
      "mneme check " .. path .. " checks it alone") end
    local ok, result = xpcall(check_folder, errors.handler, path)
    if ok then status = math.max(status, result)
    else
      terminal.note(("%s: error: %s%s"):format(path, result.message, result.hint and " (" .. result.hint .. ")" or ""))
      status = math.max(status, result.status)
    end
  end
  if status == 0 and files.is_file(words[1] .. "/config.json") then terminal.next_step.say({ "eval", words[1] }, { "view", words[1] })
  elseif status == 0 then terminal.next_step.say { "report", words[1] } end
  return status
end

return command
