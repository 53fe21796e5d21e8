-- test_norms.lua -- gradients whose squares float32 does not hold: their norm, clipping, and steps that are left out; arguments of
-- distributions.
local t = require "tests.harness"
local mn = require "mneme"
local optimisers = { "adam", "adamw", "radam", "sgd", "rmsprop" }

local function step(opt, w, g)
  opt:zero_grad();
  (w * mn.full(w:shape(), g)):sum():backward()
  opt:step()
end

t.test("the norm of gradients is right from the smallest to the largest of float32, over several leaves", function()
  for _, g in ipairs { 1e-30, 1e-23, 1e-20, 1e-12, 1, 1e18, 2e19, 1e25, 1e37 } do
    local a, b = mn.ones(3, { grad = true }), mn.ones(3000, { grad = true })
    local opt = mn.sgd({ a, b }, { lr = 0 })
    local loss = (a * g):sum() + (b * (g / 7)):sum()
    loss:backward()
    opt:step()
    local want = g * math.sqrt(3 + 3000 / 49)
    t.near(opt:grad_norm() / want, 1, 1e-6, "norm of " .. g)
    t.near(opt:grad_norms({ "a", "b" }).a / (g * math.sqrt(3)), 1, 1e-6)
    t.eq(opt:steps_left_out(), 0)
  end
end)

t.test("enormous gradients are clipped, not left out", function()
  for _, name in ipairs(optimisers) do
    local w = mn.ones(4, { grad = true })
    local opt = mn[name]({ w }, { lr = 0.1, max_norm = 1 })
    step(opt, w, 1e20)
    t.eq(opt:steps_left_out(), 0, name)
    t.ok(w:at(1) < 0.96, name .. ": " .. w:at(1))
  end
end)

t.test("a step without a finite norm, or whose squares overflow, is left out, counted, and the next goes on", function()
  for _, name in ipairs(optimisers) do
    for _, g in ipairs { math.huge, 0 / 0, 3e38 } do
      local w = mn.ones(4, { grad = true })
      local opt = mn[name]({ w }, { lr = 0.1 })
      step(opt, w, g)
      t.eq(opt:steps_left_out(), 1, name)
      t.eq(w:at(1), 1, name)
      step(opt, w, 1)
      t.eq(opt:steps_left_out(), 1, name)
      t.ok(w:at(1) < 1, name .. " moves again")
      local m = {}
      opt:metrics(m, { "w" })
      t.eq(m["grad/steps_left_out"], 1)
    end
  end
end)

t.test("ppo_loss: one advantage, or equal ones, are not normalised to nothing", function()
  for _, n in ipairs { 1, 5 } do
    local logits = mn.zeros({ 1, n, 2 }, { grad = true })
    local function zeros() return mn.zeros(1, n) end
    local loss = mn.ppo_loss { logits = logits, values = zeros(), actions = mn.zeros({ 1, n }, { dtype = "i32" }),
      old_log_probs = mn.full({ 1, n }, math.log(0.5)), old_values = zeros(), advantages = mn.full({ 1, n }, 0.7), returns = zeros() }
    loss:backward()
    t.near(logits:grad():data()[0], -0.35 / n, 1e-6)
    mn.clear_tape()
  end
end)

t.test("categorical: inf where q rules out what p does not, 0 where p does, and nothing is drawn where nothing can be", function()
  local inf = math.huge
  local p, q = mn.categorical(mn.tensor { { 0, 0, -inf } }), mn.categorical { probs = mn.tensor { { 0.25, 0.25, 0.5 } } }
  t.near(p:kl(q):item(), math.log(2), 1e-6)
  t.eq(q:kl(p):item(), inf)
  t.eq(p:kl(p):item(), 0)
  t.eq(q:kl(mn.categorical { probs = mn.tensor { { 0.5, 0.5, 0 } } }):item(), inf)
  for _, row in ipairs { { -inf, -inf }, { 0 / 0, 0 }, { inf, 0 }, { 0, 0 / 0 } } do
    t.fails(function() mn.categorical(mn.tensor { { 0, 0 }, row }):sample() end)
  end
  for _, probs in ipairs { { -0.5, 1.5 }, { 0, 0 }, { 0 / 0, 1 }, { inf, 1 } } do
    t.raises(function() mn.categorical { probs = mn.tensor(probs) } end, "categorical: probs")
  end
  t.fails(function() mn.bernoulli { probs = mn.tensor { 0.5, 1.5 } } end)
  t.raises(function() mn.bernoulli(mn.tensor { 0 / 0 }):sample() end, "expected a number")
  t.fails(function() mn.normal(0, -1) end)
  t.raises(function() mn.normal(0 / 0, 1) end, "mean%[0%]")
end)

t.test("plans that nobody holds are freed while more are made", function()
  local engine = require "mneme.base.engine"
  local most = 0
  for _ = 1, 300 do
    mn.plan(function(x) return (x * 2):sum() end)(mn.zeros(10000))
    most = math.max(most, engine.C.mn_bytes(engine.ctx, "plan"))
  end
  t.ok(most < 60 * 50000, most .. " bytes of plans")
end)
