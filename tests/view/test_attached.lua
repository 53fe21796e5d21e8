-- test_attached.lua -- a window on a run that somebody else trains follows its newest checkpoint; a part under the pointer is marked in every panel; what
-- is said goes with its reason.
local t = require "tests.harness"
local background_effect = require "mneme.insight.view.background_effect"
local cue_agent = require "tests.support.cue_agent"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local scene = require "mneme.insight.view.scene"
local selection = require "mneme.insight.view.selection"
local stepper = require "mneme.insight.episodes.stepper"
local tables = require "mneme.base.tables"
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

for _, name in ipairs { "mind", "memory", "tmaze", "where" } do
  t.test(name .. ": a head under the pointer is framed in all panels that have it, and no other head is", function()
    local function open(given)
      if given == "checkpoints" then return {} end
      local core = { "agalite", n_layers = 2, d_model = 16, n_heads = 2, d_head = 8, d_ffn = 16 }
      return stepper.fresh { env = { "tmaze", corridor = 4 }, core = core, seed = 3, seeded = true, episode = given.episode }
    end
    local one = { source = open {}, open = open, scene = scene.load(name) }
    if name == "where" then                             -- a map by name: what panels show of one is tested elsewhere
      local function agent()
        local core = { "agalite", n_layers = 2, d_model = 16, n_heads = 2, d_head = 8, d_ffn = 16 }
        local env = mn.env("tmaze", { corridor = 4, num_envs = 8, time_limit = 9 })
        return stepper.new(env, mn.agent { env = env, core = core, hidden = 8 }, { seed = 3 })
      end
      one.source.steps = 100
      one.map = function() return mn.causal_map(agent(), agent(), { seed = 3, measure = "return", every = 2 }) end
    end
    local r = viewer_rig.new { one }
    r.pass(0.4)
    r.press " "
    local before
    for _ = 1, 400 do                                   -- until all that is computed meanwhile is there
      local now = r.picture()
      if now == before and (not one.map or r.v.causes.state and r.v.causes.state.whole) then break end
      before = now
      later(r, 0.05)
    end
    t.ok(before == r.picture(), "the page is still")
    local view, heads, after, W = viewer_rig.painter.view, {}, nil, viewer_rig.width
    for i = 1, view.n_spots do
      local s = view.spots[i]
      local at = s.what.select or s.what.part
      if at and at.layer and at.head then
        heads[#heads + 1] = { x = s.x, y = s.y, w = s.w, h = s.h, layer = at.layer, head = at.head, select = s.what.select }
      end
    end
    t.ok(#heads >= 8, #heads .. " places of heads")
    local function changed(x, y)                        -- near there
      for dy = -2, 2 do
        for dx = -2, 2 do
          local at = 4 * ((math.floor(y) + dy) * W + math.floor(x) + dx)
          if after:sub(at + 1, at + 3) ~= before:sub(at + 1, at + 3) then return true end
        end
      end
    end
    local done = {}
    for _, pointed in ipairs(heads) do
      local which = pointed.layer .. "." .. pointed.head
      if not done[which] then
        done[which] = true
        r.v:pointer("move", pointed.x + pointed.w / 2, pointed.y + pointed.h / 2, 0, r.clock, r.paint)
        r.v.hover = nil                                 -- no tip over other panels
        after = r.picture()
        for _, s in ipairs(heads) do
          local ends = changed(s.x + s.w / 2, s.y) and changed(s.x + s.w / 2, s.y + s.h)
          local sides = changed(s.x, s.y + s.h / 2) and changed(s.x + s.w, s.y + s.h / 2)
          local where_at = ("layer %d, head %d at %g, %g"):format(s.layer, s.head, s.x, s.y)
          if s.layer == pointed.layer and s.head == pointed.head then t.ok(ends and (sides or not s.select), where_at)
          else t.ok(not (ends and sides), where_at .. " is framed, too") end
        end
      end
    end
    t.eq(#tables.keys(done), 4)
  end)
end

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
