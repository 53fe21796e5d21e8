-- human_play.lua -- an environment that a person plays, step by step, without its window: what the agent would see, the true state for
-- who asks for it (Tab), and a card with the scores at the end.
local ffi = require "ffi"
local dtypes = require "mneme.base.dtypes"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local format = require "mneme.base.format"
local frames = require "mneme.insight.episodes.frames"
local action_keys = require "mneme.insight.view.action_keys"
local state_arrays = require "mneme.models.state_arrays"
local episode_arrays = require "mneme.insight.episodes.episode_arrays"

local C = engine.C
local human_play = {}

---@class Game a client of insight/view/window.lua
---@field env Env with one environment
---@field obs ffi.cdata* the current observation, of obs_bytes bytes; after the end of an episode, the first of the next one
---@field results table[] of the finished episodes: { score, ret, length, looked = true after Tab }
local Game = {}
Game.__index = Game

---Begin a game.
---@param env Env with one environment
---@param o table? scene (a scene), blind, record = FILE.npz
---@return Game
function human_play.new(env, o)
  o = o or {}
  local self = setmetatable({ scene = o.scene, blind = o.blind, record = o.record, period = 0.5, dirty = true,
    fair = frames.new(), open = frames.new(), episode = 0, saved = {}, results = {}, typed = "" }, Game)
  local space, kind = env.observation_space, dtypes[env.observation_space.dtype]
  self.env, self.obs_bytes = env, state_arrays.size(space.shape) * kind.bytes
  self.reward, self.terminated, self.truncated = ffi.new "float[1]", ffi.new "uint8_t[1]", ffi.new "uint8_t[1]"
  self.action, self.room = env.action_space:room(1), ffi.new("char[?]", self.obs_bytes)
  self.obs = ffi.cast(kind.pointer, self.room)
  self.hand = action_keys.hand(env.action_space)
  self.names = self.hand.names
  self.action_of, self.labels, self.types = action_keys.divide(self.names)
  self.pad_labels = self.types and self.labels or action_keys.add_pad(#self.names, self.action_of)
  if o.record then self.recording = episode_arrays.new(env, 0, { title = env.id .. ", played by hand" }) end
  self:restart(env.seed)
  return self
end

local function empty_canvas() return ffi.gc(engine.check(C.mn_canvas_new(engine.ctx)), C.mn_canvas_free) end

-- The current step, for a scene: as the agent sees it, without any fact of the state; and all of it.
local function look(self)
  local env, said = self.env, self.source
  local did = type(self.last) == "table" and self.last or nil
  if self.last then
    local earned = ("%+.3g"):format(self.reward[0]):gsub("%-", "−")
    said = ("%s: reward %s"):format(env.action_space:words(self.last), earned == "+0" and "0" or earned)
  end
  local function frame_of(film, canvas, truth, blind)
    return film:add {
      title = env:title(), source = said, canvas = canvas or empty_canvas(), truth = truth, actions = self.names, blind = blind,
      hint = (self.types and "click one, or type its number and Enter" or "click one, or press its key")
        .. (self.hand:waits() and "; space takes them" or ""), rules = env.rules or "",
      observation = { shape = env.observation_space.shape, values = self.obs }, action = not did and self.last or nil, did = did,
      space = env.action_space, policy = {}, memory = {}, probes = {},
      observation_groups = env.observation_space.groups, sight = env:sight(self.obs),
      reward = self.reward[0], step = self.step, episode = self.episode, ret = self.ret,
    }
  end
  local seen = not self.blind and env:see(self.obs) or nil
  self.fair_frame = frame_of(self.fair, seen, {}, not seen)
  self.open_frame = frame_of(self.open, env:draw(0), env:truth(0))
  self.dirty = true
end

-- The first step of an episode.
local function begin(self)
  self.step, self.ret, self.last, self.reward[0], self.over, self.card, self.looked = 0, 0, nil, 0, false, nil, self.cheats
  self.start = self.env:save(0)
  look(self)
end

---Abandon the running episode, if any, and begin another; when recording, in a new file.
---@param seed integer? nil: continue the random stream
---@param start string? of env:save: that episode again
function Game:restart(seed, start)
  self:save()
  if start then self.env:restore(0, start, self.obs) else self.env:reset_raw(self.obs, seed) end
  if self.step and not self.over then self.episode = self.episode + 1 end
  if self.recording then
    self.recording:begin()
    self.path = files.free_name(self.record:gsub("%.npz$", ""), "npz")
  end
  begin(self)
end

---Write what was recorded so far.
function Game:save()
  if not self.recording or (self.recording.steps or 0) == 0 then return end
  self.recording:write(self.path)
  if self.saved[#self.saved] ~= self.path then table.insert(self.saved, self.path) end
end

-- Scores of the finished episodes.
local function sum_up(self)
  local last, sum = self.results[#self.results], 0
  if not last.score then return format.said("last episode: return %+.2f, %s", last.ret, format.counted(last.length, "step")) end
  for _, r in ipairs(self.results) do sum = sum + (r.score or 0) end
  return format.said("last episode: score %.2f, return %+.2f, %s; mean score of %d: %.2f", last.score, last.ret, format.counted(last.length, "step"),
    #self.results, sum / #self.results)
end

---The lines of a score card: { name, score, ret, length }; what is not known is nil.
---@param result table of results
function Game:card_of(result)
  local lines = { { name = result.looked and "you, with Tab" or "you", score = result.score, ret = result.ret, length = result.length } }
  local known = self.env.reference or {}
  if known.best or known.best_return then lines[#lines + 1] = { name = "perfect play", score = known.best, ret = known.best_return } end
  return lines
end

-- The end: both films have the last frame again, with the action that led there.
local function finish(self, action)
  local outcome = self.env:outcome(0)
  local result = { score = outcome.score, ret = outcome.ret, length = outcome.length, looked = self.looked }
  self.results[#self.results + 1] = result
  self.source, self.card = sum_up(self), self:card_of(result)
  local more = { source = self.source, action = type(action) == "number" and action or nil, did = type(action) == "table" and action or nil }
  self.fair_frame = setmetatable(more, { __index = self.fair:finish(outcome, self.reward[0]) })
  self.open_frame = setmetatable({ source = self.source, action = more.action, did = more.did }, { __index = self.open:finish(outcome, self.reward[0]) })
  self.episode, self.step, self.ret, self.dirty = self.episode + 1, 0, 0, true
  self:save()
end

---Press one of names, which takes an action or sets one number of several.  After the end of an episode any only shows the beginning of the next one.
---@param i integer which, from 0
function Game:move(i)
  if self.over then return begin(self) end
  self:take(self.hand:press(i))
end

---Set a number of the action to any value.
---@param k integer which, from 1
function Game:set(k, value) self:take(self.hand:set(k, value)) end

---Take an action.
---@param action integer|number[]? nil: other numbers follow
function Game:take(action)
  self.dirty, self.refused = true, nil
  if action == nil then return end
  if not self.env:allows(self.obs, action) then
    self.refused = self.env.action_space:words(action) .. " is not allowed now"
    return
  end
  if self.recording then self.recording:see(self.obs) end
  self.env.action_space:put(self.action, 0, action)
  self.env:step_raw(self.action, self.obs, self.reward, self.terminated, self.truncated)
  local ended = self.terminated[0] ~= 0 or self.truncated[0] ~= 0
  if self.recording then self.recording:add(self.action, self.reward[0], self.terminated[0] ~= 0, self.truncated[0] ~= 0) end
  self.step, self.ret, self.last, self.over = self.step + 1, self.ret + self.reward[0], action, ended
  if ended then finish(self, action) else look(self) end
end

-- Keys that are no actions.
local function command(self, key)
  if key == action_keys.TAB then
    self.cheats = not self.cheats
    self.looked = self.looked or self.cheats
  elseif key == ("r"):byte() or key == action_keys.BACK then self:restart(nil, self.start)
  elseif key == ("n"):byte() or key == action_keys.START then
    if self.over then begin(self) else self:restart() end
  end
end

---A key was pressed.  True: quit.
function Game:key(key)
  self.dirty, self.by_pad = true, action_keys.is_pad(key)       -- the page names the keys of the device used last
  if key >= 65 and key <= 90 then key = key + 32 end         -- Shift and Caps Lock change nothing
  if key == action_keys.ESCAPE then return true end
  if self.action_of[key] then self:move(self.action_of[key])
  elseif self.over and (key == 32 or key == action_keys.ENTER) then self:move(0)
  elseif key == 32 and self.hand:waits() then self:take(self.hand:take())
  elseif self.types and key == action_keys.ENTER then
    local n = tonumber(self.typed)
    self.typed = ""
    if n and n < #self.names then self:move(n) end
  elseif self.types and key == action_keys.BACKSPACE then self.typed = self.typed:sub(1, -2)
  elseif self.types and key >= 48 and key <= 57 then self.typed = (self.typed .. string.char(key)):sub(-6)
  else command(self, key) end
end

---A click takes the action under it, or does what a key does; after the end of an episode any other click begins the next.
function Game:pointer(what, x, y, button)
  if what ~= "press" or button ~= 1 then return end
  local spot = self.canvas:spot_at(x, y)
  if spot and spot.key then return self:key(spot.key) end
  if self.over then self:move(0)
  elseif spot and spot.action then self:move(spot.action) end
end

---The scene and the frame of a window.
function Game:page()
  local word = self.over and "over" or self.typed ~= "" and self.typed .. " …"
    or self.hand:waits() and self.env.action_space:words(self.hand.numbers) .. "; space"
    or "your move"
  local status = { playing = true, speed = word, hint = "Tab: the true state   r: again   n: next   Esc: quit" }
  status.note = self.refused
  if self.over then status.note = self.source .. "; space: the next one" end
  local frame = self.cheats and self.open_frame or self.fair_frame
  return self.scene, setmetatable({ status = status, keys = self.by_pad and self.pad_labels or self.labels, hand = self.hand, cheats = self.cheats,
    card = self.card }, { __index = frame })
end

return human_play
