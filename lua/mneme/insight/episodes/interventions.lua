-- interventions.lua -- interventions on an agent and its environment while it acts.  A list of:
--   { at = 40, kind = "erase", what = "layers.2.head.1" }              reset to its initial value
--   { at = 40, kind = "swap", what = "all" }                           take it from the next environment's episode, or from
--                                                                      donor = { memory = as in a Frame, episode = number }
--   { at = 40, kind = "hold", what = "layers.2.head.1", steps = 10 }   keeps what it holds before step `at`; steps: nil: to the end
--   { at = 40, kind = "force", what = "layers.0.beta", to = 0.5, steps = 10 }
--   { at = 40, kind = "freeze", what = "layers.0.beta", steps = 10 }   keeps its value of step `at`
--   { at = 40, kind = "set", what = "position", to = 3 }               and shift (by = -2), flip (to another value)
-- Each applies at step `at`, before the agent processes its observation; a change of the environment changes the observation, too.
-- Parts of a memory: all, layers.2, layers.2.head.1, layers.2.head.1.C, layers.2.channels.0-15, a state's name, or that with an
-- index of its first axis, memory.2; memory_parts.lua lists them.  A probe: its name, or layers.0.head.1.beta.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local state_arrays = require "mneme.models.state_arrays"
local tensor = require "mneme.tensor.tensor"

local interventions = {}

---@class Interventions
---@field specs table[] as above; `done` of each: in how many environments it was applied
local List = {}
List.__index = List

---The keys of each kind besides at, kind and what.
interventions.kinds = {
  erase = {}, hold = { steps = true }, swap = { donor = true }, force = { to = true, steps = true }, freeze = { steps = true },
  set = { to = true }, shift = { by = true }, flip = {},
}

-- ---- parts of a memory, and of a probe ----

local function heads_text(n) return n > 1 and ("0..%d"):format(n - 1) or "0" end

---The axis of heads of a state; nil without one.
---@param core Core
---@param name string of the state
---@return integer?
function interventions.head_axis(core, name)
  local axis = 0
  for letter in core.states[name]:gmatch "%w+" do
    axis = axis + 1
    if letter == "H" then return axis end
  end
end

