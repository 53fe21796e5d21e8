-- outcomes_table.lua -- of `mneme eval RUN|STUDY ... outcomes=1 [out=FILE.csv]`: the share of fresh episodes that reach each outcome which the
-- environment declares, such as an achievement, as papers tabulate it.  A column for each run, or for each point of a study with its seeds.
local errors = require "mneme.base.errors"
local field = require("mneme.insight.figures.figure_csv").field
local files = require "mneme.base.files"
local reference_scores = require "mneme.envs.reference_scores"
local stats = require "mneme.stats"
local fresh_episodes = require "mneme.insight.episodes.fresh_episodes"
local stepper = require "mneme.insight.episodes.stepper"
local study_folder = require "mneme.lab.study.study_folder"
local tables = require "mneme.base.tables"

local outcomes = {}

---The geometric mean of success rates as Crafter has it: exp(mean(ln(1 + s))) - 1, each s in percent.
function outcomes.crafter_score(percent)
  local sum = 0
  for _, s in ipairs(percent) do sum = sum + math.log(1 + s) end
  return math.exp(sum / #percent) - 1
end

-- Columns: { name, paths } of a run, or of each point of a study.
local function columns_of(path, list)
  path = path:gsub("(.)/+$", "%1")
  if not files.is_file(path .. "/study.json") then
    list[#list + 1] = { name = path, paths = { path } }
    return
  end
  local found = false
  for _, group in ipairs(study_folder.groups(study_folder.load(path).runs)) do
    local column = { name = group.name ~= "" and group.name or path }
    column.paths = tables.map(group.runs, function(run) return run.status == "done" and not run.kept and run.path or nil end)
    if #column.paths > 0 then list[#list + 1], found = column, true end
  end
  if not found then errors.usage(path .. ": no run of this study is done and has a checkpoint here") end
end

-- What the episodes of one run came to: its names, percents[i] of names[i], mean return and score; nil after a signal.
local function measure(path, o, env)
  local p = stepper.from_run(path, { num_envs = o.num_envs or math.min(o.episodes, 64), seed = o.seed, greedy = o.greedy,
    best = o.best, settings = env })
  local names = p.env.outcomes
  if #names == 0 then
    errors.usage(("eval: outcomes=1, but %s declares none"):format(p.env.id),
      "outcomes = { ... } and outcome of mn.env, or .outcomes of engine/env.h, declare them")
  end
  local reached = p.env:keep_outcomes()
  local out, m = fresh_episodes.play(p, o.episodes, { reached = reached }), { names = names, reached = {}, percent = {} }
  if #out.score < o.episodes then return nil end
  for i = 1, #names do
    m.reached[i] = 0
    for _, e in ipairs(out.reached) do m.reached[i] = m.reached[i] + e:byte(i) end
    m.percent[i] = 100 * m.reached[i] / #out.reached
  end
  m.episodes, m.ret, m.score, m.reference = #out.score, 0, 0, p.env.reference
  for k = 1, m.episodes do m.ret, m.score = m.ret + out.ret[k] / m.episodes, m.score + 100 * out.score[k] / m.episodes end
  m.rets, m.scores = out.ret, out.scored and out.score or nil
  p.env:close()
  return m
end

-- Estimate, low, high over the runs of a column; of a single run over its episodes.
local function share(runs, i)
  local mean, low, high = stats.wilson(runs[1].reached[i], runs[1].episodes)
  if #runs > 1 then mean, low, high = stats.bounded_interval(tables.map(runs, function(m) return m.percent[i] / 100 end), 0, 1) end
  return 100 * mean, 100 * (low or 0 / 0), 100 * (high or 0 / 0)
end

local function mean(runs, of, single) return stats.t_interval(#runs == 1 and single and single(runs[1]) or tables.map(runs, of)) end

-- The rows of the table: name, unit, and f(runs) -> estimate (nil: not known), low, high.
local function rows_of(names)
  local rows = {
    { "return", "", function(runs) return mean(runs, function(m) return m.ret end, function(m) return m.rets end) end },
    { "score", " %", function(runs)
      if not runs[1].scores then return nil end
      return mean(runs, function(m) return m.score end, function(m) return tables.map(m.scores, function(s) return 100 * s end) end)
    end },
    { "Crafter score", " %", function(runs) return mean(runs, function(m) return outcomes.crafter_score(m.percent) end) end },
  }
  for i, name in ipairs(names) do rows[#rows + 1] = { name, " %", function(runs) return share(runs, i) end } end
  return rows
end

local function is_number(x) return x ~= nil and x == x end

---@param o table what eval.lua read: folders, episodes, seed, num_envs, greedy, best, out, known
---@param env table<string, any> settings of the environment
---@param csv string[] gets the lines of the file
---@param check fun(path: string) that these are settings of that run's environment
---@return string[][]? text rows of the table, the first of them its head; nil after a signal
function outcomes.make(o, env, csv, check)
  local columns = {}
  for _, path in ipairs(o.folders) do columns_of(path, columns) end
  for _, column in ipairs(columns) do
    for _, path in ipairs(column.paths) do check(path) end            -- a mistake is said before hours of play
  end
  for _, column in ipairs(columns) do
    column.runs = {}
    for k, path in ipairs(column.paths) do
      column.runs[k] = measure(path, o, env)
      if not column.runs[k] then return nil end
      if table.concat(column.runs[k].names, " ") ~= table.concat(columns[1].runs[1].names, " ") then
        errors.usage(("eval: outcomes=1: %s has other outcomes than %s"):format(path, columns[1].paths[1]), "one table a kind of environment")
      end
    end
  end
  local text = { { "", unpack(tables.map(columns, function(column) return column.name end)) } }
  csv[1] = "outcome,of,estimate,low,high,runs,episodes"
  for _, row in ipairs(rows_of(columns[1].runs[1].names)) do
    local cells, any = { row[1] }, false
    for c, column in ipairs(columns) do
      local estimate, low, high = row[3](column.runs)
      local known = is_number(low) and is_number(high)
      if estimate then
        local guess = row[1] == "score" and reference_scores.text(column.runs[1].reference, estimate / 100)
        any, cells[c + 1] = true, ("%.1f%s%s%s"):format(estimate, row[2], known and ("  [%.1f, %.1f]"):format(low, high) or "", guess and "; " .. guess or "")
        csv[#csv + 1] = ("%s,%s,%.6g,%s,%s,%d,%d"):format(field(row[1]), field(column.name), estimate, known and ("%.6g"):format(low) or "",
          known and ("%.6g"):format(high) or "", #column.runs, column.runs[1].episodes)
      else cells[c + 1] = "–" end
    end
    if any then text[#text + 1] = cells end
  end
  return text
end

return outcomes
