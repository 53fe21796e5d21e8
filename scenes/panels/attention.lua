-- attention.lua -- what is read of each past step: a row for each head of each layer.  For softmax the attention weights, for a gated
-- linear memory the implicit ones (q.k times the decay since), as shares of what the head reads; a row is as bright as the head's
-- memory contributes to the present action, so that heads that do not matter are dark.  A selected head is drawn as a bar for each
-- step, with its shares alone.  Where a step has no weight, the panel says why.
local mn = require "mneme"
local attention_history, contributions, implicit_attention = mn.inspect.attention_history, mn.inspect.contributions, mn.inspect.implicit_attention
local canvas, selection, step_heatmap = mn.ui.canvas, mn.ui.selection, mn.ui.step_heatmap

local TITLE = "attention over past steps"

-- What each head contributes to the present action; nil: it is not known.
local function scales(view, now, rows)
  local job, list = contributions.of_frame(now, nil, view.deadline), {}
  if job.problem then return nil end
  view.unfinished = view.unfinished or not job.done and job
  for r, row in ipairs(rows) do
    list[r] = job:of_head(row.layer, row.head, #now.history)
    if not list[r] then return nil end
  end
  return list
end

-- The attention of one head as bars; the step with the largest share is marked.
local function bars(view, box, now, row)
  local theme, u, history = view.theme, view.unit, now.history
  local share, n, _, beside = attention_history.of(now, #history, row.layer, row.head)
  local top, most, steps = nil, 0.01, math.max(10, history[#history].step + 1)
  for i = 0, n - 1 do
    if share[i] > (top and share[top] or 0) then top, most = i, math.max(most, share[i]) end
  end
  local most_to, more = "no attention to any past step", implicit_attention.note(now, beside)
  if top then most_to = ("most to step %d: %.0f %%"):format(history[top + 1].step, 100 * share[top]) end
  local note = more and { more .. "; " .. most_to, most_to } or most_to
  local inner = view:card(box, TITLE .. ", " .. selection.name(row), note)
  local place = view:axes(inner, -0.5, steps - 0.5, 0, 100 * most, "step", "% of what it reads")
  local wide = place(0.5, 0) - place(-0.5, 0)
  local gap = wide > 4 * u and 1 or 0
  for i = 0, n - 1 do
    local x, y = place(history[i + 1].step - 0.5, 100 * share[i])
    local _, y0 = place(0, 0)
    local w = math.max(wide - gap, u)
    if share[i] > 0 then view:rect(x, y, w, y0 - y, i == top and theme.warm or theme.accent) end
  end
  local left, upper = place(-0.5, 100 * most)
  local right, lower = place(steps - 0.5, 0)
  step_heatmap.mark(view, { x = left, y = upper, w = right - left, h = lower - upper }, now, steps)
  selection.spot(view, { x = box.x, y = box.y, w = box.w, h = inner.y - box.y }, now, row)
  step_heatmap.steps(view, { x = left, y = upper, w = right - left, h = inner.y + inner.h - upper }, steps)
end

return function(view, box, now)
  local history = now.history
  local problem = implicit_attention.problem(now)
  if problem then return view:say(view:card(box, TITLE), problem) end
  local rows, layer = selection.rows(now, selection.all(implicit_attention.size(now)))
  if #rows == 1 then return bars(view, box, now, rows[1]) end
  local all, scale, most, unseen, aside = {}, scales(view, now, rows), 0.05, 0, 0
  for r, row in ipairs(rows) do
    local n, beside
    all[r], n, unseen, beside = attention_history.of(now, #history, row.layer, row.head)
    aside = math.max(aside, beside)
    for i = unseen, n - 1 do most = math.max(most, all[r][i] * (scale and scale[r] or 1)) end
  end
  local range = ("0 … %.0f %%"):format(100 * most)
  local of = scale and "share × contribution of the head now" or "share of what each head reads, whether it matters or not"
  local note = { of .. ", root scale, " .. range, (scale and "share × contribution, " or "share, ") .. range, range }
  if unseen > 0 then note[1] = ("%s, in the last %d steps, root scale, "):format(of, #history - unseen) .. range end
  local more = implicit_attention.note(now, aside)
  local job = contributions.of_frame(now, nil, 0)
  if not job.problem and not job.done then
    local text = ("contributions: %d of %d steps measured"):format(job:progress())
    note = { text .. "; " .. note[1], text .. "; " .. note[2], text, ("%d of %d measured"):format(job:progress()) }
  end
  if more then table.insert(note, 1, more .. "; " .. note[1]) end
  local inner = view:card(box, TITLE, note, canvas.SEQUENTIAL)
  local over = step_heatmap.over(history, #rows, function(_, i, row) return math.sqrt(all[row][i - 1] * (scale and scale[row] or 1)) end,
    step_heatmap.span(now))
  local plot = step_heatmap.draw(view, inner, over, { lo = 0, hi = math.sqrt(most), names = selection.names(rows, layer),
    what = scale and "share × contribution" or "share", root = true, row_name = function(r) return selection.name(rows[r]) end })
  step_heatmap.mark(view, plot, now, over.steps)
  selection.spots(view, plot, now, rows)
end
