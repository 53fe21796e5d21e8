-- test_figure_raster.lua -- drawings as other programs see them: librsvg and Chromium draw what the page and its link give, on white,
-- with every label; and what a paper asks of them: width, letters, no title, panels, tables.
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local ffi = require "ffi"
local figures = require "mneme.insight.figures"
local export = require "mneme.insight.figures.export"
local files = require "mneme.base.files"
local figure_style = require "mneme.insight.figures.figure_style"
local shell = require "tests.support.shell"

local here = shell.folder()
local C = engine.C

local function installed(name) return os.execute("command -v " .. name .. " >/dev/null 2>&1") == 0 end

local function line(name, k) return { name = name, x = { 1, 2, 3, 4 }, y = { 0.1 * k, 0.2 * k, 0.3, 0.25 * k } } end
local many = { kind = "lines", title = "Many", x = { label = "steps" }, y = { label = "score" }, lines = {} }
for k = 1, 16 do many.lines[k] = line("memory " .. k, k) end
local all = {
  lines = { kind = "lines", title = "Lines", note = "A note.", x = { label = "steps" }, y = { label = "score" }, lines = { line("gru", 1), line("lstm", 2) },
    references = { { name = "guessing", y = 0.5 } } },
  many = many,
  bars = { kind = "bars", title = "Bars", x = {}, y = { label = "bytes" }, bars = { { name = "gru", y = 3 }, { name = "lstm", y = 4, low = 3, high = 5 } } },
  dots = { kind = "dots", title = "Dots", x = {}, y = { label = "score", range = { 0, 1 } }, bars = { { name = "gru", y = 0.8, seeds = { 0.7, 0.9 } } } },
  heat = { kind = "heat", title = "Heat", x = { categories = { "a", "b" } }, y = { categories = { "c" } }, value = { range = { 0, 1 } },
    cells = { { 0.2, 0.9 } } },
}

-- The pixels of a picture, four bytes each.
local function pixels_of(path)
  local w, h = ffi.new "int[1]", ffi.new "int[1]"
  engine.check(C.mn_image_read(engine.ctx, path, nil, w, h))
  local pixels = ffi.new("uint8_t[?]", w[0] * h[0] * 4)
  engine.check(C.mn_image_read(engine.ctx, path, pixels, w, h))
  return pixels, w[0], h[0]
end

local programs = {
  ["rsvg-convert"] = function(from, to) return ("rsvg-convert -o %s %s"):format(to, from) end,
  chromium = function(from, to, w, h)
    return ("HOME=%s chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --screenshot=%s --window-size=%d,%d file://%s >/dev/null 2>&1")
      :format(here, to, w, h, from)
  end,
}

local function drawn(program, svg, name)
  local from, to = ("%s/%s.svg"):format(here, name), ("%s/%s.png"):format(here, name)
  files.write(from, { svg })
  local w, h = svg:match '^<svg[^>]* width="(%d+)" height="(%d+)"'
  t.eq(os.execute(programs[program](from, to, w, h)), 0, program)
  return pixels_of(to)
end

-- What the link of a page saves: the drawing with the page's style sheet in it.
local function saved(fig)
  return (figures.svg(fig):gsub("\n", function() return "\n<style>" .. figure_style.css() .. "</style>\n" end, 1))
end

for program in pairs(programs) do
  t.test(program .. ": more than half is white, and every label is there", function()
    if not installed(program) then t.skip(program .. " is not installed") end
    local kinds = program == "chromium" and { "many" } or { "lines", "many", "bars", "dots", "heat" }       -- it takes a second to start
    for _, kind in ipairs(kinds) do
      for how, svg in pairs { alone = figures.svg(all[kind], { alone = true }), saved = saved(all[kind]) } do
        t.ok(not svg:find("var(", 1, true), "a colour that is a variable")
        local p, w, h = drawn(program, svg, kind .. how)
        local q = drawn(program, svg:gsub("<text.-</text>", ""), kind .. how .. "-bare")
        local white, letters, black, texts = 0, 0, 0, select(2, svg:gsub("<text", ""))
        for i = 0, w * h - 1 do
          local a = p[4 * i + 3]
          if a == 0 or p[4 * i] > 250 and p[4 * i + 1] > 250 and p[4 * i + 2] > 250 then white = white + 1 end
          if a > 128 and q[4 * i] < 60 and q[4 * i + 1] < 60 and q[4 * i + 2] < 60 then black = black + 1 end
          if math.abs(p[4 * i] - q[4 * i]) + math.abs(a - q[4 * i + 3]) > 60 then letters = letters + 1 end
        end
        t.ok(white > (kind == "heat" and how == "saved" and 0.3 or 0.5) * w * h, ("%s, %s: %.2f is white"):format(kind, how, white / (w * h)))
        local lines_only = kind ~= "heat" and kind ~= "bars" and how == "alone"
        t.ok(not lines_only or black < 0.01 * w * h, ("%s, %s: %.3f is black without letters"):format(kind, how, black / (w * h)))
        t.ok(letters > 10 * texts, ("%s, %s: %d pixels of %d labels"):format(kind, how, letters, texts))
      end
    end
  end)
end

t.test("for a paper: width, letters, no title and note, panels", function()
  t.eq(export.width "84mm", 317) t.eq(export.width "3.3in", 317) t.eq(export.width "240pt", 320) t.eq(export.width "600", 600)
  for _, bad in ipairs { "84 miles", "1mm", "-3in", "wide", "9in9" } do t.raises(function() export.width(bad) end, "expected 40mm") end
  figures.export(all.lines, here .. "/paper.svg", { width = 317, font = "Latin Modern Roman", title = false })
  local svg = files.read(here .. "/paper.svg")
  t.ok(svg:find ' width="317"' and svg:find '"Latin Modern Roman"' and not svg:find ">Lines<" and not svg:find ">A note", svg:sub(1, 400))
  t.ok(svg:find ">gru<" and svg:find ">steps<")
  figures.export(all.lines, here .. "/panels.svg", { panels = true })
  t.ok(files.read(here .. "/panels.svg"):find("<use", 1, true) and not svg:find("<use", 1, true))
end)

files.remove_folder(here)
