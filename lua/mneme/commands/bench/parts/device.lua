-- device.lua -- `mneme bench train|cores|kernels [NAME ...] device=cuda [precision=fp32|tf32|bf16] [num_envs=8,1024] [steps=256]
-- [rounds=5] [torch=PYTHON]`: how fast agents, cores and kernels train on a device, for several numbers of
-- environments; kernels next to PyTorch's and flash-linear-attention's, if torch= has them.  No bound is printed:
-- docs/results/gpu.md has what is expected of each GPU.
local published_agents = require "mneme.commands.bench.parts.published_agents"
local core = require "mneme.models.core"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local learning_speed = require "mneme.measure.learning_speed"
local kernels = require "mneme.commands.bench.parts.kernels"
local renamed = require "mneme.base.renamed"
local tables = require "mneme.base.tables"
local timing = require "mneme.measure.timing"
local mn = require "mneme"
local plan = require "mneme.tensor.plan"
local stopwatch = require "mneme.measure.stopwatch"
local tensor = require "mneme.tensor.tensor"
local progress = require "mneme.base.progress"
local ops = tensor.ops

local device = {}

-- Training on the T-Maze in the published sizes.
local function train(setup, num_envs, o)
  mn.manual_seed(1)
  local env = mn.env("tmaze", { corridor = 160, num_envs = num_envs, seed = 1 })
  local agent = mn.agent { env = env, core = mn.core(setup.core), hidden = 128 }
  local r = learning_speed.of(mn.a2c({ seed = 1, lr = setup.lr, bootstrap_truncated = 0, num_steps = o.steps }, env, agent), o.rounds)
  print(("%-18s %8d %12.0f %9.1f ms %9.1f ms"):format(setup.label or setup[1], num_envs, r.rate, 1e3 * r.act, 1e3 * r.update))
end

-- Forward and backward of one core.
local function pass(setup, num_envs, o)
  local options = { d_in = 16 }
  for key, value in pairs(setup.core) do if key ~= 1 then options[key] = value end end
  mn.manual_seed(1)
  local c = core.new(setup.core[1], options)
  local x = timing.fill(tensor.new { shape = { o.steps, num_envs, 16 } }, 1, 1)
  local state, y = c:initial(num_envs), nil
  local forward = plan(function() y = c(x, nil, state) return y end)
  forward()
  local backward = plan(function() ops.mean({ x = y }):backward() end)
  backward()
  local function seconds(p) return stopwatch.least(o.rounds, function() p:run() engine.wait() end) end
  local ahead, back = seconds(forward), seconds(backward)
  print(("%-18s %8d %12.0f %9.1f ms %9.1f ms"):format(setup.label or setup[1], num_envs, o.steps * num_envs / (ahead + back),
    1e3 * ahead, 1e3 * back))
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
  train = { train, "training, A2C on T-Maze", "act", "update" },
  cores = { pass, "cores alone", "forward", "backward" },
  kernels = { all_kernels, "kernels, one layer of 4 heads", "forward", "backward" },
}

local function whole(key, text)
  local n = tonumber(text)
  if not n or n < 1 or n % 1 ~= 0 then errors.usage(("%s=%s: expected a whole number of at least 1"):format(key, text)) end
  return n
end

---@param words string[] "train", names of published configurations, settings; the device is open already
---@return integer status
function device.main(words)
  local o, names, known, precision = { num_envs = { 8, 1024 }, steps = 256, rounds = 5 }, {}, {}, "fp32"
  local section = sections[words[1]] or errors.unknown("bench of a device", tostring(words[1]), tables.keys(sections))
  for i = 2, #words do
    local key, text = words[i]:match "^%-*([%w_]+)=(.*)$"
    if not key then names[words[i]] = true
    elseif key == "num_envs" or key == "copies" then
      if key == "copies" then renamed.note("copies=", "num_envs=") end
      o.num_envs = {}
      for n in text:gmatch "[^,]+" do o.num_envs[#o.num_envs + 1] = whole(key, n) end
    elseif key == "precision" then precision = text
    elseif key == "torch" and words[1] == "kernels" then o.torch = text
    elseif o[key] then o[key] = whole(key, text)
    elseif key ~= "device" then errors.unknown("setting of bench " .. words[1], key, { "device", "num_envs", "precision", "rounds", "steps", "torch" }) end
  end
  local all, chosen = words[1] == "kernels" and kernels.list or published_agents.list, {}
  for _, setup in ipairs(all) do
    known[setup[1]] = true
    if next(names) == nil or names[setup[1]] then chosen[#chosen + 1] = setup end
  end
  for name in pairs(names) do if not known[name] then errors.unknown("configuration", name, tables.keys(known)) end end
  engine.check(engine.C.mn_set_precision(engine.ctx, precision, "0"))
  print(("%s, device=%s, precision=%s, %d steps:"):format(section[2], engine.device, precision, o.steps))
  print(("%-18s %8s %12s %12s %12s"):format("", "num_envs", "steps/s", section[3], section[4]))
  if words[1] == "kernels" then
    for _, num_envs in ipairs(o.num_envs) do all_kernels(chosen, num_envs, o) end
    return 0
  end
  for _, setup in progress.each(chosen, "agents") do
    for _, num_envs in ipairs(o.num_envs) do
      section[1](setup, num_envs, o)
      tensor.clear_tape()
      collectgarbage()
    end
  end
  return 0
end

return device
