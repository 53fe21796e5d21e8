-- init.lua -- `mneme check`: check a core against the recorded values of another program, test a core of your own, or examine a run's folder.
local lazy = require "mneme.base.lazy"
local check_file = lazy "mneme.commands.check.file"
local integrity = lazy "mneme.lab.reports.integrity"
local study_folder = lazy "mneme.lab.study.folder"
local core = lazy "mneme.models.core"
local envs = lazy "mneme.envs.env"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local json = require "mneme.base.json"
local next_step = require("mneme.base.terminal").next_step
local progress = lazy "mneme.base.progress"
local registry = lazy "mneme.base.registry"
local rehearsal = lazy "mneme.envs.rehearsal"
local safetensors = lazy "mneme.tensor.safetensors"
local state_files = lazy "mneme.models.state_files"
local sweep = lazy "mneme.lab.study.sweep"
local tensor = lazy "mneme.tensor.tensor"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"
local options = require "mneme.commands.options"

local command = { name = "check", doc = "examine a run's folder, test a file of your own, or compare with another program's recorded values", loads = true,
  others = "core", about = [[
Of a run or study: no file altered or removed since its start ended, each run the one that its study names; status 1 where something is damaged.
A note says what changed since, of code and data too, or cannot be checked here.
Of FILE.lua: a core keeps the contract of core=, an environment that of env=; of a script or study, its settings, runs and claims can be read.
Of FILE.safetensors: build what its metadata name, load its parameters, run forward and backward, and compare every value with the file's.
The error of a tensor is max |got - expected| / max(max |expected|, 1e-3 x the largest of its group); the groups are output.*, final.* and
grad.*.  Of a core that differs, the line says how far its worst tensor moves where the last bit of inputs, parameters and states changes: an
error of that size is rounding, whatever the file's tolerance.  Where the file's float32_error, how far the program that made it is off in
float32, is beyond its tolerance, up to 4 times that is ok, and the line says how many times it is.]],
  arguments = { { "paths", "RUN|STUDY|FILE.lua|FILE.safetensors", "what is checked", noun = "file", several = true, optional = true } },
  options = {
    { "core", "the contract that every core keeps, one property a line, for a core of your own", type = "text", example = "mine.lua" },
    { "env", "do steps with random actions repeat, and go on alike after save and restore?  For an environment of Gymnasium or of your own",
      type = "text", example = "gym:CartPole-v1" },
    options.common.device,
  } }

local FAR = 1e37           -- a value beyond it stands for infinity
local AS_FLOAT32 = 4       -- times the float32 error of the program that made a file: another order of sums has about the same
local ENV_STEPS = 500      -- of an environment before it is saved, and after
local DRAWS = 3            -- of rounded inputs, where a core's values differ from the file's

local function largest(list)
  local top = 0
  for _, v in ipairs(list) do if math.abs(v) < FAR and math.abs(v) > top then top = math.abs(v) end end
  return top
end

local function difference(got, want)
  if table.concat(got.shape, ",") ~= table.concat(want.shape, ",") then return math.huge end
  local worst = 0
  for i, w in ipairs(want.values) do
    local g = got.values[i]
    if g ~= g or w ~= w then return math.huge end
    if math.abs(w) >= FAR then
      if not (g <= -FAR) then return math.huge end
    elseif math.abs(g - w) > worst then worst = math.abs(g - w) end
  end
  return worst
end

