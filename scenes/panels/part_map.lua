-- part_map.lua -- a map of the parts of a memory (rows) by steps (columns), whatever was measured: where it is remembered, what is contributed, what is known.
-- What is not measured is hatched, what is within the noise has no colour, what can be read and is not used is striped.
local ffi = require "ffi"
local mn = require "mneme"
local canvas, selection, step_heatmap = mn.ui.canvas, mn.ui.selection, mn.ui.step_heatmap
local LEAST_ROW = 9                              -- design pixels of a row that has a name of its own

-- The rows to draw: those of the selected layer and head, or all.
local function rows_of(map, now)
  local list, parts = {}, {}
  for r, row in ipairs(map.rows) do
    parts[r] = { at = r, layer = row.layer, head = row.head, row = row }
  end
  local chosen = now.selection and selection.rows(now, parts) or parts
  for i, part in ipairs(chosen) do list[i] = part.at end
  return list
end

-- Names of rows: those of a layer's parts are set in where the row above them names it.
local function names_of(map, rows)
  local names, layer = {}, nil
  for i, r in ipairs(rows) do
    local text, short = map.rows[r].text, map.rows[r].short
    names[i] = short or layer and text:find(layer .. ", ", 1, true) == 1 and "  " .. text:sub(#layer + 3) or text
    layer = text:match "^layer %d+$" or layer
  end
  return names
end

-- Where rows are too low for names of their own, the name of each layer stands in the middle of its rows, where it has room.
local function by_layer(map, rows, high, least)
  local list, from = {}, 1
  for i = 1, #rows do
    local row, after = map.rows[rows[i]], map.rows[rows[i + 1]]
    if not (after and after.layer == row.layer) then
      local middle = math.floor((from + i) / 2)
      if row.layer and (i - from + 1) * high >= least then list[middle] = "layer " .. row.layer elseif i == 1 then list[1] = row.text end
      from = i + 1
    end
  end
  return list
end

-- Stretches of a row of cells that look alike: hatched or striped as one.
local function hatch_row(view, map, r, scale, x, y, wide, high)
  local from, kind = 1, nil
  for c = 1, #map.steps + 1 do
    local ink, look = nil, nil
    if c <= #map.steps then ink, look = map:ink(r, c, scale) end
    local this = c <= #map.steps and (not ink and "none" or look == "readable" and "readable") or nil
    if this ~= kind then
      if kind then mn.ui.hatch(view, x + (from - 1) * wide, y, (c - from) * wide, high, kind == "readable") end
      from, kind = c, this
    end
  end
end

---options: notes = as of view:card; spot = function(row, step) -> what a click on a cell does; nil: a click selects the part; framed = function(row, step):
---does it have a frame
return function(view, box, now, map, options)
  local theme, u, rows = view.theme, view.unit, rows_of(map, now)
  local scale, n = map:scale(), #map.steps
  local inner = view:card(box, map.title, options.notes, canvas.SEQUENTIAL)
  local axis = inner.h > 32 * u and 20 * u or 0
  local least = LEAST_ROW * u
  local low = (inner.h - axis) / #rows < least
  local names, wide = low and by_layer(map, rows, (inner.h - axis) / #rows, least) or names_of(map, rows), 0
  for _, name in pairs(names) do wide = math.min(inner.w / (view.edge < 12 and 2 or 3), math.max(wide, view:text_width(name, 11))) end
  local plot = { x = inner.x + wide + 10 * u, y = inner.y, w = inner.w - wide - 10 * u, h = inner.h - axis }
  local every, high, size = map:every(), plot.h / #rows, math.max(9, math.min(11, plot.h / #rows / u * 0.8))
  local span = math.max(options.span or 0, math.ceil(map.steps[n] + 0.5 + every / 2))          -- the last column ends inside
  local cell, left = every / span * plot.w, plot.x + (map.steps[1] + 0.5 - every / 2) / span * plot.w
  if left < plot.x then cell, left = plot.w / span * (map.steps[n] + 0.5 + every / 2) / n, plot.x end
  local values = ffi.new("float[?]", #rows * n)
  for i = 0, #rows * n - 1 do values[i] = map:ink(rows[math.floor(i / n) + 1], i % n + 1, scale) or 0 end
  view:rect(plot.x, plot.y, plot.w, plot.h, theme.grid)
  view:heat({ x = left, y = plot.y, w = cell * n, h = plot.h }, #rows, n, values, 0, 1, canvas.SEQUENTIAL, false)
  for i, r in ipairs(rows) do
    local y, row = plot.y + high * (i - 1), map.rows[r]
    hatch_row(view, map, r, scale, left, y, cell, high)
    local name = names[i] or ""
    if view:text_width(name, size) > wide + 1 then name = name:gsub("layer (%d+), head ", "L%1 head "):gsub("layer (%d+), channels", "L%1") end
    view:text(name, inner.x, y + high / 2 + 0.36 * size * u, size, row.head and not low and theme.dim or theme.text, "left", wide + 1)
    if i > 1 and row.layer ~= map.rows[rows[i - 1]].layer then view:line(plot.x, y, plot.x + plot.w, y, theme.card, 2 * u) end
    if options.spot and row.layer and selection.pointed(now, row) then view:frame(plot.x, y, plot.w, high, theme.text, 1.5 * u) end
    for c, at in ipairs(options.spot and map.steps or {}) do
      local place = { x = left + (c - 1) * cell, y = y, w = cell, h = high }
      view:spot(place, options.spot(row, at))
      if options.framed and options.framed(row, at) then view:frame(place.x, y, cell, high, theme.warm, 2 * u) end
    end
    if not options.spot and row.layer then selection.spot(view, { x = plot.x, y = y, w = plot.w, h = high }, now, row) end
  end
  view:tip(plot, { rows = #rows, cols = 1, words = function(r) return map.rows[rows[r + 1]].text .. ": not measured" end })
  view:tip({ x = left, y = plot.y, w = cell * n, h = plot.h }, { rows = #rows, cols = n, words = function(r, c) return map:words(rows[r + 1], c + 1) end })
  if plot.h == inner.h then return plot end              -- a page so small has no axis
  local below = plot.y + plot.h + 15 * u
  view:text(map.at .. " " .. map.steps[1], left, below, 11, theme.dim)
  view:text(tostring(map.steps[n]), left + cell * n, below, 11, theme.dim, "right")
  step_heatmap.steps(view, { x = plot.x, y = plot.y + plot.h, w = plot.w, h = 20 * u }, span)
  step_heatmap.mark(view, plot, now, span)
  if now.history then
    local x = plot.x + (now.history[#now.history].step + 0.5) / span * plot.w
    if x < plot.x + plot.w then view:line(x, plot.y, x, plot.y + plot.h, theme.text, u) end
  end
  return plot
end
