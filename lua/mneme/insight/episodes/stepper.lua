-- stepper.lua -- runs a trained (or untrained) agent in its environment step by step, for the viewer, eval and interventions.
local ffi = require "ffi"
local envs = require "mneme.envs"
local errors = require "mneme.base.errors"
local rollout_batch = require "mneme.learn.rollout_batch"
local parameters = require("mneme.tensor.random").parameters
local normaliser = require "mneme.learn.normaliser"
local state_arrays = require "mneme.models.state_arrays"
local agents = require "mneme.models.agent"
local format = require "mneme.base.format"
local plan = require "mneme.tensor.plan"
local run_folder = require "mneme.runs.run_folder"
local tensor = require "mneme.tensor.tensor"
local stored_parameters = require "mneme.learn.stored_parameters"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local ops = tensor.ops

local stepper = {}
local ENDLESS = 1e5                 -- steps of an episode of which a user hears

---@class Stepper
---@field env Env
---@field agent Agent
---@field num_envs integer
---@field env_index integer the shown environment, from 0
---@field state table<string, Tensor> the core's, before the present observation
---@field logits Tensor
---@field values Tensor
---@field actions Tensor
---@field probes table<string, Tensor>
---@field steps_taken integer
---@field free boolean what it does does not depend on where its plan begins
---@field place Tensor [num_envs] i32: the number by which each environment draws its actions
---@field narrower table<integer, Stepper>? see narrower.lua
local Stepper = {}
Stepper.__index = Stepper

local ROWS = 64      -- rows of the plan, where no learner sets them: steps between two packings of the parameters
local ROOM = 4096    -- rows times environments, where the rows do not matter for what is computed: more take memory and gain nothing

-- Keeps a probe; a clamped one (see clamp_probes) is replaced where its mask is set.  A probe of the newest row alone is
-- computed on demand and cannot be clamped.
local function probe(self, name, t)
  local held = t:shape()[1] == self.rows and self.held[name]
  if held then
    if not held.mask then
      local shape = t:shape()
      table.remove(shape, 1)
      for key, dtype in pairs { mask = "u8", owner = "u8", value = "f32" } do held[key] = tensor.new { shape = shape, dtype = dtype } end
    end
    t = ops.where { mask = held.mask, a = held.value, b = t }
  end
  self.probes[name] = t
  return t
end

-- The agent's forward pass as a plan over some steps, run row by row.
local function act_plan(self)
  return plan(function(x, resets, state, previous)
    local logits, values, after = tensor.off_tape(self.agent.act, self.agent, x, resets, state,
      function(name, t) return probe(self, name, t) end, previous)
    return logits, values, after, self.agent:choose(logits, self.clock, { greedy = self.greedy == 1, place = self.place })
  end)
end

-- Records the plan, and keeps its outputs.
local function record(self)
  self.plan = act_plan(self)
  self.plan.by_rows = true
  self.logits, self.values, self.after, self.actions = self.plan(self.inputs, self.resets, self.state, self.previous)
  for name, t in pairs(self.after) do self.readers[name] = state_arrays.env_reader(self.agent.core, name, t) end
end

-- A memory that is reset where episodes begin, and at no other time.
local plain = { carry = true, reset_on_done = true, context = 0 }

