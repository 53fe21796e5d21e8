-- patching.lua -- what the memory of the episode next to this one does to a decision of this one: each part of it (a row) put in here before each
-- step (a column), and the strongest ways, through one other part alone (insight/episodes/patching.lua).
local mn = require "mneme"
local panels = mn.scene.panels

return function(view, box, now)
  local other = now.beside and now.beside[1]
  local job = other and mn.inspect.patching.of_frames(other, now, view.deadline)
  view.wants_pair = not other                            -- a picture has one, without a key
  if job and not job.done then view.unfinished = view.unfinished or true end
  local why = not job and "a second episode is needed: b, or the right button on a square of the strip, shows one next to this" or job.problem
    or "the two episodes are run again …"
  if not (job and job.done and not job.problem) then return view:say(view:card(box, "what the other episode's memory does here"), why) end
  local map, none = job.map, true
  for _, row in pairs(map.cells) do for _, cell in pairs(row) do none = none and not cell.clear end end
  panels.part_map(view, box, { history = now.history, selection = now.selection }, map, { notes = none
    and { ("nothing moves the policy at step %d by %s"):format(job.decision, map.stands), "nothing moves the policy" }
    or { ("of the policy at step %d moved, 0 … %.0f %%"):format(job.decision, 100 * map:scale()), "" } })
end
