-- gnuplot.lua -- a figure as a gnuplot script that reads the figure's CSV: for papers with their own fonts,
-- widths and colours, because a script can be edited.
local axes = require "mneme.insight.figures.axes"
local bars = require "mneme.insight.figures.bars"
local errors = require "mneme.base.errors"
local lines = require "mneme.insight.figures.lines"
local look = require "mneme.insight.figures.style"
local model = require "mneme.insight.figures.model"
local numbers = require "mneme.base.format"
local text = require "mneme.insight.figures.text"

local gnuplot = {}
local points = { disc = 7, square = 5, triangle = 9, diamond = 13, cross = 1 }
local MARKS = 8                -- on a line, about
local MOST = 30                -- names at a heat map
local WIDTH, HEIGHT = 500, 300 -- in which ticks have to find room

-- A text between single quotes, in which gnuplot replaces nothing; at a tick it is a format.
local function quoted(s) return "'" .. tostring(s):gsub("%c", " "):gsub("'", "''") .. "'" end
local function format_of(s) return (s:gsub("%%", "%%%%")) end

local function add(out, s, ...) out[#out + 1] = select("#", ...) > 0 and s:format(...) or s end

-- A name on as many lines as it needs.
local function wrapped(name)
  local list = text.wrap(name, WIDTH / 3, look.SMALL)
  for i, line in ipairs(list) do list[i] = line:gsub('["\\`]', "'") end
  return '"' .. table.concat(list, "\\n") .. '"'
end

-- An axis with the range and the ticks of a scale.
local function add_axis(out, which, axis, scale)
  if axis.label and axis.label ~= "" then add(out, "set %slabel %s noenhanced", which, quoted(axis.label)) end
  if axis.log then add(out, "set logscale %s", which) end
  add(out, "set %srange [%s:%s]", which, numbers.exact(scale.low), numbers.exact(scale.high))
  local list = {}
  for i, v in ipairs(scale.ticks) do list[i] = ("%s %s"):format(quoted(format_of(scale.labels[i])), numbers.exact(v)) end
  add(out, "set %stics (%s)", which, table.concat(list, ", "))
end

local writers = {}

function writers.lines(fig, out)
  local x0, x1, y0, y1 = lines.ranges(fig, false)
  add_axis(out, "x", fig.x, axes.across(fig.x, x0, x1, 0, WIDTH))
  add_axis(out, "y", fig.y, lines.upright(fig, y0, y1, HEIGHT, 0))
  local widest = 0
  for _, line in ipairs(fig.lines) do widest = math.max(widest, text.width(line.name, look.SMALL)) end
  add(out, "set key %s noenhanced", widest > WIDTH / 4 and "below vertical maxcols 1" or "outside right")
  local y = 4 + #(fig.other_x or {})                   -- the column
  local bands, seeds, drawn, row = {}, {}, {}, 0
  local function rows(n)                               -- of the file, in its order, for names may hold what parts its columns
    row = row + n
    return ("every ::%d::%d using 3"):format(row - n + 1, row)
  end
  local styles = look.of_items(fig.lines)
  for k, line in ipairs(fig.lines) do
    local style = styles[k]
    local color, mine = look.color(style.color), rows(#line.y)
    if line.low then
      add(bands, "data %s:%d:%d with filledcurves fc rgb '%s' fs transparent solid 0.15 noborder notitle", mine, y + 1, y + 2, color)
    end
    add(drawn, "data %s:%d with linespoints lc rgb '%s' dt %d lw 2 pt %d ps 0.6 pi %d title %s", mine, y, color,
      style.round + 1, points[style.marker], math.max(1, math.floor(#line.x / MARKS)), wrapped(line.name))
    for _, seed in ipairs(line.seeds or {}) do
      add(seeds, "data %s:%d with lines lc rgb '#90%s' lw 0.5 notitle", rows(#seed.y), y, color:sub(2))
    end
  end
  for _, r in ipairs(fig.references or {}) do
    add(drawn, "%s with lines lc rgb '%s' dt 3 title %s", numbers.exact(r.y), look.color "dim", wrapped(r.name))
  end
  local all = {}
  for _, list in ipairs { bands, seeds, drawn } do for _, plot in ipairs(list) do all[#all + 1] = plot end end
  return all
end

function writers.bars(fig, out)
  local low, high = bars.range(fig)
  add_axis(out, "x", fig.y, axes.across(fig.y, low, high, 0, WIDTH))
  local names, most = {}, 1
  for i, place in ipairs(bars.places(fig)) do
    local bar = fig.bars[i]
    names[i], most = ("%s %d"):format(format_of(wrapped((bar.group and bar.group .. ": " or "") .. bar.name)), place), math.max(most, place)
  end
  add(out, "set ytics (%s) noenhanced", table.concat(names, ", "))
  add(out, "set yrange [%d.6:0.4]", most)
  add(out, "unset key")
  add(out, "of_bar(v) = strcol(4) eq '' && strcol(1) ne '' ? v : NaN")
  for i, r in ipairs(fig.references or {}) do
    local at = numbers.exact(r.y)
    add(out, "set arrow %d from first %s, graph 0 to first %s, graph 1 nohead front dt 3 lc rgb '%s'", i, at, at, look.color "dim")
    add(out, "set label %d %s at first %s, graph 1 offset 0, %g center noenhanced", i, quoted(r.name), at, i - 0.4)
  end
  if fig.references then add(out, "set tmargin %d", #fig.references + 3) end
  local zero = numbers.exact(fig.y.log and low or math.max(low, math.min(high, 0)))
  return {
    fig.kind == "dots" and ("data using (of_bar($5)):1 with points pt 7 ps 1.2 lc rgb '%s' notitle"):format(look.color "c1")
      or ("data using (of_bar($5)):1:(%s):5:($1-0.35):($1+0.35) with boxxyerror fc rgb '%s' fs solid 0.8 notitle"):format(zero, look.color "c1"),
    ("data using (of_bar($5)):1:6:7 with xerrorbars lc rgb '%s' pt 0 notitle"):format(look.color "ink"),
    ("data using (strcol(4) ne '' ? $5 : NaN):1 with points pt 6 ps 0.5 lc rgb '%s' notitle"):format(look.color "ink"),
  }
end

function writers.heat(fig, out)
  for _, which in ipairs { "x", "y" } do
    local axis, names = fig[which], {}
    if axis.label and axis.label ~= "" then add(out, "set %slabel %s noenhanced", which, quoted(axis.label)) end
    for i = 1, #axis.categories, math.ceil(#axis.categories / MOST) do
      names[#names + 1] = ("%s %d"):format(format_of(wrapped(axis.categories[i])), i)
    end
    add(out, "set %stics (%s) noenhanced%s", which, table.concat(names, ", "), which == "x" and " rotate" or "")
  end
  add(out, "set yrange [%d.5:0.5]", #fig.y.categories)
  add(out, "set xrange [0.5:%d.5]", #fig.x.categories)
  add(out, "set cblabel %s noenhanced", quoted(fig.value.label or ""))
  if fig.value.log then add(out, "set logscale cb") end
  if fig.value.range then add(out, "set cbrange [%s:%s]", numbers.exact(fig.value.range[1]), numbers.exact(fig.value.range[2])) end
  local stops = {}
  for i = 0, 8 do stops[i + 1] = ("%d '%s'"):format(i, (look.shade(i / 8))) end
  add(out, "set palette defined (%s)", table.concat(stops, ", "))
  add(out, "unset key")
  return { "data using 2:1:($2-0.5):($2+0.5):($1-0.5):($1+0.5):5 every ::1 with boxxyerror fs solid lc palette notitle" }
end

-- Is no number known at all?
local function nothing(fig)
  for _, bar in ipairs(fig.bars or {}) do if bar.y then return false end end
  for _, row in ipairs(fig.cells or {}) do
    for c = 1, #fig.x.categories do if row[c] then return false end end
  end
  return not fig.lines or #fig.lines + #(fig.references or {}) == 0
end

---A figure as a script, which reads the figure's CSV; of a figure with several x it draws the first.
---@param fig table see insight/figures/model.lua
---@param name string of the files without an ending: the script reads NAME.csv, where it is called, and writes NAME.pdf
---  unless its caller has set a terminal
---@return string
function gnuplot.script(fig, name)
  if type(name) ~= "string" then errors.raise(("figure: the name of its files is a %s, expected a text"):format(type(name))) end
  local drawing, out, plain = model.check(fig), {}, name:match "[^/]*$"
  local all = writers[drawing](fig, out)
  local head = {
    "# " .. (fig.title or fig.kind):gsub("[%c`]", " "), "#   gnuplot " .. plain .. ".gp",
    ("#   gnuplot -e \"set terminal pngcairo size 1200,800; set output '%s.png'\" %s.gp"):format(plain, plain),
    "if (GPVAL_OUTPUT eq '') { set terminal pdfcairo size 16cm,10cm; set output " .. quoted(plain .. ".pdf") .. " }",
    "data = " .. quoted(plain .. ".csv"), "set datafile separator comma", "set border 3", "set tics nomirror",
  }
  if fig.title then add(head, "set title %s noenhanced offset 0, %d", quoted(fig.title), drawing == "bars" and #(fig.references or {}) or 0) end
  for _, line in ipairs(out) do head[#head + 1] = line end
  if nothing(fig) then all = { "NaN notitle" } end
  head[#head + 1] = "plot " .. table.concat(all, ", \\\n     ")
  head[#head + 1] = "set output"
  return table.concat(head, "\n") .. "\n"
end

return gnuplot
