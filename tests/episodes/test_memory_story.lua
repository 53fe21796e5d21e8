-- test_memory_story.lua -- which part lost the cue, and when, in words: right for agents of four cores whose memory was damaged in a known
-- part at a known step; and where it cannot be decided, it says so.
local t = require "tests.harness"
local causal_map = require "mneme.episodes.causal_map"
local cue_agent = require "tests.support.cue_agent"
local damaged_agent = require "tests.support.damaged_agent"
local in_words = require "mneme.measure.readings_in_words"
local learn = require "tests.support.learn_rig"
local memory_story = require "mneme.episodes.memory_story"
local mn = require "mneme"
local readings = require "mneme.measure.readings"

local EPISODES, READ, SEED = 32, 128, 12345

-- What is said of an agent: sentences as one text, what was lost, the maps of erasing and of holding (unless it solves the task).
local function told(agent, solves)
  local function measured(test)
    local map = causal_map.new(agent(), agent(), { test = test, measure = "success", seed = SEED, every = 1 })
    map:work()
    local cells = map:cells()
    map:test(cells)
    return { map = map, cells = cells }
  end
  local kept, held = measured "erase", not solves and measured "hold" or nil
  local sentences, lost = memory_story.sentences(kept, held, "the cue")
  return table.concat(sentences, " "), lost, kept, held
end

-- The part besides the whole memory and whole layers whose erasure costs most, on the average over all steps.
local function costs_most(of)
  local best, word = 0, nil
  for r, row in ipairs(of.map.rows) do
    local sum = 0
    for _, cell in pairs(of.cells[r]) do sum = sum + cell.loss end
    if row.word:find "head" and sum > best then best, word = sum, row.word end
  end
  return word
end

local function of_run(run, episodes) return function() return mn.stepper.from_run(run, { num_envs = episodes or EPISODES, seed = SEED }) end end

local small = "corridor=10 lr=1e-3 num_steps=64 hidden=32 steps=6e5 record_every=0 threads=1 core="
local heads = "core.n_layers=2 core.d_model=32 core.d_head=16 core.d_ffn=32"
for name, case in pairs { agalite = { heads .. " core.eta=4", 6, gate = "beta" }, gated_linear = { heads, 3, gate = "beta" }, gru = { "core.d_model=64", 6 },
  lstm = { "core.d_model=64", 4 } } do
  local run, said = learn.train("demo", small .. name .. " " .. case[1], "story-" .. name)
  local at, whole = case[2], nil

  t.test(name .. ", trained: what is said of it is what holds the cue", function()
    t.ok(said:find "is reached", said)
    local text, _, kept = told(of_run(run), true)
    whole = case.gate and costs_most(kept) or "all"
    t.ok(text:find(whole == "all" and "^The memory as a whole, no part of it alone, holds the cue" or "^Layer %d, head %d holds the cue"), text)
  end)

  t.test(("%s: made to forget before step %d, it is said which part lost the cue there, and the causal test agrees"):format(name, at), function()
    local text, lost, kept, held = told(function() return damaged_agent.at_step(of_run(run)(), "erase", whole, at) end)
    t.ok(memory_story.fails(kept.map), "it fails")
    t.ok(lost, text)
    if whole == "all" then t.ok(lost.row.word:find("channels", 1, true), lost.row.word)          -- each group of channels has all of it
    else t.eq(lost.row.word, whole, text) end
    t.eq(lost.last, at, text) t.eq(lost.gone, at + 1, text)
    t.ok(text:find(("between steps %d and %d"):format(at, at + 1), 1, true), text)
    for r, row in ipairs(held.map.rows) do
      if row.word == lost.row.word then
        t.ok(held.cells[r][at].low > 0.1, "kept until there, it succeeds again")
        t.ok(held.cells[r][at + 1].high < held.cells[r][at].loss, "kept from later on, it does not")
      end
    end
  end)

  if case.gate then
    t.test(name .. ": a gate that opens for one step", function()
      local gate = whole .. "." .. case.gate
      local text, lost = told(function() return damaged_agent.at_step(of_run(run)(), "force", gate, at, 1) end)
      t.ok(lost, text)
      t.eq(lost.row.word, whole, text) t.eq(lost.last, at, text)
    end)

    t.test(name .. ": a head that is not read lost nothing, and is not named; the reading finds the cue in it", function()
      local layer, head = whole:match "layers%.(%d+)%.head%.(%d+)"
      local function unread(episodes)
        local p = of_run(run, episodes)()
        local weight = p.agent:state_dict()[("core.layers.%d.attn.out.weight"):format(layer)]
        local out, wide = unpack(weight:shape())
        local each = wide / 4
        for i = 0, out - 1 do
          for k = head * each, (head + 1) * each - 1 do weight:data()[i * wide + k] = 0 end
        end
        return p
      end
      local text, lost, kept = told(unread)
      t.ok(memory_story.fails(kept.map), "it fails")
      t.ok(not lost or lost.row.word ~= whole, text)                    -- other heads may have held the cue for a while, and lost it
      t.ok(lost or text:find("Which part lost the cue is not decided", 1, true) and text:find("mneme probe says which", 1, true), text)
      local job = readings.new(unread(READ), { facts = { "cue" }, seed = SEED, every = 3 })
      job:work()
      local sentence = in_words.of(job, job.facts[1])
      local words = ("layer %d, head %d"):format(layer, head)
      t.ok(sentence:find(words, 1, true), sentence)
    end)
  end
end

for _, place in ipairs { 4, 9 } do
  t.test("made by hand, with weights by which the gate of the cue's channel opens at place " .. place, function()
    local text, lost, kept = told(function() return cue_agent.new(EPISODES, { seed = SEED }, place) end)
    t.ok(memory_story.fails(kept.map), "it fails")
    t.ok(lost, text)
    t.eq(lost.row.word, "layers.0.channels.0-0", text)
    t.eq(lost.last, place, text) t.eq(lost.gone, place + 1, text)
  end)
end
learn.clean()