---Run an agent in an environment step by step.
---@param env Env
---@param agent Agent where it has a normaliser, its statistics are used as they are
---@param options table? { greedy = false, seed = 1, title, source, memory = when the memory is reset, as in a learner's
---  describe(), seeded = true: episode k uses the random numbers of seed + k, whatever came before (one
---  environment), episode = 0: the first of them, rows = steps between two packings of the parameters at most, where what the agent does
---  does not depend on it; nil: the fewer the more environments there are }
---@return Stepper
function stepper.new(env, agent, options)
  options = options or {}
  local B, n, memory = env.num_envs, state_arrays.size(env.observation_space.shape), options.memory or plain
  local self = setmetatable({ env = env, agent = agent, num_envs = B, env_index = 0, probes = {}, held = {}, readers = {}, n = n,
    row = 0, forwards = 0, greedy = (options.greedy or agent.kind.values) and 1 or 0, title = options.title, source = options.source, seed = options.seed or 1,
    seeded = options.seeded and B == 1, given = options }, Stepper)
  -- What cores with a window or segments attend to depends on where a plan begins, so it begins where the learner's do.
  self.rollout = memory.num_steps
  self.piece = (memory.horizon or 0) > 0 and memory.horizon or memory.num_steps or ROWS
  local core, few = agent.core, math.max(4, math.floor(ROOM / B))
  local free = core.acts == "steps" or core.claims.steps == "exact"
  self.free, self.usual_piece = free, free and math.min(self.piece, few) or self.piece
  if free then self.piece = math.min(self.piece, options.rows or few) end
  self.rows = math.max(2, self.piece)              -- restore() takes the last for itself
  self.normaliser = agent.normaliser
  self.x = tensor.new { shape = { self.rows, B, unpack(env.observation_space.shape) }, dtype = env.observation_space.dtype, time = true }
  self.inputs = self.normaliser and self.normaliser.norm_obs and tensor.new { shape = self.x:shape(), time = true } or self.x
  self.done = ffi.new("uint8_t[?]", B)
  self.resets = tensor.new { shape = { self.rows, B }, dtype = "u8", time = true }
  self.previous = agent:previous_leaves(self.rows, B)
  self.memory_resets = rollout_batch.resets(B, memory.reset_on_done, memory.context)
  self.period, self.steps_taken = memory.carry and 0 or memory.num_steps, 0
  self.clock = tensor.new { shape = { 3 }, dtype = "i32" }
  self.clock:data()[0] = self.seed % 2 ^ 31
  self.place = tensor.new { shape = { B }, dtype = "i32" }
  self.state, self.start = agent.core:initial(B), agent.core:initial(B)
  self.reward, self.terminated, self.truncated = ffi.new("float[?]", B), ffi.new("uint8_t[?]", B), ffi.new("uint8_t[?]", B)
  self.policy, self.policy_names = ffi.new("float[?]", agent.actions), agent:policy_names()
  self.step_of, self.return_of, self.episode_of = ffi.new("int[?]", B), ffi.new("double[?]", B), ffi.new("int[?]", B)
  record(self)
  self.memory = state_arrays.of_core(agent.core)
  self.episode_of[0] = self.seeded and options.episode or 0
  local first = self.seeded and self.seed + self.episode_of[0] or nil
  self:restart(first, first)
  return self
end

---Another stepper of the same agent, whose parameters both have, in an environment of its own.
---@param changed table? settings of the environment: num_envs, seed
---@param options table? of stepper.new, in place of this one's
---@return Stepper
function Stepper:twin(changed, options)
  local made = stepper.new(self.env:again(changed or {}), self.agent, options or self.given)
  made.steps, made.run = self.steps, self.run
  return made
end

---How its actions come from the policy, in words: drawn from it is the rule, and says nothing.
---@return string "", ", greedy" or ", argmax of Q"
function Stepper:how_chosen() return self.agent.kind.values and ", argmax of Q" or self.greedy == 1 and ", greedy" or "" end

---Pointer to the present observations of all environments, as these give them.
---@return ffi.cdata*
function Stepper:observations() return self.x:data() + self.row * self.num_envs * self.n end
local function resets(self) return self.resets:data() + self.row * self.num_envs end

-- The agent's inputs from the previous step: `actions` (a pointer) and the reward, or nothing where an episode begins.
local function set_previous(self, actions)
  for name, t in pairs(self.previous or {}) do
    local space, size = self.env.action_space, t:size() / self.rows / self.num_envs
    local to = t:data() + self.row * self.num_envs * size
    for b = 0, self.num_envs - 1 do
      if name == "reward" then
        local scaled = self.normaliser and self.done[b] == 0
        to[b] = self.done[b] ~= 0 and 0 or scaled and self.normaliser:reward(self.reward[b]) or self.reward[b]
      elseif self.done[b] ~= 0 then space:clear(to, b)
      else for k = b * size, (b + 1) * size - 1 do to[k] = actions[k] end end
    end
  end
