-- viewer.lua -- a playback in a window: keys, pointer, and the page with its control bar.  Separate from the window itself, so that
-- tests can press keys.
local background_effect = require "mneme.insight.view.background_effect"
local background_map = require "mneme.insight.view.background_map"
local screen_capture = require "mneme.insight.view.screen_capture"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local state_arrays = require "mneme.models.state_arrays"
local action_keys = require "mneme.insight.view.action_keys"
local menu = require "mneme.insight.view.menu"
local intervention_options = require "mneme.insight.episodes.intervention_options"
local interventions = require "mneme.insight.episodes.interventions"
local playback = require "mneme.insight.episodes.playback"
local scene = require "mneme.insight.view.scene"
local failures = require "mneme.insight.view.failures"
local moments = require "mneme.insight.view.moments"
local viewer_page = require "mneme.insight.view.viewer_page"

local TAB = 9
local EFFECT, EFFECT_SEED = 100, 12345       -- episodes over which an intervention is counted, as `mneme intervene` would
local LOOK = 2                               -- seconds between two looks for a newer checkpoint
local DOUBLE = 0.4                           -- seconds between two clicks of a double click

---@class Viewer: Playback a client of window.lua
local Viewer = {}
Viewer.__index = setmetatable(Viewer, playback)

-- What is measured of the agent of the first track: its map, and interventions in many episodes.
local function adopt(self)
  local of = self.measured[self.tracks[1].open] or {}
  self.causes, self.many = of.causes, of.many
end

---@return BackgroundMap? of a track's agent: two episodes of one agent have one
function Viewer:causes_of(k)
  local open = self.tracks[k].open
  if open == self.tracks[1].open then return self.causes end
  return (self.measured[open] or {}).causes
end

-- Calls work(causes, steps) of the map of each agent that is shown.
local function each_map(self, work)
  for k, track in ipairs(self.tracks) do
    local causes = self:causes_of(k)
    if causes and (k == 1 or causes ~= self.causes) then work(causes, track.timeline.source.steps) end
  end
end

---@param tracks table[] see playback.lua; of each map = function(step, test): the map of a checkpoint, nil: there is none;
---  stored = maps may be stored in its folder; many = function(step): the agent of a checkpoint in many environments, nil: interventions
---  are not counted; of the first scenes = names of others to choose
---@param options table? theme; controls = false: no bar; title of the window; seed of the episodes;
---  follow = true: the newest checkpoint is shown while it plays
---@return Viewer
local function new(tracks, options)
  options = options or {}
  local self = setmetatable(playback.new(tracks), Viewer)
  self.selection, self.screen_capture, self.measured = {}, screen_capture(), {}
  self.theme, self.bar, self.title, self.seed = options.theme, options.controls ~= false, options.title, options.seed or EFFECT_SEED
  self.scenes, self.scene_name = tracks[1].scenes or {}, tracks[1].scene_name
  self.follows = options.follow or nil
  for _, t in ipairs(tracks) do
    local causes = t.map and background_map.new(t.map, function() return t.open "checkpoints" end)
    if causes then causes.stored = t.stored end
    if t.open then self.measured[t.open] = { many = t.many, causes = causes } end
  end
  adopt(self)
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

