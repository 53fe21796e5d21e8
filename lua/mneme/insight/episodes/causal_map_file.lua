-- causal_map_file.lua -- keeps a map of a run's memory in its folder, column by column, so that a map that was interrupted is resumed and one
-- that is done is read: RUN/where/STEPS-CHECKSUM.json, by the checkpoint and by all that the map depends on.
local bit = require "bit"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local layout = require "mneme.base.layout"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local causal_map = require "mneme.insight.episodes.causal_map"
local memory_story = require "mneme.insight.episodes.memory_story"
local progress = require "mneme.base.progress"
local run_folder = require "mneme.runs.run_folder"
local stepper = require "mneme.insight.episodes.stepper"
local tensor = require "mneme.tensor.tensor"

local C = engine.C
local map_file = { episodes = 64, seed = 12345 }                   -- defaults of mneme where and of the window
local ROWS = 16                                                    -- of the steppers of a window's map: half the memory of 64, in the same time
local FORMAT, BEFORE = "mneme-where-2", "mneme-where-1"           -- 1 has no checksum

-- Everything that the numbers depend on, as a text.
local function key_of(map)
  local p, crc, settings, words = map.carrier, 0, {}, {}
  local dict = p.agent:state_dict()
  for _, name in ipairs(tables.keys(dict)) do crc = engine.C.mn_crc32c(crc, dict[name]:data(), 4 * dict[name]:size()) end
  for name, value in pairs(p.env.settings) do settings[name] = tostring(value) end
  for i, row in ipairs(map.rows) do words[i] = row.word end
  return json.encode { parameters = bit.tohex(crc), env = p.env.id, settings = settings, greedy = p.greedy, seed = map.seed,
    rows = words, every = map.every or 0, steps = map.steps and json.array(map.steps) or "",
    measure = map.asked or "", sees = tostring(p.agent.core.config.sees), piece = p.usual_piece,
    test = map.test_of ~= "erase" and map.test_of or nil }
end

-- A list of n numbers, whole ones where `most` is given, from 0.
local function numbers(list, n, most)
  if type(list) ~= "table" or #list ~= n then return false end
  for i = 1, n do
    local v = list[i]
    if type(v) ~= "number" or v - v ~= 0 or most and (v % 1 ~= 0 or v < 0 or v > most) then return false end
  end
  return true
end

