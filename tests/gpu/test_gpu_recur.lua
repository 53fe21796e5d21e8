-- test_gpu_recur.lua -- mn.recur on the GPU: the same training as on the CPU, for the cores that are written with it.
local t = require "tests.harness"
local files = require "mneme.base.files"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local device = require "tests.gpu.device"

local dir = shell.folder()
files.write(dir .. "/train.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "rnn", d_model = 6 }, num_envs = 3, num_steps = 6, hidden = 5, corridor = 3, adam_eps = 1e-4, lr = 1e-3,
  max_norm = 0.5, steps = 36 }
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
return mn.a2c(cfg, env, mn.agent { env = env, core = mn.core(cfg.core), hidden = cfg.hidden }):train()
]] })

local function trained(words, where)
  local name = where .. "-" .. words:gsub("%W", "")
  local said, status = shell.mneme(dir, ("run train.lua run=%s threads=1 device=%s %s"):format(name, where, words))
  t.eq(status, 0, said)
  return safetensors.load(("%s/%s/checkpoints/step-36.safetensors"):format(dir, name)).tensors
end

for _, words in ipairs { "core=rnn core.d_model=6", "core=slstm core.d_model=6", "core=ntm core.d_model=6 core.slots=4 core.width=3" } do
  t.test("gpu: updates of " .. words .. " are the CPU's", function()
    local there, here, tensors = trained(words, device.name), trained(words, "cpu"), 0
    for name, want in pairs(here) do
      local got, worst, scale = t.ok(there[name], name), 0, 1e-2
      for k = 0, want:size() - 1 do
        local a, b = got:data()[k], want:data()[k]
        scale, worst = math.max(scale, math.abs(b)), t.larger(worst, a == b and 0 or math.abs(a - b))
      end
      t.ok(worst <= 2e-5 * scale, ("%s differs by %.2g, its largest number is %.2g"):format(name, worst, scale))
      tensors = tensors + 1
    end
    t.ok(tensors > 10, "there was nothing to compare")
  end)
end

os.execute("rm -r '" .. dir .. "'")
