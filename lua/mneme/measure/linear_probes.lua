-- linear_probes.lua -- linear probes: what a linear map can read from a state.  Ridge regression in
-- closed form, fitted on some episodes and scored on others, next to a control fitted to shuffled
-- answers (Alain and Bengio 2016; Hewitt and Liang 2019: selectivity is the probe's score minus its control's).
local ffi = require "ffi"
local draws = require "mneme.envs.example_random"
local errors = require "mneme.base.errors"
local ridge = require "mneme.measure.ridge"
local state_arrays = require "mneme.models.state_arrays"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local probing = {}
local CONTROLS = 5                 -- shufflings, of which the control is the mean
local LEAST = 20                   -- samples of a step: of fewer nothing is asked
local kinds = { class = true, number = true }

-- ---- ridge regression ----

-- Inner products of the samples, their columns brought to mean 0 and deviation 1 over the first `train` of them, which
-- makes the answer independent of units; columns that never change there count nothing.
local function inner_products(x, order, train, d)
  local n = #order
  local rows = tensor.new { shape = { n, d } }
  local to, scale = rows:data(), 1 / math.sqrt(d)
  for j = 0, d - 1 do
    local sum, squares = 0, 0
    for i = 1, train do sum = sum + x[order[i] * d + j] end
    local mean = sum / train
    for i = 1, train do squares = squares + (x[order[i] * d + j] - mean) ^ 2 end
    local deviation = math.sqrt(squares / train)
    local by = deviation > 1e-6 * (math.abs(mean) + 1e-6) and scale / deviation or 0
    for i = 1, n do to[(i - 1) * d + j] = (x[order[i] * d + j] - mean) * by end
  end
  local products = tensor.no_grad(function() return ops.matmul(rows, ops.transpose(rows, { a = 0, b = 1 })) end)
  local kept = ffi.new("double[?]", n * n)
  for i = 0, n * n - 1 do kept[i] = products:data()[i] end
  return kept
end

-- ---- questions and their scores ----

-- Classes as one question each, +1 or -1; numbers as they are.
local function questions(kind, y, classes)
  local list = {}
  if kind == "class" then
    for k, class in ipairs(classes) do
      list[k] = {}
      for i, answer in ipairs(y) do list[k][i] = answer == class and 1 or -1 end
    end
    return list
  end
  for k = 1, type(y[1]) == "table" and #y[1] or 1 do
    list[k] = {}
    for i, answer in ipairs(y) do list[k][i] = type(answer) == "table" and answer[k] or answer end
  end
  return list
end

-- The share of answers that are right, or the share of explained variance (0 if negative); questions
-- whose answer never changes do not count.
local function score(kind, said, y, first, classes)
  local n, right = #y - first, 0
  if kind == "class" then
    for i = 1, n do
      local best = 1
      for k = 2, #classes do if said[k][i] > said[best][i] then best = k end end
      if classes[best] == y[first + i] then right = right + 1 end
    end
    return right / n
  end
  local told, counted = 0, 0
  for k, target in ipairs(questions(kind, y)) do
    local share = ridge.explained(said[k], target, first)
    if share then told, counted = told + share, counted + 1 end
  end
  return counted > 0 and told / counted or nil
end

