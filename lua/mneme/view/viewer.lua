-- viewer.lua -- a playback in a window: what the keys and the pointer do, and the page with its bar of controls.  Apart
-- from the window itself, so that tests press keys too.
local divergence = require "mneme.episodes.divergence"
local screen_capture = require "mneme.view.screen_capture"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local heads = require "mneme.models.state_arrays"
local keyboard = require "mneme.view.keyboard"
local menu = require "mneme.view.menu"
local intervention_options = require "mneme.episodes.intervention_options"
local playback = require "mneme.episodes.playback"
local scene = require "mneme.view.scene"
local export_episode = require "mneme.episodes.timeline_export"

local MOST_ZOOM = 8
local BAR = 62                               -- design pixels of the controls

---@class Viewer: Playback a client of mneme.window
local Viewer = {}
Viewer.__index = setmetatable(Viewer, playback)

---@param tracks table[] see mneme.playback
---@param options table? theme; controls = false: no bar
---@return Viewer
local function new(tracks, options)
  options = options or {}
  local self = setmetatable(playback.new(tracks), Viewer)
  self.zoom, self.pan, self.selection, self.camera = 1, { 0, 0 }, {}, screen_capture()
  self.theme, self.bar = options.theme, options.controls ~= false
  return self
end

-- ---- keys ----

