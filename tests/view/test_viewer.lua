-- test_viewer.lua -- what the keys and the pointer do in a window, without one: play, step, scrub,
-- compare, record; each also by a click on its button.
local lfs = require "lfs"
local t = require "tests.harness"
local random_stepper = require "tests.support.random_stepper"
local mn = require "mneme"
local stepper = require "mneme.insight.episodes.stepper"
local scene = require "mneme.insight.view.scene"
local scene_rig = require "tests.support.scene_rig"
local shell = require "tests.support.shell"
local viewer_rig = require "tests.support.viewer_rig"

local folder = shell.folder()
local rig = viewer_rig.new
local W = viewer_rig.width
local find_spot, spot_of_key = viewer_rig.find_spot, viewer_rig.spot_of_key

local function agent(seed, options)
  local env = mn.env("tmaze", { corridor = 6, time_limit = 60, num_envs = 1 })
  mn.manual_seed(seed)
  local core = mn.core { "agalite", d_in = 16, d_model = 8, n_layers = 2, n_heads = 2, d_head = 4, d_ffn = 8 }
  options = options or {}
  options.seed, options.seeded, options.title = 5, true, "an agent"
  return stepper.new(env, mn.agent { env = env, core = core, hidden = 8 }, options)
end

local function track(seed)
  return { source = agent(seed), scene = scene.load "tmaze", open = function(given)
    if given == "checkpoints" then return {} end
    return agent(seed, { episode = given.episode })
  end }
end

local action_keys = require "mneme.insight.view.action_keys"
local LEFT, RIGHT, HOME, END, PAGE_UP, PAGE_DOWN, ESCAPE = action_keys.LEFT, action_keys.RIGHT, action_keys.HOME, action_keys.END, action_keys.PAGE_UP,
  action_keys.PAGE_DOWN, action_keys.ESCAPE

t.test("keys: play, step, step back, speed, help, quit", function()
  local r = rig { { source = random_stepper.new { corridor = 4 }, scene = scene.load "tmaze" } }
  r.v:tick(0)
  t.eq(r.v.at, 1)
  r.press " "
  r.pass(1)
  t.eq(r.v.at, 1, "paused")
  r.press(RIGHT) r.press(RIGHT)
  t.eq(r.v.at, 3)
  local third = r.frame().value
  r.press(LEFT)
  t.eq(r.v.at, 2)
  r.press(RIGHT)
  t.eq(r.frame().value, third, "forward again shows what was seen")
  r.press(LEFT) r.press(LEFT) r.press(LEFT)
  t.eq(r.v.at, 1)
  r.press " "
  r.pass(4)
  t.ok(r.v.at > 30, "at 10 steps a second, four seconds show 40")
  local speed = r.frame().status.speed
  r.press "+"
  t.ok(r.frame().status.speed ~= speed)
  r.press "h"
  t.ok(r.v.help)
  r.draw()
  r.press "t"
  t.eq(r.v.theme, "light")
  r.press "t"
  t.eq(r.v.theme, "dark")
  r.press "n"
  t.ok(r.frame().status.note:find "only one environment")
  t.ok(r.press "q")
  t.ok(not r.press(27), "Esc closes the help first")
  t.ok(not r.v.help and r.press(27))
end)

t.test("help pauses what is behind it, which plays on after it unless another key was pressed; all of its texts are whole", function()
  local r = rig { track(1) }
  r.pass(0.5)
  local function stands()
    local at = r.v.at
    r.pass(1)
    return r.v.at == at
  end
  t.ok(not stands())
  r.press "h"
  t.ok(stands() and not r.v.playing)
  r.press "h"
  t.ok(not stands() and r.v.playing, "it plays on")
  r.press "h"
  r.press(LEFT)
  r.press "h"
  t.ok(stands(), "a step back pauses")
  r.press "h"
  r.press(27)
  t.ok(stands(), "it was paused before")
  r.press "h"
  for _, size in ipairs { { 640, 480 }, { 800, 600 }, { 1280, 800 }, { 1500, 900 } } do
    local found, what, frame = 0, r.v:page()
    viewer_rig.painter:paint(what, frame, size[1], size[2])
    for _, text in ipairs(scene_rig.text_boxes(viewer_rig.painter)) do
      if text.text == "an episode that ended otherwise beside this one" or text.text:find "^select a head or a step; twice" then found = found + 1 end
      t.ok(text.x0 >= 0 and text.x1 <= size[1], ("%dx%d: %s"):format(size[1], size[2], text.text))
    end
    if size[1] >= 800 then t.eq(found, 2, size[1] .. " pixels wide: the longest texts") end
  end
end)

