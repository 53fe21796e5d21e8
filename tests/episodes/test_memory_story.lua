-- test_memory_story.lua -- which part lost the cue, and when, in words: right for agents of four cores whose memory was damaged in a known
-- part at a known step; and where it cannot be decided, it says so.
local t = require "tests.harness"
local causal_map = require "mneme.insight.episodes.causal_map"
local cue_agent = require "tests.support.cue_agent"
local damaged_agent = require "tests.support.damaged_agent"
local readings_in_words = require "mneme.insight.measure.readings_in_words"
local learn_rig = require "tests.support.learn_rig"
local memory_story = require "mneme.insight.episodes.memory_story"
local mn = require "mneme"
local readings = require "mneme.insight.measure.readings"

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
local function costs_most(of, kind)
  local best, word = 0, nil
  for r, row in ipairs(of.map.rows) do
    local sum = 0
    for _, cell in pairs(of.cells[r]) do sum = sum + cell.loss end
    if row.word:find(kind, 1, true) and sum > best then best, word = sum, row.word end
  end
  return word
end

local function of_run(run, episodes) return function() return mn.stepper.from_run(run, { num_envs = episodes or EPISODES, seed = SEED }) end end

local small = "corridor=10 lr=1e-3 num_steps=64 hidden=32 steps=6e5 where=0 threads=1 core="
local gates_named = 0
local heads = "core.n_layers=2 core.d_model=32 core.d_head=16 core.d_ffn=32"
for name, case in pairs { agalite = { heads .. " core.eta=4", 6, gate = "beta" }, gated_linear = { heads, 3, gate = "beta" }, gru = { "core.d_model=64", 6 },
  lstm = { "core.d_model=64", 4 } } do
  local at, run, said, whole = case[2]
  for seed = 1, case.gate and 3 or 1 do            -- other bits of another machine: a seed whose cue two heads share has no sentence on one head
    run, said = learn_rig.train("demo", ("%s%s %s seed=%d"):format(small, name, case[1], seed), ("story-%s-%d"):format(name, seed))
    if case.gate and (told(of_run(run), true)):find "^Layer %d, head %d holds the cue" then break end
  end

  t.test(name .. ", trained: what is said of it is what holds the cue", function()
    t.ok(said:find "first reached", said)
    local text, _, kept = told(of_run(run), true)
    whole = case.gate and costs_most(kept, "head") or "all"
    if case.gate then t.ok(text:find "^Layer %d, head %d holds the cue", text)
    elseif not text:find "^No part of the memory is needed alone to hold the cue %(each costs less than %d.%d+%): all of it" then -- of a few channels, these
      local a, b = text:match "^Layer 0, channels (%d+) to (%d+) hold the cue"
      t.eq(("layers.0.channels.%s-%s"):format(a, b), costs_most(kept, "channels"), text)
    end
  end)

  t.test(name .. ": of some columns no edge is said to be sure", function()
    local map = causal_map.new(of_run(run)(), of_run(run)(), { measure = "success", seed = SEED, every = 1 })
    while not map.coarse do map:work(0) end
    local cells = map:cells()
    map:test(cells)
    local parts = memory_story.parts(map, cells)
    for _, of in ipairs(parts) do t.ok(not map.columns[of.first - 1] and not map.columns[of.last + 1], "it has a neighbour that is not measured") end
    local text = memory_story.kept(map, cells, "the cue")
    if parts[1] then
      t.eq(parts[1].first > 1, text:find("at the latest", 1, true) ~= nil or text:find("at least", 1, true) ~= nil, text)
    end
  end)

  t.test(name .. ": a part whose erasing costs beyond the noise is one from which the cue is read at that step", function()
    local job = readings.new(of_run(run, READ)(), { facts = { "cue" }, seed = SEED, every = 1 })
    job:work()
    local _, _, kept = told(of_run(run), true)
    local at_of, asked = {}, 0
    for k, part in ipairs(job.parts) do at_of[part.word] = k end
    for r, row in ipairs(kept.map.rows) do
      for c, step in ipairs(kept.map.steps) do
        local cell, here = kept.cells[r][c], at_of[row.word] and (job.cells.cue[step] or {})[at_of[row.word]]     -- after the step before
        if here and cell.clear and cell.loss > 0 then
          asked = asked + 1
          t.ok(here.right > (1 + here.chance) / 2, ("%s at step %d costs %.2f, read in %.2f"):format(row.text, step, cell.loss, here.right))
        end
      end
    end
    t.ok(asked > 5, asked .. " cells")
  end)

  t.test(("%s: made to forget before step %d, it is said which part lost the cue there, and the causal test agrees"):format(name, at), function()
    local text, lost, kept, held = told(function() return damaged_agent.at_step(of_run(run)(), "erase", whole, at) end)
    t.ok(memory_story.fails(kept.map), "it fails")
    t.ok(lost, text)
    if whole == "all" then t.ok(lost.row.word:find("channels", 1, true), lost.row.word)          -- each group of channels has all of it
    else t.eq(lost.row.word, whole, text) end
    t.eq(lost.last, at, text)
    t.ok(lost.gone > at and lost.gone <= at + 4, text)                  -- by when less than half is left, beyond the noise
    t.ok(text:find(("between steps %d and %d"):format(at, lost.gone), 1, true), text)
    for r, row in ipairs(held.map.rows) do
      if row.word == lost.row.word then
        t.ok(held.cells[r][at].low > 0.1, "kept until there, it succeeds again")
        t.ok(held.cells[r][at + 1].high < held.cells[r][at].loss, "kept from later on, it does not")
      end
    end
  end)

  t.test(("%s: made to forget everything before step %d, its readings say that the cue fades, and when"):format(name, at), function()
    local job = readings.new(damaged_agent.at_step(of_run(run, READ)(), "erase", "all", at), { facts = { "cue" }, seed = SEED, every = 1 })
    job:work()
    local why = readings_in_words.why(job, "success")
    local last, gone = why:match "^The cue fades from all parts: read from .- at step (%d+) it is right .- other episodes, at step (%d+) surely from none"
    t.ok(gone, why)
    t.eq(tonumber(last), at - 1, why) t.eq(tonumber(gone), at, why)
  end)

  if case.gate then
    t.test(name .. ": a gate that opens for one step", function()
      local gate = whole .. "." .. case.gate
      local text, lost = told(function() return damaged_agent.at_step(of_run(run)(), "force", gate, at, 1) end)
      if not lost then                                    -- it needs little of this head: undecided, as one agent of two may be
        t.ok(text:find("Which part lost the cue is not decided", 1, true), text)
        return
      end
      gates_named = gates_named + 1
      local part = lost.row.word                          -- the head, or the layer where another head of it has some of the cue, too
      t.ok(part == whole or whole:sub(1, #part + 1) == part .. ".", part .. ": " .. text)
      t.eq(lost.last, at, text)
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
      local sentence = readings_in_words.of(job, job.facts[1])
      local words = ("layer %d, head %d"):format(layer, head)
      t.ok(sentence:find(words, 1, true) or sentence:find("; from others up to step", 1, true), sentence)          -- four hold it as long
      local last
      for _, step in ipairs(job.steps) do last = job.cells.cue[step] or last end
      for k, part in ipairs(job.parts) do
        if part.word == whole then t.ok(last[k].right > (1 + last[k].chance) / 2, ("%s: read in %.2f"):format(words, last[k].right)) end
      end
      local why = readings_in_words.why(job, "success")
      t.ok(why:find("^No part loses the cue: read from .+ It is there to the end, which leaves its use"), why)
    end)
  end
end

t.test("a gate that opened is named in at least one of two agents", function() t.ok(gates_named >= 1, gates_named .. " named") end)

t.test("what was lost is asked only where episodes fail without a draw, too", function()
  local function fails(list)
    local map = { measure = "success", outcomes = {} }
    for i, pair in ipairs(list) do map.outcomes[i] = { score = pair[1], greedy = pair[2] } end
    return memory_story.fails(map)
  end
  t.eq(fails { { 1, 1 }, { 0, 1 }, { 0, 1 }, { 1, 1 } }, false)
  t.eq(fails { { 1, 0 }, { 0, 1 }, { 0, 1 }, { 0, 0 } }, true)
end)

-- Readings as if they had been made: of each part at each step the share of 40 that are right.
local function read(rows, facts)
  local job = { facts = facts or { { name = "cue", kind = "class" } }, parts = {}, steps = {}, cells = { cue = {} }, done = true }
  for at, row in ipairs(rows) do
    job.parts[at] = { text = at == 1 and "all" or ("layer 0, head %d"):format(at - 2) }
    for k, right in ipairs(row) do
      job.steps[k] = 3 * (k - 1)
      job.cells.cue[k] = job.cells.cue[k] or {}
      job.cells.cue[k][at] = right and { right = right, p = right, chance = 0.5, control_right = 0.5, test = 40 }
    end
  end
  return job
end

t.test("the draw explains as many failures as are fewer with the likeliest actions; what a part is known to hold was not never there", function()
  local function of(left)                          -- of 40 episodes 10 fail; with the likeliest actions others, `left` of them
    local list = {}
    for i = 1, 40 do list[i] = { score = i <= 10 and 0 or 1, greedy = i > 40 - left and 0 or 1 } end
    return memory_story.draw(list), memory_story.fails { outcomes = list, measure = "success" }
  end
  for left, expected in pairs { [0] = "the draw of actions, not the memory", [4] = "in the other 4 something else",
    [7] = "mostly not the draw of actions, which explains 3", [10] = "it is not the draw", [17] = "it is not the draw" } do
    local text, fails = of(left)
    t.ok(text:find(expected, 1, true), text)
    t.eq(text:find "no cure" ~= nil, left >= 10, text)
    t.eq(fails, left > 0, left .. " are left")
  end
  for left, expected in pairs { [1] = "near to a toss in the other 8", [8] = "mostly not the draw of actions, which explains 2" } do
    local list = {}                                -- 10 wrong decisions, each with more for the right action, two of them clearly
    for i = 1, 40 do
      list[i] = { score = i <= 10 and 0 or 1, greedy = i > 40 - left and 0 or 1,
        wrong = i <= 10 and 1 or 0, drawn = i <= 10 and 1 or 0, clear = i <= 2 and 1 or 0 }
    end
    t.ok(memory_story.draw(list):find(expected, 1, true), memory_story.draw(list))
  end
  local nothing = { rows = {}, steps = {}, measure = "success" }
  t.ok(memory_story.lost(nothing, {}, "the cue"):find "was never there" and not memory_story.lost(nothing, {}, "the cue", nil, true):find "was never there")
end)

t.test("what became of a cue that no part lost: never there, there to the end, faded, or not decided", function()
  local why = function(...) return readings_in_words.why(read(...), "success") end
  t.ok(why { { 0.5, 0.6 }, { 0.5, 0.4 } }:find("The cue was never stored, as far as linear readings see", 1, true))
  t.ok(why { { 1, 1, 1 }, { 1, 0.5, 0.5 }, { 1, 1, 1 } }:find("^No part loses the cue: read from layer 0, head 1 at step 6 it is right in 40 of 40"))
  t.ok(why { { 1, 1, 1 }, { 1, 0.5, 0.5 } }:find("read from the memory as a whole at step 6", 1, true))
  t.ok(why { { 1, 1, 0.7, 0.5 }, { 1, 0.5, 0.5, 0.5 } }:find("at step 3 it is right in 40 of 40 other episodes, at step 9 surely from none", 1, true))
  local named = read { { 1, 1 }, { 1, 1 }, { 1, 0.9 } }
  for at = 1, 3 do named.parts[at].word = "part." .. at end
  t.ok(readings_in_words.why(named, "success", "part.3"):find("read from layer 0, head 1 at step 3 it is right in 36 of 40", 1, true),
    "the part that is in use")
  t.eq(why { { 1, 1, 0.75 }, { 1, 0.5, 0.5 } }, nil, "0.75 of 40 is neither more nor less than half-way")
  t.eq(why { { 0.75, 0.75 }, { 0.5, 0.5 } }, nil)
  t.eq(why { { 1, false }, { 1, false } }, nil, "what was not asked is not known to be gone")
  t.eq(why({ { 1, 1 }, { 1, 1 } }, { { name = "cue", kind = "class" }, { name = "card", kind = "class" } }), nil, "two facts: which is needed?")
  local said, last = readings_in_words.of(read { { 1, 1, 0.5 }, { 1, 1, 0.5 }, { 1, 0.75, 0.5 } }, { name = "cue", kind = "class" })
  t.eq(said, "The cue can be read from layer 0, head 0 up to step 3; from layer 0, head 1 up to step 0, surely not at step 6; at step 6 surely from no part.")
  t.eq(last[2], 3) t.eq(last[3], 0)
end)

for _, place in ipairs { 4, 9 } do
  t.test("made by hand, with weights by which the gate of the cue's channel opens at place " .. place, function()
    local text, lost, kept = told(function() return cue_agent.new(EPISODES, { seed = SEED }, place) end)
    t.ok(memory_story.fails(kept.map), "it fails")
    t.ok(lost, text)
    t.eq(lost.row.word, "layers.0.channels.0-0", text)
    t.eq(lost.last, place, text) t.eq(lost.gone, place + 1, text)
  end)
end
learn_rig.clean()
