-- test_attached.lua -- a window on a run that somebody else trains follows its newest checkpoint; a part under the pointer is marked in every panel; what
-- is said goes with its reason.
local t = require "tests.harness"
local background_effect = require "mneme.insight.view.background_effect"
local cue_agent = require "tests.support.cue_agent"
local engine = require "mneme.base.engine"
local scene = require "mneme.insight.view.scene"
local selection = require "mneme.insight.view.selection"
local viewer_rig = require "tests.support.viewer_rig"

-- A run whose checkpoints are the list, each the agent made by hand.
local function track(list, name)
  local function open(given)
    if given == "checkpoints" then return list end
    local p = cue_agent.new(1, { seed = 3, seeded = true, episode = given.episode })
    p.steps = given.checkpoint or list[#list]
    return p
  end
  return { source = open {}, open = open, scene = scene.load(name or "mind"), scenes = { "mind", "world" }, scene_name = name or "mind" }
end

local function later(r, seconds)
  r.clock = r.clock + seconds
  r.v:tick(r.clock, engine.C.mn_clock(false) + 0.05)
end

t.test("the newest checkpoint is followed while it plays, not while it is paused, and not after a look at an older one", function()
  local list = { 100 }
  local r = viewer_rig.new({ track(list) }, { follow = true })
  r.pass(0.5)
  list[2] = 200
  later(r, 3)
  t.eq(r.v:source().steps, 200)
  t.ok(r.v.note and r.v.note:find "200", r.v.note)
  t.ok(r.v.followed)
  r.press " "
  list[3] = 300
  later(r, 3)
  t.eq(r.v:source().steps, 200, "it is being looked at")
  t.ok(r.v.note:find "300", r.v.note)
  r.press " "
  later(r, 3)
  t.eq(r.v:source().steps, 200, "it was declined")
  r.press "["
  t.eq(r.v:source().steps, 100)
  list[4] = 400
  later(r, 3)
  t.eq(r.v:source().steps, 100)
  for _ = 1, 3 do r.press "]" end
  t.eq(r.v:source().steps, 400)
  list[5] = 500
  later(r, 3)
  t.eq(r.v:source().steps, 500, "followed again")
  local still = viewer_rig.new { track(list) }
  still.pass(0.5)
  list[6] = 600
  later(still, 3)
  t.eq(still.v:source().steps, 500, "a checkpoint that was asked for stays")
end)

t.test("a part under the pointer is marked in every panel", function()
  local r = viewer_rig.new { track { 100 } }
  r.pass(0.5)
  for _ = 1, 40 do r.paint() end
  local x, y, spot = viewer_rig.find_spot(function(what) return what.select and what.select.layer end)
  local before = r.picture()
  r.v:pointer("move", x, y, 0, r.clock, r.paint)
  t.eq(r.v.pointed.layer, spot.what.select.layer)
  t.ok(r.v.dirty)
  t.ok(r.picture() ~= before)
  t.eq(r.frame().pointed, r.v.pointed)
  r.v:pointer("move", 1, 1, 0, r.clock, r.paint)
  t.eq(r.v.pointed, nil)
end)

t.test("which rows are marked: the part itself, and the heads of a layer", function()
  local function marked(at, row) return selection.pointed({ pointed = at }, row) end
  local layer, head, group = { layer = 1, word = "layers.1" }, { layer = 1, head = 2, word = "layers.1.head.2" }, { layer = 1, word = "layers.1.channels.0-3" }
  t.ok(marked(head, head)) t.ok(marked({ layer = 1, head = 2 }, head)) t.ok(marked(head, { layer = 1, head = 2 }))
  t.ok(not marked(head, { layer = 1, head = 3 })) t.ok(not marked(head, { layer = 0, head = 2 })) t.ok(not marked(head, layer))
  t.ok(marked(layer, head)) t.ok(marked(layer, group)) t.ok(marked(group, group))
  t.ok(not marked(group, { layer = 1, word = "layers.1.channels.4-7" })) t.ok(not marked(nil, head))
end)

t.test("what is said goes with its reason: found, or another key", function()
  local r = viewer_rig.new { track { 100 } }
  r.pass(0.5)
  r.press "f"
  t.ok(r.v.note:find "looking for a failure")
  r.press "t"
  t.eq(r.v.note, nil) t.eq(r.v.hunting, nil)
  r.press "f"
  r.v:to_failure(1, r.clock)                                          -- as when more episodes are known
  t.ok(r.v.note == nil or r.v.hunting or r.v.note:find "no failure", r.v.note)
end)

t.test("an episode that ends against what 100 episodes say is so by chance", function()
  local effect = background_effect.new(function() return cue_agent.new(16) end, { { kind = "erase", what = "all", at = 3 } }, { episodes = 40, seed = 3 })
  while not effect.done do effect:work(math.huge) end
  t.eq(effect:text():find "chance", nil)
  t.eq(effect.sign, -1)
  t.eq(effect:text(-1):find "chance", nil)
  t.ok(effect:text(1):find "by chance")
end)
