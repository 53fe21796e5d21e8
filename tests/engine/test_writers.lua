-- test_writers.lua -- whatever writes into a tensor that a script may hold: a graph that used its values refuses backward.
local t = require "tests.harness"
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local ranks = require "mneme.tensor.ranks"
local C, ctx = engine.C, engine.ctx

local function version(x) return C.mn_tensor_version(ctx, x) end
local function bytes(x) return ffi.string(x:data(), x:size() * (x:dtype() == "u8" and 1 or 4)) end

local function bandit()
  return mn.env { name = "bandit", observation = { 2 }, actions = 2, num_envs = 2, seed = 1, time_limit = 2,
    reset = function(_, random) return { random(), random() } end,
    step = function(_, action, random) return { random(), random() }, action + random(), false, action end }
end

-- Each gives the tensors that `write` changes.
local writers = {
  fill = function() local x = mn.zeros(3) return { x }, function() x:fill(5) end end,
  copy = function() local x = mn.zeros(3) return { x }, function() x:copy(mn.ones(3)) end end,
  ["keep into"] = function() local x = mn.zeros(3) return { x }, function() mn.keep(mn.ones(3), x) end end,
  ["x[i] = number"] = function() local x = mn.zeros(3) return { x }, function() x[2] = 5 end end,
  ["x[i] = list"] = function() local x = mn.zeros(3, 2) return { x }, function() x[2] = { 5, 6 } end end,
  ["a window's fill"] = function()
    local x = mn.zeros(3)
    return { x }, function() require("mneme.tensor.tensor").view(x, 1, { 2 }):fill(4) end
  end,
  load_state_dict = function()
    local net = mn.nn.linear(2, 2)
    return { net:state_dict().weight }, function() net:load_state_dict { weight = mn.full({ 2, 2 }, 7), bias = mn.zeros(2) } end
  end,
  manual_seed = function() mn.rand(1) return { require("mneme.tensor.random").state() }, function() mn.manual_seed(77) end end,
  ["a draw"] = function() mn.rand(1) return { require("mneme.tensor.random").state() }, function() mn.rand(1) end end,
  ["a plan's own inputs"] = function()
    local own
    local p = mn.plan(function(x) own = x return x * 2 end)
    p(mn.zeros(3)) p(mn.ones(3))
    return { own }, function() p(mn.full({ 3 }, 2)) end
  end,
  ["a plan's results"] = function()
    local x = mn.zeros(3)
    local p = mn.plan(function(v) return v + 1 end)
    local y = p(x)
    return { y }, function() x:fill(4) p:run() end
  end,
  ["fill of a plan's result"] = function() local y = mn.plan(function(v) return v + 1 end)(mn.zeros(3)) return { y }, function() y:fill(3) end end,
  ["copy in a plan"] = function()
    local x, from = mn.zeros(3), mn.ones(3)
    local p = mn.plan(function() x:copy(from) end)
    p()
    return { x }, function() from:fill(3) p:run() end
  end,
  ["mn.grad in a plan"] = function()
    local x = mn.ones(3, { grad = true })
    local p = mn.plan(function() return mn.grad((x * x):sum(), x) end)
    local g = p()
    return { g }, function() x:fill(3) p:run() end
  end,
  ranks_take = function() local x = mn.zeros(3) return { x }, function() ranks.take({ "x", x }, mn.ones(3)) end end,
  ["dataset:fill"] = function()
    local set = mn.dataset("copy", { batch = 2 })
    local into = set:buffers()
    set:fill(into, "train", 0)
    return { into.token, into.answer }, function() set:fill(into, "train", 1) end
  end,
}
for _, name in ipairs { "adam", "adamw", "radam", "sgd", "rmsprop" } do
  writers[name .. ":step"] = function()
    local w = mn.ones(3, { grad = true })
    local opt = mn[name]({ w }, { lr = 0.1 })
    return { w }, function() (w * w):sum():backward() opt:step() end
  end
  writers[name .. " in a plan"] = function()
    local w = mn.ones(3, { grad = true })
    local opt = mn[name]({ w }, { lr = 0.1 })
    local p = mn.plan(function()
      opt:zero_grad();
      (w * w):sum():backward()
      opt:apply()
    end)
    opt:tick() p()
    return { w }, function() opt:tick() p:run() end
  end
