-- credit.lua -- which observations this step depends on (mn.measure.credit_of_frame, as `mneme credit RUN`): the size of the gradient of the value,
-- and of the chosen action's logit, with respect to each step's observation and to its parts.  A share of 100 % is all of one gradient.  It says what a
-- small change would do: a cue that is held firmly may have little.  Pictures: the pixels of the step that counts most, or of the selected one.
local mn = require "mneme"
local credit = mn.measure.credit_of_frame
local canvas, step_heatmap = mn.ui.canvas, mn.ui.step_heatmap
local panels = mn.scene.panels

local LINE = 13                      -- design pixels that a row needs

-- Rows to draw: all of the value's gradient, its parts, all of the action's, its parts.
local function rows_of(row, parts, action, room)
  local list = {}
  for _, of in ipairs { "value", "action" } do
    local sum = 0
    for s = row.from, row.at do sum = sum + row[of][s + 1] end
    local name = of == "value" and "value" or "logit of " .. action
    list[#list + 1] = { name = name, text = name, list = row[of], sum = sum, of = of }
    for p, part in ipairs(room >= 2 * (#parts + 1) and #parts > 1 and parts or {}) do
      list[#list + 1] = { name = "  " .. part.name, text = name .. " by " .. part.name, list = row.parts[p][of], sum = sum, of = of }
    end
  end
  return list
end

-- How much of a gradient is of earlier observations.
local function past(rows)
  local words = {}
  for _, row in ipairs(rows) do
    if row.list == row.all and row.sum > 0 then words[#words + 1] = ("%s %.0f %%"):format(row.of, 100 * (1 - row.now / row.sum)) end
  end
  return table.concat(words, ", ")
end

return function(view, box, now)
  local theme, u = view.theme, view.unit
  local row, known = credit.row(now, view.deadline)
  if not row then
    local inner = view:card(box, "credit")
    return view:paragraph(known, inner.x, inner.y + 16 * u, 12, theme.dim, inner.w)
  end
  view.unfinished = view.unfinished or not row.done
  local rows = rows_of(row, known.parts, now.actions[now.action + 1] or "action", (box.h - 60 * u) / (LINE * u))
  local most = 0.01
  for _, one in ipairs(rows) do
    one.all, one.now = row[one.of], row[one.of][row.at + 1] or 0
    for s = row.from, row.at do if one.sum > 0 then most = math.max(most, one.list[s + 1] / one.sum) end end
  end
  local range, earlier = ("0 … %.0f %%, root scale"):format(100 * most), past(rows)
  local waits = not row.done and (", steps before %d not yet"):format(row.from) or ""
  local notes = { "of each gradient, " .. range .. (row.done and "; what is held firmly may have little; of earlier observations: " .. earlier or waits),
    row.done and "what is held firmly may have little; of each gradient, " .. range or "of each gradient, " .. range .. waits,
    "of each gradient, " .. range .. waits,
    row.done and range or waits:sub(3) }
  local inner, picture = view:card(box, ("credit: what step %d depends on"):format(row.at), notes, canvas.SEQUENTIAL), nil
  if #now.observation.shape == 3 and inner.w > 2 * inner.h then inner, picture = view:split(inner, "columns", { "1*", inner.h / u }) end
  local names = {}
  for r, one in ipairs(rows) do names[r] = one.name end
  local over = step_heatmap.over(now.history, #rows, function(entry, _, r)
    return entry.step >= row.from and rows[r].sum > 0 and math.sqrt(rows[r].list[entry.step + 1] / rows[r].sum) or 0
  end, step_heatmap.span(now))
  local plot = step_heatmap.draw(view, inner, over, { lo = 0, hi = math.sqrt(most), names = names, what = "share of the gradient",
    row_name = function(r) return rows[r].text end, root = true })
  step_heatmap.mark(view, plot, now, over.steps)
  if picture then panels.credit_pixels(view, picture, now, { row = row, credit = known }) end
end
