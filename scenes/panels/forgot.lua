-- forgot.lua -- what is left of one step: which share of all that a head reads came from it, at that step and ever
-- since, so that the moment of forgetting is seen.  A line for each head where they are few, else a row.
local bands = require "mneme.view.step_heatmap"
local canvas = require "mneme.base.canvas"
local focus = require "mneme.view.selection"
local panels = require("mneme.view.scene").panels
local recall = require "mneme.models.implicit_attention"
local shares = require "mneme.view.attention_history"

local FEW = 4                                    -- lines that can be told apart

return function(view, box, now)
  local theme, u, history = view.theme, view.unit, now.history
  local problem = recall.problem(now)
  if problem then
    local inner = view:card(box, "what is left of a step")
    return view:paragraph(problem, inner.x, inner.y + 16 * u, 12, theme.dim, inner.w)
  end
  local step, from = focus.step(now)
  local title = ("what is left of step %d"):format(step)
  local rows, layer = focus.rows(now, focus.all(recall.size(now)))
  local names = focus.names(rows, layer)
  local at, all = shares.since(now, from, rows, view.deadline)
  view.unfinished = view.unfinished or not all
  if #rows <= FEW then
    local lines, place_of = {}, {}
    for i, entry in ipairs(history) do place_of[entry] = i end
    for r, row in ipairs(rows) do
      local name = #rows > 1 and #names == #rows and names[r] or focus.name(row)
      lines[r] = { name = name, row = row, of = function(entry)
        local i = place_of[entry]
        return at[i] and 100 * at[i][r]
      end }
    end
    return panels.signals(view, box, now, { title = title, y_name = "% of what is read", lines = lines, least = 0 })
  end
  local most = 0.05
  for _, of_rows in pairs(at) do
    for _, share in ipairs(of_rows) do most = math.max(most, share) end
  end
  local range = ("0 … %.0f %%"):format(100 * most)
  local inner = view:card(box, title, { "share of what is read then, root scale, " .. range, "share, " .. range, range },
    canvas.SEQUENTIAL)
  local over = bands.over(history, #rows, function(_, i, r)
    return at[i] and math.sqrt(at[i][r]) or i < from and 0 or nil
  end)
  local plot = bands.draw(view, inner, over, { lo = 0, hi = math.sqrt(most), names = names })
  bands.mark(view, plot, now, over.steps)
  focus.spots(view, plot, now, rows)
end
