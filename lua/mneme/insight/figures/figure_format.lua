-- figure_format.lua -- the format of a figure as plain data, and the check of a table against it.  Drawing code relies on it: values
-- are finite, lists have equal lengths, nothing on a logarithmic axis is 0 or less.
--   kind     "curves", "lines", "profile" (a share): lines on two axes; "bars", from 0; "dots", on an axis that need not begin at 0; "heat"
--   title    what it shows; note: its method: n, which interval, what is missing
--   x, y     axes: { label, unit = "s" | "%" | ..., log = bool, range = { low, high }, ticks = numbers, categories = texts }
--   lines    { { name, x = numbers, y = numbers, low, high = numbers or nil, seeds = { { x, y, seed = number or nil }, ... },
--            style = k }, ... };
--            style: drawn like the kth line, so that one thing looks the same in several figures
--   bars     { { name, group = text or nil, y = number or nil, low, high, seeds = numbers, of = which seeds, or nil,
--            marked = true: drawn so that it is found, style = k: in the colour of the kth line }, ... }; y nil: unknown
--   cells    numbers by [row][column] of y.categories and x.categories, false: unknown; value: the axis of the values;
--            low, high: nil, or the ends of their intervals likewise, nil: none
--            faint, nil or the same with booleans: known, but drawn without its colour
--            thin, likewise: drawn as a line, as what can be read and is not known to be used
--   references  { { name, y }, ... }: horizontal lines at published values
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local figure_format = {}
local LARGEST = 1e100

-- What each table may hold, and of which type; true: any.
local figure_keys = { kind = "string", title = "string", note = "string", x = "table", y = "table" }
local function figure_with(more)
  for key, kind in pairs(figure_keys) do more[key] = kind end
  return more
end
local shapes = {
  lines = figure_with { lines = "table", references = "table" }, bars = figure_with { bars = "table", references = "table" },
  heat = figure_with { cells = "table", low = "table", high = "table", faint = "table", thin = "table", value = "table" },
  axis = { label = "string", unit = "string", log = "boolean", range = "table", ticks = "table", categories = "table" },
  line = { name = "string", style = "number", x = "table", y = "table", low = "table", high = "table", seeds = "table" },
  bar = { name = "string", group = "string", y = "number", low = "number", high = "number", seeds = "table", of = "table", marked = true, style = "number" },
  seed = { x = "table", y = "table", seed = true },
  reference = { name = "string", y = "number" },
}
local kinds = { curves = "lines", lines = "lines", profile = "lines", bars = "bars", dots = "bars", heat = "heat" }
local straight = { log = false }           -- an axis that anything may stand on

local function refuse(...) errors.raise("figure: " .. (...):format(select(2, ...))) end

local function only(t, shape, what)
  if type(t) ~= "table" then refuse("%s is %s, expected a table", what, t == nil and "missing" or "a " .. type(t)) end
  for key, value in pairs(t) do
    local kind = shapes[shape][key]
    if not kind then errors.unknown(("figure: key of %s:"):format(what), tostring(key), tables.keys(shapes[shape])) end
    if kind ~= true and type(value) ~= kind then
      refuse("%s: %s is %s, expected a %s", what, key, type(value) == "table" and "a table" or tostring(value), kind)
    end
  end
  return t
end

local function number(v, axis, what)
  if type(v) ~= "number" or not (math.abs(v) <= LARGEST) then refuse("%s is %s, expected a finite number", what, tostring(v)) end
  if axis.log and v < 1 / LARGEST then refuse("%s is %g, and its axis is logarithmic: expected a number above %g", what, v, v > 0 and 1 / LARGEST or 0) end
end

local function numbers(list, n, axis, what)
  if type(list) ~= "table" or #list == 0 then refuse("%s: expected a list of numbers", what) end
  if n and #list ~= n then refuse("%s has %d numbers, expected %d", what, #list, n) end
  for i = 1, #list do number(list[i], axis, ("%s, number %d,"):format(what, i)) end
  return #list
end

