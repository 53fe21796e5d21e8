-- report_results.lua -- the results in a report: each metric of each point, and, folded away, each seed's; and what is said of a study's tuning: what
-- was searched, with which budget and seeds, what was picked, and how that scored in the tuning and with fresh seeds.  Arguments as in report_claims.lua.
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local format = require "mneme.base.format"
local figure_references = require "mneme.lab.study.figure_references"
local aggregate = require "mneme.lab.study.aggregate"
local stats = require "mneme.stats"
local shown = require("mneme.insight.figures.text").interval
local causal_map_file = require "mneme.insight.episodes.causal_map_file"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local memory_story = require "mneme.insight.episodes.memory_story"
local trusted_code = require "mneme.base.trusted_code"
local terminal = require "mneme.base.terminal"
local grid = require "mneme.lab.study.grid"
local search_space = require "mneme.lab.search.search_space"
local tuning_picks = require "mneme.lab.study.tuning_picks"

local results = {}
local FRESH = "fresh_score"      -- of runs that stopped: no study has to declare it
local BUDGET = 0.1             -- by how much ours may have more or fewer steps than what was published, to be compared
local MOST = 12                -- points of which the table is open

-- The metrics that are shown, in order: those that the study declares, or all; series have no number.
local function metric_names(study, spec)
  local all = {}
  for _, c in ipairs(study.runs) do
    for name in pairs(c.metrics) do all[name] = not spec.metrics or spec.metrics[name] ~= nil or name == FRESH or nil end
  end
  return tables.keys(all)
end

-- Every kind of run and metric that has numbers: fun(kind, metric, { declared }, numbers of its seeds,
-- from which value on it is solved or nil, runs, name).
local function each(study, spec, f)
  local names = metric_names(study, spec)
  for i, group in ipairs(study_folder.groups(study.runs)) do
    for k, name in ipairs(names) do
      local list = aggregate.numbers(group.runs, function(c) return study_folder.number(c, name) end, {})
      f(i, k, (spec.metrics or {})[name] or {}, list, aggregate.threshold(spec, name, group.runs), group.runs, name)
    end
  end
  return names
end

-- What the seeds gave themselves, where there are several: a mean hides runs that know and runs that guess.
local function each_seed(out, study, spec)
  local kinds, names, rows = study_folder.groups(study.runs), metric_names(study, spec), {}
  each(study, spec, function(i, k, about, list)
    if #list < 2 then return end
    local of = tables.map(list, function(v) return format.short(v, about.unit) end)
    local value, low, high = stats.iqm(list), nil, nil
    if #list >= aggregate.FEW then value, low, high = aggregate.interval(list, "iqm") end
    rows[#rows + 1] = { kinds[i].name ~= "" and kinds[i].name or "–", names[k], { table.concat(of, "  "), class = "wide" },
      { format.short(stats.median(list), about.unit), class = "number" }, { shown(value, low, high, about.unit), class = "number" } }
  end)
  if #rows == 0 then return end
  out:fold("Each seed, median and interquartile mean", function()
    out:table({ "runs", "metric", "seeds", "median", "interquartile mean" }, rows)
    out:paragraphs("Seeds in their order. The interquartile mean has its stratified bootstrap interval (Agarwal et al. 2021) from ten seeds on; of fewer "
      .. "it would be too narrow.", "dim")
  end)
end

-- The runs at a reference's place.
local function at(study, where)
  return tables.map(study.runs, function(r) return figure_references.fits(r, where) and r or nil end)
end

-- What was published: a number, or a curve's value after as many steps as our runs have made at most; the steps of either, and ours.
local function published_value(r, study)
  local steps = 0
  for _, run in ipairs((r.curve or r.steps) and at(study, r.where) or {}) do steps = math.max(steps, study_folder.number(run, "steps") or 0) end
  return r.y or figure_references.at(r.curve, steps), r.steps or r.curve and steps, steps
end

---Values that others published beside ours at the same place, and how far apart they are.
---@param text (string|string[])? the authors', of what is published
function results.published(out, study, spec, text)
  local rows = {}
  for i, r in ipairs(spec.references or {}) do
    local unit, ours, apart = ((spec.metrics or {})[r.of] or {}).unit, "–", "–"
    local y, steps, mine = published_value(r, study)
    local agree = not r.steps or math.abs(mine / r.steps - 1) <= BUDGET
    local list = r.where and r.of and aggregate.numbers(at(study, r.where), function(c) return study_folder.number(c, r.of) end, {}) or {}
    if y and #list > 0 then
      local mean, low, high = aggregate.interval(list, "mean", ((spec.metrics or {})[r.of] or {}).range)
      ours = shown(mean, low, high, unit)
      apart = y ~= 0 and ("%+.3g %%"):format(100 * (mean / y - 1)) or ("%+.3g"):format(mean)
      if not agree then apart = ("not compared: ours after %s steps"):format(format.short(mine))
      elseif low and low < high then apart = (y >= low and y <= high and "%s, within our interval" or "%s, outside our interval"):format(apart) end
    end
    local published = y and format.short(y, unit) .. (steps and (" after %s steps"):format(format.short(steps)) or "") or "–"
    rows[i] = { r[1], r.of or "–", { published, class = "number" }, { ours, class = "number" }, apart, r.source or "–" }
  end
  if #rows == 0 and not text then return end
  out:heading(3, "published", "Published and measured values")
  if text then out:paragraphs(text) end
  if #rows == 0 then return end
  out:table({ "for comparison", "of", "published", "ours (95 % interval)", "ours against published", "source" }, rows)
  out:paragraphs("Values of others are lines in the figures.", "dim")