-- Samples with whole episodes in the first part: their order, and how many are in it.
local function split(episode, share, seed)
  local list, of, order, train = {}, {}, {}, 0
  for i, e in ipairs(episode) do
    if not of[e] then of[e], list[#list + 1] = {}, e end
    table.insert(of[e], i)
  end
  if #list < 4 then errors.raise(("probing: %d episodes, expected at least 4"):format(#list)) end
  local mixed, dice = ffi.new("int[?]", #list), draws.new():seek(seed, "train", 0)
  dice:choose(mixed, #list, #list)
  local trained = math.max(2, math.min(#list - 1, math.floor(share * #list + 0.5)))
  for k = 0, #list - 1 do
    for _, i in ipairs(of[list[mixed[k] + 1]]) do order[#order + 1] = i end
    if k + 1 == trained then train = #order end
  end
  return order, train, dice
end

---Fit probes to samples of a memory and score them.
---@param o table x = float*, n rows of d numbers; n, d; y = list of n answers: of kind "class" anything that can be
---  compared, of kind "number" numbers or lists of equally many; episode = list of n: samples of one episode stay on one
---  side; kind; ridge = 0.1, of the mean square of a sample; share = 0.7 of the episodes to learn from; seed = 1
---@return table? { score, control, selectivity, chance, train, test }: shares of right answers, or of explained variance;
---  chance: the most frequent class, or 0.  nil: the answers are all the same
function probing.examine(o)
  if not kinds[o.kind] then errors.unknown("kind of probe", tostring(o.kind), { "class", "number" }) end
  if #o.y ~= o.n or #o.episode ~= o.n then
    errors.raise(("probing: %d answers and %d episodes for %d samples"):format(#o.y, #o.episode, o.n))
  end
  local order, train, dice = split(o.episode, o.share or 0.7, o.seed or 1)
  local y, classes, count, rows = {}, {}, {}, {}
  for k, i in ipairs(order) do
    y[k], rows[k] = o.y[i], i - 1
    if o.kind == "class" then
      if not count[y[k]] then classes[#classes + 1] = y[k] end
      count[y[k]] = (count[y[k]] or 0) + 1
    end
  end
  if o.kind == "class" and #classes < 2 then return nil end
  local n = #y
  local products = inner_products(o.x, rows, train, o.d)
  local list = {}
  for k = 1, n do list[k] = k end
  local l = ridge.factor(products, n, list, train, o.ridge or 0.1)
  local function ask(answers)
    local said = {}
    for k, target in ipairs(questions(o.kind, answers, classes)) do said[k] = ridge.fit(products, n, list, train, l, target).said end
    return score(o.kind, said, y, train, classes)
  end
  local own, control, chance = ask(y), 0, 0
  if not own then return nil end
  for _ = 1, CONTROLS do control = control + ask(ridge.shuffled(y, train, dice)) / CONTROLS end
  for _, c in ipairs(classes) do chance = math.max(chance, count[c] / n) end
  return { score = own, control = control, selectivity = own - control, chance = chance, train = train, test = n - train }
end

-- ---- samples ----

-- A text of n rows of floats as samples.
local function floats(text, n)
  local x = ffi.new("float[?]", #text / 4)
  ffi.copy(x, text, #text)
  return { n = n, d = #text / 4 / n, x = x }
end

-- The parts of a core's memory that are asked: each head of each layer, or each layer, by name: layer, head (or nil).
local function parts_of(core)
  local arrays = state_arrays.of_core(core)
  local layers, kind_names, by_layer = state_arrays.grid(arrays)
  local parts = {}
  for _, owner in ipairs((state_arrays.owners(layers, kind_names, by_layer, core.config.n_heads))) do
    parts[#parts + 1] = { name = owner.head and ("L%dH%d"):format(owner.layer, owner.head) or "L" .. owner.layer, layer = owner.layer,
      head = owner.head or 0 }
  end
  return parts
end

-- The numbers of a part of one environment's memory now, floats as a text.
local function read_part(memory, part, n_heads)
  local _, names, by_layer = state_arrays.grid(memory)
  local into = {}
  for _, kind in ipairs(names) do
    local array = (by_layer[part.layer] or {})[kind]
    if array then
      local rows, cols, numbers = state_arrays.slice(array, math.min(part.head, state_arrays.count(array, n_heads) - 1), n_heads)
      into[#into + 1] = ffi.string(numbers, 4 * rows * cols)
    end
  end
  return table.concat(into)
end

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
  return floats(table.concat(texts), B)
end

---Run an agent, and sample its memory at some steps of its episodes.
---@param p Stepper of some environments
---@param o table episodes = how many; steps = list of steps, from 0; facts = list of names of env:truth
---@return table samples steps[step] = { n, episode = list, facts[name] = list, parts[name] = { d, x = float* } }
---@return string[] names of parts, in order; the first is "all" of them
function probing.collect(p, o)
  local parts, taken, wanted, n_heads = parts_of(p.agent.core), {}, {}, p.agent.core.config.n_heads
  for _, step in ipairs(o.steps) do wanted[step], taken[step] = true, { n = 0, episode = {}, facts = {}, rows = { all = {} } } end
  local each, names = math.ceil(o.episodes / p.num_envs), { "all" }
  for i, part in ipairs(parts) do names[i + 1] = part.name end
  local ended = 0
  while ended < p.num_envs do
    p:forward()
    for b = 0, p.num_envs - 1 do
      local at = p.episode_of[b] < each and wanted[p.step_of[b]] and taken[p.step_of[b]]
      if at then
        local memory, truth = p:snapshot(b).memory, p.env:truth(b)
        at.n = at.n + 1
        at.episode[at.n] = p.episode_of[b] * p.num_envs + b
        for _, name in ipairs(o.facts) do
          if truth[name] == nil then errors.unknown("fact of " .. p.env.id, name, require("mneme.base.tables").keys(truth)) end
          at.facts[name] = at.facts[name] or {}
          at.facts[name][at.n] = truth[name]
        end
        local all = {}
        for i, part in ipairs(parts) do
          at.rows[part.name] = at.rows[part.name] or {}
          at.rows[part.name][at.n] = read_part(memory, part, n_heads)
          all[i] = at.rows[part.name][at.n]
        end
        at.rows.all[at.n] = table.concat(all)
      end
    end
    p:step()
    ended = 0
    for b = 0, p.num_envs - 1 do if p.episode_of[b] >= each then ended = ended + 1 end end
  end
  for _, at in pairs(taken) do
    at.parts = {}
    for name, rows in pairs(at.n > 0 and at.rows or {}) do
      at.parts[name] = floats(table.concat(rows), at.n)
    end
    at.rows = nil
  end
  return taken, names
end

---Probe an agent's memory for facts, step by step and head by head.
---@param p Stepper
---@param o table episodes; steps, or last = the last of nine that begin with 0; facts = { name = kind }; ridge, seed as for
---  examine
---@return table result for a study: NAME, NAME_control and NAME_selectivity, of all of the memory in the mean over
---  steps; series NAME/all, NAME/L0H1 of scores and NAME_selectivity/... over steps
function probing.agent(p, o)
  local result, facts, steps = {}, {}, o.steps or {}
  if not o.steps and type(o.last) ~= "number" then errors.raise "probing: neither steps nor last, expected { 0, 5, 10 } or the last of nine steps" end
  for i = o.steps and 9 or 0, 8 do steps[i + 1] = math.floor(i * o.last / 8 + 0.5) end
  for name in pairs(o.facts) do facts[#facts + 1] = name end
  table.sort(facts)
  local samples, parts = probing.collect(p, { episodes = o.episodes, steps = steps, facts = facts })
  for _, fact in ipairs(facts) do
    local sum = { score = 0, control = 0, selectivity = 0, n = 0 }
    for _, step in ipairs(steps) do
      local at = samples[step]
      for _, part in ipairs(at.n >= LEAST and parts or {}) do
        local r = probing.examine { x = at.parts[part].x, n = at.n, d = at.parts[part].d, y = at.facts[fact], episode = at.episode,
          kind = o.facts[fact], ridge = o.ridge, seed = o.seed }
        for key, y in pairs(r and { [fact] = r.score, [fact .. "_selectivity"] = r.selectivity } or {}) do
          local series = result[key .. "/" .. part] or { x = {}, y = {} }
          result[key .. "/" .. part] = series
          series.x[#series.x + 1], series.y[#series.y + 1] = step, y
        end
        if r and part == "all" then
          for key in pairs(sum) do sum[key] = sum[key] + (r[key] or 1) end
        end
      end
    end
    if sum.n > 0 then
      result[fact], result[fact .. "_control"], result[fact .. "_selectivity"] = sum.score / sum.n, sum.control / sum.n, sum.selectivity / sum.n
    end
  end
  return result
end

return probing
