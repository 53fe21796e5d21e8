-- folder.lua -- a study on disk: study.json, and a run folder for each cell under cells/ with what came of it in
-- result.json.  What is there is all that is known: nothing else has to survive a crash.
--   result.json   { status = "done"|"failed", cell = { axis = label }, seed, words, metrics, series, resources,
--                   attempts, exit, error }
local files = require "mneme.files"
local json = require "mneme.json"
local errors = require "mneme.errors"
local grid = require "mneme.studies.grid"
local curves = require "mneme.curves"
local run_folder = require "mneme.run"

local folder = {}

local function read(path, hint)
  local value, problem = json.decode((files.read(path)), path)
  if problem then errors.fail(problem, hint) end
  if type(value) ~= "table" then errors.fail(path .. ": damaged: it holds no object", hint) end
  return value
end

-- Is this what write_info wrote?
local function is_info(info)
  if type(info.cells) ~= "table" or type(info.script) ~= "string" or type(info.settings) ~= "string" then return false end
  for _, c in ipairs(info.cells) do
    if type(c) ~= "table" or type(c.name) ~= "string" or type(c.labels) ~= "table" then return false end
  end
  return true
end

---Where a cell lives.
function folder.cell_path(path, name) return path .. "/cells/" .. name end

---What a cell has come to; nil: it is not finished.
---@param path string of the cell
---@return table? result
function folder.result(path)
  local file = path .. "/result.json"
  if not files.is_file(file) then return nil end
  local hint = "without this file the cell is open: mneme sweep goes on with it"
  local result = read(file, hint)
  if result.status ~= "done" and result.status ~= "failed" then errors.fail(file .. ": damaged: it tells no status", hint) end
  return result
end

---@param path string of the cell
---@param result table
function folder.write_result(path, result)
  files.write(path .. "/result.json", { json.encode(result, "  ") .. "\n" })
end

---What study.json says; nil where there is none.
---@param path string
function folder.info(path)
  local file = path .. "/study.json"
  if not files.is_file(file) then return nil end
  local hint = "without this file mneme sweep writes it anew; cells that are done stay"
  local info = read(file, hint)
  if not is_info(info) then errors.fail(file .. ": damaged: it tells of no sweep", hint) end
  return info
end

---@param path string
---@param info table
function folder.write_info(path, info)
  files.write(path .. "/study.json", { json.encode(info, "  ") .. "\n" })
end

---@class Cell
---@field name string
---@field path string
---@field status string "done", "failed" or "open"
---@field labels table<string, string> of each axis
---@field seed integer
---@field metrics table<string, number>
---@field series table<string, { x: number[], y: number[] }>? that run gave besides
---@field resources table? { wall_s, cpu_s, peak_mib, energy_j }
---@field estimate table? { wall_s, peak_mib }, from before the sweep
---@field error string? what a cell that failed said last
local Cell = {}
Cell.__index = Cell

---What the cell's run measured while it went on: name -> { n, x = steps, y }.
function Cell:curves() return curves.read(self.path) end

---What the cell's config.json says; nil: its run never began.
function Cell:info()
  return files.is_file(self.path .. "/config.json") and run_folder.read_info(self.path) or nil
end

---Read a study.
---@param path string its folder
---@return table { path, info, cells = Cell[] } cells in the order of the grid
function folder.load(path)
  path = path:gsub("(.)/+$", "%1")
  local info = folder.info(path)
  if not info then errors.usage(path .. ": not a study", "it has no study.json; mneme sweep makes one") end
  local cells = {}
  for _, c in ipairs(info.cells) do
    local at = folder.cell_path(path, c.name)
    local result = folder.result(at) or { status = "open" }
    cells[#cells + 1] = setmetatable({ name = c.name, path = at, status = result.status, labels = c.labels, seed = c.seed,
      metrics = result.metrics or {}, series = result.series, resources = result.resources, estimate = result.estimate, error = result.error }, Cell)
  end
  return { path = path, info = info, cells = cells }
end

---Cells that differ by their seed alone.
---@param cells Cell[]
---@return table[] groups { name = "core=gru, corridor=20", cells }, in the order of the grid
function folder.groups(cells)
  return grid.groups(cells, function(c) return (grid.kind(c):gsub(",", ", ")) end)
end

return folder
