-- knowledge.lua -- what the memory knows in this episode, step by step: the probability that a linear reading of it gives to the right answer
-- (mn.measure.readings_of_frame), of all of the memory and of each part.  options.fact: which; nil: the first class that the environment declares.
-- A fact that is a number is shown as the reading and the truth.
local mn = require "mneme"
local readings = mn.measure.readings_of_frame
local step_heatmap = mn.ui.step_heatmap
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
  local title = "what the memory knows"
  local job, problem = readings.job(now, view.deadline)
  if not job then return view:say(view:card(box, title), problem) end
  view.unfinished = view.unfinished or not job.done and job
  local fact, left_out = fact_of(job, options and options.fact), ""
  if job.done and now.step > job.steps[#job.steps] then
    left_out = ("read to step %d, which half of the episodes reach; "):format(job.steps[#job.steps])
  elseif not job.done then left_out = job.steps and ("%d of %d steps read; "):format(job.read, #job.steps) or "nothing read yet; " end
  if fact.kind == "number" then return number(view, box, now, job, fact, left_out) end
  local map = readings.map(job, now, fact)
  map.title = { map.title, "knows: " .. fact.name }
  if #map.steps == 0 then return view:say(view:card(box, map.title), map.note) end
  local known, unread = "striped: not known to be used", map:unread()
  panels.part_map(view, box, now, map, { span = step_heatmap.span(now), notes = {
    unread and unread .. " " .. known or left_out .. "probability of the right answer, 0 … 1; " .. known, left_out .. "0 … 1; " .. known, left_out .. known,
    left_out .. "0 … 1", left_out ~= "" and (left_out:gsub("; $", "")) or "0 … 1", (left_out:gsub("[,;] .*$", "")) } })
end
