-- plain_runs.lua -- runs that no study describes: folders of runs as one study, and for studies without figures or claims of their own
-- the usual ones: curves with bands and scores at the end.
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local resources = require "mneme.runs.resources"
local run_folder = require "mneme.runs.run_folder"
local settings_diff = require "mneme.lab.study.settings_diff"
local tables = require "mneme.base.tables"
local text = require "mneme.insight.figures.text"
local setting_types = require "mneme.base.setting_types"

local plain = { AXIS = "run" }     -- the axis of runs that no study describes
-- Settings that make no other point.
local apart = settings_diff.idle "seed"
-- Curves and results that are drawn where nobody says which, the first ones first.
local usual_curves = { "charts/score", "charts/episodic_return", "eval/accuracy", "eval/bits_per_character" }
local usual_results = { "score", "normalised", "mean_return", "accuracy", "bits_per_character" }
local usual_metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } }, mean_return = { "return, mean of the last 100 episodes" },
  normalised = { "share of what a memory can add: 0 without one, 1 a perfect one" },
  fresh_score = { "success of fresh episodes, after it stopped", range = { 0, 1 } }, fresh_greedy = { "the same, greedy", range = { 0, 1 } },
  episodic_return = { "return" }, accuracy = { "accuracy", range = { 0, 1 } }, bits_per_character = { "bits a character" } }

local since_log = { "success, since the last log line", range = { 0, 1 } }        -- of runs that did not record it at their end

-- ---- run folders as a study ----

local function read_run(path, name)
  local info = run_folder.read_info(path)
  local flat = settings_diff.flat(info.config)
  flat.env = info.env
  return { path = path, of = name, info = info, flat = flat, seed = info.seed or 0 }
end

-- The labels of a run's point, if the folder lies in a study; and which study.  read: the studies that were read so far.
local function point_of(path, read)
  local study, name = path:match "^(.*)/runs/([^/]+)$"
  if not study or not files.is_file(study .. "/study.json") then return nil end
  read[study] = read[study] or study_folder.load(study)
  for _, r in ipairs(read[study].runs) do if r.name == name then return r.labels, study end end
end

