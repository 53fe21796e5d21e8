-- test_why_it_fails.lua -- five agents that fail for five reasons, each known from its weights: the right action is drawn against, the cue fades, is
-- never stored, is stored and not used, is overwritten.  What the pages say is the reason, and holding or erasing agrees.
local t = require "tests.harness"
local causal_map = require "mneme.insight.episodes.causal_map"
local cue_agent = require "tests.support.cue_agent"
local right_actions = require "mneme.envs.right_actions"
local readings_in_words = require "mneme.insight.measure.readings_in_words"
local memory_story = require "mneme.insight.episodes.memory_story"
local readings = require "mneme.insight.measure.readings"
local readings_of_frame = require "mneme.insight.measure.readings_of_frame"
local scene = require "mneme.insight.view.scene"
local viewer = require "mneme.insight.view.viewer"

local EPISODES, READ, SEED, CHANNEL = 64, 128, 12345, "layers.0.channels.0-0"

-- The cue agent, less sure of its actions, with another weight of one kind.
local function agent(kind, num_envs, options)
  local p = cue_agent.new(num_envs, options or { seed = SEED }, kind == "overwritten" and 6 or nil)
  local w = p.agent:state_dict()
  local function set(name, values) for i, v in pairs(values) do w[name]:data()[i] = v end end
  for _, name in ipairs { "actor.1.weight", "actor.1.bias" } do
    for i = 0, w[name]:size() - 1 do w[name]:data()[i] = w[name]:data()[i] / (kind == "drawn" and 14 or 6) end
  end
  if kind == "faded" then
    set("core.layers.0.iz.bias", { [0] = 0.9 })                        -- 0.71 of it is left after each step
    set("actor.0.weight", { [0] = 0.35 })
  elseif kind == "never stored" then set("core.layers.0.iz.weight", { [0] = 0, 0 })
  elseif kind == "not used" then set("actor.0.weight", { [0] = 0.01 })
  elseif kind == "overwritten" then set("core.layers.0.in.weight", { [10] = 12, [11] = -12 }) end          -- by noise, at place 6
  return p
end

local function measured(kind, test)
  local map = causal_map.new(agent(kind, EPISODES), agent(kind, EPISODES), { test = test, seed = SEED, every = 1 })
  map:work()
  local cells = map:cells()
  map:test(cells)
  return { map = map, cells = cells }
end

-- A window that knows the first episodes.
local function window(kind, lost)
  local function open(given) return agent(kind, 1, { seed = 3, seeded = true, episode = given and given.episode }) end
  local v = viewer.new { { source = open(), open = open, scene = scene.load "tmaze" } }
  v.causes = { words = { lost = lost } }
  v:forward()
  v:scout(24, math.huge)
  return v
end

-- How it marks the failures, once readings are there and the maps are told.
local function marks(kind, job, lost)
  local v, count, failed = window(kind, lost), {}, 0
  for _, e in ipairs(v:episodes_of(1)) do
    if e.settle then e.settle(function(frame, fact) return readings_of_frame.answers(job, frame, fact) end) end
    if e.failed then failed, count[e.why or "none"] = failed + 1, (count[e.why or "none"] or 0) + 1 end
  end
  return count, failed
end

local expected = { drawn = { mark = "drawn" }, faded = { mark = "lost", last = { 1, 5 } },
  ["never stored"] = { mark = "lost", why = "The cue was never stored" },
  ["not used"] = { mark = "unused", why = "It is there to the end" }, overwritten = { mark = "lost", last = { 6, 6 }, gone = 7 } }

for kind, is in pairs(expected) do
  t.test(kind .. ": the sentences, the marks of the episodes and the maps give that reason", function()
    local kept = measured(kind, "erase")
    local fails = memory_story.fails(kept.map)
    t.eq(fails, kind ~= "drawn", "more than the draw")
    local wrong, clear = 0, 0
    for _, o in ipairs(kept.map.outcomes) do wrong, clear = wrong + o.wrong, clear + o.clear end
    t.ok(wrong >= 6 and (kind == "drawn") == (clear > 0.8 * wrong), ("%d of %d clearly"):format(clear, wrong))
    local held, job = fails and measured(kind, "hold"), readings.new(agent(kind, READ), { facts = { "cue" }, seed = SEED, every = 1, keep = true })
    job:work()
    local sentences, lost = memory_story.sentences(kept, held, "the cue", function(measure, word) return readings_in_words.why(job, measure, word) end)
    local text = table.concat(sentences, " ")
    t.eq((memory_story.draw(kept.map.outcomes):find "not the memory") ~= nil, kind == "drawn", text)
    t.eq(lost ~= nil, is.last ~= nil, text)
    if lost then
      t.eq(lost.row.word, CHANNEL, text)
      t.ok(lost.last >= is.last[1] and lost.last <= is.last[2] and (not is.gone or lost.gone == is.gone), text)
    end
    if is.why then t.ok(text:find(is.why), text) end
    local count, failed = marks(kind, job, lost)
    t.ok(failed > 1 and (count[is.mark] or 0) >= 0.8 * failed, ("%d failures: %s"):format(failed, require("mneme.base.json").encode(count)))
  end)
end

t.test("each reason has a mark and words of its own", function()
  local seen = {}
  for _, reason in ipairs(right_actions.reasons) do
    t.ok(not seen[reason[3]] and not seen[reason[2]], reason[1])
    seen[reason[3]], seen[reason[2]] = true, true
  end
end)

t.test("where readings cannot be made, the legend of the failures and the panel say why", function()
  local v = window "not used"
  for _, is in ipairs { { nil, "readings are fitted on other episodes of a run" }, { "runs/none", "no such run" } } do
    local now = setmetatable({ run = is[1] }, { __index = function(_, key) return key ~= "run" and v:frame(1)[key] or nil end })
    local unfinished, problem = readings_of_frame.settle(now, v:episodes_of(1))
    local job, why = readings_of_frame.job(now)
    local marked, legend = v:strip(problem)
    t.eq(unfinished, nil)
    t.eq(job, nil)
    t.eq(why, problem)
    t.eq(#marked, #v:episodes_of(1))
    t.ok(legend:find(problem, 1, true) and problem:find(is[2], 1, true), legend)
  end
end)
