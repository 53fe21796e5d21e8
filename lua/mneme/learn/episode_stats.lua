-- episode_stats.lua -- outcomes of finished episodes: those since the last line of the log, and the last hundred.
-- Episodes count in the order in which they began (by step, then by environment): one counts once all that began before it have ended.
-- Counted as they end, the short ones come first: where goals are reached soon and failures last, an agent of many environments would seem to
-- succeed.  Those that have ended and wait lie in a heap, four numbers each: the key of the order, score, return, length.
-- A score that the environment did not give is NaN here, and absent outside; next to others that it gave it counts as 0.
local ffi = require "ffi"
local checkpoint_files = require "mneme.runs.checkpoint_files"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"
local reference_scores = require("mneme.base.lazy") "mneme.envs.reference_scores"
local ranks = require "mneme.tensor.ranks"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local WINDOW = 100                 -- episodes behind the running score
local ROOM = 64                    -- places of the heap, to begin with

---@class Episodes
local Episodes = {}
Episodes.__index = Episodes
Episodes.WINDOW = WINDOW

-- Lua's tables, not memory of C: LuaJIT interprets this code, as it runs now and then, and its interpreter is slow with memory of C.
local function zeros(n) return tables.filled(n, function() return 0 end) end

local function new(num_envs)
  return setmetatable({ total = 0, scores = ffi.new("float[?]", WINDOW), returns = ffi.new("float[?]", WINDOW), scored = false,
    count = 0, sum_score = 0, sum_return = 0, sum_length = 0,
    num_envs = num_envs, now = 0, begun = zeros(num_envs), heap = zeros(4 * ROOM), waiting = 0 }, Episodes)
end

-- ---- the order ----

-- Places of the heap count from 0: the four numbers of i are heap[4 * i + 1] and those after it.
local function put(heap, i, key, score, ret, length)
  i = 4 * i
  heap[i + 1], heap[i + 2], heap[i + 3], heap[i + 4] = key, score, ret, length
end

local function move(heap, to, from)
  from = 4 * from
  put(heap, to, heap[from + 1], heap[from + 2], heap[from + 3], heap[from + 4])
end

local function push(self, key, score, ret, length)
  local heap, i = self.heap, self.waiting
  while i > 0 do
    local parent = (i - 1 - (i - 1) % 2) / 2
    if heap[4 * parent + 1] <= key then break end
    move(heap, i, parent)
    i = parent
  end
  put(heap, i, key, score, ret, length)
  self.waiting = self.waiting + 1
end

-- The first of the heap counts, and leaves it.
local function pop(self)
  local heap, n = self.heap, self.waiting - 1
  self:count_in(heap[2], heap[3], heap[4])
  self.waiting = n
  if n == 0 then return end
  local key, i = heap[4 * n + 1], 0
  while 2 * i + 1 < n do
    local child = 2 * i + 1
    if child + 1 < n and heap[4 * child + 5] < heap[4 * child + 1] then child = child + 1 end
    if key <= heap[4 * child + 1] then break end
    move(heap, i, child)
    i = child
  end
  move(heap, i, n)
end

---Every environment begins an episode now.
function Episodes:begin()
  for e = 1, self.num_envs do self.begun[e] = self.now end
end

---An episode of environment e has ended in step t of the rollout.
---@param score number NaN: the environment gave none
function Episodes:add(t, e, score, ret, length)
  local ended = self.now + t + 1
  self.begun[e + 1] = ended
  push(self, (ended - length) * self.num_envs + e, score, ret, length)
end

---After a rollout of so many steps: count those that began before all that are still running.
function Episodes:settle(steps)
  local first, n, begun, heap = math.huge, self.num_envs, self.begun, self.heap
  for e = 1, n do
    local key = begun[e] * n + e - 1
    if key < first then first = key end
  end
  while self.waiting > 0 and heap[1] < first do pop(self) end
  self.now = self.now + steps
end

function Episodes:count_in(score, ret, length)
  local at, given = self.total % WINDOW, score == score
  self.scores[at], self.returns[at], self.scored = given and score or 0, ret, self.scored or given
  self.total, self.count = self.total + 1, self.count + 1
  self.sum_score, self.sum_return = self.sum_score + (given and score or 0), self.sum_return + ret
  self.sum_length = self.sum_length + length
end

-- ---- what they came to ----

local function mean(values, n)
  local sum = 0
  for i = 0, n - 1 do sum = sum + values[i] end
  return n > 0 and sum / n or 0 / 0
end

---Mean score over the last hundred episodes that count; nil: none has a score.
---@return number?
function Episodes:score() return self.scored and mean(self.scores, math.min(self.total, WINDOW)) or nil end
---Their mean return; NaN before the first.
function Episodes:mean_return() return mean(self.returns, math.min(self.total, WINDOW)) end

---"score 0.970 over the last 100 episodes (no memory gives 0.5; normalised 0.940), return 3.88", and the same as a table.
---@param known ReferenceScores? what guessing and a perfect memory score
---@return { score: number?, mean_return: number, normalised: number? }
function Episodes:summary(known)
  local n, score, ret = math.min(self.total, WINDOW), self:score(), self:mean_return()
  local result = { score = score, mean_return = ret, normalised = reference_scores.normalised(score, known) }
  if n == 0 then return self.waiting > 0 and "no episode counts yet: those that began first are still running" or "no episode has ended", result end
  if not score then return format.said("return %.2f over the last %d episodes (no score is declared)", ret, n), result end
  local words = reference_scores.text(known, score)
  return format.said("score %.3f over the last %d episodes%s, return %.2f", score, n, words and " (" .. words .. ")" or "", ret), result
end

