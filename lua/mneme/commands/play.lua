-- play.lua -- play an environment by hand, or that of an experiment or of a file of your own (FILE.lua).  The page shows what an agent sees, in
-- signs that a person reads, and nothing of what it must remember.
--   corridor=9 ...       settings of the environment; map=@FILE: the contents of a file
--   seed=N               which episode
--   against=RUN          the agent of a run plays the same episode beside you; what RUN was trained on is the environment
--   scene=NAME           another page than "world" (mneme list scenes)
--   blind=1              the observation as raw numbers
--   record=FILE.mnt      keep the game as a trajectory
--   size=1280x800 theme=light scale=2    of the page
--   keys=left,3*up,r out=FILE.png        press these keys, or take these actions by name, without a window
-- Keys in the window:
--   arrows or w a s d, q e z c, digits   actions; the page names the key of each, and a click takes one.  Where there are many, type
--                                        the number, then Enter
--   space, Enter                         after the end: the next episode
--   r                                    the same episode again       n  the next one
--   Tab                                  the true state: that is the cheat, and the score card says so
--   Esc                                  quit
-- A gamepad: directions and A B X Y L R are actions, start is n, back is r.  In keys= these are called left right up down space enter
-- tab backspace esc pad_a pad_start ...
-- One key, click or gamepad button is one step; the environment waits for it.
local engine = require "mneme.base.engine"
local envs = require "mneme.envs.env"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local game = require "mneme.view.game"
local ghost = require "mneme.episodes.ghost"
local next_step = require "mneme.base.next_step"
local reference = require "mneme.envs.reference"
local keyboard = require "mneme.view.keyboard"
local scene = require "mneme.view.scene"
local single = require "mneme.envs.single"
local stepper = require "mneme.episodes.stepper"
local window = require "mneme.view.window"

local C = engine.C
local play = {}
local USAGE = "mneme play NAME|SCRIPT.lua [setting=value ...] [seed=N] [against=RUN] [record=FILE.mnt] [blind=1] [keys=left,3*up out=FILE.png]"

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
    elseif key == "scene" or key == "record" or key == "against" then o[key] = value
    elseif key == "size" and value:find "^%d+$" or not window.option(o, key, value) then     -- size=11 is a maze's
      o.settings[key] = read_setting(value)
      table.insert(o.words, word)
    end
  end
  if not (o.name or o.against) then errors.usage("play: which environment?", USAGE .. "; mneme list envs") end
  if o.record and not o.record:find "%.mnt$" then errors.usage(("play: record=%s, expected a name ending in .mnt"):format(o.record)) end
  if o.record and files.is_file(o.record) then errors.usage(o.record .. " is there already", "record=ANOTHER.mnt") end
  if o.out and o.kind ~= "png" then errors.usage(("play: out=%s, expected a .png"):format(o.out), "record=FILE.mnt, then mneme view FILE.mnt out=" .. o.out) end
  o.hint = "keys=left,up,... out=FILE.png presses keys without a window"
  return o
end

-- The environment to play, and the ghost of a run beside it.
local function task_of(o, seed)
  if o.against then
    local agent = stepper.from_run(o.against, { seed = seed, settings = o.settings })
    local env = single.like(agent.env)
    if o.name and env.id:match "^(.-)%-v%d+$" ~= o.name and env.id ~= o.name then
      errors.usage(("play: against=%s: that run was trained on %s, not on %s"):format(o.against, env.id, o.name), "mneme play against=" .. o.against)
    end
    return env, ghost.new(agent)
  end
  if o.name:find "%.lua$" then
    if not files.is_file(o.name) then errors.usage(o.name .. ": there is no such script") end
    return require("mneme.learn.rebuild").script(o.name, o.words, { num_envs = 1, seed = seed }, "env").env
  end
  o.settings.num_envs, o.settings.seed = 1, seed
  return envs.new(o.name, o.settings)
end

-- The number of the action of that name.
local function action_named(played, word)
  local names = played.env.action_space.names
  for i, name in ipairs(names) do if name == word then return i - 1 end end
  errors.usage(("play: '%s' is neither a key nor an action of %s"):format(word, played.env.id),
    word:find "^%a+%*%d+$" and ("write %s*%s"):format(word:match "%d+$", word:match "^%a+")
      or "letters, digits, left right up down space enter tab esc, 3*up" .. (#names <= 20 and ", or " .. table.concat(names, " ") or ""))
end

-- Press keys without a window; draw the last page as a picture.
local function press(played, o)
  local keys = {}
  for i, key in ipairs(o.keys or {}) do keys[i] = type(key) == "string" and { action_named(played, key) } or key end
  for _, key in ipairs(keys) do
    if type(key) == "table" then played:move(key[1]) elseif played:key(key) then break end
  end
  if not o.out then return end
  local what, frame = played:page()
  local pixels = scene.painter(nil, o):paint(what, frame, o.width, o.height)
  engine.check(C.mn_image_write(engine.ctx, o.out, pixels, o.width, o.height))
end

local function came_to(r)
  return (r.score and ("score %.2f, "):format(r.score) or "") .. ("return %+.2f, %d steps"):format(r.ret, r.length)
end

-- What the finished episodes came to.
local function report(played)
  for i, r in ipairs(played.results) do
    print(("episode %d: %s%s"):format(i - 1, came_to(r), r.looked and " (with Tab)" or ""))
    if r.ghost then print(("  %s: %s"):format(played.ghost.name, came_to(r.ghost))) end
  end
  if #played.results == 0 then print(("no episode has ended; %d steps, return %+.2f"):format(played.step, played.ret)) end
  local known = played.env.reference
  if #played.results > 0 and known then
    if known.best_return then print(("perfect play: return %+.2f"):format(known.best_return)) end
    print("scores: " .. reference.list(known))
  end
end

-- The command that comes next.
local function next_of(played, o)
  if played.saved[1] then return { "view", played.saved[1] } end
  if o.against then return { "view", o.against } end
  local script = o.name:find "%.lua$"
  return { "run", script and o.name or "train", not script and "env=" .. o.name or nil }
end

---@param words string[] what follows "play"
---@return integer status
function play.main(words)
  local o = play.parse(words)
  local scripted = o.keys or o.out
  local env, beside = task_of(o, o.seed or (scripted and 1 or math.floor(C.mn_clock(true)) % 2 ^ 31))
  if not scripted then window.need_display(o.hint) end
  o.scene, o.ghost = scene.load(o.scene), beside
  local played = game.new(env, o)
  C.mn_watch_signals(true)
  local ok, why = pcall(scripted and press or window.run, played, o)
  C.mn_watch_signals(false)
  played:save()
  if not ok then error(why, 0) end
  report(played)
  for _, path in ipairs(played.saved) do print(path) end
  if o.out then print(o.out) end
  next_step.say(next_of(played, o))
  return 0
end

return play
