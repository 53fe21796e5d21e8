-- archive_study.lua -- a file of finished runs (lab/study/result_archive.lua) as a study's folder, for `mneme report FILE.jsonl`: by the script that
-- its records name, in the size that they have.
local result_archive = require "mneme.lab.study.result_archive"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local grid = require "mneme.lab.study.grid"
local script = require "mneme.runs.script"
local trusted_code = require "mneme.base.trusted_code"
local sweep = require "mneme.lab.study.sweep"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"

local archive_study = {}

-- The sizes to try, first that which the file's name ends with, as in docs/results: the whole form of a study can have many more points.
local function sizes_of(file)
  local named = file:match "_(quick)%.jsonl$" or file:match "_(full)%.jsonl$"
  return named == "quick" and { "quick", "", "full" } or named == "full" and { "full", "", "quick" } or { "", "quick", "full" }
end

-- The script of the records: the user's own, or an experiment of that name.
local function script_of(file, held, given)
  if given then return script.named(given) end
  local path, name = setting_types.show(held.script), setting_types.show(held.study)
  if trusted_code.exists(path) and trusted_code.may_load(path) then return path end
  if script.is_experiment(name) then return script.locate(name) end
  errors.usage(("%s: it has runs of the study '%s', whose script %s is not %s"):format(file, name, path,
    trusted_code.exists(path) and "known as yours" or "here"), "script=FILE names it")
end

-- What the names of runs say: of each axis the values, in the form that names have; and the seeds.
local function parts_of(names)
  local axes, seeds = {}, {}
  for _, name in ipairs(names) do
    for axis, value in name:gmatch "([%w_]+)=([^,]*)" do
      axes[axis] = axes[axis] or {}
      axes[axis][value] = true
    end
  end
  for _, text in ipairs(tables.keys(axes.seed or {})) do seeds[#seeds + 1] = tonumber(text) end
  table.sort(seeds)
  axes.seed = nil
  return axes, #seeds == 1 and ("%.0f..%.0f"):format(seeds[1], seeds[1]) or table.concat(seeds, ",")
end

-- The words that add, to the study in one of its sizes, values of axes that only these runs have.
local function words_of(path, size, axes)
  local words, known = { size ~= "" and size .. "=1" or nil }, {}
  for _, axis in ipairs(sweep.plan({ script = path }, words).axes) do
    known[axis.name] = {}
    for _, value in ipairs(axis.values) do known[axis.name][grid.clean(value.label)] = true end
  end
  for _, axis in ipairs(tables.keys(axes)) do
    local all = known[axis] ~= nil
    for value in pairs(axes[axis]) do all = all and known[axis][value] end
    if not all then words[#words + 1] = axis .. "=" .. table.concat(tables.keys(axes[axis]), ",") end
  end
  return words
end

-- A new folder, in memory where there is such a place: what is written there need not outlast anything.
local function new_folder()
  local ok, name = pcall(files.draft, "/dev/shm/mneme")
  if not ok then name = files.temporary() end
  files.remove(name)
  files.make_folder(name)
  return name
end

---The study whose runs a file has.
---@param outer string a folder for it
---@return string path of the script
---@return string folder of the study within `outer`, which `unpack` fills
---@return fun(): string? unpack as sweep.kept has it
function archive_study.find(file, given, outer)
  trusted_code.folder = outer
  local held = result_archive.about(file)
  local path, problem = script_of(file, held, given), nil
  local axes, seeds = parts_of(held.names)
  for i, size in ipairs(held.size and { held.size } or sizes_of(file)) do
    local at = ("%s/%d/%s"):format(outer, i, file:match "([^/]*)%.jsonl$")
    local ok, taken, unpack_all = xpcall(function() return sweep.kept(file, path, words_of(path, size, axes), seeds, at) end, errors.handler)
    if ok and taken == #held.names then return path, at, unpack_all end
    local why = ok and ("%d of its %d runs are none of the study's"):format(#held.names - taken, #held.names) or taken.message
    if ok or not problem then problem = why:find(file .. ": ", 1, true) == 1 and why:sub(#file + 3) or why end
  end
  errors.usage(("%s: not as %s has it now: %s"):format(file, path, problem), ("mneme sweep %s KEY=VALUE import=%s jobs=0 run=FOLDER, with the settings "
    .. "that it was swept with, and mneme report FOLDER"):format(path, file))
end

---Calls f with a study's folder that has the runs of a file, while it is there.
---@param f fun(folder: string, path: string): any path: of the script
---@return any what f returns
function archive_study.with(file, given, f)
  local outer = new_folder()
  local ok, result = xpcall(function()
    local path, at, unpack_all = archive_study.find(file, given, outer)
    local other = unpack_all()
    if other then terminal.note(("mneme: warning: %s: %s; the report says so"):format(file, other)) end
    return f(at, path)
  end, errors.handler)
  files.remove_folder(outer)
  if not ok then error(result, 0) end
  return result
end

return archive_study
