-- contribution.lua -- what each part of the memory contributes at each step to what the agent does from then on: how much of its policy's probability
-- moves, at the later step that depends most on the memory, when that part is swapped there with the memory of an episode of another cue
-- (insight/episodes/contributions.lua), or, with a step selected, when it is as if that step had not been observed.  One scale for all parts and all
-- episodes; striped where erasing that part alone is not known to cost anything over many episodes.
local mn = require "mneme"
local contributions, selection = mn.inspect.contributions, mn.ui.selection
local panels = mn.scene.panels

return function(view, box, now)
  local step, from = selection.step(now)
  local chosen = now.selection and now.selection.step == step
  local job = contributions.of_frame(now, chosen and from or nil, view.deadline)
  local title = chosen and { ("contribution of step %d, through each part of the memory"):format(step), ("contribution of step %d"):format(step) }
    or { "contribution of each part of the memory", "contribution of each part", "contribution" }
  if job.problem or #job.columns == 0 then return view:say(view:card(box, title), job.problem or "one step: nothing is kept yet") end
  view.unfinished = view.unfinished or not job.done and job
  local map, since, causes = job:map(), now.changed and ("from step %d on; "):format(now.changed + 1) or "", now.known and now.known()
  local left_out = since .. (map.note and map.note .. "; " or "") .. (causes and "striped: not known to be used; " or "")
  map.title = title
  if causes then map:mark_used(causes, 0) end              -- one part, one verdict: what erasing says in many episodes
  panels.part_map(view, box, now, map, { span = mn.ui.step_heatmap.span(now), notes = {
    left_out .. "of the policy moved if " .. map.how .. " there, 0 … 100 %", left_out .. "of the policy moved, 0 … 100 %", left_out .. "0 … 100 %",
    left_out ~= "" and (left_out:gsub("; $", "")) or "0 … 100 %", map.brief } })
end
