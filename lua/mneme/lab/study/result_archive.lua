-- result_archive.lua -- finished runs of a study in one small file that can be committed: a line of JSON for each, with its
-- settings and commit, its results and thinned curves.  `mneme report STUDY export=FILE` writes it; `mneme sweep SCRIPT
-- import=FILE` restores the run folders, so that these runs are not run again.  A run is imported only if the script still
-- gives it the same settings.
--   { run, study, seed, info = config.json, metrics, series, resources, estimate, curves = { step = {...}, NAME = {...} } }
--   { tuned = what a study's tuning picked, study }
--   { usual = what most of the lines after it have: they leave it out, and have null for what they lack of it }
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local grid = require "mneme.lab.study.grid"
local tuning_picks = require "mneme.lab.study.tuning_picks"
local json = require "mneme.base.json"
local run_folder = require "mneme.runs.run_folder"
local run_sources = require "mneme.runs.run_sources"
local script = require "mneme.runs.script"
local settings_diff = require "mneme.lab.study.settings_diff"
local trusted_code = require "mneme.base.trusted_code"
local setting_types = require "mneme.base.setting_types"

local archive = {}
local POINTS = 100                 -- of a curve

-- Settings that do not change what comes of a run, besides those that say where it lies.
local left_out = settings_diff.idle "device"

local function short(x) return tonumber(("%.6g"):format(x)) end

-- ---- writing ----

-- Of each curve at most POINTS of the steps at which it was measured, the last among them; null at the steps of others.
local function thinned(run, names)
  local all, of, seen = run:curves(), {}, {}
  for _, name in ipairs(names) do
    local curve = all[name] or { x = {} }
    local n = math.min(POINTS, #curve.x)
    of[name] = {}
    for k = 1, n do
      local i = math.floor(k * #curve.x / n + 0.5)
      seen[curve.x[i]], of[name][curve.x[i]] = true, short(curve.y[i])
    end
  end
  local out = { step = json.array {} }
  for step in pairs(seen) do out.step[#out.step + 1] = step end
  table.sort(out.step)
  for _, name in ipairs(names) do
    out[name] = all[name] and json.array(tables.map(out.step, function(step) return of[name][step] or json.null end))
  end
  return #out.step > 0 and out or nil
end

-- Series with six digits, as curves have.
local function rounded(series)
  local out = tables.each(series or {}, function(s)
    return { x = s.x, y = tables.map(s.y, function(y) return type(y) == "number" and short(y) or y end) }
  end)
  return next(out) and out or nil
end

---The curves that a study's figures need.
function archive.curve_names(spec)
  return tables.keys(tables.set(tables.map((spec or {}).figures or {}, function(f) return f[1] == "curves" and f.y or nil end)))
end

local SHAPE = { run = "string", info = { config = {} }, metrics = { ["*"] = "number" }, curves = { ["*"] = "table" }, resources = {}, series = {},
  estimate = {} }

-- Is this a line that archive.write wrote?
local function is_line(entry)
  local fine = type(entry) == "table" and not run_folder.fault(entry, SHAPE, "") and entry.run and entry.info and entry.info.config and entry.metrics
  for _, value in pairs(fine or {}) do fine = fine and type(value) == "number" end
  return fine
end

-- A table with keys, in which values are looked for one by one.
local function is_object(v) return type(v) == "table" and not json.is_array(v) and next(v) ~= nil end

-- Of the values of each key what more than half of the tables have.
local function usual_of(list)
  local out, keys = {}, {}
  for _, entry in ipairs(list) do for key in pairs(entry) do keys[key] = true end end
  for key in pairs(keys) do
    local objects, times = {}, {}
    for _, entry in ipairs(list) do
      local v = entry[key]
      if is_object(v) then objects[#objects + 1] = v
      elseif v ~= nil then
        local text = json.encode(v)
        times[text] = (times[text] or 0) + 1
        if times[text] > #list / 2 then out[key] = v end
      end
    end
    local inner = #objects > #list / 2 and usual_of(objects) or {}
    if next(inner) then out[key] = inner end
  end
  return out
end

-- A table without what is usual; and with it again.
local function unusual(entry, usual)
  local out = {}
  for key, v in pairs(entry) do
    local of = usual[key]
    if is_object(v) and is_object(of) then
      local rest = unusual(v, of)
      if next(rest) then out[key] = rest end
    elseif of == nil or is_object(of) or is_object(v) or json.encode(v) ~= json.encode(of) then out[key] = v end
  end
  for key in pairs(usual) do if entry[key] == nil then out[key] = json.null end end
  return out
end
local function filled(entry, usual)
  local out = {}
  for key, v in pairs(entry) do
    if v ~= json.null then out[key] = is_object(v) and is_object(usual[key]) and filled(v, usual[key]) or v end
  end
  for key, v in pairs(usual) do if entry[key] == nil then out[key] = v end end
  return out
end

-- The lines of a file, by the names of their runs; and the line of a tuning.
local function read(path)
  local runs, n, tuned, usual = {}, 0, nil, {}
  for line in files.read(path):gmatch "([^\n]*)\n?" do
    n = n + 1
    if line:find "%S" then
      local entry, problem = json.decode(line, ("%s, line %d"):format(path, n))
      if problem then errors.fail(problem) end
      if is_object(entry) and is_object(entry.usual) then usual = entry.usual
      elseif type(entry) == "table" and tuning_picks.is_tuned(entry.tuned) then tuned = entry
      else
        entry = type(entry) == "table" and filled(entry, usual)
        if not is_line(entry) then
          errors.fail(("%s, line %d: no run of a study"):format(path, n), "mneme report STUDY export=FILE writes such files")
        end
        runs[entry.run] = entry
      end
    end
  end
  return runs, tuned
end

---The runs of a file, by their names.
function archive.lines(path) return (read(path)) end

---What a file holds: the names of its runs, the study and the script that they are of, and the size, where the first of them says it.
---@return { names: string[], study: string, script: string, size: "quick"|"full"|nil }
function archive.about(path)
  local lines = read(path)
  local names = tables.keys(lines)
  if not names[1] then errors.fail(path .. ": it has no runs") end
  local first = lines[names[1]]
  for _, name in ipairs(names) do
    local study = lines[name].study
    if study ~= first.study then
      errors.fail(("%s: it has runs of two studies, %s and %s"):format(path, setting_types.show(first.study), setting_types.show(study)))
    end
  end
  local cfg = first.info.config
  return { names = names, study = first.study, script = first.info.script, size = cfg.quick == true and "quick" or cfg.full == true and "full" or nil }
end

-- Write lines, by the names of their runs, and the line of a tuning.
local function write(path, lines, tuned)
  local list = tables.map(tables.keys(lines), function(name) return lines[name] end)
  local usual = #list > 1 and usual_of(list) or {}
  local out = next(usual) and { json.encode { usual = usual } .. "\n" } or {}
  for _, entry in ipairs(list) do out[#out + 1] = json.encode(unusual(entry, usual)) .. "\n" end
  out[#out + 1] = tuned and json.encode(tuned) .. "\n"
  files.write(path, out)
  return #list
end

local function stem(info) return (setting_types.show(info.script):match "([^/]*)$":gsub("%.lua$", "")) end

---Write the runs of a study that are done, and what its tuning picked; runs that the file has of the same study besides them stay in it.
---@param names string[] of curves
---@return integer n runs in the file
function archive.write(path, study, names)
  local name, tuned, lines, other = stem(study.info), tuning_picks.tuned(study.path), {}, nil
  if files.is_file(path) then lines, other = read(path) end
  for run, line in pairs(lines) do
    if line.study ~= name then errors.fail(("%s holds runs of %s: %s"):format(path, setting_types.show(line.study), run), "export=ANOTHER") end
  end
  for _, c in ipairs(study.runs) do
    local info = c.status == "done" and c:info()
    if info then
      lines[c.name] = { run = c.name, study = name, seed = c.seed, info = info, metrics = c.metrics, series = rounded(c.series), resources = c.resources,
        estimate = c.estimate, curves = thinned(c, names) }
    end
  end
  if tuned then tuned.kept, other = nil, { study = name, tuned = tuned } end
  return write(path, lines, other)
end

-- ---- taking ----

-- The value at that time of an option that was not given: for a core, from its config.json.
local function by_default(info, thing, option)
  local core = thing == "core" and type(info.core) == "table" and type(info.core.config) == "table" and info.core.config or {}
  return settings_diff.flat(core)[option]
end

-- The settings that a script gives a run now.
local function settings_now(path, words)
  local now = {}
  for key, value in pairs(script.survey(path, words, true).cfg) do if not left_out[key] then now[key] = setting_types.to_json(value) end end
  return settings_diff.flat(now)
end

-- What of the settings, which `words` give, is and was otherwise then; settings that came since are not compared.
local function otherwise(now, info, words)
  local then_ = settings_diff.flat(info.config)
  for _, key in ipairs(tables.keys(now)) do
    local thing, option = key:match "^([^.]+)%.(.+)$"
    if thing and not left_out[thing] and then_[thing] ~= nil and then_[key] == nil then
      local was = by_default(info, thing, option)
      if was == nil then was = "not given" end
      then_[key] = was
    end
  end
  for _, key in ipairs(tables.keys(then_)) do
    local chosen = (info.values_from or {})[key] == "size"        -- a width that only a run chooses: size is compared
    for _, word in ipairs(words) do chosen = chosen and setting_types.pair(word) ~= key end
    if not left_out[key] and now[key] ~= then_[key] and not chosen then
      return ("%s is %s, there it was %s"):format(key, setting_types.show(now[key]), setting_types.show(then_[key]))
    end
  end
end

-- What a run's settings are now and were otherwise then.  The script is asked once for all seeds of a point; where that says something, for
-- the run itself.
local function difference(path, c, info, surveys)
  local point = table.concat(setting_types.without(c.words, "seed"), "\n")
  surveys[point] = surveys[point] or settings_now(path, c.words)
  local now = tables.merged(surveys[point], { seed = c.seed })
  return otherwise(now, info, c.words) and otherwise(settings_now(path, c.words), info, c.words)
end

-- A run's folder as a run would have left it; the result comes last, so that a run is there whole or is open.
local function put(run, file, c, entry)
  local path, rows, curves = study_folder.run_path(run, c.name), {}, entry.curves or {}
  files.make_folder(path)
  files.write(path .. "/config.json", { json.sealed.encode(entry.info) })
  for i = 1, #(curves.step or {}) do
    local row = {}
    for name, list in pairs(curves) do if list[i] ~= json.null then row[name] = list[i] end end
    rows[i] = json.encode(row) .. "\n"
  end
  files.write(path .. "/metrics.jsonl", rows)
  if entry.resources then files.write(path .. "/resources.json", { json.sealed.encode(entry.resources) }) end
  study_folder.write_result(path, { status = "done", point = c.labels, seed = c.seed, words = c.words, metrics = entry.metrics, series = entry.series,
    resources = entry.resources, estimate = entry.estimate, kept = { file = file, commit = entry.info.commit, host = entry.info.host } })
end

---The runs of a grid that a file has and that are not done here; an error where one of them was another run then.
---@param run string the study's folder
---@return table[] wanted { run of the plan, line of the file }
---@return integer held runs in the file
function archive.wanted(run, file, path, runs)
  local lines, same, wanted, surveys = read(file), {}, {}, {}
  for _, name in ipairs(tables.keys(lines)) do same[grid.same_name(name, {})] = lines[name] end
  for _, c in ipairs(runs) do
    local line = lines[c.name] or same[grid.same_name(c.name, {})]
    if line and (study_folder.result(study_folder.run_path(run, c.name)) or {}).status ~= "done" then
      local other = difference(path, c, line.info, surveys)
      if other then
        errors.usage(("%s: %s is another run than this script's: %s"):format(file, c.name, other), "without import= it is run again")
      end
      wanted[#wanted + 1] = { c, line }
    end
  end
  return wanted, #tables.keys(lines)
end

---Were imported runs made by other code than what lies here?
---@return string? text nil: by the same
function archive.other_code(wanted)
  local other, names, without = 0, {}, 0
  for _, w in ipairs(wanted) do
    local source = run_sources.latest(w[2].info).source
    local differ = tables.map(source, function(entry)
      return not trusted_code.find(entry.path, function(text) return files.crc(text) == entry.checksum end) and entry.path:match "[^/]*$" or nil
    end)
    names = tables.merged(names, tables.set(differ))
    other, without = other + (differ[1] and 1 or 0), without + (source[1] and 0 or 1)
  end
  local parts = {}
  if other > 0 then parts[1] = ("%d of its runs were made by other code than is here (%s)"):format(other, table.concat(tables.keys(names), ", ")) end
  if without > 0 then parts[#parts + 1] = ("%d of its runs kept no code, which cannot be compared"):format(without) end
  return parts[1] and table.concat(parts, "; ")
end

---What a tuning picked, if the file has it.
---@return table? tuned as journal.tuned
function archive.tuned(file)
  local _, tuned = read(file)
  if not tuned then return nil end
  tuned.tuned.kept = file
  return tuned.tuned
end

---Put them where a sweep would have left them; an error, before anything is put, where one of them is being trained, or has been.
function archive.take(run, file, wanted)
  for _, w in ipairs(wanted) do
    local path = study_folder.run_path(run, w[1].name)
    if files.locked(path .. "/lock") or #files.list(path .. "/checkpoints") > 0 then
      errors.fail(("%s: it has begun here, and import= has its result"):format(path), "let it end without import=, or move the folder away")
    end
  end
  for _, w in ipairs(wanted) do put(run, file, w[1], w[2]) end
end

return archive
