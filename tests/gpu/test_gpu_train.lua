-- test_gpu_train.lua -- device=... as one word: training on the GPU leaves the parameters that
-- training on the CPU leaves, a run goes on from one device to the other, and what goes wrong is said.
local t = require "tests.harness"
local files = require "mneme.base.files"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local device = require "tests.gpu.device"
local there = " device=" .. device.name

local dir = shell.folder()
files.write(dir .. "/train.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 6 }, learner = "a2c", num_envs = 3, num_steps = 6, hidden = 5, corridor = 3,
  adam_eps = 1e-4, lr = 1e-3, max_norm = 0.5, steps = 36, minibatches = 1, epochs = 1 }
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = mn.core(cfg.core), hidden = cfg.hidden }
if cfg.learner == "a2c" then cfg.minibatches, cfg.epochs = nil, nil end
return mn[cfg.learner](cfg, env, agent):train()
]] })

local function mneme(words) return shell.mneme(dir, words .. " threads=1") end

-- What the last checkpoint of a run holds.
local function trained(words, name)
  local said, status = mneme(("run train.lua run=%s %s"):format(name, words))
  t.eq(status, 0, said)
  return safetensors.load(("%s/%s/checkpoints/step-%s.safetensors"):format(dir, name, words:match "%f[%w_]steps=(%d+)" or 36)).tensors
end

-- To within a part of the largest number; what began as zeros has gone some steps of the learning rate, about 0.01.
local function compare(got_there, here, tolerance)
  local tensors = 0
  for name, want in pairs(here) do
    local got, worst, scale = got_there[name], 0, 1e-2
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
  rmt = "core=rmt core.n_layers=1 core.d_model=6 core.d_head=4 core.d_ffn=5 core.n_heads=2 core.mem_slots=2 core.segment=3",
}
for name, words in pairs(cores) do
  t.test("gpu: updates by A2C of " .. name .. " are the CPU's", function()
    compare(trained(words .. there, name .. "-gpu"), trained(words, name .. "-cpu"), 2e-5)
  end)
end

t.test("gpu: updates by PPO are the CPU's", function()
  compare(trained("learner=ppo" .. there, "ppo-gpu"), trained("learner=ppo", "ppo-cpu"), 2e-5)
end)

t.test("gpu: updates by PQN are the CPU's, and stream refuses a GPU", function()
  local words = "learner=pqn window=2 epsilon_decay=0.5 steps=90"
  compare(trained(words .. there, "pqn-gpu"), trained(words, "pqn-cpu"), 2e-5)
  for _, name in ipairs { "stream", "stream_q" } do
    local said, status = mneme(("run tmaze quick=1 learner=%s run=%s-gpu"):format(name, name) .. there)
    t.ok(status == 2 and said:find "learns after every step" and said:find "device=cpu", said)
  end
end)

cores.mingru = "core=mingru core.d_model=6 core.n_layers=2"
for _, learner in ipairs { "a2c", "ppo" } do
  for _, name in ipairs { "agalite", "mingru" } do
    t.test(("gpu: exact credit by %s, %s, is the CPU's"):format(learner, name), function()
      local words = ("learner=%s credit=exact steps=90 corridor=9 %s"):format(learner, cores[name])
      compare(trained(words .. there, learner .. name .. "-exact-gpu"), trained(words, learner .. name .. "-exact-cpu"), 2e-5)
    end)
  end
end

t.test("gpu: normalised observations and rewards are the CPU's", function()
  for _, learner in ipairs { "a2c", "ppo" } do
    local words = ("learner=%s norm_obs=1 norm_reward=1 num_steps=12 steps=72"):format(learner)
    compare(trained(words .. there, learner .. "-norm-gpu"), trained(words, learner .. "-norm-cpu"), 2e-5)
  end
end)

-- How far a first update's gradient (of which Adam then holds a part) is from another, as a part of its length.
local function distance(got_there, here)
  local off, length = 0, 0
  for name, want in pairs(here) do
    for k = 0, name:find "^adam%.m" and want:size() - 1 or -1 do
      off, length = off + (got_there[name]:data()[k] - want:data()[k]) ^ 2, length + want:data()[k] ^ 2
    end
  end
  return math.sqrt(off / length)
end

