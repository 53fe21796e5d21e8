-- toast.lua -- a note for the user, above the control bar.
---options.text
return function(view, box, _, options)
  local theme, u, size = view.theme, view.unit, 14
  local room = box.w - 96 * u
  local text = view:fit(options.text, size, room)
  local w = view:text_width(text, size) + 32 * u
  local x, y, h = box.x + (box.w - w) / 2, box.y + box.h - 50 * u, 36 * u
  view:rect(x, y, w, h, theme.card)
  view:frame(x, y, w, h, theme.warm, 1.5 * u)
  view:text(text, x + w / 2, y + 23.5 * u, size, theme.text, "center")
end
