-- causes.lua -- where it is remembered: what the agent loses when each part of its memory (a row) is erased at each step (a column).
-- The map is measured in the background; a click on a cell opens that episode without and with the part erased.  Next to it, where episodes
-- fail, where it is lost: what the agent gains when each part keeps, from each step on, what it holds there.
local ffi = require "ffi"
local mn = require "mneme"
local canvas = mn.ui.canvas

local about = {
  erase = { title = "where it is remembered", below = "erased at step", click = "click a cell: the episode with it erased",
    what = { success = "success lost", ["return"] = "return lost", kl = "nats of policy" } },
  hold = { title = "where it is lost", below = "kept as it is before step", click = "click a cell: the episode with it kept",
    what = { success = "success gained", ["return"] = "return gained" } },
}

local LEAST = 0.2                  -- end of the scale at least, so that episodes can be compared
-- The value of a cell as drawn: noise (until all cells are asked at once: an interval with 0) and what is not measured have no colour.
local function value_of(state, cell)
  return cell and (cell.clear or not state.test and (cell.low or 0) > 0) and math.max(0, cell.loss) or 0
end

local function notes(state, most)
  local map = state.map
  local scale = ("%s 0 … %.2g"):format(about[map.test_of].what[map.measure], most)
  local cells, all = map:progress()
  if cells < all then return { ("%s, %d of %d cells"):format(scale, cells, all), ("%d of %d"):format(cells, all) } end
  local rest = state.test and (", %d of %d stand out of the noise"):format(state.test.clear, state.test.of) or ""
  return { ("%s, %d episodes%s"):format(scale, #map.outcomes, rest), scale }
end

-- The steps below the columns, as many as have room.
local function steps_below(view, plot, steps, can_open, of)
  local u, wide, below, dim = view.unit, plot.w / #steps, plot.y + plot.h, view.theme.dim
  for c = #steps, 1, -math.ceil((view:text_width(tostring(steps[#steps]), 11) + 8 * u) / wide) do
    view:text(tostring(steps[c]), plot.x + (c - 0.5) * wide, below + 15 * u, 11, dim, "center")
  end
  view:text(of.below, plot.x, below + 30 * u, 11, dim)
  if can_open and view:text_width(of.below .. of.click, 11) + 10 * u < plot.w then view:text(of.click, plot.x + plot.w, below + 30 * u, 11, dim, "right") end
end

-- "layer 1, head 3, erased at step 5: success lost 0.33 [0.21, 0.45], 64 episodes".
local function words_for(state, row, at, cell)
  local of = about[state.map.test_of]
  if not cell then return ("%s, %s %d: not measured yet"):format(row.text, of.below, at) end
  local text = ("%s, %s %d: %s %.2f"):format(row.text, of.below, at, of.what[state.map.measure], cell.loss)
  text = ("%s%s, %d episodes"):format(text, cell.low and (" [%.2f, %.2f]"):format(cell.low, cell.high) or "", cell.n)
  if state.test then text = text .. (cell.clear and ", beyond the noise" or ", not beyond the noise of all cells") end
  return (text:gsub("%-(%d)", "−%1"))
end

-- A cell is a spot; that of the displayed episode's intervention has a frame.
local function spots(view, plot, state, now)
  local erased = now.erased
  local rows, steps, u = state.map.rows, state.map.steps, view.unit
  local wide, high, test = plot.w / #steps, plot.h / #rows, state.map.test_of
  for r, row in ipairs(rows) do
    if row.layer and mn.ui.selection.pointed(now, row) then view:frame(plot.x, plot.y + (r - 1) * high, plot.w, high, view.theme.text, 1.5 * u) end
    for c, at in ipairs(steps) do
      local x, y = plot.x + (c - 1) * wide, plot.y + (r - 1) * high
      local box = { x = x, y = y, w = wide, h = high }
      if not state.cells[r][c] then mn.ui.hatch(view, x, y, wide, high) end
      view:spot(box, { [test] = row.word, at = at, part = row })
      view:tip(box, words_for(state, row, at, state.cells[r][c]))
      if erased and erased.test == test and erased.word == row.word and erased.at == at then view:frame(x, y, wide, high, view.theme.warm, 2 * u) end
    end
  end
end

local function draw(view, box, now, state, why)
  local theme, u, map = view.theme, view.unit, state and state.map
  local of = about[map and map.test_of or "erase"]
  if not (map and map.steps and #map.steps > 0) then
    local inner, text = view:card(box, of.title), map and map.steps and "the episodes end at step 0" or why or "the untouched episodes are played …"
    return view:paragraph(text, inner.x, inner.y + 16 * u, 12, theme.dim, inner.w)
  end
  local most = math.max(state.most, map.measure == "success" and LEAST or 1e-6)
  local inner = view:card(box, of.title .. (state.title and ", " .. state.title or ""), notes(state, most), canvas.SEQUENTIAL)
  local names, wide = {}, 0
  for r, row in ipairs(map.rows) do names[r] = row.text:gsub("^layer %d+, ", "  ") end          -- heads are set in below their layer
  for _, name in ipairs(names) do wide = math.min(inner.w / 3, math.max(wide, view:text_width(name, 11))) end
  local plot, n = { x = inner.x + wide + 10 * u, y = inner.y, w = inner.w - wide - 10 * u, h = inner.h - 34 * u }, #map.steps
  local values = ffi.new("float[?]", #map.rows * n)
  for i = 0, #map.rows * n - 1 do values[i] = value_of(state, state.cells[math.floor(i / n) + 1][i % n + 1]) end
  view:rect(plot.x, plot.y, plot.w, plot.h, theme.grid)
  view:heat(plot, #map.rows, n, values, 0, most, canvas.SEQUENTIAL, false)
  local high, size = plot.h / #map.rows, math.min(11, plot.h / #map.rows / u * 0.8)
  for r, name in ipairs(names) do
    local y = plot.y + high * (r - 1)
    view:text(name, inner.x, y + high / 2 + 0.36 * size * u, size, map.rows[r].head and theme.dim or theme.text, "left", wide + 1)
    if r > 1 and not map.rows[r].head then view:line(plot.x, y, plot.x + plot.w, y, theme.card, 2 * u) end
  end
  spots(view, plot, state, now)
  steps_below(view, plot, map.steps, now.can_open, of)
end

return function(view, box, now)
  local state, why, held = nil, "only an agent of a run has a map: mneme view RUN", now.losses and now.losses()
  if now.causes then state, why = now.causes() end
  if not held then return draw(view, box, now, state, why) end
  local first, second = view:split(box, box.w > 2 * box.h and "columns" or "rows", { "1*", "1*" })
  draw(view, first, now, state, why) draw(view, second, now, held)
end
