-- test_figures.lua -- figures: drawings are well-formed, no text leaves the page or lies on another, numbers are told as
-- people and programs expect them, files are what their names say, and what is no figure is refused.
local t = require "tests.harness"
local figures = require "mneme.insight.figures"
local files = require "mneme.base.files"
local format = require "mneme.base.format"
local scale = require "mneme.insight.figures.scale"
local shell = require "tests.support.shell"
local text = require "mneme.insight.figures.text"

local here = shell.folder()

-- ---- figures to draw ----

-- Numbers in 0..1 that are the same every time.
local function source(seed)
  return function()
    seed = (seed * 1103515245 + 12345) % 2 ^ 31
    return seed / 2 ^ 31
  end
end

local LONG = "a memory with a very long name, gate=scalar eta=4 r=8 and_a_word_that_has_no_blank_at_all_in_it_"

local function curves(n, seeds, name)
  local fig = { kind = "curves", title = "Score & <success>", note = "Mean of some seeds.", x = { label = "steps" },
    y = { label = "score", range = { 0, 1 } }, lines = {}, references = { { name = "random", y = 0.5 }, { name = "oracle", y = 0.51 } } }
  for k = 1, n do
    local random, line = source(k), { name = name .. k, x = {}, y = {}, low = {}, high = {}, seeds = {} }
    for s = 1, seeds do line.seeds[s] = { x = line.x, y = {} } end
    for i = 1, 30 do
      line.x[i], line.y[i] = i * 2e5, 0.5 + 0.4 * i / 30 * random()
      line.low[i], line.high[i] = line.y[i] - 0.1, line.y[i] + 0.1
      for s = 1, seeds do line.seeds[s].y[i] = line.y[i] + 0.1 * (random() - 0.5) end
    end
    fig.lines[k] = line
  end
  return fig
end

local function latency(n)
  local fig = { kind = "lines", title = "latency", x = { label = "context", log = true, ticks = { 128, 512, 2048 } },
    y = { label = "time of a step", unit = "s", log = true }, lines = {} }
  for k = 1, n do fig.lines[k] = { name = "core" .. k, x = { 128, 512, 2048 }, y = { 1e-5 * k, 1.1e-5 * k, 1e-4 * k } } end
  return fig
end

local function bars(n, groups, name)
  local fig = { kind = "bars", title = "success", x = { label = "corridor" }, y = { label = "success" }, bars = {},
    references = { { name = "random", y = 0.5 }, { name = "as published", y = 0.52 } } }
  local random = source(7)
  for g = 1, groups do
    for k = 1, n do
      local y = random()
      fig.bars[#fig.bars + 1] = { name = name .. k, group = groups > 1 and tostring(g * 40) or nil, y = y, low = y - 0.3, high = y + 0.3,
        seeds = { y - 0.1, y, y + 0.1 } }
    end
  end
  fig.bars[1] = { name = fig.bars[1].name, group = fig.bars[1].group }
  return fig
end

local function heat(rows, columns, name)
  local fig = { kind = "heat", title = "a probe", x = { label = "step", categories = {} }, y = { label = "head", categories = {} },
    value = { label = "accuracy", range = { 0, 1 } }, cells = {} }
  local random = source(3)
  for c = 1, columns do fig.x.categories[c] = name and name .. c or tostring(10 * c) end
  for r = 1, rows do
    fig.y.categories[r], fig.cells[r] = (name or "head ") .. r, {}
    for c = 1, columns do fig.cells[r][c] = (r + c) % 5 > 0 and random() end
  end
  return fig
end

