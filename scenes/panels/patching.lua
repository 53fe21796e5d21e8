-- patching.lua -- what the memory of the episode next to this one does to a decision of this one: each part of it (a row) put in here before each
-- step (a column), and the strongest ways, through one other part alone (episodes/patching.lua).
local mn = require "mneme"
local panels = mn.scene.panels

return function(view, box, now)
  local other = now.beside and now.beside[1]
  local job = other and mn.inspect.patching.of_frames(other, now, view.deadline)
  if job and not job.done then view.unfinished = view.unfinished or true end
  local why = not job and "a second episode is needed: b, or the right button on a square of the strip, shows one next to this" or job.problem
    or "the two episodes are run again …"
  panels.causes(view, box, { causes = function() return job and not job.problem and job.done and job or { map = { test_of = "patch" } }, why end })
end
