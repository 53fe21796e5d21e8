-- readings.lua -- what an agent's memory knows, step by step: linear readings of the facts that its environment declares, from all of the
-- memory and from each part, fitted on some episodes and scored on others, next to a control fitted to shuffled answers.  A class is read
-- as the probability of the right answer, a number as the share of its variance.  One episode in each environment, all in step; the
-- samples of a step are gone when it has been read.  Work is done in small pieces, so that a window can do it between two frames.
local ffi = require "ffi"
local example_random = require "mneme.envs.example_random"
local errors = require "mneme.base.errors"
local contributions = require "mneme.insight.episodes.contributions"
local map_display = require "mneme.insight.episodes.map_display"
local progress = require "mneme.base.progress"
local ridge = require "mneme.insight.measure.ridge"
local reading_samples = require "mneme.insight.measure.reading_samples"
local tables = require "mneme.base.tables"
local wilson = require("mneme.stats").wilson

local pause = progress.pause
-- Episodes where no number is given, and at most: inner products of all with all take memory by the square, and time by the cube.
local readings = { episodes = 256, most = 2048 }
local STEPS = 32                   -- that are read, of longer episodes
local LEAST = 0.5                  -- of the episodes reach the last of them
local SAMPLES = 16                 -- least number to learn from, and half of it to ask
local ENTRIES, DRAWN = 12, 64      -- of a list: more are left out, evenly; of kept readings of all of the memory, for pictures of a world
local CONTROLS = 3                 -- shufflings, of which the control is the mean
local RIDGE, SHARE = 0.1, 0.7      -- of the mean square; of the episodes to learn from
local LITTLE = 0.05                -- of a number's variance: less is nothing
local KEPT = 2 ^ 18                -- values of a memory whose readings are kept, for pictures

---@class Readings
---@field parts table[] { word, text }: "all" of the memory, then each part
---@field facts table[] { name, kind }
---@field steps integer[]? that are read, ascending, from 0; nil until the episodes have been played once
---@field cells table<string, table[]> cells[fact][step index][part] = { p, right, control, control_right, chance, classes } of a class, { p, control } of
---  a number, both with test = samples it was asked; false: nothing to ask (all answers are alike, or too few)
---@field done boolean
local Job = {}
Job.__index = Job

-- ---- questions ----

