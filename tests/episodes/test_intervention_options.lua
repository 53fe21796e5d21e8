-- test_intervention_options.lua -- operating in the window: all that its menu offers, on every core; before the step both agents are
-- the same, bit for bit, afterwards only what was changed is another; what is closed is as it was; what is written is
-- lived through again, and is what `mneme intervene` does.
local lfs = require "lfs"
local t = require "tests.harness"
local contract_rig = require "mneme.models.contract_rig"
local random_stepper = require "tests.support.random_stepper"
local registry = require "mneme.base.registry"
local state_arrays = require "mneme.models.state_arrays"
local npz_reader = require "tests.support.npz_reader"
local paired_episodes = require "mneme.insight.episodes.paired_episodes"
local interventions = require "mneme.insight.episodes.interventions"
local mn = require "mneme"
local intervention_options = require "mneme.insight.episodes.intervention_options"
local stepper = require "mneme.insight.episodes.stepper"
local frame_text = require "tests.support.frame_text"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local viewer_rig = require "tests.support.viewer_rig"

local folder = shell.folder()
local LEFT, RIGHT, HOME, END, PAGE_DOWN, ESCAPE = 256, 257, 260, 261, 262, 27

-- An agent that has not learnt; the same each time.
local function agent(core, options)
  options = options or {}
  local env = mn.env(options.env or "tmaze", { time_limit = options.time_limit or 40, num_envs = 1 })
  local made = type(core) == "string" and contract_rig.fresh({ core }, 3, { d_in = 16 }) or core
  mn.manual_seed(5)
  return stepper.new(env, mn.agent { env = env, core = made, hidden = 8 }, { seed = 7, seeded = not options.plain, title = "an agent" })
end

local AGALITE = { "agalite", d_model = 8, n_layers = 2, n_heads = 2, d_head = 4, d_ffn = 8 }

-- A window on such an agent, at a step of its second episode.
local function window(core, step, options)
  local r = viewer_rig.new { { source = agent(core, options), scene = scene.load "world", open = function(given)
    return given == "checkpoints" and {} or agent(core, options)
  end } }
  r.press " "
  r.pass(0.1)
  r.v:to_episode(1)
  for _ = 1, step do r.press(RIGHT) end
  t.eq(r.frame().step, step)
  return r
end

local function prints(r, k, from, to)
  local list = {}
  for at = from, to do list[at] = frame_text(r.v.tracks[k].timeline:frame(r.v.slots[at][k])) end
  return list
end

local function forget(line) line.frames, line.bytes = {}, 0 end

