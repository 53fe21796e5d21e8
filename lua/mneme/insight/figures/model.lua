-- model.lua -- the format of a figure as plain data, and the check of a table against it.  Drawing code relies on it: values
-- are finite, lists have equal lengths, nothing on a logarithmic axis is 0 or less.
--   kind     "curves", "lines", "profile" (a share): lines on two axes; "bars", from 0; "dots", on an axis that need not begin at 0; "heat"
--   title    what it shows; note: its method: n, which interval, what is missing
--   x, y     axes: { label, unit = "s" | "%" | ..., log = bool, range = { low, high }, ticks = numbers, categories = texts }
--   lines    { { name, x = numbers, y = numbers, low, high = numbers or nil, seeds = { { x, y, seed = number or nil }, ... },
--            style = k }, ... };
--            style: drawn like the kth line, so that one thing looks the same in several figures
--   other_x  { { x = axis, lines = lines }, ... }: the same points against another x; a page has a switch
--   bars     { { name, group = text or nil, y = number or nil, low, high, seeds = numbers, of = which seeds, or nil,
--            marked = true: drawn so that it is found, style = k: in the colour of the kth line }, ... }; y nil: unknown
--   cells    numbers by [row][column] of y.categories and x.categories, false: unknown; value: the axis of the values;
--            faint, nil or the same with booleans: known, but drawn without its colour
--   references  { { name, y }, ... }: horizontal lines at published values
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local model = {}
local LARGEST = 1e100

local texts = { title = "string", note = "string" }
local known = {
  lines = { kind = true, title = true, note = true, x = true, y = true, lines = true, references = true, other_x = true },
  bars = { kind = true, title = true, note = true, x = true, y = true, bars = true, references = true },
  heat = { kind = true, title = true, note = true, x = true, y = true, cells = true, faint = true, value = true },
}
local kinds = { curves = "lines", lines = "lines", profile = "lines", bars = "bars", dots = "bars", heat = "heat" }
local axis_keys = { label = "string", unit = "string", log = "boolean", range = "table", ticks = "table", categories = "table" }

local function refuse(...) errors.raise("figure: " .. (...):format(select(2, ...))) end

local function only(t, keys, what)
  if type(t) ~= "table" then refuse("%s is a %s, expected a table", what, t == nil and "nothing" or type(t)) end
  for key in pairs(t) do
    if not keys[key] then errors.unknown(("figure: key of %s:"):format(what), tostring(key), tables.keys(keys)) end
  end
  return t
end

local function number(v, axis, what)
  if type(v) ~= "number" or not (math.abs(v) <= LARGEST) then refuse("%s is %s, expected a finite number", what, tostring(v)) end
  if axis.log and v <= 0 then refuse("%s is %g, and its axis is logarithmic: expected a number above 0", what, v) end
  return v
end

local function numbers(list, n, axis, what)
  if type(list) ~= "table" or #list == 0 then refuse("%s: expected a list of numbers", what) end
  if n and #list ~= n then refuse("%s has %d numbers, expected %d", what, #list, n) end
  for i = 1, #list do number(list[i], axis, ("%s, number %d,"):format(what, i)) end
  return #list
end

local function each(list, what)
  if list ~= nil and type(list) ~= "table" then refuse("%s is a %s, expected a list", what, type(list)) end
  return ipairs(list or {})
end

local function check_axis(axis, what)
  for key, value in pairs(only(axis, axis_keys, what)) do
    if type(value) ~= axis_keys[key] then refuse("%s.%s is a %s, expected a %s", what, key, type(value), axis_keys[key]) end
  end
  if axis.range then
    numbers(axis.range, 2, axis, what .. ".range")
    if axis.range[1] >= axis.range[2] then refuse("%s.range goes from %g to %g", what, axis.range[1], axis.range[2]) end
  end
  if axis.ticks then numbers(axis.ticks, nil, axis, what .. ".ticks") end
  for i, name in each(axis.categories, what .. ".categories") do
    if type(name) ~= "string" then refuse("%s.categories, number %d, is a %s, expected a text", what, i, type(name)) end
  end
end

local function check_style(style, of)
  if style and (type(style) ~= "number" or style % 1 ~= 0 or style < 1) then
    refuse("%s: style is %s, expected a whole number from 1", of, tostring(style))
  end
end

local line_keys = { name = true, style = true, x = true, y = true, low = true, high = true, seeds = true }

local function check_lines(lines, x, y, what)
  if type(lines) ~= "table" then refuse("%s: expected a list of lines", what) end
  for i, line in ipairs(lines) do
    local of = ("%s, line %d"):format(what, i)
    only(line, line_keys, of)
    if type(line.name) ~= "string" then refuse("%s has no name", of) end
    check_style(line.style, of)
    of = ("%s, %s"):format(what, line.name)
    local n = numbers(line.x, nil, x, of .. ": x")
    numbers(line.y, n, y, of .. ": y")
    if (line.low == nil) ~= (line.high == nil) then refuse("%s has one of low and high, expected both or none", of) end
    if line.low then
      numbers(line.low, n, { log = false }, of .. ": low")
      numbers(line.high, n, { log = false }, of .. ": high")
    end
    for k, seed in each(line.seeds, of .. ": seeds") do
      local m = numbers(only(seed, { x = true, y = true, seed = true }, of .. ": seed").x, nil, x, ("%s, seed %d: x"):format(of, k))
      numbers(seed.y, m, y, ("%s, seed %d: y"):format(of, k))
    end
  end
