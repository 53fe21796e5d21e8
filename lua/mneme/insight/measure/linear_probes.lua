-- linear_probes.lua -- linear probes: what a linear map can read from a state.  Ridge regression in
-- closed form, fitted on some episodes and scored on others, next to a control fitted to shuffled
-- answers (Alain and Bengio 2016; Hewitt and Liang 2019: selectivity is the probe's score minus its control's).
local ffi = require "ffi"
local example_random = require "mneme.envs.example_random"
local errors = require "mneme.base.errors"
local ridge = require "mneme.insight.measure.ridge"
local readings = require "mneme.insight.measure.readings"
local reading_samples = require "mneme.insight.measure.reading_samples"
local state_arrays = require "mneme.models.state_arrays"
local stepper = require "mneme.insight.episodes.stepper"

local probing = {}
local CONTROLS = 5                 -- shufflings, of which the control is the mean

-- Samples with whole episodes in the first part: their order, and how many are in it.
local function split(episode, share, seed)
  local list, of, order, train = {}, {}, {}, 0
  for i, e in ipairs(episode) do
    if not of[e] then of[e], list[#list + 1] = {}, e end
    table.insert(of[e], i)
  end
  if #list < 4 then errors.raise(("probing: %d episodes, expected at least 4"):format(#list)) end
  local mixed, dice = ffi.new("int[?]", #list), example_random.new():seek(seed, "train", 0)
  dice:choose(mixed, #list, #list)
  local trained = math.max(2, math.min(#list - 1, math.floor(share * #list + 0.5)))
  for k = 0, #list - 1 do
    for _, i in ipairs(of[list[mixed[k] + 1]]) do order[#order + 1] = i end
    if k + 1 == trained then train = #order end
  end
  return order, train, dice
end

---Fit a probe to samples of a memory and score it.
---@param o table x = float*, n rows of d numbers; n, d; y = list of n numbers; episode = list of n: samples of one episode stay on one
---  side; ridge = 0.1, of the mean square of a sample; share = 0.7 of the episodes to learn from; seed = 1
---@return table? { score, control, selectivity, train, test }: shares of explained variance; nil: the answers are all the same
function probing.examine(o)
  if #o.y ~= o.n or #o.episode ~= o.n then
    errors.raise(("probing: %d answers and %d episodes for %d samples"):format(#o.y, #o.episode, o.n))
  end
  local order, train, dice = split(o.episode, o.share or 0.7, o.seed or 1)
  local y, rows, list, n = {}, {}, {}, o.n
  for k, i in ipairs(order) do y[k], rows[k], list[k] = o.y[i], i - 1, k end
  local products = reading_samples.products(reading_samples.of({ size = o.d, take = function(i, to) ffi.copy(to, o.x + i * o.d, 4 * o.d) end }, rows, train), n)
  local l = ridge.factor(products, n, list, train, o.ridge or 0.1)
  local function ask(answers) return ridge.explained(ridge.fit(products, n, list, train, l, answers).said, y, train) end
  local own, control = ask(y), 0
  if not own then return nil end
  for _ = 1, CONTROLS do control = control + ask(ridge.shuffled(y, train, dice)) / CONTROLS end
  return { score = own, control = control, selectivity = own - control, train = train, test = n - train }
end

-- ---- samples ----

---All numbers of a state as samples: a row for each environment.
---@param core Core
---@param state table<string, Tensor>
---@param B integer environments
---@return table { n = B, d, x = float* }
function probing.of_state(core, state, B)
  local texts, readers = {}, {}
  for i, name in ipairs(core:state_names()) do readers[i] = { state_arrays.env_reader(core, name, state[name]), 4 * state[name]:size() / B } end
  for b = 0, B - 1 do
    for _, reader in ipairs(readers) do texts[#texts + 1] = ffi.string(reader[1](b), reader[2]) end
  end
  local text = table.concat(texts)
  local x = ffi.new("float[?]", #text / 4)
  ffi.copy(x, text, #text)
  return { n = B, d = #text / 4 / B, x = x }
end

-- Of a figure: "L0H1", "L0C0-7", or the state's name.
local function short(part)
  local layer, kind, which = part.word:match "^layers%.(%d+)%.(%a+)%.?(.*)$"
  local letter = { head = "H", channels = "C" }
  return layer and letter[kind] and ("L%s%s%s"):format(layer, letter[kind], which) or part.word
end

---Probe an agent's memory for facts, step by step and head by head: the readings of `mneme probe`, for a study.
---@param p Stepper of which the agent and the environment are taken
---@param o table episodes; steps, evenly spaced from 0, or last = the last of nine that begin with 0; facts = { name = kind } that the environment declares;
---  seed = 12345
---@return table result NAME, NAME_control and NAME_selectivity, of all of the memory in the mean over steps; series NAME/all, NAME/L0H1 of scores and
---  NAME_selectivity/... over steps; of a class scores are shares of right answers, of a number shares of variance
function probing.agent(p, o)
  local steps, names, result = o.steps or {}, {}, {}
  if not o.steps and type(o.last) ~= "number" then errors.raise "probing: neither steps nor last, expected { 0, 5, 10 } or the last of nine steps" end
  for name in pairs(o.facts) do names[#names + 1] = name end
  table.sort(names)
  local every = o.steps and (steps[2] or 1) - (steps[1] or 0) or math.max(1, math.floor(o.last / 8 + 0.5))
  local seed = o.seed or 12345
  local job = readings.new(stepper.new(p.env:again { num_envs = o.episodes, seed = seed }, p.agent, { seed = seed }),
    { facts = names, seed = seed, every = every, last = o.last or steps[#steps] })
  job:work()
  for _, fact in ipairs(job.facts) do
    local sums, n = { 0, 0 }, 0
    for at, part in ipairs(job.parts) do
      for k, step in ipairs(job.steps) do
        local cell = (job.cells[fact.name][k] or {})[at]
        local read, control = cell and (cell.right or cell.p), cell and (cell.control_right or cell.control)
        for key, y in pairs(cell and { [fact.name] = read, [fact.name .. "_selectivity"] = read - control } or {}) do
          local series = result[key .. "/" .. short(part)] or { x = {}, y = {} }
          result[key .. "/" .. short(part)] = series
          series.x[#series.x + 1], series.y[#series.y + 1] = step, y
        end
        if cell and at == 1 then sums[1], sums[2], n = sums[1] + read, sums[2] + control, n + 1 end
      end
    end
    if n > 0 then
      result[fact.name], result[fact.name .. "_control"], result[fact.name .. "_selectivity"] = sums[1] / n, sums[2] / n, (sums[1] - sums[2]) / n
    end
  end
  return result
end

return probing