-- The next scene of the list, for every track.
local function next_scene(self, clock)
  if #self.scenes < 2 then return self:say("no other scene suits this environment", clock) end
  local at = 0
  for i, name in ipairs(self.scenes) do if name == self.scene_name then at = i end end
  self:show_scene(self.scenes[at % #self.scenes + 1])
end

-- Every key: its code, name, help text and function.
local commands = {
  { " ", "space", "play or pause", function(self) self.playing = not self.playing end },
  { action_keys.RIGHT, "→", "next step", function(self) self.playing = false self:forward() end },
  { action_keys.LEFT, "←", "previous step", function(self, clock)
    self.playing = false
    if self.at > self:first() then self:seek(self.at - 1) else self:say("no earlier frame is kept", clock) end
  end },
  { action_keys.PAGE_DOWN, "PgDn", "next episode", function(self) self:to_episode(1) end },
  { action_keys.PAGE_UP, "PgUp", "previous episode", function(self) self:to_episode(-1) end },
  { action_keys.HOME, "Home", "start of the episode", function(self) self.playing = false self:to_episode(0) end },
  { action_keys.END, "End", "end of the episode", function(self)
    self.playing = false
    if self.at == 0 then return end
    self:look_ahead()                            -- to its end, also where it is being computed
    self:seek(select(2, self:episode()))
  end },
  { "f", "f", "next failure", function(self, clock) self:to_failure(1, clock) end },
  { "F", "F", "previous failure", function(self, clock) self:to_failure(-1, clock) end },
  { "/", "/", "look for episodes: return<0.5 length>30 seed=17 drawn", function(self) self.prompt = "" end },
  { "p", "p", "pin this moment, or take its pin off", function(self, clock) self:pin(clock) end },
  { "P", "P", "next pinned moment", function(self, clock) self:next_pin(clock) end },
  { "b", "b", "an episode that ended otherwise beside this one", function(self, clock) self:contrast(clock) end },
  { TAB, "Tab", "next scene", next_scene },
  { "+", "+", "faster", function(self) faster(self, 1) end },
  { "-", "−", "slower", function(self) faster(self, -1) end },
  { "r", "r", "restart the episode", again },
  { "n", "n", "next environment (live)", next_env },
  { "l", "l", "select a layer", function(self) cycle(self, "layer", (layers_of(self))) end },
  { "j", "j", "select a head", function(self) cycle(self, "head", select(2, layers_of(self))) end },
  { "i", "i", "intervene at this step", function(self, clock) self:offer(clock) end },
  { "[", "[", "older checkpoint", function(self, clock) self:checkpoint(-1, clock) end },
  { "]", "]", "newer checkpoint", function(self, clock) self:checkpoint(1, clock) end },
  { "c", "c", "close the intervention", function(self, clock) self:close(1, clock) end },
  { "x", "x", "keep only the intervention", function(self, clock) self:close(2, clock) end },
  { "s", "s", "save a screenshot", function(self, clock, paint) self:say(self.screen_capture:picture(self:frame(1), paint()), clock) end },
  { "v", "v", "start / stop a video", function(self, clock, paint)
    self:say(self.screen_capture:stop() or self.screen_capture:begin(self:frame(1), select(2, paint())), clock)
  end },
  { "t", "t", "dark / light theme", function(self) self.theme = self.theme == "light" and "dark" or "light" end },
  { "h", "h", "this help", function(self) self:show_help(not self.help) end },
}

local by_key, help = {}, {}
for _, command in ipairs(commands) do
  by_key[type(command[1]) == "string" and command[1]:byte() or command[1]] = command[4]
  help[#help + 1] = { command[2], command[3] }
end
help[#help + 1] = { "F11", "full screen, and back" }
help[#help + 1] = { "click", "select a head or a step; twice on a title: the panel alone" }
help[#help + 1] = { "q  Esc", "quit; Esc closes a pair first" }

---Help stands over a page that is paused; what was playing plays on after it, unless another key was pressed.
function Viewer:show_help(on)
  self.help, self.playing, self.resumes = on, not on and (self.playing or self.resumes == true), on and self.playing
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
---@param steps integer? that a gate is held
---@return boolean? done
---@return table? why not: an error
function Viewer:intervene(option, steps, clock)
  local problem, n = self:unchangeable(), #self.tracks
  if problem then return self:say(problem, clock) end
  local ok, change = errors.try(intervention_options.change, option, self.tracks[n].timeline, self.slots[self.at][n], steps)
  if ok then
    local done = self:change(change, clock)
    if done then self:count(change.specs) end
    return done
  end
  self:say(change.message, clock)
  return false, change
end

---Begin to count what the interventions of the displayed episode do over many.
---@param specs table[] the last ones
function Viewer:count(specs)
  local many, all = self.many, self.effect and self.effect.specs or {}
  if not many then return end
  self.effect = { specs = { unpack(all) } }
  for _, spec in ipairs(specs) do table.insert(self.effect.specs, spec) end
  for _, spec in ipairs(self.effect.specs) do
    if spec.at ~= specs[1].at then self.effect.job = nil return end      -- mneme intervene has one step, too
  end
  local step = self:source().steps
  self.effect.job = background_effect.new(function() return many(step) end, self.effect.specs, { episodes = EFFECT, seed = self.seed })
end

---Show one episode alone again, and stop counting.
function Viewer:close(keep, clock)
  self.effect, self.erased = nil, nil
  playback.close(self, keep, clock)
  adopt(self)
end

---Show another scene.
function Viewer:show_scene(name)
  local loaded = scene.load(name)
  for _, track in ipairs(self.tracks) do track.scene = loaded end
  self.scene_name, self.dirty, self.full = name, true, nil
end

---Show the displayed episode without and with a part of the memory erased at a step, as a cell of the map says, or held from it on.
---@param kind string "erase" or "hold"
---@param word string the part
function Viewer:without(kind, word, at, clock)
  if #self.tracks > 1 and self.original then self:close(1, clock) end
  local problem = self:unchangeable()
  if problem and not problem:find "ended" then return self:say(problem, clock) end
  self.playing = false
  self:look_ahead()
  local from, to = self:episode()
  for slot = from, to do
    local tick = self.tracks[1].timeline.ticks[self.slots[slot][1]]
    if tick.step == at and not tick.ended then
      self:seek(slot)
      local spec = { kind = kind, what = word }
      if self:intervene({ text = interventions.text(spec), specs = { spec } }, nil, clock) then
        self.erased = { test = kind, word = word, at = at }
      end
      return
    end
  end
  self:say(("this episode ends before step %d; Page Down shows another"):format(at), clock)
end

-- Shows the newest checkpoint of a run that somebody else trains, while it plays; while it is paused, a note says that there is one.
local function follow(self, clock)
  if not self.follows or self:source().live or self.at == 0 or clock < (self.looked or -LOOK) + LOOK then return end
  self.looked = clock
  local list, shown = self.tracks[1].open "checkpoints", self:source().steps
  local newest = list[#list]
  if not (newest and shown and newest > shown) or newest == self.passed then return end
  if not self.playing or #self.tracks > 1 or self.menu or self.help then
    self.passed = newest
    return self:say(("a newer checkpoint, of %.0f steps, is there: ] shows it"):format(newest), clock)
  end
  self:reopen({ checkpoint = newest }, clock)
  self.followed = self:source().steps == newest or self.followed
  if self.followed then self:say(("following the training: the newest checkpoint, of %.0f steps; [ stays at an older one"):format(newest), clock) end
end

---Shows the next older (by = -1) or newer (1) checkpoint; the newest one is followed where it was.
function Viewer:checkpoint(by, clock)
  playback.checkpoint(self, by, clock)
  if self.follows == nil then return end
  local list = self.tracks[1].open "checkpoints"
  self.follows = self:source().steps == list[#list]
end

---Advances with the clock; what is left of the time goes to the count of an intervention, to the next episodes, and to the map, if it is shown.
---@param clock number seconds
---@param deadline number? of engine.C.mn_clock(false)
function Viewer:tick(clock, deadline)
  engine.C.mn_lose_nothing(not self.screen_capture.path)          -- by a signal, but of a video that is being recorded
  playback.tick(self, clock, deadline)
  if not deadline then return end
  follow(self, clock)
  local job = self.effect and self.effect.job
  if job and not job.done and job:work(deadline) then self.dirty = true end
  self:look_for_failures(clock, deadline)
  each_map(self, function(causes, steps) if causes:work(steps, clock, deadline) then self.dirty = true end end)
end

---Completes the maps of the memory, if the page shows them, or says what they say and they are stored: for pictures.
---@param deadline number? of engine.C.mn_clock(false)
---@return boolean changed
---@return boolean unfinished
function Viewer:measure(deadline)
  local changed, unfinished = deadline and self:ahead(deadline) or false, false
  each_map(self, function(causes, steps)
    while causes:work(steps, 0, not causes.wanted and 0 or deadline or math.huge) do changed = true end
    unfinished = unfinished or causes:unfinished()
  end)
  return changed, unfinished
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
  self.dirty, self.hover, self.note, self.hunting = true, nil, nil, nil          -- what was said was about the page before
  if self.menu then return key_of_menu(self, key, clock) end
  if self.prompt then return self:key_of_search(key, clock) end
  if self.help and key == action_keys.ESCAPE then return self:show_help(false) end
  if self.help and key ~= ("h"):byte() then self.resumes = nil end
  if key == action_keys.ESCAPE and #self.tracks > 1 and (self.original or self.together) then self:close(1, clock) return false end
  if key == ("q"):byte() or key == action_keys.ESCAPE then return true end
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

-- The pointer rests at a place: its tip is drawn with the page.
local function hover(self, x, y)
  self.hover = { x, y }
  local tip, spot = self.canvas:tip_at(x, y), self.canvas:spot_at(x, y)
  local part = spot and (spot.select or spot.part) or nil
  part = part and part.layer and part or nil
  if tip or self.tip or part ~= self.pointed then self.dirty = true end
  self.pointed = part                                          -- all panels show where it is
end

-- The second of two quick clicks on a panel shows it alone, or the page again.
local function double_click(self, x, y, clock)
  local before = self.clicked
  self.clicked = { x, y, clock }
  if not before or clock - before[3] > DOUBLE or math.abs(x - before[1]) + math.abs(y - before[2]) > 4 then return false end
  local panel = self.canvas:panel_at(x, y)
  self.clicked, self.full = nil, not self.full and panel or nil
  return true
end

---Show a step of the displayed episode.
---@param step number the nearest one is shown
function Viewer:visit(step)
  self.playing = false
  local from, to = self:episode()
  self:seek(math.max(from, math.min(to, from + math.floor(step + 0.5))))
end

---A pointer event: see window.lua.
function Viewer:pointer(what, x, y, by, clock, paint)
  local spot, box
  if what == "press" then self.note, self.hunting = nil, nil end
  if what == "press" and (by == 1 or by == 3) then spot, box = self.canvas:spot_at(x, y) end
  if what == "press" and by == 3 then
    if spot and spot.start then self:beside(spot.start, clock) end
    self.dirty = true
    return
  end
  if what == "press" and by == 1 and not spot and double_click(self, x, y, clock) then
    self.dirty = true
    return
  end
  self.dirty = self.dirty or what ~= "move"
  if what == "release" then self.scrub = nil
  elseif what == "move" and self.scrub then scrub_to(self, x)
  elseif spot and spot.scrub then
    self.scrub = spot.scrub
    scrub_to(self, x)
  elseif spot and spot.key then return self:key(spot.key, clock, paint)
  elseif spot and spot.visit then self:visit((x - box.x) / box.w * spot.visit - (spot.cells and 0.5 or 0))
  elseif spot and spot.start then self:to_start(spot.start, clock)
  elseif spot and spot.scene then self:show_scene(spot.scene)
  elseif spot and (spot.erase or spot.hold) then self:without(spot.erase and "erase" or "hold", spot.erase or spot.hold, spot.at, clock)
  elseif spot and (spot.select or spot.steps) then click(self, spot, box, x)
  elseif what == "move" then hover(self, x, y) end
end

---A page was painted and shown.
function Viewer:painted(pixels, width, height, clock)
  local note = self.screen_capture:painted(pixels, width, height)
  if note then self:say(note, clock) end
end

---The window was closed: ends a video that is being recorded.
---@return string? text a text for the user
function Viewer:closed() return self.screen_capture:stop() end

failures(Viewer)
moments(Viewer)
viewer_page(Viewer, help)

return { new = new }
