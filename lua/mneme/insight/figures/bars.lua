-- bars.lua -- draws bars with intervals, and the seeds as small circles; or dots in place of bars, for scores, whose axis need not
-- begin at 0.  They are horizontal, so that there is room for many long names; those of a group are next to each other.
local axes = require "mneme.insight.figures.axes"
local figure_style = require "mneme.insight.figures.figure_style"
local format = require "mneme.base.format"
local tables = require "mneme.base.tables"
local text = require "mneme.insight.figures.text"

local bars = {}
local ROW, LETTERS, SIZE, BOLD = 20, 13, figure_style.SMALL, figure_style.BOLD * figure_style.SMALL

-- Is the interval of a bar drawn, besides its seeds?
local function told(bar) return #(bar.seeds or {}) >= figure_style.FEW or #(bar.seeds or {}) < 2 end

---The least and the largest value that is to be seen.
function bars.range(fig)
  local low, high = math.huge, -math.huge
  local function see(v) low, high = math.min(low, v), math.max(high, v) end
  -- Intervals, as far as from `least` to `most`.
  local function see_intervals(least, most)
    for _, bar in ipairs(fig.bars) do
      if bar.low and told(bar) then
        see(math.max(least, bar.low))
        see(math.min(most, bar.high))
      end
    end
  end
  for _, bar in ipairs(fig.bars) do
    if bar.y then see(bar.y) end
    for _, y in ipairs(bar.seeds or {}) do see(y) end
  end
  for _, r in ipairs(fig.references or {}) do see(r.y) end
  if fig.kind == "dots" and not fig.y.log then
    see_intervals(-math.huge, math.huge)
    if low > high then low, high = 0, 1 end
    local room = math.max(0.03 * (high - low), 1e-12)
    return low - room, high + room
  end
  if not fig.y.log and not fig.y.range then
    see(0)
    local room = 0.3 * (high - low)
    see_intervals(low < 0 and low - room or 0, high + room)
  end
  if fig.y.log and low < high then low, high = low / 1.5, high * 1.15 end
  low, high = axes.limits(fig.y.range, low, high)
  if fig.y.log and low <= 0 then low, high = 1, 10 end
  return low, high
end

---Which row each bar has, where rows have one height and groups a gap between them.
function bars.places(fig)
  local places, at = {}, 0
  for i, bar in ipairs(fig.bars) do
    at = at + (i > 1 and bar.group ~= fig.bars[i - 1].group and 2 or 1)
    places[i] = at
  end
  return places
end

-- Names of references above their lines, on as many levels as keep them apart.
local function place_references(fig, s, width)
  local levels, list = {}, tables.map(fig.references or {}, function(r)
    return { name = ("%s %s"):format(r.name, format.short(r.y, fig.y.unit)), at = s.at(r.y) }
  end)
  table.sort(list, function(a, b) return a.at < b.at end)
  for _, r in ipairs(list) do
    r.lines = text.wrap(r.name, width, SIZE)
    local half = axes.widest(r.lines) / 2
    r.x, r.level = math.max(half, math.min(width - half, r.at)), 1
    while (levels[r.level] or -math.huge) > r.x - half - 8 do r.level = r.level + 1 end
    for level = r.level, r.level + #r.lines - 1 do levels[level] = r.x + half end
  end
  return list, #levels * LETTERS
end

local function title_of(bar, unit)
  return ("%s%s: %s"):format(bar.group and bar.group .. ", " or "", bar.name, bar.y and text.interval(bar.y, bar.low, bar.high, unit) or "–")
end

