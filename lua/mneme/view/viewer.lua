-- viewer.lua -- a playback in a window: keys, pointer, and the page with its control bar.  Separate from the window itself, so that
-- tests can press keys.
local background_map = require "mneme.view.background_map"
local divergence = require "mneme.episodes.divergence"
local screen_capture = require "mneme.view.screen_capture"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local state_arrays = require "mneme.models.state_arrays"
local keyboard = require "mneme.view.keyboard"
local menu = require "mneme.view.menu"
local intervention_options = require "mneme.episodes.intervention_options"
local interventions = require "mneme.episodes.interventions"
local playback = require "mneme.episodes.playback"
local scene = require "mneme.view.scene"
local export_episode = require "mneme.episodes.timeline_export"

local MAX_ZOOM = 8
local BAR = 62                               -- design pixels of the controls

---@class Viewer: Playback a client of window.lua
local Viewer = {}
Viewer.__index = setmetatable(Viewer, playback)

---@param tracks table[] see playback.lua; the first one's map = function(step): the map of a checkpoint, nil: there is none
---@param options table? theme; controls = false: no bar
---@return Viewer
local function new(tracks, options)
  options = options or {}
  local self = setmetatable(playback.new(tracks), Viewer)
  self.zoom, self.pan, self.selection, self.screen_capture = 1, { 0, 0 }, {}, screen_capture()
  self.theme, self.bar = options.theme, options.controls ~= false
  local first = tracks[1]
  if first.map then self.causes = background_map.new(first.map, function() return first.open "checkpoints" end) end
  return self
end

-- ---- keys ----