-- At most n of a list, evenly.
local function some(list, n)
  n = math.min(n, #list)
  return tables.filled(n, function(k) return list[math.floor((k - 1) * #list / n) + 1] end)
end

-- One question for each fact, or entry of a list that varies: { kind, y = answer of each sample or nil, entry, scored = it counts in means }.
local function questions_of(fact, truths, most)
  local first, list = truths[1][fact.name], {}
  if first == nil then errors.unknown("fact to read:", fact.name, tables.keys(truths[1])) end
  for entry = 1, type(first) == "table" and #first or 1 do
    local y, seen, distinct = {}, {}, 0
    for i, truth in ipairs(truths) do
      local value = truth[fact.name]
      if type(value) == "table" then value = value[entry] end
      if fact.kind == "number" or value >= 0 then
        y[i] = value
        if not seen[value] then seen[value], distinct = true, distinct + 1 end
      end
    end
    if distinct > 1 then list[#list + 1] = { kind = fact.kind, y = y, entry = entry } end
  end
  for _, question in ipairs(some(list, ENTRIES)) do question.scored = true end
  local all = {}
  for _, question in ipairs(list) do if question.scored or most > ENTRIES then all[#all + 1] = question end end
  return some(all, most)
end

-- The samples that a question is about: their numbers, those to learn from first, and how many these are; nil: too few.
local function asked(question, n, train)
  local list, learn, key = {}, 0, {}
  for i = 1, n do
    if question.y[i] ~= nil then
      list[#list + 1] = i
      if i <= train then learn = learn + 1 end
    end
    key[i] = question.y[i] ~= nil and "1" or "0"
  end
  if learn < SAMPLES or #list - learn < SAMPLES / 2 then return nil end
  return list, learn, table.concat(key)
end

-- ---- one question of one part ----

-- Fits of all classes, with the sharpness of their probabilities; answers: the class number of each sample to learn from.
local function fit_classes(products, n, list, learn, l, diagonal, answers, classes)
  local fits, scores = { sharpness = 1 }, {}
  for k = 1, classes do
    local target = {}
    for i = 1, learn do target[i] = answers[i] == k and 1 or -1 end
    fits[k] = ridge.fit(products, n, list, learn, l, target)
    for i = 1, learn do                            -- as predicted by a fit without this sample
      scores[i] = scores[i] or {}
      scores[i][k] = target[i] - fits[k].a[i - 1] / diagonal[i - 1]
    end
  end
  fits.sharpness, fits.fit = ridge.sharpness(scores, answers)
  return fits
end

-- The mean probability of the right class, and the share of samples where it is the greatest.
local function score_classes(fits, answers, learn, classes)
  local sum, right, n = 0, 0, #answers - learn
  for i = 1, n do
    local scores, best = {}, 1
    for k = 1, classes do
      scores[k] = fits[k].said[i]
      if scores[k] > scores[best] then best = k end
    end
    sum = sum + (ridge.probabilities(scores, fits.sharpness)[answers[learn + i]] or 0) / n
    if best == answers[learn + i] then right = right + 1 / n end
  end
  return sum, right
end

local function read_class(products, n, question, list, learn, l, dice, controls)
  local names, answers, number, count = {}, {}, {}, {}
  for i, s in ipairs(list) do
    local y = question.y[s]
    if not number[y] and i <= learn then names[#names + 1] = y number[y] = #names end
    answers[i] = number[y] or 0                    -- of a class that was never learned nothing is right
    if i > learn and answers[i] > 0 then count[answers[i]] = (count[answers[i]] or 0) + 1 end
  end
  if #names < 2 then return nil end
  local diagonal, chance = ridge.inverse_diagonal(l, learn), 0
  local fits = fit_classes(products, n, list, learn, l, diagonal, answers, #names)
  local p, right = score_classes(fits, answers, learn, #names)
  local control, control_right = 0, 0
  for _ = 1, controls do
    local mixed = ridge.shuffled(answers, learn, dice)
    local other = fit_classes(products, n, list, learn, l, diagonal, mixed, #names)
    local a, b = score_classes(other, answers, learn, #names)
    control, control_right = control + a / controls, control_right + b / controls
  end
  for _, c in pairs(count) do chance = math.max(chance, c / (#list - learn)) end
  return { p = p, right = right, control = control, control_right = control_right, chance = chance, classes = #names, test = #list - learn }, fits, names
end

local function read_number(products, n, question, list, learn, l, dice, controls)
  local y = tables.map(list, function(s) return question.y[s] end)
  local found, diagonal, fits = ridge.fit(products, n, list, learn, l, y), ridge.inverse_diagonal(l, learn), 0
  for i = 1, learn do fits = fits - (found.a[i - 1] / diagonal[i - 1]) ^ 2 / learn end          -- as predicted by a fit without this sample
  local p, control = ridge.explained(found.said, y, learn), 0
  if not p then return nil end
  for _ = 1, controls do
    local fit = ridge.fit(products, n, list, learn, l, ridge.shuffled(y, learn, dice))
    control = control + ridge.explained(fit.said, y, learn) / controls
  end
  return { p = p, control = control, test = #list - learn }, { found, fit = fits }
end

-- A fit as a map of the memory's values: offset, and a weight for each.
local function as_map(of, values, list, learn)
  local d, m, columns = values.size, values.x:shape()[2], values.columns
  local weights, x, offset = ffi.new("float[?]", d), values.x:data(), of.mean
  for i = 1, learn do
    local a, row = of.a[i - 1], x + (list[i] - 1) * m
    for k = 0, m - 1 do weights[columns[k]] = weights[columns[k]] + a * row[k] end
  end
  for j = 0, d - 1 do
    weights[j] = weights[j] * values.scale[j]
    offset = offset - weights[j] * values.mean[j]
  end
  return { offset = offset, weights = weights, n = d }
end

-- ---- the work ----

-- Means over the questions of a fact: one cell.
local function mean_cell(cells)
  local mean = {}
  for _, cell in ipairs(cells) do
    for key, value in pairs(cell) do mean[key] = (mean[key] or 0) + value / #cells end
  end
  return #cells > 0 and mean or false
end

local function sum_into(total, products, n, weight)
  for i = 0, n * n - 1 do total[i] = total[i] + weight * products[i] end
end

-- Everything that is asked about the samples of one step.
local function read_step(self, k, envs, truths)
  local n = #envs
  local learn, ask, order, ordered = {}, {}, {}, {}
  for i, b in ipairs(envs) do table.insert(self.learns[b] and learn or ask, i) end
  for _, list in ipairs { learn, ask } do for _, i in ipairs(list) do order[#order + 1], ordered[#ordered + 1] = envs[i], truths[i] end end
  local train = #learn
  if train == 0 then return end
  local all = { products = ffi.new("double[?]", n * n), size = 0 }
  local questions = {}
  for f, fact in ipairs(self.facts) do
    questions[f] = questions_of(fact, ordered, self.keep and DRAWN or ENTRIES)
    self.cells[fact.name][k], self.maps[fact.name][k] = {}, {}
  end
  -- Readings of each question from some values of a part: { cell, fit, map } by question.
  local function read_all(part, source, products, values)
    local factors, ones = {}, {}
    for f, fact in ipairs(self.facts) do
      for _, question in ipairs(questions[f]) do
        local list, count, key = asked(question, n, train)
        if list and (question.scored or part.at == 1) then
          factors[key] = factors[key] or ridge.factor(products, n, list, count, RIDGE)
          local dice = example_random.new():seek(self.seed, "train", question.entry)
          local read = fact.kind == "class" and read_class or read_number
          local cell, fits, names = read(products, n, question, list, count, factors[key], dice, self.keep and 0 or CONTROLS)
          local one = cell and { cell = cell, fit = fits.fit }
          if cell and self.keep and values then
            one.map = { entry = question.entry, scored = question.scored, classes = names, sharpness = fits.sharpness, part = part.at, source = source }
            for c, of in ipairs(fits) do one.map[c] = as_map(of, values, list, count) end
          end
          ones[question] = one
        end
        pause(self)
      end
    end
    return ones
  end
  -- Of several readings of a question the one that predicts best what it has not seen: of a head its state or its output, of all of the memory all
  -- parts together or one alone.
  local best = {}
  local function settle(part, list)
    for f, fact in ipairs(self.facts) do
      local cells, maps = {}, {}
      for _, question in ipairs(questions[f]) do
        local one = part.at == 1 and best[question] or nil
        for _, ones in ipairs(list) do
          if ones[question] and (not one or ones[question].fit > one.fit) then one = ones[question] end
        end
        if one and (not best[question] or one.fit > best[question].fit) then best[question] = one end
        if question.scored then cells[#cells + 1] = one and one.cell end
        maps[#maps + 1] = one and one.map
      end
      self.cells[fact.name][k][part.at], self.maps[fact.name][k][part.at] = mean_cell(cells), maps
    end
    self.parts_read = self.parts_read + 1
    pause(self)
  end
  local kept = self.keep and self.wants_all and {} or nil
  for at = 2, #self.parts do
    local part, list = self.parts[at], {}
    for s, source in ipairs(part.sources) do
      local values = reading_samples.of(source, order, train, self.keep)
      local products = reading_samples.products(values, n)
      if s == 1 then
        sum_into(all.products, products, n, 1 / (#self.parts - 1))
        if kept then kept[at - 1] = values end
      end
      list[s] = read_all(part, s, products, values)
    end
    settle(part, list)
  end
  settle(self.parts[1], { read_all(self.parts[1], 1, all.products, kept and reading_samples.together(kept, n, self.parts[1].size)) })
end

-- Plays the episodes up to a step; visit(step, environments whose episode is not over).
local function play(self, last, visit)
  return self.stepper:play { seed = self.seed, most = last + 1, watch = visit, pause = function() pause(self) end }
end

local function work(self)
  local p, lengths, played = self.stepper, {}, 0
  local outcomes = play(self, self.last or math.huge, function(step) played = step + 1 end)
  for b = 0, p.num_envs - 1 do lengths[b + 1] = outcomes[b] and outcomes[b].length or played end
  table.sort(lengths)
  local last = math.min(self.last or math.huge, lengths[#lengths - math.ceil(LEAST * #lengths) + 1] - 1)
  local every = self.every or math.max(1, math.ceil((last + 1) / STEPS))
  local wanted = {}
  self.steps = {}
  for step = 0, last, every do
    self.steps[#self.steps + 1] = step
    wanted[step] = #self.steps
  end
  self.read = 0
  play(self, self.steps[#self.steps], function(step, living)
    if not wanted[step] then return end
    read_step(self, wanted[step], living, tables.map(living, function(b) return p.env:truth(b) end))
    self.read = wanted[step]
    self.parts_read = self.read * #self.parts
  end)
end

---Work until the deadline, or to the end.
---@param deadline number? of engine.C.mn_clock(false)
---@return boolean done
function Job:work(deadline)
  if not progress.piece(self, deadline) then return false end
  for _, part in ipairs(self.stepper and self.parts or {}) do          -- the memory of the agent that played goes
    for _, source in ipairs(part.sources) do source.take = nil end
  end
  self.stepper, self.routine = nil, nil
  return true
end

---How much is done.
---@return integer parts of the memory that are read, over all steps
---@return integer? of how many; nil: not known yet
function Job:progress() return self.parts_read, self.steps and #self.steps * #self.parts end

---Is a fact read from a part at a step, beyond chance?
---@param fact table { name, kind }
---@param k integer index in steps
---@param part integer index in parts
---@return boolean? read nil: not asked
---@return number? low
---@return number? high 95 % interval of the share of right answers, of a class
function Job:is_read(fact, k, part)
  local cell = (self.cells[fact.name][k] or {})[part]
  if not cell then return nil end
  if fact.kind == "number" then return cell.p > math.max(LITTLE, cell.control or 0) end
  local n = math.floor(cell.test + 0.5)
  local _, low, high = wilson(math.floor(cell.right * n + 0.5), n)
  return low > math.max(cell.chance, cell.control_right), low, high
end

---The readings of a fact from each part, at each measured step.
---@param fact table { name, kind }
---@param of (fun(part: integer, step: integer): number?)? what is read in one episode; nil: the means over the episodes that were not learned from
---@return PartMap
function Job:map(fact, of)
  local cells, class = {}, fact.kind == "class"
  for part in ipairs(self.parts) do
    cells[part] = {}
    for k, step in ipairs(self.steps or {}) do
      local known = (self.cells[fact.name][k] or {})[part]
      local p = known and (not of and known.p or of and of(part, step))
      if p then cells[part][k] = { p = p, clear = self:is_read(fact, k, part), n = not of and math.floor(known.test + 0.5) or nil } end
    end
  end
  return map_display.new { name = "knowledge-" .. fact.name, title = "what the memory knows: " .. fact.name, at = "at step", key = "p",
    alone = "readable", floor = 1, percent = true,
    value = class and "probability of the right answer" or "share of variance", rows = self.parts, steps = self.steps or {}, cells = cells,
    stands = "beyond chance", needed = class and self.classes == 1,
    define = ("%s, as a linear reading of each part of the memory has it that was fitted on other episodes of this run. Striped: it can be read, "
      .. "and that it is used is not measured or not so."):format(class and "The probability of the right answer" or "The share of variance"),
    note = not self.done and (self.steps and ("%d of %d steps read"):format(self.read, #self.steps) or "nothing read yet") or nil }
end

-- ---- readings of one memory ----

---What a memory says about a fact at a step: of classes the probabilities, of numbers the numbers.
---@param fact string
---@param part integer index in parts
---@param step integer one of steps
---@param mind table { memory, probes } of a Frame or a snapshot: name -> { values }
---@return table[]? list of { entry, scored = it counts in means, p = { [class] = probability } } or { entry, scored, value }; nil: nothing was read there
function Job:of(fact, part, step, mind)
  local k
  for i, s in ipairs(self.steps or {}) do if s == step then k = i end end
  local maps = (self.maps[fact] or {})[k or 0]
  maps = maps and maps[part]
  if not maps or #maps == 0 then return nil end
  local list, of = {}, {}
  local function values(at, source)
    local key, about = at .. "/" .. source, self.parts[at].sources[source]
    if not of[key] then
      of[key] = ffi.new("float[?]", about.size)
      about.gather(mind, of[key])
    end
    return of[key]
  end
  for i, map in ipairs(maps) do
    local scores, x = {}, values(map.part, map.source)
    for c, row in ipairs(map) do
      local sum = row.offset
      for j = 0, row.n - 1 do sum = sum + row.weights[j] * x[j] end
      scores[c] = sum
    end
    if not map.classes then list[i] = { entry = map.entry, scored = map.scored, value = scores[1] }
    else
      local p, by_class = ridge.probabilities(scores, map.sharpness), {}
      for c, class in ipairs(map.classes) do by_class[class] = p[c] end
      list[i] = { entry = map.entry, scored = map.scored, p = by_class }
    end
  end
  return list
end

-- ---- a job ----

local known = { facts = true, seed = true, last = true, every = true, keep = true }

---Readings of an agent's memory, not made yet: call work().
---@param stepper Stepper plays one episode in each of its environments
---@param options table? { facts = list of names, nil: all that the environment declares; seed = 12345 of the first episode; last = the last
---  step; every = steps between two that are read, nil: about 32 are read; keep = true: for Job:of, and no control }
---@return Readings
function readings.new(stepper, options)
  errors.need("readings: the stepper", stepper, "agent", "a Stepper")
  options = options or {}
  for key in pairs(options) do if not known[key] then errors.unknown("option of readings:", key, tables.keys(known)) end end
  local core, declared, facts = stepper.agent.core, {}, {}
  if #stepper.env.to_know == 0 then
    errors.usage(("%s declares no facts that a memory may know"):format(stepper.env.id), stepper.env.world.vec
      and (".to_know = \"cue=class\" in engine/envs/%s.c, of the facts of its truth"):format(stepper.env.world.what)
      or "to_know = { cue = \"class\" } in mn.env { ... }")
  end
  local classes = 0
  for i, fact in ipairs(stepper.env.to_know) do
    declared[i], declared[fact.name], classes = fact.name, fact, classes + (fact.kind == "class" and 1 or 0)
  end
  for i, name in ipairs(options.facts or declared) do
    if not declared[name] then errors.unknown("fact of " .. stepper.env.id .. ":", name, { unpack(declared) }) end
    facts[i] = declared[name]
  end
  if stepper.num_envs < 3 * SAMPLES then
    errors.usage(("readings: %d episodes, expected at least %d"):format(stepper.num_envs, 3 * SAMPLES))
  elseif stepper.num_envs > readings.most then
    errors.usage(("readings: %d episodes, expected at most %d: the time grows with their cube"):format(stepper.num_envs, readings.most))
  end
  local self = setmetatable({ stepper = stepper, facts = facts, classes = classes, seed = options.seed or 12345, last = options.last, every = options.every,
    cells = {}, maps = {}, learns = {}, read = 0, parts_read = 0, done = false, deadline = math.huge }, Job)
  self.parts = contributions.parts_of(core)
  local total, whole = 0, {}
  for at, part in ipairs(self.parts) do
    part.at, part.sources = at, reading_samples.sources(stepper, part)
    if at > 1 then total = total + part.sources[1].size end
    for _, one in ipairs(at > 1 and part.parts or {}) do whole[#whole + 1] = one end
  end
  self.keep, self.wants_all = options.keep and total <= KEPT, total <= KEPT
  self.parts[1].parts, self.parts[1].size = whole, total
  self.parts[1].sources = reading_samples.sources(stepper, self.parts[1])
  for _, fact in ipairs(facts) do self.cells[fact.name], self.maps[fact.name] = {}, {} end
  local mixed, B = ffi.new("int[?]", stepper.num_envs), stepper.num_envs
  example_random.new():seek(self.seed, "train", 0):choose(mixed, B, B)
  for i = 0, math.floor(SHARE * B + 0.5) - 1 do self.learns[mixed[i]] = true end
  self.routine = coroutine.create(work)
  return self
end

return readings
