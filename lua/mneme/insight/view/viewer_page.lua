-- viewer_page.lua -- what a viewer shows: the page of one to four tracks with the differences of two, the control bar, the tip at the
-- pointer, notes, help and menu.
local format = require "mneme.base.format"
local right_actions = require "mneme.envs.right_actions"
local divergence = require "mneme.insight.episodes.divergence"
local playback = require "mneme.insight.episodes.playback"
local scene = require "mneme.insight.view.scene"

local STRIP = 26                             -- design pixels of a row of episodes below a picture
local DIFFERENCE = 130                       -- design pixels of the panel between two pages and the bar

local function speed_text(speed)
  if speed == math.huge then return "unlimited" end
  return ("%sx, %g steps/s"):format(speed < 1 and "1/" .. 1 / speed or tostring(speed), speed * playback.steps)
end

-- The playback status in the header of the first track.
local function status_of(self)
  local source, note = self:source(), self.note
  local speed = speed_text(playback.speeds[self.speed])
  local gone = source.live and self.state and self.state ~= "running"
  if gone then
    speed = self.state == "gone" and "crashed" or "ended"
    note = note or ("training %s; r plays its last checkpoint"):format(speed)
  elseif source.live then
    speed = "live"
    note = note or self.late and ("nothing new of the training for %d s: it updates, or waits for a processor"):format(self.late) or nil
  end
  if self.prompt then note = ("look for: %s_   (return<0.5  length>30  seed=17  drawn  pinned; Enter, Esc)"):format(self.prompt) end
  return { playing = self.playing, speed = speed, hint = "h: help", note = note, steps = speed_text(playback.speeds[self.speed]) }
end

-- The whole episode of a track, where its end is known.
local function whole(self, k) return self.tracks[k].timeline:whole(self.slots[self.at][k]) end

-- How the episode of a track ends, where that is known.
local function whole_outcome(self, k)
  local line = self.tracks[k] and self.tracks[k].timeline
  local stop = line and line:stop(self.slots[self.at][k])
  return stop and line.ticks[stop].outcome
end

