-- test_exact_credit.lua -- credit=exact: the gradient of a rollout is that of the same losses by backpropagation from the first step of all,
-- for A2C and PPO; and what it does not go with.
local ffi = require "ffi"
local t = require "tests.harness"
local learner_rig = require "tests.support.learner_rig"
local mn = require "mneme"
local ops = require("mneme.tensor.tensor").ops

local STEPS, ROLLOUTS = 6, 4
local settings = { num_steps = STEPS, lr = 0, credit = "exact", time_limit = 40, corridor = 20, epochs = 1, minibatches = 1, previous = "action,reward" }

local function make(name, case)
  return learner_rig.learner(mn[name], case, settings, { n_layers = 1 })
end

-- Copies of several rollouts one after another, [rollouts * T, B, ...].
local function joined(list)
  local shape = list[1]:shape()
  local bytes, all = list[1]:size() * (list[1]:dtype() == "u8" and 1 or 4), { unpack(shape) }
  all[1] = #list * shape[1]
  local x = mn.tensor { shape = all, dtype = list[1]:dtype() }
  for i, part in ipairs(list) do ffi.copy(ffi.cast("char *", x:data()) + (i - 1) * bytes, part:data(), bytes) end
  return x
end

local function first_rows(x)
  local shape = x:shape()
  shape[1] = STEPS
  local y = mn.tensor { shape = shape, dtype = x:dtype() }
  ffi.copy(y:data(), x:data(), y:size() * (x:dtype() == "u8" and 1 or 4))
  return y
end

-- One layer: of a memory's own rows exact is exact.  The loss of the last rollout, with the agent run from the first one's beginning.
local function whole(l, seen)
  local previous = { action = joined(seen.action), reward = joined(seen.reward) }
  local logits, values = l.agent(joined(seen.x), joined(seen.resets), l.agent.core:initial(l.B), nil, previous)
  local from = (ROLLOUTS - 1) * STEPS
  logits, values = ops.slice(logits, { from = from }), ops.slice(values, { from = from })
  local policy = l.agent:distribution(logits)
  if l.what == "a2c" then
    local all = ops.concat(values, mn.tensor { shape = { 1, l.B } }, { axis = 0 })     -- a last row without a gradient
    return (ops.a2c_loss { logits = ops.concat(logits, mn.tensor { shape = { 1, l.B, l.agent.actions } }, { axis = 0 }), values = all,
      returns = l.returns:detach(), actions = l.played, entropy_coef = l.entropy_coef, value_coef = l.value_coef })
  end
  return (l:loss { policy = policy, values = values, actions = l.played, old_log_probs = l.log_probs:detach(), old_values = l.values:detach(),
    advantages = l.advantages:detach(), returns = l.returns:detach() })
end

for _, name in ipairs { "a2c", "ppo" } do
  for _, core in ipairs { "mingru", "lru", "agalite_long", "gated_linear", "gla" } do
    t.test(("%s: a rollout's gradient reaches the first step of all (%s)"):format(name, core), function()
      local l = make(name, core)
      local seen = { x = {}, resets = {}, action = {}, reward = {} }
      for i = 1, ROLLOUTS do
        l:rollout()
        for key, x in pairs { x = l.inputs, resets = l.resets, action = l.previous.action, reward = l.previous.reward } do seen[key][i] = first_rows(x) end
        t.ok(l:update())
        if i < ROLLOUTS then l.past:move_on() end
      end
      local with_past, leaves = {}, {}
      local parameters = l.agent:parameters()
      for i, p in ipairs(parameters) do with_past[i] = ffi.string(p:grad():data(), 4 * p:size()) end
      l.optimiser:zero_grad()
      whole(l, seen):backward()
      for _, kind in ipairs(l.past.kinds) do
        for _, leaf in pairs { kind.weight or false, kind.bias or false, kind.before or false } do
          if leaf then leaves[tostring(ffi.cast("void *", leaf:data()))] = true end
        end
      end
      local scale, most, compared = 0, 0, 0
      for i, p in ipairs(parameters) do
        if leaves[tostring(ffi.cast("void *", p:data()))] then
          local a, b = ffi.cast("const float *", with_past[i]), p:grad():data()
          for k = 0, p:size() - 1 do scale, most, compared = math.max(scale, math.abs(b[k])), math.max(most, math.abs(a[k] - b[k])), compared + 1 end
        end
      end
      t.ok(compared > 0 and scale > 0)
      t.near(most / scale, 0, 2e-5)
      mn.clear_tape()
    end)
  end
end

t.test("what it takes is said before training: memory, and multiply-adds of a step", function()
  local l = make("a2c", "mingru")
  local N, R = l.agent.core.config.d_model, l.agent.core.config.d_in + 1               -- two kinds of rows, each with a bias
  local mib, adds = l:headline():match "credit=exact by ([%d.]+) MiB of sensitivities: ([%d.]+k?) multiply%-adds a step beside"
  t.eq(mib, ("%.1f"):format(l.B * 2 * N * R * 4 / 2 ^ 20))
  t.near(tonumber((adds:gsub("k", "e3"))), 2 * N * R, N * R / 100)
  mn.clear_tape()
end)

for _, name in ipairs { "a2c", "ppo" } do
  for _, core in ipairs { "gru", "agalite", "gtrxl" } do
    t.test(("%s: credit=trace is gradients of one step (%s)"):format(name, core), function()
      local function after(set)
        set.num_steps, set.minibatches, set.num_envs = STEPS, name == "ppo" and 2 or nil, 4
        local l = learner_rig.learner(mn[name], core, set)
        for _ = 1, ROLLOUTS do
          l:rollout()
          t.ok(l:update())
        end
        mn.clear_tape()
        return table.concat(learner_rig.parameters(l))
      end
      local traced = after { credit = "trace" }
      t.ok(traced == after { horizon = 1 })
      t.ok(traced ~= after {})
    end)
  end
end

t.test("what cuts rollouts apart does not go with it, nor a core without sensitivities", function()
  local function learner(cfg, core)
    setmetatable(cfg, { __index = function(_, key) return key == "credit" and "exact" or nil end })
    return function() learner_rig.learner(mn.a2c, core or "mingru", cfg) end
  end
  t.fails(learner { horizon = 4, credit = "exact" })
  t.fails(learner { carry = false, credit = "exact" })
  t.fails(learner({ credit = "exact" }, "gru"))
  t.fails(learner { credit = "all" })
end)
