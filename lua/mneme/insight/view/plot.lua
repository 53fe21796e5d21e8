-- plot.lua -- mn.plot: plot values in the terminal (Braille dots), in a window, or to a file.
--   mn.plot { 1, 4, 9 }        mn.plot(x:square())           mn.plot("runs/tmaze-1", { of = "charts/score" })
--   mn.plot(matrix)            a tensor of two axes is a map of its rows and columns
--   mn.plot(y, { x = numbers, name = "y", title = "...", window = true, out = "y.svg" })
local ffi = require "ffi"
local braille = require "mneme.insight.figures.braille"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local WIDTH, HEIGHT = 60, 12                     -- of a plot in the terminal, in characters of 2 x 4 dots
local SHADES = { " ", "░", "▒", "▓", "█" }
local MOST = 1e6                                 -- values that are plotted

-- ---- what is plotted ----

local function from_tensor(t)
  local shape, p, n = t:shape(), t:data(), t:size()
  if n > MOST then errors.raise(("plot: a tensor of %d values, expected at most %d"):format(n, MOST)) end
  if #shape > 2 then errors.raise(("plot: a tensor of %d axes, expected one or two"):format(#shape)) end
  local rows, cols = #shape == 2 and shape[1] or 1, shape[#shape] or 1
  local cells = {}
  for r = 1, rows do
    cells[r] = {}
    for c = 1, cols do cells[r][c] = tonumber(p[(r - 1) * cols + c - 1]) end
  end
  if #shape == 2 then return { cells = cells } end
  return { y = cells[1] }
end

local function from_run(folder, of)
  local series = require("mneme.runs.metrics_reader").read(folder)
  of = of or "charts/score"
  if not series[of] then errors.unknown("quantity of " .. folder .. ":", of, tables.keys(series)) end
  return { x = series[of].x, y = series[of].y, name = require("mneme.insight.figures.text").words(of), title = folder }
end

local known = { x = "table", name = "string", title = "string", of = "string", window = "boolean", out = "string" }

local function read(what, o)
  for key, value in pairs(o) do
    if not known[key] then errors.unknown("option of plot:", tostring(key), tables.keys(known)) end
    local x = key == "x" and tensor.is(value)
    if not x and type(value) ~= known[key] then
      errors.raise(("plot: %s is a %s, expected a %s"):format(key, type(value), known[key]))
    end
  end
  local seen
  if tensor.is(what) then seen = from_tensor(what)
  elseif type(what) == "string" then seen = from_run(what, o.of)
  elseif type(what) == "table" then seen = { y = what }
  else errors.raise(("plot: %s, expected a tensor, a list of numbers, or a run's folder"):format(type(what))) end
  seen.name, seen.title = o.name or seen.name, o.title or seen.title
  if o.x then seen.x = tensor.is(o.x) and from_tensor(o.x).y or o.x end
  return seen
end