-- The parts of a core's memory, for error messages.
local function known_parts(core)
  local names, seen = { "all" }, { all = true }
  for _, name in ipairs(core:state_names()) do
    local word = name:match "^layers%.%d+" or name
    if not seen[word] then names[#names + 1], seen[word] = word, true end
    if interventions.head_axis(core, name) and not seen.head then
      seen.head = ("layers.N.head.M with M = %s"):format(heads_text(core.sizes.H))
    end
  end
  names[#names + 1] = seen.head
  return "known: " .. table.concat(names, ", ")
end

-- States whose name begins so (and ends so).
local function beginning(core, prefix, kind)
  local list = {}
  for _, name in ipairs(core:state_names()) do
    local inside = name:sub(1, #prefix + 1) == prefix .. "."
    if inside and (not kind or name == prefix .. "." .. kind) then list[#list + 1] = { name = name } end
  end
  return list
end

local function parts_of_head(core, word, prefix, head, kind)
  local list = {}
  for _, part in ipairs(beginning(core, prefix, kind)) do
    part.axis, part.index = interventions.head_axis(core, part.name), tonumber(head)
    if part.axis then list[#list + 1] = part end
  end
  if #list == 0 then errors.usage(("%s: %s of %s has no heads"):format(word, prefix, core.name), known_parts(core)) end
  if tonumber(head) >= core.sizes.H then
    errors.usage(("%s: %s of %s has heads %s"):format(word, prefix, core.name, heads_text(core.sizes.H)))
  end
  return list
end

-- Channels first..last of a layer, or of one state, whose states are vectors.
local function parts_of_channels(core, word, prefix, first, last)
  local list = core.states[prefix] and { { name = prefix } } or beginning(core, prefix)
  for _, part in ipairs(list) do
    local shape, batch = core:state_shape(part.name, 1), core:batch_axis(part.name)
    part.axis, part.index, part.last = 3 - batch, first, last
    if #shape ~= 2 then errors.usage(("%s: %s of %s is not a vector, it has no channels"):format(word, part.name, core.name)) end
    if first > last or last >= shape[part.axis] then
      errors.usage(("%s: %s of %s has channels 0..%d"):format(word, part.name, core.name, shape[part.axis] - 1))
    end
  end
  return list
end

---The parts of a core's memory that a word names.
---@param core Core
---@param word string
---@return table[] parts { name = state, axis = nil|from 1, index = nil|from 0, last = nil|of several indices }
function interventions.parts(core, word)
  local list = {}
  if next(core.states) == nil then errors.usage(("%s: %s has no memory"):format(word, core.name)) end
  if core.states[word] then return { { name = word } } end
  if word == "all" then
    for i, name in ipairs(core:state_names()) do list[i] = { name = name } end
    return list
  end
  local prefix, head, kind = word:match "^(.+)%.head%.(%d+)%.?(.*)$"
  if prefix and #beginning(core, prefix) > 0 then
    return parts_of_head(core, word, prefix, head, kind ~= "" and kind or nil)
  end
  local vectors, first, last = word:match "^(.+)%.channels%.(%d+)%-(%d+)$"
  if vectors then list = parts_of_channels(core, word, vectors, tonumber(first), tonumber(last)) end
  if #list > 0 then return list end
  list = beginning(core, word)
  local name, index = word:match "^(.+)%.(%d+)$"
  if #list == 0 and core.states[name] then
    local axis = core:batch_axis(name) == 1 and 2 or 1
    local size = core:state_shape(name, 1)[axis]
    if not size or tonumber(index) >= size then
      local parts = size and ("parts 0..%d"):format(size - 1) or "no parts"
      errors.usage(("%s: %s of %s has %s"):format(word, name, core.name, parts))
    end
    return { { name = name, axis = axis, index = tonumber(index) } }
  end
  if #list == 0 then
    local letter, digits = word:match "^(%a?)%a*[._-]?(%d+)$"
    local near = digits and (letter == "h" and "layers.0.head." or "layers.") .. digits
    near = near and #beginning(core, near:match "^layers%.%d+") > 0 and ("did you mean %s?  "):format(near) or ""
    errors.usage(("unknown part of the memory of %s: '%s'"):format(core.name, word), near .. known_parts(core))
  end
  return list
end

---The probe that a word names, as a part of its values [B,...].
---@param stepper Stepper
---@param word string "layers.0.beta", "layers.0.head.1.beta"
---@return table part { name, shape, axis = nil|from 2, index = nil|from 0 }
function interventions.probe(stepper, word)
  local prefix, head, kind = word:match "^(.+)%.head%.(%d+)%.(.+)$"
  local name = prefix and prefix .. "." .. kind or word
  local t = stepper.probes[name]
  if not t then
    errors.unknown(("gate or probe of %s:"):format(stepper.agent.core.name), name, tables.keys(stepper.probes))
  end
  local shape, part = t:shape(), { name = name }
  if shape[1] == 1 then
    errors.usage(("%s: computed on demand from the state of %s, cannot be clamped"):format(name, stepper.agent.core.name))
  end
  table.remove(shape, 1)
  part.shape = shape
  if not head then return part end
  local H = stepper.agent.core.sizes.H
  for axis = 2, #shape do
    if not part.axis and shape[axis] == H then part.axis = axis end
  end
  if not part.axis then errors.usage(("%s: %s has no heads"):format(word, name)) end
  if tonumber(head) >= H then errors.usage(("%s: %s has heads %s"):format(word, name, heads_text(H))) end
  part.index = tonumber(head)
  return part
end

-- Ranges { offset, length } of a part in a tensor, of the environments first .. to.
local function stretches(shape, batch_axis, first, to, part)
  local from, upto, last, n, list = { [batch_axis] = first }, { [batch_axis] = to }, batch_axis, 1, {}
  if part.axis then from[part.axis], upto[part.axis], last = part.index, part.last or part.index, math.max(last, part.axis) end
  for i = last + 1, #shape do n = n * shape[i] end
  local function walk(axis, offset)
    local low, high = from[axis] or 0, upto[axis] or shape[axis] - 1
    if axis == last then list[#list + 1] = { (offset * shape[axis] + low) * n, (high - low + 1) * n }
    else for i = low, high do walk(axis + 1, offset * shape[axis] + i) end end
  end
  walk(1, 0)
  return list
end

-- Kept with the part.
local function stretches_of_state(core, part, env, num_envs)
  local kept = part.stretches
  if not kept or kept.core ~= core or kept.num_envs ~= num_envs then
    kept = { core = core, num_envs = num_envs }
    part.stretches = kept
  end
  kept[env] = kept[env] or stretches(core:state_shape(part.name, num_envs), core:batch_axis(part.name), env, env, part)
  return kept[env]
end

---Copy parts of a memory of one environment into that of another.
---@param core Core
---@param parts table[] of interventions.parts
---@param from table<string, Tensor> states of from_B environments
---@param from_env integer from 0
---@param from_B integer
---@param to table<string, Tensor> likewise
---@param to_env integer
---@param to_B integer
function interventions.copy(core, parts, from, from_env, from_B, to, to_env, to_B)
  for _, part in ipairs(parts) do
    local source, target = from[part.name]:data(), to[part.name]:data()
    local theirs = stretches_of_state(core, part, from_env, from_B)
    for k, s in ipairs(stretches_of_state(core, part, to_env, to_B)) do ffi.copy(target + s[1], source + theirs[k][1], 4 * s[2]) end
  end
end

---The values of parts of the memory of one environment, one after another.
---@param core Core
---@param parts table[] of interventions.parts
---@param values fun(name: string): ffi.cdata* of a state of B environments
---@param env integer from 0
---@param B integer
---@param into ffi.cdata*? float *; nil: only count
---@return integer n
function interventions.gather(core, parts, values, env, B, into)
  local n = 0
  for _, part in ipairs(parts) do
    for _, s in ipairs(stretches_of_state(core, part, env, B)) do
      if into then ffi.copy(into + n, values(part.name) + s[1], 4 * s[2]) end
      n = n + s[2]
    end
  end
  return n
end

-- ---- making a list ----

local function whole(spec, key, least) errors.whole(("%s=%s"):format(spec.kind, tostring(spec.what)), key, spec[key], least) end

local function finite(spec, key)
  local x = spec[key]
  if type(x) ~= "number" or x - x ~= 0 then errors.usage(("%s %s: %s=%s, expected a finite number"):format(spec.kind, spec.what, key, tostring(x))) end
end

-- The fact; for a flip without a name the first one with discrete values.
local function find_fact(env, spec)
  if spec.kind ~= "flip" or spec.what or #env.settable == 0 then return env:fact(spec.what) end
  for _, fact in ipairs(env.settable) do
    if fact.whole then return fact end
  end
  errors.usage(("flip: no fact of %s has values to choose from"):format(env.id), "set or shift one; mneme help lists them")
end

-- A donor must have the same arrays, of the same size.
local function check_donor(stepper, spec)
  errors.need(("swap %s: the donor"):format(spec.what), spec.donor, "memory", "{ memory = that of a frame, episode = a number }")
  spec.donor_states = {}
  if type(spec.donor.episode) ~= "number" then errors.usage(("swap %s: the donor has no episode, a number"):format(spec.what)) end
  for _, part in ipairs(spec.parts) do
    local array, n = spec.donor.memory[part.name], state_arrays.size(stepper.memory[part.name].shape)
    if not array or type(array.values) ~= "cdata" or ffi.sizeof(array.values) ~= 4 * n then
      errors.usage(("swap %s: the donor has not the %d numbers of %s"):format(spec.what, n, part.name))
    end
    spec.donor_states[part.name] = { data = function() return array.values end }          -- as tensors are read
  end
end

-- Checks one intervention and resolves its parts.
local function resolve(stepper, given)
  errors.need("interventions: one of the list", given, "kind", '{ at = 40, kind = "erase", what = "all" }')
  local spec, takes = {}, interventions.kinds[given.kind]
  if not takes then errors.unknown("kind of intervention", given.kind, tables.keys(interventions.kinds)) end
  for key, value in pairs(given) do
    if key ~= "at" and key ~= "kind" and key ~= "what" and not takes[key] then
      errors.unknown(("key of %s:"):format(given.kind), key, { "at", "kind", "what", unpack(tables.keys(takes)) })
    end
    spec[key] = value
  end
  whole(spec, "at", 0)
  if spec.steps then whole(spec, "steps", 1) end
  if type(spec.what) ~= "string" and spec.kind ~= "flip" then
    errors.usage(("%s: what is %s, expected a text"):format(spec.kind, tostring(spec.what)))
  end
  if spec.kind == "erase" or spec.kind == "hold" or spec.kind == "swap" then
    spec.parts = interventions.parts(stepper.agent.core, spec.what)
    if spec.donor then check_donor(stepper, spec) end
  elseif spec.kind == "force" or spec.kind == "freeze" then
    spec.part = interventions.probe(stepper, spec.what)
    stepper.holds = (stepper.holds or 0) % 255 + 1
    spec.owner = stepper.holds
    if spec.kind == "force" then finite(spec, "to") end
  else
    spec.fact = find_fact(stepper.env, spec)
    spec.what = spec.fact.name
    if spec.kind == "flip" and not spec.fact.whole then
      errors.usage(("flip %s: it is continuous, from %g to %g"):format(spec.what, spec.fact.lo, spec.fact.hi),
        "set or shift it")
    end
    if spec.kind == "set" then spec.to = stepper.env:fact_value(spec.fact, spec.to) end
    if spec.kind == "shift" then finite(spec, "by") end
  end
  spec.done = 0
  return spec
end

---Checks interventions for a stepper.  Where probes are clamped its plan is recorded again, so call it
---not between forward() and step().
---@param stepper Stepper
---@param list table[] see above
---@return Interventions
function interventions.new(stepper, list)
  errors.need("interventions: the stepper", stepper, "probes", "a Stepper")
  errors.need("interventions: the list", list, nil, '{ { at = 40, kind = "erase", what = "all" }, ... }')
  local self, held = setmetatable({ stepper = stepper, specs = {} }, List), {}
  for i, given in ipairs(list) do
    local spec = resolve(stepper, given)
    self.specs[i] = spec
    if spec.part then held[#held + 1] = spec.part.name end
  end
  stepper:clamp_probes(held)
  return self
end

-- ---- applying them ----

-- Copies parts of a memory into an environment's state, from environment `donor` of states of `num_envs` of them.
local function put(stepper, spec, env, states, donor, num_envs)
  interventions.copy(stepper.agent.core, spec.parts, states, donor, num_envs, stepper.state, env, stepper.num_envs)
end

-- The parts as they are now, in all environments.
local function keep(stepper, spec)
  local now = {}
  for _, part in ipairs(spec.parts) do now[part.name] = stepper.state[part.name] end
  return tensor.keep(now)
end

-- Where a held part lies in the environments of a list, in as few ranges as there can be: they are copied at every step.
local function held_ranges(stepper, part, envs)
  local core, list, i = stepper.agent.core, {}, 1
  local shape, axis = core:state_shape(part.name, stepper.num_envs), core:batch_axis(part.name)
  while envs[i] do
    local first, to = envs[i], envs[i]
    while envs[i + 1] == to + 1 do i, to = i + 1, to + 1 end
    for _, s in ipairs(stretches(shape, axis, first, to, part)) do
      local before = list[#list]
      if before and before[1] + before[2] == s[1] then before[2] = before[2] + s[2] else list[#list + 1] = s end
    end
    i = i + 1
  end
  return list
end

local function put_back(stepper, spec, envs)
  local held = {}
  for _, env in ipairs(envs) do if spec.held[env] then held[#held + 1] = env end end
  local which = table.concat(held, " ")
  if spec.which ~= which then
    spec.which, spec.ranges = which, tables.map(spec.parts, function(part) return held_ranges(stepper, part, held) end)
  end
  stepper:restart_plan()
  for p, part in ipairs(spec.parts) do
    local from, to = spec.kept[part.name]:data(), stepper.state[part.name]:data()
    for _, s in ipairs(spec.ranges[p]) do ffi.copy(to + s[1], from + s[1], 4 * s[2]) end
  end
end

-- Calls f(mask, owner, value, i) for each element of a part of a clamped probe.
local function each_element(stepper, spec, env, f)
  local held = stepper.held[spec.part.name]
  local mask, owner, values = held.mask:data(), held.owner:data(), held.value:data()
  for _, s in ipairs(stretches(spec.part.shape, 1, env, env, spec.part)) do
    for i = s[1], s[1] + s[2] - 1 do f(mask, owner, values, i) end
  end
end

-- Clamps a part of a probe to value(i) at its element i.
local function clamp(stepper, spec, env, value)
  each_element(stepper, spec, env, function(mask, owner, values, i) mask[i], owner[i], values[i] = 1, spec.owner, value(i) end)
end

-- Releases the elements that no later intervention clamps.
local function release(stepper, spec, env)
  each_element(stepper, spec, env, function(mask, owner, _, i) if owner[i] == spec.owner then mask[i] = 0 end end)
end

-- What some kinds keep before they are applied.
local before = {}
function before.hold(stepper, spec) spec.kept, spec.held = keep(stepper, spec), {} end
function before.swap(stepper, spec) spec.kept = not spec.donor and keep(stepper, spec) or nil end

-- Each applies an intervention in an environment, envs[i]; false: it cannot be applied there.
local apply = {}

function apply.erase(stepper, spec, env) put(stepper, spec, env, stepper.start, env, stepper.num_envs) end

-- Nothing changes at this step; `put_back` restores what is kept before each step that follows.
function apply.hold(_, spec, env) spec.held[env] = true end

-- It takes the memory of the next environment in the list, or the donor's.
function apply.swap(stepper, spec, env, envs, i)
  if spec.donor then return put(stepper, spec, env, spec.donor_states, 0, 1) end
  if #envs < 2 then return false end
  put(stepper, spec, env, spec.kept, envs[i % #envs + 1], stepper.num_envs)
end

function apply.force(stepper, spec, env) clamp(stepper, spec, env, function() return spec.to end) end

-- Called one step later, when the value of step `at` can be read.
function apply.freeze(stepper, spec, env)
  local t = stepper.probes[spec.part.name]:data() + stepper.row_before * state_arrays.size(spec.part.shape)
  clamp(stepper, spec, env, function(i) return t[i] end)
end

-- The candidate values of a fact; the first that the environment accepts is set.
local function wanted(spec, now)
  local fact, list = spec.fact, {}
  if spec.kind == "set" then list[1] = spec.to
  elseif spec.kind == "shift" then
    local to = now + spec.by
    if to >= fact.lo and to <= fact.hi and (not fact.whole or to % 1 == 0) then list[1] = to end
  else
    local n = fact.hi - fact.lo + 1
    for i = 1, n - 1 do list[i] = fact.lo + (now - fact.lo + i) % n end
  end
  return list
end

local function change_world(stepper, spec, env)
  for _, value in ipairs(wanted(spec, stepper.env:truth(env)[spec.what])) do
    if stepper.env:set(env, spec.what, value, stepper:observations() + env * stepper.n) then return true end
  end
  return false
end
apply.set, apply.shift, apply.flip = change_world, change_world, change_world

---Applies the interventions of a step: call it between the stepper's step() and forward().
---@param step integer
---@param envs integer[] indices of environments; {}: nothing changes, but the plan restarts at the same steps
---@return integer[] refused environments in which something could not be applied: no other episode to swap with, a value that is refused
function List:before(step, envs)
  local stepper, refused = self.stepper, {}
  for _, spec in ipairs(self.specs) do
    local now = step == spec.at + (spec.kind == "freeze" and 1 or 0)
    if now and spec.parts then stepper:restart_plan() end
    if now and before[spec.kind] then before[spec.kind](stepper, spec) end
    for i, env in ipairs(now and envs or {}) do
      if apply[spec.kind](stepper, spec, env, envs, i) == false then refused[#refused + 1] = env else spec.done = spec.done + 1 end
    end
    local over = spec.steps and step >= spec.at + spec.steps
    if spec.kind == "hold" and spec.kept and step > spec.at and not over then put_back(stepper, spec, envs) end
    if spec.part and spec.steps and step == spec.at + spec.steps then
      for _, env in ipairs(envs) do release(stepper, spec, env) end
    end
  end
  return refused
end

---Releases every clamped probe in every environment.
function List:release()
  for _, held in pairs(self.stepper.held) do held.mask:fill(0) end
end

---An intervention in words: "force layers.0.beta to 0.5 for 10 steps".
---@param spec table
---@return string
function interventions.text(spec)
  local words = { spec.kind, spec.what }
  if spec.to then
    local fact = spec.fact
    words[#words + 1] = "to " .. tostring(fact and fact.words and fact.words[spec.to + 1] or spec.to)
  end
  if spec.by then words[#words + 1] = ("by %g"):format(spec.by) end
  if spec.donor then words[#words + 1] = ("with episode %d"):format(spec.donor.episode) end
  if spec.steps then words[#words + 1] = ("for %d step%s"):format(spec.steps, spec.steps > 1 and "s" or "") end
  return table.concat(words, " ")
end

return interventions