-- Runs of one study are called as their points are, by the axes in which they differ.
local function name_points(list)
  local differ = {}
  for _, r in ipairs(list) do
    if not r.labels or r.study ~= list[1].study then return end
    for axis, label in pairs(r.labels) do differ[axis] = differ[axis] or label ~= list[1].labels[axis] or nil end
  end
  local axes = tables.keys(differ)
  for _, r in ipairs(axes[1] and list or {}) do
    r.label = table.concat(tables.map(axes, function(axis) return (#axes > 1 and axis .. "=" or "") .. setting_types.show(r.labels[axis]) end), ", ")
  end
end

local function read_all(paths)
  local list, studies = {}, {}
  for _, path in ipairs(paths) do
    path = path:gsub("(.)/+$", "%1")
    if files.is_file(path .. "/study.json") then
      for _, group in ipairs(study_folder.groups(study_folder.load(path).runs)) do
        for _, r in ipairs(group.runs) do
          if r:info() then
            list[#list + 1] = read_run(r.path, path)
            if #paths == 1 then list[#list].label = group.name end
          end
        end
      end
    elseif files.is_file(path .. "/config.json") then
      list[#list + 1] = read_run(path)
      list[#list].labels, list[#list].study = point_of(path, studies)
    else errors.usage(path .. ": neither a run nor a study", "a run's folder has a config.json, a study's a study.json; mneme list runs " .. path) end
  end
  if #list == 0 then errors.usage(table.concat(paths, " ") .. ": no run has begun") end
  name_points(list)
  return list
end

-- What a run is called: the settings in which it differs from others.
local function label_of(r, differ)
  if r.label then return r.label end
  local label = table.concat(tables.map(differ, function(key)
    return r.flat[key] ~= nil and (key == "core" and "" or key:match "[^.]*$" .. "=") .. setting_types.show(r.flat[key]) or nil
  end), " ")
  return label ~= "" and label or setting_types.show(type(r.info.core) == "table" and r.info.core.name or r.info.script or "run")
end

-- Of the settings that differ those that somebody gave, where they name the runs apart as all of them do: others follow from these.
local function told_apart_by(list, differ)
  local given = tables.map(differ, function(key)
    local by_hand = key == "core"
    for _, r in ipairs(list) do by_hand = by_hand or type(r.info.values_from) == "table" and r.info.values_from[key] == "given" end
    return by_hand and key or nil
  end)
  local function labels(keys) return #tables.groups(list, function(r) return label_of(r, keys) end) end
  return labels(given) == labels(differ) and given or differ
end

---Runs, and the runs of studies, as one study with one axis: the settings in which they differ.
---@return table study as folder.load has it
function plain.study(paths)
  local list, flats, runs, seen = read_all(paths), {}, {}, {}
  settings_diff.fill(list)
  for i, r in ipairs(list) do
    for key in pairs(apart) do r.flat[key] = nil end
    flats[i] = r.flat
  end
  local _, differ = settings_diff.divide(flats)
  differ = told_apart_by(list, differ)
  local last_scores = false
  for i, r in ipairs(list) do
    local plain_label, again = label_of(r, differ), 1
    local label = plain_label
    while seen[label .. "\n" .. r.seed] do                              -- the same settings and seed once more
      again = again + 1
      label = ("%s #%d"):format(plain_label, again)
    end
    seen[label .. "\n" .. r.seed] = true
    local result = files.is_file(r.path .. "/result.json") and study_folder.result(r.path) or {}
    local run = study_folder.run { name = ("%s=%s,seed=%d"):format(plain.AXIS, label, r.seed), path = r.path, labels = { [plain.AXIS] = label }, seed = r.seed,
      metrics = result.metrics or {}, series = result.series, resources = result.resources or resources.read(r.path), status = result.status or "open" }
    for name, curve in pairs(run:curves()) do
      if curve.n > 0 then run.status = result.status or "done" end
      local short = name:match "^charts/(.*)" or name:match "^eval/(.*)" or not name:find "/" and name
      if short and curve.n > 0 and not result.metrics and short ~= "SPS" and short ~= "learning_rate" then run.metrics[short] = curve.y[curve.n] end
    end
    local ended, curve = not result.metrics and run_folder.outcome.read(r.path), run:curves()["charts/score"]
    for name, value in pairs(ended and ended.results or {}) do run.metrics[name] = value end
    for name, value in pairs(ended and run_folder.outcome.metrics(r.path) or {}) do run.metrics[name] = value end
    last_scores = last_scores or curve ~= nil and curve.n > 0 and not (result.metrics or ended and ended.results or {}).score
    runs[i] = run
  end
  for _, run in ipairs(last_scores and runs or {}) do                   -- one kind of number for all
    local curve = run:curves()["charts/score"]
    if curve and curve.n > 0 then run.metrics.score = curve.y[curve.n] end
  end
  local first = list[1]
  return { path = first.of or first.path, runs = runs, last_scores = last_scores, info = {
    title = #list == 1 and first.path:match "[^/]*$" or ("%d runs"):format(#list),
    script = setting_types.show(first.info.script or ""), settings = "", mneme = first.info.mneme, commit = first.info.commit, runs = {} } }
end

-- ---- what a study is asked for where it asks for nothing ----

-- Axes with several values, the one that has "core" in front.
local function varied(study)
  local all = {}
  for _, r in ipairs(study.runs) do all = tables.merged(all, r.labels) end
  local list = tables.map(tables.keys(all), function(axis)
    return #tables.groups(study.runs, function(r) return r.labels[axis] end) > 1 and axis or nil
  end)
  table.sort(list, function(a, b) return (a == "core") ~= (b == "core") and a == "core" or (a == "core") == (b == "core") and a < b end)
  return list, tables.keys(all)
end

---What a curve or a result is called: success, return.
function plain.about(spec, name) return ((spec.metrics[name:match "[^/]*$"] or {})[1] or text.words(name)):match "^[^,]*" end

---The specification of a study, with the usual metrics and figures where it has none.
function plain.spec(study, spec)
  local whole = tables.merged(spec)
  if whole.figures and #whole.figures > 0 then return whole end
  local axes, all = varied(study)
  local by, x, curves, results = axes[1] or all[1], axes[2], {}, {}
  for _, r in ipairs(study.runs) do
    for name in pairs(r:curves()) do curves[name] = true end
    if r.status == "done" then for name in pairs(r.metrics) do results[name] = true end end
  end
  if not whole.metrics then
    whole.metrics = {}
    for name, about in pairs(usual_metrics) do if results[name] or curves["charts/" .. name] then whole.metrics[name] = about end end
    if study.last_scores and whole.metrics.score then whole.metrics.score = since_log end
  end
  local drawn = tables.map(usual_curves, function(name)
    return curves[name] and { "curves", y = name, by = by, title = plain.about(whole, name) .. " while learning" } or nil
  end)
  local ends = tables.map(usual_results, function(name)
    return results[name] and { "bars", y = name, by = by, x = x, title = plain.about(whole, name) .. " at the end" } or nil
  end)
  whole.figures = {}
  for i = 1, math.max(#drawn, #ends) do                            -- a curve, and what it came to
    whole.figures[#whole.figures + 1] = drawn[i]
    whole.figures[#whole.figures + 1] = ends[i]
  end
  return whole
end

return plain