t.test("speeds go from an eighth to all that there is time for", function()
  local r = rig { track(1) }
  for _ = 1, 20 do r.press "-" end
  r.v:tick(0)
  local at = r.v.at
  r.pass(8)
  t.ok(r.v.at - at >= 9 and r.v.at - at <= 11, ("an eighth of 10 steps a second: %d in 8 s"):format(r.v.at - at))
  t.ok(r.frame().status.speed:find "1/8x")
  for _ = 1, 20 do r.press "+" end
  at = r.v.at
  r.pass(1)
  t.ok(r.v.at - at > 10, "unlimited")
  t.eq(r.frame().status.speed, "unlimited")
end)

t.test("the bar holds the whole episode, and shows what is clicked in it", function()
  local r = rig { track(1) }
  r.press " "
  r.pass(3)
  local from, to, over = r.v:episode()
  t.ok(over and from == 1 and to > 5, "paused, it has lived on to the episode's end")
  r.draw()
  local _, y, spot = find_spot(function(what) return what.scrub end)
  local line = spot.what.scrub
  r.click(line.x + line.w, y)
  t.eq(r.v.at, to)
  t.ok(r.frame().outcome, "the end")
  r.v:pointer("press", line.x, y, 1, r.clock, r.paint)
  t.eq(r.v.at, 1)
  r.v:pointer("move", line.x + line.w / 2, y, 1, r.clock, r.paint)
  t.ok(math.abs(r.v.at - (1 + to) / 2) <= 1, "dragged to the middle")
  r.v:pointer("release", line.x, y, 1, r.clock, r.paint)
  r.v:pointer("move", line.x, y, 1, r.clock, r.paint)
  t.ok(r.v.at > 1, "let go")
  r.press(HOME)
  t.eq(r.v.at, 1)
  r.press(END)
  t.eq(r.v.at, to)
  r.press(PAGE_DOWN)
  t.eq(r.frame().episode, 1) t.eq(r.frame().step, 0)
  r.press(PAGE_UP)
  t.eq(r.frame().episode, 0) t.eq(r.v.at, 1)
end)

t.test("buttons do what their keys do", function()
  local r = rig { track(1) }
  r.pass(0.5)
  r.draw()
  local playing = r.v.playing
  r.click(spot_of_key " ")
  t.eq(r.v.playing, not playing)
  r.draw()
  local at = r.v.at
  r.click(spot_of_key(RIGHT))
  t.eq(r.v.at, at + 1)
  r.draw()
  r.click(spot_of_key "l")
  t.eq(r.v.selection.layer, 0)
  for _ = 1, 2 do r.press "l" end
  t.eq(r.v.selection.layer, nil, "two layers, then all again")
  r.draw()
  t.eq(r.v:pointer("press", W - 1, 1, 1, r.clock, r.paint), nil, "nothing is there")
end)

-- The spot that chooses this layer and head.
local function spot_of_head(layer, head)
  return find_spot(function(what) return what.select and what.select.layer == layer and what.select.head == head end)
end

t.test("a click on a head, a layer or a step chooses it, a second one takes it back", function()
  local one = track(1)
  one.scene = scene.load "mind"
  local r = rig { one }
  r.press " "
  r.pass(2)
  r.press(END)
  local all = r.picture()
  local function chosen() local f = r.v.selection return ("%s %s %s"):format(f.layer, f.head, f.step) end
  r.click(spot_of_head(1, 0))
  t.eq(chosen(), "1 0 nil")
  t.ok(r.picture() ~= all)
  r.click(spot_of_head(1, 0))
  t.eq(chosen(), "nil nil nil")
  t.eq(r.picture() == all, true)
  r.click(spot_of_head(0, nil))
  t.eq(chosen(), "0 nil nil")
  r.draw()
  r.press "l" r.press "j" r.press "j"
  t.eq(chosen(), "1 1 nil")
  r.draw()
  local _, y, spot = find_spot(function(what) return what.steps end)
  local function at(step) return spot.x + (step + 0.5) / spot.what.steps * spot.w end
  r.click(at(2), y)
  t.eq(chosen(), "1 1 2")
  r.draw()
  r.click(at(3), y)
  t.eq(chosen(), "1 1 3", "another head keeps the step, another step the head")
  r.click(at(3), y)
  t.eq(chosen(), "1 1 nil", "a second click takes it back")
end)

