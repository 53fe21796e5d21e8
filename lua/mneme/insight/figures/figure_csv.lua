-- figure_csv.lua -- the values of a figure as CSV.
local bars = require "mneme.insight.figures.bars"
local figure_format = require "mneme.insight.figures.figure_format"
local format = require "mneme.base.format"
local terminal = require "mneme.base.terminal"

local figure_csv = {}

---A field of CSV (RFC 4180).
---@param v string|number|false|nil
function figure_csv.field(v)
  if v == nil or v == false then return "" end
  if type(v) == "number" then return format.exact(v) end
  v = terminal.plain(v)
  if v:find "^[=+%-@\t\r]" and not tonumber(v) then v = "'" .. v end          -- spreadsheets would compute it
  return v:find '[,"\r\n]' and '"' .. v:gsub('"', '""') .. '"' or v
end

local function csv_row(...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = figure_csv.field((select(i, ...))) end
  return table.concat(parts, ",") .. "\n"
end

local function axis_name(axis, other) return axis.label and axis.label ~= "" and axis.label or other end

local writers = {}

function writers.lines(fig, out)
  out[1] = csv_row("line", "seed", axis_name(fig.x, "x"), "y", "low", "high")
  local function add(name, seed, of)
    for i = 1, #of.y do out[#out + 1] = csv_row(name, seed, of.x[i], of.y[i], of.low and of.low[i], of.high and of.high[i]) end
  end
  for _, line in ipairs(fig.lines) do
    add(line.name, nil, line)
    for s, seed in ipairs(line.seeds or {}) do add(line.name, seed.seed or s, seed) end
  end
  for _, r in ipairs(fig.references or {}) do out[#out + 1] = csv_row(r.name, nil, nil, r.y, nil, nil) end
end

function writers.bars(fig, out)
  out[1] = csv_row("row", "group", "name", "seed", "y", "low", "high")
  local places = bars.places(fig)
  for i, bar in ipairs(fig.bars) do
    out[#out + 1] = csv_row(places[i], bar.group, bar.name, nil, bar.y, bar.low, bar.high)
    for k, y in ipairs(bar.seeds or {}) do out[#out + 1] = csv_row(places[i], bar.group, bar.name, bar.of and bar.of[k] or k, y, nil, nil) end
  end
  for _, r in ipairs(fig.references or {}) do out[#out + 1] = csv_row(nil, "reference", r.name, nil, r.y, nil, nil) end
end

function writers.heat(fig, out)
  local n = fig.low and 7 or 5
  local function add(...) out[#out + 1] = csv_row(unpack({ ... }, 1, n)) end
  add("row", "column", axis_name(fig.y, "name of the row"), axis_name(fig.x, "name of the column"), axis_name(fig.value, "value"), "low", "high")
  for r, row in ipairs(fig.cells) do
    for c, name in ipairs(fig.x.categories) do add(r, c, fig.y.categories[r], name, row[c], fig.low and fig.low[r][c], fig.high and fig.high[r][c]) end
  end
end

---All numbers of a figure as CSV: whole ones as they are, others with seven digits.  Each point of a line, each bar and each cell has a row; each
---seed of it has one, too, with the seed's number (its place in the list, where the figure does not say which it is).
---@param fig table
---@return string
function figure_csv.csv(fig)
  local out = {}
  writers[figure_format.check(fig)](fig, out)
  return table.concat(out)
end

return figure_csv
