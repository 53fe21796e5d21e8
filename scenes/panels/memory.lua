-- memory.lua -- the whole recurrent state as heat maps: a row for each layer, a column for each head, and in each the kinds of
-- state (v, k, s; C; h) one above the other.  Works for any core, since names and shapes say how a state is divided.  A selected
-- head is drawn alone.
local mn = require "mneme"
local heads, state_arrays = mn.inspect.heads, mn.inspect.state_arrays
local canvas, selection = mn.ui.canvas, mn.ui.selection
local panels = mn.scene.panels

---options.of: "memory" (default) or "probes"; kinds: the ones to show; title; unit: a text, where all values lie in 0..1
return function(view, box, now, options)
  options = options or {}
  local theme, u = view.theme, view.unit
  local layers, kinds, by_layer = state_arrays.grid(now[options.of or "memory"], options.kinds)
  local owners, columns = state_arrays.owners(layers, kinds, by_layer, now.n_heads)
  local rows, the_layer, the_head = selection.rows(now, owners)
  if #rows == 1 and the_layer then
    return panels.state(view, box, now, setmetatable({ row = rows[1] }, { __index = options }))
  end
  if the_layer then layers = { the_layer } end
  local notes, wide = {}, 0
  for _, kind in ipairs(kinds) do
    if not options.unit then notes[#notes + 1] = ("%s ±%.2g"):format(kind, now.range[kind]) end
    wide = math.max(wide, view:text_width(kind, 11))
  end
  local map = options.unit and canvas.SEQUENTIAL or canvas.DIVERGING
  local inner = view:card(box, options.title or "memory", options.unit or table.concat(notes, "   "), map)
  if #layers == 0 then return view:say(inner, options.of and "nothing that is drawn by layer and head" or "this core has no state") end

  local label = view:text_width("layer 00", 11) + 8 * u
  if #owners == columns then label = 0 end
  local first, last = the_head or 0, the_head or columns - 1
  local gap, left = 8 * u, inner.x + label + wide + 6 * u
  local width = (inner.x + inner.w - left - gap * (last - first)) / (last - first + 1)
  local named = columns > 1 and inner.h > (16 + 4 * #layers) * u
  local top = inner.y + (named and 16 * u or 0)
  local apart = math.min(gap, 0.2 * (inner.y + inner.h - top) / #layers)          -- between layers
  local height = (inner.y + inner.h - top + apart) / #layers - apart
  for head = first, named and last or -1 do
    local place = { x = left + (head - first) * (width + gap), y = inner.y, w = width, h = 13 * u }
    view:text(view:text_width("head " .. head, 11) <= width and "head " .. head or tostring(head), place.x, inner.y + 9 * u, 11, theme.dim, "left", width)
    selection.spot(view, place, now, { head = head })
  end
  for i, layer in ipairs(layers) do
    local y, share = top + (i - 1) * (height + apart), heads.shares(kinds, by_layer[layer])
    local size, row_top = math.min(11, height / u), y  -- rows may be lower than a line of text
    if label > 0 then
      view:text("layer " .. layer, inner.x, y + 0.9 * size * u, size, theme.dim)
      selection.spot(view, { x = inner.x, y = y, w = left - inner.x, h = height }, now, { layer = layer })
    end
    for _, kind in ipairs(kinds) do
      local array, strip = by_layer[layer][kind], height * share[kind]
      local n = array and state_arrays.count(array, now.n_heads) or 0
      for head = n > 1 and first or 0, n > 1 and last or n - 1 do
        local down, across, values = state_arrays.slice(array, head, now.n_heads)
        local place = { x = left, y = y, w = inner.x + inner.w - left, h = strip - math.min(2 * u, 0.2 * strip) }
        if n > 1 then place.x, place.w = left + (head - first) * (width + gap), width end
        local most = options.unit and 1 or math.max(now.range[kind], 1e-6)
        local high, wide_of = down, across
        down, across = heads.fold(down, across, place.w / place.h)
        view:heat(place, down, across, values, options.unit and 0 or -most, most, map, function(r, c)
          return heads.element(layer, n > 1 and head or nil, kind, high, wide_of, r * across + c)
        end)
      end
      size = math.min(11, strip / u)
      if n > 0 then
        view:text(kind, left - 6 * u, y + strip / 2 + 0.3 * size * u, size, theme.text, "right")
        view:tip({ x = left - wide - 6 * u, y = y, w = wide + 6 * u, h = strip }, heads.kind(kind))
      end
      y = y + strip
    end
    for head = first, last do
      local place = { x = left + (head - first) * (width + gap), y = row_top, w = width, h = height }
      selection.spot(view, place, now, { layer = layer, head = columns > 1 and head or nil })
    end
  end
end