local all = {
  ["one line"] = curves(1, 1, "gru"), ["two lines"] = curves(2, 20, "core"), ["eight lines"] = curves(8, 3, "core"),
  ["28 lines"] = curves(28, 2, "core"), ["long names"] = curves(3, 2, LONG), ["no lines"] = curves(0, 0, ""),
  latency = latency(8), ["28 latencies"] = latency(28),
  bars = bars(4, 3, "core"), ["28 bars"] = bars(28, 1, "core"), ["long bars"] = bars(3, 2, LONG),
  heat = heat(8, 10), ["wide heat"] = heat(3, 60), ["long heat"] = heat(3, 4, LONG), ["very long heat"] = heat(3, 30, LONG),
  ["nearly one value"] = { kind = "lines", x = {}, y = {}, lines = { { name = "a", x = { 1e18, 1e18 + 512 }, y = { 7, 7 * (1 + 1e-15) } } } },
  ["very long times"] = { kind = "lines", x = { unit = "s" }, y = { unit = "s" }, lines = { { name = "a", x = { 0, 1e18 }, y = { 1e15, 3e17 } } } },
  ["no heat"] = { kind = "heat", x = { categories = { "a" } }, y = { categories = { "b" } }, value = {}, cells = { { false } } },
  ["no bars"] = { kind = "bars", x = {}, y = {}, bars = { { name = "a" } } },
  profile = { kind = "profile", x = { range = { 0, 1 } }, y = { label = "share", unit = "%", range = { 0, 100 } },
    lines = { { name = "a", x = { 0, 0.5, 1 }, y = { 100, 50, 0 }, low = { 90, 10, 0 }, high = { 100, 90, 10 } } } },
}
for _, kind in ipairs { "bars", "dots" } do
  local marked = { "gated_deltanet", "no", "a memory with a very long name gate=scalar", "agalite" }
  all["marked " .. kind] = { kind = kind, x = { label = "core" }, y = { label = "score" }, bars = {} }
  for i, name in ipairs(marked) do all["marked " .. kind].bars[i] = { name = name, y = -1e9 * i, low = -2e9 * i, high = 1e9, marked = i ~= 2 } end
end
local names = require("mneme.base.tables").keys(all)

-- ---- reading a drawing ----

