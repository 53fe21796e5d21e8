-- background_map.lua -- the map of an agent's memory that a window measures while it is idle, of the checkpoint that is shown; while the
-- agent is being trained of the newest one, again and again, and the last complete map stays until the next is complete.  Where episodes
-- fail, a second map follows, of what is gained where parts keep what they hold, and both are put in words.
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"
local tensor = require "mneme.tensor.tensor"

local memory_story = require "mneme.insight.episodes.memory_story"

local LOOK = 2                       -- seconds between two looks for a newer checkpoint

---@class BackgroundMap
local Background = {}
Background.__index = Background

---@param open fun(step: number, test: string?, like: CausalMap?): CausalMap the map of a checkpoint, not begun; it may use the steppers of one that is not
---  worked on meanwhile
---@param steps fun(): number[] the run's checkpoints
---@param test string? "hold"; nil: "erase", and after it the other one where episodes fail
---@return BackgroundMap
local function new(open, steps, test)
  return setmetatable({ open = open, steps = steps, test = test, looked = -math.huge,
    why = "nothing is measured yet: a window measures while it is idle, a picture for wait= seconds" }, Background)
end

-- The map as a panel draws it.
local function state_of(map)
  local state = map:view()
  if map.carrier.steps then state.title = ("%s, at %s steps"):format(state.title, format.grouped(map.carrier.steps)) end
  if state.test then state.what = memory_story.what(map.carrier.env) end
  return state
end

-- Is there more to measure once columns over all steps are?
local function fails(self) return not self.test and self.state and self.state.test and memory_story.fails(self.state.map) end

-- How much of a map there is: layers at some steps, some columns of all, everything.
local function level(map) return not map and 0 or map.done and 3 or map.coarse and 2 or map.outlined and 1 or 0 end

local function so_far(background)
  local map = background.map
  if not (map and map.steps) then return "the untouched episodes are played first, while the window is idle" end
  local done, of, left = map:progress()
  local rest = left and (", about %.0f s are left"):format(math.max(1, left)) or ""
  return ("%d of %d cells are measured%s, while the window is idle"):format(done, of, rest)
end

---What the maps say, in sentences; that it is drawn makes the maps worth measuring while a window is idle.
---@param why (fun(measure: string): string?, boolean?)? what readings of the shown memory say where no part lost what is needed; and whether they
---  are still being made
---@return table? story { sentences, lost = { row, last, gone } or nil, note = what is missing yet, episodes }; nil: nothing can be said
function Background:story(why)
  self.told = true
  local state = self.state
  if not (state and state.test) then
    local outcomes = self.map and not self.failed and self.map.outcomes or {}             -- the episodes as they are, before any map
    return not self.failed and { sentences = { memory_story.draw(outcomes) }, episodes = #outcomes,
      note = not (state and state.map.done) and "Which part of the memory holds what success needs: " .. so_far(self) .. "." or nil } or nil
  end
  local held = self:show_held()
  held = held and held.test and held or nil
  if not self.words or self.words.kept ~= state or self.words.held ~= held or self.words.reads then
    local reads                                                    -- asked for, and not made yet
    local sentences, lost = memory_story.sentences(state, held, state.what, why and function(measure, word)
      local text
      text, reads = why(measure, word)
      return text
    end)
    self.words = { kept = state, held = held, sentences = sentences, lost = lost, episodes = #state.map.outcomes, reads = reads }
  end
  local rest = not state.map.done and self or held and not held.map.done and self.held
  self.words.note = fails(self) and not held and "Which part lost " .. state.what .. ": " .. so_far(self.held or {}) .. "."
    or rest and rest.map.test_of and ("%s; %s."):format(level(rest.map) == 1 and "Layers in some columns" or "Some columns of all", so_far(rest)) or nil
  return self.words
end

---What a panel shows; that it is drawn makes the map worth measuring.
---@return PartMap? state of CausalMap:view; nil: nothing yet
---@return string? why not
function Background:show()
  self.wanted = true
  return self.state, self.why
end

---Does a panel show less than all of it, because that is not measured yet?
function Background:unfinished()
  return self.wanted and (self.map and not self.map.done and not self.failed or self.held and self.held:unfinished()) or false
end

---What is known of what is used, without a wish to measure it.
---@return PartMap?
function Background:known() return self.state and self.state.test and self.state or nil end

---The map of what is gained where parts keep what they hold, where it was worth measuring.
---@return table? state as of show
function Background:show_held() return self.held and self.held.of == self.of and self.held.state or nil end

-- The checkpoint to measure: the one shown, or the newest of a training.
local function choose(self, shown, clock)
  if shown then return shown end
  if clock > self.looked + LOOK then
    local list = self.steps()
    self.looked, self.newest = clock, list[#list]
    if not self.newest then self.why = "the map begins with the first checkpoint: checkpoint_every=STEPS, else one a minute" end
  end
  return self.newest
end

-- Of a map that is done the steppers' memory goes, unless the map of holding is to use them.
local function release(self)
  local awaited = fails(self) and self.told and not (self.held and self.held.of == self.of)
  if not self.map.worker or awaited then return end
  self.map:release()
  tensor.collect()
end

---Measures until the deadline, if a panel shows the map or what it says; else reads a map that may be stored (`stored`): every panel tells what is used.
---@param shown number? the checkpoint of the displayed agent; nil: it is in training
---@param clock number seconds
---@param deadline number of engine.C.mn_clock(false)
---@return boolean changed there is something new to draw
function Background:work(shown, clock, deadline)
  local unasked = not self.wanted and not self.told
  if unasked and not self.stored then return false elseif unasked then deadline = 0 end
  if fails(self) and self.told and shown and shown == self.of then           -- layers of both, some columns of both, then all of this one, then of that
    self.held = self.held or new(self.open, self.steps, "hold")
    self.held.wanted, self.held.like = true, self.state.map          -- they take turns between passes, each of which begins anew
    local other = self.held.of == shown and self.held.map
    if level(other) < level(self.state.map) then return self.held:work(shown, clock, deadline) end
  end
  local wish = choose(self, shown, clock)
  if not wish or wish == self.failed then return false end
  if wish ~= self.of and (shown or not self.map or self.map.done) then
    local ok, map = errors.try(self.open, wish, self.test, self.like)
    if not ok then
      self.failed, self.why = wish, map.message
      return true
    end
    self.map, self.of = map, wish
    if not self.state or shown then self.state, self.why = nil, nil end
  end
  local map = self.map
  local shown_whole = map.done and self.state and self.state.map == map and self.state.whole
  if shown_whole then release(self) end
  if shown_whole or not map.done and C.mn_clock(false) >= deadline then return false end
  local before = map:progress()
  local ok, problem = errors.try(map.work, map, deadline)          -- nothing to do for one that was stored
  if not ok then
    self.failed, self.why, self.state = wish, problem.message, nil
    return true
  end
  local first = not self.state or self.state.map == map         -- of a training, the complete map before stays
  local columns = map.steps and math.floor(map:progress() / #map.rows) > math.floor(before / #map.rows)
  if map.done or first and map.steps and (not self.state or columns or level(map) > 0 and not self.state.test) then
    self.state = state_of(map)
    self.state.whole = map.done
    return true
  end
  return false
end

return { new = new }
