-- step_rig.lua -- agents step by step as the engine computes them, for tests that compare exported forms with it: two environments, random
-- observations, actions and rewards, episodes that begin in the middle.
local ffi = require "ffi"
local cores = require "mneme.models.cores"
local mn = require "mneme"
local normaliser = require "mneme.learn.normaliser"
local tensor = require "mneme.tensor.tensor"

local rig = {}

local small = { d_model = 8, n_layers = 1, n_heads = 2, d_head = 8, d_ffn = 6, d_state = 4, memory = 4, mem_slots = 2 }

---The settings of a core of small sizes.
---@param name string of a core, or its file
---@param more table? settings
---@return table for mn.agent
function rig.small(name, more)
  local core = { name }
  for key, default in pairs(cores.definition(name).config) do if type(default) == "number" then core[key] = small[key] end end
  for key, value in pairs(more or {}) do core[key] = value end
  return core
end

---An agent of small sizes that reads the action and the reward before.  The seed is one by which no read-out is nearly 0: cores that divide it by
---its length amplify rounding there, in the engine as in what was exported.
function rig.agent(core, env, more)
  local options = { env = env or mn.env("tmaze", { num_envs = 2, corridor = 5 }), core = core, hidden = 4, previous = "action,reward" }
  for key, value in pairs(more or {}) do options[key] = value end
  mn.manual_seed(5)
  local agent = mn.agent(options)
  agent.module:eval()
  return agent
end

-- A few random numbers without the engine's.
local function random(seed)
  return function()
    seed = (seed * 16807) % 2147483647
    return seed / 2147483647
  end
end

local function list_of(t)
  local list, data = {}, t:data()
  for i = 0, t:size() - 1 do list[i + 1] = tonumber(data[i]) end
  return list
end

---A normaliser with statistics of some training.
---@param settings table norm_obs, norm_reward, clip_obs, clip_reward, norm
---@param space table
---@return Normaliser
function rig.normaliser(settings, space)
  local function statistics(n)
    local bytes = tensor.new { shape = { 2 * n + 1, 8 }, dtype = "u8" }
    local p = ffi.cast("double *", bytes:data())
    for k = 0, n - 1 do p[k], p[n + k] = 0.1 * math.sin(k), 0.2 + 0.1 * math.cos(k) end
    p[2 * n] = 50
    return bytes
  end
  return normaliser.of_checkpoint(settings, space, { path = "made", tensors = { ["normalise.observation"] = statistics(space.shape[1]),
    ["normalise.return"] = statistics(1) } })
end

---Steps of two environments, one call each.
---@param agent Agent
---@param T integer
---@param graph table? of mneme.portable.step_graph: then gradients of its parameters, too
---@return table { steps = { observation, done, previous_action, previous_reward, distribution, value: lists of numbers }, grads = { name, values } }
function rig.run(agent, T, graph)
  local B, draw, space, action = 2, random(11), agent.observation_space, agent.action_space
  local state, steps, loss = agent.core:initial(B), {}, nil
  local function step(t)
    local x = tensor.new { shape = { 1, B, unpack(space.shape) }, dtype = space.dtype }
    local done = tensor.new { shape = { 1, B }, dtype = "u8" }
    local previous, one = agent:previous_leaves(1, B) or nil, {}
    for i = 0, x:size() - 1 do
      local v = space.dtype == "u8" and math.floor(draw() * ((space.codes or 0) > 0 and space.codes or 256)) or draw() * 2 - 1
      for _, part in ipairs(space.parts or {}) do
        local k = i % (x:size() / B)
        if k >= part.from and k < part.from + part.n then
          v = part.kind == "codes" and math.floor(draw() * part.codes) or part.kind == "picture" and math.floor(draw() * 256) or part.kind == "mask" and 1 or v
        end
      end
      x:data()[i] = v
    end
    for b = 0, B - 1 do done:data()[b] = (t == 1 or (t + 3 * b) % 5 == 0) and 1 or 0 end
    one.observation, one.done = list_of(x), list_of(done)
    if previous and previous.action then
      local a, n = previous.action, previous.action:size() / B
      one.previous_action = {}
      for i = 0, a:size() - 1 do
        local v = action.kind == "box" and draw() * 2 - 1 or math.floor(draw() * (action.kind == "discrete" and action.n or action.counts[i % n + 1]))
        one.previous_action[i + 1] = v
        a:data()[i] = one.done[math.floor(i / n) + 1] == 0 and v or action.kind == "box" and 0 or -1
        if action.kind == "box" then one.previous_action[i + 1] = one.done[math.floor(i / n) + 1] == 0 and tonumber(a:data()[i]) or v end
      end
    end
    if previous and previous.reward then
      one.previous_reward = {}
      for b = 0, B - 1 do
        local r = math.floor(draw() * 64) / 32
        one.previous_reward[b + 1] = r
        previous.reward:data()[b] = one.done[b + 1] == 1 and 0 or agent.normaliser and agent.normaliser:reward(r) or r
      end
    end
    local read = x
    if agent.normaliser and agent.normaliser.norm_obs then
      read = tensor.new { shape = x:shape() }
      agent.normaliser:observations(x:data(), read:data(), B)
    end
    local p, value, after = agent:act(read, done, state, nil, previous)
    if graph then
      local weights = tensor.new { shape = { agent.actions } }
      for k = 0, agent.actions - 1 do weights:data()[k] = (k + 1) * 0.3 end
      local now = (p * weights):sum() + value:sum()
      loss = loss and loss + now or now
      state = after
    else state = tensor.keep(after) end
    one.distribution, one.value = list_of(p), list_of(value)
    steps[t] = one
  end
  for t = 1, T do if graph then step(t) else tensor.no_grad(step, t) end end
  local out = { steps = steps }
  if graph then
    loss:backward()
    out.grads = {}
    for _, v in ipairs(graph.nodes) do
      if v.op == "parameter" and v.tensor:wants_grad() then
        local g = v.tensor:grad_data()
        for _, w in ipairs(v.windows or { { name = v.name, first = 0, n = v.tensor:size() } }) do
          local values = {}
          for i = 0, w.n - 1 do values[i + 1] = tonumber(g[w.first + i]) end
          out.grads[#out.grads + 1] = { name = w.name, values = values }
        end
      end
    end
  end
  mn.clear_tape()
  return out
end

return rig
