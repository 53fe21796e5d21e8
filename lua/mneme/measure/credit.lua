-- credit.lua -- which earlier observations a decision depends on: the gradient of the value, and of the chosen action's logit, at step t with
-- respect to what the agent observed k steps before.  The tools of POPGym Arcade (Wang et al. 2025, arXiv 2503.01450), with exact gradients.
-- An agent plays an episode, which then runs as one sequence with its observations as leaves.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local state_arrays = require "mneme.models.state_arrays"
local gradients = require "mneme.tensor.gradients"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local credit = {}

-- ---- an episode ----

---One episode of a stepper with one environment, from the present step to its end.
---@param p Stepper of one environment
---@param most integer? steps at most
---@return table episode { T, x = string of each step's inputs, action = integer[], reward = number[], value = number[], previous = { name = number[] },
---  resets = integer[], facts = table[], outcome }
function credit.play(p, most)
  if p.num_envs ~= 1 then errors.raise(("credit: a stepper of %d environments, expected one"):format(p.num_envs)) end
  local episode = { T = 0, x = {}, action = {}, value = {}, resets = {}, facts = {}, previous = {} }
  local bytes = p.n * (p.inputs:dtype() == "u8" and 1 or 4)
  for name in pairs(p.previous or {}) do episode.previous[name] = {} end
  local ended
  repeat
    p:forward()
    local t, row = episode.T + 1, p.row
    local now = p:snapshot(0)
    episode.T, episode.value[t], episode.action[t], episode.facts[t] = t, now.value, now.action, p.env:truth(0)
    episode.x[t] = ffi.string(ffi.cast("const char *", p.inputs:data()) + row * bytes, bytes)
    episode.resets[t] = p.resets:data()[row]
    for name, t_of in pairs(p.previous or {}) do episode.previous[name][t] = t_of:data()[row] end
    ended = p:step()
  until ended > 0 or most and episode.T >= most
  local e = ended > 0 and p.env.ended
  episode.outcome = e and { ret = e.ret[0], length = e.length[0], score = e.score[0] } or nil
  return episode
end

-- ---- its gradients ----

-- The episode's inputs as a tensor that the agent's torso reads, [T,1,...]; of pictures in bytes a float leaf, whose values are those of the bytes.
local function inputs_of(agent, env, episode)
  local space, T = env.observation_space, episode.T
  local x = tensor.new { shape = { T, 1, unpack(space.shape) }, dtype = agent.normaliser and agent.normaliser.norm_obs and "f32" or space.dtype }
  ffi.copy(x:data(), table.concat(episode.x))
  return x
end

local function column(T, list, dtype)
  local t = tensor.new { shape = { T, 1 }, dtype = dtype }
  for i = 1, T do t:data()[i - 1] = list[i] end
  return t
end

-- What the core reads in each step, as a leaf: the observation (codes as one number a code), the previous action and reward.
local function read_inputs(agent, env, episode)
  local previous
  if next(episode.previous) then
    previous = {}
    for name, list in pairs(episode.previous) do previous[name] = column(episode.T, list, name == "action" and "i32" or "f32") end
  end
  local features = tensor.no_grad(function() return agent:features(inputs_of(agent, env, episode), previous) end)
  local leaf = tensor.new { shape = features:shape(), grad = true }
  ffi.copy(leaf:data(), features:data(), 4 * features:size())
  return leaf
end

-- Names and columns of the parts of what the core reads: each value of an observation (all codes of a cell together), then what was done and paid.
local function parts_of(agent, env)
  local space, parts = env.observation_space, {}
  local n = state_arrays.size(space.shape)
  local learned = agent.torso.d_out ~= n * math.max(1, space.codes or 0)
  if not learned then
    local width = math.max(1, space.codes or 0)
    for i = 0, n - 1 do parts[#parts + 1] = { name = ("observation %d"):format(i), from = i * width, to = (i + 1) * width } end
  else parts[1] = { name = "observation", from = 0, to = agent.torso.d_out } end
  local at = agent.torso.d_out
  if agent.previous.action then
    parts[#parts + 1] = { name = "previous action", from = at, to = at + agent.actions }
    at = at + agent.actions
  end
  if agent.previous.reward then parts[#parts + 1] = { name = "previous reward", from = at, to = at + 1 } end
  return parts
end

---Credit of every earlier step for the value and the chosen action at some steps of an episode.  A gradient's size is its 2-norm over the values of
---a step that the core reads (after the torso, if that is learned, as of pictures).
---@param agent Agent
---@param env Env of one environment
---@param episode table of credit.play
---@param at integer[]? steps, from 0, whose value and action are explained; nil: at most 64 of them, evenly
---@return table map { at = integer[], T, value = number[][], action = number[][] (value[i][s + 1]: the value at at[i] by step s), parts = { name =
---  { value = number[][], action = number[][] } }, names = string[] of parts, reached = number: largest difference of a value from what the agent had }
function credit.map(agent, env, episode, at)
  local T = episode.T
  if not at then
    at = {}
    for i = 0, math.min(T, 64) - 1 do at[i + 1] = math.floor((i + 1) * T / math.min(T, 64) + 0.5) - 1 end
  end
  local leaf, done = read_inputs(agent, env, episode), column(T, episode.resets, "u8")
  local D, parts = leaf:shape()[3], parts_of(agent, env)
  local map = { at = at, T = T, value = {}, action = {}, parts = {}, names = {}, reached = 0 }
  for i, part in ipairs(parts) do
    map.names[i] = part.name
    map.parts[part.name] = { value = {}, action = {} }
  end
  local y = agent.core:act(leaf, done, agent.core:initial(1))
  local logits, values = agent.heads(y)
  for t = 0, T - 1 do map.reached = math.max(map.reached, math.abs(values:data()[t] - episode.value[t + 1])) end
  local function sizes(scalar, into, name)
    local g, of_parts = gradients.grad(scalar, { leaf }, { retain = true })[1]:data(), {}
    for i = 1, #parts do of_parts[i] = {} end
    local all = {}
    for s = 0, T - 1 do
      local sum = 0
      for i, part in ipairs(parts) do
        local squares = 0
        for j = part.from, part.to - 1 do squares = squares + g[s * D + j] ^ 2 end
        of_parts[i][s + 1], sum = math.sqrt(squares), sum + squares
      end
      all[s + 1] = math.sqrt(sum)
    end
    into[#into + 1] = all
    for i, part in ipairs(parts) do table.insert(map.parts[part.name][name], of_parts[i]) end
  end
  for _, t in ipairs(at) do
    if t % 1 ~= 0 or t < 0 or t >= T then errors.raise(("credit: step %s of an episode of %d, expected 0 to %d"):format(tostring(t), T, T - 1)) end
    sizes(ops.sum { x = ops.slice(values, { axis = 0, from = t, to = t + 1 }) }, map.value, "value")
    local chosen = ops.slice(ops.slice(logits, { axis = 0, from = t, to = t + 1 }), { axis = 2, from = episode.action[t + 1], to = episode.action[t + 1] + 1 })
    sizes(ops.sum { x = chosen }, map.action, "action")
  end
  return map
end

return credit
