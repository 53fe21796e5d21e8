-- map_display.lua -- what is known of each part of a memory at each step: what is lost where it is erased, gained where it is kept, moved where it is swapped,
-- read from it, or depends on it.  One rule for what is painted, one table and one figure, whatever was measured.
local format = require "mneme.base.format"
local layout = require "mneme.base.layout"

local map_display = {}
local used = { [true] = ", used: erasing it costs", [false] = ", only %s: erasing it alone costs nothing beyond the noise",
  unknown = ", whether it is used is not measured" }
local UNREAD = ", used: erasing it costs; a linear reading does not find what it holds"
local BLOCKS = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }

---@class PartMap
---@field name string of its panel on a page: "causes"
---@field title string
---@field value string what a value is: "success lost"
---@field at string what a column is: "erased at step"
---@field rows MemoryRow[] { word, text, layer, head, short = its name below the row that it belongs to }
---@field steps integer[] the columns, at equal distances, whether they are measured or not
---@field cells table[] cells[row][column] = { [key] = number, low, high = 95 %, n = of how many episodes, clear = false: within the noise,
---  used = true, false: it has something and erasing it costs nothing, or "unknown" }; nil: not measured
---@field key string which field of a cell is the value
---@field floor number end of the scale at least
---@field percent boolean? values are shares, shown as percent
---@field root boolean? the square root is painted: small shares are seen
---@field define string? what is shown, in a sentence
---@field note string? how much is measured
---@field alone string? what a part is whose erasing alone costs nothing: "readable"
---@field needed boolean? of readings: it is what success needs, as far as the environment declares, so that erasing says something about it
---@field stands string what a clear cell does: "beyond the noise"
local Map = {}
Map.__index = Map

---@param map table the fields of a PartMap
---@return PartMap
function map_display.new(map)
  map.stands = map.stands or "beyond the noise"
  return setmetatable(map, Map)
end

---The end of the colours: the floor, or the largest value where that is more.
---@return number
function Map:scale()
  local most = self.floor
  for r in ipairs(self.rows) do
    for c in ipairs(self.steps) do most = math.max(most, self.cells[r][c] and self.cells[r][c].clear ~= false and self.cells[r][c][self.key] or 0) end
  end
  return most
end

---What is painted of a cell: how much of the scale, and how.
---@param r integer
---@param c integer
---@param scale number of Map:scale
---@return number? ink 0..1; nil: not measured, hatched
---@return string? look "clear"; "noise": known, without colour; "readable": erasing it costs nothing, striped
function Map:ink(r, c, scale)
  local cell = self.cells[r][c]
  if not cell then return nil end
  if cell.clear == false then return 0, "noise" end
  return math.max(0, math.min(1, cell[self.key] / scale)) ^ (self.root and 0.5 or 1), (cell.used == nil or cell.used == true) and "clear" or "readable"
end

---The columns whose cells are about as far apart as every column is from the next.
---@return number
function Map:every() return #self.steps > 1 and (self.steps[#self.steps] - self.steps[1]) / (#self.steps - 1) or 1 end

---The column nearest to a step; nil: none is as near as half of the distance between two.
---@param step integer
---@return integer?
function Map:column(step)
  local c = #self.steps > 0 and math.floor((step - self.steps[1]) / self:every() + 0.5) + 1 or 0
  return c >= 1 and c <= #self.steps and c or nil
end

---The row of a part.
---@param word string
---@return integer?
function Map:row(word)
  for r, row in ipairs(self.rows) do if row.word == word then return r end end
end

local function number(map, x) return map.percent and ("%.0f %%"):format(100 * x) or format.said("%.2f", x) end

---A cell in words: "layer 1, head 3, erased at step 5: success lost 0.33 [0.21, 0.45], 64 episodes, beyond the noise".
---@param r integer
---@param c integer
---@return string
function Map:words(r, c)
  local cell = self.cells[r][c]
  local text = ("%s, %s %d: "):format(self.rows[r].text, self.at, self.steps[c])
  if not cell then return text .. "not measured" end
  text = text .. self.value .. " " .. number(self, cell[self.key])
  if cell.low then text = ("%s [%s, %s]"):format(text, number(self, cell.low), number(self, cell.high)) end
  if cell.n then text = ("%s, %d episodes"):format(text, cell.n) end
  if cell.clear ~= nil then text = text .. (cell.clear and ", " or ", not ") .. self.stands end
  if cell.used ~= nil then text = text .. (self.needed and cell.used == true and cell.clear == false and UNREAD or used[cell.used]:format(self.alone)) end
  return (text:gsub("%-(%d)", "−%1"))
end

