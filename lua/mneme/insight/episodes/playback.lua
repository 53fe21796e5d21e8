-- playback.lua -- which frame is shown when: one timeline, or two side by side in step, either two runs in the same episodes or
-- one agent without and with an intervention.  Keys and page: insight/view/viewer.lua.
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local timeline = require "mneme.insight.episodes.timeline"

local FPS, BUSY = 60, 0.012                 -- frames per second; seconds of each spent on stepping, without a deadline
local AGAIN = 0.004                         -- seconds of a refresh spent on replaying to an earlier frame
local STEPS = 10                            -- steps per second at speed 1
local SPEEDS = { 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32, 64, math.huge }
local NORMAL = 4                            -- the initial speed
local LATE = 5                              -- seconds without a snapshot of a training that goes on, until that is said
local AHEAD = 10000                         -- slots computed ahead at most: an episode may have no end

---@class Playback
---@field together boolean? the two tracks are two episodes of one agent
---@field tracks table[] one to four; two of an intervention: { timeline, scene, open = function(changes): source, name = text or nil }
---@field slots table[] for each displayed moment the frame number of each track
---@field at integer the displayed slot
local Playback = {}
Playback.__index = Playback

---@param tracks table[] { source, scene, open, name }: open{ checkpoint = step, episode = k } returns another source of the
---  same agent, at that checkpoint, before that episode; open "checkpoints" returns their steps; nil: neither
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

-- ---- position ----

