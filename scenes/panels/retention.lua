-- retention.lua -- the retention of one step: its share in the attention of each head, at that step and at every later one, so
-- that the moment of forgetting shows.  Up to four heads are lines, more are rows of a heat map.
local mn = require "mneme"
local attention_history, implicit_attention = mn.inspect.attention_history, mn.inspect.implicit_attention
local canvas, selection, step_heatmap = mn.ui.canvas, mn.ui.selection, mn.ui.step_heatmap
local panels = mn.scene.panels

local FEW = 4                                    -- lines that can be distinguished

return function(view, box, now)
  local theme, u, history = view.theme, view.unit, now.history
  local problem = implicit_attention.problem(now)
  if problem then
    local inner = view:card(box, "retention of a step")
    return view:paragraph(problem, inner.x, inner.y + 16 * u, 12, theme.dim, inner.w)
  end
  local step, from = selection.step(now)
  local title = ("retention of step %d"):format(step)
  local rows, layer = selection.rows(now, selection.all(implicit_attention.size(now)))
  local names = selection.names(rows, layer)
  local at, all = attention_history.since(now, from, rows, view.deadline)
  view.unfinished = view.unfinished or not all
  if #rows <= FEW then
    local lines, place_of = {}, {}
    for i, entry in ipairs(history) do place_of[entry] = i end
    for r, row in ipairs(rows) do
      local name = #rows > 1 and #names == #rows and names[r] or selection.name(row)
      lines[r] = { name = name, row = row, of = function(entry)
        local i = place_of[entry]
        return at[i] and 100 * at[i][r]
      end }
    end
    return panels.signals(view, box, now, { title = title, y_name = "% of attention", lines = lines, least = 0 })
  end
  local most = 0.05
  for _, of_rows in pairs(at) do
    for _, share in ipairs(of_rows) do most = math.max(most, share) end
  end
  local range = ("0 … %.0f %%"):format(100 * most)
  local inner = view:card(box, title, { "share of attention, root scale, " .. range, "share, " .. range, range },
    canvas.SEQUENTIAL)
  local over = step_heatmap.over(history, #rows, function(_, i, r)
    return at[i] and math.sqrt(at[i][r]) or i < from and 0 or nil
  end)
  local plot = step_heatmap.draw(view, inner, over, { lo = 0, hi = math.sqrt(most), names = names })
  step_heatmap.mark(view, plot, now, over.steps)
  selection.spots(view, plot, now, rows)
end
