-- view.lua -- mneme view X [out=FILE] [size=WxH] [scene=NAME] [theme=light]: watch an agent live, in a
-- window or as pictures.  X is a run folder, a trajectory (.mnt) or a scene's name.  The window's loop polls
-- events sixty times a second and never waits for a trainer; a source of frames is anything with
--   next()       -> a snapshot (see mneme.recorder), nil if there is nothing new;
--                   snapshot.ended = { score, ret, length } where the episode before it has just ended;
--                   snapshot.over = true where no other can follow
--   restart(), next_copy(), copies    optional
local ffi = require "ffi"
local lfs = require "lfs"
local engine = require "mneme.engine"
local errors = require "mneme.errors"
local live = require "mneme.live"
local recorder = require "mneme.recorder"
local scene = require "mneme.scene"
local window = require "mneme.window"

local view = {}
local FPS, SPEEDS, MOVIE_FPS, HOLD = 60, { 1, 2, 5, 10, 20, 50, 100, 200, 500 }, 10, 15

local function usage(message, hint)
  errors.raise(message, { status = 2, where = false,
    hint = hint or "mneme view RUN|FILE.mnt|SCENE [out=FILE.png|gif|mp4] [episodes=N] [size=WxH] [scene=NAME] "
      .. "[theme=dark|light] [scale=2]" })
end

---Read the command line.
---@param args string[]
function view.parse(args)
  local o = { width = scene.default_width, height = scene.default_height, episodes = 1 }
  for _, arg in ipairs(args) do
    local key, value = arg:match "^%-?%-?([%w_]+)=(.*)$"
    if not key then
      if o.what then usage(("one thing to view, got '%s' and '%s'"):format(o.what, arg)) end
      o.what = arg
    elseif key == "scene" then o.scene = value
    elseif key == "episodes" then
      o.episodes = tonumber(value)
      if not (o.episodes and o.episodes >= 1 and o.episodes % 1 == 0) then
        usage(("episodes=%s: expected how many to show in out=FILE, 1 or more"):format(value))
      end
    elseif not window.option(o, key, value) then
      errors.unknown("setting", key, { "episodes", "out", "scale", "scene", "size", "theme" })
    end
  end
  if not o.what then
    usage("view what?  A run folder, a trajectory, or a scene: " .. table.concat(scene.list(), ", "))
  end
  o.hint = ("mneme view %s out=FILE.png, or .gif, .mp4, writes pictures instead"):format(o.what)
  return o
end

