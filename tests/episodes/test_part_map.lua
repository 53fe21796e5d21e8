-- test_part_map.lua -- one rule for what is painted of a map of parts by steps, in tables, figures and panels: what is not measured is never a value,
-- what is within the noise has no colour, what can be read and is not used looks different from what is used.
local t = require "tests.harness"
local causal_map = require "mneme.insight.episodes.causal_map"
local cue_agent = require "tests.support.cue_agent"
local mn = require "mneme"
local map_display = require "mneme.insight.episodes.map_display"
local scene = require "mneme.insight.view.scene"

local rows = { { word = "all", text = "all" }, { word = "layers.0.head.0", text = "layer 0, head 0", layer = 0, head = 0 },
  { word = "layers.0.head.1", text = "layer 0, head 1", layer = 0, head = 1 } }

-- Four steps, of which the third is not measured.
local function map(more)
  local m = { name = "m", title = "a map", at = "erased at step", value = "success lost", key = "loss", alone = "readable", floor = 0.2, rows = rows,
    steps = { 2, 4, 6, 8 }, cells = {
    { { loss = 0.1, clear = true }, { loss = 0.1, clear = false }, nil, { loss = 0.05, clear = true } },
    { { loss = 0.02, clear = true, used = true }, { loss = 0.1, clear = true, used = false }, nil, { loss = 0.1, clear = true, used = "unknown" } }, {} } }
  for key, value in pairs(more or {}) do m[key] = value end
  return map_display.new(m)
end

t.test("what is painted: ink by the scale, which has a floor; noise none; what is not measured is hatched; what is only readable is striped", function()
  local m = map()
  t.eq(m:scale(), 0.2)
  local function ink(r, c) local x, look = m:ink(r, c, m:scale()) return x, look end
  t.near(ink(1, 1), 0.5, 1e-12) t.eq(select(2, ink(1, 1)), "clear")
  t.eq(ink(1, 2), 0) t.eq(select(2, ink(1, 2)), "noise")
  t.eq(ink(1, 3), nil)
  t.eq(select(2, ink(2, 1)), "clear") t.eq(select(2, ink(2, 2)), "readable") t.eq(select(2, ink(2, 4)), "readable")
  t.eq(map { floor = 0.01 }:scale(), 0.1, "noise does not stretch it")
  t.ok(m:words(1, 3):find "erased at step 6: not measured")
  t.ok(m:words(2, 2):find "only readable" and m:words(2, 1):find "used: erasing it costs" and m:words(2, 4):find "is not measured")
end)

-- A letter for each column of a row: c(lear), n(oise), r(eadable), or ? where nothing is measured.
local function looks(m, r)
  local row = {}
  for c in ipairs(m.steps) do
    local cell, _, look = m.cells[r][c], m:ink(r, c, m:scale())
    row[c] = cell and look:sub(1, 1) or "?"
  end
  return table.concat(row)
end

t.test("every planned step is there, and nothing at one that is not measured: in words, a figure, and a table", function()
  local m = map()
  t.eq(m:every(), 2)
  for r = 1, 3 do t.ok(m:words(r, 3):find "not measured") end
  t.eq(looks(m, 1), "cn?c") t.eq(looks(m, 2), "cr?r") t.eq(looks(m, 3), "????")
  local figure = m:figure "a title"
  t.eq(figure.cells[1][3], false) t.eq(figure.faint[1][2], true) t.eq(figure.cells[3][1], false)
  for c, thin in ipairs { false, true, false, true } do t.eq(figure.thin[2][c], thin, "column " .. c) end
  local low, whole = 0, 0                             -- the colours of the second row in the drawing, by height
  for height, title in mn.figures.svg(figure, { alone = true }):gmatch 'height="([%d.]+)"[^>]*fill="#%x+"[^>]*><title>layer 0, head 0, (%d)' do
    if tonumber(height) < 10 then low = low + 1 else whole = whole + 1 end
    t.eq(tonumber(height) < 10, title ~= "2", title)
  end
  t.eq(low, 2) t.eq(whole, 1)
  t.eq(m:uses(2), 1) t.eq(m:uses(1), 0)
  t.ok(m:table "stands out":find "%?")
  t.eq(m:column(5), 3) t.eq(m:column(4.9), 2) t.eq(m:column(12), nil) t.eq(m:column(0), nil)
end)