end
for kind, make in pairs { tmaze = function() return mn.env("tmaze", { corridor = 4, num_envs = 2, seed = 1, time_limit = 2 }) end, script = bandit } do
  writers[kind .. ": reset"] = function()
    local env = make()
    local obs = env:reset(1) env:step { 1, 1 } env:step { 0, 1 }
    obs:copy(mn.full(obs:shape(), 9, { dtype = obs:dtype() }))
    return { obs }, function() env:reset(2) end
  end
  writers[kind .. ": step"] = function()
    local env = make()
    env:reset(1)
    local obs, reward, terminated, truncated, info = env:step { 1, 0 }
    for _, x in ipairs { obs, reward, terminated, truncated, info.final_obs, info.length } do x:fill(9) end
    return { obs, reward, terminated, truncated, info.final_obs, info.length }, function() env:step { 0, 1 } end
  end
  writers[kind .. ": restore"] = function()
    local env = make()
    local obs = env:reset(1)
    local saved = env:save(0)
    obs:fill(9)
    return { obs }, function() env:restore(1, saved) end
  end
end

t.test("every writer of a tensor raises its version, and so does not change a gradient in silence", function()
  for name, make in pairs(writers) do
    local changed, write = make()
    local before, versions = {}, {}
    for i, x in ipairs(changed) do before[i], versions[i] = bytes(x), version(x) end
    write()
    for i, x in ipairs(changed) do
      t.ok(bytes(x) ~= before[i], ("%s: tensor %d did not change, so that this shows nothing"):format(name, i))
      t.ok(version(x) > versions[i], ("%s: tensor %d changed without a new version"):format(name, i))
    end
    mn.clear_tape()
  end
end)

t.test("ops that work in place say which inputs they write", function()
  local op_cases = require "tests.support.op_cases"
  op_cases.each(function(name, hints, op)
    local case = op_cases.make(name, hints[1])
    local leaves, was = op_cases.leaves(ctx, case, true), {}
    local function of(i, x) return ffi.string(C.mn_tensor_data(ctx, leaves + (i - 1)), x.n * (x.dtype == C.MN_U8 and 1 or 4)) end
    for i, x in ipairs(case.inputs) do if x.given then was[i] = { of(i, x), version(leaves[i - 1]) } end end
    op_cases.apply(ctx, op, case, leaves)
    for i, x in ipairs(case.inputs) do
      if was[i] and of(i, x) ~= was[i][1] then t.ok(version(leaves[i - 1]) > was[i][2], name .. ": it changes " .. x.name .. " unsaid") end
    end
    op_cases.free(ctx, case, leaves)
    mn.clear_tape()
  end)
end)

t.test("value(obs), env:step, backward is refused, and with mn.keep it is not", function()
  local env = mn.env("tmaze", { corridor = 4, num_envs = 2, seed = 1 })
  local value = mn.nn.linear(env.observation_space.shape[1], 1)
  local function loss(keep)
    local obs, sum = env:reset(1), 0
    for _ = 1, 3 do
      sum = sum + value(keep and mn.keep(obs) or obs):sum()
      obs = env:step { 3, 3 }
    end
    return sum
  end
  loss(true):backward()
  t.fails(function() loss(false):backward() end)
  mn.clear_tape()
end)

t.test("a plan's results that were used, and what a plan read, may not change before backward", function()
  local w, x = mn.ones(2, { grad = true }), mn.ones(2)
  local p = mn.plan(function(v) return (v * w):exp() end)
  local y = p(x)
  local loss = (y * y):sum()
  p:run()
  t.fails(function() loss:backward() end)
  loss = (y * y):sum()
  x:fill(2)
  t.fails(function() loss:backward() end)
  p:run()
  loss = y:sum()
  y:fill(0)
  t.fails(function() loss:backward() end)
  p:run()
  loss = (y * w):sum()
  loss:backward()
  mn.clear_tape()
end)

t.test("what was computed is not written into: the message says what to write", function()
  local x = mn.zeros(2, 3)
  for name, part in pairs { row = x[1], slice = x:slice(0, 0, 1), transpose = x:transpose(0, 1), reshape = x:reshape(6), result = x * 2 } do
    for _, f in ipairs { function() part:fill(7) end, function() part:copy(part) end, function() part[1] = 7 end } do
      local ok, problem = pcall(f)
      t.ok(not ok and tostring(problem):find("write x[i] = v into a leaf", 1, true), name .. ": " .. tostring(problem))
    end
  end
  t.eq(x:sum():item(), 0)
end)

t.test("an input marked ~ is refused where it wants a gradient", function()
  local tensor = require "mneme.tensor.tensor"
  local n = 0
  for name, s in pairs(tensor.signatures) do
    for _, a in ipairs(s.inputs) do
      if a.no_grad and name ~= "custom_gradient" then n = n + 1 end
    end
  end
  t.ok(n >= 8, "fewer than there were")
  t.fails(function()
    mn.ppo_loss { logits = mn.zeros(1, 1, 2), values = mn.zeros(1, 1), actions = mn.zeros(1, 1, { dtype = "i32" }), old_log_probs = mn.zeros(1, 1),
      old_values = mn.zeros(1, 1), advantages = mn.zeros(1, 1, { grad = true }), returns = mn.zeros(1, 1) }
  end)
end)