---Every tensor's error, the worst first: { name, error, note }.
local function compare(got, file)
  local want, top, list = {}, {}, {}
  for name, t in pairs(file) do
    local group = name:match "^(%a+)%."
    if group == "output" or group == "final" or group == "grad" then
      want[name] = check_file.numbers(t:data(), t:shape())
      top[group] = math.max(top[group] or 0, largest(want[name].values))
    end
  end
  for name, w in pairs(want) do
    if not got[name] then list[#list + 1] = { name = name, error = math.huge, note = "missing" }
    else
      local floor = math.max(largest(w.values), 1e-3 * top[name:match "^%a+"], 1e-30)
      list[#list + 1] = { name = name, error = difference(got[name], w) / floor, floor = floor }
    end
  end
  for name in pairs(got) do
    if not want[name] then list[#list + 1] = { name = name, error = math.huge, note = "not in the file" } end
  end
  table.sort(list, function(a, b) return a.error > b.error or (a.error == b.error and a.name < b.name) end)
  return list
end

-- ---- a core, forward and backward ----

local function run_core(name, config, file)
  local c = core.new(name, config, true)
  c:load_state_dict(check_file.below(file, "param."))
  local given = check_file.below(file, "state.")
  if state_files.mirrors_differ(c, given) then c.store_all_channels() end
  local state = state_files.fold(c, given, true)
  local x = tensor.new { shape = check_file.need(file, "input.x"):shape(), grad = true }:copy(file["input.x"])
  local y, final = c(x, check_file.flags(check_file.need(file, "input.done")), state)
  local got = { ["output.y"] = check_file.value_of(y) }
  for key, t in pairs(state_files.unfold(c, final, "value")) do got["final." .. key] = t end
  tensor.ops.sum { x = tensor.ops.mul(y, check_file.need(file, "cotangent.y")) }:backward()
  check_file.gradients(got, "grad.param.", c:named_parameters())
  got["grad.input.x"] = check_file.grad_of(x)
  for key, t in pairs(state_files.unfold(c, state, "gradient")) do got["grad.state." .. key] = t end
  return got
end

-- A fixture whose inputs, parameters and states differ in about their last bit, up or down by pseudo-random numbers.
local function shaken(file, draw)
  local other, seed = {}, draw
  for _, name in ipairs(tables.keys(file)) do
    local x = file[name]
    other[name] = x
    if x:dtype() == "f32" and (name:find "^param%." or name:find "^state%." or name == "input.x") then
      local y = tensor.new { shape = x:shape() }:copy(x)
      local p = y:data()
      for i = 0, y:size() - 1 do
        seed = (seed * 1103515245 + 12345) % 2 ^ 31
        p[i] = p[i] * (1 + (seed < 2 ^ 30 and 1 or -1) * 2 ^ -24 * 1.5)
      end
      other[name] = y
    end
  end
  return other
end

-- How far the worst tensor moves where only the last bit of what a core is given changes: an error of that size is the rounding of its inputs.
local function conditioning(name, config, file, got, worst)
  if not worst.floor then return nil end
  local most = 0
  for draw = 1, DRAWS do
    tensor.clear_tape()
    local other = run_core(name, config, shaken(file, draw))
    most = math.max(most, difference(other[worst.name], got[worst.name]) / worst.floor)
  end
  return most
end

-- ---- the command ----

command.kinds = {}           -- of fixtures that are no cores, such as the tests have: function(name, config, tensors, metadata) that gives the results

---Compare one fixture with the results of this engine.
---@return table { ok, worst = { name, error, note }, tolerance, core, list, rounding = of a core beyond its tolerance: how far the worst tensor moves
---  with the last bit of what the core is given, float32_error = of the file, where it has one }
local function check(path)
  local file = safetensors.load(path)
  local meta = file.metadata
  if meta.format ~= "mneme-fixture-1" then
    errors.fail(("%s: format '%s', expected mneme-fixture-1"):format(path, tostring(meta.format)))
  end
  local tolerance = tonumber(meta.tolerance)
  if not meta.core or not meta.config or not tolerance then errors.fail(path .. ": the metadata lacks core, config or tolerance") end
  local config, problem = json.decode(meta.config, path .. ": config")
  if problem then errors.fail(problem) end
  if type(config) ~= "table" or config == json.null or json.is_array(config) then errors.fail(path .. ": config is not a JSON object") end
  tensor.clear_tape()
  if meta.core:find "%.lua$" then
    errors.usage(("%s: its core is a file, %s, which was not run"):format(path, meta.core), "mneme check core=FILE.lua tests a core of your own")
  end
  local kind, name = meta.core:match "^(%a+)%.(.+)$"
  local got
  if command.kinds[kind] then got = command.kinds[kind](name, config, file.tensors, meta)
  else got, kind = run_core(meta.core, config, file.tensors), nil end
  local list = compare(got, file.tensors)
  local rounding = not kind and list[1] and list[1].error > tolerance and conditioning(meta.core, config, file.tensors, got, list[1]) or nil
  tensor.clear_tape()
  if #list == 0 then errors.fail(path .. ": there is nothing to compare") end
  local float32 = tonumber(meta.float32_error)
  if float32 and not (float32 > 0 and float32 < 1) then float32 = nil end
  local limit = float32 and float32 > tolerance and AS_FLOAT32 * float32 or tolerance
  return { ok = list[1].error <= limit, worst = list[1], tolerance = tolerance, core = meta.core, list = list,
    rounding = rounding, float32_error = float32 }
end

-- The contract of a core, one line a property.
local function check_core(file, given)
  local settings, defaults = { file }, next(given) and core.definition(file).config
  for key, text in pairs(given) do
    if defaults[key] == nil then errors.unknown("key of core " .. file, key, tables.keys(defaults)) end
    settings[key] = setting_types.parse(key, text, defaults[key])
  end
  local built = core.new(settings[1])          -- its error says what is wrong with the file
  local wrong = 0
  for _, property in progress.each(require "mneme.models.contract", "properties") do
    local ok, problem = xpcall(property.holds, errors.handler, settings)
    print(("%-9s %s"):format(ok and "ok" or "FAILED", property.name))
    if not ok then
      local said = problem.message:gsub("^%S*contract%.lua:%d+: ", "")
      if problem.where and problem.where:find(settings[1], 1, true) then said = problem.where .. ": " .. said end
      print("          " .. said .. (problem.hint and " (" .. problem.hint .. ")" or ""))
      wrong = wrong + 1
    end
  end
  if not built.complexity.step then print(("measured  complexity: %s multiply-adds, two for each number of the state"):format(built:step_formula())) end
  print(("%s: %d of %d properties hold"):format(settings[1], #require "mneme.models.contract" - wrong, #require "mneme.models.contract"))
  local forward = errors.position_of(built.forward)
  if wrong > 0 and forward:find(settings[1], 1, true) then print(("its forward begins at %s"):format(forward)) end
  if wrong == 0 then next_step.say { "run", "tmaze", "quick=1", "core=" .. settings[1] } end
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
  rehearsal.compare(env, ENV_STEPS, ENV_STEPS)
  print(("ok        %s: saved after %d steps and restored, it goes on alike for %d"):format(name, ENV_STEPS, ENV_STEPS))
  next_step.say { "run", "train", "env=" .. name }
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
    next_step.say { study and "sweep" or "run", path }
    return 0
  end
  local own = registry.load(path)()
  if type(own) == "function" or type(own) == "table" and own.step then return check_env(path, given) end
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
  if not files.is_file(path .. "/study.json") then return report(path, integrity.run(path)) and 0 or 1 end
  local study, noted, damaged = study_folder.load(path), 0, 0
  local sound = report(path, integrity.study(path, study))
  for _, r in progress.each(study.runs, "runs") do
    if files.is_file(r.path .. "/config.json") then
      local ok, found, summary = xpcall(integrity.run, errors.handler, r.path, r)
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

---One line a file; exit status 0, 1 (wrong, damaged) or 2 (not known here).  core=FILE.lua: does a core keep the contract?
function command.run(o)
  local words = o.paths
  if o.core then return check_core(o.core, o.core_settings) end
  if o.env then return check_env(o.env, o.core_settings) end
  if #words == 0 then errors.usage("check: which file?", "mneme check RUN, FILE.safetensors ..., core=FILE.lua or env=gym:ID") end
  if #words == 1 and words[1]:find "%.lua$" then return check_lua(words[1], o.core_settings) end
  if next(o.core_settings) then errors.unknown("setting of check", next(o.core_settings), options.names(command)) end
  local status = 0
  for _, path in progress.each(words, "things") do
    if path:find "%.lua$" then errors.usage("check: several files, of which one is Lua code: " .. path,
      "mneme check " .. path .. " checks it alone") end
    local folder = files.is_folder(path)
    local ok, result = xpcall(folder and check_folder or check, errors.handler, path)
    if not ok then
      terminal.note(("%s: error: %s%s"):format(path, result.message, result.hint and " (" .. result.hint .. ")" or ""))
      status = math.max(status, result.status)
    elseif folder then status = math.max(status, result)
    else
      local times = result.float32_error and result.worst.error > result.tolerance and result.worst.error / result.float32_error
      print(("%-9s %s  %s: worst %.2e at %s%s, tolerance %g%s%s"):format(result.ok and "ok" or "MISMATCH", path, result.core,
        result.worst.error, result.worst.name, result.worst.note and " (" .. result.worst.note .. ")" or "", result.tolerance,
        result.rounding and ("; the last bit of its inputs moves it by %.1e"):format(result.rounding) or "",
        times and times < math.huge and ("; %.2g times the file's float32_error %.1e"):format(times, result.float32_error) or ""))
      if not result.ok then status = math.max(status, 1) end
    end
    collectgarbage()                  -- tensors of a file are not held while the next ones are checked: on a device its memory is scarce
  end
  if status == 0 and files.is_file(words[1] .. "/config.json") then next_step.say({ "eval", words[1] }, { "view", words[1] })
  elseif status == 0 and files.is_file(words[1] .. "/study.json") then next_step.say { "report", words[1] }
  elseif status == 0 then next_step.say "list cores" end
  return status
end

command.check = check
return command
