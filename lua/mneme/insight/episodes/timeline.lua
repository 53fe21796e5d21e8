-- timeline.lua -- random access to all frames of a source.  Frames near the displayed one are kept; others are recomputed from a
-- saved moment.  An intervention at any frame replaces everything after it.
-- A source is anything with
--   next(before)          -> a snapshot (see frames.lua), nil if there is nothing new;
--                            snapshot.ended = { score, ret, length } where the previous episode has just ended
-- and, to go back, save() -> moment, bytes and restore(moment): see Stepper.  `before(source, ended)` is called after the
-- environment's step and before the agent's forward pass.
local C = require("mneme.base.engine").C
local frames = require "mneme.insight.episodes.frames"

local EVERY = 64                 -- frames between two saved moments
local MOST_FRAMES, MOST_MOMENTS = 128e6, 128e6       -- bytes

---@class Timeline
---@field source table
---@field first integer the first frame that can be shown, from 1
---@field n integer the last known frame
---@field ticks table[] of each frame: { episode, step, start = frame its episode began with, ended, outcome }
---@field marks table<integer, string> frames with an intervention: its text
local Timeline = {}
Timeline.__index = Timeline

---@return Timeline
local function new(source)
  return setmetatable({ source = source, film = frames.new(), first = 1, n = 0, here = 0, looked_at = 1, ticks = {}, frames = {},
    bytes = 0, moments = {}, moment_bytes = 0, edits = {}, marks = {} }, Timeline)
end

-- Drops the frames farthest from the displayed one, where they can be recomputed; else the oldest.
local function make_room(self)
  while self.bytes > MOST_FRAMES do
    local far, count = nil, 0
    for i in pairs(self.frames) do
      count = count + 1
      local further = not far or (self.source.restore and math.abs(i - self.looked_at) > math.abs(far - self.looked_at))
      if further or (not self.source.restore and i < far) then far = i end
    end
    if count <= 2 then return end
    self.bytes = self.bytes - self.frames[far].bytes
    self.frames[far] = nil
    if not self.source.restore then self.first = far + 1 end
  end
end

local function put(self, i, make)
  local frame = self.frames[i]
  if frame then self.film:rewind(frame)
  else
    frame = make()
    self.frames[i], self.bytes = frame, self.bytes + frame.bytes
  end
  self.here = i
  if i > self.n then
    local before = self.ticks[i - 1]
    local same = before and before.episode == frame.episode and (frame.outcome or frame.step > before.step)
    self.n, self.ticks[i] = i, { episode = frame.episode, step = frame.step, start = same and before.start or i,
      ended = frame.outcome ~= nil, outcome = frame.outcome }
  end
  make_room(self)
end

-- Drops every other moment, newest first, but never the first.
local function thin_out(self)
  local list = self.moments
  for at = #list - (#list % 2), 2, -2 do
    if self.moment_bytes <= MOST_MOMENTS / 2 then return end
    self.moment_bytes = self.moment_bytes - list[at].bytes
    table.remove(list, at)
  end
end

-- What FrameStore needs to continue after a frame.
local function context(frame)
  return frame and { episode = frame.episode, step = frame.step, history = frame.history, range = frame.range, gates = frame.gates,
    n_heads = frame.n_heads, noted = frame.noted, been = frame.been, ended_before = frame.ended_before }
end

local function newest(list, i)
  for at = #list, 1, -1 do
    if list[at].i <= i then return list[at], at end
  end
end

