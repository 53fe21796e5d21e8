-- play.lua -- play an environment by hand, or the environment of an experiment (SCRIPT.lua).
--   corridor=9 ...       settings of the environment
--   seed=N               which episode
--   blind=1              show the observation only
--   record=FILE.mnt      keep the game as a trajectory
--   keys=left,3*up,r out=FILE.png   press these keys, or take these actions by name, without a window
-- One key, click or gamepad button is one step; the environment waits for it.
local engine = require "mneme.base.engine"
local envs = require "mneme.envs.env"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local next_step = require "mneme.base.next_step"
local keyboard = require "mneme.view.keyboard"
local frames = require "mneme.episodes.frames"
local trajectory_writer = require "mneme.episodes.trajectory_writer"
local scene = require "mneme.view.scene"
local single = require "mneme.envs.single"
local window = require "mneme.view.window"

local C = engine.C
local play = {}
local USAGE = "mneme play NAME|SCRIPT.lua [setting=value ...] [seed=N] [record=FILE.mnt] [blind=1] [keys=left,3*up out=FILE.png]"

-- ---- the game, without its window ----

---@class Game: Single a client of view/window.lua
local Game = {}
Game.__index = setmetatable(Game, single)

---Begin a game.
---@param env Env with one environment
---@param o table? scene (a scene), blind, record = FILE.mnt
---@return Game
function play.game(env, o)
  o = o or {}
  local self = setmetatable({ scene = o.scene, blind = o.blind, record = o.record, period = 0.5, dirty = true,
    film = frames.new(), episode = 0, saved = {}, results = {}, typed = "" }, Game)
  single.set_up(self, env)
  self.action_of, self.labels, self.types = keyboard.divide(env.action_space.names)
  self.pad_labels = self.types and self.labels or keyboard.add_pad(env.action_space.n, self.action_of)
  if o.record then self.recording = trajectory_writer.new(env, 0, { about = { title = env.id .. ", played by hand" } }) end
  self:restart(env.seed)
  return self
end

-- The current step, for a scene.
local function look(self)
  local names, space = self.env.action_space.names, self.env.observation_space
  self.frame = self.film:add {
    title = self.env.id, source = self.source, canvas = self.env:draw(0), truth = self.env:truth(0), actions = names,
    blind = self.blind,
    hint = self.types and "click one, or type its number and Enter" or "click one, or press its key",
    observation = { shape = space.shape, values = self.obs }, action = self.last, policy = {}, memory = {}, probes = {},
    reward = self.reward[0], step = self.step, episode = self.episode, ret = self.ret,
  }
  self.dirty = true
end

