-- menu.lua -- the menu of interventions over a dimmed page: each line has a key and can be clicked.  A click outside closes it.
local mn = require "mneme"
local canvas = mn.ui.canvas

-- One line: its key, its text, and its spot.
local function line(view, entry, x, base, w, high, size)
  local u = view.unit
  view:text(entry.name, x, base, size, view.theme.warm, "left")
  view:text(entry.text, x + 24 * u, base, size, view.theme.text, "left", w - 30 * u)
  view:spot({ x = x - 8 * u, y = base - 0.75 * high, w = w, h = high }, { key = entry.key })
end

---options: { title, entries = { { key = code, name, text } ... }, lasting = nil or the line below them, close = a key's code }
return function(view, _, _, options)
  local theme, u, entries = view.theme, view.unit, options.entries
  view:rect(0, 0, view.width, view.height, canvas.fade(theme.page, 0.55))
  view:spot({ x = 0, y = 0, w = view.width, h = view.height }, { key = options.close })
  local columns = #entries > 12 and 2 or 1
  local rows = math.ceil(#entries / columns)
  local high = math.min(28 * u, (view.height - 140 * u) / rows)
  local size = math.min(13.5, high / u * 0.6)
  local widest = math.max(240 * u, view:text_width(options.title, 17) / columns + 10 * u,
    options.lasting and view:text_width(options.lasting.text, 13) + 30 * u or 0)
  for _, entry in ipairs(entries) do widest = math.max(widest, view:text_width(entry.text, size) + 40 * u) end
  local column = math.min(widest, (view.width - 72 * u) / columns)
  local w, h = columns * column + 48 * u, rows * high + (options.lasting and 104 or 64) * u
  local x, y = (view.width - w) / 2, (view.height - h) / 2
  view:rect(x, y, w, h, theme.card)
  view:frame(x, y, w, h, theme.line, 1.5 * u)
  view:spot({ x = x, y = y, w = w, h = h }, {})
  view:text(options.title, x + 28 * u, y + 34 * u, 17, theme.text, "left", w - 56 * u)
  for i, entry in ipairs(entries) do
    local at = math.ceil(i / rows) - 1
    line(view, entry, x + 28 * u + at * column, y + 46 * u + ((i - 1) % rows + 0.75) * high, column, high, size)
  end
  if not options.lasting then return end
  view:line(x + 28 * u, y + h - 48 * u, x + w - 28 * u, y + h - 48 * u, theme.grid)
  line(view, options.lasting, x + 28 * u, y + h - 22 * u, w - 56 * u, 28 * u, 13)
end
