-- story.lua -- in words: which part of the memory holds what success needs, and which part lost it when: measured by erasing, and by holding,
-- each part at each step (mneme where).  A click shows the episode with the part that lost it held.
-- Where no part lost it, readings of the memory say what became of it.
-- Without a box it returns the height, in design pixels, that it needs in options.w and options.h, 0 where there is nothing to say.
local mn = require "mneme"
local readings, in_words = mn.measure.readings_of_frame, mn.measure.readings_in_words

local SIZE, LINE, EDGE = 13, 1.4 * 13, 12

-- The sentences, of which a small page has the first ones.
local function text_of(view, story, w, h)
  local list, most = { unpack(story.sentences) }, math.max(2, math.floor(h / view.unit / LINE))
  local said = #list > 0
  if said then list[1] = ("%d episodes: %s"):format(story.episodes, list[1]) end
  list[#list + 1] = story.note
  local text = table.concat(list, " ")
  while #list > 1 and view:paragraph(text, 0, nil, SIZE, nil, w) > most do
    list[#list] = nil
    text = table.concat(list, " ") .. " …"
  end
  return text, said
end

return function(view, box, now, options)
  local story = now.story and now.story(function(measure, word)
    local job = readings.job(now, view.deadline)
    if job and not job.done then view.unfinished = job return nil, true end
    return job and in_words.why(job, measure, word) or nil
  end)
  local u = view.unit
  if not box then
    return story and view:paragraph((text_of(view, story, options.w - 14 * u, 0.2 * options.h)), 0, nil, SIZE, nil, options.w - 14 * u) * LINE + 8 or 0
  end
  if not story then return end
  local theme, lost, text, said = view.theme, story.lost, text_of(view, story, box.w - 14 * u, box.h - 6 * u)
  view:rect(box.x, box.y, 3 * u, box.h - 8 * u, lost and theme.bad or said and theme.accent or theme.line)
  view:paragraph(text, box.x + EDGE * u, box.y + 13 * u, SIZE, said and theme.text or theme.dim, box.w - 14 * u)
  if lost and now.can_open then view:spot(box, { hold = lost.row.word, at = lost.last }) end
end
