-- test_check.lua -- every fixture passes (tests/support/fixtures.lua); whatever is wrong with a file is found, named, and told
-- by the exit status: 1 wrong or damaged, 2 something that does not exist here.
local t = require "tests.harness"
local files = require "mneme.base.files"
local fixtures = require "tests.support.fixtures"
local registry = require "mneme.base.registry"
local json = require "mneme.base.json"
local mn = require "mneme"
local safetensors = require "mneme.tensor.safetensors"

local root = registry.root .. "tests/fixtures/"
local path = os.tmpname()

-- Compare files: the exit status and all that is said.
local function run(...)
  local said = {}
  local status = fixtures.run({ ... }, function(line) said[#said + 1] = line .. "\n" end)
  return status, table.concat(said)
end

-- A fixture, changed by f(tensors by name, metadata, config), under another path.
local function changed(name, f)
  local file = safetensors.load(root .. name .. ".safetensors")
  local config = json.decode(file.metadata.config)
  f(file.tensors, file.metadata, config)
  if type(file.metadata.config) == "string" then file.metadata.config = json.encode(config) end
  if file.metadata.raw then file.metadata.config, file.metadata.raw = file.metadata.raw, nil end
  local list = {}
  for key, tensor in pairs(file.tensors) do list[#list + 1] = { key, tensor } end
  safetensors.write(path, list, file.metadata)
  return path
end

local function says(status, pattern, name, f)
  local got, said = run(changed(name, f))
  t.ok(said:find(pattern), ("expected '%s', got: %s"):format(pattern, said))
  t.eq(got, status, said)
  t.eq(select(2, said:gsub("\n", "")), 1, "lines")
end

-- Other tests keep what they compare with in the same folder.
local function holds(file)
  t.test(file, function()
    local status, said = run(root .. file)
    t.ok(said:find("^ok +" .. root:gsub("%p", "%%%0") .. file:gsub("%p", "%%%0") .. "  [%w_.]+: worst %d.%d%de%-%d+ at [%w_.]+, tolerance "), said)
    t.eq(status, 0)
    local result = fixtures.check(root .. file)
    local meta = safetensors.read(root .. file)
    local expected = 0
    for _, name in ipairs(meta.names) do
      if name:find "^output%." or name:find "^final%." or name:find "^grad%." then expected = expected + 1 end
    end
    t.eq(#result.list, expected, "tensors compared")
    t.ok(result.worst.error > 0, "nothing is exactly equal in float32")
  end)
end

for _, file in ipairs(files.list(root)) do
  if file:find "%.safetensors$" then holds(file) end
end

t.test("a number that is wrong by more than the tolerance is found, one that is not is let through", function()
  for _, case in ipairs { { "gru", "output.y" }, { "gru", "final.layers.0.h" }, { "agalite_code_r4", "grad.param.embed.weight" },
    { "galite_joint", "grad.state.layers.1.C" }, { "a2c", "output.returns" }, { "adam", "output.step2.b" },
    { "a2c_train_gru", "output.step2.critic.1.bias" } } do
    local fixture, name = case[1], case[2]
    local function by(factor)
      return function(tensors, meta)
        local p, most, at = tensors[name]:data(), 0, 0
        for i = 0, tensors[name]:size() - 1 do
          if math.abs(p[i]) > most then most, at = math.abs(p[i]), i end
        end
        p[at] = p[at] * (1 + factor * tonumber(meta.tolerance))
      end
    end
    says(1, "^MISMATCH .*: worst %d.%d%de%-%d+ at " .. name:gsub("%p", "%%%0") .. ", tolerance", fixture, by(5))
    says(0, "^ok ", fixture, by(0.25))
  end
end)

t.test("of a core that differs the line says how far rounding of its inputs moves the same value", function()
  for _, name in ipairs { "gru", "agalite_code_r4" } do
    local result = fixtures.check(changed(name, function(_, meta) meta.tolerance, meta.float32_error = "1e-12", nil end))
    t.ok(not result.ok and result.rounding > 1e-8 and result.rounding < 1e-4, result.rounding)
    local _, said = run(path)
    t.ok(said:find "tolerance 1e%-12; the last bit of its inputs moves it by %d%.%de%-0%d\n", said)
  end
  t.eq(fixtures.check(root .. "gru.safetensors").rounding, nil)
end)

t.test("where float32 alone is beyond the tolerance, 4 times the file's float32_error is ok, and the line says how many times it is", function()
  local worst = fixtures.check(root .. "gru.safetensors").worst.error
  for times, status in pairs { [0.5] = 0, [1] = 0, [3.9] = 0, [4.1] = 1, [400] = 1 } do
    local function float32(_, meta) meta.tolerance, meta.float32_error = "1e-12", ("%.17g"):format(worst / times) end
    says(status, ("; %.2g times the file's float32_error %.1e\n"):format(times, worst / times):gsub("%p", "%%%0"), "gru", float32)
  end
  for _, none in ipairs { "nan", "inf", "-1", "0", "1e9", "much" } do
    says(1, "moves it by %S+\n", "gru", function(_, meta) meta.tolerance, meta.float32_error = "1e-12", none end)
  end
  says(1, "MISMATCH .*worst inf at output.y", "gru", function(tensors, meta)
    meta.float32_error, tensors["output.y"]:data()[1] = "0.9", 0 / 0
  end)
  says(1, "MISMATCH", "gru", function(tensors) tensors["output.y"]:data()[1] = tensors["output.y"]:data()[1] + 0.01 end)     -- within its tolerance: that
end)

t.test("a NaN fails, wherever it stands", function()
  for _, name in ipairs { "output.y", "final.layers.0.s", "grad.input.x", "param.embed.bias", "input.x", "cotangent.y", "state.layers.0.C" } do
    says(1, "", "galite_separable", function(tensors) tensors[name]:data()[1] = 0 / 0 end)
  end
  says(1, "worst inf at output.loss", "a2c", function(tensors) tensors["output.loss"]:data()[0] = 0 / 0 end)
  says(1, "MISMATCH", "gru", function(tensors) tensors["output.y"]:data()[2] = 1 / 0 end)
end)

t.test("expected infinities only ask for a number that is as far out", function()
  says(1, "worst inf at output.y", "gru", function(tensors) tensors["output.y"]:data()[0] = -1e38 end)
end)

t.test("missing and unexpected tensors", function()
  local function without(name) return function(tensors) tensors[name] = nil end end
  local function with(name) return function(tensors) tensors[name] = mn.tensor { 1 } end end
  says(1, "output.y %(not in the file%)", "gru", without "output.y")
  says(1, "grad.param.layers.0.hn.bias %(not in the file%)", "gru", without "grad.param.layers.0.hn.bias")
  says(1, "output.z %(missing%)", "gru", with "output.z")
  says(1, "grad.state.layers.9.h %(missing%)", "gru", with "grad.state.layers.9.h")
  says(1, "missing layers.0.iz.bias; unexpected nothing", "gru", without "param.layers.0.iz.bias")
  says(1, "missing nothing; unexpected extra", "gru", with "param.extra")
  says(1, "the file has no input.x", "gru", without "input.x")
  says(1, "the file has no input.done", "gru", without "input.done")
  says(1, "the file has no cotangent.y", "gru", without "cotangent.y")
  says(1, "the file has no state.layers.0.h", "gru", without "state.layers.0.h")
  says(1, "the file has an unexpected state.layers.7.h", "gru", with "state.layers.7.h")
  says(1, "the file has no input.rewards", "a2c", without "input.rewards")
  says(1, "the file has no input.grad2.", "adam", function(tensors)
    for name in pairs(tensors) do if name:find "^input%.grad2" then tensors[name] = nil end end
  end)
end)

t.test("wrong shapes, types and flags", function()
  says(1, "load_state_dict: layers.0.iz.bias is %[3%], expected %[%d+%]", "gru", function(tensors)
    tensors["param.layers.0.iz.bias"] = mn.tensor { 1, 2, 3 }
  end)
  says(1, "gru: x is %[2%], expected %[T,B,%d+%]", "gru", function(tensors) tensors["input.x"] = mn.tensor { 1, 2 } end)
  says(1, "state.layers.0.h is %[2%], expected", "gru", function(tensors) tensors["state.layers.0.h"] = mn.tensor { 1, 2 } end)
  says(1, "done%[1%] is 0.5, expected 0 or 1", "gru", function(tensors) tensors["input.done"]:data()[1] = 0.5 end)
  says(1, "channels, expected", "agalite_code_r4", function(tensors)
    local shape = tensors["state.layers.0.v"]:shape()
    shape[2] = shape[2] + 1
    tensors["state.layers.0.v"] = mn.tensor { shape = shape }
  end)
  says(1, "worst inf at output.y", "gru", function(tensors) tensors["output.y"] = mn.tensor { 1, 2 } end)
  says(1, "actions%[0%] is 77", "a2c", function(tensors) tensors["input.actions"]:data()[0] = 77 end)
  says(1, "mul: ", "gru", function(tensors) tensors["cotangent.y"] = mn.tensor { shape = { 7, 7, 7 } } end)
end)

t.test("what does not exist here is named, with status 2", function()
  local function config(key, value) return function(_, _, c) c[key] = value end end
  local function core(name) return function(_, meta) meta.core = name end end
  says(2, "unknown core 'gruu'; did you mean 'gru'", "gru", core "gruu")
  says(2, "unknown core 'hopfield'.*known: .*agalite.*gru", "gru", core "hopfield")
  says(2, "unknown core 'learn.dqn'.*known: .*a2c", "a2c", core "learn.dqn")
  says(2, "core 'attention/x' is not a name", "gru", core "attention/x")
  says(2, "unknown feature = 'dpfpp'", "galite_joint", config("feature", "dpfpp"))
  says(2, "unknown flow = 'gtrx'; did you mean 'gtrxl'", "galite_joint", config("flow", "gtrx"))
  says(2, "unknown update = 'deltas'", "galite_joint", config("update", "deltas"))
  says(2, "d_model = x, expected a number", "gru", config("d_model", "x"))
  says(2, "unknown core 'gruuu'", "a2c_train_gru", config("core", "gruuu"))
  says(0, "^ok", "gru", config("a_key_of_another_core", 3))
end)

t.test("metadata that is missing or makes no sense", function()
  local function meta(key, value) return function(_, m) m[key] = value end end
  says(1, "format 'x', expected mneme%-fixture%-1", "gru", meta("format", "x"))
  says(1, "format 'nil'", "gru", meta("format", nil))
  says(1, "the metadata lacks core, config or tolerance", "gru", meta("core", nil))
  says(1, "the metadata lacks core, config or tolerance", "gru", meta("config", nil))
  says(1, "the metadata lacks core, config or tolerance", "gru", meta("tolerance", nil))
  says(1, "the metadata lacks core, config or tolerance", "gru", meta("tolerance", "small"))
  says(1, "tolerance", "gru", meta("tolerance", "nan"))
  for _, text in ipairs { "{", "3", "[]", "null", '"gru"', "" } do
    for _, fixture in ipairs { "gru", "a2c", "adam", "a2c_train_gru" } do
      says(1, "config", fixture, meta("raw", text))
    end
  end
  says(1, "gamma", "a2c", function(_, _, c) c.gamma = nil end)
  says(1, "steps", "adam", function(_, _, c) c.steps = "many" end)
  says(1, "updates", "a2c_train_gru", function(_, _, c) c.updates = nil end)
end)

t.test("damaged files: status 1, whatever they would have asked for", function()
  local whole = files.read(root .. "gru.safetensors")
  local other = files.read(changed("gru", function(_, meta) meta.core = "no_such_core" end))
  for _, bytes in ipairs { whole, other } do
    for _, n in ipairs { 0, 1, 7, 8, 9, 100, 1000, #bytes - 4, #bytes - 1 } do
      files.write(path, { bytes:sub(1, n) })
      local status, said = run(path)
      t.eq(status, 1, ("cut to %d: %s"):format(n, said))
    end
    files.write(path, { bytes, "more" })
    t.eq(run(path), 1, "too long")
  end
  local seed = 1
  for _ = 1, 300 do                                    -- a byte of the header changed at random
    seed = (seed * 16807) % 2147483647
    local at = seed % 2000 + 1
    files.write(path, { whole:sub(1, at - 1), string.char((whole:byte(at) + 1 + seed % 255) % 256), whole:sub(at + 1) })
    local status = run(path)
    t.ok(status == 0 or status == 1 or status == 2)
  end
  t.eq(run(path .. ".gone"), 1)
end)

t.test("several files: one line each, and the worst status", function()
  local good, bad = root .. "gru.safetensors", changed("gru", function(tensors) tensors["output.y"]:fill(0) end)
  local status, said = run(good, bad, good)
  t.eq(status, 1)
  t.ok(said:find "^ok .*\nMISMATCH .*\nok .*\n$", said)
end)

os.remove(path)
