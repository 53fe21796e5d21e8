-- scrub.lua -- the timeline of the episode, with marks at its interventions: a click or a drag goes to a step.
return function(view, box, _, bar)
  local theme, u = view.theme, view.unit
  local y, r = box.y + box.h / 2, 6 * u
  local text = bar.live and ("episode %d, step %d"):format(bar.episode, bar.step)
    or ("episode %d, %d of %d%s"):format(bar.episode, bar.at - bar.from, bar.to - bar.from, bar.over and "" or " so far")
  local said = bar.said and view:fit(bar.said, 11, box.w * 0.5) or ""
  local wide = view:text_width(text, 11) + 14 * u
  if said ~= "" then
    view:text(said, box.x + box.w - wide, y + 4 * u, 11, theme.warm, "right")
    wide = wide + view:text_width(said, 11) + 14 * u
  end
  local line = { x = box.x + r, w = math.max(1, box.w - wide - 2 * r) }
  local function place(at) return line.x + (at - bar.from) / math.max(1, bar.to - bar.from) * line.w end
  view:line(line.x, y, line.x + line.w, y, theme.line, 4 * u)
  view:line(line.x, y, place(bar.at), y, theme.accent, 4 * u)
  for _, at in ipairs(bar.marks) do view:rect(place(at) - u, y - r, 2 * u, 2 * r, theme.warm) end
  view:disc(place(bar.at), y, r, theme.text)
  view:text(text, box.x + box.w, y + 4 * u, 11, theme.dim, "right")
  view:spot({ x = box.x, y = box.y, w = line.w + 2 * r, h = box.h }, { scrub = { x = line.x, w = line.w, from = bar.from, to = bar.to } })
end
