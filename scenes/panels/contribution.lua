-- contribution.lua -- what each part of the memory contributes at each step to what the agent does from then on: how much of its
-- policy's probability moves at most when that part is erased there (episodes/contributions.lua), or, with a step selected, when it is
-- as if that step had not been observed.  One scale for all parts.  Up to four parts are lines, more are rows of a heat map.
local mn = require "mneme"
local contributions = mn.inspect.contributions
local canvas, selection, step_heatmap = mn.ui.canvas, mn.ui.selection, mn.ui.step_heatmap
local panels = mn.scene.panels

local FEW = 4                                    -- lines that can be distinguished
local LEAST, LITTLE = 0.25, 0.05                 -- end of the scale at least, so that episodes can be compared; what is not worth a colour

-- Names of groups of rows, or of each row where a memory has no layers.
local function names_of(rows, layer)
  for _, row in ipairs(rows) do
    if not row.layer then
      local names = {}
      for i, r in ipairs(rows) do names[i] = r.text end
      return names
    end
  end
  return selection.names(rows, layer)
end

return function(view, box, now)
  local theme, u = view.theme, view.unit
  local step, from = selection.step(now)
  local chosen = now.selection and now.selection.step == step
  local job = contributions.of_frame(now, chosen and from or nil, view.deadline)
  local since = now.changed and job.columns and ("from step %d on; "):format(now.changed + 1) or ""
  local title = chosen and ("contribution of step %d, through each part of the memory"):format(step) or "contribution of each part of the memory"
  if job.problem then
    local inner = view:card(box, title)
    return view:paragraph(job.problem, inner.x, inner.y + 16 * u, 12, theme.dim, inner.w)
  end
  view.unfinished = view.unfinished or not job.done and job
  local left_out = since
  if not job.done then left_out = since .. ("%d of %d steps measured; "):format(job:progress()) end
  for r, row in ipairs(job.rows) do row.at = r end
  local rows, layer = selection.rows(now, job.rows)
  local history, first, last = job.history, job.columns[1] or math.huge, job.n
  if #rows <= FEW then
    local lines, place_of = {}, {}
    for i, entry in ipairs(history) do place_of[entry] = i end
    for r, row in ipairs(rows) do
      lines[r] = { name = row.text, row = row.layer and row or nil, of = function(entry)
        local y = job:of(row.at, place_of[entry], last)
        return y and 100 * y
      end }
    end
    return panels.signals(view, box, setmetatable({ history = history }, { __index = now }),
      { title = title, note = left_out:gsub("; $", ""), y_name = "% of the policy moved", lines = lines, least = 0 })
  end
  local most, scale = 0, LEAST
  for _, row in ipairs(rows) do
    for i = 1, last do most = math.max(most, job:of(row.at, i, last) or 0) end
  end
  while scale < most do scale = math.min(1, 2 * scale) end
  if job.done and most < LITTLE then left_out = left_out .. "in this episode little depends on the memory; " end
  local range = ("0 … %.0f %%"):format(100 * scale)
  local inner = view:card(box, title, { left_out .. "of the policy moved if erased there, " .. range,
    left_out .. "of the policy moved, " .. range, left_out .. range, left_out ~= "" and (left_out:gsub("; $", "")) or range }, canvas.SEQUENTIAL)
  local over = step_heatmap.over(history, #rows, function(_, i, r)
    return i >= first and job:of(rows[r].at, i, last) or nil
  end, step_heatmap.span(now))
  local plot = step_heatmap.draw(view, inner, over, { lo = 0, hi = scale, names = names_of(rows, layer), what = "of the policy moved:",
    row_name = function(r) return rows[r].text end })
  step_heatmap.mark(view, plot, now, over.steps)
  local x = plot.x + (now.history[#now.history].step + 0.5) / over.steps * plot.w
  view:line(x, plot.y, x, plot.y + plot.h, theme.text, u)
  selection.spots(view, plot, now, rows)
end