-- Every operation that a menu offers: the same before the step, shown beside it, and gone when it is closed.
local function sweep(r, selection)
  r.v.selection = selection
  local from, at = (r.v:episode()), r.v.at
  for _ = 1, 2 do r.v:forward() end
  local to = r.v.at
  r.v:seek(at)
  local was, offered = prints(r, 1, from, to), {}
  r.press "i"
  if not r.v.menu then return offered end
  local entries = r.v.menu.entries
  r.press(ESCAPE)
  for _, entry in ipairs(entries) do
    r.press "i"
    r.press(entry.key)
    offered[#offered + 1] = entry.text
    if #r.v.tracks == 1 then
      t.ok(r.frame().status.note:find "not possible in the present state", entry.text .. ": " .. tostring(r.frame().status.note))
    else
      local op = entry.option.specs[1].kind
      local other = r.v.tracks[2].timeline
      forget(other)
      for k = from, at - 1 do
        t.eq(frame_text(other:frame(r.v.slots[k][2])) == was[k], true, ("%s: frame %d before it is another"):format(entry.text, k))
      end
      for _ = 1, 2 do r.v:forward() end
      if op == "force" then
        local spec = entry.option.specs[1]
        local frame = other:frame(r.v.slots[at][2])
        local array = frame.probes[(spec.what:gsub("%.head%.%d+", ""))]
        local held = 0
        for i = 0, array and state_arrays.size(array.shape) - 1 or -1 do held = held + (array.values[i] == spec.to and 1 or 0) end
        t.ok(held > 0, entry.text .. ": nothing is held")
      end
      r.press "c"
    end
    t.eq(#r.v.tracks, 1)
    forget(r.v.tracks[1].timeline)
    r.v:seek(at)
    local now = prints(r, 1, from, to)
    for k = from, to do t.eq(now[k] == was[k], true, ("%s: closed, frame %d is not as it was"):format(entry.text, k)) end
  end
  return offered
end

for _, name in ipairs(registry.names "cores") do
  t.test("core " .. name .. ": all that the menu offers is done, beside what happened", function()
    local r = window(name, 4)
    local texts = table.concat(sweep(r, {}), "|")
    local has_memory = next(r.v:source().agent.core.states) ~= nil
    t.eq(texts:find "erase all" ~= nil, has_memory, texts)
    t.eq(texts:find "swap all with another episode" ~= nil, has_memory, texts)
    for _, kind in ipairs(r.frame().gates) do              -- what is only shown cannot be held
      local can_be_held = false
      for probe in pairs(r.frame().probes) do
        local _, of = state_arrays.parse(probe)
        can_be_held = can_be_held or (of == kind and pcall(interventions.probe, r.v:source(), probe))
      end
      for _, pattern in ipairs { "freeze [%w.]*%f[%w]" .. kind, "force [%w.]*%f[%w]" .. kind .. "[%w ]* to 0",
        "force [%w.]*%f[%w]" .. kind .. "[%w ]* to 1" } do
        t.eq(texts:find(pattern) ~= nil, can_be_held, pattern .. " in " .. texts)
      end
    end
    t.ok(texts:find "set cue to", texts)
    t.ok(texts:find "shift position by 1", texts)
  end)
end

t.test("a layer, a head, a head of every layer: what is in selection is what is changed", function()
  local r = window(AGALITE, 4)
  local texts = table.concat(sweep(r, { layer = 1 }), "|")
  t.ok(texts:find "^erase layers.1|hold layers.1|swap layers.1 with another" and texts:find "force layers.1.beta to 0", texts)
  texts = table.concat(sweep(r, { layer = 1, head = 0 }), "|")
  t.ok(texts:find "^erase layers.1.head.0|hold layers.1.head.0|" and texts:find "freeze layers.1.head.0.gamma", texts)
  texts = table.concat(sweep(r, { head = 1 }), "|")
  t.ok(texts:find "^erase head 1 of every layer|hold head 1 of every layer|" and texts:find "force beta of head 1 of every layer to 1", texts)
end)

t.test("positions in a plane are shifted along both axes; numbers by a part of their range", function()
  local function offered(id, core)
    local r = window(core or { "gru", d_model = 4 }, 2, { env = id })
    r.press "i"
    local texts = {}
    for i, entry in ipairs(r.v.menu.entries) do texts[i] = entry.text end
    return table.concat(texts, "|")
  end
  local text = offered "gridworld"
  t.ok(text:find "flip right" and (text:find "shift x by 1" or text:find "shift x by %-1") and text:find "shift y by", text)
  text = offered "noisy_cartpole"
  t.ok(text:find "shift angle by 0.0209" and text:find "shift x_dot by %-1", text)
end)

t.test("what a window shows is what mneme intervene does", function()
  for _, case in ipairs { { AGALITE, "erase", "layers.1.head.0" }, { AGALITE, "force", "layers.0.beta", 1 }, { AGALITE, "freeze", "layers.0.gamma" },
    { { "rmt" }, "erase", "all" }, { { "gtrxl" }, "erase", "all" }, { AGALITE, "set", "cue", "up" }, { AGALITE, "flip", "cue" } } do
    local core, spec = case[1], { kind = case[2], what = case[3], to = case[4] }
    local r = window(core[1] == "agalite" and core or core[1], 4)
    if not r.v:intervene({ text = "it", specs = { spec } }, nil, r.clock) then
      t.ok(r.v.note:find "not possible", r.v.note)                                -- the cue is up already
    else
      local p = agent(core[1] == "agalite" and core or core[1], { plain = true })
      spec.at = 4
      local list = interventions.new(p, { spec })
      for arm = 1, 2 do
        local where, line = ("%s/arm-%d"):format(folder, arm), r.v.tracks[arm].timeline
        paired_episodes.round(p, list, { seed = 8, act = arm == 2, most = 1, folder = where, first = 1 })
        local b, first = npz_reader(where .. "/episode-1.npz"), line.ticks[r.v.slots[r.v.at][arm]].start
        line:ahead(first, math.huge)
        t.eq(line:frame(line:stop(first)).outcome.length, b.rewards.shape[1])
        for k = 0, b.rewards.shape[1] - 1 do
          t.eq(line:frame(first + k).action, b.actions.values[k])
          t.eq(line:frame(first + k + 1).reward, b.rewards.values[k])
        end
      end
    end
  end
end)

t.test("a gate is held for so many steps, and let go wherever one comes from", function()
  local r = window({ "galite", d_model = 8, n_layers = 1, n_heads = 2, d_head = 4 }, 3)
  local function beta(at)
    local array, sum = r.v.tracks[2].timeline:frame(r.v.slots[at][2]).probes["layers.0.beta"], 0
    for i = 0, 7 do sum = sum + array.values[i] end
    return sum
  end
  local at = r.v.at
  t.ok(r.v:intervene({ text = "it", specs = { { kind = "force", what = "layers.0.beta", to = 1 } } }, 6, r.clock))
  for _ = 1, 9 do r.v:forward() end
  for k = 0, 9 do t.eq(beta(at + k) == 8, k < 6, "step " .. k) end
  local line = r.v.tracks[2].timeline
  for k = 9, 0, -1 do
    forget(line)
    t.eq(beta(at + k) == 8, k < 6, "lived through again, step " .. k)
  end
  r.v:seek(at + 2)
  t.ok(r.v:intervene({ text = "it", specs = { { kind = "force", what = "layers.0.head.1.beta", to = 0 } } }, 8, r.clock))
  for _ = 1, 10 do r.v:forward() end
  for k = 0, 11 do
    local sum, want = beta(at + k), k < 2 and 8 or k < 6 and 4
    if want then t.eq(sum, want, "step " .. k) else t.ok(sum ~= 4 and sum ~= 8, "step " .. k) end
    local array = line.frames and r.v.tracks[2].timeline:frame(r.v.slots[at + k][2]).probes["layers.0.beta"]
    t.eq(array.values[7] == 0, k >= 2 and k < 10, "what was done last is let go last, step " .. k)
  end
end)

t.test("moments in the midst of what is held: after those it is held as it was, and let go when it was", function()
  local core = { "galite", d_model = 8, n_layers = 1, n_heads = 2, d_head = 4 }
  for _, case in ipairs { { "force", 60, 1 }, { "freeze", 63 }, { "freeze", 60 } } do
    local r = window(core, case[2], { time_limit = 100 })
    local at, was = r.v.at, {}
    t.ok(r.v:intervene({ text = "it", specs = { { kind = case[1], what = "layers.0.beta", to = case[3] } } }, 8, r.clock))
    for _ = 1, 14 do r.v:forward() end
    local line = r.v.tracks[2].timeline
    local inside = 0
    for _, moment in ipairs(line.moments) do
      inside = inside + (line.ticks[moment.i].episode == 1 and line.ticks[moment.i].step == 64 and 1 or 0)
    end
    t.eq(inside, 1, "a moment in step 64")
    for k = 0, 14 do was[k] = frame_text(line:frame(r.v.slots[at + k][2])) end
    t.ok(line.ticks[64].episode == 0 and line.ticks[64].step == 63)
    for _, k in ipairs { 14, 12, 5, 4, 3, 0, 8 } do
      forget(line)
      line:frame(64)                                    -- the plan's rows hold something else
      t.eq(frame_text(line:frame(r.v.slots[at + k][2])) == was[k], true, ("%s in step %d: step %d"):format(case[1], case[2], case[2] + k))
    end
  end
end)

t.test("what is held ends with its episode", function()
  local r = window({ "galite", d_model = 8, n_layers = 1, n_heads = 2, d_head = 4 }, 3)
  t.ok(r.v:intervene({ text = "it", specs = { { kind = "force", what = "layers.0.beta", to = 1 } } }, nil, r.clock))
  t.ok(frame_text(r.v:frame(1)) ~= frame_text(r.v:frame(2)))
  r.v:look_ahead(math.huge)
  r.press(END)
  r.press(PAGE_DOWN)
  t.eq(r.v:frame(1).step, 0) t.eq(r.v:frame(2).step, 0)
  local a, b = r.v:frame(1).probes["layers.0.beta"].values, r.v:frame(2).probes["layers.0.beta"].values
  for i = 0, 7 do t.near(a[i], b[i], 1e-6) end
  forget(r.v.tracks[2].timeline)
  b = r.v:frame(2).probes["layers.0.beta"].values
  for i = 0, 7 do t.near(a[i], b[i], 1e-6) end
end)

t.test("one change after another in the same story; x goes on with it, and more can be changed", function()
  local r = window(AGALITE, 2)
  local function erase(what) return r.v:intervene({ text = "erase " .. what, specs = { { kind = "erase", what = what } } }, nil, r.clock) end
  t.ok(erase "layers.0")
  r.press(RIGHT) r.press(RIGHT)
  t.ok(erase "layers.1")
  t.eq(r.v.tracks[2].name, "erase layers.0 at step 2, erase layers.1 at step 4")
  for _ = 1, 2 do r.press(RIGHT) end
  local fifth = frame_text(r.v:frame(2))
  r.press "x"
  t.eq(#r.v.tracks, 1) t.eq(frame_text(r.v:frame(1)) == fifth, true)
  forget(r.v.tracks[1].timeline)
  t.eq(frame_text(r.v:frame(1)) == fifth, true, "it is done again")
  t.ok(erase "all")
  t.eq(r.v.tracks[1].name, "as it was")
  local line = r.v.tracks[2].timeline
  local now = r.v.slots[r.v.at][2]
  forget(line)
  t.eq(frame_text(line:frame(now - 1)) == frame_text(r.v.tracks[1].timeline:frame(now - 1)), true,
    "what was changed before is changed in both")
  t.ok(frame_text(line:frame(now)) ~= fifth)
  r.press "c"
  forget(r.v.tracks[1].timeline)
  t.eq(frame_text(r.v:frame(1)) == fifth, true)
end)

t.test("the bar says how far apart both are, and the menu is clicked", function()
  local r = window(AGALITE, 3)
  r.draw()
  r.click(viewer_rig.spot_of_key "i")
  t.ok(r.v.menu and r.v.menu.title:find "intervene at step 3")
  r.draw()
  r.click(5, 5)
  t.eq(r.v.menu, nil, "a click beside it closes it")
  r.press "i"
  r.press "0" r.press "0"
  t.eq(r.v.menu:steps(), 2)
  t.eq(r.press "q", nil, "q closes the menu, not the window")
  r.press "i"
  t.eq(r.v.menu:steps(), 2, "how long is kept")
  r.draw()
  r.click(viewer_rig.spot_of_key "1")
  t.eq(#r.v.tracks, 2) t.eq(r.v.menu, nil)
  r.draw()
  local divergence = require "mneme.insight.episodes.divergence"
  local text, since = divergence(r.v:frame(1), r.v:frame(2))
  t.ok(since == 3 and text:find "^differ since step 3: value [+−]", text)
  r.press(LEFT)
  t.eq(divergence(r.v:frame(1), r.v:frame(2)), "identical so far")
  r.v:look_ahead(math.huge)
  r.press(END)
  t.ok(divergence(r.v:frame(1), r.v:frame(2)):find "^differ since step 3: .*return")
  r.press(HOME)
  r.draw()
end)

t.test("where nothing can be changed a note says why, and nothing breaks", function()
  local function note_of(r, pattern)
    r.press "i"
    t.eq(r.v.menu, nil)
    t.ok(r.frame().status.note:find(pattern), r.frame().status.note)
    r.v.note = nil
    t.eq(r.v:intervene({ text = "erase", specs = { { kind = "erase", what = "all" } } }, nil, r.clock), nil)
    t.ok(r.frame().status.note:find(pattern), r.frame().status.note)
  end
  local snapshots = random_stepper.new { corridor = 4 }
  local live = viewer_rig.new { { source = { live = true, state = function() return "running" end, next = function() return snapshots:next() end },
    scene = scene.load "tmaze", open = function() return random_stepper.new {} end } }
  live.pass(1)
  note_of(live, "still training")
  local r = window(AGALITE, 3)
  r.v:look_ahead(math.huge)
  r.press(END)
  note_of(r, "episode has ended")
  local pair = viewer_rig.new { { source = agent(AGALITE), scene = scene.load "world", open = function() return agent(AGALITE) end },
    { source = agent { "gru", d_model = 4 }, scene = scene.load "world" } }
  pair.pass(0.3)
  note_of(pair, "several agents are shown: close the others")
  local nothing = viewer_rig.new { { source = agent({ "feedforward", d_model = 4 }, { env = "associative_recall" }), scene = scene.load "world",
    open = function() return agent({ "feedforward", d_model = 4 }, { env = "associative_recall" }) end } }
  nothing.pass(0.3)
  nothing.press "i"
  t.eq(nothing.v.menu, nil)
  t.eq(nothing.v.note, "this agent and environment have nothing to intervene on")
  r = window(AGALITE, 3)
  t.eq(r.v:intervene({ text = "erase layers.9", specs = { { kind = "erase", what = "layers.9" } } }, nil, r.clock), nil)
  t.ok(r.v.note:find "unknown part of the memory", r.v.note)
  t.eq(r.v:intervene({ text = "set position", specs = { { kind = "set", what = "position", to = 200 } } }, nil, r.clock), nil)
  t.ok(r.v.note:find "not possible in the present state", r.v.note)
  t.eq(#r.v.tracks, 1)
  t.ok(r.v:intervene({ text = "erase all", specs = { { kind = "erase", what = "all" } } }, nil, r.clock))
  local name, second = r.v.tracks[2].name, frame_text(r.v:frame(2))
  t.eq(r.v:intervene({ text = "set position", specs = { { kind = "set", what = "position", to = 200 } } }, nil, r.clock), nil)
  t.eq(r.v.tracks[2].name, name)
  forget(r.v.tracks[2].timeline)
  t.eq(frame_text(r.v:frame(2)) == second, true, "what was not to be changed nothing")
end)

t.test("the command line: shown from the step on, refused where it makes no sense", function()
  local view, parsed = require "mneme.commands.view", require "tests.support.parsed"
  local o = view.prepare(parsed(view, { "RUN", "erase=layers.0.head.1", "force=layers.0.beta:0", "at=4", "for=3" }))
  t.eq(o.list[1].at, 4) t.eq(o.list[2].steps, 3) t.eq(o["for"], 3)
  t.eq(intervention_options.of(o.list).text, "erase layers.0.head.1, force layers.0.beta to 0")
  local function refuse(pattern, ...)
    local given = { ... }
    t.raises(function() view.prepare(parsed(view, given)) end, pattern)
  end
  refuse("at which step", "RUN", "erase=all")
  refuse("for=3 goes with force, freeze and hold, not with erase", "RUN", "erase=all", "at=3", "for=3")
  refuse("for=3 goes with force, freeze and hold, not with nothing", "RUN", "at=3", "for=3")
  refuse("side by side cannot be changed", "RUN", "OTHER", "erase=all", "at=3")
  refuse("unknown setting of view 'erased'; did you mean 'erase'", "RUN", "erased=all")
  local r = viewer_rig.new({ { source = agent(AGALITE), scene = scene.load "world", open = function() return agent(AGALITE) end } },
    { controls = false })
  o = { list = { { kind = "erase", what = "all" } }, at = 400, episodes = 1, out = folder .. "/a.png", kind = "png", width = 640, height = 480 }
  t.fails(function() view.intervene(r.v, o) end)
  r.v:seek(1)
  o.at = 3
  view.intervene(r.v, o)
  t.eq(r.v:frame(2).step, 3)
  t.ok(select(2, r.v:page()).title:find "^as it was")
  view.export(r.v, o)
  t.ok(r.v:ended() and lfs.attributes(o.out, "size") > 5000)
  local text, status = shell.mneme(folder, "view tmaze erase=layers.7 at=3 out=a.png")
  t.ok(status == 1 and text:find "unknown part of the memory", text)
end)

os.execute("rm -r '" .. folder .. "'")
