-- causal_map.lua -- where is it remembered?  What an agent loses when each part of its memory is erased at each step; or where was it
-- forgotten: what it gains when each part keeps, from each step on, what it holds there.  The same episodes with the same random numbers, and
-- each continues from the state kept at that step.  It is measured in small pieces, so that a window can work on it between two frames, and
-- column by column, so that a half-done map can be stored.
local right_actions = require "mneme.envs.right_actions"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local interventions = require "mneme.insight.episodes.interventions"
local memory_parts = require "mneme.insight.episodes.memory_parts"
local narrower = require "mneme.insight.episodes.narrower"
local map_display = require "mneme.insight.episodes.map_display"
local progress = require "mneme.base.progress"
local stats = require "mneme.stats"
local tables = require "mneme.base.tables"

local C, pause = engine.C, progress.pause
local causal_map = { columns = 24 }   -- steps in which parts are erased, unless `every` or `columns` says otherwise
local COARSE = 4                   -- every fourth column is measured first
local FEW = 4                      -- columns where episodes are long, at least
local REPLAYED = 2500              -- steps that the columns of a part replay together, or those of FEW columns
local LEAST = 0.5                  -- of the episodes reach the last of them
local LONG = 10                    -- seconds: where the coarse columns take longer, layers are measured first

---@class CausalMap
---@field rows MemoryRow[] the parts
---@field test_of string "erase" or "hold"
---@field steps integer[]? in which they are erased or held from, ascending; nil until the episodes without any intervention are over
---@field columns table[] of each step that is done: { at, envs = indices of the episodes that reach it, base = what these get without,
---  loss = { [row] = what each of them loses, of hold: gains } }
---@field outcomes table[] of the episodes without any intervention: { score, ret, length, greedy = score of the same episode with the likeliest
---  action at each step, where success is measured and an episode fails; wrong, drawn, clear: its wrong decisions, where known (envs/right_actions.lua) }
---@field measure string? "success" or "return"; nil: not known before the outcomes are
---@field asked_for integer? columns that were asked for
---@field partial table[] of each step of which some rows are measured, as in columns: loss has these alone
---@field outlined boolean all of the memory and its layers are measured in the coarse columns, where these take long; work() returns once when they are
---@field coarse boolean columns over all steps are done, if not all; work() returns once when they are
---@field done boolean
local Map = {}
Map.__index = Map

-- ---- episodes ----

-- Episodes of a stepper, in pieces of work: see Stepper:play.
local function play(self, p, o)
  o.pause = function()
    self.played = self.played + 1
    if self.on_step then self.on_step(self) end
    pause(self)
  end
  return p:play(o)
end

-- The carrier's episodes, each time the same: of an environment of Gymnasium from copies of how they began, where it can be copied.
local function play_carrier(self, o)
  local p, before, starts = self.carrier, o.before, self.starts
  o.seed = self.seed
  if p.env.truncates then
    o.before = function(k, ...)
      for b = 0, k == 0 and p.num_envs - 1 or -1 do
        if starts[b] then p.env:restore(b, starts[b], p:observations() + b * p.n) else starts[b] = p.env:save(b, true) end
      end
      if before then before(k, ...) end
    end
  end
  return play(self, p, o)
end

-- Between forward() and step(): each action is the likeliest one in place of the one drawn.
local function take_likeliest(p)
  p.env.action_space:need_discrete("the likeliest action of a where", p.env.id)
  local A = p.env.action_space.n
  return function()
    local actions, logits = p.actions:data() + p.row * p.num_envs, p.logits:data() + p.row * p.num_envs * A
    for b = 0, p.num_envs - 1 do
      local best = 0
      for a = 1, A - 1 do if logits[b * A + a] > logits[b * A + best] then best = a end end
      actions[b] = best
    end
  end
end

-- The same episodes with the likeliest action at each step, where some fail: what fails in them without a draw.
local function survey_greedy(self)
  local p, failed = self.carrier, false
  for _, o in ipairs(self.outcomes) do failed = failed or o.score < 1 end
  if not failed or p.greedy ~= 0 or p.env.action_space.kind ~= "discrete" then return end
  local out = play_carrier(self, { watch = take_likeliest(p) })
  for b, o in ipairs(self.outcomes) do o.greedy = out[b - 1].score or 0 end
end

