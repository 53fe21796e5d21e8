-- knowledge.lua -- what the memory knows in this episode, step by step: the probability that a linear reading of it gives to the right answer
-- (mn.measure.readings_of_frame), of all of the memory and of each part.  options.fact: which; nil: the first class that the environment declares.
-- A fact that is a number is shown as the reading and the truth.
local mn = require "mneme"
local readings = mn.measure.readings_of_frame
local canvas, selection, step_heatmap = mn.ui.canvas, mn.ui.selection, mn.ui.step_heatmap
local panels = mn.scene.panels

-- The fact to show: the one asked for, or the first class.
local function fact_of(job, name)
  for _, fact in ipairs(job.facts) do if fact.name == name or not name and fact.kind == "class" then return fact end end
  return job.facts[1]
end

-- A number: what all of the memory says, and what is so.
local function number(view, box, now, job, fact, left_out)
  local said = readings.episode(job, now, fact, 1)
  panels.signals(view, box, now, { title = "what the memory knows: " .. fact.name, note = left_out:gsub("; $", ""), y_name = fact.name, lines = {
    { name = "read", of = function(entry)
      local list = said[entry.step]
      return list and list.list[1].value
    end },
    { name = "true", thick = 1, of = function(entry)
      local truth = entry.truth and entry.truth[fact.name]
      return type(truth) == "table" and truth[1] or truth
    end } } })
end

return function(view, box, now, options)
  local theme, u, title = view.theme, view.unit, "what the memory knows"
  local job, problem = readings.job(now, view.deadline)
  if not job then
    local inner = view:card(box, title)
    return view:paragraph(problem, inner.x, inner.y + 16 * u, 12, theme.dim, inner.w)
  end
  view.unfinished = view.unfinished or not job.done and job
  local fact, left_out = fact_of(job, options and options.fact), ""
  if job.done and now.step > job.steps[#job.steps] then
    left_out = ("read to step %d, which half of the episodes reach; "):format(job.steps[#job.steps])
  elseif not job.done then left_out = job.steps and ("%d of %d steps read; "):format(job.read, #job.steps) or "nothing read yet; " end
  if fact.kind == "number" then return number(view, box, now, job, fact, left_out) end
  local parts, of = selection.rows(now, { unpack(job.parts, 2) }), {}
  if #parts == #job.parts - 1 then table.insert(parts, 1, job.parts[1]) end
  for r, part in ipairs(parts) do of[r] = readings.episode(job, now, fact, part.at) end
  local inner = view:card(box, ("%s: %s"):format(title, fact.name), { left_out .. "probability of the right answer, 0 … 1",
    left_out .. "0 … 1", left_out ~= "" and (left_out:gsub("; $", "")) or "0 … 1", (left_out:gsub("[,;] .*$", "")) }, canvas.SEQUENTIAL)
  local names = { "all" }
  for _, part in ipairs(#parts > 1 and parts[1].word == "all" and job.parts or {}) do
    if part.word ~= "all" and not part.layer then names = nil end
  end
  if not names or parts[1].word ~= "all" then
    names = {}
    for r, part in ipairs(parts) do names[r] = part.text end
  else
    for r = 2, #parts do names[r] = (r == 2 or parts[r].layer ~= parts[r - 1].layer) and "layer " .. parts[r].layer or "" end
  end
  local over = step_heatmap.over(now.history, #parts, function(entry, _, r)
    local said = of[r][entry.step]
    return said and said.p or nil
  end, step_heatmap.span(now))
  local plot = step_heatmap.draw(view, inner, over, { lo = 0, hi = 1, names = names, what = "probability of the right answer",
    row_name = function(r) return parts[r].text or parts[r].word end })
  step_heatmap.mark(view, plot, now, over.steps)
  for r, part in ipairs(parts) do
    if part.layer then
      selection.spot(view, { x = plot.x, y = plot.y + (r - 1) * plot.h / #parts, w = plot.w, h = plot.h / #parts }, now, part)
    end
  end
end
