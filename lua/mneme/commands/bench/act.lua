-- act.lua -- `mneme bench act`.
local lazy = require "mneme.base.lazy"
local engine = require "mneme.base.engine"
local mn = lazy "mneme"
local progress = require "mneme.base.progress"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local stepper = lazy "mneme.insight.episodes.stepper"
local stopwatch = lazy "mneme.insight.measure.stopwatch"

local act = { name = "bench act", doc = "how long one step of acting takes, of agents of the published sizes, one environment, one thread, from Lua" }

---@return integer status
function act.run()
  print "acting, one environment, one thread (median of one step, from Lua):"
  engine.open("cpu", 1)
  for _, setup in progress.each(published_agents.list, "agents") do
    local env = mn.env("tmaze", { corridor = 160, num_envs = 1, seed = 1 })
    local p = stepper.new(env, mn.agent { env = env, core = mn.core(setup.core), hidden = 128 })
    local times = {}
    for i = 1, 2000 do
      times[i] = stopwatch.timed(function() p:forward() end)
      p:step()
    end
    print(("%-16s %7.1f us"):format(setup.label or setup[1], 1e6 * stopwatch.lower_median(times)))
  end
  return 0
end

return act
