-- tooltip.lua -- what the pointer is on, in words, next to it.
local WIDE, SIZE = 340, 12.5

---options: text, x and y of the pointer
return function(view, _, _, options)
  local theme, u = view.theme, view.unit
  local wide = math.min(WIDE * u, view.width - 40 * u, view:text_width(options.text, SIZE) + 1)
  local lines = view:paragraph(options.text, 0, nil, SIZE, nil, wide)
  local w, h = wide + 20 * u, (1.4 * lines * SIZE + 12) * u
  local x = math.max(4 * u, math.min(options.x + 14 * u, view.width - w - 4 * u))
  local y = options.y + 22 * u
  if y + h > view.height - 4 * u then y = math.max(4 * u, options.y - h - 8 * u) end
  view:rect(x, y, w, h, theme.page)
  view:frame(x, y, w, h, theme.dim, u)
  view:paragraph(options.text, x + 10 * u, y + (6 + SIZE) * u, SIZE, theme.text, wide)
end