-- The episodes as they are: how they end says what can be measured, and at which steps.
local function survey(self)
  local p, scored, graded = self.carrier, false, false
  local counter = right_actions.counter(p)
  local function count(ended)                               -- the decisions of episodes that are over
    for b, outcome in pairs(counter and ended or {}) do
      local of = not outcome.wrong and counter.take(b) or outcome
      outcome.wrong, outcome.drawn, outcome.clear = of.wrong, of.drawn, of.clear
    end
  end
  local out = play_carrier(self, { watch = counter and function(_, _, ended)
    count(ended)
    counter.note()
  end })
  count(out)
  for b = 0, p.num_envs - 1 do
    self.outcomes[b + 1] = out[b]
    scored = scored or out[b].score ~= nil
  end
  if self.measure == "success" and not scored then p.env:refuse_score "measure=success" end
  for _, o in ipairs(scored and self.outcomes or {}) do                     -- next to others a missing score counts as 0
    o.score = o.score or 0
    graded = graded or o.score % 1 ~= 0
  end
  self.measure = self.measure or scored and not graded and "success" or "return"
  if self.measure == "success" then survey_greedy(self) end
  self.steps = self.steps or self:columns_of(self.asked_for, self.asked_for)
end

-- ---- one column ----

local function value_of(self, outcome) return self.measure ~= "success" and outcome.ret or outcome.score or 0 end

-- Steps of the longest episode without any intervention.
local function longest(self)
  local most = 0
  for _, o in ipairs(self.outcomes) do most = math.max(most, o.length) end
  return most
end

-- Do episodes continue from a moment as they did?  Then how they end without an intervention is known.  What depends on where a plan begins does not, nor
-- perhaps an environment of Gymnasium.
local function continues(self) return self.worker.free and not self.worker.env.truncates end

-- The episodes of some environments from the moment before step `at` on, where a part is erased or held in those of `changed`.  Held parts are put back at
-- each step, so the plan restarts there in the episodes without it, too (none is changed).  Once half of them are over, the others continue in a narrower
-- stepper, environment k there as number of[k] here.
local function continue(self, moment, at, envs, word, changed)
  local p, outcomes, of, hold = self.worker, {}, nil, self.test_of == "hold"
  p:restore(moment)
  while p do
    local list, narrow, left = interventions.new(p, { { kind = self.test_of, what = word, at = at } }), nil, nil
    local over = play(self, p, { envs = envs, before = function(k) if k == 0 or hold then list:before(at + k, changed) end end,
      stops = function(living, k)
        if #living > narrower.next(p.num_envs) or #living == 0 or not continues(self) then return false end
        if hold then list:before(at + k, changed) end
        narrow, left, at = narrower.of(p, living), living, at + k
        return true
      end })
    for b, outcome in pairs(over) do outcomes[of and of[b] or b] = outcome end
    if narrow then
      local now = {}
      for i, b in ipairs(left) do now[i - 1], left[i] = of and of[b] or b, i - 1 end
      of, envs, changed = now, left, hold and left or {}
    end
    p = narrow
  end
  return outcomes
end

-- Some rows of the column of a step, from the moment that the carrier is in, those that are not measured; nil: a whole column, now one of `columns`.
local function measure_column(self, c, envs, rows)
  local at, moment, sign = self.steps[c], self.carrier:branch(), self.test_of == "hold" and -1 or 1
  local column = self.partial[c] or { at = at, envs = envs, base = {}, loss = {} }
  if not self.partial[c] then
    local without = not continues(self) and continue(self, moment, at, envs, "all", {})
    for i, b in ipairs(envs) do column.base[i] = value_of(self, without and without[b] or self.outcomes[b + 1]) end
    self.partial[c] = column
  end
  for r, row in ipairs(self.rows) do
    if not column.loss[r] and (not rows or rows[r]) then
      local loss, played, with = {}, self.played, continue(self, moment, at, envs, row.word, envs)
      for i, b in ipairs(envs) do loss[i] = sign * (column.base[i] - value_of(self, with[b])) end
      column.loss[r], self.cells_done = loss, self.cells_done + 1
      self.replayed, self.expected = self.replayed + self.played - played, self.expected + longest(self) - at
    end
  end
  if not rows then self.columns[c], self.partial[c] = column, nil end
end

-- Which rows of a column are not measured?
local function lacks(self, c, rows)
  for r in ipairs(not self.columns[c] and self.rows or {}) do
    if (not rows or rows[r]) and not (self.partial[c] and self.partial[c].loss[r]) then return true end
  end
  return false
