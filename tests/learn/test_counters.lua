-- test_counters.lua -- what counts is whole for as long as anything trains: past 2^24, where float32 stands still, 2^31 and 2^32.
local ffi = require "ffi"
local t = require "tests.harness"
local checkpoint_files = require "mneme.runs.checkpoint_files"
local engine = require "mneme.base.engine"
local optim = require "mneme.tensor.optim"
local learner_rig = require "tests.support.learner_rig"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local mn = require "mneme"

engine.open("cpu", 1)
local kinds = { "adam", "adamw", "radam", "sgd", "rmsprop" }
local function new(kind) return optim[kind]({ mn.zeros(3, { grad = true }) }, { lr = 0.1 }) end

local function at(opt, n)
  opt.steps_data[0], opt.steps_data[1] = n % 2 ^ 31, math.floor(n / 2 ^ 31)
  opt:settings()[opt.hyper:size() - 1] = n
end

t.test("every optimiser counts its updates past 2^24, 2^31 and 2^32, and goes on counting where it was stored", function()
  for _, kind in ipairs(kinds) do
    for _, from in ipairs { 0, 2 ^ 24 - 2, 2 ^ 31 - 2, 2 ^ 32 - 2, 2 ^ 40 } do
      local opt = new(kind)
      at(opt, from)
      for k = 1, 5 do
        opt:tick()
        t.eq(opt:updates(), from + k, kind)
      end
      local again = new(kind)
      again:load_state_dict(opt:state_dict())
      again:tick()
      t.eq(again:updates(), from + 6, kind)
    end
  end
end)

t.test("what an earlier version stored is loaded: its count is float32 alone", function()
  for _, kind in ipairs(kinds) do
    local opt, again, dict = new(kind), new(kind), {}
    for _ = 1, 7 do opt:tick() end
    for name, value in pairs(opt:state_dict()) do if not name:find "%.steps$" then dict[name] = value end end
    again:load_state_dict(dict)
    t.eq(again:updates(), 7)
    again:tick()
    t.eq(again:updates(), 8)
  end
end)

t.test("PPO draws another order in every epoch, however many updates came before", function()
  local n, seen = 16, {}
  local sequences = require "mneme.learn.minibatches" { pieces = { { rows = 1 } }, B = n }
  for _, from in ipairs { 0, 2 ^ 24, 2 ^ 31, 2 ^ 32, 2 ^ 40 } do
    for k = -2, 2 do
      sequences:shuffle(1, from + k + 2)
      local text = ffi.string(ffi.cast("char *", sequences.order), 4 * n)
      t.ok(not seen[text], ("update %.0f has the order of update %.0f"):format(from + k + 2, seen[text] or 0))
      seen[text] = from + k + 2
    end
  end
end)

-- Of a number that is whole in every checkpoint and grows by as much between any two: it counts.
local function counters_in_float32(run)
  local list, found, values = checkpoint_files.list(run), {}, {}
  t.ok(#list >= 4, #list)
  for k = 1, 4 do
    local file = safetensors.load(list[#list - 4 + k].path)
    for name, x in pairs(file.tensors) do
      local data = x:dtype() == "f32" and x:data()
      values[name] = values[name] or {}
      for i = 0, data and x:size() - 1 or -1 do
        values[name][i] = values[name][i] or {}
        values[name][i][k] = data[i]
      end
    end
  end
  for name, elements in pairs(values) do
    for _, v in pairs(elements) do
      local by = v[4] and v[2] - v[1]
      if by and by ~= 0 and v[1] % 1 == 0 and v[3] - v[2] == by and v[4] - v[3] == by then found[name] = true end
    end
  end
  return found
end

t.test("no checkpoint holds a counter in float32 that is nowhere whole", function()
  local dir = shell.folder()
  local small = " core=gru core.d_model=8 hidden=8 num_envs=2 num_steps=16 steps=320 checkpoint_every=32 keep_checkpoints=20 threads=1 quick=1 "
  local lines = { recall = "recall quick=1 steps=4000 checkpoint_every=400 keep_checkpoints=20 threads=1" }
  for name, class in pairs(learner_rig.learners()) do
    local epochs = class.defaults.minibatches and " minibatches=2 epochs=2" or ""
    lines[name] = ("tmaze learner=%s norm_obs=1 norm_reward=1 corridor=4%s%s"):format(name, epochs, small)
  end
  for name, line in pairs(lines) do
    shell.fine(dir, ("run %s run=%s"):format(line, name))
    local class = learner_rig.learners()[name]
    local found, hyper = counters_in_float32(dir .. "/" .. name), (class and class.optimiser or "adam") .. ".hyper"
    t.eq(found[hyper] or false, not class or class.defaults.adam_eps ~= nil, name .. ": its step is in " .. hyper .. ", which updates read; .steps is whole")
    found[hyper] = nil
    for counter in pairs(found) do t.ok(false, name .. ": " .. counter .. " counts in float32") end
  end
  os.execute("rm -rf '" .. dir .. "'")
end)
