-- compare.lua -- `mneme compare RUN RUN ...`: runs side by side in the terminal.
local lazy = require "mneme.base.lazy"
local metrics_reader = lazy "mneme.runs.metrics_reader"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local trusted_code = require "mneme.base.trusted_code"
local tables = require "mneme.base.tables"
local study_folder = lazy "mneme.lab.study.study_folder"
local reference_scores = lazy "mneme.envs.reference_scores"
local format = require "mneme.base.format"
local provenance = lazy "mneme.lab.study.provenance"
local resources = lazy "mneme.runs.resources"
local run_folder = lazy "mneme.runs.run_folder"
local run_sources = lazy "mneme.runs.run_sources"
local aggregate = lazy "mneme.lab.study.aggregate"
local settings_diff = lazy "mneme.lab.study.settings_diff"
local stats = lazy "mneme.stats"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"
local columns = require("mneme.base.layout").table

local compare = { name = "compare", doc = "compare runs or studies: settings that differ, results, curves, resources", loads = true, about = [[
Runs that differ by their seed alone form a group, with an interval over seeds; of a study (a sweep's folder) all runs are compared.]],
  arguments = { { "paths", "RUN|STUDY", "runs, studies", noun = "runs", several = true } },
  options = {
    { "by", "the curve that is drawn and compared", type = "text", unless = "charts/score, or what the runs have: eval/accuracy", example = "charts/score" },
    { "all", "everything that was logged, not only results", type = "switch", default = false },
  } }
local POINTS, FEWEST, SIDE_BY_SIDE = 48, 10, 4          -- letters of a curve, in a narrow terminal; groups that stand as columns, more stand as rows
local BLOCKS = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
local GUESS = "guessing"                     -- what no memory gives, else random actions, or of a data set the most frequent answer
local FRESH = "score, fresh episodes"        -- of runs that stopped at their stop_score
local NORMALISED = "normalised"              -- where that score lies between no memory (0) and a perfect one (1)
local RESULT = "score, last 100 episodes"   -- which runs record at their end; those of earlier versions only in studies
local of_end = { [RESULT] = "score", [FRESH] = "fresh", [NORMALISED] = "normalised", [GUESS] = "guess" }

-- ---- what is compared ----

-- What a run recorded at its end: its score, and that of fresh episodes.
local function scores_of(path, ended)
  if ended and ended.results.score then return ended.results.score, ended.fresh and ended.fresh.score end
  local result = files.is_file(path .. "/result.json") and study_folder.result(path)
  local metrics = result and result.metrics or {}
  return tonumber(metrics.score), tonumber(metrics.fresh_score)
end

-- What guessing gives in its environment or data set.
local function guess_of(info, ended)
  local score, words = reference_scores.guess(info.reference)
  if score then return ("%s (%s)"):format(reference_scores.short(score), words) end
  local commonest = ended and ended.results.commonest
  return commonest and ("%s (the most frequent answer)"):format(reference_scores.short(commonest)) or nil
end

local function load_run(path, name, together)
  local ended = run_folder.outcome.read(path)
  local info = run_folder.read_info(path)
  local flat = settings_diff.flat(info.config)
  for _, key in ipairs { "env", "parameters", "commit", "device" } do flat[key] = info[key] end
  for _, key in ipairs(run_folder.starts.numeric) do flat[key] = run_folder.starts.text(info, key) or flat[key] end
  local sequences = type(info.sequence_task) == "table" and info.sequence_task.name or nil
  for _, file in ipairs(run_sources.latest(info).source) do flat["code of " .. file.path] = file.checksum end
  local score, fresh = scores_of(path, ended)
  return { path = path, name = name, info = info, env = info.env or sequences or info.script or "", flat = flat,
    score = score, fresh = fresh, normalised = reference_scores.normalised(fresh or score, info.reference),
    stopped = ended and ended.ended == "stop_score", guess = guess_of(info, ended),
    seed = info.seed or 0, key = together,
    curves = metrics_reader.read(path), used = resources.read(path) or {} }
end

-- The runs that a command-line argument names.
local function runs_of(path, list)
  path = path:gsub("(.)/+$", "%1")
  if not files.is_file(path .. "/study.json") then
    list[#list + 1] = load_run(path, path)
    return
  end
  local begun = 0
  for _, group in ipairs(study_folder.groups(study_folder.load(path).runs)) do
    for _, of_study in ipairs(group.runs) do
      if of_study:info() then
        local name = ("%s: %s"):format(path, group.name)
        list[#list + 1], begun = load_run(of_study.path, name, name), begun + 1
      end
    end
  end
  if begun == 0 then errors.usage(path .. ": no run of this study has begun") end
end

-- A value in which a group's runs differ, such as the commits of a resumed study, is marked as such.
local function join(flat, more)
  for key, value in pairs(more) do
    if flat[key] == nil then flat[key] = value
    elseif setting_types.show(flat[key]) ~= setting_types.show(value) then flat[key] = "several" end
  end
end

-- Runs with equal settings and other seeds stand together, as do those of one run of a study's grid; the same seed again
-- begins a new group.  An empty text is no value.
local function group(list)
  local groups, by_key, apart = {}, {}, settings_diff.idle "seed"
  settings_diff.fill(list)
  for _, r in ipairs(list) do
    local mine, same = nil, {}
    for _, key in ipairs(tables.keys(r.flat)) do
      if apart[key] or r.flat[key] == "" then r.flat[key] = nil else same[#same + 1] = key .. "=" .. setting_types.show(r.flat[key]) end
    end
    r.key = r.key or table.concat(same, "\n")
    for _, g in ipairs(by_key[r.key] or {}) do
      if not mine and not g.seeds[r.seed] then mine = g end
    end
    if not mine then
      mine = { runs = {}, seeds = {}, flat = {}, name = r.name }
      by_key[r.key] = by_key[r.key] or {}
      table.insert(by_key[r.key], mine)
      groups[#groups + 1] = mine
    end
    mine.runs[#mine.runs + 1], mine.seeds[r.seed] = r, r
    join(mine.flat, r.flat)
  end
  for i, g in ipairs(groups) do
    table.sort(g.runs, function(a, b) return a.seed < b.seed end)
    g.letter = #groups <= 26 and string.char(64 + i) or tostring(i)
  end
  return groups
end

-- ---- tables ----

-- A row for each key and a column for each group; of many groups the other way round.
local function beside(groups, keys, text_of)
  local of_groups = tables.map(groups, function(g) return { g.letter, unpack(tables.map(keys, function(key) return text_of(g, key) end)) } end)
  table.insert(of_groups, 1, { "", unpack(keys) })
  if #groups > SIDE_BY_SIDE then return columns(of_groups) end
  return columns(tables.map(of_groups[1], function(_, k) return tables.map(of_groups, function(of) return of[k] end) end))
end

-- ---- numbers ----

local function last(r, name)
  if of_end[name] then return r[of_end[name]] end
  local c = r.curves[name]
  return c and c.y[c.n] or nil
end

local function finals(g, name)
  return tables.map(g.runs, function(r) return last(r, name) end)
end

local function with_interval(estimate, low, high)
  local s = format.short(estimate)
  return low and ("%s (%s to %s)"):format(s, format.short(low), format.short(high)) or s
end

-- Scores and accuracies are within 0..1, and so are their intervals.
local function mean_text(list, name)
  if #list == 0 then return "–" end
  local share = name == RESULT or name == FRESH or name:find "%f[%w]score$" or name:find "%f[%w]accuracy$"
  if share and aggregate.within(list, { 0, 1 }) then return with_interval(stats.bounded_interval(list, 0, 1)) end
  local estimate, low, high = stats.t_interval(list)
  if low and (name:find "episodes$" or name:find "length$") then low = math.max(0, low) end          -- counts
  return with_interval(estimate, low, high)
end

-- Logged results: charts, evaluations, and values without a group; everything on request.
local function names_of(groups, all)
  local names = {}
  for _, g in ipairs(groups) do
    for _, r in ipairs(g.runs) do
      for name in pairs(r.curves) do
        local chart = name:find "^charts/" and name ~= "charts/SPS" and name ~= "charts/learning_rate"
        if all or chart or name:find "^eval/" or not name:find "/" then names[name] = true end
      end
    end
  end
  return tables.keys(names)
end

local function choose(o, names, groups)
  local every = o.by and names_of(groups, true)
  if o.by and not tables.has(every, o.by) then errors.unknown("curve for by =", o.by, every) end
  for _, name in ipairs { "charts/score", "score", "eval/bits_per_character", "eval/accuracy", "charts/episodic_return" } do
    if not o.by and tables.has(names, name) then return name end
  end
  return o.by or names[1]
end

-- The difference of each group to the first, from equal seeds where there are any.
local function differences(groups, name)
  local rows, first = {}, groups[1]
  for i = 2, #groups do
    local g, x, y = groups[i], {}, {}
    for _, r in ipairs(g.runs) do
      local other = first.seeds[r.seed]
      local a, b = last(r, name), other and last(other, name)
      if a and b then x[#x + 1], y[#y + 1] = a, b end
    end
    local how, d, low, high, p = format.counted(#x, "equal seed")
    if #x > 0 then
      local by_seed = tables.map(x, function(v, k) return v - y[k] end)
      d, low, high, p = stats.t_interval(by_seed)
      if #x > 1 and aggregate.no_spread(by_seed) then low, high, p, how = nil, nil, stats.sign_test(stats.wins(x, y)), how .. ", which all differ by this" end
    else
      x, y, how = finals(g, name), finals(first, name), "other seeds"
      if #x > 0 and #y > 0 then d, low, high, p = stats.welch_interval(x, y) end
      if low == high then low, high, p = nil, nil, nil end             -- no seed differs from another of its side
    end
    if d then rows[#rows + 1] = { g.letter .. " - " .. first.letter, with_interval(d, low, high), how,
      p and (p < 5e-4 and "p < 0.001" or ("p %.3f"):format(p)) or "" } end
  end
  return rows
end

-- Groups whose runs stop when they solve their task: how many did.  charts/score is of the episodes since the log's last line, so it only
-- stands in where a run did not record the score of its last hundred, which stopped it.
local function solved(groups)
  local rows = {}
  for _, g in ipairs(groups) do
    local threshold, list, by = aggregate.stop_score(g.runs[1].path), finals(g, RESULT), ""
    if #list < #g.runs then list, by = finals(g, "charts/score"), ", by the score since the last log line" end
    local fresh = finals(g, FRESH)
    if #fresh > 0 and threshold then by = by .. ("; fresh episodes give as much in %d of %d"):format(stats.solved(fresh, threshold)) end
    if threshold and #list > 0 then rows[#rows + 1] = { g.letter, ("%s: %s%s"):format(setting_types.show(threshold), aggregate.solved(list, threshold,
      true), by) } end
  end
  return rows
end

-- ---- curves ----

-- The mean curve of a group at the places of a grid; false where not all runs have a value.  One that reached its stop_score keeps its last, as in reports.
local function mean_curve(g, name, grid)
  local line, list, stopped = {}, {}, {}
  for _, r in ipairs(g.runs) do list[#list + 1], stopped[r.curves[name] or r] = r.curves[name], r.stopped end
  for k, x in ipairs(grid) do
    local sum, n = 0, 0
    for _, c in ipairs(list) do
      if c.x[1] <= x and (x <= c.x[c.n] or stopped[c]) then
        local i = 1
        while i < c.n and c.x[i + 1] <= x do i = i + 1 end
        sum, n = sum + c.y[i], n + 1
      end
    end
    line[k] = n > 0 and n == #list and sum / n
  end
  return line
end

-- All groups' curves under each other, on one scale.
local function sparks(groups, name)
  local from, to, low, high = math.huge, -math.huge, math.huge, -math.huge
  for _, g in ipairs(groups) do
    for _, r in ipairs(g.runs) do
      local c = r.curves[name]
      if c then from, to = math.min(from, c.x[1]), math.max(to, c.x[c.n]) end
    end
  end
  if from > to then return "" end
  local texts, widest = {}, 0
  for i, g in ipairs(groups) do
    texts[i] = mean_text(finals(g, name), name)
    widest = math.max(widest, terminal.letters(texts[i]))
  end
  local room = (terminal.columns(1) or math.huge) - 6 - #groups[#groups].letter - widest
  local letters = math.max(FEWEST, math.min(POINTS, room))
  local grid, n, lines = {}, from == to and 1 or letters, {}
  for k = 1, n do grid[k] = k == n and to or from + (to - from) * (k - 1) / (n - 1) end
  for i, g in ipairs(groups) do
    lines[i] = mean_curve(g, name, grid)
    for _, y in ipairs(lines[i]) do if y then low, high = math.min(low, y), math.max(high, y) end end
  end
  local rows = tables.map(groups, function(g, i)
    local signs = tables.map(lines[i], function(y) return y and BLOCKS[high > low and math.floor((y - low) / (high - low) * 7 + 1.5) or 4] or " " end)
    return { g.letter, table.concat(signs), texts[i] }
  end)
  local between = low <= high and (", between %s and %s"):format(format.short(low), format.short(high)) or ""
  return ("%s, from step %s to %s%s\n"):format(name, format.short(from), format.short(to), between) .. columns(rows)
end

-- ---- the whole ----

local costs = { ["wall-clock time"] = "wall_s", ["processor time"] = "cpu_s", ["peak memory"] = "peak_mib", energy = "energy_j" }

-- What a run of each group took, in the mean.
local function took(groups)
  return beside(groups, { "wall-clock time", "processor time", "peak memory", "energy" }, function(g, name)
    local list = tables.map(g.runs, function(r) return tonumber(r.used[costs[name]]) end)
    return #list > 0 and format.resource(costs[name], stats.mean(list)) or "–"
  end)
end

local function heads(groups)
  return columns(tables.map(groups, function(g)
    local of, name, others = tables.map(g.runs, function(r) return tostring(r.seed) end), g.name, #g.runs - 1
    if others > 0 and g.runs[1].path == name then name = ("%s and %d more"):format(name, others) end
    return { g.letter, name, (#of > 1 and "seeds " or "seed ") .. table.concat(of, " ") }
  end))
end

---Runs side by side.
---@param paths string[] of runs and studies
---@param o table? { by = name of a curve, all = true }
---@return string? warning
function compare.text(paths, o)
  local list, out = {}, {}
  o = o or {}
  for _, path in ipairs(paths) do runs_of(path, list) end
  local groups, envs = group(list), tables.set(tables.map(list, function(r) return setting_types.show(r.env) end))
  local names = names_of(groups, o.all)
  if #names == 0 and #names_of(groups, true) == 0 then errors.fail("compare: none of these runs has logged anything yet") end
  local by = choose(o, names, groups)
  out[1] = heads(groups)
  local _, differ = settings_diff.divide(tables.map(groups, function(g) return g.flat end))
  local function add(title, text) out[#out + 1] = "\n" .. title .. "\n" .. text end
  if #differ > 0 then
    add("settings that differ", beside(groups, differ, function(g, key) return g.flat[key] == nil and "–" or setting_types.show(g.flat[key]) end))
  elseif #groups > 1 then add("settings that differ", "  none: these are runs of the same settings and seeds\n") end
  local runs, unsound = tables.map(list, function(r) return { run = { name = r.path:match "[^/]*$" }, info = r.info } end), {}
  for _, path in ipairs(paths) do
    local study = files.is_file(path .. "/study.json") and study_folder.load(path)
    for _, text in ipairs(provenance.sentences(study and study.runs or { { path = path } }, study or nil)) do unsound[#unsound + 1] = text end
  end
  local codes, resumed = provenance.differences(runs)
  for _, part in ipairs { { "not as it was written: mneme check lists all of it", unsound }, { "not made by one code", codes }, { "resumed", resumed } } do
    if #part[2] > 0 then add(part[1], "  " .. table.concat(part[2], "\n  ") .. "\n") end
  end
  if #names > 0 then
    for _, name in ipairs { FRESH, RESULT, NORMALISED, GUESS } do
      if tables.map(list, function(r) return last(r, name) end)[1] then names[#names + 1] = name end
    end
    local last_of = function(g, name)
      if name == GUESS then return g.runs[1].guess or "–" end
      local stopped = name == RESULT
      for _, r in ipairs(g.runs) do stopped = stopped and r.stopped end
      return mean_text(finals(g, name), name) .. (stopped and ", first reached" or "")
    end
    local of = tables.map(groups, function(g) return g.runs[2] end)[1] and "means with 95 % intervals over seeds" or "one seed each"
    add("last values, " .. of, beside(groups, names, last_of))
  end
  local solvers = solved(groups)
  if #solvers > 0 then add("score first reached stop_score, shares with 95 % intervals (Wilson)", columns(solvers)) end
  if by then
    out[#out + 1] = "\n" .. sparks(groups, by)
    local rows = differences(groups, by)
    if #rows > 0 then add("difference in " .. by .. " at the end", columns(rows)) end
  end
  add("resources", took(groups))
  local kinds = tables.keys(envs)
  return table.concat(out), #kinds > 1 and "runs of different environments: " .. table.concat(kinds, ", ") or nil
end

function compare.run(o)
  local paths = o.paths
  trusted_code.folder = paths[1]
  local text, warning = compare.text(paths, o)
  if warning then terminal.note("mneme: warning: " .. warning) end
  io.stdout:write(text)
  if #paths == 1 and files.is_file(paths[1] .. "/study.json") then terminal.next_step.say { "report", paths[1] }
  elseif #paths == 2 and not files.is_file(paths[1] .. "/study.json") and not files.is_file(paths[2] .. "/study.json") then
    terminal.next_step.say({ "view", unpack(paths) }, { "diff", unpack(paths) })
  else terminal.next_step.say { "view", files.is_file(paths[1] .. "/study.json") and "RUN" or paths[1] } end
  return 0
end

return compare