-- Saves the moment before the forward pass of frame `at`; `last`: the frame before.
local function remember(self, at, moment, bytes, last)
  local _, place = newest(self.moments, at)
  bytes = bytes + (last and 16 * #last.history or 0)
  table.insert(self.moments, (place or 0) + 1, { i = at, moment = moment, last = context(last), bytes = bytes })
  self.moment_bytes = self.moment_bytes + bytes
  if self.moment_bytes > MOST_MOMENTS then thin_out(self) end
end

-- Advances the source by one frame.  False: it has nothing new.
local function advance(self)
  local i, last, waiting = self.here + 1, self.film.last, self.waiting
  if waiting then                                  -- the first frame of an episode follows the end of the last one
    self.waiting = nil
    put(self, i, function() return self.film:add(waiting) end)
    return true
  end
  local saved, bytes
  local now = self.source:next(function(source, ended)
    local at = ended and i + 1 or i
    local near = newest(self.moments, at)
    local wanted = not near or at - near.i >= EVERY or at > near.i and ended
    if source.save and wanted then saved, bytes = source:save() end
    for _, edit in ipairs(self.edits) do if at >= edit.i then edit.change(source, at) end end
  end)
  if not now then return false end
  if now.ended and i > 1 then
    put(self, i, function() return self.film:finish(now.ended, now.reward) end)
    self.waiting = now
    if saved then remember(self, i + 1, saved, bytes, self.film.last) end
  else
    put(self, i, function() return self.film:add(now) end)
    if saved then remember(self, i, saved, bytes, last) end
  end
  return true
end

-- Restores the source to the moment before frame `from.i`.
local function go_back(self, from)
  self.source:restore(from.moment)
  self.film:rewind(from.last)
  self.here, self.waiting = from.i - 1, nil
end

-- Brings the source to frame i, if there is time; returns whether it did.
local function stand(self, i, deadline)
  if self.here == i then return true end
  local from = self.source.restore and newest(self.moments, i)
  if self.here > i or (from and from.i > self.here + 1) then
    if not from then return false end
    go_back(self, from)
  end
  while self.here < i do
    if deadline and C.mn_clock(false) > deadline then return false end
    if not advance(self) then return false end
  end
  return true
end

---Frames near this one are kept.
function Timeline:look_at(i) self.looked_at = i end

---A frame; nil: not known, or not recomputed before the deadline (call again to continue).
---@param i integer first .. n
---@param deadline number? of engine.C.mn_clock(false)
---@return Frame?
function Timeline:frame(i, deadline)
  self:look_at(i)
  if not self.frames[i] and i >= self.first and i <= self.n then
    if self.here == i then self:lost() end                   -- it was dropped since
    stand(self, i, deadline)
  end
  return self.frames[i]
end

---Is this frame kept?
function Timeline:has(i) return self.frames[i] ~= nil end

---Computes one frame after the last known one; false: none is available now.
---@param deadline number?
function Timeline:extend(deadline)
  return (self.n == 0 or stand(self, self.n, deadline)) and advance(self)
end

---Computes the rest of the episode of frame i, until the deadline.
---@return boolean more it is not finished
function Timeline:ahead(i, deadline)
  while not self:stop(i) do
    if C.mn_clock(false) > deadline then return true end
    if not self:extend(deadline) then return false end
  end
  return false
end

---The last frame of the episode of frame i, its end; nil: not known yet.
---@return integer?
function Timeline:stop(i)
  local start = self.ticks[self.ticks[i].start]
  if not start.stop then
    for k = self.ticks[i].start, self.n do
      if self.ticks[k].ended then start.stop = k break end
    end
  end
  return start.stop
end

---Every step of the episode of frame i, where its end is known and kept.
---@return Entry[]?
function Timeline:whole(i)
  local stop = self:stop(i)
  local last = stop and self.frames[stop]
  return last and last.history
end

---The episodes that are known, in order.
---@return table[] episodes { start, stop = its last frame or nil, episode, outcome = { score, ret, length } or nil }
function Timeline:episodes()
  local list, i = {}, self.n > 0 and self.ticks[self.first].start or 1
  while i <= self.n do
    local stop = self:stop(i)
    list[#list + 1] = { start = i, stop = stop, episode = self.ticks[i].episode, outcome = stop and self.ticks[stop].outcome }
    i = (stop or self.n) + 1
  end
  return list
end

---The last step of the episode of frame i before whose forward pass an intervention was applied.
---@return integer? step
function Timeline:changed(i)
  local start, step = self.ticks[i].start, nil
  for _, edit in ipairs(self.edits) do
    if edit.text and self.ticks[edit.i] and self.ticks[edit.i].start == start then step = math.max(step or 0, edit.i - start) end
  end
  return step
end

---The frame of another step of the episode of frame i, where it is kept.
---@return Frame?
function Timeline:kept(i, step) return self.ticks[i] and self.frames[self.ticks[i].start + step] end

---The source was used elsewhere: it is restored when it is needed next.
function Timeline:lost() self.here, self.waiting = math.huge, nil end

-- Drops everything after frame i.
local function cut(self, i)
  for k = i + 1, self.n do
    if self.frames[k] then self.bytes, self.frames[k] = self.bytes - self.frames[k].bytes, nil end
    self.ticks[k], self.marks[k] = nil, nil
  end
  while #self.moments > 0 and self.moments[#self.moments].i > i do
    self.moment_bytes = self.moment_bytes - table.remove(self.moments).bytes
  end
  while #self.edits > 0 and self.edits[#self.edits].i > i do table.remove(self.edits) end
  if self.n > i then
    self.n, self.ticks[self.ticks[i].start].stop = i, nil
    self:lost()
  end
end

---Applies an intervention before the forward pass of frame i: everything from there on is dropped and frame i recomputed.
---@param i integer a frame that is not the end of an episode
---@param make fun(source): fun(source, at) called once, before a step; the function it returns is called between step() and forward() of every
---  frame `at` from i on
---@param text string? for the marks
function Timeline:edit(i, make, text)
  local from = newest(self.moments, i)
  go_back(self, from)
  local change = make(self.source)
  cut(self, i)
  if self.frames[i] then self.bytes, self.frames[i] = self.bytes - self.frames[i].bytes, nil end
  table.insert(self.edits, { i = i, make = make, change = change, text = text })
  if text then self.marks[i] = self.marks[i] and self.marks[i] .. ", " .. text or text end
  go_back(self, from)
  stand(self, i)
end

---A copy of this timeline up to its last frame.
---@param source table this one's, used by one of both at a time; or another that can restore its moments
---@return Timeline
function Timeline:fork(source)
  local other = new(source)
  other.marks = {}
  for _, key in ipairs { "frames", "moments", "edits", "marks" } do
    for k, x in pairs(self[key]) do other[key][k] = x end
  end
  for i, tick in ipairs(self.ticks) do
    other.ticks[i] = { episode = tick.episode, step = tick.step, start = tick.start, ended = tick.ended, outcome = tick.outcome }
  end
  if source ~= self.source then
    for k, edit in ipairs(self.edits) do other.edits[k] = { i = edit.i, make = edit.make, change = edit.make(source), text = edit.text } end
  end
  other.film, other.here, other.n, other.first, other.looked_at = self.film:fork(), math.huge, self.n, self.first, self.looked_at
  other.bytes, other.moment_bytes = self.bytes, self.moment_bytes
  return other
end

return { new = new }
