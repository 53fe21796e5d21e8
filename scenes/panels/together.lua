-- together.lua -- several agents in the same episode: what each expects from every step on, and what the map of each memory says.
local panels = require("mneme").scene.panels

---options.frames: of the agents, each with its name
return function(view, box, now, options)
  local curves, words = view:split(box, "rows", { "2*", "3*" })
  local longest, lines = now, {}
  for k, one in ipairs(options.frames) do
    local frame, value = one.frame, {}
    local history = frame.episode_history or frame.history
    for _, entry in ipairs(history) do value[entry.step] = entry.value end
    if #history > #(longest.episode_history or longest.history) then longest = frame end
    lines[k] = { name = one.name, of = function(entry) return value[entry.step] end }
  end
  panels.signals(view, curves, longest, { title = "value of each", y_name = "expected return", span = 0.2, lines = lines, empty = "no value estimate" })
  local inner = view:card(words, "what their maps say", { "in many episodes: mneme where", "mneme where" })
  local cells = { view:split(inner, "rows", { "1*", "1*", "1*" }, 4) }
  for k, one in ipairs(options.frames) do
    local cell, story = cells[k], one.frame.story and one.frame.story()
    local list = { unpack(story and story.sentences or {}) }
    if not list[1] then list[1] = story and story.note or one.frame.story and "no map is stored: mneme where" or "only a run has a map" end
    local text = one.name .. ": " .. table.concat(list, " ")
    while #list > 1 and view:paragraph(text, 0, nil, 11.5, nil, cell.w) * 1.4 * 11.5 * view.unit > cell.h do
      list[#list] = nil
      text = ("%s: %s …"):format(one.name, table.concat(list, " "))
    end
    view:paragraph(text, cell.x, cell.y + 11 * view.unit, 11.5, view.theme.text, cell.w, cell.h)
  end
end
