-- check_own_parts.lua -- before a training: does a core of the user's clear its memory where `done` says so, are its single steps its
-- sequence, and does each environment have a memory of its own?  Are single steps of an own torso and own heads their sequence?  If not, it
-- would train without a word and act as another agent than the one that learned.  A part of the contract (contract.lua, mneme check
-- core=FILE.lua), on the very core and in a tenth of a second.
local errors = require "mneme.base.errors"
local random = require "mneme.tensor.random"
local lazy = require "mneme.base.lazy"
local plans = require "mneme.tensor.plan"
local contract_rig = lazy "mneme.models.contract_rig"
local state_arrays = lazy "mneme.models.state_arrays"
local tensor = require "mneme.tensor.tensor"

local own_parts = {}
local T, B, K = 5, 2, 2                  -- steps, environments, and the step at which an episode begins in the first of them
local CLEARS = { exact = true, ["up to tick"] = true }      -- claims of a reset that can be compared with a fresh start
local FAR = 1e-3                         -- a share of the largest number; rounding stays far below it

-- Where a core of the user's is written; of the library's, with a feature map of theirs, the script's line serves.
local function written(c) return c.forward and not errors.ours(debug.getinfo(c.forward, "S")) and errors.position_of(c.forward) or nil end

-- The largest difference of two tensors in one environment, as in contract_rig.apart, and the place before `axis` where it is.
local function difference(got, want, axis, env)
  local outer, inner = state_arrays.around(got:shape(), axis)
  local p, q, worst, scale, place = got:data(), want:data(), 0, 1, 0
  for o = 0, outer - 1 do
    for i = (o * B + env) * inner, (o * B + env + 1) * inner - 1 do
      local d = math.abs(p[i] - q[i])
      if d > worst then worst, place = d, o end
      scale = math.max(scale, math.abs(q[i]))
    end
  end
  return worst / scale > FAR and worst or nil, place
end

-- What differs between two courses { y, state } in one environment, in words; nil: nothing does.  `from`: the step of their first row.
local function apart(c, got, want, env, from)
  local worst, row = difference(got[1], want[1], 2, env)
  if worst then return ("y of step %d differs by %.2g"):format(from + row, worst) end
  local a, b = got[2], want[2]
  if next(b) then a, b = contract_rig.visible(c, a), contract_rig.visible(c, b) end
  for _, name in ipairs(next(b) and c:state_names() or {}) do
    worst = not c:is_constant(name) and difference(a[name], b[name], c:batch_axis(name), env)
    if worst then return ("state %s after step %d differs by %.2g"):format(name, T - 1, worst) end
  end
end

-- Rows from .. to-1 of a course, as one.
local function part(course, from, to) return { contract_rig.rows(course[1], from, to), course[2] } end

-- An agent that acts runs its core's plan row by row.
local function by_rows(c)
  local x, done = tensor.sequence { shape = { T, B, c.config.d_in } }, tensor.sequence { shape = { T, B }, dtype = "u8" }
  local plan = plans(function(...) return c:act(...) end)
  local ok, problem = pcall(function() plan(x, done, contract_rig.warm(c, B)) return plan:rows(0, 1) end)
  if ok then return end
  errors.raise(("core %s: it cannot act step by step: %s"):format(c.name, (errors.is(problem) and problem.message or tostring(problem)):gsub("^plan: ", "")),
    { where = written(c), hint = "a loop over time is an op, or mn.recur; a constant of each step and environment is made of x, as "
      .. "x:slice(-1, 0, 1) * 0 + 1; what is the same at every step has no axis of time and environment" })
end

local function compare(c, resets, draws)
  local function course(...) return { contract_rig.run(c, ...) } end
  local function refuse(text, what, hint)
    if what and not draws() then errors.raise(("core %s: %s: %s"):format(c.name, text, what), { where = written(c), hint = hint }) end
  end
  local x, start = contract_rig.normal({ T, B, c.config.d_in }, 1), contract_rig.warm(c, B)
  local undisturbed, other = course(x, nil, start, function(_, seen) return seen end), tensor.keep(x)
  local function step_by_step(sequence, done)
    if c.claims.steps ~= "exact" then return end
    local state, hint = start, "what a step needs of the steps before belongs into the state; mneme check core=FILE.lua checks the rest"
    local function compare_all(step, want, from)
      for b = 0, B - 1 do refuse("called step by step it is not its sequence", apart(c, step, want, b, from), hint) end
    end
    for t = 0, T - 1 do
      local step = course(contract_rig.rows(x, t, t + 1), done and contract_rig.rows(done, t, t + 1), state)
      state = step[2]
      compare_all({ step[1], {} }, { contract_rig.rows(sequence[1], t, t + 1), {} }, t)
    end
    compare_all({ sequence[1], state }, sequence, 0)
  end
  for t = 0, T - 1 do
    for i = 0, c.config.d_in - 1 do other:data()[(t * B + 1) * c.config.d_in + i] = 0.5 end
  end
  refuse("the input of one environment changes another", apart(c, course(other, nil, start), undisturbed, 0, 0), "axis 1 of x [T,B,d_in] is the environment")
  step_by_step(undisturbed)
  if not resets then return end
  local done, fresh = contract_rig.done(T, B, { { K, 0 } }), c:initial(B)
  local whole = course(x, done, start)
  if c.claims.reset == "up to tick" then fresh.tick:copy(select(2, contract_rig.run(c, contract_rig.rows(x, 0, K), nil, start)).tick) end
  refuse(("done is 1 at step %d of one environment, and another's memory changes"):format(K), apart(c, whole, undisturbed, 1, 0),
    "done is [T,B]: a flag for each step and environment")
  refuse(("done is 1 at step %d, and the memory is not cleared"):format(K), apart(c, part(whole, K, T), course(contract_rig.rows(x, K, T), nil, fresh), 0, K),
    "give done to the op that keeps the state; a memory that is never to be cleared has config = { reset = false }")
  step_by_step(whole, done)
