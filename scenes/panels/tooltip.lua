-- tooltip.lua -- what the pointer is on, in words, next to it.
local WIDE, SIZE = 340, 12.5

-- A text as lines that fit.
local function lines_of(view, text, room)
  local lines, line = {}, ""
  for word in text:gmatch "%S+" do
    local longer = line == "" and word or line .. " " .. word
    if line ~= "" and view:text_width(longer, SIZE) > room then lines[#lines + 1], line = line, word else line = longer end
  end
  lines[#lines + 1] = line
  return lines
end

---options: text, x and y of the pointer
return function(view, _, _, options)
  local theme, u, wide, high = view.theme, view.unit, 0, 1.45 * SIZE * view.unit
  local lines = lines_of(view, options.text, math.min(WIDE * u, view.width - 40 * u))
  for _, line in ipairs(lines) do wide = math.max(wide, view:text_width(line, SIZE)) end
  local w, h = wide + 20 * u, #lines * high + 12 * u
  local x = math.max(4 * u, math.min(options.x + 14 * u, view.width - w - 4 * u))
  local y = options.y + 22 * u
  if y + h > view.height - 4 * u then y = math.max(4 * u, options.y - h - 8 * u) end
  view:rect(x, y, w, h, theme.page)
  view:frame(x, y, w, h, theme.dim, u)
  for i, line in ipairs(lines) do view:text(line, x + 10 * u, y + 6 * u + (i - 0.28) * high, SIZE, theme.text, "left", wide + 1) end
end