t.test("the panel hatches what is not measured and stripes what is not used, each where it is", function()
  local view, found = scene.painter().view, {}
  local real = mn.ui.hatch
  rawset(mn.ui, "hatch", function(_, x, y, w, h, striped) found[#found + 1] = { x = x, y = y, w = w, h = h, striped = striped or false } end)
  local ok, plot = pcall(function()
    view:clear(600, 300)
    return scene.panels.part_map(view, view.box, {}, map(), { notes = { "" } })
  end)
  rawset(mn.ui, "hatch", real)
  t.ok(ok, plot)
  table.sort(found, function(a, b) return a.y < b.y or a.y == b.y and a.x < b.x end)
  local whole, counts = found[#found], { [true] = 0, [false] = 0 }                -- the row of which nothing is known comes last
  local wide = whole.w / 4
  t.ok(whole.x + whole.w < view.box.x + view.box.w, "columns of several steps stay inside")
  for _, f in ipairs(found) do
    counts[f.striped] = counts[f.striped] + 1
    local c = math.floor((f.x - whole.x) / wide + 0.5) + 1
    if f.striped then t.ok(c == 2 or c == 4) elseif f ~= whole then t.eq(c, 3) end
    if f ~= whole then t.near(f.w, wide, 1e-3) end
  end
  t.eq(counts[true], 2) t.eq(counts[false], 3)
end)

t.test("a map that is half done shows as much, and with a scale that has a floor", function()
  local one = causal_map.new(cue_agent.new(16, { seed = 4 }), cue_agent.new(16, { seed = 4 }), { measure = "success", seed = 4, every = 2 })
  local done = 0
  one.on_column = function(m)
    done = done + 1
    local view = m:view()
    t.eq(view.test, nil)
    t.ok(view.note:find "cells" and view:scale() >= 0.2)
    for r in ipairs(view.rows) do
      for c in ipairs(view.steps) do t.eq(view.cells[r][c] ~= nil, c <= done) end
    end
    for r in ipairs(view.rows) do t.eq(#looks(view, r):gsub("[^?]", ""), #view.steps - done) end
  end
  one:work()
  t.ok(done > 3)
  t.ok(one:view().test and not one:view().note)
end)

t.test("the part in use is the smallest whose erasing costs", function()
  local m = map { cells = { { { loss = 0.5, clear = true }, { loss = 0.5, clear = true }, nil, { loss = 0.5, clear = false } },
    { { loss = 0.4, clear = true }, { loss = 0.1, clear = false } }, { { loss = 0.2, clear = true } } } }
  t.eq(m:in_use(2), "layers.0.head.0") t.eq(m:in_use(4), "all") t.eq(m:in_use(6), nil) t.eq(m:in_use(8), nil)
  m.test = {}
  local reads = map { key = "p", steps = { 1, 3, 5, 7 }, cells = { { { p = 1 }, { p = 1 }, { p = 1 } }, { { p = 1 }, { p = 1 } }, {} } }
  reads:mark_used(m, 1)
  t.eq(reads.cells[1][1].used, true) t.eq(reads.cells[2][2].used, false) t.eq(reads.cells[1][3].used, "unknown")
  t.eq(reads:unread(), nil)
  reads.cells[2][1].clear, reads.note = false, "half of it"
  t.eq(reads:unread(), nil, "another fact than the one that success needs")
  reads.needed = true
  local said = "Used, and not found by a linear reading: layer 0, head 0 (step 1)."
  t.eq(reads:unread(), said)
  t.ok(reads:table():find(said, 1, true), "in the table")
end)
