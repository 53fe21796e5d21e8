-- test_gradient_error.lua -- mn.measure.gradient_error: the error of a gradient in bf16 is that of rounding to 8 bits, of every learner, and
-- measuring it leaves the training as it is.
local t = require "tests.harness"
local learner_rig = require "tests.support.learner_rig"
local mn = require "mneme"

local function acting(class, core, settings)
  return function()
    mn.manual_seed(3)
    local env = mn.env("tmaze", { corridor = 6, num_envs = 4, seed = 3 })
    local cfg = { num_steps = 16, seed = 3, steps = 1e4, emulate = "1", minibatches = 2 }
    for key, value in pairs(settings or {}) do cfg[key] = value end
    return class(cfg, env, mn.agent { env = env, core = core, hidden = 8 })
  end
end

local learners = {
  ["a2c, agalite"] = acting(mn.a2c, { "agalite", n_layers = 1, d_model = 16, d_head = 8, d_ffn = 16 }),
  ["a2c, gtrxl"] = acting(mn.a2c, { "gtrxl", n_layers = 1, d_model = 16, d_head = 8, d_ffn = 16, memory = 8 }),
  ["pqn without a window"] = acting(mn.learners.pqn, { "gru", d_model = 16 }, { window = 0 }),
  ["supervised"] = function()
    mn.manual_seed(3)
    local dataset = mn.dataset({ "mqar", length = 16, vocab = 16 }, { batch = 4, seed = 3, pairs = 2 })
    return mn.supervised({ emulate = "1", eval_every = 1e9 }, dataset, mn.sequence_model { dataset = dataset, core = mn.core { "gru", d_model = 16 } })
  end,
}

-- Of those that the optimiser moves by a batch.
for name, class in pairs(learner_rig.learners "max_norm") do learners[name .. ", gru"] = acting(class, { "gru", d_model = 16 }) end

-- Its parameters and optimiser after some updates.
local function after(make, each)
  local learner = make()
  learner:begin()
  local measure = each and mn.measure.gradient_error.of(learner)
  for _ = 1, 4 do
    learner:advance()
    if each then each(measure(), learner) end
  end
  local list = {}
  for _, item in ipairs(learner.optimiser:contents()) do
    local x = item[2]
    for i = 0, x:size() - 1 do list[#list + 1] = tonumber(x:data()[i]) end
  end
  for _, p in ipairs(learner.optimiser.parameters) do for i = 0, p:size() - 1 do list[#list + 1] = p:data()[i] end end
  return list
end

for name, make in pairs(learners) do
  t.test(name .. ": the error is that of bfloat16, and training keeps its bits", function()
    local seen = {}
    local updates = 0
    local measured = after(make, function(error, learner)
      updates = updates + 1
      t.eq(error ~= nil, learner.optimiser:updates() > 0)        -- the first rollout of PQN with a window teaches nothing
      seen[#seen + 1] = error
    end)
    t.ok(updates == 4 and #seen >= 3)
    for _, error in ipairs(seen) do t.ok(error > 1e-4 and error < 0.3, error) end
    local plain = after(make)
    t.eq(#measured, #plain)
    for i = 1, #plain do t.ok(measured[i] == plain[i], i) end
  end)
end

t.test("a learner without batches is refused", function()
  t.fails(function() mn.measure.gradient_error.of(acting(mn.learners.stream, { "gru", d_model = 8 })()) end)
end)