end

-- One pass over the steps: every `stride`th column that is missing, the last one among them; of some rows, nil: all.  The carrier plays the episodes once
-- more, untouched; at each such step the worker takes over its state.
local function pass(self, stride, rows)
  local n, column_of, reached = #self.steps, {}, 0
  for c = n - math.floor((n - 1) / stride) * stride, n, stride do
    if lacks(self, c, rows) then column_of[self.steps[c]], reached = c, self.steps[c] end
  end
  if reached == 0 then return end
  play_carrier(self, { most = reached + 1, before = function(step, envs)
    local c = column_of[step]
    if not c then return end
    column_of[step] = nil
    measure_column(self, c, envs, rows)
    if self.on_column then self.on_column(self) end
  end })
  for step, c in pairs(column_of) do                 -- which no episode reaches
    if not rows then self.columns[c], self.cells_done = { at = step, envs = {}, base = {}, loss = {} }, self.cells_done + #self.rows end
  end
end

-- All of the memory and its layers, where these are few of many rows and the coarse columns take long; nil: all at once.
local function outline_of(self)
  local rows, few, steps = {}, 0, 0
  for r, row in ipairs(self.rows) do
    if row.word == "all" or row.word:find "^layers%.%d+$" then rows[r], few = true, few + 1 end
  end
  for c = #self.steps, 1, -COARSE do steps = steps + longest(self) - self.steps[c] end
  local spent = self.spent + C.mn_clock(false) - self.since
  local long = self.outline == nil and steps * #self.rows * spent > LONG * self.played
  return few > 1 and 2 * few <= #self.rows and (self.outline or long or next(self.partial)) and rows or nil
end

-- Some of all steps is known: tells who waits for it, if the rest takes long.
local function coarse_answer(self)
  local tell, left = self.on_coarse, select(3, self:progress())
  if tell and left and left > LONG then
    self.on_coarse = nil
    tell(self, left)
  end
  coroutine.yield()
end

-- The whole map, some columns of all steps first.
local function run(self)
  if #self.outcomes == 0 then survey(self) end
  local layers = outline_of(self)
  if layers then
    pass(self, COARSE, layers)
    self.outlined = true
    coarse_answer(self)
  end
  if #self.steps > 2 * COARSE then
    pass(self, COARSE)
    self.coarse = true
    coarse_answer(self)
  end
  pass(self, 1)
  self.coarse, self.done = true, true
end

-- ---- a map ----

-- Options, and what they may be: words, a whole number, or anything.
local known = { by = { "head", "layer" }, measure = { "return", "success" }, test = { "erase", "hold" }, columns = "whole", every = "whole",
  seed = true, on_step = true, on_column = true, on_coarse = true, outline = { true, false }, steps = true }

---A map of an agent's memory, not measured yet: call work().
---@param carrier Stepper plays the episodes, one for each of its environments
---@param worker Stepper another one of the same agent, with equal settings
---@param options table? { test = "erase" (default) or "hold"; by = "head"|"layer": the rows, see memory_parts.lua; measure = "success"|
---  "return", nil: success where every score is 0 or 1, else the return; seed = 12345 of the first episode; every = steps between columns,
---  nil: about 24 columns, fewer where episodes are long; columns = about as many, in place of every; steps = those of another map, in place of
---  every; on_step, on_column = function(map) called after each step that is played, each column; on_coarse = function(map, seconds), called once when
---  some of all steps is known and the rest takes over ten seconds; outline = layers first, nil: where the coarse columns take over ten seconds }
---@return CausalMap
function causal_map.new(carrier, worker, options)
  errors.need("causal map: the carrier", carrier, "agent", "a Stepper")
  errors.need("causal map: the worker", worker, "agent", "a Stepper")
  options = options or {}
  for key, value in pairs(options) do
    local may = known[key]
    if not may then errors.unknown("option of a causal map:", key, tables.keys(known)) end
    if type(may) == "table" and not tables.has(may, value) then errors.unknown(("%s of a causal map:"):format(key), value, may) end
    if may == "whole" then errors.whole("causal map", key, value, 1) end
  end
  if options.columns and (options.every or options.steps) then
    errors.usage "causal map: expected columns= or the steps themselves (every=), got both"
  end
  if carrier == worker or carrier.num_envs ~= worker.num_envs then
    errors.raise("causal map: expected two steppers with the same number of environments")
  end
  local self = setmetatable({ carrier = carrier, worker = worker, rows = memory_parts.list(carrier.agent.core, options.by), columns = {},
    partial = {}, outcomes = {}, measure = options.measure, asked = options.measure, by = options.by or "head", test_of = options.test or "erase",
    seed = options.seed or 12345, every = options.every, asked_for = options.columns, steps = options.steps, outline = options.outline,
    starts = {}, on_step = options.on_step, on_column = options.on_column, on_coarse = options.on_coarse, done = false, outlined = false, coarse = false,
    cells_done = 0, spent = 0, played = 0, replayed = 0, expected = 0, deadline = math.huge }, Map)
  self.routine = coroutine.create(run)
  return self
