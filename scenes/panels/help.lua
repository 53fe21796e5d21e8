-- help.lua -- the keys, over a dimmed page.
local canvas = require "mneme.canvas"

local keys = {
  { "space", "play, pause" }, { "→", "one step" }, { "←", "one step back" },
  { "+  −", "faster, slower" }, { "r", "restart the episode" }, { "n", "next copy" },
  { "s", "save a picture" }, { "t", "dark or light page" }, { "h", "close this help" }, { "q  Esc", "quit" },
}

return function(view)
  local theme, u = view.theme, view.unit
  view:rect(0, 0, view.width, view.height, canvas.fade(theme.page, 0.7))
  local w, h = 340 * u, (#keys * 30 + 74) * u
  local x, y = (view.width - w) / 2, (view.height - h) / 2
  view:rect(x, y, w, h, theme.card)
  view:frame(x, y, w, h, theme.line, 1.5 * u)
  view:text("keys", x + 28 * u, y + 40 * u, 18, theme.text)
  for i, key in ipairs(keys) do
    local base = y + (46 + i * 30) * u
    view:text(key[1], x + 28 * u, base, 14, theme.warm)
    view:text(key[2], x + 120 * u, base, 14, theme.text)
  end
end
