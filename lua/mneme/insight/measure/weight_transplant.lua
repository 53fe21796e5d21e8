-- weight_transplant.lua -- loads the weights of a finished run into a core with other settings: does r = 2 compute another
-- function than r = 1?  Comparing the scores of two trainings cannot decide this, because rounding alone makes them diverge.
local cores = require "mneme.models.cores"
local timing = require "mneme.insight.measure.timing"
local stepper = require "mneme.insight.episodes.stepper"
local run_folder = require "mneme.runs.run_folder"
local tensor = require "mneme.tensor.tensor"
local tables = require "mneme.base.tables"

local weight_transplant = {}
local T, B = 64, 8                 -- of the input: the same for all

local function said(about, weights, options, x)
  local c = cores.new(about.name, tables.merged(about.config, options), true)
  c:load_state_dict(weights)
  return tensor.no_grad(function() return tensor.keep((c(x))) end)
end

---How far apart two cores with the weights of a run are that differ by options.
---@param path string of the run
---@param a table options, laid over those of the run's core; of such that leave the parameters as they are
---@param b table the other's
---@return number relative |y_a - y_b| / |y_a|, over a sequence of fixed random input
function weight_transplant.difference(path, a, b)
  local about, weights = run_folder.read_info(path).core, stepper.from_run(path).agent.core:state_dict()
  local x = timing.fill(tensor.new { shape = { T, B, about.config.d_in } }, 1, 1)
  local y, z = said(about, weights, a, x), said(about, weights, b, x)
  local off, all = 0, 0
  for i = 0, y:size() - 1 do off, all = off + (y:data()[i] - z:data()[i]) ^ 2, all + y:data()[i] ^ 2 end
  return math.sqrt(off / all)
end

return weight_transplant