-- Does what a file holds fit this map?
local function fits(map, got)
  local envs = map.carrier.num_envs
  if type(got.steps) ~= "table" or type(got.columns) ~= "table" or #got.columns > #got.steps or type(got.outcomes) ~= "table"
    or type(got.partial or {}) ~= "table" then return false end
  if not numbers(got.steps, #got.steps, 2 ^ 31) or #got.outcomes ~= envs then return false end
  for i, at in ipairs(got.steps) do if at <= (got.steps[i - 1] or 0) then return false end end
  for _, o in ipairs(got.outcomes) do if type(o) ~= "table" or not numbers({ o.ret, o.length, o.score, o.greedy }, (o.score and 3 or 2)
      + (o.greedy and 1 or 0)) or (o.wrong or o.drawn or o.clear) ~= nil and not numbers({ o.wrong, o.drawn, o.clear }, 3, 2 ^ 31) then return false end end
  for _, o in ipairs(got.outcomes) do if got.measure == "success" and not o.score then return false end end
  if got.measure ~= "success" and got.measure ~= "return" then return false end
  local place = {}
  for c, at in ipairs(got.steps) do place[at] = c end
  for _, list in ipairs { got.columns, got.partial } do
    for c, column in ipairs(list) do
      local n = type(column) == "table" and type(column.envs) == "table" and #column.envs or 0
      if type(column) ~= "table" or not place[column.at]
        or c > 1 and column.at <= list[c - 1].at or not numbers(column.envs, n, envs - 1) or not numbers(column.base, n) then return false end
      if type(column.loss) ~= "table" or #column.loss ~= (n > 0 and #map.rows or 0) then return false end
      for i = 2, n do if column.envs[i] <= column.envs[i - 1] then return false end end
      for _, loss in ipairs(column.loss) do if not numbers(loss, n) and not (list == got.partial and numbers(loss, 0)) then return false end end
    end
  end
  return true
end

-- Partial columns as a file has them, an empty list where a row is not measured; nil: there are none.
local function partial_of(map)
  local list = json.array {}
  for c = 1, #map.steps do
    local column, loss = map.partial[c], {}
    for r in ipairs(column and map.rows or {}) do loss[r] = column.loss[r] or json.array {} end
    if column then list[#list + 1] = { at = column.at, envs = column.envs, base = column.base, loss = loss } end
  end
  return #list > 0 and list or nil
end

-- The same, as a map has them.
local function rows_of(list)
  for _, column in ipairs(list or {}) do
    for r, loss in ipairs(column.loss) do if #loss == 0 then column.loss[r] = nil end end
  end
  return list
end

local function store(map, path, key)
  local columns = json.array {}
  for c = 1, #map.steps do columns[#columns + 1] = map.columns[c] end
  files.write(path, { json.sealed.encode({ format = FORMAT, key = key, steps = json.array(map.steps), measure = map.measure,
    outcomes = json.array(map.outcomes), columns = columns, partial = partial_of(map) }, true) })
end

---Stores a map in the folder of its run after each column, and takes over the columns that were stored before.
---@param map CausalMap not begun
---@param only_read boolean? store nothing
---@return string path of the file
---@return integer columns that were found
function map_file.attach(map, folder, only_read)
  local key = key_of(map)
  local path = ("%s/where/%.0f-%s.json"):format(folder, map.carrier.steps or 0, bit.tohex(engine.C.mn_crc32c(0, key, #key)))
  local got = files.is_file(path) and json.decode((files.read(path)), path)
  if not only_read then
    map.on_column = function()
      local ok, why = errors.try(function()
        files.make_folder(folder .. "/where")
        store(map, path, key)
      end)
      if ok then return end
      terminal.note(("mneme: warning: %s: the map is measured, and not stored"):format(why.message))
      map.on_column = nil
    end
  end
  if not files.is_file(path) then return path, 0 end
  local format = type(got) == "table" and tostring(got.format) or ""
  json.sealed.need(path, tonumber(format:match "^mneme%-where%-(%d+)$"), 2)
  if format ~= FORMAT and format ~= BEFORE or got.key ~= key or not fits(map, got) then
    terminal.note(("mneme: warning: %s: damaged; it is measured again"):format(path))
    return path, 0
  end
  return path, map:take(got.steps, got.measure, got.outcomes, got.columns, rows_of(got.partial))
end

---The map of a run's memory as the window and `mneme where` have it, as far as it is stored.
---@param o table { checkpoint = step, nil: the newest; greedy, settings = of the environment, test: see causal_map.new }
---@param stores boolean? what is measured is stored; else a window measures it, in less memory
---@param like CausalMap? of the other test: its steppers are used, in turn
---@return CausalMap
function map_file.of_run(folder, o, stores, like)
  local carrier, worker = like and like.worker and like.carrier, like and like.worker
  if not carrier then
    carrier = stepper.from_run(folder, { num_envs = map_file.episodes, seed = map_file.seed, greedy = o.greedy, checkpoint = o.checkpoint,
      settings = o.settings, rows = not stores and ROWS or nil })
    worker = carrier:twin()
    tensor.collect()                               -- what the checkpoint's file took
  end
  local map = causal_map.new(carrier, worker, { seed = map_file.seed, test = o.test })
  map_file.attach(map, run_folder.plain(folder), not stores)
  return map
end

---The map of erasing of an agent that plays as a command says, where a run's folder has it whole.
---@param o table { folder, greedy, env_settings }
---@return PartMap?
function map_file.stored(o, checkpoint)
  if not checkpoint or #files.list(run_folder.plain(o.folder) .. "/where") == 0 then return nil end
  local map = map_file.of_run(o.folder, { checkpoint = checkpoint, greedy = o.greedy, settings = o.env_settings })
  return map.done and map:view() or nil
end

---Measures the maps of a run's newest checkpoint as the window and `mneme where` have them, and stores them: of erasing, and where episodes fail by
---more than the draw of actions, of holding.  Columns over all steps first; prints what there is, and how long it took.
---@param run string folder
---@param seconds number? at most, of each; nil: all of them
function map_file.keep(run, seconds)
  local begun, texts, whole, map = C.mn_clock(false), {}, true, nil
  for _, test in ipairs { "erase", "hold" } do
    map = map_file.of_run(run, { test = test }, true, map)
    local stop = C.mn_clock(false) + (seconds or math.huge)
    progress.work({ work = function(_, deadline)
      map:work(math.min(deadline, stop))
      return map.done or C.mn_clock(false) >= stop
    end, progress = function() return map:progress() end }, "cells", "")
    local done, of = map:progress()
    texts[#texts + 1] = ("%d of %s cells of %s"):format(done, of or "?", test == "erase" and "erasing" or "holding")
    whole = whole and map.done
    if not map.coarse or not memory_story.fails(map) or C.mn_interrupted() ~= 0 then break end
  end
  local text = ("%s: map of the memory: %s, in %.1f s"):format(run, table.concat(texts, ", "), C.mn_clock(false) - begun)
  print(table.concat(layout.wrap(text, layout.width()), "\n"))
  print(terminal.pasted(("%s: mneme where %s"):format(whole and "shown by" or "shown, and completed, by", run)))
end

return map_file