end

-- The lines of other_x have the points of the lines, one by one.
local function check_alike(lines, others, what)
  if #others ~= #lines then refuse("%s has %d lines, expected the %d lines of the figure", what, #others, #lines) end
  for i, line in ipairs(lines) do
    local other = others[i]
    if other.name ~= line.name or #other.x ~= #line.x or #(other.seeds or {}) ~= #(line.seeds or {}) then
      refuse("%s, line %d: expected the points and the seeds of %s", what, i, line.name)
    end
    for k, seed in ipairs(line.seeds or {}) do
      if #other.seeds[k].x ~= #seed.x then refuse("%s, %s: seed %d has %d points, expected %d", what, line.name, k, #other.seeds[k].x, #seed.x) end
    end
  end
end

local function check_bars(fig)
  if type(fig.bars) ~= "table" then refuse "bars: expected a list of bars" end
  for i, bar in ipairs(fig.bars) do
    local of = ("bar %d"):format(i)
    only(bar, { name = true, group = true, y = true, low = true, high = true, seeds = true, of = true, marked = true, style = true }, of)
    if type(bar.name) ~= "string" then refuse("%s has no name", of) end
    if bar.group ~= nil and type(bar.group) ~= "string" then refuse("%s: group is a %s, expected a text", of, type(bar.group)) end
    check_style(bar.style, of)
    if bar.y ~= nil then number(bar.y, fig.y, of .. ": y") end
    if (bar.low == nil) ~= (bar.high == nil) then refuse("%s has one of low and high, expected both or none", of) end
    if bar.low then numbers({ bar.low, bar.high }, 2, { log = false }, of .. ": low, high") end
    each(bar.seeds, of .. ": seeds")
    if bar.seeds and #bar.seeds > 0 then numbers(bar.seeds, nil, fig.y, of .. ": seeds") end
    if bar.of and #bar.of > 0 then numbers(bar.of, #(bar.seeds or {}), { log = false }, of .. ": of") end
  end
end

local function check_cells(fig)
  check_axis(fig.value, "value")
  for _, name in ipairs { "x", "y" } do
    if not fig[name].categories or #fig[name].categories == 0 then refuse("%s.categories: expected a list of texts", name) end
  end
  if type(fig.cells) ~= "table" or #fig.cells ~= #fig.y.categories then
    refuse("cells: expected %d rows, one for each of y.categories", #fig.y.categories)
  end
  for r, row in ipairs(fig.cells) do
    if type(row) ~= "table" then refuse("cells, row %d, is a %s, expected a list of numbers", r, type(row)) end
    for c = 1, #fig.x.categories do
      if row[c] ~= false then number(row[c], fig.value, ("cells, row %d, column %d,"):format(r, c)) end
    end
  end
  for r, row in each(fig.faint, "faint") do
    if type(row) ~= "table" then refuse("faint, row %d, is a %s, expected a list of true and false", r, type(row)) end
  end
  if fig.faint and #fig.faint ~= #fig.cells then refuse("faint: expected %d rows, as of cells", #fig.cells) end
end

---Refuse what is no figure.
---@return string drawing "lines", "bars" or "heat": by what it is drawn
function model.check(fig)
  errors.need("figure", fig, "kind", "a table such as { kind = \"lines\", x = {}, y = {}, lines = {} }")
  local drawing = kinds[fig.kind]
  if not drawing then errors.unknown("kind of figure", tostring(fig.kind), tables.keys(kinds)) end
  only(fig, known[drawing], "a figure of " .. fig.kind)
  for key, kind in pairs(texts) do
    if fig[key] ~= nil and type(fig[key]) ~= kind then refuse("%s is a %s, expected a %s", key, type(fig[key]), kind) end
  end
  check_axis(fig.x, "x")
  check_axis(fig.y, "y")
  if drawing == "lines" then
    check_lines(fig.lines, fig.x, fig.y, "lines")
    for i, other in each(fig.other_x, "other_x") do
      local what = ("other_x %d"):format(i)
      check_axis(only(other, { x = true, lines = true, note = true }, what).x, what .. ": x")
      if other.note ~= nil and type(other.note) ~= "string" then refuse("%s: note is a %s, expected a string", what, type(other.note)) end
      check_lines(other.lines, other.x, fig.y, what)
      check_alike(fig.lines, other.lines, what)
    end
  elseif drawing == "bars" then check_bars(fig)
  else check_cells(fig) end
  for i, r in each(fig.references, "references") do
    only(r, { name = true, y = true }, ("reference %d"):format(i))
    if type(r.name) ~= "string" then refuse("reference %d has no name", i) end
    number(r.y, fig.y, "reference " .. r.name)
  end
  return drawing
end

---A figure for each thing that its lines are against: the first is the figure itself, which has been checked.
function model.views(fig)
  local views = { fig }
  for i, other in ipairs(fig.other_x or {}) do
    local note = fig.note and other.note and fig.note .. " " .. other.note or other.note or fig.note
    views[i + 1] = { kind = fig.kind, title = fig.title, note = note, x = other.x, y = fig.y, lines = other.lines,
      references = fig.references }
  end
  return views
end

return model