---Which parts erasing shows to be used though no linear reading finds what they hold, in a sentence; nil: none, or it is not known.
---@return string?
function Map:unread()
  local names = {}
  for r, row in ipairs(self.needed and self.rows or {}) do
    local first, last
    for c, step in ipairs(self.steps) do
      local cell = self.cells[r][c]
      if cell and cell.used == true and cell.clear == false then first, last = first or step, step end
    end
    if first then names[#names + 1] = (first == last and "%s (step %d)" or "%s (steps %d to %d)"):format(row.text, first, last) end
  end
  return #names > 0 and "Used, and not found by a linear reading: " .. table.concat(names, "; ") .. "." or nil
end

---At how many steps a part is known to be used.
---@param r integer
---@return integer
function Map:uses(r)
  local n = 0
  for _, cell in pairs(self.cells[r]) do n = n + (cell.used == true and 1 or 0) end
  return n
end

---The map as a table in a terminal, and what Map:unread says.
---A block for each step (for some of them, where the terminal is narrow), a dot where it is noise, a question mark
---where it is not measured; the largest value, and at how many steps it is beyond the noise.
---@param counts string? the heading of the last column; nil: there is no test
---@return string
function Map:table(counts)
  local rows, widest, scale, right, between = {}, 0, 0, layout.width(), false
  for r, row in ipairs(self.rows) do
    widest = math.max(widest, #row.word)
    for c in ipairs(self.steps) do
      local cell = self.cells[r][c]
      scale, between = math.max(scale, cell and cell[self.key] or 0), between or cell and cell.low ~= nil
    end
  end
  local every = math.ceil(#self.steps / math.max(8, right - widest - 52))
  rows[1] = { "", ("steps %d .. %d"):format(self.steps[1], self.steps[#self.steps]), between and "most, with its 95 % interval" or "most", counts or "" }
  for r, row in ipairs(self.rows) do
    local best, at, clear, texts = nil, nil, 0, {}
    for c, step in ipairs(self.steps) do
      local cell, ink, look = self.cells[r][c], self:ink(r, c, scale)
      if cell and (not best or cell[self.key] > best[self.key]) then best, at = cell, step end
      if cell and cell.clear then clear = clear + 1 end
      local height = ink and math.floor(8 * ink + 0.5) or 0
      if (c - 1) % every == 0 then texts[#texts + 1] = not ink and "?" or (look == "noise" or height < 1) and "·" or BLOCKS[math.min(8, height)] end
    end
    rows[#rows + 1] = { row.word, table.concat(texts), not best and "-"
      or ("%s%s at %d"):format(number(self, best[self.key]), best.low and (" [%s, %s]"):format(number(self, best.low), number(self, best.high)) or "", at),
      counts and ("%d of %d%s"):format(clear, #self.steps, self:uses(r) > 0 and (", used at %d"):format(self:uses(r)) or "") or "" }
  end
  local unread = self:unread()
  return layout.table(rows) .. (unread and table.concat(layout.wrap(unread, right), "\n") .. "\n" or "")
end

---The figure of the map.
---@param title string
---@param note string?
---@return table figure see insight/figures/figure_format.lua
function Map:figure(title, note)
  local cells, faint, thin, x, y = {}, {}, {}, {}, {}
  for c, at in ipairs(self.steps) do x[c] = tostring(at) end
  for r, row in ipairs(self.rows) do
    cells[r], faint[r], thin[r], y[r] = {}, {}, {}, row.text
    for c in ipairs(self.steps) do
      local cell = self.cells[r][c]
      cells[r][c], faint[r][c] = cell and cell[self.key] or false, cell and cell.clear == false or false
      thin[r][c] = cell and cell.used ~= nil and cell.used ~= true or false
    end
  end
  return { kind = "heat", title = title, cells = cells, faint = faint, thin = thin, x = { label = self.at, categories = x }, y = { categories = y },
    value = { label = self.value, range = { 0, self:scale() } }, note = note }
end

---Marks which cells of another map are of parts that are used: whose erasing costs beyond the noise.
---@param causes PartMap? of erasing, with its test; nil: it is not known
---@param later integer steps from a column to the one in which that is erased what it is about: 1 of readings, which are of a memory after its step
---@return PartMap self
function Map:mark_used(causes, later)
  for r, row in ipairs(self.rows) do
    local there = causes and causes.test and causes:row(row.word)
    for c, step in ipairs(self.steps) do
      local at = there and causes:column(step + later)
      local cell, cause = self.cells[r][c], at and causes.cells[there][at]
      if cell then cell.used = not cause and "unknown" or cause.clear and cause[causes.key] > 0 end
    end
  end
  return self
end

---The part in use at a step, of a map of erasing: the smallest whose erasing costs beyond the noise, of these the one that costs most.
---@param step integer
---@return string? word nil: none
function Map:in_use(step)
  local c, best, most, depth = self:column(step), nil, 0, 0
  for r, row in ipairs(c and self.rows or {}) do
    local cell, deep = self.cells[r][c], row.word == "all" and 0 or row.head == nil and row.word:find "^layers%.%d+$" and 1 or 2
    if cell and cell.clear and cell[self.key] > 0 and (deep > depth or not best or deep == depth and cell[self.key] > most) then
      best, most, depth = row.word, cell[self.key], deep
    end
  end
  return best
end

return map_display
