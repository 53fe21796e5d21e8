-- player.lua -- a trained (or fresh) agent living in its task, one step at a time, for viewers and eval.
local ffi = require "ffi"
local core = require "mneme.core"
local engine = require "mneme.engine"
local env = require "mneme.env"
local errors = require "mneme.errors"
local heads = require "mneme.heads"
local live = require "mneme.live"
local agents = require "mneme.agent"
local plan = require "mneme.plan"
local run_folder = require "mneme.run"
local tensor = require "mneme.tensor"
local C, ops = engine.C, tensor.ops

local player = {}

---@class Player
local Player = {}
Player.__index = Player

local ROWS = 64      -- steps between two packings of the weights: the plan's rows, used in turn

-- Acting as a plan over ROWS steps, run row by row.
local function act_plan(self, greedy)
  return plan(function(x, done, state)
    C.mn_no_grad(engine.ctx, true)
    local ok, logits, values, after = pcall(self.agent, x, done, state, function(name, t) self.probes[name] = t return t end)
    C.mn_no_grad(engine.ctx, false)
    if not ok then error(logits, 0) end
    return logits, values, after, ops.softmax_sample { logits = logits, clock = self.clock, greedy = greedy }
  end)
end

---@param task Task
---@param agent Agent
---@param options table? { greedy = false, seed = 1, title, source }
---@return Player
function player.new(task, agent, options)
  options = options or {}
  local B, n = task.num_envs, 1
  for _, size in ipairs(task.observation_space.shape) do n = n * size end
  local self = setmetatable({ task = task, agent = agent, copies = B, copy = 0, probes = {}, n = n, row = 0,
    title = options.title, source = options.source, seed = options.seed or 1 }, Player)
  self.x = tensor.new { shape = { ROWS, B, n }, time = true }
  self.done_rows = tensor.new { shape = { ROWS, B }, dtype = "u8", time = true }
  self.clock = tensor.new { shape = { 3 }, dtype = "i32" }
  self.clock:data()[0] = self.seed % 2 ^ 31
  self.state, self.start = agent.core:initial(B), agent.core:initial(B)
  self.reward, self.terminated, self.truncated = ffi.new("float[?]", B), ffi.new("uint8_t[?]", B), ffi.new("uint8_t[?]", B)
  self.policy = ffi.new("float[?]", task.action_space.n)
  self.step_of, self.return_of, self.episode_of = ffi.new("int[?]", B), ffi.new("double[?]", B), ffi.new("int[?]", B)
  self.plan = act_plan(self, options.greedy and 1 or 0)
  self.logits, self.values, self.after, self.actions = self.plan(self.x, self.done_rows, self.state)
  self.memory, self.readers = heads.of_core(agent.core), {}
  for name, t in pairs(self.after) do self.readers[name] = heads.copy_reader(agent.core, name, t) end
  self:restart()
  return self
end

---Observations and done flags of the present step: pointers to every copy's.
function Player:observations() return self.x:data() + self.row * self.copies * self.n end
function Player:done() return self.done_rows:data() + self.row * self.copies end

---Begin anew: every copy's world and memory.
function Player:restart()
  self.row, self.acted = 0, false
  self.task:reset_raw(self:observations(), self.seed)
  tensor.keep(self.start, self.state)
  ffi.fill(self:done(), self.copies, 1)
  ffi.fill(self.step_of, 4 * self.copies)
  ffi.fill(self.return_of, 8 * self.copies)
  ffi.fill(self.reward, 4 * self.copies)
end

---Let the agent choose: its memory takes the observation in.
function Player:think()
  self.plan:rows(self.row, self.row + 1)
  self.acted = true
end

---Do what was chosen, in every copy; returns how many episodes ended.
function Player:step()
  local task, ended, row = self.task, 0, self.row
  self.row = (row + 1) % ROWS
  if self.row == 0 then
    tensor.keep(self.after, self.state)
    local clock = self.clock:data()
    clock[1] = (clock[1] + ROWS) % 2 ^ 31
  end
  local done = self:done()
  task:step_raw(self.actions:data() + row * self.copies, self:observations(), self.reward, self.terminated, self.truncated)
  for b = 0, self.copies - 1 do
    done[b] = (self.terminated[b] ~= 0 or self.truncated[b] ~= 0) and 1 or 0
    ended = ended + done[b]
    if done[b] ~= 0 then
      self.step_of[b], self.return_of[b], self.episode_of[b] = 0, 0, self.episode_of[b] + 1
    else
      self.step_of[b], self.return_of[b] = self.step_of[b] + 1, self.return_of[b] + self.reward[b]
    end
  end
  return ended
