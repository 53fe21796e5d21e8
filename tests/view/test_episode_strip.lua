-- test_episode_strip.lua -- the window's strip of episodes, failures by key, two episodes side by side, scenes inside the window, the count of
-- an intervention, tips at the pointer, and what every page keeps to: shared axes, a bar that fits, nothing in the page's colour.
local ffi = require "ffi"
local t = require "tests.harness"
local canvas = require "mneme.base.canvas"
local interventions = require "mneme.insight.episodes.interventions"
local mn = require "mneme"
local paired_episodes = require "mneme.insight.episodes.paired_episodes"
local scene = require "mneme.insight.view.scene"
local stepper = require "mneme.insight.episodes.stepper"
local viewer_rig = require "tests.support.viewer_rig"
local action_keys = require "mneme.insight.view.action_keys"

local rig, find_spot, spot_of_key, view = viewer_rig.new, viewer_rig.find_spot, viewer_rig.spot_of_key, viewer_rig.painter.view

local function agent(options)
  local given = { seed = 5, title = "an agent" }
  for key, value in pairs(options or {}) do given[key] = value end
  local env = mn.env("tmaze", { corridor = 3, time_limit = 60, num_envs = given.num_envs or 1 })
  mn.manual_seed(4)
  local core = mn.core { "galite", d_in = 16, d_model = 8, n_layers = 2, n_heads = 2, d_head = 4, d_ffn = 8 }
  given.seeded, given.num_envs = env.num_envs == 1, nil
  return stepper.new(env, mn.agent { env = env, core = core, hidden = 8 }, given)
end

local function track(name)
  return { source = agent(), scene = scene.load(name or "tmaze"), scenes = { "tmaze", "mind", "where" }, scene_name = name or "tmaze",
    many = function() return agent { num_envs = 32 } end,
    open = function(given)
      if given == "checkpoints" then return {} end
      return agent { episode = given.episode }
    end }
end

-- A paused viewer that has been idle for long.
local function idle(name, options)
  local r = rig({ track(name) }, options)
  r.v.playing = false
  function r.rest() repeat r.v.dirty = false r.clock = r.clock + 10 r.v:tick(r.clock, math.huge) until not r.v.dirty end
  r.rest()
  return r
end

t.test("where no score reaches 1, the strip counts the episodes that reach their mean", function()
  local r, sum, n = idle(), 0, 0
  for i, e in ipairs(r.v:episodes_of(1)) do
    if e.outcome then e.outcome.score, n, sum = 0.1 + 0.05 * (i % 4), n + 1, sum + 0.1 + 0.05 * (i % 4) end
  end
  local list = r.v:episodes_of(1)
  t.near(list.mean, sum / n, 1e-9)
  for _, e in ipairs(list) do t.eq(e.failed, e.outcome and e.outcome.score < list.mean) end
  list[1].outcome.score = 1
  t.eq(r.v:episodes_of(1).mean, nil)
end)