end

---Reset every environment and memory.
---@param seeds integer[]? of each environment; nil: the stepper's seed for all
---@param draws integer? a new seed for the sampled actions; nil: their stream continues
function Stepper:restart(seeds, draws)
  self.row, self.acted, self.thought, self.steps_taken = 0, false, false, 0
  if draws then
    local clock = self.clock:data()
    clock[0], clock[1], clock[2] = draws % 2 ^ 31, 0, 0
  end
  for b = 0, self.num_envs - 1 do self.place:data()[b] = b end
  self.env:reset_raw(self:observations(), seeds or self.seed)
  tensor.keep(self.start, self.state)
  ffi.fill(self.done, self.num_envs, 1)
  self.memory_resets:all(resets(self))
  ffi.fill(self.step_of, 4 * self.num_envs)
  ffi.fill(self.return_of, 8 * self.num_envs)
  ffi.fill(self.reward, 4 * self.num_envs)
  set_previous(self)
end

-- Bytes of the present observations of all environments.
local function obs_bytes(self) return self.num_envs * self.n * (self.env.observation_space.dtype == "u8" and 1 or 4) end

-- The plan's next run begins at row 0, from the memory as it is after `rows` rows.
local function rebase(self, rows)
  local clock = self.clock:data()
  self.plan:carry(self.after, self.state)
  clock[1] = (clock[1] + rows) % 2 ^ 31
  self.row = 0
end

---Between step() and forward(): restart the plan from self.state, the state before the present observation, so that the
---state can be changed.
function Stepper:restart_plan()
  local row, B = self.row, self.num_envs
  if self.thought then errors.raise "stepper: its memory cannot be changed between forward() and step()" end
  if row == 0 then return end
  rebase(self, row)                -- first: the memory may yet have to be worked out from what lies in row 0
  local bytes = obs_bytes(self)
  ffi.copy(self.x:data(), ffi.cast("char *", self.x:data()) + row * bytes, bytes)
  ffi.copy(self.resets:data(), self.resets:data() + row * B, B)
  for _, t in pairs(self.previous or {}) do
    local n = t:size() / self.rows
    ffi.copy(t:data(), t:data() + row * n, 4 * n)
  end
end

---Between step() and forward(): make probes clampable.  Where `held[name].mask` [B,...] is set, a probe takes the values of
---`held[name].value`; no mask is set yet.  `owner` identifies the intervention.  The plan is recorded again.
---@param names string[] of probes
function Stepper:clamp_probes(names)
  local more = false
  for _, name in ipairs(names) do
    if not self.held[name] then self.held[name], more = {}, true end
  end
  if not more then return end
  self:restart_plan()
  record(self)
end

---Run the agent's forward pass: its memory processes the observation, and actions are sampled.
function Stepper:forward()
  if self.normaliser and self.normaliser.norm_obs then
    self.normaliser:observations(self:observations(), self.inputs:data() + self.row * self.num_envs * self.n, self.num_envs)
  end
  self.plan:rows(self.row, self.row + 1)
  self.acted, self.thought, self.forwards = true, true, self.forwards + 1
  if self.choice then self.choice:after() end
end

---Pointer to the actions of a row, [num_envs] or [num_envs, size].
---@param row integer? nil: the present one
---@return ffi.cdata*
function Stepper:acting(row) return self.actions:data() + (row or self.row) * self.num_envs * self.env.action_space.size end