t.test("an episode without an end is lived ahead as far as there is room, and no further", function()
  local env = mn.env("tmaze", { corridor = 200, time_limit = 0, num_envs = 1 })
  mn.manual_seed(1)
  local source = stepper.new(env, mn.agent { env = env, core = { "feedforward", d_model = 4, d_ffn = 4, n_layers = 1 }, hidden = 4 }, { seeded = true })
  local r = rig { { source = source, scene = scene.load "world" } }
  r.press " "
  r.v:tick(0)
  r.v:look_ahead()
  t.eq(#r.v.slots, 10001)
  t.ok(not select(3, r.v:episode()))
  local line = r.v.tracks[1].timeline
  t.ok(line.moment_bytes <= 128e6 and line.bytes <= 128e6)
  r.v:seek(5000)
  local back
  for _ = 1, 1000 do
    back = r.v:frame(1)
    if back and back.step == 4999 then break end               -- a few milliseconds of living again at a time
  end
  t.eq(back.step, 4999)
end)

t.test("what a change does is shown beside what happened, in step", function()
  local r = rig { track(1) }
  r.press " "
  r.pass(2)
  r.v:seek(4)
  local as_it_was = r.frame().value
  t.ok(r.v:intervene({ text = "erase all", specs = { { kind = "erase", what = "all" } } }, nil, r.clock))
  t.eq(#r.v.tracks, 2)
  local left, right = r.v:frame(1), r.v:frame(2)
  t.eq(left.step, 3) t.eq(right.step, 3)
  t.near(left.value, as_it_was, 1e-6) t.ok(math.abs(left.value - right.value) > 1e-6)
  r.press(LEFT)
  t.eq(r.v:frame(1).value, r.v:frame(2).value, "before it, both are the same")
  r.pass(1)
  r.draw()
  for _ = 1, 500 do                                 -- a busy machine lives on by little
    r.press(END)
    if r.v:ended() then break end
    r.pass(0.1)
  end
  t.ok(r.v:ended(), "each waits for the other's end")
  t.ok(r.v:frame(1).outcome and r.v:frame(2).outcome)
  r.press(PAGE_DOWN)
  for i = 0, 15 do t.eq(r.v:frame(1).observation.values[i], r.v:frame(2).observation.values[i], "the next world is the same") end
  r.press(PAGE_UP)
  r.draw()
  t.ok(not r.press(ESCAPE), "Esc closes a pair first")
  t.eq(#r.v.tracks, 1)
  t.eq(r.v.tracks[1].timeline:frame(4).value, as_it_was)
  t.ok(r.press(ESCAPE), "then it quits")
end)

t.test("two agents in the same worlds side by side", function()
  local r = rig { track(1), track(2) }
  r.press " "
  r.pass(2)
  for _ = 1, 3 do
    local a, b = r.v:frame(1), r.v:frame(2)
    t.eq(a.step, 0) t.eq(b.step, 0) t.eq(a.episode, b.episode)
    for i = 0, 15 do t.eq(a.observation.values[i], b.observation.values[i]) end
    t.ok(math.abs(a.value - b.value) > 1e-6, "they are not the same agent")
    r.draw()
    r.press(PAGE_DOWN)
  end
end)

t.test("when training ends, r plays the trained agent", function()
  local state, silent, snapshots = "running", false, random_stepper.new { corridor = 4 }
  local source = { live = true, state = function() return state end, next = function() return not silent and snapshots:next() or nil end,
    next_env = function() snapshots:next_env() end }
  local r = rig { { source = source, scene = scene.load "tmaze", open = function() return random_stepper.new { corridor = 5 } end } }
  r.v:tick(1)
  t.eq(r.frame().status.speed, "live")
  r.press "n"
  t.eq(snapshots.env_index, 1, "the next environment is requested from the trainer")
  r.press "r"
  t.ok(r.frame().status.note:find "trainer" and r.v:source() == source, "not while it runs")
  silent = true
  r.v:tick(4)
  t.eq(r.v.late, nil, "an update may take its time")
  r.v:tick(9) r.v:tick(9.5)
  t.eq(r.v.late, 8) t.ok(r.v.dirty)
  silent = false
  r.v:tick(9.6)
  t.eq(r.v.late, nil)
  silent, state, r.clock = true, "gone", 30
  r.v:tick(30)
  t.eq(r.v.late, nil, "one that is gone is not late")
  t.ok(r.frame().status.note:find "crashed")
  r.press "r"
  t.eq(r.frame().truth.corridor, 5)
  t.eq(r.frame().status.speed, "1x, 10 steps/s")
end)

t.test("a picture and a film are files, whole where the window is closed before its end", function()
  local r, here = rig { track(1) }, lfs.currentdir()
  r.pass(0.5)
  assert(lfs.chdir(folder))
  r.press "s"
  local picture = r.frame().status.note
  r.press "v"
  local started = r.frame().status.note
  for _ = 1, 5 do
    r.press(RIGHT)
    r.v:painted(r.paint())
  end
  local note = r.v:closed()
  assert(lfs.chdir(here))
  t.ok(picture:find "^saved mneme%-%d+%-%d+%.png", picture)
  t.ok(lfs.attributes(folder .. "/" .. picture:match "saved (.+)$", "size") > 5000)
  t.ok(started:find "^recording")
  local path, frames = note:match "^saved (%S+), (%d+) frames"
  t.eq(frames, "5")
  t.ok(lfs.attributes(folder .. "/" .. path, "size") > 1000)
  t.eq(r.v:closed(), nil)
end)