local function faster(self, by) self.speed = math.max(1, math.min(#playback.speeds, self.speed + by)) end

-- The numbers of layers and heads.
local function layers_of(self)
  local frame, last = self:frame(1), -1
  for _, group in ipairs { "memory", "probes" } do
    for name in pairs(frame and frame[group] or {}) do last = math.max(last, state_arrays.parse(name) or 0) end
  end
  return last + 1, frame and frame.n_heads or 0
end

-- Cycles through all, 0, 1, 2 ... and all again.
local function cycle(self, what, n)
  local now = self.selection[what]
  self.selection[what] = not now and n > 0 and 0 or now and now + 1 < n and now + 1 or nil
end

local function zoom_at(self, factor, x, y)
  local zoom = math.max(1, math.min(MAX_ZOOM, self.zoom * factor))
  local f = zoom / self.zoom
  self.zoom, self.pan = zoom, { x - (x - self.pan[1]) * f, y - (y - self.pan[2]) * f }
  if zoom == 1 then self.pan = { 0, 0 } end
end

local function next_env(self, clock)
  local source = self:source()
  if not source.live then return self:say("only one environment is shown; Page Down shows another episode", clock) end
  source:next_env()
  self:say("requested the next environment", clock)
end

local function again(self, clock)
  local source = self:source()
  if source.live and source:state() == "running" then
    return self:say("live: the trainer decides when episodes restart", clock)
  end
  if source.live then self:reopen({}, clock) else self:to_episode(0) end
  self.playing = true
end

-- Every key: its code, name, help text and function.
local commands = {
  { " ", "space", "play or pause", function(self) self.playing = not self.playing end },
  { keyboard.RIGHT, "→", "next step", function(self) self.playing = false self:forward() end },
  { keyboard.LEFT, "←", "previous step", function(self, clock)
    self.playing = false
    if self.at > self:first() then self:seek(self.at - 1) else self:say("no earlier frame is kept", clock) end
  end },
  { keyboard.PAGE_DOWN, "PgDn", "next episode", function(self) self:to_episode(1) end },
  { keyboard.PAGE_UP, "PgUp", "previous episode", function(self) self:to_episode(-1) end },
  { keyboard.HOME, "Home", "start of the episode", function(self) self.playing = false self:to_episode(0) end },
  { keyboard.END, "End", "end of the episode", function(self)
    self.playing = false
    if self.at > 0 then self:seek(select(2, self:episode())) end
  end },
  { "+", "+", "faster", function(self) faster(self, 1) end },
  { "-", "−", "slower", function(self) faster(self, -1) end },
  { "r", "r", "restart the episode", again },
  { "n", "n", "next environment (live)", next_env },
  { "l", "l", "select a layer", function(self) cycle(self, "layer", (layers_of(self))) end },
  { "j", "j", "select a head", function(self) cycle(self, "head", select(2, layers_of(self))) end },
  { "k", "k", "take over / hand back", function(self, clock) self:take(clock) end },
  { "i", "i", "intervene at this step", function(self, clock) self:offer(clock) end },
  { "[", "[", "older checkpoint", function(self, clock) self:checkpoint(-1, clock) end },
  { "]", "]", "newer checkpoint", function(self, clock) self:checkpoint(1, clock) end },
  { "c", "c", "close the intervention", function(self, clock) self:close(1, clock) end },
  { "x", "x", "keep only the intervention", function(self, clock) self:close(2, clock) end },
  { "0", "0", "reset zoom (wheel: zoom)", function(self) self.zoom, self.pan = 1, { 0, 0 } end },
  { "s", "s", "save a screenshot", function(self, clock, paint) self:say(self.screen_capture:picture(self:frame(1), paint()), clock) end },
  { "v", "v", "start / stop a video", function(self, clock, paint)
    self:say(self.screen_capture:stop() or self.screen_capture:begin(self:frame(1), select(2, paint())), clock)
  end },
  { "w", "w", "save the episode (.mnt)", function(self, clock) self:write(clock) end },
  { "t", "t", "dark / light theme", function(self) self.theme = self.theme == "light" and "dark" or "light" end },
  { "h", "h", "this help", function(self) self.help = not self.help end },
}

local by_key, help = {}, {}
for _, command in ipairs(commands) do
  by_key[type(command[1]) == "string" and command[1]:byte() or command[1]] = command[4]
  help[#help + 1] = { command[2], command[3] }
end
help[#help + 1] = { "click", "select a head or a step" }
help[#help + 1] = { "q  Esc", "quit" }

---Let the user act in place of the agent, or hand back to it.
function Viewer:take(clock)
  if self.taken then
    self.taken = nil
    return self:say("the agent acts again", clock)
  end
  if not self:source().restore or not self.tracks[#self.tracks].open or self.at == 0 then
    return self:say("only an agent that plays an episode can be taken over", clock)
  end
  local names, told = self:frame(1).actions, {}
  local actions, labels = keyboard.divide(names)
  for i, label in ipairs(labels) do told[i] = label .. " " .. names[i] end
  keyboard.add_pad(#names, actions)
  self.taken, self.playing = { actions = actions, labels = labels, told = table.concat(told, ", ") }, false
end

---Open the menu of interventions at this step.
function Viewer:offer(clock)
  local problem, n = self:unchangeable(), #self.tracks
  if problem then return self:say(problem, clock) end
  self.playing = false
  local frame, selection, where = self:frame(n), self.selection, {}
  local list = intervention_options.list(self.tracks[n].timeline.source, frame, selection)
  if #list == 0 then return self:say("this agent and environment have nothing to intervene on", clock) end
  if selection.layer then where[1] = "layer " .. selection.layer end
  if selection.head then where[#where + 1] = "head " .. selection.head end
  local title = ("intervene at step %d: %s"):format(frame.step, #where > 0 and table.concat(where, ", ") or "all layers and heads")
  self.menu = menu(title, list, self.lasting)
end

---Apply an intervention at the displayed step; its episode is shown next to the original one.
---@param option InterventionOption
---@param steps integer? that a gate is held
---@return boolean? done
---@return table? why not: an error
function Viewer:intervene(option, steps, clock)
  local problem, n = self:unchangeable(), #self.tracks
  if problem then return self:say(problem, clock) end
  local ok, change = pcall(intervention_options.change, option, self.tracks[n].timeline, self.slots[self.at][n], steps)
  if ok then return self:change(change, clock) end
  if not errors.is(change) then error(change, 0) end
  self:say(change.message, clock)
  return false, change
end

-- Save an episode of a track; returns a text for the user.
local function write_track(track, frame_number)
  local rec, whole, problem = export_episode(track.timeline, frame_number)
  track.timeline:lost()
  if not rec then return nil end
  local stem = ("mneme-%d%s"):format(track.timeline.ticks[frame_number].episode, #rec.interventions > 0 and "-changed" or "")
  local path = files.free_name(stem, "mnt")
  rec:write(path)
  return path .. (problem and " – " .. problem or whole and "" or (", first %d steps only"):format(rec.steps))
end

---Show the displayed episode without and with a part of the memory erased at a step, as a cell of the map says.
---@param word string the part
---@param at integer
function Viewer:erase(word, at, clock)
  if #self.tracks > 1 and self.original then self:close(1, clock) end
  local problem = self:unchangeable()
  if problem and not problem:find "ended" then return self:say(problem, clock) end
  self.playing = false
  self:look_ahead()
  local from, to = self:episode()
  for slot = from, to do
    local tick = self.tracks[1].timeline.ticks[self.slots[slot][1]]
    if tick.step == at and not tick.ended and not tick.over then
      self:seek(slot)
      local spec = { kind = "erase", what = word }
      if self:intervene({ text = interventions.text(spec), specs = { spec } }, nil, clock) then self.erased = { word = word, at = at } end
      return
    end
  end
  self:say(("this episode ends before step %d; Page Down shows another"):format(at), clock)
end

---Advances with the clock; what is left of the time goes to the map, if it is shown.
---@param clock number seconds
---@param deadline number? of engine.C.mn_clock(false)
function Viewer:tick(clock, deadline)
  playback.tick(self, clock, deadline)
  if self.causes and deadline and self.causes:work(self:source().steps, clock, deadline) then self.dirty = true end
end

---Completes the map of the memory, if the page shows it: for pictures.
---@return boolean changed
function Viewer:measure()
  return self.causes ~= nil and self.causes:work(self:source().steps, 0, math.huge)
end

---Save the displayed episode of every track as a trajectory.
function Viewer:write(clock)
  local written = {}
  if self:source().live or self:source().trajectory or self.at == 0 then
    return self:say("only episodes that an agent plays can be saved", clock)
  end
  for k, track in ipairs(self.tracks) do
    local ok, text = pcall(write_track, track, self.slots[self.at][k])
    if not ok and not errors.is(text) then error(text, 0) end
    text = ok and text or not ok and text.message
    if not text then return self:say("the beginning of this episode is no longer kept", clock) end
    written[#written + 1] = text
  end
  self:say("saved " .. table.concat(written, " and "), clock)
end

-- A key while the menu is open.
local function key_of_menu(self, key, clock)
  local chosen, open = self.menu:key(key)
  self.lasting = self.menu.lasting
  local steps = self.menu:steps()
  if not open then self.menu = nil end
  if chosen then self:intervene(chosen, steps, clock) end
end

---A key was pressed.  True: quit.
function Viewer:key(key, clock, paint)
  self.dirty = true
  if self.menu then return key_of_menu(self, key, clock) end
  if self.taken then
    local action = self.taken.actions[key]
    if action then self:act(action, clock) return false end
    if key == keyboard.ESCAPE then self:take(clock) return false end
  end
  if key == ("q"):byte() or key == keyboard.ESCAPE then return true end
  if by_key[key] then by_key[key](self, clock, paint) end
end

-- ---- the pointer ----

local function scrub_to(self, x)
  local s = self.scrub
  local from, to = s.from, s.to
  self.playing = false
  self:seek(from + math.floor((x - s.x) / s.w * (to - from) + 0.5))
end

-- A click on the selection clears it.
local function click(self, what, spot, x)
  local f, c = self.selection, what.select
  if what.steps then
    local step = math.floor((x - spot.x) / spot.w * what.steps)
    f.step = f.step ~= step and step or nil
  elseif f.layer == c.layer and f.head == c.head then f.layer, f.head = nil, nil
  else f.layer, f.head = c.layer, c.head end
end

---A pointer event: see window.lua.
function Viewer:pointer(what, x, y, by, clock, paint)
  local spot, box
  if what == "press" and by == 1 then spot, box = self.canvas:spot_at(x, y) end
  self.dirty = self.dirty or what ~= "move"
  if what == "release" then self.scrub, self.dragged = nil, nil
  elseif what == "wheel" then zoom_at(self, 1.25 ^ by, x, y)
  elseif what == "move" and self.scrub then scrub_to(self, x)
  elseif what == "move" and self.dragged and self.zoom > 1 then
    self.pan = { self.pan[1] + x - self.dragged[1], self.pan[2] + y - self.dragged[2] }
    self.dragged, self.dirty = { x, y }, true
  elseif spot and spot.scrub then
    self.scrub = spot.scrub
    scrub_to(self, x)
  elseif spot and spot.key then return self:key(spot.key, clock, paint)
  elseif spot and spot.action and self.taken then self:act(spot.action, clock)
  elseif spot and spot.erase then self:erase(spot.erase, spot.at, clock)
  elseif spot and (spot.select or spot.steps) then click(self, spot, box, x)
  elseif what == "press" and by == 1 then self.dragged = { x, y } end
end

-- ---- the page ----

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
  elseif source.live then speed = "live"
  elseif source.trajectory and self:tick_of(1).over then
    speed, note = "over", note or "end of the trajectory; r restarts its last episode"
  end
  if self.taken then note = note or "your move: " .. self.taken.told .. "; k or Esc hands back" end
  return { playing = self.playing, speed = speed, hint = "h: help", note = note, steps = speed_text(playback.speeds[self.speed]) }
end

local function shown_frame(self, k, status)
  local frame = self:frame(k)
  if not frame then return nil end
  local more = { selection = self.selection, focus = self.selection, status = k == 1 and status or nil, keys = self.taken and self.taken.labels or nil }
  if self.causes then
    more.causes, more.can_open = function() return self.causes:show() end, self.bar and not self:source().live
    more.erased = self.original and self.erased or nil
  end
  local line, at = self.tracks[k].timeline, self.slots[self.at][k]
  more.episode_history = line:whole(at)
  more.frame_of = function(step) return line:kept(at, step) end
  if self.tracks[k].name then more.title = self.tracks[k].name .. " – " .. frame.title end
  if k == 2 and self.original and not self.bar then more.source = divergence(self:frame(1), frame) end
  return setmetatable(more, { __index = frame })
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
  return { at = self.at, from = from, to = to, over = over, marks = marks, playing = self.playing, speed = status.steps,
    live = source.live, selection = self.selection, checkpoint = source.steps, taken = self.taken ~= nil,
    movie = self.screen_capture.path ~= nil, zoom = self.zoom, pair = #self.tracks > 1, theme = self.theme,
    episode = self:tick_of(1).episode, can_change = not source.live and not source.trajectory,
    said = #self.tracks > 1 and (self.note or divergence(self:frame(1), self:frame(2))) or nil }
end

-- Shown until the trainer has written its first step.
local waiting = { draw = function(page)
  local text = "waiting for the first training step …"
  page:text(text, page.width / 2, page.height / 2, 16, page.theme.dim, "center")
end }

---The scene and the frame of a window.
function Viewer:page()
  if not self:frame(1) then return waiting, {} end
  local status = self.bar and status_of(self) or nil
  local first_frame = shown_frame(self, 1, status)
  return { draw = function(view, now)
    local body, bar = view.box, nil
    if self.bar then body, bar = view:split(view.box, "rows", { "1*", BAR }, 0) end
    local boxes = { body }
    if #self.tracks > 1 then boxes = { view:split(body, "columns", { "1*", "1*" }, 0) } end
    for k, track in ipairs(self.tracks) do
      local frame = k == 1 and now or shown_frame(self, k)
      if frame then view:within(boxes[k], function() track.scene.draw(view, k == 1 and frame or scene.read_only(frame)) end) end
    end
    if self.zoom > 1 then view:magnify(self.zoom, self.pan[1], self.pan[2]) end
    if bar then scene.panels.controls(view, bar, bar_of(self, status)) end
    if self.help then scene.panels.help(view, body, now, { keys = help }) end
    if self.menu then scene.panels.menu(view, body, now, self.menu:shown()) end
  end }, first_frame
end

---A page was painted and shown.
function Viewer:painted(pixels, width, height, clock)
  local note = self.screen_capture:painted(pixels, width, height)
  if note then self:say(note, clock) end
end

---The window was closed: ends a video that is being recorded.
---@return string? text a text for the user
function Viewer:closed() return self.screen_capture:stop() end

return { new = new }
