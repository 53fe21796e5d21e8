-- data.lua -- the values of a figure: all of them as CSV for programs, and a shortened table for readers.
local bars = require "mneme.insight.figures.bars"
local model = require "mneme.insight.figures.model"
local format = require "mneme.base.format"
local terminal = require "mneme.base.terminal"
local text = require "mneme.insight.figures.text"

local data = {}
local COLUMNS = 6              -- of a table, where lines have many points

---A field of CSV (RFC 4180).
---@param v string|number|false|nil
function data.field(v)
  if v == nil or v == false then return "" end
  if type(v) == "number" then return format.exact(v) end
  v = terminal.plain(v)
  if v:find "^[=+%-@\t\r]" and not tonumber(v) then v = "'" .. v end          -- spreadsheets would compute it
  return v:find '[,"\r\n]' and '"' .. v:gsub('"', '""') .. '"' or v
end

local function csv_row(...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = data.field((select(i, ...))) end
  return table.concat(parts, ",") .. "\n"
end

local function axis_name(axis, other) return axis.label and axis.label ~= "" and axis.label or other end

local writers = {}

function writers.lines(fig, out)
  local views, head = model.views(fig), { "line", "seed" }
  for i, view in ipairs(views) do head[i + 2] = axis_name(view.x, i == 1 and "x" or "x" .. i) end
  local n = #views
  head[n + 3], head[n + 4], head[n + 5] = "y", "low", "high"
  out[1] = csv_row(unpack(head))
  local function add(name, seed, of, y, low, high)
    for i = 1, #y do
      local row = { name, seed or false }
      for k = 1, n do row[k + 2] = of[k].x[i] end
      row[n + 3], row[n + 4], row[n + 5] = y[i], low and low[i] or false, high and high[i] or false
      out[#out + 1] = csv_row(unpack(row))
    end
  end
  for l, line in ipairs(fig.lines) do
    local of = {}
    for k, view in ipairs(views) do of[k] = view.lines[l] end
    add(line.name, nil, of, line.y, line.low, line.high)
    for s, seed in ipairs(line.seeds or {}) do
      local seeds = {}
      for k in ipairs(views) do seeds[k] = of[k].seeds[s] end
      add(line.name, seed.seed or s, seeds, seed.y)
    end
  end
  for _, r in ipairs(fig.references or {}) do
    local row = { r.name }
    for k = 2, n + 5 do row[k] = k == n + 3 and r.y or false end
    out[#out + 1] = csv_row(unpack(row))
  end
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
  out[1] = csv_row("row", "column", axis_name(fig.y, "name of the row"), axis_name(fig.x, "name of the column"), axis_name(fig.value, "value"))
  for r, row in ipairs(fig.cells) do
    for c, name in ipairs(fig.x.categories) do out[#out + 1] = csv_row(r, c, fig.y.categories[r], name, row[c]) end
  end
end

---All numbers of a figure as CSV: whole ones as they are, others with seven digits.  Each point of a line, each bar and each cell has a row; each
---seed of it has one, too, with the seed's number (its place in the list, where the figure does not say which it is).
---@param fig table
---@return string
function data.csv(fig)
  local out = {}
  writers[model.check(fig)](fig, out)
  return table.concat(out)
end

-- The x values at which lines are tabulated: all if they are few, else some at equal distances.
local function places(lines)
  local all, seen = {}, {}
  for _, line in ipairs(lines) do
    for _, x in ipairs(line.x) do
      if not seen[x] then all[#all + 1], seen[x] = x, true end
    end
  end
  table.sort(all)
  if #all <= COLUMNS + 2 then return all, true end
  local some = {}
  for i = 1, COLUMNS do some[i] = all[math.floor((i - 1) * (#all - 1) / (COLUMNS - 1) + 1.5)] end
  return some, false
end

-- The point of a line at x; where it need not be one, the last before.
local function point_at(line, x, exactly)
  local found
  for i = 1, #line.x do if line.x[i] <= x then found = i end end
  if not found or exactly and line.x[found] ~= x or line.x[#line.x] < x * (1 - 1e-9) then return nil end
  return found
end

local tables = {}

function tables.lines(fig)
  local at, exactly = places(fig.lines)
  local head, rows = { "" }, {}
  for i, x in ipairs(at) do head[i + 1] = format.short(x, fig.x.unit) end
  for k, line in ipairs(fig.lines) do
    rows[k] = { line.name }
    for i, x in ipairs(at) do
      local p = point_at(line, x, exactly)
      rows[k][i + 1] = p and text.interval(line.y[p], line.low and line.low[p], line.high and line.high[p], fig.y.unit, "to") or "–"
    end
  end
  local of = axis_name(fig.x, "x")
  return head, rows, ("%s at %s"):format(axis_name(fig.y, "y"), of) .. (exactly and "" or ": the last value by then")
end

function tables.bars(fig)
  local head, rows, grouped = { "", axis_name(fig.y, "y"), "interval", "seeds" }, {}, false
  for _, bar in ipairs(fig.bars) do grouped = grouped or bar.group ~= nil end
  for k, bar in ipairs(fig.bars) do
    local unit = fig.y.unit
    rows[k] = { bar.name, bar.y and format.short(bar.y, unit) or "–",
      bar.low and ("%s to %s"):format(format.short(bar.low, unit), format.short(bar.high, unit)) or "–", tostring(#(bar.seeds or {})) }
    if grouped then table.insert(rows[k], 2, bar.group or "") end
  end
  if grouped then table.insert(head, 2, axis_name(fig.x, "group")) end
  return head, rows, axis_name(fig.y, "y")
end

function tables.heat(fig)
  local head, rows = { axis_name(fig.y, "") }, {}
  for c, name in ipairs(fig.x.categories) do head[c + 1] = name end
  for r, row in ipairs(fig.cells) do
    rows[r] = { fig.y.categories[r] }
    for c = 1, #fig.x.categories do rows[r][c + 1] = row[c] and format.short(row[c], fig.value.unit) or "–" end
  end
  return head, rows, ("%s by %s and %s"):format(axis_name(fig.value, "value"), axis_name(fig.y, "row"), axis_name(fig.x, "column"))
end

---What a reader is shown of the numbers.
---@return string[] head of the columns, the first being that of the rows' names
---@return string[][] rows
---@return string caption
function data.table(fig)
  local drawing = model.check(fig)
  local head, rows, caption = tables[drawing](fig)
  for _, r in ipairs(fig.references or {}) do
    local row = { r.name, format.short(r.y, fig.y.unit) }
    for i = 3, #head do row[i] = drawing == "lines" and row[2] or "" end
    if drawing == "bars" and #head == 5 then row[2], row[3] = "", row[2] end
    rows[#rows + 1] = row
  end
  return head, rows, caption
end

return data
