-- help.lua -- the keys, over a dimmed page.
local mn = require "mneme"
local canvas = mn.ui.canvas

---options.keys: a list of { name, what it does }
return function(view, _, _, options)
  local theme, u, keys = view.theme, view.unit, options.keys
  view:rect(0, 0, view.width, view.height, canvas.fade(theme.page, 0.7))
  local rows = math.ceil(#keys / 2)
  local high = math.min(30 * u, (view.height - 90 * u) / rows)
  local w, h = 620 * u, rows * high + 74 * u
  local x, y = (view.width - w) / 2, (view.height - h) / 2
  view:rect(x, y, w, h, theme.card)
  view:frame(x, y, w, h, theme.line, 1.5 * u)
  view:text("keys", x + 28 * u, y + 36 * u, 18, theme.text)
  for i, key in ipairs(keys) do
    local left, base = x + (i > rows and 310 or 0) * u, y + 46 * u + ((i - 1) % rows + 0.8) * high
    local size = math.min(14, high / u * 0.6)
    view:text(key[1], left + 28 * u, base, size, theme.warm, "left", 70 * u)
    view:text(key[2], left + 104 * u, base, size, theme.text, "left", 200 * u)
  end
end