t.test("the strip: sixteen episodes by their outcome, as they are when played; a click goes to one, f and F to failures", function()
  local r = idle()
  local list, failed = r.v:episodes_of(1), 0
  t.ok(#list >= 16 and list[16].stop)
  for i = 1, 16 do
    t.eq(list[i].failed, list[i].outcome.score < 1)
    failed = failed + (list[i].failed and 1 or 0)
  end
  t.ok(failed > 0 and failed < 16, "this agent fails sometimes")
  for _, i in ipairs { 3, 16, 1 } do
    r.draw()
    r.click(find_spot(function(what) return what.start == list[i].start end))
    t.eq(r.frame().episode, list[i].episode) t.eq(r.frame().step, 0)
    r.press(action_keys.END)
    for _, key in ipairs { "score", "ret", "length" } do t.eq(r.frame().outcome[key], list[i].outcome[key]) end
  end
  local at = 0
  for _, e in ipairs(list) do
    if e.failed and e.episode > 0 then
      at = at + 1
      r.press "f"
      t.eq(r.frame().episode, e.episode)
    end
  end
  for _ = 1, at - 1 do r.press "F" end
  local first
  for _, e in ipairs(list) do first = first or e.failed and e.episode > 0 and e.episode or nil end
  t.eq(r.frame().episode, first)
  r.draw()
  local x, y = find_spot(function(what) return what.start == list[3].start end)
  r.v:pointer("move", x, y, 0, r.clock, r.paint)
  r.draw()
  t.ok(r.v.tip:find "^episode 2, seed 7: score [01]%.00, return .-, %d+ steps", r.v.tip)
end)

t.test("f after the last known failure plays on until there is one", function()
  local r = idle()
  for _ = 1, 3 do
    local list, last = r.v:episodes_of(1), nil
    for _, e in ipairs(list) do last = e.failed and e or last end
    r.v:to_start(last.start, r.clock)
    r.press "f"
    r.rest()
    local frame = r.frame()
    t.ok(frame.episode > last.episode)
    r.press(action_keys.END)
    t.ok(r.frame().outcome.score < 1)
  end
end)

t.test("two episodes of one agent side by side: one clock, shared axes, their difference; c closes one", function()
  local r = idle()
  local list = r.v:episodes_of(1)
  r.press "b"
  t.ok(r.v.together) t.eq(#r.v.tracks, 2)
  local a, b = r.frame(), r.v:frame(2)
  t.eq(a.step, 0) t.eq(b.step, 0)
  t.ok(list[a.episode + 1].failed ~= list[b.episode + 1].failed)
  local same, line = false, r.v.tracks[1].timeline
  for _, e in ipairs(list) do
    same = same or e.failed ~= nil and e.failed ~= list[a.episode + 1].failed and line:frame(e.start).truth.cue == a.truth.cue
  end
  t.ok(same, "there is one of the same cue")
  t.eq(b.truth.cue, a.truth.cue, "of those that ended otherwise one that begins alike")
  r.rest()
  r.draw()
  for _ = 1, 3 do r.press(action_keys.RIGHT) end
  t.eq(r.frame().step, 3) t.eq(r.v:frame(2).step, 3)
  local span = mn.ui.step_heatmap.span(r.frame())
  t.eq(span, math.max(10, list[a.episode + 1].outcome.length, list[b.episode + 1].outcome.length))
  r.press "c"
  t.eq(#r.v.tracks, 1) t.eq(r.frame().episode, a.episode) t.eq(r.v.together, nil)
  r.draw()
  local x, y = find_spot(function(what) return what.start == list[7].start end)
  r.v:pointer("press", x, y, 3, r.clock, r.paint)
  t.eq(r.v:frame(2).episode, 6, "a right click on the strip")
end)

t.test("an intervention is counted over a hundred episodes, as the command counts it", function()
  local r = idle()
  r.press(action_keys.RIGHT)
  local spec = { kind = "erase", what = "layers.1" }
  t.ok(r.v:intervene({ text = "it", specs = { spec } }, nil, r.clock))
  t.ok(r.v.effect.job:text():find "^counting over 100 episodes: 0")
  r.rest()
  local p = agent { num_envs = 32 }
  local pairs_of = paired_episodes.play(p, interventions.new(p, { { kind = "erase", what = "layers.1", at = 1 } }), { episodes = 100, seed = 12345 })
  local cases = paired_episodes.reaching(pairs_of, 1)
  local count, n = paired_episodes.count_success(cases), #cases
  t.ok(r.v.effect.job:text():find(("over %d episodes: success %.2f → %.2f, "):format(n, (count.both + count.without) / n,
    (count.both + count.with) / n), 1, true), r.v.effect.job:text())
  r.draw()
  r.press "c"
  t.eq(r.v.effect, nil)
end)

t.test("scenes change inside the window: by name, and Tab", function()
  local r = idle()
  r.draw()
  r.click(find_spot(function(what) return what.scene == "mind" end))
  t.eq(r.v.scene_name, "mind")
  r.press(9) r.press(9)
  t.eq(r.v.scene_name, "tmaze")
  for _, name in ipairs(scene.list()) do
    local spec = scene.load(name)
    local id = type(spec.env) == "table" and spec.env[1] or spec.env
    local found = false
    for _, other in ipairs(scene.suiting(id)) do found = found or other == name end
    t.ok(found, name .. " suits " .. id)
  end
end)

t.test("every panel explains itself where the pointer is on its title; a click into a chart goes to that step", function()
  for _, name in ipairs { "tmaze", "mind", "memory", "training", "world" } do
    local r = idle(name)
    r.press(action_keys.RIGHT)
    r.draw()
    t.ok(#view.panels >= 4, name)
    for k, box in ipairs(view.panels) do
      if k > 1 then                                -- the first is the header, whose numbers have tips of their own
        local tip = view:tip_at(box.x + 14, box.y + 14)
        t.ok(tip and #tip > 10, ("%s: panel %d has no title that explains it"):format(name, k))
      end
    end
  end
  local r = idle "tmaze"
  r.draw()
  local _, y, spot = find_spot(function(what) return what.visit and not what.cells end)
  r.click(spot.x + spot.w * 4 / spot.what.visit, y)
  t.eq(r.frame().step, 4)
end)

t.test("a tip on a heat map is the value there", function()
  local values = ffi.new("float[6]", { 0, 1, -2, 0.25, 4, 5 })
  for scale = 1, 3, 2 do
    view:clear(600, 400)
    view:heat({ x = 10 * scale, y = 20 * scale, w = 90 * scale, h = 40 * scale }, 2, 3, values, -2, 5)
    for row = 0, 1 do
      for col = 0, 2 do
        t.eq(view:tip_at((10 + 30 * col + 15) * scale, (20 + 20 * row + 10) * scale),
          ("row %d, column %d: %s"):format(row, col, canvas.number(values[3 * row + col])))
      end
    end
    t.eq(view:tip_at(9 * scale, 25 * scale), nil)
  end
  t.eq(canvas.number(-0.5), "−0.5") t.eq(canvas.number(7425339.4), "7.43M") t.eq(canvas.number(8414), "8414") t.eq(canvas.number(0 / 0), "NaN")
end)

t.test("a double click on a title shows the panel alone, another the page again", function()
  local r = idle "tmaze"
  local all = r.picture()
  local box = view.panels[4]
  local x, y = box.x + 14, box.y + 14
  r.click(x, y) r.click(x, y)
  t.ok(r.v.full) t.ok(r.picture() ~= all)
  r.clock = r.clock + 1
  r.click(30, 26) r.click(30, 26)
  t.eq(r.v.full, nil)
  r.v.hover = nil
  t.ok(r.picture() == all)
end)

t.test("every button of the bar is on the page, at any size and scale", function()
  for _, size in ipairs { { 640, 480, 1 }, { 1280, 800, 1 }, { 1280, 800, 2 }, { 900, 700, 1 }, { 1920, 1080, 2 } } do
    local r = idle "mind"
    local what, frame = r.v:page()
    view.scale = size[3]
    viewer_rig.painter:paint(what, frame, size[1], size[2])
    view.scale = 1
    for _, key in ipairs { action_keys.HOME, action_keys.LEFT, " ", action_keys.RIGHT, action_keys.PAGE_DOWN, "f", "+", "-", "l", "j", "i", "b", "v",
      "s", "t", "h" } do
      local _, _, spot = spot_of_key(key)
      t.ok(spot.x >= 0 and spot.x + spot.w <= size[1] and spot.y >= 0 and spot.y + spot.h <= size[2], key .. " at " .. size[1])
    end
  end
end)

t.test("in a heat map nothing has the colour of the card, on both pages and in both maps", function()
  for name, theme in pairs(canvas.themes) do
    for _, map in ipairs { canvas.SEQUENTIAL, canvas.DIVERGING } do
      local values = ffi.new("float[1]", 0)
      view.theme = theme
      local pixels = viewer_rig.painter:paint({ draw = function(page)
        page:heat({ x = 0, y = 0, w = 10, h = 10 }, 1, 1, values, map == canvas.DIVERGING and -1 or 0, 1, map)
      end }, {}, 10, 10)
      local card = theme.card / 256
      t.eq(pixels[0] * 65536 + pixels[1] * 256 + pixels[2], math.floor(card), ("%s, map %d"):format(name, map))
    end
  end
  view.theme = canvas.themes.dark
end)
