-- model_sizes.lua -- compares the parameters of a study's runs: which point has the fewest, which the most, and whether they are so far
-- apart that sizes are compared, too.
local files = require "mneme.base.files"
local grid = require "mneme.lab.study.grid"
local grouped = require("mneme.base.format").grouped
local json = require "mneme.base.json"
local default_core_size = require "mneme.models.default_core_size"
local tables = require "mneme.base.tables"

local sizes = {}

---Notes how many parameters a run has.
---@param known table<string, { point: string, parameters: integer }> by run
function sizes.add(known, c, info)
  if type(info.parameters) == "number" then known[c.name] = { point = grid.kind(c), parameters = info.parameters } end
end

---The same of the runs in folders, as far as they have begun.
---@param path_of fun(run: table): string the run's folder
function sizes.read(known, runs, path_of)
  for _, c in ipairs(runs) do
    local path = not known[c.name] and path_of(c) .. "/config.json"
    local info = path and files.is_file(path) and json.decode((files.read(path)))
    if type(info) == "table" then sizes.add(known, c, info) end
  end
end

---What to say where runs differ by more than 1.2 times; nil: they do not.
function sizes.warning(known)
  local least, most
  for _, name in ipairs(tables.keys(known)) do
    local c = known[name]
    if not least or c.parameters < least.parameters then least = c end
    if not most or c.parameters > most.parameters then most = c end
  end
  if not least or most.parameters <= default_core_size.APART * least.parameters then return nil end
  return ("runs differ in size, up to %.3g times: %s has %s parameters, %s %s; size=N gives cores without a width of their own about N parameters"):format(
    most.parameters / least.parameters, least.point, grouped(least.parameters), most.point, grouped(most.parameters))
end

return sizes
