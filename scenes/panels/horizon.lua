-- horizon.lua -- how many steps back each part of the memory still matters to what the agent does, read from what the panel
-- `contribution` shows: 0 where that shows nothing.  Of one selected head also what its gates alone would keep.
local mn = require "mneme"
local contributions, implicit_attention = mn.inspect.contributions, mn.inspect.implicit_attention
local canvas, selection = mn.ui.canvas, mn.ui.selection
local ffi = require "ffi"

local FAR = math.log(1000)                      -- steps where the colours end

-- "half of what its gates hold is left after 3.1 steps", of a head whose gates forget.
local function of_gates(now, row)
  local layers, heads = implicit_attention.size(now)
  if not row.head or row.layer >= layers or row.head >= heads or implicit_attention.reaches(now) then return nil end
  local steps = implicit_attention.horizon(now, row.layer, row.head)
  return steps and (steps == math.huge and "its gates alone forget nothing" or ("its gates alone: half is left after %.1f steps"):format(steps))
end

-- The parts line by line: those of a layer, or all.
local function lines_of(rows)
  local lines, of = {}, {}
  for _, row in ipairs(rows) do
    local key = row.layer or -1
    if not of[key] then
      of[key] = { name = row.layer and "layer " .. row.layer or "", layer = row.layer }
      lines[#lines + 1] = of[key]
    end
    table.insert(of[key], row)
  end
  return lines
end

-- The names of the columns, where all lines have the same parts, and what they count: "0–7" of channels.
local function columns_of(lines)
  local names, counted = {}, "channels"
  for k, row in ipairs(lines[1]) do
    names[k] = row.head and "head " .. row.head or (row.text:gsub("^layer %d+, ", ""))
    if not names[k]:find "^channels " then counted = nil end
  end
  for l = 2, #lines do
    for k, row in ipairs(lines[l]) do
      if not row.head and (row.text:gsub("^layer %d+, ", "")) ~= names[k] then return nil end
    end
  end
  for k, name in ipairs(counted and names or {}) do names[k] = name:gsub("^channels ", ""):gsub(" to ", "–") end
  return names, counted
end

return function(view, box, now)
  local theme, u, title = view.theme, view.unit, "how far back the memory matters"
  local job = contributions.of_frame(now, nil, view.deadline)
  if job.problem then
    local inner = view:card(box, title)
    return view:paragraph(job.problem, inner.x, inner.y + 16 * u, 12, theme.dim, inner.w)
  end
  view.unfinished = view.unfinished or not job.done and job
  for r, row in ipairs(job.rows) do row.at = r end
  local chosen, parts = selection.rows(now, job.rows), { unpack(job.rows, #job.rows > 1 and 2 or 1) }
  local left_out = not job.done and ("%d of %d steps measured"):format(job:progress()) or nil
  local inner = view:card(box, title, left_out or { #chosen == 1 and of_gates(now, chosen[1]) or ("steps back that move %.0f %% of the policy"):format(
    100 * contributions.LITTLE), "steps" })
  local lines, wide, most = lines_of(parts), 0, 1
  for _, line in ipairs(lines) do
    wide = math.max(wide, line.name ~= "" and view:text_width(line.name, 11) + 6 * u or 0)
    most = math.max(most, #line)
  end
  local names, counted = columns_of(lines)
  if counted then wide = math.max(wide, view:text_width(counted, 11) + 6 * u) end
  local top = names and 16 * u or 0
  local w, h = (inner.w - wide) / most, (inner.h - top) / #lines
  local colour, size = ffi.new "float[1]", math.max(1, math.min(13, 0.5 * h / u, 0.3 * w / u))
  if counted then view:text(counted, inner.x, inner.y + 9 * u, 11, theme.dim) end
  for k, row in ipairs(names and lines[1] or {}) do
    local x = inner.x + wide + (k - 1) * w
    view:text(names[k], x + w / 2, inner.y + 9 * u, 11, theme.dim, "center", w)
    if row.head then selection.spot(view, { x = x, y = inner.y, w = w, h = top }, now, { head = row.head }) end
  end
  for l, line in ipairs(lines) do
    local y = inner.y + top + (l - 1) * h
    view:text(line.name, inner.x, y + h / 2 + 4 * u, math.min(11, 0.8 * h / u), theme.dim)
    if line.layer then selection.spot(view, { x = inner.x, y = y, w = wide, h = h }, now, { layer = line.layer }) end
    for k, row in ipairs(line) do
      local steps, x = job:horizon(row.at, job.n), inner.x + wide + (k - 1) * w
      colour[0] = math.log(math.min(1000, 1 + steps)) / FAR
      local place = { x = x, y = y, w = w - 2 * u, h = h - 2 * u }
      view:heat(place, 1, 1, colour, 0, 1, canvas.SEQUENTIAL, false)
      view:tip(place, ("%s: erased up to %d steps before, it moves an action by %.0f %% or more"):format(row.text, steps, 100 * contributions.LITTLE))
      local ink = (colour[0] > 0.6) == (theme.dark == true) and 0x0F131AFF or 0xFFFFFFFF
      view:text(tostring(steps), x + w / 2 - u, y + h / 2 + 0.36 * size * u - u, size, ink, "center", w - 4 * u)
      if row.layer then selection.spot(view, place, now, row, true) end
    end
  end
end
