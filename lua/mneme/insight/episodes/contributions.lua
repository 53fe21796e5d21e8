-- contributions.lua -- what each part of a memory contributes to what an agent does in an episode: how much its policy changes when
-- that part, at a step, is as it was before the episode, or as if one step had not been observed.  The observations stay as they were, so
-- that what changes is the memory alone, through all layers and later steps.  One scale for all parts: the share of the policy's
-- probability that moves; of a policy that is no softmax over few actions the most that can, by its KL.  Measured in small pieces, from
-- states that are kept at some steps.
local ffi = require "ffi"
local interventions = require "mneme.insight.episodes.interventions"
local memory_parts = require "mneme.insight.episodes.memory_parts"
local map_display = require "mneme.insight.episodes.map_display"
local progress = require "mneme.base.progress"
local plan = require "mneme.tensor.plan"
local state_arrays = require "mneme.models.state_arrays"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local pause = progress.pause
local contributions = {}
local COLUMNS = 32                 -- steps in which parts are changed, of a longer episode
local MOST_ROWS = 64               -- parts: of more, whole layers
contributions.TOLERANCE = 5e-3     -- of a probability: the episode is computed again, and must come out
local SEED, TRIES, ASKED = 2 ^ 20, 32, 8         -- of other episodes: the first, how many are tried, how many with another cue are looked at
local TINY = 1e-300
local LITTLE_OF_ALL = 0.05         -- of a policy's probability, moved by all of the memory: the episode hardly depends on it
contributions.LITTLE = 0.02        -- of a policy's probability: less counts as nothing

---@class Contributions
---@field rows MemoryRow[] the parts: heads, or groups of channels, or what else a memory divides into
---@field columns integer[] indices in the history, before whose step parts are changed, ascending
---@field n integer steps of the history
---@field problem string? why there is nothing to show; then the other fields are not there
---@field done boolean
local Job = {}
Job.__index = Job