-- The frames of the other tracks, for axes and colours that a page shares.
local function others(self, k)
  local list = {}
  for i in ipairs(self.tracks) do
    local frame = i ~= k and self:frame(i)
    if frame then list[#list + 1] = setmetatable({ episode_history = whole(self, i) }, { __index = frame }) end
  end
  return list
end

-- Are two episodes of one agent shown?
local function one_agent(self) return #self.tracks == 2 and (self.original or self.together) and true or nil end

local function shown_frame(self, k, status)
  local frame = self:frame(k)
  if not frame then return nil end
  local more = { selection = self.selection, pointed = self.pointed, status = k == 1 and status or nil }
  local causes = self:causes_of(k)
  if causes then
    more.story = function(why)
      local story = causes:story(why)
      return story and (self.bar or #story.sentences > 0) and story or nil          -- a picture does not wait for it
    end
    more.losses, more.known = function() return causes:show_held() end, function() return causes:known() end
    more.causes, more.can_open = function() return causes:show() end, self.bar and not self:source().live
    more.erased, more.map_apart = self.original and self.erased or nil, one_agent(self)
    if one_agent(self) then more.story, more.shared_story = nil, more.story end          -- said once, above both
  end
  local line, at = self.tracks[k].timeline, self.slots[self.at][k]
  more.episode_history, more.beside = whole(self, k), others(self, k)
  more.changed = line:changed(at)
  more.frame_of = function(step) return line:kept(at, step) end
  local name = self.together and ("episode %d"):format(frame.episode) or self.tracks[k].name
  if name then more.title, more.short_title = frame.title and name .. " – " .. frame.title or name, name end
  if k == 2 and self.original and not self.bar then more.source = divergence(self:frame(1), frame) end
  return setmetatable(more, { __index = frame })
end

-- What the pointer shows on an episode of the strip.
local function words_for(self, e)
  local seed, text, o = self:source().seed, ("episode %d"):format(e.episode), e.outcome
  if seed then text = ("%s, seed %d"):format(text, seed + e.episode) end
  if not o then return text .. ": not over" end
  return (("%s: %s, return %s, %s%s"):format(text,
    o.score and ("score %.2f"):format(o.score) or "no score", format.short(o.ret), format.counted(o.length, "step"),
    e.why and (": %s (%s)"):format(right_actions.reasons[e.why][2], right_actions.reasons[e.why][4]) or ""):gsub("%-(%d)", "−%1"))
end

-- The episodes of each track, for the strip; {} where none is known.
local function strip_of(self)
  local rows, source = {}, self:source()
  if source.live or self.at == 0 then return rows end
  for k, track in ipairs(self.tracks) do
    if k > 1 and (self.original or self.together) then break end
    local row, slot, won, over = { name = track.name, episodes = self:episodes_of(k) }, self.slots[self.at], 0, 0
    for _, e in ipairs(row.episodes) do
      e.text, e.shown = words_for(self, e) .. (e.outcome and ".  Right click: beside the one shown" or ""), false
      for i in ipairs(self.tracks) do
        -- an altered episode has slots of its own, which are not those of the strip
        if (i == k or self.together) and slot[i] >= e.start and slot[i] <= (e.stop or math.huge) then e.shown = true end
      end
      if e.outcome then won, over = won + (e.failed and 0 or 1), over + 1 end
    end
    row.told = over > 0 and ("%d of %d"):format(won, over) .. (row.episodes.mean and (" reach their mean, %.2f"):format(row.episodes.mean) or "") or ""
    rows[#rows + 1] = row
  end
  return rows
end

-- What an intervention does, and since when two episodes differ.
local function said_of(self)
  if #self.tracks ~= 2 then return nil end
  return divergence(self:frame(1), self:frame(2))
end

-- By how much the second of two episodes ended better, where both are known to their ends.
local function better(self)
  local a, b = whole_outcome(self, 1), whole_outcome(self, 2)
  return a and b and (a.score and b.score and a.score ~= b.score and b.score - a.score or b.ret - a.ret) or nil
end

-- The contents of the control bar.
local function bar_of(self, status)
  local from, to, over = self:episode()
  local marks, source = {}, self:source()
  for k, track in ipairs(self.tracks) do
    for at = from, to do
      if track.timeline.marks[self.slots[at][k]] then marks[#marks + 1] = at end
    end
  end
  local effect = self.effect and self.effect.job
  return { at = self.at, from = from, to = to, over = over, marks = marks, playing = self.playing, speed = status.steps,
    live = source.live, run = self:frame(1).run, selection = self.selection, checkpoint = source.steps, follows = self.followed and self.follows,
    movie = self.screen_capture.path ~= nil, pair = #self.tracks > 1, theme = self.theme,
    episode = self:tick_of(1).episode, step = self:frame(1).step,
    can_change = not source.live, changeable = self:unchangeable() == nil,
    scenes = self.scenes, scene = self.scene_name, strip = strip_of(self), reasons = right_actions.reasons,
    effect = effect and effect:text(better(self)) or nil, said = said_of(self) }
end

-- Shown until the trainer has written its first step.
local waiting = { draw = function(page)
  local text = "waiting for the first training step …"
  page:text(text, page.width / 2, page.height / 2, 16, page.theme.dim, "center")
end }

-- One to four pages in a box; of two the differences below.
local function pages(self, view, body, now)
  local n, boxes = #self.tracks, { body }
  if n == 2 and self.bar and body.h > 520 * view.unit then
    local difference
    body, difference = view:split(body, "rows", { "1*", DIFFERENCE }, 0)
    local second = self:frame(2)
    if second then scene.panels.difference(view, view:inset(difference, 6), now, { other = shown_frame(self, 2) }) end
  end
  local edge = 16 * view.unit
  local told = now.shared_story and setmetatable({ story = now.shared_story }, { __index = now })
  local high = told and scene.panels.story(view, nil, told, view:inset(body, 16)) or 0
  if high > 0 then
    local story
    story, body = view:split(body, "rows", { high + 8, "1*" }, 0)
    scene.panels.story(view, { x = story.x + edge, y = story.y + edge / 2, w = story.w - 2 * edge, h = story.h - edge / 2 }, told)
  end
  local shared = one_agent(self) and self.tracks[1].scene.shared
  if shared then
    local map
    body, map = view:split(body, "rows", { "1*", "1*" }, 0)
    scene.panels[shared](view, { x = map.x + edge, y = map.y, w = map.w - 2 * edge, h = map.h - edge }, now)
  end
  if n > 1 then boxes = { view:split(body, "columns", { "1*", "1*" }, 0) } end
  if n > 2 then
    local above, below = { view:split(boxes[1], "rows", { "1*", "1*" }, 0) }, { view:split(boxes[2], "rows", { "1*", "1*" }, 0) }
    boxes = { above[1], below[1], above[2], below[2] }
  end
  local shown = {}
  for k, track in ipairs(self.tracks) do
    local frame = k == 1 and now or shown_frame(self, k)
    shown[#shown + 1] = frame and { frame = frame, name = track.name or ("%d"):format(k) }
    if frame then view:within(boxes[k], function() track.scene.draw(view, k == 1 and frame or scene.read_only(frame)) end) end
  end
  if n == 3 then view:within(boxes[4], function() scene.panels.together(view, view:inset(boxes[4], 10), now, { frames = shown }) end) end
end

-- How many episodes a reason explains, over all: "drawn wrongly 12, memory lost 1".
local function legend(list, unread)
  local count, texts = {}, {}
  for _, e in ipairs(list) do if e.why then count[e.why] = (count[e.why] or 0) + 1 end end
  for _, reason in ipairs(right_actions.reasons) do
    local n = count[reason[1]]
    if n then texts[#texts + 1] = ("%s %s %d (%s)"):format(reason[3], reason[2], n, reason[1] == "memory" and unread or reason[4]) end
  end
  return table.concat(texts, ", ")
end

-- Adds page() to the class of viewers; `help`: its keys, for the panel of that name.
return function(Viewer, help)
  ---The known episodes and why they failed, for a page of text.
  ---@param unread string? why no reading of the memory was made
  ---@return table[] marks { mark, good, lost, text }
  ---@return string legend of the marks of failures
  function Viewer:strip(unread)
    local list, marks = self:episodes_of(1), {}
    for i, e in ipairs(list) do
      marks[i] = { mark = e.failed and (e.why and right_actions.reasons[e.why][3] or "×") or " ", good = e.outcome and not e.failed, lost = e.why == "lost",
        text = words_for(self, e) }
    end
    return marks, legend(list, unread)
  end

  ---The scene and the frame of a window.
  function Viewer:page()
    if not self:frame(1) then return waiting, {} end
    local status = self.bar and status_of(self) or nil
    local first_frame = shown_frame(self, 1, status)
    return { draw = function(view, now)
      local body, bar, contents = view.box, nil, self.bar and bar_of(self, status)
      local rows = not contents and self.scouted and view.box.h > 400 * view.unit and strip_of(self) or {}
      if rows[1] then
        body, bar = view:split(view.box, "rows", { "1*", STRIP * #rows }, 0)
        scene.panels.strip(view, view:inset({ x = bar.x + 16 * view.unit, y = bar.y, w = bar.w - 32 * view.unit, h = bar.h }, 0), now,
          { strip = rows, reasons = right_actions.reasons, scenes = {}, room = 0.7 })
        bar = nil
      end
      if contents then body, bar = view:split(view.box, "rows", { "1*", scene.panels.controls(view, nil, now, contents) }, 0) end
      view:with_panels(self.full, function() pages(self, view, body, now) end)
      if bar then scene.panels.controls(view, bar, now, contents) end
      if status and status.note then scene.panels.toast(view, body, now, { text = status.note }) end
      if self.help then scene.panels.help(view, body, now, { keys = help }) end
      if self.menu then scene.panels.menu(view, body, now, self.menu:shown()) end
      self.tip = self.hover and view:tip_at(self.hover[1], self.hover[2])
      if self.tip then scene.panels.tooltip(view, body, now, { text = self.tip, x = self.hover[1], y = self.hover[2] }) end
    end }, first_frame
  end
end