-- The finite points of a line, and their ranges.
local function points(seen)
  local x, y, n = {}, {}, 0
  if seen.x and #seen.x ~= #seen.y then
    errors.raise(("plot: %d values of y, but %d of x"):format(#seen.y, #seen.x))
  end
  for i, value in ipairs(seen.y) do
    local at = seen.x and seen.x[i] or i
    if type(value) ~= "number" or type(at) ~= "number" then
      errors.raise(("plot: value %d is a %s, expected a number"):format(i, type(type(value) ~= "number" and value or at)))
    end
    if value - value == 0 and at - at == 0 then n, x[n + 1], y[n + 1] = n + 1, at, value end
  end
  if n == 0 then errors.raise "plot: no value is finite" end
  return x, y
end

local function range(list)
  local lo, hi = math.huge, -math.huge
  for _, v in ipairs(list) do lo, hi = math.min(lo, v), math.max(hi, v) end
  if lo == hi then return lo - 0.5, hi + 0.5 end
  return lo, hi
end

local function cells_range(cells)
  local all = {}
  for _, row in ipairs(cells) do
    for _, v in ipairs(row) do if v - v == 0 then all[#all + 1] = v end end
  end
  if #all == 0 then errors.raise "plot: no value is finite" end
  return range(all)
end

-- ---- in the terminal ----

local function short(v) return ("%.4g"):format(v) end

-- Lines of text: the curve, its axis on the left, the range of x below.
local function in_dots(seen)
  local x, y = points(seen)
  local x0, x1 = range(x)
  local y0, y1 = range(y)
  local shares = {}
  for i = 1, #x do shares[i] = { (x[i] - x0) / (x1 - x0), (y[i] - y0) / (y1 - y0) } end
  local rows = braille.line(shares, WIDTH, HEIGHT)
  local out = {}
  for row = 0, HEIGHT - 1 do
    local label = row == 0 and short(y1) or row == HEIGHT - 1 and short(y0) or ""
    out[#out + 1] = ("%10s ┤%s"):format(label, rows[row + 1])
  end
  local left, right = short(x0), short(x1)
  out[#out + 1] = (" "):rep(12) .. left .. (" "):rep(math.max(1, WIDTH - #left - #right)) .. right
  return out
end

-- A map: values that share a character are averaged.
local function in_shades(seen)
  local cells, out = seen.cells, {}
  local lo, hi = cells_range(cells)
  local rows, cols = math.min(#cells, 2 * HEIGHT), math.min(#cells[1], WIDTH)
  for r = 1, rows do
    local line = {}
    for c = 1, cols do
      local sum, n = 0, 0
      for i = math.floor((r - 1) * #cells / rows) + 1, math.floor(r * #cells / rows) do
        for k = math.floor((c - 1) * #cells[1] / cols) + 1, math.floor(c * #cells[1] / cols) do
          if cells[i][k] - cells[i][k] == 0 then sum, n = sum + cells[i][k], n + 1 end
        end
      end
      local share = n > 0 and (sum / n - lo) / (hi - lo) or 0
      line[c] = SHADES[math.min(#SHADES, math.floor(share * #SHADES) + 1)]
    end
    out[r] = "  " .. table.concat(line)
  end
  out[#out + 1] = ("  %d x %d, from %s (blank) to %s"):format(#cells, #cells[1], short(lo), short(hi))
  return out
end

-- ---- in a window, in a file ----

local function draw_on(seen)
  local x, y, x0, x1, y0, y1, lo, hi, flat
  if seen.cells then
    local rows, cols = #seen.cells, #seen.cells[1]
    lo, hi = cells_range(seen.cells)
    flat = ffi.new("float[?]", rows * cols)
    for r = 1, rows do for c = 1, cols do flat[(r - 1) * cols + c - 1] = seen.cells[r][c] end end
  else
    x, y = points(seen)
    x0, x1 = range(x)
    y0, y1 = range(y)
  end
  return function(view)
    local inner = view:card(view:inset(view.box, 16 * view.unit), seen.title or seen.name or "plot")
    if flat then return view:heat(inner, #seen.cells, #seen.cells[1], flat, lo, hi, lo < 0 and 1 or 0) end
    local margin = (y1 - y0) * 0.05
    local place = view:axes(inner, x0, x1, y0 - margin, y1 + margin, seen.x and "x" or "number", seen.name or "")
    local at_x, at_y = place(x[1], y[1])
    for i = 2, #x do
      local to_x, to_y = place(x[i], y[i])
      view:line(at_x, at_y, to_x, to_y, view.theme.accent, 2 * view.unit)
      at_x, at_y = to_x, to_y
    end
  end
end

local function in_window(seen)
  local window, scene = require "mneme.insight.view.window", require "mneme.insight.view.scene"
  local what = scene.new { doc = "a plot", draw = draw_on(seen) }
  local action_keys = require "mneme.insight.view.action_keys"
  window.need_display "without window = true it is plotted in the terminal"
  window.run({ period = 0.05, dirty = true, page = function() return what, {} end,
    key = function(_, key) return key == action_keys.ESCAPE or key == ("q"):byte() end }, { width = 960, height = 600 })
end

local function in_file(seen, path)
  local fig
  if seen.cells then
    local function counted(n) local list = {} for i = 1, n do list[i] = tostring(i) end return list end
    fig = { kind = "heat", title = seen.title or "plot", x = { label = "column", categories = counted(#seen.cells[1]) },
      y = { label = "row", categories = counted(#seen.cells) }, cells = seen.cells, value = { label = seen.name or "value" } }
  else
    local x, y = points(seen)
    fig = { kind = "lines", title = seen.title or "plot", x = { label = seen.x and "x" or "number" }, y = { label = seen.name or "y" },
      lines = { { name = seen.name or "y", x = x, y = y } } }
  end
  require("mneme.insight.figures").export(fig, path)
end

---Plot values: in the terminal; with window = true in a window (q closes it); with out = "x.svg" to a file
---(.svg, .png, .pdf, .html, .csv).  NaN and infinity are left out.
---@param what Tensor|number[]|string a tensor of one axis (a line) or two (a map), numbers, or a run's folder
---@param options table? { x = values on the x axis, of = quantity of a run ("charts/score"), name, title, window, out }
return function(what, options)
  local o = options or {}
  if type(o) ~= "table" then errors.raise(("plot: options are a %s, expected a table"):format(type(o))) end
  local seen = read(what, o)
  if o.out then in_file(seen, o.out)
  elseif o.window then in_window(seen)
  else
    local lines = seen.cells and in_shades(seen) or in_dots(seen)
    if seen.title or seen.name then table.insert(lines, 1, "  " .. (seen.title or seen.name)) end
    io.stdout:write(table.concat(lines, "\n"), "\n")
  end
end
