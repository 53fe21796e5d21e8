-- test_timeline.lua -- going back in time: whatever frame is asked for, in whatever order, is the one that was seen;
-- for every core; and what a change does begins where it should, and nowhere before.
local t = require "tests.harness"
local random_stepper = require "tests.support.random_stepper"
local registry = require "mneme.base.registry"
local mn = require "mneme"
local playback = require "mneme.insight.episodes.playback"
local stepper = require "mneme.insight.episodes.stepper"
local frame_text = require "tests.support.frame_text"
local contract_rig = require "mneme.models.contract_rig"
local timeline = require "mneme.insight.episodes.timeline"

-- A small agent that has not learnt; the same each time.
local function source_of(core, options)
  local env = mn.env("tmaze", { corridor = 5, time_limit = 40, num_envs = 1 })
  local made = type(core) == "string" and contract_rig.fresh({ core }, 3, { d_in = 16 }) or mn.core(core)
  options = options or {}
  options.seed, options.seeded = 7, true
  return stepper.new(env, mn.agent { env = env, core = made, hidden = 8 }, options)
end

-- Forget all frames that are kept, so that they must be lived through.
local function forget(line) line.frames, line.bytes = {}, 0 end

for _, name in ipairs(registry.names "cores") do
  t.test("core " .. name .. ": every frame comes back as it was, in any order", function()
    local line, seen = timeline.new(source_of(name)), {}
    for i = 1, 150 do
      t.ok(line:extend())
      seen[i] = frame_text(line:frame(i))
    end
    for _, i in ipairs { 150, 1, 64, 65, 66, 129, 2, 149, 90, 91, 92, 40 } do
      forget(line)
      local frame = line:frame(i)
      t.ok(frame, "frame " .. i)
      t.eq(frame_text(frame) == seen[i], true, ("frame %d is the one that was seen"):format(i))
    end
    forget(line)
    t.ok(line:extend() and line.n == 151)
  end)
end

t.test("an episode's world and draws depend on its number alone", function()
  local line, other = timeline.new(source_of "gru"), timeline.new(source_of("gru", { episode = 2 }))
  while line.ticks[line.n] == nil or line.ticks[line.n].episode < 3 do line:extend() end
  local from
  for i = line.n, 1, -1 do if line.ticks[i].episode == 2 then from = line.ticks[i].start end end
  for k = 1, 5 do
    other:extend()
    local a, b = line:frame(from + k - 1), other:frame(k)
    t.eq(a.action, b.action) t.near(a.value, b.value, 1e-6)
    for i = 0, 15 do t.eq(a.observation.values[i], b.observation.values[i]) end
  end
end)

t.test("a change begins at its frame, in the one that forks and not in the other", function()
  local line = timeline.new(source_of "gru")
  for _ = 1, 20 do line:extend() end
  local seen = {}
  for i = 1, 20 do seen[i] = frame_text(line:frame(i)) end
  local other = line:fork(source_of "gru")
  other:edit(9, function(source)
    return function(_, at)
      if at ~= 9 then return end
      source:restart_plan()
      source.state["layers.0.h"]:fill(0)
    end
  end, "erase h")
  t.eq(other.n, 9) t.eq(other.marks[9], "erase h")
  t.ok(frame_text(other:frame(9)) ~= seen[9])
  for _ = 1, 11 do other:extend() end
  for _, i in ipairs { 8, 3, 1, 7 } do
    forget(other)
    t.eq(frame_text(other:frame(i)) == seen[i], true)
  end
  forget(other)
  local ninth = frame_text(other:frame(9))
  forget(other)
  other:frame(15)
  t.eq(frame_text(other:frame(9)) == ninth, true, "done again where it is lived through again")
  for i = 1, 20 do t.eq(frame_text(line:frame(i)) == seen[i], true, "the other is as it was") end
end)

t.test("of a source that cannot go back the newest frames stay", function()
  local line = timeline.new(random_stepper.new { core = "galite", corridor = 60 })
  for _ = 1, 140 do line:extend() end
  t.ok(line.first > 1 and line.bytes <= 128e6)
  t.eq(line:frame(line.first - 1), nil)
  t.eq(line:frame(140).step, line.ticks[140].step)
  t.ok(line:frame(line.first))
end)

t.test("the frame that was played to is at hand, though none before it was drawn", function()
  local p = playback.new { { source = source_of { "galite", d_in = 16, d_model = 16 } } }
  for _ = 1, 300 do p:forward() end
  t.ok(not p.tracks[1].timeline:has(2), "some were given up")
  t.ok(p.tracks[1].timeline:has(p.slots[p.at][1]))
end)

t.test("frames far from what is looked at go, and come back", function()
  local line = timeline.new(source_of { "galite", d_in = 16, d_model = 16 })
  for _ = 1, 300 do line:extend() end
  t.ok(line.bytes <= 128e6)
  local there = 0
  for i = 1, 300 do there = there + (line:has(i) and 1 or 0) end
  t.ok(there < 290, there .. " frames are kept")
  local one = frame_text(line:frame(40))
  forget(line)
  t.eq(frame_text(line:frame(40)) == one, true)
end)

for _, name in ipairs(mn.names "cores") do
  t.test(name .. ": an episode of a seeded stepper is the same whatever came before it, and so is its memory, clocks included", function()
    mn.manual_seed(4)
    local agent = mn.agent { env = mn.env("tmaze", { corridor = 2 }), core = name, hidden = 8 }
    local function open(episode)
      return mn.stepper.new(mn.env("tmaze", { corridor = 2, num_envs = 1, time_limit = 9 }), agent, { seed = 3, seeded = true, episode = episode })
    end
    if agent.core.config.reset == false then return t.eq(name, "delta_released", "what else keeps its memory over episodes") end
    local later, direct = open(0), open(2)
    local now
    repeat now = later:next() until now.episode == 2
    for _ = 1, 3 do
      local other = direct:next()
      t.eq(now.value, other.value)
      for key, array in pairs(now.memory) do
        for i = 0, require("mneme.models.state_arrays").size(array.shape) - 1 do t.eq(array.values[i], other.memory[key].values[i], key) end
      end
      now = later:next()
      if now.episode ~= 2 then break end
    end
  end)
end