---Step every environment with the sampled actions; returns how many episodes ended.
---@return integer
function Stepper:step()
  local env, ended, row = self.env, 0, self.row
  self.row, self.row_before, self.thought = row + 1, row, false      -- probes still hold that row
  if self.row == self.piece or self.rollout and (self.steps_taken + 1) % self.rollout == 0 then rebase(self, self.row) end
  local done, actions = self.done, self:acting(row)
  env:step_raw(actions, self:observations(), self.reward, self.terminated, self.truncated)
  for b = 0, self.num_envs - 1 do
    done[b] = (self.terminated[b] ~= 0 or self.truncated[b] ~= 0) and 1 or 0
    ended = ended + done[b]
    if done[b] ~= 0 then
      self.step_of[b], self.return_of[b], self.episode_of[b] = 0, 0, self.episode_of[b] + 1
    else
      self.step_of[b], self.return_of[b] = self.step_of[b] + 1, self.return_of[b] + self.reward[b]
      if b == 0 and self.step_of[0] == ENDLESS then
        terminal.note(("mneme: an episode of %s has lasted %d steps and has not ended (time_limit=N ends it; Ctrl-C stops)"):format(env.id, ENDLESS))
      end
    end
  end
  set_previous(self, actions)
  self.memory_resets:step(done, resets(self))
  self.steps_taken = self.steps_taken + 1
  if self.period > 0 and self.steps_taken % self.period == 0 then self.memory_resets:all(resets(self)) end
  return ended
end

