-- test_dropout.lua -- a core with dropout: it keeps the contract, trains, resumes bit for bit, and is evaluated without dropping.
local t = require "tests.harness"
local files = require "mneme.base.files"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"

local dir = shell.folder()
files.make_folder(dir .. "/cores")
files.write(dir .. "/cores/dropped.lua", { [[
local mn = require "mneme"
local nn = mn.nn
return {
  doc = "a GRU's gate behind dropout", source = "a test", config = { d_in = 16, d_model = 8, reset = true },
  build = function(cfg)
    local d = cfg.d_model
    local gate, value, drop = nn.linear(cfg.d_in, d, { act = "sigmoid" }), nn.linear(cfg.d_in, d), nn.dropout(0.3)
    local function step(x, h)
      local y = h + x.gate * (x.value - h)
      return y, y
    end
    return {
      module = nn.container { { "gate", gate }, { "value", value }, { "drop", drop } },
      d_out = d, states = { h = "[B,D]" }, sizes = { D = d }, complexity = { step = "2*D" }, reads = "vector",
      forward = function(x, done, state, probe)
        local z = gate(x)
        if probe then z = probe("gate", z) end
        local y, h = mn.recur(step, { x = { gate = z, value = drop(value(x)) }, state = state.h, done = cfg.reset and done or nil })
        return y, { h = h }
      end,
    }
  end,
}
]] })
files.write(dir .. "/train.lua", { [[
local mn = require "mneme"
local cfg = mn.config { steps = 1024, num_envs = 4, num_steps = 16, hidden = 8, lr = 1e-3, entropy_coef = 0.01 }
local env = mn.env("tmaze", { corridor = 3, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
return mn.a2c(cfg, env, mn.agent { env = env, core = mn.core { "dropped" }, hidden = cfg.hidden }):train()
]] })

local function run(words)
  local said = shell.fine(dir, words)
  return said
end

local function bytes_of(path)
  local all = {}
  for name, x in pairs(safetensors.read(path).tensors) do all[name] = require("ffi").string(x.data, x.bytes) end
  return all
end

t.test("a core with dropout keeps the contract of cores", function()
  t.ok(run("check core=cores/dropped.lua"):find "16 of 16", "properties hold")
end)

t.test("training with dropout resumes bit for bit, with any number of threads", function()
  run "run train.lua run=whole steps=2048 threads=1"
  run "run train.lua run=parts steps=1024 threads=1"
  run "run train.lua resume=parts steps=2048 threads=2"
  local whole, parts, n = bytes_of(dir .. "/whole/checkpoints/step-2048.safetensors"), bytes_of(dir .. "/parts/checkpoints/step-2048.safetensors"), 0
  t.ok(whole["random.generator"], "the generator is in the checkpoint")
  for name, bytes in pairs(whole) do
    t.ok(parts[name] == bytes, name)
    n = n + 1
  end
  t.ok(n > 10, n .. " tensors")
end)

t.test("a run that is loaded drops nothing", function()
  files.write(dir .. "/play.lua", { 'local mn = require "mneme"\nprint(mn.stepper.from_run("whole", {}).agent.module.training)\n' })
  t.ok(run("run play.lua"):find "^false")
end)

os.execute("rm -r '" .. dir .. "'")
