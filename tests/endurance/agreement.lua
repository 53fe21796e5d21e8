-- agreement.lua -- how well can the panel *contribution* agree with the map of erasing?   luajit tests/endurance/agreement.lua RUN ...
-- Each is measured twice, in other episodes: two maps of 96 episodes at every second step, two panels of 12.  Spearman's rank correlation over the parts,
-- of the means over the steps: map with map, panel with panel, panel with map (the mean of four), and the bound, the root of the product of the first two:
-- two measures correlate no better than their noise lets each with itself.  "As shown": the map that is stored (mneme where RUN) or is measured as that command
-- does, and the panel next to it, where what is within the noise has no colour and what is not known to be used is striped: both count as nothing.
-- The tables of docs/where.md; minutes for each run.
local here = arg[0]:match "^(.*)tests/endurance/agreement%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local contributions = require "mneme.insight.episodes.contributions"
local frames = require "mneme.insight.episodes.frames"
local causal_map_file = require "mneme.insight.episodes.causal_map_file"
local mn = require "mneme"

local EPISODES, STRIP = 96, 12
if #arg == 0 then
  io.stderr:write "usage: luajit tests/endurance/agreement.lua RUN ...\n"
  os.exit(2)
end

-- A map of all of a run's memory.
local function map_of(run, seed, episodes, every)
  local function agent() return mn.stepper.from_run(run, { num_envs = episodes, seed = seed }) end
  local map = mn.causal_map(agent(), agent(), { measure = "success", seed = seed, every = every })
  map:work()
  return map:view()
end

-- The mean loss of each part, by its name; as_shown: of what stands out of the noise.
local function by_map(map, as_shown)
  local of = {}
  for r, row in ipairs(map.rows) do
    local sum, n = 0, 0
    for _, cell in pairs(map.cells[r]) do sum, n = sum + (as_shown and not (cell.clear and cell.loss > 0) and 0 or cell.loss), n + 1 end
    of[row.word] = sum / n
  end
  return of
end

-- What the panel shows of each part, the mean over the steps of the first episodes; next to a map only what is plain.
local function by_panel(run, seed, causes)
  local p, film, last, sum, n, count = mn.stepper.from_run(run, { num_envs = 1, seed = seed, seeded = true }), frames.new(), nil, {}, {}, 0
  local kept = {}
  while count < STRIP do
    local now = p:next()
    if now.ended then
      local steps = kept
      local frame = setmetatable({ episode_history = last.history, frame_of = function(step) return steps[step + 1] end }, { __index = last })
      local map = contributions.of_frame(frame):map()
      if causes then map:mark_used(causes, 0) end
      for r, row in ipairs(map.rows) do
        for c in ipairs(map.steps) do
          local cell = map.cells[r][c]
          local shown = cell and (not causes or cell.clear and cell.used == true) and cell.moved or 0
          if cell then sum[row.word], n[row.word] = (sum[row.word] or 0) + shown, (n[row.word] or 0) + 1 end
        end
      end
      film, kept, count = frames.new(), {}, count + 1
    end
    last = film:add(now)
    kept[#kept + 1] = last
  end
  for word, total in pairs(sum) do sum[word] = total / n[word] end
  return sum
end

-- Ranks of a list, those of equal values their mean.
local function ranks(list)
  local rank = {}
  for i, x in ipairs(list) do
    local less, same = 0, 0
    for _, y in ipairs(list) do less, same = less + (y < x and 1 or 0), same + (y == x and 1 or 0) end
    rank[i] = less + (same + 1) / 2
  end
  return rank
end

-- Spearman's rank correlation over the parts that both have.
local function correlation(a, b)
  local x, y = {}, {}
  for word, value in pairs(a) do
    if b[word] then x[#x + 1], y[#y + 1] = value, b[word] end
  end
  x, y = ranks(x), ranks(y)
  local middle, xy, xx, yy = (#x + 1) / 2, 0, 0, 0
  for i = 1, #x do
    local dx, dy = x[i] - middle, y[i] - middle
    xy, xx, yy = xy + dx * dy, xx + dx * dx, yy + dy * dy
  end
  return xy / math.sqrt(xx * yy)
end

print "| agent | map with map | panel with panel | panel with map, mean of four | bound | as shown |\n|---|---|---|---|---|---|"
for _, run in ipairs(arg) do
  local maps, panels = { by_map(map_of(run, 12345, EPISODES, 2)), by_map(map_of(run, 54321, EPISODES, 2)) }, { by_panel(run, 5), by_panel(run, 500) }
  local both, one, other = 0, correlation(unpack(maps)), correlation(unpack(panels))
  for _, map in ipairs(maps) do
    for _, panel in ipairs(panels) do both = both + correlation(map, panel) / 4 end
  end
  local stored = causal_map_file.stored({ folder = run }, mn.stepper.from_run(run).steps) or map_of(run, causal_map_file.seed, causal_map_file.episodes)
  print(("| %s | %.2f | %.2f | %.2f | %.2f | %.2f |"):format(run, one, other, both, math.sqrt(math.max(0, one * other)),
    correlation(by_map(stored, true), by_panel(run, 5, stored))))
  io.stdout:flush()
end