---Abandon the running episode, if any, and begin another; when recording, in a new file.
---@param seed integer? nil: continue the random stream
function Game:restart(seed)
  self:save()
  self.env:reset_raw(self.obs, seed)
  if self.step and not self.over then self.episode = self.episode + 1 end
  self.step, self.ret, self.last, self.reward[0], self.over = 0, 0, nil, 0, false
  if self.recording then
    self.recording:begin(self.obs)
    self.path = files.free_name(self.record:gsub("%.mnt$", ""), "mnt")
  end
  look(self)
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
  for _, r in ipairs(self.results) do sum = sum + r.score end
  return ("last episode: score %.2f, return %+.2f, %d steps; mean score of %d: %.2f"):format(last.score, last.ret, last.length,
    #self.results, sum / #self.results)
end

---Take an action.  After the end of an episode any action only shows the beginning of the next one.
---@param action integer
function Game:move(action)
  if self.over then
    self.over, self.last, self.reward[0] = false, nil, 0
    return look(self)
  end
  self:act(action, self.recording)
  self.step, self.ret, self.last, self.over = self.step + 1, self.ret + self.reward[0], action, self.ended
  if not self.ended then return look(self) end
  local outcome = self:outcome()
  self.results[#self.results + 1] = outcome
  self.source = sum_up(self)
  self.frame = setmetatable({ source = self.source }, { __index = self.film:finish(outcome, self.reward[0]) })
  self.episode, self.step, self.ret, self.dirty = self.episode + 1, 0, 0, true
  self:save()
end

---A key was pressed.  True: quit.
function Game:key(key)
  self.dirty, self.by_pad = true, keyboard.is_pad(key)       -- the page names the keys of the device used last
  if key >= 65 and key <= 90 then key = key + 32 end         -- Shift and Caps Lock change nothing
  if key == keyboard.ESCAPE then return true end
  if self.action_of[key] then self:move(self.action_of[key])
  elseif self.over and (key == 32 or key == keyboard.ENTER) then self:move(0)
  elseif self.types and key == keyboard.ENTER then
    local n = tonumber(self.typed)
    self.typed = ""
    if n and n < self.env.action_space.n then self:move(n) end
  elseif self.types and key == keyboard.BACKSPACE then self.typed = self.typed:sub(1, -2)
  elseif self.types and key >= 48 and key <= 57 then self.typed = (self.typed .. string.char(key)):sub(-6)
  elseif key == ("r"):byte() or key == keyboard.START then self:restart() end
end

---A click takes the action under it; after the end of an episode any click begins the next.
function Game:pointer(what, x, y, button)
  if what ~= "press" or button ~= 1 then return end
  local spot = self.canvas:spot_at(x, y)
  if self.over then self:move(0)
  elseif spot and spot.action then self:move(spot.action) end
end

---The scene and the frame of a window.
function Game:page()
  local word = self.over and "over" or self.typed ~= "" and self.typed .. " …" or "your move"
  local status = { playing = true, speed = word, hint = "r: new episode   Esc: quit" }
  if self.over then status.note = self.source .. "; space: the next one" end
  local keys = self.by_pad and self.pad_labels or self.labels
  return self.scene, setmetatable({ status = status, keys = keys }, { __index = self.frame })
end

-- ---- the command ----

local MOST_KEYS = 1e5

-- "left,3*up,open" as keys, or as names of actions: see press.
local function read_keys(text)
  local list = {}
  for word in text:gmatch "[^,%s]+" do
    local times, name = word:match "^(%d+)%*(.+)$"
    local key = keyboard.key(name or word) or name or word
    if tonumber(times or 1) > MOST_KEYS then
      errors.usage(("play: keys=%s: %s presses, expected at most %d at a time"):format(text, times, MOST_KEYS))
    end
    for _ = 1, tonumber(times or 1) do list[#list + 1] = key end
  end
  return list
end

local function read_seed(text)
  local seed = tonumber(text)
  if not seed then errors.usage(("play: seed=%s, expected a number"):format(text)) end
  return seed
end

-- A setting of the environment: a number, a word; @FILE: the contents of a file.
local function read_setting(text)
  local path = text:match "^@(.+)$"
  local held = path and files.read(path)
  if held == "" then errors.usage(("play: %s: the file is empty"):format(text)) end
  return held or tonumber(text) or text
end

---Read the command line.
---@param words string[]
function play.parse(words)
  local o = { width = scene.default_width, height = scene.default_height, settings = {}, words = {}, scene = "world" }
  for _, word in ipairs(words) do
    local key, value = word:match "^%-*([%w_]+)=(.*)$"
    if not key then
      if o.name then errors.usage(("play: one environment, got '%s' and '%s'"):format(o.name, word), USAGE) end
      o.name = word
    elseif key == "keys" then o.keys = read_keys(value)
    elseif key == "blind" then
      if value ~= "0" and value ~= "1" then errors.usage(("play: blind=%s, expected 0 or 1"):format(value)) end
      o.blind = value == "1"
    elseif key == "num_envs" then errors.usage(("play: num_envs=%s: expected 1, one environment is played"):format(value))
    elseif key == "seed" then o.seed = read_seed(value)
    elseif key == "scene" or key == "record" then o[key] = value
    elseif key == "size" and value:find "^%d+$" or not window.option(o, key, value) then     -- size=11 is a maze's
      o.settings[key] = read_setting(value)
      table.insert(o.words, word)
    end
  end
  if not o.name then errors.usage("play: which environment?", USAGE .. "; mneme list envs") end
  if o.record and not o.record:find "%.mnt$" then errors.usage(("play: record=%s, expected a name ending in .mnt"):format(o.record)) end
  if o.record and files.is_file(o.record) then errors.usage(o.record .. " is there already", "record=ANOTHER.mnt") end
  if o.out and o.kind ~= "png" then errors.usage(("play: out=%s, expected a .png"):format(o.out), "record=FILE.mnt, then mneme view FILE.mnt out=" .. o.out) end
  o.hint = "keys=left,up,... out=FILE.png presses keys without a window"
  return o
end

-- The environment to play.
local function task_of(o, seed)
  if o.name:find "%.lua$" then
    if not files.is_file(o.name) then errors.usage(o.name .. ": there is no such script") end
    return require("mneme.learn.rebuild").script(o.name, o.words, { num_envs = 1, seed = seed }).env
  end
  o.settings.num_envs, o.settings.seed = 1, seed
  return envs.new(o.name, o.settings)
end

-- The number of the action of that name.
local function action_named(game, word)
  local names = game.env.action_space.names
  for i, name in ipairs(names) do if name == word then return i - 1 end end
  errors.usage(("play: '%s' is neither a key nor an action of %s"):format(word, game.env.id),
    "letters, digits, left right up down space enter esc, 3*up" .. (#names <= 20 and ", or " .. table.concat(names, " ") or ""))
end

-- Press keys without a window; draw the last page as a picture.
local function press(game, o)
  local keys = {}
  for i, key in ipairs(o.keys or {}) do keys[i] = type(key) == "string" and { action_named(game, key) } or key end
  for _, key in ipairs(keys) do
    if type(key) == "table" then game:move(key[1]) elseif game:key(key) then break end
  end
  if not o.out then return end
  local what, frame = game:page()
  local pixels = scene.painter(nil, o):paint(what, frame, o.width, o.height)
  engine.check(C.mn_image_write(engine.ctx, o.out, pixels, o.width, o.height))
end

---@param words string[] what follows "play"
---@return integer status
function play.main(words)
  local o = play.parse(words)
  local scripted = o.keys or o.out
  local env = task_of(o, o.seed or (scripted and 1 or math.floor(C.mn_clock(true)) % 2 ^ 31))
  if not scripted then window.need_display(o.hint) end
  o.scene = scene.load(o.scene)
  local game = play.game(env, o)
  C.mn_watch_signals(true)
  local ok, why = pcall(scripted and press or window.run, game, o)
  C.mn_watch_signals(false)
  game:save()
  if not ok then error(why, 0) end
  for i, r in ipairs(game.results) do
    print(("episode %d: score %.2f, return %+.2f, %d steps"):format(i - 1, r.score, r.ret, r.length))
  end
  if #game.results == 0 then print(("no episode has ended; %d steps, return %+.2f"):format(game.step, game.ret)) end
  for _, path in ipairs(game.saved) do print(path) end
  if o.out then print(o.out) end
  if game.saved[1] then next_step.say { "view", game.saved[1] }
  else next_step.say { "run", o.name:find "%.lua$" and o.name or "train", not o.name:find "%.lua$" and "env=" .. o.name or nil } end
  return 0
end

return play
