-- credit.lua -- which earlier observations a decision depends on: the gradient of the value, and of the chosen action's logit, or, where an action
-- is several numbers, of its log-probability, at step t with respect to what the agent observed k steps before.  The tools of POPGym Arcade
-- (Wang et al. 2025, arXiv 2503.01450), with exact gradients.
-- An episode runs again with its observations as leaves.  Gradients go back through one piece of it after another, from states kept before
-- each, so that a long one takes no more memory.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local interventions = require "mneme.insight.episodes.interventions"
local map_display = require "mneme.insight.episodes.map_display"
local state_arrays = require "mneme.models.state_arrays"
local gradients = require "mneme.tensor.gradients"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local credit = {}
local PIECE = 8                    -- steps through which gradients go back at once
local ROWS = 2048                  -- steps that are computed at once at most, counting each explained value and action

-- ---- an episode ----

---One episode of a stepper with one environment, from the present step to its end.
---@param p Stepper of one environment
---@param most integer? steps at most
---@return table episode { T, x = string of each step's inputs, action = (integer|number[])[], reward = number[], value = number[],
---  previous = { name = number[], action = likewise }, resets = integer[], facts = table[], outcome }
function credit.play(p, most)
  if p.num_envs ~= 1 then errors.raise(("credit: a stepper of %d environments, expected one"):format(p.num_envs)) end
  local episode = { T = 0, x = {}, action = {}, value = {}, resets = {}, facts = {}, previous = {} }
  local bytes, space = p.n * (p.inputs:dtype() == "u8" and 1 or 4), p.env.action_space
  for name in pairs(p.previous or {}) do episode.previous[name] = {} end
  local ended
  repeat
    p:forward()
    local t, row = episode.T + 1, p.row
    local now = p:snapshot(0)
    episode.T, episode.value[t], episode.action[t], episode.facts[t] = t, now.value, now.did or now.action, p.env:truth(0)
    episode.x[t] = ffi.string(ffi.cast("const char *", p.inputs:data()) + row * bytes, bytes)
    episode.resets[t] = p.resets:data()[row]
    for name, t_of in pairs(p.previous or {}) do
      episode.previous[name][t] = name == "action" and space:read(t_of:data(), row) or t_of:data()[row]
    end
    ended = p:step()
  until ended > 0 or most and episode.T >= most
  episode.outcome = ended > 0 and p.env:outcome(0) or nil
  return episode
end

-- ---- what is explained ----

