-- test_gpu_train.lua -- device=... as one word: training on the emulated GPU leaves the parameters that
-- training on the CPU leaves, a run goes on from one device to the other, and what goes wrong is said.
local t = require "tests.harness"
local files = require "mneme.files"
local safetensors = require "mneme.safetensors"
local shell = require "tests.shell"

local dir = shell.folder()
files.write(dir .. "/train.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 6 }, learner = "a2c", num_envs = 3, num_steps = 6, hidden = 5, corridor = 3,
  adam_eps = 1e-4, lr = 1e-3, max_norm = 0.5, steps = 36, minibatches = 1, epochs = 1 }
local task = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { task = task, core = mn.core(cfg.core), hidden = cfg.hidden }
if cfg.learner == "a2c" then cfg.minibatches, cfg.epochs = nil, nil end
return mn[cfg.learner](cfg, task, agent):train()
]] })

local function mneme(words) return shell.mneme(dir, words:find "^check" and words or words .. " threads=1") end

-- What the last checkpoint of a run holds.
local function trained(words, name)
  local said, status = mneme(("run train.lua run=%s %s"):format(name, words))
  t.eq(status, 0, said)
  return safetensors.load(("%s/%s/checkpoints/step-%s.safetensors"):format(dir, name, words:match "steps=(%d+)" or 36)).tensors
end

-- To within a part of the largest number; what began as zeros has gone some steps of the learning rate, about 0.01.
local function compare(there, here, tolerance)
  local tensors = 0
  for name, want in pairs(here) do
    local got, worst, scale = there[name], 0, 1e-2
    t.ok(got, name .. " is missing")
    for k = 0, want:size() - 1 do
      local a, b = got:data()[k], want:data()[k]
      scale, worst = math.max(scale, math.abs(b)), t.larger(worst, a == b and 0 or math.abs(a - b))
    end
    t.ok(worst <= tolerance * scale, ("%s differs by %.2g, its largest number is %.2g"):format(name, worst, scale))
    tensors = tensors + 1
  end
  t.ok(tensors > 10, "there was nothing to compare")
end

local cores = {
  gru = "core=gru core.d_model=6",
  galite = "core=galite core.n_layers=1 core.d_model=6 core.d_head=4 core.d_ffn=5 core.n_heads=2 core.eta=2",
  agalite = "core=agalite core.n_layers=1 core.d_model=6 core.d_head=4 core.d_ffn=5 core.n_heads=2 core.eta=2 core.r=2",
  gtrxl = "core=gtrxl core.n_layers=1 core.d_model=6 core.d_head=4 core.d_ffn=5 core.n_heads=2 core.memory=4",
}
for name, words in pairs(cores) do
  t.test("gpu: updates by A2C of " .. name .. " are the CPU's", function()
    compare(trained(words .. " device=emu", name .. "-emu"), trained(words, name .. "-cpu"), 2e-5)
  end)
end

t.test("gpu: updates by PPO are the CPU's", function()
  compare(trained("learner=ppo device=emu", "ppo-emu"), trained("learner=ppo", "ppo-cpu"), 2e-5)
end)

t.test("gpu: a run goes on on the other device", function()
  local whole = trained("steps=72", "whole")
  trained("steps=36", "moved")
  local said, status = mneme "run resume=moved device=emu steps=72"
  t.eq(status, 0, said)
  compare(safetensors.load(dir .. "/moved/checkpoints/step-72.safetensors").tensors, whole, 2e-5)
end)

-- ---- what others computed ----

t.test("gpu: every fixture of other programs is met", function()
  local root, files_of = shell.root, {}
  for _, name in ipairs(files.list(root .. "tests/fixtures")) do
    if name:find "%.safetensors$" then files_of[#files_of + 1] = ("'%stests/fixtures/%s'"):format(root, name) end
  end
  local said = mneme("check device=emu " .. table.concat(files_of, " "))
  local met = 0
  for line in said:gmatch "[^\n]+" do
    t.ok(line:find "^ok ", line)
    met = met + 1
  end
  t.ok(met == #files_of and met > 80, said)
end)

-- ---- what goes wrong ----

t.test("gpu: out of memory says what was asked and what is free; the last checkpoint is whole", function()
  trained("steps=36", "full")
  local path = dir .. "/full/checkpoints/step-36.safetensors"
  local before = files.read(path)
  local said, status = shell.run(dir, ("EMU_MEMORY=200000 '%s' run resume=full device=emu steps=72 threads=1"):format(shell.program))
  t.eq(status, 1, said)
  t.ok(said:find "out of memory: [%d.]+ MB.*, [%d.]+ MB are free on device=emu", said)
  t.ok(files.read(path) == before, "the checkpoint was touched")
end)

t.test("gpu: a NaN is named by its op", function()
  local said, status = mneme "run train.lua run=nan device=emu lr=1e30 max_norm=0 steps=360"
  t.ok(status ~= 0 and said:find "training diverged at step %d+: [%w_]+: ", said)
end)

t.test("gpu: an unknown precision, and one that the CPU has not, are errors", function()
  local said, status = mneme "run train.lua run=none precision=fp8"
  t.ok(status == 2 and said:find "fp32, tf32", said)
  said, status = mneme "run train.lua run=none precision=tf32"
  t.ok(status ~= 0 and said:find "device=cpu computes in fp32", said)
end)

shell.run(dir, "rm -rf '" .. dir .. "'")
