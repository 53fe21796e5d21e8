-- device.lua -- `mneme bench train|kernels device=cuda`.
local lazy = require "mneme.base.lazy"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local learning_speed = lazy "mneme.insight.measure.learning_speed"
local kernels = lazy "mneme.commands.bench.parts.kernels"
local tables = require "mneme.base.tables"
local mn = lazy "mneme"
local tensor = lazy "mneme.tensor.tensor"
local progress = require "mneme.base.progress"
local options = require "mneme.commands.options"
local device = { name = "bench train|kernels",
  doc = "how fast agents and kernels train on a device, for several numbers of environments", about = [[
Kernels next to PyTorch's and flash-linear-attention's, if torch= has them.  No bound is printed: docs/results/gpu.md has what is expected of each
GPU.]],
  arguments = { { "names", "NAME", "agents or kernels", noun = "configuration", several = true, optional = true } },
  options = {
    options.common.device,
    { "num_envs", "environments", type = "wholes", range = { 1 }, default = { 8, 1024 }, example = "8,1024" },
    { "precision", "of matrix products", type = "choice", choices = { "fp32", "tf32", "bf16" }, default = "fp32" },
    { "steps", "steps of a rollout", type = "whole", range = { 1 }, default = 256 }, options.bench.rounds, options.bench.torch,
  } }

-- Training on the T-Maze in the published sizes.
local function train(setup, num_envs, o)
  mn.manual_seed(1)
  local env = mn.env("tmaze", { corridor = 160, num_envs = num_envs, seed = 1 })
  local agent = mn.agent { env = env, core = mn.core(setup.core), hidden = 128 }
  local r = learning_speed.of(mn.a2c({ seed = 1, lr = setup.lr, bootstrap_truncated = 0, num_steps = o.steps }, env, agent), o.rounds)
  print(("%-18s %8d %12.0f %9.1f ms %9.1f ms"):format(setup.label or setup[1], num_envs, r.rate, 1e3 * r.act, 1e3 * r.update))
end

-- Kernels, one layer of 4 heads, with every other form beside them.
local function all_kernels(list, num_envs, o)
  local others = {}
  if o.torch then
    kernels.torch(o.torch, ("%d %d"):format(o.steps, num_envs), "bench_gpu.py", function(name, ms, form)
      others[name] = (others[name] or "") .. ("  %s %.2f ms"):format(form, ms)
    end)
  end
  kernels.sized(o.steps, num_envs)
  for _, k in progress.each(list, "kernels") do
    local ahead, back = kernels.on_device(k, o.rounds)
    print(("%-18s %8d %12.0f %9.2f ms %9.2f ms%s"):format(k[1], num_envs, o.steps * num_envs / (ahead + back), 1e3 * ahead, 1e3 * back,
      others[k[1]] or ""))
  end
end

local sections = {
  train = { "training, A2C on T-Maze", "act", "update" },
  kernels = { "kernels, one layer of 4 heads", "forward", "backward" },
}

---@param o table the options, and part = "train" or "kernels"
function device.run(o)
  local section, all = sections[o.benchmark], o.benchmark == "kernels" and kernels.list or published_agents.list
  engine.open(o.device, 1)
  local known = tables.map(all, function(setup) return setup[1] end)
  for _, name in ipairs(o.names) do if not tables.has(known, name) then errors.unknown("configuration", name, known) end end
  local chosen = tables.map(all, function(setup) return (not o.names[1] or tables.has(o.names, setup[1])) and setup or nil end)
  engine.check(engine.C.mn_set_precision(engine.ctx, o.precision, "0"))
  print(("%s, device=%s, precision=%s, %d steps:"):format(section[1], engine.device, o.precision, o.steps))
  print(("%-18s %8s %12s %12s %12s"):format("", "num_envs", "steps/s", section[2], section[3]))
  if o.benchmark == "kernels" then
    for _, num_envs in ipairs(o.num_envs) do all_kernels(chosen, num_envs, o) end
    return 0
  end
  for _, setup in progress.each(chosen, "agents") do
    for _, num_envs in ipairs(o.num_envs) do
      train(setup, num_envs, o)
      tensor.clear_tape()
      collectgarbage()
    end
  end
  return 0
end

return device
