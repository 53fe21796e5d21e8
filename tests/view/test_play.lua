-- test_play.lua -- mneme play: keys for every environment's actions, what they do, records that replay what
-- was played, and windows that sleep between keys.
local lfs = require "lfs"
local t = require "tests.harness"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local action_keys = require "mneme.insight.view.action_keys"
local human_play = require "mneme.insight.view.human_play"
local arguments = require "mneme.commands.arguments"
local play = require "mneme.commands.play"
local scene_rig = require "tests.support.scene_rig"
local scene = require "mneme.insight.view.scene"
local npz_reader = require "tests.support.npz_reader"
local window = require "mneme.insight.view.window"
local shell = require "tests.support.shell"

local folder = shell.folder()
local function path(name) return folder .. "/" .. name end

-- Run the command; what it printed.
local function command(...)
  local lines, kept = {}, print
  print = function(...) lines[#lines + 1] = table.concat({ ... }, "\t") end     -- luacheck: ignore
  local ok, status = pcall(arguments.run, play, { ... })
  print = kept                                                                  -- luacheck: ignore
  if not ok then error(status, 0) end
  t.eq(status, 0)
  return table.concat(lines, "\n")
end

local function key(word) return assert(action_keys.key(word), word) end

for _, e in ipairs(envs.list()) do
  t.test(e.name .. ": every action has a key of its own, and can be played", function()
    local env = envs.new(e.name, { num_envs = 1 })
    local names = env.action_space:by_keys()
    local action_of, labels, typed = action_keys.divide(names)
    local reached = {}
    for _, action in pairs(action_of) do reached[action] = true end
    for i = 1, #names do
      t.ok(labels[i] ~= "", names[i] .. " has no label")
      t.ok(reached[i - 1] or typed, names[i] .. " has no key")
    end
    local game = human_play.new(env, { scene = scene.load "world" })
    for k = 1, 30 do
      for pressed in pairs(action_of) do game:key(pressed) end
      if typed then
        for digit in tostring(k % #names):gmatch "." do game:key(key(digit)) end
        game:key(key "enter")
      end
    end
    local what, frame = game:page()
    t.ok(scene.painter():paint(what, frame, 800, 600))
    t.ok(game.episode > 0 or game.step > 0, "nothing was played")
  end)
end

t.test("keys: usual names, numbers for the rest, typed numbers where there are many", function()
  local action_of, labels = action_keys.divide { "noop", "forward", "left", "right", "forward_left", "forward_right", "dance" }
  t.eq(action_of[key "space"], 0)
  t.eq(action_of[key "up"], 1) t.eq(action_of[key "w"], 1)
  t.eq(action_of[key "q"], 4) t.eq(action_of[key "e"], 5)
  t.eq(action_of[key "1"], 6)
  t.eq(labels[2], "↑ w")
  action_of = action_keys.divide { "left", "turn_left", "west" }                -- one pair of keys, three actions
  t.eq(action_of[key "left"], 0) t.eq(action_of[key "1"], 1) t.eq(action_of[key "2"], 2)
  action_of = action_keys.divide { "0", "1", "2" }
  t.eq(action_of[key "0"], 0) t.eq(action_of[key "2"], 2)
  local many = {}
  for i = 0, 51 do many[i + 1] = "card " .. i end
  local _, numbers, typed = action_keys.divide(many)
  t.ok(typed and numbers[52] == "51")
  local env = envs.new { observation = { 1 }, actions = many, num_envs = 1, reset = function() return { 0 } end,
    step = function(_, action) return { action }, action end }
  local game = human_play.new(env, { scene = scene.load "world" })
  for _, word in ipairs { "4", "7", "backspace", "2", "enter", "9", "9", "enter", "enter" } do game:key(key(word)) end
  t.eq(game.ret, 42)
  t.eq(game.step, 1, "99 and nothing are no actions")
end)

t.test("a gamepad: the arrows' actions by its directions, others by A, B, X, Y, L, R", function()
  local actions = { "noop", "forward", "left", "right", "jump", "duck" }
  local action_of = action_keys.divide(actions)
  local labels = action_keys.add_pad(#actions, action_of)
  t.eq(table.concat(labels, ","), "pad A,↑,←,→,pad B,pad X")
  t.eq(action_of[key "pad_a"], 0) t.eq(action_of[key "pad_b"], 4) t.eq(action_of[key "pad_x"], 5)
  t.eq(action_of[key "up"], 1) t.eq(action_of[key "pad_y"], nil)
  action_of = action_keys.divide { "0", "1", "2", "3", "4", "5", "6", "7" }
  labels = action_keys.add_pad(8, action_of)
  t.eq(table.concat(labels, ","), "pad A,pad B,pad X,pad Y,pad L,pad R,,")
  t.eq(action_of[key "pad_r"], 5) t.eq(action_of[key "pad_start"], nil)
  for word in ("up 7 space pad_l"):gmatch "%S+" do t.eq(action_keys.is_pad(key(word)), word == "pad_l") end
end)

t.test("the page names the keys of what was used last; start begins anew", function()
  local game = human_play.new(envs.new("tmaze_bakker", { num_envs = 1, seed = 3 }), { scene = scene.load "world" })
  local function label(i) return select(2, game:page()).keys[i] end
  t.eq(label(1), "↑ w")
  game:key(key "pad_y")
  t.eq(label(1), "↑")
  game:key(key "D")
  t.eq(label(1), "↑ w")
  t.eq(game.step, 1, "d, whatever Caps Lock says; no button does anything where arrows do all")
  game:key(key "pad_start")
  t.eq(game.step, 0) t.eq(game.episode, 1)
end)

t.test("a click on an action does it; one anywhere after the end goes on", function()
  local painter = scene.painter()
  local game = human_play.new(envs.new("tmaze", { corridor = 3, num_envs = 1, seed = 3 }), { scene = scene.load "world" })
  game.canvas = painter.view
  local function click(name, button)
    local what, frame = game:page()
    painter:paint(what, frame, 1280, 800)
    local x, y = scene_rig.place_of(painter.view, name)
    game:pointer("move", x, y)
    game:pointer("press", x, y, button or 1)
    game:pointer("release", x, y, button or 1)
  end
  click "right" click("right", 3)
  t.eq(game.step, 1, "the left button counts")
  game:pointer("press", 2, 2, 1)
  t.eq(game.step, 1, "nothing is there")
  click "right"
  click(game.env:truth(0).cue == 0 and "up" or "down")
  t.eq(game.results[1].score, 1)
  game:pointer("press", 2, 2, 3)
  t.ok(game.over)
  game:pointer("press", 2, 2, 1)
  t.ok(not game.over and game.episode == 1 and game.step == 0)
end)

t.test("an episode: moves, its end, the next one, a new one, quit", function()
  local game = human_play.new(envs.new("tmaze", { corridor = 3, num_envs = 1, seed = 3 }), { scene = scene.load "world" })
  local function status() return select(2, game:page()).status end
  local turn = game.env:truth(0).cue == 0 and "up" or "down"
  game:key(key "right") game:key(key "right")
  t.eq(game.step, 2)
  t.eq(status().speed, "your move")
  game:key(key "x")
  t.eq(game.step, 2, "a key without a meaning")
  game:key(key(turn))
  t.eq(#game.results, 1)
  t.eq(game.results[1].score, 1) t.eq(game.results[1].length, 3) t.near(game.results[1].ret, 3.8, 1e-6)
  local _, frame = game:page()
  t.eq(frame.outcome.score, 1)
  t.eq(status().speed, "over")
  t.ok(status().note:find "score 1.00, return %+3.80, 3 steps")
  game:key(key "space")
  t.eq(game.step, 0) t.eq(game.episode, 1) t.eq(status().speed, "your move")
  game:key(key "right")
  game:key(key "r")
  t.eq(game.step, 0) t.eq(game.episode, 2) t.eq(#game.results, 1)
  t.eq(game:key(key "esc"), true)
end)

t.test("mneme play with keys and without a window: outcome, picture, record", function()
  local text = command("tmaze", "corridor=4", "seed=3", "keys=3*right,up,space,2*right,r,right", "record=" .. path "game.npz",
    "out=" .. path "game.png", "size=640x480")
  t.ok(text:find "episode 0: score [01].00, return [%+%-]%d.%d0, 4 steps")
  t.ok(text:find(path "game.npz", 1, true) and text:find(path "game-2.npz", 1, true), text)
  t.ok(lfs.attributes(path "game.png", "size") > 5000)
  local first, again = npz_reader(path "game.npz"), envs.new("tmaze", { corridor = 4, num_envs = 1 })
  t.eq(first.about.settings.seed, 3)
  t.eq(first.rewards.shape[1], 6)
  local obs = again:reset(3)
  for k = 0, 5 do
    for i = 0, 15 do t.eq(first.observations.values[16 * k + i], obs:data()[i]) end
    local _, reward = again:step { first.actions.values[k] }
    t.eq(first.rewards.values[k], reward:data()[0])
  end
  t.eq(npz_reader(path "game-2.npz").rewards.shape[1], 1)
  t.fails(function() command("tmaze", "keys=up", "record=" .. path "game.npz") end)
  t.ok(command("tmaze", "keys=up,right"):find "no episode has ended; 2 steps")
  t.eq(command("repeat_first", "seed=2", "keys=clubs,2*hearts"), command("repeat_first", "seed=2", "keys=3,4,4"))   -- by name, by key
  files.write(path "map.txt", { "#####\n#S.G#\n#####\n" })
  local game = human_play.new(envs.new("minesweeper", { num_envs = 1, seed = 3 }), { scene = scene.load "world" })     -- numbers, one key each
  for _, action in ipairs { 0, 5, 3, 12 } do game:move(action) end
  for _, keys in ipairs { "0,5,3,12", "0,enter,5,enter,3,12" } do
    t.ok(command("minesweeper", "seed=3", "keys=" .. keys):find(("%d steps, return %+.2f"):format(game.step, game.ret), 1, true), keys)
  end
  t.ok(command("gridworld", "map=@" .. path "map.txt", "keys=2*right"):find "score 1.00")
end)

t.test("what is wrong with a command line is told", function()
  local function says(pattern, ...)
    local words = { ... }
    t.raises(function() command(unpack(words)) end, pattern)
  end
  says("which environment", "keys=up")
  says("got 'tmaze' and 'x'", "tmaze", "x")
  says("'forward' is neither a key nor an action of tmaze%-v0 .* or up down left right", "tmaze", "keys=up,forward")
  says("did you mean 'corridor'", "tmaze", "coridor=4", "keys=up")
  says("corridor=1, expected", "tmaze", "corridor=1", "keys=up")
  says("size=10, expected an odd", "memory_maze", "size=10", "keys=up")              -- the maze's, not the window's
  t.ok(command("memory_maze", "size=11", "keys=up"):find "1 step,")
  says("num_envs=3: expected 1, one environment is played", "tmaze", "num_envs=3", "keys=up")
  says("100000000 presses, expected at most 100000", "tmaze", "keys=100000000*up")
  files.write(path "empty.txt", { "" })
  says("empty.txt: the file is empty", "gridworld", "keys=up", "map=@" .. path "empty.txt")
  says("nofile: cannot be read", "gridworld", "keys=up", "map=@" .. path "nofile")
  says("cannot be written", "tmaze", "keys=up", "record=" .. path "no/such/folder.npz")
end)

t.test("size=11 is a setting of a maze, size=640x480 one of the picture", function()
  local function read(...) return play.prepare(arguments.read(play, { ... })) end
  local o = read("memory_maze", "size=11", "theme=light")
  t.eq(o.settings.size, 11) t.eq(o.width, scene.default_width) t.eq(o.theme, "light")
  o = read("memory_maze", "size=640x480")
  t.eq(o.settings.size, nil) t.eq(o.width, 640)
end)

local setenv = t.need("posix.stdlib", "lua-posix").setenv

t.test("without a display, the message says what to do", function()
  local kept = { os.getenv "DISPLAY", os.getenv "WAYLAND_DISPLAY" }
  setenv("DISPLAY", nil) setenv("WAYLAND_DISPLAY", nil)
  t.fails(function() command "tmaze" end)
  if kept[1] then setenv("DISPLAY", kept[1]) end
  if kept[2] then setenv("WAYLAND_DISPLAY", kept[2]) end
end)

t.test("a window without keys sleeps: nothing is painted twice (SDL's dummy driver)", function()
  setenv("SDL_VIDEODRIVER", "dummy")
  local game = human_play.new(envs.new("tmaze", { num_envs = 1 }), { scene = scene.load "world" })
  local pages, looks = 0, 0
  local client = { period = 0.05, dirty = true, page = function() pages = pages + 1 return game:page() end, key = function() end }
  client.tick = function() looks = looks + 1 if looks == 8 then error("enough", 0) end end
  local ok, why = pcall(window.run, client, { width = 640, height = 480 })
  setenv("SDL_VIDEODRIVER", nil)
  t.ok(not ok and why == "enough", tostring(why))
  t.ok(pages <= 3, pages .. " pages were painted in 8 looks")
end)

os.execute("rm -r '" .. folder .. "'")