-- A mean as a dot, its interval as a line, and the seeds.
local function draw_dot(paper, bar, fill, s, y)
  local seeds = bar.seeds or {}
  if bar.low and told(bar) then paper:line(s.at(math.max(s.low, bar.low)), y, s.at(math.min(s.high, bar.high)), y, "interval") end
  for _, v in ipairs(#seeds > 1 and seeds or {}) do
    paper:add('<circle cx="%.1f" cy="%.1f" r="2.6" class="seen %s"/>', s.at(v), y, (fill:gsub("f", "c", 1)))
  end
  paper:add('<circle cx="%.1f" cy="%.1f" r="4.5" class="%s"/>', s.at(bar.y), y, fill)
end

local function draw_bar(paper, fig, bar, fill, s, y, origin)
  paper:group(title_of(bar, fig.y.unit), "row")
  if bar.y and fig.kind == "dots" then draw_dot(paper, bar, fill, s, y)
  elseif bar.y then
    local at = s.at(bar.y)
    paper:rect(math.min(origin, at), y - 6, math.abs(at - origin), 12, fill)
    if bar.low and told(bar) then
      local from, to = s.at(math.max(s.low, math.min(s.high, bar.low))), s.at(math.max(s.low, math.min(s.high, bar.high)))
      paper:line(from, y, to, y, "error")
      if bar.low >= s.low then paper:line(from, y - 4, from, y + 4, "error") end
      if bar.high <= s.high then paper:line(to, y - 4, to, y + 4, "error") end
    end
    for _, v in ipairs(#(bar.seeds or {}) > 1 and bar.seeds or {}) do
      paper:add('<circle cx="%.1f" cy="%.1f" r="2" class="dot"/>', s.at(v), y)
    end
  else paper:text("–", origin + 4, y + 4, { size = SIZE, class = "dim" }) end
  paper:close()
end

---Draw it.
function bars.draw(paper, fig, y0, narrow)
  local groups = tables.groups(fig.bars, function(bar) return bar.group or "" end, "bars")         -- in the order in which they first appear
  local styles, fills = figure_style.of_items(fig.bars), {}
  local several = groups[1] and groups[1].name ~= ""
  local values, widest = {}, 0
  for i, bar in ipairs(fig.bars) do
    fills[bar] = (several or bar.style or figure_style.is_memory(bar.name)) and styles[i].fill or bar.marked and "f2" or "f1"
    values[#values + 1], widest = bar.y, math.max(widest, text.width(bar.name, bar.marked and BOLD or SIZE))
  end
  local shown, of_value = format.alike(values, fig.y.unit), {}
  for i, v in ipairs(values) do of_value[v] = shown[i] end
  local room = math.min(widest, (narrow and 0.4 or 0.45) * paper.width)
  local box = { x = math.ceil(room) + 10 }
  box.w = paper.width - box.x - math.ceil(axes.widest(shown)) - 14
  local low, high = bars.range(fig)
  local s = axes.across(fig.y, low, high, box.x, box.x + box.w)
  local references, above = place_references(fig, s, paper.width)
  box.y = y0 + above + 4
  local rows, spans, y = {}, {}, box.y + 2             -- what stands where, before lines are drawn below it
  for _, group in ipairs(groups) do
    if group.name ~= "" then
      for _, line in ipairs(text.wrap(text.words(fig.x.label, group.name), paper.width, BOLD)) do
        y = y + LETTERS + 3
        rows[#rows + 1] = { head = line, y = y - 2 }
      end
      y = y + 2
    end
    local top = y
    for _, bar in ipairs(group.bars) do
      local lines = text.wrap(bar.name, room, bar.marked and BOLD or SIZE)
      local height = math.max(ROW, #lines * LETTERS + 5)
      rows[#rows + 1] = { bar = bar, lines = lines, y = y + height / 2 }
      y = y + height
    end
    y = y + 4
    spans[#spans + 1] = { top, y }
  end
  box.h = y - box.y
  local bottom = axes.draw_x(paper, s, box, fig.y.label, spans)
  local dots = fig.kind == "dots"
  local origin = s.at((fig.y.log or dots) and s.low or math.max(s.low, math.min(s.high, 0)))
  for _, row in ipairs(rows) do
    if row.head then
      paper:text(row.head, 0, row.y, { size = SIZE, weight = "600" })
    else
      local bar = row.bar
      axes.name_beside(paper, row.lines, box.x - 7, row.y, { size = SIZE, anchor = "end", weight = bar.marked and "600" or nil })
      if dots then paper:line(box.x, row.y, box.x + box.w, row.y, "grid") end
      draw_bar(paper, fig, bar, fills[bar], s, row.y, origin)
      if bar.y then paper:text(of_value[bar.y], paper.width, row.y + 4, { size = SIZE, anchor = "end", class = "dim" }) end
    end
  end
  for _, span in ipairs(dots and {} or spans) do paper:line(origin, span[1], origin, span[2], "axis") end
  for _, r in ipairs(references) do
    local top = box.y - 3 - (r.level + #r.lines - 2) * LETTERS
    for _, span in ipairs(spans) do paper:line(r.at, span[1], r.at, span[2], "reference") end
    paper:lines(r.lines, r.x, top - 1, LETTERS, { size = SIZE, anchor = "middle", class = "dim" })
  end
  return bottom
end

return bars
