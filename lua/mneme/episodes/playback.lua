-- playback.lua -- which frames are shown, and when: one timeline, or two side by side that go on in step, be it two runs
-- in the same worlds or an agent and what becomes of it after a change.  The keys and the page: mneme.viewer.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local timeline = require "mneme.episodes.timeline"

local C = engine.C
local FPS, BUSY = 60, 0.012                 -- frames a second; seconds of each for living on, where nothing else is said
local AGAIN = 0.004                         -- seconds of a page for living again through what is to be seen
local STEPS = 10                            -- steps a second at speed 1
local SPEEDS = { 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32, 64, math.huge }
local NORMAL = 4                            -- the speed to begin with
local AHEAD = 10000                         -- slots that are lived ahead at most: an episode may have no end

---@class Playback
---@field tracks table[] one or two: { timeline, scene, open = function(changes): source, name = text or nil }
---@field slots table[] of each moment that is shown: which frame of each track
---@field at integer the slot that is shown
local Playback = {}
Playback.__index = Playback

---@param tracks table[] { source, scene, open, name }: open{ checkpoint = step, episode = k } gives another source of the
---  same agent, as it is at that checkpoint, before that episode; open "checkpoints" their steps; nil: neither
---@return Playback
function Playback.new(tracks)
  local self = setmetatable({ tracks = {}, slots = {}, at = 0, playing = true, speed = NORMAL, due = 0, period = 1 / FPS,
    dirty = true }, Playback)
  for k, t in ipairs(tracks) do
    self.tracks[k] = { timeline = timeline.new(t.source), scene = t.scene, open = t.open, name = t.name }
  end
  return self
end

function Playback:say(text, clock) self.note, self.note_until, self.dirty = text, clock + 4, true end

local function main(self) return self.tracks[1].timeline end
local function live(self) return main(self).source.live end

---The source of the first track.
function Playback:source() return main(self).source end

-- ---- where it is ----