-- Decide what is shown: o.run, a run folder, or o.trajectory, or neither; and o.scene, a scene.
local function resolve(o)
  if o.what:find "%.mnt$" then
    o.trajectory = require("mneme.trajectory").read(o.what)
    o.scene = scene.load(o.scene or (#o.trajectory.fields > 0 and scene.for_task(o.trajectory.env) or "world"))
  elseif lfs.attributes(o.what, "mode") == "directory" then
    o.run = o.what
    local id = require("mneme.run").read_info(o.run).env
    o.scene = scene.load(o.scene or scene.for_task(type(id) == "string" and id or ""))
  elseif o.what:find "[/.]" then usage(("no run folder '%s'"):format(o.what))
  elseif o.scene then
    usage(("scene=%s goes with a run folder or a trajectory, but '%s' is a scene"):format(o.scene, o.what))
  else o.scene = scene.load(o.what) end
end

-- Where frames come from: the trainer, if one is at work and there is a window; or the agent itself.
local function open(o)
  if o.trajectory then return require("mneme.replay").new(o.trajectory) end
  local player = require "mneme.player"
  if not o.run then return player.fresh { task = o.scene.task, core = o.scene.core } end
  if not o.out and lfs.attributes(o.run .. "/live", "mode") then
    local found, source = pcall(live.reader, o.run .. "/live")
    if found and source:state() == "running" then return source end
  end
  return player.from_run(o.run)
end

-- Show every frame of some episodes, or of a whole trajectory; where an episode ends, its last one once
-- more, with the outcome.
local function play(source, episodes, show)
  local film, shown, last = recorder.new(0), false
  repeat
    local now = source:next()
    if now.ended then episodes = episodes - 1 end
    last = now.over or (now.ended and episodes <= 0 and not source.trajectory)
    if now.ended and shown then show(film:finish(now.ended, now.reward), last) end
    if not (now.ended and last) then show(film:add(now), last) end
    shown = true
  until last
end

---Draw some episodes, or a whole trajectory, into a file: the last frame as PNG, all of it as GIF or MP4.
---@param what table a scene
---@param o table out, kind, width, height, episodes, theme, scale: see view.parse
---@return integer frames written
function view.export(source, what, o)
  local C, painter, written = engine.C, scene.painter(nil, o), 0
  if o.kind == "png" then
    play(source, o.episodes, function(frame, last)
      if not last then return end
      local pixels = painter:paint(what, frame, o.width, o.height)
      engine.check(C.mn_image_write(engine.ctx, o.out, pixels, o.width, o.height))
      written = 1
    end)
    return written
  end
  local movie = engine.check(C.mn_movie_new(engine.ctx, o.out, o.width, o.height, MOVIE_FPS))
  local ok, why = pcall(play, source, o.episodes, function(frame, last)
    local pixels = painter:paint(what, frame, o.width, o.height)
    for _ = 1, last and HOLD or 1 do
      engine.check(C.mn_movie_add(movie, pixels))
      written = written + 1
    end
    if last then engine.check(C.mn_movie_end(movie)) end
  end)
  C.mn_movie_free(movie)
  if not ok then error(why, 0) end
  return written
end

local Player = {}
Player.__index = Player

---The state of a window's playback, apart from the window: what the keys do and which frame is shown.
---@param reopen function? gives another source when a live one has ended
function view.playback(source, what, reopen)
  return setmetatable({ source = source, what = what, reopen = reopen, film = recorder.new(), at = 0,
    playing = true, speed = 4, due = 0, period = 1 / FPS, help = false, dirty = true }, Player)
end

-- One frame on: a kept one, or the next of the source.  False: the source has nothing new.
function Player:forward()
  local frames = self.film.frames
  if self.at < #frames then self.at = self.at + 1
  elseif self.pending then
    self.film:add(self.pending)
    self.pending, self.at = nil, #frames
  else
    local now = self.source:next()
    if not now then return false end
    if now.ended and #frames > 0 then
      self.film:finish(now.ended, now.reward)
      self.pending = not now.over and now or nil     -- the new episode's first frame comes after this end
    else self.film:add(now) end
    self.at = #frames
  end
  self.dirty = true
  return true
end

function Player:say(text, clock) self.note, self.note_until, self.dirty = text, clock + 4, true end

-- The source begins afresh: what was kept stays, so that one can still step back to it.
function Player:restart(clock)
  if self.source.live then
    if self.source:state() == "running" then
      return self:say("live: the trainer decides when episodes restart", clock)
    end
    self.source = self.reopen()
  elseif self.source.restart then self.source:restart()
  else return end
  self.pending, self.at, self.playing = nil, #self.film.frames, true
  self:forward()
end

---A key was pressed.  True: quit.
function Player:key(key, clock, paint)
  local lib = scene.library()
  self.dirty = true
  local char = key < 128 and string.char(key) or ""
  if char == "q" or key == 27 then return true
  elseif char == " " then self.playing = not self.playing
  elseif char == "h" then self.help = not self.help
  elseif char == "t" then self.theme = self.theme == "light" and "dark" or "light"
  elseif char == "+" then self.speed = math.min(#SPEEDS, self.speed + 1)
  elseif char == "-" then self.speed = math.max(1, self.speed - 1)
  elseif char == "r" then self:restart(clock)
  elseif key == lib.MN_KEY_RIGHT then
    self.playing = false
    self:forward()
  elseif key == lib.MN_KEY_LEFT then
    self.playing = false
    if self.at > 1 then self.at = self.at - 1 else self:say("nothing earlier is kept", clock) end
  elseif char == "n" then
    if (self.source.copies or 1) > 1 and self.source.next_copy then
      self.source:next_copy()
      self:say(self.source.live and "asked for the next copy" or "the next copy", clock)
    else self:say("there is only one copy", clock) end
  elseif char == "s" then
    local frame = self.film.frames[self.at]
    local path = ("mneme-%d-%d.png"):format(frame and frame.episode or 0, frame and frame.step or 0)
    local pixels, width, height = paint()
    local saved = engine.C.mn_image_write(engine.ctx, path, pixels, width, height) == 0
    self:say(saved and "saved " .. path or ffi.string(engine.C.mn_error(engine.ctx)), clock)
  end
end

---Let time pass: play as many frames as are due.
function Player:tick(clock)
  if self.note and clock > self.note_until then self.note, self.dirty = nil, true end
  if self.source.live then
    if clock > (self.asked or 0) + 1 then          -- is the trainer still there?
      self.asked = clock
      local state = self.source:state()
      if state ~= self.state then self.state, self.dirty = state, true end
    end
    if self.playing then
      self.at = #self.film.frames
      self:forward()
    end
    return
  end
  local period = 1 / SPEEDS[self.speed]
  if not self.playing then self.due = clock return end
  self.due = math.max(self.due, clock - 0.1)       -- after a stall: go on, do not rush
  local begun = engine.C.mn_clock(false)           -- a slow agent must not keep the keys waiting
  while self.due <= clock and engine.C.mn_clock(false) - begun < 0.012 and self:forward() do
    self.due = self.due + period
  end
end

---What is shown now, with the player's own line.
function Player:frame()
  local frame = self.film.frames[self.at]
  if not frame then return nil end
  local shown = setmetatable({}, { __index = frame })
  local gone = self.source.live and self.state and self.state ~= "running"
  local speed, note = SPEEDS[self.speed] .. " steps/s", self.note
  if gone then
    speed = self.state == "gone" and "died" or "ended"
    note = note or ("training has %s; r plays its last checkpoint"):format(speed)
  elseif self.source.live then speed = "live"
  elseif self.at == #self.film.frames and self.source.trajectory and self.source:is_over() then
    speed, note = "over", note or "the trajectory is over; r begins it again"
  end
  shown.status = { playing = self.playing, speed = speed, hint = "h: help", note = note }
  return shown
end

-- Before a trainer has written anything.
local waiting = { draw = function(page)
  local text = "waiting for the trainer's first step …"
  page:text(text, page.width / 2, page.height / 2, 16, page.theme.dim, "center")
end }

---The scene and the frame of a window.
function Player:page()
  local frame = self:frame()
  if not frame then return waiting, {} end
  return { draw = function(page, now)
    self.what.draw(page, now)
    if self.help then scene.panels.help(page, page.box, now) end
  end }, frame
end

---The command `mneme view`.
---@param args string[] what follows "view"
---@return integer status
function view.main(args)
  local o = view.parse(args)
  resolve(o)
  if not o.out then window.need_display(o.hint) end
  local source = open(o)
  if o.out then
    view.export(source, o.scene, o)
    if source.problem then io.stderr:write(("mneme: warning: %s: %s\n"):format(o.what, source.problem)) end
    print(o.out)
  else
    local playback = view.playback(source, o.scene, function() return require("mneme.player").from_run(o.run) end)
    playback.theme = o.theme
    window.run(playback, o)
  end
  return 0
end

return view
