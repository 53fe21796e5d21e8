-- test_one_truth.lua -- one part, one verdict: of four agents of different cores that fail in some episodes, the part that erasing names is the one that can be
-- read, the one that the contributions show over the strip of episodes, and the one that every page and sentence shows as used.
local t = require "tests.harness"
local causal_map = require "mneme.insight.episodes.causal_map"
local contributions = require "mneme.insight.episodes.contributions"
local cue_agent = require "tests.support.cue_agent"
local frames = require "mneme.insight.episodes.frames"
local files = require "mneme.base.files"
local readings_in_words = require "mneme.insight.measure.readings_in_words"
local json = require "mneme.base.json"
local learn_rig = require "tests.support.learn_rig"
local memory_story = require "mneme.insight.episodes.memory_story"
local mn = require "mneme"
local readings = require "mneme.insight.measure.readings"
local readings_of_frame = require "mneme.insight.measure.readings_of_frame"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local viewer_rig = require "tests.support.viewer_rig"

local EPISODES, READ, STRIP, SEED, APART = 96, 160, 12, 12345, 0.05

local function of_run(run, episodes) return mn.stepper.from_run(run, { num_envs = episodes, seed = SEED }) end

-- The last frame of each of some episodes, with the frames of its steps.
local function strip(run)
  local p, film, list, kept = mn.stepper.from_run(run, { num_envs = 1, seed = 5, seeded = true }), frames.new(), {}, {}
  while #list < STRIP do
    local now = p:next()
    if now.ended then
      local steps = kept
      list[#list + 1] = setmetatable({ episode_history = steps[#steps].history, frame_of = function(step) return steps[step + 1] end,
        failed = now.ended.score < 1 }, { __index = steps[#steps] })
      film, kept = frames.new(), {}
    end
    kept[#kept + 1] = film:add(now)
  end
  return list
end

-- What the panel shows of each part, the mean over the episodes and over the steps from .. to.
local function shown_by_panel(list, from, to)
  local of, n = {}, {}
  for _, frame in ipairs(list) do
    local map = contributions.of_frame(frame):map()
    t.eq(map:scale(), 1, "one scale for all episodes")
    for r, row in ipairs(map.rows) do
      for c, step in ipairs(map.steps) do
        if step >= from and step <= to then
          of[row.word], n[row.word] = (of[row.word] or 0) + map.cells[r][c].moved, (n[row.word] or 0) + 1
        end
      end
    end
  end
  for word in pairs(of) do of[word] = of[word] / n[word] end
  return of
end

-- The mean loss of a part in each episode.
local function losses(map, r)
  local sum, n, list = {}, {}, {}
  for _, column in ipairs(map.columns) do
    for i, b in ipairs(column.envs) do sum[b], n[b] = (sum[b] or 0) + column.loss[r][i], (n[b] or 0) + 1 end
  end
  for b = 0, EPISODES - 1 do list[b + 1] = n[b] and sum[b] / n[b] or 0 end
  return list
end

-- Goodman and Kruskal's rank correlation (gamma) of the panel and the map, over the pairs of parts that the map tells apart: by 0.05 and beyond the noise.
-- Not Spearman's over all parts: most parts lose nothing, and it ranks their noise (docs/where.md has both for five agents).
local function agreement(map, panel)
  local same, other = 0, 0
  for a, row in ipairs(map.rows) do
    for b = a + 1, panel[row.word] and #map.rows or 0 do
      local x, y, d = losses(map, a), losses(map, b), {}
      for e = 1, #x do d[e] = x[e] - y[e] end
      local mean, low, high = mn.stats.t_interval(d)
      local shown = panel[map.rows[b].word] and panel[row.word] - panel[map.rows[b].word]
      if shown and math.abs(mean) >= APART and low * high > 0 then
        if shown * mean > 0 then same = same + 1 else other = other + 1 end
      end
    end
  end
  return (same - other) / math.max(1, same + other), same + other
end

local small = "corridor=10 lr=1e-3 num_steps=64 hidden=32 steps=6e5 where=0 stop_score=0.85 threads=1 core="
for _, case in ipairs { { "agalite", "core.n_layers=2 core.d_model=32 core.d_head=16 core.d_ffn=32 core.eta=4 seed=1" }, { "gru", "core.d_model=64 seed=2" },
  { "gated_deltanet", "core.n_layers=2 core.d_model=32 core.d_head=8 core.d_ffn=32 seed=1" },
  { "gtrxl", "core.n_layers=2 core.d_model=32 core.d_ffn=32 seed=2" } } do
  local name = case[1]
  local run, said = learn_rig.train("demo", small .. name .. " " .. case[2], "truth-" .. name)
  local map = causal_map.new(of_run(run, EPISODES), of_run(run, EPISODES), { measure = "success", seed = SEED, every = 2 })
  map:work()
  local view, list = map:view(), strip(run)
  local top = memory_story.parts(map, view.cells)[1]
  local from, to = map.steps[top and top.first or 1], map.steps[top and top.last or 1]
  local panel = shown_by_panel(list, from, to)

  t.test(name .. ": it fails in some episodes, and erasing names a part", function()
    t.ok(said:find "first reached 0.85", said)
    t.ok(top, memory_story.kept(map, view.cells, "the cue"))
    local failed = 0
    for _, frame in ipairs(list) do failed = failed + (frame.failed and 1 or 0) end
    for _, o in ipairs(map.outcomes) do failed = failed + (o.score < 1 and 1 or 0) end
    t.ok(failed > 0)
  end)

  -- Is a part inside what erasing names?
  local function inside(row) return top.row.word == "all" or row.word == top.row.word or row.word:sub(1, #top.row.word + 1) == top.row.word .. "." end

  t.test(name .. ": the part that erasing names is the brightest over the strip, and ranks agree", function()
    local best
    for word in pairs(panel) do if word ~= "all" and (not best or panel[word] > panel[best]) then best = word end end
    t.ok(inside { word = best }, ("%s is named, %s is brightest"):format(top.row.word, best))
    t.ok(panel.all > contributions.LITTLE)
    local r, pairs_apart = agreement(map, panel)
    t.ok(r >= 0.8 and pairs_apart >= 1, ("rank correlation %.2f over %d pairs of parts"):format(r, pairs_apart))
  end)

  t.test(name .. ": next to the map the panel has as plain only what erasing shows to be used, and both have one order of the parts", function()
    local plain, lost, other, pairs_apart = {}, {}, 0, 0
    for _, frame in ipairs(list) do
      local shown = contributions.of_frame(frame):map():mark_used(view, 0)
      for r, row in ipairs(shown.rows) do
        for c, step in ipairs(shown.steps) do
          local ink, look = shown:ink(r, c, shown:scale())
          local cause = view:column(step) and view.cells[view:row(row.word)][view:column(step)]
          if look == "clear" then t.ok(cause.clear and cause.loss > 0, row.text) end
          plain[row.word] = (plain[row.word] or 0) + (look == "clear" and ink or 0)
        end
      end
    end
    for r, row in ipairs(view.rows) do
      for _, cell in pairs(view.cells[r]) do lost[row.word] = (lost[row.word] or 0) + (cell.clear and math.max(0, cell.loss) or 0) end
    end
    for a, x in pairs(plain) do
      for b, y in pairs(plain) do
        if x > y and lost[a] ~= lost[b] then pairs_apart, other = pairs_apart + 1, other + (lost[a] < lost[b] and 1 or 0) end
      end
    end
    t.ok(pairs_apart > 0 and other / pairs_apart <= 0.1, ("%d of %d pairs of parts have another order"):format(other, pairs_apart))
  end)

  t.test(name .. ": the part that erasing names can be read where it is used, and probe's sentence says so", function()
    local job = readings.new(of_run(run, READ), { facts = { "cue" }, seed = SEED, every = 1 })
    job:work()
    local sentence, last = readings_in_words.of(job, job.facts[1])
    local asked, latest = 0, 0
    for c, step in ipairs(map.steps) do
      local read = false
      if top.cells[c].clear and step <= job.steps[#job.steps] then
        for at, part in ipairs(job.parts) do
          if inside(part) and job:is_read(job.facts[1], step, at) then read, latest = true, math.max(latest, last[at] or 0) end
        end
        asked = asked + 1
        t.ok(read, ("%s at step %d costs %.2f and cannot be read"):format(top.row.text, step, top.cells[c].loss))
      end
    end
    t.ok(asked > 3 and sentence:find "can be read from", sentence)
    local shown, used = job:map(job.facts[1]):mark_used(view, 1), 0
    for r = 2, #shown.rows do used = math.max(used, last[r] and shown:uses(r) or 0) end
    local first = readings_in_words.of(job, job.facts[1], shown):match "can be read from (.-) up to"
    t.eq(first:find(", used,$") ~= nil, used > 0, first)
    for r, row in ipairs(shown.rows) do if first == row.text .. ", used," then t.eq(shown:uses(r), used) end end
    t.ok(latest >= math.min(to, job.steps[#job.steps]) - 1, ("used until step %d, read until %d: %s"):format(to, latest, sentence))
  end)

  t.test(name .. ": the panel of what the memory knows has it as used, and nothing unmeasured as used", function()
    local frame = setmetatable({ run = run, known = function() return view end }, { __index = list[1] })
    local job, used = readings_of_frame.job(frame, math.huge), 0
    local shown = readings_of_frame.map(job, frame, job.facts[1])
    local scale = shown:scale()
    for r, row in ipairs(shown.rows) do
      for c, step in ipairs(shown.steps) do
        local _, look = shown:ink(r, c, scale)
        local at = view:column(step + 1)
        local cause = at and view:row(row.word) and view.cells[view:row(row.word)][at]
        if cause and look and look ~= "noise" then
          t.eq(look, cause.clear and cause.loss > 0 and "clear" or "readable", row.text .. " at step " .. step)
          used = used + (look == "clear" and 1 or 0)
        end
      end
    end
    t.ok(used > 0 or top.row.word:find "^layers%.%d+$", "something is used")
  end)

  t.test(name .. ": credit says what a gradient does not show", function()
    local text = learn_rig.mneme(("credit %s"):format(run))
    t.ok(text:find("mneme where", 1, true) and text:find "held firmly", text)
  end)

  -- What an episode's page says of a cell and of what is used, and the sentences of it and of a report are what the map's file has.
  if name == "agalite" then t.test(name .. ": every number of the page and of a report is the map's", function()
    local node = shell.has "nodejs" and "nodejs" or shell.has "node" and "node" or t.skip "no node is installed (apt-get install nodejs)"
    local told = learn_rig.mneme(("where %s out=%s/map.json"):format(run, run)):gsub("%s+", " ")
    local of, at, texts = json.decode((files.read(run .. "/map.json"))), {}, {}
    for c, step in ipairs(of.steps) do at[step] = c end
    local function told_by(page, text)
      local sentences = 0
      for sentence in (text .. " "):gmatch "(.-%.) " do
        t.ok(told:find(sentence, 1, true), ("%s: %s\n%s"):format(page, sentence, told))
        sentences = sentences + (sentence:find "%d" and 1 or 0)
      end
      t.ok(sentences >= 2, text)
    end
    for _, words in ipairs { "view %s scene=where wait=60 out=%s/page.html", "view %s scene=tmaze wait=60 out=%s/tmaze.html" } do
      learn_rig.mneme(words:format(run, run))
      local page = run .. words:match "/%w+%.html"
      local pipe = io.popen(([[%s -e 'const h = fs.readFileSync(process.argv[1], "utf8"), p = h.match(/class="mn-data">([^<]*)</)[1];
        const all = zlib.inflateSync(Buffer.from(p, "base64"));
        process.stdout.write(all.subarray(0, all.indexOf(0)))' '%s']]):format(node, page))
      texts[#texts + 1] = pipe:read "*a":gsub("\226\136\146", "-")
      pipe:close()
      -- Which part lost the cue is the one sentence for which `where` asks further episodes.
      told_by(page, (files.read(page):match 'mn%-story">([^<]*)':gsub("^%d+ episodes: ", ""):gsub(" Which part lost.*", "")))
    end
    learn_rig.mneme(("report %s out=%s/report.md"):format(run, run))
    told_by("report", files.read(run .. "/report.md"):match "What the memory does\n+[^:]*: ([^\n]*)")
    local checked, marks = 0, 0
    for r, row in ipairs(of.rows) do
      t.eq(row.part, map.rows[r].word)
      for c, cell in ipairs(row.cells) do
        local words = ("%s, erased at step %d: success lost %.2f [%.2f, %.2f], %d episodes, %sbeyond the noise"):format(map.rows[r].text, of.steps[c],
          cell.loss, cell.low, cell.high, cell.n, cell.clear and "" or "not ")
        t.ok(texts[1]:find(words, 1, true), words)
        checked = checked + 1
      end
      -- What the memory holds after a step is what is erased before the next; after the last one nothing is, and the page says that.
      local known = map.rows[r].text:gsub("%p", "%%%0") .. ", at step (%d+): probability of the right answer [^\"]*beyond chance, (%w+)"
      for step, mark in texts[2]:gmatch(known) do
        local cell = row.cells[at[step + 1]]
        t.eq(mark, not cell and "whether" or cell.clear and cell.loss > 0 and "used" or "only", ("%s at step %s"):format(row.part, step))
        marks = marks + 1
      end
    end
    t.eq(checked, #of.rows * #of.steps)
    t.ok(marks >= #of.rows, marks .. " marks of what is used")
  end) end
end

t.test("of two agents side by side each has the map of its own, and what stays when one is closed is of the other", function()
  local function track()
    local function open(given)
      if given == "checkpoints" then return { 100 } end
      local source = cue_agent.new(1, { seed = 5, seeded = true, episode = given.episode })
      source.steps = 100
      return source
    end
    return { source = open {}, open = open, scene = scene.load "where",
      map = function() return causal_map.new(cue_agent.new(12), cue_agent.new(12), { seed = 7, every = 5 }) end }
  end
  local r = viewer_rig.new { track(), track() }
  local first, second = r.v:causes_of(1), r.v:causes_of(2)
  for _ = 1, 3000 do
    r.v:tick(r.clock, math.huge)
    r.draw()
    if first.state and first.state.test and second.state and second.state.test then break end
  end
  t.ok(first ~= second and first.state.map ~= second.state.map)
  r.v:close(2, r.clock)
  t.ok(r.v.causes == second)
end)
learn_rig.clean()