---Run the episodes of some environments to their ends, in step.
---@param o table { envs = indices, nil: all; seed: before, environment b begins episode seed + b, and actions are drawn by seed; most = steps;
---  before = fun(k, living, outcomes), between step() and forward() of step k, from 0; watch = likewise between forward() and step(); after = fun(living)
---  after step(); pause = fun(), called last; stops = fun(living, k): any, the episodes are left before step k }
---@return table<integer, table> outcomes by environment: { score, ret, length } of the episodes that are over
---@return boolean? stopped
function Stepper:play(o)
  local living, outcomes, k = o.envs and { unpack(o.envs) } or {}, {}, 0
  for b = 0, o.envs and -1 or self.num_envs - 1 do living[b + 1] = b end
  if o.seed then
    local seeds = {}
    for b = 0, self.num_envs - 1 do seeds[b + 1] = (o.seed + b) % 2 ^ 53 end
    self:restart(seeds, o.seed)
  end
  while #living > 0 and k < (o.most or math.huge) do
    local left = {}
    if o.before then o.before(k, living, outcomes) end
    self:forward()
    if o.watch then o.watch(k, living, outcomes) end
    self:step()
    if o.after then o.after(living) end
    for _, b in ipairs(living) do
      if self.done[b] ~= 0 then outcomes[b] = self.env:outcome(b) else left[#left + 1] = b end
    end
    living, k = left, k + 1
    if o.pause then o.pause() end
    if o.stops and o.stops(living, k) then return outcomes, true end
  end
  return outcomes
end

-- The memory of one environment's agent: name -> array.
local function memory(self, b)
  return tables.each(self.memory, function(about, name) return { shape = about.shape, dims = about.dims, values = self.readers[name](b) } end)
end

-- The probes of one environment at this row, of [rows,B,...] each, or [1,B,...] of the newest row alone.
local function probes(self, b)
  local list = {}
  for name, t in pairs(self.probes) do
    local shape = t:shape()
    local row = table.remove(shape, 1) == 1 and 0 or self.row
    table.remove(shape, 1)
    list[name] = { shape = shape, values = t:data() + (row * self.num_envs + b) * state_arrays.size(shape) }
  end
  return list
end

---Observation, action, policy, value, memory and probes of one environment, after forward(); pointers are valid until the next.
---@param b integer index of the environment
---@return table { observation, action or did = a list of numbers, policy, value, memory, probes }
function Stepper:snapshot(b)
  local at, one, did = self.row * self.num_envs + b, self.env.action_space:taken(self:acting(), b)
  self.agent:show_policy(self.logits:data() + at * self.agent.actions, self.policy)
  return {
    observation = { shape = self.env.observation_space.shape, values = self:observations() + b * self.n },
    action = one, did = did, policy = self.policy, value = self.values:data()[at],
    memory = memory(self, b), probes = probes(self, b),
  }
end

-- The random numbers of an episode depend on its number alone, whatever happened before; so does the memory, with the clocks that some cores
-- keep, if it is reset here.
local function seed_episode(self)
  local seed, clock = self.seed + self.episode_of[0], self.clock:data()
  self:restart_plan()
  if resets(self)[0] ~= 0 and self.agent.core.config.reset ~= false then tensor.keep(self.start, self.state) end
  clock[0], clock[1], clock[2] = seed % 2 ^ 31, 0, 0
  self.env:reset_raw(self:observations(), seed)
end

---One step of the shown environment, as a snapshot.  `ended`: outcome of the previous episode.
---@param before fun(stepper: Stepper, ended: table?)? called between step() and forward(): to save, restore or change what is there
---@return table now
function Stepper:next(before)
  local ended
  local b = self.env_index
  if self.acted then
    self:step()
    if self.done[b] ~= 0 then
      ended = self.env:outcome(b)
      if self.seeded then seed_episode(self) end
    end
  end
  if before then before(self, ended) end
  self:forward()
  local now = self:snapshot(b)
  now.title, now.source, now.canvas, now.truth = self.title, self.source, self.env:draw(b), self.env:truth(b)
  now.actions, now.reward, now.ended, now.space = self.policy_names, self.reward[b], ended, self.env.action_space
  now.step, now.episode, now.ret = self.step_of[b], self.episode_of[b], self.return_of[b]
  now.observation_groups, now.sight = self.env.observation_space.groups, self.env:sight(now.observation.values)
  now.reads, now.run, now.checkpoint, now.agent, now.stepper = self.agent.core.reads, self.run, self.steps, self.agent, self
  now.env = self.env
  return now
end

-- ---- going back ----

-- The buffers of a stepper that a moment saves: pointer, bytes; the clock's first, then those with as many bytes for each environment.
local function buffers(self)
  local B = self.num_envs
  local list = { { self.clock:data(), 12 }, { self:observations(), obs_bytes(self) }, { resets(self), B }, { self.done, B }, { self.reward, 4 * B },
    { self.step_of, 4 * B }, { self.return_of, 8 * B }, { self.episode_of, 4 * B }, { self.memory_resets.count, 4 * B },
    { self.place:data(), 4 * B } }
  for _, name in ipairs { "action", "reward" } do
    local t = self.previous and self.previous[name]
    local n = t and t:size() / self.rows
    if t then list[#list + 1] = { t:data() + self.row * n, 4 * n } end
  end
  return list
end

-- Where a row of a probe is, and its bytes.
local function row_of(self, name, row)
  local t = self.probes[name]
  local size = t:size() / self.rows
  return t:data() + row * size, 4 * size
end

-- The full state between step() and forward(), as a plan that restarts here finds it.
local function moment_of(self, near, bare)
  local row, clock = self.row, self.clock:data()
  local moment, bytes = { worlds = {}, rows = {}, steps_taken = self.steps_taken,
    state = not bare and tensor.keep(row == 0 and self.state or self.after) or {},
    seed = self.env.seed, held = {} }, 0
  for b = 0, self.num_envs - 1 do moment.worlds[b] = self.env:save(b, near) end
  local drawn = clock[1]
  clock[1] = (drawn + row) % 2 ^ 31                -- as rebase() leaves it
  for i, buffer in ipairs(buffers(self)) do moment.rows[i] = ffi.string(buffer[1], buffer[2]) end
  clock[1] = drawn
  for name, held in pairs(self.held) do
    local values, size = row_of(self, name, self.row_before or 0)
    moment.held[name] = { now = tensor.keep(held), before = ffi.string(values, size) }
  end
  for _, t in pairs(moment.state) do bytes = bytes + 4 * t:size() end
  return moment, bytes + #moment.worlds[0] * self.num_envs + 512
end

---Saves the full state, between step() and forward(), where the plan restarts (every few rows, and where an episode of a
---seeded stepper begins); elsewhere a state cannot be restored bit for bit.
---@return table? moment for restore(), of this stepper or an equal one; nil: not now
---@return integer bytes its approximate size
function Stepper:save()
  if self.row ~= 0 or self.thought then return nil, 0 end
  return moment_of(self, true)
end

---The full state at any step, between step() and forward(), for an equal stepper, which continues as this one would after
---restart_plan(); this one goes on as if nothing had been saved.
---@param bare true? without the memory
---@return table moment for restore()
function Stepper:branch(bare)
  if self.thought then errors.raise "stepper: it cannot branch between forward() and step()" end
  return (moment_of(self, "apart", bare))
end

---Restore a moment: next() returns it again, and the same steps follow.
---@param moment table
function Stepper:restore(moment)
  self.row, self.acted, self.thought, self.steps_taken = 0, false, false, moment.steps_taken
  for b = 0, self.num_envs - 1 do self.env:restore(b, moment.worlds[b], self:observations() + b * self.n) end
  for i, buffer in ipairs(buffers(self)) do ffi.copy(buffer[1], moment.rows[i], buffer[2]) end
  tensor.keep(moment.state, self.state)
  self.env.seed = moment.seed
  for name, held in pairs(self.held) do
    local was = moment.held[name]
    if was then
      tensor.keep(was.now, held)
      ffi.copy(row_of(self, name, self.rows - 1), was.before, #was.before)
    else held.mask:fill(0) end
  end
  self.row_before = self.rows - 1
end

-- ---- where agents come from ----

---Build the agent of a run, with the parameters of its newest (or best) checkpoint.
---@param folder string
---@param options table? { num_envs = 1, seed, best = false, settings = { corridor = 200 } of the environment, greedy,
---  seeded, episode, checkpoint = step, threads_that_pay = true: tried while it steps }
---@return Stepper
function stepper.from_run(folder, options)
  options = options or {}
  local run = run_folder.load(folder)
  local about = run.info
  require("mneme.runs.run_sources").adopt(folder, about, { code = not agents.of_library(about) })
  if about.sequence_task then
    errors.usage(("%s learns sequences (%s), not episodes"):format(folder, tostring(about.sequence_task.name)),
      "mneme eval " .. folder .. " evaluates it")
  end
  if not about.env or not about.core then errors.fail(folder .. ": config.json names no environment and core") end
  local env, agent
  local settings = tables.merged({ num_envs = options.num_envs or 1, seed = options.seed or 1 }, options.settings)
  if not about.env_of_script and not agents.of_script(about) then
    local another = false                        -- an environment's own time limit is that of its other settings, too
    for key in pairs(options.settings or {}) do another = another or key ~= "num_envs" and key ~= "seed" and key ~= "time_limit" end
    for key, value in pairs(about.task or {}) do
      if settings[key] == nil and not (key == "time_limit" and another and about.own_limit) then settings[key] = value end
    end
    env = envs.known(about.env, settings)
    agent = agents.of_library(about) and parameters.replaced(agents.remade, about, env) or agents.remade(about, env)
  else
    env, agent = require("mneme.learn.script_agent").run(folder, about, settings)
  end
  local checkpoint = options.checkpoint and run:of_step(options.checkpoint) or options.best and run:best() or run:latest()
  if not checkpoint then errors.fail(run:no_checkpoint()) end
  stored_parameters.into(folder, checkpoint, agent)
  agent.normaliser = about.normalise and normaliser.of_checkpoint(about.normalise, env.observation_space, checkpoint)
  agent.module:eval()
  local made = stepper.new(env, agent, { greedy = options.greedy, seed = options.seed, seeded = options.seeded,
    episode = options.episode, memory = about.memory, rows = options.rows,
    title = agent:title(env), source = ("checkpoint at %s steps"):format(format.grouped(checkpoint.step)) })
  made.steps, made.run = checkpoint.step, folder
  made.choice = options.threads_that_pay and require("mneme.learn.thread_choice").here(function() return made.forwards end)
  return made
end

---An untrained agent, for scenes without a run.
---@param options table { env = "tmaze" or { "tmaze", corridor = 12 }, core = "agalite" or { "agalite", ... }, seed, seeded, episode }
---@return Stepper
function stepper.fresh(options)
  local spec = type(options.env) == "table" and options.env or { options.env or "tmaze" }
  local settings = { num_envs = 1 }
  for key, value in pairs(spec) do if key ~= 1 then settings[key] = value end end
  local env = envs.new(spec[1], settings)
  local agent = agents.new { env = env, core = options.core or "agalite" }
  return stepper.new(env, agent, { title = agent:title(env), source = "untrained", seed = options.seed, seeded = options.seeded,
    episode = options.episode })
end

return stepper