---All of a memory, then the parts that it divides into, without those that are sums of others.
---@return MemoryRow[] rows the first is all; each with its parts, see interventions.parts
function contributions.parts_of(core)
  local function finest(by)
    local list, divided = {}, {}
    local rows = memory_parts.list(core, by)
    for _, row in ipairs(rows) do if row.layer and row.word ~= "layers." .. row.layer then divided[row.layer] = true end end
    for _, row in ipairs(rows) do if not (divided[row.layer] and row.word == "layers." .. row.layer) then list[#list + 1] = row end end
    return list
  end
  local rows = finest "head"
  if #rows > MOST_ROWS + 1 then rows = finest "layer" end
  for _, row in ipairs(rows) do row.parts = interventions.parts(core, row.word) end
  return rows
end

-- ---- the agent, some environments at a time ----

---An agent that is run a step at a time on given observations, which each `share` environments have in common.
---@param space table of one observation
---@param B integer environments
---@param share integer? nil: all
---@return table { state, step = function(index, histories) -> policies [B, actions], until the next call: probabilities, or what the head gave;
---  see judge }
function contributions.runner(agent, space, B, share)
  local self = { state = agent.core:initial(B), x = tensor.new { shape = { 1, B, unpack(space.shape) }, dtype = space.dtype, time = true },
    done = tensor.new { shape = { 1, B }, dtype = "u8", time = true }, previous = agent:previous_leaves(1, B), B = B }
  local normaliser = agent.normaliser
  local inputs = normaliser and normaliser.norm_obs and tensor.new { shape = self.x:shape(), time = true } or self.x
  local run = plan(function(x, done, state, previous)
    local logits, _, after = tensor.off_tape(agent.act, agent, x, done, state, nil, previous)
    return logits, after
  end)
  local n, actions, acts, nothing = state_arrays.size(space.shape), agent.actions, agent.action_space, agent.action_space:nothing()
  local policy, probabilities = ffi.new("float[?]", B * actions), agent.kind.each
  ---Processes the observations of step i of each history; the policies [B, actions], until the next call.
  function self.step(i, histories, blank)
    local x, done = self.x:data(), self.done:data()
    for b = 0, B - 1 do
      local history = histories[share and math.floor(b / share) + 1 or 1]
      local entry, before = history[i], history[i - 1]
      for k = 0, n - 1 do x[b * n + k] = blank and 0 or entry.observation.values[k] end
      done[b] = before and 0 or 1
      for name, t in pairs(self.previous or {}) do
        local value = before and entry.reward or 0
        if before and normaliser then value = normaliser:reward(value) end
        if name == "reward" then t:data()[b] = value else acts:put(t:data(), b, before and (before.did or before.action) or nothing) end
      end
    end
    if inputs ~= self.x then normaliser:observations(x, inputs:data(), B) end
    local logits, after = run(inputs, self.done, self.state, self.previous)
    local p = logits:data()
    if probabilities then for b = 0, B - 1 do agent:show_policy(p + b * actions, policy + b * actions) end
    else ffi.copy(policy, p, 4 * B * actions) end
    tensor.keep(after, self.state)
    return policy
  end
  return self
end

-- ---- how policies compare ----

-- Of a softmax over few actions: probabilities.
local function by_probability(agent)
  local A, judge, moved, logs = agent.actions, {}, ffi.new "float[1]", ffi.new "double[1]"
  function judge.same(p, entry)
    for a = 0, A - 1 do if not (math.abs(p[a] - entry.policy[a + 1]) < contributions.TOLERANCE) then return false end end
    return true
  end
  function judge.moved(was, now, n)
    if ffi.sizeof(moved) < 4 * n then moved = ffi.new("float[?]", n) end
    for r = 0, n - 1 do
      local sum = 0
      for a = 0, A - 1 do sum = sum + math.abs(now[r * A + a] - was[a]) / 2 end
      moved[r] = sum
    end
    return moved
  end
  function judge.log_prob(p, n, action)
    if ffi.sizeof(logs) < 8 * n then logs = ffi.new("double[?]", n) end
    for r = 0, n - 1 do logs[r] = math.log(math.max(p[r * A + action], TINY)) end
    return logs
  end
  function judge.mode(p, but)
    local best
    for a = 0, A - 1 do if a ~= but and (not best or p[a] > p[best]) then best = a end end
    return best
  end
  return judge
end

-- Of any other distribution: its parameters.  No more of its probability can move than sqrt(1 - exp(-KL)) (Bretagnolle and Huber 1979).
local function by_distribution(agent)
  local A, judge, space, shown = agent.actions, {}, agent.action_space, ffi.new("float[?]", agent.actions)
  local function of(p, n)
    local x = tensor.new { shape = { 1, n, A } }
    ffi.copy(x:data(), p, 4 * n * A)
    return agent:distribution(x)
  end
  function judge.same(p, entry)
    agent:show_policy(p, shown)
    for a, x in ipairs(entry.policy) do if not (math.abs(shown[a - 1] - x) < contributions.TOLERANCE * (1 + math.abs(x))) then return false end end
    return true
  end
  function judge.moved(was, now, n)
    local all = ffi.new("float[?]", n * A)
    for r = 0, n - 1 do ffi.copy(all + r * A, was, 4 * A) end
    local kl = agent:divergence(all, now, n)
    for r = 0, n - 1 do all[r] = math.sqrt(math.max(0, 1 - math.exp(-kl[r]))) end
    return all
  end
  function judge.log_prob(p, n, action)
    local done, list = tensor.new { shape = space:shape(1, n), dtype = space.dtype }, ffi.new("double[?]", n)
    for r = 0, n - 1 do space:put(done:data(), r, action) end
    local x = tensor.no_grad(function() return of(p, n):log_prob(done) end):data()
    for r = 0, n - 1 do list[r] = x[r] end
    return list
  end
  function judge.mode(p) return space:read(tensor.no_grad(function() return of(p, 1):mode() end):data(), 0) end
  return judge
end

---How the policies that a runner gives are compared.
---@return table judge { same(p, entry) -> is p the policy of a history's entry?; moved(was, now, n) -> float[n], share of the probability that is elsewhere
---  in each of n policies; log_prob(p, n, action) -> double[n], of a box densities'; mode(p, but) -> the likeliest action, of few not `but` }
function contributions.judge(agent) return (agent.kind.each and by_probability or by_distribution)(agent) end

-- ---- an episode with another cue ----

-- Steps of another episode of the environment, with the actions of this one, while both last.
local function played(self, env, seed)
  local space, list = self.space, {}
  local n, dtype = state_arrays.size(space.shape), space.dtype == "u8" and "uint8_t[?]" or "float[?]"
  local x, reward, over, cut, action = ffi.new(dtype, n), ffi.new "float[1]", ffi.new "uint8_t[1]", ffi.new "uint8_t[1]", env.action_space:room(1)
  env:reset_raw(x, seed)
  local about = { truth = env:truth(0) }
  for i, entry in ipairs(self.history) do
    local values = ffi.new("float[?]", n)
    for k = 0, n - 1 do values[k] = x[k] end
    list[i] = { step = i - 1, observation = { shape = space.shape, values = values }, action = entry.action, did = entry.did, reward = reward[0] }
    env.action_space:put(action, 0, entry.did or entry.action)
    env:step_raw(action, x, reward, over, cut)
    if over[0] ~= 0 or cut[0] ~= 0 then break end
  end
  return list, about.truth
end

-- Does the environment declare a class that a memory may know?
local function has_cue(env) for _, fact in ipairs(env.to_know) do if fact.kind == "class" then return true end end end

-- Does such a class differ?  Where none is declared, every episode is another one.
local function differs(env, truth, other)
  for _, fact in ipairs(env.to_know) do
    local a, b = truth[fact.name], other[fact.name]
    for k = 1, fact.kind == "class" and (type(a) == "table" and #a or 1) or 0 do
      if (type(a) == "table" and a[k] or a) ~= (type(b) == "table" and b[k] or b) then return true end
    end
  end
  return not has_cue(env)
end

-- Of the first episodes whose cue is another one, the one that lasts longest with the same actions.
local function find_other(self)
  local env, first, found, asked = self.env:again { num_envs = 1 }, self.history[1], nil, 0
  for seed = SEED, SEED + TRIES - 1 do
    local list, truth = played(self, env, seed)
    if first.truth and differs(env, first.truth, truth) then
      asked = asked + 1
      if not found or #list > #found then found = list end
      if #found == self.n or asked == ASKED then break end
    end
  end
  env:close()
  return found
end

-- ---- the work ----

---An episode of a job's agent again, from its beginning.
---@param self table { agent, judge, deadline }
---@param run table of contributions.runner, of one environment
---@param o table? { columns = steps, as indices, before which states are kept; last = index; after = Frame whose memory it begins with, and first = the
---  index of the step that follows; blank = index of a step that is not observed }
---@return table states by index
---@return table policies by index
---@return boolean same these are the policies of the history
function contributions.again(self, run, history, o)
  local states, policies, wanted, same, n = {}, {}, {}, true, self.agent.actions
  for _, i in ipairs(o.columns) do wanted[i] = true end
  tensor.keep(self.agent.core:initial(1), run.state)
  for name, array in pairs(o.after and o.after.memory or {}) do ffi.copy(run.state[name]:data(), array.values, 4 * run.state[name]:size()) end
  for i = o.after and o.first or 1, o.last or #history do
    if wanted[i] then states[i] = tensor.keep(run.state) end
    local policy = run.step(i, { history }, i == o.blank)
    policies[i] = ffi.new("float[?]", n)
    ffi.copy(policies[i], policy, 4 * n)
    same = same and (not history[i].policy or self.judge.same(policy, history[i]))
    pause(self)
  end
  return states, policies, same
end

-- Changes of the policy at this and every later step, for each part, if it is changed before step i: swapped with the other episode, of which both
-- directions count, or as in `others`.
local function column(self, run, i, mine, others)
  local core, R, A, n = self.agent.core, #self.rows, self.actions, self.n
  local swaps = self.other and #self.other >= i
  local B, of = run.B, {}
  for r = 0, B - 1 do
    local into, from = mine.states[i], others and others[i] or self.start
    if self.other then into, from = r < R and mine.states[i] or others[i], r < R and others[i] or mine.states[i] end
    interventions.copy(core, self.rows[1].parts, into, 0, 1, run.state, r, B)
    interventions.copy(core, self.rows[r % R + 1].parts, from, 0, 1, run.state, r, B)
  end
  for r = 1, R do of[r] = ffi.new("float[?]", n + 1) end
  for k = i, n do
    local both = swaps and k <= #self.other
    local policy = run.step(k, { self.history, both and self.other or self.history })
    for half = 0, both and 1 or 0 do
      local was, all, whole, squares = half == 0 and mine.policies[k] or self.other_policies[k], policy + half * R * A, 0, 0
      local moved = not self.along and self.judge.moved(was, all, R)
      for r = 0, moved and R - 1 or -1 do of[r + 1][k] = of[r + 1][k] + moved[r] / (both and 2 or 1) end
      for a = 0, self.along and A - 1 or -1 do
        local d = all[a] - was[a]
        whole, squares = whole + math.abs(d) / 2, squares + d * d
      end
      for r = 0, squares > 0 and R - 1 or -1 do
        local along = 0
        for a = 0, A - 1 do along = along + (all[r * A + a] - was[a]) * (all[a] - was[a]) end
        of[r + 1][k] = of[r + 1][k] + whole * along / squares / (both and 2 or 1)
      end
    end
    pause(self)
  end
  self.moved[i] = of
end

-- The order in which columns are done: coarse ones first.
local function order_of(columns)
  local list, taken, stride = {}, {}, 1
  while stride * 2 < #columns do stride = stride * 2 end
  while stride >= 1 do
    for k = #columns, 1, -stride do
      if not taken[k] then list[#list + 1], taken[k] = columns[k], true end
    end
    stride = stride / 2
  end
  return list
end

local function work(self)
  local one = contributions.runner(self.agent, self.space, 1, 1)
  local states, policies, same = contributions.again(self, one, self.history, self)
  local mine = { states = states, policies = policies }
  if not same then
    self.problem = "not shown: the agent does not act like this on these observations from an empty memory: its memory was changed, was not empty, or it "
      .. "acts on more than its memory (core.sees=rollout)"
    return
  end
  local others
  if self.from then others = contributions.again(self, one, self.history, { columns = self.columns, blank = self.from })
  elseif self.env then
    self.other = find_other(self)
    if not self.other then self.problem = ("not shown: none of %d other episodes has another cue"):format(TRIES) return end
    others, self.other_policies = contributions.again(self, one, self.other, { columns = self.columns })
    while #self.columns > 0 and self.columns[#self.columns] > #self.other do table.remove(self.columns) end
  end
  local R = #self.rows
  local all = contributions.runner(self.agent, self.space, self.other and 2 * R or R, R)
  for _, i in ipairs(order_of(self.columns)) do column(self, all, i, mine, others) end
end

---Work until the deadline, or to the end.
---@param deadline number? of engine.C.mn_clock(false)
---@return boolean done
function Job:work(deadline) return progress.piece(self, deadline) end

---How much is done.
---@return integer columns
---@return integer of how many
function Job:progress()
  local done = 0
  for _ in pairs(self.moved) do done = done + 1 end
  return done, #self.columns
end

-- ---- what came of it ----

-- The last column at or before step i that is done.
local function column_at(self, i)
  while i > 1 do
    if self.moved[i] then return i end
    i = i - 1
  end
end

---The step that depends most on the memory as it is before step i: the one whose policy moves most if all of it is changed there.
---@param i integer one of columns, that is done
---@return integer
function Job:decisive(i)
  local all, best = self.moved[i][1], i
  for k = i + 1, self.n do if all[k] > all[best] then best = k end end
  return best
end

---What a head contributes to the action of one step, if it is changed before that step, or, of a long episode, before a column.
---@param layer integer from 0
---@param head integer from 0
---@param i integer index in the history
---@return number? share of the policy's probability that moves; nil: not measured yet, or this memory does not divide into heads
function Job:of_head(layer, head, i)
  local at = column_at(self, i)
  for r, row in ipairs(at and self.rows or {}) do
    if row.layer == layer and row.head == head then return math.max(0, self.moved[at][r][i]) end          -- against all of it: nothing
  end
end

---What each part contributes at each step, over the steps of the episode.
---@return PartMap
function Job:map()
  local cells, done, of = {}, self:progress()
  for r in ipairs(self.rows) do
    cells[r] = {}
    for c, i in ipairs(self.columns) do
      local moved = self.moved[i] and self.moved[i][r][self:decisive(i)]
      if moved then cells[r][c] = { moved = moved, clear = moved >= contributions.LITTLE } end
    end
  end
  local steps = tables.map(self.columns, function(i) return i - 1 end)
  local swapped = self.env and ("swapped with an episode of another %s"):format(has_cue(self.env) and "cue" or "seed")
  local how = self.from and ("as if step %d had not been observed"):format(self.from - 1) or swapped or "erased"
  local map = map_display.new { name = "contribution", title = "contribution of each part of the memory", at = "before step", value = "of the policy moved",
    key = "moved", alone = "moves this policy", floor = 1, percent = true, rows = self.rows, steps = steps, cells = cells,
    stands = ("%.0f %% or more"):format(100 * contributions.LITTLE),
    define = ("How much of the policy's probability moves%s if that part of the memory is %s before this step, at the later step that depends most on the "
      .. "memory; the observations stay as they were."):format(self.along and "" or " at most", how) }
  map.how = how
  if done < of then map.note = ("%d of %d steps measured"):format(done, of)
  elseif self:weight() < LITTLE_OF_ALL then map.note, map.brief = "in this episode little depends on the memory", "little depends on it" end
  return map
end

---How much depends on all of the memory: the mean over the steps.
---@return number
function Job:weight()
  local sum, n = 0, self:progress()
  for i, of in pairs(self.moved) do sum = sum + of[1][self:decisive(i)] end
  return sum / math.max(1, n)
end

-- ---- a job ----

---Why nothing can be measured: nil where it can.
---@param agent Agent?
---@return string?
function contributions.problem_of(agent, history)
  local first, last = history[1], history[#history]
  if not agent then return "not shown: what a memory contributes is measured by running its agent again, and there is none here" end
  if not next(agent.core.states) then return "this core has no memory" end
  local lacks = agent.kind.own and agent:distribution(tensor.new { shape = { 1, 1, agent.actions } }).lacks or {}
  if lacks.kl or lacks.log_prob or lacks.mode then return "not shown: the agent's own distribution has no kl, log_prob or mode" end
  if first.step ~= 0 or last.step ~= #history - 1 then return "not shown: not every step of this episode is known" end
  for _, entry in ipairs(history) do
    if not entry.observation then return "not shown: observations of this size are not kept for every step" end
    if not entry.policy then return "not shown: the policy is not known at every step" end
  end
end

---What the parts of a memory contribute in an episode, not measured yet: call work().
---@param agent Agent? nil: a problem
---@param history Entry[] of an episode, from its first step on
---@param from integer? index in the history: only what was observed in that step counts; nil: all of the past
---@param after Frame? its memory was changed before this step; only what follows is measured
---@param env Env? for an episode with another cue, with which parts are swapped; nil: they are erased
---@return Contributions
function contributions.new(agent, history, from, after, env)
  local self = setmetatable({ agent = agent, history = history, from = from, n = #history, columns = {}, moved = {}, after = after, env = env,
    first = after and after.step + 2 or 1, deadline = math.huge, done = false, problem = contributions.problem_of(agent, history) }, Job)
  if not self.problem and self.first > self.n then self.problem = "not shown: nothing follows the step before which the memory was changed" end
  if not self.problem and from and from < self.first then self.problem = "not shown: the memory was changed after this step" end
  if self.problem then
    self.done = true
    return self
  end
  self.space, self.actions, self.judge, self.along = agent.observation_space, agent.actions, contributions.judge(agent), agent.kind.each
  self.rows, self.start = contributions.parts_of(agent.core), agent.core:initial(1)
  local every = math.max(1, math.ceil((self.n - 1) / COLUMNS))
  for i = self.n, math.max(self.first, (from or 1) + 1), -every do table.insert(self.columns, 1, i) end
  self.routine = coroutine.create(work)
  return self
end

local recent, RECENT = {}, 8                     -- jobs of the episodes shown last, the newest first

---What the parts of a memory contribute in the episode that a frame belongs to: all of it where its end is known, else up to the frame.
---@param now Frame
---@param from integer? see new
---@param deadline number? of engine.C.mn_clock(false): what is not measured by then is left out; call again to continue
---@return Contributions
function contributions.of_frame(now, from, deadline)
  local history, after = now.episode_history or now.history, nil
  if now.changed then
    after = now.step == now.changed and now or now.frame_of and now.frame_of(now.changed)
    if not after then now = setmetatable({ agent = false }, { __index = now }) end
  end
  local job = tables.recent(recent, RECENT, function(known)
    return known.history[known.n] == history[#history] and known.from == from and known.agent == now.agent and known.first == (after and after.step + 2 or 1)
  end, function() return contributions.new(now.agent, history, from, after, now.env) end)
  job:work(deadline)
  return job
end

return contributions
