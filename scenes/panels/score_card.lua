-- score_card.lua -- the end of an episode that a person played: their score, the agent's and a perfect player's, and what to press.
local canvas = require("mneme").ui.canvas

local function number(format, value) return value and format:format(value) or "–" end

return function(view, box, now)
  local theme, u, lines = view.theme, view.unit, now.card
  local w, h = math.min(box.w - 16 * u, 470 * u), (96 + 24 * #lines) * u
  local x, y = box.x + (box.w - w) / 2, box.y + math.max(40 * u, (box.h - h) / 2)
  view:rect(x, y, w, h, theme.page)
  view:frame(x, y, w, h, theme.accent, 2 * u)
  local inner = view:inset({ x = x, y = y, w = w, h = h }, 16)
  local at = { 0.58, 0.79, 1 }
  for i, title in ipairs { "score", "return", "steps" } do
    view:text(title, inner.x + at[i] * inner.w, inner.y + 12 * u, 11.5, theme.dim, "right")
  end
  for i, line in ipairs(lines) do
    local base, colour = inner.y + (16 + 24 * i) * u, i == 1 and theme.text or theme.dim
    view:text(line.name, inner.x, base, 15, colour, "left", 0.4 * inner.w)
    for k, text in ipairs { number("%.2f", line.score), line.ret and canvas.number(line.ret, 2) or "–", number("%d", line.length) } do
      view:text(text, inner.x + at[k] * inner.w, base, 15, colour, "right")
    end
  end
  local base = y + h - 18 * u
  for i, button in ipairs { { "r", "r: again with the same seed" }, { "n", "n: next" } } do
    local left, wide = i == 1 and inner.x or inner.x + 0.72 * inner.w, view:text_width(button[2], 13)
    view:text(button[2], left, base, 13, theme.accent)
    view:spot({ x = left - 4 * u, y = base - 18 * u, w = wide + 8 * u, h = 26 * u }, { key = button[1]:byte() })
  end
end
