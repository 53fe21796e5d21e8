-- causes.lua -- where it is remembered: what the agent loses when each part of its memory (a row) is erased at each step (a column).
-- The map is measured in the background; a click on a cell opens that episode without and with the part erased.  Next to it, where episodes
-- fail, where it is lost: what the agent gains when each part keeps, from each step on, what it holds there.
local mn = require "mneme"
local panels = mn.scene.panels

local function notes_of(map, can_open)
  local scale = ("%s 0 … %.2g"):format(map.value, map:scale())
  if map.note then return { ("%s, %s"):format(scale, map.note), map.note, (map.note:gsub(" cells$", "")) } end
  local rest = map.test and (", %d of %d stand out of the noise"):format(map.test.clear, map.test.of) or ""
  local text = ("%s, %d episodes%s"):format(scale, #map.map.outcomes, rest)
  return { can_open and text .. "; click a cell to see it" or text, text, scale, (scale:match "0 ….*") }
end

local function draw(view, box, now, map, why)
  if not map or #map.steps == 0 then
    local text = map and map.map.done and "the episodes end at step 0" or why or "the untouched episodes are played …"
    return view:say(view:card(box, map and map.title or "where it is remembered"), text)
  end
  local test, erased = map.map.test_of, now.erased
  panels.part_map(view, box, { history = now.history, pointed = now.pointed }, map, { notes = notes_of(map, now.can_open),
    spot = function(row, at) return { [test] = row.word, at = at, part = row } end,
    framed = function(row, at) return erased and erased.test == test and erased.word == row.word and erased.at == at end })
end

return function(view, box, now)
  local map, why, held = nil, "only an agent of a run has a map: mneme view RUN", now.losses and now.losses()
  if now.causes then map, why = now.causes() end
  if not held then return draw(view, box, now, map, why) end
  local first, second = view:split(box, box.w > 2 * box.h and "columns" or "rows", { "1*", "1*" })
  draw(view, first, now, map, why) draw(view, second, now, held)
end
