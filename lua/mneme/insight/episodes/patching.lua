-- patching.lua -- which part of the memory carries what decides between two episodes: the state of a part before a step of episode A is put into
-- episode B, whose observations stay as they were, and what B decides at one later step is compared (activation patching).  And by which way: the
-- change reaches the decision through one other part alone, while all others are there as B left them (path patching).
local contributions = require "mneme.insight.episodes.contributions"
local frames = require "mneme.insight.episodes.frames"
local interventions = require "mneme.insight.episodes.interventions"
local map_display = require "mneme.insight.episodes.map_display"
local progress = require "mneme.base.progress"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local pause = progress.pause
local patching = {}
local COLUMNS, PATHS = 24, 8       -- steps at most, of a longer episode; rows for the strongest paths
local LEAST_SCALE = 0.2

---@class Patching
---@field map PartMap of the parts, and of the strongest paths
---@field decision integer the step of B that is decided
---@field action integer|number[] what B did there
---@field before number its probability, of a box its density
---@field other integer|number[]? what it does with all of A's memory there; where that is the same, what is likeliest besides; nil: several
---  numbers, which are the same
---@field paths table[] { from, step, through, loss, log_odds, greedy } of every pair of parts, the strongest first
---@field problem string? why there is nothing to show
local Job = {}
Job.__index = Job

---Play an episode of an agent, as a history of entries.
---@param p Stepper with one environment, seeded
---@param most integer steps of it at most
---@return Entry[] history
---@return table? outcome { score, ret, length }; nil: it goes on
function patching.play(p, most)
  local film = frames.new()
  for _ = 1, most do
    local now = p:next()
    if now.ended then return film.last.history, now.ended end
    film:add(now)
  end
  return film.last.history
end

-- Some steps of an episode again: its policies, or nil where they do not come out, and the states before the steps of `columns`.
local function again(self, history, run, last, columns)
  local states, policies, same = contributions.again(self, run, history, { last = last, columns = columns })
  return same and policies or nil, states
end

