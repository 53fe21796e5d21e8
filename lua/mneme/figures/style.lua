-- style.lua -- colours, dashes, markers and fonts of figures.  Okabe and Ito's colours ("Color universal design", 2008)
-- can be distinguished by colour-blind readers; from the seventh line on, dashes and markers distinguish lines of one colour.
local look = {}

---Sizes of letters.
look.SMALL, look.PLAIN, look.LARGE = 11, 12, 15

local light = { paper = "#ffffff", ink = "#1c1e21", dim = "#5a6068", grid = "#e4e6e9", axis = "#8b9199", blank = "#eceef0",
  c1 = "#0072b2", c2 = "#d55e00", c3 = "#009e73", c4 = "#b5588f", c5 = "#c98500", c6 = "#3a9bd6" }
local dark = { paper = "#16181c", ink = "#e8eaed", dim = "#a3a9b1", grid = "#2a2e34", axis = "#6d747d", blank = "#24282d",
  c1 = "#4aa3e0", c2 = "#f0803c", c3 = "#2cc295", c4 = "#dd92bd", c5 = "#e8ae3c", c6 = "#8fd0f5" }
local COLORS = 6
local dashes = { nil, "7 3", "2 3", "9 3 2 3", "4 2 1 2" }
local markers = { "disc", "square", "triangle", "diamond", "cross" }

---How line k is drawn.
---@return table { color = "c1" of strokes, fill = "f1", dash = "7 3" or nil, round = 0.. of the dash, marker = "square" ...,
---  marked = it has markers however many points there are }
function look.line(k)
  local round = math.floor((k - 1) / COLORS)
  local color = (k - 1) % COLORS + 1
  return { color = "c" .. color, fill = "f" .. color, dash = dashes[round % #dashes + 1], marker = markers[round % #markers + 1],
    marked = round > 0, round = round % #dashes }
end

---Seeds: of fewer each is drawn in place of an interval, which would span the drawing.
look.FEW = 5

---The family of the letters, unless a drawing is asked for another one.
look.FONT = '"Helvetica Neue",Arial,"Liberation Sans","DejaVu Sans",sans-serif'

-- Colours stand as var(--NAME), in place of which css() puts those of a theme.
local rules = [[
.mn-figure text{fill:var(--ink)}
.mn-figure .paper{fill:var(--paper)}
.mn-figure .dim{fill:var(--dim)}
.mn-figure .grid{stroke:var(--grid);stroke-width:1}
.mn-figure .axis{stroke:var(--axis);stroke-width:1}
.mn-figure .blank{fill:var(--blank)}
.mn-figure .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:butt}
.mn-figure .seed{fill:none;stroke-width:1;opacity:.3;stroke-linejoin:round}
.mn-figure .band{stroke:none;opacity:.16}
.mn-figure .many{opacity:.24}
.mn-figure .band.many{opacity:.1}
.mn-figure .lead{fill:none;stroke-width:1.5}
.mn-figure .reference{stroke:var(--dim);stroke-width:1.5;stroke-dasharray:3 3;fill:none}
.mn-figure .error{stroke:var(--ink);stroke-width:1.5;fill:none}
.mn-figure .dot{fill:var(--paper);stroke:var(--ink);stroke-width:1}
.mn-other{fill:none;stroke:var(--axis);stroke-width:1;opacity:.35}
.mn-figure .interval{stroke:var(--dim);stroke-width:1.5;fill:none}
.mn-figure .seen{fill-opacity:0;stroke-width:1.3}
]]
for k = 1, COLORS do
  rules = rules .. (".mn-figure .c%d{stroke:var(--c%d)}\n.mn-figure .f%d{fill:var(--c%d)}\n"):format(k, k, k, k)
end

local function colored(text, theme) return (text:gsub("var%(%-%-(%w+)%)", theme)) end

---The style sheet of the drawings: light, and dark on the screen of a reader who prefers that.  All colours are literal, because
---librsvg, Inkscape and word processors know no CSS variables.
---@param theme string? "light" or "dark": with these colours whatever is preferred
---@param font string? a family of letters
---@return string css
function look.css(theme, font)
  local family = font and ('"%s",%s'):format(font:gsub('[^%w %-]', ""), look.FONT) or look.FONT
  local letters = (".mn-figure text{font-family:%s}\n"):format(family)
  if theme then return letters .. colored(rules, theme == "dark" and dark or light) end
  local others = {}
  for rule in rules:gmatch "[^\n]+" do if rule:find("var(", 1, true) then others[#others + 1] = rule end end
  return letters .. colored(rules, light) .. "@media screen and (prefers-color-scheme:dark){\n" .. colored(table.concat(others, "\n"), dark) .. "\n}\n"
end

---A colour by name, as a page on paper has it, or a dark one.
---@param name string
---@param theme string? "light" or "dark"
---@return string color "#rrggbb"
function look.color(name, theme) return (theme == "dark" and dark or light)[name] end

-- ---- shades of a heat map ----

-- White to navy, the window's light page: more is darker, so that on paper the smallest value is the faintest.
local shades = { { 220, 235, 246 }, { 180, 213, 236 }, { 134, 187, 223 }, { 85, 156, 203 }, { 42, 124, 178 }, { 15, 93, 146 }, { 5, 65, 108 },
  { 3, 40, 70 } }

---A share of 0 .. 1 as a colour, and one that can be read on it.
---@return string color "#rrggbb"
---@return string ink
function look.shade(share)
  local at = math.max(0, math.min(1, share)) * (#shades - 1)
  local i = math.min(math.floor(at), #shades - 2)
  local a, b, mix, part = shades[i + 1], shades[i + 2], {}, at - i
  for c = 1, 3 do mix[c] = math.floor(a[c] + part * (b[c] - a[c]) + 0.5) end
  return ("#%02x%02x%02x"):format(mix[1], mix[2], mix[3]), share > 0.5 and "#ffffff" or "#111111"
end

return look