end

-- What has no state gives for a step what it gives for that row of a sequence.
local function compare_rows(what, f, x, draws)
  local function course(input)
    local list
    tensor.no_grad(function()
      list = { f(input) }
      for i, t in ipairs(list) do list[i] = tensor.keep(t) end
    end)
    return list
  end
  local whole, other, outer, inner = course(x), tensor.keep(x), state_arrays.around(x:shape(), 2)
  for o = 0, outer - 1 do
    for i = (o * B + 1) * inner, (o * B + 2) * inner - 1 do other:data()[i] = 0 end
  end
  for i, got in ipairs(course(other)) do
    local worst = difference(got, whole[i], 2, 0)
    if worst and not draws() then
      errors.raise(("agent: its %s mixes environments: another's input changes what it gives for one by %.2g"):format(what, worst),
        { hint = "axis 1 of x [T,B,...] is the environment, of which there may be any number" })
    end
  end
  for t = 0, T - 1 do
    for i, got in ipairs(course(contract_rig.rows(x, t, t + 1))) do
      for b = 0, B - 1 do
        local worst = difference(got, contract_rig.rows(whole[i], t, t + 1), 2, b)
        if worst and not draws() then
          errors.raise(("agent: its %s sees other steps: step %d alone differs by %.2g from row %d of the sequence"):format(what, t, worst, t),
            { hint = "an agent acts one step at a time; what it needs of the steps before is the core's to keep" })
        end
      end
    end
  end
end

-- Observations as an environment may give them.
local function observations(space)
  local x = contract_rig.normal({ T, B, unpack(space.shape) }, 2)
  for _, field in ipairs(space.parts or {}) do
    local p, n = x:data(), field.kind == "picture" and 256 or field.codes
    for row = 0, n and T * B - 1 or -1 do
      for k = row * space.shape[1] + field.from, row * space.shape[1] + field.from + field.n - 1 do p[k] = math.floor(math.abs(p[k]) * 97) % n end
    end
  end
  if space.dtype ~= "u8" then return x end
  local bytes = tensor.new { shape = x:shape(), dtype = "u8" }
  for i = 0, x:size() - 1 do bytes:data()[i] = math.floor(math.abs(x:data()[i]) * 97) % (space.codes or 256) end
  return bytes
end

---Run an agent's (or sequence model's) core for a few steps with an episode that begins among them, if the core, its gate, decay or feature
---map is the user's, and likewise an own torso and own heads; an error says what of `done`, steps and environments is not kept, and where it is
---written.  Parameters and random streams stay as they are.  What draws random numbers of its own is not compared.
---@param agent Agent|SequenceModel
---@param about table its description for config.json
---@param resets boolean? false: its memory is never to be cleared
---@param own_core boolean? is the core, or one of its gates, decays and feature maps, the user's?
function own_parts.check(agent, about, resets, own_core)
  local c = agent.core
  local own, parts = c.forward and c.claims and own_core, about.torso or about.policy or about.value
  local seen = {}
  agent.module:each(function(name)
    local where = name:find "^core%." and written(c) or nil
    seen[name] = not seen[name] or errors.raise(("two tensors are called %s, expected a name of its own for each"):format(name), { where = where })
  end)
  if not own and not parts then return end
  local drawn, quiet = random.state() and tensor.keep(random.state()), {}
  local function draws()
    local now = random.state()
    return now ~= nil and (drawn and contract_rig.bytes(now) ~= contract_rig.bytes(drawn) or not drawn and (now:data()[2] ~= 0 or now:data()[3] ~= 0))
  end
  agent.module:train(false, quiet)
  local ok, problem = xpcall(function()
    if parts then
      compare_rows("torso", agent.torso, observations(agent.observation_space), draws)
      compare_rows("policy or value head", agent.heads, contract_rig.normal({ T, B, c.d_out }, 3), draws)
    end
    if own then compare(c, resets ~= false and CLEARS[c.claims.reset] and c.config.reset ~= false and next(c.states) ~= nil, draws) by_rows(c) end
  end, errors.handler)
  for _, module in ipairs(quiet) do
    module.training = true
    if module.switched then module.switched(true) end
  end
  if drawn then random.set_state(drawn) elseif draws() then
    local words = random.state():data()
    words[2], words[3] = 0, 0
  end
  if not ok then error(problem, 0) end
end

return own_parts
