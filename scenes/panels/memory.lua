-- memory.lua -- every number the core holds, as heat maps: a row for each layer, a column for
-- each head, in each cell the kinds of state (v, k, s; C; h) one above the other.  Any core fits,
-- since names and shapes say how to divide it.
local heads = require "mneme.heads"
local canvas = require "mneme.canvas"

-- How high each kind's strip is: by the root of how much it holds, but never a hair.
local function shares(kinds, by_kind)
  local total, share = 0, {}
  for _, kind in ipairs(kinds) do
    share[kind] = by_kind[kind] and math.sqrt(heads.size(by_kind[kind].shape)) or 0
    total = total + share[kind]
  end
  local sum = 0
  for _, kind in ipairs(kinds) do
    share[kind] = share[kind] > 0 and math.max(share[kind] / total, 0.18) or 0
    sum = sum + share[kind]
  end
  for _, kind in ipairs(kinds) do share[kind] = share[kind] / sum end
  return share
end

---options.of: "memory" (default) or "probes"; kinds: a list of those to show; title;
---unit: text, where all values lie in 0..1
return function(view, box, now, options)
  options = options or {}
  local theme, u = view.theme, view.unit
  local layers, kinds, by_layer = heads.grid(now[options.of or "memory"], options.kinds)
  local notes, columns, wide = {}, 1, 0
  for _, kind in ipairs(kinds) do
    if not options.unit then notes[#notes + 1] = ("%s ±%.2g"):format(kind, now.range[kind]) end
    wide = math.max(wide, view:text_width(kind, 11))
    for _, layer in ipairs(layers) do
      local array = by_layer[layer][kind]
      if array then columns = math.max(columns, heads.count(array, now.n_heads)) end
    end
  end
  local map = options.unit and canvas.SEQUENTIAL or canvas.DIVERGING
  local inner = view:card(box, options.title or "memory", options.unit or table.concat(notes, "   "), map)
  if #layers == 0 then
    return view:text(options.empty or "nothing to show", inner.x, inner.y + 16 * u, 12, theme.dim)
  end

  local label = #layers > 1 and view:text_width("layer 00", 11) + 8 * u or 0
  local gap, left = 8 * u, inner.x + label + wide + 6 * u
  local width = (inner.x + inner.w - left - gap * (columns - 1)) / columns
  local top = inner.y + (columns > 1 and 16 * u or 0)
  local height = (inner.y + inner.h - top - gap * (#layers - 1)) / #layers
  for head = 0, columns > 1 and columns - 1 or -1 do
    view:text("head " .. head, left + head * (width + gap), inner.y + 9 * u, 11, theme.dim, "left", width)
  end
  for i, layer in ipairs(layers) do
    local y, share = top + (i - 1) * (height + gap), shares(kinds, by_layer[layer])
    local size = math.min(11, height / u)              -- rows may be lower than a line of text
    if #layers > 1 then view:text("layer " .. layer, inner.x, y + 0.9 * size * u, size, theme.dim) end
    for _, kind in ipairs(kinds) do
      local array, strip = by_layer[layer][kind], height * share[kind]
      local n = array and heads.count(array, now.n_heads) or 0
      for head = 0, n - 1 do
        local rows, cols, values = heads.slice(array, head, now.n_heads)
        local all = inner.x + inner.w - left           -- what is not divided takes the whole row
        local place = { x = left + head * (width + gap), y = y, h = strip - 2 * u }
        place.w = n == 1 and all or width
        local most = options.unit and 1 or math.max(now.range[kind], 1e-6)
        rows, cols = heads.fold(rows, cols, place.w / place.h)
        view:heat(place, rows, cols, values, options.unit and 0 or -most, most, map)
      end
      size = math.min(11, strip / u)
      if n > 0 then
        view:text(kind, left - 6 * u, y + strip / 2 + 0.3 * size * u, size, theme.text, "right")
      end
      y = y + strip
    end
  end
end