---Names and columns of the parts of what the core reads: the observation's arrays where it has several, its groups where its environment names them,
---else each of its values
---(all codes of a cell together), or a picture as a whole; then what was done and paid before.
---@param space table env.observation_space
---@return table[] parts { name, from, to }: columns from .. to - 1
function credit.parts(agent, space)
  local parts = {}
  local n, width = state_arrays.size(space.shape), math.max(1, space.codes or 0)
  local function add(name, from, count) parts[#parts + 1] = { name = name, from = from * width, to = (from + count) * width } end
  if agent.torso.arrays then                                  -- several arrays: the features of each
    for _, part in ipairs(agent.torso.arrays) do add(part.name, part.from, part.n) end
  elseif agent.torso.d_out ~= n * width then parts[1] = { name = "observation", from = 0, to = agent.torso.d_out }
  elseif #(space.groups or {}) > 0 then
    for _, group in ipairs(space.groups) do add(group.name, group.from, group.n) end
  else
    for i = 0, n - 1 do add(("observation %d"):format(i), i, 1) end
  end
  local at = agent.torso.d_out
  if agent.previous.action then
    parts[#parts + 1] = { name = "previous action", from = at, to = at + agent.told }
    at = at + agent.told
  end
  if agent.previous.reward then parts[#parts + 1] = { name = "previous reward", from = at, to = at + 1 } end
  return parts
end

-- ---- an episode's pieces ----

-- Do gradients pass through the states that a core keeps?  Else an episode is one piece.
local function passes(core)
  for name in pairs(core.states) do
    if core:is_stopped(name) and not core:is_constant(name) then return false end
  end
  return core.acts ~= "steps" and core.claims.steps == "exact" and core.claims.gradients == "exact"
end

local function column(from, to, list, dtype, times)
  local t = tensor.new { shape = { to - from, times or 1 }, dtype = dtype }
  local data = t:data()
  for s = from, to - 1 do
    for b = 0, (times or 1) - 1 do data[(s - from) * (times or 1) + b] = list[s + 1] end
  end
  return t
end

-- Likewise of actions.
local function actions_of(space, from, to, list, times)
  local t = tensor.new { shape = space:shape(to - from, times), dtype = space.dtype }
  for i = 0, (to - from) * times - 1 do space:put(t:data(), i, list[from + math.floor(i / times) + 1]) end
  return t
end

-- What the core reads in some steps, [steps,1,D]: observations after the torso, the previous action and reward.
local function read(self, from, to)
  local agent, episode, space, previous = self.agent, self.episode, self.space, nil
  local dtype = agent.normaliser and agent.normaliser.norm_obs and "f32" or space.dtype
  local x = tensor.new { shape = { to - from, 1, unpack(space.shape) }, dtype = dtype }
  ffi.copy(x:data(), table.concat(episode.x, "", from + 1, to))
  if next(episode.previous) then
    previous = {}
    for name, list in pairs(episode.previous) do
      previous[name] = name == "action" and actions_of(agent.action_space, from, to, list, 1) or column(from, to, list, "f32")
    end
  end
  return tensor.no_grad(function() return agent:features(x, previous) end)
end

-- The same for n environments, as a leaf.
local function leaf_of(self, from, to, n)
  local features = read(self, from, to)
  local D = features:shape()[3]
  local leaf = tensor.new { shape = { to - from, n, D }, grad = true }
  local target, source = leaf:data(), features:data()
  for s = 0, to - from - 1 do
    for b = 0, n - 1 do ffi.copy(target + (s * n + b) * D, source + s * D, 4 * D) end
  end
  return leaf, D
end

-- The state before a piece, for n environments; leaves, where they may want a gradient.
local function state_of(self, k, n)
  local core, state = self.agent.core, {}
  for name in pairs(core.states) do
    state[name] = tensor.new { shape = core:state_shape(name, n), grad = not core:is_constant(name) and k > 0 }
  end
  for b = 0, n - 1 do interventions.copy(core, self.everything, self.states[k], 0, 1, state, b, n) end
  return state
end

-- The state after piece k, which is complete.
local function carry(self, k)
  local from, to = k * self.piece, (k + 1) * self.piece
  self.states[k + 1] = tensor.no_grad(function()
    local _, after = self.agent.core:act(read(self, from, to), column(from, to, self.episode.resets, "u8"), self.states[k])
    return tensor.keep(after)
  end)
end

-- ---- gradients of some steps ----

-- The sum of what is explained in some steps: environment 2i - 1 explains the value of at[i], 2i its action.  nil: nothing is.
local function explained(self, q, from, to, logits, values)
  local n, space, actions = 2 * #q.at, self.agent.action_space, self.agent.actions
  local by_logit = self.agent.kind.each
  local value, chosen = tensor.new { shape = { to - from, n } }, tensor.new { shape = { to - from, n, by_logit and actions or nil } }
  local here = false
  for i, t in ipairs(q.at) do
    if t >= from and t < to then
      local at = (t - from) * n + 2 * i - 2
      value:data()[at], here = 1, true
      chosen:data()[by_logit and (at + 1) * actions + self.episode.action[t + 1] or at + 1] = 1
    end
  end
  if not here then return nil end
  local of = by_logit and logits or self.agent:distribution(logits):log_prob(actions_of(space, from, to, self.episode.action, n))
  return ops.sum { x = values * value } + ops.sum { x = of * chosen }
end

-- What gradients of a piece say of its steps.
local function note(self, q, g, from, to, D)
  local n = 2 * #q.at
  for i, row in ipairs(q.rows) do
    for s = from, math.min(to - 1, row.at) do
      for w, of in ipairs { "value", "action" } do
        local sum, at = 0, (s - from) * n + 2 * i - 3 + w
        for p, part in ipairs(self.parts) do
          local squares = 0
          for j = part.from, part.to - 1 do squares = squares + g[at * D + j] ^ 2 end
          row.parts[p][of][s + 1], sum = math.sqrt(squares), sum + squares
        end
        row[of][s + 1] = math.sqrt(sum)
      end
    end
  end
end

-- Gradients through piece k.
local function back(self, q, k)
  local core, n = self.agent.core, 2 * #q.at
  local from = k * self.piece
  local to = math.min(q.last + 1, from + self.piece)
  local leaf, D = leaf_of(self, from, to, n)
  local state, inputs, names = state_of(self, k, n), { leaf }, {}
  local y, after = core:act(leaf, column(from, to, self.episode.resets, "u8", n), state)
  local logits, values = self.agent.heads(y)
  for s = from, to - 1 do
    q.reached = math.max(q.reached, math.abs(values:data()[(s - from) * n] - self.episode.value[s + 1]))
  end
  local loss = explained(self, q, from, to, logits, values)
  for name, g in pairs(q.after) do
    local through = ops.sum { x = after[name] * g }
    loss = loss and loss + through or through
  end
  for name, t in pairs(k > 0 and state or {}) do
    if not core:is_constant(name) then names[#names + 1], inputs[#inputs + 1] = name, t end
  end
  q.after = {}
  if not loss then return end                               -- no memory leads here
  local g = gradients.grad(loss, inputs)
  note(self, q, g[1]:data(), from, to, D)
  for i, name in ipairs(names) do q.after[name] = g[i + 1] end
end

-- Explain some steps: rows = for each { at, value = number[], action = number[] (by step + 1), parts = { { value, action } ... } }.
local function explain(self, at)
  local q, T = { at = at, last = math.max(unpack(at)), rows = {}, reached = 0, after = {} }, self.episode.T
  local function nothing()                                  -- no step depends on a later one
    local of = { value = {}, action = {} }
    for s = 1, T do of.value[s], of.action[s] = 0, 0 end
    return of
  end
  for i, t in ipairs(at) do
    q.rows[i] = nothing()
    q.rows[i].at, q.rows[i].parts = t, {}
    for p = 1, #self.parts do q.rows[i].parts[p] = nothing() end
  end
  local last = math.floor(q.last / self.piece)
  for k = #self.states, last - 1 do carry(self, k) end
  for k = last, 0, -1 do back(self, q, k) end
  return q
end

---Credit of every earlier step for the value and the chosen action at some steps of an episode.  A gradient's size is its 2-norm over the values of
---a step that the core reads (after the torso, if that is learned, as of pictures).
---@param agent Agent
---@param env Env of one environment
---@param episode table of credit.play
---@param at integer[]? steps, from 0, whose value and action are explained; nil: at most 64 of them, evenly
---@param piece integer? steps that gradients pass at once; nil: 8, or the whole episode where they do not pass through this core's kept states
---@return table map { at = integer[], T, value = number[][], action = number[][] (value[i][s + 1]: the value at at[i] by step s), parts = { name =
---  { value = number[][], action = number[][] } }, names = string[] of parts, rows and all_parts for credit.view,
---  reached = number: largest difference of a value from what the agent had }
function credit.map(agent, env, episode, at, piece)
  local T, space, core, everything = episode.T, env.observation_space, agent.core, {}
  if not at then
    at = {}
    for i = 0, math.min(T, 64) - 1 do at[i + 1] = math.floor((i + 1) * T / math.min(T, 64) + 0.5) - 1 end
  end
  for _, t in ipairs(at) do
    if t % 1 ~= 0 or t < 0 or t >= T then errors.raise(("credit: step %s of an episode of %d, expected 0 to %d"):format(tostring(t), T, T - 1)) end
  end
  for i, name in ipairs(core:state_names()) do everything[i] = { name = name } end
  local self = { agent = agent, space = space, episode = episode, parts = credit.parts(agent, space), everything = everything,
    piece = passes(core) and (piece or PIECE) or T, states = { [0] = core:initial(1) } }
  local map = { at = at, T = T, value = {}, action = {}, parts = {}, names = {}, rows = {}, all_parts = self.parts, reached = 0 }
  for i, part in ipairs(self.parts) do map.names[i], map.parts[part.name] = part.name, { value = {}, action = {} } end
  local most = math.max(1, math.floor(ROWS / 2 / self.piece))
  for first = 1, #at, most do
    local q = explain(self, { unpack(at, first, math.min(#at, first + most - 1)) })
    map.reached = math.max(map.reached, q.reached)
    for i, row in ipairs(q.rows) do
      local to = first + i - 1
      map.rows[to], map.value[to], map.action[to] = row, row.value, row.action
      for p, name in ipairs(map.names) do map.parts[name].value[to], map.parts[name].action[to] = row.parts[p].value, row.parts[p].action end
    end
  end
  return map
end

-- ---- as a map ----

---Shares of a gradient as every table, figure and panel shows them: one scale for all steps, of which the root is painted.
---@param rows table[] { word, text }
---@param cells table[][] { share, low, high, n }
---@param at string what a column is
---@return PartMap
function credit.shares(rows, steps, cells, at)
  return map_display.new { name = "credit", title = "credit", value = "of the gradient", at = at, rows = rows, steps = steps, cells = cells, key = "share",
    floor = 1, percent = true, root = true }
end

---What the gradient of an action is of: a logit, or Q; where the policy is of neither, a log-probability.
---@param agent Agent
---@param name string of the action
---@return string "logit of up", "log-probability of torque 0.41"
function credit.action_words(agent, name)
  return (agent.kind.each or "log-probability") .. " of " .. name
end

---What one step depends on: a row for the whole observation of a step, and for the parts of it that count most.
---@param row table of credit.map
---@param parts table[] of credit.parts
---@param what string "value" or "action"
---@param name string what that gradient is called: "logit of up"
---@param most integer parts at most
---@return PartMap
function credit.view(row, parts, what, name, most)
  local rows, cells, steps, order, kept = {}, {}, {}, {}, {}
  for s = 0, row.at do steps[s + 1] = s end
  local function sum(list)
    local all = 0
    for s = 0, row.at do all = all + list[s + 1] end
    return all
  end
  local whole = sum(row[what])
  local function add(word, list, text)
    rows[#rows + 1], cells[#cells + 1] = { word = word, text = text or word, short = text and "  " .. word }, {}
    for s = 0, row.at do cells[#rows][s + 1] = { share = whole > 0 and list[s + 1] / whole or 0 } end
  end
  for p in ipairs(#parts > 1 and parts or {}) do order[p] = { p, sum(row.parts[p][what]) } end
  table.sort(order, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
  for k = 1, math.min(most, #order) do kept[order[k][1]] = true end
  add(name, row[what])
  for p, part in ipairs(parts) do if kept[p] then add(part.name, row.parts[p][what], name .. " by " .. part.name) end end
  return credit.shares(rows, steps, cells, "by the observation of step")
end

return credit