end

---Takes over what was measured before, by a map of equal settings: see causal_map_file.lua.
---@param steps integer[]
---@param measure string
---@param outcomes table[]
---@param columns table[] some of them, in order
---@param partial table[]? columns of which some rows are there
---@return integer columns that are taken: those at this map's steps, where it asks for more of them
function Map:take(steps, measure, outcomes, columns, partial)
  self.measure, self.outcomes, self.columns, self.partial = measure, outcomes, {}, {}
  local own = self.asked_for and self:columns_of(self.asked_for, self.asked_for) or {}
  self.steps = #own > #steps and own or steps
  local place, taken = {}, 0
  for c, at in ipairs(self.steps) do place[at] = c end
  for _, column in ipairs(columns) do
    if place[column.at] then self.columns[place[column.at]], taken = column, taken + 1 end
  end
  self.cells_done, self.done = taken * #self.rows, taken == #self.steps
  for _, column in ipairs(partial or {}) do
    local c = place[column.at]
    if c and not self.columns[c] then
      self.partial[c] = column
      for _ in pairs(column.loss) do self.cells_done = self.cells_done + 1 end
    end
  end
  self.coarse = self.done
  return taken
end

---The steps in which parts are erased, in order: of those that half of the episodes reach, at equal distances, from the last on.  Those of fewer columns
---are among those of more where these are the default's.
---@param most integer? about how many; nil: 24
---@param whole any? as many, however long the episodes are
---@return integer[]
function Map:columns_of(most, whole)
  local lengths, steps = tables.map(self.outcomes, function(o) return o.length end), {}
  table.sort(lengths)
  local last = lengths[#lengths - math.ceil(LEAST * #lengths) + 1] - 1       -- steps count from 0
  local every = self.every or math.max(1, math.ceil(last / (most or causal_map.columns)))
  local n, thin = math.ceil(last / every), 1
  if not self.every and not whole then
    local function count() return math.ceil(n / (thin + 1)) end
    while math.ceil(n / thin) * last / 2 > REPLAYED and count() >= FEW do thin = thin + 1 end
  end
  for at = last, 1, -every * thin do table.insert(steps, 1, at) end
  return steps
end

---Measures until the deadline, or all of it.
---@param deadline number? of engine.C.mn_clock(false)
---@return boolean done
function Map:work(deadline)
  repeat
    self.since = C.mn_clock(false)
    progress.piece(self, deadline)
    self.spent = self.spent + C.mn_clock(false) - self.since
  until deadline or self.done
  return self.done
end

---How much is done.
---@return integer cells
---@return integer? of how many; nil: not known yet
---@return number? seconds of work for the others; nil: not known yet
function Map:progress()
  local of, most, left = self.steps and #self.steps * #self.rows, longest(self), 0
  for c, at in ipairs(self.steps or {}) do
    local missing = self.columns[c] and 0 or #self.rows + (continues(self) and 0 or 1)
    for _ in pairs(missing > 0 and self.partial[c] and self.partial[c].loss or {}) do missing = missing - 1 end
    left = left + (most - at) * missing
  end
  local longer = self.expected > 0 and self.replayed / self.expected or 1           -- altered episodes go on longer, or less long
  return self.cells_done, of, of and self.played > 0 and self.spent / self.played * left * longer or nil
end

---What is measured in a column, of all rows or of some.
---@param c integer
---@return table? column as in `columns`
function Map:known(c) return self.columns[c] or self.partial[c] end

-- The columns of which something is measured, in order.
local function known_columns(self)
  local list = {}
  for c = 1, #(self.steps or {}) do
    local column = self:known(c)
    if column and #column.envs > 0 then list[#list + 1] = c end
  end
  return list
end

-- The mean loss of one cell with its interval.
local function estimate(self, base, loss)
  if self.measure ~= "success" then return stats.t_interval(loss) end
  local both, first, second, neither = 0, 0, 0, 0
  for i, lost in ipairs(loss) do
    if lost > 0 then first = first + 1 elseif lost < 0 then second = second + 1
    elseif base[i] > 0 then both = both + 1 else neither = neither + 1 end
  end
  return stats.paired_shares(both, first, second, neither)
end

---What is known: a cell for each row and each step, nil where it is not measured yet.
---@return table[][] cells cells[row][step] = { loss, low, high: 95 %, n: episodes that reach the step }
function Map:cells()
  local cells = {}
  for r = 1, #self.rows do
    cells[r] = {}
    for _, c in ipairs(known_columns(self)) do
      local column = self:known(c)
      if column.loss[r] then
        local loss, low, high = estimate(self, column.base, column.loss[r])
        cells[r][c] = { loss = loss, low = low, high = high, n = #column.envs }
      end
    end
  end
  return cells
end

---Frees the steppers of a map that is done, with their memory; keeps what is still asked of the carrier.
function Map:release()
  local p = self.carrier
  self.carrier, self.worker, self.routine = { steps = p.steps, num_envs = p.num_envs, env = p.env, chosen = p.how_chosen and p:how_chosen() }, nil, nil
end

---Which cells stand out of the noise, all cells asked at once: fills p, noise and clear of each (stats.max_sign_test over episodes).
---@param cells table[][] of Map:cells
---@return table? test { threshold of the statistic, noise = the least loss that stood out, clear = how many do, of = how many cells }; nil: none
function Map:test(cells)
  local differences, at, columns = {}, {}, known_columns(self)
  if #columns == 0 then return nil end
  for r = 1, #self.rows do
    for _, c in ipairs(columns) do
      local column, list = self:known(c), {}
      for i, b in ipairs(cells[r][c] and column.envs or {}) do list[b + 1] = column.loss[r][i] end
      if cells[r][c] then differences[#differences + 1], at[#at + 1] = list, cells[r][c] end
    end
  end
  local p, threshold = stats.max_sign_test(differences, self.carrier.num_envs, { seed = self.seed })
  local test = { threshold = threshold, clear = 0, of = #at }
  for k, cell in ipairs(at) do
    local squares = 0
    for _, d in pairs(differences[k]) do squares = squares + d * d end
    cell.p, cell.noise = p[k], threshold * math.sqrt(squares) / cell.n
    cell.clear = p[k] <= 0.05
    if cell.clear then
      test.clear, test.noise = test.clear + 1, math.min(test.noise or math.huge, math.abs(cell.loss))
    end
  end
  return test
end

local kinds = {
  erase = { name = "causes", title = "where it is remembered", at = "erased at step", verb = "lost", define = "when that part is erased at that step" },
  hold = { name = "losses", title = "where it is lost", at = "kept as it is before step", verb = "gained",
    define = "when that part keeps, from that step on, what it holds there" },
}
local LEAST_SCALE = 0.2            -- of success: the end of the colours at least

---What is known so far, with its test once it is complete, as every panel, page, table and figure shows it.  Until then a cell whose interval has 0 is noise.
---@return PartMap view with map = this one, and test = of Map:test, nil: not complete, or there is none
function Map:view()
  local cells, kind = self:cells(), kinds[self.test_of]
  local test, done, of = (self.coarse or self.outlined) and self:test(cells) or nil, self:progress()
  for _, row in ipairs(not test and cells or {}) do
    for _, cell in pairs(row) do cell.clear = (cell.low or 0) > 0 end
  end
  local value = ("%s %s"):format(self.measure or "success", kind.verb)
  return map_display.new { name = kind.name, title = kind.title, at = kind.at, value = value, key = "loss", rows = self.rows,
    steps = self.steps or {}, cells = cells,
    floor = self.measure == "success" and LEAST_SCALE or 1e-6, map = self, test = test, stands = "beyond the noise of all cells",
    define = ("%s %s, over %d episodes; what does not stand out of the noise has no colour."):format(value, kind.define, #self.outcomes),
    note = not self.done and ("%d of %s cells"):format(done, of or "?") or nil }
end

return causal_map