-- The step of B whose policy moves most if the whole memory is A's there.
local function find_decision(self, one)
  local probe, best, last, all = self.run(1), -1, math.min(#self.A, #self.B), {}
  for i = 1, last do all[i] = i end
  local there, memory = again(self, self.A, one, last, all)
  local own = there and again(self, self.B, one, last, {})
  if not own then return false end
  for i = math.min(2, last), last do             -- nothing is remembered before the first step
    tensor.keep(memory[i], probe.state)
    local moved = self.judge.moved(own[i], probe.step(i, { self.B }), 1)[0]
    if moved > best + 1e-6 then best, self.decision = moved, self.B[i].step end
    pause(self)
  end
  return true
end

-- Log-probabilities of what B did, and their distances from those of the other action, if there is one.
local function log_odds(self, p, n)
  local chosen, odds = {}, {}
  local log_prob = self.judge.log_prob(p, n, self.action)
  for r = 1, n do chosen[r] = log_prob[r - 1] end
  log_prob = self.other and self.judge.log_prob(p, n, self.other)
  for r = 1, n do odds[r] = chosen[r] - (log_prob and log_prob[r - 1] or 0) end
  return chosen, odds
end

-- n policies at the decision, compared with B's own.
local function cells_of(self, p, n)
  local chosen, odds = log_odds(self, p, n)
  local was, own = log_odds(self, self.own, 1)
  local moved, cells = self.judge.moved(self.own, p, n), {}
  self.before = math.exp(was[1])
  for r = 1, n do
    cells[r] = { loss = moved[r - 1], probability = math.exp(chosen[r]), log_odds = odds[r] - own[1], greedy = self.judge.mode(p + (r - 1) * self.actions),
      clear = moved[r - 1] >= contributions.LITTLE }
  end
  return cells
end

local function column(self, all, c, from, B_at, B_end)
  local core, R, d = self.agent.core, #self.parts, self.decision + 1
  local t = self.map.steps[c] + 1
  for r = 0, R - 1 do interventions.copy(core, self.parts[1].parts, B_at, 0, 1, all.state, r, R) end
  for r, row in ipairs(self.parts) do interventions.copy(core, row.parts, from, 0, 1, all.state, r - 1, R) end
  for k = t, d - 1 do
    all.step(k, { self.B })
    pause(self)
  end
  local patched = tensor.keep(all.state)
  local p = all.step(d, { self.B })
  if c == #self.map.steps then
    self.other = self.judge.mode(p)
    if self.other == self.action then self.other = self.judge.mode(p, self.action)
    elseif type(self.other) == "table" and table.concat(self.other, " ") == table.concat(self.action, " ") then self.other = nil end
  end
  for r, cell in ipairs(cells_of(self, p, R)) do self.cells[r][c] = cell end
  for q = 2, R do
    for r = 0, R - 1 do
      interventions.copy(core, self.parts[1].parts, B_end, 0, 1, all.state, r, R)
      interventions.copy(core, self.parts[q].parts, patched, r, R, all.state, r, R)
    end
    p = all.step(d, { self.B })
    for r, path in ipairs(cells_of(self, p, R)) do
      if r > 1 then
        path.from, path.through, path.step = self.parts[r], self.parts[q], t - 1
        self.paths[#self.paths + 1] = path
      end
    end
    pause(self)
  end
end

-- The strongest pairs of parts become rows of the map.
local function add_paths(self)
  table.sort(self.paths, function(a, b)
    if a.loss ~= b.loss then return a.loss > b.loss end
    if a.step ~= b.step then return a.step < b.step end
    return a.from.word .. ">" .. a.through.word < b.from.word .. ">" .. b.through.word
  end)
  local rows, column_of = {}, {}
  for c, step in ipairs(self.map.steps) do column_of[step] = c end
  for _, path in ipairs(self.paths) do
    local word = path.from.word .. ">" .. path.through.word
    if not rows[word] and path.clear and #self.map.rows < #self.parts + PATHS then
      self.map.rows[#self.map.rows + 1] = { word = word, text = path.from.text .. " → " .. path.through.text, path = true }
      rows[word] = #self.map.rows
      self.cells[rows[word]] = {}
    end
    if rows[word] then self.cells[rows[word]][column_of[path.step]] = path end
  end
end

local function work(self)
  local one = self.run(1)
  local wrong = "not shown: the agent does not act like this on these observations from an empty memory: its memory was changed, or it acts on more than "
    .. "its memory (core.sees=rollout)"
  if not self.decision and not find_decision(self, one) then self.problem = wrong return end
  local d, steps = self.decision + 1, self.map.steps
  if d > #self.A then
    self.problem = ("not shown: step %d is decided, and episode A has %d steps"):format(self.decision, #self.A)
    return
  end
  if self.at and self.at > self.decision then
    self.problem = ("not shown: at=%d is after step %d, which is decided (decision=STEP chooses another)"):format(self.at, self.decision)
    return
  end
  local every = self.every or math.max(1, math.ceil((d - 1) / COLUMNS))
  for step = self.decision, 1, -every do if not self.at or step == self.at then table.insert(steps, 1, step) end end
  if self.at and #steps == 0 then steps[1] = self.at end
  if #steps == 0 then self.problem = "not shown: nothing is remembered before the first step" return end
  local columns = { d }
  for _, step in ipairs(steps) do columns[#columns + 1] = step + 1 end
  local there, a_at = again(self, self.A, one, steps[#steps] + 1, columns)
  if not there then self.problem = wrong return end
  local own, b_at = again(self, self.B, one, d, columns)
  if not own then self.problem = wrong return end
  self.own, self.action = own[d], self.B[d].did or self.B[d].action
  local all = self.run(#self.parts)
  for c = #steps, 1, -1 do column(self, all, c, a_at[steps[c] + 1], b_at[steps[c] + 1], b_at[d]) end
  add_paths(self)
end

---Work until the deadline, or to the end.
---@param deadline number? of engine.C.mn_clock(false)
---@return boolean done
function Job:work(deadline) return progress.piece(self, deadline) end

---What the memory of one episode does to a decision of another one, not measured yet: call work().
---@param agent Agent? nil: a problem
---@param A Entry[] the episode whose memory is taken, from its first step on
---@param B Entry[] the episode into which it is put
---@param options table? { decision = step of B, nil: where A's memory changes the policy most; at = only the state before that step; every = steps
---  between two columns }
---@return Patching
function patching.new(agent, A, B, options)
  local o = options or {}
  local self = setmetatable({ agent = agent, A = A, B = B, decision = o.decision, at = o.at, every = o.every, cells = {}, paths = {},
    deadline = math.huge, problem = contributions.problem_of(agent, A) or contributions.problem_of(agent, B) }, Job)
  self.map = map_display.new { name = "patching", title = "what the other episode's memory does here", at = "its state before step", rows = {}, steps = {},
    cells = self.cells, key = "loss", value = "of the policy moved", floor = LEAST_SCALE, percent = true,
    stands = ("%.0f %% or more"):format(100 * contributions.LITTLE) }
  self.done = self.problem ~= nil
  if self.done then return self end
  self.actions, self.judge, self.parts = agent.actions, contributions.judge(agent), contributions.parts_of(agent.core)
  for r, row in ipairs(self.parts) do self.cells[r], self.map.rows[r] = {}, row end
  self.run = function(n) return contributions.runner(agent, agent.observation_space, n) end
  self.routine = coroutine.create(work)
  return self
end

local recent, RECENT = {}, 4                     -- jobs of the pairs shown last, the newest first

---What the memory of a frame's episode does to the episode of another one: see contributions.of_frame.
---@param other Frame of the episode whose memory is taken
---@param now Frame
---@param deadline number? of engine.C.mn_clock(false)
---@return Patching
function patching.of_frames(other, now, deadline)
  local A, B = other.episode_history or other.history, now.episode_history or now.history
  local job = tables.recent(recent, RECENT, function(known)
    return known.agent == now.agent and known.A[#known.A] == A[#A] and known.B[#known.B] == B[#B]
  end, function() return patching.new(not now.changed and now.agent or nil, A, B) end)
  job:work(deadline)
  return job
end

return patching
