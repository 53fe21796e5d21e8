-- story.lua -- in words: which part of the memory holds what success needs, and which part lost it when: measured by erasing, and by holding,
-- each part at each step (mneme where).  A click shows the episode with the part that lost it held.
-- Where no part lost it, readings of the memory say what became of it.
-- Without a box it returns the height, in design pixels, that it needs in the width options.w, 0 where there is nothing to say.
local mn = require "mneme"
local readings, in_words = mn.measure.readings_of_frame, mn.measure.readings_in_words

local SIZE, LINE, EDGE = 13, 1.4 * 13, 12

local function text_of(story)
  local said = #story.sentences > 0
  local text = said and ("%d episodes: %s"):format(story.episodes, table.concat(story.sentences, " ")) or story.note
  return said and story.note and text .. " " .. story.note or text, said
end

return function(view, box, now, options)
  local story = now.story and now.story(function(measure, word)
    local job = readings.job(now, view.deadline)
    if job and not job.done then view.unfinished = job return nil, true end
    return job and in_words.why(job, measure, word) or nil
  end)
  local u = view.unit
  if not box then
    return story and view:paragraph((text_of(story)), 0, nil, SIZE, nil, options.w - 14 * u) * LINE + 8 or 0
  end
  if not story then return end
  local theme, lost, text, said = view.theme, story.lost, text_of(story)
  view:rect(box.x, box.y, 3 * u, box.h - 8 * u, lost and theme.bad or said and theme.accent or theme.line)
  view:paragraph(text, box.x + EDGE * u, box.y + 13 * u, SIZE, said and theme.text or theme.dim, box.w - 14 * u)
  if lost and now.can_open then view:spot(box, { hold = lost.row.word, at = lost.last }) end
end
