-- credit.lua -- which observations this step depends on (mn.measure.credit_of_frame, as `mneme credit RUN`): the size of the gradient of the value,
-- and of the chosen action's logit (of several numbers:
-- its log-probability), with respect to each step's observation and to its parts.  Shares of each, one scale for all steps.  It says what a
-- small change would do: a cue that is held firmly may have little.  Pictures: the pixels of the step that counts most, or of the selected one.
local mn = require "mneme"
local panels = mn.scene.panels

local LINE = 13                      -- design pixels that a row needs

return function(view, box, now)
  local u = view.unit
  local row, known = mn.measure.credit_of_frame.row(now, view.deadline)
  if not row then return view:say(view:card(box, "credit"), known) end
  view.unfinished = view.unfinished or not row.done
  local action = mn.measure.credit.action_words(now.agent, now.did and "the action" or now.actions[now.action + 1] or "action")
  local map, past = mn.measure.credit.view(row, known.parts, { value = "value", action = action }, math.max(0, math.floor((box.h / u - 60) / LINE / 2) - 1))
  local of, range, earlier = "of each gradient, ", "0 … 100 %, root scale", {}
  for _, what in ipairs { "value", "action" } do if past[what] then earlier[#earlier + 1] = ("%s %.0f %%"):format(what, 100 * past[what]) end end
  map.title = ("credit: what step %d depends on"):format(row.at)
  local waits = ("%s%s, steps before %d not yet"):format(of, range, row.from)
  local notes = row.done and { of .. range .. "; what is held firmly may have little; of earlier observations: " .. table.concat(earlier, ", "),
    "what is held firmly may have little; " .. of .. range, of .. range, range } or { waits, (waits:sub(#of + 1)) }
  local picture
  if #now.observation.shape == 3 and box.w > 2 * box.h then box, picture = view:split(box, "columns", { "1*", box.h / u }) end
  panels.part_map(view, box, { history = now.history, selection = { step = now.selection and now.selection.step } }, map,
    { notes = notes, span = mn.ui.step_heatmap.span(now) })
  if picture then panels.credit_pixels(view, view:card(picture, "pixels"), now, { row = row, credit = known }) end
end
