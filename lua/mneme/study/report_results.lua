-- report_results.lua -- the results in a report: each metric of each point, and, folded away, each
-- seed's.
local tables = require "mneme.base.tables"
local folder = require "mneme.study.folder"
local numbers = require "mneme.base.format"
local seeds = require "mneme.study.aggregate"
local stats = require "mneme.stats"

local results = {}

-- The metrics that are shown, in order: those that the study declares, or all; series have no number.
local function metric_names(study, spec)
  local all = {}
  for _, c in ipairs(study.runs) do
    for name in pairs(c.metrics) do all[name] = not spec.metrics or spec.metrics[name] ~= nil or nil end
  end
  return tables.keys(all)
end

-- A number with its interval, if it has one.
local function shown(value, low, high, unit)
  local text = numbers.short(value, unit)
  return low and low < high and ("%s (%s … %s)"):format(text, numbers.short(low, unit), numbers.short(high, unit)) or text
end

-- Every kind of run and metric that has numbers: fun(kind, metric, { declared }, numbers of its seeds,
-- from which value on it is solved or nil).
local function each(study, spec, f)
  local names = metric_names(study, spec)
  for i, group in ipairs(folder.groups(study.runs)) do
    for k, name in ipairs(names) do
      local list = seeds.numbers(group.runs, function(c) return folder.number(c, name) end, {})
      f(i, k, (spec.metrics or {})[name] or {}, list, seeds.threshold(spec, name, group.runs))
    end
  end
  return names
end

-- What the seeds gave themselves, where there are several: a mean hides runs that know and runs that guess.
local function each_seed(out, study, spec, words)
  local kinds, names, rows = folder.groups(study.runs), metric_names(study, spec), {}
  each(study, spec, function(i, k, about, list)
    if #list < 2 then return end
    local of = {}
    for s, v in ipairs(list) do of[s] = numbers.short(v, about.unit) end
    local enough = #list >= seeds.FEW
    local value, low, high
    if enough then value, low, high = seeds.interval(list, "iqm") else value = stats.iqm(list) end
    rows[#rows + 1] = { kinds[i].name ~= "" and kinds[i].name or "–", names[k], { table.concat(of, "  "), class = "wide" },
      { numbers.short(stats.median(list), about.unit), class = "number" }, { shown(value, low, high, about.unit), class = "number" } }
  end)
  if #rows == 0 then return end
  out:fold(words.each_seed, function()
    out:table({ words.kind, words.metric, words.seeds, words.median, words.iqm }, rows)
    out:paragraphs(words.iqm_note, "dim")
  end)
end

---Each kind of run with each metric: mean, interval, how many seeds; and the seeds.
---@param out table page
---@param study table of mneme.studies.folder
---@param spec table what mn.study was given
---@param words table of mneme.studies.words
function results.write(out, study, spec, words)
  local rows, any = {}, false
  for i, group in ipairs(folder.groups(study.runs)) do rows[i] = { group.name ~= "" and group.name or "–" } end
  local names = each(study, spec, function(i, k, about, list, threshold)
    local text = "–"
    if #list > 0 then
      local mean, low, high = seeds.interval(list, "mean", about.range)
      any, text = true, ("%s, %d"):format(shown(mean, low, high, about.unit), #list)
      if threshold then text = ("%s; %s"):format(text, seeds.solved(list, threshold)) end
    end
    rows[i][k + 1] = { text, class = "number" }
  end)
  if not any then return out:paragraphs(words.no_number, "dim") end
  local head = { words.kind }
  for k, name in ipairs(names) do
    local about = ((spec.metrics or {})[name] or {})[1]
    head[k + 1] = about and about ~= name and ("%s: %s"):format(name, about) or name
  end
  out:table(head, rows)
  out:paragraphs(words.mean_note, "dim")
  each_seed(out, study, spec, words)
end

return results