local function plain(s) return (s:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&quot;", '"'):gsub("&amp;", "&")) end

-- Every element that opens closes, in order; attributes are quoted; no sign is bare.
local function well_formed(svg)
  local open = {}
  for before, slash, name, rest in (svg .. "<"):gmatch "([^<]*)<(/?)([%w]*)([^<>]*)>?" do
    t.ok(not before:gsub("^>", ""):gsub("&%a+;", ""):find "[&]", before)
    if slash == "/" then t.eq(table.remove(open), name)
    elseif name ~= "" then
      t.ok(not rest:gsub('[%w-:]+="[^"]*"', ""):find "[^%s/]", name .. rest)
      if rest:sub(-1) ~= "/" then open[#open + 1] = name end
    end
  end
  t.eq(#open, 0, "elements left open")
  t.ok(not svg:find "nan" and not svg:find "inf[\" ,]", "a number that is none")
end

local function texts_of(svg)
  local list = {}
  for attributes, s in svg:gmatch "<text([^>]*)>([^<]*)</text>" do
    local x, y, size = tonumber(attributes:match ' x="([^"]*)"'), tonumber(attributes:match ' y="([^"]*)"'),
      tonumber(attributes:match 'font%-size="([^"]*)"')
    local anchor, width = attributes:match 'text%-anchor="([^"]*)"', text.width(plain(s), size) * (attributes:find 'font%-weight' and 1.15 or 1)
    local left = anchor == "middle" and x - width / 2 or anchor == "end" and x - width or x
    list[#list + 1] = { s = plain(s), left = left, right = left + width, top = y - 0.75 * size, bottom = y + 0.2 * size }
  end
  return list
end

local function check_texts(svg, what)
  local x, y, w, h = svg:match 'viewBox="(%S+) (%S+) (%S+) (%S+)"'
  x, y, w, h = tonumber(x), tonumber(y), tonumber(w), tonumber(h)
  local list = texts_of(svg)
  for i, a in ipairs(list) do
    t.ok(a.left >= x - 0.5 and a.right <= x + w + 0.5 and a.top >= y - 0.5 and a.bottom <= y + h + 0.5,
      ("%s: '%s' leaves the page: %.0f .. %.0f, %.0f .. %.0f"):format(what, a.s, a.left, a.right, a.top, a.bottom))
    for k = i + 1, #list do
      local b = list[k]
      t.ok(a.right <= b.left + 0.5 or b.right <= a.left + 0.5 or a.bottom <= b.top + 0.5 or b.bottom <= a.top + 0.5,
        ("%s: '%s' lies on '%s'"):format(what, a.s, b.s))
    end
  end
  return list
end

-- Names of settings and of POPGym's tasks, as long as they come, in as many columns and rows as there is room for.
t.test("in a heat map no part of a name is cut, and every column has its name", function()
  local long = { "concentration easy", "noisy_position_only_pendulum", "multiarmed_bandit hard", "credit=exact", "gated_deltaproduct n=2", "minigrid_memory" }
  for _, columns in ipairs { 1, 2, 4, 6, 8 } do
    local fig = heat(6, columns)
    for c = 1, columns do fig.x.categories[c] = long[(c - 1) % #long + 1] .. (c > #long and " b" or "") end
    for r = 1, 6 do fig.y.categories[r] = long[r] end
    for _, o in ipairs { { alone = true }, {} } do
      local shown = {}
      for _, item in ipairs(check_texts(figures.svg(fig, o), columns .. " columns")) do shown[item.s] = true end
      for _, name in ipairs(fig.x.categories) do
        for part in name:gsub("[_/=,:-]", "%0 "):gmatch "%S+" do
          local whole = false
          for s in pairs(shown) do whole = whole or (" " .. s:gsub("[_=]", "%0 ") .. " "):find(" " .. part .. " ", 1, true) ~= nil end
          t.ok(whole, ("%d columns: '%s' of '%s'"):format(columns, part, name))
        end
      end
    end
  end
end)

for _, name in ipairs(names) do
  t.test(("%s: well-formed; texts are whole, within the page and apart; the same bytes again"):format(name), function()
    local fig = all[name]
    for _, o in ipairs { {}, { narrow = true }, { alone = true }, { alone = true, theme = "dark" } } do
      local svg = figures.svg(fig, o)
      well_formed(svg)
      local told = check_texts(svg, name)
      t.eq(figures.svg(fig, o), svg)
      local seen, letters = {}, ""
      for _, item in ipairs(told) do
        seen[item.s] = true
        letters = letters .. item.s:gsub(" ", "")
      end
      for _, line in ipairs(fig.lines or fig.bars or {}) do t.ok(letters:find(line.name:gsub(" ", ""), 1, true), line.name) end
      if o.alone and fig.title then t.ok(seen[fig.title], "no title") end
      t.ok(not (o.theme and svg:find "var%("), "a colour by name")
      t.ok(svg:find 'role="img"' and svg:find("<title", 1, true))
    end
  end)
end

t.test("lines are told apart: six colours, then dashes and marks; seeds where they are few, else bands", function()
  local svg = figures.svg(curves(8, 3, "core"))
  local _, dashed = svg:gsub('class="line c%d" stroke%-dasharray', "")
  t.eq(dashed, 2)
  t.eq(select(2, svg:gsub('class="seed', "")), 24)
  t.eq(select(2, svg:gsub('class="band', "")), 0)
  svg = figures.svg(curves(8, 5, "core"))
  t.eq(select(2, svg:gsub('class="band', "")), 8)
  t.eq(select(2, svg:gsub('class="seed', "")), 0)
  svg = figures.svg(curves(28, 3, "core"), { panels = false })
  local styles = {}
  for color, dash in svg:gmatch 'class="line (c%d)"( ?[^/]*)/>' do styles[color .. dash] = true end
  t.eq(#require("mneme.base.tables").keys(styles), 28)
end)

t.test("many lines: a panel each, the largest end first, the others in grey", function()
  local fig = latency(28)
  local svg = figures.svg(fig)
  t.eq(select(2, svg:gsub('class="line c%d"', "")), 28)
  t.eq(select(2, svg:gsub('class="mn%-other"', "")), 28) t.eq(select(2, svg:gsub('<use href="#figure%-all"', "")), 28)
  local order = {}
  for name in svg:gmatch 'font%-weight="600">(core%d+)<' do order[#order + 1] = name end
  t.eq(#order, 28) t.eq(order[1], "core28") t.eq(order[28], "core1")
  t.eq(select(2, figures.svg(latency(3)):gsub('class="mn%-other"', "")), 0)
  t.eq(select(2, figures.svg(latency(3), { panels = true }):gsub('class="mn%-other"', "")), 3)
end)

t.test("dots: an axis that need not begin at 0; the interval from five seeds on, and always the seeds", function()
  local function drawn(n)
    local fig = { kind = "dots", x = {}, y = { range = { 0, 1 } }, bars = { { name = "a", y = 0.8, low = 0.7, high = 0.9, seeds = {} },
      { name = "b", y = 0.75, marked = true } }, references = { { name = "guessing", y = 0.5 } } }
    for i = 1, n do fig.bars[1].seeds[i] = 0.8 end
    local svg = figures.svg(fig)
    check_texts(svg, "dots")
    t.ok(not svg:find("<text[^>]*>0</text>"), "it begins at 0")
    t.ok(svg:find('font%-weight="600">b<') and svg:find('class="f2"'), "what is marked")
    return select(2, svg:gsub('class="seen', "")), select(2, svg:gsub('class="interval"', ""))
  end
  local seeds, intervals = drawn(3)
  t.eq(seeds, 3) t.eq(intervals, 0)
  seeds, intervals = drawn(5)
  t.eq(seeds, 5) t.eq(intervals, 1)
end)

t.test("the way from a line that ends early to its name is dotted", function()
  local function leads(last)
    local line = { name = "b", x = { 0, last }, y = { 0, 1 } }
    local svg = figures.svg { kind = "lines", x = {}, y = {}, lines = { { name = "a", x = { 0, 100 }, y = { 1, 2 } }, line } }
    return select(2, svg:gsub('class="lead [%w ]*" stroke%-dasharray="1 5"', ""))
  end
  t.eq(leads(100), 0) t.eq(leads(40), 1)
end)

t.test("a path goes through its points", function()
  local fig = { kind = "lines", x = { range = { 0, 100 } }, y = { range = { 0, 1 } }, lines = { { name = "a", x = {}, y = {} } } }
  local random = source(11)
  for i = 0, 100 do fig.lines[1].x[i + 1], fig.lines[1].y[i + 1] = i, random() end
  local svg = figures.svg(fig)
  local d = svg:match '<path d="([^"]*)" class="line'
  local x, y = d:match "^M(%S+) ([^l]+)"
  x, y = tonumber(x), tonumber(y)
  local places = { { x, y } }
  for dx, dy in d:gmatch "l(%S+) ([^l]+)" do
    x, y = x + tonumber(dx), y + tonumber(dy)
    places[#places + 1] = { x, y }
  end
  t.ok(#places > 90)
  -- 100 steps from the left end to the right one, 1 from the bottom to the top: both are ticks
  local left, right = places[1][1], places[#places][1]
  local bottom, top
  for y_of, s in svg:gmatch '<text x="[^"]*" y="([^"]*)"[^>]*end"[^>]*>([^<]*)<' do
    if s == "0" then bottom = tonumber(y_of) - 4 elseif s == "1.0" then top = tonumber(y_of) - 4 end
  end
  for _, p in ipairs(places) do
    local i = math.floor((p[1] - left) / (right - left) * 100 + 0.5)
    t.near(p[2], bottom + fig.lines[1].y[i + 1] * (top - bottom), 0.3)
  end
end)

-- ---- numbers and scales ----

t.test("numbers as people write them", function()
  for v, s in pairs { [0] = "0", [5e6] = "5M", [0.95] = "0.95", [1234] = "1234", [12345] = "12.3k", [999999] = "1M", [1e-5] = "1e-5",
    [-0.5] = "-0.5", [1.7e15] = "1.7P", [3e9] = "3G", [0.1234567] = "0.123" } do t.eq(format.short(v), s) end
  for v, s in pairs { [0] = "0", [2e-5] = "20 µs", [0.5] = "500 ms", [90] = "90 s", [7200] = "2 h", [300] = "5 min" } do
    t.eq(format.short(v, "s"), s)
  end
  t.eq(format.short(50, "%"), "50 %")
  t.eq(format.short(1.776e20), "1.78e20")
  for v, s in pairs { [999999.25] = "+999999.25", [-1.25] = "-1.25", [1e30] = "+1e30", [-2.5e15] = "-2.5P", [-1e-17] = "+0.00" } do
    t.eq(format.said("%-2s: %+.2f of %d (95 %%)", "x", v, 7), ("x : %s of 7 (95 %%)"):format(s))
  end
  for power = -11, 30 do                           -- whatever the size of a number, its text is near it, and short
    for _, v in ipairs { 1.2345 * 10 ^ power, -9.996 * 10 ^ power } do
      local digits, letter = format.said("%.2f", v):match "^(-?[%d.e-]+)(%a?)$"
      local shown = tonumber(digits) * ({ k = 1e3, M = 1e6, G = 1e9, T = 1e12, P = 1e15, [""] = 1 })[letter]
      t.ok(#digits <= 10 and math.abs(shown - v) <= 0.0051 * math.max(math.abs(v), math.abs(v) >= 0.005 and 1 or 0), v .. ": " .. digits .. letter)
    end
  end
  for v, s in pairs { [1.25] = "1.25", [1.78e11] = "178 billion", [2.5e6] = "2.5 million", [1.776e20] = "1.8e20" } do t.eq(format.times(v), s) end
  for v, s in pairs { [999.6] = "1000", [9999.6] = "10000", [99999.6] = "100k" } do t.eq(format.short(v), s) end
  t.eq(format.short(0.9996, "s"), "1000 ms") t.eq(format.resource("peak_mib", 1010), "1010 MiB") t.eq(format.resource("peak_mib", 1.5 * 1024), "1.5 GiB")
  t.eq(format.resource("peak_mib", 1000.4 * 1024), "1000 GiB")
  t.eq(table.concat(format.row({ 0.99999, 0.9999925, 1 }, 2.5e-6), " "), "0.99999 0.9999925 1")
  t.eq(table.concat(format.row({ 1200000, 1200005, 1200010 }, 5), " "), "1.2M 1.200005M 1.20001M")
  t.eq(format.short(131072, "KiB"), "128 MiB") t.eq(format.short(4096, "KiB"), "4096 KiB") t.eq(format.short(-1e4 * 1024, "MiB"), "-9.77 TiB")
  t.eq(table.concat(format.row({ 0, 1e6, 2e6 }, 1e6), " "), "0 1M 2M")
  t.eq(table.concat(format.row({ 0, 1.5e30, 3e30 }, 1.5e30), " "), "0 1.5e30 3e30")
  t.eq(table.concat(format.row({ 0, 0.25, 0.5 }, 0.25), " "), "0 0.25 0.50")
  t.eq(table.concat(format.row({ 0, 3600, 7200 }, 3600, "s"), " "), "0 1 h 2 h")
  t.eq(table.concat(format.alike { 0.98, 0.0003, 0.5 }, " "), "0.98 0.00 0.50")
  t.eq(format.exact(5013504), "5013504")
  t.near(tonumber(format.exact(1 / 3)), 1 / 3, 1e-7)
end)

t.test("scales: round ticks that span the range, decades, and ranges of one value", function()
  local function ticks(axis, low, high, wanted, nice)
    local s = scale.new(axis, low, high, 0, 100, { wanted = wanted, nice = nice })
    return table.concat(s.labels, " "), s
  end
  t.eq((ticks({}, 0, 5e6, 5)), "0 1M 2M 3M 4M 5M")
  t.eq((ticks({}, 0.02, 0.93, 5, true)), "0 0.2 0.4 0.6 0.8 1.0")
  t.eq((ticks({ log = true }, 1, 1e6, 7)), "1 10 100 1000 10k 100k 1M")
  t.eq((ticks({ log = true }, 128, 4096, 6)), "200 500 1000 2000")
  t.eq((ticks({ unit = "s" }, 0, 4 * 3600, 5)), "0 1 h 2 h 3 h 4 h")
  local _, s = ticks({}, 3, 3, 5)
  t.ok(s.low < 3 and s.high > 3 and #s.ticks > 1)
  _, s = ticks({ log = true }, 10, 1000, 5)
  t.near(s.at(100), 50, 1e-9)
end)

t.test("texts: widths grow, lines fit, nothing is lost", function()
  t.ok(text.width("illi", 12) < text.width("mmmm", 12))
  for _, room in ipairs { 40, 100, 300 } do
    local lines = text.wrap(LONG .. " µ–ü", room, 11)
    for _, line in ipairs(lines) do t.ok(text.width(line, 11) <= room, line) end
    t.eq((table.concat(lines):gsub(" ", "")), ((LONG .. "µ–ü"):gsub(" ", "")))
  end
  t.eq(table.concat(text.wrap("repeat_previous", 80, 11), "|"), "repeat_|previous", "a name of several parts breaks between them")
  t.eq(text.escape 'a<b>&"\1', "a&lt;b&gt;&amp;&quot;?")
end)

-- ---- data ----

local function rows_of(csv)
  local rows = {}
  for line in csv:gmatch "[^\n]+" do
    local row = {}
    for field in (line .. ","):gmatch "([^,]*)," do row[#row + 1] = field end
    rows[#rows + 1] = row
  end
  return rows
end

t.test("CSV holds the numbers that were given", function()
  local fig = curves(2, 3, "core")
  local rows = rows_of(figures.csv(fig))
  t.eq(table.concat(rows[1], " "), "line seed steps y low high")
  t.eq(#rows, 1 + 2 * 30 * 4 + 2)
  for i = 1, 30 do
    local line, row = fig.lines[1], rows[1 + i]
    t.eq(row[1], "core1") t.eq(row[2], "")
    t.near(tonumber(row[3]), line.x[i], 1e-6)
    t.near(tonumber(row[4]), line.y[i], 1e-6) t.near(tonumber(row[5]), line.low[i], 1e-6) t.near(tonumber(row[6]), line.high[i], 1e-6)
    t.eq(rows[31 + i][2], "1") t.near(tonumber(rows[31 + i][4]), line.seeds[1].y[i], 1e-6)
  end
  fig = bars(2, 2, 'a "name", with a comma')
  t.ok(figures.csv(fig):find('1,40,"a ""name"", with a comma1",,,,', 1, true), figures.csv(fig))
  rows = rows_of(figures.csv(heat(2, 3)))
  t.eq(table.concat(rows[1], " "), "row column head step accuracy")
  t.eq(#rows, 7) t.eq(rows[2][3], "head 1") t.eq(rows[2][4], "10")
end)

t.test("a part of a page: two drawings, the CSV as a link; each id once", function()
  local fig = curves(3, 2, "core")
  local html = figures.section(fig, "fig1")
  local seen = {}
  for id in html:gmatch ' id="([^"]*)"' do
    t.ok(not seen[id], id .. " twice")
    seen[id] = true
  end
  t.eq(select(2, html:gsub("<svg", "")), 2)
  local link = html:match 'download="fig1.csv" href="data:text/csv;charset=utf%-8,([^"]*)"'
  t.eq((link:gsub("%%(%x%x)", function(x) return string.char(tonumber(x, 16)) end)), figures.csv(fig))
  t.ok(not html:find "https?://[^w]" and not figures.head():find "https?://[^w]", "something from a network")
  well_formed((html:gsub(" data%-drawing", "")))
end)

-- ---- files ----

t.test("files by their ends", function()
  local fig = bars(3, 2, "core")
  figures.export(fig, here .. "/a.svg")
  well_formed(files.read(here .. "/a.svg"))
  figures.export(fig, here .. "/a.csv")
  t.eq((files.read(here .. "/a.csv")), figures.csv(fig))
  t.fails(function() figures.export(fig, here .. "/a.jpg") end)
  if os.execute "command -v rsvg-convert >/dev/null 2>&1" ~= 0 then
    t.raises(function() figures.export(fig, here .. "/a.png") end, "librsvg2%-bin")
    return
  end
  figures.export(fig, here .. "/a.png")
  t.eq(files.read(here .. "/a.png"):sub(2, 4), "PNG")
  figures.export(fig, here .. "/a.pdf")
  t.eq(files.read(here .. "/a.pdf"):sub(1, 4), "%PDF")
  t.eq(table.concat(files.list(here), " "), "a.csv a.pdf a.png a.svg")
end)

t.test("the example of docs/figures.md", function()
  local example = files.read(require("mneme.base.registry").root .. "docs/figures.md"):match "```lua\n(.-)```"
  local path = here .. "/latency.svg"
  assert(loadstring((example:gsub('"latency.svg"', ("%q"):format(path)))))()
  check_texts(files.read(path), "the example")
end)

-- ---- what is no figure ----

t.test("what is no figure is refused by name", function()
  local function refused(what, change)
    local fig = curves(2, 1, "core")
    change(fig)
    t.raises(function() figures.svg(fig) end, what)
  end
  refused("did you mean 'curves'", function(f) f.kind = "curve" end)
  refused("lines, core1: y, number 3, is nan", function(f) f.lines[1].y[3] = 0 / 0 end)
  refused("core2: y has 31 numbers, expected 30", function(f) f.lines[2].y[31] = 1 end)
  refused("its axis is logarithmic", function(f) f.x.log = true f.lines[1].x[1] = 0 end)
  refused("one of low and high", function(f) f.lines[1].low = nil end)
  refused("did you mean 'lines'", function(f) f.linse = {} end)
  refused("figure: unknown key of x: 'lable'", function(f) f.x.lable = "a" end)
  refused("has no name", function(f) f.lines[1].name = nil end)
  refused("y.range goes from 1 to 0", function(f) f.y.range = { 1, 0 } end)
  refused("reference random is inf", function(f) f.references[1].y = math.huge end)
  refused("its axis is logarithmic", function(f) f.x.log = true f.lines[1].x[1] = 5e-324 end)
  for _, o in ipairs { 5, { width = "a" }, { width = 0 / 0 }, { width = 1 }, { width = 1e9 }, { font = 3 }, { title = 5 }, { panels = 7 },
    { theme = "blue" }, { lone = 1 } } do
    t.raises(function() figures.svg(curves(2, 1, "core"), o) end, "figure")
    t.raises(function() figures.export(curves(2, 1, "core"), here .. "/never.svg", o) end, "figure")
  end
  t.fails(function() figures.svg(nil) end)
  t.raises(function() figures.svg { kind = "heat", x = {}, y = {}, value = {} } end, "x.categories")
  t.raises(function() figures.svg { kind = "bars", x = {}, y = {}, bars = { { name = "a", y = "b" } } } end, "bar 1: y is b")
end)

os.execute("rm -r '" .. here .. "'")