end

-- The shown copy's memory: name -> array.
local function memory(self)
  local list = {}
  for name, about in pairs(self.memory) do
    list[name] = { shape = about.shape, dims = about.dims, values = self.readers[name](self.copy) }
  end
  return list
end

-- The shown copy's part of this row of the probes, [ROWS,B,...] each.
local function probes(self)
  local list = {}
  for name, t in pairs(self.probes) do
    local shape, n = t:shape(), 1
    table.remove(shape, 1)
    table.remove(shape, 1)
    for _, size in ipairs(shape) do n = n * size end
    list[name] = { shape = shape, values = t:data() + (self.row * self.copies + self.copy) * n }
  end
  return list
end

---One step of the shown copy: what is seen, thought and about to be done.  `ended`: the episode before it.
function Player:next()
  local ended
  local b = self.copy
  if self.acted then
    self:step()
    if self:done()[b] ~= 0 then
      local e = self.task.ended
      ended = { score = e.score[b], ret = e.ret[b], length = e.length[b] }
    end
  end
  self:think()
  local n, at = self.task.action_space.n, self.row * self.copies + b
  self.agent.policy(self.logits:data() + at * n, n, self.policy)
  return {
    title = self.title, source = self.source, canvas = self.task:draw(b), truth = self.task:truth(b),
    actions = self.task.action_space.names,
    observation = { shape = self.task.observation_space.shape, values = self:observations() + b * self.n },
    action = self.actions:data()[at], policy = self.policy, value = self.values:data()[at], reward = self.reward[b],
    memory = memory(self), probes = probes(self),
    step = self.step_of[b], episode = self.episode_of[b], ret = self.return_of[b], ended = ended,
  }
end

function Player:next_copy() self.copy = (self.copy + 1) % self.copies end

-- ---- where agents come from ----

---Build the agent of a run anew, with the parameters of its newest (or best) checkpoint.
---@param folder string
---@param options table? { num_envs = 1, seed, best = false, task = { corridor = 200 } changed settings, greedy }
---@return Player
function player.from_run(folder, options)
  options = options or {}
  local run = run_folder.load(folder)
  local about = run.info
  if not about.env or not about.core then errors.fail(folder .. ": config.json does not tell the task and the core") end
  local settings = {}
  for key, value in pairs(about.task or {}) do settings[key] = value end
  for key, value in pairs(options.task or {}) do settings[key] = value end
  settings.num_envs, settings.seed = options.num_envs or 1, options.seed or 1
  local task = env.new(about.env, settings)
  local agent = agents.new { task = task, core = core.new(about.core.name, about.core.config), hidden = about.hidden }
  local checkpoint = options.best and run:best() or run:latest()
  if not checkpoint then errors.fail(folder .. " has no checkpoint yet") end
  local dict = {}
  for name, t in pairs(checkpoint.tensors) do
    local parameter = name:match "^agent%.(.+)$"
    if parameter then dict[parameter] = t end
  end
  agent.module:load_state_dict(dict)
  local made = player.new(task, agent, { greedy = options.greedy, seed = options.seed,
    title = agent:title(task), source = ("checkpoint at %s steps"):format(live.grouped(checkpoint.step)) })
  made.steps = checkpoint.step
  return made
end

---A fresh agent on a task, for scenes without a run.
---@param options table { task = "tmaze" or { "tmaze", corridor = 12 }, core = "agalite" or { "agalite", ... } }
---@return Player
function player.fresh(options)
  local spec = type(options.task) == "table" and options.task or { options.task or "tmaze" }
  local settings, config = { num_envs = 1 }, {}
  for key, value in pairs(spec) do if key ~= 1 then settings[key] = value end end
  local task = env.new(spec[1], settings)
  local chosen = type(options.core) == "table" and options.core or { options.core or "agalite" }
  for key, value in pairs(chosen) do if key ~= 1 then config[key] = value end end
  config.d_in = 1
  for _, size in ipairs(task.observation_space.shape) do config.d_in = config.d_in * size end
  local agent = agents.new { task = task, core = core.new(chosen[1], config) }
  return player.new(task, agent, { title = agent:title(task), source = "untrained" })
end

return player
