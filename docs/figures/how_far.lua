-- how_far.lua -- the picture of docs/how-far-back.md, from the kept runs: how long may the gap be?   build/mneme run docs/figures/how_far.lua
local mn = require "mneme"

local cfg = mn.config { out = "docs/figures/how_far.svg", about = { out = { "the picture" } } }

-- Solved and all seeds of a memory at a corridor: its hundred last episodes reach 0.97, and 500 fresh ones 0.9.
local counts = {}
local function count(file, corridor)
  for line in io.lines("docs/results/" .. file .. ".jsonl") do
    local record = mn.json.decode(line)
    local run, m = record.run or "", record.metrics
    local memory, at = run:match "memory=([%w_]+)", corridor or tonumber(run:match "corridor=(%d+)")
    if memory then
      local of = counts[memory] or {}
      counts[memory] = of
      of[at] = of[at] or { solved = 0, all = 0 }
      of[at].all = of[at].all + 1
      if m.score >= 0.97 and m.fresh_score >= 0.9 then of[at].solved = of[at].solved + 1 end
    end
  end
end
count "far_cue_quick"
count("far_cue_1000", 1000)

local bars = {}
for _, corridor in ipairs { 60, 100, 1000 } do
  for _, memory in ipairs { "mingru__exact", "mingru__window", "rtu__exact", "rtu__window", "agalite__exact", "agalite__window", "gru" } do
    local n = counts[memory] and counts[memory][corridor]
    if n then
      bars[#bars + 1] = { name = ("%s (%d of %d)"):format(memory:gsub("__", ", "):gsub("^gru$", "gru, window"), n.solved, n.all),
        group = ("%d steps"):format(corridor), y = 100 * n.solved / n.all }
    end
  end
end

mn.figures.export({
  kind = "bars", title = "How long may the gap be?",
  note = "T-Maze, rollouts of 32 steps, corridors of 60, 100 and 1,000. At 1,000 all begin by walking and have a lesson at 260 first.",
  x = {}, y = { label = "seeds that solve it", unit = "%", range = { 0, 100 } }, bars = bars,
}, cfg.out)
print(cfg.out)
