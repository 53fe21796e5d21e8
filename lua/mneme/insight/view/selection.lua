-- selection.lua -- the selected layer, head and step: panels show the selected heads of a core (all, where none is selected),
-- and a click on a head selects it.
local errors = require "mneme.base.errors"

local selection = {}

local MOST_ROWS = 2 ^ 16

---Every head of every layer.
---@param layers integer
---@param heads integer of each layer
---@return table[] rows { layer, head }
function selection.all(layers, heads)
  if not (layers * heads <= MOST_ROWS) then
    errors.raise(("selection.all: %s layers of %s heads, expected at most %d heads"):format(tostring(layers), tostring(heads), MOST_ROWS))
  end
  local rows = {}
  for layer = 0, layers - 1 do
    for head = 0, heads - 1 do rows[#rows + 1] = { layer = layer, head = head } end
  end
  return rows
end

-- The selected layer or head, where one of the rows has it.
local function in_rows(rows, key, value)
  for _, row in ipairs(rows) do
    if value and row[key] == value then return value end
  end
end

---The selected rows of a list; all of them where nothing is selected.
---@param now Frame now.selection may be nil
---@param rows table[] { layer, head = nil where a layer has no heads }
---@return table[] selected
---@return integer? layer the selected one, if any
---@return integer? head the selected one, if any
function selection.rows(now, rows)
  local wish, selected = now.selection or {}, {}
  local layer, head = in_rows(rows, "layer", wish.layer), in_rows(rows, "head", wish.head)
  for _, row in ipairs(rows) do
    if (not layer or row.layer == layer) and (not head or row.head == head) then selected[#selected + 1] = row end
  end
  if #selected == 0 then return rows, nil, nil end       -- that layer has no such head
  return selected, layer, head
end

---The name of a row: "layer 1, head 2", or "layer 1".
---@param row table { layer, head? }
---@return string
function selection.name(row) return "layer " .. row.layer .. (row.head and ", head " .. row.head or "") end

---The names of groups of selected rows, all of equal size: the layers, or the heads of one layer.
---@param rows table[] see selection.rows
---@param layer integer? likewise
---@return string[]
function selection.names(rows, layer)
  local names, last = {}, nil
  for _, row in ipairs(rows) do
    if layer then names[#names + 1] = row.head and "head " .. row.head or "layer " .. layer
    elseif row.layer ~= last then names[#names + 1], last = "layer " .. row.layer, row.layer end
  end
  return names
end

---Is a part the one that the pointer is on, in any panel, or in that layer?
---@param now Frame now.pointed may be nil
---@param row table { layer, head, word = its name for erase=, where it has one }
---@return boolean
function selection.pointed(now, row)
  local at = now.pointed
  if not at or at.layer ~= row.layer then return false end
  if at.word and row.word and not at.head then return at.word == row.word or at.word == "layers." .. row.layer end
  return at.head == nil and (not at.word or at.word == "layers." .. row.layer) or at.head ~= nil and at.head == row.head
end

---Make a box clickable: a click selects a head, a layer, or a head of a layer; a second click clears the selection.
---@param view Canvas
---@param box table { x, y, w, h }
---@param now Frame
---@param row table { layer, head }, either may be nil
function selection.spot(view, box, now, row)
  view:spot(box, { select = { layer = row.layer, head = row.head, word = row.word } })
  if selection.pointed(now, row) then view:frame(box.x, box.y, box.w, box.h, view.theme.text, 1.5 * view.unit) end
end

---Make every row of a box clickable; the rows have equal heights.
---@param view Canvas
---@param box table { x, y, w, h }
---@param now Frame
---@param rows table[] { layer, head? }
function selection.spots(view, box, now, rows)
  local high = box.h / #rows
  for i, row in ipairs(rows) do
    selection.spot(view, { x = box.x, y = box.y + (i - 1) * high, w = box.w, h = high }, now, row)
  end
end

---The selected step of this episode, or its first.
---@param now Frame
---@return integer step
---@return integer i its index in now.history
function selection.step(now)
  local history, wish = now.history, now.selection and now.selection.step or 0
  local last = history[#history].step
  local step = wish <= last and wish or 0
  local i = math.min(#history, step + 1)
  while i > 1 and history[i].step > step do i = i - 1 end
  while i < #history and history[i].step < step do i = i + 1 end
  return history[i].step, i
end

return selection
