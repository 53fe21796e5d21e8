-- help.lua -- the keys, over a dimmed page.
local mn = require "mneme"
local canvas = mn.ui.canvas

local SMALLEST = 9             -- letters

---options.keys: a list of { name, what it does }
return function(view, _, _, options)
  local theme, u, keys = view.theme, view.unit, options.keys
  view:rect(0, 0, view.width, view.height, canvas.fade(theme.page, 0.7))
  local rows = math.ceil(#keys / 2)
  local high = math.min(30 * u, (view.height - 90 * u) / rows)
  local size = math.min(14, high / u * 0.6)
  -- Two columns of a name and a text, as wide as their texts; smaller letters where the page is narrower than that.
  local function measure()
    local name, text = 0, 0
    for _, key in ipairs(keys) do name, text = math.max(name, view:text_width(key[1], size)), math.max(text, view:text_width(key[2], size)) end
    return name + 18 * u, text + 28 * u
  end
  local name, text = measure()
  while 2 * (name + text) + 28 * u > view.width - 8 * u and size > SMALLEST do
    size = size - 0.5
    name, text = measure()
  end
  text = math.min(text, (view.width - 36 * u) / 2 - name)
  local w, h = 2 * (name + text) + 28 * u, rows * high + 74 * u
  local x, y = (view.width - w) / 2, (view.height - h) / 2
  view:rect(x, y, w, h, theme.card)
  view:frame(x, y, w, h, theme.line, 1.5 * u)
  view:text("keys", x + 28 * u, y + 36 * u, 18, theme.text)
  for i, key in ipairs(keys) do
    local left, base = x + 28 * u + (i > rows and name + text or 0), y + 46 * u + ((i - 1) % rows + 0.8) * high
    view:text(key[1], left, base, size, theme.warm)
    view:text(key[2], left + name, base, size, theme.text, "left", text - 24 * u)
  end
end
