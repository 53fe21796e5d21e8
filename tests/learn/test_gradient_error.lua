-- test_gradient_error.lua -- mn.measure.gradient_error: the error of a gradient in bf16 is that of rounding to 8 bits, of every learner, and
-- measuring it leaves the training as it is.
local t = require "tests.harness"
local mn = require "mneme"

local function acting(kind, core)
  return function()
    mn.manual_seed(3)
    local env = mn.env("tmaze", { corridor = 6, num_envs = 4, seed = 3 })
    local cfg = { num_steps = 16, seed = 3, steps = 1e4, emulate = "1" }
    if kind == "ppo" then cfg.minibatches = 2 end
    return mn[kind](cfg, env, mn.agent { env = env, core = core, hidden = 8 })
  end
end

local learners = {
  ["a2c, agalite"] = acting("a2c", { "agalite", n_layers = 1, d_model = 16, d_head = 8, d_ffn = 16 }),
  ["a2c, gtrxl"] = acting("a2c", { "gtrxl", n_layers = 1, d_model = 16, d_head = 8, d_ffn = 16, memory = 8 }),
  ["ppo, gru"] = acting("ppo", { "gru", d_model = 16 }),
  ["supervised"] = function()
    mn.manual_seed(3)
    local dataset = mn.dataset({ "mqar", length = 16, vocab = 16 }, { batch = 4, seed = 3, pairs = 2 })
    return mn.supervised({ emulate = "1", eval_every = 1e9 }, dataset, mn.sequence_model { dataset = dataset, core = mn.core { "gru", d_model = 16 } })
  end,
}

-- Its parameters and optimiser after some updates.
local function after(make, each)
  local learner = make()
  learner:begin()
  local measure = each and mn.measure.gradient_error.of(learner)
  for _ = 1, 4 do
    learner:advance()
    if each then each(measure()) end
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
    local measured = after(make, function(error) seen[#seen + 1] = error end)
    t.eq(#seen, 4)
    for _, error in ipairs(seen) do t.ok(error > 1e-4 and error < 0.3, error) end
    local plain = after(make)
    t.eq(#measured, #plain)
    for i = 1, #plain do t.ok(measured[i] == plain[i], i) end
  end)
end