-- One slot more behind the last: every track one frame on, but one whose episode is over waits for the other.
local function extend(self, deadline)
  local last, slot, moved = self.slots[#self.slots], {}, false
  local all = true
  for k, track in ipairs(self.tracks) do
    local tick = last and track.timeline.ticks[last[k]]
    all = all and (not tick or tick.ended or tick.over)
  end
  for k, track in ipairs(self.tracks) do
    local line, i = track.timeline, last and last[k] or 0
    local tick = line.ticks[i]
    if tick and (tick.over or (tick.ended and not all)) then slot[k] = i
    else
      if i + 1 > line.n and not line:extend(deadline) then return false end
      slot[k], moved = i + 1, true
    end
  end
  if not moved then return false end
  self.slots[#self.slots + 1] = slot
  return true
end

---One slot on; false: there is nothing new.
function Playback:forward(deadline)
  if self.at == #self.slots and not extend(self, deadline) then return false end
  self.at, self.dirty = self.at + 1, true
  for k, track in ipairs(self.tracks) do track.timeline:look_at(self.slots[self.at][k]) end
  return true
end

---The slots of the episode that is shown.
---@return integer from
---@return integer to as far as is known
---@return boolean over that is its end
function Playback:episode()
  local line = main(self)
  local start = line.ticks[self.slots[self.at][1]].start
  local from, to = self.at, self.at
  while from > 1 and self.slots[from - 1][1] >= start do from = from - 1 end
  while to < #self.slots and not self:ended(to) do to = to + 1 end
  return from, to, self:ended(to)
end

---The first slot whose frame is still there or comes back.
function Playback:first()
  local at = 1
  if main(self).source.restore then return at end
  while at < #self.slots and self.slots[at][1] < main(self).first do at = at + 1 end
  return at
end

---Show another slot.
function Playback:seek(slot)
  self.at, self.dirty = math.max(self:first(), math.min(#self.slots, slot)), true
end

-- ---- time ----

---Let time pass: play as many slots as are due, and get to know the rest of the episode.
---@param clock number seconds
---@param deadline number? of engine.C.mn_clock(false)
function Playback:tick(clock, deadline)
  if self.note and clock > self.note_until then self.note, self.dirty = nil, true end
  if self.awaited then self.awaited, self.dirty = nil, true end
  deadline = deadline or C.mn_clock(false) + BUSY
  if live(self) then
    if clock > (self.asked or 0) + 1 then          -- is the trainer still there?
      self.asked = clock
      local state = main(self).source:state()
      if state ~= self.state then self.state, self.dirty = state, true end
    end
    if extend(self) and (self.playing or self.at == 0) then self.at, self.dirty = #self.slots, true end
    return
  end
  local period = 1 / (STEPS * SPEEDS[self.speed])
  if self.at == 0 and self:forward() then self.due = clock + period end
  if not self.playing then self.due = clock
  else
    self.due = math.max(self.due, clock - 0.1)     -- after a stall: go on, do not rush
    while self.due <= clock and C.mn_clock(false) < deadline and self:forward(deadline) do self.due = self.due + period end
    if period == 0 then self.due = clock end
  end
  if not self.taken then self:look_ahead(deadline) end
end

---Live on to the end of the episode that is shown, so that the bar holds the whole of it.
---@param deadline number? nil: however long it takes
function Playback:look_ahead(deadline)
  if self.at == 0 or live(self) then return end
  local known, over = #self.slots, select(3, self:episode())
  while not over and #self.slots - self.at < AHEAD and C.mn_clock(false) < (deadline or math.huge) and extend(self, deadline) do
    over = self:ended(#self.slots)
  end
  if #self.slots > known then self.dirty = true end
end

-- ---- operating ----

-- Make the slot that is shown the last that is known.
local function cut(self)
  for at = #self.slots, self.at + 1, -1 do self.slots[at] = nil end
end

---Do an action in place of the agent, in the last track.
function Playback:act(action, clock)
  local k = #self.tracks
  local line = self.tracks[k].timeline
  if line.ticks[self.slots[self.at][k]].ended then return self:forward() end      -- to the next episode
  if not line:act(self.slots[self.at][k], action) then return self:say("nothing can be done here", clock) end
  cut(self)
  self:forward()
end

---Why nothing can be changed at the step that is shown; nil: it can.
---@return string?
function Playback:unchangeable()
  local source, slot = main(self).source, self.slots[self.at]
  if live(self) then return "this is the trainer's own agent: when it has ended, r plays one that can be changed" end
  if source.trajectory then return "what a file tells has happened: only an agent that plays can be changed" end
  if not (self.tracks[1].open and source.restore) or not slot then return "only an agent that plays can be changed" end
  if #self.tracks > 1 and not self.original then return "of two agents, close one first: c, or x" end
  local tick = self.tracks[#self.tracks].timeline.ticks[slot[#self.tracks]]
  if tick.ended or tick.over then return "this episode is over" end
end

---Show beside what happened what happens after a change at this step, where it can be changed: in the second track, made
---if there is none.
---@param change Change see mneme.operations
---@return boolean done
function Playback:change(change, clock)
  local n, slot, first = #self.tracks, self.slots[self.at], self.tracks[1]
  local line, other = self.tracks[n].timeline, nil
  local ok, why = pcall(function()
    other = line:fork(n == 1 and first.open {} or line.source)
    other:edit(slot[n], change.make, change.text)
  end)
  if not ok and not errors.is(why) then error(why, 0) end
  local problem = not ok and why.message or change.refused()
  if problem then
    line:lost()
    return self:say(problem, clock)
  end
  if n == 1 then
    self.original = line
    self.tracks = { { timeline = line:fork(line.source), scene = first.scene, open = first.open, name = "as it was",
        shown = first.shown }, { timeline = other, scene = first.scene, open = first.open, name = change.text, shown = first.shown } }
    for _, s in ipairs(self.slots) do s[2] = s[1] end
  else self.tracks[2].timeline, self.tracks[2].name = other, self.tracks[2].name .. ", " .. change.text end
  if change.settles then               -- both run in the same pieces
    self.tracks[1].timeline:edit(slot[1], function()
      return function(source, at) if at == slot[1] then source:restart_plan() end end
    end, nil, true)
  end
  cut(self)
  self.dirty = true
  return true
end

---Show one track alone again: the first one as it was before anything was changed.
---@param keep integer 1 or 2
function Playback:close(keep, clock)
  if #self.tracks == 1 then return self:say("nothing is shown beside it", clock) end
  local track, at = self.tracks[keep], self.slots[self.at][keep]
  if keep == 1 and self.original then
    track.timeline = self.original
    track.timeline:lost()
    while track.timeline.n < at and track.timeline:extend() do end
  end
  self.tracks, self.slots, self.original = { track }, {}, nil
  track.name = nil
  for i = 1, track.timeline.n do self.slots[i] = { i } end
  self:seek(at)
end

---The agents anew: of another checkpoint, say, in the same episode.
---@param changes table what `open` is given besides
function Playback:reopen(changes, clock)
  local tracks = {}
  for k, track in ipairs(self.tracks) do
    local tick = track.timeline.ticks[self.slots[self.at] and self.slots[self.at][k]]
    local given = { episode = tick and tick.episode or 0 }
    for key, value in pairs(changes) do given[key] = value end
    local ok, source = pcall(track.open, given)
    if not ok then return self:say(errors.is(source) and source.message or tostring(source), clock) end
    tracks[k] = { timeline = timeline.new(source), scene = track.scene, open = track.open, name = track.name }
  end
  self.tracks, self.slots, self.at = tracks, {}, 0
  self:forward()
end

---The next older (by = -1) or newer (1) checkpoint.
function Playback:checkpoint(by, clock)
  local track = self.tracks[1]
  local steps = track.open and track.open "checkpoints" or {}
  if live(self) or #steps == 0 or #self.tracks > 1 then return self:say("there is no other checkpoint to show here", clock) end
  local shown, at = main(self).source.steps, #steps
  for i, step in ipairs(steps) do if step == shown then at = i end end
  if not steps[at + by] then return self:say(by < 0 and "this is the oldest checkpoint" or "this is the newest checkpoint", clock) end
  self:reopen({ checkpoint = steps[at + by] }, clock)
end

---To the first frame of this episode (by = 0), of the one before (-1) or behind it (1).
function Playback:to_episode(by)
  if self.at == 0 then return end
  local from = self:episode()
  if by == 0 then return self:seek(from) end
  if by < 0 then
    if from > 1 then self:seek(from - 1) self:seek((self:episode())) end
    return
  end
  self:look_ahead()
  self:seek(select(2, self:episode()))
  self:forward()
end

---The frame of a track that is shown; nil: none yet.
function Playback:frame(k)
  local slot = self.slots[self.at]
  if not slot then return nil end
  local frame = self.tracks[k].timeline:frame(slot[k], C.mn_clock(false) + AGAIN)
  self.tracks[k].shown = frame or self.tracks[k].shown
  frame = self.tracks[k].shown
  if not frame then return nil end
  if not self.tracks[k].timeline:has(slot[k]) then self.awaited = true end     -- it is on its way
  return frame
end

---Is a slot the end of its episode, in every track?
---@param at integer? nil: the one that is shown
function Playback:ended(at)
  for k, track in ipairs(self.tracks) do
    local tick = track.timeline.ticks[self.slots[at or self.at][k]]
    if not (tick.ended or tick.over) then return false end
  end
  return true
end

---Play on to a step of the first episode, and pause there.
---@param step integer
function Playback:go_to(step)
  while self:forward() and self:tick_of(1).step < step and not self:ended() do end
  self.playing = false
end

---What is known of the frame of a track that is shown: see Timeline.ticks.
function Playback:tick_of(k) return self.tracks[k].timeline.ticks[self.slots[self.at][k]] end

Playback.speeds, Playback.steps = SPEEDS, STEPS

return Playback