local function faster(self, by) self.speed = math.max(1, math.min(#playback.speeds, self.speed + by)) end

-- How many layers and heads there are to choose from.
local function layers_of(self)
  local frame, last = self:frame(1), -1
  for _, group in ipairs { "memory", "probes" } do
    for name in pairs(frame and frame[group] or {}) do last = math.max(last, heads.parse(name) or 0) end
  end
  return last + 1, frame and frame.n_heads or 0
end

-- All, then 0, 1, 2 ... and all again.
local function choose(self, what, n)
  local now = self.selection[what]
  self.selection[what] = not now and n > 0 and 0 or now and now + 1 < n and now + 1 or nil
end

local function zoom_at(self, factor, x, y)
  local zoom = math.max(1, math.min(MOST_ZOOM, self.zoom * factor))
  local f = zoom / self.zoom
  self.zoom, self.pan = zoom, { x - (x - self.pan[1]) * f, y - (y - self.pan[2]) * f }
  if zoom == 1 then self.pan = { 0, 0 } end
end

local function next_copy(self, clock)
  local source = self:source()
  if not source.live then return self:say("there is only one copy; Page Down shows another episode", clock) end
  source:next_copy()
  self:say("asked for the next copy", clock)
end

local function again(self, clock)
  local source = self:source()
  if source.live and source:state() == "running" then
    return self:say("live: the trainer decides when episodes restart", clock)
  end
  if source.live then self:reopen({}, clock) else self:to_episode(0) end
  self.playing = true
end

-- Every key: its code, what it is called, what it does, and how.  The help is made of these.
local commands = {
  { " ", "space", "play, pause", function(self) self.playing = not self.playing end },
  { keyboard.RIGHT, "→", "one step", function(self) self.playing = false self:forward() end },
  { keyboard.LEFT, "←", "one step back", function(self, clock)
    self.playing = false
    if self.at > self:first() then self:seek(self.at - 1) else self:say("nothing earlier is kept", clock) end
  end },
  { keyboard.PAGE_DOWN, "PgDn", "next episode", function(self) self:to_episode(1) end },
  { keyboard.PAGE_UP, "PgUp", "episode before", function(self) self:to_episode(-1) end },
  { keyboard.HOME, "Home", "the episode's start", function(self) self.playing = false self:to_episode(0) end },
  { keyboard.END, "End", "its end", function(self)
    self.playing = false
    if self.at > 0 then self:seek(select(2, self:episode())) end
  end },
  { "+", "+", "faster", function(self) faster(self, 1) end },
  { "-", "−", "slower", function(self) faster(self, -1) end },
  { "r", "r", "the episode again", again },
  { "n", "n", "next copy (live)", next_copy },
  { "l", "l", "choose a layer", function(self) choose(self, "layer", (layers_of(self))) end },
  { "j", "j", "choose a head", function(self) choose(self, "head", select(2, layers_of(self))) end },
  { "k", "k", "take over, hand back", function(self, clock) self:take(clock) end },
  { "i", "i", "change something", function(self, clock) self:offer(clock) end },
  { "[", "[", "older checkpoint", function(self, clock) self:checkpoint(-1, clock) end },
  { "]", "]", "newer checkpoint", function(self, clock) self:checkpoint(1, clock) end },
  { "c", "c", "close what is beside", function(self, clock) self:close(1, clock) end },
  { "x", "x", "go on with the change", function(self, clock) self:close(2, clock) end },
  { "0", "0", "whole page (wheel: zoom)", function(self) self.zoom, self.pan = 1, { 0, 0 } end },
  { "s", "s", "save a picture", function(self, clock, paint) self:say(self.camera:picture(self:frame(1), paint()), clock) end },
  { "v", "v", "record, stop recording", function(self, clock, paint)
    self:say(self.camera:stop() or self.camera:begin(self:frame(1), select(2, paint())), clock)
  end },
  { "w", "w", "write the episode (.mnt)", function(self, clock) self:write(clock) end },
  { "t", "t", "dark or light page", function(self) self.theme = self.theme == "light" and "dark" or "light" end },
  { "h", "h", "this help", function(self) self.help = not self.help end },
}

local by_key, help = {}, {}
for _, command in ipairs(commands) do
  by_key[type(command[1]) == "string" and command[1]:byte() or command[1]] = command[4]
  help[#help + 1] = { command[2], command[3] }
end
help[#help + 1] = { "click", "a head, a step: it alone" }
help[#help + 1] = { "q  Esc", "quit" }

---Let the user act in place of the agent, or hand back.
function Viewer:take(clock)
  if self.taken then
    self.taken = nil
    return self:say("the agent goes on", clock)
  end
  if not self:source().restore or not self.tracks[#self.tracks].open or self.at == 0 then
    return self:say("only an agent that plays can be taken over", clock)
  end
  local names, told = self:frame(1).actions, {}
  local actions, labels = keyboard.divide(names)
  for i, label in ipairs(labels) do told[i] = label .. " " .. names[i] end
  keyboard.add_pad(#names, actions)
  self.taken, self.playing = { actions = actions, labels = labels, told = table.concat(told, ", ") }, false
end

---Open the menu of what can be changed at this step.
function Viewer:offer(clock)
  local problem, n = self:unchangeable(), #self.tracks
  if problem then return self:say(problem, clock) end
  self.playing = false
  local frame, selection, where = self:frame(n), self.selection, {}
  local list = intervention_options.list(self.tracks[n].timeline.source, frame, selection)
  if #list == 0 then return self:say("nothing of this agent and its world can be changed", clock) end
  if selection.layer then where[1] = "layer " .. selection.layer end
  if selection.head then where[#where + 1] = "head " .. selection.head end
  local title = ("change step %d: %s"):format(frame.step, #where > 0 and table.concat(where, ", ") or "all layers and heads")
  self.menu = menu(title, list, self.lasting)
end

---Do an operation at the step that is shown; what becomes of it stands beside what happened.
---@param operation Operation
---@param steps integer? that a gate is held
---@return boolean? done
---@return table? why not: an error
function Viewer:operate(operation, steps, clock)
  local problem, n = self:unchangeable(), #self.tracks
  if problem then return self:say(problem, clock) end
  local ok, change = pcall(intervention_options.change, operation, self.tracks[n].timeline, self.slots[self.at][n], steps)
  if ok then return self:change(change, clock) end
  if not errors.is(change) then error(change, 0) end
  self:say(change.message, clock)
  return false, change
end

-- Write an episode of a track; what became of it.
local function write_track(track, frame_number)
  local rec, whole, problem = export_episode(track.timeline, frame_number)
  track.timeline:lost()
  if not rec then return nil end
  local stem = ("mneme-%d%s"):format(track.timeline.ticks[frame_number].episode, #rec.interventions > 0 and "-changed" or "")
  local path = files.free_name(stem, "mnt")
  rec:write(path)
  return path .. (problem and " – " .. problem or whole and "" or (", its first %d steps"):format(rec.steps))
end

---Write the episode that is shown, of every track, as trajectories.
function Viewer:write(clock)
  local written = {}
  if self:source().live or self:source().trajectory or self.at == 0 then
    return self:say("only the episodes of an agent that plays are written", clock)
  end
  for k, track in ipairs(self.tracks) do
    local ok, text = pcall(write_track, track, self.slots[self.at][k])
    if not ok and not errors.is(text) then error(text, 0) end
    text = ok and text or not ok and text.message
    if not text then return self:say("there is no going back to the beginning of this episode", clock) end
    written[#written + 1] = text
  end
  self:say("wrote " .. table.concat(written, " and "), clock)
end

-- A key while the menu is open.
local function key_of_menu(self, key, clock)
  local chosen, open = self.menu:key(key)
  self.lasting = self.menu.lasting
  local steps = self.menu:steps()
  if not open then self.menu = nil end
  if chosen then self:operate(chosen, steps, clock) end
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

-- A click on what was chosen takes the choice back.
local function click(self, what, spot, x)
  local f, c = self.selection, what.select
  if what.steps then
    local step = math.floor((x - spot.x) / spot.w * what.steps)
    f.step = f.step ~= step and step or nil
  elseif f.layer == c.layer and f.head == c.head then f.layer, f.head = nil, nil
  else f.layer, f.head = c.layer, c.head end
end

---The pointer did something: see mneme.window.
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
  elseif spot and (spot.select or spot.steps) then click(self, spot, box, x)
  elseif what == "press" and by == 1 then self.dragged = { x, y } end
end

-- ---- the page ----

local function speed_text(speed)
  if speed == math.huge then return "unlimited" end
  return ("%sx, %g steps/s"):format(speed < 1 and "1/" .. 1 / speed or tostring(speed), speed * playback.steps)
end

-- What the first track's header says of the playback.
local function status_of(self)
  local source, note = self:source(), self.note
  local speed = speed_text(playback.speeds[self.speed])
  local gone = source.live and self.state and self.state ~= "running"
  if gone then
    speed = self.state == "gone" and "died" or "ended"
    note = note or ("training has %s; r plays its last checkpoint"):format(speed)
  elseif source.live then speed = "live"
  elseif source.trajectory and self:tick_of(1).over then
    speed, note = "over", note or "the trajectory is over; r begins its last episode again"
  end
  if self.taken then note = note or "your move: " .. self.taken.told .. "; k or Esc hands back" end
  return { playing = self.playing, speed = speed, hint = "h: help", note = note, steps = speed_text(playback.speeds[self.speed]) }
end

local function shown_frame(self, k, status)
  local frame = self:frame(k)
  if not frame then return nil end
  local more = { selection = self.selection, focus = self.selection, status = k == 1 and status or nil, keys = self.taken and self.taken.labels or nil }
  if self.tracks[k].name then more.title = self.tracks[k].name .. " – " .. frame.title end
  if k == 2 and self.original and not self.bar then more.source = divergence(self:frame(1), frame) end
  return setmetatable(more, { __index = frame })
end

-- What the bar shows.
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
    movie = self.camera.path ~= nil, zoom = self.zoom, pair = #self.tracks > 1, theme = self.theme,
    episode = self:tick_of(1).episode, can_change = not source.live and not source.trajectory,
    said = #self.tracks > 1 and (self.note or divergence(self:frame(1), self:frame(2))) or nil }
end

-- Before a trainer has written anything.
local waiting = { draw = function(page)
  local text = "waiting for the trainer's first step …"
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
  local note = self.camera:painted(pixels, width, height)
  if note then self:say(note, clock) end
end

---The window is closed: a film that is being recorded ends here.
---@return string? what became of it
function Viewer:closed() return self.camera:stop() end

return { new = new }