end

---Each kind of run with each metric: mean, interval, how many seeds; and the seeds.
function results.write(out, study, spec)
  local any = false
  local rows = tables.map(study_folder.groups(study.runs), function(group) return { group.name ~= "" and group.name or "–" } end)
  local names = each(study, spec, function(i, k, about, list, threshold, runs, name)
    local text = "–"
    if #list > 0 then
      local mean, low, high = aggregate.interval(list, "mean", about.range)
      any, text = true, ("%s, %s"):format(shown(mean, low, high, about.unit), format.counted(#list, "seed"))
      if threshold then text = ("%s; %s"):format(text, aggregate.solved_of(list, runs, threshold, name)) end
      local guess = aggregate.guess(name, runs, mean)
      if guess then text = ("%s; %s"):format(text, guess) end
    end
    rows[i][k + 1] = { text, class = "number" }
  end)
  if not any then return out:paragraphs("No run has a number yet.", "dim") end
  local head = { "runs" }
  for k, name in ipairs(names) do
    local about = ((spec.metrics or {})[name] or {})[1] or name == FRESH and "success of the fresh episodes of runs that stopped"
    head[k + 1] = about and about ~= name and ("%s: %s"):format(name, about) or name
  end
  local function shown_table()
    out:table(head, rows)
    out:paragraphs("Mean over seeds, 95 % interval, and how many seeds; without an interval where one seed is there or all gave the same number.", "dim")
  end
  if #rows > MOST then out:fold("Points: every metric of each", shown_table) else shown_table() end
  each_seed(out, study, spec)
end

-- ---- a study's tuning ----

local TUNED = "The settings %s were tuned, for each of %d with the same budget of %d trials%s: settings that fill the space evenly (Sobol), then further seeds "
  .. "of the best. Trials had the seeds %d to %d, in the order of need; the runs of this page have others. Searched: %s. The number to be %s was %s. "
  .. "The pick was made before the fresh runs; the best mean of a tuning is too high, as it was chosen for it."

-- The mean of the study's runs that have these labels.
local function fresh_text(study, labels, by, about)
  local list = tables.map(at(study, labels), function(run) return run.status == "done" and study_folder.number(run, by) or nil end)
  if #list == 0 then return "–" end
  local value, low, high = aggregate.interval(list, "mean", about.range)
  return ("%s, %d"):format(shown(value, low, high, about.unit), #list)
end

---The tuning of a study, as a paragraph and a table; nothing where there was none.
function results.tuning(out, study, spec)
  local tuned = tuning_picks.tuned(study.path)
  if not tuned then return end
  local t, rows, most = tuned.tune, {}, 1
  local about = (spec.metrics or {})[t.by] or {}
  for i, point in ipairs(tuned.points) do
    local pick = point.picks[1]
    rows[i] = { point.name ~= "" and point.name or "all runs", grid.text(pick.values, " "),
      { ("%s, %d"):format(format.short(pick.mean, about.unit), pick.seeds), class = "number" },
      { fresh_text(study, point.labels, t.by, about), class = "number" } }
    most = math.max(most, point.seeds)
  end
  out:heading(3, "tuning", "Tuning")
  out:paragraphs(TUNED:format(table.concat(tables.found(t.ranges, "(%S+)="), ", "), #tuned.points, tuned.trials,
    tuned.steps and (" of %s steps"):format(format.short(tuned.steps)) or "",
    tuned.first_seed, tuned.first_seed + most - 1, t.ranges, t.minimise and "low" or "high", t.by))
  out:table({ "runs", "picked", "tuning, seeds", "fresh seeds" }, rows)
  local crowded = search_space.crowded(t.ranges, tables.map(tuned.points, function(point) return point.picks[1].values end))
  if crowded[1] then out:paragraphs(("%s: a wider range may have a better one."):format(table.concat(crowded, "; "))) end
end
-- ---- the memory: what the stored map of one says, of the best run that has one, in the sentences of `mneme where` ----

-- The sentences of a run's maps; nil where that of erasing does not go over all steps.
local function told(path)
  local function stored(test)
    local map = causal_map_file.of_run(path, { test = test })
    return map.coarse and { map = map, cells = map:view().cells } or nil
  end
  local kept = stored "erase"
  if not kept then return nil end
  local what = memory_story.what(kept.map.carrier.env)
  local sentences, lost = memory_story.sentences(kept, memory_story.fails(kept.map) and stored "hold" or nil, what)
  if not lost then sentences = memory_story.sentences(kept, nil, what) end            -- why no part lost it, readings would have to say
  return table.concat(sentences, " "), #kept.map.outcomes
end

---Adds the sentences to a page; nothing where no run keeps a map of its memory.  An imported run has no map: its checkpoints are elsewhere.
function results.memory(out, study)
  local best, score
  for _, run in ipairs(study.runs) do
    local m = run.metrics or {}
    local x = m.fresh_score or m.score or m.mean_return or -math.huge
    if run.path and not run.kept and #files.list(run.path .. "/where") > 0 and (not best or x > score) then best, score = run, x end
  end
  if not best then return end
  local before = trusted_code.folder
  local ok, text, episodes = xpcall(told, errors.handler, best.path)
  trusted_code.folder = before
  if ok and text then out:paragraphs(("%s, by %d episodes: %s"):format(best.name, episodes, text))
  elseif not ok and text.silent then error(text, 0)
  elseif not ok then terminal.note(("mneme: warning: nothing of the memory of %s in the report: %s"):format(best.name, tostring(text))) end
end

return results