---Means since the last call, as logged.
---@param known ReferenceScores?
function Episodes:metrics(m, known)
  if self.count > 0 then
    m["charts/episodic_return"] = self.sum_return / self.count
    m["charts/episodic_length"] = self.sum_length / self.count
    if self.scored then m["charts/score"] = self.sum_score / self.count end
    m["charts/normalised"] = reference_scores.normalised(m["charts/score"], known)
  end
  m["charts/episodes"] = self.total
  self.count, self.sum_score, self.sum_return, self.sum_length = 0, 0, 0, 0
  return m
end

local function list_of(values, n) return tables.filled(n, function(i) return values[i - 1] end) end

---What a checkpoint keeps, as JSON can.
function Episodes:counters()
  local n = math.min(self.total, WINDOW)
  return { total = self.total, count = self.count, sum_score = self.sum_score, sum_return = self.sum_return,
    sum_length = self.sum_length, scores = self.scored and list_of(self.scores, n) or nil, returns = list_of(self.returns, n) }
end

---What else it keeps, as a tensor of bytes: the time, when the running episodes began, and those that wait.
---@return Tensor
function Episodes:running()
  local n = self.num_envs
  local t = tensor.new { shape = { 8 * (1 + n + 4 * self.waiting) }, dtype = "u8" }
  local d = ffi.cast("double *", t:data())
  d[0] = self.now
  for e = 1, n do d[e] = self.begun[e] end
  local heap = self.heap
  local order = tables.filled(self.waiting, function(i) return i - 1 end)                 -- by their keys: heaps of equal runs may lie differently
  table.sort(order, function(x, y) return heap[4 * x + 1] < heap[4 * y + 1] end)
  for i, at in ipairs(order) do for k = 1, 4 do d[n + 4 * (i - 1) + k] = heap[4 * at + k] end end
  return t
end

-- Takes back what `running` gave; false: it is not that.
local function take_running(self, t)
  local n = self.num_envs
  local size, d = t:size() / 8, ffi.cast("double *", t:data())
  local waiting = (size - 1 - n) / 4
  if t:dtype() ~= "u8" or waiting < 0 or waiting % 1 ~= 0 then return false end
  self.now, self.waiting = d[0], 0
  for e = 0, n - 1 do
    if not (d[1 + e] >= 0 and d[1 + e] <= d[0]) then return false end
    self.begun[e + 1] = d[1 + e]
  end
  for i = 0, waiting - 1 do
    local w = d + 1 + n + 4 * i
    if not (w[0] >= 0 and w[0] < d[0] * n) or w[2] ~= w[2] then return false end
    push(self, w[0], w[1], w[2], w[3])
  end
  return true
end

---@param c table of a checkpoint, of its counters
---@param path string the checkpoint's
---@param running Tensor? of `running`; nil: of an earlier version, which did not keep it: the running episodes begin now
function Episodes:restore(c, path, running)
  local function refuse(what) errors.fail(("%s: damaged: %s of its episodes"):format(path, what)) end
  if type(c) ~= "table" then refuse "it has no list" end
  checkpoint_files.whole(path, "count of episodes", c.count, checkpoint_files.whole(path, "number of episodes", c.total))
  for _, key in ipairs { "sum_score", "sum_return", "sum_length" } do if type(c[key]) ~= "number" then refuse(key .. " is not a number:") end end
  self.scored = c.scores ~= nil and c.total > 0
  for _, key in ipairs { "returns", self.scored and "scores" or nil } do
    if type(c[key]) ~= "table" or #c[key] ~= math.min(c.total, WINDOW) then refuse("there are not as many " .. key .. " as there were") end
    for i, v in ipairs(c[key]) do
      if type(v) ~= "number" then refuse("not a number among the " .. key) end
      self[key][i - 1] = v
    end
  end
  for _, key in ipairs { "total", "count", "sum_score", "sum_return", "sum_length" } do self[key] = c[key] end
  if running and not take_running(self, running) then refuse "what runs and waits" end
end

-- ---- of all ranks: counted on each of them in the order of a single process, so that scores, and all that depends on them, are the same on every rank ----

local FIELDS = 5                   -- step, environment, score, return, length

---@class SharedEpisodes: Episodes
local Shared = setmetatable({}, { __index = Episodes })
Shared.__index = Shared

---An episode of this rank's environment b has ended, in step t of the rollout.
function Shared:add(t, b, score, ret, length)
  local row = self.mine + self.ended * FIELDS
  row[0], row[1], row[2], row[3], row[4] = t, b, score, ret, length
  self.ended = self.ended + 1
end

---After a rollout, on every rank.
function Shared:settle(steps)
  local most, size = ranks.most(self.ended), ranks.size
  if most > 0 then
    local all = ffi.new("float[?]", size * most * FIELDS)
    for i = self.ended, most - 1 do self.mine[i * FIELDS] = math.huge end          -- none
    engine.check(engine.C.mn_ranks_gather(engine.ctx, self.mine, all, 4 * most * FIELDS, true))
    for i = 0, size * most - 1 do
      local row, first = all + i * FIELDS, math.floor(i / most) * self.num_envs / size
      if row[0] < math.huge then Episodes.add(self, row[0], first + row[1], row[2], row[3], row[4]) end
    end
    self.ended = 0
  end
  Episodes.settle(self, steps)
end

---@param num_envs integer of all ranks
---@param most integer? of several ranks: episodes that can end on one rank between two calls of settle
---@return Episodes
return function(num_envs, most)
  local self = new(num_envs)
  if most then setmetatable(self, Shared).mine, self.ended = ffi.new("float[?]", most * FIELDS), 0 end
  return self
end
