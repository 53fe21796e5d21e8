-- test_figure_names.lua -- a memory looks the same in every figure, whatever else it shows; names of settings and of logged values are words;
-- the colours of heat maps are the same in the window, in figures and on pages of episodes.
local ffi = require "ffi"
local tables = require "mneme.base.tables"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local figures = require "mneme.insight.figures"
local files = require "mneme.base.files"
local figure_style = require "mneme.insight.figures.figure_style"
local registry = require "mneme.base.registry"
local shell = require "tests.support.shell"
local text = require "mneme.insight.figures.text"

local function color(style) return figure_style.line(style).color end

t.test("every memory of the library has a line of its own, in a figure of any two and in one of all", function()
  local names = registry.names "cores"
  local all, seen = figure_style.styles(names), {}
  for i, name in ipairs(names) do
    t.ok(figure_style.is_memory(name), name .. " is not in the list of insight/figures/figure_style.lua: append it")
    local line = figure_style.line(all[name])
    local drawn = ("%s %s"):format(line.color, line.dash or "-")
    t.ok(not seen[drawn], ("%s is drawn like %s"):format(name, tostring(seen[drawn])))
    seen[drawn] = name
    local other = names[i % #names + 1]
    t.eq(figure_style.styles({ other, name })[name], all[name])
    t.eq(figure_style.styles({ name, "a memory of mine" })[name], all[name])
  end
end)

t.test("your own memory has the colour of its name in every figure, and never the line of another", function()
  local known = registry.names "cores"
  for n = 1, 40 do
    local mine = "mine" .. n
    local alone = color(figure_style.styles({ mine }, true)[mine])
    for first = 1, #known, 5 do
      local names = { mine, "mine" .. n + 1, "mine" .. n + 2, unpack(known, first, math.min(#known, first + 9)) }
      local styles, seen = figure_style.styles(names), {}
      t.eq(color(styles[mine]), alone, mine)
      for _, name in ipairs(names) do
        t.ok(not seen[styles[name]], name .. " is drawn like " .. tostring(seen[styles[name]]))
        seen[styles[name]] = name
      end
    end
  end
end)

t.test("settings of a memory share its colour; those of a single memory, and what is no memory, are numbered", function()
  local styles = figure_style.styles { "gru", "gru chrono", "lstm", "lstm chrono", "gtrxl 256" }
  t.eq(color(styles["gru chrono"]), color(styles.gru))
  t.eq(color(styles["lstm chrono"]), color(styles.lstm))
  t.eq(color(styles["gtrxl 256"]), color(figure_style.styles({ "gtrxl", "gru" }).gtrxl))
  t.ok(styles["gru chrono"] ~= styles.gru and styles.gru == figure_style.styles({ "gru", "lstm" }).gru)
  t.eq(figure_style.styles({ "galite, r=1", "galite, r=2" })["galite, r=2"], 2)
  t.eq(figure_style.styles({ "elu1", "no map" })["no map"], 2)
end)

-- What an SVG draws by name: lines as groups of class "row" with a title.
local function drawn(svg)
  local list = {}
  for name, class in svg:gmatch '<g class="row"><title>([^<]-): [^<]*</title>\n<[^>]-class="[%a ]*([cf]%d)"' do list[#list + 1] = { name, class:sub(2) } end
  return list
end

t.test("in all figures of docs a memory has its colour", function()
  local n = 0
  for _, folder in ipairs { "docs/results", "docs/figures" } do
    for _, name in ipairs(files.list(shell.root .. "/" .. folder)) do
      for _, item in ipairs(name:find "%.svg$" and drawn((files.read(("%s/%s/%s"):format(shell.root, folder, name)))) or {}) do
        local plain = item[1]
        local style = figure_style.is_memory(plain) and figure_style.styles({ plain, plain:find "gru" and "lstm" or "gru" })[plain]
        if style then
          n = n + 1
          t.eq("c" .. item[2], color(style), ("%s, %s"):format(name, plain))
        end
      end
    end
  end
  t.ok(n > 100, "only " .. n .. " lines and bars of memories were found")
end)

t.test("names of logged values and settings are words", function()
  for _, name in ipairs { "charts/episodic_return", "losses/value_loss", "grad/norm", "cue_frames", "env", "eval/bits_per_character", "a_b/c_d" } do
    t.ok(not text.words(name):find "[_/]", text.words(name))
  end
  t.eq(text.words("cue_frames", "5"), "cue frames 5")
  t.eq(text.words("env", "mystery_path_grid"), "environment mystery path grid")
  t.eq(text.words("core", "agalite_long"), "core agalite_long")
  t.eq(text.words("corridor", "200"), "corridor 200")
end)

t.test("ten intervals through one another are a panel each; few of them, or narrow ones, are not", function()
  local function fig(n, wide)
    local lines = {}
    for k = 1, n do
      lines[k] = { name = "line " .. k, x = { 1, 2, 3 }, y = { k / 20, k / 20, k / 20 } }
      lines[k].low, lines[k].high = {}, {}
      for i = 1, 3 do lines[k].low[i], lines[k].high[i] = k / 20 - wide, k / 20 + wide end
    end
    return { kind = "lines", x = {}, y = { range = { 0, 1 } }, lines = lines }
  end
  local function panels(svg) return select(2, svg:gsub("<use ", "")), select(2, svg:gsub('class="band', "")) end
  local n, bands = panels(figures.svg(fig(10, 0.2)))
  t.eq(n, 10) t.eq(bands, 10, "each panel has its own interval")
  t.eq((panels(figures.svg(fig(6, 0.2)))), 6)
  t.eq((panels(figures.svg(fig(3, 0.2)))), 0)
  t.eq((panels(figures.svg(fig(10, 0.01)))), 0)
  t.eq((panels(figures.svg(fig(10, 0.2), { panels = false }))), 0)
end)

t.test("a share has one colour: in the window's light page, in a figure, on the page of an episode; more is darker", function()
  local scene = require "mneme.insight.view.scene"
  local painter = scene.painter(nil, { theme = "light" })
  local last = math.huge
  local light = select(2, require("mneme.insight.view.episode_data").colours())[1][2]
  for i = 0, 8 do
    local shade = figure_style.shade(i / 8)
    t.eq(light[i + 1], shade)
    local pixels = painter:paint({ draw = function(view) view:heat({ x = 0, y = 0, w = 20, h = 20 }, 1, 1, ffi.new("float[1]", i), 0, 8) end }, {}, 20, 20)
    local at = ffi.cast("uint8_t *", pixels) + 4 * (10 * 20 + 10)
    t.eq(("#%02x%02x%02x"):format(at[0], at[1], at[2]), shade)
    local lightness = 0.3 * tonumber(shade:sub(2, 3), 16) + 0.59 * tonumber(shade:sub(4, 5), 16) + 0.11 * tonumber(shade:sub(6, 7), 16)
    t.ok(lightness < last, "more is not darker")
    last = lightness
  end
  t.eq(engine.C.mn_map_color(0, true, 0 / 0), 0x808080FF)
end)

t.test("in a heat map 0 has no colour, less than 0 another one than more, and noise below 0 none of its own", function()
  local function fills(cells)
    local fig, list = { kind = "heat", x = { categories = {} }, y = { categories = { "r" } }, value = {}, cells = { cells } }, {}
    for c in ipairs(cells) do fig.x.categories[c] = "c" .. c end
    for fill in figures.svg(fig):gmatch 'fill="(#%x+)"[^>]*><title>' do list[#list + 1] = fill end
    return list
  end
  for _, cells in ipairs { { -2, 0, 2 }, { -2, 0, 1 }, { -2, 0, -1 }, { -1, 0, 2 } } do
    local fill = fills(cells)
    t.eq(fill[2], "#ffffff")
    t.eq(fill[1], figure_style.shade(0.5 + cells[1] / 4, true))
    t.eq(fill[3], figure_style.shade(0.5 + cells[3] / 4, true))
  end
  t.eq(table.concat(fills { -0.01, 0, 1 }, " "), table.concat(tables.map({ 0, 0.01 / 1.01, 1 }, function(v) return (figure_style.shade(v)) end), " "))
end)
