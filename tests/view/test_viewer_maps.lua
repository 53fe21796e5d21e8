-- test_viewer_maps.lua -- the map of the memory in a window, without one: it fills while the window is idle, its cells open episodes, and a
-- stored one is shown at once.
local t = require "tests.harness"
local mn = require "mneme"
local scene = require "mneme.insight.view.scene"
local scene_rig = require "tests.support.scene_rig"
local viewer_rig = require "tests.support.viewer_rig"
local background_map = require "mneme.insight.view.background_map"
local causal_map = require "mneme.insight.episodes.causal_map"
local cue_agent = require "tests.support.cue_agent"
local engine = require "mneme.base.engine"

local rig, find_spot = viewer_rig.new, viewer_rig.find_spot

local function small_map() return causal_map.new(cue_agent.new(12), cue_agent.new(12), { seed = 7, every = 5 }) end

local function cue_track(name, opened)
  local function open(given)
    if given == "checkpoints" then return {} end
    local source = cue_agent.new(1, { seed = 5, seeded = true, episode = given.episode, title = "made by hand" })
    source.steps = 100
    return source
  end
  return { source = open {}, scene = scene.load(name), open = open, map = function(step)
    opened[#opened + 1] = step
    return small_map()
  end }
end

-- Refreshes of a window, until f says so.
local function refresh(r, f)
  for _ = 1, 3000 do
    r.clock = r.clock + 0.02
    r.v:tick(r.clock, engine.C.mn_clock(false) + 0.004)
    r.draw()
    if f() then return end
  end
  error "it does not come"
end

t.test("the map fills while the window is idle, of the shown checkpoint, and is the one that is measured at once", function()
  local opened, whole = {}, small_map()
  local r, filled = rig { cue_track("where", opened) }, {}
  refresh(r, function()
    local state = r.v.causes.state
    if state then filled[state.map:progress()] = true end
    return state and state.test
  end)
  t.eq(#opened, 1) t.eq(opened[1], 100)
  t.ok(next(filled) ~= nil, "it is drawn")               -- a fast machine may fill it in one refresh
  whole:work()
  local cells = whole:cells()
  whole:test(cells)
  t.eq(mn.json.encode(r.v.causes.state.cells), mn.json.encode(cells))
  t.ok(not r.v.causes:work(100, r.clock, math.huge), "nothing is left to do")
end)

t.test("a scene without the panel costs nothing", function()
  local opened = {}
  local r = rig { cue_track("memory_maze", opened) }
  for _ = 1, 20 do
    r.clock = r.clock + 0.02
    r.v:tick(r.clock, engine.C.mn_clock(false) + 0.002)
    r.draw()
  end
  t.eq(#opened, 0)
end)

t.test("a click on a cell opens that episode without and with the part erased, and another click another one", function()
  local r = rig { cue_track("where", {}) }
  refresh(r, function() return r.v.causes.state and r.v.causes.state.test end)
  local function erase(word, at)
    local x, y = find_spot(function(what) return what.erase == word and what.at == at end)
    r.click(x, y)
    r.draw()
  end
  erase("layers.0.channels.0-0", 6)
  t.eq(#r.v.tracks, 2) t.eq(r.v:tick_of(1).step, 6)
  t.eq(r.v.tracks[2].name, "erase layers.0.channels.0-0 at step 6")
  t.eq(r.frame().erased.at, 6)
  r.v:look_ahead()
  local function played(k)                          -- the memory of the cue at the end, as it was and erased
    local line = r.v.tracks[k].timeline
    return line:frame(line:stop(r.v.slots[r.v.at][k])).memory["layers.0.h"].values[0]
  end
  t.ok(math.abs(played(1)) > 0.9 and math.abs(played(2)) < 0.1, "the cue is erased in the second one alone")
  erase("layers.0.channels.1-1", 1)
  t.eq(#r.v.tracks, 2) t.eq(r.v.tracks[2].name, "erase layers.0.channels.1-1 at step 1")
  r.v:look_ahead()
  t.ok(math.abs(played(2)) > 0.9)
  r.press "c"
  t.eq(#r.v.tracks, 1)
  t.eq(r.frame().erased, nil)
end)

t.test("a map that was stored is shown at once, complete, also in a picture", function()
  local stored = cue_track("where", {})
  stored.map = function()
    local map = small_map()
    map:work()
    return map
  end
  local r = rig { stored }
  r.pass(0.2)
  r.draw()
  t.eq(r.v.causes.state, nil)
  t.ok(r.v:measure())
  t.ok(r.v.causes.state.test)
  t.ok(not r.v:measure())
end)

t.test("of three agents each page has its stored map, and the last quarter says what the maps say", function()
  local tracks = {}
  for k = 1, 3 do
    tracks[k] = cue_track("compact", {})
    tracks[k].name, tracks[k].stored, tracks[k].map = "agent " .. k, true, function()
      local map = small_map()
      if k < 3 then map:work() end                             -- of the third one nothing is stored: it is not measured unasked
      return map
    end
  end
  local r = rig(tracks, { controls = false })
  r.pass(0.2)
  r.v:measure()
  for k = 1, 3 do t.eq(r.v:causes_of(k):known() ~= nil, k < 3, "agent " .. k) end
  r.draw()
  local said = {}
  for _, box in ipairs(scene_rig.text_boxes(viewer_rig.painter)) do
    if box.x0 > 640 and box.y0 > 400 then said[#said + 1] = box.text end
  end
  said = table.concat(said, " ")
  t.ok(said:find("what their maps say", 1, true) and said:find "agent 1: Layer 0.* holds .*agent 2: .* holds .*agent 3: no map is stored", said)
end)

t.test("while an agent is trained the newest checkpoint is measured, and a complete map stays until the next is complete", function()
  local steps, opened, clock = {}, {}, 0
  local map = background_map.new(function(step)
    opened[#opened + 1] = step
    local one = small_map()
    one.carrier.steps = step
    return one
  end, function() return steps end)
  local function work(seconds)
    clock = clock + 3
    return map:work(nil, clock, engine.C.mn_clock(false) + seconds)
  end
  t.ok(not work(1), "no panel shows it")
  t.eq(map:show(), nil)
  work(1)
  t.eq(#opened, 0)
  t.ok(select(2, map:show()):find "first checkpoint")
  steps[1] = 500
  work(60)
  t.eq(map:show().map.carrier.steps, 500)
  t.ok(map:show().test)
  steps[2] = 900
  work(0)
  work(0)
  t.eq(map:show().map.carrier.steps, 500)
  work(60)
  t.eq(map:show().map.carrier.steps, 900)
  t.eq(#opened, 2)
end)
