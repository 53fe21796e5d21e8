-- fixtures.lua -- recorded values of other programs (tests/fixtures/*.safetensors) compared with the results of this engine.
--   luajit tests/support/fixtures.lua [device=cuda] FILE.safetensors ...      one line a file; a core of yours is named by its file, core = "cores/mine.lua"
-- A file's metadata name what is built; its parameters are loaded, it runs forward and backward, and every value is compared.  The error of a tensor is
-- max |got - expected| / max(max |expected|, 1e-3 x the largest of its group); the groups are output.*, final.* and grad.*.  Of a core that differs, the
-- line says how far its worst tensor moves where the last bit of inputs, parameters and states changes: an error of that size is rounding, whatever the
-- file's tolerance.  Where the file's float32_error, how far the program that made it is off in float32, is beyond its tolerance, up to 4 times that is
-- ok, and the line says how many times it is.
local here = arg and arg[0] and arg[0]:match "^(.*)tests/support/fixtures%.lua$"
if here then package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path end
local device = here and arg[1] and arg[1]:match "^device=(.*)$"
if device then require("mneme.base.engine").open(table.remove(arg, 1) and device) end            -- before a part opens the CPU
local attention_fixtures = require "tests.support.attention_fixtures"
local cores = require "mneme.models.cores"
local errors = require "mneme.base.errors"
local json = require "mneme.base.json"
local learner_fixtures = require "tests.support.learner_fixtures"
local fixture_parts = require "tests.support.fixture_parts"
local safetensors = require "mneme.tensor.safetensors"
local state_files = require "tests.support.state_files"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local fixtures = {}
local FAR = 1e37           -- a value beyond it stands for infinity
local AS_FLOAT32 = 4       -- times the float32 error of the program that made a file: another order of sums has about the same
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
      want[name] = fixture_parts.numbers(t:data(), t:shape())
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
  local c = cores.new(name, config, true)
  c:load_state_dict(fixture_parts.below(file, "param."))
  local given = fixture_parts.below(file, "state.")
  if state_files.mirrors_differ(c, given) then c.store_all_channels() end
  local state = state_files.fold(c, given, true)
  local x = tensor.new { shape = fixture_parts.need(file, "input.x"):shape(), grad = true }:copy(file["input.x"])
  local y, final = c(x, fixture_parts.flags(fixture_parts.need(file, "input.done")), state)
  local got = { ["output.y"] = fixture_parts.value_of(y) }
  for key, t in pairs(state_files.unfold(c, final, "value")) do got["final." .. key] = t end
  tensor.ops.sum { x = tensor.ops.mul(y, fixture_parts.need(file, "cotangent.y")) }:backward()
  fixture_parts.gradients(got, "grad.param.", c:named_parameters())
  got["grad.input.x"] = fixture_parts.grad_of(x)
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

-- ---- one file ----

-- Of fixtures that are no cores.
local kinds = { attention = attention_fixtures }
function kinds.learn(name, config, tensors, meta)
  if not learner_fixtures[name] then errors.unknown("core", meta.core, tables.keys(learner_fixtures)) end
  return learner_fixtures[name](config, tensors)
end

---Compare one fixture with the results of this engine.
---@return table { ok, worst = { name, error, note }, tolerance, core, list, rounding = of a core beyond its tolerance: how far the worst tensor moves
---  with the last bit of what the core is given, float32_error = of the file, where it has one }
function fixtures.check(path)
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
  local kind, name = meta.core:match "^(%a+)%.(.+)$"
  local got
  if kinds[kind] then got = kinds[kind](name, config, file.tensors, meta)
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

---One line a file; exit status 0, 1 (wrong, damaged) or 2 (not known here).
---@param say fun(line: string)
function fixtures.run(paths, say)
  local status = 0
  for _, path in ipairs(paths) do
    local ok, result = xpcall(fixtures.check, errors.handler, path)
    if not ok then
      say(("%s: error: %s%s"):format(path, result.message, result.hint and " (" .. result.hint .. ")" or ""))
      status = math.max(status, result.status)
    else
      local times = result.float32_error and result.worst.error > result.tolerance and result.worst.error / result.float32_error
      say(("%-9s %s  %s: worst %.2e at %s%s, tolerance %g%s%s"):format(result.ok and "ok" or "MISMATCH", path, result.core,
        result.worst.error, result.worst.name, result.worst.note and " (" .. result.worst.note .. ")" or "", result.tolerance,
        result.rounding and ("; the last bit of its inputs moves it by %.1e"):format(result.rounding) or "",
        times and times < math.huge and ("; %.2g times the file's float32_error %.1e"):format(times, result.float32_error) or ""))
      if not result.ok then status = math.max(status, 1) end
    end
    collectgarbage()                  -- tensors of a file are not held while the next ones are checked: on a device its memory is scarce
  end
  return status
end

if here then os.exit(fixtures.run(arg, print)) end
return fixtures
