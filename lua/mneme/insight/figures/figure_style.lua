-- figure_style.lua -- colours, dashes, markers and fonts of figures.  Okabe and Ito's colours ("Color universal design", 2008)
-- can be distinguished by colour-blind readers; from the seventh line on, dashes and markers distinguish lines of one colour.
-- A memory has its colour by its name, in every figure.
local engine = require "mneme.base.engine"
local registry = require "mneme.base.registry"
local figure_style = {}

---Sizes of letters, and how much wider bold ones are.
figure_style.SMALL, figure_style.PLAIN, figure_style.LARGE, figure_style.BOLD = 11, 12, 15, 1.15

local light = { paper = "#ffffff", ink = "#1c1e21", dim = "#5a6068", grid = "#e4e6e9", axis = "#8b9199", blank = "#eceef0",
  c1 = "#0072b2", c2 = "#d55e00", c3 = "#009e73", c4 = "#b5588f", c5 = "#c98500", c6 = "#3a9bd6" }
local dark = { paper = "#16181c", ink = "#e8eaed", dim = "#a3a9b1", grid = "#2a2e34", axis = "#6d747d", blank = "#24282d",
  c1 = "#4aa3e0", c2 = "#f0803c", c3 = "#2cc295", c4 = "#dd92bd", c5 = "#e8ae3c", c6 = "#8fd0f5" }
local COLORS = 6
local ROUNDS = 9
local dashes = { nil, "7 3", "2 3", "9 3 2 3", "4 2 1 2", "12 4", "1 2", "9 3 2 3 2 3", "5 3 1 3" }
local markers = { "disc", "square", "triangle", "diamond", "cross" }

---How line k is drawn.
---@return table { color = "c1" of strokes, fill = "f1", dash = "7 3" or nil, round = 0.. of the dash, marker = "square" ...,
---  marked = it has markers however many points there are }
function figure_style.line(k)
  local round = math.floor((k - 1) / COLORS) % ROUNDS
  local color = (k - 1) % COLORS + 1
  return { color = "c" .. color, fill = "f" .. color, dash = dashes[round + 1], marker = markers[round % #markers + 1],
    marked = round > 0, round = round }
end

-- Which line each memory of the library is drawn like, by its place: a column is a colour, so that those of a family, or often compared, are
-- told apart.  A new core goes to the end.
local place = {}
for name in ([[
agalite        gtrxl       galite             lstm   gru            feedforward
agalite_long   transformer galite_released    slstm  mingru         framestack
agalite_paper  rmt         linear_transformer mlstm  rnn            lru
agalite_cossin bigbird     gated_linear       rwkv4  gated_deltanet ntm
performer      longformer  delta              rwkv6  rfa            dpfp
performer_relu longshort   delta_released     rwkv7  rfa_gate           minlstm
s5             rtu         hgrn               ffm    shm            mamba2
deltaproduct   gated_deltaproduct gla         hgrn2  kda            retnet
slstm_block]]):gmatch "%S+" do
  place[#place + 1], place[name] = name, #place + 1
end

-- The memory that a name is about: "gru" of "gru chrono" and of "T-Maze, gru"; of one that is not the library's the first word.
local function memory_of(name)
  for word in name:gmatch "[%w_]+" do if place[word] then return word end end
  return name:match "^[%w_]+" or name
end

---Is a name that of a memory of the library, or about one: "gtrxl 256"?
function figure_style.is_memory(name) return place[memory_of(name)] ~= nil end

---How the lines of a figure are drawn: each memory in the colour of its name, your own cores too, whatever else the figure shows; of those with one
---colour the dashes differ.  Names without a memory, and variants of a single one, are numbered.
---@param names string[] without repetition
---@param memories boolean? all are names of memories
---@return table<string, integer> style by name: which line it is drawn like
function figure_style.styles(names, memories)
  local style, taken, known, first, later = {}, {}, memories or false, nil, {}
  local several = false
  for k, name in ipairs(names) do
    style[name] = k
    known = known or figure_style.is_memory(name)
    first, several = first or memory_of(name), several or first ~= nil and memory_of(name) ~= first
  end
  if not known or #names > 1 and not several then return style end
  for _, name in ipairs(names) do
    style[name] = place[name]
    if place[name] then taken[place[name]] = true else later[#later + 1] = name end
  end
  table.sort(later)
  for _, name in ipairs(later) do
    local memory, sum = memory_of(name), 0
    for i = 1, #memory do sum = (sum * 31 + memory:byte(i)) % 65521 end
    local k = place[memory] or sum % COLORS + 1
    for n = 0, (place[memory] and 1 or COLORS) * ROUNDS - 1 do       -- other dashes first, then, of your own, other colours
      local try = ((k - 1) % COLORS + math.floor(n / ROUNDS)) % COLORS + 1 + COLORS * ((math.floor((k - 1) / COLORS) + n) % ROUNDS)
      if not taken[try] then k = try break end
    end
    style[name], taken[k] = k, true
  end
  return style
end

---How the lines or bars of a figure are drawn: as their style says, else by their names.
---@param items table[] { name, style }
---@return table[] of look.line, for each
function figure_style.of_items(items)
  local names, seen, list = {}, {}, {}
  for _, item in ipairs(items) do
    if not seen[item.name] then seen[item.name], names[#names + 1] = true, item.name end
  end
  local styles = figure_style.styles(names)
  for i, item in ipairs(items) do list[i] = figure_style.line(item.style or styles[item.name]) end
  return list
end

---Seeds: of fewer each is drawn in place of an interval, which would span the drawing.
figure_style.FEW = 5

---The family of the letters, unless a drawing is asked for another one.
figure_style.FONT = '"Helvetica Neue",Arial,"Liberation Sans","DejaVu Sans",sans-serif'

-- Colours stand as var(--NAME), in place of which css() puts those of a theme.
local rules = registry.text "insight/figures/figure.css"
for k = 1, COLORS do
  rules = rules .. (".mn-figure .c%d{stroke:var(--c%d)}\n.mn-figure .f%d{fill:var(--c%d)}\n"):format(k, k, k, k)
end

local function colored(text, theme) return (text:gsub("var%(%-%-(%w+)%)", theme)) end

---The style sheet of the drawings: light, and dark on the screen of a reader who prefers that.  All colours are literal, because
---librsvg, Inkscape and word processors know no CSS variables.
---@param theme string? "light" or "dark": with these colours whatever is preferred
---@param font string? a family of letters
---@return string css
function figure_style.css(theme, font)
  local family = font and ('"%s",%s'):format(font:gsub('[^%w %-]', ""), figure_style.FONT) or figure_style.FONT
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
function figure_style.color(name, theme) return (theme == "dark" and dark or light)[name] end

-- ---- shades of a heat map ----

---A share of 0 .. 1 as a colour, as the window's light page has it (more is darker), and one that can be read on it.
---@param signed boolean? 0.5 is nothing: blue below it, orange above
---@return string color "#rrggbb"
---@return string ink
function figure_style.shade(share, signed)
  local deep = signed and math.abs(share - 0.5) > 0.3 or not signed and share > 0.5
  return ("#%06x"):format(math.floor(engine.C.mn_map_color(signed and 1 or 0, true, share) / 256)), deep and "#ffffff" or "#111111"
end

return figure_style