local function check_axis(axis, what)
  only(axis, "axis", what)
  if axis.range then
    numbers(axis.range, 2, axis, what .. ".range")
    if axis.range[1] >= axis.range[2] then refuse("%s.range goes from %g to %g", what, axis.range[1], axis.range[2]) end
  end
  if axis.ticks then numbers(axis.ticks, nil, axis, what .. ".ticks") end
  for i, name in ipairs(axis.categories or {}) do
    if type(name) ~= "string" then refuse("%s.categories, number %d, is a %s, expected a text", what, i, type(name)) end
  end
end

-- What a line and a bar have in common.
local function check_item(item, shape, of)
  only(item, shape, of)
  if not item.name then refuse("%s has no name", of) end
  if item.style and (item.style % 1 ~= 0 or item.style < 1) then refuse("%s: style is %s, expected a whole number from 1", of, tostring(item.style)) end
  if (item.low == nil) ~= (item.high == nil) then refuse("%s has one of low and high, expected both or none", of) end
end

local function check_lines(lines, x, y, what)
  if type(lines) ~= "table" then refuse("%s: expected a list of lines", what) end
  for i, line in ipairs(lines) do
    check_item(line, "line", ("%s, line %d"):format(what, i))
    local of = ("%s, %s"):format(what, line.name)
    local n = numbers(line.x, nil, x, of .. ": x")
    numbers(line.y, n, y, of .. ": y")
    for _, key in ipairs(line.low and { "low", "high" } or {}) do numbers(line[key], n, straight, of .. ": " .. key) end
    for k, seed in ipairs(line.seeds or {}) do
      local m = numbers(only(seed, "seed", of .. ": seed").x, nil, x, ("%s, seed %d: x"):format(of, k))
      numbers(seed.y, m, y, ("%s, seed %d: y"):format(of, k))
    end
  end
end

local check = {}

function check.lines(fig) check_lines(fig.lines, fig.x, fig.y, "lines") end

function check.bars(fig)
  if not fig.bars then refuse "bars: expected a list of bars" end
  for i, bar in ipairs(fig.bars) do
    local of = ("bar %d"):format(i)
    check_item(bar, "bar", of)
    if bar.y then number(bar.y, fig.y, of .. ": y") end
    if bar.low then numbers({ bar.low, bar.high }, 2, straight, of .. ": low, high") end
    if bar.seeds and #bar.seeds > 0 then numbers(bar.seeds, nil, fig.y, of .. ": seeds") end
    if bar.of and #bar.of > 0 then numbers(bar.of, #(bar.seeds or {}), straight, of .. ": of") end
  end
end

function check.heat(fig)
  check_axis(fig.value, "value")
  for _, name in ipairs { "x", "y" } do
    if not fig[name].categories or #fig[name].categories == 0 then refuse("%s.categories: expected a list of texts", name) end
  end
  for _, name in ipairs { "cells", "low", "high", "faint", "thin" } do
    local rows = fig[name] or name ~= "cells" and {} or nil
    if not rows or fig[name] and #rows ~= #fig.y.categories then refuse("%s: expected %d rows, one for each of y.categories", name, #fig.y.categories) end
    for r, row in ipairs(rows) do
      if type(row) ~= "table" then refuse("%s, row %d, is a %s, expected a list", name, r, type(row)) end
      for c = 1, name ~= "faint" and name ~= "thin" and #fig.x.categories or 0 do
        local known = row[c] or name == "cells" and row[c] ~= false
        if known then number(row[c], name == "cells" and fig.value or straight, ("%s, row %d, column %d,"):format(name, r, c)) end
      end
    end
  end
end

---Refuse what is no figure.
---@return string drawing "lines", "bars" or "heat": by what it is drawn
function figure_format.check(fig)
  errors.need("figure", fig, "kind", "a table such as { kind = \"lines\", x = {}, y = {}, lines = {} }")
  local drawing = kinds[fig.kind]
  if not drawing then errors.unknown("kind of figure", tostring(fig.kind), tables.keys(kinds)) end
  only(fig, drawing, "a figure of " .. fig.kind)
  check_axis(fig.x, "x")
  check_axis(fig.y, "y")
  check[drawing](fig)
  for i, r in ipairs(fig.references or {}) do
    only(r, "reference", ("reference %d"):format(i))
    if not r.name then refuse("reference %d has no name", i) end
    number(r.y, fig.y, "reference " .. r.name)
  end
  return drawing
end

return figure_format
