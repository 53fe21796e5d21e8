-- test_cores.lua -- the contract of a memory (lua/mneme/models/contract.lua), over every core found and corners of axes.
local t = require "tests.harness"
local contract = require "mneme.models.contract"
local cores = require "mneme.models.cores"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local core_rig = require "tests.support.core_rig"
local reading_rig = require "tests.support.reading_rig"
local parameters = require("mneme.tensor.random").parameters
local stepper = require "mneme.insight.episodes.stepper"
local C, ctx = engine.C, engine.ctx

-- With the vectors of another build (tests/run.lua) the ops' own gradients are compared in test_ops.lua.
local narrower = engine.build:find "/width/[^/]+$" ~= nil
for _, property in ipairs(contract) do
  for _, case in ipairs(core_rig.cases()) do
    if not (narrower and property.name:find "^gradients equal") then
      t.test(case.name .. ": " .. property.name, function() property.holds(case.settings) end)
    end
  end
end

for _, case in ipairs(core_rig.cases()) do
  t.test(case.name .. ": what it reads of the past is what `reads` says", function() reading_rig.holds(case.settings) end)
end

-- ---- parameters that are loaded next ----

t.test("an agent whose parameters are loaded need not have had the first ones: every core is the same, and so are later draws", function()
  local env = mn.env("tmaze", { num_envs = 1 })
  local function agent_of(settings) return mn.agent { env = env, core = core_rig.build(settings, 1, { d_in = 16 }), hidden = 6 } end
  local skipped = 0
  for _, case in ipairs(core_rig.cases()) do
    mn.manual_seed(3)
    local first = agent_of(case.settings)
    local drawn = mn.randn { 2 }:data()[0]
    mn.manual_seed(3)
    local second = parameters.replaced(agent_of, case.settings)
    t.eq(mn.randn { 2 }:data()[0], drawn, case.name)
    for _, x in pairs(second:state_dict()) do skipped = skipped + (x:dtype() == "f32" and #x:shape() == 2 and x:data()[0] == 0 and 1 or 0) end
    second:load_state_dict(first:state_dict())
    local function logits(agent)
      local p = stepper.new(mn.env("tmaze", { num_envs = 2 }), agent, { seed = 7 })
      local said = {}
      for _ = 1, 5 do
        p:forward()
        for i = 0, 2 * agent.actions - 1 do said[#said + 1] = ("%.9g"):format(p.logits:data()[p.row * 2 * agent.actions + i]) end
        p:step()
      end
      return table.concat(said, " ")
    end
    t.eq(logits(second), logits(first), case.name)
  end
  t.ok(skipped > 100)
end)

-- ---- threads ----

local T, COPIES = 6, 9
local wide = { d_in = 32, d_model = 64, n_heads = 2, d_head = 32, d_ffn = 96 }           -- wide enough to wake them

-- What a plan by rows leaves, as bytes: y and all states.  Threads share out heads and columns of an op, or each takes its
-- copies through many of them (engine/graph/plan_parallel.c).
local function trace(settings, threads)
  engine.check(C.mn_set_threads(ctx, threads))
  local defaults, sizes = cores.definition(settings[1]).config, {}
  for key, value in pairs(wide) do if defaults[key] then sizes[key] = value end end
  local c = core_rig.build(settings, 1, sizes)
  local x, done = mn.sequence { shape = { T, COPIES, c.config.d_in } }, mn.sequence { shape = { T, COPIES }, dtype = "u8" }
  x:copy(core_rig.normal({ T, COPIES, c.config.d_in }, 1))
  done:data()[(T - 2) * COPIES + 4] = c.claims.steps ~= "between segment ends" and 1 or 0
  local start, after = core_rig.warm(c, COPIES), nil
  local plan = mn.plan(function(input, resets, state)
    local y
    y, after = c(input, resets, state)
    return y
  end)
  local y, parts = plan(x, done, start), {}
  y:fill(0)
  for row = 0, T - 1 do plan:rows(row, row + 1) end
  parts[1] = core_rig.bytes(y)
  for _, name in ipairs(c:state_names()) do parts[#parts + 1] = core_rig.bytes(after[name]) end
  mn.clear_tape()
  return parts
end

for _, case in ipairs(core_rig.cases()) do
  t.test(case.name .. ": by rows, the same bits on one thread and on two", function()
    local threads = C.mn_threads(ctx)
    local one, two = trace(case.settings, 1), trace(case.settings, 2)
    C.mn_set_threads(ctx, threads)
    for i, bytes in ipairs(one) do t.ok(bytes == two[i], ("part %d of %d differs"):format(i, #one)) end
  end)
end