-- tf32 rounds by up to 2^-11, bf16 by up to 2^-9; what else is not cuBLAS's stays as it is.
for _, name in ipairs { "gru", "agalite", "gtrxl" } do
  local words = cores[name]
  t.test("gpu: an update of " .. name .. " in tf32 is within 1e-3 of float32's, one in bf16 within 1e-2, and neither is float32's", function()
    local wider = words:gsub("d_model=6", "d_model=16"):gsub("d_head=4", "d_head=8") .. " hidden=16 num_envs=4 num_steps=32 steps=128" .. there
    local whole = trained(wider, name .. "-fp32")
    local tf32 = distance(trained(wider .. " precision=tf32", name .. "-tf32"), whole)
    local bf16 = distance(trained(wider .. " precision=bf16", name .. "-bf16"), whole)
    t.ok(1e-5 < tf32 and tf32 < 1e-3, ("tf32 is off by %.2g"):format(tf32))
    -- cuBLAS may answer a small product asked for in bf16 with a finer one; the emulator rounds all
    t.ok((device.emulated and 2 * tf32 or 1e-5) < bf16 and bf16 < 1e-2, ("bf16 is off by %.2g"):format(bf16))
  end)
end

t.test("gpu: a run goes on on the other device", function()
  local whole = trained("steps=72", "whole")
  trained("steps=36", "moved")
  local said, status = mneme("run resume=moved steps=72" .. there)
  t.eq(status, 0, said)
  compare(safetensors.load(dir .. "/moved/checkpoints/step-72.safetensors").tensors, whole, 2e-5)
end)

-- ---- what others computed ----

t.test("gpu: every second fixture of other programs is met", function()
  local root, files_of = shell.root, {}
  for i, name in ipairs(files.list(root .. "tests/fixtures")) do
    if i % 2 == 0 and name:find "%.safetensors$" then files_of[#files_of + 1] = ("'%stests/fixtures/%s'"):format(root, name) end
  end
  local met, some = 0, 8                                     -- a process: the emulation guards each block of memory, which takes long for many
  for i = 1, #files_of, some do
    local list = table.concat(files_of, " ", i, math.min(i + some - 1, #files_of))
    for line in shell.run(dir, ("luajit '%stests/support/fixtures.lua'%s %s"):format(root, there, list)):gmatch "[^\n]+" do
      if not line:find "^about " then                        -- how long the rest takes, on a slow machine
        t.ok(line:find "^ok ", line)
        met = met + 1
      end
    end
  end
  t.ok(met == #files_of and met > 40, ("%d of %d files were met"):format(met, #files_of))
end)

-- ---- what goes wrong ----

t.test("gpu: out of memory says what was asked and what is free; the last checkpoint is whole", function()
  if not device.emulated then t.skip "only the emulator can be such a GPU" end
  trained("steps=36", "full")
  local path = dir .. "/full/checkpoints/step-36.safetensors"
  local before = files.read(path)
  local said, status = shell.run(dir, ("EMU_MEMORY=100000 '%s' run resume=full device=emu steps=72 threads=1"):format(shell.program))
  t.eq(status, 1, said)
  t.ok(said:find "out of memory: [%d.]+ MB.*, [%d.]+ MB are free on device=emu", said)
  t.ok(files.read(path) == before, "the checkpoint was touched")
end)

t.test("gpu: a NaN is named by its op", function()
  local said, status = mneme("run train.lua run=nan lr=1e30 max_norm=0 steps=360" .. there)
  t.ok(status ~= 0 and said:find "training diverged at step %d+: [%w_]+: ", said)
end)

t.test("gpu: one that is too old says what it is and what was expected", function()
  if not device.emulated then t.skip "only the emulator can be such a GPU" end
  local said, status = shell.run(dir, ("EMU_CAPABILITY=75 '%s' run train.lua run=none device=emu"):format(shell.program))
  t.eq(status, 2, said)
  t.ok(said:find("device=emu: a GPU of compute capability 7.5, expected 8.0 or newer", 1, true), said)
end)

t.test("gpu: one whose memory the host may not touch while it works is refused", function()
  if not device.emulated then t.skip "only the emulator can be such a GPU" end
  local said, status = shell.run(dir, ("EMU_APART=1 '%s' run train.lua run=none device=emu"):format(shell.program))
  t.eq(status, 2, said)
  t.ok(said:find("device=emu: a GPU that does not share managed memory with the host while it works", 1, true), said)
end)

t.test("gpu: an unknown precision, and one that the CPU has not, are errors", function()
  local said, status = mneme "run train.lua run=none precision=fp8"
  t.ok(status == 2 and said:find "fp32, tf32", said)
  said, status = mneme "run train.lua run=none precision=tf32"
  t.ok(status ~= 0 and said:find "device=cpu computes in fp32 or bf16", said)
end)

shell.run(dir, "rm -rf '" .. dir .. "'")
