-- step_graph.lua -- an agent's step of acting as a graph of primitives: what every form of `mneme export` is written from.
--   observation, done, states, previous action and reward -> parameters of the policy's distribution, value, states
local ffi = require "ffi"
local op_binding = require "mneme.tensor.op_binding"
local errors = require "mneme.base.errors"
local plan = require "mneme.tensor.plan"
local primitives = require "mneme.portable.primitives"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local step_graph = {}

local handle = ffi.typeof "mn_tensor"

-- A tensor's name while it lasts.
local function key_of(t) return t.slot .. ":" .. t.gen end

-- The ops that f, a function of leaves, applies while a plan records it: calls { op, signature, given = tensors or false by place, options = numbers
-- by name (words as words), out = tensors, where }, with leaves = { shape, values } by key of what no call computed, which may be freed before anyone
-- reads it; and what f gives.
local function record(f)
  local calls, made = { leaves = {} }, {}
  local function keep(t)
    local key = key_of(t)
    if made[key] or calls.leaves[key] then return end
    calls.leaves[key] = { shape = t:shape(), learned = t:wants_grad() }
    if calls.leaves[key].learned then return end
    local data = t:data()
    calls.leaves[key].values = tables.filled(t:size(), function(i) return tonumber(data[i - 1]) end)
  end
  local function note(name, signature, given, options, out)
    local call = { op = name, signature = signature, given = {}, options = {}, out = {}, where = errors.position() }
    for i = 1, #signature.inputs do
      local t = given[i - 1]
      call.given[i] = t.gen ~= 0 and handle(t.slot, t.gen) or false
      if call.given[i] then keep(call.given[i]) end
    end
    for i, o in ipairs(signature.options) do call.options[o.name] = o.words and o.words[options[i - 1] + 1] or options[i - 1] end
    for i = 1, #signature.outputs do
      call.out[i] = handle(out[i - 1].slot, out[i - 1].gen)
      made[key_of(call.out[i])] = true
    end
    calls[#calls + 1] = call
  end
  local recorded = plan(function() return tensor.off_tape(f) end)
  local before = op_binding.tracing
  op_binding.tracing = note
  local results = { pcall(recorded) }
  op_binding.tracing = before
  if not results[1] then error(results[2], 0) end
  calls.plan = recorded                        -- keeps what was computed
  return calls, { unpack(results, 2, 12) }
end

local function lowering()
  require "mneme.portable.memory_lowering"
  return require "mneme.portable.slot_lowering"
end

-- Observations as the agent's torso reads them.
local function normalised(agent, x)
  local n = agent.normaliser
  if not n or not n.norm_obs then return x end
  local shift, scale, touched = n:scales()
  local size = #shift
  local y = (x:reshape(x.shape[1], size) - primitives.constant(x.graph, { size }, shift)) / primitives.constant(x.graph, { size }, scale)
  if n.clip_obs > 0 then
    local most = primitives.filled(x.graph, size, function(k) return touched[k + 1] and n.clip_obs or 3e38 end)
    y = y:minimum(most):maximum(-most)
  end
  return y:reshape(x.shape)
end

-- The leaves of a call of one step of B environments.
local function leaves(agent, B)
  local space = agent.observation_space
  local dtype = not (agent.normaliser and agent.normaliser.norm_obs) and space.dtype or "f32"
  return { x = tensor.new { shape = { 1, B, unpack(space.shape) }, dtype = dtype, time = true },
    done = tensor.new { shape = { 1, B }, dtype = "u8", time = true }, state = agent.core:initial(B), previous = agent:previous_leaves(1, B) or nil }
end

-- What a state is called in a file's code.
local function word(name) return "state_" .. name:gsub("[^%w]", "_") end

-- The named parameters that are windows on a leaf, in its order; nil: they do not cover it.
local function windows_of(agent, leaf)
  local list, from, at = {}, leaf:data(), 0
  for name, t in pairs(agent.module:state_dict()) do
    local first = t:data() - from
    if t:dtype() == "f32" and first >= 0 and first < leaf:size() then
      list[#list + 1] = { name = name, shape = t:shape(), first = tonumber(first), n = t:size() }
    end
  end
  table.sort(list, function(a, b) return a.first < b.first end)
  for _, window in ipairs(list) do
    if window.first ~= at then return nil end
    at = at + window.n
  end
  return at == leaf:size() and list or nil
end

local function graph_of(agent, B)
  local ops, of = lowering(), leaves(agent, B)
  local calls, results = record(function() return agent:act(of.x, of.done, of.state, nil, of.previous) end)
  local graph, values, parameters = primitives.graph(), {}, {}
  graph.calls = calls                          -- keeps what was computed, which `folded` reads
  for name, t in pairs(agent.module:state_dict()) do parameters[key_of(t)] = name end

  local space = agent.observation_space
  graph.inputs, graph.outputs = {}, {}
  local function input(name, leaf, shape, about)
    local v = primitives.input(graph, name, shape)
    graph.inputs[#graph.inputs + 1] = { name = name, value = v, about = about }
    return v, leaf and key_of(leaf)
  end
  local v, key = input("observation", of.x, { B, unpack(space.shape) }, "as the environment gives it")
  values[key] = normalised(agent, v):unsqueeze(0)
  v, key = input("done", of.done, { B }, "1 where this observation begins an episode, else 0")
  values[key] = v:unsqueeze(0)
  local function previous(name, shape, none, about, change)
    v, key = input("previous_" .. name, of.previous[name], shape, about .. " of the step before; where an episode begins it is not read")
    local begins = tables.filled(#shape, function(i) return i == 1 and B or 1 end)
    values[key] = graph.inputs[2].value:reshape(begins):where(none, change(v)):unsqueeze(0)
  end
  if of.previous and of.previous.action then
    local t = of.previous.action
    previous("action", { unpack(t:shape(), 2) }, t:dtype() == "f32" and 0 or -1, "the action", function(x) return x end)
  end
  if of.previous and of.previous.reward then
    local n = agent.normaliser
    previous("reward", { B }, 0, "the reward", function(x)
      if n and n:reward_scale() ~= 1 then x = x / n:reward_scale() end
      return n and n.clip_reward > 0 and x:minimum(n.clip_reward):maximum(-n.clip_reward) or x
    end)
  end
  for _, name in ipairs(agent.core:state_names()) do
    v, key = input(word(name), of.state[name], agent.core:state_shape(name, B), name)
    graph.inputs[#graph.inputs].state = name
    values[key] = v
  end

  local produced = {}                          -- outputs by key: the call
  local function value_of(t)
    local k = key_of(t)
    if not values[k] and produced[k] then
      errors.fail(("export: an output of op %s that this form of export does not know is read%s"):format(produced[k].op,
        produced[k].where and "; it is applied in " .. produced[k].where or ""), "to=agent.safetensors exports the parameters of any agent")
    elseif not values[k] then
      local leaf, name = calls.leaves[k] or { shape = t:shape(), learned = t:wants_grad() }, parameters[k]
      local windows = not name and leaf.learned and windows_of(agent, t) or nil
      if windows then name = table.concat(tables.map(windows, function(window) return window.name end), " ") end
      if name or leaf.learned then
        values[k] = primitives.parameter(graph, name or "unnamed" .. #graph.nodes, leaf.shape, t:data())
        values[k].windows, values[k].tensor = windows, t
      else values[k] = primitives.constant(graph, leaf.shape, leaf.values or t:data()) end
    end
    return values[k]
  end

  for i, call in ipairs(calls) do
    local lower = ops[call.op]
    local function refuse(what)
      errors.fail(("export: op %s%s is not known to this form of export%s"):format(call.op, what and " (" .. what .. ")" or "",
        call.where and "; it is applied in " .. call.where or ("; it is op %d of %d of the agent's step (core %s)"):format(i, #calls, agent.core.name)),
        "to=agent.safetensors exports the parameters of any agent")
    end
    if type(lower) ~= "function" then refuse() end
    local x, given = {}, {}
    for k, about in ipairs(call.signature.inputs) do
      if call.given[k] then x[about.name], given[about.name] = value_of(call.given[k]), call.given[k] end
    end
    local c = { graph = graph, shapes = {}, refuse = refuse, numbers = function(name)
      if values[key_of(given[name])].op ~= "constant" then refuse(name .. " is computed") end
      return values[key_of(given[name])].list
    end }
    for k, t in ipairs(call.out) do c.shapes[k] = t.gen ~= 0 and t:shape() or nil end
    local first = #graph.nodes + 1
    local made = { lower(x, call.options, c) }
    if graph.nodes[first] then graph.nodes[first].note = call.op end
    for k, t in ipairs(call.out) do
      produced[key_of(t)] = call
      if made[k] then
        local want, got = table.concat(c.shapes[k], ","), table.concat(made[k].shape, ",")
        if want ~= got and call.op ~= "rmt" then
          errors.fail(("export: the lowering of %s gives output %d as [%s], expected [%s]"):format(call.op, k, got, want))
        end
        values[key_of(t)] = made[k]
        made[k].computed = t
      end
    end
  end

  local function output(name, t, shape, state)
    graph.outputs[#graph.outputs + 1] = { name = name, value = value_of(t):reshape(shape), state = state }
  end
  output("distribution", results[1], { B, agent.actions })
  output("value", results[2], { B })
  for _, name in ipairs(agent.core:state_names()) do
    output(word(name), results[3][name], agent.core:state_shape(name, B), name)
  end
  return graph
end

-- Nodes that no output needs are left out, and the others numbered again.
local function pruned(graph)
  local needed, kept = {}, {}
  for _, out in ipairs(graph.outputs) do needed[out.value] = true end
  for i = #graph.nodes, 1, -1 do
    local v = graph.nodes[i]
    if v.op == "input" then needed[v] = true end
    if needed[v] then for _, from in ipairs(v.from) do needed[from] = true end end
  end
  for _, v in ipairs(graph.nodes) do
    if needed[v] then
      kept[#kept + 1] = v
      v.id = #kept
    end
  end
  graph.nodes = kept
  return graph
end

-- What depends on no input is a constant, where its values are there from recording, and is computed no more.
local function folded(graph)
  local fixed = {}
  for _, v in ipairs(graph.nodes) do
    fixed[v] = v.op ~= "input"
    for _, from in ipairs(v.from) do fixed[v] = fixed[v] and fixed[from] end
    if fixed[v] and #v.from > 0 and v.computed and primitives.product(v.shape) == v.computed:size() then
      local data = v.computed:data()
      v.op, v.from, v.data = "constant", {}, nil
      v.list = tables.filled(v.computed:size(), function(i) return tonumber(data[i - 1]) end)
    end
  end
  return pruned(graph)
end

---The graph of one step of an agent, for one environment, with sizes for any number of them (primitives.generalise).
---@param learns boolean? what is made of parameters alone is computed at every step, so that gradients reach them
---@return table { nodes, inputs = { name, value, about, state = its name in the core }, outputs = { name, value, state }, start = { name =
---  numbers of one environment, from 0 on } }
function step_graph.graph(agent, learns)
  local graph = primitives.generalise(pruned(graph_of(agent, 1)), pruned(graph_of(agent, 2)))
  if not learns then graph = folded(graph) end
  graph.start = {}
  for name, t in pairs(agent.core:initial(1)) do graph.start[name] = t end
  graph.actions = agent.actions
  return graph
end

return step_graph
