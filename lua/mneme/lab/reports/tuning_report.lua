-- tuning_report.lua -- what a report says of a study's tuning: what was searched, with which budget and seeds, what was picked, and how
-- that scored in the tuning and with fresh seeds.
local folder = require "mneme.lab.study.folder"
local grid = require "mneme.lab.study.grid"
local tuning_journal = require "mneme.lab.study.tuning_journal"
local format = require "mneme.base.format"
local aggregate = require "mneme.lab.study.aggregate"
local interval = require("mneme.insight.figures.text").interval

local tuning_report = {}
local texts = {
  title = "Tuning",
  budget = "The settings %s were tuned, for each of %d with the same budget of %d trials%s: %s. Trials had the seeds %d to %d, in the order of need; "
    .. "the runs of this page have others (%s).",
  even = "settings that fill the space evenly (Sobol), then further seeds of the best",
  earlier = "an even start (Sobol), then noisy expected improvement on a Gaussian process, as earlier versions of Mneme had it",
  searched = "Searched: %s. The number to be %s was %s.",
  picked = "The pick was made before the fresh runs; the best mean of a tuning is too high, as it was chosen for it.",
  head = { "runs", "picked", "tuning, seeds", "fresh seeds", "the script's own setting, fresh seeds" },
  point = "all runs",
}

-- Scores of the study's runs that have these labels, and their seeds.
local function scores(study, labels, by, used)
  local list = {}
  for _, run in ipairs(study.runs) do
    local same = run.status == "done"
    for axis, label in pairs(labels) do same = same and run.labels[axis] == label end
    local v = same and folder.number(run, by)
    if v then list[#list + 1], used[run.seed] = v, true end
  end
  return list
end

local function score_text(list, about)
  if #list == 0 then return "–" end
  local value, low, high = aggregate.interval(list, "mean", about.range)
  return ("%s, %d"):format(interval(value, low, high, about.unit), #list)
end

-- Labels of a point, with those of the fresh runs of mneme tune where the study has them.
local function with_pick(study, labels, pick)
  local all = {}
  for axis, label in pairs(labels) do all[axis] = label end
  for _, run in ipairs(study.runs) do if run.labels.pick then all.pick = pick end end
  return all
end

-- "1 to 5", or the numbers.
local function span(used)
  local list = {}
  for seed in pairs(used) do list[#list + 1] = seed end
  table.sort(list)
  if #list > 2 and list[#list] - list[1] == #list - 1 then return ("%d to %d"):format(list[1], list[#list]) end
  return #list > 0 and table.concat(list, ", ") or "none is done"
end

-- "lr=1e-5..1e-2:log width=4..64:int" as "lr, width".
local function names_of(ranges)
  local names = {}
  for name in ranges:gmatch "(%S+)=" do names[#names + 1] = name end
  return table.concat(names, ", ")
end

---The tuning of a study, as a paragraph and a table; nothing where there was none.
---@param heading fun(title: string) writes the heading
function tuning_report.write(out, study, spec, heading)
  local tuned = tuning_journal.tuned(study.path)
  if not tuned then return end
  local t, used, rows, most = tuned.tune, {}, {}, 1
  local about = (spec.metrics or {})[t.by] or {}
  for i, point in ipairs(tuned.points) do
    local pick = point.picks[1]
    local fresh = scores(study, with_pick(study, point.labels, "1"), t.by, used)
    local own = scores(study, with_pick(study, point.labels, "script"), t.by, used)
    local any = with_pick(study, {}, "").pick ~= nil
    rows[i] = { point.name ~= "" and point.name or texts.point, grid.text(pick.values, " "),
      { ("%s, %d"):format(format.short(pick.mean, about.unit), pick.seeds), class = "number" }, { score_text(fresh, about), class = "number" },
      any and { point.default and score_text(own, about) or "–", class = "number" } or nil }
    most = math.max(most, point.seeds)
  end
  local head = { unpack(texts.head, 1, #rows[1]) }
  heading(texts.title)
  out:paragraphs(texts.budget:format(names_of(t.ranges), #tuned.points, tuned.trials, tuned.steps and (" of %s steps"):format(format.short(tuned.steps)) or "",
    t.ahead and texts.earlier or texts.even, tuned.first_seed, tuned.first_seed + most - 1, span(used)))
  out:paragraphs(texts.searched:format(t.ranges, t.minimise and "low" or "high", t.by), "dim")
  out:table(head, rows)
  out:paragraphs(texts.picked, "dim")
end

return tuning_report
