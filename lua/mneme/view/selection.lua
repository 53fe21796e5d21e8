-- selection.lua -- what of a core a page shows: all of it, or the layer, the head and the step that were chosen, as far as
-- the core has such.  Panels that show heads show those of the choice, and let a click on one choose it.
local focus = {}

---Every head of so many layers.
---@return table[] rows { layer, head }
function focus.all(layers, heads)
  local rows = {}
  for layer = 0, layers - 1 do
    for head = 0, heads - 1 do rows[#rows + 1] = { layer = layer, head = head } end
  end
  return rows
end

-- Does a row hold what was chosen?  What no row holds does not count.
local function held(rows, key, value)
  for _, row in ipairs(rows) do
    if value and row[key] == value then return value end
  end
end

---Those of some rows that were chosen; all of them where nothing was.
---@param now Frame now.focus may be nil
---@param rows table[] { layer, head = nil where a layer is not divided }
---@return table[] chosen
---@return integer? layer as far as one was chosen
---@return integer? head
function focus.rows(now, rows)
  local wish, chosen = now.focus or {}, {}
  local layer, head = held(rows, "layer", wish.layer), held(rows, "head", wish.head)
  for _, row in ipairs(rows) do
    if (not layer or row.layer == layer) and (not head or row.head == head) then chosen[#chosen + 1] = row end
  end
  if #chosen == 0 then return rows, nil, nil end         -- that layer has no such head
  return chosen, layer, head
end

---"layer 1, head 2", or less where there is less to tell apart.
function focus.name(row) return "layer " .. row.layer .. (row.head and ", head " .. row.head or "") end

---What groups of equal size of chosen rows are called: the layers, or the heads of one.
---@param rows table[] see focus.rows
---@param layer integer? likewise
---@return string[]
function focus.names(rows, layer)
  local names, last = {}, nil
  for _, row in ipairs(rows) do
    if layer then names[#names + 1] = row.head and "head " .. row.head or "layer " .. layer
    elseif row.layer ~= last then names[#names + 1], last = "layer " .. row.layer, row.layer end
  end
  return names
end

---Let a click on a box choose a head, a layer, or one of both; a second click takes it back.
---@param row table { layer, head }, either may be nil
---@param framed boolean? where it is the choice, draw a frame around
function focus.spot(view, box, now, row, framed)
  local wish = now.focus or {}
  view:spot(box, { choose = { layer = row.layer, head = row.head } })
  if framed and (wish.layer or wish.head) and (not wish.layer or wish.layer == row.layer)
    and (not wish.head or wish.head == row.head) then
    view:frame(box.x, box.y, box.w, box.h, view.theme.warm, 2 * view.unit)
  end
end

---The same for rows of equal height in one box.
function focus.spots(view, box, now, rows)
  local high = box.h / #rows
  for i, row in ipairs(rows) do
    focus.spot(view, { x = box.x, y = box.y + (i - 1) * high, w = box.w, h = high }, now, row)
  end
end

---The step that was chosen, or the first: of an episode so far.
---@return integer step
---@return integer i its place in now.history
function focus.step(now)
  local history, wish = now.history, now.focus and now.focus.step or 0
  local last = history[#history].step
  local step = wish <= last and wish or 0
  local i = math.min(#history, step + 1)
  while i > 1 and history[i].step > step do i = i - 1 end
  while i < #history and history[i].step < step do i = i + 1 end
  return history[i].step, i
end

return focus