-- Adds a slot: every track moves one frame on; a track whose episode has ended waits for the other.
local function extend(self, deadline)
  local last, slot, moved = self.slots[#self.slots], {}, false
  local all = true
  for k, track in ipairs(self.tracks) do
    local tick = last and track.timeline.ticks[last[k]]
    all = all and (not tick or tick.ended)
  end
  for k, track in ipairs(self.tracks) do
    local line, i = track.timeline, last and last[k] or 0
    local tick = line.ticks[i]
    if tick and tick.ended and not all then slot[k] = i
    else
      if i + 1 > line.n and not line:extend(deadline) then return false end
      slot[k], moved = i + 1, true
    end
  end
  if not moved then return false end
  self.slots[#self.slots + 1] = slot
  return true
end

---Moves one slot on; false: there is nothing new.
function Playback:forward(deadline)
  if self.at == #self.slots and not extend(self, deadline) then return false end
  self.at, self.dirty = self.at + 1, true
  for k, track in ipairs(self.tracks) do track.timeline:look_at(self.slots[self.at][k]) end
  return true
end

---The slots of the displayed episode.
---@return integer from
---@return integer to as far as known
---@return boolean over that is its end
function Playback:episode()
  local line = main(self)
  local start = line.ticks[self.slots[self.at][1]].start
  local from, to = self.at, self.at
  while from > 1 and self.slots[from - 1][1] >= start do from = from - 1 end
  while to < #self.slots and not self:ended(to) do to = to + 1 end
  return from, to, self:ended(to)
end

---The first slot whose frame is kept or can be computed again.
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

---Advances with the clock: plays the slots that are due, then computes the rest of the episode.
---@param clock number seconds
---@param deadline number? of engine.C.mn_clock(false)
function Playback:tick(clock, deadline)
  if self.note and clock > self.note_until then self.note, self.dirty = nil, true end
  if self.awaited then self.awaited, self.dirty = nil, true end
  deadline = deadline or C.mn_clock(false) + BUSY
  if live(self) then
    if clock > (self.asked or 0) + 1 then          -- is the trainer still running?
      self.asked = clock
      local state, silent = main(self).source:state(), clock - (self.heard or clock)
      local late = state == "running" and silent >= LATE and math.floor(silent) or nil
      if state ~= self.state or late ~= self.late then self.state, self.late, self.dirty = state, late, true end
    end
    self.heard = self.heard or clock
    if extend(self) then
      if self.late or self.playing or self.at == 0 then self.dirty = true end
      self.heard, self.late = clock, nil
      if self.playing or self.at == 0 then self.at = #self.slots end
    end
    return
  end
  local period = 1 / (STEPS * SPEEDS[self.speed])
  if self.at == 0 and self:forward() then self.due = clock + period end
  if not self.playing then self.due = clock
  else
    self.due = math.max(self.due, clock - 0.1)     -- after a stall: continue at normal speed
    while self.due <= clock and C.mn_clock(false) < deadline and self:forward(deadline) do self.due = self.due + period end
    if period == 0 then self.due = clock end
  end
  self:look_ahead(deadline)
end

---Computes the rest of the displayed episode, so that the timeline shows all of it.
---@param deadline number? nil: however long it takes
function Playback:look_ahead(deadline)
  if self.at == 0 or live(self) then return end
  local known, over = #self.slots, select(3, self:episode())
  while not over and #self.slots - self.at < AHEAD and C.mn_clock(false) < (deadline or math.huge) and extend(self, deadline) do
    over = self:ended(#self.slots)
  end
  if #self.slots > known then self.dirty = true end
end

-- ---- interventions ----

-- Drops the slots after the displayed one.
local function cut(self)
  for at = #self.slots, self.at + 1, -1 do self.slots[at] = nil end
end

---Why no intervention is possible at the displayed step; nil: it is.
---@return string?
function Playback:unchangeable()
  local source, slot = main(self).source, self.slots[self.at]
  if live(self) then return "this agent is still training; after training, r replays an episode that can be changed" end
  if not (self.tracks[1].open and source.restore) or not slot then return "only an episode that an agent plays can be changed" end
  if #self.tracks > 1 and not self.original then
    return self.together and "two episodes are shown: close one first (c or x)" or "several agents are shown: close the others first (c or x)"
  end
  local tick = self.tracks[#self.tracks].timeline.ticks[slot[#self.tracks]]
  if tick.ended then return "this episode has ended" end
end

---Applies an intervention at the displayed step and shows its episode next to the original one, in a second track.
---@param change Change see intervention_options.lua
---@return boolean done
function Playback:change(change, clock)
  local n, slot, first = #self.tracks, self.slots[self.at], self.tracks[1]
  local line, other = self.tracks[n].timeline, nil
  local ok, why = errors.try(function()
    other = line:fork(n == 1 and first.open {} or line.source)
    other:edit(slot[n], change.make, change.text)
  end)
  local problem = not ok and why.message .. (why.hint and " (" .. why.hint .. ")" or "") or change.refused()
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
  if change.restarts_plan then               -- both run in the same pieces
    self.tracks[1].timeline:edit(slot[1], function()
      return function(source, at) if at == slot[1] then source:restart_plan() end end
    end)
  end
  cut(self)
  self.dirty = true
  return true
end

---Shows one track alone again; the first one without any intervention.
---@param keep integer 1 or 2
function Playback:close(keep, clock)
  if #self.tracks == 1 or keep > #self.tracks then return self:say("only one episode is shown", clock) end
  local track, at = self.tracks[keep], self.slots[self.at][keep]
  self.together = nil
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

---Loads the agents again, of another checkpoint for example, in the same episode.
---@param changes table further arguments of `open`
function Playback:reopen(changes, clock)
  local tracks = {}
  for k, track in ipairs(self.tracks) do
    local tick = track.timeline.ticks[self.slots[self.at] and self.slots[self.at][k]]
    local ok, source = pcall(track.open, tables.merged({ episode = tick and tick.episode or 0 }, changes))
    if not ok then return self:say(errors.is(source) and source.message or tostring(source), clock) end
    tracks[k] = { timeline = timeline.new(source), scene = track.scene, open = track.open, name = track.name }
  end
  self.tracks, self.slots, self.at, self.together = tracks, {}, 0, nil
  self:forward()
end

---Shows the next older (by = -1) or newer (1) checkpoint.
function Playback:checkpoint(by, clock)
  local track = self.tracks[1]
  local steps = track.open and track.open "checkpoints" or {}
  if live(self) or #steps == 0 or #self.tracks > 1 then return self:say("no other checkpoint to show", clock) end
  local shown, at = main(self).source.steps, #steps
  for i, step in ipairs(steps) do if step == shown then at = i end end
  if not steps[at + by] then return self:say(by < 0 and "this is the oldest checkpoint" or "this is the newest checkpoint", clock) end
  self:reopen({ checkpoint = steps[at + by] }, clock)
end

---The track whose episodes the window lists: untouched, where an intervention is shown.
---@return Timeline
function Playback:untouched(k) return k == 1 and self.original or self.tracks[k].timeline end

---Computes episodes after the displayed one, until some are known in every track.
---@param wanted integer episodes
---@return boolean changed
function Playback:scout(wanted, deadline)
  if self.at == 0 or live(self) or self.together then return false end
  local known = 0
  for k in ipairs(self.tracks) do
    local line = self:untouched(k)
    local before = line.n
    local list = line:episodes()
    while #list < wanted or not list[#list].stop do
      if line.n - line.ticks[line.n].start > AHEAD or C.mn_clock(false) > deadline or not line:extend(deadline) then break end
      if line.ticks[line.n].ended or #list == 0 then list = line:episodes() end
    end
    known = known + line.n - before
  end
  return known > 0
end

---Goes to the frame that an episode begins with; an intervention is closed before.
---@param start integer of track 1: see Timeline.episodes
function Playback:to_start(start, clock)
  if self.original or self.together then self:close(1, clock) end
  self.playing = false
  while #self.slots == 0 or self.slots[#self.slots][1] < start do
    if not extend(self) then return self:say("that episode is no longer known", clock) end
  end
  local at = #self.slots
  while at > 1 and self.slots[at - 1][1] >= start do at = at - 1 end
  self:seek(at)
end

---Shows another episode of the same agent next to the displayed one, both from their beginning.
---@param start integer the frame that it begins with
function Playback:beside(start, clock)
  local track, slot = self.tracks[1], self.slots[self.at]
  if #self.tracks > 1 or not (track.open and self:source().restore) or not slot then
    return self:say("two episodes side by side are of one agent that plays: close the other one first (c)", clock)
  end
  local line, mine = track.timeline, track.timeline.ticks[slot[1]].start
  local other = line:fork(track.open {})
  self.tracks[2] = { timeline = other, scene = track.scene, open = track.open, shown = track.shown }
  self.slots, self.at, self.together = { { mine, start } }, 1, true
  self:seek(1)
end

---Goes to the first frame of this episode (by = 0), of the previous (-1) or the next one (1).
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

---The displayed frame of a track; nil: none yet.
function Playback:frame(k)
  local slot = self.slots[self.at]
  if not slot then return nil end
  local frame = self.tracks[k].timeline:frame(slot[k], C.mn_clock(false) + AGAIN)
  self.tracks[k].shown = frame or self.tracks[k].shown
  frame = self.tracks[k].shown
  if not frame then return nil end
  if not self.tracks[k].timeline:has(slot[k]) then self.awaited = true end     -- it is being computed
  return frame
end

---Is a slot the end of its episode, in every track?
---@param at integer? nil: the displayed one
function Playback:ended(at)
  for k, track in ipairs(self.tracks) do
    local tick = track.timeline.ticks[self.slots[at or self.at][k]]
    if not tick.ended then return false end
  end
  return true
end

---Plays to a step of the first episode, and pauses there.
function Playback:go_to(step)
  while self:forward() and self:tick_of(1).step < step and not self:ended() do end
  self.playing = false
end

---The tick of the displayed frame of a track: see Timeline.ticks.
function Playback:tick_of(k) return self.tracks[k].timeline.ticks[self.slots[self.at][k]] end

Playback.speeds, Playback.steps = SPEEDS, STEPS

return Playback
