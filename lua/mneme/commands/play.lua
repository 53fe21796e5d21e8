-- play.lua -- `mneme play`: an environment by hand.
local engine = require "mneme.base.engine"
local lazy = require "mneme.base.lazy"
local envs = lazy "mneme.envs"
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"
local files = require "mneme.base.files"
local human_play = lazy "mneme.insight.view.human_play"
local next_step = require("mneme.base.terminal").next_step
local reference_scores = lazy "mneme.envs.reference_scores"
local action_keys = lazy "mneme.insight.view.action_keys"
local scene = lazy "mneme.insight.view.scene"
local browser_window = lazy "mneme.insight.view.browser_window"
local window = lazy "mneme.insight.view.window"
local options = require "mneme.commands.options"
local C = engine.C
local MOST_KEYS = 1e5

-- "left,3*up,open" as keys, or as names of actions: see press.
local function read_keys(text)
  local list = {}
  for word in text:gmatch "[^,%s]+" do
    local times, name = word:match "^(%d+)%*(.+)$"
    local key = action_keys.key(name or word) or name or word
    if tonumber(times or 1) > MOST_KEYS then
      errors.usage(("play: keys=%s: %s presses, expected at most %d at a time"):format(text, times, MOST_KEYS))
    end
    for _ = 1, tonumber(times or 1) do list[#list + 1] = key end
  end
  return list
end

local common = options.common
local play = { name = "play", doc = "play an environment by hand", loads = true, others = "env", about = [[
The page shows what an agent sees, in signs that a person reads, and nothing of what it must remember.  One key, click or gamepad button is
one step; the environment waits for it.  Keys in the window:
  arrows or w a s d, q e z c, digits   actions; the page names the key of each, and a click takes one
                                       (where there are many: the number, then Enter)
                                       (several numbers: a key sets one, which stays; space takes the step)
  space, Enter                         after the end: the next episode
  r, n                                 the same episode again, the next one
  Tab                                  the true state: that is the cheat, and the score card says so
  Esc                                  quit
A gamepad: directions and A B X Y L R are actions, start is n, back is r.  In keys= these are called left right up down space enter tab
backspace esc pad_a pad_start ..., and a number is an action whole, without Enter.  A setting of the environment may be map=@FILE: the
contents of a file.]],
  arguments = { { "name", "ENV|FILE.lua", "an environment, or that of an experiment's file", noun = "environment", optional = true } },
  options = {
    { "seed", "which episode", type = "whole", example = "1" },
    { "scene", "another page than world (mneme list scenes)", type = "text", default = "world" },
    { "blind", "the observation as raw numbers", type = "switch", default = false },
    { "record", "keep the game as arrays for NumPy", type = "file", endings = { "npz" } },
    { "keys", "press these keys, or take these actions by name, without a window", type = "text", example = "left,3*up",
      set = function(o, text) o.keys = read_keys(text) end },
    { "out", "with keys=: the last page as a picture", type = "file", endings = { "png" } },
    options.web, setmetatable({ passes = "^%d+$" }, { __index = common.size }), common.theme, common.scale,          -- size=11 is a maze's
  } }

-- A setting of the environment: a number, a word; @FILE: the contents of a file.
local function read_setting(text)
  local path = text:match "^@(.+)$"
  local held = path and files.read(path)
  if held == "" then errors.usage(("play: %s: the file is empty"):format(text)) end
  return held or tonumber(text) or text
end

---What was given, as the window and the game want it.
---@param o table of arguments.read
function play.prepare(o)
  o.width, o.height = o.width or scene.default_width, o.height or scene.default_height
  o.settings, o.words = {}, {}
  for i, item in ipairs(o.items) do o.settings[item[1]], o.words[i] = read_setting(item[2]), item.word end
  if o.env_settings.num_envs then errors.usage(("play: num_envs=%s: expected 1, one environment is played"):format(o.env_settings.num_envs)) end
  if not o.name then errors.usage("play: which environment?", options.usage(play) .. "; mneme list envs") end
  if o.record and files.is_file(o.record) then errors.usage(o.record .. " is there already", "record=ANOTHER.npz") end
  o.hint = "web=1 plays in a browser; keys=left,up,... out=FILE.png presses keys without a window"
  return o
end

-- The environment to play.
local function task_of(o, seed)
  if o.name:find "%.lua$" then
    if not files.is_file(o.name) then errors.usage(o.name .. ": there is no such script") end
    return require("mneme.learn.script_agent").script(o.name, o.words, { num_envs = 1, seed = seed }, "env").env
  end
  o.settings.num_envs, o.settings.seed = 1, seed
  return envs.new(o.name, o.settings)
end

-- What a word in keys= means: the number of the action of that name, or which number is set to which value.
local function action_named(played, word)
  local names, space, key, value = played.names, played.env.action_space, word:match "^(.-)=(%S+)$"
  for i, name in ipairs(names) do if name == word then return { i - 1 } end end
  for k, name in ipairs(space.kind ~= "discrete" and space.names or {}) do
    local x = key == name and tonumber(value)
    if x then
      local p = space:room(1)
      p[k - 1] = x
      local wrong = space:misfit(p, 0) or (space.counts and x % 1 ~= 0 and "not a whole number")
        or (space.low and (x < space.low[k] or x > space.high[k]) and ("expected %g..%g"):format(space.low[k], space.high[k]))
      if wrong then errors.usage(("play: keys=%s: %s"):format(word, wrong)) end
      return { k, x }
    end
  end
  errors.usage(("play: '%s' is neither a key nor an action of %s"):format(word, played.env.id),
    word:find "^%a+%*%d+$" and ("write %s*%s"):format(word:match "%d+$", word:match "^%a+")
      or "letters, digits, left right up down space enter tab esc, 3*up" ..
        (space.kind ~= "discrete" and (", %s=NUMBER"):format(space.names[1]) or "") .. (#names <= 20 and ", or " .. table.concat(names, " ") or ""))
end

-- Press keys without a window; draw the last page as a picture.
local function press(played, o)
  local keys = {}
  for i, key in ipairs(o.keys or {}) do
    local digit = played.types and type(key) == "number" and key >= 48 and key <= 57 and key - 48       -- whole, where a window waits for Enter
    keys[i] = digit and { digit } or type(key) == "string" and action_named(played, key) or key
  end
  for i, key in ipairs(keys) do
    played.refused = nil
    if type(key) == "table" then
      if key[2] then played:set(key[1], key[2]) else played:move(key[1]) end
    elseif played:key(key) then break end
    if played.refused then print(("key %d of %d, at step %d: %s"):format(i, #keys, played.step, played.refused)) end
  end
  if not o.out then return end
  local what, frame = played:page()
  local pixels = scene.painter(nil, o):paint(what, frame, o.width, o.height)
  files.check(C.mn_image_write(engine.ctx, o.out, pixels, o.width, o.height))
end

local function came_to(r)
  return (r.score and ("score %.2f, "):format(r.score) or "") .. format.said("return %+.2f, %s", r.ret, format.counted(r.length, "step"))
end

-- What the finished episodes came to.
local function report(played)
  for i, r in ipairs(played.results) do
    print(("episode %d: %s%s"):format(i - 1, came_to(r), r.looked and " (with Tab)" or ""))
  end
  if #played.results == 0 then print(format.said("no episode has ended; %s, return %+.2f", format.counted(played.step, "step"), played.ret)) end
  local known = played.env.reference
  if #played.results > 0 and known then
    if known.best_return then print(("perfect play: return %+.2f"):format(known.best_return)) end
    print("scores: " .. reference_scores.list(known))
  end
end

-- The command that comes next.
local function next_of(o)
  local script = o.name:find "%.lua$"
  return { "run", script and o.name or "train", not script and "env=" .. o.name or nil }
end

function play.run(o)
  play.prepare(o)
  local scripted = o.keys or o.out
  local env = task_of(o, o.seed or (scripted and 1 or math.floor(C.mn_clock(true)) % 2 ^ 31))
  if not scripted and not o.web then window.need_display(o.hint) end
  o.scene = scene.load(o.scene)
  local played = human_play.new(env, o)
  local ok, why = pcall(engine.heeding, true, scripted and press or (o.web and browser_window or window).run, played, o)
  played:save()
  if not ok then error(why, 0) end
  report(played)
  for _, path in ipairs(played.saved) do print(path) end
  if o.out then print(o.out) end
  next_step.say(next_of(o))
  return 0
end

return play
