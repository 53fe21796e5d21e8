-- observation.lua -- the observation that the agent receives: codes as the environment draws them, named groups of values, a picture, or cells.
local mn = require "mneme"
local heads, state_arrays = mn.inspect.heads, mn.inspect.state_arrays
local canvas = mn.ui.canvas
local ffi = require "ffi"

local LINE, SIZE = 17, 11.5                      -- design pixels of a group at least; of its name
local LARGE = 8                                  -- groups' weights of a picture at most: the others beside it need their room
local NARROW = 90                                -- of a column at least; where it would be narrower, values have no names

-- A picture: rows, columns, channels; three channels are colours, of others the mean is drawn; pixels are square.  `most` is the largest value.
local function picture_in(view, box, rows, cols, channels, values, least, most, map)
  local side = math.min(box.w / cols, box.h / rows)
  local place = { x = box.x + (box.w - side * cols) / 2, y = box.y, w = side * cols, h = side * rows }
  if channels == 3 then
    local rgb, scale = ffi.new("uint8_t[?]", rows * cols * 3), most > 1 and 1 or 255
    for i = 0, rows * cols * 3 - 1 do rgb[i] = math.max(0, math.min(255, values[i] * scale)) end
    return view:image(place, rows, cols, rgb)
  end
  local grey = ffi.new("float[?]", rows * cols)
  for i = 0, rows * cols * channels - 1 do
    local cell = math.floor(i / channels)
    grey[cell] = grey[cell] + values[i] / channels
  end
  view:heat(place, rows, cols, grey, least, most, map)
end

-- One group: its name, and its values as cells; a single one also as a number.
local function group_in(view, box, group, seen, wide, lo, hi, map)
  local theme, u = view.theme, view.unit
  local one = group.n == 1
  view:text(group.name, box.x, box.y + box.h / 2 + 4 * u, SIZE, theme.dim, "left", wide)
  local place = { x = box.x + wide + 8 * u, y = box.y + u, w = box.w - wide - 8 * u, h = box.h - 2 * u }
  if place.w < 4 * u or place.h < 2 * u then return end
  if group.kind == "picture" then
    local values = ffi.new("float[?]", group.n)          -- of 0 .. 255
    for i = 0, group.n - 1 do values[i] = seen.values[group.from + i] / 255 end
    return picture_in(view, place, group.shape[1], group.shape[2], group.shape[3], values, 0, 1, canvas.SEQUENTIAL)
  elseif group.kind then                         -- an array has a scale of its own
    local least, _, most = state_arrays.summary(seen.values + group.from, group.n)
    hi = group.codes and group.codes - 1 or math.max(1, most, -least)
    lo = least < 0 and -hi or 0
    map = least < 0 and canvas.DIVERGING or canvas.SEQUENTIAL
  end
  local rows, cols = heads.fold(1, group.n, place.w / place.h)
  local side = math.min(place.w / cols, (one and 1 or 2.5) * place.h / rows)
  place.w = side * cols
  view:rect(place.x, place.y, place.w, place.h, theme.grid)
  view:heat(place, rows, cols, seen.values + group.from, lo, hi, map, function(row, col) return group.names[row * cols + col + 1] end)
  view:frame(place.x, place.y, place.w, place.h, theme.line, u)
  if one then view:text(canvas.number(seen.values[group.from]), place.x + place.w + 8 * u, box.y + box.h / 2 + 4 * u, SIZE, theme.text) end
  if cols <= 32 then for c = 1, cols - 1 do view:line(place.x + c * side, place.y, place.x + c * side, place.y + place.h, theme.line, u) end end
end

-- Is there room for the names and values of the groups in this number of columns?
local function fits(view, box, groups)
  return box.w / math.ceil(#groups / math.max(1, math.floor(box.h / (LINE * view.unit)))) >= NARROW * view.unit
end

-- Groups one below the other, in columns where they are many: a line each, and of the rest a large group gets more.
local function groups_in(view, box, groups, seen, lo, hi, map)
  local u, wide = view.unit, 0
  local per = math.max(1, math.floor(box.h / (LINE * u)))
  local columns = math.ceil(#groups / per)
  per = math.ceil(#groups / columns)
  for _, group in ipairs(groups) do wide = math.max(wide, view:text_width(group.name, SIZE)) end
  wide = math.min(wide, box.w / columns * (view.edge < 12 and 0.5 or 0.4))
  for column = 0, columns - 1 do
    local weights, total, line = {}, 0, math.min(LINE * u, box.h / per)
    for r = 1, per do
      local group = groups[column * per + r]
      weights[r] = group and math.max(1, math.min(math.sqrt(group.n) / 3, group.kind and LARGE or math.huge)) or 0
      total = total + weights[r]
    end
    local y, w = box.y, box.w / columns
    for r = 1, per do
      local h = line + (box.h - line * per) * weights[r] / total
      local group, x = groups[column * per + r], box.x + column * w
      if group then group_in(view, { x = x, y = y, w = w - 10 * u, h = math.min(h, 2.2 * LINE * u * weights[r]) }, group, seen, wide, lo, hi, map) end
      y = y + h
    end
  end
end

return function(view, box, now)
  local theme, u, seen = view.theme, view.unit, now.observation
  local plain = (now.seen or not seen) and view:card(box, "observation")
  if not seen then return view:text("no observation", plain.x, plain.y + 16 * u, 12, theme.dim) end
  if now.seen then
    view:rect(plain.x, plain.y, plain.w, plain.h, theme.ground)
    return view:append(now.seen, plain)
  end
  local n, shape = state_arrays.size(seen.shape), seen.shape
  local least, _, most = state_arrays.summary(seen.values, n)
  local note = ("%s value%s"):format(table.concat(shape, "×"), n == 1 and "" or "s")
  local inner = view:card(box, "observation", { ("%s, %s … %s"):format(note, canvas.number(least), canvas.number(most)), note })
  if inner.h < 14 * u then return end              -- a page so small has its title alone
  local map = least < 0 and canvas.DIVERGING or canvas.SEQUENTIAL          -- nothing has the colour of the page
  most = math.max(1, most, -least)
  least = least < 0 and -most or 0
  if #shape < 2 then
    local groups = now.observation_groups
    if groups and #groups > 0 and fits(view, inner, groups) then return groups_in(view, inner, groups, seen, least, most, map) end
    local names = {}
    for i = 1, n do names[i] = "value " .. i - 1 end
    return group_in(view, inner, { name = "", n = n, from = 0, names = names }, seen, 0, least, most, map)
  end
  local rows, cols = shape[1], shape[2]
  local channels = n / rows / cols
  picture_in(view, inner, rows, cols, channels, seen.values, least, most, map)
end
